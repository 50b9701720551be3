"""`dalsegno fuzz`: starts workers, shows progress, prints failures as tests and a summary line."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from .child_process import child_command, child_environment
from .crash import reduced_crash
from .engines import Engine, engine_named, jitted_engines, load_backend
from .hang import Patience, processor_seconds
from .program import Program
from .report import as_test, versions
from .worker import Counts, WorkOrder

_CHUNK = 500  # programs a worker process handles
_MOST_REPORTS = 20


@dataclasses.dataclass
class Options:
    examples: int
    seed: int
    seconds: float
    engines: Sequence[str]
    backend: str
    reduce: bool
    stop_at_first: bool
    prefer: Sequence[str]


def run(argv: Sequence[str]) -> int:
    options = _parse(argv)
    if isinstance(options, str):
        print(f"dalsegno fuzz: {options}", file=sys.stderr)
        return 2
    return _Fuzz(options).run()


def _parse(argv: Sequence[str]) -> Options | str:
    parser = argparse.ArgumentParser(
        prog="dalsegno fuzz",
        description="Runs random programs through every engine and compares each with eager, to the bit.",
    )
    default_engines = ",".join(e.label for e in jitted_engines(here=False))
    parser.add_argument(
        "function", nargs="?", metavar="MODULE:FUNCTION", help="a function of yours to fuzz (not there yet)"
    )
    parser.add_argument("--examples", type=int, default=200, metavar="N", help="programs to run (default 200)")
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        metavar="S",
        help="the same seed gives the same programs (default: random, printed)",
    )
    parser.add_argument("--time", type=float, default=None, metavar="T", help="stop after T seconds")
    parser.add_argument("--engines", default=default_engines, metavar="A,B", help=f"default: {default_engines}")
    parser.add_argument("--no-reduce", action="store_true", help="print failures as Hypothesis shrank them")
    parser.add_argument("--stop-at-first", action="store_true", help="stop at the first mismatch")
    parser.add_argument(
        "--prefer",
        action="append",
        default=[],
        metavar="TEXT",
        help="more of what is written with TEXT, for example sin(",
    )
    parser.add_argument(
        "--backend", default="", help=argparse.SUPPRESS
    )  # MODULE:CLASS in place of dalsegno; for the fuzzer's own tests
    try:
        given = parser.parse_args(list(argv))
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        return "see --help"
    if given.function is not None:
        return (
            f"fuzzing a function of yours ({given.function}) is not there yet; without it, random programs are fuzzed"
        )
    if given.examples < 1 or (given.time is not None and given.time <= 0):
        return "--examples and --time must be positive"
    try:
        engines = [engine_named(name).label for name in given.engines.split(",")]
        load_backend(given.backend)
    except (ValueError, ImportError, AttributeError) as error:
        return str(error)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    return Options(
        given.examples,
        seed,
        given.time or 1e9,
        engines,
        given.backend,
        not given.no_reduce,
        given.stop_at_first,
        given.prefer,
    )


class _Fuzz:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._finished = Counts()  # of workers that have ended
        self._running: dict[str, Any] | None = None  # counts of the one at work
        self._known: set[tuple[str, ...]] = set()
        self._reports = 0
        self._started = time.monotonic()

    def run(self) -> int:
        print(f"{versions()}; seed {self._options.seed}; engines {', '.join(self._options.engines)}", flush=True)
        chunk = 0
        try:
            with tempfile.TemporaryDirectory(prefix="dalsegno-fuzz-") as directory:
                while self._finished.programs < self._options.examples and not self._over():
                    self._work(directory, chunk)
                    chunk += 1
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            self._finish_worker()
        self._summary()
        return 1 if self._finished.mismatches else 0

    def _over(self) -> bool:
        return self._enough() or self._seconds() >= self._options.seconds

    def _enough(self) -> bool:
        return self._reports >= (1 if self._options.stop_at_first else _MOST_REPORTS)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    # ---- one worker

    def _work(self, directory: str, chunk: int) -> None:
        order = WorkOrder(
            examples=min(_CHUNK, self._options.examples - self._finished.programs),
            seed=self._options.seed * 10_007 + chunk,
            engines=self._options.engines,
            directory=directory,
            seconds=self._options.seconds - self._seconds(),
            backend=self._options.backend,
            known=sorted(self._known),
            reduce=self._options.reduce,
            prefer=self._options.prefer,
        )
        current = os.path.join(directory, "current.json")
        if os.path.exists(current):
            os.remove(current)
        errors = os.path.join(directory, "stderr.txt")
        with open(errors, "w", encoding="utf-8") as stderr:
            worker = subprocess.Popen(
                child_command("work", json.dumps(dataclasses.asdict(order))),
                stdout=subprocess.PIPE, stderr=stderr, text=True, env=child_environment(),
            )  # fmt: skip
            hung = threading.Event()
            watchdog = threading.Thread(target=_watch, args=(worker, current, hung), daemon=True)
            watchdog.start()
            assert worker.stdout is not None
            with worker.stdout:  # else it is closed, with a warning, when the watchdog lets go of the worker
                done = self._listen(worker.stdout)
            if enough := not done and self._enough():
                worker.kill()
            status = worker.wait()
        self._finish_worker()
        if not done and not enough:
            with open(errors, encoding="utf-8") as file:
                self._ended_badly(directory, status, hung.is_set(), file.read())

    def _listen(self, lines: Iterable[str]) -> bool:
        """True if the worker came to its end."""
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # cut off by a crash
            self._running = message["counts"]
            if message["kind"] == "done":
                return True
            if message["kind"] == "progress":
                self._progress()
                continue
            self._mismatch(
                Program.from_json(message["program"]), message["engine"], tuple(message["signature"]), message["text"]
            )
            if self._options.stop_at_first or self._reports >= _MOST_REPORTS:
                return False
        return False

    def _finish_worker(self) -> None:
        if self._running is not None:
            self._finished.add(self._running)
        self._running = None

    def _ended_badly(self, directory: str, status: int, hung: bool, errors: str) -> None:
        """The worker crashed or hung: what it was at is the finding; in eager a program that does not end is too slow,
        as where a call in C is not interrupted."""
        self._finished.programs += 1  # so that a worker that always dies at once comes to an end
        try:
            with open(os.path.join(directory, "current.json"), encoding="utf-8") as file:
                current = json.load(file)
        except (OSError, ValueError):
            current = {"program": None, "engine": "?"}
        if hung and current["engine"] == Engine.EAGER.label:
            self._finished.too_slow += 1
            return
        self._finished.mismatches += 1
        how = "hung" if hung else f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        text = f"the process ended with {how}\n{_shortened(errors)}"
        if current["program"] is None:
            self._reports += 1
            print(f"mismatch: {text}", flush=True)
            return
        program = Program.from_json(current["program"])
        signature = (current["engine"], "crash", how)
        if signature not in self._known and self._options.reduce and not hung:
            program = reduced_crash(program, engine_named(current["engine"]), directory, self._options.backend)
        self._mismatch(program, current["engine"], signature, text)

    # ---- what is printed

    def _mismatch(self, program: Program, engine: str, signature: tuple[str, ...], text: str) -> None:
        if signature in self._known:
            return
        self._known.add(signature)
        self._reports += 1
        print(f"\nmismatch {self._reports}: paste this as a test\n" + "-" * 80)
        print(as_test(program, engine_named(engine), text, self._options.seed) + "-" * 80, flush=True)

    def _progress(self) -> None:
        counts = self._total()
        print(
            f"{counts.programs} programs, {counts.calls} calls, {counts.mismatches} mismatches, "
            f"{counts.programs / max(self._seconds(), 1e-9):.1f} programs/s",
            flush=True,
        )

    def _total(self) -> Counts:
        total = Counts()
        total.add(dataclasses.asdict(self._finished))
        if self._running is not None:
            total.add(self._running)
        return total

    def _summary(self) -> None:
        counts = self._total()
        print(
            "exercised: " + (", ".join(f"{name} {value}" for name, value in counts.stats.items() if value) or "nothing")
        )
        print(
            f"{counts.programs} programs, {counts.calls} calls ({counts.raised} raised), "
            f"{counts.mismatches} mismatches, "
            f"{counts.flaky} flaky, {counts.invalid} invalid, {counts.too_slow} too slow, seed {self._options.seed}, "
            f"{counts.programs / max(self._seconds(), 1e-9):.1f} programs/s",
            flush=True,
        )


def _watch(worker: subprocess.Popen[str], current: str, hung: threading.Event) -> None:
    """Kills the worker when it has hung."""
    patience = Patience()
    while True:
        try:
            worker.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            pass
        try:
            with open(current, encoding="utf-8") as file:
                waits = '"program": null' in file.read()  # for a batch in a process of its own
            at = os.path.getmtime(current)
        except OSError:
            continue
        now = time.monotonic()
        if patience.is_over(at, processor_seconds(worker.pid, now), now, waits):
            hung.set()
            worker.send_signal(signal.SIGABRT)  # faulthandler writes where it is
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(timeout=5)
            worker.kill()
            return


def _shortened(errors: str) -> str:
    """The first lines of a crash's stack: its end is always this program."""
    return "\n".join(errors.strip().splitlines()[:12])
