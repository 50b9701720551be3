# ruff: noqa: E501 - programs as text, tables of calls
"""The same jitted functions from many threads: recording in one while others call, compiling in the background, exits, and the switches."""

from __future__ import annotations

import contextvars
import sys
import threading

import pytest

import dalsegno as ds
import numpy as np
from tests.support import counting, run_python


@pytest.fixture(autouse=True)
def _frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work, count=8):
    """work(number) in each thread, begun together; the first error is raised here."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def helper(x, n, log):
    log.append(n)
    if n % 3 == 0:
        return x * n
    return x - n


def mixed(x, n):
    log = []
    total = 0
    for i in range(n):
        total += i if i % 2 else -i
    y = helper(x, n, log)
    try:
        z = 10 // (n % 4)
    except ZeroDivisionError as error:
        z = str(error)
    return y, total, z, log


def same(one, other):
    return one[0].tobytes() == other[0].tobytes() and one[1:] == other[1:]


@pytest.mark.parametrize("background", [False, True])
def test_one_function_from_many_threads(background):
    jitted = ds.jit(store=False)(mixed)
    with ds.config(background=background, step_aside=False):

        def work(number):
            x = np.arange(float(number + 2))
            for n in range(60):
                assert same(jitted(x, n), mixed(x, n))

        in_threads(work)
        ds.wait()
        in_threads(work)
        stats = jitted.stats
        recorded = stats["calls"] - stats["replays"] - stats["eager_calls"]  # from their start
        assert stats["calls"] == 960 and 1 <= recorded <= 3
        # How many calls met another thread's recording is up to the scheduler; now none does.
        with counting(jitted) as grown:
            work(3)
        assert grown["replays"] == 60


def test_a_call_while_another_thread_records_runs_eagerly():
    entered, go_on = threading.Event(), threading.Event()

    def wait_inside(x, first):
        if first:
            entered.set()
            go_on.wait()
        return x * 2, first

    jitted = ds.jit(store=False)(wait_inside)
    results = []
    thread = threading.Thread(target=lambda: results.append(jitted(1, True)))
    thread.start()
    entered.wait()
    assert jitted(5, False) == (10, False)
    assert jitted.stats["eager_calls"] == 1
    go_on.set()
    thread.join()
    assert results == [(2, True)]
    assert [jitted(3, False) for _ in range(4)] == [(6, False)] * 4
    assert jitted(1.5, True) == (3.0, True)


def test_a_replay_that_waits_while_others_replay_record_and_forget():
    entered, go_on = threading.Semaphore(0), threading.Event()

    def wait_inside(x, wait):
        y = [x]
        if wait:
            entered.release()
            go_on.wait()
        y.append(x * 2)
        return y

    jitted = ds.jit(store=False)(wait_inside)
    go_on.set()
    for wait in (True, True, False, False, False, True):
        jitted(1, wait)
        if wait:
            entered.acquire()
    go_on.clear()
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(jitted(k, True))) for k in range(3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        entered.acquire()
    assert jitted("a", False) == ["a", "aa"]
    jitted.clear()
    assert [jitted(2.5, False) for _ in range(3)] == [[2.5, 5.0]] * 3
    go_on.set()
    for thread in threads:
        thread.join()
    assert sorted(results) == [[0, 0], [1, 2], [2, 4]]


def test_many_functions_recorded_at_once():
    namespace = {"np": np}
    for k in range(12):
        exec(f"def f{k}(x):\n    y = x * {k} + 1\n    return [y, np.abs(y)] if y.sum() > {k} else y", namespace)
    plain = [namespace[f"f{k}"] for k in range(12)]
    jitted = [ds.jit(store=False)(f) for f in plain]

    def work(number):
        for round_ in range(6):
            for k in range(12):
                x = np.array([1.0, -round_, number - 4])
                assert repr(jitted[(k + number) % 12](x)) == repr(plain[(k + number) % 12](x))

    in_threads(work)
    ds.wait()
    in_threads(work)
    assert all(f.stats["recordings"] for f in jitted)


def test_switches_thrown_while_others_call():
    jitted = ds.jit(store=False)(mixed)
    x = np.arange(4.0)
    expected = [mixed(x, n) for n in range(20)]

    def work(number):
        for _ in range(10):
            if number == 0:
                with ds.disabled():
                    assert same(jitted(x, 3), expected[3])
                jitted.clear()
                jitted.explain()
                dict(ds.stats())
            for n in range(20):
                assert same(jitted(x, n), expected[n])

    in_threads(work, 4)


def test_thread_locals_and_context_variables():
    local = threading.local()
    variable = contextvars.ContextVar("variable")

    def read(n):
        local.n = local.n + n
        return local.n, variable.get(), threading.get_ident()

    jitted = ds.jit(store=False)(read)

    def work(number):
        local.n = number * 1000
        variable.set(number)
        for k in range(1, 30):
            assert jitted(1) == (number * 1000 + k, number, threading.get_ident())

    in_threads(work)


def test_errstate_of_one_thread_is_not_anothers():
    jitted = ds.jit(store=False)(lambda x: (x / 0.0) * 2 + x)
    x = np.ones(50)
    with np.errstate(all="ignore"), ds.config(background=False):
        for _ in range(4):
            jitted(x)

    def work(number):
        if number % 2:
            with np.errstate(all="ignore"):
                for _ in range(30):
                    assert np.isinf(jitted(x)).all()
        else:
            with np.errstate(all="raise"):
                for _ in range(30):
                    with pytest.raises(FloatingPointError):
                        jitted(x)

    in_threads(work, 4)


def test_a_traced_thread_runs_eagerly_the_others_replay():
    jitted = ds.jit(store=False)(helper)
    for _ in range(3):
        jitted(2, 3, [])
    seen = []

    def tracer(frame, event, argument):
        if frame.f_code is helper.__code__:
            seen.append(event)
        return tracer

    before = jitted.stats
    sys.settrace(tracer)
    try:
        assert jitted(2, 3, []) == 6
    finally:
        sys.settrace(None)
    grown = jitted.stats - before
    assert grown == grown | {"eager_calls": 1, "replays": 0}
    assert seen[0] == "call"
    assert seen[-1] == "return"
    assert jitted(2, 3, []) == 6
    assert (jitted.stats - before)["replays"] == 1


def test_the_process_ends_while_threads_call_and_kernels_compile():
    run_python("""
import threading, time
import numpy as np
import dalsegno as ds

fs = []
for k in range(8):
    exec(f"def f(x):\\n    return np.sqrt(x) * {k} + np.exp(x)")
    fs.append(ds.jit(store=False)(f))

def work():
    x = np.ones(100)
    while True:
        for f in fs:
            f(x)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for f in fs:
    for _ in range(3):
        f(np.ones(10))
""")


# Timers of processor time send their signal to whichever thread is running, and CPython's main thread would not hear of it.
SIGNALS = """
import json, os, signal
import numpy as np
import dalsegno as ds

def blocked():
    masks = {}
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as file:
            masks[task] = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
    return masks

before = blocked()
f = ds.jit(lambda a: a * 2 + 1)
for _ in range(3):
    f(np.ones(1 << 20))
    ds.wait()
ours = {task: mask for task, mask in blocked().items() if task not in before}
wanted = [signal.SIGVTALRM, signal.SIGPROF, signal.SIGALRM, signal.SIGINT]
print(json.dumps([len(ours), all(mask >> number - 1 & 1 for mask in ours.values() for number in wanted)]))
"""


def test_threads_of_ours_take_no_signals(tmp_path):
    threads, all_blocked = run_python(SIGNALS, store=tmp_path / "s.db")
    assert threads >= 1
    assert all_blocked


def test_kernels_use_no_more_processors_than_the_process_may():
    """With one processor of two a helping thread took the caller's: a generation of life 1.2 ms instead of 0.2."""
    source = """
import json, os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import dalsegno as ds
from dalsegno._testing import segments
ds.jit(lambda x: x)(1)
print(json.dumps(segments.launch_threads()))
"""
    assert run_python(source) == 1
