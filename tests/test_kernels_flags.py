"""Floating-point flags as guards: what eager would report is never missed; nothing else costs the kernel."""

from __future__ import annotations

import threading

import pytest

import numpy as np
from tests import kernel_kit as kit

pytestmark = pytest.mark.once

ONES = np.ones(40)
ZEROS = np.zeros(40)
HUGE = np.full(40, 1e300)
ONE_ZERO = np.where(np.arange(40) == 33, 0.0, 1.0)


@pytest.fixture(autouse=True, params=[(by, threads) for by in kit.COMPILERS for threads in (1, 3)])
def synchronous(request):
    by, threads = request.param
    with kit.compiled_at_once(by, threads):
        yield


# Programs whose trouble a compiler could lose: it reaches the result through a selection, or not at all.
HIDDEN = {
    "selected away": [("divide", [~0, ~1]), ("not_equal", [~1, ~2]), ("where", [1, 0, ~0])],
    "selected away, sqrt": [("subtract", [~1, ~0]), ("sqrt", [0]), ("less", [~1, ~2]), ("where", [2, ~0, 1])],
    "selected through a negation": [
        ("divide", [~0, ~1]),
        ("negative", [0]),
        ("not_equal", [~1, ~2]),
        ("where", [2, 1, ~0]),
    ],
    "dead": [("divide", [~0, ~1]), ("add", [~0, ~0])],
    "dead after a comparison": [("divide", [~0, ~1]), ("less", [0, ~0]), ("add", [~0, ~0])],
    "maximum": [("divide", [~0, ~1]), ("minimum", [0, ~0])],
    "sign of a square": [("divide", [~0, ~1]), ("multiply", [0, 0]), ("signbit", [1])],
    "only its finiteness": [("divide", [~0, ~1]), ("isfinite", [0])],
    "as a bool": [("divide", [~0, ~1]), ("astype", [0], "bool")],
    "sign only": [("divide", [~0, ~1]), ("copysign", [~0, 0])],
    "before a loop that clears the flags": [("divide", [~0, ~1]), ("fmax", [~0, ~2]), ("add", [0, 1])],
    "before two loops": [
        ("divide", [~0, ~1]),
        ("fmin", [~0, ~2]),
        ("remainder", [~0, ~0]),
        ("add", [0, 1]),
        ("add", [2, 3]),
    ],
    "in a loop": [("log", [~1]), ("less", [0, ~0]), ("where", [1, ~0, 0])],
    "in a dead loop": [("log", [~1]), ("add", [~0, ~0])],
    "times zero": [("divide", [~0, ~1]), ("minimum", [0, ~0]), ("multiply", [1, ~2])],
}


@pytest.mark.parametrize("size", [3, 8, 13, 40, 3000, 300_000])
@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_is_missed(name: str, size: int):
    ops = HIDDEN[name]
    one_zero = np.ones(size)
    one_zero[size * 5 // 6] = 0.0
    clean = [np.ones(size), np.ones(size), np.zeros(size)]
    assert kit.check(ops, [np.ones(size), one_zero, np.zeros(size)], expect="") == "flags"
    if not kit.eager(ops, clean, [0])[1]:
        kit.check(ops, clean)


@pytest.mark.parametrize("size", range(1, 40))
def test_no_flags_from_padding(size: int):
    """What lies beyond the ends of arrays must not be computed with."""
    padded = [np.full(size + 64, v) for v in (0.0, np.inf, -1.0, 1e308)]
    views = [p[32 : 32 + size] for p in padded]
    for v in views:
        v[:] = 1.5
    ops = [
        ("divide", [~0, ~1]),
        ("sqrt", [0]),
        ("multiply", [1, ~3]),
        ("multiply", [2, 2]),
        ("where", [~4, 3, ~2]),
        ("exp", [4]),
    ]
    kit.check(ops, [*views, np.ones(size, bool)], outputs=[3, 5])


@pytest.mark.parametrize(
    ("ops", "inputs"),
    [
        ([("divide", [~0, ~1])], [ONES, ONE_ZERO]),
        ([("divide", [~0, ~1])], [ZEROS, ONE_ZERO]),
        ([("multiply", [~0, ~0])], [HUGE]),
        ([("add", [~0, ~1])], [np.full(40, np.inf), np.full(40, -np.inf)]),
        ([("sqrt", [~0])], [ONE_ZERO - 0.5]),
        ([("astype", [~0], "float32")], [HUGE]),
        ([("astype", [~0], "int32")], [HUGE]),
        ([("astype", [~0], "int64")], [np.full(40, np.nan)]),
        ([("exp", [~0])], [HUGE]),
        ([("log", [~0])], [ZEROS]),
        ([("floor_divide", [~0, ~1])], [np.arange(40), np.arange(40)]),
        ([("remainder", [~0, ~1])], [np.arange(40), np.arange(40)]),
        ([("floor_divide", [~0, ~1])], [np.full(40, np.iinfo("i8").min), np.full(40, -1)]),
        ([("floor_divide", [~0, ~1])], [np.full(40, np.iinfo("i4").min, "i4"), np.full(40, -1, "i4")]),
        ([("power", [~0, ~1])], [HUGE, np.full(40, 2.5)]),
        ([("reciprocal", [~0])], [ZEROS]),
        ([("cosh", [~0])], [HUGE]),
    ],
    ids=lambda v: v[0][0] if isinstance(v[0], tuple) else "",
)
def test_each_kind_of_trouble(ops, inputs):
    assert kit.check(ops, inputs, expect="") == "flags"
    assert kit.check(ops, [np.tile(v, 5000) for v in inputs], expect="") == "flags"


def test_errstate_decides():
    segment = kit.make([("divide", [~0, ~1])], [ONES, ONES])
    want = np.array([1.0] * 33 + [np.inf] + [1.0] * 6)
    assert segment.run(ONES, ONE_ZERO) == "flags"
    with np.errstate(divide="ignore"):
        assert segment.run(ONES, ONE_ZERO)[0].tobytes() == want.tobytes()
        assert segment.run(ZEROS, ZEROS) == "flags"  # invalid
    for mode in ("raise", "warn", "print", "log", "call"):
        with np.errstate(divide=mode):
            assert kit.make([("divide", [~0, ~1])], [ONES, ONES]).run(ONES, ONE_ZERO) == "flags"
    tiny = np.full(40, 1e-300)
    product = kit.make([("multiply", [~0, ~0])], [tiny])
    assert not isinstance(product.run(tiny), str)  # underflow is ignored by default
    with np.errstate(under="warn"):
        assert product.run(tiny) == "flags"


def test_out_of_range_casts_leave_even_where_invalid_is_ignored():
    """Their values differ by position in NumPy itself."""
    segment = kit.make([("astype", [~0], "int32")], [ONES])
    with np.errstate(all="ignore"):
        assert segment.run(HUGE) == "flags"


def test_ordinary_data_are_not_refused():
    rng = np.random.default_rng(3)
    x, y = rng.random((2, 5000)) + 0.1
    for name in kit.UNARY + kit.BINARY:
        ufunc = getattr(np, name)
        inputs = [x, y][: ufunc.nin]
        ops = [(name, [~0, ~1][: ufunc.nin])]
        if kit.make(ops, inputs) is not None and not kit.eager(ops, inputs, [0])[1]:
            assert kit.check(ops, inputs) in ("done", "unusable")


def test_flags_already_raised_do_not_matter():
    segment = kit.make([("add", [~0, ~1])], [ONES, ONES])
    with np.errstate(all="ignore"):
        np.divide(1.0, 0.0)
        np.multiply(HUGE, HUGE)
    assert not isinstance(segment.run(ONES, ONES), str)


def test_stubborn_trouble_is_left_to_numpy():
    segment = kit.make([("divide", [~0, ~1])], [ONES, ONES])
    outcomes = [segment.run(ONES, ZEROS) for _ in range(50)]
    assert set(outcomes) == {"flags", "mismatch"}
    assert outcomes.count("flags") < 10
    while isinstance(segment.run(ONES, ONES), str):
        pass


def test_threads_have_flags_of_their_own():
    segment = kit.make([("divide", [~0, ~1])], [ONES, ONES])
    wrong: list[str] = []

    def work(divisor: np.ndarray, bad: bool) -> None:
        for _ in range(300):
            if (segment.run(ONES, divisor) == "flags") and not bad:
                wrong.append("spurious")

    threads = [threading.Thread(target=work, args=a) for a in ((ONES, False), (ONES, False), (ZEROS, True))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
