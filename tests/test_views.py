"""Views of arrays that are not built, what is computed through them, and what is written through them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting, settles

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

R = np.random.default_rng(3)
A = R.random((8, 8)) + 1.0
DTYPES = ("f8", "f4", "i8", "i4", "c16", "u1", ">f8")


def eliminate(a: Any) -> Any:
    n = len(a)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def factorize(a: Any) -> Any:
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= np.dot(a[i, :i], a[:i, j])
    return a


def solve(lower: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i].dot(x[:i])) / lower[i, i]
    return x


def orthogonalize(a: Any, q: Any, r: Any) -> Any:
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return a, q, r


def into(u: Any, t: Any, k: Any) -> Any:
    seen = []
    for i in range(7):
        np.subtract(u[2:], u[1:-1], out=t)
        np.add(t, u[:-2], out=t)
        np.multiply(t, k, out=t)
        u[1:-1] += t
        made = np.minimum(u[:-1], u[1:], out=u[1:])  # read and written
        np.abs(u[::2] - k, out=u[::2])
        np.sqrt(k, out=t)  # of a number
        np.maximum(t[:1], u[i % 3 : i % 3 + len(t)], out=t)
        back = np.negative(t, out=t)
        seen.append((back is t, made.base is u, made.strides, made.tolist(), t.tolist()))
    return u, t, seen


def of_two(a: Any, b: Any, t: Any) -> Any:
    for i in range(4):
        np.minimum(a + b, a * b - i, out=t)
        np.subtract(a + t, b / 2, out=a)
        np.multiply(t * 2, t, out=t)
        b = a.copy()
        b[1:-1] = a[2:] - a[:-2] * 0.5
        a = b
    return a, b, t


def nearer(d: Any) -> Any:
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[k], out=d)
        np.add(d[0], 1, out=d[k])
    return d


def shortest(d: Any) -> Any:
    for k in range(len(d)):
        for i in range(len(d)):
            d[i, :] = np.minimum(d[i, :], d[i, k] + d[k, :])
    return d


def smooth(a: Any, b: Any, turns: Any) -> Any:
    for _ in range(turns):
        b[1:-1] = 0.25 * (a[:-2] + 2.0 * a[1:-1] + a[2:])
        a[1:-1] = 0.25 * (b[:-2] + 2.0 * b[1:-1] + b[2:])
    return a, b


def in_three_dimensions(a: Any, b: Any) -> Any:
    for _ in range(3):
        b[1:-1, 1:-1, 1:-1] = (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1]) + a[1:-1, 1:-1, 2:]
        a[..., 0] = b[..., -1]
        a[:, 1] += b[:, 2]
    return a, b


@pytest.mark.parametrize("inner_loops", [0, 4000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_programs_on_rows_and_columns(dtype: str, inner_loops: int) -> None:
    def a(order: str = "C") -> Any:
        return np.array(A * 3, dtype=dtype, order=order)  # type: ignore[call-overload]

    with ds.config(inner_loops=inner_loops):
        for program in (eliminate, factorize, shortest):
            check(program, (a(),), (a("F"),), (a()[::-1, ::2][:4],))
        check(solve, (a(), a()[0].copy()), (a("F"), a()[:, 1]))
        check(orthogonalize, (a(), a(), a()), (a("F"), a(), a()[::-1]))
        check(smooth, (a()[0].copy(), a()[1].copy(), 4), (a()[:, 0], a()[:, 1], 4), (a(), a("F"), 3))
        check(in_three_dimensions, (a().reshape(4, 4, 4), a().reshape(4, 4, 4)))


def test_they_run_without_a_kernel_or_a_view() -> None:
    with ds.config(background=False):
        jitted = ds.jit(store=False)(eliminate)
        for _ in range(10):
            jitted(A.copy())
        with counting(jitted) as grown:
            assert (jitted(A.copy()) == eliminate(A.copy())).all()
    assert (grown["replays"], grown["kernel_launches"]) == (1, 0)


def indices(a: Any, k: Any, n: Any) -> Any:
    out = []
    for i in range(n):
        out.append((a[k:] + 1)[..., -1].sum())
        out.append((a[:k] * 2).shape)
        out.append((a[::2] - a[::-2][::-1]).shape == a.shape)
        out.append((a[i, ::-1] + a[i, -k:][:1]).tolist())
        out.append((a[None, i] + a[i, :, None]).shape)
        out.append((a[..., k] + a[:, k]).tolist())
        out.append((a[-1 - i : k : -1] * 1).tolist())
        out.append((a[100:200] + 1).shape)
        out.append((-a[np.int64(i), 1:k]).tolist())
    return out


def test_indices() -> None:
    check(indices, (A, 3, 3), (A[::-1], 2, 4), (A.T, 5, 2), (A[:, ::-2], 1, 3))


def wrong(a: Any, b: Any, i: Any, k: Any) -> Any:
    for j in range(3):
        a[i, k:] -= b[j, :]
        a[i, :] = b[j, k:] * 2.0
        a[i] += b[j] @ a[i + j]
    return a


def test_what_raises_does_so_where_eager_does() -> None:
    good = (A.copy(), A.copy(), 1, 0)
    for bad in (
        (A.copy(), A.copy(), 9, 0),
        (A.copy(), A.copy(), 1, 2),
        (A.copy(), A[:, :3].copy(), 1, 0),
        (A.copy(), A[:2].copy(), 1, 0),
        (A.copy(), A.copy(), 6, 0),
        (A[0].copy(), A.copy(), 1, 0),
        (A.copy(), A.copy(), "x", 0),
        (A.copy(), A.copy(), 1, None),
        (A.copy(), None, 1, 0),
    ):
        check(wrong, good, bad)
    fixed = A.copy()
    fixed.flags.writeable = False

    def locked(a: Any, lock: Any) -> Any:
        for i in range(6):
            a[i, 1:] -= a[i, :-1]
            if i == lock:
                a.flags.writeable = False
        return a

    check(locked, (A.copy(), 9), (A.copy(), 3))
    check(wrong, good, (fixed, A.copy(), 1, 0))


def overlapping(a: Any, k: Any) -> Any:
    for i in range(4):
        a[1:] += a[:-1]
        a[:-1] = a[1:]
        a[k:] = a[: len(a) - k]
        a[::-1] = a
        a[i:] -= a[i]
    return a


def test_what_is_read_while_it_is_written() -> None:
    check(overlapping, (A.copy(), 2), (A[0].copy(), 3), (A[:, 0], 1), (np.arange(9), 4), (A.copy().T, 5))


def flagged(a: Any, b: Any) -> Any:
    for i in range(len(a)):
        a[i, 1:] /= b[i, 1:]
        a[i] = a[i] * 1e300 - b[i, :1]
        s = a[i] @ a[i]
        b[i, 0] = s
    return a, b


@pytest.mark.parametrize("mode", ["warn", "ignore", "raise"])
def test_flags_come_up_before_anything_is_written(mode: Any) -> None:
    def run(a: Any, b: Any) -> Any:
        with np.errstate(all=mode):
            return flagged(a, b)

    zero, large = A.copy(), A.copy()
    zero[5, 3] = 0.0
    large[4] = 1e200
    nan = np.where(A > 1.9, np.nan, A)
    check(
        run, (A.copy(), A.copy()), (A.copy(), zero), (large.copy(), A.copy()), (nan.copy(), A.copy()), (zero * 0, zero)
    )


@pytest.mark.parametrize("mode", ["warn", "raise"])
def test_flags_that_numpy_raises_through_the_c_library(mode: Any) -> None:
    """glibc raises overflow and underflow in the x87 unit alone."""

    def run(a: Any, b: Any, k: Any) -> Any:
        with np.errstate(all=mode):
            b[1:] = np.exp(a[1:])
            return a // k, np.exp2(a[:3])

    plain, large = np.ones(8, "f4"), np.resize(np.array(16777217.0, "f4"), 8)
    least = np.full(8, np.iinfo(np.int64).min)
    check(run, (plain, plain.copy(), 1), (large, plain.copy(), 1), (-large, plain.copy(), 1))
    check(lambda a, k: a // k, (np.arange(8), -1), (least, -1), (np.arange(8), 0))
    check(lambda a, k: a % k, (np.arange(8.0), -1.0), (np.arange(8.0), 0.0), (np.arange(8.0) * 1e300, 1e-300))


def identities(a: Any, n: Any) -> Any:
    out = []
    for i in range(n):
        v = a[i, 1:]
        w = v
        v -= 1.0
        x = a[i, 1:]
        y = x + 1.0
        x += y
        out.append((v is w, w is x, v.base is a, x.flags.owndata, x.strides, w[0] == x[0]))
    return out, v, w, x, a


def test_who_is_who() -> None:
    check(identities, (A.copy(), 5), (A.copy()[:, ::-2], 4))


def kept(a: Any, b: Any, stop: Any) -> Any:
    last = a[0, 1:3]
    for i in range(len(a)):
        row = a[i, 1:3]
        b[i, 1:3] = row * 2.0
        if i == stop:
            break
        last = row
    return last, row, row.base is a, last.base is a, locals().keys(), b


def test_variables_that_hold_views() -> None:
    check(kept, (A.copy(), A.copy(), 3), (A.copy(), A.copy(), 9), (A.copy(), A.copy(), 0))


def seen(a: Any, look: Any) -> Any:
    out = []
    for i in range(5):
        v = a[i, 2:]
        t = v * 2.0
        out.append(look())
        v += t
        out.append(look())
        a[i, :2] = t[:2]
    return out, a


def test_who_looks_sees_views() -> None:
    def look() -> Any:
        import sys

        frame = sys._getframe(1).f_locals
        return {k: (repr(v), v.shape) for k, v in frame.items() if isinstance(v, np.ndarray) and k != "a"}

    check(seen, (A.copy(), look), (A.copy(), lambda: None))


def test_a_view_keeps_what_it_is_a_view_of() -> None:
    def temporary(n: Any) -> Any:
        s = 0.0
        for i in range(n):
            v = (np.zeros(20) + i)[3:]
            s += v @ v
            v *= 2.0
            w = np.arange(50.0)[i : i + 4]
            s += w @ w
        return s, v, w

    check(temporary, (4,), (9,))
    jitted = ds.jit(store=False)(temporary)
    for _ in range(6):
        jitted(6)
    before = len(gc.get_objects())
    for _ in range(200):
        jitted(6)
    assert len(gc.get_objects()) < before + 50


def test_arrays_die_when_eager_lets_them() -> None:
    deaths = []

    def drop(arrays: Any) -> Any:
        s = 0.0
        for i in range(len(arrays)):
            a = arrays.pop()
            weakref.finalize(a, deaths.append, i)
            s += a[1:] @ a[:-1]
            a[1:] -= a[:-1] * s
        return s

    def run(function: Any) -> Any:
        deaths.clear()
        return function([A[i].copy() for i in range(6)]), list(deaths)

    jitted = ds.jit(store=False)(drop)
    expected = run(drop)
    for _ in range(6):
        assert run(jitted) == expected


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?", "c16"])
def test_products_of_vectors(dtype: str) -> None:
    def products(a: Any, b: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(a[:i] @ b[:i])
            out.append(np.dot(a[:i], b[:i]))
            out.append(np.matmul(a[::2][:i], b[::2][:i]))
            out.append(a[:i].dot(b[:i]))
            out.append(a[::-1][:i] @ b[:i])
            out.append(np.dot(a[::-1][:i], b[:i]))
            out.append(np.dot(a[: i * 2 : 2], b[: i * 2 : 2]))
        return out, [type(x) for x in out]

    x, y = (np.array(v * 7, dtype) for v in (A[0], A[1]))
    check(products, (x, y, 5), (x, y[::-1], 4))
    if dtype in ("f8", "f4"):
        special = np.array([-0.0, 0.0, np.nan, np.inf, 1e300 if dtype == "f8" else 1e38, -0.0], dtype)
        with np.errstate(all="ignore"):
            check(products, (special, special, 4), (special, -special, 6))
            zeros = np.full(6, -0.0, dtype)
            check(products, (zeros, np.ones(6, dtype), 6), (special, special, 6))
    check(products, (x, y, 3), (x, y[:2], 6))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?", "c16"])
def test_reductions_of_vectors(dtype: str) -> None:
    def reductions(a: Any, n: Any, k: Any) -> Any:
        out = []
        for i in range(1, n):
            out.append((a[:i].sum(), a[:i].max(), a[:i].min()))
            out.append((np.sum(a[i:]), np.max(a[i:]), np.min(a[i:])))
            out.append((np.sum(a[::k][:i]), a[::k].max(), np.min(a[::k])))
            out.append((a[k * i :: -1].sum(), np.max(a[: k * i : 2]), (a[:i] * 1).min()))
        return out, [type(x) for row in out for x in row]

    x = np.array(R.standard_normal(600) * 9, dtype)
    check(
        reductions, (x[:40].copy(), 39, 1), (x, 290, 2), (x[::-1], 200, 3), (x.reshape(60, 10)[:, 3], 30, 2), rounds=2
    )
    check(reductions, (x[:40].copy(), 39, 1), (x[:9].copy(), 20, 1), (x[:0].copy(), 3, 1), (x.reshape(60, 10), 5, 1))
    if dtype in ("f8", "f4"):
        zeros = np.where(x > 0, 0.0, -0.0).astype(dtype)
        large = np.full(40, 1e308 if dtype == "f8" else 3e38, dtype)
        special = np.where(x > 11, np.nan, np.where(x < -11, np.inf, x)).astype(dtype)
        check(reductions, (zeros, 70, 1), (np.full(40, -0.0, dtype), 30, 1), (special, 99, 1), (large, 9, 1))


def test_settles() -> None:
    settles(solve, (np.tril(A), A[0].copy()))
    settles(factorize, (A.copy(),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_computing_into_arrays(dtype: str) -> None:
    u, t = (R.random(12) * 9).astype(dtype), np.zeros(10, dtype)
    read_only = t.copy()
    read_only.flags.writeable = False
    check(
        into,
        (u, t, 0.5),
        (u, t, 3),
        (u, t, np.float64(0.25)),
        (u, t, np.float32(0.25)),
        (u, t[::-1], 2),
        (u, np.zeros((1, 10), dtype), 2),
        (u, np.zeros(9, dtype), 2),
        (u, np.zeros(10, "f8"), 2),
        (u, read_only, 2),
        (u, t, 1e308),
        (u, t, np.ones(10)),
    )
    check(nearer, ((R.random((6, 6)) * 9).astype(dtype),), (np.zeros((6, 5), dtype),), (np.zeros((2, 3, 3), dtype),))


@pytest.mark.parametrize("n", (3, 40, 9000))
def test_computing_into_arrays_of_all_sizes(n: int) -> None:
    a, b = R.random(n), R.random(n)
    for kernels in (True, False):
        with ds.config(kernels=kernels):
            check(of_two, (a, b, np.zeros(n)), (a * 1e308, b * 1e308, np.zeros(n)), (a, b, np.zeros(n - 1)))


def test_computing_into_arrays_is_compiled() -> None:
    settles(into, (R.random(12), np.zeros(10), 0.5))
    settles(nearer, (R.random((6, 6)),))
