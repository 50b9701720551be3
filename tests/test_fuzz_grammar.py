"""Every template of the fuzzer's grammar alone, so that none of them depends on luck to be run."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dalsegno.fuzz.engines import Dalsegno, Engine
from dalsegno.fuzz.grammar import EXPRESSIONS
from dalsegno.fuzz.program import load
from dalsegno.fuzz.report import describe_all
from dalsegno.fuzz.runner import check, run_session
from dalsegno.fuzz.single import constructs, program_of
from tests.support import run_python

# What kernels compute does not depend on CPython: on other versions than the main one they are left to the short run.
ENGINES = [Engine.RECORDING, Engine.STEPPED, *([Engine.COMPILED] if sys.version_info < (3, 12) else [])]
REPLAYS: dict[str, int] = {}  # by construct, by two engines


NESTED_ENGINES = [Engine.STEPPED, Engine.NATIVE]  # loops in loops are where side traces meet


@pytest.mark.parametrize(
    "kind", [*EXPRESSIONS, "statement", "grid", "elements", "items", "pairs", "nested", "beside", "members"]
)
def test_every_template_equals_eager(kind: str, tmp_path) -> None:
    backend = Dalsegno()
    wrong = []
    for name in constructs():
        if not name.startswith(kind + ":"):
            continue
        before = backend.stats()["replays"]
        loaded = load(program_of(name), str(tmp_path))
        _, mismatches = check(loaded, NESTED_ENGINES if kind == "nested" else ENGINES, backend)
        REPLAYS[name] = backend.stats()["replays"] - before
        if mismatches:
            wrong.append(f"{name}\n{describe_all(mismatches)}")
    assert not wrong, "\n\n".join(wrong)


def test_nearly_every_template_is_replayed() -> None:
    """What is run eagerly is always right, and shows nothing."""
    never = [name for name, replays in REPLAYS.items() if replays < 4]
    assert len(never) <= 0.05 * len(REPLAYS), never


def told_by_objects(folder: str) -> dict[str, Any]:
    """What eager runs of the programs on random classes show."""
    names = [name for name in constructs() if name.startswith(("nested:", "beside:", "members:"))]
    sessions = {name: run_session(load(program_of(name), folder), Engine.EAGER, None) for name in names}
    return {name: repr(session.observations) for name, session in sessions.items()}


def test_objects_show_the_same_in_every_process(tmp_path) -> None:
    """No addresses, and no order that depends on hashes: what differs is another engine's."""
    told = "json.dumps(test_fuzz_grammar.told_by_objects(sys.argv[1]))"
    command = f"import json, sys; from tests import test_fuzz_grammar; print({told})"
    one, other = (run_python(command, str(tmp_path), PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert [name for name in one if one[name] != other[name]] == []
    assert all("'object', 'Thing" in told for told in one.values())  # the state of the objects is seen
