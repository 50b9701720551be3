"""Functions of two doubles, or of complex numbers, four at once (numpy/fours.h): NumPy's bits, flags and warnings."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.test_fours_like_numpy import _told
from tests.test_reduced_groups import agrees

pytestmark = pytest.mark.once

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    -np.nan,
    5e-324,
    -1e-310,
    1e-200,
    1.7e308,
    -1e300,
    2.0**52,
    2.0**53 + 2,
    0.1,
    -3.0,
]
OPERATIONS = {
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "arctan2": np.arctan2,
}


def each(a: Any, b: Any) -> Any:
    return a % b + 0.0, a // b * 1.0, np.fmod(a, b) * 1.0, np.hypot(a, b) + 0.0, np.arctan2(a, b) * 1.0


def pairs(kind: str, n: int) -> Any:
    rng = np.random.default_rng(n)
    b = rng.uniform(-3, 3, n)
    if kind == "angles":
        return rng.uniform(-20, 20, n), np.full(n, 2 * np.pi)
    if kind == "decimals":
        return np.round(rng.normal(size=n) * 100) * 0.1, np.round(rng.normal(size=n) * 10) * 0.1
    if kind == "near multiples":
        of = np.round(rng.uniform(-1e5, 1e5, n)) * b
        return np.nextafter(of, np.where(rng.random(n) < 0.5, 0.0, np.inf)), b
    if kind == "near large quotients":
        return b * 2.0 ** rng.uniform(48, 56, n), b
    return tuple(rng.integers(0, 2**64, n, dtype=np.uint64).view("f8") for _ in range(2))


@pytest.mark.parametrize("kind", ["angles", "decimals", "near multiples", "near large quotients", "bits"])
def test_pairs(kind: str) -> None:
    with np.errstate(all="ignore"):
        for n in (1, 3, 4, 7, 1000, 100_000):
            agrees(each, *pairs(kind, n))
            agrees(each, *(x[::-1] for x in pairs(kind, n)))


@pytest.mark.parametrize("b", [*SPECIAL, 1, 2, -7, 2 * np.pi])
def test_by_one_number(b: float) -> None:
    a = np.concatenate([np.linspace(-30.0, 30.0, 301), SPECIAL])
    with np.errstate(all="ignore"):
        agrees(each, a, b)
        agrees(lambda a, b: each(b, a), a, b)
        agrees(lambda a, b: (a.reshape(79, 4)[:, ::2] - b + np.pi) % (2 * np.pi) - np.pi, a, b)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_flag_is_told_as_numpy_tells_it(name: str) -> None:
    operation = OPERATIONS[name]
    for x in SPECIAL:
        for y in SPECIAL:
            a, b = np.array([1.5, x, 2.5, 0.5, -3.5]), np.array([0.7, y, -2.5, 0.25, 3.5])
            for flag in ("over", "under", "invalid", "divide"):
                with np.errstate(all="ignore", **{flag: "raise"}):
                    agrees(_told(lambda a, b=b: operation(a, b)), a)


def test_in_place() -> None:
    def turned(a: Any, b: Any) -> Any:
        c, b = a.copy(), b.copy()
        c %= b
        np.floor_divide(c[1:], b[1:], out=c[:-1])
        np.fmod(b, c + 2, out=b)
        return c, b

    for n in (5, 9, 300, 20_000):
        agrees(turned, *pairs("angles", n))


def parts(n: int) -> Any:
    rng = np.random.default_rng(n)
    return [
        rng.normal(size=n),
        rng.uniform(-800, 800, n),
        rng.uniform(-1.2e8, 1.2e8, n),
        np.zeros(n),
        2.0 ** rng.uniform(-40, 10, n),
        rng.integers(0, 2**64, n, dtype=np.uint64).view("f8"),
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100, 20_000])
def test_exp_of_complex_numbers(n: int) -> None:
    z = np.empty(n, "c16")
    with np.errstate(all="ignore"):
        for z.real in parts(n):
            for z.imag in parts(n):
                agrees(lambda z: (np.exp(z) * 1.0, np.exp(z[::-1]) + 0.0), z)
        agrees(lambda a: np.exp(1j * a) + np.exp(-2j * np.pi * a[::-1]), parts(n)[0])


def test_flags_of_complex_exp() -> None:
    for x in SPECIAL:
        for y in SPECIAL:
            z = np.array([1 + 2j, complex(x, y), 0.5j, -1 - 1j, 3.0])
            for flag in ("over", "under", "invalid", "divide"):
                with np.errstate(all="ignore", **{flag: "raise"}):
                    agrees(_told(np.exp), z)
