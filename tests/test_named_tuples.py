"""Items of named tuples by their names: read where they stand, as long as the class is as it was."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import pytest

import dalsegno as ds

from .support import check_source, counting, stepped
from .test_recursion import outcome

POINTS = """
import collections
import typing

Point = collections.namedtuple("Point", "x y name", defaults=("p",))

class Typed(typing.NamedTuple):
    x: float
    y: float = 2.0

    def norm(self):
        return self.x * self.x + self.y * self.y

class Derived(Point):
    __slots__ = ()
    def __getitem__(self, i):
        return 100 + i
    @property
    def sum(self):
        return self.x + self.y

class WithDict(Point):
    pass

many = [Point(i % 7, i * 0.5) for i in range(30)]
typed = [Typed(float(i), 3) for i in range(20)]
derived = [Derived(i, -i, "d") for i in range(9)]
CASES = [
    (many, many), (many, typed), (typed, derived), ([WithDict(1, 2), *derived], many), (many, [Point("a", 1)]),
    ([tuple.__new__(Point, (1,))], many), (many, [tuple.__new__(Point, ())]), (many, many), (typed, typed),
]

def entry(case):
    points, others = CASES[case]
    total, names = 0, []
    for p in points:
        for q in others:
            if p.x < q.x:
                total += p.y - q.y
            elif p.x == q.x:
                total -= p[0] + q[1]
        names.append(p.x)
    return total, names, [p.y for p in points], sum(p.x for p in others)
"""
CALLS = """
def calls():
    for case in [0, 0, 0, 0, 1, 1, 2, 3, 1, 4, 0, 5, 6, 7, 8, 8]:
        yield ((case,), {})
"""


def test_every_engine_agrees() -> None:
    check_source(POINTS, CALLS)


class Typed(NamedTuple):
    x: float
    y: float = 2.0


Pair = namedtuple("Pair", "x y")


def far(points: Any, limit: float) -> int:
    count = 0
    for p in points:
        for q in points:
            if (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) > limit:
                count += 1
    return count


def test_loops_leave_nothing_to_the_interpreter() -> None:
    jitted = ds.jit(store=False)(far)
    points = [Pair(i * 0.25, i % 5) for i in range(40)]
    with stepped():
        for _ in range(8):
            assert jitted(points, 3.0) == far(points, 3.0)
        with counting(jitted) as grown:
            jitted(points, 3.0)
        assert grown["exits"] == grown["eager_calls"] == 0, jitted.explain()
    assert "get_attr" not in str(jitted.explain())


@pytest.mark.parametrize("change", ["property", "number", "other", "gone"])
def test_a_class_that_changes(change: str) -> None:
    def sums(points: Any) -> Any:
        total = 0
        for p in points:
            total = total + p.x
        return total

    for function in (sums, ds.jit(store=False)(sums)):
        made = namedtuple("made", "x y")  # type: ignore[misc]  # noqa: PYI024
        points = [made(i, -i) for i in range(12)]
        with stepped():
            for _ in range(6):
                assert function(points) == 66
            if change == "property":
                made.x = property(lambda self: self[1])  # type: ignore[assignment]
            elif change == "number":
                made.x = 5  # type: ignore[assignment]
            elif change == "other":
                made.x = made.y  # type: ignore[misc,assignment]
            else:
                del made.x
            wanted = {"property": -66, "number": 60, "other": -66}
            for _ in range(6):
                found = outcome(function, points)
                assert found == wanted[change] if change in wanted else found[0] is AttributeError


def test_too_few_items() -> None:
    def last(points: Any) -> list[Any]:
        out = []
        for p in points:
            out.append(p.y)
        return out

    jitted = ds.jit(store=False)(last)
    with stepped():
        for points in [[Pair(1, 2)] * 9, [Typed(1.0)] * 9, [Pair(1, 2)] * 5 + [tuple.__new__(Pair, (1,))]] * 5:
            assert outcome(jitted, points) == outcome(last, points)


def test_a_name_cannot_be_set() -> None:
    def put(p: Any) -> None:
        p.x = 3

    jitted = ds.jit(store=False)(put)
    with stepped():
        for _ in range(5):
            assert outcome(jitted, Pair(1, 2)) == outcome(put, Pair(1, 2))
