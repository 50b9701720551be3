# ruff: noqa: E501 - tables of values
"""NumPy's integers of every width, unboxed: operators, conversions, overflow, elements, positions."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
from tests.support import check, check_source, settles

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
OTHERS = [*INTEGERS, "bool", "float32", "float64", "int", "float", "boolean"]
PYTHONS: dict[str, list[Any]] = {
    "int": [0, 1, -1, 255, 300, 2**31, 2**63, -(2**70)],
    "float": [0.5, -0.0, float("nan"), 1e300],
    "boolean": [True, False],
}


def extremes(dtype: str) -> list[Any]:
    if dtype in PYTHONS:
        return PYTHONS[dtype]
    if dtype.startswith("float"):
        return [np.dtype(dtype).type(x) for x in (0.5, -0.0, np.nan, np.inf)]
    if dtype == "bool":
        return [np.bool_(True), np.bool_(False)]
    info = np.iinfo(dtype)
    return [info.dtype.type(x) for x in dict.fromkeys((0, 1, 7, info.min, info.max, info.max // 2 + 1))]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_operators(dtype: str) -> None:
    source = """
    @jit
    def entry(op, a, b):
        if op == "+": return a + b
        if op == "-": return a - b
        if op == "*": return a * b
        if op == "/": return a / b
        if op == "//": return a // b
        if op == "%": return a % b
        if op == "&": return a & b
        if op == "|": return a | b
        if op == "^": return a ^ b
        if op == "<<": return a << b
        if op == ">>": return a >> b
        if op == "<": return a < b
        if op == "==": return a == b
        if op == ">=": return a >= b
        if op == "min": return min(a, b)
        if op == "max": return max(b, a)
        return -a, ~a, abs(a), int(a), float(a), bool(a), a is b
    """
    space: dict[str, Any] = {"jit": lambda f: f}
    exec("from __future__ import annotations\n" + "\n".join(line[4:] for line in source.splitlines()), space)
    operators = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "==", ">=", "min", "max", "unary"]
    for op in operators:
        rows = [(op, a, b) for other in OTHERS for a in extremes(dtype)[::3] for b in extremes(other)[::3]]
        same = [(op, a, b) for a in extremes(dtype) for b in extremes(dtype)]
        check(space["entry"], *rows, *[(op, b, a) for op, a, b in rows[::4]], *same[::2], rounds=1)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float32"])
def test_elements_into_arithmetic(dtype: str) -> None:
    def work(a: Any, n: int) -> Any:
        s = 0
        out = []
        for i in range(len(a)):
            x = a[i]
            s = s + int(x)
            y = x & x if n else x
            out.append(y)
            out.append(x * 2.0)
            out.append(x < n)
            a[i] = x
        return s, out, a

    a = np.array([0, 1, 1, 3, 100]).astype(dtype)
    check(work, (a, 0), (a[::-1], 0), (a, 3))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_stores_of_what_fits_and_what_does_not(dtype: str) -> None:
    def put(a: Any, v: Any) -> Any:
        for i in range(3):
            a[i] = v
        return a

    for other in OTHERS:
        check(put, *[(np.zeros(3, dtype), v) for v in extremes(other)], rounds=2)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_overflow_in_the_middle_of_a_loop(dtype: str) -> None:
    def total(a: Any) -> Any:
        t = a[0]
        for i in range(len(a)):
            t = t + a[i]
        return t

    top = np.iinfo(dtype).max
    check(
        total, (np.array([1, 2, 3, 4], dtype),), (np.array([1, 2, top, 4], dtype),), (np.array([top, 2, 3, 4], dtype),)
    )
    settles(total, (np.array([1, 2, 3, 4], dtype),))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float32"])
def test_positions_of_lists_tuples_texts_and_arrays(dtype: str) -> None:
    def walk(kind: int, positions: Any) -> Any:
        objects: Any = (
            [3, 1, 2, 0],
            (4, 5, 6, 7),
            "abcd",
            np.arange(4.0),
            np.arange(8).reshape(4, 2),
            {0: 1, 1: 2, 2: 3, 3: 9},
            b"wxyz",
            range(9),
        )
        o = objects[kind]
        out = []
        for p in positions:
            try:
                out.append(o[p])
                if kind == 0:
                    o[p] += 1
            except (IndexError, KeyError, TypeError) as error:
                out.append((type(error), str(error)))
        return out, [type(x) for x in out], o

    good, bad = np.array([0, 1, 1, 3]).astype(dtype), np.array([0, 5, 1, 9]).astype(dtype)
    for kind in range(8):
        check(walk, (kind, good), (kind, bad), (kind, good), rounds=2)


def test_a_histogram_of_bytes() -> None:
    def histogram(picture: Any) -> Any:
        counts = [0] * 256
        for value in picture:
            counts[value] += 1
        return counts

    a = (np.arange(60) * 37 % 256).astype(np.uint8)
    check(histogram, (a,), (a[::2],), (a.astype(np.int16) - 1,), (a.astype(np.uint64),))
    settles(histogram, (a,))


def test_arrays_of_small_integers_as_wholes() -> None:
    def whole(a: Any, b: Any) -> Any:
        c = a + b
        d = np.where(a > b, a, b) * 2
        e = (a.astype(np.float64) * 0.5).astype(np.uint8)
        a += 1
        return c, d, e, a, abs(a), -b, a[1:] - b[:-1], np.sqrt(a), c.sum(), a.max()

    for dtype in INTEGERS:
        a = np.arange(40).astype(dtype)
        check(whole, (a, a[::-1]), (a, np.uint8(3) + a), (a.reshape(5, 8), a[:8]), rounds=3)


def test_the_same_in_another_process() -> None:
    source = """
    @jit
    def entry(a, table):
        h = 0
        for i in range(len(a)):
            h = table[(h ^ a[i]) & 0xFF] ^ (h >> 8)
            a[i] = a[i] ^ 0x55
        return h, a
    """
    check_source(source, """
    def calls():
        for kind in ("u1", "u1", "u2", "i2", "u4", "u8", "u1"):
            yield (np.arange(20).astype(kind), [(i * 2654435761) % 2**32 for i in range(256)]), {}
    """)  # fmt: skip
