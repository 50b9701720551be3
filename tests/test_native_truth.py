"""What is true: containers by the number of their items, None, and instances of classes that say nothing about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.native_kit import same
from tests.support import stepped


class Node:
    __slots__ = ("next", "value")

    def __init__(self, value: int, following: Node | None) -> None:
        self.value = value
        self.next = following


class Plain:
    pass


class Kin(Plain):
    pass


def chain(n: int) -> Node | None:
    node = None
    for i in range(n):
        node = Node(i, node)
    return node


def walk(node: Node | None) -> int:
    total = 0
    while node:
        total += node.value
        node = node.next
    return total


def emptied(n: int) -> Any:
    stack = list(range(n))
    sizes = []
    total = 0
    while stack:
        total += stack.pop()
        sizes.append(sys.getsizeof(stack))
    return total, sizes


def popped_objects(n: int) -> Any:
    stack: list[Any] = [(i, [i]) for i in range(n)]
    out = []
    while stack:
        i, items = stack.pop()
        out.append(i + len(items))
        if i % 7 == 3:
            stack.append((i + 1, items * 2))
    return out


def counted(things: list[Any]) -> int:
    total = 0
    for thing in things:
        if thing:
            total += 1
        if not thing:
            total += 10
    return total


MIXED = [
    None,
    Plain(),
    Kin(),
    1,
    0,
    [],
    [1],
    (),
    (1,),
    "",
    "x",
    {},
    {1: 2},
    set(),
    {1},
    frozenset(),
    b"",
    b"x",
    0.0,
    bytearray(b"a"),
]


@pytest.mark.parametrize("n", [0, 1, 2, 40])
@pytest.mark.parametrize("function", [emptied, popped_objects])
def test_stacks(function: Callable[..., Any], n: int) -> None:
    same(function, lambda: (n,))


def test_chains_end_natively() -> None:
    jitted = ds.jit(store=False)(walk)
    with stepped(step_aside=False, hot_loop=2):
        for _ in range(5):
            assert jitted(chain(40)) == walk(chain(40))
    assert "called" not in str(jitted.explain())


def test_all_kinds() -> None:
    same(counted, lambda: (MIXED * 3,), lambda: ([None] * 5 + [Plain()] * 5,))


@pytest.mark.parametrize("name", ["__bool__", "__len__"])
@pytest.mark.parametrize("where", [Plain, Kin])
def test_a_class_that_changes_its_mind(name: str, where: type) -> None:
    things = [Kin(), Plain(), Kin(), None] * 5
    jitted = ds.jit(store=False)(counted)
    with stepped(step_aside=False, hot_loop=2):
        for _ in range(4):
            assert jitted(things) == counted(things)
        setattr(where, name, lambda self: 0 if name == "__len__" else False)
        try:
            for _ in range(3):
                assert jitted(things) == counted(things)
        finally:
            delattr(where, name)
        for _ in range(3):
            assert jitted(things) == counted(things)


def test_it_changes_within_the_loop() -> None:
    def changing(things: list[Any]) -> int:
        total = 0
        for i, thing in enumerate(things):
            total += 1 if thing else 100
            if i == 12:
                Plain.__bool__ = lambda self: False  # type: ignore[attr-defined]
        return total

    def undone(function: Callable[..., int]) -> int:
        try:
            return function([Kin()] * 20)
        finally:
            del Plain.__bool__  # type: ignore[attr-defined]

    jitted = ds.jit(store=False)(changing)
    with stepped(step_aside=False, hot_loop=2):
        for _ in range(5):
            assert undone(jitted) == undone(changing)
