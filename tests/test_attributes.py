"""Attributes of instances, found by what their class was like when recorded: whatever changes, eager's result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.support import check, check_source, counting, stepped


class Base:
    unit = 1.5

    def __init__(self, x: Any = 2.0) -> None:
        self.x = x
        self.n = 0

    def double(self) -> Any:
        return self.x * 2

    def count(self) -> int:
        self.n += 1
        return self.n


class Derived(Base):
    def double(self) -> Any:
        return super().double() + 1


class Slots:
    __slots__ = ("n", "x")

    def __init__(self) -> None:
        self.x, self.n = 2.0, 0

    unit = 3

    def double(self) -> Any:
        return self.x * 2

    def count(self) -> int:
        self.n += 1
        return self.n


class WithProperty(Base):
    @property
    def x(self) -> Any:
        return self._x + 1

    @x.setter
    def x(self, value: Any) -> None:
        self._x = value


class Listed(list):  # type: ignore[type-arg]
    unit = 4
    x = 7.0
    n = 0

    def double(self) -> Any:
        return self.x * 2

    def count(self) -> int:
        self.n = self.n + 1
        return self.n


@dataclasses.dataclass
class Data:
    x: float = 2.0
    n: int = 0
    unit: int = 5

    def double(self) -> float:
        return self.x * 2

    def count(self) -> int:
        self.n += 1
        return self.n


class Asks(Base):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no {name}"


class Meta(type):
    unit = 9


class WithMeta(Base, metaclass=Meta):
    pass


def use(o: Any) -> Any:
    out = []
    for _ in range(3):
        out.append((o.x, o.double(), o.unit, o.count(), o.n))
        o.x = o.x + 0.5
    return out


CLASSES: list[Callable[[], Any]] = [Base, Derived, Slots, WithProperty, Listed, Data, Asks, WithMeta]


@pytest.mark.parametrize("make", CLASSES, ids=lambda c: c.__name__)
def test_every_kind_of_instance(make: Callable[[], Any]) -> None:
    check(use, (make(),), (make(),))


def test_instances_of_all_classes_in_turn() -> None:
    check(use, *((make(),) for make in CLASSES))


def used_without_leaving(make: Callable[[], Any]) -> Any:
    with stepped():
        jitted = ds.jit(store=False)(use)
        for _ in range(6):
            jitted(make())
        with counting(jitted) as grown:
            assert jitted(make()) == use(make())
    assert (grown["replays"], grown["exits"], grown["recordings"]) == (1, 0, 0)
    return jitted


@pytest.mark.parametrize("make", [Base, Data, WithMeta], ids=lambda c: c.__name__)
def test_ordinary_attributes_are_read_without_leaving(make: Callable[[], Any]) -> None:
    jitted = used_without_leaving(make)
    assert "own_attr" in str(jitted.explain()) and "get_attr" not in str(jitted.explain())


def test_super_is_read_without_leaving() -> None:
    used_without_leaving(Derived)


SUPERS = """
class Base:
    unit = 3
    def __init__(self, x):
        self.x = x
    def double(self):
        return self.x * 2
    @property
    def half(self):
        return self.x / 2
    @classmethod
    def made(cls, x):
        return cls(x)
    @staticmethod
    def plain(x):
        return x + 1

class Derived(Base):
    def __init__(self, x):
        super().__init__(x)
    def double(self):
        return super().double() + 1
    def parts(self):
        return super().unit, super().half, super().plain(self.x), super(Derived, self).double(), super().double
    @classmethod
    def made(cls, x):
        return super().made(x + 1)
    def missing(self):
        return super().missing()

@jit
def entry(x, c):
    o = Derived(x)
    *parts, bound = o.parts()
    out = [o.double(), Derived.made(x).x, *parts, bound()]
    if c:
        try:
            o.missing()
        except AttributeError as error:
            out.append(str(error))
    return out
"""


@pytest.mark.parametrize("change", ["Base.double = lambda self: 7", "Base.unit = 8", "super = lambda *_: Base(11)", ""])
def test_every_kind_of_super(change: str) -> None:
    check_source(
        SUPERS,
        f"""
        def calls():
            for i in range(12):
                if i == 8:
                    yield {change!r}
                yield (1.5 + i, i % 2), {{}}
        """,
    )


ENGINES = ("recording", "stepped", "compiled")  # the cold process is asked by the other tests of this file

# What happens to `o` between two calls, after the first were recorded and replayed.
CHANGES = {
    "the class's method": "type(o).double = lambda self: self.x * 3",
    "the base's method": "Base.double = lambda self: 'base'",
    "the method's code": "type(o).double.__code__ = (lambda self: self.x * 4).__code__",
    "the class's attribute": "type(o).unit = 8",
    "the base's attribute": "Base.unit = 8",
    "a method shadowed": "o.double = lambda: 'own'",
    "an attribute of the class shadowed": "o.unit = 11",
    "the attribute's type": "o.x = 3",
    "an array": "o.x = np.arange(3.0)",
    "an attribute deleted": "del o.x",
    "an attribute deleted, one of the class instead": "del o.x\ntype(o).x = 12.0",
    "a method deleted": "del Base.count",
    "a property": "type(o).x = property(lambda self: 5.0, lambda self, value: None)",
    "a property in the base": "Base.n = property(lambda self: 5, lambda self, value: seen.append(value))",
    "__getattr__": "type(o).__getattr__ = lambda self, name: 'asked'\ndel o.x",
    "__getattribute__": "type(o).__getattribute__ = lambda o, n: 1 if n == 'x' else object.__getattribute__(o, n)",
    "__setattr__": "type(o).__setattr__ = lambda self, name, value: seen.append((name, value))",
    "the class itself": "o.__class__ = Other",
    "the bases": "Derived.__bases__ = (Other,)",
    "the dict is looked at": "seen.append(vars(o))",
    "the dict is kept and written to": "d = vars(o)\nd['x'] = 40.0",
    "the dict is another": "o.__dict__ = {'n': 5, 'x': 1.0}",
    "the dict is a subclass's": "o.__dict__ = Loud(n=5, x=1.0)",
    "the dict holds odd keys": "vars(o)[Odd()] = 1",
    "the dict is empty": "vars(o).clear()",
    "more attributes than are shared": "for i in range(60): setattr(o, f'y{i}', i)",
    "another order": "p = Derived.__new__(Derived)\np.later = 1\np.n = 0\np.x = 2.0\no = p",
    "a name not interned": "vars(o)[''.join(['do', 'uble'])] = lambda: 'own'",
    "a descriptor without __set__": "type(o).x = Reads()",
    "a descriptor with __set__": "type(o).x = Both()",
}

PROGRAM = """
seen = []

class Base:
    unit = 1.5
    def __init__(self):
        self.x = 2.0
        self.n = 0
    def double(self):
        return self.x * 2
    def count(self):
        self.n += 1
        return self.n

class Derived(Base):
    pass

class Other(Base):
    unit = 'other'
    def double(self):
        return 'other'

class Loud(dict):
    def __getitem__(self, key):
        seen.append(key)
        return 1
    def __missing__(self, key):
        return 2

class Odd:
    def __repr__(self):
        return 'odd'
    def __hash__(self):
        return hash('x')
    def __eq__(self, other):
        seen.append(other)
        return other == 'x'

class Reads:
    def __get__(self, o, owner):
        return 'read'

class Both(Reads):
    def __set__(self, o, value):
        seen.append(value)

@jit
def entry():
    out = []
    for _ in range(3):
        try:
            out.append((o.x, o.double(), o.unit, o.count(), o.n))
            o.x = o.x + 0.5
        except AttributeError as e:
            out.append(repr(e))
    return out, list(map(str, seen)), sorted(map(str, vars(o)))
"""


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_changed_is_noticed(change: str) -> None:
    check_source(
        PROGRAM,
        f"""
        def calls():
            yield "o = Derived()"
            for _ in range(4):
                yield (), {{}}
            yield {change!r}
            for _ in range(4):
                yield (), {{}}
            yield "o = Derived()"
            for _ in range(4):
                yield (), {{}}
        """,
        engines=ENGINES,
    )


def test_a_class_that_no_name_leads_to() -> None:
    def make() -> Any:
        class Local(Base):
            def double(self) -> Any:
                return self.x * 5

        return Local()

    check(use, (make(),), (make(),), (Base(),))


def test_a_value_that_is_replaced_dies_at_once() -> None:
    check_source(
        """
        class Dies:
            def __del__(self):
                deaths.append(len(deaths))
        class Holder:
            def __init__(self):
                self.it = None
        deaths = []
        @jit
        def entry(n):
            h = Holder()
            out = []
            for _ in range(n):
                h.it = Dies()
                out.append(len(deaths))
            return out
        """,
        "def calls():\n    for n in (3, 3, 3, 5):\n        yield (n,), {}\n",
    )
