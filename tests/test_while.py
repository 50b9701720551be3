"""Loops with tests of all kinds: where their traces begin, and that they leave as they should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.support import check, stepped


def sums_of_digits(limit: int, base: int) -> int:
    total = 0
    for number in range(limit):
        while number:
            number, digit = number // base, number % base
            total += digit
    return total


def longest(limit: int) -> int:
    best = 0
    for start in range(1, limit):
        n, length = start, 1
        while n != 1 and length < 500:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        best = max(best, length)
    return best


@pytest.mark.parametrize("function", [sums_of_digits, longest])
def test_a_loop_that_ended_after_one_turn_as_it_was_recorded_has_a_trace_of_a_turn(function: Any) -> None:
    arguments = (30, 10)[: function.__code__.co_argcount]
    check(function, arguments)
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False):
        for _ in range(4):
            jitted(*arguments)
    traces = {trace["number"]: [op["text"] for op in trace["ops"]] for trace in jitted.traces()}
    jumps = {int(text.split()[-1]) for ops in traces.values() for text in ops if text.startswith("jump trace")}
    assert len(jumps) > 1
    assert [number for number in jumps if not any("//" in text for text in traces[number])] == []


def both(n: int, m: int, out: list[Any]) -> None:
    while n > 2 and m < 90:
        n -= 1
        if n % 5 == 0:
            continue
        if n == 17:
            break
        m += 1
        out.append((n, m))


def either(n: int, m: int, out: list[Any]) -> None:
    while n > 2 or m < 60:
        n -= 1
        m += 2
        out.append((n, m))


def broken(n: int, m: int, out: list[Any]) -> None:
    while True:
        n -= 1
        if n < 3:
            break
        out.append(n)


def broken_at_once(n: int, m: int, out: list[Any]) -> None:
    while True:
        if n < 3:
            break
        if n % 7 == 0:
            n -= 2
            continue
        n -= 1
        out.append(n)


def chained(n: int, m: int, out: list[Any]) -> None:
    while not (n < m < 500):
        n -= 3
        m += 1
        out.append((n, m))
    else:
        out.append("else")


def nested(n: int, m: int, out: list[Any]) -> None:
    while n:
        k = n % 4
        while k:
            k -= 1
            while k == 2:
                k = 1
            out.append(k)
        n -= 1


def assigned(n: int, m: int, out: list[Any]) -> None:
    while (n := n - 1) > 3:
        out.append(n)


def popped(n: int, m: int, out: list[Any]) -> None:
    xs = [*range(n), None, *range(n)]
    while xs:
        if (x := xs.pop()) is None:
            return
        out.append(x)


def handled(n: int, m: int, out: list[Any]) -> None:
    while n > 0:
        n -= 1
        try:
            out.append(m // (n % 6))
        except ZeroDivisionError:
            continue
        out.append("done")


def below(n: int, m: int) -> bool:
    return n > m


def called(n: int, m: int, out: list[Any]) -> None:
    while below(n, m) and below(n, 4):
        n -= 1
        out.append(n)


def of_other_types(n: Any, m: int, out: list[Any]) -> None:
    while n > 3:
        n = n - 1 if n != 20 else 19.5
        out.append(n)


def raising(n: int, m: int, out: list[Any]) -> None:
    while 100 // (n - 10) != 3 and n > -50:
        n -= 1
        out.append(n)


LOOPS: list[Callable[[Any, int, list[Any]], None]] = [
    both, either, broken, broken_at_once, chained, nested, assigned, popped, handled, called, of_other_types, raising
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_loops_leave_as_they_should(loop: Callable[..., None]) -> None:
    def work(n: int, m: int) -> list[Any]:
        out: list[Any] = []
        loop(n, m, out)
        return out

    check(work, (3, 70), (4, 2), (60, 3), (60, 80), (0, 0), (45, -20))
    check(loop, (60, 3, []), (11, 2, []))
