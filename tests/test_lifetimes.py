"""What a call's arguments live for: the caller gives them up, as it does to a Python function."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import dalsegno as ds
from tests.support import check_source


class Thing:
    pass


class Telling:
    """Says when it dies."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("dead")


def dies_when_bound_anew(x, log):
    log.append("begins")
    x = None
    log.append("goes on")
    return x


def dies_when_deleted(x, log):
    del x
    log.append("goes on")


def dies_with_the_last_name(x, log):
    y = x
    x = None
    log.append("still there")
    y = None
    log.append("gone")
    return x, y


def lives_in_a_list(x, log):
    kept = [x]
    del x
    log.append("kept")
    kept.clear()
    log.append("cleared")


def raises_afterwards(x, log):
    x = None
    log.append("goes on")
    return 1 // len(log[5:])


def leaves_on_the_way(x, log):
    x = None
    log.append("goes on")
    if len(log) > 4:
        log.append("more")
    return x


@pytest.mark.parametrize("step_aside", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        dies_when_bound_anew, dies_when_deleted, dies_with_the_last_name,
        lives_in_a_list, raises_afterwards, leaves_on_the_way,
    ],
)  # fmt: skip
def test_an_argument_dies_when_it_does_in_eager(function, step_aside):
    def told(callee: Any, start: int) -> list[str]:
        log: list[str] = ["earlier"] * start
        try:
            callee(Telling(log), log)
        except ZeroDivisionError:
            log.append("raised")
        log.append("returned")
        return log

    jitted = ds.jit(store=False)(function)
    with ds.config(step_aside=step_aside):
        for call in range(12):
            start = 3 * (call % 3)
            assert told(jitted, start) == told(function, start), call


def test_methods_and_defaults():
    class Holder:
        @ds.jit(store=False)
        def method(self, x, more=3):
            seen = weakref.ref(x)
            x = None
            return seen() is None, more

    holder = Holder()
    told = [  # no assert around the calls: pytest would hold their arguments
        call
        for _ in range(6)
        for call in (holder.method(Thing()), holder.method(Thing(), 4), holder.method(x=Thing(), more=5))
    ]
    assert told == [(True, 3), (True, 4), (True, 5)] * 6


def test_more_arguments_than_parameters():
    """Recorded or run eagerly they are borrowed, because a tuple has to be made for them."""

    @ds.jit(store=False)
    def f(x, *rest, **more):
        seen = weakref.ref(x)
        x = None
        return seen() is None, rest, more

    told = [f(Thing(), 1, k=2) for _ in range(6)]
    assert told[3:] == [(True, (1,), {"k": 2})] * 3


def test_arguments_that_others_hold_are_theirs():
    @ds.jit(store=False)
    def f(x, items):
        x = None
        return len(items)

    for _ in range(6):
        thing = Thing()
        seen = weakref.ref(thing)
        assert f(thing, [thing]) == 1
        assert seen() is thing
        assert list(map(f, [Thing()], [[1, 2]])) == [2]
        assert f(*[Thing(), [1]]) == 1
        assert f(x=thing, items=[]) == 0
        del thing
        assert seen() is None


def test_through_a_bound_method_called_by_c():
    """functools.partial hands the caller's stack on, and a bound method puts its object there for a moment."""
    import functools

    class Holder:
        @ds.jit(store=False)
        def method(self, x):
            return x

    for _ in range(2000):
        call = functools.partial(Holder().method)
        assert call(1.5) == 1.5
    gc.collect()


def test_what_is_called_with_too_few_or_too_many():
    @ds.jit(store=False)
    def f(x, y):
        return x

    for _ in range(5):
        for arguments in ((), (Thing(),), (Thing(), 1, 2)):
            with pytest.raises(TypeError):
                f(*arguments)
        with pytest.raises(TypeError):
            f(Thing())
        assert isinstance(f(Thing(), 1), Thing)


ORDER = """
LOG = []

class Dies:
    def __init__(self, n): self.n = n
    def __del__(self): LOG.append(self.n)

{itself}
def bound_in_turn(n):
    a = Dies(1); b = Dies(2); c = [Dies(3)]
    return n

{itself}
def bound_anew(n):
    a = Dies(1); b = Dies(2)
    a = Dies(3)
    return n

{itself}
def exchanged(x, y):
    a = Dies(1); b = (Dies(2), x)
    a, b, x, y = b, a, y, x
    return a

{itself}
def in_a_loop(n):
    a = b = None
    for i in range(n):
        a = Dies(i); b = Dies(100 + i)
        if i % 2:
            a, b = b, a
    return n

{itself}
def cells(n):
    a = Dies(1); b = Dies(2)
    def inner(): return b
    a = inner
    return n

@jit
def entry(case):
    if case == 0: return bound_in_turn(1)
    if case == 1: return bound_anew(1)
    if case == 2: return exchanged(Dies(4), Dies(5)) is None
    if case == 3: return in_a_loop(3)
    if case == 4: return in_a_loop(300)
    if case == 5: return cells(1)
    a = Dies(7); b = Dies(8); a, c = b, Dies(9)
    return case
"""


@pytest.mark.parametrize("itself", ["@jit", ""])
def test_what_variables_hold_dies_in_the_frames_order(itself: str) -> None:
    """Of functions that are jitted, and of those recorded through; 3.14 lets go of the last variable first."""
    calls = "def calls():\n    for case in [*range(7)] * 5:\n        yield (case,), {}\n"
    check_source(ORDER.replace("{itself}", itself), calls)
