"""What is known of an array outlives the operations that no kernel does, and astype is an operation that kernels do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting

X = np.linspace(-3, 3, 50)


@pytest.fixture(autouse=True)
def _kernels_for_small_arrays() -> Iterator[None]:
    with ds.config(inner_loops=0):
        yield


def chain(y: Any) -> Any:
    return ((y * 2 + 1) * y - 3 + y * 0.5) * (y + 1) - y


CHAIN = 9


def added_in_place(x: Any) -> Any:
    y = x * 2
    y += x
    return chain(y)


def changed_in_place_again_and_again(x: Any) -> Any:
    y = x * 2
    y -= 1
    y *= x
    y /= 3.5
    return chain(y)


def argument_changed_in_place(x: Any) -> Any:
    x += 1
    return chain(x)


def by_a_numpy_scalar_in_place(x: Any) -> Any:
    y = x * 2
    y += np.float64(3)
    return chain(y)


def to_float32(x: Any) -> Any:
    return chain((x * 2).astype(np.float32))


def to_int(x: Any) -> Any:
    return chain((x * 2).astype(int))


def to_bool_and_back(x: Any) -> Any:
    return chain(x.astype("?").astype("f8"))


def to_int32_and_back(x: Any) -> Any:
    return chain((x * 2).astype("i4").astype(np.float64))


def without_a_copy(x: Any) -> Any:
    return chain((x * 2).astype(np.float32, copy=False))


def with_a_copy(x: Any) -> Any:
    return chain((x * 2).astype(np.float64, copy=True))


def the_same_array(x: Any) -> Any:
    y = x * 2
    z = y.astype(np.float64, copy=False)
    return z is y, chain(z)


def integer_power(x: Any) -> Any:
    return chain(np.power(x.astype(int), 2))


def narrow_float_power(x: Any) -> Any:
    return chain(np.float_power(x.astype("f4") + 4, 2))


# function, operations in kernels, launches
PROGRAMS = [
    (added_in_place, 1 + CHAIN, 2),
    (changed_in_place_again_and_again, 1 + CHAIN, 2),
    (argument_changed_in_place, CHAIN, 1),
    (by_a_numpy_scalar_in_place, 1 + CHAIN, 2),
    (to_float32, 2 + CHAIN, 1),
    (to_int, 2 + CHAIN, 1),
    (to_bool_and_back, 2 + CHAIN, 1),
    (to_int32_and_back, 3 + CHAIN, 1),
    (without_a_copy, 2 + CHAIN, 1),
    (with_a_copy, 2 + CHAIN, 1),
    (the_same_array, 1 + CHAIN, 2),
    (integer_power, 1 + CHAIN, 2),
    (narrow_float_power, 2 + CHAIN, 2),
]


def operations_in_kernels(jitted: Any) -> int:
    return sum(len(s["ops"]) for t in jitted.explain().to_dict()["traces"] for s in t["segments"] if s["kernels"])


@pytest.mark.parametrize(("function", "operations", "launches"), PROGRAMS, ids=lambda p: getattr(p, "__name__", str(p)))
def test_what_follows_stays_in_kernels(function: Callable[..., Any], operations: int, launches: int) -> None:
    check(function, (X,), (X.reshape(5, 10),))
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(function)
        for _ in range(3):
            jitted(X.copy())
        with counting(jitted) as grown:
            jitted(X.copy())
    assert (grown["replays"], grown["exits"], grown["kernel_launches"]) == (1, 0, launches), str(jitted.explain())
    assert operations_in_kernels(jitted) == operations, str(jitted.explain())


def views(dtype: str) -> list[Any]:
    a = np.arange(36000).astype(dtype)
    return [
        a.reshape(200, 180)[:, None, ::2],
        a.reshape(200, 1, 180)[:, :, ::2].transpose(2, 1, 0),
        a.reshape(200, 180).T[None],
        np.lib.stride_tricks.as_strided(a, (50, 1, 100), (300 * a.itemsize, a.itemsize, 2 * a.itemsize)),
        np.lib.stride_tricks.sliding_window_view(a, 40)[:100],
        np.broadcast_to(a[:180], (200, 180)),
    ]


@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
def test_astype_copies_the_layout_of_views(dtype: str) -> None:
    def cast(x: Any) -> Any:
        return x.astype(np.float32), (x * 2).astype("i8"), x.astype("f8", copy=False) + 1

    with ds.config(background=False, step_aside=False):
        for x in views(dtype):
            expected = [(r.strides, r.dtype, r.tobytes()) for r in cast(x)]
            jitted = ds.jit(store=False)(cast)
            for _ in range(4):
                assert [(r.strides, r.dtype, r.tobytes()) for r in jitted(x)] == expected


def test_long_runs_are_cut_into_segments_that_kernels_can_do() -> None:
    terms = " + ".join(f"x * {k}.5" for k in range(40))  # 80 operands
    many = ", ".join(f"x + {k}" for k in range(3)) + ", " + ", ".join(f"(x - y) * {k % 5}" for k in range(50))
    for source, operations in ((terms, 79), (f"({many})", 103)):
        function = eval(f"lambda x, y: {source}")
        check(function, (X, X[::-1].copy()))
        with ds.config(background=False, step_aside=False):
            jitted = ds.jit(store=False)(function)
            for _ in range(3):
                jitted(X, X)
        assert operations_in_kernels(jitted) == operations
        assert all(s["kernels"] for t in jitted.explain().to_dict()["traces"] for s in t["segments"])
