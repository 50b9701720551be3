"""Functions of one double, and powers, four at once (numpy/fours.h): NumPy's bits, flags and warnings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.test_reduced_groups import agrees

pytestmark = pytest.mark.once

EDGES = [
    1 - 2**-4,
    1.064697265625,
    2.0**-54,
    512.0,
    709.782712893384,
    -745.1332191019412,
    2.0**-1022,
    1.0,
    0.6875,
    1.375,
    2.0**-29,
    -0.2927144765853882,
    0.4142129421234131,
    2.0**53,
    38.816241830587387,
    -38.816241830587387,
    0.3465736508369446,
    1.0397208333015442,
    709.0,
    1 - 0.04239082336425781,
    1 + 0.04427433013916016,
]
RIGHT = np.pi / 2
ANGLES = [
    0.126,
    0.85546875,
    2.426265716552734,
    105414350.0,
    105414352.0,
    2.0**-4,
    2.0**-60,
    16.0,
    2.0**54.3,
    2.0**-26,
    2.0**-27,
    *(k * RIGHT for k in range(1, 9)),
]
APART = [
    0.0,
    -0.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    -np.nan,
    5e-324,
    -5e-324,
    1e-310,
    800.0,
    -800.0,
    1.7e308,
    -1.7e308,
    1e-20,
]
BOUNDS = [*EDGES, *ANGLES]
SPECIAL = [*APART, *BOUNDS, *(np.nextafter(x, 0) for x in BOUNDS), *(np.nextafter(x, np.inf) for x in BOUNDS)]


def each(a: Any) -> Any:
    return np.exp(a) * 1.0, np.log(a) + 0.0, np.sin(a) * 1.0, np.cos(a) * 1.0, np.arctan(a) + 0.0, *logs(a), *arcs(a)


def logs(a: Any) -> Any:
    return np.log1p(a) * 1.0, np.log2(a) + 0.0, np.log10(a) * 1.0, np.expm1(a) + 0.0, np.tanh(a) * 1.0


def arcs(a: Any) -> Any:
    b = a / max(1.0, np.abs(a).max())
    return np.arcsin(b) + 0.0, np.arccos(b) * 1.0, np.arcsin(a) * 1.0


def numbers(n: int) -> Any:
    rng = np.random.default_rng(n)
    return np.concatenate(
        [
            rng.uniform(-760, 720, n),
            rng.normal(size=n),
            rng.uniform(0.9, 1.1, n),
            rng.uniform(-1.2e8, 1.2e8, n),
            rng.uniform(-9, 9, n),
            rng.integers(0, 0x7FF0 << 48, n, dtype=np.uint64).view("f8"),
        ]
    )


def test_numbers_of_all_magnitudes() -> None:
    a = numbers(100_000)
    with np.errstate(all="ignore"):
        agrees(each, a)
        agrees(each, np.abs(a))


@pytest.mark.parametrize("special", SPECIAL)
def test_numbers_that_are_treated_apart(special: float) -> None:
    for n in (1, 3, 4, 5, 8, 40, 5000):
        for at in {0, n // 2, n - 1}:
            a = np.linspace(0.25, 3.0, n)
            a[at] = special
            agrees(lambda a: np.exp(a) * 1.0, a)
            agrees(lambda a: np.log(a) + 0.0, a)
            agrees(lambda a: (np.sin(a) * 1.0, np.cos(-a) * 1.0, np.arctan(a) * 1.0), a)
            agrees(logs, a)
            agrees(arcs, a)
            agrees(lambda a: (np.arcsin(a) * 1.0, np.arccos(a) * 1.0), a)


def test_each_flag_is_told_as_numpy_tells_it() -> None:
    for fn in (
        np.exp,
        np.log,
        np.sin,
        np.cos,
        np.arctan,
        np.log1p,
        np.log2,
        np.log10,
        np.expm1,
        np.tanh,
        np.arcsin,
        np.arccos,
    ):
        for special in SPECIAL:
            for flag in ("over", "under", "invalid", "divide"):
                with np.errstate(all="ignore", **{flag: "raise"}):
                    agrees(_told(fn), np.array([1.5, 2.5, special, 0.5, 3.5]))


def _told(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def told(a: Any) -> Any:
        try:
            return fn(a) * 1.0
        except FloatingPointError as error:
            return str(error)

    return told


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 30, 1000, 30_000])
def test_layouts(n: int) -> None:
    a = np.random.default_rng(n).uniform(0.1, 3.0, 4 * n + 8)
    for b in (
        a[1 : n + 1],
        a[: 2 * n : 2],
        a[n::-1],
        a[: 4 * n].reshape(n, 4).T,
        a[: 4 * n].reshape(2, 2 * n)[:, ::2],
        a[:1],
    ):
        agrees(each, b)
    unaligned = np.frombuffer(b"x" + a[:n].tobytes(), dtype="u1")[1:].view("f8")
    agrees(each, unaligned)


def test_in_place() -> None:
    def over_itself(a: Any) -> Any:
        b = a.copy()
        np.exp(b, out=b)
        np.log(b[1:], out=b[:-1])
        np.sin(b, out=b)
        np.cos(b[::-1], out=b)
        b[2:] = np.exp(b[:-2]) * 0.5
        return b

    for n in (5, 9, 300, 20_000):
        agrees(over_itself, np.linspace(-1.0, 2.0, n))


def test_a_loop_over_small_arrays() -> None:
    def softmax(rows: Any) -> Any:
        out = np.empty_like(rows)
        for i in range(len(rows)):
            e = np.exp(rows[i] - rows[i].max())
            out[i] = np.log(e / e.sum())
        return out

    rows = np.random.default_rng(3).normal(size=(40, 7))
    wanted = softmax(rows)
    jitted = ds.jit(store=False)(softmax)
    for _ in range(6):
        assert np.array_equal(jitted(rows).view("i8"), wanted.view("i8"))
    assert math.isclose(float(np.exp(wanted[0]).sum()), 1.0)


EXPONENTS = [
    -3,
    -2.0,
    -1.5,
    -1.0,
    -0.5,
    0.0,
    1 / 3,
    0.5,
    1.0,
    1.5,
    2.0,
    2.4,
    3,
    4.0,
    7,
    1e-70,
    1e70,
    2.0**53 + 2,
    np.nan,
    np.inf,
]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_of_numbers_of_all_magnitudes(exponent: float) -> None:
    a = numbers(20_000)
    with np.errstate(all="ignore"):
        agrees(lambda a: a**exponent + 1.0, a)
        agrees(lambda a: np.power(a, exponent) * 1.0, -np.abs(a))
        agrees(lambda a: np.power(a[:999], exponent) * 1.0, np.exp(a * 1e-2))


@pytest.mark.parametrize("special", SPECIAL)
def test_powers_that_are_treated_apart(special: float) -> None:
    for n in (1, 3, 4, 5, 40, 3000):
        a = np.linspace(-3.0, 3.0, n)
        a[n // 2] = special
        agrees(lambda a: a**3 + 1.0, a)
        agrees(lambda a: np.power(a, -2.5) + 1.0, a)
        agrees(lambda a: np.power(1.75, a) + 1.0, a)
        agrees(lambda a: np.power(a, a[::-1]) + 1.0, a)
        agrees(lambda a: (a[::2] ** 5 + 1.0, a.reshape(-1, 1) ** -3 + 1.0), a)


def test_bases_and_exponents_of_all_magnitudes() -> None:
    a = numbers(30_000)
    b = np.roll(a, 31_234)
    with np.errstate(all="ignore"):
        agrees(lambda a, b: np.power(a, b) + 1.0, a, b)
        agrees(lambda a, b: np.power(np.abs(a), np.remainder(b, 30.0)) + 1.0, a, b)
        agrees(lambda a, b: np.power(a, np.rint(np.remainder(b, 30.0))) + 1.0, a, b)


def test_flags_of_powers() -> None:
    for special in SPECIAL:
        for exponent in (3, -2.5, 300.0, -300.0):
            for flag in ("over", "under", "invalid", "divide"):
                with np.errstate(all="ignore", **{flag: "raise"}):
                    agrees(_told(lambda a, e=exponent: np.power(a, e)), np.array([1.5, 2.5, special, 0.5, 3.5]))
