"""shape, size and ndim of arrays: numbers that native code takes from the array itself."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.native_kit import same, steps_of


def unpacked(a: Any, n: int) -> Any:
    s = 0
    for i in range(n):
        h, w = a.shape
        s += h * i - w + a.shape[-1] * a.size - a.ndim + len(a)
    return s, a.shape, (h, w)


def used(a: Any, n: int) -> Any:
    out = []
    for i in range(n):
        shape = a.shape
        out.append((shape, shape[i % 2], np.zeros(shape).shape == shape, len(shape), shape + (i,), a.shape is a.shape))
        out.append((f"{a.shape}", a.T.shape, a[1:].shape, (a + i).shape, a[0].shape, a[0].size, a.size // 2))
    return out


def grown(a: Any, n: int) -> Any:
    out = []
    for i in range(n):
        b = a.reshape((-1, a.shape[1]) if i % 2 else (a.size,))
        out.append((b.shape, b.ndim, b.size))
    return out


def changed(n: int) -> Any:
    out = []
    for i in range(n):
        a = np.arange(12.0)
        before = a.shape
        a.resize((3, 4), refcheck=False)
        h, w = a.shape
        out.append((before, h, w, a.size, a.ndim))
    return out


def scalar_arrays(arrays: Any) -> Any:
    out = []
    for a in arrays:
        out.append((a.shape, a.size, a.ndim, a.nbytes))
        try:
            out.append(len(a))
        except TypeError as error:
            out.append(str(error))
        try:
            h, w = a.shape
            out.append(h - w)
        except ValueError as error:
            out.append(str(error))
    return out


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u1", "?", "c16", "U3", "O", ">f8", "f2", "M8[s]"])
def test_extents_of_every_dtype(dtype: str) -> None:
    make = lambda: (np.arange(6).reshape(3, 2).astype("i8").astype(dtype), 40)  # noqa: E731
    same(unpacked, make)
    if dtype[0] not in "UOM>":
        same(used, make)
        same(grown, make)


def test_extents_of_views_and_of_none() -> None:
    a = np.arange(24.0).reshape(4, 6)
    same(
        unpacked,
        lambda: (a[::-2, 1::3], 30),
        lambda: (a[:0], 30),
        lambda: (a.T, 30),
        lambda: (np.broadcast_to(1.5, (2, 3)), 30),
    )


def test_a_shape_that_changes_in_place_is_asked_again() -> None:
    same(changed, lambda: (40,))


def test_arrays_without_dimensions_and_of_several_ranks() -> None:
    arrays = [np.array(1.5), np.arange(3.0), np.zeros((2, 3)), np.zeros((2, 3, 4)), np.float64(2.5), np.array(7)] * 4
    same(scalar_arrays, lambda: (arrays,))


def looped(a: Any, n: int) -> Any:
    s = 0
    for i in range(n):
        h, w = a.shape
        s += h * i - w + a.size + a.ndim
    return s


@pytest.mark.parametrize("dtype", ["f8", "c16", "u1"])
def test_extents_take_no_step_in_native_code(dtype: str) -> None:
    a = np.zeros((3, 5), dtype)
    few, many = (steps_of(looped, a, n) for n in (3000, 6000))
    assert few < 100 and many < 100
