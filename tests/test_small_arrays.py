"""Products of matrices, reductions along an axis and of whole arrays, where NumPy's inner loops do them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles

pytestmark = pytest.mark.once  # NumPy's arithmetic: nothing here asks the version of CPython

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
        out.append([a.std(), np.std(a), a.var(), np.var(a)])
    return [[facts(x) for x in row] for row in out]


def along(arrays: Any) -> Any:
    out = []
    for a in arrays:
        out.append([a.sum(axis=0), a.sum(axis=-1), np.sum(a, axis=1), a.sum(1)])
        out.append([a.max(axis=0), np.max(a, axis=-1), np.min(a, 1), a.min(axis=1)])
        out.append([a.mean(axis=0), np.mean(a, axis=-1), np.mean(a, 1), a.mean(0)])
    return [[facts(x) for x in row] for row in out]


def along_several(arrays: Any, axes: Any, keep: Any) -> Any:
    out = []
    for a in arrays:
        out.append([a.sum(axis=axes), np.sum(a, axes, keepdims=keep), a.sum(axes, keepdims=True)])
        out.append([np.max(a, axis=axes), a.min(axes), np.max(a, axis=-1, keepdims=keep)])
        out.append([a.mean(axis=axes), np.mean(a, axes), np.mean(a, axis=axes, keepdims=True)])
    return [[facts(x) for x in row] for row in out]


def products(pairs: Any) -> Any:
    out = []
    for a, b in pairs:
        out.append([a @ b, np.matmul(a, b)])
    return [[facts(x) for x in row] for row in out]


SHAPES = (
    [(1,), (9,), (150,), (3000,)],
    [(3, 4), (1, 5), (5, 1), (13, 17)],
    [(3, 4, 5), (3, 1, 9), (2, 40, 3), (1, 1, 4)],
)
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


@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_along_several_axes(dtype: str) -> None:
    some = ((0, 1), (2, 1), (-2, -1), (0, 2))
    for shape in [(4, 2, 3), (3, 2, 2, 5), (2, 3, 40, 2), (8, 2, 2, 3, 16), (3, 1, 5, 2), (3, 9, 130), (3, 4, 33)]:
        arrays = layouts(shape, dtype)
        arrays += [arrays[0][:, :, 1:], arrays[0][:, ::2, :1]]
        for axes in some:
            check(along_several, (arrays, axes, True), ([np.ones((3, 0, 2), dtype)], axes, False))
    for axes in ((0,), (), (0, 1, 2, 3)):
        check(along_several, (layouts((3, 2, 2, 5), dtype), axes, True))


def test_axes_that_are_none() -> None:
    for axes in ((0, 0), (0, -3), (3, 0), True, (0, 1.0), None):
        check(along_several, ([np.ones((3, 2, 2))] * 5, axes, True))
        check(along_several, ([np.ones((3, 2, 2))] * 5, (0, 1), axes))


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


def whole_facts(x: Any) -> Any:
    base = getattr(x, "base", None)
    return (*facts(x), None if base is None else (type(base), base.shape, base.tolist(), base.base is None))


def of_numbers(rows: Any) -> Any:
    return [whole_facts(np.array(row)) for row in rows]


def joined(rows: Any) -> Any:
    return [whole_facts(np.concatenate(row)) for row in rows]


def rolled(pairs: Any) -> Any:
    return [whole_facts(np.roll(a, k)) for a, k in pairs]


def like(arrays: Any) -> Any:
    out = []
    for a in arrays:
        out.append([whole_facts(np.zeros_like(a))])
        made = np.empty_like(a)  # (what is in it may be anything)
        out.append([made.shape, made.strides, str(made.flags), made.base])
    return out


def eyes(sizes: Any) -> Any:
    return [whole_facts(np.eye(n)) for n in sizes]


def inverses(arrays: Any) -> Any:
    return [whole_facts(np.linalg.inv(a)) for a in arrays]


def outers(pairs: Any) -> Any:
    out = []
    for a, b in pairs:
        out.append([np.outer(a, b), np.add.outer(a, b), np.minimum.outer(a, b), np.subtract.outer(b, a)])
    return [[whole_facts(x) for x in row] for row in out]


def test_arrays_of_numbers() -> None:
    plain = [
        [1.0, 2.5],
        (1, 2, 3),
        [1, 2.5, -0.0],
        [np.float64(3.5), 1],
        [[1, 2], [3, 4]],
        ([1.5, 2], (3, 4.5)),
        [2**62 + 1, 0.5],
    ]
    odd = [
        [2**70, 1.0],
        [2**63],
        [True, 1],
        [1j],
        ["a"],
        [np.float32(1.5)],
        [np.int64(3), 4],
        [],
        [[]],
        [[1.0], [2.0]],
        [[1], 2][:1],
    ]
    ragged = [[[1, 2], [3]], [[1, 2], 3], [1, [2]], [None], [np.zeros(2), np.ones(2)], [[[1]]]]
    check(of_numbers, (plain,), (odd,), *[([*plain[:3], row],) for row in ragged], (5,), ([3.5, np.ones(2)],))


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_made_of_vectors(dtype: str) -> None:
    a, b = varied(9, dtype), varied(5, dtype)
    parts = [
        (a, b),
        [a[::2], b[::-1], a],
        ([1.5], a),
        (a, [2, 3]),
        ((True,), a),
        (a, []),
        (a, b[:0]),
        (a,),
        ([1], [2.5]),
        ([np.inf], a[:-1]),
    ]
    check(joined, (parts,), ([(a, b.astype("f4"))] * 4,), ([(a, np.ones((2, 2)))],), ([()],), ([(a, 3)],))
    vectors = [a, a[::2], a[::-1], a[:1], a.reshape(3, 3), a[:0]]
    check(
        rolled,
        ([(v, k) for v in vectors for k in (0, 1, -1, 4, 100, -7)],),
        ([(a, 1.0)],),
        ([(a, (1, 2))],),
        ([(a, 2**70)],),
    )
    vectors = [a, b, a[::2], b[::-1], a[:1], a[:0], varied((2, 3), dtype)]
    check(outers, ([(x, y) for x in vectors[:-1] for y in vectors[:-1]],))
    check(outers, ([(a, vectors[-1])],), ([(a, a.astype("f4"))],), ([(a, 2.0)],), ([(a, [1.0, 2.0])],))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_like_others(dtype: str) -> None:
    check(like, (layouts((3, 4), dtype) + layouts((5,), dtype) + layouts((3, 1, 2), dtype) + [np.ones((0, 2), dtype)],))
    check(like, ([varied(3, dtype).view(Sub), 3.0, [1, 2]],))


def test_unit_matrices_and_inverses() -> None:
    check(eyes, ([1, 2, 3, 17, 65, 0, True, np.int64(3)],), ([2.0],), ([-1],))
    good = [varied((n, n), "f8") for n in (1, 2, 3, 5, 17, 33)]
    for n in (1, 2, 3):
        check(inverses, ([x for a in layouts((n, n), "f8")[:4] for x in (a, a + 0.5)],))
    check(
        inverses,
        (good,),
        ([good[2], np.ones((2, 2))],),
        ([np.ones((2, 3))],),
        ([np.eye(3, dtype="f4"), np.eye(2, dtype=int), good[1] * 1e-300],),
    )
    check(
        inverses,
        ([np.full((2, 2), np.nan)] * 3,),
        ([np.array([[1e308, 0], [0, 1e-308]])] * 3,),
        ([np.ones((2, 2, 2)) + np.eye(2)],),
    )


def test_warnings_of_made_arrays() -> None:
    large = np.full(3, 1e308)
    check(outers, ([(np.ones(3), np.ones(3))] * 4,), ([(large, large)] * 3,), ([(large * np.inf, large * 0)] * 3,))


ONE = "sqrt exp log log2 log1p expm1 sin cos tan arcsin arctan sinh tanh cbrt fabs absolute square floor ceil rint sign"
TWO = "maximum minimum fmax fmin arctan2 hypot copysign add multiply divide power remainder floor_divide"
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-310, 1e308, -1e308, 710.0, -750.0, 2.0, 0.5]


def scalar_function(name: str, arguments: str) -> Any:
    scope: dict[str, Any] = {"np": np}
    loop = f"for x, y in pairs:\n        r = np.{name}({arguments})\n        out.append((r, type(r)))"
    exec(f"def function(pairs):\n    out = []\n    {loop}\n    return out", scope)
    return scope["function"]


@pytest.mark.parametrize("name", [*ONE.split(), *TWO.split()])
def test_functions_of_scalars(name: str) -> None:
    function = scalar_function(name, "x, y" if name in TWO.split() else "x")
    plain = [(np.float64(x), np.float64(y)) for x, y in R.random((40, 2))]
    odd = [
        (np.float64(x), np.float64(y)) for x in SPECIAL for y in SPECIAL[: len(SPECIAL) if name in TWO.split() else 1]
    ]
    floats = [(float(x), y) for x, y in plain]
    check(function, (plain,), (plain[:9] + odd + plain[:9],), (floats,), ([(x, 2) for x, _ in plain],), rounds=2)
    check(
        function,
        (plain,),
        ([*plain[:9], (np.float32(0.5), 0.5)],),
        ([*plain[:9], (3, 2)],),
        ([*plain[:9], (np.ones(2), 2.0)],),
        rounds=2,
    )
    check(
        function,
        ([*plain[:9], (2**70, 0.5)],),
        ([*plain[:9], (0.5, 2**70)],),
        ([*plain[:9], (True, 0.5)],),
        ([*plain[:9], ("x", 0.5)],),
        rounds=2,
    )


def roots(x: Any, n: Any) -> Any:
    for i in range(n):
        x = np.sqrt(np.abs(np.sin(x) - i)) + np.maximum(x, 0) * 0.5
    return x


def test_functions_of_scalars_stay() -> None:
    settles(roots, (np.float64(0.5), 20))


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
    settles(outers, ([(R.random(4), R.random(5))] * 9,))
    settles(attract, (varied((9, 3), "f8"), R.random(9), 12))
    ds.wait()
