# ruff: noqa: E501 - programs as text, tables of calls
"""Branches on data: guards that fail, side traces that are attached where a trace is left often, and what follows a restart."""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, counting, run_python, settles, stepped

pytestmark = pytest.mark.usefixtures("kernels_are_kept")


def helper(h):
    if h.sum() > 0:
        return np.maximum(h, 0)
    return np.tanh(h)


def job(x, w):
    return helper(x * w + 1) * 2


X = np.array([1.0, -3.0])
POSITIVE, NEGATIVE = np.array([2.0, 0.25]), np.array([-2.0, 0.5])


@pytest.mark.parametrize("kernels", [False, True])
def test_both_outcomes_in_turn(kernels):
    expected = [job(X, w).tobytes() for w in (POSITIVE, NEGATIVE)]
    jitted = ds.jit(store=False)(job)
    with ds.config(kernels=kernels, background=False):
        exits_at_side_trace = None
        for n in range(32):
            result = jitted(X, (POSITIVE, NEGATIVE)[n % 2])
            assert result.tobytes() == expected[n % 2], n
            if exits_at_side_trace is None and jitted.stats["side_traces"]:
                exits_at_side_trace = jitted.stats["exits"]
    stats = jitted.stats
    assert stats["side_traces"] == 1
    assert stats["recordings"] - stats["side_traces"] == 1  # side traces count as recordings
    assert stats["exits"] == exits_at_side_trace <= 2
    assert stats["replays"] == 31
    assert stats["eager_calls"] == 0


_PROGRAM = """
import json, sys
import numpy as np
import dalsegno as ds

def helper(h):
    if h.sum() > 0:
        return np.maximum(h, 0)
    return np.tanh(h)

def job(x, w):
    return helper(x * w + 1) * 2

X = np.array([1.0, -3.0])
W = np.array([2.0, 0.25]), np.array([-2.0, 0.5])
f = ds.jit(job)
same = [f(X, W[n % 2]).tobytes() == job(X, W[n % 2]).tobytes() for n in range(31)]
ds.wait()  # from here on with kernels
same.append(f(X, W[1]).tobytes() == job(X, W[1]).tobytes())
print(json.dumps([all(same), f.stats]))
"""


def test_both_outcomes_in_turn_after_a_restart(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_PROGRAM)
    kernels = {"DALSEGNO_INNER_LOOPS": "0"}
    same, stats = run_python(script, store=tmp_path / "store.sqlite", **kernels)
    assert same
    assert stats["side_traces"] == 1
    assert stats["recordings"] - stats["side_traces"] == 1
    assert stats["kernels_compiled"] > 0
    for _ in range(2):
        same, stats = run_python(script, store=tmp_path / "store.sqlite", **kernels)
        assert same
        wanted = {
            "recordings": 0,
            "kernels_compiled": 0,
            "replays": 32,
            "exits": 0,
            "eager_calls": 0,
            "traces_loaded": 2,
            "store_errors": 0,
        }
        assert stats == stats | wanted
        assert stats["kernel_launches"] > 0


def test_an_exit_that_is_taken_once_is_not_recorded():
    jitted = ds.jit(store=False)(job)
    with stepped(hot_exit=3):
        for w in (POSITIVE, POSITIVE, NEGATIVE, POSITIVE, NEGATIVE):
            assert jitted(X, w).tobytes() == job(X, w).tobytes()
        assert jitted.stats["side_traces"] == 0
        assert jitted.stats["exits"] == 2
        with counting(jitted) as grown:
            jitted(X, NEGATIVE)
            jitted(X, NEGATIVE)
    assert grown == grown | {"side_traces": 1, "recordings": 1, "exits": 1}


def tree(a, b, c):
    r = []
    if a > 0:
        r.append("a")
        if b > 0:
            r.append("b")
        else:
            r.append("-b")
    else:
        r.append("-a")
    if c:
        r.append("c")
    return r, a + b


def test_a_tree_of_side_traces():
    calls = [(a, b, c) for a in (1, -1) for b in (2.5, -2.5) for c in (True, False)]
    check(tree, *calls)
    jitted = ds.jit(store=False)(tree)
    with stepped():
        for made in calls * 6:
            assert jitted(*made) == tree(*made)
        with counting(jitted) as grown:
            for made in calls:
                assert jitted(*made) == tree(*made)
    assert grown == grown | {"replays": len(calls), "exits": 0, "recordings": 0}


def by_type(v):
    return v + v, [v]


def test_types_become_side_traces_too():
    calls = [
        (1,),
        (1.5,),
        ("a",),
        ([1],),
        (np.ones(3),),
        (np.ones((2, 2), "f"),),
        ((),),
        (np.int64(4),),
        (True,),
        (None,),
        ({},),
    ]
    check(by_type, *calls)
    good = calls[:9]
    jitted = ds.jit(store=False)(by_type)
    with stepped():
        for made in good * 6:
            jitted(*made)
        with counting(jitted) as grown:
            for made in good:
                jitted(*made)
    assert grown == grown | {"replays": len(good), "exits": 0, "recordings": 0}


def test_no_more_traces_than_allowed():
    jitted = ds.jit(store=False)(lambda v: (v,) if v == 0 else v + v)
    values = [1, 1.5, "a", [1], (2,), np.ones(2), np.ones((2, 2)), np.float32(1), np.int64(2), True, 1j, b"x", 0, 0.0]
    with stepped(max_traces=4):
        for _ in range(4):
            for value in values[:5] + values[7:]:
                result = jitted(value)
                assert repr(result) == repr((value,) if value == 0 else value + value)
    assert len(jitted.traces()) <= 4
    assert "too_many_traces" in {note["reason"] for note in jitted.notes()}


def on_truth(v):
    return "yes" if v else "no"


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def __bool__(self):
        if self.answer is None:
            raise RuntimeError("neither")
        return self.answer


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


def test_truth_of_anything():
    check(
        on_truth,
        (1,),
        (0,),
        (0.0,),
        (-0.0,),
        ("",),
        ("a",),
        ([],),
        ([0],),
        (None,),
        (np.zeros(1),),
        (np.zeros(2),),
        (np.float64(0),),
        (float("nan"),),
    )
    check(on_truth, (Odd(True),), (Odd(False),), (Odd(None),), (Sized(0),), (Sized(2),), (Sized(-1),))


def test_a_branch_between_effects():
    check_source(
        """
        LOG = []

        def note(text):
            LOG.append(text)
            print(text)
            return len(LOG)

        def inner(x, log):
            log.append("in")
            if x[0] > note("asked"):
                x[0] = 0
                return note("big")
            x += 1
            return note("small")

        @jit
        def entry(x, log):
            n = inner(x, log)
            log.append(n)
            return x * n, LOG
        """,
        """
        def calls():
            x, log = np.array([3.0, 1.0]), []
            for value in (5, 100, 2, 100, 3, 100, 100, -5, 100, 1):
                x[0] = value
                yield (x, log), {}
        """,
    )


def test_a_data_dependent_branch_settles_in_each_direction():
    settles(job, (X, POSITIVE))
    settles(job, (X, NEGATIVE))
    settles(tree, (1, -1, True))


def select(m, flag):
    total = 0.0
    for row in m:
        if row[0] > 0:
            total += row.sum()
        elif flag:
            total -= 1
    return total


def test_branches_on_elements_in_a_loop():
    rng = np.random.default_rng(5)
    calls = [(rng.standard_normal((n, 3)), flag) for n in (1, 4, 30) for flag in (True, False)]
    check(select, *calls)


def escapes(limits):
    turns = 0
    for limit in limits:
        x, k = 0.0, 0
        while k < 50 and x * x < limit:
            x, k = x + 1.0, k + 1
        turns += k
    return turns


def test_a_loop_that_ends_a_turn_later_each_time_has_one_trace():
    limits = [float(n * n) for n in range(1, 30)]
    jitted = ds.jit(store=False)(escapes)
    with stepped(step_aside=False):
        for _ in range(3):
            assert jitted(limits) == escapes(limits)
    assert jitted.stats["side_traces"] <= 5  # a trace a turn would be more
