"""Sums of slices of arrays that a generator expression gives: one array, NumPy's bits, flags and layout."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import check_program
from dalsegno.fuzz.equivalent import equivalent

A = np.random.default_rng(5).random((40, 50)) - 0.5


def described(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(described(item) for item in x)
    if isinstance(x, np.ndarray):
        return type(x), x.dtype, x.shape, x.strides, x.tobytes(), x.base is None, x.flags.writeable
    return type(x), repr(x)


def observed(f: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = f(*args)
        except Exception as e:
            return type(e), str(e)
    return described(x), [(w.category, str(w.message)) for w in caught]


def same(f: Callable[..., Any], *args: Any, calls: int = 6) -> None:
    jitted = ds.jit(store=False)(f)
    with ds.config(step_aside=False):
        for _ in range(calls):
            assert observed(jitted, *args) == observed(f, *args)
            ds.wait()


def windows(a: Any, size: int, h: int, w: int) -> Any:
    return sum(a[i : i + h, j : j + w] for i in range(size) for j in range(size))


def weighted(a: Any, weights: Any, n: int) -> Any:
    return sum(w * a[k : k + n] for k, w in enumerate(weights))


def weighted_behind(a: Any, weights: Any, n: int) -> Any:
    return sum(a[:, k : k + n] * weights[k] for k in range(len(weights)))


def whole(arrays: Any) -> Any:
    return sum(x for x in arrays)


def steps(a: Any) -> Any:
    return sum(a[::-1, 2 * k :: k + 1][:, :5] for k in range(3))


def positions(a: Any) -> Any:
    return sum(a[k, 1:] for k in (-1, 2, 0)), sum(a[1:4, -k] for k in (1, 2))


def chosen(a: Any, n: int) -> Any:
    return sum(a[k + 1 : k + n - 1, k * 2 : k * 2 + n] for k in range(6) if k != 3)


def counted(n: int, m: int) -> Any:
    return sum(i * j - 1 for i in range(n) for j in range(m, 0, -2))


DTYPES = ("float64", "float32", "int64", "int8", "uint8", "uint64", "bool", "complex128", "float16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_of_every_dtype(dtype: str) -> None:
    a = (A * 100).astype(dtype)
    for layout in (a, a.T, a[::-1], a[:, ::2], np.asfortranarray(a), a[::2, 3:]):
        same(windows, layout, 3, 20, 17)
    same(windows, a, 1, 40, 50)
    same(windows, a, 3, 40, 50)  # the shapes differ
    same(whole, [a, a, a])
    same(whole, (a, a.T))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_weights(dtype: str) -> None:
    a = (A * 10).astype(dtype)
    for weights in (
        [0.25, 0.5, 0.25],
        [1, 2, 3, -1],
        (0.5, 2),
        [2**60, 1.0],
        [2**70, 1],
        [True, 2.0],
        [np.float64(0.5)],
        [1j],
        [],
    ):
        same(weighted, a, weights, 30)
        same(weighted_behind, a, weights, 40)
    same(weighted, A[:, 0], [0.5, 0.25], 30)


def test_indices() -> None:
    for a in (A, A.T, A[::-1], A.astype("int32")):
        same(steps, a)
        same(positions, a)
        same(chosen, a, 12)
    same(positions, A[:1])  # an index is out of range
    same(windows, A[0], 2, 3, 4)  # too many indices
    same(windows, "abc", 2, 3, 4)
    same(windows, [[1.0]], 2, 3, 4)


def test_signs_of_zeros_and_nan() -> None:
    a = np.array([[-0.0] * 9, [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 1e308, 5e-324, -1.0]] * 4)
    same(windows, a[::2], 1, 4, 9)
    same(whole, [a, a])
    same(weighted, a, [-1.0, 0.0], 3)


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
def test_flags_are_reported_as_numpy_does(mode: Any) -> None:
    a = np.array([[1e308, np.inf, 1.0], [1e308, -np.inf, 1.0]])
    with np.errstate(all=mode):
        same(lambda x: sum(x[k] for k in (0, 1)), a)
        same(weighted, np.full(9, 1e308), [10.0, 1.0], 5)


def test_memory_that_is_written_meanwhile_is_read_as_it_was() -> None:
    def into(a: Any) -> Any:
        a[1:] = sum(a[k : k + 5] for k in range(2))
        return a.copy()

    same(lambda: into(np.arange(6.0)))


def test_counted_in_ranges_inside_each_other() -> None:
    same(counted, 5, 9)
    same(counted, 0, 9)
    same(counted, 5, 0)
    same(lambda n: sum(i for i in range(3) for j in range(n, n + 2) for _ in range(j)), 4)
    same(lambda n: any(i * j > n for i in range(5) for j in range(5)), 12)
    same(lambda n: list(i * j for i in range(n) for j in range(n)), 4)
    same(lambda n: sum(1 for i in range(3) for j in range(0, 3, n)), 0)  # a step of zero
    same(lambda n: sum(i for i in range(2) for j in range(n)), 2.5)


def test_others_see_the_generator_that_is_not_used_up() -> None:
    def late(a: Any) -> Any:
        g = (a[k : k + 3] for k in range(3))
        return sum(g), next(g, "none")

    same(late, np.arange(9.0))


def test_the_first_of_arrays_that_are_not_slices_is_added_to_in_place() -> None:
    def summed(a: Any) -> Any:
        return (sum(a * k for k in range(2)) * 3 - a).min(axis=-1)

    whole = np.resize([1, 2, 3], (260, 260))
    equivalent(summed, *[(whole,)] * 4, engines=["stepped", "recording"])


ROLLED = """
sum(np.roll(np.roll(a, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i != 0 or j != 0))
sum(np.roll(np.roll(a, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i or j))
sum(np.roll(np.roll(a, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
sum(np.roll(a, k, axis=0) for k in range(3))
sum(np.roll(a, k, axis=-1) for k in (-2, 5, 0, 1000001))
sum(np.roll(a, k) for k in range(4))
sum(0.5 * np.roll(a, k, 0) for k in (1, 2))
sum(np.roll(a, k, 0) * k for k in (1, 2))
sum(np.roll(a[1:], k, 0) for k in (1, 2))
sum(np.roll(a, k, 0)[1:] for k in (1, 2))
sum(a for k in range(300))
sum(np.roll(a, k, axis=7) for k in (1, 2))
sum(np.roll(a, (k, 1), (0, 1)) for k in (1, 2))
sum(np.roll(a, (i, j), axis=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
sum(np.roll(a, (i + 1, 3 - j), (0, -1)) for i, j in ((-1, 2), (5, 100), (0, 0)))
sum(np.roll(a, (i, j), axis=(0, 0)) for i, j in itertools.product((-1, 0, 1), repeat=2) if (i, j) != (0, 0))
sum(np.roll(a, (i, j), (j, 0)) for i, j in itertools.product((-1, 0), (0, 1)))
sum(np.roll(a, (i, 1.5), (0, 1)) for i in (1, 2))
sum(np.roll(a, (i, 1), (0, 9)) for i in (1, 2))
sum(np.roll(a, k, 0) for k in (1, 2, 2.0))
sum(np.flip(a, 0) for k in (1, 2))
""".strip().splitlines()


@pytest.mark.parametrize("text", ROLLED)
def test_sums_of_what_is_rolled(text: str) -> None:
    space: dict[str, Any] = {"np": np, "itertools": itertools}
    exec(f"def rolled(a):\n    return {text}", space)
    rng = np.random.default_rng(3)
    for dtype in ("?", "u1", "i8", "f8", "c16"):
        for shape in ((4, 5), (7,), (3, 4, 5), (1, 1), (1, 6), (6, 1), (0, 3), (50, 60), (2, 3, 1, 4), ()):
            a = np.asarray(rng.standard_normal(shape) * 3).astype(dtype)
            for given in (a, a[::-1], a.T) if a.ndim else (a,):
                same(space["rolled"], given, calls=3)
    large = np.full((6, 6), 1e308)
    large[2, 2] = np.inf
    with np.errstate(all="warn"):
        for given in (large, -large, np.where(large > 1e308, np.nan, large)):
            same(space["rolled"], given, calls=3)


def test_sums_that_are_not_folded_take_no_more_memory() -> None:
    source = """
import numpy as np
LARGE = np.arange(40000.0)

@jit
def entry(a):
    return sum(a[..., k:] for k in (0, 0))[-1]
"""
    calls = """
def calls():
    for _ in range(4):
        yield ((np.arange(40000.0),), {})
"""
    check_program(source, calls, engines=["stepped", "recording"])


PRODUCTS = """
sum(a[i] * j for i, j in itertools.product((0, 1), (1, 2, 3)))
[(i, j, k) for i, j, k in itertools.product((0, 1), ("a", "b"), (1.5,))]
list((j, i) for i, j in itertools.product(range(2), repeat=2))
sum(i * j for i, j in itertools.product((), (1, 2)))
sum(i * j for i, j in itertools.product((1, 2), ()))
max(i * j - k for i, j, k in itertools.product((1, 2, -5), repeat=3))
any(i > j for i, j in itertools.product((1, 2), (0, 5)))
tuple(p for p in itertools.product((1, 2), (3, 4)))
sum(i + j for i, j, k in itertools.product((1, 2), (3, 4)))
sum(len(i) + j for i, j in itertools.product(("ab", "c"), (3, 4)))
(lambda p: (next(p), sum(i + j for i, j in p)))(itertools.product((1, 2), (3, 4)))
(lambda p: (sum(i + j for i, j in p), next(p, None)))(itertools.product((1, 2), (3, 4)))
""".strip().splitlines()


@pytest.mark.parametrize("text", PRODUCTS)
def test_folds_over_all_combinations(text: str) -> None:
    space: dict[str, Any] = {"np": np, "itertools": itertools}
    exec(f"def combined(a):\n    return {text}", space)
    same(space["combined"], [1, 2.5], calls=4)


def test_what_dies_with_a_product_dies_when_it_does() -> None:
    log: list[Any] = []

    class Loud:
        def __init__(self, name: int) -> None:
            self.name = name

        def __del__(self) -> None:
            log.append(self.name)

    def combined(n: int) -> Any:
        total = sum(j for i, j in itertools.product((Loud(n), Loud(n + 1)), (1, 2)))
        log.append(total)
        return total, any(j for i, j in itertools.product((Loud(n + 2),), (1, 2)))

    wanted = [combined(1), *log]
    jitted = ds.jit(store=False)(combined)
    with ds.config(step_aside=False):
        for _ in range(4):
            log.clear()
            assert [jitted(1), *log] == wanted
