"""Generators that C code runs while a function is recorded: on 3.11 they run unobserved, and all is as in eager."""

from __future__ import annotations

import sys
import threading

import pytest

import dalsegno as ds
from tests.support import check, check_source, counting, stepped


def doubled(xs, log):
    for x in xs:
        log.append(x)
        yield 2 * x


def given_to_a_builtin(xs, log):
    total = sum(doubled(xs, log))
    log.append(total)
    return total + len(log)


def several_in_one_expression(xs, log):
    return max(sum(doubled(xs, log)), sum(x + 1 for x in xs), key=lambda v: -v), sorted(doubled(xs, log), key=str)


def methods_and_types(xs, log):
    made = list(doubled(xs, log))
    made.extend(doubled(xs, log))
    return ",".join(str(x) for x in made), tuple(doubled(xs, log)), set(x % 3 for x in made)


def in_a_loop(xs, log):
    total = 0
    for x in doubled(xs, log):
        total += x
        if x > 40:
            break
    return total


def in_one_another(xs, log):
    return sum(doubled(doubled(xs, log), log))


def running_out_early(xs, log):
    it = doubled(xs, log)
    first = next(it, None)
    return first, any(x > 4 for x in it), list(it), next(it, "end")


@pytest.mark.parametrize(
    "function",
    [given_to_a_builtin, several_in_one_expression, methods_and_types, in_a_loop, in_one_another, running_out_early],
)
def test_as_in_eager(function):
    check(function, *((xs, []) for xs in ([1, 2, 3], list(range(30)), [7])))


def test_what_is_recorded_behind_it_is_replayed():
    def f(xs):
        a = sum(x * x for x in xs)
        b = 0
        for i in range(a):
            b += i & 3
        return a + b

    jitted = ds.jit(store=False)(f)
    with stepped():
        jitted([1, 2, 3])
        assert jitted.stats["recordings"] >= 1
        for _ in range(8):
            assert jitted([1, 2, 3]) == f([1, 2, 3])
        with counting(jitted) as grown:
            assert jitted([1, 2, 3]) == f([1, 2, 3])
    assert grown["replays"] == 1 and grown["exits"] == 0, jitted.explain()


@pytest.mark.parametrize("where", ["sum(gen(x))", "[v for v in gen(x)]", "list(gen(x))"])
@pytest.mark.parametrize("at", [0, 2])
def test_exceptions_out_of_them(where, at):
    check_source(
        f"""
        def gen(x):
            for i in range(4):
                if i == {at}:
                    yield i // x
                yield i
        def entry(x):
            try:
                y = {where}
            except ZeroDivisionError as e:
                t = e.__traceback__
                y = []
                while t:
                    y.append((t.tb_frame.f_code.co_name, t.tb_lineno))
                    t = t.tb_next
            return y, x + 1
        """,
        """
        def calls():
            for x in (1, 0, 2, 0, 0, 0):
                yield (x,), {}
        """,
    )


def test_they_may_call_what_is_being_recorded():
    def count(n):
        return 1 + sum(count(k) for k in range(n))

    plain = count
    expected = [plain(n) for n in range(8)]
    count = ds.jit(store=False)(plain)
    with stepped():
        for _ in range(4):
            assert [count(n) for n in range(8)] == expected


def test_they_may_call_what_is_recorded_through():
    def step(v):
        return v * 3 + 1

    def f(xs):
        a = step(len(xs))
        return a + sum(step(x) for x in xs) + step(a)

    check(f, ([1, 2],), ([5] * 9,))


def test_a_tracer_switched_on_inside_sees_what_it_does_in_eager():
    def run(function):
        seen = []

        def tracer(frame, event, _):
            if frame.f_code.co_name in ("gen", "f"):
                seen.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno))
            return tracer

        def gen(xs):
            for x in xs:
                if x == 2:
                    sys.settrace(tracer)
                yield x

        try:
            result = function(gen, [1, 2, 3])
        finally:
            sys.settrace(None)
        return result, seen

    def f(gen, xs):
        a = sum(gen(xs))
        b = sum(xs)
        return a + b

    with stepped():
        jitted = ds.jit(store=False)(f)
        assert run(jitted) == run(f)
        assert run(jitted) == run(f)


def test_a_tracer_switched_on_and_off_inside_disturbs_nothing():
    def gen(xs):
        for x in xs:
            sys.settrace(lambda *_: None)
            sys.settrace(None)
            yield x

    def f(xs):
        return sum(gen(xs)) + len(xs)

    check(f, ([1, 2, 3],))


def test_another_thread_runs_meanwhile():
    going = threading.Event()
    done = []

    def other(n):
        return n if n < 2 else other(n - 1) + other(n - 2)

    def work():
        going.wait(60)
        done.append(other(12))

    def gen(xs, thread):
        for x in xs:
            going.set()
            if x == 2:
                thread.join(60)
            yield x

    def f(xs, thread):
        return sum(gen(xs, thread)) + len(xs)

    thread = threading.Thread(target=work)
    thread.start()
    with stepped():
        assert ds.jit(store=False)(f)([1, 2, 3], thread) == 9
    assert done == [other(12)]
