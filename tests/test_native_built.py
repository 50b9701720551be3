"""Side traces in native loops on whose way something is built of its parts (native::Block, boxes)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.equivalent import equivalent


def drawn(seed: int, turns: int) -> list[int]:
    r = random.Random(seed)
    out = []
    for _ in range(turns):
        out.append(r.randrange(40) + r.randrange(17))
    return out


def method_kept(turns: int) -> Any:
    r = random.Random(3)
    total = 0
    for i in range(turns):
        bits = r.getrandbits
        k = bits(5)
        while k >= 20:
            k = bits(5)
        total += k
    return total, bits.__self__ is r


def rows_kept(grid: Any) -> Any:
    high = 0.0
    last = None
    for i in range(len(grid)):
        row = grid[i]
        if row[0] > 0.5:
            last = row
            high += row[1]
        else:
            high -= row[-1]
    return high, last


def pairs_kept(values: list[float]) -> Any:
    best = None
    count = 0
    for i in range(len(values)):
        pair = (i, values[i])
        if values[i] > 0.5:
            best = pair
        else:
            count += 1
    return best, count


def slices_kept(values: list[float]) -> Any:
    part = slice(0)
    total = 0.0
    for i in range(len(values) - 3):
        where = slice(i, i + 3)
        if values[i] > 0.5:
            part = where
        else:
            total += values[i]
    return part, total


def ranges_kept(values: list[float]) -> Any:
    last = range(0)
    total = 0
    for i in range(len(values)):
        these = range(i, i + 4)
        if values[i] > 0.5:
            last = these
        else:
            for k in these:
                total += k
    return last, total


R = np.random.default_rng(23)
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (drawn, (5, 400)),
    (method_kept, (400,)),
    (rows_kept, (R.random((300, 4)),)),
    (pairs_kept, (R.random(300).tolist(),)),
    (slices_kept, (R.random(300).tolist(),)),
    (ranges_kept, (R.random(300).tolist(),)),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_values(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    equivalent(function, *[arguments] * 4, engines=["native", "background"])


def test_a_rejected_draw_stays_in_native_code() -> None:
    jitted = ds.jit(store=False)(drawn)
    with ds.config(background=False, step_aside=False):
        for _ in range(6):
            jitted(5, 2000)
        before = ds.stats()["guard_failures"]
        jitted(5, 2000)
        left = ds.stats()["guard_failures"] - before
    assert left < 100, left  # it was left for each of them, some 1,500 times
