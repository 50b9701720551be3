"""What must not go wrong in native code is noticed when it does: planted faults, each in a small program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.machine_traces import machine
from tests.support import stepped


@pytest.fixture
def plant() -> Iterator[Callable[[str], None]]:
    yield machine.set_fault
    machine.set_fault("")


def grows(n: int) -> int:
    t = 1
    for _ in range(n):
        t = t * 3
    return t


def reads(n: int) -> Any:
    a = np.arange(40.0)
    t = 0.0
    try:
        for i in range(n):
            t = t + a[i]
    except IndexError:
        return "out of bounds", t
    return t


def counts(n: int) -> Any:
    i = 0
    t = 0.0
    for i in range(n):  # noqa: B007
        t = t + 0.5
    return i, t


def numbers(n: int) -> Any:
    total = 0
    for i, x in enumerate([1] * 40 + [2**70] + [3] * (n - 40)):
        total += i * x
    return total


def recurs(step: int) -> Any:
    a = np.arange(400.0)
    for i in range(1, 400, step):
        a[i] = a[i - 1] + 0.5
    return a.tolist()


def spirals(n: int) -> Any:
    z, total = 1 + 0j, 0.0
    for _ in range(n):
        z = z * (0.9 + 0.1j)
        total += z.imag
    return total


def swells(n: int) -> Any:
    a = np.full(60, 2 + 1j)
    a[45] = 1e308 + 1e308j
    turns = 0
    with np.errstate(over="raise"):
        try:
            for i in range(n):
                a[i] = a[i] * a[i]
                turns += 1
        except FloatingPointError:
            return "too large", turns
    return turns


def parts(n: int) -> Any:
    even = odd = 0
    for i in range(n):
        if i & 1:
            odd = odd ^ i
        else:
            even = even ^ i
    return even, odd


@pytest.mark.parametrize(
    ("fault", "function", "warm", "argument"),
    [
        ("native_overflow", grows, 30, 50),
        ("native_bounds", reads, 40, 41),
        ("native_exit", grows, 30, 50),
        ("native_hoisted", reads, 40, 41),
        ("native_forwarded", recurs, 1, 3),
        ("native_joined", parts, 40, 47),
        ("native_range", grows, 30, 50),
        ("native_registers", counts, 40, 50),
        ("native_count", numbers, 40, 50),
        ("native_parts", spirals, 40, 50),
        ("native_flags", swells, 40, 50),
    ],
)
def test_a_planted_fault_shows(
    fault: str, function: Callable[[int], Any], warm: int, argument: int, plant: Callable[[str], None]
) -> None:
    def last() -> Any:
        jitted = ds.jit(store=False)(function)
        with stepped(step_aside=False, hot_loop=1):
            for _ in range(4):
                jitted(warm)
            return jitted(argument)

    wanted = repr(function(argument))
    assert repr(last()) == wanted
    plant(fault)
    assert repr(last()) != wanted


REMAINDERS = """
@jit
def f(n, x):
    if n < 1:
        return x
    return f(n - 1, x - 3) % 7 + f(n - 2, -x)
"""


def test_a_planted_fault_of_functions_that_call_themselves_shows(plant: Callable[[str], None]) -> None:
    def last(jit: Callable[..., Any]) -> Any:
        names: dict[str, Any] = {"jit": jit}
        exec(REMAINDERS, names)
        with stepped(step_aside=False, hot_loop=1):
            return [names["f"](n, 5) for n in (4, 6, 8, 9, 10)]

    wanted = last(lambda function: function)
    assert last(ds.jit(store=False)) == wanted
    plant("native_recursion")
    assert last(ds.jit(store=False)) != wanted
