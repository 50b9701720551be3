"""Powers of floats by small constants (replay/native/ir_powers.cc): pow()'s bits, flags and errors."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

import numpy as np
from tests.test_native_loops import check, steps_of

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

EXPONENTS = [
    "2",
    "3",
    "4",
    "7",
    "8",
    "9",
    "0.5",
    "1.5",
    "2.5",
    "-1",
    "-2",
    "-0.5",
    "-1.5",
    "2.0",
    "0.25",
    "-6",
    "0",
    "1",
]


def power(by: str) -> Any:
    space: dict[str, Any] = {}
    source = f"def power(xs, out):\n for i in range(len(xs)):\n  x = xs[i]\n  out[i] = x ** {by}\n return out\n"
    exec(source, space)
    return space["power"]


def numbers(n: int, seed: int) -> list[float]:
    at = random.Random(seed)
    near = [at.uniform(-4, 4) for _ in range(n)]
    far = [at.uniform(1, 2) * 2.0 ** at.randint(-140, 140) for _ in range(n)]
    whole = [float(at.randrange(-2000, 2000)) for _ in range(n)]
    bits = [struct.unpack("d", struct.pack("Q", at.getrandbits(64)))[0] for _ in range(n)]
    return near + far + whole + bits


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    0.5,
    5e-324,
    1e-310,
    2.0**-100,
    2.0**100,
    -(2.0**99),
    1e154,
    1e155,
    float("inf"),
    float("nan"),
]


@pytest.mark.parametrize("by", EXPONENTS)
def test_arrays_of_doubles(by: str) -> None:
    xs = np.array([abs(x) for x in numbers(1500, 1)])
    check(power(by), (xs, np.zeros(len(xs))), rounds=2)
    for special in SPECIAL:
        check(power(by), (np.array([1.25, special, 3.0]), np.zeros(3)), rounds=1)


@pytest.mark.parametrize("by", EXPONENTS)
def test_lists_of_floats(by: str) -> None:
    xs = [x if "." not in by else abs(x) for x in numbers(300, 2) if 1e-30 < abs(x) < 1e30]
    check(power(by), (xs, [0.0] * len(xs)), rounds=2)
    for special in [*SPECIAL, -1.5]:
        check(power(by), ([1.25, special, 3.0], [0.0] * 3), rounds=1)


def test_mostly_nothing_is_asked_for() -> None:
    assert steps_of(power("2"), [1.1 * i for i in range(1, 900)], [0.0] * 900) < 100


def test_errors_of_floats_and_warnings_of_doubles() -> None:
    check(power("2"), ([1.0, 1e200, 2.0], [0.0] * 3), (np.array([1.0, 1e200, 2.0]), np.zeros(3)))
    check(power("-2"), ([1.0, 0.0, 2.0], [0.0] * 3), (np.array([1.0, 0.0, 2.0]), np.zeros(3)))
    check(power("0.5"), ([1.0, -2.0, 2.0], [0.0] * 3), (np.array([1.0, -2.0, 2.0]), np.zeros(3)))
