"""Code run by a step switches tools on, writes to variables, clears the tree, assigns code: the outcome is eager's."""

from __future__ import annotations

import cProfile
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.support import stepped


def by_turns(function: Callable[..., Any], *calls: tuple[Any, ...], rounds: int = 5) -> None:
    """Each call `rounds` times in a row, eagerly and jitted, and all by turns."""
    jitted = ds.jit(store=False)(function)
    with stepped():
        for args in [args for args in calls for _ in range(rounds)] + list(calls) * 4:
            wanted = function(*args)
            assert jitted(*args) == wanted


# ---- tools switched on inside


def inner(x):
    return max(x, 2)


def profiled(x, on):
    if not on:
        return x
    profile = cProfile.Profile()
    profile.enable()
    x = inner(inner(x))
    profile.disable()
    profile.create_stats()
    return sum(row[0] for place, row in profile.stats.items() if place[2] == "inner")


def traced(x, on):
    seen = []
    if on:
        sys.settrace(lambda frame, event, arg: seen.append((event, frame.f_code.co_name)))
    x = inner(inner(x))
    sys.settrace(None)
    return x, seen


EVENTS: list[Any] = []


def seen_from_here(frame, event, arg):
    EVENTS.append((event, frame.f_code.co_name, frame.f_lineno))
    return seen_from_here


def switched_on_then_raises(x, on):
    y = x * 2.0 + 1.0
    if on == "trace":
        sys.settrace(seen_from_here)
    if on == "profile":
        sys.setprofile(seen_from_here)
    return y + [1, 2][x]


def between(x, on):
    return x + switched_on_then_raises(x, on)


def catches(x, on):
    y = x * 3.0
    try:
        return y + between(x, on)
    except IndexError:
        return inner(x)


def traced_in_a_loop(x, on):
    seen = []
    for i in range(6):
        if on and i == 3:
            sys.settrace(lambda frame, event, arg: seen.append((i, event, frame.f_code.co_name)))
        x = inner(x)
    sys.settrace(None)
    return x, seen


def called_back(x, on):
    seen = []

    def calls(frame, event, arg):
        seen.append((event, frame.f_code.co_name))

    sys.setprofile(calls if on else None)
    x = inner(inner(x))
    sys.setprofile(None)
    return x, [e for e in seen if e[0] == "call"]


def events_of(function: Callable[..., Any], x: int, on: str) -> list[Any]:
    """Of the code in this file; calls of C functions are those of the jitted function, too."""
    EVENTS.clear()
    try:
        result = function(x, on)
    finally:
        sys.settrace(None)
        sys.setprofile(None)
    return [result, *[event for event in EVENTS if event[1] != "events_of" and not event[0].startswith("c_")]]


@pytest.mark.parametrize("on", ["trace", "profile"])
def test_an_exception_that_reaches_a_caller_announces_no_call(on: str) -> None:
    jitted = ds.jit(store=False)(catches)
    with stepped():
        for args in [(1, "")] * 3 + [(2, on), (1, on), (1, ""), (2, "")] * 6:
            assert events_of(jitted, *args) == events_of(catches, *args)
    assert jitted.stats["exits"] > 3


@pytest.mark.parametrize("function", [profiled, traced, traced_in_a_loop, called_back])
def test_a_tool_switched_on_inside(function: Callable[..., Any]) -> None:
    by_turns(function, (3, False), (3, True))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_events_of_one_code_object_switched_on_inside() -> None:
    monitoring = sys.monitoring
    seen: list[str] = []

    def watch(on):
        monitoring.set_local_events(2, inner.__code__, monitoring.events.PY_START if on else 0)

    def watched(x, on):
        watch(on)
        x = inner(inner(x))
        watch(False)
        return x, len(seen)

    monitoring.use_tool_id(2, "test")
    try:
        monitoring.register_callback(2, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
        jitted = ds.jit(store=False)(watched)
        with stepped():
            for on in (False, False, False, True, True, True, False, True):
                seen.clear()
                wanted = watched(3, on)
                seen.clear()
                assert jitted(3, on) == wanted
    finally:
        monitoring.free_tool_id(2)


events: list[tuple[str, str, int]] = []
tracing = False


def tracer(frame, event, arg):
    events.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno))
    return tracer


def begin():
    if tracing:
        sys.settrace(tracer)
        sys._getframe(1).f_trace = tracer


opaque_begin = functools.partial(begin)


def helper(x):
    return x + 1


def breaks(x):
    opaque_begin()
    z = helper(x)
    w = z * 2
    return w


def test_a_trace_function_given_to_a_frame_that_runs() -> None:
    global tracing
    jitted = ds.jit(store=False)(breaks)
    for _ in range(4):
        jitted(1)
    tracing = True
    try:
        wanted = []
        for function in (breaks, jitted, jitted):
            events.clear()
            with ds.config(record=False):  # 3.11: a recorded frame gives opcode events to whoever traces it, too
                function(1)
                sys.settrace(None)
            got = [e for e in events if e[0] in ("breaks", "helper")]
            assert got == (wanted or got)
            wanted = got
        assert ("breaks", "line", 2) in wanted
    finally:
        sys.settrace(None)
        tracing = False


# ---- variables written, trees cleared, code assigned


writing = False
kept: list[Any] = []


class Sequence:
    def __getitem__(self, i):
        if writing:
            frame = sys._getframe(1)
            frame.f_locals["y"] = 5
            kept.append(frame)
        return i

    def __setitem__(self, i, value):
        self[i]


def reads_by_an_int(c, n):
    y = 0
    i = n + 1
    i = i * 2
    v = c[i]
    w = v + i
    return y + v + w


def writes_by_an_int(c, n):
    y = 0
    i = n + 1
    i = i * 2
    c[i] = i
    w = n + i
    return y + w


@pytest.mark.parametrize("function", [reads_by_an_int, writes_by_an_int])
def test_variables_written_by_an_item_s_method(function: Callable[..., Any]) -> None:
    global writing
    jitted = ds.jit(store=False)(function)
    sequence = Sequence()
    for n in range(4):
        assert jitted(sequence, n) == function(sequence, n)
    writing = True
    try:
        for n in range(6):
            assert jitted(sequence, n) == function(sequence, n)
    finally:
        writing = False
        kept.clear()


def test_a_tree_cleared_while_it_runs_and_then_left_at_a_hot_exit() -> None:
    mode = 0

    def clears(flag):
        nonlocal mode
        if mode == 1:
            mode = 2
            jitted.clear()
            jitted(0, False)

    def f(a, flag):
        x = 1 if a == 1 else 2
        if a == 2:
            x = x + 3
        if a == 3:
            x = x + 4
        if a == 4:
            x = x + 5
        opaque(flag)
        if flag:
            return x + 1
        return x

    opaque = functools.partial(clears)
    jitted = ds.jit(store=False)(f)
    for a in range(5):
        for _ in range(5):
            assert jitted(a, False) == f(a, False)
    assert jitted(4, True) == f(4, True)
    mode = 1
    assert jitted(4, True) == f(4, True)
    for a in range(5):
        assert jitted(a, True) == f(a, True)


def swap(flag):
    if flag:
        outermost.__code__ = tiny.__code__


opaque_swap = functools.partial(swap)


def tiny(x, flag):
    return x


def swapping(x, flag):
    opaque_swap(flag)
    if flag:
        return x * 2
    return x + 1


def middle(x, flag):
    return swapping(x, flag) + 1


def outermost(x, flag):
    y = x + 1
    y = y + 1
    y = y + 1
    y = y + 1
    return swapping(y, flag) + 1


def calls_outermost(x, flag):
    return outermost(x, flag) + 2


@pytest.mark.parametrize("function", [outermost, calls_outermost])
def test_code_assigned_to_an_outer_function_while_an_inner_one_leaves(function: Callable[..., Any]) -> None:
    original = outermost.__code__
    jitted = ds.jit(store=False)(function)
    try:
        with stepped():
            for flag in (False, False, True, True, True, True, False, True):
                outermost.__code__ = original
                wanted = function(1, flag)
                outermost.__code__ = original
                assert jitted(1, flag) == wanted
    finally:
        outermost.__code__ = original


# ---- frames that finalisers see


class Tells:
    def __del__(self):
        frame = sys._getframe(1)
        told.append((frame.f_code.co_name, frame.f_lineno))


told: list[Any] = []


def drops(how, items, d):
    a = items.pop()
    a = None
    items.pop()
    items[0] = 1
    d["x"] = 2
    how += 1
    d[7] = how
    del a
    return how


def drops_in_a_callee(how, items, d):
    x = drops(how, items, d)
    items = None
    return x


@pytest.mark.parametrize("function", [drops, drops_in_a_callee])
def test_finalisers_see_the_line_that_dropped_the_object(function: Callable[..., Any]) -> None:
    jitted = ds.jit(store=False)(function)
    with stepped():
        for n in range(6):
            seen = []
            for run in (function, jitted):
                told.clear()
                items, d = [Tells(), Tells(), Tells()], {"x": Tells(), 7: Tells()}
                run(n, items, d)
                seen.append(list(told))
            assert seen[0] == seen[1]
            assert len(seen[0]) == 5


def leaks():
    a = open("/dev/null")  # noqa: SIM115
    a = None
    return a


async def coroutine():
    pass


def forgets():
    coroutine()


@pytest.mark.parametrize("function", [leaks, forgets])
def test_warnings_of_what_is_dropped_stand_at_the_line_that_dropped_it(function: Callable[..., Any]) -> None:
    jitted = ds.jit(store=False)(function)
    with stepped():
        for _ in range(5):
            seen = []
            for run in (function, jitted):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    run()
                seen.append([(w.category, w.lineno, w.filename) for w in caught])
            assert seen[0] == seen[1]
            assert seen[0]


def debugged(x: int) -> int:
    begin()
    y = helped(x)
    return y * 2


def helped(x: int) -> int:
    return x + 1


EVENTS: list[Any] = []


def begin() -> None:
    """As breakpoint() does: the caller's frame is traced from here on."""

    def tracer(frame: Any, event: str, arg: object) -> Any:
        EVENTS.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno))
        return tracer

    if EVENTS:
        sys.settrace(tracer)
        sys._getframe(1).f_trace = tracer


@pytest.mark.parametrize("calls", range(6))
def test_a_debugger_that_begins_in_any_call_is_told_what_eager_tells(calls: int) -> None:
    def traced(function: Any) -> list[Any]:
        EVENTS[:] = ["begin"]
        try:
            function(1)
        finally:
            sys.settrace(None)
        return EVENTS.copy()

    EVENTS.clear()
    jitted = ds.jit(store=False)(debugged)
    for _ in range(calls):
        jitted(1)
    want = traced(debugged)
    assert traced(jitted) == want
    assert traced(jitted) == want
    EVENTS.clear()
