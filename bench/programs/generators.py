"""Generators that loops go through: a solver that yields its steps, the neighbours of a cell, days of a calendar."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from .data import F64


def steps_of(
    slope: Callable[[float, F64], F64], y: F64, end: float, tolerance: float
) -> Iterator[tuple[float, F64, float]]:
    """Of Heun's method, as long as its error beside Euler's allows."""
    t, h = 0.0, 0.01
    while t < end:
        h = min(h, end - t)
        k1 = slope(t, y)
        k2 = slope(t + h, y + h * k1)
        error = 0.5 * h * float(np.abs(k2 - k1).max())
        if error <= tolerance:
            t, y = t + h, y + 0.5 * h * (k1 + k2)
            yield t, y, h
        h *= min(2.0, max(0.5, 0.9 * math.sqrt(tolerance / (error + 1e-300))))


def pendulum(t: float, y: F64) -> F64:
    return np.array([y[1], -9.81 * math.sin(y[0]) - 0.1 * y[1] + math.cos(2.0 * t)])


def swings(end: float) -> tuple[int, float, float, float]:
    """How many steps a driven pendulum takes, the shortest, and how far it swings, early swings counting more."""
    steps, shortest, far = 0, end, 0.0
    for t, y, h in steps_of(pendulum, np.array([1.0, 0.0]), end, 1e-4):
        steps += 1
        shortest = min(shortest, h)
        far = max(far, abs(float(y[0])) - 1e-3 * t)
    return steps, t, shortest, far


def neighbours(row: int, column: int, size: int) -> Iterator[tuple[int, int]]:
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        r, c = row + dr, column + dc
        if 0 <= r < size and 0 <= c < size:
            yield r, c


def rough_cells(heights: list[list[float]], limit: float) -> int:
    """Cells that differ by more than the limit from a neighbour."""
    size, count = len(heights), 0
    for row in range(size):
        for column in range(size):
            for r, c in neighbours(row, column, size):
                if abs(heights[r][c] - heights[row][column]) > limit:
                    count += 1
                    break
    return count


def days(first: int, last: int) -> Iterator[tuple[int, int, int]]:
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    for year in range(first, last):
        for month in range(12):
            leap = month == 1 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            for day in range(lengths[month] + leap):
                yield year, month + 1, day + 1


def fridays(first: int, last: int) -> Iterator[tuple[int, int, int]]:
    weekday = (first + (first - 1) // 4 - (first - 1) // 100 + (first - 1) // 400) % 7
    for date in days(first, last):
        if weekday == 5:
            yield date
        weekday = (weekday + 1) % 7


def unlucky_days(years: int) -> int:
    """Fridays that are the 13th, from 1900 on."""
    count = 0
    for _, _, day in fridays(1900, 1900 + years):
        if day == 13:
            count += 1
    return count
