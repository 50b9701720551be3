"""heapq and defaultdict in native loops: eager's results, and no frames for what runs no code."""

from __future__ import annotations

import collections
import heapq
from typing import Any

import pytest

from tests.test_native_loops import check


def sorts(xs: list[Any]) -> Any:
    h: list[Any] = []
    layouts = []
    for x in xs:
        heapq.heappush(h, x)
    while h:
        out = heapq.heappop(h)
        layouts.append((out, list(h[:5])))
    return layouts


class Late:
    """Compared by Python code."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        return self.value < getattr(other, "value", other)

    def __gt__(self, other: Any) -> bool:
        return self.value > other

    def __repr__(self) -> str:
        return f"Late({self.value})"


def numbers(n: int) -> list[int]:
    return [(k * 7919 + 13) % 1009 for k in range(n)]


ROWS: list[list[Any]] = [
    numbers(200),
    [k * 0.5 for k in numbers(200)],
    [(k, i) for i, k in enumerate(numbers(100))] + [(3, "a"), (3, "b"), (3, (1, 2))],
    [(k % 5, str(k)) for k in numbers(120)],
    [*numbers(50), 2.5, True, 2**70, float("nan"), -(2**80), *numbers(50)],
    [Late(k) for k in numbers(60)],
    [*numbers(60), Late(5), *numbers(20)],
    ["b", "a", "é", "日", ""] * 20,
    [*numbers(60), "text", *numbers(20)],
    [(1, [2]), (1, [1]), (0, [3])] * 20,
    [(), (1,), (1, 2)] * 20,
    [],
    [5],
]


@pytest.mark.parametrize("xs", ROWS, ids=range(len(ROWS)))
def test_heaps(xs: list[Any]) -> None:
    check(sorts, (numbers(150),), (xs,), (numbers(20),))


def shortest(graph: dict[int, list[tuple[int, float]]]) -> Any:
    d: dict[int, Any] = {0: 0}
    h: list[Any] = [(0, 0)]
    while h:
        du, u = heapq.heappop(h)
        if du > d.get(u, 10**9):
            continue
        for v, w in graph.get(u, ()):
            if du + w < d.get(v, 10**9):
                d[v] = du + w
                heapq.heappush(h, (du + w, v))
    return d


def graph(n: int, step: Any) -> Any:
    return {i: [(j, (i * j) % 7 + step) for j in range(i + 1, min(i + 4, n))] for i in range(n)}


def test_shortest_ways() -> None:
    check(shortest, (graph(150, 1),), (graph(150, 0.5),), ({},), (graph(3, 1),))


def counts(words: list[Any], table: Any) -> Any:
    for w in words:
        table[w] += 1
        if w in table and "fox" not in table:
            table["fox"] = 0
    return list(table.items())


class Hashed:
    """A key whose hash is seen to be asked for."""

    asked = 0

    def __hash__(self) -> int:
        Hashed.asked += 1
        return 7

    def __eq__(self, other: object) -> bool:
        Hashed.asked += 100
        return self is other


def hashes(keys: list[Any], table: Any) -> Any:
    Hashed.asked = 0
    for k in keys:
        table[k] += 1
        if k in table:
            table[k] += 1
    return Hashed.asked, list(table.values())


def test_keys_whose_hash_runs_code() -> None:
    key = Hashed()
    check(hashes, ([key] * 40, collections.defaultdict(int)), ([1, key] * 40, collections.defaultdict(int)))
    check(hashes, ([(key, 1)] * 40, collections.defaultdict(int)), ([key, Hashed()] * 40, {key: 1}))


def groups(xs: list[Any], table: Any) -> Any:
    for x in xs:
        table[x % 7].append(x)
    return [(k, v) for k, v in table.items()]


def test_lists_in_default_dicts() -> None:
    default = collections.defaultdict
    check(groups, (numbers(200), default(list)), (numbers(200), default(lambda: [])), (numbers(9), default(set)))


def test_default_dicts() -> None:
    words = "the quick brown fox jumps over the lazy dog".split() * 40
    default = collections.defaultdict
    check(
        counts,
        (words, default(int)),
        (words, default(float)),
        (words, default(None, {w: 1 for w in words})),
        (words, default(None)),
        (words, default(lambda: 5)),
        (words, collections.Counter()),
        (words, {w: 1 for w in words}),
        ([1, 2.5, (1, 2), None, *words], default(int)),
    )
