"""Runs one program through engines, and compares each with eager."""

from __future__ import annotations

import dataclasses
import gc
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .encode import Encoder
from .engines import ActiveEngine, Backend, Engine, Watch, activate
from .memory import Peaks
from .observe import EventLog, Observation, call_observed, encode_globals, encode_outcome
from .oracle import MEMORY, Difference, Session, compare
from .program import InvalidProgram, LoadedProgram, Program

_MAX_CALLS = 64
_ROOM = 800  # frames that a session has
_UNBOUND_LINE = re.compile(r"\.UnboundLocalError\[\d+\]\.traceback\[\d+\]\.<program>\[\d+\]$")
_SEES_DEATHS = re.compile(r"__del__|weakref\.ref")
EAGER_SECONDS = 2.0  # of the processor: a loaded machine does not make a program slow


class Flaky(Exception):
    """Two eager runs of the program differ: it says nothing about any other engine."""


class TooSlow(BaseException):  # not an Exception: programs catch those
    """The eager run did not end in time."""


@dataclasses.dataclass(frozen=True)
class Mismatch:
    engine: Engine
    differences: tuple[Difference, ...]

    def signature(self) -> tuple[str, str]:
        """Mismatches with equal signatures are likely to have one cause: the place of the difference, without numbers
        and names; and the message, if there is an exception where eager has none."""
        first = self.differences[0]
        place = re.sub(r"[\d\[\]]+|\.\w*(?:Error|Exception|Interrupt)|<program>", "", first.where)
        message = re.sub(r"\d+", "", first.actual[:90]) if first.actual.startswith("('raised'") else ""
        return self.engine.label, first.aspect + place + message


def run_session(loaded: LoadedProgram, engine: Engine, backend: Backend | None, store: bool = False) -> Session:
    with _no_gc_callbacks(), _collector(loaded.program), _same_room(), activate(engine, backend, store) as active:
        return _Run(loaded, active).session()


@contextmanager
def _collector(program: Program) -> Iterator[None]:
    """When the collector runs depends on what else was allocated, so that a program that sees objects die has it only
    where it asks for it."""
    at_once = gc.isenabled() and not _SEES_DEATHS.search(program.source)
    gc.collect()
    if gc.get_freeze_count() == 0:
        gc.freeze()  # once: this collection, and those that programs ask for, need not look through all modules again
    if not at_once:
        gc.disable()
    try:
        yield
    finally:
        if not at_once:
            gc.enable()


@contextmanager
def _same_room() -> Iterator[None]:
    """A recursion without end goes as deep in every process, whatever lies below the session on the stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _ROOM - _room(0))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _room(depth: int) -> int:
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


@contextmanager
def _no_gc_callbacks() -> Iterator[None]:
    """Hypothesis has one, in Python: a program's signal that came while it runs would show its handler that frame."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        yield
    finally:
        gc.callbacks[:] = kept


class _Run:
    def __init__(self, loaded: LoadedProgram, active: ActiveEngine) -> None:
        self._loaded = loaded
        self._active = active
        self._encoder = Encoder(active.hidden_files)
        self._kept: list[Any] = []
        self._peaks = Peaks(loaded.program.source, active.peaks)
        self._namespace: dict[str, Any] = {"__name__": "fuzzed", "__file__": loaded.path, "jit": active.jit}

    def session(self) -> Session:
        calls_namespace: dict[str, Any] = {"np": np}
        try:
            exec(self._loaded.code, self._namespace)
            exec(self._loaded.calls_code, calls_namespace)
            generator = calls_namespace["calls"]()
        except Exception as error:
            raise InvalidProgram(f"{type(error).__name__}: {error}") from error
        observations = tuple(self._observations(generator))
        self._encoder.begin_call()
        return Session(observations, self._encoder.encode(self._kept), tuple(self._peaks.bytes))

    def _observations(self, generator: Any) -> Iterator[Observation]:
        result = None
        for _ in range(_MAX_CALLS):
            try:
                request = generator.send(result)
            except StopIteration:
                return
            except Exception as error:  # building arguments failed: for every engine alike
                raise InvalidProgram(f"calls: {type(error).__name__}: {error}") from error
            result = None
            if isinstance(request, str):
                self._rebind(request)
            elif _is_call(request):
                result, observation = self._call(*request)
                yield observation
            else:
                raise InvalidProgram(f"calls yielded {request!r}")

    def _rebind(self, statement: str) -> None:
        try:
            exec(compile(statement, self._loaded.path, "exec"), self._namespace)
        except Exception as error:
            raise InvalidProgram(f"{statement}: {error}") from error

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Observation]:
        program, path, encoder = self._loaded.program, self._loaded.path, self._encoder
        function: Callable[..., Any] | None = self._namespace.get("entry")
        if function is None:
            raise InvalidProgram("the program defines no entry")
        encoder.begin_call()
        arguments = (args, kwargs)
        encoder.encode(arguments)  # so that a result that is an argument, or shares its memory, gets its number
        encoder.begin_call()
        log = EventLog(path, encoder.hidden_files)
        self._active.before_call()
        with self._peaks.call():
            outcome = call_observed(function, args, kwargs, log, program.warnings, program.errstate)
        self._active.after_call()
        result = outcome.result
        observation = Observation(
            encode_outcome(encoder, outcome, path),
            log.encoded(),
            encoder.encode(arguments),
            encode_globals(encoder, self._namespace),
        )
        if program.keep_results:
            self._kept.append((result, arguments))
        else:
            encoder.forget()
        return result, observation


def _is_call(request: Any) -> bool:
    return type(request) is tuple and len(request) == 2 and type(request[0]) is tuple and type(request[1]) is dict


def check(
    loaded: LoadedProgram,
    engines: Iterable[Engine],
    backend: Backend | None,
    note: Callable[[Engine], None] = lambda _: None,
    eager_seconds: float = EAGER_SECONDS,
) -> tuple[Session, list[Mismatch]]:
    """The eager session and what differs from it. Raises Flaky, TooSlow or InvalidProgram where there is nothing to
    compare. `eager_seconds`: of the processor."""
    note(Engine.EAGER)
    with _time_limit(eager_seconds):
        expected = run_session(loaded, Engine.EAGER, backend)
        again = compare(expected, run_session(loaded, Engine.EAGER, backend))
        if again:
            raise Flaky(str(again[0]))
    mismatches = []
    for engine in engines:
        note(engine)
        before = dict(backend.stats()) if backend is not None else {}
        actual = run_session(loaded, engine, backend)
        differences = compare(expected, actual)
        if differences and differences[0].aspect == MEMORY:  # or was something of ours, the compiler, loaded only now?
            actual = run_session(loaded, engine, backend)
            differences = compare(expected, actual)
        if backend is not None and not differences:
            forgotten = engine.value.watch is Watch.FORGET_BEFORE_CALL
            times = len(actual.observations) if forgotten else 1
            differences = out_of_bounds(loaded, before, backend.stats(), times)
        if differences and not _eager_at_other_warmth(loaded, actual, differences):
            mismatches.append(Mismatch(engine, tuple(differences)))
    return expected, mismatches


def out_of_bounds(
    loaded: LoadedProgram, before: Mapping[str, int], after: Mapping[str, int], times: int = 1
) -> list[Difference]:
    """Counters are facts, too: a program has only so many places where it can go another way. `times`: that it was
    begun with nothing recorded."""
    lines = loaded.program.source.count("\n")
    found = []
    for name, most in (("side_traces", 2 * lines + 20), ("recordings", 4 * lines + 20)):
        grown = after.get(name, 0) - before.get(name, 0)
        if grown > times * most:
            found.append(Difference(None, "counters", f".{name}", f"at most {times * most}", str(grown)))
    return found


def _eager_at_other_warmth(loaded: LoadedProgram, actual: Session, differences: list[Difference]) -> bool:
    """Once a function of CPython 3.11 is warm, it runs some pairs of instructions as one, and an UnboundLocalError in
    the second has the line of the first (Python/ceval.c, STORE_FAST__LOAD_FAST). True if nothing else differs, and
    each call is just like the same call of a warm or of a cold eager run."""
    if sys.version_info >= (3, 12) or not all(_UNBOUND_LINE.search(each.where) for each in differences):
        return False
    cold = dataclasses.replace(loaded, code=compile(loaded.program.source, loaded.path, "exec", dont_inherit=True))
    sessions = [run_session(each, Engine.EAGER, None) for each in (loaded, cold)]
    calls = zip(actual.observations, *(session.observations for session in sessions), strict=False)
    return all(each in eager for each, *eager in calls) and actual.afterwards in [each.afterwards for each in sessions]


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Only in the main thread, which is where signals go; elsewhere without a limit."""
    late = False

    def give_up(*_: object) -> None:
        nonlocal late
        late = True
        raise TooSlow

    try:
        previous = signal.signal(signal.SIGPROF, give_up)
    except ValueError:
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)  # again and again, as programs may swallow it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
        if late:
            raise TooSlow
