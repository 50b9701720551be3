"""divmod() of ints and floats: no call, and no tuple that nobody sees; eager's bits and errors."""

from __future__ import annotations

from typing import Any

from dalsegno.bench.programs.whole_numbers import sums_of_digits
from tests.test_native_loops import check, steps_of


def pairs(xs: list[Any], ys: list[Any]) -> Any:
    out = []
    for x in xs:
        for y in ys:
            try:
                q, r = divmod(x, y)
                out.append((q, r, divmod(y, 3)))
            except (ZeroDivisionError, TypeError) as error:
                out.append((type(error), str(error)))
    return out


def kept(n: int, b: Any) -> Any:
    out = []
    pair = None
    for i in range(n):
        pair = divmod(i * 7 - 30, b)
        if i % 5 == 3:
            out.append(pair)
    return out, pair


def test_digits() -> None:
    check(sums_of_digits, (700, 10), (700, 16), (3, 2), (0, 7), (40, -3))
    assert steps_of(sums_of_digits, 700, 10) < 100


def test_signs_zeros_large_ints_floats_and_what_is_neither() -> None:
    ints = [0, 1, -1, 7, -7, 2**62, -(2**63), 2**63 - 1, 2**70, True]
    floats = [0.0, -0.0, 1.5, -1.5, 1e308, float("inf"), float("nan"), 5e-324]
    check(pairs, (ints, ints), (floats, floats), (ints + floats, floats + ints), (["a", None, 1j], [1, 2.0]))


def test_the_tuple_that_is_kept() -> None:
    check(kept, (40, 6), (40, -6), (4, 3.5), (1, 2))


def test_a_divisor_that_becomes_zero() -> None:
    def down(n: int, x: Any) -> Any:
        s = 0
        for i in range(n, -3, -1):
            q, r = divmod(x, i)
            s += q + r
        return s

    check(down, (30, 100), (30, 1.5), (2, 2**80), (0, 1), rounds=2)


def test_another_function_of_that_name() -> None:
    def swapped(n: int, divmod: Any) -> Any:  # noqa: A002
        s = 0
        for i in range(1, n):
            a, b = divmod(i, 3)
            s = s * 3 % 1009 + a - b
        return s

    check(swapped, (300, divmod), (300, lambda a, b: (b, a)))
