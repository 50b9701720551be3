"""Loops as native code: eager's results, and they really are native."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.native_kit import steps_of
from tests.support import stepped


def check(function: Callable[..., Any], *calls: tuple[Any, ...], rounds: int = 3) -> None:
    """As tests.support.check, with the engine that compiles loops at their first turn."""
    rows = [made for made in calls for _ in range(rounds)]
    equivalent(function, *rows, *(calls * 3 if len(calls) > 1 else ()), engines=["native"])


def floats(n: int, x: float) -> Any:
    t = 0
    s = 0.0
    i = 0
    while i < n:
        t = (t + i * 3) & 0xFFFF
        s = s * 0.5 + x
        i += 1
    return t, s, i


def test_a_while_loop_of_ints_and_floats() -> None:
    check(floats, (3000, 1.5), (0, 1.0), (1, 2.0), (2, float("nan")), (50, float("inf")), (50, -0.0))
    assert steps_of(floats, 3000, 1.5) < 100


def test_a_range() -> None:
    def total(a: int, b: int, c: int) -> int:
        t = 0
        for i in range(a, b, c):
            t = (t ^ i) + 1
        return t

    check(total, (0, 3000, 1), (5, -900, -7), (0, 0, 1), (2**62, 2**62 + 40, 3), (2**63, 2**63 + 40, 3))
    assert steps_of(total, 0, 3000, 1) < 100


def test_a_range_of_numpy_integers() -> None:
    def rows(starts: Any, values: list[float]) -> Any:
        out = []
        for i in range(len(starts) - 1):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k]
            out.append((total, type(range(starts[i], 9).start), range(starts[i])))
        return out

    values = [0.5 * i for i in range(40)]
    for dtype in ("int64", "int32", "uint8", "uint64", "int16"):
        check(rows, (np.array([0, 3, 3, 10, 40], dtype), values))
    check(rows, (np.array([0, 3, 2.0]), values), (np.array([True, False]), values))
    check(rows, (np.array([0, 2**63 + 5], "uint64"), values), (np.array([0, 3, 40], object), values))

    def total(starts: Any, values: list[float]) -> float:
        t = 0.0
        for i in range(len(starts) - 1):
            for k in range(starts[i], starts[i + 1]):
                t += values[k]
        return t

    assert steps_of(total, np.arange(0, 41, 4), values) < 100


def test_an_int_that_becomes_too_large_in_the_middle() -> None:
    def grows(n: int, by: int) -> int:
        t = 1
        for _ in range(n):
            t = t * by + 1
        return t

    check(grows, (30, 3), (200, 3), (64, 2), (64, -2), (63, 2))


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "/"])
def test_each_operator_on_ints(op: str) -> None:
    source = f"def work(xs, n, a, b):\n t = 0\n i = 0\n while i < n:\n  t = (a {op} (b + i % 3))\n  i += 1\n return t\n"
    space: dict[str, Any] = {}
    exec(source, space)
    work = space["work"]
    numbers = [1, -7, 2**53 + 1, 2**63 - 1, -(2**63)]
    others = [0, 1, -1, -3, 62, 63] if op in ("<<", ">>") else [0, -1, -2, 5, 2**62, 2**63 - 3]
    for a in numbers[:2] if op == "%" else numbers:
        check(work, *(([], 12, a, b) for b in others), rounds=2)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%"])
@pytest.mark.parametrize("make", [float, np.float64, np.float32])
def test_each_operator_on_floats(op: str, make: Callable[[float], Any]) -> None:
    source = (
        f"def work(n, a, b, c):\n t = a\n i = 0\n while i < n:\n  t = a {op} b\n  a = a + c\n  i += 1\n return t, a\n"
    )
    space: dict[str, Any] = {}
    exec(source, space)
    work = space["work"]
    large, small = (3e38, 1e-38) if make is np.float32 else (1e308, 1e-308)
    numbers = [-0.0, -2.5, large, small, float("inf"), -float("nan")]
    for a in numbers:
        check(work, *((12, make(a), make(b), make(0.25)) for b in numbers), rounds=2)


def test_comparisons_and_branches() -> None:
    def work(n: int, x: float) -> Any:
        low = high = same = 0
        i = 0
        while i < n:
            y = (i * 7 % 11) - 5.0
            if y < x:
                low += 1
            elif y > x:
                high += 2
            elif not y != x:
                same += 3
            i += 1
        return low, high, same

    check(work, (300, 0.0), (300, 3.0), (300, float("nan")))


def test_a_signal_arrives_in_a_native_loop() -> None:
    import signal

    def spins(n: int) -> int:
        i = 0
        while i < n:
            i += 1
        return i

    class Woken(Exception):
        pass

    def wake(*_: object) -> None:
        raise Woken

    jitted = ds.jit(store=False)(spins)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(4):
            jitted(2000)
        before = signal.signal(signal.SIGALRM, wake)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Woken):
                jitted(2**62)
        finally:
            signal.signal(signal.SIGALRM, before)


def test_a_side_trace_that_reads_an_object_of_its_own() -> None:
    def work(items: list[Any], n: int) -> Any:
        found = None
        t = 0
        for i in range(n):
            if i % 5 == 3:
                found = LIMITS
                t += found[1]
            else:
                t += items[i % 3]
        return t, found is LIMITS

    check(work, ([1, 2, 3], 60), ([1, 2.5, 3], 60), rounds=6)


LIMITS = [2, 7]


def test_items_of_lists_and_tuples() -> None:
    def total(a: Any, b: Any, n: int) -> Any:
        s = 0.0
        k = 0
        for i in range(n):
            s = s + a[i] * b[-i - 1]
            k = k + b[i % 3]
            a[i] = k
        return s, k

    numbers = [0.5 * k for k in range(20)]
    ints = list(range(-10, 10))
    wide = [2**29, 2**30, -(2**31), 2**62, -(2**62), 0, 1, -1] * 3
    check(
        total,
        (numbers, tuple(ints), 20),
        (ints, ints, 20),
        (wide, wide, 20),
        ([True, False] * 10, numbers, 20),
        rounds=4,
    )
    check(total, (numbers, numbers, 25), (tuple(numbers), numbers, 5), (["a"] * 20, ints, 20), rounds=4)


def test_what_an_item_is_replaced_by_may_be_the_last_to_hold_it() -> None:
    class Falls:
        def __init__(self, log: list[int], k: int) -> None:
            self.log, self.k = log, k

        def __del__(self) -> None:
            self.log.append(self.k)

    def work(n: int) -> Any:
        log: list[int] = []
        held: list[Any] = [Falls(log, k) for k in range(n)]
        seen = []
        for i in range(n):
            held[i] = i
            seen.append(len(log))
        return log, seen

    check(work, (30,), rounds=4)


def test_a_variable_that_is_written_before_it_is_read() -> None:
    def work(n: int, first: Any) -> Any:
        last = first
        t = 0.0
        for i in range(n):
            last = i * 0.25
            t = t + last
            if i == n - 2:
                break
        return last, t

    check(work, (40, None), (40, 1), (1, "x"), (2, 1.5), (0, []), rounds=4)


def test_arrays_that_change_in_the_loop() -> None:
    def work(a: Any, n: int) -> Any:
        t = 0.0
        for i in range(n):
            t = t + a[i % 4]
            if i == 20:
                a.shape = (2, 2)
                a.shape = (4,)
            if i == 30:
                a.flags.writeable = False
            if i < 30:
                a[i % 4] = t
        return t

    check(work, (np.arange(4.0), 40), (np.arange(4.0), 25), rounds=4)


def test_narrow_integers() -> None:
    def work(a: Any, n: int) -> Any:
        t = 0
        low = a[0]
        for i in range(n):
            t = t + int(abs(a[i])) + (a[i] > low)
            low = min(low, a[i])
        return t, low

    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        check(work, (np.arange(40).astype(dtype), 40), rounds=3)
    check(work, (np.array([-128, 5, 127] * 9, "int8"), 27), (np.array([2**64 - 1, 5] * 9, "uint64"), 18), rounds=3)


def test_nested_loops_with_exits_of_their_own() -> None:
    def primes(n: int) -> Any:
        found = []
        for i in range(2, n):
            for p in found:
                if i % p == 0:
                    break
                if p * p > i:
                    found.append(i)
                    break
            else:
                found.append(i)
        return found

    check(primes, (60,), (3,), rounds=6)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "int64", "bool"])
def test_elements_that_an_iterator_gives(dtype: str) -> None:
    def total(a: Any, start: Any) -> Any:
        t = start
        last = None
        for x in a:
            t = t + x
            last = x
        return t, last

    a = (np.arange(400) % 2 if dtype == "bool" else np.arange(400) % 7).astype(dtype)
    start = np.float64(0.0) if dtype.startswith("float") else np.int64(0)
    check(total, (a, start), (a[::-3], start), (a[:0], start), (a[:1], start), (a.astype("complex128"), start))


def test_an_array_that_is_reached_by_its_iterator_alone() -> None:
    def total(n: int) -> Any:
        t = 0.0
        for k in range(4):
            for x in np.arange(k, n, 1.0):
                t = t + x
        return t

    check(total, (60,), (0,), (3,))


def test_an_iterator_over_an_array_goes_on_where_the_loop_was_left() -> None:
    def halves(a: Any, limit: float) -> Any:
        elements = iter(a)
        t = 0.0
        for x in elements:
            t = t + x
            if x > limit:
                break
        rest = []
        for x in elements:
            rest.append(x)
            t = t - x
        return t, rest, list(elements)

    a = np.arange(90.0)
    check(halves, (a, 40.0), (a, 100.0), (a, 88.5), (a, -1.0))


def test_an_array_is_written_to_while_it_is_iterated_over() -> None:
    def ahead(a: Any) -> Any:
        i = 0
        t = 0.0
        for x in a:
            t = t + x
            i = i + 1
            if i < len(a):
                a[i] = x + 0.5
        return t, a

    check(ahead, (np.arange(60.0),), (np.zeros(3),))
