"""What C code does with lists, tuples and deques shows frames only where code of the user's may run."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from typing import Any

import pytest

import dalsegno as ds


class _Looking:
    """Says, when it dies, is compared or hashed, what the loop's variables are."""

    def __init__(self, log: list[Any], value: int = 0) -> None:
        self.log, self.value = log, value

    def _look(self, what: str) -> None:
        if "over" in self.log:
            return
        frame = sys._getframe(2)
        self.log.append((what, frame.f_lineno, frame.f_locals.get("i"), frame.f_locals.get("total")))

    def __del__(self) -> None:
        self._look("del")

    def __eq__(self, other: object) -> bool:
        self._look("eq")
        return isinstance(other, _Looking) and self.value == other.value

    def __lt__(self, other: Any) -> bool:
        self._look("lt")
        return self.value < getattr(other, "value", other)

    def __gt__(self, other: Any) -> bool:
        self._look("gt")
        return self.value > getattr(other, "value", other)

    def __radd__(self, other: Any) -> Any:
        self._look("add")
        return other + self.value

    def __index__(self) -> int:
        self._look("index")
        return self.value

    def __repr__(self) -> str:
        return f"looking {self.value}"

    __hash__ = None  # type: ignore[assignment]


class _Own(list):
    """A list with methods of its own."""

    def __iter__(self):
        yield from (9, 8)

    def __getitem__(self, i):
        return 7


def slices_stored(p, q, n):
    total = 0
    for i in range(n):
        p[:3] = reversed(p[:3])
        p[1:2] = q
        del p[:1]
        p[-2:] = p[i % 3 :: -1]
        p[i % 2 : 2] = [i, i]
        total += len(p)
        if total > 3000:
            break
    return p, total


def extended_slices(p, q, n):
    total = 0
    for i in range(n):
        try:
            p[::2] = q[i:]
        except ValueError as e:
            total += len(str(e))
        p[::-1] = p
        p[1:1] = p[i : i + 1]
        total += i
    return p, total


def methods(p, q, n):
    total = 0
    for i in range(n):
        p.extend(q)
        total += p.count(q[0]) + p.index(q[-1])
        p.remove(q[0])
        total += (i in p) + len(p)
        p += q
        if len(p) > 40:
            p.clear()
            p.extend(range(5))
    return p, total


def sorted_ones(p, q, n):
    total = []
    for i in range(n):
        p.sort(reverse=i % 2 == 0)
        total.append((sorted(q), max(p), min(q), p == q, p < q))
        q.insert(0, q.pop())
    return p, total


def copies(p, q, n):
    total = []
    for i in range(n):
        total = [*q, i, *p[i:]]
        total = tuple(p) + tuple(q) + (i,)
        total = list(total) + list(q) + p * 2 + [sum(range(i))]
    return total


def windows(p, q, n):
    window = deque(p, 3)
    total = []
    for i in range(n):
        window.append(q[i % len(q)])
        window.appendleft(i)
        while window and len(window) > 2:
            total.append(window.pop())
            window.rotate(1)
            window.rotate()
        total.append((window[0], window[-1], len(window)))
    return total


def deleted(p, q, n):
    total = 0
    for i in range(n):
        p.append(i)
        p.append(q[i % len(q)])
        del p[0]
        if i % 5 == 4:
            del p[1:4:2]
        total += i
    return p, total


_PROGRAMS = [slices_stored, extended_slices, methods, sorted_ones, copies, windows, deleted]
_ITEMS = {
    "ints": lambda log: ([3, 1, 2, 5, 4], [4, 2, 1]),
    "texts": lambda log: (["b", "a", "c"], ["c", "a", "d"]),
    "large": lambda log: ([2**70, 1.5, 3, True], [2.5, 2**70]),
    "mixed": lambda log: ([1, "a", None, 2.5], ["a", 1]),
    "tuples": lambda log: ([(1, "a"), (0, "b"), (1, ())], [(2, "x"), (1, "a")]),
    "lists": lambda log: ([[1], [0, [2]], []], [[3], [1]]),
    "looking": lambda log: ([_Looking(log, k) for k in (2, 0, 1)], [_Looking(log, k) for k in (5, 1)]),
    "twice": lambda log: ([_Looking(log, 2)] * 3, [_Looking(log, 5), 3]),
    "own": lambda log: (_Own([1, 2, 3, 4]), _Own([5, 6])),
    "empty": lambda log: ([], [1]),
}


def _outcome(f: Any, make: Any, n: int) -> Any:
    log: list[Any] = []
    p, q = make(log)
    try:
        said: Any = repr(f(p, q, n))
    except (TypeError, ValueError, IndexError) as e:
        said = repr(e)
        e.__traceback__ = None
    said = said, repr(list.__repr__(p)), list.__repr__(q)
    log.append("over")
    del p, q
    return said, log


@pytest.mark.parametrize("items", _ITEMS)
@pytest.mark.parametrize("program", _PROGRAMS)
def test_lists_of_anything(program, items):
    jitted = ds.jit(store=False)(program)
    for n in (12, 12, 7, 12):
        assert _outcome(jitted, _ITEMS[items], n) == _outcome(program, _ITEMS[items], n)
        ds.wait()


@pytest.mark.parametrize("program", _PROGRAMS)
def test_lists_whose_items_change(program):
    jitted = ds.jit(store=False)(program)
    for items in [*_ITEMS, *reversed(_ITEMS)] * 2:
        assert _outcome(jitted, _ITEMS[items], 12) == _outcome(program, _ITEMS[items], 12), items
        ds.wait()


def test_references_are_as_in_eager():
    def f(p, n):
        for i in range(n):
            q = [*p[1:], p[0]]
            p[:2] = reversed(q[:2])
            p.extend(q)
            del p[3:]
        return p, q

    jitted = ds.jit(store=False)(f)
    for _ in range(4):
        counts = []
        for function in (jitted, f):
            items = [object(), "x" * 50, 2.5]
            result = function(list(items), 9)
            counts.append([sys.getrefcount(item) for item in items])
            del result
        assert counts[0] == counts[1]
        ds.wait()


def test_what_a_list_holds_more_than_once_dies_with_it():
    def f(log, n):
        x = None
        for i in range(n):
            x = [_Looking(log, i)] * 2
            x = ([x, x], x) if i % 2 else [x]
            x = None
        return x, n

    jitted = ds.jit(store=False)(f)
    for _ in range(4):
        logs: list[list[Any]] = [[], []]
        for function, log in zip((jitted, f), logs, strict=True):
            function(log, 8)
        assert logs[0] == logs[1]
        ds.wait()


def test_a_list_that_holds_itself_dies_when_it_is_collected() -> None:
    def ring(log: Any) -> Any:
        class Seen:
            pass

        seen = Seen()
        weakref.finalize(seen, log.append, "gone")
        ring = [seen, 1]
        ring.append(ring)
        del seen
        ring = 2
        gc.collect()
        log.append("collected")
        return list(log)

    jitted = ds.jit(ring, store=False)
    with ds.config(step_aside=False):
        for _ in range(5):
            assert jitted([]) == ring([]) == ["gone", "collected"]
