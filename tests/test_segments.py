"""Which array operations end up in kernels, seen from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting

A, B = np.linspace(0.5, 3, 50), np.linspace(1, 2, 50)


@pytest.fixture(autouse=True)
def _kernels_for_small_arrays() -> Iterator[None]:
    with ds.config(inner_loops=0):
        yield


def scalar_function_between(a: Any, b: Any, n: float) -> Any:
    t = (a + b) * 2
    root = np.sqrt(n)  # may warn, but is of a number: nothing that was known of arrays is in doubt
    return t * root + a - b


def reduction_between(a: Any, b: Any, n: float) -> Any:
    t = a * b
    return (t - t.mean()) / t.std() + n


def numpy_scalar_between(a: Any, b: Any, n: float) -> Any:
    t = a * b
    s = np.float64(n) * np.float64(3)
    return t * s + t


def item_between(a: Any, b: Any, n: float) -> Any:
    t = a * b
    t[0] = n
    return t * 2 + b


@pytest.mark.parametrize(
    ("function", "launches"),
    [(scalar_function_between, 1), (reduction_between, 2), (numpy_scalar_between, 1), (item_between, 2)],
    ids=lambda f: getattr(f, "__name__", str(f)),
)
def test_operations_of_numpys_own_between_do_not_break_kernels(function: Callable[..., Any], launches: int) -> None:
    check(function, (A, B, 2.0), (A, B, -1.0))
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(function)
        for _ in range(3):
            jitted(A, B, 2.0)
        with counting(jitted) as grown:
            assert jitted(A, B, 2.0).tobytes() == function(A, B, 2.0).tobytes()
    assert (grown["replays"], grown["exits"], grown["kernel_launches"]) == (1, 0, launches)
