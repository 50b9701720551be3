"""Kernels by Halide, which compiles what is not written as LLVM IR: the same expressions, the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import numpy as np
from tests import kernel_kit as kit

pytestmark = pytest.mark.once

SOME_DTYPES = ("bool", "int32", "uint8", "uint64", "float32", "float64")


@pytest.fixture(autouse=True)
def by_halide() -> Iterator[None]:
    with kit.compiled_at_once("halide", threads=1):
        yield


@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_every_function(dtype: str) -> None:
    compiled = 0
    for name in (*kit.UNARY, *kit.BINARY):
        unary = name in kit.UNARY
        inputs = [kit.special_values(dtype)] if unary else list(kit.pairs(dtype, dtype))
        segment = kit.make([(name, [~k for k in range(len(inputs))])], inputs)
        if segment is None or not segment.usable or (unary and dtype in kit.NARROW and name not in kit.INTEGER_UNARY):
            continue
        kit.check([(name, [~k for k in range(len(inputs))])], inputs, expect="")
        compiled += 1
    assert compiled > 15


def test_a_chain_over_views() -> None:
    a = kit.random_values("float64", 400, 1).reshape(20, 20)
    ops = [("subtract", [~0, ~1]), ("multiply", [0, ~2]), ("less", [1, ~3]), ("where", [2, 0, 1])]
    for other in (a.T, a[:1], np.broadcast_to(a[:, :1], a.shape), a[::-1].copy()[::2].repeat(2, 0)):
        kit.check(ops, [a, other, 0.5, a], expect="")
