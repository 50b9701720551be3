"""Dicts of classes derived from dict, sets of anything, slots and named tuples, where the recorder knows nothing of
them: no frames are shown where nothing looks at them, and are where something does."""

from __future__ import annotations

import pytest

from tests.support import check_source

PROGRAM = """
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
LOG = []

class Looking:
    def __init__(self, n): self.n = n
    def _look(self, what):
        frame = sys._getframe(2)
        LOG.append((what, self.n, frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)))
    def __del__(self): self._look('del')
    def __hash__(self):
        self._look('hash')
        return self.n
    def __eq__(self, other):
        self._look('eq')
        return isinstance(other, Looking) and self.n == other.n
    def __bool__(self):
        self._look('bool')
        return True

class Table(dict):
    def __missing__(self, key):
        LOG.append(('missing', key, sys._getframe(1).f_lineno))
        return 3

class Loud(dict):
    def __getitem__(self, key):
        LOG.append(('get', key, sys._getframe(1).f_lineno))
        return 4
    def __setitem__(self, key, value):
        LOG.append(('set', key, sys._getframe(1).f_lineno))
        super().__setitem__(key, value)
    def __contains__(self, key):
        LOG.append(('in', key))
        return key == 1
    def __len__(self):
        LOG.append(sys._getframe(1).f_lineno)
        return 9

class Plain(OrderedDict):
    pass

Pair = namedtuple('Pair', 'x y')

class Slotted:
    __slots__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y

class Other:
    y = 5
    @property
    def x(self):
        LOG.append(sys._getframe(1).f_lineno)
        return 6

{entry}
"""

DICTS = """
@jit
def entry(case):
    LOG.clear()
    make, keys, values, turns = CASES[case]()
    d = make()
    out = []
    for i in range(turns):
        k = keys[i % len(keys)]
        try:
            d[k] = values(i)
            out.append((k in d, len(d), d.get(k) is None, bool(d)))
            d[k]
            d[i]
            d[k] = None
            if i % 3 == 2:
                del d[k]
            if i % 5 == 4:
                del d[77]
        except KeyError as e:
            out.append(repr(e.args))
    d = None
    return out, LOG[:]
"""
MAKES = [
    "Counter",
    "OrderedDict",
    "lambda: defaultdict(int)",
    "lambda: defaultdict(lambda: LOG.append(1))",
    "Table",
    "Loud",
    "Plain",
    "dict",
]

ORDERED = """
@jit
def entry(case):
    LOG.clear()
    make, keys, values, turns = CASES[case]()
    d = make()
    out = []
    for i in range(turns):
        k = keys[i % len(keys)]
        try:
            if k in d:
                d.move_to_end(k, i % 2)
            else:
                d[k] = values(i)
                d.setdefault(k, 5)
            if len(d) > 3:
                out.append(d.popitem(last=False)[0])
            if i % 4 == 3:
                d.move_to_end('none')
        except (KeyError, AttributeError) as e:
            out.append(type(e))
    d = None
    return out, LOG[:]
"""

SETS = """
@jit
def entry(case):
    LOG.clear()
    make, keys, values, turns = CASES[case]()
    out = []
    a, b = make(keys), make(keys[1:])
    for i in range(turns):
        c = a & b
        out.append((len(c), len(a | b), len(a - b), len(a ^ b), bool(c)))
        c |= {values(i)}
        c -= make(keys)
        out.append(len(c))
    a = b = c = None
    return out, LOG[:]
"""

ATTRIBUTES = """
@jit
def entry(case):
    LOG.clear()
    made, turns = CASES[case]()
    out = []
    for i in range(turns):
        for one in made:
            try:
                out.append((one.x, one.y))
            except AttributeError as e:
                out.append(str(e))
        if i == 9:
            made = [Slotted(1, 2), Slotted.__new__(Slotted), Pair(Looking(1), 2).y and Pair(3, 4)]
    return out, LOG[:]
"""


def check(entry: str, *rows: str) -> None:
    cases = "CASES = [" + ", ".join(f"lambda: ({row})" for row in rows) + "]\n"
    calls = f"def calls():\n    for case in [*range({len(rows)})] * 3:\n        yield (case,), {{}}\n"
    check_source(PROGRAM.replace("{entry}", entry) + cases, calls, engines=ENGINES)


KEYS = ["[1, 2, 3]", "['a', 'b', (1, 'c'), None, 2.5]", "[Looking(1), 1, Looking(2)]", "[True, 1.0, 1, 'x']"]
CLASSES = """
class Says:
    @property
    def __class__(self):
        LOG.append(('class', sys._getframe(1).f_lineno))
        return int

class Asks(type):
    def __instancecheck__(cls, one):
        LOG.append(('asked', type(one), sys._getframe(1).f_lineno))
        return True

class Asked(metaclass=Asks):
    pass

class Gets:
    def __getattribute__(self, name):
        LOG.append((name, sys._getframe(1).f_lineno))
        return super().__getattribute__(name)

@jit
def entry(case):
    LOG.clear()
    things, kind = CASES[case]()
    out = []
    for i in range(3):
        for one in things:
            out.append((isinstance(one, kind), isinstance(one, (int, str, Slotted))))
            out.append((isinstance(one, (Asked, float)), isinstance(one, Looking)))
    return out, LOG[:]
"""
ENGINES = ("recording", "stepped", "native")


def rows_of(make: str) -> list[str]:
    return [f"{make}, {keys}, {values}, 12" for keys in KEYS for values in ("lambda i: i", "Looking")]


@pytest.mark.parametrize("make", MAKES)
def test_dicts(make: str) -> None:
    check(DICTS, *rows_of(make))


@pytest.mark.parametrize("make", ["OrderedDict", "Plain"])
def test_ordered(make: str) -> None:
    check(ORDERED, *rows_of(make))


@pytest.mark.parametrize("make", ["set", "frozenset"])
def test_sets(make: str) -> None:
    rows = [
        f"{make}, {keys}, {values}, 6" for keys in [*KEYS, "list(range(50))"] for values in ("lambda i: i", "Looking")
    ]
    check(SETS, *rows)


def test_classes() -> None:
    things = "[1, 'a', Slotted(1, 2), Says(), Gets(), Asked(), Looking, 2.5, None]"
    check(
        CLASSES,
        *[f"{things}, {kind}" for kind in ("Slotted", "int", "(str, (int, Gets))", "Asked", "(Slotted, Asked)")],
    )


def test_attributes() -> None:
    rows = [
        "[Pair(1, 2), Slotted(3, 4)], 14",
        "[Slotted(3, 4), Other(), Pair(1, 2)], 12",
        "[Slotted.__new__(Slotted)] * 2, 4",
    ]
    check(ATTRIBUTES, *rows)
