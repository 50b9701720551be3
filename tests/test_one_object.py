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
