"""min() and max() of numbers of several types: the very object that the builtin gives, its type, and no calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.test_native_loops import check, steps_of


def best_scores(a: str, b: str) -> Any:
    h = np.zeros((len(a) + 1, len(b) + 1))
    best = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d = h[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            h[i, j] = max(0, d, h[i - 1, j] - 1, h[i, j - 1] - 1)
            if h[i, j] > best:
                best = h[i, j]
    return h, best, type(best)


def clamped(xs: Any, low: Any, high: Any) -> Any:
    out = []
    for i in range(len(xs)):
        x = xs[i]
        y = max(low, min(x, high))
        out.append((y, type(y), y is x, y is low, y is high))
    return out


def several(xs: Any, n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        x = xs[i % len(xs)]
        out.append((min(x, i, 2.5), max(i, 2.5, x), max(x, 1e300, -i), min(0, x), max(True, x), max(x, 1, key=abs)))
    return out


def test_alignment() -> None:
    a, b = "ACGTTACGAACC" * 3, "CGTACGGA" * 4
    check(best_scores, (a, b), ("", "A"), ("AAAA", "AAAA"))
    assert steps_of(best_scores, a, b) < 200


def test_numbers_of_all_kinds() -> None:
    xs = [0, -3, 7, 0.0, -0.0, 2.5, -1e300, float("inf"), float("nan"), 2**53 + 1, 2**70, True]
    check(
        clamped, (xs, 0, 5), (xs, 0.0, 5), (xs, -1, 1.5), (xs, float("nan"), 3), (xs, 2**53, 2.0**53), (xs, 0, 10**400)
    )


def test_scalars_of_numpy() -> None:
    for dtype in ("float64", "int64", "int32", "float32", "int8", "uint8", "uint64", "bool", "float16"):
        xs = np.array([0, 1, 3, 100, 7, 0, 1], dtype)
        check(clamped, (xs, 0, 5), (xs, 0.0, 5), (xs, np.float64(2), 3), (xs, np.int64(2), 1e300), rounds=2)
        check(several, (xs, 20), rounds=2)
    check(clamped, (np.array([1.5, np.nan, -np.inf, 0.0]), 0, 1), (np.array([1.5, np.nan]), 0, 10**400))
    check(several, ([1, 2.5, np.float64(2.5), -0.0], 30), (["a", 1], 4))
