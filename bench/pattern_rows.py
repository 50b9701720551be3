"""The rows of patterns: each is checked to be bit-identical, brought to its steady state, then timed against eager."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dalsegno as ds

from . import patterns
from .harness import Comparison, Function, compare, duration, same

LEAST_RATIO = 0.95
_WARM_CALLS = 4


@dataclass
class Row:
    """One line of the report. `counts`: the ratio is held against LEAST_RATIO; what must be slow does not count."""

    name: str
    eager: float  # seconds
    replay: float
    ratio: float
    low: float
    high: float
    note: str = ""
    identical: bool = True
    counts: bool = True
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return not self.identical or (self.counts and self.ratio < LEAST_RATIO)

    def __str__(self) -> str:
        spread = f"[{self.low:.2f} .. {self.high:.2f}]"
        times = f"{duration(self.eager):>9} {duration(self.replay):>9}"
        mark = "  !" if self.failed else ""
        bits = "" if self.identical else "  BITS DIFFER"
        return f"{self.name:<36} {times} {self.ratio:>8.2f} {spread:<17} {self.note}{bits}{mark}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


HEADER = f"{'':<36} {'eager':>9} {'replay':>9} {'ratio':>8} {'its spread':<17}"


def _row(name: str, timing: Comparison, **more: Any) -> Row:
    low, high = timing.spread
    return Row(name, min(timing.eager), min(timing.replay), timing.ratio, low, high, **more)


def steady(function: Any, arguments: tuple[Any, ...]) -> str:
    """Calls until traces and kernels are there; says what the next call then consists of."""
    for _ in range(2):
        for _ in range(_WARM_CALLS):
            function(*arguments)
        ds.wait()
    before, whole = function.stats, ds.stats()
    function(*arguments)
    call, process = function.stats - before, ds.stats() - whole
    how = "replayed" if call["replays"] else "eager"
    parts = [f"{process.get(n, 0)} {word}" for n, word in (("kernel_launches", "kernels"), ("exits", "exits"))]
    return ", ".join([how, *(part for part in parts if not part.startswith("0 "))])


def programs_rows(quick: bool) -> Iterator[Row]:
    """Eager against replay for each program."""
    for program in patterns.rows(quick):
        function, arguments = program.function, program.arguments
        jitted = ds.jit(store=False)(function)
        note = steady(jitted, arguments)
        identical = same(function(*arguments), jitted(*arguments))
        timing = _timed(quick, function, jitted, arguments)
        yield _row(program.name, timing, note=note, identical=identical)


def _timed(quick: bool, eager: Function, replay: Function, arguments: tuple[Any, ...]) -> Comparison:
    return compare(eager, replay, arguments, rounds=3 if quick else 7, budget=0.3 if quick else 3.0)


def guard_rows(quick: bool) -> Iterator[Row]:
    """What a call costs by the number of globals used: facts about them should be free."""
    first: float | None = None
    x = patterns.pair(10)[0]
    for count in (0, 10, 50):
        look = patterns.uses_globals(count)
        jitted = ds.jit(store=False)(look)
        note = steady(jitted, (x,))
        identical = same(look(x), jitted(x))
        timing = _timed(quick, look, jitted, (x,))
        best = min(timing.replay)
        first = best if first is None else first
        each = (best - first) / count if count else 0.0
        if count:
            note += f"; {each * 1e9:.1f} ns for each global"
        data = {"globals": count, "seconds_each": each}
        yield _row(f"guards: {count} globals, 3 ops", timing, note=note, identical=identical, data=data)


def exit_row(quick: bool) -> Row:
    """What it costs to leave in the middle, every time, without a side trace."""
    with ds.config(hot_exit=1_000_000, step_aside=False):
        jitted = ds.jit(store=False)(patterns.branch)
        steady(jitted, (1.0, 0.5))
        inside = _timed(quick, patterns.branch, jitted, (1.0, 0.5))
        before = jitted.stats
        jitted(1.0, 5.0)
        left = (jitted.stats - before)["exits"]
        identical = same(patterns.branch(1.0, 5.0), jitted(1.0, 5.0))
        timing = _timed(quick, patterns.branch, jitted, (1.0, 5.0))
    cost = min(timing.replay) - min(inside.replay)
    note = f"{left} exit a call; leaving costs {max(cost, 0.0) * 1e9:.0f} ns"
    return _row(
        "an exit without a side trace",
        timing,
        note=note,
        identical=identical,
        counts=False,
        data={"exit_seconds": cost},
    )


def recording_rows(quick: bool) -> Iterator[Row]:
    """The first call, which records, against an eager call."""
    random_pair = patterns.pair(1000)
    chosen = [("three ops", patterns.three_ops, random_pair), ("12 ops", patterns.twelve_ops, random_pair)]
    with ds.config(kernels=False):
        for name, function, arguments in chosen:
            jitted: Any = ds.jit(store=False)(function)

            def first_call(*args: Any, f: Any = jitted) -> None:
                f.clear()
                f(*args)

            before = jitted.stats
            first_call(*arguments)
            made = (jitted.stats - before)["recordings"]
            timing = _timed(quick, function, first_call, arguments)
            costs = (
                f"{min(timing.replay) / min(timing.eager):.0f} times an eager call" if made else "nothing was recorded"
            )
            yield _row(f"recording: {name}, 1e3 elements", timing, note=costs, counts=False)


def cold_row(quick: bool) -> Row:
    """Time to the first result of 12 ops on 1e5 elements in a new process: eager, and with a store that knows them."""
    rounds = 3 if quick else 5
    run_cold("warm")  # records, compiles and stores
    eager, replay, last = [], [], {}
    for _ in range(rounds):
        eager.append(run_cold("eager")["first"])
        last = run_cold("replay")
        replay.append(last["first"])
    note = (
        f"{last['recordings']} recordings, {last['kernels_compiled']} compilations, {last['replays']} replays; "
        f"import dalsegno {duration(last['import'])}"
    )
    timing = Comparison(tuple(eager), tuple(replay))
    return _row("first result, new process, warm store", timing, note=note, counts=False, data=last)


def run_cold(what: str) -> dict[str, Any]:
    """Runs bench/cold.py in a new process."""
    # Not with -m: that would import dalsegno before the clock starts.
    command = [sys.executable, str(Path(__file__).with_name("cold.py")), what]
    path = os.pathsep.join([str(Path(ds.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    # (With stepping aside the first call may be left to eager, where reading takes longer than it does.)
    environment = os.environ | {"DALSEGNO_STORE": ds.store.path, "PYTHONPATH": path, "DALSEGNO_STEP_ASIDE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def all_rows(quick: bool) -> Iterator[Row]:
    """What replay itself costs: nothing steps aside."""
    with ds.config(step_aside=False):
        yield from _rows(quick)


def _rows(quick: bool) -> Iterator[Row]:
    yield from programs_rows(quick)
    yield from guard_rows(quick)
    yield exit_row(quick)
    yield from recording_rows(quick)
    yield cold_row(quick)


def verdict(rows: list[Row]) -> int:
    slow = [f"{row.name} ({row.ratio:.2f})" for row in rows if row.counts and row.ratio < LEAST_RATIO]
    different = [row.name for row in rows if not row.identical]
    print(f"{len(rows)} rows; under {LEAST_RATIO}: {', '.join(slow) or 'none'}")
    print(f"not bit-identical: {', '.join(different) or 'none'}")
    return 1 if slow or different else 0
