"""Code made here has no tables for unwinding in the process (replay/kernels/unwind_tables.h says why)."""

from __future__ import annotations

import ctypes
from pathlib import Path

import dalsegno as ds
import numpy as np


def code_made() -> list[range]:
    """Memory that holds code and belongs to no file."""
    rows = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    return [range(*(int(end, 16) for end in row[0].split("-"))) for row in rows if "x" in row[1] and len(row) < 6]


def looked_up() -> list[int]:
    find = ctypes.CDLL("libgcc_s.so.1")._Unwind_Find_FDE
    find.restype = ctypes.c_void_p
    find.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    bases = (ctypes.c_void_p * 3)()
    return [at for code in code_made() for at in range(code.start, code.stop, 64) if find(at + 1, bases)]


def test_neither_kernels_nor_regions_are_in_the_tables_of_unwinding() -> None:
    @ds.jit(store=False)
    def entry(x, n):
        total = 0
        for i in range(n):
            total += i * i
        return x * 2.0 + x * x, total

    before = set(looked_up())
    x = np.arange(64.0)
    with ds.config(background=False, step_aside=False, inner_loops=0):
        for _ in range(4):
            entry(x, 1000)
    assert ds.stats()["kernel_launches"] > 0
    assert set(looked_up()) <= before


if __name__ == "__main__":
    test_neither_kernels_nor_regions_are_in_the_tables_of_unwinding()
