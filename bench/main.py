"""The bench's command line: prints a line a row as it is measured, then means and what is too slow."""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dalsegno as ds
import numpy as np
from dalsegno.cli import Parser, UserError

from . import idioms, libraries, pattern_rows, rows, summary
from .harness import Clock
from .programs import Program, selected

AnyRow = rows.Row | pattern_rows.Row | libraries.Row | idioms.Row


def run_cli(arguments: list[str]) -> int:
    """0 if every row is bit-identical and none is slower than it may be, else 1."""
    parser = Parser(prog="dalsegno bench", description="Times eager NumPy and replay by turns.")
    parser.add_argument("--quick", action="store_true", help="smaller arguments and fewer samples")
    parser.add_argument("--only", metavar="REGEX", default="", help="only programs whose class or name matches")
    parser.add_argument("--patterns", action="store_true", help="single constructs instead of programs")
    parser.add_argument(
        "--idioms",
        action="store_true",
        help="NumPy's functions as people call them, one by one (--only: a part of one)",
    )
    parser.add_argument(
        "--libraries", action="store_true", help="functions of SciPy, scikit-image, scikit-learn instead"
    )
    parser.add_argument(
        "--processes", metavar="N", type=int, help="second processes a row, each of eager and replay (default: 3, or 1)"
    )
    parser.add_argument("--cpu", action="store_true", help="the thread's own time, not the wall's: for a busy machine")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to a file too")
    options = parser.parse_args(arguments)
    cores = len(os.sched_getaffinity(0))
    print(f"CPython {platform.python_version()}, NumPy {np.__version__}, {cores} cores")
    measured: Sequence[AnyRow]
    if options.patterns:
        measured, code = _patterns(options.quick)
    elif options.idioms:
        measured, code = _idioms(options.quick, options.only)
    elif options.libraries:
        measured, code = _libraries(options.quick, options.only)
    else:
        count = options.processes if options.processes is not None else 1 if options.quick else 3
        measured, code = _programs(
            _chosen(options.only), options.quick, count, time.thread_time if options.cpu else time.perf_counter
        )
    if options.json is not None:
        options.json.write_text(json.dumps(report(measured), indent=1))
    return code


def _chosen(pattern: str) -> list[Program]:
    try:
        programs = selected(pattern)
    except re.error as error:
        raise UserError(f"dalsegno bench: --only {pattern!r} is no regular expression: {error}") from None
    if not programs:
        raise UserError(f"dalsegno bench: no program matches {pattern!r}")
    return programs


def _programs(programs: list[Program], quick: bool, processes: int, clock: Clock) -> tuple[list[rows.Row], int]:
    """In a store of their own, so that a warm one holds what this run put there."""
    print(rows.EXPLANATION)
    print(rows.HEADER)
    measured: list[rows.Row] = []
    with tempfile.TemporaryDirectory() as folder, ds.config(store=os.path.join(folder, "bench.db")):
        for row in rows.all_rows(programs, quick, processes, clock):
            if not measured or measured[-1].group != row.group:
                print(f"-- {row.group}")
            measured.append(row)
            print(row, flush=True)
        ds.wait()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    print("\n".join(["", *summary.means(measured), "", *summary.lists(measured)]))
    print(f"the store of these programs: {size / 1e6:.1f} MB")
    return measured, summary.verdict(measured)


def _patterns(quick: bool) -> tuple[list[pattern_rows.Row], int]:
    print("ratio: how many times as fast as eager; spread: over the rounds of this run")
    print(pattern_rows.HEADER)
    measured: list[pattern_rows.Row] = []
    for row in pattern_rows.all_rows(quick):
        measured.append(row)
        print(row, flush=True)
    return measured, pattern_rows.verdict(measured)


def _libraries(quick: bool, only: str) -> tuple[list[libraries.Row], int]:
    print(libraries.EXPLANATION)
    print(libraries.HEADER)
    measured: list[libraries.Row] = []
    for row in libraries.all_rows(quick, only):
        if not measured or measured[-1].group != row.group:
            print(f"-- {row.group}")
        measured.append(row)
        print(row, flush=True)
    return measured, libraries.verdict(measured)


def _idioms(quick: bool, only: str) -> tuple[list[idioms.Row], int]:
    print(idioms.EXPLANATION)
    print(idioms.HEADER)
    measured: list[idioms.Row] = []
    for row in idioms.all_rows(quick, only):
        if not measured or (measured[-1].group, measured[-1].size) != (row.group, row.size):
            print(f"-- {row.group}, {row.size}")
        measured.append(row)
        print(row, flush=True)
    if not measured:
        raise UserError(f"dalsegno bench: no idiom has {only!r} in it")
    print("\n".join(["", *idioms.summary(measured)]))
    return measured, idioms.verdict(measured)


def report(measured: Sequence[AnyRow]) -> dict[str, object]:
    surroundings = {"python": platform.python_version(), "numpy": np.__version__, "cores": len(os.sched_getaffinity(0))}
    return {**surroundings, "rows": [row.to_dict() for row in measured]}
