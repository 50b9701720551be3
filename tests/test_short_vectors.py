"""Numbers of short vectors, and short vectors in order, in steps of their own (replay/machine/steps_order.cc)."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import harness
from tests.support import outcome_told

pytestmark = pytest.mark.once

R = np.random.default_rng(47)


def numbers(a: Any) -> Any:
    return np.median(a), np.ptp(a), np.prod(a), np.mean(a)


def totals(a: Any) -> Any:
    return np.sum(a), np.max(a), np.min(a)


def traced(a: Any) -> Any:
    return np.trace(a)


def in_order(a: Any) -> Any:
    made = np.sort(a)
    return made, made.strides, made.base, made.flags.owndata, type(made), np.sort(a)[::2]


def with_itself(a: Any) -> Any:
    return np.array_equal(a, a), np.array_equal(a, a[::-1]), np.array_equal(a[1:], a[:-1])


def one_by_one(a: Any) -> Any:
    made = []
    for function in (np.median, np.ptp, np.prod, np.mean, np.sort, np.sum, np.max, np.min, np.trace, with_itself):
        try:
            made.append(function(a))
        except Exception as error:
            made.append((type(error), str(error)))
    return made


def windows(a: Any) -> Any:
    total, kept = 0.0, []
    for i in range(len(a) - 5):
        w = a[i : i + 5]
        total += np.median(w) * np.ptp(w) - np.prod(w) + np.mean([1.5, float(i), total])
        kept.append(np.sort(w)[2] == np.median(w))
    return total, kept


def agrees(a: Any, functions: Any = (numbers, totals, in_order, with_itself, one_by_one)) -> None:
    for function in functions:
        jitted = ds.jit(store=False)(function)
        for state in ({}, {"all": "raise"}, {"under": "warn"}):
            with np.errstate(**state):
                want = outcome_told(function, a)
                for _ in range(3):
                    assert harness.same(outcome_told(jitted, a), want), (function.__name__, a, state)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9, 16, 33, 64, 129, 255, 256, 257, 1000])
def test_sizes(n: int) -> None:
    agrees(R.standard_normal(n))
    agrees(np.round(R.standard_normal(n), 1) + 0.05)  # what is there more than once
    agrees(R.integers(-9, 9, n))
    agrees(R.standard_normal(n).tolist())
    agrees(tuple(R.standard_normal(n).tolist()))


def middle(a: Any) -> Any:
    return np.median(a), type(np.median(a)), np.median(a[1:])


@pytest.mark.parametrize("n", [257, 300, 1001, 4096, 40_000])
def test_medians_of_many(n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n)
    for a in (
        x,
        x[::-1],
        x[::3],
        np.round(x, 1),
        np.abs(np.round(x)),
        (x * 100).astype(np.int64),
        x.astype(np.float32),
    ):
        agrees(a, (middle,))
    x[n // 3] = np.nan
    agrees(x, (middle,))


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (20, 31), (2, 3, 5), (70, 80), (4, 0)])
def test_medians_of_matrices(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).standard_normal(shape)
    for a in (
        x,
        x.T,
        np.asfortranarray(x),
        x[..., ::2],
        (x * 100).astype(np.int64),
        x > 0,
        np.broadcast_to(x, (2, *shape)),
    ):
        agrees(a, (middle,))


@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf, 1e308, 5e-324, 1e-300, -0.0, 0.0])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 40])
def test_special_values(special: float, n: int) -> None:
    for share in (1, 2, n):
        a = R.standard_normal(n)
        a[:share] = special
        R.shuffle(a)
        agrees(a)
        agrees(a.tolist())
        agrees(np.append(a, [0.0, -0.0, special]))
        agrees(np.append(a, -special))


def test_layouts() -> None:
    a = R.standard_normal((12, 9))
    for b in (
        a[:, 2],
        a[3],
        a[3, ::2],
        a[3, ::-1],
        a[::-2, 1],
        a,
        a.T,
        np.broadcast_to(np.float64(2.5), 7),
        a[3].astype("f4"),
    ):
        agrees(b)
    raw = np.zeros(8 * 6 + 1, np.uint8)[1:].view(np.float64)  # unaligned
    raw[:] = R.standard_normal(6)
    agrees(raw)
    agrees(a[0].astype(">f8"))
    agrees(np.ma.array(a[0], mask=a[0] > 0), (numbers, one_by_one))
    read_only = a[1].copy()
    read_only.flags.writeable = False
    agrees(read_only)


def test_other_operands() -> None:
    for a in (
        2.5, 7, True, None, "ab", [], (), [1, 2.5], [True, False], [1.5, None], [[1.0, 2.0], [3.0, 4.0]], {1.0, 2.0},
        np.float64(3), np.array(2.5), np.array([True, False, True]), np.array([1 + 2j, 3]), np.array(["b", "a"]),
        np.array([1.5, 2], object), np.array([1, 2], "m8[s]"), [np.float64(1.5), 2.5], R.integers(0, 9, 5).astype("u1"),
    ):  # fmt: skip
        agrees(a, (numbers, totals, traced, one_by_one))


def test_traces_and_equal_vectors() -> None:
    for shape in ((1, 1), (3, 3), (2, 7), (9, 4), (0, 3), (300, 300), (2, 3, 3)):
        a = R.standard_normal(shape)
        for b in (
            a,
            a.T,
            a[::-1],
            np.asfortranarray(a),
            np.full(shape, -0.0),
            np.full(shape, np.nan),
            np.full(shape, 1e308),
            a.astype(int),
        ):
            agrees(b, (traced, with_itself, one_by_one))
    pairs = ds.jit(store=False)(lambda a, b: (np.array_equal(a, b), np.array_equal(b, a)))
    a = R.integers(0, 2, 6)
    for other in (
        a,
        a.copy(),
        a + 0.0,
        a[::-1],
        a[:5],
        a.tolist(),
        np.array([np.nan] * 6),
        a * -0.0,
        a.reshape(2, 3),
        None,
        "x",
    ):
        for one in (a, a + 0.0, a * 0.0):
            assert pairs(one, other) == (np.array_equal(one, other), np.array_equal(other, one))


def test_in_loops() -> None:
    a = R.standard_normal(300)
    jitted = ds.jit(store=False)(windows)
    for values in (
        a,
        a,
        a,
        np.where(a > 2, np.nan, a),
        np.round(a),
        a * 1e200,
        R.integers(-5, 5, 300),
        a.astype("f4"),
        a,
    ):
        for state in ({}, {"over": "raise"}):
            with np.errstate(**state):
                assert harness.same(outcome_told(jitted, values), outcome_told(windows, values))
