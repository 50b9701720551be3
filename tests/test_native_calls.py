"""Calls of C code that runs no code of the user's, in native loops: what fails there is done once more by its step."""

from __future__ import annotations

import gc
from collections import deque
from typing import Any

import pytest

import dalsegno as ds


def breadth(graph, start):
    distance = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in graph[node]:
            if other not in distance:
                distance[other] = distance[node] + 1
                waiting.append(other)
    return distance


def emptied(graph, n):
    queue, total = deque(range(n)), 0
    for i in range(2 * n):
        try:
            total += queue.popleft() * i
        except IndexError as e:
            return total, i, str(e)
    return total


def texts(graph, n):
    text, found = "", []
    for i in range(n):
        text += "ab"[i % 2]
        if text.endswith("aba") or "bb" in text:
            found.append(text.find("b", i // 2))
        found.insert(0, len(text) - found.count(1))
        if "b" <= text[-1:] <= "z":
            found.reverse()
    return text, found


def iterators(graph, n):
    numbers = iter(range(n))
    total: list[Any] = []
    for i in numbers:
        pair = (i, numbers)
        total.append(len(pair))
        if i % 50 == 49:
            total += list(numbers)[:3]
            numbers = iter(range(i, n))
    return total


def made(graph, n):
    kept = []
    for i in range(n):
        row = [i, i + 1]
        kept.append([row, (i, row), {"i": row}])
        if len(kept) > 20:
            kept.pop(i % 3)
    return kept


_GRAPH = {k: [(k * 7 + 1) % 90, (k * k + 3) % 90, (k + 1) % 90] for k in range(90)}


@pytest.mark.parametrize("program", [breadth, emptied, texts, iterators, made])
@pytest.mark.parametrize("often", [False, True])
def test_native_calls(program, often, monkeypatch):
    monkeypatch.setattr(ds.config, "hot_loop", 1)
    jitted = ds.jit(store=False)(program)
    before = gc.get_threshold()
    try:
        if often:
            gc.set_threshold(3)
        for n in (60, 60, 75, 3, 60, 80):
            assert jitted(_GRAPH, n) == program(_GRAPH, n)
            ds.wait()
    finally:
        gc.set_threshold(*before)


def test_collections_are_seen():
    class Ring:
        def __init__(self, log):
            self.log, self.me = log, self

        def __del__(self):
            self.log.append(len(self.log))

    def f(rows, n):
        total = 0
        for i in range(n):
            row = [i, total]
            rows.append((i, row))
            if len(rows) > 30:
                rows.pop()
            total += len(row)
        return total

    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        counts = []
        for function in (jitted, f):
            gc.collect()
            log: list[int] = []
            for _ in range(5):
                Ring(log)
            result = function([], 3000)
            gc.collect()
            counts.append((result, log))
        assert counts[0] == counts[1]
        ds.wait()
