"""Who observes a thread, or code (rule 11)."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dalsegno._testing import hook as hooktest
from tests import hook_images
from tests.test_hook_watch import inner, needs_monitoring, no_profile, no_trace, outer


def test_rule_11_a_thread_that_others_observe() -> None:
    assert not hooktest.thread_observed()
    sys.settrace(no_trace)
    traced = hooktest.thread_observed()
    sys.settrace(None)
    sys.setprofile(no_profile)
    profiled = hooktest.thread_observed()
    sys.setprofile(None)
    assert (traced, profiled, hooktest.thread_observed()) == (True, True, False)
    hooktest.watch_start(inner.__code__)
    ours = hooktest.thread_observed(), hooktest.code_observed(inner.__code__)
    hooktest.watch_stop()
    assert ours == (False, False)


def test_rule_11_another_thread_s_tracer_is_no_matter() -> None:
    answers: list[bool] = []
    go, done = threading.Event(), threading.Event()

    def traced() -> None:
        sys.settrace(no_trace)
        go.set()
        done.wait()
        answers.append(hooktest.thread_observed())
        sys.settrace(None)

    thread = threading.Thread(target=traced)
    thread.start()
    go.wait()
    here = hooktest.thread_observed()
    done.set()
    thread.join()
    assert (here, answers) == (False, [True])


@needs_monitoring
def test_rule_11_monitoring_tools() -> None:
    monitoring = sys.monitoring
    monitoring.use_tool_id(1, "coverage")
    idle = hooktest.thread_observed()
    monitoring.set_events(1, monitoring.events.PY_START)
    unseen = hooktest.thread_observed()
    monitoring.register_callback(1, monitoring.events.PY_START, lambda *_: None)
    active = hooktest.thread_observed()
    monitoring.set_events(1, 0)
    monitoring.register_callback(1, monitoring.events.PY_START, None)
    monitoring.set_local_events(1, inner.__code__, monitoring.events.LINE)
    unseen |= hooktest.code_observed(inner.__code__)
    monitoring.register_callback(1, monitoring.events.LINE, lambda *_: None)
    local = hooktest.thread_observed(), hooktest.code_observed(inner.__code__), hooktest.code_observed(outer.__code__)
    monitoring.set_local_events(1, inner.__code__, 0)
    monitoring.register_callback(1, monitoring.events.LINE, None)
    monitoring.free_tool_id(1)
    assert not unseen
    assert (idle, active, local) == (False, True, (False, True, False))
    assert not hooktest.code_observed(inner.__code__)


@contextlib.contextmanager
def _told(tools: range, code: types.CodeType, told: list[Any]) -> Iterator[Callable[[bool], None]]:
    monitoring, lines = sys.monitoring, sys.monitoring.events.LINE

    def observe(on: bool) -> None:
        for tool in tools:
            monitoring.set_events(tool, lines if on else 0)

    for tool in tools:
        monitoring.use_tool_id(tool, "other")
        monitoring.register_callback(tool, lines, lambda c, line: told.append(line) if c is code else None)
    try:
        yield observe
    finally:
        observe(False)
        for tool in tools:
            monitoring.register_callback(tool, lines, None)
            monitoring.free_tool_id(tool)


def _three_lines(x: Any) -> Any:
    x = x + 1
    x = x + 2
    return x + 3


@needs_monitoring
@pytest.mark.parametrize("tools", [range(2, 3), range(1, 3)], ids=["one", "two"])
def test_rule_11_a_resumed_frame_is_told_of_by_those_who_observe_now(tools: range) -> None:
    image = hook_images.at(_three_lines, {"x": 1}, [2, 3], opname="BINARY_OP", which=1)
    third = _three_lines.__code__.co_firstlineno + 3
    told: list[Any] = []
    with _told(tools, _three_lines.__code__, told) as observe:
        observe(True)
        assert _three_lines(1) == 7
        assert len(told) == 3 * len(tools)
        told.clear()
        observe(False)
        assert hooktest.resume([image], None) == 8
        assert told == []
        observe(True)
        assert hooktest.resume([image], None) == 8
        assert told == [third] * len(tools)
        told.clear()
        observe(False)
        assert [_three_lines(1), hooktest.resume([image], None), told] == [7, 8, []]
