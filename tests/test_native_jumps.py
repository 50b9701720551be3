"""What is boxed or unboxed on the way from one loop to another in native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.support import counting, stepped


def native(source: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    exec(source, space)
    return space["work"]


# What the inner loop does not look at goes through it as an object.
CARRIED = """
def work(data, m, keep):
    crc = 65535
    left = 0.5
    seen = []
    for b in data:
        old = left
        left = b * 0.25
        crc ^= b << 8
        for k in range(m):
            if crc & 32768:
                crc = ((crc << 1) ^ 4129) & 65535
            else:
                crc = (crc << 1) & 65535
        if b % keep == 1:
            seen.append(b)
            seen.append(left)
            seen.append(old)
            seen.append(k)
    return crc, left, old, b, k, seen
"""


@pytest.mark.parametrize("keep", [2, 7, 1000])
def test_ints_and_floats_go_through_a_loop_that_does_not_look_at_them(keep: int) -> None:
    data = bytes((k * 37 + 11) % 256 for k in range(60))
    equivalent(native(CARRIED), *[(data, 8, keep)] * 4, engines=["native", "background"])


BIG = """
def work(n, m, first):
    total = first
    for k in range(n):
        step = k * 1000003
        last = total
        for j in range(m):
            total = total + step
            if total > 9000000000000000000:
                total = total - 9000000000000000000 + j
        total = total * 3 - last
    return total, last, step
"""


@pytest.mark.parametrize("first", [0, 2**40, 2**62, -(2**63), 2**63 - 1, 2**70])
def test_ints_that_leave_64_bits_in_the_outer_or_in_the_inner_loop(first: int) -> None:
    equivalent(native(BIG), *[(40, 9, first)] * 4, engines=["native"])


# The same variable has another type at the inner loop's head than where the outer loop leads to it.
MIXED = """
def work(n, m, values):
    out = []
    for k in range(n):
        x = values[k % len(values)]
        y = x
        j = 0
        while j < m and x == x and x < 1000:
            y = x
            x = x * 2 + 1
            j += 1
        out.append((x, y, j, type(x)))
        z = x if j % 2 else y
        out.append(z is x)
        out.append(z is y)
    return out
"""
VALUES = [
    [1.5],
    [1],
    [1, 2.5],
    [0.0, -0.0],
    [float("nan"), 3.0],
    [float("inf"), -1.0, 7],
    [True, 2, 0.5],
    [2**61, 1],
    [np.float64(0.1), 1.5],
    [np.float64(0.1)],
    [np.float32(0.1), np.int64(3)],
]


@pytest.mark.parametrize("values", VALUES)
def test_a_variable_is_of_several_types_at_the_inner_loops_head(values: list[Any]) -> None:
    equivalent(native(MIXED), *[(30, 6, values)] * 4, engines=["native"])


RAISES = """
def work(n, m, at):
    x = 1.0
    k = j = 0
    try:
        for k in range(n):
            before = x
            y = k * 0.5
            for j in range(m):
                x = x + y / (at - k)
            x = x - before
    except ZeroDivisionError:
        return "divided", k, j, x, y, before
    return k, j, x, y, before
"""


@pytest.mark.parametrize("at", [0, 3, 17, 29, 99])
def test_an_exception_in_the_inner_loop_sees_all_variables(at: int) -> None:
    equivalent(native(RAISES), *[(30, 5, at)] * 4, engines=["native"])


def test_two_names_of_a_number_name_one_object_behind_an_inner_loop() -> None:
    source = """
def work(n, m):
    kept = []
    for k in range(n):
        x = k * 1.25
        other = x
        t = 0.0
        for j in range(m):
            t = t + j
        kept.append(x is other)
        kept.append(other)
    return kept, t
"""
    equivalent(native(source), *[(40, 4)] * 4, engines=["stepped", "native"])


def test_loops_that_box_on_the_way_are_one_function() -> None:
    work = native(CARRIED)
    jitted = ds.jit(store=False)(work)
    data = bytes(range(250))
    with stepped():
        for _ in range(6):
            jitted(data, 8, 1000)
        with counting(jitted) as grown:
            jitted(data, 8, 1000)
    assert 0 < grown["steps"] < 200
