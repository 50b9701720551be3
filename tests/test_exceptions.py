# ruff: noqa: E501 - programs as text, tables of calls
"""Exceptions and warnings out of replayed code: same type, message, traceback lines, same effects before; caught or not."""

from __future__ import annotations

import sys
import traceback
import warnings

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, counting, stepped


def failing_helper(x, log, limit):
    log.append("helper")
    x[0] += 1
    if x[0] > limit:
        raise ValueError(f"too much: {x[0]}")
    return x[1] / log.pop()


def catches(x, log, limit):
    log.append(2.0)
    try:
        r = raising_division(x, log)
    except ZeroDivisionError as error:
        log.append(str(error))
        r = -1.0
    return r, x * 2


def raising_division(x, log):
    x[0] += 1
    n = int(x[1])
    log.append(n)
    return 10 // n


def division_by_zero() -> str:
    """The interpreter's own words, which differ between versions."""
    try:
        return str(10 // len(""))
    except ZeroDivisionError as error:
        return str(error)


def test_raised_in_a_replayed_helper_and_caught_in_its_caller():
    good, bad = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    check(catches, (good, [], 0), (bad, [], 0))
    check(catches, (bad, [], 0), (good, [], 0))
    jitted = ds.jit(store=False)(catches)
    with stepped():
        jitted(good.copy(), [], 0)
        with counting(jitted) as grown:
            log: list[object] = []
            x = bad.copy()
            r, _ = jitted(x, log, 0)
    assert r == -1.0
    assert log == [2.0, 0, division_by_zero()]
    assert x[0] == 2.0
    assert grown == grown | {"replays": 1, "exits": 1}


def uncaught(x, log, i):
    log.append("uncaught")
    x += 1
    return index_helper(x, log, i) + 1


def index_helper(x, log, i):
    log.append("helper")
    x[0] = 5
    value = x[i]
    log.append("after")
    return value


def test_not_caught():
    x = np.array([1.0, 2.0, 3.0])
    check(uncaught, (x, [], 1), (x, [], 7), (x, [], "a"), (x, [], 2))
    jitted = ds.jit(store=False)(uncaught)
    with stepped():
        for _ in range(3):
            jitted(x.copy(), [], 1)
        seen = []
        for function in (uncaught, jitted):
            array, log = x.copy(), []
            with counting(jitted) as grown, pytest.raises(IndexError) as caught:
                function(array, log, 7)
            entries = [
                (entry.name, entry.lineno, entry.line) for entry in traceback.extract_tb(caught.value.__traceback__)
            ][1:]
            seen.append((type(caught.value), str(caught.value), entries, array.tobytes(), log))
    assert seen[0] == seen[1]
    assert [name for name, _, _ in seen[1][2]] == ["uncaught", "index_helper"]
    assert seen[1][4] == ["uncaught", "helper"]
    assert grown["replays"] == 1


def test_the_frames_of_a_traceback_hold_the_locals():
    jitted = ds.jit(store=False)(uncaught)
    x = np.array([1.0, 2.0])
    with stepped():
        for _ in range(3):
            jitted(x.copy(), [], 1)
        with pytest.raises(IndexError) as caught:
            jitted(x, [], 9)
    inner = caught.value.__traceback__.tb_next.tb_next.tb_frame
    assert inner.f_code is index_helper.__code__
    assert inner.f_locals["x"] is x
    assert inner.f_locals["log"] == ["uncaught", "helper"]
    assert inner.f_locals["i"] == 9
    assert "value" not in inner.f_locals
    assert inner.f_back.f_code is uncaught.__code__
    assert inner.f_back.f_back.f_code is sys._getframe().f_code


_ERRORS = {
    "zero division": (lambda a, b: a // b, [(1, 1), (1, 0)]),
    "type of operand": (lambda a, b: a + b, [(1, 1), (1, "a"), ([], 1), (None, 2.5)]),
    "attribute": (lambda a, b: a.real + b, [(1, 1), ("a", 1), ([], 2)]),
    "item": (
        lambda a, b: a[b],
        [([1, 2], 1), ([1], 5), ({}, "k"), ((), 0), ("ab", 9), (3, 0), (np.ones(2), 2), (np.ones((2, 2)), (0, 2))],
    ),
    "store": (lambda a, b: a.__setitem__(b, 1), [([1, 2], 1), ([1], 5), (np.ones(2), 2), ((), 0)]),
    "shapes": (
        lambda a, b: a * b + 1,
        [(np.ones(2), np.ones(2)), (np.ones(2), np.ones(3)), (np.ones((2, 2)), np.ones(3)), (np.ones(2), "x")],
    ),
    "in-place cast": (
        lambda a, b: a.__iadd__(b),
        [(np.ones(2), 1), (np.ones(2, int), 1.5), (np.ones(2, int), np.ones(2)), (np.ones(2), np.ones(3))],
    ),
    "call": (lambda a, b: a(b), [(abs, 1), (abs, "a"), (len, 3), (5, 1), (lambda: 1, 2)]),
    "unpack": (lambda a, b: [x for x, y in [a]] + [b], [((1, 2), 0), ((1,), 0), ((1, 2, 3), 0), (5, 0)]),
    "compare": (lambda a, b: a < b, [(1, 2), (1, "a"), (None, 1), (np.ones(2), np.ones(3))]),
    "iterate": (lambda a, b: [x + b for x in a], [([1], 1), (5, 1), (["a"], 1), ([1, 2, "c"], 1), (None, 0)]),
    "truth": (lambda a, b: 1 if a else b, [(1, 2), (np.ones(2), 1), (np.ones(0), 1)]),
    "format": (lambda a, b: f"{a:{b}}", [(1, "d"), ("a", "d"), (1.5, "z")]),
    "keyword": (lambda a, b: dict(**a, k=b), [({"x": 1}, 1), ({"k": 1}, 1), ({1: 1}, 1), (5, 1)]),
    "unhashable": (lambda a, b: {a: b}, [(1, 1), ([], 1)]),
    "read-only": (lambda a, b: a.__setitem__(0, b), [(np.ones(2), 1), (np.broadcast_to(np.ones(1), (2,)), 1)]),
}


@pytest.mark.parametrize("kind", _ERRORS)
def test_errors_of_every_instruction(kind):
    function, calls = _ERRORS[kind]
    check(function, *calls)
    check(function, *reversed(calls))


def test_unbound_and_missing_names():
    check_source(
        """
        def missing(n):
            return n + nothing_of_this_name

        def unbound(n):
            if n:
                value = n
            return value

        def free(n):
            def inner():
                return value
            if n:
                value = n
            return inner()

        @jit
        def entry(kind, n):
            return (missing, unbound, free)[kind](n)
        """,
        """
        def calls():
            for kind in (0, 1, 2):
                for n in (1, 1, 1, 0, 0, 0, 1, 0):
                    yield (kind, n), {}
            yield "nothing_of_this_name = 3"
            for n in range(4):
                yield (0, n), {}
            yield "nothing_of_this_nama = nothing_of_this_name; del nothing_of_this_name"
            yield (0, 1), {}
        """,
    )


def raises_of_each_kind(kind, log):
    try:
        if kind == 0:
            raise KeyError("k")
        if kind == 1:
            raise ValueError("cause") from KeyError("c")
        if kind == 2:
            assert not log, "assertion"
            log.append(1)
            assert not log, f"log {log}"
        if kind == 3:
            raise ZeroDivisionError
        if kind == 4:
            raise 5
        if kind == 5:
            next(iter(()))
        log.append("nothing raised")
    except (KeyError, ZeroDivisionError) as error:
        log.append(repr(error))
        if kind == 3:
            raise
        try:
            raise TypeError("while handling")
        except TypeError as second:
            log.append(repr(second.__context__))
    finally:
        log.append("finally")
    return log


def test_raise_statements():
    calls = [(kind, []) for kind in (9, 0, 1, 2, 3, 4, 5)]
    check(raises_of_each_kind, *calls)
    check(raises_of_each_kind, *reversed(calls))


def test_what_is_being_handled_when_the_function_is_called():
    check_source(
        """
        import sys

        def context():
            raise KeyError("inner")

        @jit
        def job(x):
            handled = sys.exc_info()[1]
            try:
                if x > 1:
                    context()
                x = x // x
            except (KeyError, ZeroDivisionError) as error:
                return repr(handled), repr(error), repr(error.__context__), repr(sys.exc_info()[1])
            return repr(handled), repr(sys.exception()) if hasattr(sys, "exception") else None

        def entry(x, outer):
            if not outer:
                return job(x), repr(sys.exc_info()[1])
            try:
                raise ValueError("outer")
            except ValueError:
                return job(x), repr(sys.exc_info()[1])
        """,
        """
        def calls():
            for outer in (0, 0, 0, 1, 1, 1, 0, 1):
                for x in (1, 1, 0, 0, 2, 1):
                    yield (x, outer), {}
        """,
    )


class Stop(BaseException):
    pass


def test_base_exceptions_go_through():
    def stops(n, log):
        log.append(n)
        if n == 1:
            raise Stop("base")
        if n == 2:
            raise KeyboardInterrupt
        if n == 3:
            raise SystemExit(7)
        return n

    jitted = ds.jit(store=False)(stops)
    for n in (0, 0, 1, 1, 1, 2, 2, 3, 0, 1, 2, 3):
        log: list[int] = []
        kind = (None, Stop, KeyboardInterrupt, SystemExit)[n]
        if kind is None:
            assert jitted(n, log) == n
        else:
            with pytest.raises(kind):
                jitted(n, log)
        assert log == [n]


# ---- warnings


def warns(x, quiet):
    y = x * 2
    if not quiet:
        y = warning_helper(y)
    return y + 1


def warning_helper(y):
    return (
        y
        / np.zeros(2)
    )  # fmt: skip


def test_numpy_warnings_have_category_text_and_line():
    with np.errstate(all="warn"):
        check(warns, (np.ones(2), True), (np.ones(2), False), (np.zeros(2), False), (np.zeros(2), True))


@pytest.mark.parametrize("kernels", [False, True])
def test_a_replayed_warning_is_the_recorded_ones_equal(kernels):
    jitted = ds.jit(store=False)(warns)
    seen = []
    with ds.config(kernels=kernels, background=False), np.errstate(all="warn"):
        for function in (warns, jitted, jitted, jitted, jitted):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = function(np.ones(2), False)
            seen.append([(w.category, str(w.message), w.filename, w.lineno) for w in caught] + [result.tobytes()])
    assert seen[0][0][:2] == (RuntimeWarning, "divide by zero encountered in divide")
    assert seen[0][0][2] == __file__
    assert all(one == seen[0] for one in seen)


def own_warning(n, level):
    warnings.warn(f"own {n}", UserWarning, stacklevel=level)
    return warns_deeper(n, level)


def warns_deeper(n, level):
    warnings.warn(f"deeper {n}", DeprecationWarning, stacklevel=level)
    return n


def test_warnings_warn_with_stacklevels():
    # Levels 1 and 2 only: what lies further out is the caller, which differs from engine to engine.
    check(own_warning, (1, 1), (2, 1))
    check_source(
        """
        import warnings

        def deeper(n, level):
            warnings.warn(f"deeper {n}", DeprecationWarning, stacklevel=level)
            return n

        @jit
        def job(n, level):
            return deeper(n, level) + 1

        def entry(n, level):
            return job(n, level)
        """,
        """
        def calls():
            for level in (1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 2, 3):
                yield (level, level), {}
        """,
    )


@pytest.mark.parametrize("mode", ["default", "error", "ignore"])
def test_warnings_under_each_filter(mode):
    check_source(
        """
        def divide(x, y):
            return x / y

        @jit
        def entry(x, y, log):
            log.append("before")
            z = divide(x * 1.0, y)
            log.append("after")
            return np.sqrt(z) + np.log(x)
        """,
        """
        def calls():
            log = []
            for x, y in ((1, 1), (1, 1), (1, 1), (1, 0), (1, 0), (-1, 1), (-1, 1), (0, 0), (1, 1), (1e308, 1e-308)):
                yield (np.full(3, float(x)), np.full(3, float(y)), log), {}
        """,
        warnings=mode,
    )


@pytest.mark.parametrize("errstate", ["ignore", "raise"])
def test_floating_point_errors_under_each_errstate(errstate):
    check_source(
        """
        @jit
        def entry(x, y, log):
            z = x + y
            z = z * 2 / y - x
            log.append(1)
            return np.where(y != 0, x / y, 0), z, np.exp(x)
        """,
        """
        def calls():
            log = []
            for x, y in ((1, 1), (1, 1), (1, 1), (1, 0), (1, 0), (0, 0), (1e308, 1e308), (1000, 1), (1, 1), (float("nan"), 1), (float("inf"), 0)):
                yield (np.full(5, float(x)), np.full(5, float(y)), log), {}
        """,
        errstate=errstate,
    )


def test_errstate_changed_between_calls():
    jitted = ds.jit(store=False)(lambda x: x / 0.0 * 2)
    x = np.array([1.0, 0.0])
    with stepped(kernels=True):
        for state in ("ignore", "ignore", "raise", "ignore", "warn", "call", "ignore", "raise"):
            seen: list[object] = []
            with (
                np.errstate(all=state, call=lambda kind, flag: seen.append(kind)),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                if state == "raise":
                    with pytest.raises(FloatingPointError):
                        jitted(x)
                else:
                    assert repr(jitted(x)) == "array([inf, nan])"
            assert len(caught) == (2 if state == "warn" else 0)
            assert len(seen) == (2 if state == "call" else 0)


def test_an_exception_in_a_segment_leaves_effects_before_it_done():
    def work(a, b, log):
        log.append("one")
        c = a * 2 + 1
        a[0] = 99
        d = c + b
        log.append("two")
        return d - a

    good, bad = np.ones(3), np.ones(4)
    check(work, (np.arange(3.0), good, []), (np.arange(3.0), bad, []), (np.arange(3.0), good, []))


def test_a_method_call_with_keywords_raises_where_it_stands():
    """KW_NAMES and PRECALL stand before the CALL, and at the method's place in the source, not at the call's."""

    def calls(a, axis):
        return (
            a
            .mean(
                axis=axis,
                keepdims=bool(
                    axis
                ),
            )
        )  # fmt: skip

    check(calls, (np.ones(3), 0), (np.array(2), 0), (np.ones(3), 7), (np.ones((2, 3)), 1))

    def shows(a):
        seen.append(a.shown(
            step=1,
            **more,
        ))  # fmt: skip
        return a.shown(
            step=2,
        )

    class Shows:
        def shown(self, step):
            frame = sys._getframe(1)
            return step, frame.f_lineno - frame.f_code.co_firstlineno

    seen: list[object] = []
    more: dict[str, object] = {}
    check(shows, (Shows(),), rounds=6)


def test_a_call_with_many_keywords_raises_where_it_stands():
    """EXTENDED_ARG stands before instructions with large arguments."""
    names = [f"k{i}" for i in range(300)]
    check_source(
        f"""
        class C:
            def m(self, **kw):
                raise ValueError(len(kw))
        @jit
        def entry():
            c = C()
            try:
                return c.m(
                    {", ".join(f"{n}={i}" for i, n in enumerate(names))})
            except ValueError as e:
                return e.__traceback__.tb_lasti, e.__traceback__.tb_lineno, list(entry.__code__.co_positions())[e.__traceback__.tb_lasti // 2]
        """.replace("entry.__code__", "sys._getframe().f_code").replace("class C", "import sys\n        class C"),
        "def calls():\n    for _ in range(5):\n        yield (), {}\n",
        engines=("recording", "stepped"),
    )
