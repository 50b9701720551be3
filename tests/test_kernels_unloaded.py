"""Kernels that nothing uses any more do not stay for ever."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import dalsegno as ds
import numpy as np
from dalsegno._testing import segments

IDLE = 6


@pytest.fixture(autouse=True)
def few_idle() -> Iterator[None]:
    before = segments.keep_idle_kernels(IDLE)
    with ds.config(background=False, step_aside=False, inner_loops=0):
        yield
    segments.keep_idle_kernels(before)


def code_mappings() -> int:
    """Pieces of memory that hold code and belong to no file."""
    rows = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    return sum("x" in row[1] and len(row) < 6 for row in rows)


def made(n, x):
    """A function with kernels of its own; its operations differ by n."""
    names = [("add", "subtract", "multiply", "maximum", "minimum")[n // 5**k % 5] for k in range(4)]
    space = {"np": np}
    body = "x"
    for name in names:
        body = f"np.{name}({body}, 1.25)"
    exec(f"def f(x):\n    return {body} * x", space)
    f = space["f"]
    jitted = ds.jit(store=False)(f)
    for _ in range(3):
        assert jitted(x).tobytes() == f(x).tobytes()
    return jitted, f


def test_kernels_of_dropped_functions_are_unloaded():
    x = np.arange(64.0)
    kept, plain = made(0, x)
    launches = ds.stats()["kernel_launches"]
    kept(x)
    assert ds.stats()["kernel_launches"] == launches + 1
    for n in range(1, 4 * IDLE):
        made(n, x)
        gc.collect()
    held, mapped = segments.count_kernels(), code_mappings()
    for n in range(4 * IDLE, 12 * IDLE):
        made(n, x)
        gc.collect()
    assert segments.count_kernels() <= held + IDLE
    assert code_mappings() <= mapped + 3 * IDLE
    launches = ds.stats()["kernel_launches"]
    assert kept(x).tobytes() == plain(x).tobytes()
    assert ds.stats()["kernel_launches"] == launches + 1


def test_a_kernel_that_was_unloaded_comes_back():
    x = np.arange(64.0)
    for n in (0, *range(100, 100 + 3 * IDLE), 0):
        launches = ds.stats()["kernel_launches"]
        made(n, x)
        assert ds.stats()["kernel_launches"] > launches
        gc.collect()
