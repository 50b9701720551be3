"""Many replays, exits and failed guards of one function: memory and reference counts stay where they are."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

import dalsegno as ds
import numpy as np
from tests.support import counting, stepped

ROUNDS = 100_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


class Box:
    def __init__(self, v):
        self.v = v


BOX = Box([1.5])
TABLE = {"k": (1, 2)}


def helper(x, box):
    items = [x, box.v]
    return {"items": items, "k": TABLE["k"]}, (x, BOX)


def replayed(x, n):
    d, pair = helper(x, BOX)
    total = 0.0
    for v in pair[0]:
        total += v
    return d["items"], f"{total}{n}", [total + n, pair]


def leaves(x, n):
    items = [x, TABLE]
    if n == 1:
        return items
    if n == 2:
        items.append(str(n))
    return items, {"n": n, "x": x}


def raises(x, n):
    items = [x, TABLE]
    try:
        return items, raises_inner(items, n)
    except ZeroDivisionError as error:
        return items, str(error)


def raises_inner(items, n):
    pair = (items, n)
    return 10 // n, pair


def not_caught(x, n):
    items = [x, BOX]
    return raises_inner(items, n)


def kernels(x, n):
    y = x * 2 + n
    z = np.sqrt(np.abs(y)) - x
    return z, y.sum()


def opaque(x, n):
    return sorted(x, key=lambda v: -v * n), sum(v for v in x), TABLE


def _call(function, x, n):
    try:
        function(x, n)
    except ZeroDivisionError:
        pass


# What is called, its arguments by turns, settings. One side trace at most is allowed where exits are what is counted.
_WAYS = {
    "replays": (replayed, [1.5, 2.5], {}),
    "exits and failed guards": (leaves, [0, 1, 2], {"hot_exit": 1_000_000}),
    "side traces": (leaves, [0, 1, 2], {}),
    "exceptions in steps": (raises, [1, 0], {}),
    "exceptions not caught": (not_caught, [1, 0], {}),
    "failed type guards": (leaves, [3, 4.5, "a", None], {"hot_exit": 1_000_000}),
    "opaque calls": (opaque, [1, 2], {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS)
def test_neither_memory_nor_references(way):
    function, numbers, settings = _WAYS[way]
    jitted = ds.jit(store=False)(function)
    x = [1.0, 2.0, 3.0]
    watched = (
        x,
        x[0],
        BOX,
        BOX.v,
        TABLE,
        TABLE["k"],
        function,
        function.__code__,
        function.__globals__,
        Box,
        helper,
        raises_inner,
        None,
        True,
        *numbers,
    )
    rounds = ROUNDS // 5 // len(numbers) if way == "opaque calls" else ROUNDS // len(numbers)
    with stepped(**settings):
        for _ in range(300):
            for n in numbers:
                _call(jitted, x, n)
        gc.collect()
        references = [sys.getrefcount(o) for o in watched]
        objects, memory = len(gc.get_objects()), resident()
        with counting(jitted) as grown:
            for _ in range(rounds):
                for n in numbers:
                    _call(jitted, x, n)
        gc.collect()
        after = [sys.getrefcount(o) for o in watched]
    assert grown["replays"] == rounds * len(numbers)
    assert grown["recordings"] <= (4 if "exceptions" in way else 0)  # such an exit is tried again ever more seldom
    if way in ("exits and failed guards", "failed type guards"):
        assert grown["exits"] >= rounds
        assert grown["guard_failures"] >= rounds
    # One reference lost in each call would be thousands.
    assert [b - a for a, b in zip(references, after, strict=True) if abs(b - a) > 50] == []
    assert len(gc.get_objects()) - objects < 500
    assert resident() - memory < 4 << 20


@pytest.mark.slow
def test_kernels_launched_many_times():
    jitted = ds.jit(store=False)(kernels)
    x = np.arange(2000.0)
    with ds.config(background=False):
        for _ in range(100):
            jitted(x, 1.5)
        gc.collect()
        references, memory = sys.getrefcount(x), resident()
        with counting(jitted) as grown:
            for _ in range(ROUNDS // 5):
                jitted(x, 1.5)
        gc.collect()
    assert grown["kernel_launches"] >= grown["replays"] == ROUNDS // 5
    assert abs(sys.getrefcount(x) - references) < 50
    assert resident() - memory < 4 << 20


def test_long_loops_left_and_entered():
    def loop(items, stop):
        seen = 0
        for v in items:
            if v == stop:
                return v, seen
            seen += len(str(v))
        return None, seen

    jitted = ds.jit(store=False)(loop)
    items = [object() for _ in range(200)]
    with stepped():
        for _ in range(100):
            for stop in (None, items[150]):
                jitted(items, stop)
        references = [sys.getrefcount(o) for o in (items, items[0], items[150])]
        memory = resident()
        for _ in range(500):
            for stop in (None, items[150]):
                jitted(items, stop)
    assert [sys.getrefcount(o) for o in (items, items[0], items[150])] == references
    assert resident() - memory < 4 << 20


def test_recording_and_forgetting_again():
    def work(x, n):
        return [helper(v, BOX) for v in x], f"{n}", x[0] * n

    jitted = ds.jit(store=False)(work)
    x = [1.0, 2.0]
    watched = (x, x[0], BOX, TABLE, helper, helper.__code__, work, work.__code__, Box)

    def rounds(count):
        for _ in range(count):
            jitted.clear()
            for n in (1, 1, 2.5, 2.5, 2.5):
                jitted(x, n)

    with stepped():
        rounds(50)
        gc.collect()
        references, memory = [sys.getrefcount(o) for o in watched], resident()
        rounds(400)
        jitted.clear()
        gc.collect()
    assert [
        b - sys.getrefcount(o) for o, b in zip(watched, references, strict=True) if sys.getrefcount(o) - b > 50
    ] == []
    assert resident() - memory < 6 << 20
