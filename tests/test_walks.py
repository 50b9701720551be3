"""Bytes, texts, and several things at once (enumerate, zip), without their objects: as eager, and natively."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.native_kit import steps_of
from tests.support import stepped


def check(function: Callable[..., Any], *calls: tuple[Any, ...], rounds: int = 3) -> None:
    """All engines, and the one that compiles loops at their first turn."""
    rows = [made for made in calls for _ in range(rounds)]
    equivalent(function, *rows, *(calls * 3 if len(calls) > 1 else ()))
    equivalent(function, *rows, *(calls * 3 if len(calls) > 1 else ()), engines=["native"])


def checksum(data: Any) -> Any:
    c = 0xFFFFFFFF
    b = None
    for b in data:
        c = (c >> 3) ^ (b * 2654435761 & 0xFFFFFFFF)
    return c, b


BYTES = bytes(range(256)) * 4


def test_bytes() -> None:
    check(checksum, (BYTES,), (bytearray(BYTES),), (b"",), (b"\xff",), ([1, 2, 300],))
    assert steps_of(checksum, BYTES) < 100
    assert steps_of(checksum, bytearray(BYTES)) < 100


def test_a_bytearray_that_changes_under_its_iterator() -> None:
    def grows(n: int) -> Any:
        data = bytearray(b"abc")
        total = 0
        for b in data:
            total += b
            if len(data) < n:
                data.append(b + 1 & 255)
            elif b == 102:
                del data[-2:]
        return total, bytes(data)

    check(grows, (3,), (40,), (400,))


def largest(items: Any, start: int = 0) -> Any:
    best, at = -1.0, -1
    for i, x in enumerate(items, start):
        if x > best:
            best, at = x, i
    return best, at


FLOATS = [((7 * k) % 11) / 4 for k in range(500)]


def test_enumerate() -> None:
    check(
        largest,
        (FLOATS,),
        (tuple(FLOATS),),
        (np.array(FLOATS),),
        (np.arange(30, dtype=np.uint8),),
        (range(300),),
        (b"abcab",),
        ([],),
        ([1, 2.5, 3, 2**70, np.float64(1e300)],),
        (FLOATS, 2**62),
        (FLOATS, 2**63 - 3),
        (FLOATS, 2**70),
        ([1, "a"],),
    )
    for items in (FLOATS, tuple(FLOATS), np.array(FLOATS), range(500), BYTES):
        assert steps_of(largest, items) < 150, type(items)


def products(a: Any, b: Any) -> Any:
    total = 0
    x = y = None
    for x, y in zip(a, b):  # noqa: B905
        total = total + x * y
    return total, x, y


def products_strictly(a: Any, b: Any) -> Any:
    total = 0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def test_zip_of_two() -> None:
    ints = list(range(-50, 300))
    sides = [FLOATS, tuple(FLOATS), np.array(FLOATS), range(5, 400), BYTES, ints]
    calls = [(a, b) for a in sides for b in sides]
    check(products, *calls[:18], ([], FLOATS), (FLOATS, []), ([1.5], [2**70]), rounds=2)
    check(products, *calls[18:], (FLOATS, [1.5, "a"]), rounds=2)
    check(products_strictly, (FLOATS, FLOATS), (FLOATS, FLOATS[1:]), (FLOATS[1:], FLOATS), (ints, BYTES[:350]))
    assert steps_of(products, FLOATS, np.array(FLOATS)) < 150
    assert steps_of(products_strictly, ints, ints) < 150


def test_zip_of_three_and_more() -> None:
    def three(a: Any, b: Any, c: Any) -> Any:
        total = 0
        for x, y, z in zip(a, b, c):  # noqa: B905
            total += x * y - z
        return total

    def four(a: Any) -> Any:
        total = 0
        for x, y, z, w in zip(a, a, a, a):  # noqa: B905
            total += x * y - z + w
        return total

    check(three, (range(300), BYTES, list(range(500))), (FLOATS, FLOATS, FLOATS), (range(9), range(8), []))
    check(four, (FLOATS,))
    assert steps_of(three, range(300), BYTES, list(range(500))) < 150


def test_a_zip_that_takes_turns() -> None:
    def pairs(xs: Any) -> Any:
        it = iter(xs)
        total = 0
        for x, y in zip(it, it):  # noqa: B905
            total += 10 * x + y
        return total, list(it)

    check(pairs, (list(range(301)),), (range(300),), (BYTES,))


def test_what_is_left_in_the_iterators() -> None:
    def left(xs: list[float], n: int) -> Any:
        numbered, one, other = enumerate(xs), iter(xs), iter(range(n))
        for i, x in numbered:
            if x == 2.5 and i > 4:
                break
        for x, k in zip(one, other):  # noqa: B905
            if k == 7:
                break
        return next(numbered), list(one)[:2], list(other), i, x

    check(left, (FLOATS, 12), (FLOATS, 300), (FLOATS[:9] + FLOATS, 5))


def test_the_tuple_is_there_where_it_is_wanted() -> None:
    def kept(xs: list[float]) -> Any:
        pairs = []
        for pair in enumerate(xs):
            i, x = pair
            pairs.append(pair)
            if i > 20:
                break
        return pairs, i + x

    def unpacked_wrongly(xs: list[float]) -> Any:
        for i, x, y in enumerate(xs):  # noqa: B007
            pass

    check(kept, (FLOATS,))
    check(unpacked_wrongly, (FLOATS,))


class Leaf:
    """Dies where somebody can see it."""

    def __init__(self, log: list[Any], name: int) -> None:
        weakref.finalize(self, log.append, name)


def test_when_items_die() -> None:
    """enumerate and zip keep their last tuple: an item lives until the next ones come."""

    def dies(n: int) -> Any:
        log: list[Any] = []
        items: list[Any] = [Leaf(log, k) for k in range(n)]
        for i, x in enumerate(items):
            items[i] = None
            x = None  # noqa: PLW2901
            log.append(-i)
        for x, i in zip([Leaf(log, 100 + k) for k in range(n)], range(n)):  # noqa: B905
            log.append(-i)
        return log, x is None

    check(dies, (5,), (12,))


def same(a: str, b: str) -> Any:
    n = 0
    x = y = ""
    for x, y in zip(a, b):  # noqa: B905
        if x == y:
            n += 1
        elif x != "c":
            n += 1000
    return n, x, y


TEXTS = ["abcabcaab" * 30, "acbacbaab" * 30, "\xe9a\xe9bc" * 40, "a\u20acbc" * 40, "\U0001f600ab" * 40, "", "a"]


def test_texts() -> None:
    check(same, *[(a, b) for a in TEXTS for b in TEXTS], rounds=1)
    assert steps_of(same, TEXTS[0], TEXTS[1]) < 150


def test_characters_by_place() -> None:
    def mirrored(text: str, n: int) -> Any:
        found = []
        same_ones = 0
        for i in range(n):
            if text[i] == text[-1 - i]:
                same_ones += 1
            if text[i] == "b" and i % 50 == 0:
                found.append(text[i])
        return same_ones, found

    def counted(text: str) -> Any:
        n = 0
        for i, c in enumerate(text, 1):
            if c != "a":
                n += i
        return n, c

    for text in TEXTS[:5]:
        check(mirrored, (text, len(text)), (text, len(text) + 1), rounds=2)
    check(counted, *[(text,) for text in [*TEXTS[:5], "a"]], rounds=2)
    assert steps_of(mirrored, TEXTS[0], 200) < 300
    assert steps_of(counted, TEXTS[0]) < 150


def test_longer_texts_are_compared() -> None:
    def compare(words: list[str], other: str) -> Any:
        n = 0
        for i, word in enumerate(words):
            if word == other:
                n += i
            if word != "abc":
                n += 1000
        return n

    words = ["abc", "abd", "xbc", "ab", "", "abc\xe9", "\u20acbc", "abcdefgh" * 4] * 9
    check(compare, *[(words, other) for other in ["".join(word) for word in words[:8]]], rounds=2)


def test_bytes_by_place() -> None:
    def read(data: Any, n: int) -> Any:
        total = 0
        for i in range(n):
            total += data[i] * 3 - data[-1 - i]
        return total

    def written(n: int, top: int) -> Any:
        data = bytearray(n)
        for i in range(n):
            data[i] = data[i - 1] + i % top
        return data

    check(read, (BYTES, 300), (bytearray(BYTES), 300), (b"abc", 3), (b"abc", 5), (bytearray(b"abc"), 9))
    check(written, (40, 2), (400, 2), (5, 9), (300, 1))
    assert steps_of(read, BYTES, 300) < 150
    assert steps_of(written, 250, 2) < 150


def test_a_sieve_in_a_bytearray() -> None:
    def sieve(n: int) -> Any:
        flags = bytearray([1]) * n
        count = 0
        for i in range(2, n):
            if flags[i]:
                count += 1
                for k in range(i * i, n, i):
                    flags[k] = 0
        return count

    check(sieve, (3,), (100,), (1000,))


def test_ints_of_several_digits() -> None:
    def total(xs: list[int]) -> Any:
        t = 0
        for i, x in enumerate(xs):
            t = (t ^ x) + xs[-1 - i] % 7
        return t

    xs = [0, 1, -1, 2**29, -(2**29), 2**30 - 1, 2**30, -(2**30), 2**45 + 3, -(2**45), 2**59, 2**60 - 1, 1 - 2**60] * 9
    check(total, (xs,), ([*xs, 2**60],), ([*xs, 2**63 - 1, -(2**63)],), ([*xs, 2**64],))
    assert steps_of(total, xs) < 150


@pytest.fixture
def collected() -> Iterator[None]:
    gc.collect()
    yield
    gc.collect()


def test_nothing_leaks(collected: None) -> None:
    import sys

    def through(xs: list[Any], text: str) -> Any:
        n = 0
        for i, (x, c) in enumerate(zip(xs, text)):  # noqa: B905
            n += i * (x > 0.5) + (c == "b")
        for x, c in zip(xs, text):  # noqa: B905
            n += (x > 0.5) + (c == "b")
        for i, x in enumerate(xs):
            n += i * (x > 0.5)
        return n

    jitted = ds.jit(store=False)(through)
    xs, text = [1e10 + k for k in range(200)], "a\u20acb" * 50
    counts = [sys.getrefcount(x) for x in xs]
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(8):
            assert jitted(xs, text) == through(xs, text)
    assert [sys.getrefcount(x) for x in xs] == counts
