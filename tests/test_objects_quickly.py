"""Ops on objects that native code and folds do in their own way: pieces, texts, classes, generators not made."""

from __future__ import annotations

import copy
import gc
import heapq
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import dalsegno as ds
from tests import native_kit
from tests.support import stepped


def same(function: Callable[..., Any], *arguments: Any) -> None:
    native_kit.same(function, lambda: copy.deepcopy(arguments))


TEXTS = ["", "a", "abcdef", "A7 z", "½€x", "ß", "\U0001f600q", " \t", "12", "٣"]  # noqa: RUF001
ENDS: list[int | None] = [None, 0, 1, 2, -1, -2, 5, 99, -99, sys.maxsize, -sys.maxsize - 1]


@pytest.mark.parametrize("kind", [str, list, tuple, bytes])
def test_pieces(kind: Callable[[Any], Any]) -> None:
    def pieces(whole: Any, ends: list[Any]) -> Any:
        found = []
        for start in ends:
            for stop in ends:
                piece = whole[start:stop]
                found.append((piece, piece is whole, whole[1:stop], whole[start:-1]))
        return found

    sources = [kind(b"abcdef"), kind(b"")] if kind is bytes else [kind(text) for text in TEXTS[:7]]
    for whole in sources:
        same(pieces, whole, [end for end in ENDS if end is not None])
        same(pieces, whole, ENDS)


@pytest.mark.parametrize("kind", [str, list, tuple, bytes])
def test_pieces_backwards(kind: Callable[[Any], Any]) -> None:
    def pieces(whole: Any, ends: list[Any]) -> Any:
        found = []
        for start in ends:
            for stop in ends:
                piece = whole[start:stop:-1]
                found.append(
                    (piece, piece is whole, piece is whole[:1], whole[::-1], whole[start::-1], whole[:stop:-1])
                )
        return found

    sources = [kind(b"abcdef"), kind(b"")] if kind is bytes else [kind(text) for text in TEXTS[:7]]
    for whole in sources:
        same(pieces, whole, [end for end in ENDS if end is not None])
        same(pieces, whole, ENDS)


class Dying:
    deaths = 0

    def __del__(self) -> None:
        Dying.deaths += 1 if sys._getframe(1).f_code.co_name == "put" else 100

    def __repr__(self) -> str:
        return "Dying()"


def test_pieces_that_are_put() -> None:
    def put(whole: Any, ends: list[Any], more: Any) -> Any:
        found = []
        for start in ends:
            for stop in ends:
                if stop is not None:
                    whole[start:stop] = more
                whole[start:] = whole[:stop]
                found.append((len(whole), whole[:3]))
                whole[:] = [1, "a", 2.5, None]
        return found

    for more in ([], [1, 2], (3,), "ab", {1: 2}, 5, range(3), iter([1])):
        same(put, [1, 2, 3], [end for end in ENDS if end is not None], more)
        same(put, [1, 2, 3], ENDS, more)
    itself = [1, 2, 3]
    same(lambda xs: [xs.__setitem__(slice(1, 2), xs), xs[:5]], itself)

    def kill(n: int) -> Any:
        before = Dying.deaths
        whole: list[Any] = []
        put(whole, [0, 1, 2] * n, [Dying(), Dying()])
        return Dying.deaths - before, whole

    same(kill, 5)


def test_pieces_by_what_is_no_int() -> None:
    def piece(whole: Any, start: Any, stop: Any) -> Any:
        found = []
        for _ in range(20):
            found.append(whole[start:stop])
        return found

    class Index:
        def __index__(self) -> int:
            return 2

    for whole in ("abcdef", [1, 2, 3, 4], (1, 2, 3)):
        for stop in (True, Index(), 2**70, -(2**70), 1.5, "a"):
            same(piece, whole, 1, stop)


def test_pieces_of_other_types_in_the_same_place() -> None:
    def joined(items: list[Any]) -> Any:
        found = []
        for k, item in enumerate(items):
            found.append(item[k : k + 2])
        return found

    same(joined, ["abcdef"] * 30)
    same(joined, ["abcdef"] * 20 + [[1, 2, 3] * 20] * 5 + [(1, 2) * 30] + ["x"] * 5)


def test_texts_in_order() -> None:
    def ordered(texts: list[str]) -> int:
        count = 0
        for a in texts:
            for b in texts:
                count += (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b)
            if "a" <= a <= "f":
                count += 1000
        return count

    same(ordered, TEXTS)


def test_questions_about_texts() -> None:
    def answers(texts: list[str]) -> Any:
        found = []
        for t in texts:
            found.append(
                (
                    t.isalnum(),
                    t.isalpha(),
                    t.isascii(),
                    t.isdecimal(),
                    t.isdigit(),
                    t.islower(),
                    t.isnumeric(),
                    t.isspace(),
                )
            )
            if t.isupper() or t.startswith("a") or t.endswith(t[1:]):
                found.append(len(t))
        return found

    same(answers, TEXTS)


class Base:
    pass


class Derived(Base):
    pass


class Liar(Base):
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return int


def test_of_which_class() -> None:
    def counts(items: list[Any]) -> int:
        count = 0
        for item in items:
            if isinstance(item, Base):
                count += 1
            if isinstance(item, (Derived, int)):
                count += 10
            if isinstance(item, int):
                count += 100
            if isinstance(item, (str, list)):
                count += 1000
        return count

    same(counts, [Base() for _ in range(30)])
    same(counts, [Base(), Derived(), Liar(), 1, True, "a", [], None, 2.5] * 5)


def test_a_class_that_changes() -> None:
    class Changing:
        pass

    def count(items: list[Any]) -> int:
        found = 0
        for k, item in enumerate(items):
            found += isinstance(item, Base)
            found += 10 * isinstance(item, Changing)
            if k == 25:
                items[26].__class__ = Base
        return found

    def called() -> int:
        return count([Changing() for _ in range(40)])

    expected = called()
    jitted = ds.jit(store=False)(count)
    with stepped():
        for _ in range(6):
            assert jitted([Changing() for _ in range(40)]) == expected


def test_of_lists_and_tuples_of_numbers() -> None:
    def reduced(lists: list[Any]) -> Any:
        found: list[Any] = []
        for xs in lists:
            found.append((sum(xs), any(xs), all(xs)))
            if xs:
                found.append((min(xs), max(xs), min(xs) is xs[0]))
        return found

    nan = math.nan
    numbers = [
        [1, 2],
        (3.5, 2),
        [],
        (nan, 1.0),
        [1.0, nan],
        [True, 2],
        [2**62, 2**62],
        [-0.0, 0.0],
        (0.1,) * 9,
        [10**20, 1.5],
        [300, 300.0],
    ]
    same(reduced, numbers * 3)


def test_of_what_is_no_number() -> None:
    def least(lists: list[Any]) -> Any:
        found: list[Any] = []
        for xs in lists:
            try:
                found.append((min(xs), any(xs)))
            except (TypeError, ValueError) as error:
                found.append(str(error))
        return found

    same(least, [["b", "a"], [[1], [0]], [(1, 2), (1, 1)], [1, "a"], [], [None], [1j, 2]] * 4)


@pytest.mark.parametrize("text", ["a€", "€a", "aé", "", "\0€"])
def test_of_a_text_with_letters_that_the_interpreter_does_not_keep(text: str) -> None:
    def reduced(texts: list[str]) -> Any:
        found: list[Any] = []
        for t in texts:
            found.append((any(t), all(t), max(t, default=1), min(t, default=1), max(t, key=ord, default=1)))
        return found

    same(reduced, [text] * 20)


def test_numbers_as_texts() -> None:
    def written(items: list[Any]) -> str:
        text = ""
        for item in items:
            text += str(item) + f"{item}|" + "{0}:{0!r}".format(item)
        return text

    same(written, [1, -5, 2**70, 1.5, math.nan, True, "a", None] * 3)


class Quarrelsome:
    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    __hash__ = None  # type: ignore[assignment]


FOLDS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("letters", lambda xs, k: [any(c == "a" for c in x) for x in xs], (TEXTS * 3, 1)),
    ("orders", lambda xs, k: [sum("a" <= c < "g" for c in x) for x in xs], (TEXTS * 3, 1)),
    ("codes", lambda xs, k: [max((abs(ord(c) - k) for c in x), default=-1) for x in xs], (TEXTS * 3, 100)),
    ("within", lambda xs, k: [all(c in "abcdef7" for c in x) for x in xs], (TEXTS * 3, 1)),
    ("members", lambda xs, k: [sum(q in k for q in x) for x in xs], ([[1, 2.0, "a", None]] * 20, {1, "a"})),
    (
        "no members",
        lambda xs, k: [sum(q not in k for q in x) for x in xs],
        ([[1, 2.0, "a", math.nan]] * 20, [1, math.nan, "a"]),
    ),
    ("quarrels", lambda xs, k: [any(q in k for q in x) for x in xs], ([[1, 2]] * 20, [1, Quarrelsome()])),
    (
        "the same",
        lambda xs, k: [sum(q is None for q in x) + sum(q is not k for q in x) for x in xs],
        ([[1, None, 2.5]] * 20, 1),
    ),
    (
        "and",
        lambda xs, k: [all(k != c and abs(c - k) != r for r, c in enumerate(x)) for x in xs],
        ([(1, 3, 5), (), (2, 4)] * 9, 6),
    ),
    ("or", lambda xs, k: [sum(q or k for q in x) for x in xs], ([[0, 1, 0.0, 2.5]] * 20, 7)),
    ("math", lambda xs, k: [sum(math.sqrt(q) + math.floor(q) for q in x) for x in xs], ([[4.0, 2, 9.5]] * 20, 1)),
    ("errors", lambda xs, k: [sum(math.sqrt(q) for q in x) for x in xs], ([[4.0, 2], [-1.0]] * 5, 1)),
    ("rounded", lambda xs, k: [sum(round(q) for q in x) for x in xs], ([[4.5, 2.5, 9]] * 20, 1)),
    (
        "truths",
        lambda xs, k: [any(q for q in x) for x in xs],
        ([["", [], ()], ["", [1]], [k for k in range(3)]] * 9, 1),
    ),
]


@pytest.mark.parametrize(("name", "function", "arguments"), FOLDS, ids=[name for name, _, _ in FOLDS])
def test_what_folds_know(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    same(function, *arguments)


def test_a_generator_that_is_not_made_raises_where_it_would() -> None:
    def total(items: list[Any], k: Any) -> Any:
        n = 0
        for x in items:
            n += sum(1 / q - k for q in x)
        return n

    same(total, [[1, 2]] * 20, 0.5)
    same(total, [[1, 2]] * 15 + [[1, 0]], 0.5)
    same(total, [[1, 2]] * 15 + [7], 0.5)
    same(total, [[1, 2]] * 15 + [["a"]], 0.5)


def test_who_looks_from_inside_sees_the_generator() -> None:
    names: list[str] = []

    def seen(q: Any) -> Any:
        frame = sys._getframe(1)
        names.append(f"{frame.f_code.co_name} {sorted(frame.f_locals)}")
        return q

    def total(items: list[Any], k: Any, watch: bool) -> Any:
        n = 0
        for x in items:
            n += sum((seen(q) if watch else q) + k for q in x)
        return n

    def run(function: Callable[..., Any]) -> Any:
        names.clear()
        given = [function([[1, 2]] * 20, 1, False), function([[1, 2]] * 3, 1, True), function([[1, 2]] * 3, 1, False)]
        return given, list(names)

    expected = run(total)
    jitted = ds.jit(store=False)(total)
    with stepped():
        for _ in range(5):
            assert run(jitted) == expected


def test_finalisers_between_a_generator_and_what_uses_it_up() -> None:
    deaths: list[int] = []

    class Dying:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            deaths.append(len(sys._getframe(1).f_locals))

    def total(items: list[Any]) -> Any:
        n = 0
        for x in items:
            Dying()
            n += sum(q * q for q in (x, x, list(x))[2])
        return n

    before = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    try:
        same(total, [[1, 2, 3]] * 40)
    finally:
        gc.set_threshold(*before)


def test_what_iterators_are_made_of_lives_until_the_generator_is_used_up() -> None:
    def total(n: int) -> Any:
        found = 0
        for k in range(n):
            found += (
                sum(q * k for q in [k, k + 1])
                + sum(q for q in map(abs, [k, -k]))
                + sum(p * q for p, q in zip([k], (2,)))
            )
        return found

    same(total, 30)


def test_heaps_of_tuples() -> None:
    def sorted_by_heap(items: Iterable[Any]) -> Any:
        heap: list[Any] = []
        for item in items:
            heapq.heappush(heap, item)
        found = []
        while heap:
            found.append(heapq.heappop(heap))
        return found

    nan = math.nan
    for items in (
        [(1.5, 2), (1.5, 1), (0.0, "b"), (-0.0, "a"), (0.0, "a", 1)],
        [(nan, 1), (1.0, 2), (nan, 0), (0.5, 3)],
        [(nan, k) for k in (3, 1, 2)],
        [(2**70, 1), (2**70, 0), (1, 5), (1.5, 2)],
        [("b", 1), ("a", 2), ("a", 1)],
        [(1, [2]), (1, [1]), (0, [5])],
        [(1, None), (0, None)],
        [(1, None), (1, None)],
    ):
        same(sorted_by_heap, items * 3)


def test_no_reference_is_lost() -> None:
    marks = ["mark" + str(k) for k in range(3)]

    def work(items: list[str], k: int) -> int:
        n = 0
        for text in items:
            n += len(text[:k]) + len(items) + sum(len(c) * k for c in text) + max([k, n]) + isinstance(text, str)
            n += any(c == "x" for c in text) + (text < "b") + text.isalpha() + len(str(n))
        return n

    jitted = ds.jit(store=False)(work)
    with ds.config(step_aside=False):
        for _ in range(50):
            jitted(marks, 2)
        ds.wait()
        jitted(marks, 2)
        gc.collect()
        before = [sys.getrefcount(mark) for mark in marks], len(gc.get_objects())
        for _ in range(2000):
            jitted(marks, 2)
        gc.collect()
        assert [sys.getrefcount(mark) for mark in marks] == before[0]
        assert len(gc.get_objects()) <= before[1] + 50


def test_lengths() -> None:
    def lengths(items: list[Any], n: int) -> int:
        total = 0
        for _ in range(n):
            for item in items:
                if isinstance(item, str):
                    total += len(item)
                elif isinstance(item, dict):
                    item[total] = 1
                    total += 2 * len(item)
                elif isinstance(item, set):
                    item.add(total)
                    total += 3 * len(item)
                elif isinstance(item, (bytes, bytearray)):
                    total += 5 * len(item)
                else:
                    total += 7 * len(item)
        return total

    same(lengths, ["", "ab€", {1: 2}, {3}, b"xyz", bytearray(b"x"), (1, 2), [4], frozenset([1]), range(7)], 20)
    same(lengths, ["abc"] * 30, 3)
