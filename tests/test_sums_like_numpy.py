"""Sums of floats by wide vectors (numpy/sums.h): the bits, the flags and the warnings of NumPy's."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.test_reduced_groups import agrees, values

pytestmark = pytest.mark.once

LENGTHS = [1, 2, 7, 8, 9, 15, 16, 17, 127, 128, 129, 136, 137, 255, 256, 257, 263, 1000, 1023, 5001, 40_000, 300_007]


def whole(a: Any) -> Any:
    return a.sum(), a.mean(), a.std(), np.var(a), np.add.reduce(a)


def rows(a: Any) -> Any:
    return a.sum(axis=-1), a.mean(axis=1), a.std(axis=-1), np.var(a, axis=1, keepdims=True), (a * 2).sum(axis=1)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(dtype: str, n: int) -> None:
    a = values(2 * n + 2, dtype)
    agrees(whole, a[:n])
    agrees(whole, a[1 : n + 1])
    agrees(whole, a[: 2 * n : 2])
    agrees(whole, a[n - 1 :: -1][:n])
    agrees(rows, a[: 2 * n].reshape(2, n))
    if n < 2000:
        agrees(rows, values((30, n), dtype))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [5, 40, 300, 3000])
def test_special_values(dtype: str, n: int) -> None:
    for special in (np.nan, np.inf, -0.0):
        for at in (0, n // 2, n - 1):
            a = values(n, dtype)
            a[at] = special
            agrees(lambda a: (a.sum(), a.mean()), a)
            with np.errstate(invalid="ignore"):
                agrees(whole, a)
    agrees(whole, np.full(n, -0.0, dtype))
    both = values(n, dtype)
    both[0], both[-1] = np.inf, -np.inf
    agrees(lambda a: (a.sum(), a.mean()), both)  # warns
    agrees(whole, np.full(n, np.finfo(dtype).max, dtype))
    agrees(whole, np.full(n, np.finfo(dtype).tiny, dtype))
