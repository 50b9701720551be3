"""Sums, means and extremes of what array operations give, done piece by piece as that is made."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import run_python

pytestmark = pytest.mark.once

R = np.random.default_rng(11)
SHAPES = (
    (5000,),
    (40_001,),
    (300_000,),
    (5000, 3),
    (700, 7),
    (64, 1000),
    (3, 20_000),
    (1, 70_000),
    (90, 8, 9),
    (6, 5, 200, 4),
)


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    x, y = np.asarray(a), np.asarray(b)
    assert (x.dtype, x.shape, x.strides) == (y.dtype, y.shape, y.strides)
    assert x.tobytes() == y.tobytes()


def agrees(function: Any, *arguments: Any) -> None:
    """The bits of eager, in the first calls and when all kernels are there."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        want = function(*arguments)
    jitted = ds.jit(function)
    for _ in range(3):
        for _ in range(4):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                same(jitted(*arguments), want)
            assert [str(w.message) for w in seen] == [str(w.message) for w in told]
        ds.wait()


def values(shape: Any, dtype: str) -> Any:
    return (R.standard_normal(shape) * 10.0 ** R.integers(-3, 4, shape)).astype(dtype)


def numbers(a: Any, b: Any) -> Any:
    return (a * b - a).sum(), np.mean(a - b), (a + b).max(), np.min(a * b), np.sum((a - b) * 3)


def numbers_of_ints(a: Any, b: Any) -> Any:
    return (a * b - a).sum(), (a + b).max(), np.min(a * b)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_one_number(shape: Any, dtype: str):
    a, b = values(shape, dtype), values(shape, dtype)
    agrees(numbers if dtype != "i8" else numbers_of_ints, a, b)


def rows(a: Any, b: Any) -> Any:
    d = a - b
    e = np.abs(d)
    return (
        (a * b).sum(axis=-1), np.max(a - b, axis=-1, keepdims=True), e.mean(-1), e, d.min(axis=-1),
        np.sum(d * d, axis=-1),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 1], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_rows(shape: Any, dtype: str):
    agrees(rows, values(shape, dtype), values(shape, dtype))
    agrees(rows, values(shape, dtype), values(shape[-1:], dtype))
    agrees(rows, values(shape, dtype), values((*shape[:-1], 1), dtype))
    agrees(rows, np.asfortranarray(values(shape, dtype)), values(shape, dtype))
    agrees(rows, values((*shape[:-1], shape[-1] * 2), dtype)[..., ::2], values(shape, dtype))


def several_axes(a: Any, b: Any) -> Any:
    return (
        (a * b).sum(axis=(-2, -1)),
        (a - b).max(axis=(-1, -2), keepdims=True),
        (a + b).sum(axis=0),
        (a + b).mean(axis=(0, -1)),
    )


def test_several_axes():
    agrees(several_axes, values((30, 20, 21), "f8"), values((30, 20, 21), "f8"))


def outer(a: Any, b: Any) -> Any:
    d = a[:, None, :] - b[None, :, :]
    return np.sqrt((d * d).sum(axis=-1)), ((a[:, None] - b) ** 2).sum(axis=2).min(axis=1)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 17])
def test_rows_of_what_is_broadcast(width: int):
    agrees(outer, values((120, width), "f8"), values((90, width), "f8"))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def normalised(x: Any, axis: int) -> Any:
    mean = x.mean(axis=axis, keepdims=True)
    spread = ((x - mean) ** 2).mean(axis=axis, keepdims=True)
    return (x - mean) / np.sqrt(spread + 1e-5)


def test_what_is_reduced_is_kept():
    agrees(softmax, values((300, 400), "f8") % 5)
    for axis in (0, 1, -1):
        agrees(normalised, values((300, 400), "f8"), axis)


SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324)


@pytest.mark.parametrize("special", list(itertools.combinations(SPECIAL, 2)), ids=str)
def test_special_values(special: tuple[float, float]):
    a, b = np.zeros((90, 100)), np.ones((90, 100))
    a[30:, 7:60:5], a[80, 99] = special
    agrees(lambda a, b: (numbers(a, b), rows(a, b)), a, b)
    agrees(lambda a: ((a * 1).max(), (a * 1).min(), (a * 1).sum(), (a * 1).min(axis=1)), a)


def in_a_loop(a: Any, n: int) -> Any:
    total, parts = 0.0, []
    for i in range(n):
        r = (a * i - total).sum()
        total += float(r) * 1e-6
        parts.append((a + i).max(axis=0) if i % 7 == 0 else (a - i).mean(axis=1))
    return total, *parts


def test_in_loops():
    agrees(in_a_loop, values((80, 90), "f8"), 300)


def test_shapes_that_change():
    f = ds.jit(numbers)
    for _ in range(6):
        for size in (10, 5000, 3, 20_000, 100):
            a, b = values(size, "f8"), values(size, "f8")
            same(f(a, b), numbers(a, b))
        ds.wait()


def test_it_is_done_in_pieces():
    """What is cut elsewhere than NumPy cuts it has other bits."""
    script = """
import numpy as np, dalsegno as ds, json
many = np.random.default_rng(1).standard_normal((20, 300_003)) / 3
f = lambda a: (a * 3 - a).sum()
g = ds.jit(f)
for _ in range(6): g(many[0]), ds.wait()
print(json.dumps(all(float(g(a)) == float(f(a)) for a in many)))
"""
    assert run_python(script, DALSEGNO_STORE="off") is True
    assert run_python(script, DALSEGNO_STORE="off", DALSEGNO_FAULT="unequal_halves") is False


def test_large_reductions_along_axes():
    def along(a: Any) -> Any:
        return a.sum(axis=0), a.max(axis=0), a.mean(axis=-1), a.min(axis=-1), a.sum(axis=(0, 1))

    for shape in ((1000, 999), (400, 3, 300), (200_000, 3), (3, 200_000), (7, 100, 300)):
        for dtype in ("f8", "f4", "i8"):
            a = values(shape, dtype)
            agrees(along if dtype != "i8" else lambda a: (a.sum(axis=0), a.max(axis=0), a.min(axis=-1)), a)


def spreads(a: Any) -> Any:
    last = a.var(axis=-1), np.std(a, axis=-1, keepdims=True), a.std(-1), np.var(a, axis=tuple(range(1, a.ndim)))
    return (
        *last,
        a.std(axis=0),
        np.var(a, axis=0, keepdims=True),
        a.var(axis=(0, 1)) if a.ndim > 2 else a.std(),
        a.var(axis=0, ddof=1),
    )


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_spreads(dtype: str):
    for shape in (
        (5, 3),
        (40, 7),
        (9, 8),
        (1000, 999),
        (400, 3, 300),
        (100_000, 3),
        (3, 100_000),
        (7, 100, 300),
        (20, 1),
        (1, 20),
    ):
        a = values(shape, dtype)
        agrees(spreads, a)
        agrees(spreads, a[1:, 1:] if min(a.shape) > 1 else a[::-1])
    a[0, 3], a[0, 7] = (np.inf, np.nan) if dtype != "i8" else (1, 2)
    agrees(spreads, a)
    agrees(spreads, values((60, 70), dtype).T)
