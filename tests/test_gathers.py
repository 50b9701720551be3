"""Elements of an array by an array of positions, and views whose bounds are NumPy's integers."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

R = np.random.default_rng(11)
N = 40


def sparse(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.zeros(len(rows) - 1, values.dtype)
    for i in range(len(rows) - 1):
        y[i] = values[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]
    return y


def taken(x: Any, at: Any, n: Any) -> Any:
    out = []
    for i in range(n):
        some = x[at[i:]]
        again = x[::-1][at[:i]]
        out.append((some.copy(), again, some.flags.owndata, some.strides, x[1:][at[::2]].sum()))
        some[:1] = 0  # a new array
    return out


def matrix(kind: str) -> tuple[Any, Any]:
    counts = R.integers(0, 4, N)
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    return rows, R.integers(0, N, int(rows[-1])).astype(kind)


@pytest.mark.parametrize("kind", ["i8", "i4", "u4", "i2", "u1", "u8"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_rows_of_a_sparse_matrix(kind: str, dtype: str) -> None:
    rows, columns = matrix(kind)
    values, x = (R.random(len(columns)) * 9).astype(dtype), (R.random(N) * 9).astype(dtype)
    wrong = columns.copy()
    wrong[-1] = N
    check(sparse, (rows, columns, values, x), (rows.tolist(), columns, values, x))
    check(sparse, (rows, columns, values, np.repeat(x, 2)[::2]))
    check(sparse, (rows, wrong, values, x))


@pytest.mark.parametrize("kind", ["i8", "i4", "u2", "?", "f8", "O"])
def test_elements_by_positions(kind: str) -> None:
    at = np.array([3, 0, 5, 7, 1, 1, 2, 6]).astype(kind)
    for dtype in ("f8", "f4", "i8", "i4", "?", "u1", "c8", "O", "U3"):
        x = (R.random(8) * 5).astype(dtype)
        check(taken, (x, at, 4), (x[::-1], at[::-1], 3), (x, at[:0], 2), (x, at[:, None][:, [0, 0]], 2))
        if kind[0] == "i":
            check(taken, (x, -at, 3), (x, -at - 1, 3), (x, at + 1, 3), (x[:3], at, 3), (x[:0], at[:0], 2))


def test_no_view_is_built_for_them() -> None:
    rows, columns = matrix("u4")
    values, x = R.random(len(columns)), R.random(N)
    with ds.config(background=False):
        jitted = ds.jit(store=False)(sparse)
        for _ in range(8):
            jitted(rows, columns, values, x)
        with counting(jitted) as grown:
            assert (jitted(rows, columns, values, x) == sparse(rows, columns, values, x)).all()
    assert (grown["replays"], grown["guard_failures"]) == (1, 0)
