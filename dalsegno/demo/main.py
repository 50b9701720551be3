"""The demo's command line: eager against replay in this process, then a second process that works from the store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dalsegno as ds
from dalsegno.bench.harness import compare, duration, same
from dalsegno.cli import Parser

from . import data

_WARM_CALLS = 3


def run_cli(arguments: list[str]) -> int:
    """0 if everything was bit-identical, else 1."""
    parser = Parser(prog="dalsegno demo", description="Real data through ordinary NumPy functions.")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default=Path("demo_output"), help="where pictures are written"
    )
    parser.add_argument("--quick", action="store_true", help="shorter measurements")
    options = parser.parse_args(arguments)

    sources = data.load()
    print("First process: eager and replay timed by turns (the spread of the ratio over the rounds in brackets).\n")
    print(f"{'':<18} {'eager':>9} {'replay':>9} {'ratio':>7} {'':<16} {'bit-identical':<14} {counted_names()}")
    good, results = True, {}
    for name, function, values in data.programs(sources):
        report = measure(function, values, options.quick)
        results[name] = report.pop("result")
        good &= report["identical"]
        print(first_line(name, report), flush=True)

    print("\nSecond process: the same store, nothing recorded or compiled beforehand in it; the best of three.\n")
    print(
        f"{'':<18} {'first result':>12} {'eager':>9} {'recordings':>11} {'compilations':>13} {'replays':>8}  identical"
    )
    again = second_process()
    for name, report in again.items():
        good &= report["identical"]
        print(second_line(name, report))
    if any(put_off(report) for report in again.values()):
        print(
            "\nNo replay: reading that recording takes longer than the call. It ran as plain Python; later ones replay."
        )

    print("\nPictures:")
    from .pictures import draw

    for path in draw(sources, results, options.output):
        print(f"  {path}")
    return 0 if good else 1


# ---- first process ---------------------------------------------------------------------------------------------------


def measure(function: Any, values: tuple[Any, ...], quick: bool) -> dict[str, Any]:
    """One program: its steady state, compared with eager and timed against it, and what its traces are made of."""
    jitted = ds.jit(function)
    for _ in range(2):
        for _ in range(_WARM_CALLS):
            jitted(*values)
        ds.wait()
    before = jitted.stats
    result = jitted(*values)
    replayed = (jitted.stats - before)["replays"] > 0
    identical = same(function(*values), result)
    timing = compare(function, jitted, values, rounds=3 if quick else 5, budget=0.5 if quick else 2.0)
    counts = counted(jitted.explain().traces)
    return {"timing": timing, "identical": identical, "replayed": replayed, "counts": counts, "result": result}


_COUNTED = ("ops", "guards", "segments", "kernels", "exits taken")


def counted(traces: list[dict[str, Any]]) -> dict[str, int]:
    """Sums over a function's traces."""
    kernels = [state for t in traces for s in t["segments"] for _, state in s["kernels"]]
    sums = (
        sum(len(t["ops"]) for t in traces),
        sum(op["guard"] for t in traces for op in t["ops"]),
        sum(len(t["segments"]) for t in traces),
        sum(state in ("assembled", "compiled", "loaded") for state in kernels),
        sum(e["count"] for t in traces for e in t["exits"]),
    )
    return dict(zip(_COUNTED, sums, strict=True))


def counted_names() -> str:
    return " ".join(f"{name:>8}" for name in _COUNTED)


def first_line(name: str, report: dict[str, Any]) -> str:
    timing = report["timing"]
    times = f"{duration(min(timing.eager)):>9} {duration(min(timing.replay)):>9} {timing.ratio:>7.2f}"
    spread = "[{:.2f} .. {:.2f}]".format(*timing.spread)
    counts = " ".join(f"{report['counts'][key]:>{max(8, len(key))}}" for key in _COUNTED)
    note = "" if report["replayed"] else "  (ran eagerly: see explain)"
    return f"{name:<18} {times} {spread:<16} {yes(report['identical']):<14} {counts}{note}"


def yes(truth: bool) -> str:
    return "yes" if truth else "NO"


# ---- second process --------------------------------------------------------------------------------------------------


def second_process() -> dict[str, Any]:
    """First results in new processes, on the same store; eager's come from others, as new to NumPy.

    The best of three, in turn: a process's first result is one measurement, of a machine that does other things, too.
    """
    turns = [(new_process("jitted"), new_process("eager")) for _ in range(3)]
    reports = {}
    for name in turns[0][0]:
        best = min((jitted[name] for jitted, _ in turns), key=lambda report: report["first"])
        identical = all(jitted[name]["identical"] for jitted, _ in turns)
        reports[name] = best | {"identical": identical, "eager": min(plain[name]["first"] for _, plain in turns)}
    return reports


def new_process(how: str) -> dict[str, Any]:
    """Runs this module in one."""
    path = os.pathsep.join([str(Path(ds.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"DALSEGNO_STORE": ds.store.path, "PYTHONPATH": path}
    command = [sys.executable, "-m", "dalsegno.demo.main", how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise RuntimeError("a new process failed; its own message is above")
    reports: dict[str, Any] = json.loads(done.stdout)
    return reports


def first_results(how: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What such a process does: the first result of each program, jitted or not, then a comparison with eager's."""
    for name, function, values in data.programs(data.load()):
        called = ds.jit(function) if how == "jitted" else function
        before = ds.stats()
        start = time.perf_counter()
        result = called(*values)
        first = time.perf_counter() - start
        made = ds.stats() - before
        names = ("recordings", "kernels_compiled", "replays")
        counts = {key: made.get(key, 0) for key in names}
        yield name, {"first": first, "identical": same(function(*values), result), **counts}


def put_off(report: dict[str, Any]) -> bool:
    """What the store holds of it was left for a later call."""
    return not (report["replays"] or report["recordings"])


def second_line(name: str, report: dict[str, Any]) -> str:
    times = f"{duration(report['first']):>12} {duration(report['eager']):>9}"
    counts = f"{report['recordings']:>11} {report['kernels_compiled']:>13} {report['replays']:>8}"
    return f"{name:<18} {times} {counts}  {yes(report['identical'])}"


if __name__ == "__main__":
    print(json.dumps(dict(first_results(sys.argv[1]))))
