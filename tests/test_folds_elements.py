"""Generator expressions over elements of arrays that a builtin uses up: NumPy's numbers, types, flags and warnings."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

from .support import stepped

EXPRESSIONS = {
    "products": "sum(a[i] * b[i] for i in range(n))",
    "side by side": "sum(x * y for x, y in zip(a, b))",
    "a table by a table": "sum(m[p[i], p[(i + 1) % n]] for i in range(n))",
    "rows": "sum(m[i][i] - m[i, 0] for i in range(n))",
    "three axes": "sum(c[i, j, 1] for i in range(3) for j in range(2))",
    "counted": "sum(x > k for x in a), sum(q == 2 for q in p), sum(1 for x in a if x > k)",
    "any and all": "any(x > 5 * k for x in a), all(m[1, j] < 1.5 for j in range(n)), any(flags), all(f for f in flags)",
    "extremes": "min(abs(x - k) for x in a), max(a[i] - b[i] for i in range(n)), min(p[i] for i in range(n))",
    "by key": "max(range(n), key=lambda i: a[i]), min(range(n), key=lambda i: m[1, i]), min(xs, key=lambda x: k - x)",
    "whole numbers": "sum(p[i] * 3 - i for i in range(n)), sum(p[i] // 2 for i in range(n)), sum(-q % 5 for q in p)",
    "mixed": "sum(p[i] * k + a[i] / (1 + i) for i in range(n)), sum(a[i] ** 2 for i in range(n))",
    "conversions": "sum(float(x) for x in a), sum(int(q) for q in p), sum(int(x) for x in a), max(abs(q) for q in p)",
    "math": "sum(math.sqrt(x) for x in a), max(math.hypot(x, y) for x, y in zip(a, b))",
    "lists of them": "list(x * k for x in a), tuple(a[i] for i in range(n)), [type(v) for v in list(q for q in p)]",
    "numbered": "sum(i * x for i, x in enumerate(a))",
    "a list by an array": "sum(xs[q] for q in p)",
    "helpers": "sum(helper(a[i], k) for i in range(n)), max(helper(x, p[0]) for x in b)",
    "numbers in lists": "sum(numbers), max(numbers), sum(x * k for x in numbers)",
    "truth": "sum(1 for f in flags if not f), sum(a[i] for i in range(n) if flags[i])",
    "pairs": "sum((p[i], p[j]) != (1, 2) for i in range(3) for j in range(3))",
    "identity": "[x is numbers[0] for x in numbers], min(numbers) is numbers[0], max(x for x in numbers) is numbers[2]",
    "new objects": "[x is y for x, y in zip(list(abs(q) for q in numbers), numbers)], list(-x for x in numbers)",
}


def helper(x: Any, y: Any) -> Any:
    return x * y + 1 if x > y else y - x


SPACE = {"np": np, "math": math, "helper": helper}
SOURCE = """
def f(a, b, m, c, p, flags, k, n, xs, numbers):
    out = []
    for turn in range(6):
        out.append(({}))
    return out
"""


def function_of(expression: str) -> Any:
    space = dict(SPACE)
    exec(SOURCE.format(expression), space)
    return space["f"]


def arguments(dtype: Any = np.float64, index: Any = np.int64, n: int = 12) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    a, b = ((rng.random(n) * 4).astype(dtype) for _ in range(2))
    m, c = (rng.random((n, n)) * 2).astype(dtype), rng.random((3, 2, 4)).astype(dtype)
    p = rng.permutation(n).astype(index)
    numbers = [dtype(3) / dtype(4), dtype(2), dtype(5)]
    return a, b, m, c, p, rng.random(n) < 0.5, 0.5, n, [float(x) for x in range(n)], numbers


def outcome(function: Any, args: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = function(*args)
        except Exception as error:
            result = (type(error), str(error))
    told = [(w.category, str(w.message), w.lineno) for w in caught]
    return repr(result), types_of(result), told


def types_of(value: Any) -> Any:
    return [types_of(v) for v in value] if isinstance(value, list | tuple) else type(value)


def check(expression: str, *calls: tuple[Any, ...]) -> None:
    plain = function_of(expression)
    jitted = ds.jit(store=False)(function_of(expression))
    with stepped():
        for _ in range(4):
            for args in calls:
                assert outcome(jitted, args) == outcome(plain, args), expression


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_as_in_eager(expression: str) -> None:
    check(expression, arguments())


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
@pytest.mark.parametrize(
    ("dtype", "index"),
    [
        (np.int64, np.int64),
        (np.float32, np.int32),
        (np.int32, np.uint8),
        (np.uint8, np.int64),
        (np.longlong, np.longlong),
        (np.float16, np.uint64),
    ],
)
def test_other_types(expression: str, dtype: Any, index: Any) -> None:
    check(expression, arguments(dtype, index), arguments())


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_layouts(expression: str) -> None:
    a, b, m, c, p, flags, k, n, xs, numbers = arguments()
    backwards = (a[::-1], np.repeat(b, 2)[::2], m.T, c[:, ::-1], p[::-1], flags[::-1])
    swapped = (a.astype(">f8"), b, m.astype(">f8"), c, p.astype(">i8"), flags)
    packed = np.zeros(n, dtype=[("x", "i1"), ("a", "f8"), ("p", "i8"), ("f", "?")])
    packed["a"], packed["p"], packed["f"] = a, p, flags
    unaligned = (packed["a"], b, m, c, packed["p"], packed["f"])
    fixed = tuple(x.copy() for x in (a, b, m, c, p, flags))
    for x in fixed:
        x.setflags(write=False)
    rest = (k, n, xs, numbers)
    check(expression, *[(*arrays, *rest) for arrays in (backwards, swapped, unaligned, fixed)])


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0])
def test_what_raises_flags(expression: str, value: float) -> None:
    a, b, m, c, *rest = arguments()
    for x in (a, b, m[1], m[:, 2]):
        x[3] = x[5] = value
    check(expression, (a, b, m, c, *rest))


def test_integers_that_overflow_and_positions_out_of_bounds() -> None:
    args = list(arguments(np.int64))
    args[0][:] = 2**62
    check("sum(x for x in a)", tuple(args))
    check("sum(x * 4 for x in a)", tuple(args))
    check("sum(a[i] * b[i] for i in range(n + 1))", arguments())
    check("sum(a[-i - 1] for i in range(n)), sum(m[-1, -i] for i in range(n))", arguments())
    check("sum(x // (i - 3) for i, x in enumerate(p)), sum(x % (i - 3) for i, x in enumerate(p))", arguments())
    check("sum(a[i] / (i - 3) for i in range(n))", arguments())


def test_a_flag_is_not_lost_where_a_power_looks_at_its_own() -> None:
    a, b, *rest = arguments()
    check("sum(x * x + y ** 2 for x, y in zip(a, b)), sum(x * x + y // 1e-300 for x, y in zip(a, b))", (a, b, *rest))
    check("sum(x * x * 0.0 + y ** 2 for x, y in zip(a, b))", (a * 1e200, b * 1e-200, *rest), (a * 1e200, b, *rest))


@pytest.mark.parametrize("state", ["ignore", "raise"])
def test_errstate(state: str) -> None:
    expression = "sum(x * y for x, y in zip(a, b))"
    plain, jitted = function_of(expression), ds.jit(store=False)(function_of(expression))
    a, *rest = arguments()
    large = a * 1e308
    with stepped(), np.errstate(all=state):  # type: ignore[call-overload]
        for first in (a, large, a, large):
            assert outcome(jitted, (first, large, *rest[1:])) == outcome(plain, (first, large, *rest[1:]))


def test_empty_arrays() -> None:
    a, b, m, c, p, flags, k, _, xs, numbers = arguments()
    empty = (a[:0], b[:0], m, c, p[:0], flags[:0], k, 0, xs, numbers)
    check(
        "sum(x for x in a), sum(a[i] for i in range(n)), any(x > k for x in a), all(f for f in flags), list(p)",
        empty,
    )
    check("min(x for x in a)", empty)


def test_subclasses_and_objects() -> None:
    class Own(np.ndarray):
        def __getitem__(self, at: Any) -> Any:
            if at >= len(self):
                raise IndexError(at)
            return 7.0

    a, *rest = arguments()
    check(
        "sum(a[i] * 2 for i in range(n)), sum(x for x in a)",
        (a.view(Own), *rest),
        (a.astype(object), *rest),
        (np.ma.array(a), *rest),
    )
