"""Comprehensions, and what they go through: natively with the loops around them."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.native_kit import check_beside_others as check
from tests.support import stepped


class Thing:
    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Thing({self.number})"


def same(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    """Where objects differ from call to call: what is returned is compared by its repr."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(8):
            assert repr(jitted(*make())) == repr(function(*make()))
            ds.wait()


def displays(xs: list[Any]) -> Any:
    out = []
    for k in range(6):
        out.append([x * k for x in xs])
        out.append([x for x in xs if x > k])
        out.append({i: x for i, x in enumerate(xs)})
        out.append({x - k for x in xs})
        out.append([[x + y for x in xs[:3]] for y in xs[k:]])
    return out


def test_displays_in_a_loop() -> None:
    numbers = [1.5, 2.5, -3.0, 4.0, 0.0]
    check(displays, (numbers,), ([1, 2, 3, 4],), ([],), ([1, 2.5, True],), ([2**70, 1],))
    with pytest.raises(TypeError):
        ds.jit(store=False)(displays)(["a"])


def test_the_collector_knows_what_is_put_into_the_tuple_of_an_enumerate() -> None:
    def ring(n: int) -> Any:
        things = [[k] for k in range(n)]
        it = enumerate(things)
        for k, thing in it:
            thing.append(it)
        return len(things)

    same(ring, lambda: (9,))


def test_items_live_until_the_next_ones_come() -> None:
    def dying(things: list[Any], log: list[Any]) -> Any:
        for k, thing in enumerate(things):
            seen = weakref.ref(thing)
            things[k] = None
            thing = None
            log.append((k, seen() is None))
        for a, b in zip(things, log):
            log.append((a is None, sys.getrefcount(b)))
            if len(log) > 30:
                break
        return log

    same(dying, lambda: ([Thing(k) for k in range(9)], []))


def test_one_object_twice_in_a_zip() -> None:
    def twice(things: list[Any], gone: list[Any]) -> Any:
        for k, (a, b) in enumerate(zip(things, things)):
            gone.append(a is b and sys.getrefcount(a))
            things[k] = k
        return gone

    def both(things: list[Any], gone: list[Any]) -> Any:
        for a, b in zip(things, things):
            gone.append(weakref.ref(a))
            things[len(gone) // 2] = None
            a = b = None
            gone.append([ref() is None for ref in gone if isinstance(ref, weakref.ref)])
        return [row for row in gone if isinstance(row, list)]

    same(twice, lambda: ([Thing(k) for k in range(9)], []))
    same(both, lambda: ([Thing(k) for k in range(9)], []))


def test_a_tuple_that_somebody_keeps() -> None:
    def keeps(things: list[Any], kept: list[Any]) -> Any:
        for pair in enumerate(things):
            kept.append(pair)
            if len(kept) > 3:
                break
        it = zip(things, "abcdefghi")
        kept.append(next(it))
        for a, b in it:
            kept.append((a, b))
        return kept

    same(keeps, lambda: ([Thing(k) for k in range(9)], []))


def test_objects_and_numbers_side_by_side() -> None:
    def mixed(names: list[str], marks: list[Any]) -> Any:
        best: dict[str, Any] = {}
        order = []
        for name, mark in zip(names, marks):
            if mark > best.get(name, -1):
                best[name] = mark
        for k, name in enumerate(names):
            order.append(k if name in best else name)
        return best, order

    names = ["ann", "bob", "ann", "eve"] * 4
    check(mixed, (names, [1.5, 2.5] * 8), (names, list(range(16))), (names[:3], [True, 2**80, 1.5]), ([], []))


def strict(a: list[float], b: list[float]) -> Any:
    rows = []
    for k in range(4):
        rows.append([x - k * y for x, y in zip(a, b, strict=True)])
    return rows


def test_a_strict_zip_ends_or_raises() -> None:
    check(strict, ([1.0, 2.0], [3.0, 4.0]), ([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0]), ([], []), ([], [1.0]))


def test_what_dies_with_its_iterator() -> None:
    class Loud:
        def __init__(self, log: list[Any]) -> None:
            self.log = log

        def __del__(self) -> None:
            self.log.append(sys._getframe(1).f_code.co_name)

    def parts(log: list[Any], xs: list[Any]) -> Any:
        total = 0
        for k in range(6):
            for _ in [Loud(log), *xs][k:]:
                total += k
            for x in xs[k:]:
                total += x
        return total, log

    same(parts, lambda: ([], [1, 2, 3, 4, 5]))


def test_cells_whose_old_content_dies() -> None:
    class Loud:
        def __init__(self, log: list[Any]) -> None:
            self.log = log

        def __del__(self) -> None:
            self.log.append((sys._getframe(1).f_code.co_name, sorted(sys._getframe(1).f_locals)))

    def cells(log: list[Any], loud: bool) -> Any:
        out = []
        for k in range(8):
            value = Loud(log) if loud and k % 3 == 0 else k
            out.append([x if isinstance(value, int) else -x for x in range(2)])
        value = None
        return out, log

    same(cells, lambda: ([], False))
    same(cells, lambda: ([], True))


def test_frames_that_were_shown_are_left() -> None:
    def inner(k: int, kept: list[Any]) -> int:
        if k % 4 == 3:
            kept.append(sys._getframe().f_lineno)
        total = 0
        for j in range(3):
            total += j * k
        return total

    def outer(kept: list[Any]) -> Any:
        total = 0
        for k in range(12):
            total += inner(k, kept) + sum([x for x in range(k)])
        return total, kept

    same(outer, lambda: ([],))


def test_iterators_are_made_again_of_those_that_are_gone() -> None:
    def grid(n: int, log: list[Any]) -> Any:
        total = 0
        for k in range(n):
            for di in (-1, 0, 1):
                for dj in [2, 3, k]:
                    total += di * dj + k
                    if total % 50 == 7:
                        log.append([dj for dj in (1, 2)])
            if k % 5 == 4:
                log.append(sum(type(o).__name__ in ("tuple_iterator", "list_iterator") for o in gc.get_objects()))
        return total, log

    gc.disable()
    try:
        same(grid, lambda: (20, []))
    finally:
        gc.enable()


def test_dicts_gone_through_inside_loops() -> None:
    def ranks(graph: dict[Any, list[Any]], turns: int) -> Any:
        rank = {u: 1.0 for u in graph}
        for _ in range(turns):
            new = {u: 0.25 for u in graph}
            for u, ways in graph.items():
                for v in ways:
                    new[v] += rank[u] / len(ways)
            rank = new
        return rank, [k for k in {1: 2, 3: 4}], {k: v for v, k in {"a": 1, "b": 2}.items()}

    def changes(n: int) -> Any:
        table = {k: k for k in range(9)}
        seen = []
        try:
            for turn in range(3):
                for k in table:
                    seen.append(k)
                    if k == n and turn == 2:
                        table[-k] = 0
        except RuntimeError as e:
            seen.append(str(e))
        return seen

    graph = {k: [(k * 3) % 7, (k + 1) % 7] for k in range(7)}
    check(ranks, (graph, 5), ({}, 2), ({1: []}, 3))
    check(changes, (3,), (8,), (20,))


def test_what_a_dict_gives_lives_until_the_next_comes() -> None:
    class Loud:
        def __init__(self, log: list[Any]) -> None:
            self.log = log

        def __del__(self) -> None:
            self.log.append((sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno))

    def values(log: list[Any], n: int) -> Any:
        table = {k: Loud(log) for k in range(n)}
        for k, v in table.items():
            table[k] = None
            v = None
            log.append(k)
        for k in range(6):
            for _ in {1: Loud(log), 2: k}:
                log.append(k)
        return log

    same(values, lambda: ([], 9))
