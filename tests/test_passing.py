"""Numbers that are gone with the one op that takes them have no object, unless they are an argument of their own."""

from __future__ import annotations

from tests.support import check


def clamped(values, low, high):
    same = []
    for x in values:
        y = min(max(x, low), high)
        same.append((y is x, y is low, y is high))
    return same


def remainders(values, by):
    same = []
    for x in values:
        kept = [0]
        kept[0] = x % by
        same.append((kept[0] is x, abs(max(x, by)) is x))
    return same


def test_what_is_an_argument_stays_that_object():
    check(clamped, ([1.5, 2.5, 3.5, 9.5], 2.0, 4.0), ([1000, 2000, 3000, 9000], 1500, 4000), ([1, 2, 3], 2, 2))
    check(remainders, ([2**40, 2**41 + 1, 5, 1000], 2**61), ([-5, 2**40], 2**33), ([1.5], 2.0))


def test_a_remainder_is_the_dividend_only_where_its_digits_tell() -> None:
    """Two ints of as many digits of 30 bits, the first ones equal: CPython divides, and makes a new one."""
    same_first = [2**62 - 2, 2**62 - 2**31, 2**61 + 5, 2**30, 2**31 - 1, 999]
    check(remainders, (same_first, 2**62 - 1), ([-n for n in same_first], -(2**62) + 1), (same_first, 2**31))
