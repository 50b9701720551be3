"""Parts of modules: random classes, and the loops that go through objects of several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .chooser import Chooser
from .class_table import BASES, BESIDE, BODIES, INNER, MEMBERS, NESTED, OBJECTS, OUTER, POKE, SEEN, STARTS_OF, Member
from .expressions import Expressions
from .scope import Scope

_INDENT = "    "
_MARKS = "oztuvwyxrqhkife"
CLASSES = 3  # Thing0, Thing1, Thing2

# What random classes derive from, and what stands beside them.
_THING = """
import heapq
import io
from decimal import Decimal


class Told:
    def __get__(self, instance, owner):
        return len(sys._getframe(1).f_locals)
    def __set__(self, instance, value):
        instance.n = value


class Tagged(type):
    @property
    def tag(cls):
        return cls.__name__ + str(cls.rate)


class Thing:
    rate = 2
    free = 0
    tags = ('a', 'b')
    def __init__(self, x):
        self.x = x
        self.n = 0
        self.y = 1.5
        self.items = [1, 2, 3]
        self.table = {1: 2}
        self.pair = (1, 2.5, 'a')
        self.link = self
    @property
    def p(self):
        return self.n + 1
    def m(self, k=0):
        return self.y


class Narrow:
    __slots__ = ('x', 'n', 'y', 'items', 'table', 'pair', 'link')
    rate = 2**70
    def __init__(self, x):
        self.x = x
        self.n = 1
        self.y = 2
        self.items = [1.5]
        self.table = {1: 'z', 2: 3}
        self.pair = (2, 3)
        self.link = Thing(x)
    p = property(lambda self: self.link.n)
    def m(self, k=0):
        return len(self.items)


def nothing(x):
    return 0


def handed(x):
    return x


def handing(xs):
    for x in xs:
        yield x


def left(x, by=3, plus=(1, 2.5)):
    return x * by + plus[1]


class Several(list):
    def total(self):
        return super().__len__() + len(self)
"""
_SHEET = """
import dataclasses


@dataclasses.dataclass
class Sheet(Thing):
    x: object
    n: int = 3
    y: float = 2.5
    items: list = dataclasses.field(default_factory=lambda: [2, 0.5])
    def __post_init__(self):
        self.table, self.pair, self.link = {}, (2.5, 3), self
"""
_FIXED = """
import dataclasses


@dataclasses.dataclass(frozen=True)
class Fixed:
    n: int = 1


FIXED = Fixed()
"""
_HUE = """
import enum


class Hue(enum.Enum):
    RED = 1
    BLUE = 'x'
"""
_MODULE_END = """

THINGS = (Thing0, Thing1, Thing2)
STOCK = [{stock}, Narrow(1)]
"""

# As PARTS of module_parts.py.
CLASS_PARTS: dict[str, str] = {"Thing": _THING, "Sheet": _SHEET, "FIXED": _FIXED, "Hue": _HUE}


def with_body(member: Member, body: str) -> list[str]:
    """The source lines of a member in its class."""
    lines = member.head.split("\n") + [_INDENT + line for line in body.split("\n") if body]
    return _indented(lines)


def classes(contents: Sequence[tuple[str, list[str]]], stock: str) -> str:
    """The source of random classes, by base and what is in each, and of instances."""
    lines: list[str] = []
    for index, (base, members) in enumerate(contents):
        lines += ["", "", f"class Thing{index}({base}):", *(members or [_INDENT + "pass"])]
    return "\n".join(lines) + "\n" + _MODULE_END.format(stock=stock)


def write_classes(chooser: Chooser, used: list[Member]) -> str:
    """The classes of a program that makes use of these members."""
    expressions = Expressions(chooser, Scope([], []))
    common = [member for member in used if not chooser.chance(40)]
    contents = []
    for index in range(CLASSES):
        base = chooser.weighted(BASES) if index else "Thing"
        chosen = [member for member in used if member in common or chooser.chance(50)]
        chosen += [chooser.weighted(MEMBERS) for _ in range(chooser.integer(0, 2))]
        lines = []
        for member in dict.fromkeys(chosen):
            body = chooser.weighted(BODIES[member.body]) if member.body else ""
            lines += with_body(member, expressions.fill(body, 0))
        contents.append(("Thing" if base == f"Thing{index}" else base, lines))  # there is no such class yet
    names = [f"Thing{index}" for index in range(CLASSES)]
    stock = [f"{chooser.pick(names)}({chooser.pick(('1', '1.5', '0'))})" for _ in range(2)]
    return classes(contents, ", ".join(stock))


class ObjectLoops:
    """Writes loops over objects of random classes, and notes which members their classes should have."""

    def __init__(
        self, chooser: Chooser, fill: Callable[[str, int], str], fresh: Callable[[str], str], used: list[Member]
    ) -> None:
        self._chooser = chooser
        self._fill = fill
        self._used = used
        self._names = {mark: fresh(mark) for mark in _MARKS}

    def lines(self, most: int) -> list[str]:
        """A loop of at most so many turns, what comes before it, and what is kept of it."""
        chooser = self._chooser
        head, first = chooser.weighted(OUTER)
        body = self._rows() if chooser.chance(30) else self._nested()
        guard = chooser.pick(("", "", "turn", "turn", "loop"))
        if guard == "turn":
            body = self._guarded(body)
        loop = [head, *_indented([first] if first else []), *_indented(body)]
        if guard == "loop":
            loop = self._guarded(loop)
        return self.complete(chooser.weighted(OBJECTS), loop, chooser.weighted(SEEN), chooser.integer(5, most))

    def complete(self, objects: str, loop: list[str], seen: str, turns: int = 20) -> list[str]:
        """A loop with what its marks start as before it."""
        last = f"LOG.append(($t, $u, $v, $w, $k, $y, {seen}, [made.rate for made in THINGS]))"
        text = "\n".join([*loop, last])
        starts = [start for mark, start in STARTS_OF.items() if "$" + mark in text]
        poke = POKE.split("\n") if "$f" in text else []
        return self._put([f"$o = {objects}", *starts, *poke, *loop, last], turns)

    def _nested(self) -> list[str]:
        """The loop over the objects, and what stands beside it."""
        chooser = self._chooser
        lines = [*self._beside(1), *self._inner(chooser.pick((1, 1, 2)))]
        if chooser.chance(12):
            lines += self._inner(1)
        return lines + self._beside(chooser.pick((1, 1, 2)))

    def _inner(self, rows: int) -> list[str]:
        head, first = self._chooser.weighted(INNER)
        lines = [first] if first else []
        for _ in range(rows):
            lines += (self._use() if self._chooser.chance(30) else self._chooser.weighted(NESTED)).split("\n")
        return [head, *_indented(lines)]

    def _beside(self, most: int) -> list[str]:
        return [self._chooser.weighted(BESIDE) for _ in range(self._chooser.integer(0, most))]

    def _rows(self) -> list[str]:
        """On one object after the other, without an inner loop."""
        chooser = self._chooser
        lines = ["$z = $o[$k % len($o)]"]
        for _ in range(chooser.integer(1, 3)):
            way = chooser.integer(0, 3)
            lines += (self._use() if way < 2 else chooser.weighted(BESIDE if way == 2 else NESTED)).split("\n")
        return lines

    def _use(self) -> str:
        member = self._chooser.weighted(MEMBERS)
        if member not in self._used:
            self._used.append(member)
        return self._chooser.pick(member.uses)

    def _guarded(self, lines: list[str]) -> list[str]:
        seen = self._chooser.pick(("type($e).__name__", "str($e)", "$e.__traceback__.tb_lineno"))
        return ["try:", *_indented(lines), "except Exception as $e:", f"{_INDENT}$y.append({seen})"]

    def _put(self, lines: list[str], turns: int) -> list[str]:
        text = "\n".join(self._fill(line, 1) for line in lines).replace("$n", str(turns))
        for mark, name in self._names.items():
            text = text.replace("$" + mark, name)
        return text.split("\n")


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]
