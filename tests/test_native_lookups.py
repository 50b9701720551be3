"""Look-ups in dicts and sets in native loops (replay/machine/steps_lookup.cc): eager's results, and no steps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_native_loops import check, steps_of


def counts(words: list[Any]) -> Any:
    c: dict[Any, int] = {}
    for w in words:
        if w in c:
            c[w] += 1
        else:
            c[w] = 1
    return c


def counts_by_get(words: list[Any], start: Any) -> Any:
    c: dict[Any, Any] = {}
    for w in words:
        c[w] = c.get(w, start) + 1
    return c


def counts_of_pairs(n: int, start: Any) -> Any:
    c: dict[Any, Any] = {}
    for i in range(n):
        p = (i * 7 % 31, i * 3 % 17)
        c[p] = c.get(p, start) + 1
        q = (i % 5, "even") if i % 2 else (i % 3,)
        c[q] = c.get(q, 0) + 1
    return c, c.get((1, 2, 3))


class Key:
    def __hash__(self) -> int:
        return hash((1, 2))

    def __eq__(self, other: object) -> bool:
        LOOKED.append(other)
        return False


LOOKED: list[Any] = []


def gets(n: int, table: dict[Any, Any]) -> Any:
    LOOKED.clear()
    s = 0
    for i in range(n):
        s += table.get((i % 3, 2), 0)
    return s, LOOKED


def walks(n: int, keys: Any) -> Any:
    seen = set()
    x = y = 0
    for i in range(n):
        x, y = (x + i) % 7, (y + 3 * i) % 5
        key = (x, y)
        if key in seen:
            continue
        seen.add(key)
        if x in keys:
            seen.add(x)
    return seen


def collatz(n: int) -> Any:
    cache = {1: 1}
    best = 0
    for i in range(1, n):
        k = i
        c = 0
        while k not in cache:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            c += 1
        cache[i] = c + cache[k]
        if cache[i] > best:
            best = cache[i]
    return best, list(cache)


def sums(table: dict[Any, Any], keys: list[Any]) -> Any:
    total = 0.0
    for k in keys:
        total += table[k]
    return total


WORDS = "the quick brown fox jumps over the lazy dog and a rather_longer_word_of_more_than_sixteen".split() * 40


def test_counts_of_words() -> None:
    mixed = [*WORDS, 1, 1.0, True, "1", b"1", None, (1, "a"), (1.0, "a"), float("nan"), *WORDS]
    check(
        counts,
        (WORDS,),
        (mixed,),
        ([],),
        (list(range(300)) * 2,),
        ([2**70, 2**70, -(2**70)] * 50,),
        (["é", "日本", "é"] * 90,),
    )
    check(counts_by_get, (WORDS, 0), (WORDS, 0.5), (mixed, 2**62), (WORDS, None), (list(range(-150, 150)) * 2, 0))
    assert steps_of(counts, WORDS * 3) < 100
    assert steps_of(counts_by_get, WORDS * 3, 0) < 100


def test_sets_and_tuples_as_keys() -> None:
    check(walks, (300, {1, 2}), (300, frozenset((3,))), (300, {3: 1}), (3, {}), (300, [1, 2]))


def test_a_cache() -> None:
    check(collatz, (400,), (2,), (1,))


@pytest.mark.parametrize("late", ["missing", "text", "int", "large", "unhashable", "tuple"])
def test_what_is_found_is_something_else(late: str) -> None:
    table: dict[Any, Any] = {k: k * 0.5 for k in range(20)}
    table |= {"text": "x", "int": 3, "large": 2**80, (1, 2): 4.5}
    keys: list[Any] = list(range(20)) * 20
    check(sums, (table, keys), (table, [*keys, {"unhashable": [], "tuple": (1, 2)}.get(late, late), *keys]))


class Noisy:
    """Its end is seen, in the program's own variables too."""

    log: list[Any] = []

    def __init__(self, name: Any) -> None:
        self.name = name

    def __del__(self) -> None:
        Noisy.log.append(self.name)


def replaces(n: int, table: dict[Any, Any], make: Any) -> Any:
    log = Noisy.log
    log.clear()
    out = []
    for i in range(n):
        table[i % 7] = make(i)
        out.append(len(log))
    table.clear()
    return out, list(log)


def test_what_is_replaced_may_be_seen_to_die() -> None:
    check(replaces, (300, {}, Noisy), (300, {}, float), (300, {}, lambda i: [Noisy(i)]))


class Odd:
    """A key like others, that counts its comparisons."""

    compared = 0

    def __hash__(self) -> int:
        return hash("fox")

    def __eq__(self, other: object) -> bool:
        Odd.compared += 1
        return False


def beside(table: dict[Any, Any], keys: set[Any], words: list[str]) -> Any:
    Odd.compared = 0
    n = 0
    for w in words:
        if w in keys:
            n += table[w]
        keys.add(w)
        table[w] = table.get(w, 0) + 1
    return n, Odd.compared, list(table.values())


def test_a_key_of_a_users_class_beside_them() -> None:
    def made() -> tuple[Any, ...]:
        return {Odd(): 5, "fox": 1}, {Odd(), "fox"}, WORDS

    check(beside, ({}, set(), WORDS), made(), ({}, set(), WORDS))


def grows_while_iterated(table: dict[Any, int], at: int) -> Any:
    n = 0
    for k in table:
        n += table[k]
        if n > at:
            table[n + 1000] = 1
    return n


def test_a_dict_that_changes_while_it_is_iterated_over() -> None:
    check(grows_while_iterated, ({i: 1 for i in range(300)}, 1000), ({i: 1 for i in range(300)}, 250))


def changed_between(keys: list[Any], table: dict[Any, Any], other: Any) -> Any:
    out = []
    for i, k in enumerate(keys):
        if k in table:
            if i % 3 == 0:
                other[k] = i
            if i % 7 == 0:
                other.pop(k, None)
            if i % 11 == 0:
                other.clear()
            out.append(table.get(k, -1))
            table[k] = i
            out.append(table[k])
        else:
            if i % 5 == 0:
                other[k] = i * 2
            out.append(table.get(k, -1))
            for more in range(i % 4):
                other[more * 100 + i] = 1
            table[k] = i
            table[k] += 1
            out.append(k in table)
    return out, list(table.items())


def shared(keys: list[Any], start: dict[Any, Any], same: bool) -> Any:
    return changed_between(keys, start, start if same else {})


def test_a_dict_changes_between_two_look_ups_of_a_key() -> None:
    keys = [(k * 37) % 23 for k in range(300)]
    words = [*WORDS, "fo" + "x", "do" + "g"]
    check(shared, (keys, {}, True), (keys, {}, False), (words, {"fox": 1}, True), (words, {}, False))
    check(shared, ([(k, 1) for k in keys], {}, True), ([k * 0.5 for k in keys], {}, True))


class Changing:
    """Its end changes a dict."""

    def __init__(self, table: dict[Any, Any], key: Any) -> None:
        self.table = table
        self.key = key

    def __del__(self) -> None:
        self.table.pop(self.key, None)


def ends_between(n: int, at: int) -> Any:
    table: dict[Any, Any] = {i: i for i in range(50)}
    out = []
    for i in range(n):
        k = i % 50
        held = Changing(table, k) if i > at and i % 9 == 0 else None
        if k in table:
            held = None
            out.append(table.get(k, "gone"))
            table[k] = i
        else:
            table[k] = -i
    return out, table, held


def test_a_dict_is_changed_by_what_dies_between() -> None:
    check(ends_between, (400, 1000), (400, 300), (400, 0))


def test_get_by_tuples() -> None:
    check(counts_of_pairs, (400, 0), (400, 0.5), (3, 0))
    assert steps_of(counts_of_pairs, 400, 0) < 200
    check(gets, (50, {(1, 2): 3}), (50, {(1, 2): 3, Key(): 7}), (50, {(0, 2): 1.5}))
