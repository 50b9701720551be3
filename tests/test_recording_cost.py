"""What recording costs: counted, not timed. Memory and bytes grow with what was recorded, not with its square."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dalsegno as ds
from dalsegno import _core
from tests.support import check, counting, run_python, stepped


def temporaries(n: int) -> Callable[[float, float], float]:
    """Straight-line code with many locals, as sympy's lambdify writes it."""
    lines = [f"    x{i} = x{i - 1} * 0.5 + x{i - 2}" for i in range(2, n)]
    source = "\n".join(["def f(a, b):", "    x0 = a + b", "    x1 = a * b", *lines, f"    return x{n - 1}"])
    namespace: dict[str, Any] = {"__name__": "made"}
    exec(source, namespace)
    function: Callable[[float, float], float] = namespace["f"]
    return function


def stored_bytes() -> int:
    ds.wait()
    (row,) = _core.store_query("SELECT total(length(data)) FROM trace_data")
    return int(row[0])


def test_bytes_of_many_temporaries_grow_linearly(fresh_store: Path) -> None:
    sizes = []
    for n in (300, 600):
        before = stored_bytes()
        ds.jit(temporaries(n))(1.0, 2.0)
        sizes.append(stored_bytes() - before)
    assert sizes[0] > 300
    assert sizes[1] < 2.3 * sizes[0]
    assert sizes[1] < 80 * 600


def test_rows_for_people_cost_no_more_than_twice_the_trace(fresh_store: Path) -> None:
    ds.jit(temporaries(400))(1.0, 2.0)
    data = stored_bytes()
    (row,) = _core.store_query("SELECT total(length(ops) + length(objects) + length(kinds)) FROM listings")
    assert row[0] < 2 * data
    (ops,) = _core.store_query("SELECT COUNT(*), MAX(line), COUNT(DISTINCT kind) FROM ops")
    assert ops[0] > 800 and ops[1] == 402 and ops[2] > 3


def test_many_temporaries_give_eagers_result() -> None:
    check(temporaries(400), (1.0, 2.0), (3, 4), (1.5, 2))


ALLOCATED = """
import ctypes, json, sys
import numpy as np
import dalsegno as ds

class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena a b blocks mapped c d used e f".split()]

heap = ctypes.CDLL(None).mallinfo2
heap.restype = Heap

def program(n):
    lines = [f"    x{i} = x{i - 1} * 0.5" for i in range(1, n)]
    names = {}
    exec("\\n".join(["def f(x0):", *lines, f"    return x{n - 1}"]), names)
    return ds.jit(names["f"])

def allocated(n):
    f = program(n)
    before = heap()
    f(np.arange(8.0))
    ds.wait()
    after = heap()
    return after.used + after.mapped - before.used - before.mapped

kernels = sys.argv[1] == "kernels"
with ds.config(kernels=kernels, background=False):
    allocated(5)
    print(json.dumps([allocated(300), allocated(2400)]))
"""


@pytest.mark.parametrize("kernels", ["kernels", "steps"])
def test_memory_of_many_array_temporaries_grows_linearly(kernels: str, tmp_path: Path) -> None:
    few, many = run_python(ALLOCATED, kernels, store=tmp_path / "s.db")
    assert 300 * 100 < few
    assert many < 2 * 8 * few


def rec(n: int) -> int:
    return 0 if n == 0 else rec(n - 1) + 1


def twice(n: int) -> int:
    return n if n < 2 else twice(n - 1) + twice(n - 2)


def even(n: int) -> bool:
    return True if n == 0 else odd(n - 1)


def odd(n: int) -> bool:
    return False if n == 0 else even(n - 1)


def n_ops(jitted: Any) -> int:
    return sum(len(trace["ops"]) for trace in jitted.explain().to_dict()["traces"])


@pytest.mark.parametrize("function", [rec, twice, even])
def test_recursion_is_recorded_through_a_few_levels(function: Callable[[int], Any]) -> None:
    check(function, (12,), (1,), (0,), (9,))
    jitted = ds.jit(store=False)(function)
    with stepped():
        for n in (12, 11, 10, 9, 12, 13, 14):
            assert jitted(n) == function(n)
    assert n_ops(jitted) < 1500


def jitted_twice() -> Any:
    @ds.jit(store=False)
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib


def test_recursion_is_not_watched_for_long() -> None:
    fib = jitted_twice()
    with stepped(), counting(fib) as grown:
        assert fib(18) == twice(18)
    assert grown["replays"] > grown["eager_calls"]
    assert n_ops(fib) < 600
    plain = ds.jit(store=False)(twice)
    with stepped():
        for _ in range(6):
            assert plain(18) == twice(18)
    assert n_ops(plain) < 1500


DEEP = """
import json, sys, threading
import dalsegno as ds

seen = []
sys.setrecursionlimit(70_000)

@ds.jit
def deep(n):
    return 0 if n == 0 else deep(n - 1) + 1

for _ in range(5):
    deep(10)
seen.append(deep(50_000))
try:
    deep(80_000)
except RecursionError as error:
    seen.append(type(error).__name__)
sys.setrecursionlimit(1_000)
smallest = 128 if hasattr(sys, "gettotalrefcount") else 64  # a debug build of CPython asks for more
for kib in (smallest, 128, 384, 512, 1024):
    threading.stack_size(kib * 1024)
    thread = threading.Thread(target=lambda: seen.append(deep(900)))
    thread.start()
    thread.join()
print(json.dumps(seen))
"""


def test_recursion_is_as_deep_as_the_limit_says_whatever_the_stack() -> None:
    assert run_python(DEEP) == [50_000, "RecursionError", *[900] * 5]
