"""Items of array.array, read and written unboxed."""

from __future__ import annotations

import array
import math
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.native_kit import same, steps_of
from tests.support import stepped

TYPECODES = "dfbBhHiIlLqQ"
ODD: list[Any] = [
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    32767,
    65536,
    2**31 - 1,
    2**31,
    2**32,
    2**63 - 1,
    2**63,
    2**70,
    0.0,
    -0.0,
]
ODD += [1.5, math.nan, math.inf, 1e300, 5e-324, True, None, "a", np.float64(2.5), np.int64(-3), np.float32(0.1), 1j]


def summed(a: Any, n: int) -> Any:
    s = 0
    for i in range(n):
        s += a[i % len(a)] + a[-1 - i % 3]
        if i % 50 == 0 and s != s:
            s = 0
    return s, type(s)


def smoothed(a: Any, n: int) -> Any:
    for _ in range(n):
        for i in range(1, len(a) - 1):
            a[i] = (a[i - 1] + a[i + 1]) // 2
    return a


def put(a: Any, values: Any) -> Any:
    out = []
    for value in values:
        for i in (1, -2, 7, -9):
            try:
                a[i] = value
                out.append((a[i], type(a[i])))
            except Exception as error:
                out.append((type(error), str(error)))
    return out, a


def several(arrays: Any) -> Any:
    out = []
    for a in arrays:
        total = 0
        for i in range(len(a)):
            total += a[i]
            a[i] = a[0]
        out.append((total, a.typecode))
    return out


def shared(a: Any, b: Any, n: int) -> Any:
    s = 0.0
    for i in range(n):
        a[i] = s
        s += b[i] + 1.5
        b[i] = a[i] * 0.5
    return s


def grown(a: Any, n: int) -> Any:
    s = 0
    for i in range(n):
        a.append(i % 5)
        s += a[i] + a[-1]
        if len(a) > 20:
            a.pop(0)
    return s, a


@pytest.mark.parametrize("typecode", TYPECODES)
def test_items_of_every_typecode(typecode: str) -> None:
    make = lambda: (array.array(typecode, [3, 1, 4, 1, 5, 9, 2, 6]), 200)  # noqa: E731
    same(summed, make)
    same(smoothed, lambda: (array.array(typecode, [3, 1, 4, 1, 5, 9, 2, 6]), 9))
    same(grown, make)


@pytest.mark.parametrize("typecode", TYPECODES)
def test_whatever_is_put(typecode: str) -> None:
    for value in ODD if typecode in "di" else ODD[::6]:
        same(put, lambda value=value: (array.array(typecode, [3, 1, 4, 1, 5, 9, 2, 6]), [value] * 6))  # type: ignore[misc]
    same(put, lambda: (array.array(typecode, [3, 1, 4]), ODD))


def test_typecodes_that_change() -> None:
    same(
        several,
        lambda: ([array.array(t, [3, 1, 4]) for t in TYPECODES] * 2,),
        lambda: ([array.array("d", [0.5] * 9)] * 3,),
    )
    same(
        several,
        lambda: ([array.array("u", "abc")],),
        lambda: ([array.array("d")],),
        lambda: ([[1, 2], array.array("i", [2])],),
    )


def test_memory_that_numpy_sees_as_well() -> None:
    def make() -> tuple[Any, ...]:
        a = array.array("d", [k * 0.25 for k in range(60)])
        return a, np.frombuffer(a)[1:], 55

    same(shared, make)
    same(shared, lambda: tuple(make()[k] for k in (0, 0, 2)))


class Own(array.array):  # type: ignore[type-arg]
    def __getitem__(self, i: Any) -> Any:
        return super().__getitem__(i) * 2


def test_subclasses_are_asked() -> None:
    same(summed, lambda: (Own("d", [3, 1, 4]), 90))


def test_no_step_an_item() -> None:
    a = array.array("d", range(40))
    assert steps_of(smoothed, array.array("d", a), 60) < 400
    assert steps_of(summed, a, 4000) < 100


def test_references() -> None:
    jitted = ds.jit(store=False)(summed)
    a = array.array("d", [1.5, 2.5, 3.5])
    with stepped(hot_loop=1):
        assert all(jitted(a, 300) == summed(a, 300) for _ in range(20))
        assert memoryview(a).obj is a
        a.append(1.0)
        assert jitted(a, 300) == summed(a, 300)
