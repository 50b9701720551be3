"""Ranges that are iterated over at once are not built; their iterators are seen by nobody but their loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dalsegno.fuzz import equivalent
from tests.support import check


def both(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """As steps and as native code."""
    check(function, *calls)
    equivalent(function, *[made for made in calls for _ in range(3)], *calls * 3, engines=["native"])


def triangle(n: int, m: int, step: int) -> tuple[int, int]:
    turns = last = 0
    for i in range(n):
        for j in range(i, m, step):
            turns, last = turns + 1, j
        for j in range(m - i):
            turns += j
    return turns, last


def test_bounds_that_are_computed() -> None:
    both(triangle, (12, 9, 2), (12, 0, 1), (9, -9, -1), (30, 30, 3))


def test_a_step_of_0_raises_where_the_range_is_made() -> None:
    both(triangle, (5, 9, 1), (5, 9, 0))


HUGE = 2**63


ENDS = [(HUGE - 4, 1), (HUGE - 2, 3), (HUGE + 1, 1), (-HUGE + 2, -1), (-HUGE, -5), (-HUGE - 1, 1)]


@pytest.mark.parametrize(("first", "step"), ENDS)
def test_values_at_the_ends_of_a_machine_word(first: int, step: int) -> None:
    def go(first: int, step: int) -> tuple[int, int]:
        turns = last = 0
        for _ in range(20):
            for j in range(first, first + 4 * step, step):
                turns, last = turns + 1, j
        return turns, last

    both(go, (5, 1), (first, step))


def test_the_whole_length_of_a_machine_word() -> None:
    def go(first: int, last: int, step: int) -> int:
        seen = 0
        for _ in range(20):
            for j in range(first, last, step):
                seen ^= j
                if seen & 3:
                    break
        return seen

    last = HUGE - 1
    both(go, (0, 9, 1), (-HUGE, last, 1), (last, -HUGE, -1), (0, last, last), (-HUGE, last, last))


def test_an_iterator_with_a_name_goes_on_where_the_loop_was_left() -> None:
    def go(n: int, leave: int) -> tuple[int, list[int]]:
        numbers = iter(range(n))
        turns = 0
        for i in numbers:
            turns += 1
            if i == leave:
                break
        return turns, list(numbers)

    both(go, (40, 20), (40, 39), (40, 100), (0, 0))


def test_two_loops_share_an_iterator() -> None:
    def go(n: int, k: int) -> list[tuple[int, int]]:
        numbers = iter(range(n))
        pairs = []
        for i in numbers:
            for j in numbers:
                pairs.append((i, j))
                if j % k == 0:
                    break
        return pairs

    both(go, (60, 7), (60, 1), (61, 100))


def test_an_iterator_that_is_advanced_by_hand() -> None:
    def go(n: int) -> tuple[int, int]:
        numbers = iter(range(n))
        turns = skipped = 0
        for i in numbers:
            turns += i
            skipped += next(numbers, -1)
        return turns, skipped

    both(go, (60,), (61,))


def test_an_argument_that_is_no_int() -> None:
    class Index:
        def __init__(self, value: int) -> None:
            self.value = value

        def __index__(self) -> int:
            return self.value

    def go(n: Any) -> int:
        total = 0
        for _ in range(6):
            for j in range(n):
                total += j
        return total

    both(go, (9,), (True,), (Index(5),), (2.0,), (None,))


def test_an_exception_inside_shows_how_far_both_loops_have_come() -> None:
    def go(n: int, rows: list[list[int]]) -> int:
        total = 0
        for i in range(n):
            row = rows[i]
            for j in range(len(row) + 1):
                total += row[j]
        return total

    def rows(*lengths: int) -> tuple[int, list[list[int]]]:
        return len(lengths), [list(range(n)) for n in lengths]

    both(go, rows(3, 3, 3, 0), rows(0, 2), (0, []))


def test_a_generator_is_left_with_its_ranges_as_they_were() -> None:
    def pairs(n: int) -> Iterator[tuple[int, int]]:
        for i in range(n):
            for j in range(i):
                yield i, j

    def go(n: int, most: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        source = pairs(n)
        first = []
        for pair in source:
            first.append(pair)
            if len(first) == most:
                break
        return first, list(source)

    both(go, (12, 20), (12, 1), (3, 100))


def test_a_loop_that_is_met_first_where_it_ends() -> None:
    def go(n: int) -> tuple[int, list[int]]:
        total, lengths = 0, []
        for i in range(n):
            for j in range(i):
                total += i * j
            lengths.append(total)
            for j in range(i - 2, -1, -1):
                total -= j
        return total, lengths

    both(go, (3,), (25,), (0,))
