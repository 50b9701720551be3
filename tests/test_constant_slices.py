"""Slices of constants, which 3.14 keeps as constants, are built from their parts where nothing keeps the index."""

from __future__ import annotations

from typing import Any

import dalsegno as ds
import numpy as np
from tests.support import check, check_source

SOURCE = """
class Keeps:
    def __init__(self): self.seen = []
    def __getitem__(self, index):
        self.seen.append(index)
        return len({id(each) for each in self.seen})
    def __setitem__(self, index, value): self.seen.append((index, value))

class Derived(list):
    def __getitem__(self, index): return index

@jit
def entry(x, xs, text, grid):
    keeps, out = Keeps(), []
    for k in range(3):
        out.append((x[1:], x[:-1], x[::2], xs[1:], xs[-2:][0], text[2:4], grid[:, 1:], grid[1:, 0], grid[:, None, -1]))
        x[:2] = k
        grid[:, 0] = x[1:4]
        xs[1:2] = [k]
        out.append((keeps[1:], keeps[:, 2:], Derived(xs)[3:]))
        keeps[:2] = k
        for c in xs[1:]: out.append(c)
    return out, keeps.seen
"""
CALLS = """
def calls():
    for k in range(6):
        yield (np.arange(6.0) + k, [k, 2, 3.5], "abcdef", np.arange(12.0).reshape(3, 4) * k), {}
    yield ((np.arange(6), [1, 2, 3], "abcdef", np.arange(12).reshape(3, 4))), {}
"""


def test_slices_of_constants() -> None:
    check_source(SOURCE, CALLS)


def test_slices_of_constants_are_known_as_such() -> None:
    def tail(xs: list[float]) -> float:
        total = 0.0
        for x in xs[1:]:
            total += x
        return total

    jitted = ds.jit(tail, store=False)
    for _ in range(3):
        assert jitted([1.0, 2.0, 3.0]) == 5.0
    _has_slices(jitted)


def test_slices_of_constants_beside_variables_are_known_as_such() -> None:
    def layer(x: Any, weights: Any) -> Any:
        out = np.zeros((x.shape[0], x.shape[1], weights.shape[1]))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j, :] = x[i, j, :] @ weights
        return out

    x, weights = np.arange(24.0).reshape(2, 3, 4), np.arange(8.0).reshape(4, 2)
    check(layer, (x, weights))
    jitted = ds.jit(layer, store=False)
    for _ in range(3):
        jitted(x, weights)
    _has_slices(jitted)


def _has_slices(jitted: Any) -> None:
    assert any(op["kind"] == "build_slice" for trace in jitted.traces() for op in trace["ops"])
