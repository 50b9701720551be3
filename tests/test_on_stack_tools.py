"""Loops entered in the middle of a call: tracers, profilers, signals, other threads, asynchronous exceptions."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.support import counting, stepped
from tests.test_on_stack import enters, summed


def traced_inside(n: int, tracer: Any) -> int:
    total = 0
    for i in range(n):
        total += i
        if i == 40:
            sys.settrace(tracer)
        if i == 60:
            sys.settrace(None)
    return total


def test_tracing_switched_on_inside() -> None:
    def run(f: Callable[..., Any]) -> Any:
        log: list[Any] = []

        def tracer(frame: Any, event: str, arg: Any) -> Any:
            log.append((frame.f_code.co_name, event))
            return tracer

        try:
            return f(100, tracer), log
        finally:
            sys.settrace(None)

    jitted = ds.jit(store=False)(traced_inside)
    with stepped(step_aside=False):
        for _ in range(3):
            assert run(jitted) == run(traced_inside)
    assert sys.gettrace() is None


def called(x: int) -> int:
    return x + 1


def traces_calls(n: int, tracer: Any, switch: Callable[[Any], None]) -> int:
    total = 0
    for i in range(n):
        if i == 40:
            switch(tracer)
        total += called(i)
    switch(None)
    return total


@pytest.mark.parametrize("switch", [sys.settrace, sys.setprofile])
def test_tools_switched_on_inside_see_what_follows(switch: Callable[[Any], None]) -> None:
    def run(f: Callable[..., Any]) -> Any:
        log: list[Any] = []

        def tool(frame: Any, event: str, arg: Any) -> None:
            if frame.f_code.co_name in ("called", "traces_calls"):
                log.append((frame.f_code.co_name, event, frame.f_lineno))

        try:
            return f(60, tool, switch), log
        finally:
            switch(None)

    jitted = ds.jit(store=False)(traces_calls)
    with stepped(step_aside=False):
        for _ in range(3):
            assert run(jitted) == run(traces_calls)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
def test_no_tool_is_left_behind() -> None:
    monitoring = sys.monitoring
    enters(summed, 500)
    assert [monitoring.get_tool(k) for k in range(6)] == [None] * 6
    assert all(monitoring.get_local_events(k, summed.__code__) == 0 for k in range(6) if monitoring.get_tool(k))


def test_a_thread_traced_from_outside_is_left_alone() -> None:
    log = []

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is summed.__code__:
            log.append(event)
        return tracer

    jitted = ds.jit(store=False)(summed)
    with stepped(), counting(jitted) as grown:
        sys.settrace(tracer)
        try:
            assert jitted(100) == summed(100)
        finally:
            sys.settrace(None)
    assert grown["loops_entered"] == 0
    assert log.count("line") > 200


def waits_for(flag: list[int]) -> int:
    turns = 0
    while not flag:
        turns += 1
    return turns


def test_signals_and_other_threads_get_their_turn() -> None:
    jitted = ds.jit(store=False)(waits_for)
    flag: list[int] = []
    with stepped(step_aside=False):
        thread = threading.Thread(target=lambda: (time.sleep(0.05), flag.append(1)))
        thread.start()
        assert jitted(flag) > 0
        thread.join()

    class Rang(Exception):
        pass

    def ring(*_: Any) -> None:
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for f in (ds.jit(store=False)(waits_for), jitted):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with stepped(step_aside=False), pytest.raises(Rang) as raised:
                f([])
            assert [entry.name for entry in raised.traceback][-2:] == ["waits_for", "ring"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Stop(Exception):
    pass


class Begun:
    """False, and says that it was asked."""

    def __init__(self, begun: threading.Event) -> None:
        self.begun = begun

    def __bool__(self) -> bool:
        self.begun.set()
        return False


def test_asynchronous_exceptions_arrive() -> None:
    jitted = ds.jit(store=False)(waits_for)
    for _ in range(3):
        caught: list[str] = []
        begun = threading.Event()

        def run(caught: list[str] = caught, begun: threading.Event = begun) -> None:
            try:
                jitted(Begun(begun))
            except Stop as error:
                caught.append(traceback.extract_tb(error.__traceback__)[-1].name)

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stop))
        thread.join()
        assert caught[0] in (
            "waits_for",
            "__bool__",
            "set",
            "__enter__",
            "__exit__",
            "notify_all",
            "notify",
            "_is_owned",
        )
