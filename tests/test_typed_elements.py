# ruff: noqa: E501 - tables of values
"""Elements of arrays, read and written unboxed: bounds, layouts, dtypes, arrays that change, iteration."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.support import check, check_source, settles

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128",
          ">f8", ">i4", "S3", "U2", "O", "M8[s]", "m8[ns]"]  # fmt: skip


def filled(dtype: str, n: int = 12) -> Any:
    return np.arange(n).astype(dtype) if dtype != "bool" else np.arange(n) % 3 == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_dtype(dtype: str) -> None:
    def walk(a: Any) -> Any:
        out = []
        for x in a:
            out.append(x)
        for i in range(len(a)):
            out.append(a[i])
            out.append(a[-1 - i])
        b = a.copy()
        for i in range(len(a)):
            b[len(a) - 1 - i] = a[i]
        return out, b, [type(x).__name__ for x in out]

    check(walk, (filled(dtype),), (filled(dtype)[::2],), (filled(dtype)[::-1],))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    "value",
    [
        True,
        3,
        -3,
        2**40,
        2.5,
        float("nan"),
        1e300,
        np.float64(2.5),
        np.float32(2.5),
        np.int64(5),
        np.int32(5),
        np.bool_(True),
        "x",
        None,
    ],
)
def test_stores_cast_as_numpy_casts(dtype: str, value: Any) -> None:
    def put(a: Any, value: Any) -> Any:
        for i in range(len(a)):
            a[i] = value
        return a

    def put2(a: Any, value: Any) -> Any:
        for i in range(2):
            for j in range(3):
                a[i, j] = value
        return a

    check(put, (np.zeros(6, dtype), value))
    check(put2, (np.zeros((2, 3), dtype), value))


def test_stores_of_many_types_into_one_array() -> None:
    def put(a: Any, values: Any) -> Any:
        for i in range(len(values)):
            a[i] = values[i]
        return a

    values = [1, 2.5, np.float64(3.5), np.int64(4), True, np.float32(1.25), 7, 8.5]
    for dtype in ("float64", "float32", "int64", "int32", "bool"):
        check(put, (np.zeros(8, dtype), values), (np.zeros(8, dtype), values[::-1]))


@pytest.mark.parametrize("index", [5, -6, 2**62, -(2**63)])
def test_out_of_bounds_is_the_interpreters(index: int) -> None:
    def get(a: Any, i: int) -> Any:
        return a[i]

    def put(a: Any, i: int, v: float) -> Any:
        a[i] = v
        return a

    a = np.arange(5.0)
    check(get, (a, 2), (a, -5), (a, index))
    check(put, (a, 2, 1.5), (a, -5, 1.5), (a, index, 1.5))


def test_two_dimensions_and_three() -> None:
    def both(a: Any, b: Any) -> Any:
        t = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                t = t + a[i, j] * b[j, i, -1]
                a[i, j] = t
        return t, a

    a, b = np.arange(12.0).reshape(3, 4), np.arange(24.0).reshape(4, 3, 2)
    check(both, (a, b), (np.asfortranarray(a), b[::-1]), (a[:2], b))
    settles(both, (a, b))


def test_index_types() -> None:
    def get(a: Any, i: Any, j: Any) -> Any:
        return a[i, j], a[i][j], a[j, i]

    a = np.arange(9.0).reshape(3, 3)
    check(
        get,
        (a, 1, 2),
        (a, np.int64(1), 2),
        (a, np.int32(-1), np.int64(0)),
        (a, True, 1),
        (a, np.bool_(True), 1),
        (a, 1.5, 1),
        (a, 3, 0),
    )


def test_read_only_arrays_raise() -> None:
    def put(a: Any) -> Any:
        for i in range(3):
            a[i] = 1.0
        return a

    locked = np.zeros(3)
    locked.flags.writeable = False
    check(put, (np.zeros(3),), (locked,))


def test_an_array_that_is_reshaped_inside() -> None:
    source = """
    @jit
    def entry(a, at):
        out = []
        for i in range(6):
            if i == at:
                a.shape = (2, 3)
            out.append(a[i % len(a)])
        return out
    """
    check_source(source, "def calls():\n    for at in (9, 3, 9, 0, 5, 3, 3):\n        yield (np.arange(6.0), at), {}\n")


def test_an_array_that_is_resized_while_it_is_iterated_over() -> None:
    def walk(a: Any, at: int) -> Any:
        out = []
        for x in a:
            out.append(x)
            if len(out) == at:
                a.resize(3, refcheck=False)
        return out

    check(walk, (np.arange(8.0), 99), (np.arange(8.0), 5), (np.arange(8.0), 2))


def test_iterating_over_an_array_forgets_nothing() -> None:
    def total(a: Any) -> Any:
        t = 0.0
        for x in a:
            t = t + x
        return t

    check(total, (np.arange(20.0),), (np.arange(20),), (np.arange(6.0).reshape(2, 3),), (np.zeros(0),))
    settles(total, (np.arange(20.0),))
    for other in (enumerate, reversed, list):

        def through(a: Any, other: Any = other) -> Any:
            return [x for x in other(a)]

        check(through, (np.arange(5.0),))


def test_an_iterator_is_left_where_eager_leaves_it() -> None:
    def walk(a: Any, n: int) -> Any:
        it = iter(a)
        t = 0.0
        for x in it:
            t = t + x
            if t > n:
                break
        return t, list(it)

    check(walk, (np.arange(20.0), 30), (np.arange(20.0), 3), (np.arange(20.0), 1e9), (np.arange(20), 40))


def test_subclasses_are_asked_themselves() -> None:
    source = """
    class Loud(np.ndarray):
        def __getitem__(self, i):
            return ("loud", super().__getitem__(i))

    @jit
    def entry(kind):
        a = np.arange(3.0).view(Loud if kind else np.ndarray)
        return [a[i] for i in range(3)], [x for x in a]
    """
    check_source(source, "def calls():\n    for kind in (0, 0, 0, 1, 0, 1, 1):\n        yield (kind,), {}\n")


def test_dynamic_time_warping() -> None:
    def dtw(x: Any, y: Any) -> Any:
        n, m = len(x), len(y)
        d = np.full((n + 1, m + 1), np.inf)
        d[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cost = abs(x[i - 1] - y[j - 1])
                d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
        return d[n, m]

    x, y = np.sin(np.arange(9.0)), np.cos(np.arange(7.0))
    check(dtw, (x, y), (x[:3], y), (x.astype(np.float32), y))
    settles(dtw, (x, y))


def test_the_variable_of_a_range_is_an_int_without_being_asked() -> None:
    def count(n: int) -> Any:
        t = 0.0
        for _ in range(n):
            t = t + 1
        return t

    def last(n: int) -> Any:
        for i in range(n):
            pass
        return i

    check(count, (50,), (0,))
    check(last, (50,), (300,), (0,))
    settles(count, (50,))
