"""argmax and argmin along an axis: NumPy's positions, also of NaN, equals and zeros with signs, for every layout."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check

pytestmark = pytest.mark.once

R = np.random.default_rng(5)
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c16", "c8", "O", "M8[s]", ">f8"]


def described(x: Any) -> Any:
    if isinstance(x, Exception):
        return type(x), str(x)
    return type(x), x.dtype, x.shape, x.strides, x.tolist(), getattr(x, "base", None) is None


def outcome(f: Any, *args: Any) -> Any:
    try:
        return described(f(*args))
    except Exception as e:
        return described(e)


def same(source: str, *args: Any) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    return {source}", names)
    jitted = ds.jit(store=False)(names["f"])
    with ds.config(step_aside=False):
        for _ in range(4):
            for x in args:
                assert outcome(jitted, x) == outcome(names["f"], x), source


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    """Few that differ: equals, zeros of both signs, and NaN."""
    x = R.integers(-2, 3, shape)
    if dtype in ("f8", "f4", "f2", ">f8"):
        made = np.where(x == -2, -0.0, x).astype(dtype)
        made[R.random(shape) < 0.1] = np.nan
        return made
    return (x + 2 if dtype.startswith("u") else x).astype(dtype)


CALLS = [
    "x.argmax(axis=1)",
    "x.argmin(axis=1)",
    "x.argmax(0)",
    "np.argmin(x, axis=0)",
    "np.argmax(x, axis=-1)",
    "x.argmin(axis=-2)",
    "np.argmax(x, axis=1, keepdims=True)",
    "x.argmin(axis=0, keepdims=True)",
    "x.argmin(axis=None)",
    "x.argmin(axis=(0, 1))",
    "x.argmax(axis=2)",
    "x.argmax(axis=True)",
    "x.argmax(axis=1, ddof=1)",
    "x.argmax(1, None)",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", CALLS)
def test_matrices(call: str, dtype: str) -> None:
    wide = values(dtype, (14, 60))
    same(
        call,
        values(dtype, (9, 4)),
        values(dtype, (5, 40)),
        values(dtype, (700, 3))[::-1],
        values(dtype, (4, 6)).T,
        values(dtype, (3, 700)),
        wide[::2, ::3],
        wide[:, :7],
        wide[:, 5:6],
        np.asfortranarray(wide),
        values(dtype, (0, 3)),
        values(dtype, (3, 0)),
        values(dtype, (1, 1)),
        values(dtype, (7,)),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?"])
def test_more_axes(dtype: str, axis: int) -> None:
    x = values(dtype, (4, 5, 6))
    same(f"x.argmax({axis})", x, x[::2], x[:, ::2], x[..., ::2], x.transpose(1, 0, 2), x[:, :1], x[None, 0])
    same(f"np.argmin(x, {axis}, keepdims=True)", x, x[::2], x[:, ::2], x[..., ::2], x.transpose(1, 0, 2))


@pytest.mark.parametrize("dtype", ["f8", "i2", "?"])
def test_large_ones_are_shared(dtype: str) -> None:
    same("x.argmax(axis=1)", values(dtype, (40_000, 3)), values(dtype, (50, 5_000)))
    same("x.argmin(axis=0)", values(dtype, (5, 40_000)), values(dtype, (3_000, 60)))


def test_truth_in_any_byte() -> None:
    x = np.array([[0, 2, 255], [7, 0, 1], [0, 0, 0]], np.uint8).view(bool)
    for call in ("x.argmax(axis=1)", "x.argmin(axis=1)", "x.argmax(axis=0)", "x.argmin(axis=0)"):
        same(call, x)


def test_positions_are_used_further() -> None:
    def nearest(points: Any, centres: Any, n: Any) -> Any:
        for _ in range(n):
            distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
            near = distance.argmin(axis=1)
            centres = centres + np.bincount(near, minlength=len(centres))[:, None] * 0.01
        return near, centres

    check(nearest, (R.random((60, 3)), R.random((4, 3)), 3), (R.random((60, 3)) * np.nan, R.random((4, 3)), 3))
