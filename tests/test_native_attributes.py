"""Attributes of instances in native loops: in slots, in arrays of values, in dicts; eager's results, and no steps."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest

from tests.support import check_source
from tests.test_native_loops import check, steps_of


class Slotted:
    __slots__ = ("x", "y", "n")

    def __init__(self, x: Any, y: Any, n: Any = 0) -> None:
        self.x = x
        self.y = y
        self.n = n

    def move(self, dt: float) -> None:
        self.x += self.y * dt
        self.n += 1


class Derived(Slotted):
    __slots__ = ("more",)


class Plain:
    kind = 2

    def __init__(self, x: Any, y: Any, n: Any = 0) -> None:
        self.x = x
        self.y = y
        self.n = n

    def move(self, dt: float) -> None:
        self.x += self.y * dt
        self.n += self.kind


class Both(Slotted):
    """A slot, and a dict beside it."""

    def __init__(self, x: Any, y: Any, n: Any = 0) -> None:
        Slotted.__init__(self, x, y, n)
        self.extra = 1


KINDS = [Slotted, Derived, Plain, Both]


def states(ps: list[Any]) -> list[Any]:
    return [[getattr(p, name, None) for name in ("x", "y", "n", "extra")] for p in ps]


def moves(kind: Any, n: int, turns: int, odd: Any, at: int) -> Any:
    ps = [kind(i * 0.5, 1.0 + i, 0) for i in range(n)]
    if odd is not None:
        odd(ps, at)
    total = 0.0
    for turn in range(turns):
        for p in ps:
            p.move(0.25)
            p.y = p.y * 0.99 + p.x * 0.01
            if p.x > 40.0:
                p.x = -p.x
            total += p.x * p.n
    return total, states(ps)


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_are_read_and_written(kind: Any) -> None:
    check(moves, (kind, 12, 40, None, 0))
    if kind is not Plain or sys.version_info < (3, 13):
        assert steps_of(moves, kind, 12, 40, None, 0) < 1200


def _int(ps: list[Any], at: int) -> None:
    ps[at].x = 3


def _large(ps: list[Any], at: int) -> None:
    ps[at].n = 2**70


def _near(ps: list[Any], at: int) -> None:
    ps[at].n = 2**63 - 5


def _missing(ps: list[Any], at: int) -> None:
    del ps[at].y


def _shown(ps: list[Any], at: int) -> None:
    if hasattr(ps[at], "__dict__"):
        ps[at].__dict__["z"] = 1


def _replaced(ps: list[Any], at: int) -> None:
    if hasattr(ps[at], "__dict__"):
        ps[at].__dict__ = {"y": 2.5, "x": 1.5, "n": 1, "extra": 2}


def _copied(ps: list[Any], at: int) -> None:
    ps[at] = copy.deepcopy(ps[at])


def _reclassed(ps: list[Any], at: int) -> None:
    if type(ps[at]) is Plain:
        ps[at].__class__ = type("Other", (Plain,), {"kind": 7})


def _own_kind(ps: list[Any], at: int) -> None:
    if hasattr(ps[at], "__dict__"):
        ps[at].kind = 9


def _other_class(ps: list[Any], at: int) -> None:
    ps[at] = (Plain if isinstance(ps[at], Slotted) else Slotted)(1.5, 2.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "odd", [_int, _large, _near, _missing, _shown, _replaced, _copied, _reclassed, _own_kind, _other_class]
)
def test_one_of_them_is_something_else(kind: Any, odd: Any) -> None:
    check(moves, (kind, 6, 30, None, 0), (kind, 6, 30, odd, 5), (kind, 6, 30, odd, 0))


def changes_class(n: int, at: int, what: Any) -> Any:
    class Local:
        def __init__(self) -> None:
            self.v = 1.5
            self.w = 0

    p = Local()
    out = 0.0
    for i in range(n):
        if i == at:
            what(Local, p)
        out += p.v
        p.w = p.w + 1
    return out, p.w


def _property(cls: Any, p: Any) -> None:
    cls.v = property(lambda self: 10.0)


def _getattr(cls: Any, p: Any) -> None:
    cls.__getattribute__ = lambda self, name: 4.0 if name == "v" else object.__getattribute__(self, name)


def _setattr(cls: Any, p: Any) -> None:
    cls.__setattr__ = lambda self, name, value: object.__setattr__(self, name, value * 2)


def _deleted(cls: Any, p: Any) -> None:
    del p.v
    cls.v = 3.5


def _raises(cls: Any, p: Any) -> None:
    del p.v


@pytest.mark.parametrize("what", [_property, _getattr, _setattr, _deleted, _raises])
def test_the_class_changes_in_the_middle(what: Any) -> None:
    check(changes_class, (300, 1000, what), (300, 250, what), (300, 20, what))


class Ends:
    log: list[Any] = []

    def __init__(self, name: Any) -> None:
        self.name = name

    def __del__(self) -> None:
        Ends.log.append((self.name, sys._getframe(1).f_lineno))


def replaces(kind: Any, n: int, make: Any) -> Any:
    Ends.log.clear()
    p = kind(make(-1), None)
    seen = []
    for i in range(n):
        p.x = make(i)
        seen.append(len(Ends.log))
    return seen, list(Ends.log)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_replaced_may_be_seen_to_die(kind: Any) -> None:
    check(replaces, (kind, 300, Ends), (kind, 300, float), (kind, 300, str), (kind, 300, lambda i: [Ends(i)]))


def keeps(kind: Any, n: int) -> Any:
    p = kind(0.5, 1.5)
    out = []
    last = p.x
    for i in range(n):
        old = p.x
        p.x = old + 1.0
        p.y = old
        out.append((old, p.y is old, p.x is last))
        last = p.x
    return out, sys.getrefcount(p.y), sys.getrefcount(last)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_stay_the_same_ones(kind: Any) -> None:
    check(keeps, (kind, 300))


def finds(n: int) -> Any:
    root: Any = None
    seed = 7
    hits = 0
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2147483648
        key = seed % 1000
        if root is None:
            root = Plain(None, None, key)
            continue
        node = root
        while True:
            if key == node.n:
                hits += 1
                break
            below = node.x if key < node.n else node.y
            if below is None:
                made = Plain(None, None, key)
                if key < node.n:
                    node.x = made
                else:
                    node.y = made
                break
            node = below
    return hits, root.n


def test_a_tree_of_nodes() -> None:
    check(finds, (400,), (1,))


SETS = """
import random

class Sets:
    def __init__(self, n):
        self.parent = list(range(n))
        self.size = [1] * n

    def find(self, a):
        while self.parent[a] != a:
            self.parent[a] = self.parent[self.parent[a]]
            a = self.parent[a]
        return a

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True

@jit
def entry(n, edges):
    sets = Sets(n)
    total = 0.0
    for length, a, b in edges:
        if sets.union(a, b):
            total += length
    return total
"""
SETS_CALLS = """
import random

def calls():
    r = random.Random(0)
    for n in [5, 60, 300, 60, 400, 300, 5, 300]:
        yield (n, [(r.random(), r.randrange(n), r.randrange(n)) for _ in range(4 * n)]), {}
"""


def test_lists_that_only_some_turns_fetch() -> None:
    """What is known of a register as a turn begins is what is there then: a turn that comes back before it fetches
    the list finds an old number in its place, where another loop at the same head has had one."""
    check_source(SETS, SETS_CALLS)
