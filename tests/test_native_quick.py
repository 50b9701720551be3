"""Ops that run no code are called by native code without the machine: lists, tuples and texts made in loops."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.support import stepped
from tests.test_native_loops import check


def made(n: int) -> Any:
    out = []
    for i in range(n):
        row = [0] * (i % 5)
        pair = (i, i * 0.5)
        out.append([i, pair, str(i), len(row), row + [1], (1,) + pair])
    return out


def texts(n: int) -> Any:
    s = ""
    for i in range(n):
        s += "ab"[i % 2] + f"{i:3d}"
        if "a1" in s:
            s = s[-5:].upper()
    return s


def tables(n: int) -> Any:
    out = []
    for i in range(n):
        out.append({"a": i, "b": (i, -i)})
        out.append(sorted([i, 3, i % 7]))
        out.append((i, 2) == (i % 9, 2))
    return out


def refused(values: list[Any]) -> Any:
    out: list[Any] = []
    for v in values:
        try:
            out.append([1] * v)
            out.append((1, 2) + v)
        except TypeError as error:
            out.append(str(error))
    return out


@pytest.mark.parametrize("function", [made, texts, tables])
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, (80,), (1,), (200,))


def test_what_they_refuse() -> None:
    check(refused, ([1] * 40,), ([1, (1,), "x", 2, 1.5] * 9,))


def test_collections_in_between() -> None:
    """Each allocation collects, and what is collected runs code."""
    seen = []

    class Cycle:
        def __init__(self) -> None:
            self.self = self

        def __del__(self) -> None:
            seen.append(1)

    def work(n: int) -> Any:
        out = []
        for i in range(n):
            out.append((i, [i, i]))
            if i % 50 == 0:
                Cycle()
        return out

    threshold = gc.get_threshold()
    jitted = ds.jit(store=False)(work)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(4):
            jitted(60)
        gc.set_threshold(5)
        try:
            for _ in range(4):
                assert jitted(300) == [(i, [i, i]) for i in range(300)]
        finally:
            gc.set_threshold(*threshold)
    gc.collect()
    assert len(seen) == 4 * 2 + 4 * 6
