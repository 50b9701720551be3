"""Unboxed arithmetic of the replay machine against CPython: same value and type, or left before the instruction."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

from tests.machine_traces import (
    ADD,
    AND,
    DIV,
    EQ,
    FLOORDIV,
    GE,
    GT,
    LE,
    LSHIFT,
    LT,
    MOD,
    MUL,
    NE,
    NONE,
    OR,
    POW,
    RSHIFT,
    SUB,
    XOR,
    TraceBuilder,
    tree,
)

BINARY: dict[int, Callable[[Any, Any], Any]] = {
    ADD: operator.add,
    SUB: operator.sub,
    MUL: operator.mul,
    DIV: operator.truediv,
    FLOORDIV: operator.floordiv,
    MOD: operator.mod,
    POW: operator.pow,
    LSHIFT: operator.lshift,
    RSHIFT: operator.rshift,
    AND: operator.and_,
    OR: operator.or_,
    XOR: operator.xor,
}
COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    LT: operator.lt,
    LE: operator.le,
    EQ: operator.eq,
    NE: operator.ne,
    GT: operator.gt,
    GE: operator.ge,
}
INTS = [
    0,
    1,
    -1,
    2,
    3,
    -7,
    62,
    63,
    64,
    2**30,
    2**31 - 1,
    -(2**31),
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    10**30,
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    1e308,
    -1e308,
    5e-324,
    2.0**53,
    2.0**53 + 2,
    math.inf,
    -math.inf,
    math.nan,
    7.1,
]
VALUES: list[Any] = [*INTS, *FLOATS, True, False]


def same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def operation(kind: str, imm: int, types: tuple[type, ...]) -> Any:
    b = TraceBuilder(params=len(types))
    snapshot = b.snap(b.params, (), 3)
    for param, type_ in zip(b.params, types, strict=True):
        b.type(param, type_, snapshot)
    value = b.op(kind, *b.params, imm=imm, snapshot=snapshot, effects=NONE)
    b.release(*b.params)
    b.ret(value)
    return tree(b)


def check(made: Any, function: Callable[..., Any], *operands: Any) -> bool:
    """True if the trace came to its end. It may be left instead, before the instruction and with nothing lost."""
    out = made.run(0, operands)
    try:
        wanted = function(*operands)
    except (ArithmeticError, ValueError):
        assert out["outcome"] == "left", (operands, out)
    else:
        if out["outcome"] == "returned":
            assert same(out["value"], wanted), (operands, out["value"], wanted)
            return True
    assert out["raised"] is None
    assert out["frames"][0]["locals"] == list(operands) or any(v != v for v in operands)
    assert [type(v) for v in out["frames"][0]["locals"]] == [type(v) for v in operands]
    return False


@pytest.mark.parametrize("imm", BINARY, ids=lambda imm: BINARY[imm].__name__)
def test_binary(imm: int) -> None:
    made: dict[tuple[type, ...], Any] = {}
    finished = 0
    for a, b in itertools.product(VALUES, VALUES):
        if imm == LSHIFT and isinstance(b, int) and b > 1000:
            continue
        if imm == POW and isinstance(a, int) and isinstance(b, int) and b > 100:
            continue
        types = type(a), type(b)
        if types not in made:
            made[types] = operation("binary", imm, types)
        try:
            finished += check(made[types], BINARY[imm], a, b)
        except TypeError:
            pass
    assert finished > 100


@pytest.mark.parametrize("imm", COMPARE, ids=lambda imm: COMPARE[imm].__name__)
def test_compare(imm: int) -> None:
    made: dict[tuple[type, ...], Any] = {}
    for a, b in itertools.product(VALUES, VALUES):
        types = type(a), type(b)
        if types not in made:
            made[types] = operation("compare", imm, types)
        fits = all(isinstance(v, float) or -(2**63) <= v < 2**63 for v in (a, b))
        assert check(made[types], COMPARE[imm], a, b) or not fits


@pytest.mark.parametrize(
    ("kind", "imm", "function"),
    [
        ("unary", 0, operator.neg),
        ("unary", 1, operator.pos),
        ("unary", 2, operator.invert),
        ("truth", 0, bool),
        ("not_", 0, operator.not_),
    ],
)
def test_unary(kind: str, imm: int, function: Callable[[Any], Any]) -> None:
    for value in VALUES:
        if function is operator.invert and type(value) is not int:
            continue
        check(operation(kind, imm, (type(value),)), function, value)


def test_a_wrong_type_leaves_at_the_guard() -> None:
    made = operation("binary", ADD, (int, int))
    for operands in [(1.0, 2), (1, "x"), (True, 1), (None, None)]:
        out = made.run(0, operands)
        assert out["outcome"] == "left"
        assert out["frames"][0]["locals"] == list(operands)


def test_remainder_may_be_the_operand_itself() -> None:
    b = TraceBuilder(params=2)
    snapshot = b.snap(b.params)
    for param in b.params:
        b.type(param, int, snapshot)
    total = b.binary(ADD, b.params[0], b.params[0], snapshot)
    rest = b.binary(MOD, total, b.params[1], snapshot)
    b.ret(b.op("build_tuple", total, rest, b.op("is_", total, rest, effects=NONE), effects=NONE))
    for x, y in [(2**40, 2**50), (3, 100), (2**40, 2**40 + 5), (-(2**40), -(2**50))]:
        value = tree(b).run(0, (x, y))["value"]
        eager = x + x
        wanted = (eager, eager % y, eager is eager % y)
        assert value == wanted
        assert (value[0] is value[1]) == value[2]


def test_a_value_is_boxed_once() -> None:
    b = TraceBuilder(params=1)
    x = b.params[0]
    b.type(x, float, b.snap([x]))
    y = b.binary(ADD, x, x, b.snap([x]))
    pair = b.op("build_tuple", y, y, x, effects=NONE)
    b.op("guard_false", b.op("is_", y, x, effects=NONE), effects=NONE, snapshot=b.snap([x, y], [pair]))
    b.op("leave", snapshot=b.snap([x, y], [pair]))
    x_object = 1.5
    out = tree(b).run(0, (x_object,))
    x_out, y_out = out["frames"][0]["locals"]
    first, second, third = out["frames"][0]["stack"][0]
    assert first is second is y_out
    assert third is x_out is x_object
