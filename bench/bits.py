"""Does a program give eager's results to the bit? As the fuzzer's oracle compares: no tolerance anywhere."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import dalsegno as ds
from dalsegno.fuzz.copying import CallCopier
from dalsegno.fuzz.encode import Encoder
from dalsegno.fuzz.observe import EventLog, Observation, call_observed, encode_outcome
from dalsegno.fuzz.oracle import Difference, Session, compare

Function = Callable[..., Any]


def decorated(function: Function, jit: Callable[[Function], Any]) -> Any:
    """`jit(function)`; where the function calls itself it finds the jitted one, as under a decorator."""
    if function.__name__ not in function.__code__.co_names:
        return jit(function)
    space = dict(function.__globals__)
    own = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    own.__module__, own.__qualname__ = function.__module__, function.__qualname__
    own.__kwdefaults__ = function.__kwdefaults__
    space[function.__name__] = jitted = jit(own)
    return jitted


def session(function: Function, plain: Function, arguments: tuple[Any, ...], calls: int) -> Session:
    """Results, exceptions, warnings and arguments of some calls, and what is left of all that afterwards."""
    path = plain.__code__.co_filename
    copier, encoder, log = CallCopier(), Encoder(), EventLog(path)
    observations, kept = [], []
    for _ in range(calls):
        own = copier.copy(arguments)
        encoder.begin_call()
        log = EventLog(path, encoder.hidden_files)
        outcome = call_observed(function, own, {}, log, "always", "warn")
        seen = encode_outcome(encoder, outcome, path)
        observations.append(Observation(seen, log.encoded(), encoder.encode(own), ()))
        kept.append(outcome.result)
    encoder.begin_call()
    return Session(tuple(observations), encoder.encode(kept))


def differences(function: Function, arguments: tuple[Any, ...], calls: int = 6) -> list[Difference]:
    """What a jitted function does otherwise than the plain one: recorded, replayed, and then with kernels."""
    eager = session(function, function, arguments, calls)
    jitted = decorated(function, ds.jit(store=False))
    found = compare(eager, session(jitted, function, arguments, calls))
    ds.wait()
    return found or compare(eager, session(jitted, function, arguments, calls))
