# ruff: noqa: E501 - tables of values
"""abs, min, max, int, float, bool, len, round, a.item and math's functions on unboxed numbers: values, objects, errors, warnings."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import numpy as np
from tests.support import check, check_source, settles

NAN, INF = float("nan"), float("inf")
INTS: list[Any] = [0, 1, -3, 300, -300, 2**31, 2**62, 2**63 - 1, -(2**63), 2**70, -(2**70), True]
FLOATS: list[Any] = [0.0, -0.0, 1.5, -2.5, 0.5, 1e300, -1e300, 5e-324, 2.0**62, 2.0**63, -(2.0**63), INF, -INF, NAN]
NUMPY: list[Any] = [np.float64(x) for x in FLOATS] + [np.float32(-2.5), np.float32(NAN), np.float32(-0.0), np.int64(-4), np.int64(2**63 - 1), np.int64(-(2**63)),
                    np.int32(5), np.int32(-(2**31)), np.bool_(True), np.uint8(200), np.int16(-7), np.float16(1.5)]  # fmt: skip
NUMBERS = [*INTS, *FLOATS, *NUMPY]

ONE_ARGUMENT = ["abs", "int", "float", "bool", "round", "math.floor", "math.ceil", "math.trunc", "math.isnan", "math.isinf", "math.isfinite",
                *(f"math.{name}" for name in "log log2 log10 acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 fabs sin sinh sqrt tan tanh erf erfc radians degrees".split())]  # fmt: skip


def function_of(text: str, arguments: str) -> Any:
    space: dict[str, Any] = {"math": math, "np": np}
    exec(text, space)
    return space[f"entry_{arguments}"]


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_one_argument(name: str) -> None:
    entry = function_of(
        f"def entry_x(x, zero):\n    y = {name}(x)\n    z = {name}(x * 1)\n    w = x + zero\n    v = {name}(w)\n"
        f"    return y, z, v, type(y).__name__, type(z).__name__, y is x, v is w\n",
        "x",
    )
    for x in NUMBERS:
        check(entry, (x, 0), rounds=4)
    check(entry, *[(x, 0) for x in (1.5, 2, np.float64(0.25), "a", None, -1.0, NAN, 3, 1.5)], rounds=2)


def alike() -> list[tuple[Any, Any]]:
    doubles: list[Any] = [x for x in NUMPY if type(x) is np.float64]
    rows = [pair for values in (INTS, FLOATS, doubles) for pair in itertools.product(values, repeat=2)]
    return rows + [(a, b) for a in NUMPY for b in NUMPY if type(a) is type(b) and type(a) is not np.float64]


@pytest.mark.parametrize("name", ["min", "max"])
def test_least_and_greatest(name: str) -> None:
    entry = function_of(
        f"def entry_ab(a, b, zero):\n    m = {name}(a, b)\n    n = {name}(a + zero, b + zero, b + zero)\n    c = a + zero\n    k = {name}(c, b)\n"
        f"    return m, n, k, m is a, m is b, k is c, k is b, type(n).__name__, type(k).__name__\n",
        "ab",
    )
    rows = alike()
    check(entry, *[(a, b, 0) for a, b in rows[:: 1 + len(rows) // 150]], rounds=1)
    for a, b in (
        (1.5, -0.0),
        (NAN, 1.0),
        (1.0, NAN),
        (-0.0, 0.0),
        (0.0, -0.0),
        (5, 2**40),
        (2**40, 2**40 + 0),
        (np.float64(NAN), np.float64(1)),
    ):
        check(entry, (a, b, 0), (b, a, 0), rounds=3)
    check(
        entry,
        (1, 2.0, 0),
        (np.float64(1), 1.0, 0),
        (True, 1, 0),
        (1, "a", 0),
        (np.float64(1), np.float32(2), 0),
        (3.5, 2.5, 0),
        rounds=2,
    )


def test_which_object_the_least_one_is() -> None:
    def least(items: Any) -> Any:
        out = []
        for i in range(len(items) - 1):
            x = items[i] * 1.0
            m = min(x, items[i + 1])
            out.append((m is x, m is items[i + 1], min(items[i], items[i + 1]) is items[i]))
        return out

    check(least, ([3.5, 1.5, 2.5, 2.5, 9.5],), (np.array([3.5, 1.5, 2.5]),))

    def best(items: Any) -> Any:
        low = items[0]
        seen = []
        for x in items:
            y = x + 0
            low = min(low, y)
            seen.append(low)
            high = max(y, x, 7)
            seen.append(high is y or high is x)
        return low, seen, any(low is x for x in items), len({id(x) for x in seen})

    check(best, ([3000, 1000, 2000, 1000, -5000],), ([3.5, 1.5, 0.5],), (np.array([3.5, 1.5, 0.5]),), ([1, 2, 3],))


def test_a_running_minimum_settles() -> None:
    def best(items: Any, other: Any) -> Any:
        low = items[0]
        for i in range(len(items)):
            low = min(low, items[i], abs(other[i]))
        return low

    check(best, ([3.5, 1.5, 0.5], [1.0, -0.25, 2.0]), ([1000, 2000, 500], [-700, 800, 9]))
    settles(best, ([3.5, 1.5, 0.5], [1.0, -0.25, 2.0]))
    settles(best, (np.array([3.5, 1.5, 0.5]), np.array([1.0, -0.25, 2.0])))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64", "complex128", "O"]
)
def test_items_as_pythons_numbers(dtype: str) -> None:
    def walk(a: Any, shift: int) -> Any:
        out = []
        for i in range(len(a)):
            x = a.item(i - shift)
            out.append((x, type(x).__name__))
        return out

    a = np.arange(6).astype(dtype)
    check(walk, (a, 0), (a[::-1], 3), (a[::2], 6), (a, 7), (a.reshape(2, 3), 0))


def test_items_into_arithmetic() -> None:
    def total(a: Any) -> Any:
        t = 0
        for i in range(len(a)):
            t = t + a.item(i) * 2
        return t

    check(total, (np.arange(7),), (np.arange(7.0),), (np.array([2**62, 2**62, 1]),), (np.array([True, False]),))
    settles(total, (np.arange(7.0),))


def test_lengths() -> None:
    source = """
    class Sized:
        def __len__(self):
            LOG.append("len")
            return 3

    LOG = []

    @jit
    def entry(kind):
        LOG.clear()
        o = ([1, 2], (1,), "abc", {1: 2}, {1, 2, 3}, np.zeros((4, 2)), np.float64(1), np.array(1), range(9), Sized(), b"ab", None)[kind]
        try:
            n = len(o)
        except TypeError as error:
            return str(error)
        return n, n + 1, n == 3, LOG
    """
    check_source(
        source,
        "def calls():\n    for kind in (*range(12), 0, 0, 0, 1, 5, 5, 6, 7, 9, 11):\n        yield (kind,), {}\n",
    )


def test_a_list_that_grows() -> None:
    def grow(items: Any, n: int) -> Any:
        while len(items) < n:
            items.append(len(items))
        return items

    check(grow, ([], 6), ([1, 2], 9), ((), 0))
    settles(grow, ([], 6))


def test_the_angle_in_every_quadrant() -> None:
    def angle(y: Any, x: Any) -> Any:
        return math.atan2(y, x), math.atan2(y * 1, x * 1)

    values = [0.0, -0.0, 1.5, -1.5, INF, -INF, NAN, 5e-324, 1e308, 1, 0, -2, np.float64(0.5), np.float64(-0.0)]
    check(angle, *itertools.product(values, repeat=2), rounds=1)


def test_builtins_of_another_meaning() -> None:
    source = """
    import math

    @jit
    def entry(n, x):
        t = 0.0
        for i in range(n):
            t = t + math.sqrt(x + i) + abs(x) + min(x, t)
        return t

    def changed(n, x):
        global abs, min
        kept = math.sqrt
        try:
            abs = lambda x: 1000.0
            min = max
            math.sqrt = lambda x: 0.5
            return entry(n, x)
        finally:
            math.sqrt = kept
            del abs, min

    def entry_and_changed(n, x):
        return entry(n, x), changed(n, x), entry(n, x)
    """
    check_source(source.replace("def entry(", "def inner(").replace("entry(n, x)", "inner(n, x)").replace("entry_and_changed", "entry"),
                 "def calls():\n    for _ in range(6):\n        yield (4, 2.5), {}\n")  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floored_quotients_and_remainders_of_numpys_floats(dtype: str) -> None:
    def both(a: Any, b: Any) -> Any:
        return a // b, a % b, (a * 1) // (b * 1)

    values = [
        np.dtype(dtype).type(x) for x in (0.0, -0.0, 1.0, -1.0, 7.5, -7.5, 0.1, 3.0, 1e30, -1e-30, INF, -INF, NAN)
    ]
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    rows = list(itertools.product([*values, tiny, huge, -huge], repeat=2))
    check(both, *rows, rounds=1)
    check(
        both,
        (values[4], 2),
        (values[4], -2.5),
        (7, values[4]),
        (2.5, values[5]),
        (values[4], 0),
        (values[4], values[7]),
        rounds=3,
    )
