"""Functions with their calls, collected by a decorator; what test_language*.py share."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

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

    @property
    def all(self):
        return pytest.mark.parametrize(
            ("function", "calls"), [pytest.param(f, calls, id=f.__name__) for f, calls, _ in self._cases]
        )

    @property
    def replayed(self):
        return pytest.mark.parametrize(
            ("function", "made"),
            [pytest.param(f, calls[0], id=f.__name__) for f, calls, replays in self._cases if replays],
        )


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0.0

    def shifted(self, d):
        return Point(self.x + d, self.y + d)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)
