"""Operators and functions on numbers in native code: eager's bits, warnings and exceptions, and no steps."""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.native_kit import same, steps_of
from tests.support import stepped

INF, NAN = math.inf, math.nan
ODD = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, -1e308, 5e-324, 1e16, INF, -INF, NAN, 7.25, -7.25]


def check(function: Callable[..., Any], *calls: tuple[Any, ...], rounds: int = 2) -> None:
    rows = [made for made in calls for _ in range(rounds)]
    equivalent(function, *rows, engines=["stepped", "native"])


def divided(xs: Any, d: Any) -> Any:
    out = []
    for x in xs:
        out.append(x % d)
        out.append(x // d)
    return out


def powers(xs: Any, d: Any) -> Any:
    out = []
    for x in xs:
        out.append(x**d)
    return out


PLAIN = [((k * 37) % 101) / 8 - 5 for k in range(300)]


@pytest.mark.parametrize("made", [list, np.array], ids=["float", "np.float64"])
def test_floored_quotients_and_powers_of_floats(made: Callable[..., Any]) -> None:
    for d in (2.5, -0.75, 0.0, INF, 1e-300, NAN):
        check(divided, (made(PLAIN), d), (made(ODD), d))
        check(powers, (made(PLAIN), d), (made(ODD), d), (made([abs(x) + 1 for x in PLAIN]), d))
    assert steps_of(divided, made(PLAIN), 2.5) < 150
    assert steps_of(powers, made(PLAIN), 3.0) < 150


def test_small_powers_of_ints() -> None:
    def sums(xs: list[int]) -> Any:
        t, out = 0, []
        for x in xs:
            t = (t + x**2 - x**3 + x**5) % 1000003
            out.append(x**2)
        return t, out

    xs = [k - 150 for k in range(300)]
    check(sums, (xs,), ([*xs, 2**31],), ([*xs, 2**32, 10**30],), ([*xs, True],))
    assert steps_of(sums, xs) < 150


def made(source: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"math": math}
    exec(source, space)
    return space["of"]


ONE = (
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt fabs "
    "erf erfc radians degrees floor ceil trunc isnan isinf isfinite"
).split()


@pytest.mark.parametrize("name", [name for name in ONE if hasattr(math, name)])
def test_a_function_of_math(name: str) -> None:
    of = made(f"def of(xs):\n    out = []\n    for x in xs:\n        out.append(math.{name}(x))\n    return out\n")
    inside = [0.001 * (k + 1) + (1 if name == "acosh" else 0) for k in range(300)]
    check(of, (inside,), (np.array(inside),), *[([*inside[:9], x],) for x in [*ODD, 710.0, -1.5, 2**70, 3]])
    assert steps_of(of, inside) < 150


@pytest.mark.parametrize("name", ["atan2", "pow", "fmod", "copysign"])
def test_a_function_of_math_of_two(name: str) -> None:
    loop = f"    for x, y in zip(xs, ys):\n        out.append(math.{name}(x, y))\n"
    of = made(f"def of(xs, ys):\n    out = []\n{loop}    return out\n")
    inside = [0.01 * k + 0.5 for k in range(300)]
    check(
        of,
        (inside, inside[::-1]),
        *[([*inside[:9], x, 1.0], [*inside[:9], y, 2.0]) for x in ODD for y in ODD[::3]],
        rounds=1,
    )
    assert steps_of(of, inside, inside[::-1]) < 150


def test_gcd_and_round() -> None:
    def reduced(xs: list[int], d: int) -> Any:
        out = []
        for x in xs:
            out.append(math.gcd(x, d))
            out.append(round(x / 4))
        return out

    xs = [k * 6 - 300 for k in range(100)]
    check(reduced, (xs, 84), (xs, 0), ([*xs, 2**60], 84), ([*xs, -(2**63)], 2**62), (xs, 2**70))
    assert steps_of(reduced, xs, 84) < 150


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u2"])
def test_round_of_numpy_scalars(dtype: str) -> None:
    def rounded(xs: Any) -> Any:
        out = []
        for i in range(len(xs)):
            out.append(round(xs[i]))
        return out

    xs = (np.arange(120) / 4 if dtype[0] == "f" else np.arange(120)).astype(dtype)
    calls = [(xs,), (-xs,)]
    if dtype[0] == "f":
        calls += [
            (np.array([*xs[:9], x]).astype(dtype),)
            for x in (0.49999999999999994, 1e300, 2.0**62, -(2.0**63), np.nan, np.inf)
        ]
    check(rounded, *calls)
    if dtype in ("f8", "f4"):
        assert steps_of(rounded, xs) < 150


def test_ord() -> None:
    def digest(text: str) -> Any:
        h = 7
        for c in text:
            h = (h * 31 + ord(c)) & 0xFFFFFFFF
        return h

    def of_words(words: list[str]) -> Any:
        h = 7
        for w in words:
            if w != "":
                h = h * 31 % 1000 + ord(w)
        return h

    check(digest, ("abcxyz" * 50,), ("\xe9\u20ac\U0001f600a" * 30,), ("",))
    check(of_words, (["a", "b", "\u20ac"] * 20,), (["a", "b", "ab"],), (["", "a"],))
    assert steps_of(digest, "abcxyz" * 50) < 150


NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("dtype", NARROW)
def test_integers_of_few_bits(dtype: str) -> None:
    def mixed(a: Any, b: Any, n: int) -> Any:
        s = a[0]
        for i in range(n):
            x, y = a[i], b[i]
            s = (x & y) ^ (s | x)
            a[i] = x // (y | 1) + x % 5
            if x > y:
                b[i] = max(x, y) - min(x, y)
            s = s >> 1
        return s, a, b

    def tight(a: Any, op: int) -> Any:
        s = a[0]
        for x in a:
            s = (
                s + x
                if op == 0
                else s - x
                if op == 1
                else s * x
                if op == 2
                else s << x
                if op == 3
                else -x
                if op == 4
                else ~x
            )
        return s

    def counted(a: Any) -> Any:
        counts = [0] * 300
        total = 0
        for x in a:
            counts[x % 100] += int(x)
            total += counts[int(x) % 50]
        return counts, total

    top = np.iinfo(dtype).max
    a = (np.arange(90) % 40 + 1).astype(dtype)
    check(mixed, (a, a[::-1].copy(), 90), (a, np.full(90, top, dtype), 90))
    for op in range(6):
        check(
            tight,
            (np.full(9, 2, dtype), op),
            (np.array([1, 3, top // 2, 9], dtype), op),
            (np.array([0, 1, 0], dtype), op),
        )
    check(counted, (a,), (np.array([1, top], dtype),))
    assert steps_of(mixed, a, a[::-1].copy(), 90) < 400
    assert steps_of(counted, a) < 400


def test_numbers_stored_in_lists() -> None:
    def counted(values: list[int], n: int) -> Any:
        counts = [0] * 16
        for v in values:
            counts[v % 16] += v * n
        return counts

    def shares(n: int) -> Any:
        xs = [1000 + k for k in range(8)]
        kept = xs[3]
        for i in range(n):
            xs[i % 8] = i * 1000 - 5000
        return xs, kept, xs[3] is kept

    values = list(range(400))
    check(counted, (values, 1), (values, -3), (values, 2**29), (values, 2**45), (values, 0))
    check(shares, (3,), (40,), (400,))
    assert steps_of(counted, values, 1) < 150


def test_numbers_appended() -> None:
    def grown(n: int, x: float) -> Any:
        ints: list[int] = []
        floats = []
        for i in range(n):
            ints.append(i * 7 - 20)
            floats.append(i * x)
            if i % 3 == 0:
                floats.append(floats[-1])
        return ints, floats, floats[0] is floats[1]

    check(grown, (5, 0.5), (300, 1.5), (3000, NAN))
    assert steps_of(grown, 3000, 0.5) < 1000


CONSTANTS = (1, 2, 3, 8, -1, -2, -8, 7, 1 << 29, 1 << 30, 1 << 40, -(1 << 31), 1 << 62)
WHOLE = [k * 37 % 101 - 50 for k in range(40)] + [
    s * ((1 << b) + d) for b in (29, 30, 31, 40, 61) for s in (1, -1) for d in (-1, 0, 1)
]


@pytest.mark.parametrize("divisor", CONSTANTS)
def test_quotients_and_remainders_of_ints_by_a_constant(divisor: int) -> None:
    space: dict[str, Any] = {}
    exec(
        "def f(xs):\n    out = []\n    for x in xs:\n        q = x // D\n        r = x % D\n        "
        "out.append((q, r, r is x, q is x))\n    return out\n".replace("D", repr(divisor)),
        space,
    )
    check(space["f"], (WHOLE,), rounds=4)
    exec(
        "def g(xs):\n    s = 0\n    for x in xs:\n        s += x // D + 3 * (x % D)\n    return s\n".replace(
            "D", repr(divisor)
        ),
        space,
    )
    check(space["g"], ([x % (1 << 40) for x in WHOLE],), (WHOLE,), rounds=4)


def _products(a, b, out):
    for i in range(len(a)):
        out[i, 0] = a[i] * b[i]
        out[i, 1] = a[i] / b[i]
        out[i, 2] = a[i] + b[i]
        out[i, 3] = a[i] - b[i]
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("errors", ["ignore", "warn"])
def test_results_that_are_zero_infinite_or_too_small(dtype: type, errors: Any) -> None:
    tiny = float(np.finfo(dtype).smallest_subnormal)
    least = float(np.finfo(dtype).tiny)
    values = [
        0.0,
        -0.0,
        1.0,
        -3.0,
        tiny,
        -tiny,
        least,
        least * 2,
        0.5,
        1e30,
        float(np.finfo(dtype).max),
        np.inf,
        -np.inf,
        np.nan,
    ]
    a, b = (np.array(part, dtype) for part in zip(*itertools.product(values, values), strict=True))

    def outcome(function: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all=errors):
            warnings.simplefilter("always")
            out = function(a, b, np.empty((len(a), 4), dtype))
        return out.tobytes(), [(w.category, str(w.message), w.lineno) for w in caught]

    ones = np.ones(50, dtype)
    with stepped(step_aside=False, hot_loop=1):
        jitted = ds.jit(store=False)(_products)
        for _ in range(3):
            jitted(ones, ones, np.empty((50, 4), dtype))
        for _ in range(3):
            assert outcome(jitted) == outcome(_products)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 counts them all")
def test_objects_that_are_never_dropped_are_not_counted() -> None:
    """Small ints, None, True and the like count no references, wherever their count stands."""

    def work(xs: list[object], n: int) -> list[object]:
        out: list[object] = []
        for i in range(n):
            out.append(i % 7)
            out.append(i % 2 == 0)
            out.append(xs[i % 3])
        return out

    xs: list[object] = [None, True, "text"]
    watched: list[object] = [None, True, False, *range(7)]
    counts = [sys.getrefcount(o) for o in watched]
    equivalent(work, *[(xs, 300)] * 6, engines=["native"])
    assert [sys.getrefcount(o) for o in watched] == counts


def test_truth_values_beside_numpys_numbers() -> None:
    def distance(a: Any, b: Any) -> Any:
        above = np.arange(len(b) + 1)
        for i, one in enumerate(a):
            row = np.empty_like(above)
            row[0] = i + 1
            for j, other in enumerate(b):
                row[j + 1] = min(above[j + 1] + 1, row[j] + 1, above[j] + (one != other))
            above = row
        return above[-1]

    def counted(x: Any, limit: Any) -> Any:
        n, s = 0, x[0] * False
        for v in x:
            n += v > limit
            s += v * (v < limit) - True
        return n, type(n).__name__, s, type(s).__name__

    same(distance, lambda: ("kitten sitting" * 5, "sitting kitten" * 4), lambda: ("ab", "cab"))
    for dtype in ("f8", "f4", "i8", "u1", "?"):
        same(
            counted,
            lambda d=dtype: (np.arange(40).astype(d), 7),
            lambda d=dtype: (np.arange(9).astype(d), np.float64(3)),
        )
