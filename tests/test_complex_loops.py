"""NumPy's inner loops of complex numbers, called as groups of array ops call them: what replay/segment/complex_loops.h
says of their bits holds on whole arrays and on pieces, at all alignments, whatever the strides, with every processor
feature and without. (NaNs are all equal.)"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from typing import Any

import pytest

import numpy as np

pytestmark = pytest.mark.once

FORWARDS = {"multiply", "square", "absolute"}  # other bits where a stride is negative
DENSE = {"square"}  # and where neither operand nor result is dense
UNARY = "square negative positive absolute reciprocal sqrt exp log sin cos isnan isinf isfinite logical_not".split()
BINARY = "add subtract multiply divide equal not_equal less less_equal greater greater_equal logical_and logical_or"
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e-310, 5e-324, 1.0, -1.0]
FLAGS = 0x1 | 0x4 | 0x8 | 0x10  # invalid, division by zero, overflow, underflow


class Ufunc(ctypes.Structure):
    _fields_ = (
        ("object", ctypes.c_void_p * 2),
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_int) for name in ("ntypes", "reserved")),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_byte)),
    )


LOOP = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_void_p,
)


class Loop:
    def __init__(self, ufunc: Any, dtype: str) -> None:
        self.libm = ctypes.CDLL("libm.so.6")
        self.n = ufunc.nin
        table = Ufunc.from_address(id(ufunc))
        width = self.n + 1
        for i in range(table.ntypes):
            types = [table.types[i * width + k] for k in range(width)]
            if all(number == np.dtype(dtype).num for number in types[: self.n]):
                self.function = LOOP(table.functions[i])
                self.data = table.data[i] if table.data else None
                self.result = next(np.dtype(c) for c in "?fdFD" if np.dtype(c).num == types[-1])
                return
        raise LookupError(ufunc)

    def __call__(self, operands: list[Any], out: Any, cuts: list[int]) -> int:
        """Runs over the stretches between the cuts; the flags that were raised."""
        raised = 0
        for first, last in itertools.pairwise(cuts):
            places = [a.ctypes.data + first * a.strides[0] for a in (*operands, out)]
            strides = [a.strides[0] for a in (*operands, out)]
            self.libm.feclearexcept(FLAGS)
            self.function(
                (ctypes.c_void_p * len(places))(*places),
                (ctypes.c_ssize_t * 1)(last - first),
                (ctypes.c_ssize_t * len(places))(*strides),
                self.data,
            )
            raised |= self.libm.fetestexcept(FLAGS)
        return raised


def laid_out(values: Any, stride: int, offset: int) -> Any:
    """The same values `stride` elements apart, 0: the first one, `offset` bytes behind a multiple of 64."""
    n, item = len(values), values.itemsize
    raw = np.zeros((max(abs(stride), 1) * n + 4) * item + offset + 64, np.uint8)
    raw = raw[-raw.ctypes.data % 64 + offset :]
    if stride == 0:
        one = np.ndarray((1,), values.dtype, raw)
        one[0] = values[0]
        return np.lib.stride_tricks.as_strided(one, (n,), (0,))
    made: Any = np.ndarray((n,), values.dtype, raw, 0, (abs(stride) * item,))
    if stride < 0:
        made = made[::-1]
    made[:] = values
    return made


def bits(a: Any) -> bytes:
    a = np.array(a)
    if a.dtype.kind == "c":
        a = np.stack([a.real, a.imag])
    if a.dtype.kind == "f":
        a[np.isnan(a)] = np.nan
    made: bytes = a.tobytes()
    return made


def holds(name: str, strides: tuple[int, ...]) -> bool:
    if name in FORWARDS and min(strides) < 0:
        return False
    return name not in DENSE or strides[-1] == 1


def wrong(dtype: str, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    found = []
    for name, special in itertools.product(UNARY + BINARY.split(), (False, True)):
        loop = Loop(getattr(np, name), dtype)
        n = int(rng.integers(1, 40))
        given = []
        for _ in range(loop.n):
            z = np.empty(n, dtype)
            for part in (z.real, z.imag):
                part[...] = rng.standard_normal(n)
                chosen = rng.random(n) < 0.4 * special
                with np.errstate(all="ignore"):
                    part[chosen] = rng.choice(SPECIAL, int(chosen.sum()))
            given.append(z)
        offsets = (0, 4, 8, 16) if dtype == "F" else (0, 8, 16)
        for strides in itertools.product((1, 2, 3, 0, -1, -2), repeat=loop.n):
            values = [np.full(n, z[0]) if s == 0 else z for z, s in zip(given, strides, strict=True)]
            whole = np.zeros(n, loop.result)
            flags = loop(values, whole, [0, n])
            for to, offset in itertools.product((1, 2, -1), offsets):
                if not holds(name, (*strides, to)):
                    continue
                operands = [laid_out(v, s, offset) for v, s in zip(values, strides, strict=True)]
                out = laid_out(np.zeros(n, loop.result), to, offset if loop.result == np.dtype(dtype) else 0)
                inner = sorted({0, n, *(int(k) for k in rng.integers(0, n + 1, 4))})
                for cuts in ([0, n], inner, list(range(n + 1))):
                    out[:] = 0
                    if loop(operands, out, cuts) != flags or bits(out) != bits(whole):
                        found.append(f"{name} {dtype} {strides} {to} {offset} {cuts}")
    return found


@pytest.mark.parametrize("without", ["", "X86_V4", "X86_V4 X86_V3"])
def test_bits_do_not_depend_on_pieces(without: str) -> None:
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": without}
    code = "from tests.test_complex_loops import wrong\nprint([wrong(t, s)[:4] for t in 'FD' for s in (1, 2)])"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "[[], [], [], []]\n", done.stdout + done.stderr
