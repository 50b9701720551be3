"""What handles a floating-point warning finds the frames of eager, with variables, though ops run without them."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, settles, stepped

SEEN: list[Any] = []


def notice(kind: str, _flags: int) -> None:
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name in ("divided", "through", "entry"):
        names = frame.f_locals
        SEEN.append(
            (kind, frame.f_code.co_name, frame.f_lineno, sorted(names), repr(names.get("n")), repr(names.get("x")))
        )
        frame = frame.f_back


def divided(x, y, n):
    total = x
    with np.errstate(all="call", call=notice):
        for k in range(n):
            total = total + x / (y - k)
            total = np.sqrt(total) + n
    return total, k


def through(x, y, n):
    inner = n + 1
    return divided(x, y, inner)


def observed(function: Any, *calls: Any) -> list[Any]:
    SEEN.clear()
    results = [function(*arguments) for arguments in calls for _ in range(4)]
    return [np.asarray(result[0]).tobytes() for result in results] + SEEN


@pytest.mark.parametrize("function", [divided, through])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "f2"])
def test_a_handler_sees_the_variables_of_the_frames_around_it(function: Any, dtype: str) -> None:
    x, y = np.array([1.0, -2.0, 3.0]).astype(dtype), np.array([5.0, 2.0, 9.0]).astype(dtype)
    calls = [(x, y, 4), (x, y + 20, 4), (x, y, 8)]
    wanted = observed(function, *calls)
    assert SEEN
    with stepped():
        assert observed(ds.jit(store=False)(function), *calls) == wanted


def test_a_handler_may_keep_a_frame_change_a_variable_and_raise() -> None:
    kept: list[Any] = []

    def keep(kind, flags):
        frame = sys._getframe(1)
        kept.append((frame.f_lineno, sorted(frame.f_locals), frame.f_locals["x"].tolist()))
        if len(kept) % 3 == 0:
            raise ValueError(kind)

    def entry(x, n):
        with np.errstate(all="call", call=keep):
            try:
                for k in range(n):
                    x = x / (x - x) + k
            except ValueError as error:
                return str(error), k
        return x, k

    with np.errstate(all="ignore"):
        check(entry, (np.array([1.0, 2.0]), 3), (np.array([1j, 2.0]), 3), (np.array([1.0, 2.0]), 0))


def test_a_warning_says_where_it_comes_from_and_may_be_an_error() -> None:
    def entry(x, y, mode):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(mode)
            try:
                for k in range(3):
                    x = x / y
                    x = x * k
            except RuntimeWarning as warning:
                return str(warning), warning.__traceback__.tb_lineno, k
        return [(str(w.message), w.lineno) for w in caught], x

    zero = np.array([0.0, 1.0])
    for mode in ("always", "error", "ignore", "default", "once"):
        check(entry, (zero, zero, mode), (zero + 1j, zero, mode), (zero + 2, zero + 1, mode))


def test_a_handler_that_is_jitted_shows_all_frames() -> None:
    def handle(kind, flags):
        inner = ds.jit(store=False)(divided)
        SEEN.append(len(inner(np.array([1.0]), np.array([0.5]), 3)))

    def entry(x, n):
        with np.errstate(all="call", call=handle):
            for k in range(n):
                x = x / (x - x) + k
        return x, k

    calls = [(np.array([1.0, 2.0]), 3)]
    with stepped():
        assert observed(ds.jit(store=False)(entry), *calls) == observed(entry, *calls)


def test_other_threads_and_other_evaluators_change_nothing() -> None:
    stop, ready = threading.Event(), threading.Event()

    def other() -> None:
        ready.set()
        stop.wait()

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    try:
        x, y = np.array([1.0, -2.0, 3.0]), np.array([5.0, 2.0, 9.0])
        with stepped():
            assert observed(ds.jit(store=False)(divided), (x, y, 4)) == observed(divided, (x, y, 4))
    finally:
        stop.set()
        thread.join()


def test_where_nothing_warns_nothing_is_looked_at_again() -> None:
    def entry(x, n):
        for k in range(n):
            x = x @ x / 2.0 + k
        return x

    for dtype in ("f8", "c16"):
        settles(entry, (np.eye(3).astype(dtype), 5))
