"""Leaves the native code of the bench's programs at every instruction in turn; the outcome has to be eager's each time.

    python -m tests.force_exits [REGEX] [--turns 0,3]

Prints one line a program: how many instructions its regions have (0: it has none), and what came out otherwise.
Exit status 1 if anything did.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import dalsegno as ds
from bench.bits import decorated, session
from bench.programs.table import Program, selected
from dalsegno.fuzz.oracle import compare
from tests.machine_traces import machine

WARM_UP = 6  # calls: all loops are recorded, grown and compiled
NEVER = 1 << 62  # turn


def left_everywhere(program: Program, turns: list[int]) -> tuple[int, int, list[str]]:
    """Number of instructions, in how many of the runs one was left at, and where results differed."""
    arguments = program.arguments(quick=True)
    function = program.function
    eager = session(function, function, arguments, 1)
    machine.force_exit(0, NEVER)
    jitted = decorated(function, ds.jit(store=False))
    session(jitted, function, arguments, WARM_UP)
    instructions = machine.native()[1]
    wrong, left = [], 0
    for number in range(instructions):
        for turn in turns:
            machine.force_exit(number, turn)
            if found := compare(eager, session(jitted, function, arguments, 1)):
                wrong.append(f"  instruction {number}, turn {turn}: {found[0]}")
            left += machine.native()[2] > 0
    return instructions, left, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="?", default="", help="a regular expression over the bench's names")
    parser.add_argument("--turns", default="0,3", help="turns of a run at which it is left")
    options = parser.parse_args()
    ds.config.background = False
    ds.config.step_aside = False
    ds.config.hot_loop = 1
    native = differing = 0
    for program in selected(options.programs):
        began = time.perf_counter()
        instructions, left, wrong = left_everywhere(program, [int(turn) for turn in options.turns.split(",")])
        native += instructions > 0
        differing += bool(wrong)
        took = time.perf_counter() - began
        counts = f"{instructions:5d} instructions {left:5d} times left"
        print(f"{program.name:32s} {counts} {took:7.1f} s  {len(wrong) or ''}")
        print(*wrong[:3], sep="\n", end="\n" if wrong else "", flush=True)
        gc.collect()
    machine.force_exit(-1, 0)
    print(f"{native} programs with native code, {differing} of them differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
