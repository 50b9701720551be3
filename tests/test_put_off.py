"""A later process puts off what calls are too short for: opening the store and reading what is kept of a function."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dalsegno._testing import policy
from tests.support import run_python

_SHORT = """
import json, sys
import dalsegno as ds

@ds.jit
def f(x):
    y = [x, x + 1]
    y.append(x)
    return y[1]

def told():
    stats = dict(f.stats)
    notes = {note["reason"] for note in f.explain().to_dict()["notes"]}
    return stats | {"put_off": "put_off" in notes, "aside": "step_aside" in notes}
"""
_SEES = _SHORT + "assert {f(3) for _ in range(3000)} == {4}\nds.wait()\nprint(json.dumps(told()))"
_CALLS_ONCE = _SHORT + "assert f(3) == 4\nprint(json.dumps(told()))"


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """A store that knows how long calls of f take, and its file with just that."""
    tmp_path.chmod(0o700)
    store = tmp_path / "store.sqlite3"
    assert run_python(_SEES, store=store, DALSEGNO_STEP_ASIDE="1")["recordings"] == 1
    assert (tmp_path / "store.sqlite3-pace").stat().st_size >= 48
    return store


def _looked_up(stats: dict[str, Any]) -> bool:
    return not stats["put_off"] and (stats["traces_loaded"] > 0 or stats["aside"]) and stats["recordings"] == 0


def test_short_calls_do_not_wait_for_the_store(seen):
    stats = run_python(_CALLS_ONCE, store=seen, DALSEGNO_STEP_ASIDE="1")
    wanted = {"calls": 1, "eager_calls": 1, "recordings": 0, "traces_loaded": 0, "put_off": True, "aside": False}
    assert stats == stats | wanted


def test_many_short_calls_are_worth_reading_the_store(seen):
    many = "for _ in range(1_500_000):\n    assert f(3) == 4\nprint(json.dumps(told()))"
    stats = run_python(_SHORT + many, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert _looked_up(stats | {"put_off": False}) and stats["calls"] > 100


def test_an_explanation_reads_the_store(seen):
    shows = "f(3)\ntraces = f.explain().to_dict()['traces']\nprint(json.dumps([len(traces), dict(f.stats)]))"
    count, stats = run_python(_SHORT + shows, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert count == stats["traces_loaded"] == 1 and stats["recordings"] == 0


def test_calls_with_arguments_of_another_size_are_not_put_off(seen):
    call = "assert f(1 << 60) == (1 << 60) + 1\nprint(json.dumps(told()))"
    stats = run_python(_SHORT + call, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["replays"] == 1 and not stats["put_off"]


@pytest.mark.parametrize("variables", [{"DALSEGNO_STEP_ASIDE": "0"}, {"DALSEGNO_STEP_ASIDE": "1"}])
def test_switching_stepping_aside_off_reads_the_store_at_once(seen, variables):
    calls = "f(3)\nds.config.step_aside = False\nf(3)\nprint(json.dumps(told()))"
    stats = run_python(_SHORT + calls, store=seen, **variables)
    assert stats["traces_loaded"] > 0 and stats["replays"] == 2 - int(variables["DALSEGNO_STEP_ASIDE"])


def test_what_must_be_recorded_whole_is_not_put_off(seen):
    stats = run_python(_CALLS_ONCE.replace("@ds.jit", "@ds.jit(full_graph=True)"), store=seen, DALSEGNO_STEP_ASIDE="1")
    assert _looked_up(stats)


def _garbage(file: Path) -> None:
    file.write_bytes(os.urandom(480))


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("spoil", [Path.unlink, _garbage, _fifo, _directory])
def test_without_its_file_the_store_is_read_at_once(seen, spoil):
    spoil(seen.with_name(seen.name + "-pace"))
    assert _looked_up(run_python(_CALLS_ONCE, store=seen, DALSEGNO_STEP_ASIDE="1"))


def test_a_cleared_store_puts_nothing_off(seen):
    run_python("import dalsegno as ds\nds.store.clear()", store=seen)
    stats = run_python(_CALLS_ONCE, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["recordings"] == 1 and not stats["put_off"]


def test_a_store_that_is_gone_is_noticed_when_it_is_read(seen):
    seen.unlink()
    calls = "for _ in range(2_000_000):\n    f(3)\n    if f.stats['recordings']: break\nprint(json.dumps(told()))"
    stats = run_python(_SHORT + calls, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["recordings"] == 1 and stats["put_off"]


def test_a_child_puts_off_what_its_parent_does(seen):
    calls = """
import os
f(3)
child = os.fork()
if child == 0:
    ok = f(3) == 4 and f.stats["eager_calls"] == 2
    os._exit(0 if ok else 1)
print(json.dumps(told() | {"child": os.waitpid(child, 0)[1]}))
"""
    stats = run_python(_SHORT + calls, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["child"] == 0 and stats["put_off"]


_OTHER = """
import json, sys
import dalsegno as ds

@ds.jit
def g(x):
    return x * 3 - 1
assert g(3) == 8
told = [dict(g.stats), ds.store.stats()]
ds.wait()
print(json.dumps(told))
"""


def test_a_store_without_notes_of_a_function_is_not_opened_for_it(seen):
    """To find nothing there takes as long as the whole call. (What is written later opens it.)"""
    stats, store = run_python(_OTHER, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["recordings"] == 1 and store["misses"] == 0
    again, _ = run_python(_OTHER, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert again["recordings"] == 0


def test_without_any_notes_the_store_is_looked_into(seen):
    Path(f"{seen}-pace").unlink()
    stats, store = run_python(_OTHER, store=seen, DALSEGNO_STEP_ASIDE="1")
    assert stats["recordings"] == 1 and store["misses"] >= 1


@pytest.mark.parametrize(
    "variables", [{"DALSEGNO_STEP_ASIDE": "0"}, {"DALSEGNO_STEP_ASIDE": "1", "DALSEGNO_RECORD": "0"}]
)
def test_who_asks_for_it_has_the_store_looked_into(seen, variables):
    _, store = run_python(_OTHER, store=seen, **variables)
    assert store["misses"] >= 1


def test_a_loop_that_ran_in_the_first_call_is_noted(seen):
    """Such a call tells nothing of what calls take, and yet the next process finds its traces."""
    call = """
import json, sys
import dalsegno as ds

@ds.jit
def g(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
assert g(30000) == sum(i * i for i in range(30000))
ds.wait()
print(json.dumps(dict(g.stats)))
"""
    first, second = (run_python(call, store=seen, DALSEGNO_STEP_ASIDE="1") for _ in range(2))
    assert first["loops_entered"] >= 1 and first["traces_loaded"] == 0
    assert second["traces_loaded"] >= 1 and second["recordings"] == 0


@pytest.mark.parametrize(
    ("cost", "replay", "eager", "calls"),
    [
        (2e6, 1e6, 9e6, 0),
        (2e6, 1e5, 2e6, 1),
        (2e6, 1.9e6, 2e6, 24),
        (2e6, 2e6, 2e6, 24),
        (2e6, 0, 2e6, 0),
        (0, 1e5, 2e6, 0),
    ],
)
def test_a_first_call_is_no_later_than_an_eager_one(cost, replay, eager, calls):
    """Reading the recording of a call of two milliseconds took longer; the demo's hillshade was later by half."""
    assert policy.calls_to_put_off(cost, replay, eager) == calls


def test_what_the_first_replay_takes_more_is_part_of_what_loading_costs():
    """It makes kernels and measures; a later process's does so, too. The demo's slope was later than eager by that."""
    lane = policy.Lane()
    lane.run(5e6, 5e6)
    for _ in range(20):
        lane.run(2e5, 5e6)
    assert lane.load_ns() == pytest.approx(4.8e6)
    lane.reset()
    for _ in range(20):
        lane.run(1e5, 5e6)
    assert lane.load_ns() == pytest.approx(4.9e6)


def test_a_replay_that_needs_less_memory_is_sooner_in_a_new_process():
    """Each makes its pages anew there. The demo's Black-Scholes was eager there: 7.9 ms, where a replay took 3.5."""
    lanes = []
    for eager_memory in (10 << 20, 20 << 20, 100 << 20):
        lanes.append(policy.Lane())
        for _ in range(20):
            lanes[-1].run(2e5, 5e6, replay_memory=10 << 20, eager_memory=eager_memory)
    same, twice, ten_times = (lane.load_ns() for lane in lanes)
    assert same == 0 > twice > ten_times


_RECURSION = """
import json
import dalsegno as ds

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def hanoi(n, a="l", b="m", c="r"):
    return 0 if n == 0 else hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)

plain = FUNCTION
wanted = plain(ARGUMENT)
FUNCTION = ds.jit(FUNCTION)
for _ in range(CALLS):
    assert FUNCTION(ARGUMENT) == wanted
ds.wait()
print(json.dumps(dict(FUNCTION.stats)))
"""


@pytest.mark.parametrize(("function", "argument"), [("fib", 18), ("hanoi", 12)])
def test_of_a_recursion_the_outermost_calls_count(tmp_path, function, argument):
    """Its time was that of an inner call; of the second one it was, as the call that recorded had been one."""
    store = tmp_path / "store.sqlite3"
    program = _RECURSION.replace("FUNCTION", function).replace("ARGUMENT", str(argument))
    first = run_python(program.replace("CALLS", "20"), store=store, DALSEGNO_STEP_ASIDE="1")
    assert first["recordings"] > 0
    second = run_python(program.replace("CALLS", "8"), store=store, DALSEGNO_STEP_ASIDE="1")
    assert second["traces_loaded"] > 0 and second["replays"] > 0 and second["recordings"] == 0
