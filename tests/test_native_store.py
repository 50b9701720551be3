"""Native code is kept in the store: a second process compiles none."""

from __future__ import annotations

from pathlib import Path

from tests.support import run_python

PROGRAM = """
import json
import dalsegno as ds
from tests.machine_traces import machine

def work(n, x):
    t = 0.0
    for i in range(n):
        t = t * 0.5 + x
    return t

ds.config.background = False
ds.config.hot_loop = 5
jitted = ds.jit(work)
results = [jitted(50, 1.5) for _ in range(4)]
ds.wait()
compiled, loaded, *_ = machine.native_times()
print(json.dumps([results, compiled, loaded]))
"""


def test_a_second_process_loads_what_the_first_has_compiled(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    results, compiled, loaded = run_python(PROGRAM, store=store)
    assert (compiled, loaded) == (1, 0)
    again, compiled, loaded = run_python(PROGRAM, store=store)
    assert again == results
    assert (compiled, loaded) == (0, 1)


LLVM_OR_NOT = """
with open("/proc/self/maps") as maps:
    print(json.dumps([compiled, loaded, "libllvmlite" in maps.read()]))
"""


def test_what_is_kept_runs_without_llvm(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    program = PROGRAM.replace("print(json.dumps([results, compiled, loaded]))", LLVM_OR_NOT)
    assert run_python(program, store=store) == [1, 0, True]
    assert run_python(program, store=store) == [0, 1, False]


def test_without_a_store_it_is_compiled_each_time() -> None:
    for _ in range(2):
        _, compiled, loaded = run_python(PROGRAM)
        assert (compiled, loaded) == (1, 0)


NEST = """
import json
import dalsegno as ds
from tests.machine_traces import machine

def work(n, m):
    total = 0
    for i in range(n):
        k = i
        while k > 1:
            k = 3 * k + 1 if k & 1 else k >> 1
            total += 1
            if total > m:
                total -= m
        for j in range(i & 7):
            total += j if j & i else 2
    return total

ds.config.background = False
ds.config.hot_loop = CONFIGURED
jitted = ds.jit(work)
results = [jitted(400, 1000) for _ in range(CALLS)]
ds.wait()
compiled, loaded, *_ = machine.native_times()
print(json.dumps([results, [work(400, 1000)] * CALLS, compiled, loaded]))
"""


def nest(calls: int, hot: int, store: Path) -> tuple[int, int]:
    got, want, compiled, loaded = run_python(
        NEST.replace("CALLS", str(calls)).replace("CONFIGURED", str(hot)), store=store
    )
    assert got == want
    return compiled, loaded


def test_a_nest_that_grew_is_found_as_it_was_compiled(tmp_path: Path) -> None:
    """The second process has all side traces from the start, where the first one compiled regions while they came."""
    compiled, _ = nest(6, 20, tmp_path / "s.db")
    assert compiled > 1
    again, loaded = nest(1, 1_000_000, tmp_path / "s.db")  # no loop is hot here: what is run is what was kept
    assert again == 0
    assert loaded > 0


def test_what_an_earlier_process_did_not_compile_is_compiled(tmp_path: Path) -> None:
    assert nest(3, 1_000_000, tmp_path / "s.db") == (0, 0)
    compiled, loaded = nest(2, 20, tmp_path / "s.db")
    assert compiled > 0
    assert loaded == 0
