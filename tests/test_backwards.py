"""Kernels of operands that are gone through backwards, among others: bits and layout of eager's results."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import stepped

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "one": lambda x, y: x * 2,
    "two": lambda x, y: x + y,
    "chain": lambda x, y: np.maximum(x, y) - np.where(x > y, x, 1.5) * np.abs(y),
    "broadcast": lambda x, y: x[..., :1] + y * 3 - x[0],
    "of other bits": lambda x, y: np.fmax(x, y) + np.fmin(x * 2, y),
    "loops": lambda x, y: np.exp(x / 99) * y,
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_directions(name: str, dtype: str) -> None:
    function = FUNCTIONS[name]
    jitted = ds.jit(store=False)(function)
    base = (np.random.default_rng(4).standard_normal((20, 21, 33)) * 50).astype(dtype)
    base[3, 4] = 0
    with stepped(step_aside=False), np.errstate(all="ignore"):
        for steps in itertools.product((1, -1, -2), repeat=3):
            for others in ((1, 1, 1), (-1, -1, -1), (1, -1, 1)):
                x = base[tuple(slice(None, None, s) for s in steps)]
                y = base[tuple(slice(None, None, s) for s in others)][tuple(slice(n) for n in x.shape)]
                for _ in range(2):
                    wanted, got = function(x, y), jitted(x, y)
                    assert (got.dtype, got.strides) == (wanted.dtype, wanted.strides)
                    assert got.tobytes() == wanted.tobytes()
                ds.wait()
