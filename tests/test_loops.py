# ruff: noqa: E501 - programs as text, tables of calls
"""Loops: whole in the replay machine, left and resumed in the middle, nested, zero times, with effects, signals and other threads."""

from __future__ import annotations

import signal
import threading

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, counting, settles, stepped


def total(n):
    s = 0
    for i in range(n):
        s += i * i
    return s


def test_a_loop_runs_in_the_replay_machine():
    check(total, (100,), (0,), (1,), (1000,), (3,))
    jitted = ds.jit(store=False)(total)
    with stepped():
        for n in (50, 50, 50, 0, 0, 0, 1, 1, 2, 500):
            assert jitted(n) == total(n)
        with counting(jitted) as grown:
            for n in (50, 500, 0, 1, 5000):
                assert jitted(n) == total(n)
    assert grown == grown | {"replays": 5, "exits": 0, "recordings": 0}
    assert any(trace["anchor"] == "loop" for trace in jitted.traces())


def test_the_trace_does_not_grow_with_the_number_of_iterations():
    sizes = []
    for n in (60, 6000):
        jitted = ds.jit(store=False)(total)
        jitted(n)
        sizes.append(sum(len(trace["ops"]) for trace in jitted.traces()))
    assert sizes[0] == sizes[1]


def collatz(n, limit):
    steps = 0
    while n != 1 and steps < limit:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
    return n, steps


def test_branches_inside_a_loop():
    check(collatz, (27, 1000), (1, 5), (8, 1000), (2**70 + 1, 2000), (97, 10), (7.0, 100))
    settles(collatz, (27, 1000))


def newton(x, tolerance):
    guess = x / 2 + 1
    rounds = 0
    while abs(guess * guess - x) > tolerance:
        guess = (guess + x / guess) / 2
        rounds += 1
        if rounds > 60:
            break
    else:
        return guess, rounds, "converged"
    return guess, rounds


def test_a_while_loop_on_floats():
    check(
        newton,
        (2.0, 1e-12),
        (1e10, 1e-3),
        (0.25, 1e-15),
        (2.0, 0.0),
        (float("nan"), 1.0),
        (2, 1e-6),
        (-1.0, 1e-3),
        (np.float64(3), 1e-9),
    )


def sieve(n):
    flags = [True] * (n + 1)
    primes = []
    for i in range(2, n + 1):
        if flags[i]:
            primes.append(i)
            for j in range(i * i, n + 1, i):
                flags[j] = False
    return primes


def test_nested_loops_with_effects_on_lists():
    check(sieve, (30,), (1,), (200,), (2,), (-1,))


def smooth(a, rounds):
    a = a.copy()
    for r in range(rounds):
        for i in range(1, len(a) - 1):
            a[i] = (a[i - 1] + a[i + 1]) / 2
    return a


def test_loops_over_elements():
    check(
        smooth,
        (np.arange(10.0) ** 2, 3),
        (np.arange(3.0), 1),
        (np.arange(2.0), 5),
        (np.arange(10), 3),
        (np.arange(30.0).astype("f"), 2),
    )
    check(smooth, (np.zeros(40)[::2], 2), (np.arange(12.0), 0))


def matmul(a, b):
    out = np.zeros((len(a), len(b[0])))
    for i in range(len(a)):
        for j in range(len(b[0])):
            s = 0.0
            for k in range(len(b)):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def test_three_nested_loops():
    rng = np.random.default_rng(1)
    check(
        matmul,
        (rng.random((4, 5)), rng.random((5, 3))),
        (rng.random((1, 1)), rng.random((1, 1))),
        (rng.random((2, 3)), rng.random((2, 3))),
    )


def crc(data, table):
    value = 0xFFFF
    for byte in data:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value


def test_a_scalar_loop_over_bytes():
    table = [(i * 40503) & 0xFFFF for i in range(256)]
    check(
        crc,
        (b"the quick brown fox" * 5, table),
        (b"", table),
        (b"\xff\x00", table),
        (b"abc", table[:100]),
        ([1, 2, 3], table),
        (np.arange(20), table),
    )


def grows(n):
    s = 1
    for i in range(n):
        s = s * 3 + i
    return s


def test_integers_that_outgrow_a_machine_word_in_a_loop():
    check(grows, (10,), (100,), (39,), (40,), (41,), (200,))


def changes_type(items):
    s = 0
    kinds = []
    for v in items:
        s = s + v
        kinds.append(type(s).__name__)
    return s, kinds


def test_a_type_that_changes_in_the_middle():
    ints, mixed = list(range(40)), [1] * 20 + [0.5] * 20
    check(
        changes_type,
        (ints,),
        (mixed,),
        ([0.5] * 40,),
        ([1] * 39 + ["x"],),
        ([1] * 30 + [np.ones(2)] * 5,),
        ([True] * 30,),
        ([1] * 30 + [2**80] * 3,),
    )


def raises_late(items, log):
    for v in items:
        log.append(v)
        try:
            log.append(10 // v)
        except ZeroDivisionError:
            log.append("caught")
            if len(log) > 60:
                raise
    return len(log)


def test_exceptions_in_the_middle_of_a_loop():
    check(
        raises_late,
        ([1, 2, 5] * 10, []),
        ([1, 2, 0] * 5, []),
        ([1] * 30 + [0], []),
        ([0] * 40, []),
        ([3] * 20 + ["x"], []),
        ([], []),
    )


def mutates_while_iterating(items, n):
    out = []
    for v in items:
        out.append(v)
        if len(items) < n:
            items.append(v + 1)
        elif v % 3 == 0:
            items.remove(v)
    return out


def mutates_dict(d):
    for k in d:
        d[k + "x"] = 1
    return d


def test_a_container_that_changes_while_it_is_iterated():
    check(mutates_while_iterating, ([1], 30), ([3, 6, 9] * 10, 0), ([], 5), ([1, 2, 3], 3))
    check(mutates_dict, ({"a": 1},), ({},), ({"a": 1, "b": 2},))


def early(items, wanted):
    for row in items:
        for v in row:
            if v == wanted:
                return row, v
            if v is None:
                break
        else:
            continue
        return "none met"
    return "not found"


def test_leaving_by_return_break_and_else():
    table = [[i, i + 1, i + 2] for i in range(20)]
    check(early, (table, 5), (table, 21), (table, 99), ([], 0), ([[1, None, 3]], 3), ([[]] * 30, 1))


def objects(n):
    class_ = type("Local", (), {"v": 0})
    o = class_()
    seen = []
    for i in range(n):
        o.v += i
        if o.v > 100:
            o = class_()
            seen.append(i)
    return o.v, seen


def test_attributes_in_a_loop():
    check(objects, (10,), (60,), (0,))


def closures(n):
    fs = []
    total = 0

    def add(k):
        nonlocal total
        total += k

    for i in range(n):
        add(i)
        fs.append(lambda: i)
    return total, [f() for f in fs[:3]]


def test_closures_in_a_loop():
    check(closures, (5,), (60,), (0,))


def arrays(a, n):
    out = np.zeros_like(a)
    for i in range(n):
        out += a * i
        a = a[::-1]
        if out.max() > 50:
            out = out / 2
    return out, a


def test_arrays_in_a_loop():
    check(
        arrays, (np.arange(6.0), 4), (np.arange(6.0), 30), (np.arange(6), 30), (np.ones((3, 4)), 12), (np.zeros(0), 2)
    )


def test_a_loop_in_a_callee_and_a_loop_around_it():
    check_source(
        """
        def inner(x, n, log):
            while n > 0:
                n -= 1
                if n % 7 == 3:
                    log.append(n)
                x = x * 0.5 + n
            return x

        @jit
        def entry(x, n, m):
            log = []
            for k in range(m):
                x = inner(x, n + k % 3, log)
                if k == 11:
                    print("eleven", len(log))
            return x, log
        """,
        """
        def calls():
            for n, m in ((20, 3), (20, 3), (20, 3), (0, 5), (5, 40), (40, 1), (20, 3)):
                yield (1.0, n, m), {}
                yield (np.array([1.0, 2.0]), n, m), {}
        """,
    )


def forever(box):
    n = 0
    while not box:
        n += 1
    return n


@pytest.mark.parametrize("warm_up", [0, 3])
def test_a_signal_ends_a_long_loop(warm_up):
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        raise Interrupted

    jitted = ds.jit(store=False)(forever)
    previous = signal.signal(signal.SIGVTALRM, lambda number, frame: box.append(1))
    try:
        for _ in range(warm_up):  # finite runs first, so that what is interrupted is a replay
            box: list[int] = []
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
            assert jitted(box) > 0
        signal.signal(signal.SIGVTALRM, interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
        with pytest.raises(Interrupted):
            jitted([])
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    assert jitted([1]) == 0


def test_other_threads_run_during_a_long_loop():
    jitted = ds.jit(store=False)(forever)
    for _ in range(3):
        box: list[int] = []
        thread = threading.Thread(target=box.append, args=(1,))
        thread.start()
        jitted(box)
        thread.join()
    assert jitted([1]) == 0


def test_identity_of_an_argument_that_a_loop_unboxes():
    @ds.jit(store=False)
    def entry(c):
        n = 0
        while n < 3:
            n += 1
            c if c else n
        return c

    @ds.jit(store=False)
    def unchanged_until_later(c, n):
        s = c
        for i in range(n):
            s = s + i
        return s

    for x in (3000, 4000.5, 5000, 5000.5, 7000, 3000, 4000.5, 5000, 5000.5, 7000):
        assert entry(x) is x
        assert unchanged_until_later(x, 3) == x + 3
        assert unchanged_until_later(x, 0) is x
