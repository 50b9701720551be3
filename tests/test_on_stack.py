"""Loops that are entered in the middle of a call: in the first one, and again after they were left."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting, stepped


def enters(function: Callable[..., Any], *args: Any, calls: int = 1, **settings: Any) -> Any:
    """The results of the first calls, in which loops were entered."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, **settings), counting(jitted) as grown:
        results = [jitted(*args) for _ in range(calls)]
    assert grown["loops_entered"] > 0, jitted.explain()
    return results[0] if calls == 1 else results


def summed(n: int) -> tuple[int, int]:
    total = 0
    for i in range(n):
        total = total + i * i
    return total, i


def test_a_loop_is_entered_in_the_first_call() -> None:
    assert enters(summed, 500) == summed(500)
    jitted = ds.jit(store=False)(summed)
    with stepped(native=False), counting(jitted) as grown:
        jitted(5000)
    assert grown["loops_entered"] == 1
    assert grown["steps"] > 5000
    check(summed, (500,), (7,))


def left_often(n: int) -> list[int]:
    out = []
    k = 0
    while k < n:
        k += 1
        if k % 50 == 0:
            out.append(k)
        if k % 70 == 0:
            out.append(-k)
    return out


def test_a_loop_that_was_left_is_entered_again_and_grows() -> None:
    assert enters(left_often, 2000) == left_often(2000)
    jitted = ds.jit(store=False)(left_often)
    with stepped(step_aside=False), counting(jitted) as grown:
        jitted(20000)
    assert grown["recordings"] >= 3
    assert grown["loops_entered"] < 12


def branches(n: int, stop: int) -> Any:
    seen = []
    for i in range(n):
        if i % 5 == 3:
            continue
        if i == stop:
            break
        seen.append(i)
    else:
        return "else", len(seen), i
    return "break", len(seen), i


def test_break_continue_and_else() -> None:
    for stop in (5, 60, 61, 200):
        assert enters(branches, 200, stop, calls=3) == [branches(200, stop)] * 3
    check(branches, (90, 40), (90, 100), (2, 1))


def nested(n: int, m: int) -> list[float]:
    rows = []
    for i in range(n):
        total = 0.0
        for j in range(m):
            k = j
            while k > 0:
                k //= 2
                total += k * i
        rows.append(total)
    return rows


def test_nested_loops() -> None:
    assert enters(nested, 12, 15) == nested(12, 15)
    check(nested, (6, 9), (2, 40), (40, 2), (0, 3), (3, 0))


def left_at(iterator: Any, stop: int) -> Any:
    for x in iterator:
        if x == stop:
            break
    return x, list(itertools.islice(iterator, 3))


def test_iterators_stand_where_the_loop_left_them() -> None:
    jitted = ds.jit(store=False)(left_at)
    values = list(range(100))
    with stepped():
        makers: tuple[Callable[[], Any], ...] = (
            lambda: iter(range(100)), lambda: iter(values), lambda: iter(tuple(values)), lambda: map(abs, values),
            lambda: (v for v in values), lambda: iter(np.arange(100)), lambda: reversed(values),
        )  # fmt: skip
        for make in makers:
            for stop in (0, 1, 2, 3, 50, 99):
                assert repr(jitted(make(), stop)) == repr(left_at(make(), stop))


def returns_inside(n: int, stop: int) -> Any:
    for i in range(n):
        for j in range(n):
            if i * j == stop:
                return i, j
    return None


def returns_nothing(rows: list[int]) -> None:
    for k in range(len(rows)):
        for i in range(30):
            rows[k] += i


def test_a_loop_that_returns() -> None:
    assert enters(returns_inside, 40, 37 * 38, calls=3) == [returns_inside(40, 37 * 38)] * 3
    assert enters(returns_inside, 40, -1, calls=3) == [None] * 3
    rows, wanted = [0] * 40, [0] * 40
    assert enters(returns_nothing, rows) is None
    returns_nothing(wanted)
    assert rows == wanted


class Noisy:
    def __init__(self, log: list[int], number: int) -> None:
        self.log, self.number = log, number

    def __del__(self) -> None:
        self.log.append(self.number)


def with_finalisers(n: int, log: list[int]) -> int:
    thing = Noisy(log, -1)
    for i in range(n):
        log.append(1000 + i)
        thing = Noisy(log, i)
    log.append(7)
    return thing.number


def test_values_die_as_in_eager() -> None:
    def run(f: Callable[..., Any]) -> Any:
        log: list[int] = []
        return f(30, log), log

    jitted = ds.jit(store=False)(with_finalisers)
    with stepped(step_aside=False):
        for _ in range(3):
            assert run(jitted) == run(with_finalisers)


def references(n: int, item: Any) -> int:
    held = [item]
    last = None
    for i in range(n):
        last = held[0]
        if i == n - 1:
            held.clear()
    return i if last is item else -1


def test_nothing_is_kept_or_lost() -> None:
    item = Noisy([], 0)
    before = sys.getrefcount(item)
    for _ in range(5):
        jitted = ds.jit(store=False)(references)
        with stepped(step_aside=False):
            assert jitted(200, item) == 199
            assert jitted(3, item) == 2
        assert sys.getrefcount(item) == before
    there = weakref.ref(item)
    del item
    assert there() is None


def recursive(depth: int, n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    if depth:
        total += recursive(depth - 1, n)
    for i in range(n):
        total -= depth * i
    return total


def test_recursion() -> None:
    wanted = recursive(5, 40)
    jitted = ds.jit(store=False)(recursive)
    globals()["recursive"], plain = jitted, recursive
    try:
        with stepped(step_aside=False):
            assert [jitted(5, 40) for _ in range(5)] == [wanted] * 5
    finally:
        globals()["recursive"] = plain


def depth_left(n: int, deep: Callable[[int], int]) -> Any:
    found = 0
    for i in range(n):
        found = i
        if i == 60:
            found = deep(0)
            break
    return found


def how_deep(n: int) -> int:
    try:
        return how_deep(n + 1)
    except RecursionError:
        return n


def test_the_recursion_limit() -> None:
    jitted = ds.jit(store=False)(depth_left)
    with stepped(step_aside=False):
        wanted = depth_left(100, how_deep)
        got = [jitted(100, how_deep) for _ in range(4)]
    assert all(wanted <= depth <= wanted + 8 or abs(wanted - depth) <= 3 for depth in got), (wanted, got)


def generated(n: int) -> Any:
    total = 0
    for i in range(n):
        total += i
        if i % 10 == 0:
            yield total


def test_generators_are_left_alone() -> None:
    assert list(ds.jit(store=False)(generated)(100)) == list(generated(100))


def makes_generator(n: int) -> list[int]:
    out = []
    for i in range(n):
        out.append(sum(k * i for k in range(5)))
    return out


def test_a_loop_around_a_generator() -> None:
    assert enters(makes_generator, 60) == makes_generator(60)


def closure(n: int) -> Any:
    total = 0

    def add(x: int) -> None:
        nonlocal total
        total += x

    for i in range(n):
        add(i)
        step = lambda: i  # noqa: E731, B023
    return total, step()


def test_cells() -> None:
    check(closure, (50,), (3,))


def test_two_threads_in_one_function() -> None:
    jitted = ds.jit(store=False)(nested)
    wanted = nested(30, 30)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(jitted(30, 30))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 4


def changes_type(n: int) -> Any:
    x: Any = 0
    for i in range(n):
        if i == 30:
            x = 0.5
        if i == 60:
            x = "a"
        x = x + x if i < 60 else x + "b"
    return x


def test_variables_that_change_their_type() -> None:
    check(changes_type, (100,), (40,))


def grows_large(n: int) -> int:
    x = 3
    for _ in range(n):
        x = x * x % 1000000007000000011
        x = x << 3
    return x


def test_ints_that_overflow() -> None:
    assert enters(grows_large, 60, calls=3) == [grows_large(60)] * 3


def arrays(n: int, a: Any) -> Any:
    total = np.zeros(4)
    for i in range(n):
        total = total + a[i % len(a)]
        total[i % 4] -= 1
    return total, total.base is None


def test_arrays() -> None:
    check(arrays, (80, np.arange(20.0).reshape(5, 4)))


def test_a_tree_that_is_cleared_inside() -> None:
    def clears(n: int, clear: Callable[[], None]) -> int:
        total = 0
        for i in range(n):
            total += i
            if i % 30 == 29:
                clear()
        return total

    jitted = ds.jit(store=False)(clears)
    with stepped(step_aside=False):
        for _ in range(4):
            assert jitted(100, jitted.clear) == 4950


def deletes(n: int) -> Any:
    x = 1
    for i in range(n):
        if i == 50:
            del x
        if i == 70:
            x = 5
        y = i
    return x, y


def test_variables_without_a_value() -> None:
    check(deletes, (100,), (60,), (20,))


def shapes(a: Any, n: int) -> Any:
    i = s = 0
    out = None
    while i < n:
        i += 1
        out = a.reshape(a.shape)
        k = 0
        while k < 3:
            k += 1
            s += k
    return out, s


def adds(x: Any, n: int) -> Any:
    out = []
    for i in range(n):
        out.append(x + i)
        k = 0
        while k < 3:
            k += 1
        out.append(k)
    return out, x.real


KINDS = {
    shapes: [np.float64(2.5), np.arange(3.0), np.arange(4), np.float32(3), np.complex128(1j)],
    adds: [2.5, 7, np.arange(3.0), 1j, True, np.float64(2), 1 << 70, np.complex128(2j)],
}


# A loop that only carries a variable was entered with one of another type, and went on to a loop that takes it for
# what it was: an array was given to np.float64.reshape.
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", KINDS)
def test_a_variable_of_another_type_is_carried_to_a_loop(function: Callable[..., Any], native: bool) -> None:
    for first, second in itertools.permutations(KINDS[function], 2):
        with stepped(step_aside=False, native=native):
            check(function, *((x, n) for n in (3, 40, 300) for x in (first, second, first)), rounds=1)
