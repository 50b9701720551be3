"""What a turn stores and the next one loads stays in a variable (replay/native/ir_forwarded.cc)."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.native_kit import Make, same

TURNS = 24


def numbers(dtype: Any = float) -> Any:
    return (np.arange(TURNS) * 3 % 7 + 1).astype(dtype)


def average(y, x, start, stop, step):
    for i in range(start, stop, step):
        y[i] = x[i] * 2 + y[i - 1]
    return y


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_one_place_before(step: int) -> None:
    def call(start: int, stop: int, layout: Any = lambda a: a) -> Make:
        ends = (start, stop) if step > 0 else (stop - 1, start - 1)
        return lambda: (layout(numbers()), numbers(), *ends, step)

    same(
        average,
        call(1, TURNS),
        call(0, TURNS),  # the first place wraps: the last element
        call(5, 5),
        call(3, 4),
        call(1, TURNS + 1),  # out of bounds at the end
        call(1, TURNS, lambda a: a[::-1]),
        call(1, TURNS // 2, lambda a: np.repeat(a, 2)[::4]),
    )


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?", "u8", "c16"])
def test_elements_of_each_kind(dtype: str) -> None:
    same(
        average, lambda: (numbers(dtype), numbers(dtype), 1, TURNS, 1), lambda: (numbers(dtype), numbers(), 1, TURNS, 1)
    )


def test_numbers_that_are_none() -> None:
    def odd(*values: float) -> Make:
        def make() -> tuple[Any, ...]:
            x = numbers()
            x[4 : 4 + len(values)] = values
            return numbers(), x, 1, TURNS, 1

        return make

    same(average, odd(), odd(np.nan), odd(np.inf), odd(np.inf, -np.inf), odd(-0.0), odd(1e308, 1e308))


def test_what_is_stored_to_overlaps_what_is_read() -> None:
    def shifted(by: int) -> Make:
        def make() -> tuple[Any, ...]:
            a = numbers()
            return a[by:], a[: TURNS - by], 1, TURNS - by, 1

        return make

    def on_itself() -> tuple[Any, ...]:
        return np.lib.stride_tricks.as_strided(numbers(), (TURNS,), (0,)), numbers(), 1, TURNS, 1

    same(average, shifted(0), shifted(1), shifted(2), shifted(5), on_itself)


def two_stores(y, n):
    for i in range(2, n):
        a = y[i - 1]
        y[i] = a + 1
        b = y[i - 1] + y[i]
        y[i - 1] = b
    return y


def behind_the_store(y, n):
    total = 0.0
    for i in range(1, n):
        y[i] = total + 1
        total += y[i - 1] + y[i]
    return total, y


def further(y, n):
    for i in range(2, n - 1):
        y[i] = y[i - 1] * 0.5 + y[i - 2] - y[i + 1]
    return y


def ahead(y, n):
    for i in range(1, n - 1):
        y[i] = y[i + 1] * 0.5 - y[i - 1]
    return y


def by_one_way_only(y, x, n):
    for i in range(1, n):
        v = y[i - 1] + 1
        if x[i] > 3:
            y[i] = v
    return y


def by_both_ways(y, x, n):
    for i in range(1, n):
        v = y[i - 1]
        if x[i] > 3:
            y[i] = v * 2
        else:
            y[i] = v + x[i - 1]
    return y


def to_other_places(y, x, n):
    for i in range(1, n - 1):
        v = y[i - 1]
        if x[i] > 3:
            y[i] = v * 2
        else:
            y[i + 1] = v + 1
    return y


def left_in_the_middle(y, x, n):
    for i in range(1, n):
        y[i] = y[i - 1] + 1
        if x[i] == 7:
            break
        if x[i] == 5:
            continue
        y[0] = 1
    return y, i


@pytest.mark.parametrize("function", [two_stores, behind_the_store, further, ahead])
def test_other_stores_and_loads(function: Any) -> None:
    same(
        function,
        lambda: (numbers(), TURNS),
        lambda: (numbers(), TURNS + 1),
        lambda: (numbers("i8"), TURNS),
        lambda: (numbers()[::-1], TURNS),
    )


@pytest.mark.parametrize("function", [by_one_way_only, by_both_ways, to_other_places, left_in_the_middle])
def test_stores_in_branches(function: Any) -> None:
    same(
        function,
        lambda: (numbers(), numbers(), TURNS),
        lambda: (numbers(), numbers()[::-1], TURNS),
        lambda: (numbers(), numbers(), TURNS + 2),
    )


def table(a, x, n, m):
    for i in range(1, n):
        for j in range(1, m):
            a[i, j] = min(a[i - 1, j], a[i, j - 1], a[i - 1, j - 1]) + x[i, j]
    return a


def diagonal(a, n):
    for i in range(1, n):
        a[i, i] = a[i - 1, i - 1] + a[i, i - 1] * 0.5
    return a


def test_tables() -> None:
    def square(layout: Any = lambda a: a) -> Any:
        return layout(np.arange(63.0).reshape(9, 7) * 5 % 11)

    same(
        table,
        lambda: (square(), square(), 9, 7),
        lambda: (square(np.asfortranarray), square(), 9, 7),
        lambda: (square(lambda a: a[::-1, ::-1]), square(), 9, 7),
        lambda: (square(), square(), 9, 8),
        lambda: (square(), square(), 9, 1),
    )
    same(diagonal, lambda: (square(), 7), lambda: (square(), 8))


def bits(x, n):
    out = []
    for k in range(n):
        crc = x ^ k << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF if crc & 0x8000 else (crc << 1) & 0xFFFF
        out.append(crc)
    return out


def test_ways_of_a_turn_that_come_together() -> None:
    same(bits, lambda: (0xFFFF, 20), lambda: (0, 20), lambda: (True, 3), lambda: (1 << 70, 3))


def constants(x, log, n):
    """Side traces of side traces whose constants steps look at, other ones in between."""
    for i in range(n):
        if x[i] > 2:
            if x[i] > 4:
                log.append((i, "high", 1.5))
            else:
                log.append((i, "mid", 2.5))
        elif x[i] > 1:
            log.append((i, "low", 3.5, i * 3))
    return log


def test_constants_of_side_traces_that_others_have_written_over() -> None:
    same(constants, lambda: (numbers(), [], TURNS), lambda: (numbers("i8").tolist(), [], TURNS))
