"""Long kernels of many dtypes: registers run out, truth values meet elements of every width, rows of any length."""

from __future__ import annotations

import random
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno._testing import segments
from tests import kernel_kit as kit

pytestmark = pytest.mark.once

SEEDS = 300
UNARY = "negative positive absolute square sqrt floor rint sign logical_not invert isnan isfinite signbit".split()
BINARY = (
    "add subtract multiply divide maximum minimum less less_equal greater greater_equal equal not_equal logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift copysign"
).split()


@pytest.fixture(params=kit.COMPILERS)
def synchronous(request):
    with kit.compiled_at_once(request.param, threads=1):
        yield


def laid_out(rng: random.Random, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape whose rows are dense, apart, backwards, of one element, or have gaps between them."""
    way = rng.randrange(6)
    pitch = [*shape[:-1], 4 * shape[-1]]
    whole = np.resize(values, pitch)
    if way == 0:
        return whole[..., : shape[-1]]
    if way == 1:
        return whole[..., :: rng.choice((2, 3, 4))][..., : shape[-1]]
    if way == 2:
        return whole[..., : shape[-1]][..., ::-1]
    if way == 3:
        return np.broadcast_to(whole[..., :1], shape)
    return np.resize(values, shape)


def chain(rng: random.Random) -> tuple[list[kit.Op], list[Any], list[int]]:
    shape = rng.choice(
        [(rng.randrange(1, 80),), (rng.randrange(1, 5), rng.randrange(1, 40)), (3, 2, rng.randrange(1, 20))]
    )
    inputs: list[Any] = []
    for k in range(rng.randrange(1, 7)):
        values = kit.random_values(rng.choice(kit.ALL_DTYPES), 97, rng.randrange(1000))
        inputs.append(values[k] if rng.random() < 0.15 and k > 0 else laid_out(rng, values, shape))
    ops: list[kit.Op] = []
    values = [(~k, x) for k, x in enumerate(inputs)]
    for _ in range(rng.randrange(1, 45)):
        name = rng.choice([*UNARY, *BINARY, *BINARY, "where", "where", "astype"])
        count = 1 if name in UNARY or name == "astype" else 3 if name == "where" else 2
        taken = [rng.choice(values) for _ in range(count)]
        op: kit.Op = (name, [number for number, _ in taken])
        if name == "astype":
            op = (*op, rng.choice(kit.ALL_DTYPES))
        try:
            with np.errstate(all="raise"):
                value = kit.evaluate([(op[0], [~k for k in range(count)], *op[2:])], [x for _, x in taken])[0]
        except (TypeError, ValueError, FloatingPointError):
            continue
        if not isinstance(value, np.ndarray) or value.dtype.name not in kit.ALL_DTYPES:
            continue
        values.append((len(ops), value))
        ops.append(op)
    outputs = sorted({len(ops) - 1, rng.randrange(len(ops))}) if ops else []
    return ops, inputs, outputs


@pytest.mark.usefixtures("synchronous")
def test_chains():
    outcomes = []
    for seed in range(SEEDS):
        ops, inputs, outputs = chain(random.Random(seed))
        if ops:
            outcomes.append(kit.check(ops, inputs, outputs, expect=""))
    assert outcomes.count("done") > SEEDS // 3


@pytest.mark.parametrize("other", [{"assemble": False}, {"vector_bits": 256}], ids=str)
def test_kernels_made_by_other_means_are_others(other: dict[str, Any]) -> None:
    if segments.widest_vectors() <= 256 and "vector_bits" in other:
        pytest.skip("this processor has no other vectors")
    ops, inputs = [("add", [~0, ~1]), ("multiply", [0, ~0])], [np.ones(100), np.ones(100)]
    with kit.compiled_at_once(kit.COMPILERS[-1], threads=1):
        segments.keep_idle_kernels(100)
        kept = kit.make(ops, inputs)
        kept.run(*inputs)
        before = segments.count_kernels()
        kit.check(ops, inputs)
        assert segments.count_kernels() == before
        with ds.config(**other):
            kit.check(ops, inputs)
        assert segments.count_kernels() == before + 1
