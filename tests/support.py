# ruff: noqa: E501 - programs as text, tables of calls
"""What tests across layers share: comparison with eager, counters of a stretch of calls, other processes."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dalsegno as ds
from dalsegno.fuzz import Call, call, equivalent
from dalsegno.fuzz.cold import check_cold
from dalsegno.fuzz.engines import Engine, engine_named, load_backend
from dalsegno.fuzz.oracle import Session
from dalsegno.fuzz.program import Program, load
from dalsegno.fuzz.report import describe, describe_all
from dalsegno.fuzz.runner import check as compare_engines

__all__ = [
    "Call",
    "call",
    "check",
    "check_source",
    "counting",
    "outcome_told",
    "reasons",
    "run_python",
    "settles",
    "stepped",
]

ROOT = Path(__file__).resolve().parent.parent


def check(function: Callable[..., Any], *calls: Call | tuple[Any, ...], rounds: int = 3) -> None:
    """Demands eager's results, effects, exceptions and warnings of each call made `rounds` times in a row (recorded, replayed,
    left, gone on in a side trace), and then of all calls by turns. Arguments are copied afresh for each call of each engine."""
    rows = [made for made in calls for _ in range(rounds)]
    equivalent(function, *rows, *(calls * 3 if len(calls) > 1 else ()))


def settles(function: Callable[..., Any], made: Call | tuple[Any, ...], warm_up: int = 16) -> None:
    """Demands that after some calls with equal arguments, further ones are replayed from end to end: nothing is recorded or left."""
    args, kwargs = (made.args, made.kwargs) if isinstance(made, Call) else (made, {})
    jitted = ds.jit(store=False)(function)
    with stepped():
        for _ in range(warm_up):
            _call_with_copies(jitted, args, kwargs)
        with counting(jitted) as grown:
            for _ in range(3):
                _call_with_copies(jitted, args, kwargs)
    got = {name: grown[name] for name in ("calls", "replays", "recordings", "exits", "eager_calls", "guard_failures")}
    wanted = {"calls": 3, "replays": 3, "recordings": 0, "exits": 0, "eager_calls": 0}
    assert got == got | wanted, f"{got}\n{jitted.explain()}"


def _call_with_copies(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    args, kwargs = copy.deepcopy((args, kwargs))
    function(*args, **kwargs)


_awaiting: list[tuple[str, Program, Session]] = []  # which test, its program, and what eager gives


def check_source(source: str, calls: str, engines: Sequence[str] = (), **options: Any) -> None:
    """The fuzzer's check of indented text: a module that defines `entry`, and a generator function `calls`; every engine. A second
    process is started for all such programs of a test module, at its end: check_second_processes()."""
    text, made = textwrap.dedent(source).lstrip("\n"), textwrap.dedent(calls).lstrip("\n")
    program = Program("import numpy as np\n" + text, made, **options)
    chosen = [engine_named(name) for name in engines] or list(Engine)
    with tempfile.TemporaryDirectory(prefix="dalsegno-source-") as directory:
        here = [engine for engine in chosen if not engine.value.fresh_process]
        expected, mismatches = compare_engines(load(program, directory), here, load_backend())
    assert not mismatches, describe_all(mismatches)
    if Engine.COLD_PROCESS in chosen:
        _awaiting.append((os.environ.get("PYTEST_CURRENT_TEST", "?"), program, expected))


def check_second_processes() -> None:
    """One process runs what check_source() has collected, with a store, and another reads that."""
    names, programs, sessions = zip(*_awaiting, strict=True) if _awaiting else ((), (), ())
    _awaiting.clear()
    wrong = check_cold(programs, sessions).mismatches if programs else {}
    assert not wrong, "\n".join(f"{names[index]}: {describe(mismatch)}" for index, mismatch in wrong.items())


@contextlib.contextmanager
def stepped(**settings: object) -> Iterator[None]:
    """No kernels, nothing in the background: what happens depends on nothing but the calls."""
    with ds.config(**{"kernels": False, "background": False, **settings}):
        yield


@contextlib.contextmanager
def counting(jitted: Any) -> Iterator[dict[str, int]]:
    """After the block, the dict holds what the function's counters grew by."""
    grown: dict[str, int] = {}
    before = jitted.stats
    yield grown
    grown.update(jitted.stats - before)


def reasons(jitted: Any) -> set[str]:
    """Names of all reasons in an explanation: why traces ended, and notes."""
    told = jitted.explain().to_dict()
    return {trace["reason"] for trace in told["traces"]} | {note["reason"] for note in told["notes"]}


def run_python(
    source: str | Path,
    *arguments: str,
    store: str | Path = "off",
    returncode: int = 0,
    seconds: float = 250.0,
    **environment: str,
) -> Any:
    """Runs a script (text or file) in a fresh process; what it printed as its last line, read as JSON. `seconds`: else it hangs."""
    script = ["-c", source] if isinstance(source, str) else [str(source)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {
        **os.environ,
        "DALSEGNO_STORE": str(store),
        "DALSEGNO_STEP_ASIDE": "0",
        "PYTHONPATH": path,
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *script, *arguments],
        env=variables, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == returncode, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


def outcome_told(function: Any, *arguments: Any) -> Any:
    """What a call gives or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made: Any = function(*arguments)
        except (ValueError, TypeError, ArithmeticError) as error:
            made = type(error), str(error)
    return made, [str(w.message) for w in told]
