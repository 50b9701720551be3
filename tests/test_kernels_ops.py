"""Every function, every dtype, every kind of value: a kernel's bits are NumPy's, and its flags are guards."""

from __future__ import annotations

import itertools

import pytest

import numpy as np
from dalsegno._testing import segments
from tests import kernel_kit as kit

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True, params=kit.COMPILERS)
def synchronous(request):
    with kit.compiled_at_once(request.param, threads=1):
        yield


def chunks_without_trouble(ops, inputs):
    """Special values one at a time, often enough to fill a vector: trouble of one must not hide another's bits."""
    done = 0
    for i in range(len(inputs[0])):
        outcome = kit.check(
            ops, [np.repeat(v[i : i + 1], 9) if isinstance(v, np.ndarray) else v for v in inputs], expect=""
        )
        done += outcome == "done"
    return done


@pytest.mark.parametrize("dtype", kit.ALL_DTYPES)
@pytest.mark.parametrize("name", kit.UNARY)
def test_unary(name: str, dtype: str):
    ops = [(name, [~0])]
    values = kit.special_values(dtype)
    if kit.make(ops, [values]) is None:
        pytest.skip("NumPy has no such loop, or its result has a dtype that kernels do not know")
    if dtype in kit.NARROW and name not in kit.INTEGER_UNARY:
        pytest.skip("computed in a float, as others are")
    kit.check(ops, [kit.random_values(dtype, 1000, 1)], expect="")
    kit.check(ops, [np.concatenate([values, values[::-1]])], expect="")
    chunks_without_trouble(ops, [values])


@pytest.mark.parametrize("dtypes", [*itertools.product(kit.DTYPES, kit.DTYPES), *kit.MIXED], ids="-".join)
@pytest.mark.parametrize("name", kit.BINARY)
def test_binary(name: str, dtypes: tuple[str, str]):
    ops = [(name, [~0, ~1])]
    x, y = kit.pairs(*dtypes)
    segment = kit.make(ops, [x, y])
    if segment is None:
        pytest.skip("NumPy has no such loop, or its result has a dtype that kernels do not know")
    if not segment.usable:
        pytest.skip("kernels leave it to NumPy")
    kit.check(ops, [kit.random_values(d, 1000, i) for i, d in enumerate(dtypes)], expect="")
    kit.check(ops, [x, y], expect="")
    with np.errstate(all="ignore"):  # every flag is ignored: the values themselves must be NumPy's
        got = segment.run(x, y)
        if not isinstance(got, str):
            assert not kit.same(got[0], getattr(np, name)(x, y))


@pytest.mark.parametrize("target", kit.ALL_DTYPES)
@pytest.mark.parametrize("dtype", kit.ALL_DTYPES)
def test_astype(dtype: str, target: str):
    ops = [("astype", [~0], target)]
    values = kit.special_values(dtype)
    if dtype in kit.FLOATS and target in ("uint32", "uint64"):
        assert not kit.make(ops, [values]).usable
        return
    kit.check(ops, [kit.random_values(dtype, 1000, 1)])
    kit.check(ops, [values], expect="")
    chunks_without_trouble(ops, [values])
    if dtype in kit.FLOATS:  # within 32 bits, and out of the target's range: the lowest bits
        kit.check(ops, [np.linspace(-70000.5, 70000.5, 1237).astype(dtype)], expect="")


@pytest.mark.parametrize("dtypes", list(itertools.product(kit.DTYPES, kit.DTYPES)), ids="-".join)
@pytest.mark.parametrize("condition", kit.DTYPES)
def test_where(condition: str, dtypes: tuple[str, str]):
    x, y = kit.pairs(*dtypes)
    c = np.resize(kit.special_values(condition), x.shape)
    kit.check([("where", [~0, ~1, ~2])], [c, x, y], expect="")


SCALARS = [0, 1, -1, 2, 3, 100, 2**40, 0.0, -0.0, 0.5, 2.0, -1.0, 1e300, float("inf"), float("nan"), True, False]
SCALARS += [np.float32(0.1), np.float64(0.1), np.int32(3), np.int64(5), np.bool_(True)]
SCALARS += [
    np.uint8(200),
    np.int8(-3),
    np.uint16(3),
    np.uint64(2**63 + 1),
    np.uint64(5),
    255,
    256,
    -128,
    2**63,
    2**64 - 1,
    2**64,
]


@pytest.mark.parametrize("dtype", kit.ALL_DTYPES)
@pytest.mark.parametrize("name", kit.BINARY)
def test_scalars(name: str, dtype: str):
    """Weak Python numbers and strong NumPy scalars, on either side."""
    x = kit.random_values(dtype, 50, 3)
    for scalar in SCALARS:
        for inputs, operands in (([x, scalar], [~0, ~1]), ([scalar, x], [~0, ~1])):
            kit.check([(name, operands)], inputs, expect="")


@pytest.mark.parametrize("dtype", kit.ALL_DTYPES)
def test_where_with_scalars(dtype: str):
    x = kit.random_values(dtype, 50, 3)
    condition = kit.random_values("bool", 50, 4)
    for a in (0, 1, 0.0, -0.0, 1.5, True, np.float32(2), np.int64(3)):
        kit.check([("where", [~0, ~1, ~2])], [condition, x, a], expect="")
        kit.check([("where", [~0, ~1, ~2])], [condition, a, -0.0], expect="")
        kit.check([("where", [~0, ~1, ~2])], [a, x, x], expect="")


def test_scalar_changes_need_no_new_kernel():
    segment = kit.make([("multiply", [~0, ~1])], [np.ones(20), 1.0])
    before = segments.counters()["compiled"]
    for factor in (0.0, -0.0, 2.0, 1e300):
        assert segment.run(np.ones(20), factor)[0].tobytes() == (np.ones(20) * factor).tobytes()
    assert segments.counters()["compiled"] - before <= 1


@pytest.mark.parametrize("size", [*range(1, 68), 1000, 4099, 100_000])
def test_sizes(size: int):
    x, y = kit.random_values("float64", size, 1), kit.random_values("float64", size, 2)
    ops = [("multiply", [~0, ~1]), ("add", [0, ~0]), ("exp", [1]), ("divide", [2, ~1]), ("where", [~2, 3, 0])]
    kit.check([*ops, ("astype", [4], "float32")], [x, y, x > y], outputs=[3, 5])


def test_bool_bytes_beyond_one():
    """An array of bool may hold other bytes than 0 and 1, through views."""
    x = np.array([0, 1, 2, 255] * 5, "u1").view(bool)
    y = np.array([1, 1, 1, 0] * 5, "u1").view(bool)
    for name in ("logical_and", "logical_or", "logical_not"):
        kit.check([(name, [~0, ~1][: getattr(np, name).nin])], [x, y][: getattr(np, name).nin])
    kit.check([("where", [~0, ~1, ~2])], [x, np.arange(20.0), np.ones(20)])


def test_integer_power_is_left_to_numpy():
    assert not kit.make([("power", [~0, ~1])], [np.arange(5), np.arange(5)]).usable


def test_long_chain_compiles_quickly():
    """Shared subexpressions written out at each use would grow exponentially."""
    ops = [("add", [~0, ~0])] + [("add", [i, i]) for i in range(60)]
    kit.check(ops, [np.full(100, 1e-30)])


def test_random_programs():
    rng = np.random.default_rng(12345)
    expressions = "add subtract multiply divide maximum minimum less where sqrt negative absolute floor".split()
    ran = 0
    for _ in range(60):
        inputs = [kit.random_values(str(rng.choice(kit.ALL_DTYPES)), 37, int(rng.integers(1000))) for _ in range(3)]
        ops: list = []
        while len(ops) < 12:
            name = str(rng.choice([*expressions, "exp", "sin", "arctan2"]))
            n = 3 if name == "where" else getattr(np, name).nin
            ops.append((name, [int(v) for v in rng.integers(-3, len(ops), n)]))
            if kit.make(ops, inputs) is None:
                ops.pop()
        outputs = sorted({len(ops) - 1, int(rng.integers(len(ops)))})
        ran += kit.check(ops, inputs, outputs, expect="") == "done"
    assert ran > 20
