"""Cells read, and iterators over tuples made, by loops that are native code."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import dalsegno as ds
from dalsegno.fuzz import equivalent
from tests.support import check, stepped


def test_a_number_in_a_cell_that_changes() -> None:
    def work(n: int, step: int) -> tuple[int, int]:
        width = 3
        total = 0

        def widen() -> None:
            nonlocal width
            width = width + step

        for i in range(n):
            total += i % width
            if i % 17 == 5:
                widen()
        return total, width

    check(work, (60, 1), (200, 3), (200, 2**61), rounds=4)


@pytest.mark.parametrize("other", [2.5, True, None, "text", 2**70])
def test_what_a_cell_holds_becomes_something_else(other: Any) -> None:
    def work(n: int, when: int, other: Any) -> Any:
        width: Any = 3

        def held() -> Any:
            return width

        total = 0.0
        for i in range(n):
            if i == when:
                width = other
            total += (width or 1) if not isinstance(width, str) else 7
        return total, held()

    check(work, (60, 99, other), (60, 30, other), (60, 0, other), rounds=3)


@pytest.mark.parametrize("when", [0, 7, 50, 99])
def test_a_cell_that_becomes_empty(when: int) -> None:
    def work(n: int, when: int) -> list[Any]:
        width = 3
        log: list[Any] = []

        def empty() -> None:
            nonlocal width
            del width

        try:
            for i in range(n):
                if i == when:
                    empty()
                log.append(i % width)
        except NameError as e:
            log.append(str(e))
        return log

    equivalent(work, *[(60, when)] * 4, engines=["native"])


def test_cells_keep_no_reference_too_many() -> None:
    def work(n: int, held: list[int]) -> int:
        def see() -> list[int]:
            return held

        total = len(see())
        for i in range(n):
            total += held[i % 3]
        return total

    jitted = ds.jit(store=False)(work)
    held = [1000, 2000, 3000]
    counts = sys.getrefcount(held), [sys.getrefcount(v) for v in held]
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            assert jitted(50, held) == work(50, held)
    assert (sys.getrefcount(held), [sys.getrefcount(v) for v in held]) == counts


def test_cells_are_read_natively() -> None:
    def work(n: int, width: int) -> int:
        def see() -> int:
            return width

        total = see()
        for i in range(n):
            total += i % width
        return total

    jitted = ds.jit(store=False)(work)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(60, 7)
        loops = [trace["native"] for trace in jitted.explain().to_dict()["traces"] if trace["native"] is not None]
    assert loops
    assert all(not native["called"] for native in loops)


COLLECTED = """
import gc
FACTOR = 2

class Node:
    def __init__(self, value):
        self.me = self
        self.value = value
    def __del__(self):
        global FACTOR
        FACTOR = self.value

def scale(x):
    return x + 1

def other(x):
    return x + 1000

class Renaming(Node):
    def __del__(self):
        global scale
        scale = other

def young(make):
    gc.disable()
    make(9)
    gc.enable()

def work(n, make):
    t = 0
    for i in range(n):
        if i == 40:
            young(make)
        for di in (-1, 0, 1):
            for dj in (i, di, 2):
                if di or dj:
                    t = t + FACTOR * dj + scale(di)
    return t
"""


@pytest.mark.parametrize("name", ["Node", "Renaming"])
def test_a_finaliser_that_a_collection_runs_as_an_iterator_is_made(name: str) -> None:
    """Where it runs is the collector's business; that what it changed holds from then on is ours."""
    before = gc.get_threshold()
    space: dict[str, Any] = {}
    exec(COLLECTED, space)
    plain, first = space["work"], space["scale"]
    jitted = ds.jit(store=False)(plain)
    unchanged = plain(120, int)

    def changed(work: Any) -> Any:
        gc.collect()
        space["FACTOR"], space["scale"] = 2, first
        gc.set_threshold(1)
        try:
            return work(120, space[name])
        finally:
            gc.set_threshold(*before)

    if changed(plain) == unchanged:
        pytest.skip("this interpreter's collector (3.14) does not come to it within the loop")
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(4):
            jitted(80, int)
        for _ in range(3):
            assert changed(jitted) > unchanged
    assert changed(plain) > unchanged


def test_loops_over_tuples_inside_loops() -> None:
    def work(board: list[list[int]], steps: int) -> list[list[int]]:
        height, width = len(board), len(board[0])
        for _ in range(steps):
            after = [[0] * width for _ in range(height)]
            for i in range(height):
                for j in range(width):
                    n = 0
                    for di in (-1, 0, 1):
                        for dj in (-1, 0, 1):
                            if di or dj:
                                n += board[(i + di) % height][(j + dj) % width]
                    after[i][j] = 1 if n == 3 or (n == 2 and board[i][j]) else 0
            board = after
        return board

    board = [[(i * j + i // 2) % 3 == 1 and 1 or 0 for j in range(9)] for i in range(7)]
    equivalent(work, *[(board, 3)] * 4, engines=["native"])
