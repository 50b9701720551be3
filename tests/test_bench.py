"""The bench: its clockwork on functions of known cost, its verdict, and every row once."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.bench import idioms, pattern_rows, patterns
from dalsegno.bench.harness import Comparison, compare, duration, same
from dalsegno.bench.pattern_rows import verdict

pytestmark = pytest.mark.once


def spin(seconds):
    """By the thread's own time: that others keep the machine busy makes no side slower."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_compare_sees_which_side_is_slower_and_by_how_much():
    slow, fast = (lambda s: spin(20 * s)), (lambda s: spin(s))
    timing = compare(slow, fast, (1e-4,), rounds=3, budget=0.5, clock=time.thread_time)
    assert 4.0 < timing.ratio < 100.0  # 20
    low, high = timing.spread
    assert 0 < low <= high
    assert compare(fast, slow, (1e-4,), rounds=3, budget=0.5, clock=time.thread_time).ratio < 0.25
    assert len(timing.eager) == len(timing.replay) == 3


def test_ratio_is_of_minima_and_spread_of_rounds():
    timing = Comparison(eager=(2.0, 4.0), replay=(1.0, 4.0))
    assert timing.ratio == 2.0
    assert timing.spread == (1.0, 2.0)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (np.array([0.0, 1.0]), np.array([0.0, 1.0]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([np.nan]), np.array([-np.nan]), True),
        (np.array([1.0]), np.array([1.0], dtype=np.float32), False),
        (np.array([1.0]), np.array([np.nextafter(1.0, 2.0)]), False),
        (np.zeros((2, 2)), np.zeros((2, 2), order="F"), False),
        (1.0, np.float64(1.0), False),
        ((1, [2.0]), (1, [2.0]), True),
    ],
)
def test_same_is_strict(one, other, equal):
    assert same(one, other) is equal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(120e-9, "120 ns"), (4.561e-6, "4.56 us"), (7.89e-3, "7.89 ms"), (1.2, "1.2 s"), (0.0, "0 ns")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def row(ratio, **more):
    return pattern_rows.Row("row", 1.0, 1.0 / ratio, ratio, ratio, ratio, **more)


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (row(0.96), 0),
        (row(0.94), 1),
        (row(0.5, counts=False), 0),
        (row(2.0, identical=False), 1),
    ],
)
def test_verdict(capsys, one, code):
    assert verdict([row(1.5), one]) == code
    assert one.failed == bool(code)
    text = capsys.readouterr().out
    assert ("under 0.95: none" in text) == (one.ratio >= 0.95 or not one.counts)


def test_programs_do_what_they_say():
    assert patterns.scalar_loop(b"123456789") == 0x29B1  # CRC-16/CCITT-FALSE's check value
    assert patterns.uses_globals(10)(2.0) == 4.0
    a = np.ones((4, 4))
    assert not patterns.five_point_stencil(a).any()


def test_uses_globals_really_looks_at_them():
    function = patterns.uses_globals(3)
    del function.__globals__["constant_2"]
    with pytest.raises(NameError):
        function(1.0)


def test_every_row_is_bit_identical_and_replayed(run_python, tmp_path, fresh_store):
    target = tmp_path / "rows.json"
    done = run_python("-m", "dalsegno", "bench", "--patterns", "--quick", "--json", str(target), timeout=240)
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads(target.read_text())
    names = [r["name"] for r in report["rows"]]
    for word in (
        "three ops, 10",
        "chain of 3",
        "chain of 12",
        "stencil",
        "exp/sin",
        "Python-heavy",
        "scalar loop",
        "50 globals",
        "exit",
        "recording",
        "new process",
    ):
        assert any(word in name for name in names), word
    for one in report["rows"]:
        assert one["identical"], one
        assert one["eager"] > 0 and one["replay"] > 0 and one["low"] <= one["high"]
        assert "eager" not in one["note"].split(",")[0] or not one["counts"], one
    cold = report["rows"][-1]["data"]
    assert (cold["recordings"], cold["kernels_compiled"]) == (0, 0) and cold["replays"] == 1
    assert "not bit-identical: none" in done.stdout


def test_bench_from_the_source_tree(run_python):
    from tests.conftest import ROOT

    done = run_python(str(ROOT / "bench" / "run.py"), "--nonsense")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "dalsegno bench" in done.stderr


def test_the_exit_row_leaves_once_a_call():
    note = pattern_rows.exit_row(quick=True).note
    assert note.startswith("1 exit a call"), note
    assert ds.config.hot_exit == 2


@pytest.mark.parametrize("group", idioms.EXPRESSIONS)
def test_idioms_are_expressions(group):
    for expression in idioms.EXPRESSIONS[group].strip().splitlines():
        for size in idioms.SIZES:
            eval(expression, {"np": np, **idioms.operands(size)})


def test_rows_of_idioms():
    rows = list(idioms.all_rows(quick=True, only="np.outer"))
    assert [(row.name, row.size, row.identical) for row in rows] == [("np.outer(v, w)", "small", True)]
    assert rows[0].to_dict()["group"] == "linear algebra"
    assert idioms.verdict(rows) == 0
    assert idioms.verdict([dataclasses.replace(rows[0], identical=False)]) == 1
    slow = dataclasses.replace(rows[0], ratio=0.5)
    assert idioms.summary([slow])[-1] == "    0.50 small: np.outer(v, w)"
