"""Every template of the fuzzer's grammar alone, so that none of them depends on luck to be run."""

from __future__ import annotations

import re

import pytest

from dalsegno.fuzz.chooser import Chooser
from dalsegno.fuzz.engines import Dalsegno, Engine
from dalsegno.fuzz.expressions import Expressions
from dalsegno.fuzz.grammar import EXPRESSIONS
from dalsegno.fuzz.module_parts import PARTS, PRELUDE
from dalsegno.fuzz.program import Program, load
from dalsegno.fuzz.report import describe_all
from dalsegno.fuzz.runner import check
from dalsegno.fuzz.scope import Scope
from dalsegno.fuzz.statement_table import SIMPLE

# The parameters of the entry: kind and argument. Arguments change from call to call; the last call changes types.
PARAMETERS = {
    "a": ("arr", "np.array([1.0, 2.0, 3.0]) + i"),
    "o": ("odd", "np.array([1.0, 2.0])"),
    "m": ("mask", "np.array([True, False, i == 1])"),
    "v": ("num", "1.5 + i"),
    "k": ("int", "2 + i"),
    "b": ("bool", "i < 3"),
    "s": ("str", "'a'"),
    "l": ("list", "[1, 2.0, 3, 4, 5]"),
    "t": ("tuple", "(1, 2, 3, 4, 5)"),
    "d": ("dict", "{'a': 1, 'b': i}"),
    "z": ("set", "{1, i}"),
    "r": ("arrs", "[np.array([1.0]), np.array([2.0])]"),
    "f": ("fn", "abs"),
    "q": ("iter", "iter([1, 2, 3, 4, 5])"),
}
CALLS = """
def calls():
    for i in range(4):
        yield (%s,), {}
    yield (
        np.arange(3, dtype="i4"), np.arange(3), np.array([True]), 2, 3.5, 0, "b", [1], (), {}, set(), [], max, iter([])
    ), {}
""" % ", ".join(value for _, value in PARAMETERS.values())


class First(Chooser):
    """Always the simplest choice."""

    def __init__(self) -> None:
        super().__init__(lambda strategy: None)

    def integer(self, low: int, high: int) -> int:
        return low

    def chance(self, percent: int) -> bool:
        return False


class Leaves(Expressions):
    def expression(self, kind: str, depth: int = 2) -> str:
        return self.variable(kind)


def program_with(template: str, returns: bool) -> Program:
    scope = Scope([], [])
    for name, (kind, _) in PARAMETERS.items():
        scope.add(kind, name)
    scope.add("box", "x")
    scope.add("ref", "y")
    text = Leaves(First(), scope).fill(template)
    lines = [f"z = {text}", "return z, a"] if returns else [text, "return a"]
    if re.search(r"\b[xy]\b", text):
        lines = ["x = Box(v)", "y = weakref.ref(x)", *lines]
    body = f"\n\n@jit\ndef entry({', '.join(PARAMETERS)}):\n" + "".join(f"    {line}\n" for line in lines)
    parts = "".join(part for word, part in PARTS.items() if word in body)
    return Program(PRELUDE.format(scale=2, limit=0.5) + parts + body, CALLS)


TEMPLATES = {
    **{f"{kind}: {template}": (template, True) for kind, table in EXPRESSIONS.items() for _, template in table},
    **{f"statement: {template}": (template, False) for template in SIMPLE},
}


@pytest.mark.parametrize("kind", [*EXPRESSIONS, "statement"])
def test_every_template_equals_eager(kind: str, tmp_path) -> None:
    backend = Dalsegno()
    wrong = []
    for name, (template, returns) in TEMPLATES.items():
        if name.startswith(kind + ":"):
            loaded = load(program_with(template, returns), str(tmp_path))
            _, mismatches = check(loaded, [Engine.RECORDING, Engine.STEPPED, Engine.COMPILED], backend)
            if mismatches:
                wrong.append(f"{template}\n{describe_all(mismatches)}")
    assert not wrong, "\n\n".join(wrong)


def test_nearly_every_template_is_replayed(tmp_path) -> None:
    """What is run eagerly is always right, and shows nothing."""
    backend = Dalsegno()
    never = []
    for name, (template, returns) in TEMPLATES.items():
        before = backend.stats()["replays"]
        check(load(program_with(template, returns), str(tmp_path)), [Engine.STEPPED], backend)
        if backend.stats()["replays"] - before < 2:
            never.append(name)
    assert len(never) < 0.05 * len(TEMPLATES), never
