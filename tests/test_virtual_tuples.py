"""Tuples of numbers that nothing takes: they are built only where something could see them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dalsegno as ds
from tests.native_kit import check_beside_others as check
from tests.support import stepped


def rotate(n: int, a: Any, b: Any, c: Any, d: Any) -> Any:
    seen = []
    for i in range(n):
        a, b, c, d = b, c, d, a + b
        if i % 5 == 4:
            seen.append((a, d))
    return a, b, c, d, seen


def test_four_variables_at_once() -> None:
    check(
        rotate,
        (12, 1, 2, 3, 4),
        (12, 0.5, 1.5, 2.5, 3.5),
        (60, 2**60, 2**61, 1, 1),
        (9, "a", "b", "c", "d"),
        (7, 1, 2.5, True, 4),
    )


def step(x: Any, y: Any, z: Any) -> Any:
    return x + 0.5 * (y - x), y + 0.25 * (x - z), z * 0.5


def called(n: int, x: Any, y: Any, z: Any) -> Any:
    for _ in range(n):
        x, y, z = step(x, y, z)
    return x, y, z


def test_what_a_function_returns() -> None:
    check(called, (12, 1.0, 2.0, 3.0), (12, 1, 2, 3), (0, 1, 2, 3), (5, float("inf"), 1.0, float("nan")))


def rebound(xs: list[Any], limit: Any) -> Any:
    out = []
    for x in xs:
        pair = (x, x)
        y = x + x
        x = 0
        if y > limit:
            out.append(pair)
        pair = None
    return out, x


def test_items_are_the_very_objects() -> None:
    """Where the tuple is built although the variable it was made of has been bound anew."""
    jitted = ds.jit(store=False)(rebound)
    xs = [0.5 + k for k in range(40)]
    with stepped(step_aside=False, hot_loop=1):
        for limit in (1000.0, 1000.0, 60.0, 70.0, 60.0, 10.0):
            pairs, _ = jitted(xs, limit)
            assert pairs == rebound(xs, limit)[0]
            expected = [x for x in xs if x + x > limit]
            assert all(pair[0] is x and pair[1] is x for pair, x in zip(pairs, expected, strict=True))
            ds.wait()


def raising(n: int, by: list[Any]) -> Any:
    total = 0
    for i in range(n):
        pair = (i, total)
        total = total + 10 // by[i]
        pair = None
    return total, pair


def test_frames_of_an_error_show_it() -> None:
    jitted = ds.jit(store=False)(raising)

    def locals_of(function: Callable[..., Any], by: list[Any]) -> Any:
        try:
            return function(len(by), by)
        except (ZeroDivisionError, TypeError):
            traceback = sys.exc_info()[2]
            while traceback.tb_next:
                traceback = traceback.tb_next
            return dict(traceback.tb_frame.f_locals)

    with stepped(step_aside=False, hot_loop=1):
        for by in ([1] * 30, [1] * 30, [1] * 9 + [0], [2] * 20 + ["x"], [1.5] * 3, [1] * 9 + [0], [3] * 25 + [0]):
            assert locals_of(jitted, by) == locals_of(raising, by)
            ds.wait()


def inner(n: int, m: int) -> Any:
    t = 0
    for i in range(n):
        a, b, c, d = i, i + 1, i + 2, i + 3
        for j in range(m):
            a, b, c, d = d, a, b, c + j
        t += a * b - c * d
    return t


def test_in_loops_inside_loops() -> None:
    check(inner, (6, 5), (9, 0), (0, 3), (3, 40))
