"""Shapes and layouts: broadcasting, strides, the layout of results, as NumPy has them; or left to NumPy."""

from __future__ import annotations

import itertools

import pytest

import numpy as np
from dalsegno._testing import segments
from tests import kernel_kit as kit

pytestmark = pytest.mark.once

CHAIN = [("multiply", [~0, ~1]), ("add", [0, ~0]), ("maximum", [1, ~1])]
LOOPS = [("exp", [~0]), ("multiply", [0, ~1]), ("sin", [1])]


@pytest.fixture(autouse=True, params=[(by, threads) for by in kit.COMPILERS for threads in (1, 3)])
def synchronous(request):
    by, threads = request.param
    with kit.compiled_at_once(by, threads):
        yield


@pytest.mark.parametrize("ops", [CHAIN, LOOPS], ids=["chain", "loops"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 7), (5, 7)),
        ((5, 7), (7,)),
        ((5, 7), (5, 1)),
        ((5, 7), (1, 7)),
        ((5, 7), (1, 1)),
        ((5, 7), (1,)),
        ((3, 5, 7), (5, 7)),
        ((3, 5, 7), (3, 1, 7)),
        ((3, 5, 7), (5, 1)),
        ((3, 5, 7), (3, 5, 1)),
        ((3, 5, 7), (3, 1, 1)),
        ((2, 3, 4, 5), (2, 1, 4, 1)),
        ((2, 3, 4, 5), (1, 3, 1, 5)),
        ((2, 3, 1, 5), (2, 3, 1, 5)),
        ((1, 1), (1, 1)),
        ((2000, 3), (3,)),
        ((2000, 3), (2000, 1)),
        ((50, 4, 3), (50, 1, 3)),
        ((30, 2, 2, 40), (2, 1, 40)),
        ((200, 300), (300,)),
        ((200, 300), (200, 1)),
        ((2, 70000), (2, 1)),
    ],
)
def test_broadcasting(ops, shapes):
    x, y = (kit.random_values("float64", s, i) for i, s in enumerate(shapes))
    kit.check(ops, [x, y])


def views(dtype: str = "float64") -> dict[str, np.ndarray]:
    """Arrays of shape (6, 10) in many layouts."""
    base = kit.random_values(dtype, (60, 80), 7)
    cube = kit.random_values(dtype, (10, 4, 6), 8)
    return {
        "c": base[:6, :10].copy(),
        "cropped": base[3:9, 5:15],
        "stepped": base[::10, ::8],
        "columns": base[:6, 0:80:8],
        "rows": base[0:60:10, :10],
        "f": np.asfortranarray(base[:6, :10]),
        "transposed": base[:10, :6].T,
        "moved": cube[:, 1, :].T,
        "row": base[:1, :10],
        "column": base[:6, :1],
        "broadcast": np.broadcast_to(base[0, :10], (6, 10)),
        "broadcast column": np.broadcast_to(base[:6, :1], (6, 10)),
    }


@pytest.mark.parametrize("names", list(itertools.combinations_with_replacement(views(), 2)), ids=" & ".join)
def test_layouts(names: tuple[str, str]):
    x, y = (views()[n] for n in names)
    for a, b in ((x, y), (y, x)):
        for ops in (CHAIN, LOOPS):
            outcome = kit.check(ops, [a, b], outputs=range(len(ops)), expect="")
            if {*names} <= {"c", "cropped", "stepped", "rows", "columns"}:
                assert outcome == "done"


@pytest.mark.parametrize("name", views())
def test_result_strides_of_every_op(name: str):
    x = views()[name]
    for ops in ([("astype", [~0], "float32")], [("where", [~0, ~0, ~0])], [("negative", [~0]), ("add", [0, 0])]):
        kit.check(ops, [x], outputs=range(len(ops)), expect="")


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(0),
        np.zeros((3, 0)),
        np.zeros(30, [("a", "u1"), ("b", "f8")])["b"],
        np.zeros(30, [("a", "f8"), ("b", "f4")])["a"],
        np.arange(20.0).astype(">f8"),
        np.arange(20.0).astype(np.dtype("f8", metadata={"unit": "m"})),
    ],
    ids=["empty", "empty rows", "unaligned", "odd stride", "byte-swapped", "metadata"],
)
def test_left_to_numpy(x: np.ndarray):
    ops = [("add", [~0, ~0])]
    assert kit.check(ops, [x], expect="mismatch")


@pytest.mark.parametrize("x", [np.arange(20.0)[::-1], np.arange(20.0).reshape(4, 5)[:, ::-1]], ids=["all", "columns"])
def test_inner_loops_may_have_other_bits_backwards(x: np.ndarray):
    assert kit.check([("exp", [~0])], [x], expect="mismatch")
    assert kit.check([("fmax", [~0, ~0])], [x], expect="mismatch")
    assert kit.check([("add", [~0, ~0])], [x], expect="done")
    transposed = np.arange(60.0).reshape(3, 4, 5).transpose(2, 0, 1)[::-1]
    assert kit.check([("add", [~0, ~0])], [transposed], expect="mismatch")


def test_shapes_that_do_not_broadcast():
    segment = kit.make(CHAIN, [np.ones((3, 4)), np.ones((3, 4))])
    assert segment.run(np.ones((3, 4)), np.ones((3, 5))) == "mismatch"
    assert segment.run(np.ones((3, 4)), np.ones((2, 4))) == "mismatch"
    assert segment.run(np.ones(4), np.ones(4)) == "mismatch"  # rank
    assert segment.run(np.ones((3, 4), "f4"), np.ones((3, 4))) == "mismatch"  # dtype
    assert segment.run([1.0], np.ones((3, 4))) == "mismatch"  # not an array


def test_new_shapes_need_no_new_kernel():
    segment = kit.make(CHAIN, [np.ones((3, 4)), np.ones((3, 4))])
    segment.run(np.ones((3, 4)), np.ones((3, 4)))
    compiled = segments.counters()["compiled"]
    for shape in ((1, 2), (2, 1), (100, 100), (7, 3), (1, 500)):
        assert not isinstance(segment.run(np.ones(shape), np.ones(shape)), str)
    assert segments.counters()["compiled"] == compiled


def test_power_and_the_stride_of_its_exponent():
    """NumPy squares where the exponent is a scalar 2, and calls pow where it is an array of twos."""
    x = kit.random_values("float64", (40, 50), 1) * 100
    ops = [("power", [~0, ~1]), ("add", [0, ~0])]
    arrays = [np.full(shape, 2.0) for shape in ((40, 50), (40, 1), (1, 50), (1, 1))]
    for exponent in (2, 2.0, 0.5, -1, 3, 0, 1, np.float64(2), *arrays):
        kit.check(ops, [x, exponent], expect="")
    for size in (1, 2, 3):
        kit.check(ops, [x[0, :size], np.full(size, 2.0)], expect="")


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", kit.FLOATS)
def test_signed_zeros(name: str, dtype: str):
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 8, 9, 15, 17, 33, 64, 65, 127, 1000, 1025, 5000):
        x, y = (np.where(rng.random(n) < 0.5, 0.0, -0.0).astype(dtype) for _ in range(2))
        kit.check([(name, [~0, ~1]), ("copysign", [~2, 0])], [x, y, dtype_one(dtype)], outputs=[0, 1], expect="")
        kit.check([(name, [~0, ~1])], [x, y])
        if n > 20:
            rows = [v[: n // 10 * 10].reshape(10, -1)[:, 1:] for v in (x, y)]
            kit.check([(name, [~0, ~1])], rows, expect="")
            kit.check([(name, [~0, ~1])], [x[::3], y[::3]], expect="")


def dtype_one(dtype: str) -> np.generic:
    return np.dtype(dtype).type(1)


def test_ops_of_different_shapes():
    """A row of coefficients is computed once, not for every row it is broadcast to, and leaves with its own shape."""
    ops = [
        ("exp", [~0]),
        ("multiply", [~1, 0]),
        ("add", [~2, ~2]),
        ("add", [1, 2]),
        ("negative", [0]),
        ("less", [4, ~0]),
    ]
    for row, column in (
        ((7,), (5, 1)),
        ((1, 7), (5, 1)),
        ((7,), (1,)),
        ((1,), (5, 1)),
        ((5, 7), (5, 7)),
        ((1, 1), (5, 1)),
    ):
        inputs = [kit.random_values("float64", s, i) for i, s in enumerate((row, (5, 7), column))]
        kit.check(ops, inputs, outputs=[0, 3, 4, 5])
        kit.check(ops, inputs, outputs=[3])


def test_shapes_of_neighbours_that_do_not_broadcast_together():
    """Differences along one axis and along another, say: each has a kernel of its own."""
    ops = [("subtract", [~0, ~1]), ("multiply", [0, ~0]), ("subtract", [~2, ~3]), ("maximum", [2, ~2]), ("exp", [3])]
    x = kit.random_values("float64", (5, 7), 1)
    tall, wide = [x[:, 1:], x[:, :-1]], [x[1:], x[:-1]]
    kit.check(ops, tall + wide, outputs=[0, 1, 4])
    kit.check(ops, wide + tall, outputs=[1, 3])
    kit.check(ops, [x[0, 1:], x[0, :-1], *wide], outputs=[1, 4])
    segment = kit.make(ops, tall + wide, [1, 4])
    assert not isinstance(segment.run(*tall, *wide), str)
    assert segment.run(tall[0], wide[0], *wide) == "mismatch"


def test_trouble_in_a_smaller_part_is_noticed():
    ops = [("divide", [~0, ~1]), ("multiply", [~2, ~2]), ("add", [~2, 0])]
    inputs = [np.ones(7), np.zeros(7), np.ones((5, 7))]
    assert kit.check(ops, inputs, outputs=[1], expect="") == "flags"
    assert kit.check(ops, inputs, outputs=[1, 2], expect="") == "flags"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_element_of_a_strided_view(dtype):
    """NumPy hands inner loops the stride even then: by it, arctan2 of float32 rounds one way or another."""
    x = np.array([2.5, 9.0], dtype)
    views = [x[:1], x[::2], x[:1][::-1], x.reshape(2, 1)[:1], x[:1].reshape(1, 1)[::-1]]
    for name in ("arctan2", "power", "divide", "hypot"):
        for one in views:
            for other in views:
                kit.check([(name, [~0, ~1])], [one, other], expect="")
    for name in ("exp", "sin", "log", "tanh", "arcsin", "sqrt"):
        for one in views:
            kit.check([(name, [~0])], [one], expect="")
