"""What the generator knows at a place in the program: which names are bound, and to what kind of thing.

Kinds: arr (an array that broadcasts with the arguments), mask (the same, bool), odd (an array of any shape), num (int,
float or NumPy scalar), int, bool, pair (a complex number), wave (an array of such, as arr), str, list and tuple (of
num), dict (text -> num), set (of int), arrs (a list of arr), box (an instance with attributes value and items), fn (a
local function of one num), iter (an iterator of num), ref (a weak reference to what a local holds).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from .class_table import Member

KINDS = (
    "arr",
    "mask",
    "odd",
    "num",
    "int",
    "bool",
    "pair",
    "wave",
    "str",
    "list",
    "tuple",
    "dict",
    "set",
    "arrs",
    "box",
    "fn",
    "iter",
    "ref",
)


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    default: str = ""  # source; empty: none


@dataclasses.dataclass(frozen=True)
class Helper:
    name: str
    parameters: tuple[Parameter, ...]
    returns: str


@dataclasses.dataclass
class Scope:
    """A function's names. Names bound in a block are forgotten at its end, since the block may not have run."""

    helpers: list[Helper]
    global_numbers: list[str]
    names: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    counter: int = 0
    loop_depth: int = 0
    max_loops: int = 2
    protected: set[str] = dataclasses.field(default_factory=set)  # loop counters: never assigned
    members: list[Member] = dataclasses.field(default_factory=list)  # used so far; one list for all of a program

    def add(self, kind: str, name: str) -> None:
        self.names.setdefault(kind, []).append(name)

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def of(self, kind: str) -> list[str]:
        found = self.names.get(kind, [])
        if kind == "num":  # whatever is an int is a num
            return found + self.names.get("int", []) + self.global_numbers
        return found

    def remove(self, name: str) -> None:
        for found in self.names.values():
            if name in found:
                found.remove(name)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        saved = {kind: list(names) for kind, names in self.names.items()}
        try:
            yield
        finally:
            self.names = saved

    @contextlib.contextmanager
    def loop(self) -> Iterator[None]:
        self.loop_depth += 1
        try:
            yield
        finally:
            self.loop_depth -= 1
