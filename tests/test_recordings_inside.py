"""A jitted function that is called while another one is recorded: that recording rests meanwhile."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import dalsegno as ds

from .support import stepped
from .test_recursion import both


@ds.jit(store=False)
def inner(k: int) -> int:
    total = 0
    for i in range(30):
        if (i + k) % (k + 2) == 1:
            total += i
        else:
            total -= k
    return total if k % 2 else -total


def outer(ks: Any) -> Any:
    return [inner(k) * 2 for k in ks] + [1]


def test_the_outer_recording_is_not_ended_by_one_that_cannot_begin() -> None:
    jitted = ds.jit(store=False)(outer)
    with stepped():
        for k in range(2):
            inner(k)
        for ks in ([0, 1], [2, 3], [4, 5], [6, 7]):
            assert jitted(ks) == outer(ks)
        explanation = jitted.explain()
    assert "exception" not in {trace["reason"] for trace in explanation.traces}, explanation
    assert "exception" not in {note["reason"] for note in explanation.notes}, explanation


ARGUMENTS = """
    class Noisy:
        def __init__(self, n, log):
            self.n, self.log = n, log
        def __del__(self):
            self.log.append(('dies', self.n))
    def f(n, noisy, kept, log, rest=None):
        if n % 2:
            noisy = None
        log.append(n)
        if n == 2:
            raise ValueError([sys._getframe(k).f_code.co_name for k in range(2)])
        return n
    def g(n):
        log = []
        other = Noisy(-1, log)
        for k in range(n):
            try:
                log.append(f(k, Noisy(k, log), other, log, Noisy(9, log)))
            except ValueError as error:
                log.append(str(error))
            log.append(f(k, other, Noisy(7, log), log) if k != 2 else k)
        return log
"""


def called(function: Any) -> Any:
    return function(5)


def test_arguments_die_in_a_callee_that_the_interpreter_runs() -> None:
    plain, jitted = both(ARGUMENTS, "g", sys=sys)
    callee = jitted.__globals__["f"]
    with stepped():
        for k in range(12):
            if k % 4 == 3:
                callee.clear()
            told, expected = called(jitted), called(plain)
            assert told == expected, jitted.explain()


class Dying:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("dies")


def taking(x: Any, y: Any, log: list[str]) -> Any:
    x = y
    log.append("taken")
    return x


def traced() -> list[str]:
    log: list[str] = []
    sys.settrace(lambda *_: None)
    taking(Dying(log), 1, log)
    sys.settrace(None)
    taking(Dying(log), 1, log)
    return log


def test_arguments_die_at_once_where_a_trace_function_is_set_while_a_call_is_recorded() -> None:
    before = sys.gettrace()
    jitted = ds.jit(store=False)(traced)
    try:
        with stepped():
            for _ in range(4):
                assert jitted() == ["dies", "taken"] * 2
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "handed",
    ["Noisy(k, log), log", "other, Noisy(k, log), log", "Noisy(k, log), other, log", "(Noisy(k, log), k), log"],
)
def test_finalisers_at_the_end_of_a_callee_see_its_callers(handed: str) -> None:
    source = f"""
        class Noisy:
            def __init__(self, n, log):
                self.n, self.log = n, log
            def __del__(self):
                global seen
                seen = self.n
                frame = sys._getframe(1)
                self.log.append((self.n, frame.f_code.co_name, frame.f_lineno, frame.f_locals.get("k")))
        def f(n, *rest):
            return n
        def h(n, first, second, third=None):
            return n
        def g(n):
            log = []
            other = Noisy(-1, log)
            for k in range(n):
                log.append(({"f" if "(Noisy" in handed else "h"}(k, {handed}), seen))
            return log
    """
    plain, jitted = both(source, "g", sys=sys, seen=None)
    callees = [jitted.__globals__[name] for name in "fh"]

    def called(function: Any) -> Any:
        return function(3)

    with stepped():
        for round in range(12):
            if round % 4 == 3:
                for callee in callees:
                    callee.clear()
            assert called(jitted) == called(plain), f"{round}\n{jitted.explain()}"
