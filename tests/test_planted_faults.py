"""Planted faults (trace/fault.h) are found by the fuzzer; without a fault, the same programs show nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import numpy as np
from dalsegno._testing import segments
from dalsegno.fuzz.engines import Engine
from dalsegno.fuzz.program import Program
from dalsegno.fuzz.report import find_mismatches
from tests.machine_traces import machine

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
SEEDS = (5, 6, 7, 8)  # one after the other, until all is found: a change of the grammar changes every random program

# Searches in random programs: engine, what programs have more of, how many programs of a seed, the faults that must be
# found in them.
SEARCHES: dict[str, tuple[str, tuple[str, ...], int, tuple[str, ...]]] = {
    "closures": ("stepped", ("Body._closure",), 400, ("lost_cell_write",)),
    "loops": ("stepped", ("Body._long_loop",), 400, ("left_at_the_head",)),
    "elements": (
        "stepped",
        ("Body._elements", "1e308"),
        400,
        ("unwrapped_index", "dropped_bounds", "ignored_scalar_flags"),
    ),
    "items": ("stepped", ("swapped(",), 200, ("loose_items",)),
    "writes": ("compiled", ("+=", "[1:]"), 400, ("missed_alias",)),
}
# Searches in programs of one construct each (fuzz/single.py): how the construct is written.
ALONE: dict[str, dict[str, str]] = {
    "stepped": {
        "dropped_guard": "branching(",
        "dropped_function_guard": "CHOICES[<bool>](",
        "dropped_world_guard": "globals()[",
        "empty_frames": "noticed(",
        "fold_element": "(lambda e: ",
        "ignored_breaker": "interrupt_main",
        "ignored_observers": "key=watch_if",
        "ignored_overflow": "922337203685477580",
        "kept_arguments": "relay",
        "lost_attribute_write": ".value",
        "lost_loop_variable": "rotated",
        "lost_place": ".round(<positive>)",
        "lost_release": "weakref",
        "lost_snapshot_value": "np.divide(",
        "lost_summand": "sum(LARGE[",
        "missing_effect": "print",
        "missing_name_effect": "by_",
        "repeated_raise": "stumble",
        "stale_class": "Derived",
        "stale_world": "CHOICES",
        "swapped_operands": " - ",
        "unelided": "LARGE",
        "unordered_deaths": "Named(",
        "waiting_swapped": "in paced(",
        "unlinked_frames": "(<arr> / <mask>)",
        "unnamed_values": "**",
        "wrong_exit": " if <bool>",
        "wrong_pair_type": "np.complex128(<num>) * $x",
        "wrong_row": "grid: row =",
        "wrong_raise_line": "interrupt_main",
        "wrong_resume_offset": "divmod(",
        "wrong_scalar_type": "int32",
        "wrong_shown_line": "warnings.warn",
        "wrong_snapshot_slot": "np.ones(",
    },
    "compiled": {
        "always_c_order": "LARGE",
        "hoarded": "crossed(",
        "ignored_flags": "(<arr> / <mask>)",
        "unelided": "LARGE",
        "lost_turn": "np.roll(LARGE",
        "short_rest": "- <",
        "unequal_halves": "np.sqrt(LARGE)",
        "wrong_kernel_rule": "- <",
    },
    "blocks": {"first_block": "np.abs(LARGE"},
    "native": {
        "ignored_overlap": "$e[$i:] = $e[:",
        "lost_imaginary": "(<pair> <ringop> <wave>)",
        "wrong_view_stride": "v = $e[::2]",
    },
}


def elides() -> bool:
    """Does NumPy compute into temporaries? Not where variables are loaded without a reference: CPython 3.14."""
    f, c = np.ones((512, 64), order="F"), np.ones((512, 64))
    return ((f + f) * c).strides[0] == f.itemsize


# Faults that not every machine can have.
CAN_BE = {"short_rest": segments.assembles, "unelided": elides}
# Found elsewhere.
IN_THE_STORE = ("wrong_stored_op",)
# test_native_faults.py
BY_SMALL_PROGRAMS = (
    "native_bounds",
    "native_exit",
    "native_hoisted",
    "native_forwarded",
    "native_joined",
    "native_range",
    "native_registers",
    "native_overflow",
    "native_count",
    "native_parts",
    "native_flags",
    "native_recursion",
)
BY_GOOGLETEST = ("foreign_parent",)  # StoreTest.ASideTraceStaysWithItsOwnParent


def environment(**more: str) -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **more)


def said_by(order: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The messages of tests/planted.py, and the fault that ended its process, if one did: a crash is a finding, too."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.planted", json.dumps(order)],
        env=environment(DALSEGNO_STORE="off"), capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["wrong"] for message in said if message.get("wrong")] == []
    if done.returncode < 0 and "trying" in said[-1]:
        return said, said[-1]["trying"]
    assert done.returncode == 0, done.stderr
    return said, ""


def found_with(seed: int, order: dict[str, Any]) -> set[str]:
    said, deadly = said_by(order | {"seed": seed})
    found = {message["found"] for message in said if "found" in message} | {deadly} - {""}
    rest = [fault for fault in order["faults"] if fault not in found]
    return found | found_with(seed, order | {"faults": rest}) if deadly and rest else found


def found_by(order: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for seed in SEEDS:
        rest = [fault for fault in order["faults"] if fault not in found]
        found |= found_with(seed, order | {"faults": rest}) if rest else set()
    return found


@pytest.mark.parametrize("name", SEARCHES)
def test_faults_are_found_in_random_programs_and_nothing_without_them(name: str) -> None:
    engine, prefer, programs, faults = SEARCHES[name]
    order = {"engine": engine, "programs": programs, "prefer": prefer, "faults": faults}
    assert found_by(order) == set(faults)


@pytest.mark.parametrize("engine", ALONE)
def test_faults_are_found_in_programs_of_one_construct_and_nothing_without_them(engine: str) -> None:
    here = {fault: text for fault, text in ALONE[engine].items() if CAN_BE.get(fault, lambda: True)()}
    said, _ = said_by({"engine": engine, "programs": 40, "alone": here})
    assert {message["found"] for message in said if "found" in message} == set(here)


@pytest.mark.parametrize("fault", IN_THE_STORE)
def test_a_fault_of_the_store_is_found_by_the_process_that_reads(fault: str, monkeypatch) -> None:
    program = Program(
        "@jit\ndef entry(x):\n    return x - 1\n", "def calls():\n    for n in range(4):\n        yield (n,), {}\n"
    )
    assert find_mismatches(program, [Engine.COLD_PROCESS]) == []
    monkeypatch.setenv("DALSEGNO_FAULT", fault)
    (mismatch,) = find_mismatches(program, [Engine.COLD_PROCESS])
    assert all("(read process)" in difference.where for difference in mismatch.differences)


def test_without_a_fault_nothing_is_found() -> None:
    program = "import sys; from dalsegno.fuzz import run_cli; sys.exit(run_cli(sys.argv[1:]))"
    arguments = ["--examples", "40", "--seed", str(SEEDS[0]), "--engines", "stepped,compiled,cold_process"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment(), capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_fault_is_looked_for() -> None:
    searched = {fault for *_, faults in SEARCHES.values() for fault in faults} | {
        fault for found in ALONE.values() for fault in found
    }
    assert searched | {*IN_THE_STORE, *BY_SMALL_PROGRAMS, *BY_GOOGLETEST} == set(machine.faults())
    with pytest.raises(ValueError, match="no such fault"):
        machine.set_fault("no_such_fault")
