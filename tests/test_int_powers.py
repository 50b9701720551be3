"""Ints to the power of ints that are no constants: unboxed where the result is an int, else the interpreter's."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
from tests.support import check, counting

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

BASES = (0, 1, -1, 2, -2, 3, -3, 10, 2**31, -(2**31), 3037000499, 3037000500, 2**62, -(2**63), 2**63 - 1)
EXPONENTS = ([0, 1, 2, 3] * 3, list(range(70)), [62, 63, 64, 65] * 3, [1, 2, 3, -1, -2], [True, 2, 3], [2, 2.5, 3])


def powers(base: Any, exponents: Any) -> Any:
    made, total = [], 0
    for k in exponents:
        power = base**k
        total += power % 1000003
        made.append(power)
    return made, total


def alternating(n: int) -> float:
    total = 0.0
    for k in range(n):
        total += (-1) ** k / (2 * k + 1)
    return total


@pytest.mark.parametrize("base", BASES)
def test_powers_are_those_of_the_interpreter(base: int) -> None:
    for exponents in EXPONENTS:
        if base or min(exponents) >= 0:
            check(powers, (base, exponents), (base, [2, 3, 4]), (base, exponents))


def test_zero_to_a_negative_power() -> None:
    with ds.config(step_aside=False, background=False):
        jitted = ds.jit(store=False)(powers)
        for _ in range(4):
            assert jitted(0, [1, 2, 3]) == powers(0, [1, 2, 3])
            with pytest.raises(ZeroDivisionError):
                jitted(0, [1, 2, -1])


def test_powers_of_a_variable_are_unboxed() -> None:
    with ds.config(step_aside=False, background=False):
        jitted = ds.jit(store=False)(alternating)
        for _ in range(6):
            assert jitted(300) == alternating(300)
        with counting(jitted) as grown:
            assert jitted(300) == alternating(300)
    assert (grown["exits"], grown["recordings"]) == (0, 0)
    assert grown["steps"] < 300  # the loop is native code
