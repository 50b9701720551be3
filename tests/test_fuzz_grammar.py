"""Every template of the fuzzer's grammar alone, so that none of them depends on luck to be run."""

from __future__ import annotations

import sys

import pytest

from dalsegno.fuzz.engines import Dalsegno, Engine
from dalsegno.fuzz.grammar import EXPRESSIONS
from dalsegno.fuzz.program import load
from dalsegno.fuzz.report import describe_all
from dalsegno.fuzz.runner import check
from dalsegno.fuzz.single import constructs, program_of

# What kernels compute does not depend on CPython: on other versions than the main one they are left to the short run.
ENGINES = [Engine.RECORDING, Engine.STEPPED, *([Engine.COMPILED] if sys.version_info < (3, 12) else [])]
REPLAYS: dict[str, int] = {}  # by construct, by two engines


@pytest.mark.parametrize("kind", [*EXPRESSIONS, "statement", "grid", "elements", "items", "pairs"])
def test_every_template_equals_eager(kind: str, tmp_path) -> None:
    backend = Dalsegno()
    wrong = []
    for name in constructs():
        if not name.startswith(kind + ":"):
            continue
        before = backend.stats()["replays"]
        loaded = load(program_of(name), str(tmp_path))
        _, mismatches = check(loaded, ENGINES, backend)
        REPLAYS[name] = backend.stats()["replays"] - before
        if mismatches:
            wrong.append(f"{name}\n{describe_all(mismatches)}")
    assert not wrong, "\n\n".join(wrong)


def test_nearly_every_template_is_replayed() -> None:
    """What is run eagerly is always right, and shows nothing."""
    never = [name for name, replays in REPLAYS.items() if replays < 4]
    assert len(never) <= 0.05 * len(REPLAYS), never
