"""The generator: the same programs from the same seed, nearly all of them valid, ending, and doing something."""

import ast
import collections
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from dalsegno.fuzz.class_table import MEMBERS
from dalsegno.fuzz.engines import Engine
from dalsegno.fuzz.generate import programs
from dalsegno.fuzz.program import InvalidProgram, Program, load
from dalsegno.fuzz.runner import Flaky, TooSlow, check
from tests.support import run_python

pytestmark = pytest.mark.once

_ENDLESS = 120.0  # seconds of the processor; how quick a machine is does not matter here


def generated(number: int, with_seed: int) -> list[Program]:
    made: list[Program] = []

    @seed(with_seed)
    @settings(max_examples=number, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def collect(program: Program) -> None:
        made.append(program)

    collect()
    return made


def test_same_seed_same_programs() -> None:
    assert generated(20, 5) == generated(20, 5)
    assert generated(20, 5) != generated(20, 6)


def summary(folder: str) -> dict[str, Any]:
    """What 800 programs came to, and their texts."""
    counts: collections.Counter[str] = collections.Counter()
    # Many seeds: what Hypothesis draws behind one is often much like what it drew before.
    programs_run = [program for number in range(17, 57) for program in generated(20, number)]
    for program in programs_run:
        try:
            session, _ = check(load(program, folder), [], None, eager_seconds=_ENDLESS)
        except (Flaky, InvalidProgram, TooSlow) as problem:
            counts[type(problem).__name__] += 1
            continue
        for observation in session.observations:
            counts["calls"] += 1
            counts[observation.outcome[0]] += 1
            counts["events"] += bool(observation.events)
    return {"counts": counts, "seen": "".join(program.source + program.calls for program in programs_run)}


@pytest.mark.timeout(1000)  # 100 s of processor time: more than twice that beside other tests
def test_programs_are_valid_and_do_something(tmp_path) -> None:
    # As the fuzzer runs: Hypothesis draws constants of the modules that are loaded, here those of all tests.
    command = "import json, sys; from tests.test_fuzz_generate import summary; print(json.dumps(summary(sys.argv[1])))"
    said = run_python(command, str(tmp_path), seconds=900)
    counts, seen = collections.Counter(said["counts"]), said["seen"]
    assert counts["calls"] > 1200
    assert counts["raised"] < 0.5 * counts["calls"]
    assert counts["raised"] > 0.1 * counts["calls"]
    assert counts["events"] > 0.1 * counts["calls"]
    # (3.11 names another line for an unbound variable once the instruction before it has been merged with its load)
    assert counts["Flaky"] <= 8
    assert counts["TooSlow"] == 0  # each ends
    assert counts["InvalidProgram"] < 20
    for word in (
        "nonlocal", "global ", "lambda", "for ", "while ", "try:", "finally:", "except", "with ", "match ", "break",
        "continue", "raise ",
        "print(", "warnings.warn(", "locals()", "exec(", "eval(", "Box(", "yield 'SCALE", "numbers(", "recursive(",
        "out=", "np.where",
        "astype", "[1:] = ", ".T", "[::2]", " is ", 'f"', "np.concatenate", ".append(", "int32", "float32", "bool",
        "asfortranarray", "del ", "class Thing1(", "for z", "NotImplemented", "__getattr__", ".setter", "super().",
        "LOG.append(name)", "list(map(nothing, ", "sorted([k", ".__class__ = Thing", "Hue.", "Sheet(",
    ):  # fmt: skip
        assert word in seen, word


def has_nested_loops(source: str) -> bool:
    """Has it a loop over objects (their variable is z...) in another loop?"""
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.For, ast.While))]
    inner = [each for loop in loops for each in ast.walk(loop) if isinstance(each, ast.For) and each is not loop]
    return any(
        re.match(r"z\d", node.id) for each in inner for node in ast.walk(each.target) if isinstance(node, ast.Name)
    )


def test_a_sixth_of_the_programs_go_through_objects_of_random_classes() -> None:
    programs_made = [program for number in range(40, 50) for program in generated(50, number)]
    sources = [program.source for program in programs_made if "class Thing0" in program.source]
    assert 0.1 * len(programs_made) < len(sources) < 0.28 * len(programs_made)
    nested = [source for source in sources if has_nested_loops(source)]
    assert len(nested) > 0.4 * len(sources)
    # Between them, most of what there is: a class has what the program's statements use.
    seen = "".join(sources)
    heads = [member.head.split("\n")[0] for member in MEMBERS]
    assert sum(head in seen for head in heads) > 0.6 * len(heads)


def test_sources_are_plain_python(tmp_path) -> None:
    for program in generated(300, 3):
        ast.parse(program.calls)
        compile(program.source, "program.py", "exec")  # the symbol table refuses more than the parser does
        entry = [node for node in ast.parse(program.source).body if getattr(node, "name", "") == "entry"]
        assert len(entry) == 1


def test_engine_table_is_complete() -> None:
    assert [engine.label for engine in Engine][0] == "eager"
    assert {"recording", "stepped", "compiled", "cold_process"} <= {engine.label for engine in Engine}
