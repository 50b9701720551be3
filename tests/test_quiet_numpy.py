"""NumPy's calls that neither warn nor run code of the user's (trace/recorder/facts.cc) link no frames."""

from __future__ import annotations

import traceback
import warnings

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

GRID = np.arange(12.0).reshape(3, 4)


def _moved(a, n):
    out = []
    for i in range(n):
        out += [a.copy(), a.flatten(), a.ravel(), a.transpose(), a.swapaxes(0, 1), a.repeat(2), a.take(i), a.argsort(0)]
        out += [
            a.argmax(),
            a.argmin(0),
            a.nonzero()[0],
            a.diagonal(),
            a.tobytes(),
            a.item(i),
            a.reshape(-1),
            a.reshape((2, -1)),
        ]
        out += [np.zeros(i), np.zeros((i, 2)), np.zeros(3, np.int8), np.empty((2, i), float).shape]
    return out


def test_what_they_give():
    check(_moved, (GRID, 3), (GRID.T, 2), (GRID[::2, ::2], 2), (GRID.astype(np.int16), 3))
    settles(_moved, (GRID, 3))


def _reshaped(a, n):
    total = 0.0
    for k in n:
        total += a.reshape(k, -1).shape[0]
        total += np.zeros(k - 1).size
    return total


@pytest.mark.parametrize("last", [5, -1, 0, True, 2.0, "2", None, np.int64(5), np.array(2), (2, 6), 1 << 70])
def test_what_they_raise(last):
    check(_reshaped, (GRID, [1, 2, 3, 4]), (GRID, [1, 2, 3, 4, last]), (GRID, [2, last]))


def test_the_traceback_is_the_callers():
    jitted = ds.jit(store=False)(_reshaped)

    def lines(function):
        try:
            function(GRID, [1, 2, 3, 4, 5])
        except ValueError as error:
            return [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.name == "_reshaped"]

    expected = lines(_reshaped)
    for _ in range(6):
        assert lines(jitted) == expected


def _into(a, out, n):
    for _ in range(n):
        a.argmax(0, out)
        a.take(1, 0, out)
    return out.sum()


def test_what_is_written_into():
    check(_into, (GRID, np.zeros(4, np.int64), 3), (GRID.astype(np.int64), np.zeros(4, np.int64), 3))


def _warned(a, axis, n):
    for _ in range(n):
        a = a.copy().argsort(axis).astype(float)
    return a


def test_what_is_deprecated_warns_as_in_eager():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        check(_warned, (GRID, 0, 3), (GRID, np.array(1), 3), (GRID, True, 3), (GRID, np.array([1]), 3))
