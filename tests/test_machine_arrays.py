"""Array ops that wait in the replay machine: values, exceptions and warnings of eager, whatever happens meanwhile."""

from __future__ import annotations

import gc
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numpy as np
from tests.machine_traces import (
    ADD,
    ARRAY,
    BOOL,
    DIV,
    EXIT,
    FLOAT32,
    FLOAT64,
    GT,
    INT64,
    LT,
    MUL,
    NONE,
    SUB,
    WRITES,
    TraceBuilder,
    machine,
    tree,
)


@pytest.fixture(params=[True, False], ids=["waiting", "steps"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    machine.set_kernels(request.param)
    yield
    machine.set_kernels(True)


def same(a: Any, b: Any) -> bool:
    return (
        type(a) is type(b)
        and a.dtype == b.dtype
        and a.shape == b.shape
        and a.strides == b.strides
        and a.tobytes() == b.tobytes()
    )


def guarded(params: int = 2, dtype: int = FLOAT64, rank: int = 1) -> tuple[TraceBuilder, int]:
    b = TraceBuilder(params=params)
    start = b.snap(b.params, (), 1)
    for p in b.params[:2]:
        b.array(p, dtype, rank, start)
    return b, start


def chain() -> TraceBuilder:
    """((x + y) * 2.0 - x), each op with the snapshot it has in eager."""
    b, start = guarded()
    x, y = b.params
    v = b.array_binary(ADD, "add", x, y, start)
    w = b.array_binary(MUL, "multiply", v, b.const(2.0), b.snap([x, y], [v], 2))
    b.release(v)
    u = b.array_binary(SUB, "subtract", w, x, b.snap([x, y], [w], 3))
    b.release(w, x, y)
    b.ret(u)
    return b


def test_chain() -> None:
    made = tree(chain())
    for n in (0, 1, 5, 1000):
        x, y = np.linspace(0, 1, n), np.linspace(-3, 7, n)
        for _ in range(3):
            assert same(made.run(0, (x, y))["value"], (x + y) * 2.0 - x)
    x = np.arange(10.0)
    assert same(made.run(0, (x[::2], x[5:]))["value"], (x[::2] + x[5:]) * 2.0 - x[::2])
    assert same(made.run(0, (x, x[:1]))["value"], (x + x[:1]) * 2.0 - x)


def test_shapes_that_do_not_fit_raise_where_eager_raises() -> None:
    out = tree(chain()).run(0, (np.zeros(3), np.zeros(2)))
    assert out["frames"][0]["offset"] == 1
    with pytest.raises(ValueError, match="broadcast") as eager:
        np.zeros(3) + np.zeros(2)
    assert (type(out["raised"]), out["raised"].args) == (eager.type, eager.value.args)


def test_raising_in_the_middle_has_what_was_done_before() -> None:
    b = TraceBuilder(params=3)
    x, y, z = b.params
    start = b.snap([x, y, z], (), 1)
    for p in b.params:
        b.array(p, FLOAT64, 1, start)
    v = b.array_binary(ADD, "add", x, y, start)
    w = b.array_binary(MUL, "multiply", v, z, b.snap([x, y, z], [v], 2))
    b.release(v, x, y, z)
    b.ret(w)
    out = tree(b).run(0, (np.ones(3), np.ones(3), np.ones(2)))
    frame = out["frames"][0]
    assert (frame["offset"], frame["stack"][0].tolist()) == (2, [2.0, 2.0, 2.0])
    assert isinstance(out["raised"], ValueError)


def test_a_guard_that_fails_while_ops_wait_still_has_their_values() -> None:
    b = TraceBuilder(params=3)
    x, y, n = b.params
    start = b.snap([x, y, n, None, None], (), 1)
    b.array(x, FLOAT64, 1, start)
    b.array(y, FLOAT64, 1, start)
    v = b.array_binary(ADD, "add", x, y, start)
    w = b.array_binary(MUL, "multiply", v, v, b.snap([x, y, n, v, None], (), 2))
    after = b.snap([x, y, n, v, w], (), 3)
    b.type(n, int, after)
    more = b.compare(GT, n, b.const(3), after)
    guard = b.op("guard_true", more, effects=NONE, snapshot=after)
    b.release(v, x, y, n)
    b.ret(w)
    made = tree(b)
    x_in, y_in = np.arange(4.0), np.ones(4)
    assert same(made.run(0, (x_in, y_in, 5))["value"], (x_in + y_in) * (x_in + y_in))
    out = made.run(0, (x_in, y_in, 2))
    assert out["frames"][0]["offset"] == 3
    assert same(out["frames"][0]["locals"][3], x_in + y_in)
    assert same(out["frames"][0]["locals"][4], (x_in + y_in) * (x_in + y_in))
    out = made.run(0, (x_in, y_in, 2.5))
    assert same(out["frames"][0]["locals"][4], (x_in + y_in) * (x_in + y_in))
    out = made.run(0, (x_in, np.ones(3), 2))  # the exit's own values cannot be made: eager raises before it gets there
    assert (out["frames"][0]["offset"], type(out["raised"])) == (1, ValueError)
    side = TraceBuilder(number=1, anchor=EXIT, params=6, parent=(0, guard, 0))
    _, *values = side.params
    side.entry(side.frame(values, (), 3, function=side.params[0]))
    side.ret(side.op("build_list", *values[3:], effects=NONE))
    made.add(side.data)
    one, two = made.run(0, (x_in, y_in, 2))["value"]
    assert same(one, x_in + y_in)
    assert same(two, (x_in + y_in) * (x_in + y_in))


def test_writes_come_after_what_reads_them() -> None:
    b, start = guarded()
    x, y = b.params
    v = b.array_binary(ADD, "add", x, y, start)
    same_x = b.op("inplace", x, y, imm=MUL, snapshot=b.snap([x, y, v], [x, y], 2))
    b.release(same_x)
    w = b.array_binary(ADD, "add", x, v, b.snap([x, y, v], (), 3))
    b.op("set_item", x, b.const(0), b.const(99.0), effects=WRITES, snapshot=b.snap([x, y, v, w], (), 4))
    u = b.array_binary(ADD, "add", x, w, b.snap([x, y, v, w], (), 5))
    b.release(v, w, x, y)
    b.ret(u)
    for _ in range(2):
        made = tree(b)
        x_in, y_in = np.arange(3.0), np.full(3, 2.0)
        x_eager = x_in.copy()
        v_eager = x_eager + y_in
        x_eager *= y_in
        w_eager = x_eager + v_eager
        x_eager[0] = 99.0
        assert same(made.run(0, (x_in, y_in))["value"], x_eager + w_eager)
        assert same(x_in, x_eager)


def test_effects_are_not_repeated_when_a_waiting_op_raises() -> None:
    b = TraceBuilder(params=3)
    x, y, log = b.params
    start = b.snap([x, y, log], (), 1)
    b.array(x, FLOAT64, 1, start)
    b.array(y, FLOAT64, 1, start)
    v = b.array_binary(ADD, "add", x, y, start)
    b.op("list_append", log, b.const("done"), effects=WRITES, snapshot=b.snap([x, y, log, v], (), 2))
    b.release(x, y, log)
    b.ret(v)
    made = tree(b)
    log_in: list[str] = []
    out = made.run(0, (np.zeros(3), np.zeros(2), log_in))
    assert (out["frames"][0]["offset"], log_in) == (1, [])
    made.run(0, (np.zeros(3), np.zeros(3), log_in))
    assert log_in == ["done"]


def test_missed_alias_is_felt() -> None:
    """The planted fault, and that it is one: without it the write comes second."""

    def trace() -> TraceBuilder:
        b, start = guarded()
        x, y = b.params
        v = b.array_binary(ADD, "add", x, y, start)
        b.op("set_item", x, b.const(0), b.const(99.0), effects=WRITES, snapshot=b.snap([x, y, v], (), 2))
        b.release(x, y)
        b.ret(v)
        return b

    assert tree(trace()).run(0, (np.zeros(2), np.zeros(2)))["value"].tolist() == [0.0, 0.0]
    machine.set_fault("missed_alias")
    try:
        made = tree(trace())
    finally:
        machine.set_fault("")
    felt = made.run(0, (np.zeros(2), np.zeros(2)))["value"].tolist() == [99.0, 0.0]
    assert felt == (made.segments(0) > 0)


def test_dead_ops_still_check_their_shapes() -> None:
    b, start = guarded()
    x, y = b.params
    v = b.array_binary(ADD, "add", x, y, start)
    b.release(v)
    b.op("guard_is_not", x, object=None, effects=NONE, snapshot=b.snap([x, y], (), 2))
    b.ret(x)
    made = tree(b)
    x_in = np.zeros(3)
    assert made.run(0, (x_in, np.zeros(3)))["value"] is x_in
    assert isinstance(made.run(0, (x_in, np.zeros(2)))["raised"], ValueError)


def divide() -> TraceBuilder:
    b, start = guarded()
    x, y = b.params
    v = b.array_binary(DIV, "divide", x, y, start)
    w = b.array_binary(MUL, "multiply", v, x, b.snap([x, y], [v], 2))
    b.release(v, x, y)
    b.ret(w)
    return b


def test_floating_point_warnings() -> None:
    made = tree(divide())
    x, y = np.array([1.0, 0.0]), np.array([0.0, 0.0])
    for _ in range(3):
        with warnings.catch_warnings(record=True) as eager:
            warnings.simplefilter("always")
            wanted = (x / y) * x
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            got = made.run(0, (x, y))["value"]
        assert np.array_equal(got, wanted, equal_nan=True)
        assert [(w.category, str(w.message)) for w in ours] == [(w.category, str(w.message)) for w in eager]
        with np.errstate(all="raise"):
            out = made.run(0, (x, y))
        assert isinstance(out["raised"], FloatingPointError)
        assert out["frames"][0]["offset"] == 1
        with np.errstate(all="ignore"):
            assert np.array_equal(made.run(0, (x, y))["value"], wanted, equal_nan=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(made.run(0, (x, y))["raised"], RuntimeWarning)


def test_an_error_handler_that_changes_an_array() -> None:
    """What is known of arrays does not survive code of the user's; nothing is read with a wrong dtype."""
    made = tree(divide())
    for _ in range(3):
        x, y = np.array([1.0, 2.0]), np.array([0.0, 0.0])

        def handler(kind: str, flag: int, x: Any = x) -> None:
            x.dtype = np.float32
            x.shape = (2, 2)

        old = np.seterrcall(handler)
        try:
            with np.errstate(divide="call"):
                out = made.run(0, (x, y))
        finally:
            np.seterrcall(old)
        assert out["outcome"] == "left" or out["value"].shape == (2, 2)


SCALARS: list[tuple[type, Any, int]] = [
    (int, 3, FLOAT64),
    (float, 0.1, FLOAT64),
    (bool, True, FLOAT64),
    (np.float64, np.float64(0.1), FLOAT64),
]


@pytest.mark.parametrize(("type_", "value", "result"), SCALARS, ids=[row[0].__name__ for row in SCALARS])
def test_scalar_operands(type_: type, value: Any, result: int) -> None:
    b = TraceBuilder(params=2)
    x, s = b.params
    start = b.snap([x, s], (), 1)
    b.array(x, FLOAT64, 1, start)
    b.type(s, type_, start)
    v = b.array_binary(MUL, "multiply", x, s, start, dtype=result)
    w = b.array_binary(ADD, "add", s, v, b.snap([x, s], [s, v], 2), dtype=result)
    b.release(v, x, s)
    b.ret(w)
    made = tree(b)
    x_in = np.linspace(0, 1, 7)
    for _ in range(3):
        assert same(made.run(0, (x_in, value))["value"], value + x_in * value)


def test_computed_scalar_operand() -> None:
    """An unboxed float that a waiting op takes."""
    b = TraceBuilder(params=2)
    x, s = b.params
    start = b.snap([x, s], (), 1)
    b.array(x, FLOAT32, 1, start)
    b.type(s, float, start)
    t = b.binary(MUL, s, s, start)
    v = b.array_binary(MUL, "multiply", x, t, b.snap([x, s], [x, t], 2), dtype=FLOAT32)
    b.release(t, x, s)
    b.ret(v)
    made = tree(b)
    x_in = np.linspace(0, 1, 7, dtype=np.float32)
    for _ in range(3):
        assert same(made.run(0, (x_in, 0.3))["value"], x_in * (0.3 * 0.3))


CALLS: list[tuple[str, Callable[..., Any], int, int]] = [
    ("maximum", np.maximum, 2, FLOAT64),
    ("sqrt", np.sqrt, 1, FLOAT64),
    ("exp", np.exp, 1, FLOAT64),
    ("isnan", np.isnan, 1, BOOL),
    ("less", operator.lt, 2, BOOL),
]


@pytest.mark.parametrize(("name", "function", "inputs", "result"), CALLS, ids=[row[0] for row in CALLS])
def test_functions(name: str, function: Callable[..., Any], inputs: int, result: int) -> None:
    b, start = guarded()
    x, y = b.params
    operands = [x, y][:inputs]
    if function is operator.lt:
        v = b.op("compare", x, y, imm=LT, fn=name, facts=(result, 1), effects=ARRAY, snapshot=start)
    else:
        v = b.op(
            "call", b.const(function), *operands, imm=inputs, fn=name, facts=(result, 1), effects=ARRAY, snapshot=start
        )
    b.release(x, y)
    b.ret(v)
    made = tree(b)
    args = np.array([0.5, 4.0, np.nan]), np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        assert same(made.run(0, args)["value"], function(*args[:inputs]))


def test_ints() -> None:
    b, start = guarded(dtype=INT64)
    x, y = b.params
    v = b.array_binary(ADD, "add", x, y, start, dtype=INT64)
    w = b.array_binary(MUL, "multiply", v, b.const(3), b.snap([x, y], [v], 2), dtype=INT64)
    b.release(v, x, y)
    b.ret(w)
    x_in = np.array([1, 2, 2**62])
    made = tree(b)
    for _ in range(3):
        assert same(made.run(0, (x_in, x_in))["value"], (x_in + x_in) * 3)


@pytest.mark.parametrize("n", [3, 2])
def test_no_references_are_kept(n: int) -> None:
    """Done, and raised (shapes that do not fit)."""
    made = tree(chain())
    args = np.ones(3), np.ones(n)
    made.repeat(0, args, 200)
    gc.collect()
    gc.disable()
    try:
        blocks, counts = sys.getallocatedblocks(), [sys.getrefcount(a) for a in args]
        made.repeat(0, args, 20_000)
        assert sys.getallocatedblocks() - blocks < 10_000
        assert all(abs(sys.getrefcount(a) - n) < 50 for a, n in zip(args, counts, strict=True))
    finally:
        gc.enable()
