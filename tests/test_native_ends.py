"""Loops over lists and tuples inside loops end natively, and side traces know what waits on the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import counting, stepped
from tests.test_native_loops import check

OFFSETS = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def around(n: int, offsets: Any) -> Any:
    total = 0
    for i in range(n):
        for a, b in offsets:
            total += a * i - b
    return total


def flat(n: int, items: Any) -> Any:
    total = 0
    for i in range(n):
        for x in items:
            if x > 2:
                continue
            total += x * i
    return total


def growing(n: int) -> Any:
    items, seen = [1], []
    for i in range(n):
        for x in items:
            seen.append(x + i)
        if i % 3 == 0:
            items.append(i)
    return seen


def grows_while_it_runs(n: int) -> Any:
    out = []
    for i in range(n):
        items = [1]
        for x in items:
            if x < i % 5:
                items.append(x + 1)
        out.append(len(items))
    return out


def chosen(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        out.append(i if i % 3 else -i)
        out.append(max(0, i - 5 if i % 7 < 4 else 2))
    return out


def chosen_function(n: int) -> Any:
    total = 0
    for i in range(n):
        total += (abs if i % 4 else float)(i if i % 3 else -i)
    return total


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (around, [(60, OFFSETS), (60, tuple(OFFSETS)), (9, []), (60, [(1, 2)]), (60, [(1, 2.5), (2, 1)])]),
        (flat, [(60, [1, 2, 3]), (60, (1, 2, 3)), (60, []), (60, [3]), (60, [1.5, 7, 2])]),
        (growing, [(40,), (1,)]),
        (grows_while_it_runs, [(60,), (3,)]),
        (chosen, [(60,), (2,)]),
        (chosen_function, [(60,), (2,)]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_as_eager(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    check(function, *calls)


def test_the_nest_is_native() -> None:
    for function, args in ((flat, (3000, [1, 2, 3])), (chosen, (3000,))):
        jitted = ds.jit(store=False)(function)
        with stepped(step_aside=False, hot_loop=1):
            for _ in range(8):
                jitted(*args)
            with counting(jitted) as grown:
                jitted(*args)
        assert grown["steps"] < 4000, function


def extremes_of_constants(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        if i % 3 == 1:
            out.append(max(0, 2))
            out.append(i)
        elif i % 3 == 2:
            k = i * 5 % 1000
            out.append("x")
            out.append(max(k, 700))
            out.append(min(k, 300))
        else:
            out.append(max(7, i, 400))
            out.append(abs(-500))
            out.append(int(700))
    return out


def test_extremes_of_constants_in_side_traces() -> None:
    check(extremes_of_constants, (900,), (7,))


def sum_behind(a: Any, b: int) -> Any:
    for _, _ in zip(*[iter((0, b))] * 2, strict=False):
        pass
    return a + b


def test_what_the_trace_of_a_loop_returns_itself_is_no_longer_lost() -> None:
    """It ends at a return, of a number computed natively (the fuzzer's seed 93151)."""
    jitted = ds.jit(store=False)(sum_behind)
    with stepped(step_aside=False, hot_loop=1):
        for k in range(6):
            assert jitted(np.float64(k), 2) == sum_behind(np.float64(k), 2)
