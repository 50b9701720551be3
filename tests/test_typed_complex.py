"""Complex numbers in registers: the interpreter's bits, errors and objects."""

from __future__ import annotations

import cmath
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from dalsegno.fuzz import equivalent
from tests.native_kit import written
from tests.support import check, counting, stepped

PARTS = [0.0, -0.0, 1.0, -2.5, 1e-320, 1e200, 1e308, math.inf, -math.inf, math.nan]
VALUES = [complex(a, b) for a, b in itertools.product(PARTS, PARTS)]
OTHERS = [0, 1, -3, 2**53 + 1, 2**62, True, 0.0, -0.0, 2.5, 1e300, math.inf, math.nan, *VALUES[::7]]
OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq, operator.ne
]  # fmt: skip


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "==", "!="])
def test_operators_give_what_eager_gives(symbol: str) -> None:
    f = written(f"a {symbol} b")
    left, right = zip(*itertools.product(VALUES, VALUES[::3]), strict=True)
    plain = [1 + 2j] * 40
    rows = [(plain, plain), (list(left), list(right))]
    for other in OTHERS:
        rows += [(VALUES, [other] * len(VALUES)), ([other] * len(VALUES), VALUES)]
    equivalent(f, *(row for row in rows for _ in range(2)), engines=["native"])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 8, 9, 100, 101, -1, -2, 0.5, 2.0, 2 + 0j, 1j])
def test_powers_by_constants(exponent: Any) -> None:
    namespace: dict[str, Any] = {}
    exec(
        f"""
def f(values):
    out = []
    for z in values:
        try:
            out.append(z ** {exponent!r})
        except (ZeroDivisionError, OverflowError) as error:
            out.append(repr(error))
    return out
""",
        namespace,
    )
    equivalent(namespace["f"], ([1 + 1j] * 40,), (VALUES,), (VALUES,), engines=["native"])


def parts(values: list[complex]) -> list[Any]:
    out: list[Any] = []
    for z in values:
        out.append(z.real)
        out.append(z.imag)
        out.append(z.conjugate())
        out.append(-z)
        out.append(bool(z))
        out.append(not z)
        out.append(complex(z.imag, z.real))
        out.append(complex(z.real))
        out.append(1 if z else 2)
    return out


def sizes(values: list[complex]) -> list[Any]:
    out: list[Any] = []
    for z in values:
        try:
            out.append(abs(z))
        except OverflowError as error:
            out.append(repr(error))
    return out


def test_parts_and_sizes() -> None:
    equivalent(parts, ([1 + 2j] * 30,), (VALUES,), (VALUES,), engines=["native"])
    equivalent(sizes, ([1 + 2j] * 30,), (VALUES,), (VALUES,), engines=["native"])


def orbit(start: complex, c: complex, limit: int) -> tuple[int, complex, complex]:
    z = w = start
    n = 0
    while abs(z) <= 2.0 and n < limit:
        w = z
        z = z * z + c
        n += 1
    return n, z, w


def test_an_orbit_is_native_and_leaves_as_it_comes() -> None:
    check(
        orbit,
        (0j, 0.3 + 0.2j, 500),
        (0j, 1 + 1j, 500),
        (0j, complex(0, -0.0), 20),
        (2, 0.5, 20),
        (0j, math.nan * 1j, 9),
    )
    jitted = ds.jit(store=False)(orbit)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(0j, 0.3 + 0.2j, 3000)
        with counting(jitted) as grown:
            jitted(0j, 0.3 + 0.2j, 3000)
    assert grown["steps"] < 100


def beside_reals(start: complex, x: float, n: int, turns: int) -> complex:
    z = start
    for _ in range(turns):
        z = (z + x) * n - x
        z = n - x / (z * x + n) + z / x
    return z


def test_complex_numbers_beside_real_ones_are_native() -> None:
    check(beside_reals, (0.5 + 0.25j, 1.5, 2, 300), (complex(-0.0, -0.0), -0.0, 0, 20), (1j, math.inf, 1, 20))
    jitted = ds.jit(store=False)(beside_reals)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(0.5 + 0.25j, 1.5, 2, 3000)
        loops = [trace["native"] for trace in jitted.explain().to_dict()["traces"] if trace["native"] is not None]
    assert [native["called"] for native in loops] == [[]]
    assert "fmul" in loops[0]["text"]  # (what is called without leaving native code is not named)


def carried(values: list[Any]) -> tuple[Any, Any]:
    total = 0j
    last = None
    for v in values:
        total = total + v
        last = total
    return total, total is last


def test_a_sum_of_all_kinds_of_numbers() -> None:
    check(carried, ([1j] * 50,), ([1j] * 20 + [1, 2.5, True, 10**30] + [2j] * 20,), ([1j] * 20 + ["x"],))


class Odd(complex):
    def __add__(self, other: Any) -> Any:
        return "odd"

    def __radd__(self, other: Any) -> Any:
        return "odd again"


def test_subclasses_are_asked() -> None:
    def each(values: list[Any]) -> list[Any]:
        return [v + 1j for v in values] + [abs(v) for v in values]

    check(each, ([1j] * 30,), ([1j] * 10 + [Odd(1, 2)] + [1j] * 10,))


def test_lists_of_complex_numbers_keep_their_objects() -> None:
    def butterfly(a: list[complex], turns: int) -> tuple[list[complex], bool, complex]:
        n = len(a) // 2
        t, w = 1 + 0j, 0.9 + 0.1j
        kept = a[0]
        for _ in range(turns):
            for k in range(n):
                u = a[k]
                v = a[k + n] * t
                a[k] = u + v
                a[k + n] = u - v
            t *= w
        return a, a[0] is kept, kept

    for turns in (0, 1, 20):
        check(lambda a: butterfly(list(a), turns), ([complex(k, -k) for k in range(16)],), ([1.0, 2j] * 8,))


def test_what_the_c_library_is_asked() -> None:
    def spiral(n: int) -> list[complex]:
        z, out = 1 + 0j, []
        for k in range(n):
            z *= cmath.exp(complex(0.0, 0.1 * k))
            out.append(complex(k, z.imag))
        return out

    check(spiral, (40,), (3,))
