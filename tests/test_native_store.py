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


def test_without_a_store_it_is_compiled_each_time() -> None:
    for _ in range(2):
        _, compiled, loaded = run_python(PROGRAM)
        assert (compiled, loaded) == (1, 0)
