"""Rows at positions, elements at positions along several axes, columns; and what is stored there: NumPy's values,
layout, errors and warnings."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

pytestmark = pytest.mark.once

R = np.random.default_rng(8)


def described(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(described(item) for item in x)
    if isinstance(x, np.ndarray):
        data = x.tobytes() if x.dtype != object else repr(x.tolist())
        return x.dtype, x.shape, x.strides, data, x.base is None, x.flags.owndata, x.flags.writeable
    return type(x), repr(x)


def outcome(f: Any, x: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            seen = described(f(x, *args))
        except Exception as e:
            seen = type(e), str(e)
    return seen, described(x), [(w.category, str(w.message), w.filename, w.lineno) for w in caught]


def same(source: str, x: Any, *args: Any) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x, *args):\n    i, j, v = (*args, None, None, None)[:3]\n    {source}", names)
    jitted = ds.jit(store=False)(names["f"])
    with ds.config(step_aside=False):
        for _ in range(4):
            assert outcome(jitted, x.copy(order="K"), *args) == outcome(names["f"], x.copy(order="K"), *args), source


ARRAYS = {
    "plane": R.random((6, 5)),
    "turned": R.random((5, 6)).T,
    "steps": R.random((12, 10))[::2, ::-2],
    "whole": R.integers(-9, 9, (6, 5)),
    "single": R.random((6, 5)).astype("f4"),
    "bytes": R.integers(0, 9, (6, 5)).astype("u1"),
    "truth": R.random((6, 5)) > 0.5,
    "complex": R.random((6, 5)) * 1j,
    "triples": R.random((6, 3)),
    "column": R.random((6, 1)),
    "texts": np.array([["a", "bc"]] * 6),
    "objects": np.array([[1, "b"]] * 6, dtype=object),
    "empty": np.zeros((6, 0)),
}
POSITIONS = {
    "some": np.array([0, 5, 2, 2]),
    "negative": np.array([-1, 0, -6]),
    "one": np.array([3]),
    "none": np.array([], dtype=int),
    "table": np.array([[0, 1, 2], [3, 4, 5]]),
    "turned": np.array([[0, 1, 2], [3, 4, 5]]).T,
    "backwards": np.arange(6)[::-1],
    "short": np.array([0, 5], dtype="i1"),
    "unsigned": np.array([0, 5], dtype="u8"),
    "outside": np.array([0, 6]),
    "far below": np.array([0, -7]),
    "floats": np.array([0.0, 1.0]),
}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("array", ARRAYS)
def test_read(array: str, positions: str) -> None:
    x, i = ARRAYS[array], POSITIONS[positions]
    j = i % max(1, x.shape[1]) if i.dtype.kind == "i" else i
    for source in ("x[i]", "x[i, j]", "x[:, j]", "x[i, 0]", "x[-1, j]", "x[i][:, j]", "x[i, :1]", "x[i, i]"):
        same(f"return {source}", x, i, j)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("array", ARRAYS)
def test_write(array: str, positions: str) -> None:
    x, i = ARRAYS[array], POSITIONS[positions]
    j = i % max(1, x.shape[1]) if i.dtype.kind == "i" else i
    values = np.arange(i.size, dtype="f8").reshape(i.shape)
    for v in (
        7,
        2.5,
        True,
        300,
        np.float64(0.5),
        1j,
        2**70,
        values,
        values.astype(x.dtype) if x.dtype.kind in "fiub" else "b",
    ):
        for source in ("x[i] = v", "x[i, j] = v", "x[:, j] = v", "x[i, 0] = v"):
            same(source, x, i, j, v)
        same("x[i] = v", x[:, 0] if x.size else x, i, j, v)
    same("x[i, j] -= 1", x, i, j)
    same("x[i] += 1", x, i, j)


LISTS: tuple[list[Any], ...] = (
    [0, 5, 2],
    [-1],
    [True, False, True, False, False, True],
    [0, True],
    [*range(6)] * 10,
    [],
    [[0, 1], [2, 3]],
    [0, 9],
    [0.5],
    [2**70],
    [np.int64(1), 0],
)


@pytest.mark.parametrize("positions", LISTS, ids=str)
@pytest.mark.parametrize("array", ARRAYS)
def test_lists(array: str, positions: list[Any]) -> None:
    x = ARRAYS[array]
    for source in ("x[i]", "x[i, j]", "x[:, i]", "x[i, 0]", "x[i, :1]", "x[[0, 1, -1]]", "x[[1, 0], [0, 0]]"):
        same(f"return {source}", x, positions, [0] * len(positions))
    for source in ("x[i] = 1", "x[i, j] = 1", "x[i] += 1", "x[i] = x[i]", "x[[0, 1]] = 1"):
        same(source, x, positions, [0] * len(positions))
        same(source, x[:, 0] if x.size else x, positions, [0] * len(positions))


def test_silent_functions() -> None:
    """What NumPy's functions in C do of arrays of numbers shows no frames."""
    i = np.array([0, 2, 1, 2])
    for source in (
        "x.take(i)",
        "x.take(i, axis=0)",
        "np.take(x, i)",
        "x.dot(v)",
        "np.dot(x, v)",
        "np.inner(x, x)",
        "np.vdot(x, x)",
        "np.where(x > 0.5, x, v)",
        "np.where(x > 0.5)",
        "np.bincount(i)",
        "np.bincount(i, minlength=7)",
        "np.bincount(i, i * 0.5, 5)",
        "np.bincount(-i)",
        "np.bincount(x)",
        "x.take(i + 3)",
        "x.take(x)",
        "np.dot(x, i)",
    ):
        same(f"return {source}", R.random((3, 3)), i, None, R.random(3))


def test_functions_that_warn_show_their_frames() -> None:
    """A product of floats, or a cast, may warn: the line that is warned of is the program's."""
    special = np.array([np.nan, np.inf, 1e300])
    signalling = np.array([0x7F800001] * 3, np.uint32).view(np.float32)
    for source in (
        "np.dot(x, v)",
        "np.inner(x, v)",
        "np.vdot(x, v)",
        "x.dot(v)",
        "np.where(x > 0, s, v)",
        "np.where(x > 0, s, 1.0)",
        "np.bincount(i, x * (1 + 1j))",
        "x.take(i, 0, i.copy())",
        "x.take(i, 0, np.zeros(3, np.int8))",
        "x.take(i, 0, s, 'clip')",
    ):
        same(f"s = j.copy(); return {source}", special, np.arange(3), signalling, np.array([np.inf, 0.0, 1e300]))


def test_more_axes() -> None:
    x, i, j = R.random((4, 3, 5)), np.array([0, 3, -1]), np.array([2, 0, 1])
    for source in ("x[i]", "x[i, j]", "x[i, j, j]", "x[i, 1, j]", "x[:, j]", "x[:, :, j]", "x[i[:, None], j]"):
        same(f"return {source}", x, i, j)
    for source in ("x[i, j, j] = 5", "x[i, 1, j] = 5", "x[i, j] = 5", "x[i] = 5"):
        same(source, x, i, j)


def test_what_overlaps() -> None:
    i = np.array([3, 0, 1, 1])
    for source in ("x[i] = x[:4]", "x[i] = x[::-1][:4]", "k = i.copy(); k[k] = 2; return k", "x[i] = x[i]"):
        same(source, np.arange(6.0), i.copy())
    same("x[x] = 0", np.arange(6))
    same("x[i] = 1.0", np.broadcast_to(np.arange(3.0), (4, 3))[0], np.array([0, 1]))


def test_later_values_stay() -> None:
    same("x[i] = v", np.zeros(4), np.array([1, 1, 2, 1]), None, np.array([1.0, 2.0, 3.0, 4.0]))
    same("x[i, i] = v", np.zeros((4, 4)), np.array([1, 1, 2, 1]), None, np.array([1.0, 2.0, 3.0, 4.0]))


def test_read_only_and_subclasses() -> None:
    locked = np.arange(6.0)
    locked.flags.writeable = False
    jitted = ds.jit(store=False)(lambda x, i: x.__setitem__(i, 0.0))
    for _ in range(4):
        with pytest.raises(ValueError, match="read-only"):
            jitted(locked, np.array([0, 1]))

    class Own(np.ndarray):
        pass

    own = R.random((4, 3)).view(Own)
    get = ds.jit(store=False)(lambda x, i: (x[i], x[i, i % 3], x[:, i % 3]))
    for _ in range(4):
        got = get(own, np.array([0, 1]))
        assert [type(item) for item in got] == [Own] * 3
