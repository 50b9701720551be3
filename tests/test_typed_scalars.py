# ruff: noqa: E501 - tables of values
"""NumPy's scalars unboxed: operators with them to the bit and to the type; warnings, errstate, identity."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting, settles, stepped

SCALARS: list[Any] = [
    np.float64(0.1), np.float64(-3.5), np.float64(0.0), np.float64(-0.0), np.float64("inf"), np.float64("nan"), np.float64(1e308),
    np.float64(5e-324), np.float32(0.1), np.float32(-3.5), np.float32(0.0), np.float32(3e38), np.float32(1e-45), np.float32("-inf"),
    np.int64(7), np.int64(-3), np.int64(0), np.int64(2**63 - 1), np.int64(-(2**63)), np.int32(7), np.int32(-3), np.int32(0),
    np.int32(2**31 - 1), np.int32(-(2**31)), np.bool_(True), np.bool_(False),
]  # fmt: skip
NUMBERS: list[Any] = [0.1, -2.5, 0.0, float("inf"), 1e300, 3, -3, 0, 2**31, 2**53 + 1, 2**63 - 1, True]
SYMBOLS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Type and bits, or the error, and every warning, of one call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function(*args)
            told: Any = [(type(v), np.asarray(v).tobytes()) for v in (value if isinstance(value, tuple) else (value,))]
        except Exception as error:
            told = (type(error), str(error))
    return told, [(w.category, str(w.message)) for w in caught]


def made(symbol: str) -> Callable[[Any, Any], Any]:
    space: dict[str, Any] = {}
    exec(f"def entry(a, b):\n    c = a {symbol} b\n    return c, a\n", space)
    return space["entry"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_pair_of_scalars_gives_what_eager_gives(symbol: str) -> None:
    """Recorded with one pair, replayed with all pairs of the same types."""
    by_types: dict[tuple[type, type], list[tuple[Any, Any]]] = {}
    for a, b in itertools.chain(
        itertools.product(SCALARS, SCALARS), itertools.product(SCALARS, NUMBERS), itertools.product(NUMBERS, SCALARS)
    ):
        if symbol in ("<<", "**") and isinstance(a, int) and isinstance(b, int):
            continue
        by_types.setdefault((type(a), type(b)), []).append((a, b))
    for pairs in by_types.values():
        entry = made(symbol)
        jitted = ds.jit(store=False)(entry)
        with stepped(step_aside=False):
            for a, b in pairs[:1] * 3 + pairs + pairs[::-1]:
                assert outcome(jitted, a, b) == outcome(entry, a, b), (symbol, type(a), a, type(b), b)


@pytest.mark.parametrize("symbol", ["-", "~", "+", "not "])
def test_unary_operators(symbol: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def entry(a):\n    b = {symbol}a\n    return b, a\n", space)
    entry = space["entry"]
    for kind in {type(s) for s in SCALARS}:
        jitted = ds.jit(store=False)(entry)
        with stepped(step_aside=False):
            for a in [s for s in SCALARS if type(s) is kind] * 3:
                assert outcome(jitted, a) == outcome(entry, a), (symbol, a)


def test_a_recurrence_of_np_floats_is_replayed_from_end_to_end() -> None:
    def smooth(data: Any, alpha: float) -> Any:
        s = data[0]
        for x in data:
            s = alpha * x + (1 - alpha) * s
        return s

    data = np.linspace(-3, 7, 50)
    check(smooth, (data, 0.3), (data.astype(np.float32), 0.25), (np.arange(9), 0.5))
    settles(smooth, (data, 0.3))


def test_a_warning_in_the_middle_of_a_loop_is_eagers() -> None:
    def ratios(values: Any, others: Any) -> Any:
        out = []
        for i in range(len(values)):
            out.append(values[i] / others[i])
        return out

    others = np.ones(20)
    others[[7, 13]] = 0.0
    check(
        ratios, (np.arange(20.0) - 7, others), (np.arange(20.0), np.ones(20)), (np.arange(20), others.astype(np.int64))
    )


def test_integer_scalars_that_overflow_warn_and_wrap() -> None:
    def total(values: Any) -> Any:
        t = values[0]
        for v in values:
            t = t + v
        return t

    big = np.full(6, 2**62, np.int64)
    check(total, (big,), (np.arange(6),), (np.full(6, 2**30, np.int32),))


@pytest.mark.parametrize("kind", ["divide", "over", "under", "invalid"])
@pytest.mark.parametrize("mode", ["ignore", "warn", "raise"])
def test_errstate_decides(kind: str, mode: str) -> None:
    def work(a: Any, b: Any, kind: str, mode: str) -> Any:
        with np.errstate(**{kind: mode}):
            out = []
            for i in range(len(a)):
                out.append(a[i] / b[i])
                out.append(a[i] * b[i])
                out.append(a[i] + b[i])
            return out

    a = np.array([1.0, 2.0, 1e300, 1e-300, 5e-324, np.inf, 3.0, 0.0])
    b = np.array([2.0, 0.0, 1e300, 1e-300, 2.0, -np.inf, np.nan, 0.0])
    check(
        work, (a, b, kind, mode), (a[:1], b[:1], kind, mode), (a.astype(np.float32), b.astype(np.float32), kind, mode)
    )


def test_underflow_is_seen_where_errstate_asks_for_it() -> None:
    """The operator is recorded and unboxed where underflow is ignored, and replayed where it raises."""

    def product(a: Any, b: Any) -> Any:
        return a * b

    jitted = ds.jit(store=False)(product)
    tiny = np.float64(1e-200)
    for _ in range(5):
        assert jitted(np.float64(2), np.float64(3)) == 6
        assert jitted(tiny, tiny) == 0
    with np.errstate(under="raise"):
        for _ in range(4):
            with pytest.raises(FloatingPointError, match="underflow"):
                jitted(tiny, tiny)
            assert jitted(np.float64(2), np.float64(3)) == 6


def test_nan_data_does_not_leave() -> None:
    def total(values: Any) -> Any:
        t = np.float64(0)
        for v in values:
            t = t + v * 2.0
        return t

    data = np.arange(30.0)
    data[5] = np.nan
    settles(total, (data,))
    check(total, (data,))


def test_one_box_a_value() -> None:
    def same(a: Any) -> Any:
        x = a[0] + a[1]
        y = x
        kept = [x, y]
        z = a[0] + a[1]
        return kept[0] is kept[1], x is z, type(x), a[0] is a[0]

    check(same, (np.array([1.5, 2.5]),), (np.array([1, 2], np.int32),), (np.array([True, False]),))


def test_exact_types_stay_apart() -> None:
    def f(x: Any, n: int) -> Any:
        t = x
        for i in range(n):
            t = t + 1
        return t, type(t).__name__

    check(f, (0.5, 9), (np.float64(0.5), 9), (np.float32(0.5), 9), (0, 9), (np.int64(0), 9), (True, 9))


def test_an_op_that_refuses_once_is_recorded_on_objects() -> None:
    def f(a: Any, b: Any) -> Any:
        c = a / b
        d = c + 1.0
        return d * 2

    jitted = ds.jit(store=False)(f)
    one, zero = np.float64(1), np.float64(0)
    with warnings.catch_warnings(), stepped(step_aside=False):
        warnings.simplefilter("ignore")
        for _ in range(12):
            jitted(one, zero)
            jitted(one, one)
        with counting(jitted) as grown:
            for _ in range(5):
                assert jitted(one, zero) == np.inf
    assert grown["exits"] == 0
