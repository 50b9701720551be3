"""Numbers that native code puts into lists: what stood there alone becomes the new one."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.fuzz import equivalent
from tests.support import check


def filled(items: list[Any], first: Any, step: Any, kept: list[Any]) -> tuple[list[Any], list[Any], list[bool]]:
    value = first
    for _ in range(3):
        for k in range(len(items)):
            items[k] = value
            value += step
    found = [a is b for a in items for b in kept]
    return items, kept, found


STARTS = [
    (-40, 1),
    (240, 1),
    (-8, 3),
    (2**30 - 9, 1),
    (-(2**30) - 30, 2),
    (2**60, 2**57),
    (2**30 + 40, -2),
    (0.5, 0.25),
    (0, 0),
]


@pytest.mark.parametrize(("first", "step"), STARTS)
def test_an_item_that_nobody_else_holds_becomes_the_new_one(first: Any, step: Any) -> None:
    for held in (250, -1000, 2**30 - 9, -(2**30), 2**40, 1.5):
        numbers = [held + k for k in range(20)]
        kept = numbers[::3]
        check(filled, (numbers, first, step, kept), (numbers[::-1], first, step, kept))
    equivalent(filled, *[([k * 50 - 300 for k in range(30)], first, step, [])] * 5, engines=["native"])


def shared(rounds: int) -> tuple[list[int], list[int], bool]:
    """The number that a variable, a tuple or another list holds stays as it is."""
    a = [k + 1000 for k in range(8)]
    b = list(a)
    for k in range(rounds):
        at = k % 8
        old = a[at]
        pair = (old, a[(k + 1) % 8])
        a[at] = old + k * 7
        if k % 5 == 0:
            b[at] = pair[0]
    return a, b, old is b[at]


def test_a_number_that_is_held_elsewhere_stays() -> None:
    check(shared, (8,), (50,), (200,), (3,))
    equivalent(shared, *[(100,), (37,)] * 4, engines=["native", "background"])


def best_of(best: list[Any], numbers: list[Any]) -> tuple[list[Any], list[bool]]:
    """What is stored is what the variable holds, the very object; what stood there dies, or becomes the next box."""
    found = []
    for _ in range(4):
        for k, number in enumerate(numbers):
            taken = best[k] + number
            if taken > best[k - 1]:
                best[k] = taken
            found.append(taken is best[k])
            best[k] = best[k]
    return best, found


def test_what_is_stored_is_the_variables_object() -> None:
    for start, step in ((0, 100), (2**29, 2**28), (-(2**61), 2**59), (0.5, 1.5), (2**62, 2**60)):
        numbers = [step + k for k in range(12)]
        check(best_of, ([start] * 12, numbers), ([start - 5 * k for k in range(12)], numbers))
    equivalent(best_of, *[([0] * 9, [70 * k for k in range(9)])] * 5, engines=["native"])


def flags(size: int, step: int) -> tuple[list[Any], list[bool]]:
    marks: list[Any] = [300, True, 2.5, False, 10**20] * size
    for k in range(0, len(marks), step):
        marks[k] = k % 2 == 0
    return marks, [mark is True or mark is False for mark in marks]


def test_bools_take_the_place_of_anything() -> None:
    check(flags, (6, 1), (9, 2), (4, 3))


def taken_apart(rows: list[Any]) -> tuple[Any, list[Any]]:
    total, seen = 0, []
    for a, b, c in rows:
        total = total + a * c
        seen.append(b)
    return total, seen


def test_tuples_are_taken_apart() -> None:
    rows = [(k, str(k), 2.0 * k) for k in range(30)]
    check(taken_apart, (rows,), ([(k * 1000, [k], -k) for k in range(30)],), ([[k, None, 1] for k in range(9)],))
    check(taken_apart, (rows,), ([*rows, (1, 2)],), ([*rows, (1, 2, 3, 4)],), ([*rows, "abc"],), ([*rows, 7],))
    equivalent(taken_apart, *[(rows,)] * 4, engines=["native", "background"])


def extremes(items: list[Any], others: list[Any]) -> tuple[Any, list[Any]]:
    """min, max, abs, int and float give one of their arguments, the very object."""
    found: list[Any] = []
    best = items[0]
    for k in range(len(items)):
        low, high = min(items[k], others[k]), max(items[k], others[k], best)
        size = abs(items[k])
        same = type(best)(items[k])
        found += [low is items[k], low is others[k], high is items[k], high is best, size is items[k], same is items[k]]
        found += [low, high, size, same]
        best = max(best, others[k])
        others[k - 1] = min(others[k], items[k])
    return best, found


def test_what_gives_an_argument_gives_the_object() -> None:
    whole = [(k * 7919) % 4001 - 2000 for k in range(40)]
    floats = [0.5 * v for v in whole]
    check(extremes, (whole, whole[::-1]), (whole[3:], whole[:-3]), ([2**62, *whole], [1, *whole]))
    check(extremes, (floats, floats[::-1]), ([*floats, float("nan"), 0.0, -0.0], [*floats, 1.0, -0.0, 0.0]))
    equivalent(extremes, *[(list(whole), whole[::-1])] * 4, engines=["native", "background"])
