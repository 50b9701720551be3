"""Graphs, dicts and other containers."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque

import numpy as np

from .data import F64


def breadth_first(graph: dict[int, list[int]], start: int) -> dict[int, int]:
    distance = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in graph[node]:
            if other not in distance:
                distance[other] = distance[node] + 1
                waiting.append(other)
    return distance


def dijkstra(graph: dict[int, list[tuple[int, float]]], start: int) -> dict[int, float]:
    distance = {start: 0.0}
    heap = [(0.0, start)]
    while heap:
        far, node = heapq.heappop(heap)
        if far > distance[node]:
            continue
        for other, length in graph[node]:
            longer = far + length
            if other not in distance or longer < distance[other]:
                distance[other] = longer
                heapq.heappush(heap, (longer, other))
    return distance


def page_rank(graph: dict[int, list[int]], steps: int) -> dict[int, float]:
    n = len(graph)
    rank = dict.fromkeys(graph, 1.0 / n)
    for _ in range(steps):
        after = dict.fromkeys(graph, 0.15 / n)
        for node, out in graph.items():
            share = 0.85 * rank[node] / len(out)
            for other in out:
                after[other] += share
        rank = after
    return rank


def page_rank_arrays(sources: F64, targets: F64, n: int, steps: int) -> F64:
    degree = np.bincount(sources, minlength=n)
    rank = np.full(n, 1.0 / n)
    for _ in range(steps):
        rank = 0.15 / n + 0.85 * np.bincount(targets, weights=(rank / degree)[sources], minlength=n)
    return rank


class Sets:
    """Union and find."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))
        self.size = [1] * n

    def find(self, a: int) -> int:
        while self.parent[a] != a:
            self.parent[a] = self.parent[self.parent[a]]
            a = self.parent[a]
        return a

    def union(self, a: int, b: int) -> bool:
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True


def kruskal(n: int, edges: list[tuple[float, int, int]]) -> float:
    """The least spanning tree."""
    sets = Sets(n)
    total = 0.0
    for length, a, b in sorted(edges):
        if sets.union(a, b):
            total += length
    return total


def topological(graph: dict[int, list[int]]) -> list[int]:
    """Of the edges that lead upwards."""
    waiting = dict.fromkeys(graph, 0)
    for node, out in graph.items():
        for other in out:
            if other > node:
                waiting[other] += 1
    ready = [node for node, count in waiting.items() if count == 0]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for other in graph[node]:
            if other > node:
                waiting[other] -= 1
                if waiting[other] == 0:
                    ready.append(other)
    return order


def least_recently_used(requests: list[int], room: int) -> tuple[int, int]:
    cache: OrderedDict[int, int] = OrderedDict()
    hits = misses = 0
    for key in requests:
        if key in cache:
            cache.move_to_end(key)
            hits += 1
        else:
            misses += 1
            cache[key] = key * key
            if len(cache) > room:
                cache.popitem(last=False)
    return hits, misses


def trie(words: list[str], prefixes: list[str]) -> list[int]:
    """How many words begin with each prefix."""
    root: dict[str, dict[str, object]] = {}
    counts: dict[int, int] = {}
    for word in words:
        node: dict[str, object] = root  # type: ignore[assignment]
        for letter in word:
            node = node.setdefault(letter, {})  # type: ignore[assignment]
            counts[id(node)] = counts.get(id(node), 0) + 1
    result = []
    for prefix in prefixes:
        found: object = root
        for letter in prefix:
            found = found.get(letter) if isinstance(found, dict) else None
        result.append(counts.get(id(found), 0) if found is not None else 0)
    return result


def group_and_join(orders: list[tuple[int, int]], prices: dict[int, float]) -> list[tuple[int, float]]:
    """What a query would do: join, group, sort."""
    totals: dict[int, float] = {}
    for customer, item in orders:
        price = prices.get(item)
        if price is not None:
            totals[customer] = totals.get(customer, 0.0) + price
    return sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))[:10]


def flood_fill(rows: list[str]) -> int:
    """How many islands there are, with a stack."""
    land = {(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell == "#"}
    islands = 0
    while land:
        islands += 1
        stack = [min(land)]
        land.discard(stack[0])
        while stack:
            i, j = stack.pop()
            for place in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if place in land:
                    land.remove(place)
                    stack.append(place)
    return islands


def widest_paths(width: F64) -> F64:
    """The widest way between all pairs, by outer minima."""
    width = width.copy()
    for k in range(len(width)):
        width = np.maximum(width, np.minimum.outer(width[:, k], width[k]))
    return width
