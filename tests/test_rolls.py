"""np.roll read where it lies: in kernels, over the edges."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check

pytestmark = pytest.mark.once

R = np.random.default_rng(3)


def agrees(function: Any, *arguments: Any) -> None:
    def observed(*args: Any) -> Any:
        made = function(*args)
        several = made if isinstance(made, tuple) else (made,)
        return [(a, a.strides, str(a.flags), a.base is None) for a in several]

    check(observed, arguments, rounds=8)
    ds.wait()
    want, jitted = function(*arguments), ds.jit(function)
    for _ in range(10):
        got = jitted(*arguments)
        ds.wait()
        for a, b in zip(
            got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
        ):
            assert (a.dtype, a.shape, a.strides, str(a.flags)) == (b.dtype, b.shape, b.strides, str(b.flags))
            assert a.tobytes() == b.tobytes()


def diffused(u: Any, c: Any) -> Any:
    return u + c * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u)


def around(g: Any) -> Any:
    n = np.roll(g, 1, 0) + np.roll(g, (1, 1), (0, 1)) + np.roll(np.roll(g, -1, 0), 1, 1) + np.roll(g, -1, (0, 1))
    return np.where((n == 3) | ((g == 1) & (n == 2)), 1, 0)


def far(u: Any) -> Any:
    return np.roll(u, 7, -1) - np.roll(u, -100, 0) * np.roll(np.roll(u, 3, 0), 3, 0) + np.roll(u, 0, 1), np.roll(
        u, (2, 3), (1, 1)
    ) + 1


@pytest.mark.parametrize(
    "shape", [(30, 40), (200, 200), (3, 500), (1, 60), (60, 1), (2, 2), (5, 4, 6), (1, 1)], ids=str
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "i2"])
def test_stencils_on_a_torus(shape: Any, dtype: str):
    u = (R.random(shape) * 3).astype(dtype)
    agrees(diffused, u, 2)
    agrees(around, u)
    agrees(far, u)


def named(u: Any) -> Any:
    left, right = np.roll(u, 1), np.roll(u, -1)
    s = left + right
    total = float(s.sum())
    return s - total, left, right, np.roll(u, 2)


def test_vectors():
    for n in (1, 2, 3, 50, 1000, 40_001):
        agrees(named, R.random(n))


def two_ranks(u: Any, v: Any) -> Any:
    return np.roll(u, 1, 0) + np.roll(v, 2, 1) * np.roll(v, -1, 0), np.exp(np.roll(u, 1, 0)) - np.roll(v, 1, 1)


def test_broadcast():
    agrees(two_ranks, R.random(60), R.random((50, 60)))
    agrees(two_ranks, R.random((50, 1)), R.random((50, 60)))
    agrees(two_ranks, R.random((1, 60)), R.random((50, 60)))


def test_layouts():
    u = R.random((60, 80))
    for a in (
        u.T,
        np.asfortranarray(u),
        u[:, ::2],
        u[::2],
        u[::-1],
        u[:, ::-1],
        u[1:-1, 1:-1],
        np.broadcast_to(u[0], (60, 80)),
    ):
        agrees(diffused, a, 0.1)
        agrees(far, a)


def changed(u: Any) -> Any:
    a = np.roll(u, 1, 0)
    b = np.roll(u, 1, 1) + 1
    u[2:5] = 7.0
    c = a + b
    u += np.roll(u, 1, 1)
    u[1:] = np.roll(u, 1, 0)[1:] * 2
    return a + c, b, u.copy()


def test_what_was_rolled_is_changed():
    u = R.random((70, 80))
    for small in (u, u[:5, :6].copy()):
        want = changed(small.copy())
        jitted = ds.jit(changed)
        for _ in range(10):
            got = jitted(small.copy())
            ds.wait()
            assert all(a.tobytes() == b.tobytes() for a, b in zip(got, want, strict=True))


def computed(u: Any) -> Any:
    v = u * 2 + 1
    return np.roll(v, 1, 0) - v, np.roll(np.roll(v, 1, 0) + 1, 1, 1) * 2


def stepped(u: Any, n: int) -> Any:
    for _ in range(n):
        u = u + 0.1 * (np.roll(u, 1, 0) - u)
    return u


def test_what_is_computed_first():
    agrees(computed, R.random((50, 70)))
    agrees(stepped, R.random((50, 70)), 30)


def test_flags():
    u = R.random((50, 60))
    u[7, 0], u[0, 9], u[49, 59] = np.inf, -np.inf, 1e308
    check(diffused, (u, 3.0), (np.where(u > 0.9, np.nan, u), 1.0), rounds=12)


def odd(u: Any, s: Any) -> Any:
    return np.roll(u, s, 0) + 1, np.roll(u, True, 0) * 2, np.roll(u, 2) + u, np.roll(u, [1, 2], axis=(0, 1)) - 1


def test_other_ways_to_call_it():
    agrees(odd, R.random((50, 60)), 3)
    agrees(odd, R.random((50, 60)), np.int64(-3))
    check(lambda u: np.roll(u, 1, 5) + 1, (R.random((5, 6)),))
    check(lambda u: np.roll(u, 1.5, 0) + 1, (R.random((5, 6)),))


def moved(u: Any, axes: Any, shifts: Any) -> Any:
    """Shifts that only the run knows: a step, not part of a kernel."""
    out = []
    for dy in shifts:
        out.append(np.roll(u, dy, axes[0]))
        for dx in shifts:
            out.append(np.roll(u, (dy, dx), axis=axes))
    return [(v, v.flags.owndata, v.flags.c_contiguous, v.strides, v.dtype.char) for v in out]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8", "c16", ">f8", "f2", "M8[s]", "O", "U3", "g"])
def test_shifts_that_the_run_knows(dtype: str):
    u = np.arange(60).reshape(3, 4, 5).astype(dtype)
    for given in (u, u[:, ::2], u.T, u[::-1], u[:0], u[0], u[:1, :, :1], np.asfortranarray(u)):
        axes = (0, 1) if given.ndim > 1 else (0, 0)
        check(moved, (given, axes, (-1, 0, 2, 1_000_003, True)), rounds=4)
        check(moved, (given, (-1, -1), (1, 7)), rounds=4)


def refused(u: Any, axes: Any, shifts: Any) -> Any:
    told = []
    for k in (1, 2):
        for by in shifts:
            try:
                told.append(np.roll(u, by, axis=axes).tolist())
            except Exception as error:
                told.append((type(error).__name__, str(error)))
        told.append(k)
    return told


def test_what_np_roll_itself_refuses_or_takes():
    u = np.arange(12).reshape(3, 4)
    shifts = (1, (1, 2), (1, 2, 3), 1.5, None, (np.int64(1), 2), [1, 2], (), "ab", 1 << 80, np.float64(2.0))
    for axes in (0, (0, 1), (1,), (), 2, (0, 5), None, [0, 1], (0, 1.0)):
        check(refused, (u, axes, shifts), rounds=4)
