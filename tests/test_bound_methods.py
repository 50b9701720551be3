"""Methods bound to an object, found in a module under a name: known as functions are, until the name changes."""

from __future__ import annotations

import random
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
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


class Tally:
    def __init__(self) -> None:
        self.total = 0.0

    def add(self, x: float) -> float:
        self.total += x
        return self.total


class Halves(np.random.Generator):
    def normal(self, *bounds: Any) -> Any:
        return super().normal(*bounds) / 2


def named_like_modules(rng: Any, n: int) -> Any:
    """CPython loads an attribute, not a method, where the object's name is a module's."""
    random, string = rng, Tally()
    for i in range(n):
        string.add(random.normal(0.0, 1.5))
        if i == 70:
            string = Tally()
    return string.total, random.normal()


def loaded_before(rng: Any, n: int) -> Any:
    normal, counter = rng.normal, Tally()
    add = counter.add
    for i in range(n):
        add(normal(0.0, 1.5))
        if i == 70:
            normal = np.random.default_rng(i).normal
        if i == 90:
            normal, add = np.random.default_rng(i).uniform, Tally().add
    return counter.total, add.__self__.total, normal(0, 1), normal.__name__


def of_other_classes(rng: Any, n: int) -> Any:
    add, seen = Tally().add, []
    for i in range(n):
        if i == 40:
            Tally.add = lambda self, x: seen.append(x)  # type: ignore[method-assign, assignment]
            add = Tally().add
        add(rng.random())
    return seen, str(add)[:20]


@pytest.mark.parametrize("function", [named_like_modules, loaded_before, of_other_classes])
@pytest.mark.parametrize("make", [np.random.Generator, Halves])
def test_methods_loaded_as_attributes(function: Any, make: Any) -> None:
    jitted = ds.jit(store=False)(function)
    plain = Tally.add
    for turn in range(6):
        outcomes = []
        for f in (function, jitted):
            Tally.add = plain  # type: ignore[method-assign]
            outcomes.append(f(make(np.random.PCG64(turn)), 120))
        assert outcomes[0] == outcomes[1]
        ds.wait()
    Tally.add = plain  # type: ignore[method-assign]


def calls_what_it_is_given(append: Any, n: int) -> Any:
    for i in range(n):
        append(i)
    return getattr(append, "__self__", None)


def test_a_descriptor_bound_to_something_else() -> None:
    jitted = ds.jit(store=False)(calls_what_it_is_given)
    for _ in range(4):
        assert jitted([].append, 60) == list(range(60))
    for function in (calls_what_it_is_given, jitted):
        assert function(types.MethodType(list.append, []), 3) == [0, 1, 2]
        with pytest.raises(TypeError, match="append"):
            function(types.MethodType(list.append, (1, 2)), 3)


def calls_a_descriptor(n: int) -> Any:
    """While a loop inside runs, a method's descriptor and its object wait on the stack."""
    r, out = random.Random(n), []
    for _ in range(n):
        out.append(r.randrange(40) + r.randrange(17))
    return out


def test_a_descriptor_on_the_stack_is_bound_to_nothing() -> None:
    jitted = ds.jit(store=False)(calls_a_descriptor)
    with ds.config(background=False, step_aside=False):
        for _ in range(6):
            assert jitted(900) == calls_a_descriptor(900)
        before = ds.stats()["guard_failures"]
        jitted(900)
        assert ds.stats()["guard_failures"] - before < 100
