"""The bench's command line: prints a line a row as it is measured, then what is too slow."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import dalsegno as ds
import numpy as np
from dalsegno.cli import Parser

from .measure import HEADER, LEAST_RATIO, Row, all_rows


def run_cli(arguments: list[str]) -> int:
    """0 if every row is bit-identical and none is slower than it may be, else 1."""
    parser = Parser(prog="dalsegno bench", description="Times eager NumPy and replay by turns.")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rows, in seconds rather than minutes")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to a file too")
    options = parser.parse_args(arguments)
    cores = len(os.sched_getaffinity(0))
    print(f"CPython {platform.python_version()}, NumPy {np.__version__}, {cores} cores; store {ds.store.path}")
    print("ratio: how many times as fast as eager; spread: over the rounds of this run")
    print(HEADER)
    rows: list[Row] = []
    for row in all_rows(options.quick):
        rows.append(row)
        print(row, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(report(rows), indent=1))
    return verdict(rows)


def report(rows: list[Row]) -> dict[str, object]:
    surroundings = {"python": platform.python_version(), "numpy": np.__version__, "cores": len(os.sched_getaffinity(0))}
    return {**surroundings, "rows": [row.to_dict() for row in rows]}


def verdict(rows: list[Row]) -> int:
    slow = [f"{row.name} ({row.ratio:.2f})" for row in rows if row.counts and row.ratio < LEAST_RATIO]
    different = [row.name for row in rows if not row.identical]
    print(f"{len(rows)} rows; under {LEAST_RATIO}: {', '.join(slow) or 'none'}")
    print(f"not bit-identical: {', '.join(different) or 'none'}")
    return 1 if slow or different else 0
