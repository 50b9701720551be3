# ruff: noqa: NPY002 - the older generators are what is tested
"""Random numbers of NumPy (numpy/random.h): the same ones, and the same state behind them."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.native_kit import same
from tests.support import stepped
from tests.test_native_loops import check, steps_of

pytestmark = pytest.mark.once  # nothing here asks the version of CPython


def state_of(rng: Any) -> Any:
    return repr((rng if hasattr(rng, "get_state") else rng.bit_generator).__getstate__())


def walk(rng: Any, n: int) -> Any:
    at = 0.0
    for i in range(n):
        at += rng.random() - 0.5
        if at > 2:
            at -= rng.uniform(0, 1) + rng.normal(0, 0.1) + rng.choice(3)
        if i % 50 == 49:
            at += rng.standard_normal() + rng.random(2).sum() + rng.random((2, 2))[1, 1]
    return at, state_of(rng)


def legacy(rng: Any, n: int) -> Any:
    at = 0.0
    for i in range(n):
        at += rng.rand() - rng.random_sample()
        if i % 9 == 4:
            at += rng.randint(3) + rng.randn() + rng.rand(2)[1] + rng.randint(0, 5, size=3)[0]
    return at, state_of(rng)


def module(seed: int, n: int) -> Any:
    np.random.seed(seed)
    inside = 0
    for _ in range(n):
        x, y = np.random.rand(), np.random.random()
        if x * x + y * y <= 1:
            inside += 1
    return 4 * inside / n, np.random.uniform(), np.random.rand(3).tolist(), repr(np.random.get_state())


def made_inside(seed: int, n: int) -> Any:
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(n):
        x, y = rng.random(), rng.random()
        hits += x < y
    return hits, state_of(rng)


def lattice(rng: Any, n: int, low: Any, high: Any) -> Any:
    draw = rng.integers if hasattr(rng, "integers") else rng.randint
    seen = [0] * 8
    last = None
    for i in range(n):
        last = rng.integers(low, high) if hasattr(rng, "integers") else rng.randint(low, high)
        seen[last % 8] += rng.integers(7) if hasattr(rng, "integers") else rng.randint(7)
        if i % 40 == 7:
            seen[0] += draw(1, 1 + i)
    return seen, last, type(last), state_of(rng)


def spread(rng: Any, n: int, *bounds: Any) -> Any:
    total, first = 0.0, bounds[0] if bounds else 0.25
    for _ in range(n):
        total += rng.uniform(*bounds) if len(bounds) > 2 else rng.uniform(first, 9) - rng.uniform(first) * rng.uniform()
        if bounds[1:]:
            total -= rng.uniform(first, bounds[1])
    return total, state_of(rng)


def by_module(seed: int, n: int, high: Any) -> Any:
    np.random.seed(seed)
    total = 0
    for i in range(n):
        total += np.random.randint(high) - np.random.randint(-3, 4 + i) * np.random.uniform(-1, high)
    return total, np.random.randint(2**31)


class Halves(np.random.Generator):
    def random(self, *args: Any, **named: Any) -> Any:
        return super().random(*args, **named) / 2


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators(bits: Any) -> None:
    for make in (np.random.Generator, Halves):
        same(walk, lambda make=make: (make(bits(5)), 600))
    same(legacy, lambda: (np.random.RandomState(bits(5)), 600))


RANGES = [
    (0, 10), (-5, 6), (3, 4), (0, 2**32 - 1), (0, 2**32), (0, 2**32 + 1), (-(2**40), 2**40), (-(2**63), 2**63 - 1),
    (5, 5), (7, 2), (True, 9), (np.int8(-3), np.int64(80)), (0.0, 5.0), (0, 2**70), (2**31 - 5, 2**31 + 5), ("a", 3),
    (None, 5),
]  # fmt: skip


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
@pytest.mark.parametrize("between", RANGES, ids=str)
def test_whole_numbers(bits: Any, between: Any) -> None:
    for make in (np.random.Generator, np.random.RandomState):
        same(lattice, lambda make=make: (make(bits(9)), 300, 0, 10), lambda make=make: (make(bits(5)), 200, *between))


BOUNDS = [
    (), (0.5,), (-1, 1), (2.5, 2.5), (-0.0, 0.0), (3.0, 1.0), (8, 10**17 + 1), (1e308, -1e308), (-1e308, 1e308),
    (np.nan, 1.0), (0.0, np.inf), (True, 5), (np.float64(0.1), np.float32(7)), (10**400, 1), (1, 2, 3), ("a", 2.0),
    (np.arange(2.0), 5),
]  # fmt: skip


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_between_bounds(bits: Any, bounds: Any) -> None:
    for make in (np.random.Generator, np.random.RandomState):
        same(spread, lambda make=make: (make(bits(9)), 300, 0.5), lambda make=make: (make(bits(5)), 200, *bounds))


def test_whole_numbers_of_the_module() -> None:
    kept = np.random.get_state()
    check(by_module, (1, 300, 10), (2, 200, 2**32), (3, 100, 0), (4, 100, 2.5), (5, 50, np.int16(4)))
    np.random.set_state(kept)


def test_of_another_kind_in_the_middle() -> None:
    jitted = ds.jit(store=False)(walk)
    with stepped():
        for make in (
            np.random.default_rng,
            Halves,
            lambda n: np.random.RandomState(np.random.PCG64(n)),
            np.random.default_rng,
        ):
            for n in (3, 100, 400):
                makers = (lambda: make(np.random.PCG64(n))) if make is Halves else lambda: make(n)
                assert jitted(makers(), n) == walk(makers(), n)


def test_the_module_and_one_made_inside() -> None:
    kept = np.random.get_state()
    check(module, (2000, 1), (700, 2), (1, 3))
    np.random.set_state(kept)
    check(made_inside, (1, 2000), (2, 700))


def test_it_is_not_called() -> None:
    def total(n: int) -> float:
        s = 0.0
        for _ in range(n):
            s += np.random.rand()
        return s

    def of(rng: Any, n: int) -> float:
        s = 0.0
        for _ in range(n):
            s += rng.random()
        return s

    def whole(rng: Any, n: int) -> int:
        s = 0
        for _ in range(n):
            s += rng.integers(10) + np.random.randint(1, 9)
            s += rng.uniform(0, 1) + np.random.uniform(-1.0, 1.0)
        return s

    assert steps_of(total, 2000) < 100
    assert steps_of(lambda n: whole(np.random.default_rng(1), n), 2000) < 7 * 2000
    assert steps_of(lambda n: of(np.random.default_rng(1), n), 2000) < 200


@pytest.fixture
def another_thread() -> Iterator[None]:
    """One that waits, as a notebook has several."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.mark.usefixtures("another_thread")
def test_threads_that_draw_nothing_do_not_matter() -> None:
    test_it_is_not_called()
    for make in (np.random.default_rng, np.random.RandomState):
        rng = make(5)
        jitted = ds.jit(store=False)(lambda n, rng=rng: walk(rng, n))
        for _ in range(5):
            jitted(100)
        with rng._bit_generator.lock if hasattr(rng, "_bit_generator") else rng.bit_generator.lock:
            jitted(100)  # it is this thread's: whoever has it may draw


def test_who_holds_the_lock_draws_alone() -> None:
    rng, twin = np.random.default_rng(8), np.random.default_rng(8)
    jitted = ds.jit(store=False)(walk)
    for _ in range(5):
        jitted(np.random.default_rng(1), 300)
    begun, drawn = threading.Event(), []

    def holds() -> None:
        with rng.bit_generator.lock:
            begun.set()
            drawn.extend(rng.random() for _ in range(3000))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=holds)
    try:
        thread.start()
        begun.wait()
        jitted(rng, 100)
    finally:
        thread.join()
        sys.setswitchinterval(before)
    assert drawn == [twin.random() for _ in range(3000)]


def test_another_thread_has_the_generator() -> None:
    """Whoever draws many holds the generator's lock, and not the GIL."""
    jitted = ds.jit(store=False)(walk)
    rng = np.random.default_rng(3)
    for _ in range(5):
        jitted(rng, 300)
    ended = threading.Event()

    def draws() -> None:
        while not ended.is_set():
            rng.random(100_000)

    thread = threading.Thread(target=draws)
    thread.start()
    try:
        drawn = [jitted(rng, 50)[0] for _ in range(50)]
    finally:
        ended.set()
        thread.join()
    assert np.isfinite(drawn).all()
    state = rng.bit_generator.state
    wanted = walk(rng, 300)
    rng.bit_generator.state = state
    assert jitted(rng, 300) == wanted


@pytest.mark.parametrize(
    "draw", [random.random, np.random.rand, np.random.default_rng(0).random], ids=["random", "rand", "generator"]
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_nothing_is_drawn_twice(draw: Any) -> None:
    """Array ops that wait while a number is drawn may yet be done anew, or left."""

    def mixed(a: Any, b: Any, n: int) -> Any:
        total = 0.0
        for _ in range(n):
            c = a * b
            x = draw()
            total += float((c * x + a).sum()) if x < 0.9 else x
        return total, draw()

    def seeded(function: Any, *args: Any) -> Any:
        random.seed(4)
        np.random.seed(4)
        getattr(draw.__self__, "bit_generator", np.random.default_rng(0).bit_generator).state = np.random.PCG64(4).state
        return repr(function(*args))

    jitted = ds.jit(store=False)(mixed)
    kept = random.getstate(), np.random.get_state()
    calm, wild = np.linspace(0, 1, 50), np.linspace(1e300, 1e308, 50)
    with stepped(kernels=True, background=False):
        for args in (
            (calm, calm, 40),
            (wild, wild, 40),
            (calm, wild, 40),
            (calm[:3], calm[:3], 40),
            (calm.astype("f4"), calm, 9),
        ) * 3:
            assert seeded(jitted, *args) == seeded(mixed, *args)
    random.setstate(kept[0])
    np.random.set_state(kept[1])


def distributions(rng: Any, n: int, *parameters: Any) -> Any:
    draw, given = rng.normal, []
    for i in range(n):
        given.append(rng.normal(*parameters) if len(parameters) > 3 else rng.normal(parameters[0], parameters[1]))
        given.append(rng.standard_normal() - rng.normal() * rng.normal(i))
        given.append(rng.exponential() + rng.exponential(parameters[1]) / (1 + rng.standard_exponential()))
        given.append(draw(0.5, i) + draw())
    return given, [type(x) for x in given[:4]], state_of(rng)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_distributions(bits: Any) -> None:
    for make in (np.random.Generator, Halves):
        for parameters in ((0.0, 1.0), (-3, 2), (2.5, 0.0), (1e300, 1e10)):
            same(distributions, lambda m=make, p=parameters: (m(bits(7)), 60, *p))


@pytest.mark.parametrize(
    "parameters", [(0.0, -1.0), (0.0, -0.0), (0.0, np.nan), (np.nan, 1.0), ("a", 1.0), (0.0, None), (np.zeros(2), 1.0)]
)
def test_parameters_that_distributions_refuse(parameters: Any) -> None:
    same(distributions, lambda: (np.random.default_rng(7), 40, *parameters))
    mixed = iter(())

    def later(rng: Any, n: int, bad: Any) -> Any:
        total = 0.0
        for i in range(n):
            total += rng.normal(0.0, 1.0 if i < n - 2 else bad)
        return total, state_of(rng), next(mixed, 0)

    same(later, lambda: (np.random.default_rng(7), 40, parameters[1]))


def test_the_older_generators_keep_their_own() -> None:
    def walk(rng: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total += (
                rng.normal(0.0, 1.0)
                + rng.standard_normal()
                + rng.exponential(2.0)
                + rng.standard_exponential()
                + rng.randn()
            )
        return total, repr(rng.get_state())

    same(walk, lambda: (np.random.RandomState(3), 60))


def test_normals_of_the_module() -> None:
    def walk(seed: int, n: int) -> Any:
        np.random.seed(seed)
        total = np.random.standard_normal(3).sum() if seed % 2 else np.random.randn()
        for i in range(n):
            total += np.random.normal(0.5, 2) * np.random.randn() - np.random.normal() / (1 + np.random.exponential(3))
            if i % 7 == 3:
                total += np.random.randn(2, 2)[1, 1] + np.random.standard_exponential()
        return total, repr(np.random.get_state())

    for seed in range(4):
        same(walk, lambda s=seed: (s, 61))
