"""What NumPy does on arrays of numbers and scalars without running code or warning links no frames
(replay/machine/silent_numpy.h), small arrays of one number and copies are made at once, and views that are kept are
built by numbers."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

GRID = np.arange(24.0).reshape(2, 3, 4)
WAVE = GRID[0] * (1 + 0.5j) - 3j


def views_kept(a: Any, n: Any) -> Any:
    kept, out, last = [], None, None
    for i in range(n):
        out = a[i % 2]
        kept.append(a[i % 2, -1])
        last, before = a[..., i % 3], last
        kept += [a[:, i % 3], a[i % 2][None], a[::-1, 1:], before]
        if i > 2:
            out[0] = kept[0]
    return (
        kept,
        out,
        [v.base is a for v in kept if v is not None],
        [v.flags["OWNDATA"] for v in kept if v is not None],
        last,
    )


def test_views_that_are_kept() -> None:
    for a in (
        GRID,
        GRID.astype(np.float32),
        GRID.astype(complex),
        GRID.astype(np.uint8),
        np.asfortranarray(GRID),
        GRID[::-1],
    ):
        check(views_kept, (a, 5))
        settles(views_kept, (a, 5))


def test_a_view_that_is_kept_holds_its_array() -> None:
    def held(a: Any, n: int) -> Any:
        out, counts = None, []
        for i in range(n):
            out = a[i % 2]
            counts.append(sys.getrefcount(a))
        del out
        counts.append(sys.getrefcount(a))
        return counts

    check(held, (GRID, 6))


def test_positions_that_are_out_of_bounds() -> None:
    def kept(a: Any, at: Any) -> Any:
        out = None
        for i in at:
            out = a[i]
        return out

    check(
        kept, (GRID, [0, 1, -1]), (GRID, [0, 1, 2]), (GRID, [0, True]), (GRID, [0, np.int32(1), None]), (GRID, [1, 0.5])
    )


def scalars(a: Any, n: Any) -> Any:
    total, last, parts = 0, 1.0, []
    for i in range(n):
        z = a[i % 3, i % 4]
        total = total * 0.5 + z
        last = z * last - 2
        a[i % 3, 0] = z * (1 + 1j)
        parts += [abs(z), z.real, z.imag, z.item(), a.real[0, 0], a[0].T.size]
        total -= 1j
    return total, last, parts, type(total), a


def test_complex_scalars() -> None:
    for scale in (1.0, 1e150, 1e300, 1e-160, 5e-324, np.inf, np.nan, 0.0):
        with np.errstate(all="ignore"):
            scaled = WAVE * scale
        for mode in ("warn", "raise", "ignore"):
            with np.errstate(all=mode), np.errstate(under="ignore" if mode == "warn" else mode):
                check(scalars, (scaled, 6))
    settles(scalars, (WAVE, 9))


def test_complex_scalars_are_left_to_numpy_where_a_flag_comes_up() -> None:
    def grown(a: Any, n: Any) -> Any:
        z, s = a[0, 1], a[0, 1]
        for _ in range(n):
            z = z * z
            s = s * 1e-60
        return z, s

    caught = []
    for function in (grown, ds.jit(store=False)(grown)):
        for _ in range(4):
            with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
                warnings.simplefilter("always")
                function(WAVE, 14)
            caught.append([(str(w.message), w.lineno) for w in seen])
    assert caught[0] and all(one == caught[0] for one in caught)


def methods(a: Any, value: Any, n: Any) -> Any:
    out = []
    for i in range(n):
        row = a[i % 2].copy()
        row.fill(value)
        out += [row, row.tolist(), list(a[i % 2]), tuple(row[0]), a.copy(), a.T.copy(), a[..., ::2].copy()]
        other = a[0, ::-1].copy()
        other.sort()
        out += [other, a[i % 2, 0, 0].item()]
    return out


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16", ">f8", "f2"])
def test_methods(dtype: str) -> None:
    a = GRID.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(
            methods,
            *[
                (a, value, 4)
                for value in (1, 0.5, np.nan, 1e300, 2j, 1 << 70, np.float64(3), np.complex128(1), None, "2")
            ],
        )


def rearranged(a: Any, axis: Any, n: Any) -> Any:
    out = []
    for i in range(n):
        out += [a.argmax(axis=axis), a.argmin(axis), a.argsort(axis=axis, kind="stable"), a.repeat(i, axis=axis)]
        out += [a.copy("F"), a.flatten(), a.ravel(order="K"), a.reshape(-1, 2), a.reshape((3, -1)), a.swapaxes(0, -1)]
        out += [a.transpose(), a.transpose(1, 0, 2), a.nonzero(), a[:1].squeeze(axis=0), a.diagonal(0, 1, 2)]
    return out, [v.flags["F_CONTIGUOUS"] for v in out if isinstance(v, np.ndarray)]


@pytest.mark.parametrize("dtype", ["f8", "u1", "?", "c16", ">f8", "O"])
@pytest.mark.parametrize("axis", [0, None, 3, True, (0, 1), np.int64(1)], ids=repr)
def test_arrays_rearranged(dtype: str, axis: Any) -> None:
    check(rearranged, (GRID.astype(dtype), axis, 3))


def test_what_may_not_be_written() -> None:
    def filled(a: Any, n: Any) -> Any:
        for _ in range(n):
            a.fill(0.5)
            a.sort()
            a[0] = 1.0
        return a

    fixed = GRID[0].astype(complex)
    fixed.flags.writeable = False
    jitted = ds.jit(store=False)(filled)
    for _ in range(4):
        with pytest.raises(ValueError, match="read-only"):
            jitted(fixed, 2)
    assert np.array_equal(jitted(GRID[0, 0].copy(), 2), filled(GRID[0, 0].copy(), 2))


def made(shape: Any, value: Any, low: Any, high: Any) -> Any:
    out = []
    for _ in range(3):
        out += [np.ones(shape), np.full(shape, value), np.arange(high), np.arange(low, high)]
        out += [(v.flags["C_CONTIGUOUS"], v.flags["F_CONTIGUOUS"], v.base is None, v.strides) for v in out[-4:]]
    return out


@pytest.mark.parametrize(
    "shape", [3, (2, 3), (1, 1), (4, 1, 2), 0, (2, 0), (), -1, [2, 2], np.int64(2), 2.0, True, (200, 200)], ids=repr
)
def test_arrays_of_one_number(shape: Any) -> None:
    check(made, (shape, 2.5, 1, 4), (shape, -3, -4, 4), (shape, -0.0, 3, 3), (shape, 1 << 63, 5, 2))


@pytest.mark.parametrize(
    "value", [True, np.float64(2.5), np.float32(2.5), np.int8(3), 1j, None, "a", np.nan, [1, 2], 1 << 62], ids=repr
)
def test_fill_values(value: Any) -> None:
    check(made, ((2, 2), value, 0, 3))


@pytest.mark.parametrize(
    "low, high",
    [(0.0, 3), (0, 3.5), (True, 3), (0, np.int64(3)), (-(1 << 63), 1 << 62), (0, 1 << 64), (0, None), ("a", 2)],
)
def test_bounds(low: Any, high: Any) -> None:
    def counted(low: Any, high: Any) -> Any:
        return [np.arange(low, high) for _ in range(3)]

    if high == 1 << 62:
        high = low + 5
    check(counted, (low, high), (1, 4), (low, high))
