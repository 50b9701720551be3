"""Extremes and truth along short rows: the elements that NumPy gives, zeros with their signs among them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import stepped

DTYPES = [np.dtype(c) for c in "?bBhHiIlLfd"]
FOLDS: list[Callable[..., Any]] = [np.max, np.min, np.any, np.all]


def same(function: Callable[..., Any], *args: Any) -> None:
    """As often as it takes to be replayed."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False):
        for _ in range(4):
            got, wanted = jitted(*args), function(*args)
            assert (got.dtype, got.shape, got.strides) == (wanted.dtype, wanted.shape, wanted.strides)
            if got.dtype.kind == "f":
                assert np.array_equal(np.isnan(got), np.isnan(wanted))
                got, wanted = np.where(np.isnan(got), 1, got), np.where(np.isnan(wanted), 1, wanted)
            assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_all_dtypes(fold: Callable[..., Any], dtype: np.dtype[Any]) -> None:
    random = np.random.default_rng(3)
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40):
        data = (random.integers(-90, 90, (37, n)) * (random.random((37, n)) < 0.7)).astype(dtype)
        same(lambda a: fold(a, axis=1), data)
        same(lambda a: fold(a, axis=-1, keepdims=True), data.reshape(37, 1, n))
        same(lambda a: fold(a, axis=1), data[::2, ::2])
        same(lambda a: fold(a, axis=0), data)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("fold", [np.max, np.min])
def test_zeros_keep_their_signs(fold: Callable[..., Any], dtype: str) -> None:
    for n in range(2, 9):
        rows = np.array(list(itertools.product((0.0, -0.0), repeat=n)), dtype)
        same(lambda a: fold(a, axis=1), rows)
        same(lambda a: fold(a, axis=1), np.repeat(rows, 2, axis=1)[:, ::2])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("fold", [np.max, np.min])
def test_nan_is_given_without_a_warning(fold: Callable[..., Any], dtype: str) -> None:
    values = (np.nan, 0.0, -1.0, np.inf)
    for n in range(2, 6):
        rows = np.array(list(itertools.product(values, repeat=n)), dtype)
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            same(lambda a: fold(a, axis=1), rows)


@pytest.mark.parametrize("step", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("dtype", "fdil")
def test_elements_that_lie_apart(step: int, dtype: str) -> None:
    data = np.arange(3 * 400, dtype=dtype).reshape(3, 400)
    n = (400 - 1) // step
    same(lambda a: a[:, ::step] * 3 + 1, data)
    same(lambda a: a[:, 1::step][:, :n] * 3 - a[:, ::step][:, :n], data)
    same(lambda a: np.maximum(a[:, ::step][:, :n], a[:, 1::step][:, :n]), data)
