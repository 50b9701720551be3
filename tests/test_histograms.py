"""np.histogram() in a step of its own: counts, edges and errors of NumPy's."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import harness
from tests.support import outcome_told

pytestmark = pytest.mark.once

R = np.random.default_rng(21)
N = 70_001  # more than what NumPy adds up at once


def agrees(function: Any, *arguments: Any) -> None:
    jitted = ds.jit(store=False)(function)
    want = outcome_told(function, *arguments)
    for _ in range(4):
        have = outcome_told(jitted, *arguments)
        assert harness.same(have, want)
        for one, other in zip(have[0], want[0], strict=True):
            if isinstance(one, np.ndarray):
                bases = [None if a.base is None else (a.base.shape, a.base.base) for a in (one, other)]
                assert bases[0] == bases[1] and one.flags.num == other.flags.num


def by_place(a: Any, bins: Any, limits: Any) -> Any:
    return np.histogram(a, bins, limits)


def by_name(a: Any, bins: Any, limits: Any, weights: Any, density: Any) -> Any:
    return np.histogram(a, bins=bins, range=limits, weights=weights, density=density)


def numbers(dtype: str, n: int) -> Any:
    if dtype == "f8":
        return R.standard_normal(n)
    if dtype == "f4":
        return R.standard_normal(n).astype("f4")
    if dtype == "?":
        return R.integers(0, 2, n).astype(bool)
    return R.integers(0 if dtype[0] == "u" else -100, 120, n).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
@pytest.mark.parametrize("bins", [1, 2, 10, 256, 1000])
def test_dtypes(dtype: str, bins: int) -> None:
    for n in (1, 9, 1000, N):
        a = numbers(dtype, n)
        for limits in (None, (0, 100), (-0.5, 0.5), (0, 256), (-3.25, 120)):
            agrees(by_place, a, bins, limits)
    a = numbers(dtype, N)
    agrees(by_name, a, bins, None, None, None)
    agrees(by_name, a, bins, (-1.0, 50), R.standard_normal(N), False)
    agrees(by_name, a.reshape(-1, 1), bins, (0, 9), None, True)
    agrees(by_name, a, bins, None, R.integers(0, 5, N), None)
    agrees(by_name, a, bins, (0, 9), R.standard_normal(N).astype("f4"), None)


def test_on_the_edges() -> None:
    for a in (
        np.arange(1000) / 10,
        np.repeat(np.linspace(0, 1, 50), 20),
        np.arange(-300, 300).astype("i2"),
        np.arange(0.0, 3.0, 0.1),
    ):
        for bins in (3, 7, 10, 49, 50, 100, 997):
            agrees(by_place, a, bins, None)
            agrees(by_place, a, bins, (0.1, 0.7))
            agrees(by_place, a, bins, (-3, 30))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0])
def test_special_values(special: float) -> None:
    a = R.random(300)
    a[7] = special
    for limits in (None, (0, 1), (0.25, 0.5), (-1e308, 1e308), (0, 5e-324), (0.0, 1e-310)):
        agrees(by_place, a, 20, limits)
    with np.errstate(all="raise"):
        agrees(by_place, a, 20, (0, 1))
    agrees(by_name, R.random(300), 9, None, a, None)


def test_whole_numbers_that_no_double_holds() -> None:
    a = np.array([2**53 - 1, 2**53 + 1, 2**62, -(2**62), 5])
    for limits in (None, (0, 10), (0, 2**53 + 2), (2**53, 2**60)):
        agrees(by_place, a, 7, limits)


def test_the_last_edge_is_the_zero_that_numpy_finds() -> None:
    for a in ([-1.0, 0.0, -0.0], [-1.0, -0.0, 0.0], [-1.0, -0.0], [0.0, 1.0, -0.0]):
        agrees(by_place, np.array(a * 9), 2, None)
    agrees(by_place, np.array([-1.0, 0.5]), 2, (-1.0, -0.0))


def test_a_whole_number_that_only_rounds_to_the_limit() -> None:
    agrees(by_place, np.array([2**53 + 1, 0]), 2, (0, 2**53))
    agrees(by_place, np.array([2**53 + 1, -(2**53)]), 2, (-(2**53) - 1, 2**53))


def test_another_linspace(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = ds.jit(store=False)(by_place)
    a = R.random(50)
    for _ in range(3):
        assert harness.same(jitted(a, 4, None), by_place(a, 4, None))
    monkeypatch.setattr(np, "linspace", lambda *_, **__: np.array([0.0, 0.1, 0.5, 0.7, 1.0]))
    assert harness.same(jitted(a, 4, (0.0, 1.0)), by_place(a, 4, (0.0, 1.0)))


def test_what_numpy_refuses_or_does_in_another_way() -> None:
    a = R.random(50)
    for bins in (0, -3, True, np.int64(4), 2.5, "auto", [0.0, 0.5, 1.0], np.linspace(0, 1, 5)):
        agrees(by_place, a, bins, None)
    for limits in (
        (1, 0),
        (0.5, 0.5),
        [0.25, 1],
        [0, "a"],
        (0, np.inf),
        (np.nan, 1),
        [0, 1],
        (np.float64(0), 1),
        (0, 1, 2),
        (0, 10**400),
        "ab",
    ):
        agrees(by_place, a, 4, limits)
    agrees(by_place, a[:0], 4, None)
    agrees(by_place, a[::2], 4, None)
    agrees(by_place, a.reshape(5, 10).T, 4, (0, 1))
    agrees(by_place, np.float64(3), 4, None)
    agrees(by_place, a.tolist(), 4, None)
    agrees(by_place, np.ma.array(a), 4, None)
    agrees(by_name, a, 4, None, a[1:], None)
    agrees(lambda a: np.histogram(a), a)
    agrees(lambda a: np.histogram(a, 3, weights=np.full(50, np.inf)), a)


def test_sums_of_weights_have_their_very_dtype() -> None:
    """An object of its own, where they come out of a pickle."""
    a = R.random(50)
    own = pickle.loads(pickle.dumps(a))
    jitted = ds.jit(store=False)(by_name)
    for weights in own, a, own, own * 2:
        for _ in range(4):
            have, want = (f(a, 4, None, weights, None) for f in (jitted, by_name))
            assert [x.dtype.isbuiltin for x in have] == [x.dtype.isbuiltin for x in want]


def test_an_image_is_equalised() -> None:
    def equalised(image: Any) -> Any:
        counts, edges = np.histogram(image.flatten(), 256, (0, 256))
        total = counts.cumsum()
        return (total[image] * 255 / total[-1]).astype(np.uint8), edges[:-1]

    agrees(equalised, R.integers(0, 256, (60, 80)).astype("u1"))
