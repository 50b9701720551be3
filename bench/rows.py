"""A program's row: its speed in the end, what its first calls cost, its memory, and whether its bits are eager's."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dalsegno as ds

from . import peers
from .bits import decorated, differences
from .harness import Clock, compare, duration
from .programs import Program

# What a row must keep to.
LEAST_STEADY = 0.95
LEAST_TWENTY = 0.9  # the first 20 calls of a process with a warm store, summed
LONG = 1e-3  # seconds of an eager call; the first call's limit depends on it
MOST_FIRST_LONG, MOST_FIRST_SHORT = 3.0, 30.0  # times an eager call
MOST_WARM_FIRST = 3e-3  # seconds over eager
MOST_MEMORY = 1.05

_WARM_UP = 0.3  # seconds a function is called before it is timed


@dataclass
class Row:
    name: str
    group: str
    eager: float  # seconds of a call
    replay: float
    first: float  # seconds of a call that records
    warm_first: float = 0.0  # seconds over eager's, in a second process
    twenty: float = 0.0  # eager / jitted, 20 first calls in a second process
    faults: tuple[int, int] = (0, 0)  # page faults of a call: eager's, replay's
    memory: tuple[int, int] = (0, 0)  # peak bytes of a call
    different: list[str] = field(default_factory=list)
    peers: dict[str, float] = field(default_factory=dict)  # eager / peer
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.eager / self.replay

    @property
    def first_ratio(self) -> float:
        """How many eager calls the first one costs."""
        return self.first / self.eager

    @property
    def complaints(self) -> list[str]:
        """Which limits the row breaks."""
        most_first = MOST_FIRST_LONG if self.eager >= LONG else MOST_FIRST_SHORT
        broken = {
            "bits": bool(self.different),
            "steady": self.ratio < LEAST_STEADY,
            "first": self.first_ratio > most_first,
            "twenty": 0.0 < self.twenty < LEAST_TWENTY,
            "warm": self.warm_first > MOST_WARM_FIRST,
            "faults": _over(self.faults, 16),
            "memory": _over(self.memory, 4096),
        }
        return [name for name, is_broken in broken.items() if is_broken]

    def __str__(self) -> str:
        columns = [
            f"{self.name:<28}",
            f"{duration(self.eager):>8}",
            f"{self.ratio:>6.2f}",
            f"{self.first_ratio:>7.1f}",
            f"{self.twenty:>6.2f}" if self.twenty else f"{'':>6}",
            f"{self.warm_first * 1e3:>+8.2f}" if self.twenty else f"{'':>8}",
            f"{_relative(self.faults):>7}",
            f"{_relative(self.memory):>7}",
            *(f"{name} {value:.2f}" for name, value in self.peers.items()),
            f" {self.note}",
            " !" + ",".join(self.complaints) if self.complaints else "",
        ]
        return " ".join(columns).rstrip()

    def to_dict(self) -> dict[str, Any]:
        derived = {"ratio": self.ratio, "first_ratio": self.first_ratio, "complaints": self.complaints}
        return {**asdict(self), **derived}


HEADER = f"{'':<28} {'eager':>8} {'ratio':>6} {'first x':>7} {'20':>6} {'warm ms':>8} {'faults':>7} {'memory':>7}"
EXPLANATION = """\
ratio: eager / jitted, steady state.  first x: the call that records, in eager calls.  20: eager / jitted over the
first 20 calls of a process with a warm store.  warm ms: such a process's first call, over eager's.  faults, memory: of
a replayed call, against eager's."""


def _over(pair: tuple[int, int], slack: int) -> bool:
    eager, replay = pair
    return replay > eager * MOST_MEMORY + slack


def _relative(pair: tuple[int, int]) -> str:
    eager, replay = pair
    return f"{replay / eager:.2f}" if eager else "" if not replay else f"+{replay}"


def measure(program: Program, quick: bool, processes: int, clock: Clock = time.perf_counter) -> Row:
    """`processes`: how many second processes of each kind; 0 for none."""
    function, arguments = program.function, program.arguments(quick)
    wrong = [str(d) for d in differences(function, arguments)]
    jitted = decorated(function, ds.jit(store=False))
    first = first_call(function, jitted, arguments, 0.2 if quick else 0.6, clock)
    note = _steady(jitted, arguments)
    timing = compare(function, jitted, arguments, rounds=3 if quick else 5, budget=0.3 if quick else 1.0, clock=clock)
    row = Row(program.name, program.group, min(timing.eager), min(timing.replay), first, different=wrong, note=note)
    row.faults = _faults(function, arguments), _faults(jitted, arguments)
    row.memory = _peak(function, arguments), _peak(jitted, arguments)
    if processes:
        row.warm_first, row.twenty = _second_processes(program, quick, processes, clock)
    row.peers = peers.ratios(function, arguments, row.eager)
    return row


def first_call(
    function: Callable[..., Any], jitted: Any, arguments: tuple[Any, ...], seconds: float, clock: Clock
) -> float:
    """The least of a few, for about so many seconds."""
    least = float("inf")
    deadline = time.perf_counter() + seconds
    for turn in range(8):
        if turn >= 2 and time.perf_counter() > deadline:
            break
        jitted.clear()
        function(*arguments)
        start = clock()
        jitted(*arguments)
        least = min(least, clock() - start)
        ds.wait()
    return least


def warm_up(jitted: Any, arguments: tuple[Any, ...], seconds: float) -> None:
    """Calls for so long, or longer: until traces, kernels and verdicts are there."""
    for _ in range(2):
        deadline = time.perf_counter() + seconds / 2
        for turn in range(4096):
            if turn >= 8 and time.perf_counter() > deadline:
                break
            jitted(*arguments)
        ds.wait()


def _steady(jitted: Any, arguments: tuple[Any, ...]) -> str:
    """Warms up; says what a further call consists of."""
    warm_up(jitted, arguments, _WARM_UP)
    before, whole = jitted.stats, ds.stats()
    jitted(*arguments)
    call, process = jitted.stats - before, ds.stats() - whole
    kernels, exits = process.get("kernel_launches", 0), process.get("exits", 0)
    parts = ["replay" if call["replays"] else "eager", f"{len(jitted.explain().to_dict()['traces'])} traces"]
    return ", ".join(parts + [f"{n} {word}" for n, word in ((kernels, "kernels"), (exits, "exits")) if n])


def _faults(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """Page faults of a call, the least of a few."""
    least = 1 << 60
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        function(*arguments)
        least = min(least, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return least


def _peak(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """Bytes at once that Python and NumPy took for a call."""
    tracemalloc.start()
    try:
        peaks = []
        for _ in range(2):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            function(*arguments)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return min(peaks)
    finally:
        tracemalloc.stop()


def _second_processes(program: Program, quick: bool, count: int, clock: Clock) -> tuple[float, float]:
    """Seconds of the first call over eager's, and the ratio of the first 20; the least of each, by turns."""
    run_second(program.name, quick, "warm", clock)
    eager, replay = [], []
    for _ in range(count):
        eager.append(run_second(program.name, quick, "eager", clock))
        replay.append(run_second(program.name, quick, "replay", clock))

    def least(runs: list[dict[str, float]], what: str) -> float:
        return min(run[what] for run in runs)

    return least(replay, "first") - least(eager, "first"), least(eager, "twenty") / least(replay, "twenty")


def run_second(name: str, quick: bool, what: str, clock: Clock) -> dict[str, float]:
    """Runs bench/second.py in a new process."""
    script = Path(__file__).with_name("second.py")
    path = os.pathsep.join([str(Path(ds.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"DALSEGNO_STORE": ds.store.path, "PYTHONPATH": path}
    command = [sys.executable, str(script), name, "quick" if quick else "normal", what, clock.__name__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    report: dict[str, float] = json.loads(done.stdout)
    return report


def all_rows(programs: list[Program], quick: bool, processes: int, clock: Clock = time.perf_counter) -> Iterator[Row]:
    for program in programs:
        yield measure(program, quick, processes, clock)
