"""The demo on its real data: bits, pictures, and a second process that records and compiles nothing."""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.demo import data, finance, terrain
from dalsegno.demo import main as demo
from dalsegno.demo.main import counted, put_off, second_line
from tests.front import same

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def sources():
    return data.load()


def test_the_data_are_what_matplotlib_carries(sources):
    assert sources["height"].shape == (344, 403) and sources["photograph"].shape == (600, 512, 3)
    assert sources["prices"].size > 1000 and (sources["prices"] > 0).all()


def test_programs_compute_what_they_say(sources):
    plane = np.add.outer(np.arange(20.0) * 2.0, np.arange(30.0) * 0.0)
    assert np.allclose(terrain.slope(plane, 1.0, 1.0)[1:-1, 1:-1], np.degrees(np.arctan(2.0)))
    wet, level = terrain.flood(sources["height"], sources["source"], 0.1)
    assert wet.mean() >= 0.1 and (sources["height"][wet] <= level).all()
    call, put = finance.black_scholes(np.array([100.0, 101.0, 99.0]), np.array([1.0]), 1.0, 0.05)
    strike = np.array([[100.0], [101.0], [99.0]])
    assert np.allclose(call - put, strike - strike * np.exp(-0.05))  # put-call parity


@pytest.mark.parametrize("index", range(5))
def test_bit_identical_on_every_call(sources, index):
    name, function, values = data.programs(sources)[index]
    jitted = ds.jit(store=False)(function)
    expected = function(*values)
    for _ in range(4):
        assert same(expected, jitted(*values)), name
    ds.wait()
    assert same(expected, jitted(*values)), name
    assert jitted.stats["replays"] >= 3, str(jitted.explain())


@pytest.mark.slow
def test_demo_in_two_processes(run_python, tmp_path, fresh_store):
    done = run_python("-m", "dalsegno", "demo", "--quick", "--output", "pictures", timeout=280, DALSEGNO_STEP_ASIDE="0")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    first, second = done.stdout.split("Second process:")
    names = [name for name, _, _ in data.programs(data.load())]
    for part, columns in (
        (first, ("bit-identical", "ops", "guards", "segments", "kernels", "exits")),
        (second, ("recordings",)),
    ):
        assert all(word in part for word in columns)
        for name in names:
            line = next(line for line in part.splitlines() if line.startswith(name))
            assert " yes" in line and "NO" not in line.split() and "eagerly" not in line
    for line in second.splitlines():
        if line.startswith(tuple(names)):
            recordings, compilations, replays = line.split()[-4:-1]
            assert (recordings, compilations) == ("0", "0"), second
            assert int(replays) >= 1
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [p.name for p in pictures] == ["options.png", "photograph.png", "terrain.png"]
    assert all(f"  {p}" in done.stdout for p in pictures)
    from matplotlib.image import imread

    assert all(imread(p).std() > 0.05 for p in pictures)


def test_eagers_first_results_come_from_processes_of_their_own_and_the_best_of_three_counts(monkeypatch):
    asked = []
    took = {"jitted": [3.0, 1.0, 2.0], "eager": [5.0, 6.0, 4.0]}

    def new_process(how):
        asked.append(how)
        return {"x": {"first": took[how].pop(0), "recordings": len(asked), "identical": True}}

    monkeypatch.setattr(demo, "new_process", new_process)
    assert demo.second_process() == {"x": {"first": 1.0, "eager": 4.0, "recordings": 3, "identical": True}}
    assert asked == ["jitted", "eager"] * 3


def test_one_second_process_that_differs_is_told_of(monkeypatch):
    same = iter([True, True, False, True, True, True])
    monkeypatch.setattr(demo, "new_process", lambda how: {"x": {"first": 1.0, "identical": next(same)}})
    assert not demo.second_process()["x"]["identical"]


def test_an_eager_process_replays_nothing(monkeypatch, sources):
    program = ("x", lambda x: x + 1, (sources["prices"],))
    monkeypatch.setattr(data, "programs", lambda _: [program])
    eager, jitted = (dict(demo.first_results(how))["x"] for how in ("eager", "jitted"))
    assert eager["identical"] and jitted["identical"]
    assert (eager["recordings"], jitted["recordings"]) == (0, 1)


def test_what_is_counted():
    op = {"guard": False}
    trace = {
        "ops": [op, op | {"guard": True}],
        "segments": [{"ops": [0], "kernels": [("C", "compiled"), ("F", "compiling")]}],
        "exits": [{"count": 3}],
    }
    assert counted([trace, trace]) == {"ops": 4, "guards": 2, "segments": 2, "kernels": 2, "exits taken": 6}


@pytest.mark.parametrize(("recordings", "replays", "left"), [(0, 0, True), (1, 0, False), (0, 2, False)])
def test_a_first_result_that_was_neither_recorded_nor_replayed_is_explained(recordings, replays, left):
    assert put_off({"recordings": recordings, "replays": replays}) is left


def test_a_difference_is_shouted():
    report = {"first": 1.0, "eager": 1.0, "recordings": 0, "kernels_compiled": 0, "replays": 1, "identical": False}
    assert second_line("x", report).endswith("NO")
