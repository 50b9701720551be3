"""What random array programs and NumPy's own tests, jitted, had found: each is named after what broke."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import Call, check, counting, stepped

# -- ndarray.resize looks at reference counts


def resized(x: Any, shape: Any) -> Any:
    a = np.array(x)
    a.resize(*shape)
    return a.shape, a.tobytes()


def resized_to_a_constant(x: Any, shape: Any) -> Any:
    a = np.array(x)
    a.resize(10)
    return a.shape, shape


def resized_bound(x: Any, shape: Any) -> Any:
    a = np.array(x)
    r = a.resize
    r(shape)
    return a.shape


def resized_by_name(x: Any, shape: Any) -> Any:
    a = np.array(x)
    getattr(a, "resize")(shape)  # noqa: B009
    return a.shape


def resized_unbound(x: Any, shape: Any) -> Any:
    a = np.array(x)
    np.ndarray.resize(a, shape)
    return a.shape


def resized_with_stars(x: Any, shape: Any) -> Any:
    a = np.array(x)
    np.ndarray.resize(*(a, shape), **{"refcheck": True})
    a.resize(*(7,), **{"refcheck": True})
    return a.shape


@pytest.mark.parametrize("hot_exit", [1, 2])
@pytest.mark.parametrize(
    "function",
    [resized, resized_to_a_constant, resized_bound, resized_by_name, resized_unbound, resized_with_stars],
    ids=lambda f: f.__name__,
)
def test_resize_in_every_spelling(function: Callable[..., Any], hot_exit: int) -> None:
    with ds.config(hot_exit=hot_exit):
        check(function, ([1.0, 2.0], (3,)), ([1, 2, 3, 4], (2, 5)), rounds=5)


# -- exponents past C's long


def raised(x: Any, n: Any) -> Any:
    return x**9223372036854775808, x ** (2**63 - 1), x**n


def test_power_beyond_a_long_leaves_no_exception_behind() -> None:
    check(raised, (np.ones(3), 2), (np.ones(3), 2**70), (np.ones((2, 2), "f4"), -(2**64)))


# -- flags of divisions by what the compiler might know

DIVISIONS = [
    "(i == i) / m", "(i - i) / m", "np.isnan(i) / m", "np.isfinite(i) / m", "(m ^ m) / m", "(m | ~m) / m",
    "(i != i) / m",
    "(i - i) / (i - i)", "(i - i) / (m ^ m)", "m / (m & ~m)", "np.sqrt(-((i == i).astype(float)))",
    "((i == i) * (m | ~m)).astype(float) / m", "np.where(m, i == i, 2.0) / m", "np.reciprocal((i - i) * 1.0)",
]  # fmt: skip


@pytest.mark.parametrize("source", DIVISIONS)
def test_division_of_what_the_compiler_knows_raises_its_flags(source: str) -> None:
    function = eval(f"lambda i, m: {source}", {"np": np})
    numbers = np.arange(40)
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(function)
        with np.errstate(all="ignore"):
            for _ in range(3):
                jitted(numbers, numbers >= 0)
        for mask in (numbers >= 0, numbers > 0, numbers % 2 > 0):
            outcomes = []
            for call in (function, jitted):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    outcomes.append((call(numbers, mask).tobytes(), [str(w.message) for w in caught]))
                with np.errstate(all="raise"):
                    try:
                        outcomes[-1] += (call(numbers, mask).tobytes(),)
                    except FloatingPointError as error:
                        outcomes[-1] += (str(error),)
            assert outcomes[0] == outcomes[1]


# -- bools whose bytes are neither 0 nor 1


def copies(a: Any, b: Any) -> Any:
    return (
        np.where(a, a, b), np.floor(a), np.ceil(b), np.trunc(a), a.astype(bool), np.where(b, np.floor(a), True),
        np.where(a | b, np.trunc(b), a & b), np.floor(a) & b, np.where(np.isnan(a), a, np.where(b, a, b)),
        np.where(a.astype("?"), b, np.exp(a.astype("f8")) > 2),
    )  # fmt: skip


def computes(a: Any, b: Any) -> Any:
    return (
        a + b, a * b, a | b, a & b, a ^ b, ~a, abs(a), np.maximum(a, b), np.minimum(a, b), a == b, a < b, a <= b,
        np.logical_not(a), np.logical_xor(a, b), a.astype(int), a.astype("f4"), a + 1, a / 2.0, np.where(a, 1.5, b),
    )  # fmt: skip


@pytest.mark.parametrize("function", [copies, computes], ids=lambda f: f.__name__)
def test_bytes_of_bools_that_are_not_0_or_1(function: Callable[..., Any]) -> None:
    a = np.array([0, 2, 255, 1, 0, 4] * 9, "u1").view(bool)
    b = np.array([3, 0, 255, 0, 1, 1] * 9, "u1").view(bool)
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(function)
        for _ in range(3):
            for x, y in ((a, b), (b, ~a), (a[::2], b[::2]), (a.reshape(6, 9), b.reshape(6, 9).T[:1].T)):
                got, expected = jitted(x, y), function(x, y)
                assert [g.tobytes() for g in got] == [e.tobytes() for e in expected]
        assert jitted.stats["kernel_launches"] > 0


def elements(a: Any, b: Any) -> Any:
    a = a.copy()
    a[0] = a[2]
    count = 0
    for i in range(len(b)):
        count += int(b[i]) + (b[i] == a[i]) * 2 + (a[i] ^ b[i]) * 4 + (b[i] * 1)
        a[i] = b[i]
    for x, y in zip(a, b, strict=True):
        count += x is y
    return a.tobytes(), count, [bool(x) for x in b], b[1] + 0, b[2] + b[2]


def test_elements_of_bools_that_are_not_0_or_1() -> None:
    a = np.array([0, 2, 255, 1, 0, 4] * 9, "u1").view(bool)
    b = np.array([3, 0, 255, 0, 1, 1] * 9, "u1").view(bool)
    for native in (True, False):
        jitted = ds.jit(store=False)(elements)
        with stepped(step_aside=False, hot_loop=1), ds.config(native=native):
            for _ in range(5):
                assert repr(jitted(a, b)) == repr(elements(a, b))
                ds.wait()


# -- NaN in the data

COMPARISONS = [
    "x > 0", "x < y", "x <= y", "x >= 1", "x == y", "x != x", "np.maximum(x, 0.5)", "np.minimum(x, y)", "np.sign(x)",
    "np.where(x > 0, x, 1.0) + 1", "np.abs(x) + (x < 1) * 2", "np.sqrt(x * x) + 1", "np.isnan(x) * 1.0 + 2",
    "np.where(x <= y, x, 1.0) + np.maximum(x, 0.5)", "np.less_equal(x, y) | (y > x)", "~(x < y)",
    "np.logical_and(x, y > x)",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("source", COMPARISONS)
def test_nan_in_the_data_keeps_the_kernel(source: str, dtype: str) -> None:
    function = eval(f"lambda x, y: {source}", {"np": np})
    special = np.array([0.0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, 0.5, 1e-310], dtype)
    x, y = (a.ravel().copy() for a in np.meshgrid(special, special))
    with (
        ds.config(background=False, step_aside=False, inner_loops=0),
        np.errstate(all="raise", under="ignore", over="ignore"),
    ):
        jitted = ds.jit(store=False)(function)
        for n in (100, 100, 100, 99, 7, 1):  # whole vectors, tails, less than a vector
            with counting(jitted) as grown:
                assert same(jitted(x[:n], y[:n]), function(x[:n], y[:n]))
        assert grown["kernel_launches"] == 1
        for _ in range(20):
            jitted(x, y)
        with counting(jitted) as grown:
            jitted(x[::-1].copy(), y)
        assert grown["kernel_launches"] == 1


def same(a: Any, b: Any) -> bool:
    if a.dtype.kind != "f":
        return bool(a.tobytes() == b.tobytes())
    bits = f"u{a.itemsize}"
    return bool(np.all((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))))


def test_invalid_is_reported_beside_nan() -> None:
    check(lambda x: np.maximum(x, 0) * 2 - x, Call((np.array([np.nan, np.inf, -np.inf, 1.0]),), {}))
    check(lambda x: np.sqrt(x) + (x > 1), (np.array([np.nan, 4.0, 9.0]),), (np.array([np.nan, -4.0, 9.0]),))


# -- abs() of an array, and sum() of a generator: what eager computes into dying temporaries


def test_abs_of_an_array_is_compiled() -> None:
    x = np.linspace(-3, 3, 50)

    def function(x: Any) -> Any:
        return abs(x * 2 - 1) + abs(x)

    check(function, (x,), (x.astype("i4"),), (x > 0,))
    with ds.config(background=False, step_aside=False, inner_loops=0):
        jitted = ds.jit(store=False)(function)
        for _ in range(3):
            jitted(x)
        with counting(jitted) as grown:
            jitted(x)
    assert grown["kernel_launches"] == 1


class Odd:
    """0 + Odd() is what the class says."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __radd__(self, other: Any) -> Any:
        return (other, self.value)


def summed(make: Any, n: int) -> Any:
    return sum(make(k) for k in range(n))


@pytest.mark.parametrize(
    "make",
    [
        lambda k: np.arange(40000.0) * k, lambda k: k, lambda k: 0.1 * k, lambda k: k > 0, lambda k: np.float64(k),
        lambda k: 2**62 + k, lambda k: k * 1j, lambda k: [1, 2.5, np.ones(2), 3][k % 4], lambda k: "a",
        lambda k: 1 // (k - 2),
        lambda k: np.ones(2 + k % 2), lambda k: Odd(k), lambda k: [True, 0.1, 2**70][k % 3],
    ],
)  # fmt: skip
def test_sum_adds_as_the_builtin_does(make: Any) -> None:
    check(lambda n: summed(make, n), (0,), (1,), (2,), (5,))
    check(lambda n: sum([make(k) for k in range(n)]), (0,), (1,), (4,))


def test_sum_of_what_cannot_be_iterated() -> None:
    check(lambda v: sum(v), (1,), ([1, 2],), (["a"],), (None,), (np.ones((3, 2)),), ({1: 2, 3: 4},))


# -- temporaries


@pytest.mark.parametrize("kernels", [False, True], ids=["steps", "kernels"])
@pytest.mark.parametrize(
    "source",
    [
        "(b + 1.5) * 2.0", "-(b + 1.5)", "+(b + 1.5)", "abs(b + 1.5)", "(b + 1.5) ** 2", "(b + 1.5) ** 0.5",
        "2 * (b + 1.5)",
        "(b + 1.5) // 2", "(b + 1.5) / 2", "1 / (b + 1.5)", "(b + 1.5) ** -1", "(b + 1.5) ** 2.0",
        "(b + np.int64(1)) ** 2",
        "(b + 1.5) * np.float32(2)", "(b + 1.5) * np.array(2.0)", "np.copy(b + 1.5, order='F') * 2", "(b * 2) * 2",
        "(b + np.float32(1)) * 2.0", "(b + np.float32(1)) * 2",
    ],
)  # fmt: skip
def test_strides_of_axes_of_one_element_after_elision(source: str, kernels: bool) -> None:
    function = eval(f"lambda b: {source}", {"np": np})
    with stepped(kernels=kernels):
        for b in (np.ones((33, 1, 2000), "i4").T, np.ones((1, 300, 300), "f4").T, np.ones((1, 1, 70000)).T):
            expected = function(b)
            jitted = ds.jit(store=False)(function)
            for _ in range(4):
                got = jitted(b)
                assert (got.strides, got.dtype, got.tobytes()) == (expected.strides, expected.dtype, expected.tobytes())


@pytest.mark.parametrize("kernels", [False, True], ids=["steps", "kernels"])
def test_masks_are_temporaries_too(kernels: bool) -> None:
    def masks(f: Any, c: Any) -> Any:
        return (f > 0) & (c > 0), (c > 0) | (f > 0), (f > 0) ^ c.astype(bool)

    f = np.asfortranarray(np.random.default_rng(1).standard_normal((600, 600)))
    c = np.ascontiguousarray(f)
    with stepped(kernels=kernels):
        expected = [(m.strides, m.tobytes()) for m in masks(f, c)]
        jitted = ds.jit(store=False)(masks)
        for _ in range(4):
            assert [(m.strides, m.tobytes()) for m in jitted(f, c)] == expected
