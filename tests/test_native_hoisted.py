"""Loops over ranges whose elements are looked at once, as the loop is entered (replay/native/ir_hoisted.cc)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
from tests.native_kit import same

TURNS = 40


def neighbours(a, start, stop, step, before, behind):
    total = 0.0
    for i in range(start, stop, step):
        total += a[i - 1] * 2 + a[i + 2] - a[i]
        a[i] = total
    return total, before, behind


def numbers() -> Any:
    return np.arange(TURNS) * 0.5


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3])
def test_places_around_the_item(step: int) -> None:
    def call(start: int, stop: int, make: Callable[[], Any] = numbers) -> Callable[[], tuple[Any, ...]]:
        ends = (start, stop) if step > 0 else (stop - 1, start - 1)
        return lambda: (make(), *ends, step, 0, 0)

    same(
        neighbours,
        call(1, TURNS - 2),
        call(0, TURNS - 2),  # the first place wraps
        call(1, TURNS),  # the last one is out of bounds
        call(-5, 9),
        call(-TURNS - 4, 3),
        call(5, 5),
        call(9, 2),
        call(1, TURNS - 2, lambda: numbers()[::-1]),
        call(1, TURNS // 2 - 2, lambda: np.repeat(numbers(), 2)[::4]),
    )


def test_arrays_that_may_not_be_written() -> None:
    def frozen() -> Any:
        a = numbers()
        a.flags.writeable = False
        return a

    same(neighbours, lambda: (numbers(), 1, 20, 1, 0, 0), lambda: (frozen(), 1, 20, 1, 0, 0))


def test_arrays_of_other_types_and_ranks_come_in() -> None:
    same(
        neighbours,
        lambda: (numbers(), 1, 20, 1, 0, 0),
        lambda: (numbers().astype(np.float32), 1, 20, 1, 0, 0),
        lambda: (np.ones((TURNS, 2)), 1, 20, 1, 0, 0),
        lambda: (list(range(TURNS)), 1, 20, 1, 0, 0),
        lambda: (np.ones(0), 1, 20, 1, 0, 0),
    )


def grid(a, k, n, m):
    for i in range(n):
        for j in range(m):
            a[i, j] = a[i - 1, j] + a[k, j + 1] * 0.5 + a[i, 0]
    return a[k, 0]


def test_rows_that_the_inner_loop_does_not_change() -> None:
    def made(n: int, m: int, k: int, shape: tuple[int, int] = (9, 12)) -> Callable[[], tuple[Any, ...]]:
        return lambda: (np.arange(float(shape[0] * shape[1])).reshape(shape), k, n, m)

    same(
        grid,
        made(8, 11, 3),
        made(8, 11, -2),  # a row counted from the end
        made(8, 12, 3),  # out of bounds at the end of each row
        made(10, 11, 3),
        made(8, 11, 9),
        made(8, 11, 2**62),
        made(8, 11, -(2**63)),
        lambda: (np.asfortranarray(np.ones((9, 12))), 3, 8, 11),
        made(0, 0, 99),
    )


def guarded(a, n):
    total = 0.0
    for i in range(n):
        if i > 0:
            total += a[i - 1]
        if i < n - 1:
            total -= a[i + 1]
    return total


def test_elements_that_are_asked_for_on_one_side_only() -> None:
    same(guarded, lambda: (numbers(), TURNS), lambda: (numbers(), TURNS + 1), lambda: (numbers(), 1))


def shrinking(a, n, cut):
    total = 0.0
    for i in range(n):
        if i == cut:
            a.resize(4, refcheck=False)
        total += a[i]
    return total


def test_an_array_that_is_resized_in_the_loop() -> None:
    same(shrinking, lambda: (numbers(), 30, 99), lambda: (numbers(), 30, 20), lambda: (numbers(), 30, 2))


def swapping(a, b, n):
    for _ in range(6):
        for i in range(1, n):
            b[i] = a[i - 1] + 1
        a, b = b, a
    return a.sum()


def test_arrays_that_change_places_between_loops() -> None:
    same(
        swapping,
        lambda: (numbers(), numbers() * 2, 30),
        lambda: (numbers(), np.ones(20), 30),
        lambda: (np.ones(20), numbers(), 20),
    )


def far(a, k, n):
    total = 0
    for i in range(n):
        total += a[i + k] + (k - 1)
        k_next = k + 1
        total += k_next - k
    return total


def test_places_far_away_do_not_wrap_around() -> None:
    same(
        far,
        lambda: (np.arange(50), 3, 40),
        lambda: (np.arange(50), 2**63 - 1, 40),
        lambda: (np.arange(50), -(2**63), 40),
        lambda: (np.arange(50), 2**64, 40),
        lambda: (np.arange(50), -30, 40),
        lambda: (np.arange(50), 3, 2**40),
    )
