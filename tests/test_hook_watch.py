"""Observing: which instructions are announced, and living beside other observers (rule 10)."""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from dalsegno._testing import hook as hooktest
from tests import hook_images, hook_places, hook_programs

OK, BUSY, TRACED, OTHER_TOOL, LOST = range(5)
MONITORING = sys.version_info >= (3, 12)
needs_monitoring = pytest.mark.skipif(not MONITORING, reason="sys.monitoring is new in 3.12")
only_311 = pytest.mark.skipif(MONITORING, reason="3.11 observes with a trace function")


def watch(codes: list[types.CodeType], function: Callable[..., Any], *arguments: Any) -> tuple[int, list[Any], Any]:
    """(status, events, result or exception)"""
    assert hooktest.watch_start(*codes) == OK
    result: Any
    try:
        result = function(*arguments)
    except Exception as error:
        result = error
    status, events = hooktest.watch_stop()
    return status, events, result


def names_and_offsets(events: list[Any]) -> list[tuple[str, int]]:
    return [(event[0], event[1]) for event in events]


def reference(codes: list[types.CodeType], function: Callable[..., Any], *arguments: Any) -> list[tuple[str, int]]:
    """The same instructions as another observer sees them, written in Python."""
    seen: list[tuple[str, int]] = []

    def note(code: types.CodeType, offset: int) -> None:
        seen.append((code.co_name, offset // 2))

    def tracer(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "call" and frame.f_code in codes:
            frame.f_trace_opcodes = True
        elif event == "opcode":
            note(frame.f_code, frame.f_lasti)
            while hook_places.behind_prefix(frame.f_code, seen[-1][1] + 1):  # no events of their own there
                note(frame.f_code, 2 * seen[-1][1] + 2)
        return tracer

    if not MONITORING:
        sys.settrace(tracer)
        try:
            function(*arguments)
        finally:
            sys.settrace(None)
        return seen
    monitoring = sys.monitoring
    monitoring.use_tool_id(2, "test")
    monitoring.register_callback(2, monitoring.events.INSTRUCTION, note)
    for code in codes:
        monitoring.set_local_events(2, code, monitoring.events.INSTRUCTION)
    function(*arguments)
    for code in codes:
        monitoring.set_local_events(2, code, 0)
    monitoring.register_callback(2, monitoring.events.INSTRUCTION, None)
    monitoring.free_tool_id(2)
    return seen


def caught(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return repr(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", hook_programs.PROGRAMS, ids=lambda p: p[0].__name__)
def test_every_instruction_is_announced(program: Any) -> None:
    function, arguments = program
    codes = list(hook_places.all_places(function, *hook_programs.CALLED))
    expected = reference(codes, caught, function, arguments)
    for _ in range(2):
        status, events, _ = watch(codes, caught, function, arguments)
        assert status == OK
        assert names_and_offsets(events) == expected


def inner(x: int) -> int:
    return x + 1


def outer(x: int) -> int:
    y = inner(x)
    return y + inner(y)


def test_only_watched_code_is_announced() -> None:
    _, events, _ = watch([inner.__code__], outer, 1)
    assert {event[0] for event in events} == {"inner"}
    _, events, _ = watch([outer.__code__], outer, 1)
    assert {event[0] for event in events} == {"outer"}


def test_frames_are_told_apart_and_know_their_caller() -> None:
    _, events, _ = watch([inner.__code__, outer.__code__], outer, 1)
    outers = {event[3] for event in events if event[0] == "outer"}
    assert len(outers) == 1
    assert {event[4] for event in events if event[0] == "inner"} == outers
    # A call through C keeps the caller's identity, although an evaluator stands between.
    _, events, _ = watch([inner.__code__, through_c.__code__], through_c, 1)
    (frame,) = {event[3] for event in events if event[0] == "through_c"}
    assert {event[4] for event in events if event[0] == "inner"} == {frame}


def through_c(x: int) -> list[int]:
    return list(map(inner, [x, x]))


def test_recursion_has_a_frame_each() -> None:
    _, events, _ = watch([hook_programs.recursive.__code__], hook_programs.recursive, 5)
    assert len({event[3] for event in events}) == 6


def test_code_added_and_watching_stopped_inside_the_callback() -> None:
    whole = names_and_offsets(watch([inner.__code__, outer.__code__], outer, 1)[1])
    assert hooktest.watch_start(outer.__code__) == OK
    hooktest.watch_plan(-1, 1, inner.__code__)
    outer(1)
    status, events = hooktest.watch_stop()
    assert (status, names_and_offsets(events)) == (OK, whole)
    for stop_at in range(1, len(whole)):
        assert hooktest.watch_start(outer.__code__, inner.__code__) == OK
        hooktest.watch_plan(stop_at, -1, None)
        assert outer(1) == 5
        assert not hooktest.watching()
        status, events = hooktest.watch_stop()
        assert (status, names_and_offsets(events)) == (OK, whole[:stop_at])
    assert names_and_offsets(watch([inner.__code__, outer.__code__], outer, 1)[1]) == whole


def test_watching_stopped_in_a_prefix() -> None:
    big = hook_programs.big
    whole = names_and_offsets(watch([big.__code__], big, 2)[1])
    behind = [n for n, (_, offset) in enumerate(whole) if hook_places.behind_prefix(big.__code__, offset)]
    assert behind
    for stop_at in (behind[0], behind[0] + 1):
        assert hooktest.watch_start(big.__code__) == OK
        hooktest.watch_plan(stop_at, -1, None)
        big(2)
        assert names_and_offsets(hooktest.watch_stop()[1]) == whole[:stop_at]


def test_exceptions_of_the_watched_function_survive() -> None:
    def fails() -> None:
        raise LookupError("mine")

    def stops_while_raising() -> None:
        try:
            fails()
        finally:
            hooktest.watch_stop()

    status, events, result = watch([fails.__code__], fails)
    assert status == OK and events and repr(result) == "LookupError('mine')"
    hooktest.watch_start(fails.__code__)
    with pytest.raises(LookupError, match="mine"):
        stops_while_raising()
    assert not hooktest.watching()


def test_other_threads_are_not_announced() -> None:
    results: list[int] = []

    def elsewhere() -> None:
        results.append(outer(5))
        results.append(hooktest.watching())

    def here() -> int:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return inner(1)

    status, events, _ = watch([inner.__code__, outer.__code__], here)
    assert status == OK
    assert results == [13, False]
    assert names_and_offsets(events) == names_and_offsets(watch([inner.__code__], inner, 1)[1])


def test_recordings_are_of_one_thread() -> None:
    assert hooktest.watch_start(inner.__code__) == OK
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(hooktest.watch_start(inner.__code__)))
    thread.start()
    thread.join()
    assert statuses == [BUSY]
    assert hooktest.watching()
    hooktest.watch_stop()


def test_a_recording_rests_while_another_one_goes_on() -> None:
    """Both watch the same code; each is told of what runs while it is the innermost one."""
    expected = names_and_offsets(watch([inner.__code__], inner, 1)[1])

    def inside() -> tuple[int, list[Any]]:
        inner(1)  # seen by the outer one, which rests from here on
        assert hooktest.watch_start(inner.__code__, outer.__code__) == OK
        inner(1)
        told = hooktest.watch_stop()
        inner(1)
        return told

    assert hooktest.watch_start(inner.__code__) == OK
    status, events = inside()
    assert (status, names_and_offsets(events)) == (OK, expected)
    status, events = hooktest.watch_stop()
    assert (status, names_and_offsets(events)) == (OK, expected * 2)
    assert not hooktest.watching()


def test_no_more_recordings_rest_than_some() -> None:
    depth = 0
    while hooktest.watch_start(inner.__code__) == OK:
        depth += 1
    assert 2 < depth < 100
    for _ in range(depth):
        assert hooktest.watch_stop() == (OK, [])
    assert not hooktest.watching()


def no_trace(frame: Any, event: str, argument: Any) -> None:
    return None


def no_profile(frame: Any, event: str, argument: Any) -> None:
    return None


def test_no_recording_while_traced_or_profiled() -> None:
    before = sys.gettrace()
    sys.settrace(no_trace)
    status = hooktest.watch_start(inner.__code__)
    sys.settrace(before)
    sys.setprofile(no_profile)
    second = hooktest.watch_start(inner.__code__)
    sys.setprofile(None)
    assert (status, second) == (TRACED, TRACED)
    assert hooktest.watch_start(inner.__code__) == OK
    hooktest.watch_stop()


def test_settrace_inside_loses_the_recording_and_stays() -> None:
    calls: list[str] = []

    def tracer(frame: types.FrameType, event: str, argument: Any) -> None:
        calls.append(frame.f_code.co_name)

    def sets_trace() -> int:
        sys.settrace(tracer)
        return inner(1)

    status, _, result = watch([sets_trace.__code__, inner.__code__], sets_trace)
    still = sys.gettrace()
    sys.settrace(None)
    assert (status, result, still) == (LOST, 2, tracer)
    assert "inner" in calls
    assert watch([inner.__code__], inner, 1)[0] == OK


def test_gettrace_and_gc_are_as_before() -> None:
    seen: list[Any] = []

    def looks() -> None:
        seen.append((sys.gettrace(), sys.getprofile(), gc.isenabled()))

    before = (sys.gettrace(), sys.getprofile(), gc.isenabled())
    watch([looks.__code__], looks)
    looks()
    assert seen == [before, before]


@only_311
def test_frame_settings_are_put_back() -> None:
    frames: list[types.FrameType] = []

    def keeps(chosen: bool) -> None:
        frame = sys._getframe()
        if chosen:
            frame.f_trace_opcodes = True
        frames.append(frame)
        hooktest.watch_stop()

    for chosen in (False, True):
        hooktest.watch_start(keeps.__code__)
        keeps(chosen)
        assert frames[-1].f_trace_opcodes is chosen
    hooktest.watch_start(inner.__code__, leaves.__code__)
    leaves(frames)
    hooktest.watch_stop()
    assert frames[-1].f_trace_opcodes is False


def leaves(frames: list[types.FrameType]) -> None:
    frames.append(sys._getframe())


@needs_monitoring
def test_tool_ids_are_given_back() -> None:
    monitoring = sys.monitoring
    before = [monitoring.get_tool(i) for i in range(6)]
    watch([inner.__code__], inner, 1)
    assert [monitoring.get_tool(i) for i in range(6)] == before
    monitoring.use_tool_id(4, "other")
    assert monitoring.get_local_events(4, inner.__code__) == 0
    status, events, _ = watch([inner.__code__], inner, 1)
    assert status == OK and events
    monitoring.use_tool_id(3, "other")
    monitoring.use_tool_id(5, "other")
    assert hooktest.watch_start(inner.__code__) == OTHER_TOOL
    for tool in (3, 4, 5):
        monitoring.free_tool_id(tool)
    assert watch([inner.__code__], inner, 1)[0] == OK


@needs_monitoring
def test_another_tool_with_instruction_events() -> None:
    monitoring = sys.monitoring
    events = monitoring.events
    seen: list[int] = []
    monitoring.use_tool_id(2, "other")
    monitoring.register_callback(2, events.INSTRUCTION, lambda code, offset: seen.append(offset))
    monitoring.set_local_events(2, inner.__code__, events.INSTRUCTION)
    assert hooktest.watch_start(inner.__code__) == OTHER_TOOL
    assert not hooktest.watching()
    assert watch([outer.__code__], outer, 1)[0] == OK  # another code object is no matter
    monitoring.set_local_events(2, inner.__code__, 0)

    def takes_events() -> int:
        monitoring.set_local_events(2, inner.__code__, events.INSTRUCTION)
        return inner(1)

    assert watch([inner.__code__], takes_events)[0] == LOST
    seen.clear()
    inner(1)
    assert seen  # the other tool keeps what is its own
    monitoring.set_local_events(2, inner.__code__, 0)
    monitoring.set_events(2, events.INSTRUCTION)
    status = hooktest.watch_start(inner.__code__)
    monitoring.set_events(2, 0)
    monitoring.register_callback(2, events.INSTRUCTION, None)
    monitoring.free_tool_id(2)
    assert status == OTHER_TOOL


@needs_monitoring
def test_line_events_of_another_tool_go_on() -> None:
    monitoring = sys.monitoring
    events = monitoring.events
    lines: list[int] = []
    monitoring.use_tool_id(1, "coverage")
    monitoring.register_callback(1, events.LINE, lambda code, line: lines.append(line))
    monitoring.set_local_events(1, outer.__code__, events.LINE)
    outer(1)
    expected = list(lines)
    lines.clear()
    status, seen, _ = watch([outer.__code__, inner.__code__], outer, 1)
    assert (status, lines) == (OK, expected)
    assert names_and_offsets(seen) == reference([outer.__code__, inner.__code__], outer, 1)
    lines.clear()
    outer(1)
    assert lines == expected
    monitoring.set_local_events(1, outer.__code__, 0)
    monitoring.register_callback(1, events.LINE, None)
    monitoring.free_tool_id(1)


def test_rebuilt_frames_are_announced() -> None:
    """Also on_entered: once a frame, outermost first, before its instructions."""
    images = [
        hook_images.at(outer, {"x": 1}, which=0),
        hook_images.at(inner, {"x": 10}, [10, 1], opname="BINARY_OP"),
    ]
    entered: list[tuple[int, int]] = []
    assert hooktest.watch_start(outer.__code__, inner.__code__) == OK
    result = hooktest.resume(images, None, entered)
    status, events = hooktest.watch_stop()
    assert (status, result) == (OK, 11 + 12)
    assert [index for index, _ in entered] == [0, 1]
    frames = dict(entered)
    assert events[0][:2] == ("inner", images[1][1]) and events[0][3:] == (frames[1], frames[0])
    first_outer = next(event for event in events if event[0] == "outer")
    assert first_outer[1] == images[0][2] and first_outer[3] == frames[0]
    whole = names_and_offsets(watch([outer.__code__, inner.__code__], outer, 1)[1])
    tail = whole[whole.index(("inner", images[1][1])) :]
    assert names_and_offsets(events) == tail


def test_generators_are_announced_in_every_activation() -> None:
    def numbers() -> Any:
        yield 1
        yield 2

    assert hooktest.watch_start(numbers.__code__) == OK
    assert list(numbers()) == [1, 2]
    status, events = hooktest.watch_stop()
    assert status == OK
    assert names_and_offsets(events) == reference([numbers.__code__], lambda: list(numbers()))


def test_watching_leaves_nothing_behind() -> None:
    def fresh(x: int) -> int:
        return x + 1

    before = sys.getrefcount(fresh.__code__)
    for _ in range(2000):
        hooktest.watch_start(fresh.__code__)
        fresh(1)
        hooktest.watch_stop()
    after = sys.getrefcount(fresh.__code__)
    assert after == before
