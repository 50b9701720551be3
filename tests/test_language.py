# ruff: noqa: E501 - programs as text, tables of calls
"""One function for each kind of instruction and situation: as eager on every call, whatever changes from call to call; and for
those that the recorder covers, replayed from end to end. Here: operators, control flow, comprehensions."""

from __future__ import annotations

import numpy as np
from tests.language_cases import A, B, Cases, I, M

case = Cases()


# ---- straight-line code


@case((2.0,), (np.float64(3.0),), (A,), (3,), (True,), (2**70,), (1j,), ("ab",))
def two_x_plus_one(x):
    return 2 * x + 1


@case((A, B), (A, 2), (I, I), (M, M), (A, M))
def arithmetic(a, b):
    c = a + b
    d = a - b * c
    return c * d + a, d


@case((7, 3), (-7, 3), (7.5, -2.0), (A, B), (I, 2), (I, I), (7, 0), (2.5, 0))
def division(a, b):
    return a / b, a // b, a % b


@case((5, 3), (True, False), (2**70, 1), (I, I), (-1, 2), (1.5, 1))
def bits(a, b):
    return a & b, a | b, a ^ b, a << b, a >> b, ~a


@case((3, 4), (2.0, -0.5), (-8, 0.5), (A, 2), (2, A), (0, -1), (I, -1))
def powers(a, b):
    return a**b


@case((3,), (A,), (I,), (True,), ("x",), (-0.0,))
def unary(a):
    return -a, +a, not isinstance(a, int), ~I[0]


@case((1, 2), (2, 1), (1.0, 1), (float("nan"), 1), ("a", "b"), (A, B), (A, A), (None, 1), ([1], [1, 2]))
def comparisons(a, b):
    return a == b, a != b, a is b, a is not b, a < b, a >= b


@case((1, 2, 3), (1, 3, 2), (3, 1, 2), (A, 1, 2))
def chained_comparison(a, b, c):
    return a < b < c, a <= b != c


@case((0, 5), (3, 5), (0, 0), ([], None), (A, 1), (A[:1], 2))
def short_circuits(a, b):
    return a and b, a or b, not a, (a or b) and (b or a)


@case((A,), (M,), (I,))
def in_place(a):
    b = a.copy()
    b += a
    b -= 1
    b *= 2
    a[:] = b
    a += 1
    return a, b


@case((3, 2), (3.5, 2), (2**63, 2), ([1], [2]), ("a", "b"), (A, A))
def in_place_names(a, b):
    first = a
    a += b
    return a, first is a


@case((2**62, 2**62), (2**63, 1), (-(2**63), -1), (1, 1))
def big_integers(a, b):
    return a + b, a * b, a - b, -a, abs(a)


@case((0.1, -0.0), (1e308, 1e308), (float("inf"), float("-inf")), (5e-324, 0.5))
def floats(a, b):
    return a + b, a - b, a * b, -a, a == b, a < b


@case((A,), (np.array([np.nan, -0.0, np.inf]),), (np.zeros(0),), (np.float32(3) * np.ones(3, "f"),))
def functions_of_arrays(a):
    return (
        np.sqrt(np.abs(a)),
        np.exp(a),
        np.maximum(a, 0),
        np.minimum(a, -0.0),
        np.where(a > 0, a, -a),
        a.sum(),
        a.astype("int64"),
    )


@case((A, B), (A.astype("f"), B), (I, A), (I.astype("i4"), I), (A > 0, I), (A, 1), (I, 1.5), (A.astype("f"), 1.5))
def promotion(a, b):
    return a + b, a * b, a > b, np.add(a, b)


@case((M,), (M.T,), (M[::2, ::-1],), (np.asfortranarray(M),), (M[:, :1],), (M[:0],))
def layouts(m):
    return m * 2, (m + m.T if m.shape[0] == m.shape[1] else m - 1), -m, m.T * 3


@case((M, M[0]), (M, M[:, :1]), (M, 2.0), (M, np.float64(2)), (M, M[0, :3]))
def broadcasting(m, v):
    return m + v, v * m


# ---- if, while, for


@case((1,), (0,), (-3,), (5,), ("",), (A[:1],), (A,))
def if_elif_else(n):
    if n == 1:
        r = "one"
    elif n:
        r = "some"
    else:
        r = "none"
    return r


@case((A,), (-A,), (np.array([np.nan]),))
def branch_on_data(a):
    if a.sum() > 0:
        return a * 2
    return a - 1


@case((3, None), (0, None), (2, 1), (None, 0))
def conditional_expression(a, b):
    return (a if a is not None else b) if b is None else (b or -1)


@case((10,), (1,), (27,), (0,), (2**64,))
def while_loop(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 200:
            break
    return n, steps


@case((5,), (0,), (100,), (1.5,), (np.int64(4),))
def for_range(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        total += i * i
    return total


@case(([3, 1, 2],), ([],), ((1.5, "a"),), ("abc",), ({1: 2, 3: 4},), (A,), (M,), (5,))
def for_over(items):
    seen = []
    for item in items:
        seen.append(item)
    return seen


@case(([1, 2, 3], 2), ([1, 2, 3], 9), ([], 1), ([1, 2, 3], 3))
def for_break_else(items, wanted):
    for number, item in enumerate(items):
        if item == wanted:
            break
    else:
        number = -1
    return number


@case((3, 4), (0, 4), (4, 0), (7, 7))
def nested_loops(n, m):
    table = []
    for i in range(n):
        row = 0
        for j in range(m):
            if j > i:
                break
            row += i * j
        table.append(row)
    return table


@case((A, 3), (A, 0), (M, 40), (I, 2))
def loop_over_arrays(a, n):
    r = a
    for _ in range(n):
        r = r * 0.5 + a
    return r


@case(([1, 2, 3], "ab"), ([], "ab"), ([1.5] * 30, "abc" * 10))
def loop_zip_reversed(a, b):
    pairs = [(x, y) for x, y in zip(a, b)]
    back = []
    for x in reversed(a):
        back.append(x)
    return pairs, back, x if a else None


@case((50,), (0,), (3,))
def while_true(n):
    i = 0
    while True:
        if i >= n:
            return i
        i += 2


@case((3,), (0,), (20,))
def loop_variable_after(n):
    i = "unset"
    for i in range(n):
        pass
    return i


@case((2,), (0,), (30,), replays=False)  # the last iteration of an inner function's unbound local raises
def unbound_after_loop(n):
    for value in range(n):
        pass
    return value


# ---- comprehensions


@case((4,), (0,), (60,), ("x",))
def list_comprehension(n):
    return [i * i for i in range(n) if i % 2]


@case(([1, 2, 2, 3],), ([],), (["a", 1, None],))
def set_and_dict_comprehension(items):
    return {i for i in items}, {i: (i, i) for i in items}


@case((3, 10), (0, 1), (5, -1))
def nested_comprehension(n, k):
    return [[i * j + k for j in range(i)] for i in range(n)], [x for row in ((1, 2), (3,)) for x in row if x != k]


@case((3,), (8,))
def comprehension_of_closures(n):
    return [f() for f in [lambda i=i: i + n for i in range(n)]]


@case(([A, B],), ([],), ([A, 1.5, M],))
def comprehension_of_arrays(items):
    return [item * 2 for item in items]


test_same_as_eager, test_replayed_from_end_to_end = case.tests()
