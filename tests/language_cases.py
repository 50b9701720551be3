"""Functions with their calls, collected by a decorator; what test_language*.py share."""

from __future__ import annotations

import dataclasses

import pytest

import numpy as np
from tests.support import check, settles

A = np.array([1.0, -2.0, 3.5])
B = np.array([0.5, 4.0, -0.0])
I = np.array([3, -1, 7])
M = np.arange(12.0).reshape(3, 4)


class Cases:
    def __init__(self):
        self._cases = []

    def __call__(self, *calls, replays=True):
        """The function is called with each of these; replays: with the first, it is replayed from end to end."""

        def add(function):
            self._cases.append((function, calls, replays))
            return function

        return add

    def tests(self):
        """The two tests of all cases: as eager on every call, and replayed from end to end."""

        @pytest.mark.parametrize(
            ("function", "calls"), [pytest.param(f, calls, id=f.__name__) for f, calls, _ in self._cases]
        )
        def test_same_as_eager(function, calls):
            check(function, *calls)

        @pytest.mark.parametrize(
            ("function", "made"),
            [pytest.param(f, calls[0], id=f.__name__) for f, calls, replays in self._cases if replays],
        )
        def test_replayed_from_end_to_end(function, made):
            settles(function, made)

        return test_same_as_eager, test_replayed_from_end_to_end


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0.0

    def shifted(self, d):
        return Point(self.x + d, self.y + d)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)
