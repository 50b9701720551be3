"""abs(z) < r in one pass (replay/machine/magnitudes.h): bits and warnings of NumPy's two."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import harness
from tests.support import outcome_told

pytestmark = pytest.mark.once

R = np.random.default_rng(17)


def inside(z: Any, r: Any) -> Any:
    return abs(z) < r, np.abs(z) <= r, np.absolute(z) > r, np.abs(z) >= r, np.less(abs(z), r), abs(z * z) < r


def counted(z: Any, r: Any) -> Any:
    m = np.abs(z)
    seen = np.zeros(z.shape, bool)
    seen |= abs(z) < r
    return m, m < r, seen, np.where(abs(z) < r, z, 0), (abs(z) < r) & (abs(z + 1) > r)


def agrees(z: Any, r: Any) -> None:
    for function in (inside, counted):
        jitted = ds.jit(store=False)(function)
        for state in ({}, {"all": "warn"}, {"under": "raise"}):
            with np.errstate(**state):
                want = outcome_told(function, z, r)
                for _ in range(3):
                    assert harness.same(outcome_told(jitted, z, r), want)


def numbers(n: int) -> Any:
    return R.standard_normal(n) * 2 + 1j * R.standard_normal(n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 63, 511, 512, 513, 514, 1025, 20_001])
def test_lengths(n: int) -> None:
    agrees(numbers(n), 2.0)
    agrees(numbers(n), np.float64(0.5))


def test_at_the_bound() -> None:
    r = 2.0
    angles = R.random(3000) * 7
    z = r * np.exp(1j * angles) * (1 + R.integers(-9, 10, 3000) * 2.0**-53)
    agrees(z, r)
    agrees(np.array([2, -2, 2j, 1.2 + 1.6j, 2 + 1e-300j, np.nextafter(2, 0)] * 9), r)
    agrees(z[:600] * 3.7e-9, 2 * 3.7e-9)


@pytest.mark.parametrize(
    "special", [np.nan, np.inf, -np.inf, 1e308, 1e200, 1e-200, 5e-324, 0.0, -0.0, 1e71, 1e-71, 3e154]
)
def test_special_values(special: float) -> None:
    for at in (0, 3, 300):
        z = numbers(301)
        z[at] = complex(special, 0.5)
        z[at // 2] = complex(1.0, special)
        agrees(z, 2.0)
        agrees(z, special)
        z[at] = complex(special, special)
        agrees(z, 2)


def test_other_operands() -> None:
    z = numbers(600)
    for view in (
        z[::2],
        z[::-1],
        z.reshape(20, 30),
        z.reshape(20, 30).T,
        z.reshape(20, 30)[:, 3:20],
        z.astype("c8"),
        z.real.copy(),
    ):
        for r in (2.0, 2, True, np.float32(1.5), np.full(view.shape, 2.0), -1.0, 0.0, np.nan, np.inf):
            agrees(view, r)


def test_mandelbrot() -> None:
    def mandelbrot(c: Any, n: int) -> Any:
        z, seen = np.zeros_like(c), np.zeros(c.shape, int)
        for k in range(n):
            m = np.less(abs(z), 2.0)
            seen[m] = k
            z[m] = z[m] ** 2 + c[m]
        return z, seen

    x = np.linspace(-2, 0.5, 90)
    jitted = ds.jit(store=False)(mandelbrot)
    for _ in range(4):
        assert harness.same(jitted(x + 1j * x[:70, None], 30), mandelbrot(x + 1j * x[:70, None], 30))
