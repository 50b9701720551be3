"""Elements by a mask: a[m], a[m] = v."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

pytestmark = pytest.mark.once

R = np.random.default_rng(8)
DTYPES = ("?", "i1", "u2", "i4", "f4", "f8", "i8", "c8", "c16", "f2", "g", ">f8", "O", "M8[s]", "U3")


def facts(a: Any) -> Any:
    return a, a.dtype.str, a.strides, str(a.flags), a.base is None


def by_mask(a: Any, t: Any) -> Any:
    m = t > 0.5
    return [facts(a[m]), facts(a[~m]), facts(a[t > 2]), facts(a[t < 2]), facts(a[m & (t < 0.7)])]


def values(shape: Any, dtype: str) -> Any:
    return (R.random(shape) * 50).astype("i8").astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_taken(dtype: str):
    for shape in ((7,), (300,), (20, 31), (5, 6, 7), (2, 3, 4, 5), (0,), (3, 0), (1, 1)):
        a, t = values(shape, dtype), R.random(shape)
        check(
            by_mask,
            (a, t),
            (a[::-1], t),
            (a[..., ::2], t[..., 1::2] if t[..., 1::2].shape == a[..., ::2].shape else t[..., ::2]),
        )
        check(by_mask, (a.T, t.T), (np.asfortranarray(a), t), (a, np.asfortranarray(t)))


def at_last(a: Any, m: Any, v: Any, w: Any) -> Any:
    b = a[m]
    a[m] = v
    c = a[~m]
    a[~m] = w
    return b, a, c


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "f8", "c16"])
def test_densities(dtype: str):
    for size in (64, 255, 1000):
        a, t = values(size, dtype), R.random(size)
        for density in (0, 0.01, 0.1, 0.5, 0.9, 0.99, 1):
            m = t < density
            check(
                at_last,
                (a, m, a[m] + 1, 7),
                (a[::-1], m[::-1], 3, a[~m].copy()),
                (a.copy(), m, a[m][::-1], 0),
                rounds=3,
            )


def sums_of_complex(z: Any, t: Any) -> Any:
    for k in range(3):
        m = t < 0.7
        z[m] = z[m] * 0.5 + z[m]  # runs unknown code, after which less is known of m
        z[~m] = z[~m] * z[~m] - k
    return z


def test_masks_of_complex_numbers():
    for v in (1, -0.0, 2j, True, np.complex128(complex(-0.0, float("inf"))), np.complex64(1j), np.float64(3), "1"):
        check(put_by, (values(300, "c16"), R.random(300) < 0.3, v), (values(90, "c8"), R.random(90) < 0.3, v))
    settles(sums_of_complex, (values(300, "c16"), R.random(300)))


def test_rows():
    for dtype in ("f8", "i2", "c16"):
        a, t = values((40, 3), dtype), R.random(40)
        check(
            by_mask,
            (a, t),
            (a[:, :1], t),
            (a[:, ::2], t),
            (a[:0], t[:0]),
            (np.asfortranarray(a), t),
            (a.reshape(40, 3, 1), t),
        )


def test_shapes_that_do_not_fit():
    check(
        by_mask,
        (values(10, "f8"), R.random(9)),
        (values((4, 5), "f8"), R.random((5, 4))),
        (values((4, 5), "f8"), R.random(5)),
    )


def put(a: Any, t: Any, v: Any, w: Any) -> Any:
    m = t > 0.5
    a[m] = v
    a[t < 0.2] = w
    a[t > 3] = 1
    return a


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f4", "f8", "i8", "u8", "c8", "c16"])
def test_put(dtype: str):
    scalars = [
        0,
        1,
        -1,
        200,
        2**40,
        1.5,
        -0.0,
        float("nan"),
        1e300,
        True,
        np.float64(2.5),
        np.float32(0.5),
        np.int64(3),
        np.uint8(7),
        2 - 3j,
        complex(-0.0, float("nan")),
        np.complex128(1j),
        np.complex64(2j),
        2**53 + 1,
        -(2**63),
        2**64,
        10**400,
    ]
    for shape in ((300,), (20, 31), (5, 6, 7)):
        a, t = values(shape, dtype), R.random(shape)
        for k, v in enumerate(scalars):
            check(put, (a.copy(), t, v, scalars[k - 1]), rounds=2)
        check(put, (a[::-1], t, 1, 0), (a.T, t.T, 2, 3), (a[..., ::2].copy(), t[..., ::2], 2, 3))


def put_many(a: Any, t: Any, b: Any) -> Any:
    m = t > 0.5
    a[m] = b[m]
    a[~m] = a[~m] * 2
    a[m] = a[m] * a[m] + b[m]
    n = int(np.count_nonzero(m))
    a[m] = b.ravel()[:n]
    a[m] = b.ravel()[: n * 2 : 2] if b.size >= 2 * n else 0
    return a


@pytest.mark.parametrize("dtype", ["i1", "f4", "f8", "i8", "c16"])
def test_put_many(dtype: str):
    with np.errstate(all="ignore"):
        for shape in ((300,), (20, 31)):
            a, b, t = values(shape, dtype), values(shape, dtype), R.random(shape)
            check(put_many, (a.copy(), t, b), (a[::-1], t, b), (a.copy(), t * 0, b), (a.copy(), t + 1, b), rounds=6)


def into_itself(a: Any, b: Any) -> Any:
    m = a > 0.5
    a[m] = a[: int(m.sum())]
    b[b] = False
    c = b.copy()
    c[b] = True
    return a, b, c


def test_memory_that_is_shared():
    check(into_itself, (R.random(200), R.random(50) > 0.5), rounds=6)


def wrong(a: Any, t: Any, v: Any) -> Any:
    m = t > 0.5
    a[m] = v
    return a


def test_what_is_refused():
    t = R.random(30)
    frozen = np.arange(30.0)
    frozen.flags.writeable = False
    check(
        wrong,
        (np.arange(30.0), t, np.arange(3.0)),
        (frozen, t, 1.0),
        (np.arange(30), t, 1.5),
        (np.arange(30, dtype="u1"), t, 300),
    )
    check(
        wrong,
        (np.arange(30.0), t, None),
        (np.arange(30.0), t, [1.0]),
        (np.arange(30.0), t, np.array(2.0)),
        (np.arange(30.0), t, "x"),
    )


def put_by(a: Any, m: Any, v: Any) -> Any:
    a[m] = v
    return a


def test_bytes_that_are_neither_0_nor_1():
    odd = np.array([0, 2, 255, 1] * 5, "u1").view(bool)
    check(lambda a, m: (a[m & m], a[m], m[m]), (np.arange(20.0), odd))
    for size in (20, 300):
        for dtype in ("u1", "i2", "f4", "f8", "c16"):
            a, m = values(size, dtype), np.resize(odd.view("u1"), size).view(bool)
            check(put_by, (a, m, 3), (a, m, a[: size // 2]), (a, m, a[: size * 3 // 4].copy()), (a, m, a[m]), rounds=3)


def escaping(c: Any, n: int) -> Any:
    z, k, alive = np.zeros_like(c), np.zeros(c.shape, int), np.ones(c.shape, bool)
    for i in range(n):
        z[alive] = z[alive] * z[alive] + c[alive]
        alive = np.abs(z) <= 2
        k[alive] = i
    return z, k


def test_in_loops_and_large():
    c = R.random((40, 50)) * 3 - 2 + 1j * R.random((40, 50))
    check(escaping, (c, 40))
    settles(by_mask, (R.random(100), R.random(100)))
    a, t = R.random(200_000), R.random(200_000)
    jitted = ds.jit(put_many)
    for _ in range(6):
        assert jitted(a.copy(), t, a[::-1].copy()).tobytes() == put_many(a.copy(), t, a[::-1].copy()).tobytes()
