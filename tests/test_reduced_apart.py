"""Reductions along axes that are not neighbours: blocks of images, channels of stacks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import harness
from tests.test_reduced_groups import agrees, values

pytestmark = pytest.mark.once

R = np.random.default_rng(3)
SHAPES: tuple[tuple[int, ...], ...] = (
    (6, 2, 5, 2),
    (4, 3, 7, 3, 3),
    (3, 5, 40),
    (2, 3, 20_000),
    (9, 1, 7, 2, 2),
    (5, 4, 3, 2, 2, 3),
    (3, 16, 300, 4),
    (1, 3, 1, 8),
    (2, 0, 3, 4),
)


def reduced(a: Any, axes: Any) -> Any:
    return (
        a.sum(axis=axes),
        a.max(axis=axes, keepdims=True),
        np.min(a, axis=axes),
        a.mean(axis=axes),
        np.mean(a, axes, keepdims=True),
    )


def spread(a: Any, axes: Any) -> Any:
    return a.std(axis=axes), np.var(a, axis=axes, keepdims=True)


def apart(rank: int) -> Any:
    return [
        axes
        for n in range(2, rank)
        for axes in itertools.combinations(range(rank), n)
        if axes[-1] - axes[0] >= n and (rank < 5 or n < 4)
    ]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "i2", "?", "u8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_pair(dtype: str, shape: tuple[int, ...]) -> None:
    a = values(shape, dtype) if dtype[0] == "f" else R.integers(0, 2 if dtype == "?" else 120, shape).astype(dtype)
    for axes in apart(len(shape)):
        if a.size:
            agrees(reduced, a, axes)
        agrees(lambda a, axes: a.sum(axis=axes), a, axes)
        if dtype[0] == "f" and a.size:
            agrees(spread, a, axes)


@pytest.mark.parametrize("special", [np.nan, -0.0, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_special_values(special: float, dtype: str) -> None:
    for where in (np.s_[0], np.s_[::3], np.s_[-1]):
        a = np.abs(values((6, 2, 9, 2), dtype))
        a[:2] = 0
        a.reshape(-1)[where] = special
        with np.errstate(invalid="ignore"):
            agrees(reduced, a, (1, 3))
            agrees(reduced, -a, (0, 2))
            agrees(spread, a, (1, 3))


def test_any_nan_stays() -> None:
    a = np.abs(values((6, 2, 9, 2), "f8"))
    a[1, 0, 3, 1] = -np.nan
    jitted = ds.jit(store=False)(reduced)
    for _ in range(4):
        assert harness.same(jitted(a, (1, 3)), reduced(a, (1, 3)))


def test_overflow_warns_as_eager_does() -> None:
    agrees(reduced, np.full((3, 2, 5, 2), 1.5e308), (1, 3))
    agrees(spread, np.full((3, 2, 5, 2), 1.5e308), (1, 3))


@pytest.mark.parametrize("change", [np.s_[:, ::-1], np.s_[..., ::2], np.s_[1:, :, 1:]])
def test_arrays_with_gaps(change: Any) -> None:
    agrees(reduced, values((8, 2, 9, 4), "f8")[change], (1, 3))
    agrees(reduced, np.asfortranarray(values((8, 2, 9, 4), "f8")), (1, 3))
    agrees(reduced, values((8, 2, 9, 4), "f8").transpose(2, 0, 3, 1), (1, 3))


def test_many_elements_are_shared_by_threads() -> None:
    agrees(reduced, values((150, 3, 200, 2), "f8"), (1, 3))
    agrees(spread, values((150, 3, 200, 2), "f4"), (1, 3))
    agrees(reduced, values((3, 40, 2000), "f8"), (0, 2))


def test_pooling() -> None:
    def pooled(a: Any) -> Any:
        h, w = a.shape
        blocks = a[: h // 2 * 2, : w // 2 * 2].reshape(h // 2, 2, w // 2, 2)
        return blocks.max(axis=(1, 3)), blocks.mean(axis=(1, 3)), (blocks * 2).sum(axis=(-1, 1))

    agrees(pooled, values((60, 81), "f8"))
    agrees(pooled, values((60, 80), "f4"))
