"""Sums of what operators and ufuncs make of arrays in generator expressions: computed piece by piece, without the
arrays that come between (replay/machine/fold_arrays.h). What is not known is the builtin's, and NumPy's."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.test_folds_arrays import same

pytestmark = pytest.mark.once

R = np.random.default_rng(5)
X = R.normal(size=700)
PLANE = R.normal(size=(37, 41))
WEIGHTS = [0.5, -1.25, 2.0, 3.0]


def polynomial(x: Any, weights: Any) -> Any:
    return sum(w * x**i for i, w in enumerate(weights))


def powers(x: Any) -> Any:
    return sum(x**k for k in (2, 3, -1, 0.5, 1, 0, 2.0, -0.5)), sum(k**x for k in (2.0, 3, 0.5))


def arithmetic(x: Any, y: Any, weights: Any) -> Any:
    return (
        sum(w * x - y / w + 3 for w in weights),
        sum((x - w) * (y + w) for w in weights),
        sum(-x + w for w in weights),
        sum(abs(x - w) for w in weights),
        sum(w - x for w in weights),
        sum(x // w + x % w for w in weights),
        sum(x + y for _ in weights),
    )


def functions(x: Any, weights: Any) -> Any:
    return (
        sum(w * np.sin(w * x) for w in weights),
        sum(np.exp(-((x - w) ** 2)) for w in weights),
        sum(np.maximum(x, w) * np.sqrt(2.0 * math.pi) for w in weights),
        sum(np.hypot(x, w) / np.exp(w) for w in weights if w > 0),
        sum(np.abs(x) ** 0.5 for w in weights),
    )


def bell(x: Any, at: Any, wide: Any) -> Any:
    return np.exp(-((x - at) ** 2) / (2 * wide * wide)) / (wide * np.sqrt(2 * np.pi))


def bells(x: Any, at: Any) -> Any:
    return sum(0.25 * bell(x, a, 0.5) for a in at)


def projected(v: Any, basis: Any) -> Any:
    return v - sum((np.dot(v, b) * b for b in basis), np.zeros_like(v))


def onto(x: Any, weights: Any, start: Any) -> Any:
    return sum((w * x for w in weights), start), sum((x[:3] for _ in weights), start[:3])


LAYOUTS = {
    "plain": X,
    "short": X[:3],
    "one": X[:1],
    "none": X[:0],
    "long": R.normal(size=70_000),
    "steps": X[::3],
    "backwards": X[::-1],
    "plane": PLANE,
    "turned": PLANE.T,
    "window": PLANE[3:20, 5:30],
    "spread": np.broadcast_to(X[:41], (5, 41)),
    "cube": R.normal(size=(5, 6, 7)),
    "whole numbers": np.arange(50),
    "single": X.astype("f4"),
    "truth": X > 0,
    "complex": X * 1j,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    x = LAYOUTS[layout]
    with np.errstate(all="ignore"):
        same(polynomial, x, WEIGHTS)
        same(arithmetic, x, x[..., :1] * 2 if x.size else x, WEIGHTS)
        same(arithmetic, x, x, WEIGHTS)
        if layout != "complex":
            same(functions, x, WEIGHTS)
        same(bells, x, WEIGHTS)


@pytest.mark.parametrize(
    "weights",
    [
        [0.5],
        [],
        (1, 2, 3),
        [2**60, 1.0],
        [2**53, 1],
        [True, 2.0],
        [np.float64(0.5), np.int64(3)],
        [np.float32(0.5)],
        [1j],
        np.array([0.5, 2.0]),
        np.array([1, 2]),
        R.normal(size=(3, 1)),
    ],
    ids=str,
)
def test_numbers(weights: Any) -> None:
    with np.errstate(all="ignore"):
        same(polynomial, X, weights)
        same(onto, X, weights, X * 2)
        same(lambda x, ws: sum(w * np.cos(x) for w in ws), X, weights)


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
def test_flags(mode: Any) -> None:
    odd = np.array([0.0, -0.0, 1e308, -1e308, np.inf, np.nan, 5e-324, -1.0])
    with np.errstate(all=mode):
        same(powers, odd)
        same(powers, np.abs(X))
        same(polynomial, odd, [10.0, 1.0, 3.0])
        same(arithmetic, odd, odd[::-1].copy(), [0.0, 2.0])
        same(functions, odd, [2.0])
        same(lambda x: sum(np.log(x) * k for k in (1.0, 2.0)), odd)
        same(lambda x: sum(np.sqrt(-1.0) * x for _ in range(2)), X)


def test_flags_that_later_loops_clear() -> None:
    """NumPy's negative and absolute clear what was raised before them."""
    large = np.full(9, 1.7e308)
    same(lambda x: sum(-x for _ in range(3)), large)
    same(lambda x: sum((np.abs(x) for _ in range(3)), x), large)
    same(lambda x: sum(-(x * w) + abs(x) for w in WEIGHTS), large)
    same(lambda x: sum(np.abs(-1.0) * np.exp(800.0) * np.abs(-2.0) * x for _ in range(2)), X)


def test_signs_of_zeros() -> None:
    zeros = np.array([-0.0, 0.0, -0.0])
    same(lambda x: sum(x * 1.0 for _ in range(2)), zeros)
    same(lambda x: sum((x * 1.0 for _ in range(2)), x), zeros)
    same(lambda x: sum((-x for _ in range(1)), x), zeros)


def test_projections() -> None:
    """Gram and Schmidt's."""
    same(projected, X, [X * 2, X + 1])
    same(projected, X, [])
    same(projected, X, [X[:5], X])
    same(projected, X[:0], [X[:0]])
    same(projected, X, R.normal(size=(4, 700)))
    same(projected, X * 1e200, [X * 1e200])
    same(projected, np.arange(5), [np.arange(5)])
    same(lambda x: sum(x @ x * x for _ in range(3)), X)


def test_beginnings() -> None:
    for start in (
        X + 1,
        X.astype("f4"),
        np.arange(700),
        X > 0,
        X[:1],
        X[::-1],
        PLANE,
        X.tolist(),
        np.float64(2),
        0.0,
        1,
    ):
        same(lambda x, start: sum((w * x for w in WEIGHTS), start), X, start)
        same(lambda x, start: sum((x for w in WEIGHTS), start), X, start)
    same(lambda start: sum((w for w in WEIGHTS), start), X)
    same(lambda start: sum((w for w in ()), start) is start, X)
    same(lambda start: sum((w * start for w in WEIGHTS), start=start), X)


def test_functions_that_write_in_place() -> None:
    def doubled(v: Any) -> Any:
        v *= 2.0
        return v

    jitted = ds.jit(lambda x: sum(doubled(x) for _ in range(3)))
    for _ in range(8):
        x = np.ones(5)
        assert jitted(x).tolist() == [14.0] * 5
        assert x.tolist() == [8.0] * 5


def test_what_is_computed_in_vain() -> None:
    """NumPy tells of it all the same."""

    def half(x: Any, w: Any) -> Any:
        unused = x / w
        return x + 1 if w else unused

    for mode in ("warn", "raise", "ignore"):
        with np.errstate(all=mode):  # type: ignore[call-overload]
            same(lambda x: sum(half(x, w) for w in (0.0, 1.0, 2.0)), X)
            same(lambda x: sum(half(x, w) for w in (1.0, 2.0)), X)


def test_many() -> None:
    same(lambda x: sum(k * x - x / (k + 1) for k in range(900)), X[:7])
    same(lambda x: sum(k * x - x / (k + 1) for k in range(5000)), X[:3])
    deep = "+".join(f"(x - {k})" for k in range(30))
    names: dict[str, Any] = {}
    exec(f"def deeply(x):\n    return sum({deep} for _ in range(2))", names)
    same(names["deeply"], X)


def test_rows_of_a_plane() -> None:
    same(lambda a, ws: sum(w * row for w, row in zip(ws, a, strict=False)), PLANE, WEIGHTS)
    same(lambda a: sum(row for row in a), PLANE)
    same(lambda a: sum(row for row in a), PLANE.T)
    same(lambda a: sum(np.sqrt(abs(row)) for row in a), PLANE)
    same(lambda a: [row.sum() for row in a], PLANE)
    same(lambda a: max(row[0] for row in a), PLANE)
    same(lambda a: list(row for row in a)[1].base is a, PLANE)  # noqa: C400


def test_pairs_that_are_counted() -> None:
    """What only a strict zip asks for was asked of enumerate(), too, and stood there by chance."""
    for _ in range(3):
        same(lambda xs: sum(k * i for i, k in enumerate(xs)), [1.5, 2.0, 4.0])
        same(lambda xs: sum(k * i for i, k in zip(xs, xs, strict=True)), [1.5, 2.0, 4.0])
