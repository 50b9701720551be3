"""Leaving, and throwing, at every instruction of every program: the same outcome as eager, traceback lines included."""

from __future__ import annotations

import re
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

import pytest

from dalsegno._testing import hook as hooktest
from tests import hook_block_programs, hook_places, hook_programs

pytestmark = pytest.mark.filterwarnings("ignore")  # the programs' own

_HERE = {__file__, hook_programs.__file__, hook_block_programs.__file__}
_OWN_NAMES = {"run_program", "raise_there", "test_throw"}


class Boom(Exception):
    """What is thrown."""


def _lines(error: BaseException) -> list[tuple[str, int]]:
    lines: list[tuple[str, int]] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        entry = (frame.f_code.co_name, line)
        # 3.11's own trace function adds an entry for the frame that it raises in.
        if frame.f_code.co_filename in _HERE and entry[0] not in _OWN_NAMES and lines[-1:] != [entry]:
            lines.append(entry)
    return lines


def show(succeeded: bool, value: Any) -> str:
    """Everything about an outcome that can be compared, addresses apart."""
    if succeeded:
        return re.sub("0x[0-9a-f]+", "0x", repr(value))
    chain = []
    error: BaseException | None = value
    while error is not None:
        chain.append((type(error).__name__, str(error), _lines(error)))
        error = error.__context__
    return repr(chain)


def run_program(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    try:
        return show(True, function(*arguments))
    except Exception as error:
        return show(False, error)


def call_program(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def run_raising(codes: Any, k: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str | None, Any]:
    """Eager, with Boom raised by another observer, in Python, at the k-th event. Also the place it was raised at."""
    state: dict[str, Any] = {"seen": 0, "place": None}

    def raise_there(code: types.CodeType, offset: int) -> None:
        state["seen"] += 1
        if state["seen"] == k + 1:
            state["place"] = (code, offset // 2)
            raise Boom("thrown")

    handled = hooktest.handled_exception()
    if hook_places.is_old_tracing():
        outcome = _under_settrace(codes, raise_there, function, arguments)
    else:
        outcome = _under_monitoring(codes, raise_there, function, arguments)
    # Raising where no instruction can (POP_EXCEPT) leaves eager itself with a wrong one.
    hooktest.set_handled_exception(handled)
    return (outcome if state["place"] else None), state["place"]


def _under_settrace(codes: Any, raise_there: Any, function: Any, arguments: Any) -> str:
    def tracer(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "call" and frame.f_code in codes:
            frame.f_trace_opcodes = True
            return tracer
        if event == "opcode":
            raise_there(frame.f_code, frame.f_lasti)
        return tracer

    _OWN_NAMES.add("tracer")
    sys.settrace(tracer)
    try:
        return run_program(function, arguments)
    finally:
        sys.settrace(None)


def _under_monitoring(codes: Any, raise_there: Any, function: Any, arguments: Any) -> str:
    monitoring = sys.monitoring
    monitoring.use_tool_id(2, "test")
    try:
        monitoring.register_callback(2, monitoring.events.INSTRUCTION, raise_there)
        for code in codes:
            monitoring.set_local_events(2, code, monitoring.events.INSTRUCTION)
        return run_program(function, arguments)
    finally:
        for code in codes:
            monitoring.set_local_events(2, code, 0)
        monitoring.register_callback(2, monitoring.events.INSTRUCTION, None)
        monitoring.free_tool_id(2)


def _identity(program: tuple[Callable[..., Any], tuple[Any, ...]]) -> str:
    return f"{program[0].__name__}{program[1]}"


def _places_of(function: Any) -> dict[types.CodeType, hook_places.Places]:
    free = hook_programs.make_free(1, 2)
    return hook_places.all_places(function, free, *hook_programs.CALLED)


def _cuts(function: Any, arguments: Any, raised: Any) -> Any:
    """Every cut whose chain of frames reaches the program itself: (number, code, offset, depth, outcome)."""
    places = _places_of(function)
    for k in range(4000):
        cut = hooktest.cut(places, k, Boom("thrown") if raised else None, show, function, arguments)
        if cut is None:
            assert k > 0
            return
        (code, offset, outermost, depth), outcome = cut
        if outermost is function.__code__ and outcome is not None:
            yield k, code, offset, depth, outcome


@pytest.mark.parametrize("program", hook_programs.PROGRAMS, ids=_identity)
def test_leave(program: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    function, arguments = program
    expected = run_program(function, arguments)
    count = 0
    for k, code, offset, _, outcome in _cuts(function, arguments, raised=False):
        assert outcome == expected, (k, code.co_name, 2 * offset)
        count += 1
    assert count > 0
    assert run_program(function, arguments) == expected


@pytest.mark.parametrize("program", hook_programs.PROGRAMS, ids=_identity)
def test_throw(program: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    """Rules 4, 5 and 6."""
    function, arguments = program
    codes = _places_of(function)
    unmatched = 0  # cuts so far at places where 3.11's own observer has no event
    for k, code, offset, _, outcome in _cuts(function, arguments, raised=True):
        if hook_places.is_old_tracing() and hook_places.behind_prefix(code, offset):
            unmatched += 1
            continue
        expected, place = run_raising(codes, k - unmatched, function, arguments)
        assert place == (code, offset), k
        assert outcome == expected, (k, code.co_name, 2 * offset)


@pytest.mark.skipif(not hook_places.is_old_tracing(), reason="only 3.11 shows the live depth")
@pytest.mark.parametrize("program", hook_programs.PROGRAMS, ids=_identity)
def test_depths_of_the_tests_are_right(program: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    function, arguments = program
    places = _places_of(function)
    for k, code, offset, depth, _ in _cuts(function, arguments, raised=False):
        assert places[code][offset][0] == depth, (k, code.co_name, 2 * offset)
