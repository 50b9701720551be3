"""Elements at positions: of every dtype, negative ones, and none where one is out of bounds."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.native_kit import same

ITEMS = [np.arange(50).astype(c) for c in "?bhiqfdD"]


def at(x: Any, positions: Any) -> Any:
    return x[positions]


def at_and_more(x: Any, positions: Any) -> Any:
    return x[positions] * 2 - x[positions[::-1]]


@pytest.mark.parametrize("dtype", "bBhHiIl")
@pytest.mark.parametrize("function", [at, at_and_more])
def test_all_dtypes(function: Any, dtype: str) -> None:
    random = np.random.default_rng(5)
    low = 0 if dtype.isupper() else -50
    for x in ITEMS[1:]:
        for positions in (
            random.integers(low, 50, 37).astype(dtype),
            random.integers(0, 50, 8).astype(dtype),
            np.array([], dtype),
        ):
            same(function, lambda x=x, p=positions: (x, p))
            same(function, lambda x=x, p=positions: (np.repeat(x, 2)[::2], np.repeat(p, 3)[::3]))


@pytest.mark.parametrize("bad", [50, -51, 2**63 - 1, -(2**63), 2**62])
def test_out_of_bounds(bad: int) -> None:
    x = np.arange(50.0)
    good = np.array([3, -4, 49, -50, 0])
    for place in range(5):
        wrong = good.copy()
        wrong[place] = bad
        same(at, lambda: (x, good), lambda w=wrong: (x, w))


def test_nothing_to_take_from() -> None:
    same(at, lambda: (np.arange(0.0), np.array([], int)), lambda: (np.arange(0.0), np.array([0])))
