"""Globals and attributes of modules that hold plain values are folded into traces as long as nobody changes them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.support import ROOT, counting, stepped

RATE, STEPS, NAME, PAIR, NOTHING = 0.5, 40, "n", (1, (2.5, "x")), None
COUNT = 0
VARYING = 1
MANY = [0.5, 0.5]
OTHER = types.ModuleType("other")
OTHER.rate = 0.25  # type: ignore[attr-defined]


def circle(n: int) -> Any:
    total = 0.0
    for k in range(n):
        total += math.cos(math.pi * k / STEPS) * RATE + np.pi
    return total, NAME, PAIR, NOTHING


def counted(n: int) -> Any:
    global COUNT
    for _ in range(n):
        COUNT += 1
    return COUNT


def add(n: int) -> None:
    global COUNT
    COUNT = COUNT + n


def counted_by_another(n: int) -> Any:
    first = COUNT
    add(n)
    return first, COUNT


def follows(n: int) -> Any:
    total = 0
    for k in range(n):
        total += VARYING * k
    return total


def changed_inside(n: int) -> Any:
    seen = []
    for k in range(n):
        globals()["VARYING"] = k
        seen.append(VARYING)
    return seen


def missing(n: int) -> Any:
    try:
        return NOT_THERE + n  # type: ignore[name-defined]  # noqa: F821
    except NameError as error:
        return str(error)


def of_a_module(n: int) -> Any:
    return sum(OTHER.rate * k for k in range(n)), OTHER.rate is OTHER.rate


@pytest.fixture(autouse=True)
def _as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COUNT", "VARYING"):
        monkeypatch.setitem(globals(), name, globals()[name])


def test_constants_are_no_steps() -> None:
    equivalent(circle, (50,), (50,), (3,))
    jitted = ds.jit(store=False)(circle)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(2000)
        with counting(jitted) as grown:
            jitted(2000)
    assert grown["steps"] < 100
    assert {"pi", "RATE", "STEPS"} <= set(str(jitted.explain()).replace(",", " ").split())


@pytest.mark.parametrize("function", [counted, counted_by_another, changed_inside, missing])
def test_what_the_function_changes_itself(function: Any) -> None:
    for rows in ((3, 3, 3, 3, 3, 3, 3, 3), (40,) * 6):
        before = COUNT
        plain = []
        for n in rows:
            plain.append(function(n))
        globals()["COUNT"] = before
        jitted = ds.jit(store=False)(function)
        assert [jitted(n) for n in rows] == plain


def test_what_changes_between_calls_is_looked_up_from_then_on() -> None:
    jitted = ds.jit(store=False)(follows)
    with ds.config(step_aside=False):
        for value in (1, 1, 1, 2, 2.5, True, 2**70, "x", 3, np.float64(2), (1,), 1, *range(20)):
            globals()["VARYING"] = value
            try:
                expected: Any = repr(follows(20))
            except TypeError as error:
                expected = str(error)
            try:
                got = repr(jitted(20))
            except TypeError as error:
                got = str(error)
            assert got == expected
        with counting(jitted) as grown:
            for value in range(100, 140):
                globals()["VARYING"] = value
                assert jitted(20) == follows(20)
    assert (grown["recordings"], grown["replays"]) == (0, 40)


def test_the_very_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def pair() -> Any:
        return VARYING

    jitted = ds.jit(store=False)(pair)
    for value in (0.5, float("0.5"), -0.0, 0.0, math.nan, float("nan"), 10**30, int("1" + "0" * 30)):
        monkeypatch.setitem(globals(), "VARYING", value)
        for _ in range(3):
            assert jitted() is value


def test_an_attribute_of_a_module_that_changes() -> None:
    jitted = ds.jit(store=False)(of_a_module)
    for rate in (0.25, 0.25, 0.25, 0.5, 0.5, 1, 1, 2.5):
        OTHER.rate = rate  # type: ignore[attr-defined]
        for _ in range(3):
            assert jitted(30) == of_a_module(30)
    del OTHER.rate
    with pytest.raises(AttributeError):
        jitted(3)
    OTHER.rate = 0.25  # type: ignore[attr-defined]
    assert jitted(30) == of_a_module(30)


SCRIPT = """
import os, sys
import dalsegno as ds

SIZE = int(os.environ["SIZE"])
RATE = 0.5

@ds.jit
def f(n):
    total = 0.0
    for k in range(n):
        total += RATE * SIZE * k
    return total

values = [f(50) for _ in range(4)]
assert values == [sum(0.5 * SIZE * k for k in range(50))] * 4, values
ds.wait()
print(f.stats["recordings"])
"""


def test_what_differs_from_process_to_process_is_looked_up(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def recordings(size: int) -> int:
        environment = dict(
            os.environ,
            SIZE=str(size),
            DALSEGNO_STORE=str(tmp_path / "s.db"),
            PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        )
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert recordings(1) > 0
    assert recordings(1) == 0
    recordings(2)  # it is another one now
    assert [recordings(size) for size in (3, 4, 1)] == [0, 0, 0]
