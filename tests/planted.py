"""Looks for planted faults with the fuzzer's programs, in a process of its own: python -m tests.planted JSON.

The order: {"engine", "programs"}: how, and in how many programs; {"faults", "seed", "prefer"}: looked for in random
programs; {"alone": {fault: text}}: looked for in programs of one construct, that are written with the text. Each
program runs eagerly, then without a fault, then with each fault that has not been found yet. One JSON object a line:
what is being tried, so that a process that dies has found something, and what was found:
{"trying": fault, "program": n}, {"found": fault, "program": n}, {"clean": n, "wrong": [...]}.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

import dalsegno as ds
from dalsegno.fuzz.chooser import Weighted
from dalsegno.fuzz.engines import Engine, engine_named, load_backend
from dalsegno.fuzz.generate import programs
from dalsegno.fuzz.oracle import Session, compare
from dalsegno.fuzz.program import LoadedProgram, Program, load
from dalsegno.fuzz.runner import Flaky, InvalidProgram, TooSlow, check, out_of_bounds, run_session
from dalsegno.fuzz.single import constructs, program_of

HANGS = 20.0  # seconds of the processor


class Enough(BaseException):
    """Not an Exception: Hypothesis lets it pass."""


def say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


class Search:
    def __init__(self, engine: Engine, faults: list[str], most: int, directory: str) -> None:
        self.engine, self.left, self.most, self.directory = engine, list(faults), most, directory
        self.backend = load_backend()
        self.number = 0

    def look_at(self, program: Program) -> None:
        if not self.left or self.number >= self.most:
            raise Enough
        self.number += 1
        try:
            loaded = load(program, self.directory)
            expected, mismatches = check(loaded, [self.engine], self.backend)
        except (Flaky, InvalidProgram, TooSlow):
            return
        say(clean=self.number, wrong=[str(difference) for found in mismatches for difference in found.differences])
        if not mismatches:
            self.left = [fault for fault in self.left if not self.finds(fault, loaded, expected)]

    def finds(self, fault: str, loaded: LoadedProgram, expected: Session) -> bool:
        say(trying=fault, program=self.number)
        before = dict(self.backend.stats())
        signal.setitimer(signal.ITIMER_PROF, HANGS)  # nobody handles it: the process ends
        with ds.config(fault=fault):
            actual = run_session(loaded, self.engine, self.backend)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found = bool(compare(expected, actual) or out_of_bounds(loaded, before, self.backend.stats()))
        if found:
            say(found=fault, program=self.number)
        return found


def constructs_alone(search: Search, text: str) -> None:
    for name in constructs():
        if text in name:
            search.look_at(program_of(name))


def random_programs(search: Search, seed: int, prefer: list[str]) -> None:
    Weighted.prefer(prefer)

    @seeded(seed)
    @settings(
        max_examples=10 * search.most,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def each(program: Program) -> None:
        search.look_at(program)

    each()


def main(order: dict[str, Any]) -> None:
    engine = engine_named(order["engine"])
    with tempfile.TemporaryDirectory(prefix="dalsegno-planted-") as directory:
        for fault, text in order.get("alone", {}).items():
            with contextlib.suppress(Enough):
                constructs_alone(Search(engine, [fault], order["programs"], directory), text)
        if "faults" in order:
            with contextlib.suppress(Enough):
                random_programs(
                    Search(engine, order["faults"], order["programs"], directory), order["seed"], order["prefer"]
                )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
