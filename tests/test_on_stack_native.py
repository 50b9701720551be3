"""Loops that are entered in the middle of a call and run as native code."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import dalsegno as ds
import numpy as np
from tests.support import counting, stepped


def first_call(function: Callable[..., Any], *args: Any, **settings: Any) -> tuple[Any, dict[str, int]]:
    """A first call's result, and what it has done. Loops are compiled where they become hot, before they go on."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, **settings), counting(jitted) as grown:
        result = jitted(*args)
    return result, grown


def mixed(n: int, x: float) -> Any:
    t = 0
    s = 0.0
    for i in range(n):
        t = (t + i * 3) & 0xFFFF
        s = s * 0.5 + x
    return t, s, i


def test_a_loop_that_runs_as_steps_becomes_native_in_the_very_call() -> None:
    result, grown = first_call(mixed, 5000, 1.5, hot_loop=200)
    assert result == mixed(5000, 1.5)
    assert grown["loops_entered"] == 1
    assert 200 < grown["steps"] < 5000
    assert first_call(mixed, 5000, 1.5, native=False)[1]["steps"] > 5000


def test_a_loop_is_native_as_it_is_entered() -> None:
    result, grown = first_call(mixed, 5000, 1.5, hot_loop=1)
    assert result == mixed(5000, 1.5)
    assert grown["loops_entered"] == 1
    assert grown["steps"] < 50


def carried(n: int, what: Any, swap: Any) -> Any:
    seen = 0
    for i in range(n):
        seen += i
        what, swap = swap, what
    return seen, what, swap


def test_variables_that_the_loop_only_carries_may_be_of_any_type() -> None:
    jitted = ds.jit(store=False)(carried)
    thing = object()
    with stepped(step_aside=False, hot_loop=1):
        for what, swap in ((1, 2.5), (2.5, 1), ("a", None), (thing, 2**70), (True, np.float64(2)), (1, 2.5)):
            before = sys.getrefcount(thing)
            for n in (301, 40, 3):
                assert repr(jitted(n, what, swap)) == repr(carried(n, what, swap))
            assert sys.getrefcount(thing) == before


def by_rounds(rounds: int, turns: int) -> Any:
    total = 0
    for k in range(rounds):
        total += sys.getrefcount(rounds) * 0
        for i in range(turns):
            total = (total + i * k) & 0xFFFF
    return total


def test_a_loop_that_is_native_goes_on_being_entered() -> None:
    result, grown = first_call(by_rounds, 60, 400, hot_loop=1)
    assert result == by_rounds(60, 400)
    assert grown["loops_entered"] > 40
    assert grown["steps"] < 60 * 200


def fails(a: Any, log: list[Any]) -> Any:
    s = 0.0
    try:
        for i in range(len(a) + 1):
            s = s * 0.5 + a[i]
            if i == 900:
                log.append(s)
    except IndexError as error:
        log.append((str(error), error.__traceback__.tb_lineno if error.__traceback__ else None))
    return s, i


def test_what_a_native_loop_raises_is_handled_in_the_frame() -> None:
    a = np.arange(1000.0)
    wanted_log: list[Any] = []
    wanted = fails(a, wanted_log)
    for hot_loop in (1, 200):
        log: list[Any] = []
        result, grown = first_call(fails, a, log, hot_loop=hot_loop)
        assert (result, log) == (wanted, wanted_log)
        assert grown["loops_entered"] >= 1


def summed(n: int) -> Any:
    total = 0
    log: list[int] = []
    for i in range(n):
        total = (total + i) & 0xFFFF
        log.append(total)
        time.sleep(0)  # other threads run inside native code
    return total, len(log)


def test_threads_that_come_to_a_loop_while_it_is_compiled() -> None:
    wanted = summed(400)
    for _ in range(4):
        jitted = ds.jit(store=False)(summed)
        with stepped(step_aside=False, native=False):
            jitted(30)
        results: list[Any] = []
        with stepped(step_aside=False, hot_loop=1):
            threads = [threading.Thread(target=lambda f=jitted: results.append(f(400))) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert results == [wanted] * 8


def primes(n: int) -> int:
    f = [True] * (n + 1)
    count = 0
    for i in range(2, n + 1):
        if f[i]:
            count += 1
            for j in range(i * i, n + 1, i):
                f[j] = False
    return count


def test_a_loop_recorded_as_it_runs_may_carry_numbers_unboxed() -> None:
    jitted = ds.jit(store=False)(primes)
    with stepped(step_aside=False):
        assert jitted(300) == primes(300)
    loops = [text for text in str(ds.explain(jitted)).split("\ntrace ") if "starts at a loop's header" in text]
    assert len(loops) >= 2
    for loop in loops:
        numbers = [line for line in loop.splitlines() if " = param " in line and "builtins.int" in line]
        assert len(numbers) == 4, loop  # n, count, i, j
