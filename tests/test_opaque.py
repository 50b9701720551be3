# ruff: noqa: E501 - programs as text, tables of calls
"""What the recorder does not go into, in the middle of a function: it is called again at each replay, and the replay goes on after it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import logging
import sys
import warnings

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, counting, reasons, stepped


def with_exec(x, n):
    x = x * 2
    namespace = {"n": n}
    exec("m = n + 1", namespace)
    return x + namespace["m"]


def with_eval(x, n):
    x = x * 2
    return x + eval("n * 2 + 1") - eval("n", {"n": 5})


def with_locals(x, n):
    y = x * 2
    seen = sorted(locals())
    z = y + n
    return z, seen, locals()["n"], sorted(vars())


def numbers(n):
    total = 0
    for i in range(n):
        total += i
        yield total


def with_generator(x, n):
    y = x * 2
    total = 0
    for v in numbers(n):
        total += v
    return y + total + sum(numbers(n))


def with_sorted_key(x, n):
    seen = []

    def key(v):
        seen.append(v)
        return -v * n

    order = sorted([3, 1, 2], key=key)
    return x * order[0], order, seen


def with_map(x, n):
    return x * 2 + sum(map(lambda v: v + n, [1, 2, 3])), list(map(str, (1, 2)))


def with_reduce(x, n):
    return x + functools.reduce(lambda a, b: a * b + n, [1, 2, 3, 4])


def with_getframe(x, n):
    y = x + 1
    return y * 2, caller_name(), caller_locals()


def caller_name():
    return sys._getframe(1).f_code.co_name, sys._getframe().f_code.co_name


def caller_locals():
    return sorted(sys._getframe(1).f_locals)


class Base:
    def value(self, x):
        return x + 1


class Derived(Base):
    def value(self, x):
        return super().value(x) * 2


def with_super(x, n):
    return Derived().value(x) + n


def with_context_manager(x, n):
    @contextlib.contextmanager
    def managed():
        yield n

    with managed() as m, contextlib.suppress(KeyError):
        x = x + m
    return x * 2


def with_coroutine(x, n):
    async def coroutine():
        return n + 1

    c = coroutine()
    try:
        c.send(None)
    except StopIteration as stop:
        return x * stop.value


_OPAQUE = [
    with_exec,
    with_eval,
    with_locals,
    with_generator,
    with_sorted_key,
    with_map,
    with_reduce,
    with_getframe,
    with_super,
    with_context_manager,
    with_coroutine,
]
_CALLS = ((np.array([1.0, 2.0]), 3), (2, 4), (np.array([1.0, 2.0]), 0), (1.5, 2.5))


@pytest.mark.parametrize("function", _OPAQUE, ids=lambda f: f.__name__)
def test_results_are_eagers(function):
    calls = [(x, int(n)) for x, n in _CALLS] if function is with_generator else _CALLS
    check(function, *calls)


def _inner(function):
    def outer(x, n):
        before = x - 1
        return before, function(x, n)

    return outer


# What the contract names: a step is all that each of them costs.
_STEPS = {
    with_exec: ("frame_reader",),
    with_locals: ("frame_reader",),
    with_generator: ("opaque_call", "generator"),
    with_sorted_key: ("opaque_call",),
    with_map: ("opaque_call",),
    with_reduce: ("opaque_call",),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("function", _STEPS, ids=lambda f: f.__name__)
def test_replay_goes_on_after_an_opaque_call(function, nested):
    jitted = ds.jit(store=False)(_inner(function) if nested else function)
    x = np.array([1.0, 2.0])
    with stepped():
        for _ in range(8):
            jitted(x, 3)
        with counting(jitted) as grown:
            for _ in range(10):
                jitted(x, 3)
    assert grown == grown | {"replays": 10, "exits": 0, "recordings": 0, "eager_calls": 0}, jitted.explain()
    told = [jitted.explain(), *jitted.explain().companions]  # with_generator has a loop
    found = {note["reason"] for one in told for note in one.to_dict()["notes"]} | reasons(jitted)
    assert found & set(_STEPS[function]), jitted.explain()
    text = str(jitted.explain())
    assert "opaque" in text or "as it is" in text


def test_an_opaque_call_happens_once_each_call():
    check_source(
        """
        LOG = []

        def gen(n):
            LOG.append(("start", n))
            try:
                for i in range(n):
                    print("yield", i)
                    yield i
            finally:
                LOG.append("end")

        def key(v):
            LOG.append(v)
            return -v

        @jit
        def entry(x, n):
            a = [v * x for v in gen(n)]
            b = sorted([1, 3, 2], key=key)
            first = next(gen(n), None)
            exec("LOG.append(n)", globals(), {"n": n})
            return a, b, first, len(LOG)
        """,
        """
        def calls():
            for n in (2, 2, 2, 0, 0, 3, 2, 0):
                yield (1.5, n), {}
                yield (np.ones(2), n), {}
        """,
    )


def test_an_exception_out_of_an_opaque_call():
    check_source(
        """
        def gen(n):
            for i in range(3):
                if i == n:
                    raise KeyError(i)
                yield i

        def key(v):
            return 1 // v

        @jit
        def entry(kind, n, log):
            log.append("before")
            if kind == 0:
                r = list(gen(n))
            elif kind == 1:
                r = sorted([2, n, 3], key=key)
            elif kind == 2:
                r = eval("10 // n")
            else:
                r = list(map(key, [1, n]))
            log.append("after")
            return r
        """,
        """
        def calls():
            log = []
            for kind in range(4):
                for n in (7, 7, 7, 0, 0, 0, 7, 1, 0):
                    yield (kind, n, log), {}
        """,
    )


def test_callbacks_change_what_the_trace_has_seen():
    check_source(
        """
        STATE = {"k": 1}
        SCALE = 2

        def change(v):
            global SCALE
            SCALE += v
            STATE["k"] *= 2
            return v

        @jit
        def entry(x, items, box):
            a = x * SCALE
            shape = x.shape
            order = sorted(items, key=lambda v: (change(v), box.append(x), x.__setitem__(0, v))[0])
            return a, x * SCALE, shape, STATE["k"], len(box), order, x[0]
        """,
        """
        def calls():
            x, box = np.array([1.0, 2.0]), []
            for items in ([1, 2], [1, 2], [1, 2], [], [], [0.5], [3, 1, 2]):
                yield (x, items, box), {}
        """,
    )


def test_a_callback_that_reshapes_an_argument():
    def reshape(v):
        v.shape = (2, 2)
        return 0

    def work(x):
        y = x * 2
        list(map(reshape, [x]))
        return y, x * 2, x.shape, x[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(work, (np.arange(4.0),), (np.arange(4.0),))


def test_logging_says_where_it_was_called():
    stream = io.StringIO()
    logger = logging.Logger("dalsegno-test")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(funcName)s:%(lineno)d:%(message)s"))
    logger.addHandler(handler)

    def inner(n):
        logger.warning("inner %s", n)
        return n

    def outer(n):
        logger.error("outer")
        return inner(n) + 1

    lines = []
    jitted = ds.jit(store=False)(outer)
    for function in (outer, jitted, jitted, jitted):
        assert function(1) == 2
        lines.append(stream.getvalue())
        stream.seek(0)
        stream.truncate()
    assert lines[0].count("\n") == 2
    assert lines == lines[:1] * 4


def test_globals_and_imports_inside():
    check_source(
        """
        K = 1

        @jit
        def entry(n):
            import math
            from math import floor as low
            globals()["K"] = n
            module = __import__("operator")
            return math.sqrt(n), low(1.5 + n), K, module.add(n, K), "K" in globals(), callable(entry)
        """,
        """
        def calls():
            for n in (1, 1, 1, 4, 4.0, 1):
                yield (n,), {}
        """,
    )


def test_randomness_is_drawn_anew_at_each_replay():
    import random

    def draw(n):
        return random.random() + n, np.random.rand(2), GENERATOR.normal(size=2)  # noqa: NPY002

    def run(function):
        global GENERATOR
        random.seed(5)
        np.random.seed(5)  # noqa: NPY002
        GENERATOR = np.random.default_rng(5)
        return repr([function(1) for _ in range(6)])

    wanted = run(draw)
    assert run(ds.jit(store=False)(draw)) == wanted


GENERATOR = np.random.default_rng(5)


def test_iterators_are_consumed_as_in_eager():
    def take(iterator, n):
        out = []
        for v in iterator:
            out.append(v)
            if len(out) == n:
                break
        return out, next(iterator, "end"), list(iterator)

    jitted = ds.jit(store=False)(take)
    makers = (
        lambda: iter([1, 2, 3, 4]), lambda: numbers(5), lambda: map(abs, [-1, -2, -3]), lambda: iter({1: 2, 3: 4}), lambda: zip("ab", [1, 2]),
        lambda: itertools.chain([1], "b"), lambda: iter(np.arange(5)), lambda: iter(()), lambda: enumerate("abc"), lambda: reversed([1, 2]),
    )  # fmt: skip
    for make in makers:
        for n in (2, 2, 2, 0, 1, 9):
            assert jitted(make(), n) == take(make(), n)
