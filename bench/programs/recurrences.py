"""Recurrences and iterations on scalars: each turn needs the one before."""

from __future__ import annotations

import math

import numpy as np

from .data import F64, Array


def moving_average(x: F64, alpha: float) -> F64:
    """Exponential moving average, element by element."""
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = alpha * x[i] + (1.0 - alpha) * y[i - 1]
    return y


def moving_average_of_list(values: list[float], alpha: float) -> list[float]:
    level = values[0]
    levels = [level]
    for value in values[1:]:
        level += alpha * (value - level)
        levels.append(level)
    return levels


def running_total(x: F64) -> float:
    total = 0.0
    for value in x:
        total += value
    return total


def kahan_sum(values: list[float]) -> float:
    total = rest = 0.0
    for value in values:
        y = value - rest
        t = total + y
        rest = (t - total) - y
        total = t
    return total


def logistic_map(r: float, n: int) -> float:
    x = 0.5
    for _ in range(n):
        x = r * x * (1.0 - x)
    return x


def newton_roots(values: list[float]) -> list[float]:
    """Square roots by Newton's iteration."""
    roots = []
    for a in values:
        x = a if a > 1.0 else 1.0
        while True:
            better = 0.5 * (x + a / x)
            if abs(better - x) < 1e-12 * x:
                break
            x = better
        roots.append(better)
    return roots


def kepler(anomalies: list[float], e: float) -> list[float]:
    """Kepler's equation by Newton's method."""
    result = []
    for m in anomalies:
        x = m
        for _ in range(20):
            step = (x - e * math.sin(x) - m) / (1.0 - e * math.cos(x))
            x -= step
            if abs(step) < 1e-13:
                break
        result.append(x)
    return result


def newton_array(a: F64) -> F64:
    """Cube roots of a whole array."""
    x = np.ones_like(a)
    for _ in range(30):
        step = (x * x * x - a) / (3.0 * x * x)
        x = x - step
        if np.abs(step).max() < 1e-12:
            break
    return x


def mandelbrot_scalar(width: int, height: int, limit: int) -> list[int]:
    counts = []
    for row in range(height):
        for column in range(width):
            c = complex(-2.0 + 3.0 * column / width, -1.0 + 2.0 * row / height)
            z = 0j
            n = 0
            while abs(z) <= 2.0 and n < limit:
                z = z * z + c
                n += 1
            counts.append(n)
    return counts


def julia_scalar(width: int, height: int, limit: int) -> int:
    """Turns that all points of a Julia set take."""
    c = -0.8 + 0.156j
    turns = 0
    for row in range(height):
        for column in range(width):
            z = complex(-1.5 + 3.0 * column / width, -1.5 + 3.0 * row / height)
            n = 0
            while z.real * z.real + z.imag * z.imag < 4.0 and n < limit:
                z = z**2 + c
                n += 1
            turns += n
    return turns


def polynomial_roots(coefficients: list[float], turns: int) -> list[complex]:
    """All roots at once, by Durand and Kerner's method; the first coefficient is 1."""
    n = len(coefficients) - 1
    roots = [(0.4 + 0.9j) ** k for k in range(n)]
    for _ in range(turns):
        for i in range(n):
            value = 1 + 0j
            for c in coefficients[1:]:
                value = value * roots[i] + c
            below = 1 + 0j
            for j in range(n):
                if j != i:
                    below *= roots[i] - roots[j]
            roots[i] -= value / below
    return roots


def mandelbrot_reals(width: int, height: int, limit: int) -> int:
    """The same with real numbers; how many points stay."""
    inside = 0
    for row in range(height):
        y0 = -1.0 + 2.0 * row / height
        for column in range(width):
            x0 = -2.0 + 3.0 * column / width
            x = y = 0.0
            for _ in range(limit):
                xx, yy = x * x, y * y
                if xx + yy > 4.0:
                    break
                y = 2.0 * x * y + y0
                x = xx - yy + x0
            else:
                inside += 1
    return inside


def mandelbrot_masks(size: int, limit: int) -> Array:
    y, x = np.ogrid[-1.0 : 1.0 : size * 1j, -2.0 : 1.0 : size * 1j]
    c = x + 1j * y
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=np.int64)
    alive = np.ones(c.shape, dtype=bool)
    for _ in range(limit):
        z[alive] = z[alive] * z[alive] + c[alive]
        alive &= np.abs(z) <= 2.0
        counts += alive
    return counts


def horner(coefficients: list[float], points: list[float]) -> list[float]:
    values = []
    for x in points:
        value = 0.0
        for c in coefficients:
            value = value * x + c
        values.append(value)
    return values


def simpson(n: int) -> float:
    """An integral by Simpson's rule; the integrand is a function of its own."""

    def f(x: float) -> float:
        return math.exp(-x * x) * math.cos(3.0 * x)

    h = 2.0 / n
    total = f(0.0) + f(2.0)
    for i in range(1, n):
        total += (4.0 if i % 2 else 2.0) * f(i * h)
    return total * h / 3.0
