"""Compares a function one has with itself: eager against the engines that need no process of their own.

Each engine gets its own equal copies of the arguments. A function that changes state of its own (globals, files)
makes the runs differ for a reason that is none: that is noticed by running it eagerly twice, and said.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .copying import CallCopier
from .encode import Encoder
from .engines import Engine, activate, engine_named, jitted_engines, load_backend
from .observe import EventLog, Observation, call_observed, encode_outcome
from .oracle import Session, compare
from .report import describe_all
from .runner import Mismatch


@dataclasses.dataclass(frozen=True)
class Call:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def equivalent(
    function: Callable[..., Any], *calls: Call | tuple[Any, ...], engines: Sequence[str] = (), backend: str = ""
) -> None:
    """Makes the calls, in order, with every engine; AssertionError says what differs from eager. A tuple is
    positional arguments."""
    plain = inspect.unwrap(function)
    prepared = [made if isinstance(made, Call) else Call(tuple(made), {}) for made in calls]
    expected = _session(plain, prepared, Engine.EAGER, backend)
    again = compare(expected, _session(plain, prepared, Engine.EAGER, backend))
    if again:
        raise ValueError(
            f"{getattr(plain, '__qualname__', plain)} gives other results when it is run again, "
            f"so there is nothing to compare: {again[0]}"
        )
    chosen: Iterable[Engine] = [engine_named(name) for name in engines] or jitted_engines(here=True)
    mismatches = []
    for engine in chosen:
        differences = compare(expected, _session(plain, prepared, engine, backend))
        if differences:
            mismatches.append(Mismatch(engine, tuple(differences)))
    assert not mismatches, describe_all(mismatches)


def _session(function: Callable[..., Any], calls: Sequence[Call], engine: Engine, backend: str) -> Session:
    path = getattr(getattr(function, "__code__", None), "co_filename", "")
    copier = CallCopier()
    kept: list[Any] = []
    observations = []
    with activate(engine, load_backend(backend) if engine.value.jitted else None) as active:
        encoder = Encoder(active.hidden_files)
        used = active.jit(function)
        for made in calls:
            arguments = copier.copy((made.args, made.kwargs))
            encoder.begin_call()
            encoder.encode(arguments)
            encoder.begin_call()
            log = EventLog(path, encoder.hidden_files)
            active.before_call()
            outcome = call_observed(used, arguments[0], arguments[1], log, "always", "warn")
            active.after_call()
            observations.append(
                Observation(encode_outcome(encoder, outcome, path), log.encoded(), encoder.encode(arguments), ())
            )
            kept.append((outcome.result, arguments))
    encoder.begin_call()
    return Session(tuple(observations), encoder.encode(kept))
