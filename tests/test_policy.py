"""What is tried: replay or eager by time, sizes apart; places that are given up. Decisions are tested, not clocks."""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from dalsegno._testing import policy
from tests.machine_traces import machine
from tests.support import counting, stepped


def leaves_always(x):
    y = [x, x + 1]
    y.append(x)
    try:
        return y[0] // x
    except ZeroDivisionError:
        return None


def test_replay_that_loses_is_noticed_within_a_few_calls():
    jitted = ds.jit(store=False)(leaves_always)
    with stepped(step_aside=True):
        for _ in range(60):
            assert jitted(0) is None
        with counting(jitted) as grown:
            for _ in range(200):
                jitted(0)
    assert grown["eager_calls"] > 100 and grown["calls"] == 200
    assert "replay was measured slower than eager" in str(jitted.explain())


def test_calls_are_counted_once_however_they_are_made():
    jitted = ds.jit(store=False)(leaves_always)
    with stepped(step_aside=True):
        assert {jitted(0) for _ in range(3000)} == {None}
    stats = jitted.stats
    assert stats["calls"] == 3000 == stats["replays"] + stats["eager_calls"] + 1


def test_stepping_aside_can_be_switched_off_at_any_time():
    jitted = ds.jit(store=False)(leaves_always)
    with stepped(step_aside=True):
        for _ in range(500):
            jitted(0)
    with stepped(step_aside=False), counting(jitted) as grown:
        for _ in range(50):
            jitted(0)
    assert grown["replays"] == 50 and grown["eager_calls"] == 0


def test_what_is_faster_replayed_is_replayed():
    def loop(n):
        total = 0
        for i in range(n):
            total += i & 7
        return total

    jitted = ds.jit(store=False)(loop)
    with stepped(step_aside=True):
        for _ in range(30):
            assert jitted(20_000) == loop(20_000)
        with counting(jitted) as grown:
            for _ in range(64):
                jitted(20_000)
    assert grown["replays"] >= 40  # on a busy machine one verdict may be wrong for a while


def growths(function, calls, step_aside):
    """Of four calls, and of so many that take a branch more: how often native code was left where it will grow."""
    jitted = ds.jit(store=False)(function)
    growing = []
    with stepped(step_aside=step_aside, background=False):
        for args in ((2000, 4000),) * 4 + ((2000, 100),) * calls:
            before = machine.counters()["growing"]
            assert jitted(*args) == function(*args)
            growing.append(machine.counters()["growing"] - before)
    return growing


def test_native_code_says_that_it_will_grow():
    """What is timed before it has grown is no verdict."""

    def loop(n, m):
        total = 0
        for i in range(n):
            if i % 3 == 0 and n > m:
                total += i * 2
            else:
                total -= i
        return total

    growing = growths(loop, 30, step_aside=False)
    assert sum(growing[:4]) == 0 < sum(growing[4:]) and sum(growing[-5:]) == 0


def test_a_companions_native_code_grows_when_the_call_that_was_timed_has_left_it():
    def loop(n, m):
        total = 0
        for i in range(n):
            if i % 1000 == 0 and n > m:
                total += i * 2
            else:
                total -= i
        return total

    def caller(n, m):
        return loop(n, m) - n

    growing = growths(caller, 12, step_aside=True)
    assert sum(growing[4:]) > 0 == sum(growing[-4:]), growing


def test_arguments_of_another_size_are_judged_by_themselves():
    jitted = ds.jit(store=False)(leaves_always)
    with stepped(step_aside=True):
        for _ in range(400):
            jitted(0)
        with counting(jitted) as grown:
            jitted(1 << 40)
    assert grown["replays"] == 1  # it is timed, whatever the verdict on 0


@pytest.mark.parametrize(
    "made", [np.ones(7), [1.0] * 5, "text", b"bytes", {1: 2}, -(1 << 70), None, 2.5, np.ones((3, 4))]
)
def test_sizes_of_every_kind_of_argument(made):
    def back(x):
        return [x, x]

    jitted = ds.jit(store=False)(back)
    with stepped(step_aside=True):
        for _ in range(300):
            assert jitted(made)[1] is made


def test_a_recursive_function_is_timed_as_a_whole():
    space: dict = {}
    exec("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)", space)
    space["fib"] = jitted = ds.jit(store=False)(space["fib"])
    with stepped(step_aside=True):
        assert [jitted(10) for _ in range(40)] == [55] * 40


def test_an_exception_does_not_close_what_follows():
    def find(d, key):
        x = 0
        if key > 5:
            x = d[key] * 2
            x = x + 1
        return x

    jitted = ds.jit(store=False)(find)
    with stepped():
        for _ in range(4):
            jitted({}, 1)
        for _ in range(4):
            with pytest.raises(KeyError):
                jitted({}, 7)
        for _ in range(8):
            assert jitted({7: 3}, 7) == 7
        with counting(jitted) as grown:
            for _ in range(3):
                assert jitted({7: 3}, 7) == 7
    assert grown["exits"] == 0 and grown["replays"] == 3, jitted.explain()


def test_a_first_call_that_raises_at_once_does_not_give_the_function_up():
    def look(d):
        return d["x"] + 1

    jitted = ds.jit(store=False)(look)
    with stepped():
        for _ in range(4):
            with pytest.raises(KeyError):
                jitted({})
        assert [jitted({"x": 2}) for _ in range(4)] == [3] * 4
        with counting(jitted) as grown:
            jitted({"x": 2})
    assert grown["replays"] == 1 and grown["exits"] == 0


def test_explain_says_why_an_exit_has_to_wait():
    def always(x):
        if x > 5:
            raise ValueError(x)
        return x

    jitted = ds.jit(store=False)(always)
    with stepped():
        jitted(1)
        for _ in range(40):
            with pytest.raises(ValueError, match="7"):
                jitted(7)
    waiting = [e for t in jitted.explain().to_dict()["traces"] for e in t["exits"] if e["patience"] > 1]
    assert len(waiting) == 1 and waiting[0]["reason"] and not waiting[0]["closed"]
    assert "times less often: an exception was raised" in str(jitted.explain())
    assert jitted.stats["recordings"] <= 4


def test_a_cleared_function_starts_afresh():
    jitted = ds.jit(store=False)(leaves_always)
    with stepped(step_aside=True):
        for _ in range(500):
            jitted(0)
        jitted.clear()
        with counting(jitted) as grown:
            jitted(0)
    assert grown["recordings"] == 1


def test_a_call_that_clears_its_own_function_while_it_is_timed():
    def clears(n):
        if n > 1:
            jitted.clear()
        return [n]

    jitted = ds.jit(store=False)(clears)
    with stepped(step_aside=True):
        for n in (0, 1, 2) * 40:
            assert jitted(n) == [n]


def ways(lane, calls, replay_ms, eager_ms, settled):
    return [lane.run(1e6 * replay_ms, 1e6 * eager_ms, settled) for _ in range(calls)]


def test_slow_calls_that_still_record_are_not_made_again_and_again():
    """There is no verdict yet; what is lost is a third of what eager calls take meanwhile."""
    lane = policy.Lane()
    made = ways(lane, 200, 12, 4, settled=False)
    assert made[:3] == ["replay", "eager", "replay"] and not {"replay"} & set(made[3:9])
    replays = made.count("replay")
    assert 4 < replays and 3 * 8 * (replays - 2) <= 4 * (200 - replays)
    assert made[100:].count("replay") <= 2  # each that lost is followed by more eager ones
    assert ways(policy.Lane(), 200, 4.5, 4, settled=False) == ["replay", "eager"] * 100  # so little says nothing
    assert ways(policy.Lane(), 200, 3, 4, settled=False).count("eager") == 1


def test_a_verdict_stands_while_the_tree_grows():
    """After a verdict for eager a replay of 230 ms (eager: 90) was made again 24 times, as the tree still grew."""
    lane = policy.Lane()
    assert "eager" in ways(lane, 30, 230, 90, settled=True) and lane.eager_wins
    assert ways(lane, 400, 230, 90, settled=False).count("replay") <= 10


def test_one_long_replay_that_plainly_loses_is_enough():
    assert ways(policy.Lane(), 12, 60, 30, settled=True).count("replay") == 1
    assert ways(policy.Lane(), 12, 36, 30, settled=True).count("replay") == 2  # may be memory that is to be made


def test_an_eager_call_that_was_timed_early_is_not_made_again():
    lane = policy.Lane()
    assert ways(lane, 2, 3, 4, settled=False) == ["replay", "eager"]
    lane.reset()  # the tree has grown
    assert ways(lane, 50, 1, 4, settled=True) == ["replay"] * 50 and not lane.eager_wins


def test_short_calls_are_not_timed_before_the_tree_is_as_it_will_be():
    assert ways(policy.Lane(), 50, 0.1, 0.01, settled=False) == ["replay"] * 50


def test_a_garbage_collection_in_an_eager_call_does_not_make_replay_win():
    """One pair decides where replay is clearly faster: it was, 350 us against 5 ms, for a thousand calls."""
    lane = policy.Lane()
    eager = 0
    for _ in range(20_000):
        eager += lane.run(350e3, 5e6 if eager % 10 == 4 else 280e3) == "eager"
    assert eager > 18_000
