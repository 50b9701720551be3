"""What the oracle tells apart, and what it does not: values as the contract sees them."""

from __future__ import annotations

import collections
import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import numpy as np
from dalsegno.fuzz.encode import Encoder

Pair = collections.namedtuple("Pair", "a b")
FLOATS = ["f2", "f4", "f8", ">f8", "c8", "c16", ">c16"]


def encoded(value: Any) -> tuple[Any, ...]:
    encoder = Encoder()
    encoder.begin_call()
    return encoder.encode(value)


class Float(float):
    pass


VALUES = [
    None, True, False, ..., b"a", "a", "b", 0, 1, 256, 257, -6, 1 << 70, 0.0, -0.0, 1.0, 1.5, float("nan"),
    float("inf"), 0j, -0j, complex(0.0, -0.0), 1j, (), (1,), (1.0,), [], [1], [1.0], {}, {1: 2}, {2: 1}, {1: 2,
    2: 1}, {2: 1, 1: 2}, {1}, frozenset({1}), np.float64(0.0), np.float64(-0.0), np.float64(1), np.float64("nan"),
    np.float32(1), np.float16(1), np.int64(1), np.int32(1), np.uint8(1), np.longlong(1), np.bool_(True),
    np.bool_(False), np.complex128(1), np.complex64(1), np.complex128(complex("nan+1j")), np.str_("a"),
    np.datetime64("2020", "D"), np.datetime64("2020", "s"), np.dtype("f8"), np.dtype(">f8"), np.dtype("f4"),
    np.dtype([("a", "f8")]), np.dtype("i8"), np.zeros(3), np.zeros(3, "f4"), np.zeros(3, ">f8"), np.zeros((3, 1)),
    np.zeros(6)[::2], -np.zeros(3), np.zeros(3, "O"), np.zeros(3, "i8"), np.zeros(3, "?"), np.zeros((2, 2)),
    np.zeros((2, 2), order="F"), np.zeros(0), np.zeros(()), np.full(3, np.nan), np.ma.zeros(3), Pair(1, 2), (1,
    2), Float(1.0), ValueError(1), ValueError(2), int, float, len, np,
]  # fmt: skip


def test_values_are_told_apart() -> None:
    made = [encoded(value) for value in VALUES]
    for i, left in enumerate(made):
        assert left == pickle.loads(pickle.dumps(left))
        assert left == encoded(VALUES[i])
        for j in range(i):
            assert left != made[j], (VALUES[i], VALUES[j])


@pytest.mark.parametrize("dtype", FLOATS)
def test_nans_are_equal_and_the_rest_of_an_array_is_not(dtype: str) -> None:
    given = np.zeros(5, dtype)
    given[1:3] = np.nan
    other = np.copysign(given.real, -1) if given.dtype.kind == "f" else given.copy()
    bits = given.view(np.uint8).copy()
    low = bits.reshape(5, -1)[1]
    low[1 if dtype[0] == ">" else 0] ^= 1  # another NaN
    payload = bits.view(dtype)
    assert np.isnan(payload[1])
    assert encoded(payload)[-1] == encoded(given)[-1] and np.isnan(given[1])
    assert payload.tobytes() != given.tobytes()  # nothing was written to
    assert encoded(payload[1]) == encoded(given[1]) == encoded(given[2])
    assert encoded(payload[3:])[-1] != encoded(other[3:])[-1] or given.dtype.kind == "c"
    assert encoded(given[::2])[-1] == encoded(given[::2].copy())[-1]


def test_numbers_say_which_objects_are_the_same() -> None:
    x, y, big = 1.5, float("1.5"), 1 << 70
    row: list[Any] = [1]
    assert encoded((x, x)) != encoded((x, y))
    assert encoded((big, big)) != encoded((big, int(str(big))))
    assert encoded(([], [])) != encoded((row[:0],) * 2)
    assert encoded((np.float64(1),) * 2) != encoded((np.float64(1), np.float64(1)))
    encoder = Encoder()
    encoder.begin_call()
    first = encoder.encode((row, x))
    encoder.begin_call()
    assert encoder.encode((row, y)) == first  # a list keeps its number, a number has none of an earlier call
    encoder.begin_call()
    assert encoder.encode(([1], x)) != first
    encoder.forget()
    encoder.begin_call()
    assert encoder.encode(([1], x)) == first


def test_arrays_say_where_their_memory_lies() -> None:
    a = np.arange(12.0).reshape(3, 4)
    assert encoded((a, a[1:])) != encoded((a, a[1:].copy()))
    b = a.copy()
    assert encoded((a[1], a[2])) == encoded((b[1], b[2])) != encoded((a[1], b[2]))
    assert encoded((a[1], a[2]))[2][6] == (0, 32) and encoded((a[1], a[2]))[3][6] == (0, 64)
    locked = a.copy()
    locked.flags.writeable = False
    assert encoded(a) != encoded(locked)


def test_what_holds_itself() -> None:
    row: list[Any] = [1]
    row.append(row)
    table: dict[Any, Any] = {1: row}
    table[2] = table
    for value in (row, table):
        assert encoded(value) == encoded(copy.deepcopy(value))
    held = np.empty(1, "O")
    held[0] = held
    assert encoded(held) == ("array", 0, "|O", (1,), (8,), held.flags.num, (0, 0), (("array", 0),))
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        encoded(deep)
    while deep:
        deep = deep[0]


def test_numbered_objects_live_as_long_as_the_encoder() -> None:
    class Thing:
        pass

    thing = Thing()
    death = weakref.ref(thing)
    encoder = Encoder()
    encoder.encode([thing])
    del thing
    gc.collect()
    assert death() is not None
    encoder.forget()
    assert death() is None
