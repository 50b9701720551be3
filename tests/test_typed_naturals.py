"""Ints modulo 2**64: hashes and random numbers under a mask, as eager computes them, over the edges of what fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dalsegno.fuzz import equivalent
from tests.native_kit import steps_of

M = 0xFFFFFFFFFFFFFFFF
EDGES = [0, 1, 2, 255, 2**30, 2**31 - 1, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64]
EDGES += [-1, -2, -(2**63), -(2**63) - 1, -(2**64), 3 << 90, True, False]


def check(function: Callable[..., Any], *calls: tuple[Any, ...], rounds: int = 2) -> None:
    equivalent(function, *[made for made in calls for _ in range(rounds)], engines=["stepped", "native"])


def fnv(data: Any, h: Any) -> Any:
    for b in data:
        h ^= b
        h = (h * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def congruential(n: int, x: Any) -> Any:
    for _ in range(n):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
    return x


def xorshift(n: int, x: Any) -> Any:
    s = 0
    for _ in range(n):
        x ^= (x << 13) & M
        x ^= x >> 7
        x ^= (x << 17) & M
        s += x & 255
    return x, s


def unmasked_between(n: int, x: Any) -> Any:
    for _ in range(n):
        x = x ^ (x << 13)
        x &= M
        x = x ^ (x >> 7)
        x = (x ^ (x << 17)) & M
    return x


def split_mix(n: int, x: Any) -> Any:
    s = 0
    for _ in range(n):
        x = (x + 0x9E3779B97F4A7C15) & M
        z = x
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
        s ^= z ^ (z >> 31)
    return x, s


def murmur(data: Any, h: Any) -> Any:
    for b in data:
        k = (b * 0xCC9E2D51) & 0xFFFFFFFF
        k = ((k << 15) | (k >> 17)) & 0xFFFFFFFF
        h ^= (k * 0x1B873593) & 0xFFFFFFFF
        h = ((h << 13) | (h >> 19)) & 0xFFFFFFFF
        h = (h * 5 + 0xE6546B64) & 0xFFFFFFFF
    return h


BYTES = bytes(range(256)) * 2


@pytest.mark.parametrize("function", [fnv, murmur])
def test_hashes(function: Callable[..., Any]) -> None:
    check(function, *[(BYTES, start) for start in EDGES], rounds=1)
    assert steps_of(function, BYTES, 0xCBF29CE484222325) < 150


@pytest.mark.parametrize("function", [congruential, xorshift, unmasked_between, split_mix])
def test_random_numbers(function: Callable[..., Any]) -> None:
    check(function, *[(200, start) for start in EDGES], rounds=1)
    assert steps_of(function, 2000, 88172645463325252) < 150


def operators(xs: Any, m: Any) -> Any:
    out = []
    for x in xs:
        for y in xs:
            out.append((x * y + 3) & 0xFFFFFFFFFFFFFFFF)
            out.append((x - y) % 2**63)
            out.append((~x + -y) & 0x7FFFFFFF)
            out.append(((x << 63) | (y << 1)) & 0xFFFFFFFFFFFFFFF0)
            out.append((x ^ y) % 18446744073709551616)
            out.append((x * y & -x) & M)
            out.append((m & (x + y)) >> 3)
    return out


def test_operators_over_the_edges() -> None:
    plain = [x for x in EDGES if -(2**63) <= x < 2**63 and not isinstance(x, bool)]
    for xs in (plain, [x for x in EDGES if 0 <= x < 2**64], EDGES):
        check(operators, (xs, 5), (xs[::-1], M), (xs, -1))


def counts(xs: Any, by: Any) -> Any:
    out = []
    for x in xs:
        try:
            out.append((x << by) & M)
            out.append((x << 64) & M)
            out.append((x & M) >> by)
        except ValueError as e:
            out.append(str(e))
    return out


def test_counts() -> None:
    for by in (0, 1, 63, 64, 65, 200, -1, True):
        check(counts, ([x for x in EDGES if isinstance(x, int)] * 3, by))


def identities(xs: Any) -> Any:
    out = []
    for x in xs:
        y = x & M
        z = y % 2**64
        out.append((y is z, z is x, y | 0, (y ^ 0) is y, y >> 1 is y))
    return out


def test_remainders_that_are_the_operand_itself() -> None:
    check(identities, (EDGES,), (EDGES * 4,))


def seen_between(xs: Any, table: Any) -> Any:
    out = []
    h = 1
    for x in xs:
        t = h * 0x9E3779B97F4A7C15
        h = t & M
        try:
            h = (h * 31 + table[x]) & M
        except KeyError:
            out.append(t)
    return out, h, t


def test_what_an_exit_shows_is_no_wrapped_value() -> None:
    check(
        seen_between,
        (list(range(40)), {k: k for k in range(0, 40, 3)}),
        (list(range(40)), {k: 2**70 + k for k in range(40)}),
    )


def joined(n: int, x: Any) -> Any:
    s = 0
    for i in range(n):
        if i % 3 == 0:
            x = (x * 0x5851F42D4C957F2D + 1) & M
        elif i % 7 == 0:
            x = -i
        elif i % 5 == 0:
            x = x >> 1
        else:
            x = x ^ (i & 15)
        s = (s + x * x) & M
    return x, s


def nested(n: int, x: Any) -> Any:
    rows = []
    for i in range(n):
        h = 14695981039346656037
        for k in range(i % 13):
            h = ((h ^ k) * 1099511628211) & M
            x = x + (h & 1)
        rows.append(h)
        rows.append(h / 2**64)
        rows.append(h % 97)
        x = (x ^ h) & M
    return rows, x


@pytest.mark.parametrize("function", [joined, nested])
def test_side_traces_and_nests(function: Callable[..., Any]) -> None:
    check(function, *[(120, start) for start in (0, 1, 2**63 - 1, 2**63, 2**64 - 1, -5, 2**80)], rounds=2)


def beyond(n: int, y: Any) -> Any:
    out = []
    for i in range(n):
        y = -((2**63 << 63) ^ (y << 13)) & 0xFFFFFFFF
        if i % 3 == 0:
            out.append(y)
    return y, out


def test_constants_beyond_64_bits() -> None:
    check(beyond, (40, 2**63), (40, 5), (40, 2**63), (40, -1), (40, 2**70))


def other_types(xs: Any) -> Any:
    out = []
    for x in xs:
        out.append((x * 3 + 1) & M)
    return out


class Odd(int):
    def __mul__(self, other: int) -> int:
        return 7

    __hash__ = None  # type: ignore[assignment]


def test_other_types_in_the_chain() -> None:
    check(other_types, ([1, 2**63, 5] * 5,), ([True, 2, Odd(3)] * 5,), ([1.5],), ([1, 2, None],))
