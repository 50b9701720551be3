"""np.searchsorted(), np.digitize() and np.interp() in steps of their own (replay/machine/steps_search.cc)."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import harness
from tests.support import outcome_told

pytestmark = pytest.mark.once

R = np.random.default_rng(31)


def searched(a: Any, v: Any) -> Any:
    return np.searchsorted(a, v), a.searchsorted(v), np.searchsorted(a, v, side="right"), np.searchsorted(a, v, "right")


def digitized(a: Any, v: Any) -> Any:
    return np.digitize(v, a), np.digitize(v, a, right=True)


def interpolated(a: Any, v: Any) -> Any:
    return np.interp(v, a, a * a - 1), np.interp(v, a, a * a, left=-1.0), np.interp(v, a, a, period=3.0)


def agrees(a: Any, v: Any, functions: Any = (searched, digitized, interpolated)) -> None:
    for function in functions:
        jitted = ds.jit(store=False)(function)
        for state in ({}, {"all": "raise"}):
            with np.errstate(**state):
                want = outcome_told(function, a, v)
                for _ in range(3):
                    assert harness.same(outcome_told(jitted, a, v), want)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 64, 100, 1000])
@pytest.mark.parametrize("many", [1, 7, 8, 9, 301])
def test_sizes(n: int, many: int) -> None:
    a = np.sort(R.standard_normal(n))
    v = R.standard_normal(many) * 1.5
    agrees(a, v)
    agrees(a, np.sort(v))
    agrees(a, np.sort(v)[::-1].copy())
    agrees(np.round(a, 1), np.round(v, 1))  # what is there more than once, and found
    agrees(a, np.resize(a, many))
    agrees(np.sort(R.integers(-9, 9, n)), R.integers(-12, 12, many))
    agrees(a, np.resize(v, (3, 5)))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, -0.0])
def test_special_values(special: float) -> None:
    a, v = np.sort(R.standard_normal(40)), R.standard_normal(90)
    v[5] = v[-1] = special
    agrees(a, v)
    agrees(a, np.sort(v))
    b = np.sort(np.append(a, [special, special]))
    agrees(b, v)
    with np.errstate(invalid="ignore", over="ignore"):
        y = np.where(np.arange(40) % 3 == 1, special, a)
        jitted = ds.jit(store=False)(lambda v, a, y: np.interp(v, a, y))
        for _ in range(3):
            assert harness.same(jitted(v, a, y), np.interp(v, a, y))


def test_what_is_not_sorted() -> None:
    v = R.standard_normal(200)
    agrees(R.standard_normal(30), v)
    agrees(np.sort(R.standard_normal(30))[::-1].copy(), v)
    agrees(np.full(9, 0.25), v)
    agrees(np.zeros(0), v)


def test_other_operands() -> None:
    a, v = np.sort(R.standard_normal(30)), R.standard_normal(200)
    for other in (
        v[::2],
        v.reshape(20, 10).T,
        v.astype("f4"),
        v.astype(int),
        0.5,
        [0.1, 0.2],
        np.ma.array(v),
        np.float64(0.3),
        v[:0],
    ):
        agrees(a, other, (searched, digitized))
        agrees(a, other)
    for other in (a[::2], a.astype("f4"), a.tolist(), np.ma.array(a), np.sort(v.astype(int)), a.reshape(3, 10)):
        agrees(other, v, (digitized,))
        jitted = ds.jit(store=False)(lambda a, v: (np.searchsorted(a, v), np.interp(v, a, a)))
        want = outcome_told(lambda a, v: (np.searchsorted(a, v), np.interp(v, a, a)), other, v)
        for _ in range(3):
            assert harness.same(outcome_told(jitted, other, v), want)


@pytest.mark.parametrize("n", [1, 2, 3, 40, 256, 257])
def test_one_number_between_points(n: int) -> None:
    a = np.sort(np.round(R.standard_normal(n), 1))
    for table in (a, a[::-1].copy(), np.append(a[:-1], np.nan), np.append(a[:-1], np.inf), a.astype(int), a.tolist()):
        for v in (
            0.3,
            float(a[0]),
            a[-1],
            np.float64(0.1),
            -9.5,
            9.5,
            np.nan,
            -np.nan,
            np.inf,
            -np.inf,
            -0.0,
            1,
            np.float32(0.2),
        ):
            agrees(table, v, (between,))


def between(a: Any, v: Any) -> Any:
    y = np.asarray(a) * 2.0 - 1
    return np.interp(v, a, y), np.interp(v, a, y * y), np.interp(v, y, a), np.interp(v, a, y[1:]) if len(y) < 2 else 0
