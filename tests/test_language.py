"""One function for each kind of instruction and situation: as eager on every call, whatever changes from call to call; and for those
that the recorder covers, replayed from end to end."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator

import numpy as np
import pytest

from tests.support import call, check, settles

_CASES: list[tuple[object, tuple[object, ...], bool]] = []
A = np.array([1.0, -2.0, 3.5])
B = np.array([0.5, 4.0, -0.0])
I = np.array([3, -1, 7])
M = np.arange(12.0).reshape(3, 4)


def case(*calls, replays=True):
    """The function is called with each of these; replays: with the first, it is replayed from end to end."""

    def add(function):
        _CASES.append((function, calls, replays))
        return function

    return add


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
    return np.sqrt(np.abs(a)), np.exp(a), np.maximum(a, 0), np.minimum(a, -0.0), np.where(a > 0, a, -a), a.sum(), a.astype("int64")


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


# ---- containers


@case((1, 2), (A, B), (None, "x"))
def build_containers(a, b):
    return (a, b), [a, b], {"a": a, "b": b}, {1, 2}, frozenset((3,)), [], (), {}, (a,), [*(a, b), a], (*[b], a)


@case(([1, 2],), ([],), ([A],))
def list_methods(items):
    items.append(5)
    items.extend((6, 7))
    items.insert(0, "first")
    last = items.pop()
    items.reverse()
    return items, last, len(items), items.index(5), items[1:3], 6 in items


@case(({"a": 1},), ({},), ({"b": A, "a": 2},))
def dict_methods(d):
    d["new"] = 3
    d.setdefault("a", "default")
    d.update(z=1)
    d.update({"y": 2})
    gone = d.pop("new")
    return d, gone, d.get("nothing"), list(d), list(d.items()), "a" in d, "q" not in d, {**d, "k": 1}


@case(({1, 2},), (set(),))
def set_methods(s):
    s.add(7)
    s.discard(1)
    s |= {9}
    return s, s & {7, 9}, 7 in s, sorted(s)


@case(([1, 2, 3],), ([A, B],), ([1],))
def aliasing(items):
    same = items
    same.append("end")
    nested = [items, same]
    nested[0][0] = "start"
    return items, same, nested, items is nested[1]


@case(((3, "a"),), ((1.5, None),))
def tuples(t):
    return t + (1,), t * 2, t[0], t[-1], t[:1], len(t), t == (3, "a"), hash(t) == hash((3, "a"))


@case(([3, 1, 2], 1), ([3, 1, 2], -5), ((1, 2, 3), 1), ("text", 2), ({1: "one"}, 1), (A, 1), (M, 1), (M, (0, 1)), ([1], 3))
def get_item(container, key):
    return container[key]


@case(([3, 1, 2], 1, "v"), ({}, 1, 2), (A, 0, 9.0), (M, 1, 5), (M, (0, 1), 7), (A, 0, "x"), ((1,), 0, 0))
def set_item(container, key, value):
    container[key] = value
    return container


@case(([3, 1, 2], 0), ({"a": 1, "b": 2}, "a"), ([1], 4), ({}, "a"))
def delete_item(container, key):
    del container[key]
    return container


@case(([1, 2, 3, 4],), ("abcdef",), (np.arange(9),))
def slices(s):
    return s[1:], s[:2], s[::2], s[::-1], s[-2:], s[1:3]


@case((M,), (np.arange(60).reshape(3, 4, 5),))
def array_slices(m):
    m[0] = m[1]
    m[1:, ::2] += 1
    m[..., 0] *= 2
    return m[1:, :2], m[None, 0], m[..., -1], m[m > 3], m[[0, 2]]


@case(([1, 2, 3, 4],), ([],))
def slice_assignment(s):
    s[1:3] = ["x"]
    s[:0] = (0,)
    s[len(s) :] = [9]
    del s[0]
    return s


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0.0

    def shifted(self, d):
        return Point(self.x + d, self.y + d)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


Pair = collections.namedtuple("Pair", "left right")


@case((1, 2), (A, B))
def dataclass_and_namedtuple(a, b):
    p = Point(a, b)
    q = p.shifted(1) + p
    pair = Pair(q.x, b)
    return q, pair.left, pair[1], pair._replace(left=0)


@case(([1, 2],), ([],))
def collections_types(items):
    d = collections.deque(items)
    d.append(3)
    d.appendleft(0)
    counted = collections.defaultdict(list)
    counted["k"].append(d.pop())
    ordered = collections.OrderedDict(a=1)
    ordered["b"] = 2
    return list(d), dict(counted), list(ordered.items())


# ---- attributes


@case((Point(1, 2),), (Point(A, B),), (Point("a", "b"),), (Point([1], [2]),))
def attributes(p):
    p.x = p.x + p.y
    p.fresh = p.x
    p.y += p.x
    del p.fresh
    return p.x, p.y, hasattr(p, "fresh"), getattr(p, "fresh", None)


@case((M,), (A,), (np.float64(2),))
def array_attributes(a):
    return a.shape, a.dtype, a.ndim, a.size, a.T, a.strides, a.real


class Sized:
    count = 3

    def __init__(self, step):
        self.step = step

    @property
    def doubled(self):
        return self.step * 2

    @classmethod
    def counted(cls, n):
        return cls.count + n

    @staticmethod
    def plain(n):
        return n - 1

    def method(self, n):
        return self.step + n

    def __call__(self, n):
        return self.method(n) * self.count

    def __getitem__(self, key):
        return key * self.step

    def __len__(self):
        return 2

    def __eq__(self, other):
        return self.step == other

    __hash__ = None


@case((Sized(3), 1), (Sized(2.5), 2), (Sized(A), 1), (Sized("a"), 1))
def methods(s, n):
    return s.method(n), s(n), Sized.counted(n), s.counted(n), s.plain(n), s.doubled, s[n], len(s), s == n, Sized.method(s, n)


class Child(Sized):
    def method(self, n):
        return super().method(n) + 100


@case((Child(3), 1), (Child(1.5), 2), replays=False)
def super_method(s, n):
    return s.method(n)


@case((1,), (2.5,), (A,))
def new_instances(v):
    s = Sized(v)
    s.step = s.step + 1
    return s.step, s, type(s) is Sized


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a

    def __getattr__(self, name):
        return name + "?"


@case((1,), (A,))
def slots_and_getattr(v):
    s = Slotted(v)
    s.b = v
    return s.a, s.b, s.other


# ---- names and closures


@case((1,), (A,))
def walrus(a):
    if (b := a) is not None:
        c = [d := 3, d + 1]
    return b, c, d


@case((1,), (A,))
def delete_name(a):
    b = a
    del a
    return b


COUNTER = 0
FACTOR = 2.5


@case((1,), (A,), (2,))
def globals_read(a):
    return a * FACTOR, math.pi, np.pi, len


@case((1,), (A,), ("t",))
def closure_read(a):
    def inner(b):
        return a, b

    return inner(3), inner(a)


@case((5,), (0,), (1.5,), (40,), replays=False)
def closure_write(n):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    history = [add(n), add(2)]
    for i in range(int(n)):
        history.append(add(i))
    return total, history


@case((3,), (A,))
def closure_shared(a):
    def get():
        return a

    def put(v):
        nonlocal a
        a = v

    before = get()
    put((before, 1))
    return get(), before


def _adder(n):
    return lambda x: x + n


@case((1, 2), (A, 1.5), ("a", "b"))
def function_that_makes_a_function(x, n):
    add = _adder(n)
    return add(x), _adder(x)(n)


@case((3,), (1.5,))
def defaults_of_an_inner_function(a):
    def inner(x, y=a, *, z=(1, a)):
        return x, y, z

    return inner(1), inner(1, 2), inner(1, z=0), inner.__defaults__


# ---- f-strings


@case((3, 0.5), ("text", None), (np.float64(1.25), [1]), (True, "é"))
def f_strings(a, b):
    return f"{a}", f"<{a!r:>8}|{b!s}>", f"{a}{b}" + "x", f"{{}} {a=} {b!a}"


@case((3.14159, 8), (2, 10), (np.float64(0.1), 3), (1e300, 2), ("no", 1))
def f_string_formats(a, n):
    return f"{a:.3f} {a:{n}.2e} {n:03d}"


@case(("a b c", 2), ("", 0), ("Été", 1))
def strings(s, n):
    return s.upper(), s.split(), s * n, s + "!", s[:n], "-".join(s), s.replace("a", "bb"), "%s:%d" % (s, n), s == "a b c", len(s)


# ---- unpacking


@case(((1, 2),), ([A, B],), ("ab",), ({1: 0, 2: 0},), ((1, 2, 3),), (5,), (np.array([1.0, 2.0]),))
def unpack_two(pair):
    a, b = pair
    return b, a


@case(([1, 2, 3, 4],), ((1, 2),), ("abcd",), ([1],), (range(5),))
def unpack_star(items):
    first, *middle, last = items
    return first, middle, last


@case(((1, (2, [3, 4])),), (("a", "bc"),))
def unpack_nested(value):
    a, (b, c) = value
    a, b = b, a
    return a, b, c


@case((1, 2, 3, 4))
def swaps(a, b, c, d):
    a, b, c = c, a, b
    c, d = d, c
    return a, b, c, d


# ---- try, without an exception taken and with one


@case((4,), (0,), ("a",))
def try_except(a):
    try:
        r = 10 // a
    except ZeroDivisionError:
        r = "zero"
    return r


@case((4,), (0,), ("a",))
def try_else_finally(a):
    log = []
    try:
        r = 10 // a
    except ZeroDivisionError as error:
        log.append(str(error))
        r = None
    else:
        log.append("else")
    finally:
        log.append("finally")
    return r, log


@case((4,), (0,))
def try_nested_return(a):
    log = []
    try:
        try:
            return log, 10 // a
        finally:
            log.append("inner")
    except ZeroDivisionError:
        log.append("outer")
        return log, None


@case((4,), (2,), (0,), replays=False)
def try_in_a_loop(n):
    out = []
    for i in range(n + 20):
        try:
            if i == n:
                out.append(1 // (i - n))
            out.append(i)
        except ZeroDivisionError:
            continue
        finally:
            out.append("f")
    return out


@case((A, 0), (A, 3), ([1], 0))
def array_index_error(a, i):
    try:
        return a[i + 1]
    except IndexError as error:
        return str(error)


# ---- calls


def _callee(a, b=2, *rest, c=3, **more):
    return a, b, rest, c, more


def _positional(a, b, /, c):
    return a - b, c


def _keyword_only(*, k, j=1):
    return k, j


@case((1,), (A,))
def call_positional(v):
    return _callee(v), _callee(v, 5), _callee(v, 5, 6, v)


@case((1,), (A,))
def call_keywords(v):
    return _callee(a=v), _callee(1, b=v), _callee(v, c=v), _callee(v, x=v, y=2), _callee(b=1, a=v, c=2), _keyword_only(k=v), _keyword_only(j=2, k=v)


@case(((1, 2, 3),), ([1],), ((),), ((A, B),))
def call_star(items):
    return _callee(0, *items), _callee(*items, 4, *items)


@case(({"a": 1},), ({"a": A, "c": 2, "z": 3},), ({},), ({"b": 1},))
def call_double_star(d):
    return _callee(**d)


@case(((1,), {"c": 2}), ((1, 2, 3), {}), ((1,), {"a": 2}))
def call_star_and_double_star(items, d):
    return _callee(*items, **d, q=1)


@case((1, 2, 3), (A, 1, 2), (1,))
def call_positional_only(*args):
    return _positional(*args), _positional(args[0], args[1], c=args[2])


@case(call(1), call(1, 2), call(1, b=3), call(1, 2, 3, 4), call(1, c=9, d=8), call(), call(a=1, b=2), call(1, a=2))
def parameters_of_every_kind(a, b=2, *rest, c=3, **more):
    return a, b, rest, c, more


@case(call(1, c=2), call(1, 2, c=3), call(1), call(a=1, c=2))
def keyword_only_and_positional_only(a, /, b=5, *, c, d=7):
    return a + b + c + d


@case((3,), (A,), (-2.5,))
def call_c_functions(v):
    return abs(v), len([v]), isinstance(v, int), type(v), max(1, 2), min([3, 1]), round(2.5), divmod(7, 2), str(2), int("7"), repr(1.5), tuple([1]), sum([1, 2]), pow(2, 5)


@case((2.0,), (0.5,), ("x",), (-1.0,))
def call_math(v):
    return math.sqrt(v), math.floor(v), math.sin(v), operator.add(v, 1), math.hypot(v, 1.0)


@case((A, 1), (M, 0), (I, 0), (A, -1), (A, 5))
def call_methods_of_arrays(a, axis):
    if a.ndim <= axis:
        axis = 0
    return a.sum(axis=axis), a.mean(), a.max(), a.reshape(-1), a.astype("f"), a.copy(), np.concatenate([a, a]), np.dot(a.T, a), a.any()


@case((A,), (I,))
def call_with_out(a):
    r = np.empty_like(a)
    same = np.multiply(a, 2, out=r)
    np.add(a, 1, out=a, where=a > 0)
    return r, same is r, a


@case((5,), (0,), (12,))
def recursion(n):
    return _fib(n)


def _fib(n):
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


@case((3,), (0,), (7,), replays=False)
def inner_recursion(n):
    def down(k):
        return [] if k == 0 else [k, *down(k - 1)]

    return down(n)


@case((1,), (A,))
def lambdas(v):
    twice = lambda f, x: f(f(x))  # noqa: E731
    return twice(lambda x: x * 2, v)


@case((2, 3), (A, 2))
def partials(a, b):
    add = functools.partial(_callee, a, c=b)
    return add(), add(b), add(z=1)


def _logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return "logged", function(*args, **kwargs)

    return wrapper


@_logged
def _decorated(a, b=1):
    return a, b


@case((1,), (A,))
def call_decorated(v):
    return _decorated(v), _decorated(v, b=3)


@case(([3, 1, 2],), (["b", "a"],), ([],))
def callbacks(items):
    return sorted(items, key=lambda v: -v if v != "a" and v != "b" else 0), list(map(str, items)), list(filter(None, items)), functools.reduce(lambda a, b: a, items, 0)


@case((3,), (0,), (30,))
def generator_expression(n):
    return sum(i * i for i in range(n)), any(i > 2 for i in range(n)), list(itertools.islice((i for i in range(n)), 2))


@case((1,), (A,))
def higher_order(v):
    def apply(function, *args):
        return function(*args)

    return apply(_positional, v, 1, 2), apply(abs, v), apply(_callee, v)


# ---- not covered by the recorder yet, or only as opaque calls: the results must be eager's all the same


@case((1,), (2,), ("x",), ((1, 2),), ([1, 2, 3],), ({"k": 5},), (Point(0, 5),), (None,), replays=False)
def match_statement(v):
    match v:
        case 1 | None:
            return "one or none"
        case (a, b):
            return a + b
        case [first, *rest]:
            return first, rest
        case {"k": found}:
            return found
        case Point(x=0, y=y):
            return y
        case str():
            return "text"
        case _:
            return "other"


class Swallow:
    def __init__(self, log, kind):
        self.log, self.kind = log, kind

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(kind and kind.__name__)
        return kind is self.kind


@case((2,), (0,), ("a",), replays=False)
def with_statement(a):
    log = []
    with Swallow(log, ZeroDivisionError) as s, Swallow(log, None):
        log.append(10 // a)
    return log


@case((A,), (-A,), replays=False)
def with_errstate(a):
    with np.errstate(all="ignore"):
        return np.sqrt(a), np.log(a), a / 0


def _counting(n):
    for i in range(n):
        sent = yield i
        if sent:
            return sent


@case((3,), (0,), (40,), replays=False)
def generators(n):
    g = _counting(n)
    out = []
    for v in g:
        out.append(v)
    h = _counting(n)
    return out, next(h, None), list(_counting(2)), [*h]


@case((2,), (1.5,), replays=False)
def class_statement(n):
    class Local:
        value = n

        def get(self):
            return self.value

    return Local().get(), Local.value


@case((4,), replays=False)
def imports(n):
    import math as m
    from os.path import join

    return m.sqrt(n), join("a", "b")


@case((3,), (-1,), (0,))
def assertion(n):
    assert n, "no n"
    if n < 0:
        raise ValueError(f"negative: {n}")
    return n


@case((3,), (0,), replays=False)
def exception_group(n):
    try:
        if not n:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as group:
        return_value = len(group.exceptions)
    else:
        return_value = None
    return return_value


@pytest.mark.parametrize(("function", "calls"), [pytest.param(f, c, id=f.__name__) for f, c, _ in _CASES])
def test_same_as_eager(function, calls):
    check(function, *calls)


@pytest.mark.parametrize(("function", "made"), [pytest.param(f, c[0], id=f.__name__) for f, c, replays in _CASES if replays])
def test_replayed_from_end_to_end(function, made):
    settles(function, made)
