"""Everything that can be observed of one call, as plain data: result or exception, output and warnings in their
order, the arguments and the program's globals afterwards."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .encode import Encoded, Encoder, plain_text

_TOOL = 2  # the id that programs use (module_parts.py)
_MAX_CHAIN = 8  # exceptions in a chain of causes and contexts


@dataclasses.dataclass(frozen=True)
class Observation:
    outcome: Encoded
    events: Encoded
    arguments: Encoded
    globals: Encoded


class EventLog:
    """Collects output and warnings of one call, in order; stands in for sys.stdout."""

    encoding = "utf-8"

    def __init__(self, program_path: str, hidden_files: frozenset[str] = frozenset()) -> None:
        self._path = program_path
        self._hidden = hidden_files | {__file__}
        self._events: list[Encoded] = []

    def write(self, text: str) -> int:
        if self._events and self._events[-1][0] == "output":
            text_so_far = self._events.pop()[1]
        else:
            text_so_far = ""
        self._events.append(("output", text_so_far + text))
        return len(text)

    def flush(self) -> None:
        pass

    def show_warning(self, message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        if filename in self._hidden:
            filename, lineno = "<caller>", 0
        label = file_label(filename, self._path)
        self._events.append(("warning", category.__name__, plain_text(str(message)), label, lineno))

    def encoded(self) -> Encoded:
        return tuple((kind, plain_text(rest[0])) if kind == "output" else (kind, *rest) for kind, *rest in self._events)


def file_label(filename: str, program_path: str) -> str:
    return "<program>" if filename == program_path else os.path.basename(filename)


@dataclasses.dataclass
class Outcome:
    """What a call returned or raised, before it is encoded."""

    result: Any = None
    error: BaseException | None = None


def call_observed(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    log: EventLog,
    warning_mode: str,
    errstate: str,
) -> Outcome:
    stdout = sys.stdout
    with warnings.catch_warnings(), np.errstate(all=errstate):  # type: ignore[arg-type]
        warnings.simplefilter(warning_mode)  # type: ignore[arg-type]
        warnings.showwarning = log.show_warning  # type: ignore[assignment]
        sys.stdout = log
        watchers = sys.gettrace(), sys.getprofile()
        # (This frame, which the exception's traceback holds, must not hold it: CPython has few instances of
        # MemoryError, and gives the last one, traceback and all, to whoever comes then.)
        try:
            return Outcome(result=function(*args, **kwargs))
        except Exception as error:
            return Outcome(error=error)
        finally:
            _switch_off(*watchers)
            sys.stdout = stdout


def _switch_off(trace: Any, profile: Any) -> None:
    """What a program may have left on: tools that watch, and a timer."""
    if sys.gettrace() is not trace:
        sys.settrace(trace)
    if sys.getprofile() is not profile:
        sys.setprofile(profile)
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(_TOOL) == "fuzz":
        monitoring.set_events(_TOOL, 0)
        monitoring.register_callback(_TOOL, monitoring.events.PY_START, None)
        monitoring.free_tool_id(_TOOL)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def encode_outcome(encoder: Encoder, outcome: Outcome, path: str) -> Encoded:
    if outcome.error is not None:
        return ("raised", encode_exception(encoder, outcome.error, path, skip=1))
    return ("returned", encoder.encode(outcome.result))


def encode_exception(encoder: Encoder, error: BaseException, path: str, skip: int = 0, depth: int = 0) -> Encoded:
    """`skip`: traceback entries of the caller's own, outermost."""
    if depth > _MAX_CHAIN:
        return ("...",)
    chained = [
        None if other is None else encode_exception(encoder, other, path, 0, depth + 1)
        for other in (error.__cause__, error.__context__)
    ]
    return (
        type(error).__qualname__,
        ("text", plain_text(str(error))),
        ("args", encoder.encode(error.args)),
        ("traceback", *_traceback_entries(encoder, error, path)[skip:]),
        ("cause", chained[0]),
        ("context", chained[1]),
        ("suppress_context", error.__suppress_context__),
        ("notes", *getattr(error, "__notes__", ())),
        ("name", getattr(error, "name", None)),
    )


def _traceback_entries(encoder: Encoder, error: BaseException, path: str) -> list[Encoded]:
    entries = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename not in encoder.hidden_files:
            # Columns are what a printed traceback underlines. The instruction differs within eager, by specialisation.
            position = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), None)
            if traceback.tb_next is None and isinstance(error, UnboundLocalError):
                position = None  # the first or the second of two loads made one, by specialisation
            label = file_label(code.co_filename, path)
            entry: Encoded = (label, code.co_name, traceback.tb_lineno, position)
            if label == "<program>":  # what a debugger would show of it
                entry += tuple((name, encoder.encode(value)) for name, value in traceback.tb_frame.f_locals.items())
            entries.append(entry)
        traceback = traceback.tb_next
    return entries


def encode_globals(encoder: Encoder, namespace: dict[str, Any]) -> Encoded:
    """The program's data; functions, classes and modules only by kind and name."""
    return tuple(
        (name, encoder.encode(value))
        for name, value in namespace.items()
        if not name.startswith("__") and name != "jit"
    )
