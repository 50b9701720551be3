"""Groups of array operations too large for NumPy's inner loops: their kernel goes through views that are not built.

Of the largest ones they are built, as the kernel lets go of the GIL; but what ends the group by a write is still its
last operation.
"""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting

R = np.random.default_rng(5)
SMALL = 12_000  # elements of a row: more than inner loops do
SIZES = [
    SMALL,
    250_000,
    400_000,
]  # the GIL is let go of; what is written is first made in an array, not in memory of the thread's


def smooth(a: Any, b: Any) -> Any:
    for _ in range(4):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
        a[2:] = 0.5 * (a[:-2] - 1)  # reads what it writes
    return a, b


def leap(e: Any, h: Any) -> Any:
    for _ in range(4):
        e[1:, :] -= 0.5 * (h[1:, :] - h[:-1, :])
        e[:, 1:] += h[:, 1:] * h[:, :-1]
        h[:-1, :-1] *= 0.7 + e[:-1, 1:] - e[1:, :-1]
        h[0, :] = e[0] * 2 - 1  # of another shape than the view it is in
        h[:, :] = e[:1] + 1
    return e, h


def limited(a: Any, b: Any) -> Any:
    for _ in range(4):
        d = a[2:] - a[:-2]
        b[1:-1] = np.where(d > 0, d, a[1:-1] * 0.5).astype(a.dtype)
        kept = a[1:] + b[:-1]
    return a, b, kept, d


def scaled(a: Any, by: Any) -> Any:
    for k in range(3):
        a[k:-1] = (a[k + 1 :] - by) * by + k
    return a


def divided(a: Any, b: Any, out: Any) -> Any:
    for _ in range(3):
        out[1:-1] = (a[1:-1] + 1) / b[1:-1] * 2
        out[:-1] /= b[1:] + 0
    return out


@pytest.mark.parametrize(
    ("dtype", "n"), [*((dtype, SMALL) for dtype in ("f8", "f4", "i8", "i4")), ("f8", SIZES[1]), ("f4", SIZES[2])]
)
def test_views_are_read_and_written(dtype: str, n: int) -> None:
    def row() -> Any:
        return (R.random(n) * 100).astype(dtype)

    rows = n // 110

    def grid() -> Any:
        return (R.random((rows, 110)) * 9).astype(dtype)

    check(smooth, (row(), row()), (row()[::-1], row()), (row()[::2], row()[1::2]), (a := row(), a))
    check(limited, (row(), row()), (row()[::-1], row()[::-1]))
    if dtype[0] == "f":
        check(leap, (grid(), grid()), (grid().T, grid().T), (grid()[::-1], grid()[:, ::-1]), (g := grid(), g))
        check(leap, (np.asfortranarray(grid()), grid()), (grid(), np.empty((rows, 0), dtype)), (grid(), grid()[:1]))
    for by in (2, True, np.float32(2), np.float64(3), np.int64(3), np.int8(3), 2.5, 10**30):
        check(scaled, (row(), by), (row()[::-1], by))


@pytest.mark.parametrize("n", SIZES)
def test_every_group_is_one_launch(n: int) -> None:
    with ds.config(background=False):
        jitted = ds.jit(store=False)(smooth)
        for _ in range(10):
            jitted(R.random(n), R.random(n))
        with counting(jitted) as grown:
            a, b = R.random(n), R.random(n)
            want = smooth(a.copy(), b.copy())
            assert all((x == y).all() for x, y in zip(jitted(a, b), want, strict=True))
    assert (grown["replays"], grown["kernel_launches"]) == (1, 12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("background", [True, False])  # True: the kernels are still being compiled, NumPy's loops do it
def test_nothing_is_written_where_a_flag_is_up(background: bool, n: int) -> None:
    a, b, zeros = R.random(n), R.random(n) + 1, R.random(n) + 1
    zeros[n // 2] = 0
    with ds.config(background=background):
        jitted = ds.jit(store=False)(divided)
        for _ in range(6):
            jitted(a, b, np.zeros(n))
        for how in ("raise", "warn", "ignore"):
            for error in (False, True):
                for divisor in (zeros, b):
                    outcomes = []
                    for f in (divided, jitted):
                        out = np.ones(n)
                        with np.errstate(all=how), warnings.catch_warnings(record=True) as caught:  # type: ignore[call-overload]
                            warnings.simplefilter("error" if error else "always")
                            try:
                                f(a, divisor, out)
                                said = ""
                            except (FloatingPointError, RuntimeWarning) as e:
                                said = repr(e)
                        outcomes.append((said, [str(w.message) for w in caught], out.tobytes()))
                    assert outcomes[0] == outcomes[1], (how, error)


@pytest.mark.parametrize("n", SIZES)
def test_a_read_only_array_is_not_written(n: int) -> None:
    with ds.config(background=False):
        jitted = ds.jit(store=False)(smooth)
        for _ in range(6):
            jitted(R.random(n), R.random(n))
        a, b = R.random(n), R.random(n)
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            jitted(a, b)


def test_what_is_written_is_no_array_first() -> None:
    def step(e: Any, h: Any) -> None:
        for _ in range(4):
            e[1:] -= 0.5 * (h[1:] - h[:-1])
            h[:-1] = e[1:] * 0.7 - e[:-1]

    n = SIZES[1]
    with ds.config(background=False):
        jitted = ds.jit(store=False)(step)
        for _ in range(6):
            jitted(R.random(n), R.random(n))
        arrays = R.random(n), R.random(n)
        tracemalloc.start()
        jitted(*arrays)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < arrays[0].nbytes / 2
