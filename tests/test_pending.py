"""Signals, other threads, asynchronous exceptions: they reach replayed code where they reach eager code."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
from dalsegno._testing import hook as hooktest
from tests.support import run_python, stepped

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals of its own")


class Stop(Exception):
    pass


seen: list[Any] = []
raising = False


def handler(number: int, frame: Any) -> None:
    seen.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
    if raising:
        raise Stop


@pytest.fixture(autouse=True)
def _handled() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, handler)
    yield
    signal.signal(signal.SIGUSR1, before)


interrupt = ctypes.pythonapi.PyErr_SetInterruptEx  # a signal comes, and nobody has looked yet
number = int(signal.SIGUSR1)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    seen.clear()
    try:
        result = function(*args)
    except Stop as stop:
        result = [
            (frame.name, frame.lineno)
            for frame in traceback.extract_tb(stop.__traceback__)[1:]
            if frame.name != "handler"
        ]
    return result, list(seen)


def straight(x):
    interrupt(number)
    y = x + len(seen)
    return y


def in_a_loop(n):
    total = 0
    for i in range(n):
        if i == n - 2:
            interrupt(number)
        total += i * len(seen)
    return total


def callee(x):
    interrupt(number)
    return x + len(seen)


def in_a_callee(x):
    y = callee(x)
    y += 1
    return y + callee(x)


def guarded(x):
    try:
        interrupt(number)
        x += 1
    except Stop:
        return "stopped", x
    return x


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("function", [straight, in_a_loop, in_a_callee, guarded])
def test_a_handler_runs_where_it_runs_in_eager(function: Callable[..., Any], raises: bool) -> None:
    global raising
    jitted = ds.jit(store=False)(function)
    with stepped():
        for n in (7, 7, 7, 7, 8, 9):
            raising = raises and n > 7
            try:
                wanted = outcome(function, n)
                assert outcome(jitted, n) == wanted
            finally:
                raising = False
    assert wanted[1]


def test_another_thread_does_not_wait_for_many_turns() -> None:
    state = {"stop": False}
    text = "a" * 300_000

    def busy(limit):
        turns = 0
        while not state["stop"] and turns < limit:
            turns += 1
            text.upper()
        return turns

    jitted = ds.jit(store=False)(busy)
    for _ in range(4):
        jitted(20)

    def ends() -> None:
        for _ in range(3):
            event.wait(0.0001)
        state["stop"] = True

    event = threading.Event()
    thread = threading.Thread(target=ends)
    thread.start()
    turns = jitted(100_000)
    thread.join()
    assert turns < 1000


_ASYNC = """
import ctypes, faulthandler, json, threading
import dalsegno as ds
faulthandler.dump_traceback_later(200, exit=True)

@ds.jit
def f():
    n = 0
    while True:
        n += 1

for _ in range(3):
    me = threading.get_ident()
    raise_it = lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), ctypes.py_object(KeyError))
    threading.Timer(0.2, raise_it).start()
    try:
        f()
    except KeyError:
        pass
print(json.dumps("done"))
"""


def test_asynchronous_exceptions_end_a_loop() -> None:
    assert run_python(_ASYNC) == "done"


_WRITES = """
import faulthandler, json, signal
import dalsegno as ds
faulthandler.dump_traceback_later(200, exit=True)

def on(number, frame):
    frame.f_locals["stop"] = True
signal.signal(signal.SIGALRM, on)

@ds.jit
def f(limit):
    stop = False
    n = 0
    while not stop:
        n = n + 1
        if n == limit:
            return "limit"
    return "stopped"

for _ in range(3):
    f(2000)
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(json.dumps(f(-1)))
"""


@pytest.mark.skipif(sys.version_info < (3, 13), reason="f_locals writes through since 3.13")
def test_a_handler_that_writes_to_a_variable_ends_the_loop() -> None:
    assert run_python(_WRITES) == "stopped"


def turns_until(done: list[None]) -> int:
    turns = 0
    while not done and turns < 10_000_000:
        turns += 1
    return turns


def test_the_main_thread_sees_a_pending_call_at_its_next_back_edge() -> None:
    """3.11 and 3.12 do not tell it where another thread adds one: native code came 20 ms late."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nothing else makes it look
    try:
        jitted = ds.jit(store=False)(turns_until)
        jitted([None])
        for function in (turns_until, jitted):
            done: list[None] = []
            hooktest.pending_call(done)
            assert function(done) < 1000
    finally:
        sys.setswitchinterval(before)
