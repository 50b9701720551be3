"""getrandbits() drawn from the generator's state, and what the standard library makes of it; bound methods in C."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

import dalsegno as ds
from tests.support import counting, stepped
from tests.test_native_loops import check, steps_of

pytestmark = pytest.mark.once  # nothing here asks the version of CPython


def dice(seed: int, n: int) -> Any:
    random.seed(seed)
    out = []
    for i in range(n):
        out += [random.randint(1, 6), random.randrange(i + 1), random.choice("abcdef"), random.randrange(0, 50, 7)]
    return out, random.getstate()


def test_the_module() -> None:
    kept = random.getstate()
    check(dice, (1, 700), (2, 40), (3, 0))
    random.setstate(kept)


def shuffled(seed: int, items: list[Any]) -> Any:
    rng = random.Random(seed)
    rng.shuffle(items)
    return items, rng.sample(items, 3), rng.choices(items, k=4), rng.getstate()


def test_shuffled() -> None:
    check(shuffled, (1, list(range(400))), (2, list("abcdefgh")))


def bits(rng: Any, widths: list[Any]) -> Any:
    draw = rng.getrandbits
    out = []
    for k in widths:
        out.append(rng.getrandbits(k) ^ 1)
        out.append(draw(k))
    return out, rng.getstate()


@pytest.mark.parametrize("widths", [[1, 31, 32, 33, 62, 63] * 20, [5] * 30 + [64, 65, 200] * 4, [3] * 20 + [0, 0, 0]])
def test_widths(widths: list[Any]) -> None:
    check(bits, (random.Random(4), widths), (random.Random(5), widths[::-1]))


def test_widths_that_raise() -> None:
    check(
        bits, (random.Random(4), [7] * 30 + [-1]), (random.Random(4), [7] * 30 + [2.5]), (random.Random(4), [True] * 9)
    )


class Loaded(random.Random):
    def getrandbits(self, k: int, /) -> int:
        return super().getrandbits(k) | 1


class Odd:
    def getrandbits(self, k: int) -> int:
        return -k

    def getstate(self) -> int:
        return 3


def test_other_generators() -> None:
    check(bits, (random.Random(4), [9] * 40), (Loaded(4), [9] * 40), (Odd(), [9] * 40), rounds=2)
    check(shuffled_by, (Loaded(3), list(range(60))), (random.Random(3), list(range(60))), rounds=2)


def shuffled_by(rng: Any, items: list[Any]) -> Any:
    rng.shuffle(items)
    return items


def test_they_are_not_called() -> None:
    def total(n: int) -> int:
        s = 0
        for _ in range(n):
            s += random.getrandbits(7)
        return s

    assert steps_of(total, 2000) < 100


def lengths(numbers: list[int]) -> Any:
    return [(n.bit_length(), (-n).bit_length()) for n in numbers] + [sum(n.bit_length() for n in numbers)]


def looped_lengths(numbers: list[int]) -> Any:
    s = 0
    for n in numbers:
        s = s * 3 + n.bit_length()
    return s


def test_bit_lengths() -> None:
    numbers = [0, 1, 2, 255, 256, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 2**63, 2**100, -1]
    check(lengths, (numbers,), (list(range(40)),))
    check(looped_lengths, (list(range(60)) + [-9, -(2**63)],), ([2**70] * 20,))


# ---- methods bound to objects ----------------------------------------------------------------------------


def filled(items: Any, n: int, other: Any) -> Any:
    add = items.append
    for i in range(n):
        add(i * 3)
        if i == 50:
            add = other
    return items, add is other


def test_append() -> None:
    check(
        filled,
        ([], 40, None),
        ([], 200, [].append),
        ([], 90, len),
        (deque(), 60, [].append),
        (deque(maxlen=3), 60, print),
        rounds=2,
    )


def chosen(table: dict[str, int], keys: list[Any]) -> Any:
    get, put, up = table.get, table.setdefault, "a".upper
    out = []
    for k in keys:
        out.append((get(k), get(k, 7), put(k, 1), up(), get))
    return [row[:4] for row in out], get == table.get


def test_methods_of_dicts_and_texts() -> None:
    check(chosen, ({"a": 1}, ["a", "b", "c"] * 9), ({}, [1, 2.5, (1, "x")] * 4), ({}, [1, []]))


def shown(xs: list[int], n: int) -> Any:
    """What holds the bound method is looked at."""
    pop = xs.pop
    for i in range(n):
        last = pop()
        if i == n - 1:
            return sorted(k for k in locals() if k != "xs"), locals()["pop"].__self__ is xs, last
    return pop, pop == xs.pop


def test_bound_methods_are_seen() -> None:
    f = ds.jit(store=False)(shown)
    for n in (5, 9, 5, 0, 3):
        for _ in range(3):
            xs, ys = list(range(20)), list(range(20))
            got, want = f(xs, n), shown(ys, n)
            if n:
                assert got == want
            else:
                assert got[0].__self__ is xs and got[1]
            assert xs == ys


def test_which_method_it_is_can_change() -> None:
    def call(method: Any, n: int) -> int:
        s = 0
        for _ in range(n):
            s += method(3)
        return s

    class Numbers(list):  # type: ignore[type-arg]
        pass

    rows = [{3: 5}.get, {3: 8}.get, (3, 2).count, Numbers([3]).count, {3: 5}.setdefault, [0, 3].index, abs]
    f = ds.jit(store=False)(call)
    with stepped(step_aside=False), counting(f) as grown:
        for method in rows * 3:
            assert f(method, 40) == call(method, 40)
    assert grown["replays"] > 0


def test_another_method_of_the_same_type() -> None:
    def call(method: Any) -> Any:
        return method(3)

    f = ds.jit(store=False)(call)
    with stepped(step_aside=False):
        for name in ["get"] * 5 + ["pop", "get", "pop"]:
            table = {3: 5, 4: 6}
            assert (f(getattr(table, name)), 3 in table) == (5, name == "get")
