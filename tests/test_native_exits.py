"""Native code is left at every instruction, at several turns, and the machine goes on: eager's results each time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from bench.programs.table import selected
from tests import force_exits
from tests.machine_traces import machine
from tests.support import stepped


def branches(n: int, x: float) -> Any:
    t = 0
    s = 0.0
    i = 0
    while i < n:
        if i % 3 == 0:
            t = (t + i * 5) & 0xFFFF
        else:
            s = s * 0.5 + x
        i += 1
    return t, s, i


def elements(a: Any, b: Any) -> Any:
    last = None
    for i in range(len(a)):
        last = a[i] * 2.0 + b[-i - 1, 0]
        a[i] = last
    return last


def table(d: Any) -> Any:
    n = d.shape[0]
    for i in range(1, n):
        for j in range(1, n):
            c = abs(d[i, j])
            d[i, j] = c + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n - 1, n - 1]


def objects(items: Any) -> Any:
    out = []
    total = 0.0
    k = 0
    for x in items:
        total = total + x
        if k % 4 == 1:
            out.append((k, total))
        k = k + 1
    return out, total, k


def keeps(n: int) -> Any:
    before = None
    i = 0
    while i < n:
        before, now = i * 0.5, before
        i += 1
    return before, now


def checksum(data: bytes) -> Any:
    crc = 0xFFFF
    for b in data:
        crc ^= b << 8
        for _ in range(4):
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF if crc & 0x8000 else (crc << 1) & 0xFFFF
    return crc, b, _


def shortest(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s
    return d, s


def walks(words: str, data: bytes, xs: list[float]) -> Any:
    n = 0
    total = 0.0
    for i, (b, x) in enumerate(zip(data, xs)):  # noqa: B905
        total += b * x + i
    for c, d in zip(words, words[1:]):  # noqa: B905
        if c == d:
            n += 1
    for i, c in enumerate(words):
        if c != words[-1 - i]:
            n += i * data[i % 3]
    return n, total, c, i


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "branches": (branches, lambda: (40, 1.25)),
    "elements": (elements, lambda: (np.arange(12.0), np.arange(24.0).reshape(12, 2))),
    "table": (table, lambda: (np.arange(36.0).reshape(6, 6) - 20,)),
    "objects": (objects, lambda: ([0.5 * k for k in range(20)],)),
    "keeps": (keeps, lambda: (20,)),
    "checksum": (checksum, lambda: (bytes(range(0, 250, 25)),)),
    "walks": (walks, lambda: ("abbacadd", bytes(range(0, 250, 25)), [0.5 * k for k in range(12)])),
    "shortest": (shortest, lambda: (np.abs(np.arange(9.0) * 7 % 5 - 1).reshape(3, 3),)),
}


@pytest.fixture
def forced() -> Iterator[Callable[[int, int], None]]:
    yield machine.force_exit
    machine.force_exit(-1, 0)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    args = copy.deepcopy(args)
    return repr((function(*args), args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_instruction_is_left(name: str, forced: Callable[[int, int], None]) -> None:
    function, make = PROGRAMS[name]
    wanted = outcome(function, make())
    forced(0, force_exits.NEVER)
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, hot_loop=1):
        assert [outcome(jitted, make()) for _ in range(5)] == [wanted] * 5
        regions, instructions, _ = machine.native()
        assert regions > 0
        assert instructions > 5
        left = set()
        for number in range(instructions):
            for turn in (0, 1, 3):
                forced(number, turn)
                assert [outcome(jitted, make()) for _ in range(2)] == [wanted] * 2, (number, turn)
                if machine.native()[2]:
                    left.add(number)
    assert len(left) > instructions / 2


@pytest.mark.once
def test_programs_of_the_bench_are_left_at_every_instruction(forced: Callable[[int, int], None]) -> None:
    with stepped(step_aside=False, hot_loop=1):
        for program in selected("Collatz|time warping|back subst|Mandelbrot, reals|planets|Kruskal|Caesar"):
            instructions, left, wrong = force_exits.left_everywhere(program, [0, 3])
            assert not wrong, program.name
            assert left > instructions / 2, program.name
