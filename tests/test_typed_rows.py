"""Rows of arrays that are not built: a[i][j] is an element of a, and a row is built where somebody could see it."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.support import check, check_source, settles

GRID = np.arange(12.0).reshape(3, 4)


def test_elements_of_rows() -> None:
    def walk(a: Any) -> Any:
        s = a[0][0]
        for i in range(-len(a), len(a)):
            for j in range(a.shape[1]):
                s = s + a[i][j]
                a[i][j] = s
                a[i][-1] += 1
        return s, a

    for dtype in (float, int, np.float32, np.uint8, bool):
        check(walk, (GRID.astype(dtype),), (GRID.T.astype(dtype),), (GRID[::-1, ::2].astype(dtype),))
    check(walk, (np.asfortranarray(GRID),), (GRID.copy()[::-2],), (GRID.astype(">f8"),))
    settles(walk, (GRID.copy(),))


def test_elements_of_rows_of_rows() -> None:
    def walk(a: Any, k: Any) -> Any:
        s = a[0, 0, 0]
        for i in range(2):
            for j in range(3):
                s = s + a[i][j][k] + a[i, j][k] + a[i][j, k] + a[i].item(0, 0) + a[i][j].item(k)
                a[i][j][k] = s
        return s, a

    a = np.arange(24.0).reshape(2, 3, 4)
    check(walk, (a, 1), (a, -1), (a, np.int8(3)), (a, 4), (a, True), (a.T.copy().T, 0))


def test_a_row_in_a_variable_is_there_wherever_somebody_looks() -> None:
    def walk(a: Any, n: int, look: bool) -> Any:
        log = []
        row = None
        for i in range(n):
            row = a[i % 3]
            s = row[0] + row[1]
            row[2] = s
            if i % 5 == 4:
                log.append((row.base is a, row.shape, row.strides, row.flags.writeable, row.tolist()))
        return log, sorted(locals()) if look else None, row

    check(
        walk, (GRID.copy(), 12, True), (GRID.copy().T, 7, True), (np.zeros((2, 3)), 4, True), (GRID.copy(), 12, False)
    )
    settles(walk, (GRID.copy(), 12, False))


def test_the_array_goes_before_its_row() -> None:
    def walk(a: Any, n: int) -> Any:
        s = 0.0
        for i in range(n):
            b = a + i
            row = b[i]
            s = s + row[0]
            b = None
            s = s + row[1]
            c = a * 2
            c = c[1]
            s = s + c[2]
        return s, row, c, b

    check(walk, (GRID, 3), (GRID, 2), (np.ones((4, 3)), 4))
    settles(walk, (GRID, 3))


def test_positions_outside_a_row() -> None:
    def read(a: Any, i: Any, j: Any) -> Any:
        row = "none"
        try:
            row = a[i]
            x = row[j]
            row[j + 1] = x
        except IndexError as e:
            return str(e), type(row).__name__, row
        return row, x

    check(read, (GRID, 1, 1), (GRID, 3, 1), (GRID, -4, 1), (GRID, 1, 3), (GRID, 1, 4), (GRID, 1, -5), (GRID[:0], 0, 0))


def test_a_row_that_cannot_be_written_to() -> None:
    def write(a: Any, i: int) -> Any:
        row = a[i]
        row[1] = row[0] + 1
        return row

    frozen = GRID.copy()
    frozen.flags.writeable = False
    check(write, (GRID.copy(), 1), (frozen, 1), (np.broadcast_to(GRID[0], (2, 4)), 1))


def test_a_row_whose_shape_is_assigned_to() -> None:
    source = """
    import sys

    def reshape():
        frame = sys._getframe(1)
        row = frame.f_locals.get("row")
        if row is not None and FLIP[0]:
            row.shape = (2, 2)

    FLIP = [False]

    class Sees:
        def __del__(self):
            reshape()

    @jit
    def entry(a, flip):
        FLIP[0] = flip
        held = Sees()
        row = a[1]
        x = row[0]
        held = None
        y = row[1]
        row[0] = 9.0
        return x, y, row.shape, a.tolist()
    """
    calls = """
    def calls():
        for flip in (False, False, False, True, False):
            yield (np.arange(12.0).reshape(3, 4), flip), {}
    """
    check_source(source, calls)


@pytest.mark.parametrize("where", ["np.matrix", "masked"])
def test_rows_of_arrays_of_other_classes(where: str) -> None:
    def walk(a: Any) -> Any:
        s = 0.0
        for i in range(2):
            row = a[i]
            s = s + row[0, 0] if row.ndim == 2 else s + row[0]
        return s, type(a[1]).__name__, a[0].shape

    other = np.matrix(GRID) if where == "np.matrix" else np.ma.masked_array(GRID, GRID > 4)
    check(walk, (GRID,), (other,), (GRID,))
