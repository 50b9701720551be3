"""min(), max() and sum() of numbers that stand in a list or tuple made for the call: no list is made."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
from tests.native_kit import same, steps_of


def extremes(xs: Any, ks: Any) -> Any:
    out = []
    for i in range(len(xs)):
        x, k = xs[i], ks[i]
        out.append((max([x, xs[0]]), min((x, xs[-1])), min([k, 3, i]), max((i, k))))
    return out


def mixed(xs: Any, ks: Any) -> Any:
    out = []
    for i in range(len(xs)):
        x, k = xs[i], ks[i]
        out.append((max([x, 0.5, k]), min((k, x)), max([0, 0.0, -0.0]), min([True, k])))
    return out


def totals(xs: Any, ks: Any) -> Any:
    out = []
    for i in range(len(xs)):
        x, k = xs[i], ks[i]
        out.append((sum([x, xs[0]]), sum((k, i)), sum([k, 0.5, i]), sum((x, x, x, 1.0)), sum((-0.0, -0.0))))
    return out


def kept(xs: Any, ks: Any) -> Any:
    out = []
    for i in range(len(xs)):
        three = [xs[i], xs[0], 2.5]
        best = max(three)
        three.append(best)
        out.append((three, three.index(best), sum(three[:2]), best is three[0]))
    return out


NUMBERS = (
    lambda: (np.array([1.5, -0.0, math.nan, 0.0, math.inf, 1e308]), np.array([3, -1, 2**62, 0, 7, 5])),
    lambda: ([1.5, -0.0, math.nan, 0.0, math.inf, 1e308], [3, -1, 2**70, 0, 7, 5]),
    lambda: ([1, True, 2**80, -5, 0, 3], [1, 2, 3, 4, 5, 6]),
    lambda: (np.arange(6, dtype="i4"), np.arange(6, dtype="u1")),
    lambda: (["a", "b", "c", "d", "e", "f"], list("abcdef")),
)


@pytest.mark.parametrize("function", [extremes, mixed, totals, kept])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_displays_are_as_in_eager(function: Callable[..., Any], numbers: Callable[[], tuple[Any, ...]]) -> None:
    same(function, numbers)


@pytest.mark.parametrize("function", [extremes, mixed, totals, kept])
def test_displays_are_as_in_eager_when_types_change(function: Callable[..., Any]) -> None:
    same(function, *NUMBERS)


def overflowing(xs: Any) -> Any:
    out = []
    for i in range(len(xs)):
        out.append(sum([xs[i], xs[0], xs[i]]))
    return out


def test_a_sum_that_overflows_warns_once_where_eager_does() -> None:
    with pytest.warns(RuntimeWarning, match="overflow") as told:
        same(overflowing, lambda: (np.array([1e308, 1.0, 1.7e308, math.inf, -1.0]),))
    assert len({(one.lineno, str(one.message)) for one in told}) <= 2
    with np.errstate(all="raise"):
        same(overflowing, lambda: (np.array([1e308, 1.0, 1.7e308]),), lambda: (np.array([2**62, 2, 2**62]),))


def smallest(a: Any, b: Any, n: int) -> Any:
    s = 0
    for i in range(n):
        s += min([a + i, b, 7 * i]) + sum((i, a))
    return s


def largest(a: Any, n: int) -> Any:
    s = 0.0
    for i in range(n):
        s += max([a[i], 0.25 * s]) if i % 2 else min((a[i], a[0]))
    return s


def test_no_list_is_made() -> None:
    assert steps_of(smallest, 5, 90, 3000) < 100
    assert steps_of(smallest, 5, 90, 6000) < 100


def test_a_list_that_an_exit_shows_is_a_list() -> None:
    def shows(xs: Any) -> Any:
        out = []
        for x in xs:
            try:
                out.append(max([x, 2.0]))
            except TypeError as error:
                frame = error.__traceback__
                out.append((str(error), frame.tb_lineno if frame else None))
        return out

    same(shows, lambda: ([1.0, 3.0, "a", 2.5, None, 1],))


class Own(float):
    def __gt__(self, other: object) -> bool:
        sys._getframe(1)
        return True


def test_what_has_comparisons_of_its_own_is_asked() -> None:
    same(extremes, lambda: ([Own(1.0), Own(2.0), 3.0], [1, 2, 3]))
    same(totals, lambda: ([Own(1.0), Own(2.0), 3.0], [1, 2, 3]))
