"""The fuzzer's work, done in a child process so that a crash is a finding and not the end.

Reports on stdout, one JSON object a line: {"kind": "progress", ...counts} and {"kind": "mismatch", ...}. Before each
program is run it is written to `current.json` in the working directory: what is there when the process dies is what
killed it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from .chooser import Weighted
from .cold import BATCH, check_cold
from .engines import Backend, Engine, engine_named, load_backend
from .generate import programs
from .hang import own_processor_seconds
from .oracle import Session
from .program import InvalidProgram, Program, load
from .reduce import reduce_program
from .report import describe, still_fails
from .runner import Flaky, Mismatch, TooSlow, check

_SHRINK_SECONDS = 8.0
_REDUCE_SECONDS = 15.0
_PROGRESS_SECONDS = 2.0


@dataclasses.dataclass
class WorkOrder:
    examples: int
    seed: int
    engines: Sequence[str]
    directory: str
    seconds: float = 1e9
    backend: str = ""
    known: Sequence[Sequence[str]] = ()  # signatures of mismatches that need no further report
    reduce: bool = True
    prefer: Sequence[str] = ()  # what programs shall have more of (Weighted.prefer)


@dataclasses.dataclass
class Counts:
    programs: int = 0
    calls: int = 0
    raised: int = 0
    mismatches: int = 0
    flaky: int = 0
    invalid: int = 0
    too_slow: int = 0
    stats: dict[str, int] = dataclasses.field(default_factory=dict)

    def add(self, other: dict[str, Any]) -> None:
        for field in dataclasses.fields(self):
            if field.name == "stats":
                for name, value in other["stats"].items():
                    self.stats[name] = self.stats.get(name, 0) + value
            else:
                setattr(self, field.name, getattr(self, field.name) + other[field.name])


class _Found(AssertionError):
    def __init__(self, program: Program, mismatch: Mismatch) -> None:
        super().__init__(describe(mismatch))
        self.program = program
        self.mismatch = mismatch


class _ShrunkEnough(BaseException):
    """Not an Exception: Hypothesis lets it pass, and so stops shrinking."""


class _Worker:
    def __init__(self, order: WorkOrder) -> None:
        self._order = order
        self._engines = [engine_named(name) for name in order.engines]
        self._known = {tuple(signature) for signature in order.known}
        self._backend: Backend = load_backend(order.backend)
        self._counts = Counts()
        self._started = self._reported = time.monotonic()
        self._batch: list[tuple[Program, Session]] = []
        self._shrink_until: float | None = None
        self._found: list[_Found] = []  # the first, and what it was shrunk to
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")

    def run(self) -> None:
        chunk = 0
        while self._left() > 0:
            with contextlib.suppress(_Found, _ShrunkEnough):
                self._property(self._order.seed * 1_000_003 + chunk, min(self._left(), 250))()
            if self._found:
                smallest = min(self._found, key=lambda found: len(found.program.source) + len(found.program.calls))
                self._report(smallest.program, smallest.mismatch)
            chunk += 1
            self._shrink_until = None
            self._found.clear()
        self._check_cold_batch()
        self._progress(final=True)

    def _left(self) -> int:
        return 0 if self._out_of_time() else self._order.examples - self._counts.programs

    def _out_of_time(self) -> bool:
        return time.monotonic() - self._started > self._order.seconds

    def _property(self, chunk_seed: int, examples: int) -> Any:
        @seed(chunk_seed)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
        )
        @given(programs())
        def property_(program: Program) -> None:
            self._example(program)

        return property_

    # ---- one program

    def _example(self, program: Program) -> None:
        if self._shrink_until is None:
            if self._out_of_time():
                return
            self._counts.programs += 1
            self._maybe_progress()
        elif own_processor_seconds() > self._shrink_until:
            raise _ShrunkEnough
        mismatch = self._check(program)
        if mismatch is None:
            return
        if self._shrink_until is None:
            self._counts.mismatches += 1
            if mismatch.signature() in self._known:
                return
            self._known.add(mismatch.signature())
            self._shrink_until = own_processor_seconds() + _SHRINK_SECONDS
        elif mismatch.signature() != self._found[0].mismatch.signature():
            return
        self._found.append(_Found(program, mismatch))
        raise self._found[-1]

    def _check(self, program: Program) -> Mismatch | None:
        here = [engine for engine in self._engines if not engine.value.fresh_process]
        try:
            loaded = load(program, self._order.directory)
            session, mismatches = check(loaded, here, self._backend, lambda engine: self._note(program, engine))
        except (Flaky, InvalidProgram, TooSlow) as problem:
            if self._shrink_until is None:
                name = {Flaky: "flaky", InvalidProgram: "invalid", TooSlow: "too_slow"}[type(problem)]
                setattr(self._counts, name, getattr(self._counts, name) + 1)
            return None
        if self._shrink_until is None:
            self._counts.calls += len(session.observations)
            self._counts.raised += sum(observation.outcome[0] == "raised" for observation in session.observations)
            self._collect_for_cold(program, session)
        return mismatches[0] if mismatches else None

    def _note(self, program: Program | None, engine: Engine) -> None:
        with open(os.path.join(self._order.directory, "current.json"), "w", encoding="utf-8") as file:
            json.dump({"program": program and program.to_json(), "engine": engine.label}, file)

    # ---- the cold process

    def _collect_for_cold(self, program: Program, session: Session) -> None:
        if Engine.COLD_PROCESS in self._engines:
            self._batch.append((program, session))
            if len(self._batch) >= BATCH:
                self._check_cold_batch()

    def _check_cold_batch(self) -> None:
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        self._note(None, Engine.COLD_PROCESS)
        result = check_cold([program for program, _ in batch], [session for _, session in batch], self._order.backend)
        self._counts.add(dataclasses.asdict(Counts(stats={f"cold {k}": v for k, v in result.stats.items()})))
        for index, mismatch in result.mismatches.items():
            self._counts.mismatches += 1
            mismatch = self._same_without_process(batch[index][0]) or mismatch
            if mismatch.signature() not in self._known:
                self._known.add(mismatch.signature())
                self._report(batch[index][0], mismatch)

    def _same_without_process(self, program: Program) -> Mismatch | None:
        """What fails in this process too is much faster to reduce here."""
        self._note(program, Engine.COMPILED)
        try:
            _, mismatches = check(load(program, self._order.directory), [Engine.COMPILED], self._backend)
        except (Flaky, InvalidProgram, TooSlow):
            return None
        return mismatches[0] if mismatches else None

    # ---- reports

    def _report(self, program: Program, mismatch: Mismatch) -> None:
        engine, backend = mismatch.engine, self._order.backend
        if self._order.reduce:

            def fails(candidate: Program) -> bool:
                self._note(candidate, engine)
                return still_fails(candidate, engine, backend, mismatch.signature())

            seconds = _REDUCE_SECONDS * (4 if engine.value.fresh_process else 1)
            program = reduce_program(program, fails, seconds)
        self._send(
            kind="mismatch",
            program=program.to_json(),
            engine=engine.label,
            signature=mismatch.signature(),
            text=self._text_of(program, mismatch),
            counts=self._all_counts(),
        )

    def _text_of(self, program: Program, mismatch: Mismatch) -> str:
        if mismatch.engine.value.fresh_process:
            return describe(mismatch)
        try:
            _, found = check(load(program, self._order.directory), [mismatch.engine], self._backend)
        except (Flaky, InvalidProgram, TooSlow):
            found = []
        return describe(found[0] if found else mismatch)

    def _maybe_progress(self) -> None:
        if time.monotonic() - self._reported > _PROGRESS_SECONDS:
            self._reported = time.monotonic()
            self._progress()

    def _progress(self, final: bool = False) -> None:
        self._send(kind="done" if final else "progress", counts=self._all_counts())

    def _all_counts(self) -> dict[str, object]:
        return dataclasses.asdict(self._counts) | {"stats": {**self._counts.stats, **self._backend.stats()}}

    def _send(self, **message: object) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def work(order: WorkOrder) -> None:
    Weighted.prefer(order.prefer)
    _Worker(order).run()
