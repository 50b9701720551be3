"""Arrays of complex numbers: NumPy's own loops (replay/segment/complex_loops.h), without objects where they are small,
in blocks where they are large. Values, signs of zeros, warnings, errors and layouts are eager's."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.equivalent import equivalent

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

R = np.random.default_rng(8)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 5e-324, 1.0, -2.0]
ENGINES = ["recording", "stepped", "native", "blocks", "compiled"]


def waves(shape: Any, dtype: str = "c16", special: bool = False) -> Any:
    made = np.empty(shape, dtype)
    for part in (made.real, made.imag):
        part[...] = R.standard_normal(shape)
        if special:
            chosen = R.random(shape) < 0.4
            with np.errstate(over="ignore"):
                part[chosen] = R.choice(SPECIAL, int(chosen.sum()))
    return made


def same(function: Any, *args: Any, engines: Any = ENGINES) -> None:
    equivalent(function, *[args] * 4, engines=engines)


def ring(x: Any, y: Any, k: Any) -> Any:
    a = (x + y) * k - x * y
    b = -a / (y + 2) + k * x
    return a, b, b**2 - a, +b


SHAPES = [(7,), (1,), (4, 5), (3, 1, 6), (2, 2), (33,), (1, 1), (0,), (3, 0)]


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("special", [False, True])
def test_arithmetic(dtype: str, special: bool) -> None:
    for shape in SHAPES:
        for k in (0.5, 3, 1j, -1.5 + 2j, np.complex128(1 - 1j), np.complex64(2j), np.float64(0.3), np.int64(2), True):
            same(ring, waves(shape, dtype, special), waves(shape, dtype, special), k, engines=["native"])
        same(ring, waves(shape, dtype, special), waves(shape, dtype, special), 2 - 1j)


def test_broadcast_and_other_dtypes() -> None:
    def mixed(x: Any, y: Any) -> Any:
        return x * y + x, y - x / 3, x == y, (x + 1j) * y

    real = [
        R.standard_normal(5),
        R.integers(-3, 3, 5),
        R.standard_normal(5).astype("f4"),
        np.arange(5, dtype="i2"),
        np.arange(5) > 2,
    ]
    for y in real:
        for x in (waves(5), waves((4, 1)), waves((4, 5), "c8"), waves(()), waves((2, 1, 5))):
            same(mixed, x, y, engines=["native"])
            same(mixed, y, x, engines=["native", "blocks"])
    same(mixed, waves(5), waves(5, "c8"))


def test_what_makes_an_array_complex() -> None:
    def made(x: Any, k: Any) -> Any:
        return x * 1j, k + x, (x - 2j) ** 2, 1j == x

    for x in (R.random(6), R.random((3, 2)).astype("f4"), np.arange(4), np.arange(4, dtype="u1"), np.arange(4) > 1):
        for k in (1 + 1j, np.complex64(1j), np.complex128(-1j)):
            same(made, x, k, engines=["native", "blocks"])


def layouts(make: Any) -> list[Any]:
    a = make((6, 8))
    return [a, a[:, ::2], a[::2], a[:, ::-1], a[::-1], a.T, a[1:, 3:], np.asfortranarray(a), a[:, 2], a[3],
            a[3, ::-1], a[3, ::3], np.broadcast_to(a[0], (6, 8)), np.broadcast_to(a[:, :1], (6, 8))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_layouts(dtype: str) -> None:
    def each(x: Any, y: Any) -> Any:
        z = x * y
        return z, np.square(x), abs(y), x**2 + y, z * x - y, (x * x) * y, np.square(x[..., ::-1])

    for x, y in zip(layouts(lambda s: waves(s, dtype)), layouts(lambda s: waves(s, dtype)), strict=True):
        same(each, x, y, engines=["native", "blocks"])


def test_functions() -> None:
    def each(x: Any) -> Any:
        truth = np.isnan(x), np.isinf(x), np.isfinite(x), np.logical_not(x), x != x * 1
        return (
            np.exp(x),
            np.log(x),
            np.sqrt(x),
            np.sin(x),
            np.cos(x),
            np.reciprocal(x),
            np.conj(x),
            np.sign(x),
            np.tanh(x),
            truth,
        )

    for special in (False, True):
        for shape in (5, (3, 4), (2, 300, 200)):
            same(each, waves(shape, special=special), engines=["native", "blocks"])
        same(each, waves(6, "c8", special), engines=["native"])


def test_powers() -> None:
    def each(x: Any) -> Any:
        return x**2, x**2.0, x**3, x ** (1 + 0j), x ** np.int64(2), x**-1, x**0.5

    same(each, waves(9))
    same(each, waves((4, 3), "c8"))


def test_masks() -> None:
    def mandelbrot(c: Any, turns: int) -> Any:
        z, n = np.zeros(c.shape, c.dtype), np.zeros(c.shape, int)
        for k in range(turns):
            inside = abs(z) < 2
            n[inside] = k
            z[inside] = z[inside] ** 2 + c[inside]
        z[n == turns - 1] = 1j
        z[n == 2] = -1.5
        z[n == 3] = np.complex64(2j)
        z[n == 4] = True
        return z, n

    for shape in (40, (9, 11), (150, 140)):
        for dtype in ("c16", "c8"):
            same(mandelbrot, (waves(shape) * 0.7).astype(dtype), 12, engines=ENGINES)


def test_numbers_that_do_not_fit() -> None:
    def put(x: Any, k: Any) -> Any:
        x[abs(x) > 1] = k
        y = x * k
        y[1:] += k
        return x, y

    for k in (1e300, 1e300j, 1e-300j, 2**70, complex("nan"), complex(0, -0.0)):
        same(put, waves(8, "c8"), k, engines=["native", "blocks"])
        same(put, waves(8), k, engines=["native", "blocks"])


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_writes_in_place(dtype: str) -> None:
    def write(x: Any, y: Any, k: Any) -> Any:
        for i in range(4):
            x[i, 1:] += y[i, :-1] * k
            x[:, i] *= y[:, i]
            x[i] -= k
            x[i, ::-1] *= y[i]
            x[i, ::-1] += y[i]
            y[1:, i] = x[:-1, i] ** 2
            y[i] /= x[i] + 3
        x[1:] += x[:-1] * 2
        x[:-1] *= x[1:]
        x[:, :-1] = x[:, 1:] * 1j
        y[::2] = 0.5
        y[1::2] = k
        return x, y

    for special in (False, True):
        same(write, waves((5, 6), dtype, special), waves((5, 6), dtype, special), 0.5 - 1j)
        same(write, waves((5, 6), dtype, special), waves((5, 6), dtype, special), 2.0, engines=["native"])
    same(write, np.asfortranarray(waves((5, 6), dtype)), waves((5, 6), dtype), 1j, engines=["native", "blocks"])


def test_writes_from_other_dtypes() -> None:
    def write(x: Any, r: Any) -> Any:
        x[1:] += r[1:]
        x *= r
        x[::2] = r[::2] * 2
        np.multiply(x, r, out=x)
        np.square(x, out=x[::-1])
        np.square(x[::2], out=x[::2])
        np.add(x, x, x)
        return x, x.real + r

    same(write, waves(8), R.random(8))
    same(write, waves(8), np.arange(8))
    same(write, waves(8, "c8"), R.random(8))
    same(write, waves(8, "c8"), R.random(8).astype("f4"))

    def fail(x: Any, r: Any) -> Any:
        r += x
        return r

    same(fail, waves(4), R.random(4), engines=["native", "blocks"])


def test_overlap() -> None:
    def shifted(x: Any) -> Any:
        x[1:] *= x[:-1]
        x[:-2] += x[2:] * x[1:-1]
        x[::-1] += x * 2
        np.multiply(x[:-1], x[1:], out=x[1:])
        return x

    def touching(x: Any) -> Any:
        half = len(x) // 2
        x[:half] *= x[half:]
        x[half:] *= x[:half]
        np.multiply(x[: half - 1], x[half + 1 :], out=x[: half - 1])
        x[::2] *= x[1::2]
        x *= x
        x[:half] *= x[:half]
        return x

    def rows(x: Any) -> Any:
        for i in range(len(x) - 2):
            x[i] *= x[i + 1]
            x[i + 2] *= x[i]
            x[:, i] *= x[:, i + 1]
            x[i + 2, :-1] *= x[i, 1:]
        return x

    for n in (4, 6, 12, 64):
        same(touching, waves(n) * 0.7, engines=["native", "blocks"])
        same(touching, waves(n, "c8"), engines=["native", "blocks"])
        same(rows, waves((n, n)) * 0.7, engines=["native", "blocks"])
    for n in (2, 5, 64, 300):
        same(shifted, waves(n) * 0.5, engines=["native", "blocks"])


def test_products() -> None:
    def self_energies(at: Any, h: Any, g: Any, d: Any, out: Any) -> Any:
        for k in range(g.shape[0]):
            for i in range(d.shape[1]):
                for a in range(at.shape[0]):
                    left = g[k, at[a]] @ h[a, i]
                    out[k, a] += left @ (h[a, i] * d[a, i]) + d[a, i].real
        return out

    at = R.integers(0, 3, 3).astype("i4")
    for dtype in ("c16", "c8"):
        for special in (False, True):
            args = (
                at,
                waves((3, 2, 3, 3), dtype, special),
                waves((2, 3, 3, 3), dtype, special),
                waves((3, 2), dtype, special),
            )
            same(self_energies, *args, waves((2, 3, 3, 3), dtype))

    def each(a: Any, b: Any, v: Any) -> Any:
        return a @ b, b.T @ a.T, a @ v, v @ b.T, v @ v, np.dot(a, b), np.matmul(v, v), a @ b.real

    same(each, waves((3, 4)), waves((4, 2)).conj(), waves(4)[::-1], engines=["native", "blocks"])
    same(each, waves((3, 4), "c8"), waves((4, 2), "c8"), waves(4, "c8"), engines=["native", "blocks"])


@pytest.mark.parametrize("shape", [(40_001,), (3, 20_000), (300, 151), (20, 41, 52)])
def test_large(shape: Any) -> None:
    def chain(x: Any, y: Any, r: Any, k: Any) -> Any:
        z = x * k - y * x
        inside = abs(z * z + y) < 2
        x[..., 1:] += z[..., 1:] * r[..., :-1] + y[..., :-1]
        return z, inside, z / (y + 3), x

    same(chain, waves(shape), waves(shape), R.random(shape), 0.5 - 2j, engines=["native", "blocks", "compiled"])
    same(chain, waves(shape, special=True), waves(shape, "c8"), R.random(shape), 2, engines=["blocks"])


def test_errstate() -> None:
    def quiet(x: Any, y: Any) -> Any:
        with np.errstate(all="ignore"):
            a = x / y
            b = a * x + y
        return a, b, x / y

    def loud(x: Any, y: Any) -> Any:
        with np.errstate(all="raise"):
            return x * x + y / x

    for dtype in ("c16", "c8"):
        same(quiet, waves(12, dtype, True), waves(12, dtype, True) * 0)
        same(loud, waves(12, dtype, True), waves(12, dtype, True), engines=["native", "blocks"])
        same(loud, waves(12, dtype), waves(12, dtype))


def test_elements_iterators_and_reductions() -> None:
    def each(x: Any, y: Any) -> Any:
        total = 0
        for i in range(len(x)):
            total = total + x[i] * 2
            y[0, i] = x[i] + y[1, i]
            y[1, -i] = 2.5
            total += x.item(i)
        for a, b in zip(x, range(9), strict=False):
            total += a * b
        for i, a in enumerate(x):
            total -= a / (i + 1)
        sums = (
            x.sum(),
            x.mean(),
            np.sum(y, axis=0),
            x.max(),
            x.argmin(),
            x.std(),
            np.any(x),
            x.all(),
            (x * 2).sum(),
            np.linalg.norm(x),
        )
        return (
            total,
            y,
            sums,
            sum(x),
            sum(y[k] for k in range(2)),
            x[np.array([0, -1, 2])],
            np.roll(x, 1),
            np.count_nonzero(y),
        )

    for dtype in ("c16", "c8"):
        same(each, waves(7, dtype), waves((2, 7), dtype))
        same(each, waves(7, dtype, True), waves((2, 7), dtype), engines=["native"])


def test_dtypes_that_change() -> None:
    def each(x: Any, y: Any) -> Any:
        return x * y + 1, x[1:] - y[:-1], abs(x * 2), x == y

    kinds = ["f8", "c16", "c8", "f4", "i8", "c16", ">c16", "c16", "?", "O"]
    calls = [(np.arange(4).astype(a), np.arange(4).astype(b)) for a in kinds for b in ("c16", "f8", "c8")]
    equivalent(each, *calls, *calls, engines=["native", "blocks"])


def test_unaligned() -> None:
    def each(x: Any) -> Any:
        return x * x + 2j, abs(x), x[1:] * x[:-1]

    raw = np.zeros(16 * 9 + 8, np.uint8)
    for offset in (0, 4, 8):
        x = raw[offset : offset + 16 * 8].view("c16")
        x[...] = waves(8)
        same(each, x, engines=["native", "blocks"])


@pytest.mark.parametrize("n", [5, 600, 2_049, 5_003, 70_000, 200_001])
def test_real_results_are_cast_before_a_complex_operator(n: int) -> None:
    """Its kernel does not make what the operator reads: wrong values, or a crash."""

    def each(x: Any, y: Any) -> Any:
        x += y * 0.5
        x[1:] -= y[1:] * 2.0
        x[:] = y * 3.0
        half = np.sqrt(y) * 0.5
        x *= half
        np.add(x, y * 0.25, out=x)
        return half

    for complex_dtype, dtype in (("c16", "f8"), ("c16", "f4"), ("c8", "f4"), ("c16", "i8")):
        x, y = waves(n, complex_dtype), (np.arange(n) % 50 + 1).astype(dtype)
        jitted = ds.jit(store=False)(each)
        with ds.config(background=False):
            for _ in range(5):
                ours, eager = x.copy(), x.copy()
                assert jitted(ours, y).tobytes() == each(eager, y).tobytes()
                assert ours.tobytes() == eager.tobytes()
