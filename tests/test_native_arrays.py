"""Small array ops are computed by native code, which only what runs code or has to be done another way leaves."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests import native_kit
from tests.support import stepped


def same(function: Any, *calls: native_kit.Make) -> None:
    native_kit.same(function, *calls, kernels=True)


def nest(a: Any, b: Any, s: Any) -> Any:
    """Views by several positions, a new array and a write in each turn."""
    for i in range(len(a)):
        for j in range(a.shape[1]):
            s[j] += a[i, j] * b[i]
            last = a[i, j] - s[j]
    return s, last


def triangle(a: Any) -> Any:
    """Rows of all lengths, none and one among them."""
    for i in range(len(a)):
        a[i, i:] -= a[i, :1] * a[0, i:]
        a[i, :i] = a[i, :i] / 3 + i
    return a


def scaled(rows: Any, by: Any) -> Any:
    total = 0.0
    for row in rows:
        row *= by
        row += 1
        total += row[0]
    return rows, total


factor = 2.0


def by_global(rows: Any) -> Any:
    for row in rows:
        row *= 1e200
        row += factor
    return rows


def test_compute_natively() -> None:
    values = np.random.default_rng(1).random((3, 9)).astype("f4")
    same(
        nest,
        lambda: (np.ones((6, 5, 4)), np.arange(24.0).reshape(6, 4), np.zeros((5, 4))),
        lambda: (np.stack([values, values]), values[:2], values.copy()),
    )
    for dtype in "f8", "f4", "i4", "c16", "u1":
        same(triangle, lambda dtype=dtype: (np.arange(1, 82).reshape(9, 9).astype(dtype),))  # type: ignore[misc]


def test_stay_in_native_code() -> None:
    jitted = ds.jit(store=False)(nest)
    arguments = np.ones((6, 5, 4)), np.ones((6, 4)), np.zeros((5, 4))
    with stepped(step_aside=False, hot_loop=1, kernels=True):
        for _ in range(12):
            jitted(*arguments)
    text = str(jitted.explain())
    assert "native code, compiled" in text
    assert not re.search(r"may run any code: v\d+ = (inplace|binary)", text), text


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308, 5e-324, 0.0])
def test_numbers_that_numpy_warns_of(bad: float) -> None:
    """In the middle of a loop, once and again."""

    def rows(k: int) -> tuple[Any, ...]:
        a = np.ones((12, 5))
        a[k, 2] = bad
        return a, np.array([1.0, 2, 1e200, 1e-200, 1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(scaled, lambda: rows(3), lambda: rows(11), lambda: rows(0))
    jitted = ds.jit(store=False)(scaled)
    with stepped(step_aside=False, hot_loop=1, kernels=True):
        for k in 3, 7, 3, 0, 11:
            told = []
            for f in jitted, scaled:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    result = f(*rows(k))
                told.append((repr(result), [(str(w.message), w.lineno) for w in caught]))
            assert told[0] == told[1]


@pytest.mark.parametrize("reshapes", [False, True])
def test_handlers_of_warnings_that_change_what_was_known(monkeypatch: pytest.MonkeyPatch, reshapes: bool) -> None:
    """A global, or the shape of the array that the loop goes through."""
    jitted = ds.jit(store=False)(by_global)

    def run(f: Any, big: bool) -> Any:
        global factor
        factor = 2.0
        rows = np.ones((8, 3))
        if big:
            rows[4] = 1e200

        def show(*_: Any, **__: Any) -> None:
            global factor
            if reshapes:
                rows.resize((12, 2), refcheck=False)
            else:
                factor += 0.5

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(warnings, "showwarning", show)
            return repr(f(rows)), factor

    with stepped(step_aside=False, hot_loop=1, kernels=True):
        for big in False, False, False, True, False, True, True, False:
            assert run(jitted, big) == run(by_global, big)


def other_lengths(rows: Any, width: Any) -> Any:
    out = np.zeros(3)
    for row, n in zip(rows, width, strict=True):
        out += row[:n]
    return out


def test_operands_that_do_not_fit() -> None:
    same(other_lengths, lambda: (np.ones((9, 3)), [3] * 9), lambda: (np.ones((9, 3)), [3] * 4 + [1] + [3] * 4))
    same(other_lengths, lambda: (np.ones((9, 3)), [3] * 5 + [2] + [3] * 3))
    same(other_lengths, lambda: (np.ones((9, 3), "f4"), [3] * 9), lambda: (np.ones((9, 3), object), [3] * 9))
