"""Groups of array operations in blocks (replay/machine/blocks.cc): NumPy's values, warnings and layouts."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.equivalent import equivalent

R = np.random.default_rng(17)
SHAPES = [(40_001,), (3, 20_000), (1025, 40), (300, 151), (20, 41, 52), (9, 8, 7, 90), (70_000, 2), (1, 50_000)]


def blocks(function: Any, *calls: tuple[Any, ...]) -> None:
    equivalent(function, *calls, *calls, engines=["blocks"])


def chain(a: Any, b: Any, k: float) -> Any:
    low = a * k - b
    return np.where(low > 0.5, low + a, b * b) / 3.0, low


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: tuple[int, ...]) -> None:
    blocks(chain, (R.random(shape), R.random(shape), 1.5))


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] > 8])
def test_parts_of_rows(shape: tuple[int, ...]) -> None:
    def stencil(a: Any, b: Any) -> Any:
        b[..., 1:-1] = 0.25 * (a[..., 1:-1] + a[..., :-2] + a[..., 2:]) - b[..., 1:-1]
        b[..., 2:] -= a[..., 2:] * 0.5 + b[..., :-2] * 0.125
        return b

    blocks(stencil, (R.random(shape), R.random(shape)))


def test_operands_that_are_repeated() -> None:
    def spread(a: Any, row: Any, column: Any) -> Any:
        return (a - row) * (column + 0.5) + row * a

    blocks(spread, (R.random((500, 300)), R.random(300), R.random((500, 1))))
    blocks(spread, (R.random((50, 30, 90)), R.random((30, 1)), R.random((50, 1, 90))))


def test_transposed_reversed_and_stepped() -> None:
    def mixed(a: Any, b: Any) -> Any:
        return (a[:, ::2] + b[::-1, : a.shape[1] // 2]) * a[:, 1::2] - b[:, : a.shape[1] // 2]

    blocks(mixed, (R.random((400, 300)), R.random((400, 300))))
    blocks(mixed, (R.random((300, 400)).T, R.random((400, 300))))


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "i8", "f4", "f8"])
def test_dtypes(dtype: str) -> None:
    def both(a: Any, b: Any) -> Any:
        return ((a == b) | (a > b)) & (b != a), np.minimum(a, b) * a + b

    blocks(both, tuple((R.random((211, 307)) * 100).astype(dtype) for _ in range(2)))


def test_flags_are_eagers() -> None:
    def divide(a: Any, b: Any) -> Any:
        return (a / b > 1.0) & (a < b), a / b - a

    a, b = R.random((300, 200)), R.random((300, 200)) + 1
    at_the_end = b.copy()
    at_the_end[-1, -1] = 0
    with_nan = a.copy()
    with_nan[7, 9] = np.nan
    blocks(divide, (a, b), (a, at_the_end), (with_nan, b), (a * np.inf, b))


def test_what_is_written_overlaps_what_is_read() -> None:
    def shifted(a: Any) -> Any:
        a[1:] = a[:-1] * 2 + a[1:]
        a[:, :-1] = a[:, 1:] - a[:, :-1]
        return a

    blocks(shifted, (R.random((400, 300)),))


def test_they_are_done_so_until_there_is_a_kernel() -> None:
    def step(a: Any, b: Any) -> None:
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, 2:])

    a, b = R.random((200, 300)), np.zeros((200, 300))
    expected = b.copy()
    step(a, expected)
    jitted = ds.jit(store=False)(step)
    with ds.config(step_aside=False, background=True):
        for _ in range(20):
            b[:] = 0
            jitted(a, b)
            assert b.tobytes() == expected.tobytes()


def test_of_a_cut_array_only_the_kernel_that_it_needs_is_compiled() -> None:
    def step(a: Any, b: Any) -> None:
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1]) + b[1:-1, 1:-1]

    def rows(a: Any, b: Any) -> Any:
        return a[1:] * 2 + b[:-1]

    for function, rank in ((step, 2), (rows, 1)):
        jitted = ds.jit(store=False)(function)
        with ds.config(step_aside=False, inner_loops=0):
            for _ in range(3):
                jitted(R.random((200, 300)), np.zeros((200, 300)))
                ds.wait()
        (kernel,) = jitted.explain().to_dict()["traces"][0]["segments"][0]["kernels"]
        assert kernel[0].startswith(f"rank {rank} "), kernel
