"""Kernels whose operands are rows and columns of elements of each size."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def table(a: Any, row: Any, column: Any) -> Any:
    total = a + row
    return total, np.maximum(total, column) * 2 - row


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 8), (3, 33), (40, 2)])
def test_rows_and_columns_of_elements_of_two_bytes_are_packed_as_such(dtype: str, shape: tuple[int, int]) -> None:
    a = (np.arange(shape[0] * shape[1]).reshape(shape) % 13).astype(dtype)
    row, column = a[0].copy(), a[:, :1].copy()
    if dtype == "?":  # booleans have no minus
        row = row.astype("i1")
    jitted = ds.jit(store=False)(table)
    with ds.config(background=False, step_aside=False):
        for _ in range(4):
            for got, wanted in zip(jitted(a, row, column), table(a, row, column), strict=True):
                assert got.dtype == wanted.dtype
                assert got.strides == wanted.strides
                assert np.array_equal(got, wanted)
