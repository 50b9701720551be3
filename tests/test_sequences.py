"""Lists and tuples joined, repeated and sliced: nothing of the user's runs in it, and what it gives is known."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting, settles, stepped


def joined(a: Any, b: Any, n: Any) -> Any:
    c = a + b
    d = c[1:] + a[:n]
    return c, d, c * 2, d[::-1] + b * 2


def repeated(a: Any, n: Any) -> Any:
    return a * n, n * a


def extended(a: Any, b: Any) -> Any:
    c = [*a, *b]
    return c, sys.getsizeof(c), sys.getsizeof([*b]), {*a, *b}, (*b, *a)


class Loud(list[Any]):
    def __radd__(self, other: Any) -> Any:
        return [len(other), "radd"]

    def __rmul__(self, other: Any) -> Any:
        return "rmul"


@pytest.mark.parametrize("kind", [list, tuple])
def test_joined(kind: Any) -> None:
    check(joined, (kind([1, 2]), kind(["a"]), 1), (kind([]), kind([0.5]), 3), (kind([1]), kind([2]), -1))
    settles(joined, (kind([1, 2]), kind(["a"]), 1))


def test_what_does_not_go_together() -> None:
    check(
        joined,
        ([1], [2], 1),
        ([1], (2,), 1),
        ((1,), [2], 1),
        ([1], Loud([2]), 1),
        (Loud([1]), [2], 1),
        ("ab", "c", 1),
        ([1], None, 1),
    )
    check(
        repeated,
        ([1], 2),
        ((1,), 0),
        ([1], -1),
        ([1], True),
        ([1], 1 << 70),
        ((1,), sys.maxsize),
        ([1], 1.5),
        (Loud([1]), 2),
        ("a", 2),
    )


def test_extended() -> None:
    check(
        extended,
        ([1, 2], [3]),
        ([], [1]),
        ([], []),
        ((1,), [2, 3]),
        ({1: 2}, "ab"),
        ([1], iter([2])),
        ([1], 5),
        (5, [1]),
    )
    settles(extended, ([1, 2], [3]))


def paired(a: Any, b: Any, start: Any) -> Any:
    out = []
    for i, x in enumerate(a, start):
        for y, z in zip(b, reversed(a)):
            out.append((i, x, y, z))
    return out


def test_iterators_are_made_quietly() -> None:
    check(
        paired,
        ([1, 2], (3, 4, 5), 0),
        ((1.5,), "ab", 7),
        (["a"], {"k": 1}, True),
        ([1], np.arange(3), 1),
        ({1: 2}, [3], 4),
    )
    check(paired, ([1], 5, 0), ({1}, [1], 0), (5, [1], 0), ([1], [2], "a"), ([1], [2], None), ([1], [2], 1 << 70))
    settles(paired, ([1, 2], (3, 4, 5), 0))


class Told:
    def __init__(self, log: Any) -> None:
        self.log = log

    def __iter__(self) -> Any:
        self.log.append("iter")
        return iter([1, 2])

    def __index__(self) -> int:
        self.log.append("index")
        return 3


def test_iterators_of_the_users_are_heard() -> None:
    log: list[str] = []

    def run(a: Any, b: Any, start: Any) -> Any:
        return list(enumerate(a, start)), list(zip(a, b)), log[:]

    check(run, ([1], [2], 0), (Told(log), [1], 0), ([1, 2], Told(log), Told(log)), ([1], [2], 0))


def test_recursion_over_lists_is_replayed_without_exits() -> None:
    def merge_sort(values: Any) -> Any:
        if len(values) <= 1:
            return values
        middle = len(values) // 2
        left, right = merge_sort(values[:middle]), merge_sort(values[middle:])
        merged = []
        i = j = 0
        while i < len(left) and j < len(right):
            if left[i] <= right[j]:
                merged.append(left[i])
                i += 1
            else:
                merged.append(right[j])
                j += 1
        return merged + left[i:] + right[j:]

    plain = merge_sort
    values = [(i * 7919) % 101 for i in range(60)]
    with stepped(step_aside=False):
        merge_sort = ds.jit(store=False)(plain)
        for _ in range(4):
            merge_sort.clear()  # after which it is recorded as it was at first
            for _ in range(30):
                assert merge_sort(values) == sorted(values)
            with counting(merge_sort) as grown:
                merge_sort(values)
            assert (grown["exits"], grown["recordings"], grown["eager_calls"]) == (0, 0, 0), merge_sort.explain()
        lines = str(merge_sort.explain()).splitlines()
    joins = [at for at, line in enumerate(lines) if "binary" in line and line.rstrip().endswith("+")]
    assert joins and not any("guard_world" in lines[at + 1] for at in joins)


def test_many_calls_that_have_no_memory() -> None:
    check(repeated, *[((1,), sys.maxsize - k) for k in range(5)], rounds=8)
