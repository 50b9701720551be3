"""Items and attributes whose type changes from turn to turn: the side trace goes on natively."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from tests.native_kit import steps_of
from tests.test_native_loops import check


def coins(values: list[int], most: int) -> list[Any]:
    """The least number of coins for each sum; no way is infinite."""
    ways: list[Any] = [float("inf")] * (most + 1)
    ways[0] = 0
    for value in values:
        for total in range(value, most + 1):
            other = ways[total - value] + 1
            if other < ways[total]:
                ways[total] = other
    return ways


def sums(xs: Any, at: list[int]) -> Any:
    total = 0.0
    seen = []
    for k in at:
        x = xs[k]
        total = total * 0.5 + x
        seen.append(x)
    return total, seen


class Node:
    __slots__ = ("count", "weight")

    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.count = 0


def added(nodes: list[Node]) -> Any:
    total = 0
    for _ in range(3):
        for node in nodes:
            w = node.weight
            if w is None:
                node.count += 1
            else:
                total = total + w
    return total


def weigh(weights: list[Any]) -> Any:
    nodes = [Node(w) for w in weights]
    return added(nodes), [n.count for n in nodes]


def mixed(n: int) -> list[Any]:
    return [k if k % 3 else k * 0.5 for k in range(n)]


INDICES = [k * 7 % 60 for k in range(400)]


def test_least_coins() -> None:
    check(coins, ([3, 5, 7], 200), ([5], 40), ([9, 4], 100))
    assert steps_of(coins, [3, 5, 7], 300) < 200


@pytest.mark.parametrize("kind", [list, tuple])
def test_ints_among_floats(kind: Any) -> None:
    check(sums, (kind(mixed(60)), INDICES), (kind([0.5] * 60), INDICES), (kind(range(60)), INDICES))
    assert steps_of(sums, kind(mixed(60)), INDICES) < 100


@pytest.mark.parametrize("odd", [True, 1j, 2**70, Fraction(1, 3), "text", None, [1.5], float("nan")])
def test_something_else_among_them(odd: Any) -> None:
    values = mixed(60)
    values[35] = odd
    check(sums, (mixed(60), INDICES), (values, INDICES), (tuple(values), INDICES), (mixed(60), INDICES))


def test_there_is_no_such_item() -> None:
    check(sums, (mixed(60), INDICES), (mixed(20), INDICES), (mixed(60), [*INDICES, -61]), (mixed(60), [-1, -60, -2]))


def test_attributes_of_two_types() -> None:
    check(
        weigh,
        ([1, 2.5, 3] * 20,),
        ([1, 2, 3] * 20,),
        ([0.5, None, 2] * 20,),
        ([2**70, 1, None] * 20,),
        ([True, 1, "x"] * 20,),
    )
    assert steps_of(added, [Node(w) for w in [1, 2.5, 3] * 40]) < 100
