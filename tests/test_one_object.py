"""A number of which two variables are names is one object, however loops carry it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dalsegno.fuzz import equivalent
from tests.support import check


def carried(n: int, x: Any) -> tuple[bool, Any]:
    y = None
    for _ in range(n):
        x = x * 3 + 1
        y = x
    return x is y, x


def through_an_inner_loop(n: int, x: Any) -> tuple[list[bool], int]:
    y, turns, same = x, 0, []
    for _ in range(n):
        x = x * 3 + 1
        y = x
        for _ in range(3):
            turns += 1
        same.append(x is y)
        z = y
        while turns % 7:
            turns += 1
        same.append(z is x)
    return same, turns


def found_by_identity(n: int, x: float) -> list[bool]:
    y, found = x, []
    for _ in range(n):
        x = x - x
        y = x
        for _ in range(2):
            x = y
        found.append(y in [x])
    return found


def equal_but_two(n: int, x: Any) -> tuple[bool, bool]:
    y = x
    for _ in range(n):
        y = x * 3 + 1
        z = x * 3 + 1
        x = y
    return y is z, x is y


@pytest.mark.parametrize("function", [carried, through_an_inner_loop, equal_but_two])
@pytest.mark.parametrize("x", [0.5, 1000, 2**40])
def test_two_names(function: Callable[..., Any], x: Any) -> None:
    check(function, (30, x))
    equivalent(function, *[(30, x)] * 5, engines=["native"])


def test_nan_is_found_in_a_list_of_itself() -> None:
    check(found_by_identity, (30, float("inf")))
    equivalent(found_by_identity, *[(30, float("inf"))] * 5, engines=["native"])


def compensated(values: list[float]) -> tuple[float, float, bool, list[float]]:
    total = rest = 0.0
    kept = []
    for value in values:
        y = value - rest
        t = total + y
        rest = (t - total) - y
        total = t
        if value > 0.9:
            kept.append(t)
            kept.append(total)
    return total, rest, t is total, kept


def test_a_box_that_was_given_away_is_not_used_again() -> None:
    values = [k * 0.37 % 1.0 for k in range(200)]
    check(compensated, (values,))
    equivalent(compensated, *[(values,)] * 5, engines=["native", "background"])


def test_a_box_that_an_exception_leaves_behind() -> None:
    def go(values: list[float], at: int) -> tuple[float, float]:
        x = y = 0.0
        i = 0
        try:
            for value in values:
                x = x * 0.5 + value
                y = x
                i += 1
                if i == at:
                    raise ValueError(x is y)
        except ValueError as error:
            return x + y, float(error.args[0])
        return x, y

    values = [k * 0.37 % 1.0 for k in range(200)]
    check(go, (values, 300), (values, 150), (values, 1))
    equivalent(go, *[(values, 300), (values, 150)] * 4, engines=["native"])


def in_rounds(rounds: int, turns: int, start: Any, kept: list[Any]) -> tuple[Any, bool, list[Any]]:
    """What an inner loop only carries is looked at, and shown, where it goes on otherwise than at first."""
    x = y = start
    total = 0
    for k in range(rounds):
        step = start * k + start  # the first turn of the inner loop leaves it
        other = step
        for i in range(turns):
            total += 1
            if i >= k:
                break
            x = step + i
            if i % 3 == 1:
                kept.append(step)
                kept.append(other is step)
            y = step
            if total > 60 and i == 2:
                return x, y is step, kept
    return x, y is other, kept


@pytest.mark.parametrize("start", [2, 3.5, 2**40, 2**62, True])
def test_a_side_trace_takes_unboxed_what_its_loop_only_carries(start: Any) -> None:
    calls = [(rounds, turns, start, []) for rounds, turns in ((3, 4), (9, 5), (12, 12), (40, 6), (2, 2))]
    check(in_rounds, *calls)
    equivalent(in_rounds, *calls * 4, engines=["native", "background"])
