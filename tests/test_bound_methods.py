"""Methods bound to an object, found in a module under a name: known as functions are, until the name changes."""

from __future__ import annotations

import random
import sys
import types
from pathlib import Path
from typing import Any

import dalsegno as ds
from tests.support import run_python
from tests.test_native_loops import check


class Counter:
    def __init__(self, by: int) -> None:
        self.by, self.n = by, 0

    def step(self, x: float) -> float:
        self.n += self.by
        return self.n * 0.5 + x


FIRST, SECOND = Counter(1), Counter(-3)
HOLDER = types.ModuleType("holder")
sys.modules["holder"] = HOLDER
HOLDER.step = FIRST.step  # type: ignore[attr-defined]
step = FIRST.step


def steps(n: int, change: int) -> Any:
    global step
    step, HOLDER.step = FIRST.step, SECOND.step  # type: ignore[attr-defined]
    FIRST.n = SECOND.n = 0
    s = 0.0
    for i in range(n):
        s += step(0.25) + HOLDER.step(i)  # type: ignore[attr-defined]
        if i == change:
            step, HOLDER.step = SECOND.step, FIRST.step  # type: ignore[attr-defined]
        if i == change + 30:
            step = abs
    return s, FIRST.n, SECOND.n


def test_names_that_change() -> None:
    check(steps, (300, 1000), (300, 200), (300, 3), (20, 0))


def test_the_class_that_changes() -> None:
    def run(n: int) -> Any:
        FIRST.n = 0
        s = 0.0
        for i in range(n):
            s += step(i)
        return s

    jitted = ds.jit(store=False)(run)
    global step
    step = FIRST.step
    assert [jitted(200) for _ in range(4)] == [run(200)] * 4
    old = Counter.step
    try:
        Counter.step = lambda self, x: -x  # type: ignore[method-assign, assignment]
        assert jitted(200) == run(200)
        step = FIRST.step
        assert jitted(200) == run(200)
    finally:
        Counter.step = old  # type: ignore[method-assign]


def test_random_numbers() -> None:
    def draws(n: int, seed: int) -> Any:
        random.seed(seed)
        out = []
        for _ in range(n):
            out += [random.uniform(0, 2), random.randint(1, 6), random.gauss(0, 1), random.choice("abc")]
        return out, random.getstate()

    kept = random.getstate()
    check(draws, (150, 3), (40, 4))
    random.setstate(kept)


PROGRAM = """
import json
import random
import dalsegno as ds

class Scale:
    def __init__(self, by): self.by = by
    def of(self, x): return x * self.by

scale = Scale({by}).of

@ds.jit
def work(n):
    random.seed(1)
    s = 0.0
    for i in range(n):
        s += scale(i) + random.random() + random.uniform(0, 1)
    return s

same = [work(400) == work.__wrapped__(400) for _ in range(4)]
ds.wait()
print(json.dumps([*same, work.stats["traces_loaded"] > 0]))
"""


def test_another_process(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text(PROGRAM.format(by=3))
    store = tmp_path / "store"
    assert run_python(program, store=store) == [True] * 4 + [False]
    assert run_python(program, store=store) == [True] * 5
    program.write_text(PROGRAM.format(by=5))
    assert run_python(program, store=store) == [True] * 5
