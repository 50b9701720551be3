"""Vectors from their end to their beginning, and those without a step: products copy them as NumPy does."""

from __future__ import annotations

from typing import Any

import pytest
from numpy.lib.stride_tricks import as_strided

import numpy as np
from tests.test_native_loops import check, steps_of


def fir(x: Any, b: Any) -> Any:
    out = []
    m = len(b)
    for n in range(len(x) - m):
        out.append(np.dot(b, x[n : n + m][::-1]))
        out.append(x[n : n + m][::-1].dot(b[::-1]))
        out.append(b @ x[n : n + m][::-1])
    return out


def flips(x: Any, n: int) -> Any:
    out = []
    for k in range(n):
        v = np.flip(x[:k])
        out.append((np.dot(v, x[:k]), v.strides, v.base is x, np.flipud(x)[0], v + 1))
        x[:k] += 0.5 * np.flip(x[:k])
    return out, x


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("size", [1, 2, 3, 17, 40])
def test_products_of_reversed_vectors(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    x, b = (rng.integers(-9, 9, n) * 1.37 for n in (size + 30, size))
    check(fir, (x.astype(dtype), b.astype(dtype)), (x.astype(dtype)[::2].repeat(2)[::-1], b.astype(dtype)))


def test_a_product_leaves_no_steps() -> None:
    def total(x: Any, n: int) -> float:
        s = 0.0
        for k in range(n):
            s += np.dot(np.flip(x[:k]), x[:k])
        return s

    check(total, (np.arange(60) * 0.3, 50))
    assert steps_of(total, np.arange(600) * 0.3, 500) < 100


def test_flips() -> None:
    check(flips, (np.arange(12.0), 9), (np.arange(12.0).astype("float32"), 5), (np.arange(24.0)[::2], 9))
    check(flips, (np.arange(12), 5), (np.arange(12.0).reshape(4, 3), 3), ([1.0, 2.0], 2))


def test_vectors_without_a_step() -> None:
    def dots(x: Any, y: Any, n: int) -> Any:
        return [np.dot(x[k:], y[k:]) for k in range(n)] + [np.dot(y, x), x.dot(y), x @ y]

    def loops(x: Any, y: Any, n: int) -> Any:
        s = 0.0
        for k in range(n):
            s = s * 0.5 + np.dot(x[k:], y[k:])
        return s

    y = np.random.default_rng(1).standard_normal(33)
    for x in (np.broadcast_to(0.1, 33), as_strided(y, (33,), (0,)), as_strided(y, (33,), (-0,))):
        check(dots, (x, y, 30))
        check(loops, (x, y, 30))
