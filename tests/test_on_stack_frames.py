"""Loops entered in the middle of a call: exceptions, and frames as others see them."""

from __future__ import annotations

import ctypes
import itertools
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from dalsegno.fuzz import check_program
from tests.support import counting, stepped


def quotients(n: int, zero: int) -> Any:
    total = 0
    try:
        for i in range(n):
            total += 100 // (zero - i)
    except ZeroDivisionError as error:
        return total, i, error.__traceback__.tb_lineno, len(traceback.extract_tb(error.__traceback__))
    finally:
        total = -1
    return total


def uncaught(n: int, zero: int) -> int:
    total = 0
    for i in range(n):
        total += 100 // (zero - i)
    return total


def behind_a_handler(n: int, zero: int) -> int:
    total = 0
    for _ in range(2):
        try:
            for i in range(n):
                total += i
        except ZeroDivisionError:
            total = -5
        total += 100 // zero
    return total


def in_a_callee(x: int) -> int:
    return 10 // x


def through_a_callee(n: int) -> int:
    total = 0
    try:
        for i in range(n):
            total += in_a_callee(40 - i)
    except ValueError:
        total = 0
    return total


def places(function: Callable[..., Any], *args: Any) -> Any:
    """The traceback's places, and the variables of its frames."""
    try:
        return function(*args)
    except Exception as error:
        rows = []
        tb = error.__traceback__.tb_next if error.__traceback__ else None
        while tb:
            rows.append((tb.tb_frame.f_code.co_name, tb.tb_lineno, dict(tb.tb_frame.f_locals)))
            tb = tb.tb_next
        context = error.__context__
        return type(error), str(error), rows, context and type(context)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (quotients, (100, 60)), (quotients, (100, 400)), (uncaught, (100, 60)), (behind_a_handler, (50, 0)),
        (behind_a_handler, (50, 7)), (through_a_callee, (100,)),
    ],
)  # fmt: skip
def test_exceptions_leave_as_their_instruction_raised_them(function: Callable[..., Any], args: tuple[int, ...]) -> None:
    wanted = places(function, *args)
    for _ in range(2):
        jitted = ds.jit(store=False)(function)
        with stepped(step_aside=False), counting(jitted) as grown:
            for _ in range(4):
                assert places(jitted, *args) == wanted
        assert grown["loops_entered"] > 0


class Manager:
    def __init__(self, log: list[Any], swallow: bool) -> None:
        self.log, self.swallow = log, swallow

    def __enter__(self) -> Manager:
        self.log.append("in")
        return self

    def __exit__(self, *what: Any) -> bool:
        self.log.append(what[0])
        return self.swallow


def managed(n: int, zero: int, swallow: bool) -> Any:
    log: list[Any] = []
    total = 0
    with Manager(log, swallow):
        for i in range(n):
            total += 100 // (zero - i)
        total = -total
    return total, log


def test_with_statements() -> None:
    for zero, swallow in itertools.product((30, 300), (False, True)):
        wanted = places(managed, 90, zero, swallow)
        jitted = ds.jit(store=False)(managed)
        with stepped(step_aside=False):
            assert [places(jitted, 90, zero, swallow) for _ in range(3)] == [wanted] * 3


def seen_inside(n: int, log: list[Any]) -> int:
    total = 0
    for i in range(n):
        total += i
        if i % 9 == 4:
            frame = sys._getframe()
            log.append(
                (
                    frame.f_lineno,
                    frame.f_code.co_name,
                    frame.f_back.f_code.co_name if frame.f_back else None,
                    frame.f_locals["total"],
                )
            )
            del frame
    return total


def test_frames_seen_from_inside() -> None:
    def run(f: Callable[..., Any]) -> Any:
        log: list[Any] = []
        return f(100, log), log

    jitted = ds.jit(store=False)(seen_inside)
    with stepped(step_aside=False):
        for _ in range(3):
            assert run(jitted) == run(seen_inside)


def look(log: list[Any]) -> None:
    frame = sys._getframe(1)
    log.append(
        (
            frame.f_lineno,
            sorted(frame.f_locals),
            frame.f_locals["i"],
            frame.f_back.f_code.co_name if frame.f_back else None,
        )
    )


def keep(log: list[Any]) -> None:
    log.append(sys._getframe(1))


def looked_at(n: int, log: list[Any], how: Callable[[list[Any]], None]) -> int:
    total = 0
    for i in range(n):
        total += i
        if i % 20 == 19:
            how(log)
    return total


def test_frames_kept_from_inside_are_the_one_frame() -> None:
    def run(f: Callable[..., Any], how: Callable[[list[Any]], None]) -> Any:
        log: list[Any] = []
        result = f(100, log, how)
        if how is look:
            return result, log
        return (
            result,
            len({id(frame) for frame in log}),
            [(frame.f_lineno, frame.f_locals["i"], frame.f_locals["total"]) for frame in log],
        )

    for how in (look, keep):
        jitted = ds.jit(store=False)(looked_at)
        with stepped(step_aside=False):
            for _ in range(3):
                assert run(jitted, how) == run(looked_at, how)


def local_names(n: int) -> Any:
    first = locals()
    total = 0
    for i in range(n):
        total += i
        if i == 50:
            second = locals()
    return first is second, sorted(first), sorted(second), locals()["total"]


def test_the_dict_of_locals() -> None:
    jitted = ds.jit(store=False)(local_names)
    with stepped(step_aside=False):
        for _ in range(3):
            assert jitted(100) == local_names(100)


def in_finally(log: list[Any], n: int) -> Any:
    try:
        for i in range(n):
            if i == 40:
                raise KeyError(i)
    finally:
        for k in range(n):
            log.append(k)
            if k == 60:
                return "swallowed"  # noqa: B012
    return i


def raises_in_handler(log: list[Any], n: int) -> int:
    total = 0
    for i in range(n):
        try:
            if i % 9 == 8:
                total += 1 // (i - 44 if i != 53 else 0)
        except ZeroDivisionError as error:
            log.append((i, str(error)))
            if i == 53:
                raise ValueError(total) from error
    return total


def reraised(log: list[Any], n: int) -> None:
    try:
        for i in range(n):
            for k in range(n):
                if i * k == 77:
                    raise IndexError(i)
    except IndexError:
        log.append(i)
        raise
    except KeyError:
        log.append("no")


def unknown_name(log: list[Any], n: int) -> int:
    total = 0
    for i in range(n):
        total = total + no_such_name if i > 50 else total  # type: ignore[name-defined] # noqa: F821
    return total


def unbound(log: list[Any], n: int) -> int:
    for i in range(n):
        if i < 40:
            y = i
        if i == 40:
            del y
        if i == 55:
            log.append(y)
    return i


def poke(log: list[Any]) -> None:
    frame = sys._getframe(1)
    frame.f_locals["x"] = 1000 + frame.f_locals["i"]
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    log.append(frame.f_lineno)


def poked(log: list[Any], n: int) -> int:
    x = 0
    for i in range(n):
        x += 1
        if i % 25 == 24:
            poke(log)
    return x


def keeps_its_frame(log: list[Any], n: int) -> int:
    kept: Any = None
    total = 0
    for i in range(n):
        total += i
        if i == 30:
            kept = sys._getframe()
        if i == 60:
            log.append((kept.f_lineno, kept.f_locals["total"]))
            kept = None
    return total


def keeps_an_error(log: list[Any], n: int) -> Any:
    kept: Any = None
    for i in range(n):
        if i == 10:
            try:
                1 // 0  # noqa: B018
            except ZeroDivisionError as error:
                kept = error
    return i, kept.__traceback__.tb_frame.f_locals["i"]


def generators_inside(log: list[Any], n: int) -> int:
    total = 0

    def two(k: int) -> Any:
        yield k
        yield sys._getframe(1).f_code.co_name

    for i in range(n):
        for value in two(i):
            total += len(str(value))
    return total


@pytest.mark.parametrize(
    ("function", "n"),
    [
        (in_finally, 30), (in_finally, 50), (in_finally, 80), (raises_in_handler, 50), (raises_in_handler, 60),
        (reraised, 30), (unknown_name, 40), (unknown_name, 60), (unbound, 50), (unbound, 60), (poked, 100),
        (keeps_its_frame, 100), (keeps_an_error, 100), (generators_inside, 50),
    ],
)  # fmt: skip
def test_blocks_and_frames(function: Callable[..., Any], n: int) -> None:
    def run(f: Callable[..., Any]) -> Any:
        log: list[Any] = []
        return places(f, log, n), len(log), log[-5:]

    wanted = repr(run(function))
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False):
        assert [repr(run(jitted)) for _ in range(4)] == [wanted] * 4


# A comprehension's loop, in the function's own frame since 3.12, has a handler; the call behind it has none.
COMPREHENSION = """
import _thread
import signal
LOG = []

class Money:
    def __init__(self, amount):
        pass

    def __call__(*more):
        pass

def noted(number, frame):
    LOG.append(1)
    if len(LOG) % 3:
        raise KeyError
signal.signal(signal.SIGUSR1, noted)

@jit
def entry(a, b):
    Money(a)([q for q in (b,)])
    _thread.interrupt_main(signal.SIGUSR1)
"""
CALLS = """
def calls():
    for x in (1, 1, 1, 3.0, 3.0, 2):
        yield ((x, 1), {})
"""


def test_a_frame_that_has_ended_stands_where_it_failed() -> None:
    check_program(COMPREHENSION, CALLS, engines=["stepped", "compiled"])


# (An evaluator that was set while a frame is awaited had calls keep their arguments until they returned.)
ARGUMENTS_DIE = """
import numpy as np

def leaf(x):
    return x

@jit
def inner(x, seen=()):
    return leaf(x)

def turned(x):
    pass

def turn():
    globals()['turned'] = abs

class Dying:
    def __del__(self):
        turn()

def consuming(x, y):
    x = y
    return turned(x)

def helper(a):
    if 0 < sum(k * 0.5 for k in range(3)):
        a[a > 0] = consuming(Dying(), inner(3, 0.5))
    return a[0]

@jit
def entry(a, n):
    found = []
    for i in list(range(n)):
        found.append(helper(abs(a)))
        found.append(a + helper(a))
        a[::-1] *= 2
    return found
"""


def test_arguments_die_where_they_would_in_what_an_awaited_frame_calls() -> None:
    calls = """
def calls():
    x = np.resize([2 ** 64], 4)
    yield ((x, 26), {})
"""
    check_program(ARGUMENTS_DIE, calls, engines=["recording"])
