"""Comprehensions, which are functions up to 3.11: a long one, and one outside of loops, is called as a companion."""

from __future__ import annotations

import posixpath
import sys

import pytest

import numpy as np

from .support import stepped
from .test_companions import rounds
from .test_companions_loops import companions, leaves_nothing_alive
from .test_recursion import both

are_functions = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="comprehensions are part of their function's code"
)

BRANCHES = """
    class Numbers:
        def __init__(self, seed):
            self.state = seed

        def next(self):
            self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
            if self.state & 1:
                return self.state % 100
            return -(self.state % 7)

        def many(self, n):
            return [self.next() for _ in range(n)]

    def summed(values):
        total = 0
        for k, v in enumerate(values):
            total += v if k % 3 else -v
        return total

    def f(seed, n):
        return summed(Numbers(seed).many(n))
"""
KINDS = """
    def f(n, k):
        xs = list(range(n))
        squares = {x: x * x - k for x in xs if x % 3}
        parts = {x % 7 for x in xs}
        pairs = [(key, value) for key, value in squares.items() if value > k]
        table = [[a * b + k for b in range(n)] for a in xs[:40]]
        made = [x + y for x, y in zip((v - 1 for v in xs), reversed(xs))]
        short = [[c * k for c in row[:3]] for row in table]
        return squares, sorted(parts), pairs, table, made, short
"""
FAILS = """
    def names():
        return [sys._getframe(i).f_code.co_name for i in range(1, 4)]

    def f(items, log):
        out = []
        for _ in range(3):
            try:
                out.append([log.append(names()) or 8 // i for i in items])
            except ZeroDivisionError as error:
                frames = []
                at = error.__traceback__
                while at:
                    frames.append((at.tb_frame.f_code.co_name, at.tb_lineno - f.__code__.co_firstlineno))
                    at = at.tb_next
                log.append(frames)
        return out, [log.append(names()) or -i for i in items]
"""
DIES = """
    def f(make, n):
        things = [thing for thing in [make(k) for k in range(n)] if thing.value % 2]
        return [thing.value for thing in iter(things)]
"""


@are_functions
def test_a_comprehension_is_entered_in_the_first_call() -> None:
    _, jitted = both(BRANCHES, "f", alone=True)
    with stepped():
        jitted(5, 400)
        found = companions(jitted)
    assert found["Numbers.many.<locals>.<listcomp>"].stats["loops_entered"], jitted.explain()
    assert found["summed"].stats["loops_entered"], jitted.explain()


@are_functions
def test_what_follows_a_short_comprehension_is_seen_in_the_first_call() -> None:
    source = """
        def loops(xs, n):
            for k in range(n):
                xs[k % len(xs)] += k
            return xs

        def f(n):
            return loops([x + 1 for x in (1, 2, 3)], n)
    """
    _, jitted = both(source, "f", alone=True)
    with stepped():
        jitted(300)
    assert companions(jitted)["loops"].stats["loops_entered"], jitted.explain()


@are_functions
def test_what_follows_a_loop_of_the_library_is_seen_in_the_first_call() -> None:
    source = """
        def loops(n):
            total = 0
            for k in range(n):
                total += k
            return total

        def f(paths, n):
            return commonpath(paths), loops(n)
    """
    _, jitted = both(source, "f", alone=True, commonpath=posixpath.commonpath)
    with stepped():
        jitted(["a/b/c", "a/b/d", "a/b"], 300)
    assert companions(jitted)["loops"].stats["loops_entered"], jitted.explain()


def test_the_import_system_is_called_as_it_is() -> None:
    source = """
        def f(name):
            return sys.modules["importlib"].import_module(name, "dalsegno")
    """
    jitted = rounds(source, "f", lambda: (".errors",))
    assert not companions(jitted), jitted.explain()


@are_functions
def test_short_comprehensions_in_loops_are_gone_through() -> None:
    jitted = rounds(KINDS, "f", lambda: (60, 2))
    table = next(one for name, one in companions(jitted).items() if name.endswith("<listcomp>.<listcomp>"))
    assert table.stats["calls"] >= 40, jitted.explain()
    with stepped():
        jitted(20, 2)
    assert len(jitted.explain().companions) < 9


@pytest.mark.parametrize("seed", [1, 9])
def test_branches(seed: int) -> None:
    rounds(BRANCHES, "f", lambda: (seed, 300))


@pytest.mark.parametrize(("n", "k"), [(60, 1), (20, 3), (0, 1)])
def test_kinds(n: int, k: int) -> None:
    rounds(KINDS, "f", lambda: (n, k))


@pytest.mark.parametrize("items", [list(range(1, 50)), [*range(1, 40), 0, 3], []])
def test_exceptions_and_frames(items: list[int]) -> None:
    rounds(FAILS, "f", lambda: (items, []))


def test_nothing_is_left_alive() -> None:
    leaves_nothing_alive(DIES, list(range(1, 50, 2)))


def test_arrays_in_comprehensions() -> None:
    source = """
        def f(rows, weights):
            scaled = [row * w for row, w in zip(rows, weights)]
            return np.array([s.sum() for s in scaled]), [float(s[0]) for s in scaled if s[0] > 0.5]
    """
    rows = np.random.default_rng(1).random((80, 11))
    rounds(source, "f", lambda: (rows.copy(), rows[0].tolist() * 8))
