"""Random numbers of the standard library (hook/random_numbers.h): the same ones, and the same state behind them."""

from __future__ import annotations

import random
from typing import Any

from tests.native_kit import same
from tests.test_native_loops import check, steps_of


def pi(n: int, seed: int) -> Any:
    random.seed(seed)
    inside = 0
    for _ in range(n):
        x = random.random()
        y = random.random()
        if x * x + y * y <= 1:
            inside += 1
    return 4 * inside / n, random.getstate()


def walk(rng: Any, n: int) -> Any:
    at = 0.0
    for _ in range(n):
        at += rng.random() - 0.5
        if at > 2:
            at -= rng.uniform(0, 1) + rng.randrange(2)
    return at, rng.getstate() if hasattr(rng, "getstate") else rng


class Halves(random.Random):
    def random(self) -> float:
        return super().random() / 2


class Named(random.Random):
    pass


class Constant:
    def random(self) -> float:
        return 0.75

    def uniform(self, a: float, b: float) -> float:
        return a

    randrange = abs


def test_the_module() -> None:
    kept = random.getstate()
    check(pi, (2000, 1), (700, 2), (1, 3))
    random.setstate(kept)


def test_it_is_not_called() -> None:
    def total(n: int) -> float:
        s = 0.0
        for _ in range(n):
            s += random.random()
        return s

    assert steps_of(total, 2000) < 100


def test_generators_of_their_own() -> None:
    check(walk, (random.Random(5), 900), (random.Random(6), 400), (Named(7), 700))
    check(walk, (random.Random(5), 50), (Halves(3), 50), (Constant(), 50), (random.Random(1), 50), rounds=2)


def test_what_is_drawn_in_between_counts() -> None:
    def mixed(seed: int, n: int) -> Any:
        rng = random.Random(seed)
        draw = rng.random
        out = []
        for i in range(n):
            out.append(draw())
            if i % 7 == 3:
                out.append(rng.gauss(0, 1))
            if i % 50 == 9:
                rng.seed(i)
        return out

    check(mixed, (4, 300), (5, 30))


def test_a_draw_among_the_arguments_of_a_call() -> None:
    def hands(n: int) -> Any:
        random.seed(1)
        total = 0
        for _ in range(n):
            held = 0
            while held < 17:
                held += min(random.randint(1, 13), 10)
            total += held <= 21
        return total, random.random()

    same(hands, lambda: (60,), lambda: (5,))
