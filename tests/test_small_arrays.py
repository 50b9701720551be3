"""Products of matrices, reductions along an axis and of whole arrays, where NumPy's inner loops do them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

R = np.random.default_rng(5)
DTYPES = ("f8", "f4", "i8", "i4", "?")


def varied(shape: Any, dtype: str) -> Any:
    values = R.standard_normal(shape) * 10.0 ** R.integers(-5, 6, shape)
    return values.astype(dtype)


def layouts(shape: Any, dtype: str) -> list[Any]:
    a = varied(shape, dtype)
    found = [a, np.asfortranarray(a), a.T, a[::-1], np.where(a > 0, 0.0, -0.0).astype(dtype)]
    if a.ndim > 1:
        found += [a[:, 1:], a[1:, :-1], a[:, ::2], a[::2], a.swapaxes(0, 1), a[..., 1:], a[..., ::2], a[..., :1]]
    return found


def facts(x: Any) -> Any:
    return (x, x.dtype, getattr(x, "strides", None), getattr(x, "flags", None) and str(x.flags), type(x))


def wholes(arrays: Any) -> Any:
    out = []
    for a in arrays:
        out.append([a.sum(), a.max(), np.min(a), np.mean(a), a.mean()])
        out.append([a.argmax(), np.argmin(a), np.argmax(a) + 1, np.linalg.norm(a)])
    return [[facts(x) for x in row] for row in out]


def along(arrays: Any) -> Any:
    out = []
    for a in arrays:
        out.append([a.sum(axis=0), a.sum(axis=-1), np.sum(a, axis=1), a.sum(1)])
        out.append([a.max(axis=0), np.max(a, axis=-1), np.min(a, 1), a.min(axis=1)])
    return [[facts(x) for x in row] for row in out]


def products(pairs: Any) -> Any:
    out = []
    for a, b in pairs:
        out.append([a @ b, np.matmul(a, b)])
    return [[facts(x) for x in row] for row in out]


SHAPES = [(1,), (9,), (150,)], [(3, 4), (1, 5), (5, 1), (13, 17)], [(3, 4, 5), (3, 1, 9), (2, 40, 3), (1, 1, 4)]
LONG = [(60, 60, 3), (3000, 7), (7, 3000), (9, 1100), (300, 30), (2, 9000), (9000, 2), (40, 5, 50), (4, 3, 2, 100)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_arrays(dtype: str) -> None:
    for shapes in SHAPES:
        check(wholes, ([a for shape in shapes for a in layouts(shape, dtype)],), ([np.ones((3, 4), "f8")],))


@pytest.mark.parametrize("dtype", DTYPES)
def test_along_axes(dtype: str) -> None:
    for shapes in SHAPES[1:]:
        check(along, ([a for shape in shapes for a in layouts(shape, dtype)],), ([np.ones((3, 0), dtype)],))
    for shape in LONG:
        check(along, (layouts(shape, dtype),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_matrices(dtype: str) -> None:
    pairs = []
    for m, n in itertools.product((1, 2, 3, 17), repeat=2):
        left = layouts((m, n), dtype)[:8]
        vectors = [varied(n, dtype), np.repeat(varied(n, dtype), 2)[::2], varied(n, dtype)[::-1], varied(n, dtype) * 0]
        pairs += [(a, b) for a in left for b in [*vectors, a.T, varied((n, 4), dtype)] if a.shape[-1] == b.shape[0]]
        pairs += [(v, a.T) for a in left for v in vectors if a.shape[-1] == n]
    for ranks in ((2, 2), (2, 1), (1, 2)):
        chosen = [(a, b) for a, b in pairs if (a.ndim, b.ndim) == ranks]
        check(products, (chosen,), ([(np.ones((3, 4), dtype), np.ones(3, dtype))],))


def test_warnings_of_small_arrays() -> None:
    large = np.full((3, 3), 1e308)
    mixed = np.array([[np.inf, 1.0], [-np.inf, 0.0]])
    for special in (large, mixed, mixed * np.nan, large.astype("f4")):
        check(products, ([(np.eye(len(special)), special)] * 6,), ([(special, special)] * 3,))
        check(wholes, ([np.ones_like(special)] * 6,), ([special] * 3,))
        check(along, ([np.ones_like(special)] * 6,), ([special] * 3,))

    def under(a: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            try:
                with np.errstate(all="raise"):
                    out.append((a @ a).sum() + a.sum(axis=0)[0] + a.mean())
            except FloatingPointError as error:
                out.append((i, str(error)))
        return out

    check(under, (np.eye(3), 9), (large, 5), (np.full((3, 3), 1e-200), 9))


class Sub(np.ndarray):
    pass


def test_what_small_arrays_are_not() -> None:
    a = varied((3, 3), "f8")
    for other in (a.view(Sub), a.astype(object), a.tolist(), 3.0):
        check(products, ([(a, a)] * 6,), ([(a, other)],), ([(other, a)],))
        check(along, ([a] * 6,), ([other],))
        check(wholes, ([a] * 6,), ([other],))


def track(measured: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    x, p, seen = np.zeros(2), np.eye(2), []
    for z in measured:
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        k = p @ h.T @ np.linalg.inv(s)
        x = x + k @ (np.array([z]) - h @ x)
        p = (np.eye(2) - k @ h) @ p
        seen.append(x[0] + p.sum() - np.linalg.norm(p))
    return seen, x, p


def attract(x: Any, masses: Any, n: Any) -> Any:
    v = np.zeros_like(x)
    for _ in range(n):
        d = x[None, :, :] - x[:, None, :]
        r2 = (d * d).sum(axis=2) + 0.01
        v += 0.01 * (masses[None, :, None] * d / (r2 * np.sqrt(r2))[:, :, None]).sum(axis=1)
        x = x + 0.01 * v
    return x, v


def test_settles() -> None:
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    settles(track, (R.random(40), f, h, 0.01 * np.eye(2), np.array([[0.5]])))
    settles(attract, (varied((9, 3), "f8"), R.random(9), 12))
    ds.wait()
