"""What C code does with classes and instances that inherit it links no frames (replay/machine/silent_classes.h): each
thing also with a class that does it by code of its own, which looks at the frames. What dies has the variables of the
frames around it before Python code begins. And calls of functions that leave parameters to their defaults."""

from __future__ import annotations

import datetime
import enum
import sys
from decimal import Decimal, getcontext
from io import StringIO
from typing import Any

import pytest

from tests.support import check, run_python

SEEN: list[Any] = []


def look() -> None:
    """Notes what the caller's caller has in its variables."""
    frame = sys._getframe(2)
    SEEN.append((frame.f_code.co_name, frame.f_lineno, frame.f_locals.get("i"), frame.f_locals.get("total")))


class Row(list):  # type: ignore[type-arg]
    limit = 3

    @classmethod
    def widest(cls, a: Any, b: Any) -> Any:
        return a if len(a) > len(b) else b


class Looking(Row):
    def __len__(self) -> int:
        look()
        return 2

    def __iter__(self) -> Any:
        look()
        return iter((1, 2))

    def __getitem__(self, i: Any) -> Any:
        look()
        return 7

    def __eq__(self, other: object) -> bool:
        look()
        return True

    __hash__ = None  # type: ignore[assignment]


class Base:
    rate = 2

    def __init__(self) -> None:
        super().__init__()
        self.n = 1

    def step(self, by: int = 1) -> int:
        return self.n + by

    def __repr__(self) -> str:
        return "base"


class Derived(Base):
    def __init__(self, n: int) -> None:
        Base.__init__(self)
        self.n = n

    def step(self, by: int = 1) -> int:
        return super().step(by) + self.rate


class Described:
    def __get__(self, instance: Any, owner: Any) -> int:
        look()
        return 5


class Odd(Derived):
    rate = Described()  # type: ignore[assignment]


class Meta(type):
    def __getattr__(cls, name: str) -> int:
        look()
        return 11


class Hooked(metaclass=Meta):
    known = 3


class LookingMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        look()
        return super().__getattribute__(name)


class Watched(metaclass=LookingMeta):
    known = 4


class Kind(enum.Enum):
    BIG = 1
    SMALL = 2


def lists(rows: list[Any]) -> Any:
    total, out = 0, []
    for i, row in enumerate(rows):
        made = Row()
        made.append(i)
        made.insert(0, row)
        for x in row:
            total += x
        out.append((len(row), row[0], row[-1:] if type(row) is Row else None, made.pop(), len(made), bool(made)))
        total += len(Row.widest(row, made)) + Row.limit
    return total, out


def instances(things: list[Any], keys: dict[Any, Any]) -> Any:
    total, out = 0, []
    for i, thing in enumerate(things):
        total += thing.step() + thing.step(2) + Derived(i).step(i) + type(thing).rate
        out.append((thing == things[0], thing != things[-1], keys.get(type(thing)), bool(thing)))
        out.append((thing in things, things.index(thing)))
        out.append(issubclass(type(thing), Base))
    return total, out


def of_classes(classes: list[Any], kinds: list[Kind]) -> Any:
    total, out = 0, []
    for i, cls in enumerate(classes):
        total += cls.known
        out.append((kinds[i % 2] == Kind.BIG, kinds[i % 2] != Kind.SMALL, kinds[i % 2] is Kind.BIG))
        if i > 1:
            total += Hooked.unknown  # type: ignore[attr-defined]
    return total, out


def values(prices: list[Any], unit: Decimal) -> Any:
    total, out = Decimal(0), []
    for i, price in enumerate(prices):
        taxed = (price * 3 + i).quantize(unit)
        total += taxed - price
        out.append((taxed > price, taxed == i, -taxed, bool(taxed), Decimal(i), Decimal("1.5") / 3))
    return total, out


def days(first: Any, steps: list[Any]) -> Any:
    day, out = first, []
    for i, step in enumerate(steps):
        day = day + step * i
        out.append((day - first, day > first, (day - first).total_seconds(), day.year, datetime.timedelta(days=i)))
    return day, out


def shown(n: int, out: Any) -> Any:
    total = 0
    for i in range(n):
        total += i
        print(total, "of", i, file=out)
    return total


class Stream(StringIO):
    def write(self, text: str) -> int:
        look()
        return super().write(text)


def scaled(x: int, by: int = 3, plus: Any = (1, 2)) -> Any:
    return x * by + plus[1] if x > 0 else plus


def with_defaults(n: int) -> Any:
    out = []
    for i in range(n):
        out.append((scaled(i), scaled(i, 2), scaled(i, 2, (0, i)), descend(i)))
    return out


def descend(n: int, depth: int = 4, seen: Any = None) -> Any:
    if depth == 0:
        return (n, seen)
    return descend(n + 1, depth - 1, depth) if n % 2 else descend(n + 2, depth - 1)


class Dying:
    def __init__(self, n: int) -> None:
        self.deep = [[[[n]]]]

    def __del__(self) -> None:
        frame = sys._getframe(1)
        SEEN.append((frame.f_lineno, dict(frame.f_locals)))


class Holding:
    def __init__(self, held: Any) -> None:
        self.rows = [[held]] * 20
        self.deep = [[[[held]]]]


def dying(n: int) -> Any:
    total, half = 0, 0.5
    for i in range(n):
        half = half / 2 + i
        held = Holding(Dying(i) if i % 3 == 0 else i)
        total += len(held.rows)
        held = None  # type: ignore[assignment]
        total += len([Holding(Dying(i)) for _ in range(2)])
    return total, half


def both(function: Any, arguments: tuple[Any, ...]) -> None:
    def told(args: Any) -> Any:
        SEEN.clear()
        result = function(*args)
        return result, list(SEEN)

    check(told, (arguments,), rounds=5)


@pytest.mark.parametrize("row", [Row, Looking])
def test_lists_that_are_derived(row: Any) -> None:
    both(lists, ([Row([1, 2]), Row([3]), row([4, 5, 6]), Row([0, 1]), row([2])],))


@pytest.mark.parametrize("thing", [Derived, Odd])
def test_instances_and_super(thing: Any) -> None:
    kept = [Derived(1), Derived(2), thing(3), Derived(2), thing(1)]
    both(instances, (kept, {Derived: "d", int: "i", "x": 1}))


@pytest.mark.parametrize("cls", [Hooked, Watched])
def test_attributes_of_classes(cls: Any) -> None:
    both(of_classes, ([Hooked, Hooked, cls, Hooked, cls], list(Kind)))


def test_decimals() -> None:
    getcontext().prec = 28
    both(values, ([Decimal(k) / 7 for k in range(1, 9)], Decimal("0.01")))


def test_dates() -> None:
    both(days, (datetime.date(2020, 2, 20), [datetime.timedelta(hours=5 * k) for k in range(9)]))


@pytest.mark.parametrize("stream", [StringIO, Stream])
def test_printing(stream: Any) -> None:
    def told(n: int) -> Any:
        out = stream()
        return shown(n, out), out.getvalue()

    both(told, (7,))


def test_defaults_of_a_function_that_is_replayed() -> None:
    both(with_defaults, (7,))


def test_defaults_that_are_replaced() -> None:
    def changed(n: int) -> Any:
        kept = scaled.__defaults__
        out = []
        try:
            for i in range(n):
                if i == 4:
                    scaled.__defaults__ = (5, (1, 9))
                out.append((scaled(i), scaled(i, 2)))
        finally:
            scaled.__defaults__ = kept
        return out

    both(changed, (8,))


def test_what_dies_sees_the_frames() -> None:
    both(dying, (9,))


def test_an_audit_hook_sees_the_frames() -> None:
    script = """
import json, sys
import dalsegno as ds
SEEN = []
WATCHED = [False]

def hook(event, args):
    if WATCHED[0] and event == "builtins.id":
        frame = sys._getframe(1)
        SEEN.append((frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals.items())))

def ids(n):
    total = 0
    for i in range(n):
        total += i
        id(total)
        kind = type(i)
    return total

def told(function):
    SEEN.clear()
    WATCHED[0] = True
    function(5)
    WATCHED[0] = False
    return repr(SEEN)

sys.addaudithook(hook)
plain = told(ids)
jitted = ds.jit(store=False)(ids)
with ds.config(step_aside=False, background=False):
    for _ in range(6):
        same = told(jitted) == plain
print(json.dumps([same, len(SEEN)]))
"""
    assert run_python(script) == [True, 5]
