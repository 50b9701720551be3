"""A ufunc's outer(): recorded as the operation on a view with new axes, which segments know."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

R = np.random.default_rng(5)


def shortest(path: Any) -> Any:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


def table(a: Any, b: Any) -> Any:
    return (
        np.add.outer(a, b),
        np.multiply.outer(b, a) - 1,
        np.less.outer(a, b),
        np.arctan2.outer(a, b),
        np.divmod.outer(a, b)[0],
    )


def held(a: Any, b: Any) -> Any:
    view = np.subtract.outer(a, b)
    return view.base is None, view.flags.owndata, view.strides, a.base, view


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
def test_shortest_paths(dtype: str) -> None:
    a = (R.random((33, 33)) * 100).astype(dtype)
    check(shortest, (a,))
    settles(shortest, (a,))


@pytest.mark.parametrize(
    "shapes", [((4,), (5,)), ((2, 3), (4,)), ((3,), (2, 2)), ((0,), (4,)), ((1,), (1,)), ((70,), (300,))]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", ">f8"])
def test_of_any_rank(shapes: Any, dtype: str) -> None:
    a, b = (np.arange(1, 1 + np.prod(shape), dtype=int).reshape(shape).astype(dtype) for shape in shapes)
    function = held if dtype == "c16" else table
    check(function, (a, b))
    check(function, (a[::-1], b.T))


def of_anything(a: Any, b: Any) -> Any:
    return np.add.outer(a, b)


class Marked(np.ndarray):
    def __array_finalize__(self, other: Any) -> None:
        self.mark = getattr(other, "mark", 0) + 1


def test_of_what_is_no_plain_array() -> None:
    for pair in (
        ([1, 2], np.arange(3)),
        (2.5, np.arange(3.0)),
        (np.float32(2), np.arange(3)),
        (np.arange(3), 1),
        ("a", np.arange(2)),
    ):
        check(of_anything, pair)
    check(of_anything, (np.arange(3.0).view(Marked), np.arange(2.0)))
    check(of_anything, (np.ma.masked_array([1.0, 2.0], [0, 1]), np.arange(2.0)))


def test_a_ufunc_that_runs_python_code() -> None:
    seen = []

    def note(a: Any, b: Any) -> Any:
        seen.append((a, b))
        return a + b

    made = np.frompyfunc(note, 2, 1)

    def function(a: Any, b: Any) -> Any:
        return made.outer(a, b)

    check(function, (np.arange(3), np.arange(2)))
    jitted = ds.jit(store=False)(function)
    for _ in range(4):
        seen.clear()
        jitted(np.arange(3), np.arange(2))
        assert len(seen) == 6


def test_its_warnings_name_the_ufunc() -> None:
    def function(a: Any, b: Any) -> Any:
        return np.divide.outer(a, b)

    jitted = ds.jit(store=False)(function)
    for _ in range(5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            jitted(np.arange(4.0), np.arange(3.0))
        assert [str(one.message) for one in caught] == [
            "divide by zero encountered in divide",
            "invalid value encountered in divide",
        ]


def test_errors() -> None:
    def core(a: Any, b: Any) -> Any:
        return np.matmul.outer(a, b)

    def one(a: Any, b: Any) -> Any:
        return np.sin.outer(a, b)

    def deep(a: Any, b: Any) -> Any:
        return np.add.outer(a, b)

    for function in (core, one):
        check(function, (np.arange(3.0), np.arange(3.0)))
    check(deep, (np.zeros((1,) * 40), np.zeros((1,) * 40)))
