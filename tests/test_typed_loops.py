"""Loop variables whose types change: a loop trace for each set of types, a few of them, and eager's results."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting, settles, stepped


def becomes_float(n: int) -> Any:
    t = 0
    for i in range(n):
        if i == 5:
            t = 0.5
        t = t + 1
    return t


def test_an_int_that_becomes_a_float_settles_in_a_loop_of_its_own() -> None:
    check(becomes_float, (4,), (50,), (3,))
    settles(becomes_float, (50,))
    jitted = ds.jit(store=False)(becomes_float)
    with stepped(step_aside=False):
        for _ in range(100):
            jitted(60)
        with counting(jitted) as grown:
            for _ in range(10):
                jitted(60)
    assert jitted.stats["side_traces"] <= 4, jitted.explain()
    assert grown["exits"] == 0


def test_a_variable_that_changes_its_type_at_every_turn() -> None:
    def turns(n: int) -> Any:
        t: Any = 0
        for _ in range(n):
            t = t + 0.5 if isinstance(t, int) else int(t) + 1
        return t

    check(turns, (9,), (40,))
    settles(turns, (40,))


def test_more_types_than_loops() -> None:
    def total(items: Any) -> Any:
        t: Any = 0
        for x in items:
            t = t * 0 + x
            if t != x:
                return None
        return t

    values = [1, 0.5, True, np.float64(1.5), np.float32(2.5), np.int64(3), np.int32(4), 2j, 10**30, np.bool_(True)]
    for k in range(len(values)):
        check(total, (values[k:] + values[:k],), ([values[k]] * 5,), rounds=2)


@pytest.mark.parametrize("start", [0, 0.0, True, np.float64(0), np.float32(0), np.int64(0), np.int32(0), 10**30])
def test_what_a_loop_begins_with(start: Any) -> None:
    def total(start: Any, data: Any) -> Any:
        t = start
        i = 0
        while i < len(data):
            t = t + data[i]
            i += 1
        return t

    for dtype in ("float64", "float32", "int64", "int32", "bool"):
        check(total, (start, np.arange(9).astype(dtype)), (0, np.arange(9).astype(dtype)), rounds=2)


def test_two_loops_one_inside_the_other_with_other_types() -> None:
    def work(n: int) -> Any:
        out = []
        t: Any = 0
        for i in range(n):
            s: Any = t
            for j in range(4):
                s = s + j * (0.5 if i % 3 == 2 else 1)
            out.append(s)
            t = 0 if i % 2 else np.float64(i)
        return out

    check(work, (12,), (3,))
    settles(work, (12,), warm_up=40)


def test_ints_too_large_for_a_register_and_loops_of_their_own() -> None:
    def power(n: int) -> Any:
        t: Any = 1
        for i in range(n):
            t = t * 3
            if i == 60:
                t = float(t)
        return t

    check(power, (30,), (50,), (80,), (30,))
