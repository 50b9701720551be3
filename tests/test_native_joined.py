"""Branches with two short ways: both are computed; what the loop carries is selected (replay/native/ir_joined.cc)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dalsegno.bench.programs.whole_numbers import crc16_bits
from tests.native_kit import same

MOST = 2**63 - 1


def counts(n: int, by: int) -> Any:
    even = odd = 0
    for i in range(n):
        if i & 1:
            odd += by
        else:
            even -= by
    return even, odd


def grows(n: int, start: int, by: int) -> Any:
    """One of the ways leaves 64 bits, while the other one, not taken, would have long before."""
    a = b = start
    for i in range(n):
        if i % 3:
            a = a + 1
        else:
            b = b + by
    return a, b, i


def swaps(n: int) -> Any:
    a, b, c = 1, 2, 3.5
    for i in range(n):
        if i & 2:
            a, b = b, a
        else:
            c = c + a
    return a, b, c


def floats(n: int, by: float) -> Any:
    low, high = 1.0, -1.0
    for i in range(n):
        if i & 1:
            low = low * by - high
        else:
            high = high + low * 0.5
    return math.copysign(1.0, low), low, high


def greatest(n: int) -> Any:
    best, x = -1, 12345
    for _ in range(n):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        if x > best:
            best = x
    return best, x


def raises(n: int, start: int) -> Any:
    a = start
    b: Any = 0
    for i in range(n):
        if i & 1:
            a += 2
        else:
            b += 1
        if i == n - 1:
            b = [b]
    return a, b


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 3, b"123456789"])
def test_a_checksum_bit_by_bit(data: bytes) -> None:
    same(crc16_bits, lambda: (data,))


@pytest.mark.parametrize(("n", "by"), [(0, 1), (1, 1), (300, 3), (101, -(2**40))])
def test_counters(n: int, by: int) -> None:
    same(counts, lambda: (n, by))


@pytest.mark.parametrize("start", [0, MOST - 150, MOST - 7, -MOST])
@pytest.mark.parametrize("by", [1, 2**62, -(2**62), 2**55])
def test_ints_that_leave_64_bits_on_one_of_the_ways(start: int, by: int) -> None:
    same(grows, lambda: (200, 5, 3), lambda: (200, start, by))


def test_values_that_change_places() -> None:
    same(swaps, lambda: (250,))


@pytest.mark.parametrize("by", [0.5, -1.5, 1e200, math.inf, math.nan])
def test_numbers_that_are_none(by: float) -> None:
    same(floats, lambda: (260, 0.5), lambda: (260, by))


def test_the_greatest_so_far() -> None:
    same(greatest, lambda: (500,))


@pytest.mark.parametrize("start", [0, MOST - 60])
def test_another_branch_behind(start: int) -> None:
    same(raises, lambda: (200, 5), lambda: (200, start))
