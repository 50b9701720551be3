"""Reductions of integers and truth values (replay/machine/whole_numbers.h): NumPy's values, of NumPy's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles, stepped

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

R = np.random.default_rng(11)
DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def all_of_it(a: Any) -> Any:
    out = [
        a.sum(),
        np.sum(a),
        a.mean(),
        np.mean(a),
        a.max(),
        np.max(a),
        a.min(),
        np.min(a),
        a.any(),
        np.any(a),
        a.all(),
        np.all(a),
    ]
    out += [np.count_nonzero(a), a.argmax(), np.argmin(a), np.amax(a), np.amin(a)]
    return [(type(x).__name__, repr(x)) for x in out]


def whole(dtype: str, shape: Any) -> Any:
    if dtype == "?":
        return R.random(shape) > 0.5
    ends = np.iinfo(dtype)
    return R.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda a: a,
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1, ::-1],
    "strided": lambda a: a[::2, 1::3],
    "rows apart": lambda a: a[:, :5],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "one": lambda a: a[:1, :1],
    "column": lambda a: a[:, 2],
    "deep": lambda a: a.reshape(2, 4, -1)[:, ::2].transpose(2, 0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_any_layout(dtype: str, layout: str) -> None:
    a = LAYOUTS[layout](whole(dtype, (8, 36)))
    check(all_of_it, (a,))
    check(all_of_it, (np.zeros_like(a),))
    check(all_of_it, (np.ones_like(a),))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 255 * 64 + 7, 40_000])
def test_of_any_length(dtype: str, n: int) -> None:
    check(all_of_it, (whole(dtype, n),))
    ends = (
        (np.zeros(n, dtype), np.ones(n, dtype))
        if dtype == "?"
        else (np.full(n, end, dtype) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    )
    for a in ends:
        check(all_of_it, (a,))


def test_truth_values_that_are_neither_0_nor_1() -> None:
    a = np.arange(300, dtype="u1").view("?")
    check(all_of_it, (a,), (a[1::2],), (a[::-1],), (np.full(5000, 7, "u1").view("?"),))


def test_the_last_one_tells() -> None:
    some = np.zeros(10_000, bool)
    some[-1] = True
    check(all_of_it, (some,), (~some,), (some[::-1],), (some[::7],))


def test_an_empty_array() -> None:
    def function(a: Any) -> Any:
        return a.sum(), np.sum(a), a.any(), a.all(), np.count_nonzero(a)

    check(function, (np.zeros(4, "?"),), (np.zeros(0, "?"),), (np.zeros((3, 0), "?"),))


def test_a_mean_whose_sums_are_rounded() -> None:
    def function(a: Any) -> Any:
        return a.mean()

    large = np.full(2**21 + 3, 2**31 - 1, "i4")
    large[::3] -= 1
    check(function, (large[:50],), (large,))


def of_pending(x: Any, y: Any) -> Any:
    low = (x > 0.25) & (y < 0.75)
    return (
        (x > 0.5).sum(),
        np.count_nonzero((x > 0.1) & (y < 0.3)),
        (x < y).mean(),
        (x > 2).any(),
        np.all(x + y > -1),
        low.sum() + np.sum(low),
        ((x * 100).astype("i4") + (y * 50).astype("i4")).sum(),
        ((x * 100).astype("i1") + (y * 100).astype("i1")).max(),
        np.mean((x * 1000).astype("i2") * 2),
        low,
    )


@pytest.mark.parametrize("n", [50, 5000, 70_000])
def test_of_what_is_made_for_it(n: int) -> None:
    x, y = R.random(n), R.random(n)
    check(of_pending, (x, y))
    settles(of_pending, (x, y))


def test_identity() -> None:
    def function(a: Any) -> Any:
        return a.any() is np.True_, a.all() is np.False_

    a = np.arange(60) % 2 == 0
    jitted = ds.jit(store=False)(function)
    with stepped():
        for _ in range(4):
            assert jitted(a) == (True, True)


def in_a_loop(a: Any, n: int) -> Any:
    total = 0
    for i in range(n):
        a[i % len(a)] = i % 3 == 0
        total += a.sum() * 2
        if a.any() and not a.all():
            total -= np.count_nonzero(a[1:])
    return total, a.mean()


def test_in_native_loops() -> None:
    check(in_a_loop, (np.zeros(100, bool), 60), (np.ones(33, bool), 200))


def along(a: Any, axis: Any) -> Any:
    out = [
        a.sum(axis),
        np.sum(a, axis=axis),
        a.mean(axis),
        a.max(axis),
        np.min(a, axis),
        a.any(axis),
        np.all(a, axis=axis),
    ]
    out += [a.sum(axis, keepdims=True), np.mean(a, axis=axis, keepdims=True), np.any(a, axis=axis, keepdims=True)]
    return [(x.dtype.char, x.shape, x.strides, x.flags.owndata, x.tolist()) for x in out]


@pytest.mark.parametrize(
    "layout", ["dense", "transposed", "backwards", "strided", "rows apart", "broadcast", "one", "deep"]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_along_an_axis(dtype: str, layout: str) -> None:
    a = LAYOUTS[layout](whole(dtype, (8, 36)))
    for axis in (0, 1, -1):
        check(along, (a, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_along_several_axes(dtype: str) -> None:
    a = whole(dtype, (5, 6, 7, 3))
    for axis in ((0, 1), (2, 3), (1, 2), (0, 2), 2, 3):
        check(along, (a, axis))
    check(along, (whole(dtype, (300, 400)), 0), (whole(dtype, (300, 400)), 1), (whole(dtype, (3, 0)), 0))
