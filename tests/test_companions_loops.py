"""Plain functions with loops, in jitted ones: traces call a companion, whose loops grow in the call that runs them."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

from .support import counting, stepped
from .test_companions import rounds
from .test_recursion import both, outcome

SIMULATION = """
    class Walker:
        def __init__(self, n, drift=0.5):
            self.n, self.drift, self.trail = n, drift, []

        def step(self, x, k, *, scale=1.0):
            total = 0.0
            for i in range(self.n):
                total += x[i] * scale if (i + k) % 3 else -self.drift
                if total > 40.0:
                    total -= 40.0
            return total

        def run(self, x, steps):
            for k in range(steps):
                value = self.step(x, k) if k % 2 else self.step(x, k, scale=0.5)
                self.trail.append(round(value, 9))
            return self

    def summed(values, start=0.0):
        for v in values:
            start += v
        return start

    def f(x, steps):
        w = Walker(len(x)).run(x, steps)
        return w.trail, summed(w.trail), summed(start=1.5, values=w.trail)
"""
NEIGHBOURS = """
    def alive(grid, y, x):
        count = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if dy or dx:
                    count += grid[(y + dy) % grid.shape[0], (x + dx) % grid.shape[1]]
        return count

    def f(grid):
        out = np.zeros_like(grid)
        for y in range(grid.shape[0]):
            for x in range(grid.shape[1]):
                n = alive(grid, y, x)
                out[y, x] = n == 3 or (n == 2 and grid[y, x] == 1)
        return out
"""
FAILS = """
    def drain(items, log, at):
        try:
            for k, item in enumerate(items):
                log.append((k, [sys._getframe(i).f_code.co_name for i in range(2)]) if k == at else k)
                if item < 0:
                    raise ValueError(item)
            return len(items)
        finally:
            log.append("end")

    def f(items, log, at):
        total = 0
        for _ in range(4):
            try:
                total += drain(items, log, at)
            except ValueError as error:
                log.append(str(error))
        return total + drain([abs(i) for i in items], log, at)
"""
WITHIN = """
    def inner(xs):
        best = xs[0]
        for x in xs:
            if x > best:
                best = x
        return best

    def middle(xs, n):
        out = []
        for k in range(n):
            out.append(inner(xs[k:]) - inner(xs[: k + 1]))
        return out

    def f(xs, n):
        return middle(xs, n), inner(middle(xs, n // 2))
"""
TREE = """
    class Node:
        def __init__(self, value, depth):
            self.value = value
            self.children = [Node(value * 3 + k, depth - 1) for k in range(2)] if depth else []

        def total(self, level=0):
            out = self.value * (level + 1)
            for child in self.children:
                out += child.total(level + 1)
            return out

    def f(value, depth):
        return Node(value, depth).total()
"""


REPLACED = """
def run(self, x, steps):
    for k in range(steps):
        self.trail.append(k)
    return self

Walker.run = run
"""


def made(seed: int, n: int = 90) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(n)


def settles(jitted: Any, *args: Any) -> None:
    with stepped(), counting(jitted) as grown:
        jitted(*args)
    assert grown["exits"] == 0, jitted.explain()


def companions(jitted: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    left = list(jitted.explain().companions)
    while left:
        one = left.pop()
        out[one.name] = one
        left.extend(one.companions)
    return out


def test_methods_keywords_and_defaults() -> None:
    jitted = rounds(SIMULATION, "f", lambda: (made(0), 30))
    assert {"Walker.run", "Walker.step", "summed"} <= set(companions(jitted))
    settles(jitted, made(0), 30)


def test_short_loops_in_loops_are_gone_through() -> None:
    grid = (made(1, 400).reshape(20, 20) < 0.4).astype(np.int64)
    jitted = rounds(NEIGHBOURS, "f", lambda: (grid,))
    settles(jitted, grid)
    alive = companions(jitted)["alive"]
    assert alive.stats["calls"] < 40, jitted.explain()


@pytest.mark.parametrize("items", [[3, 4, 5] * 20, [3, 4, -5] * 20, []])
def test_exceptions_frames_and_finally(items: list[int]) -> None:
    rounds(FAILS, "f", lambda: (items, [], 5))


def test_companions_within_companions() -> None:
    jitted = rounds(WITHIN, "f", lambda: (made(2), 60))
    assert {"middle", "inner"} <= set(companions(jitted))
    settles(jitted, made(2), 60)


def test_recursion_of_methods() -> None:
    rounds(TREE, "f", lambda: (2, 7))


def test_the_first_call_records_what_it_calls() -> None:
    """Recordings rest while what they call is recorded: all is known after one call."""
    _, jitted = both(SIMULATION, "f", alone=True)
    with stepped():
        jitted(made(0), 30)
        assert jitted.stats["recordings"] == 1
        found = companions(jitted)
        assert found["Walker.run"].traces and found["Walker.step"].traces, jitted.explain()


@pytest.mark.parametrize("source", [SIMULATION, NEIGHBOURS, WITHIN])
def test_types_of_arguments_may_change(source: str) -> None:
    plain, jitted = both(source, "f", alone=True, np=np)
    grid = made(3, 81).reshape(9, 9)
    kinds: list[Any] = [np.float64, np.float32, np.int64, np.uint8, list, np.int16]
    with stepped():
        for turn in range(12):
            kind = kinds[turn % len(kinds)]
            if source is NEIGHBOURS:
                args: tuple[Any, ...] = ((grid < 0.5).astype(kind if kind is not list else np.int8),)
            else:
                x = made(turn, 40) * 90
                args = (x.tolist() if kind is list else x.astype(kind), 12)
            assert repr(outcome(jitted, *args)) == repr(outcome(plain, *args)), (kind, jitted.explain())


def test_a_method_that_is_replaced() -> None:
    plain, jitted = both(SIMULATION, "f", alone=True)
    x = made(4)
    with stepped():
        for turn in range(12):
            if turn % 4 == 3:
                for f in (plain, jitted):
                    exec(f"Walker.step = lambda self, x, k, scale=1.0: k * scale + {turn}", f.__globals__)
            elif turn % 4 == 0 and turn:
                for f in (plain, jitted):
                    exec(
                        REPLACED,
                        f.__globals__,
                    )
            assert jitted(x, 9) == plain(x, 9)


def test_settrace_while_the_inner_one_is_recorded() -> None:
    source = """
        def loops(n, trace):
            total = 0
            for k in range(n):
                total += k
                if k == 7 and trace:
                    sys.settrace(trace)
            sys.settrace(None)
            return total

        def f(n, trace):
            return [loops(n, trace if i == 1 else None) for i in range(3)], loops(n, trace)
    """

    def trace(frame: Any, event: str, argument: Any) -> None:
        return None

    rounds(source, "f", lambda: (30, None))
    before = sys.gettrace()
    try:
        rounds(source, "f", lambda: (30, trace))
    finally:
        sys.settrace(before)


def leaves_nothing_alive(source: str, expected: Any) -> None:
    """`f(make, 50)` has made things with a value."""

    class Thing:
        def __init__(self, value: float) -> None:
            self.value = value

    _, jitted = both(source, "f", alone=True)
    living: list[weakref.ref[Thing]] = []

    def make(value: float) -> Thing:
        thing = Thing(value)
        living.append(weakref.ref(thing))
        return thing

    with stepped():
        for _ in range(10):
            assert jitted(make, 50) == expected
    gc.collect()
    assert len(living) == 500 and all(reference() is None for reference in living)


def test_nothing_is_left_alive() -> None:
    source = """
        def loops(things):
            total = 0.0
            for thing in things:
                total += thing.value
            return total, things[-1]

        def f(make, n):
            things = [make(float(k)) for k in range(n)]
            return loops(things)[0] + loops(things[1:])[0]
    """
    leaves_nothing_alive(source, 2 * sum(range(50)))


PROGRAM = """
import sys
import numpy as np
import dalsegno as ds
SOURCE
jitted = ds.jit(f)
x = np.random.default_rng(0).random(90)
with ds.config(step_aside=False):
    for _ in range(int(sys.argv[1])):
        assert jitted(x, 30) == f(x, 30)
ds.wait()
print(jitted.stats["traces_loaded"], jitted.stats["exits"], jitted.stats["recordings"])
"""


def test_another_process_goes_on_with_the_traces(fresh_store: Any, run_python: Any) -> None:
    program = PROGRAM.replace("SOURCE", inspect.cleandoc(SIMULATION))
    run_python("-c", program, "14")
    loaded, exits, recordings = run_python("-c", program, "2").stdout.split()
    assert int(loaded) > 0
    assert (exits, recordings) == ("0", "0")


def test_full_graph_goes_through_companions() -> None:
    _, jitted = both(WITHIN, "f", alone=True)
    whole = ds.jit(full_graph=True, store=False)(jitted.__globals__["f"])
    with stepped():
        assert whole([3.0, 1.0, 2.0] * 20, 30) == jitted([3.0, 1.0, 2.0] * 20, 30)
