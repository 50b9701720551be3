"""bench/programs: every program's bits, and the arithmetic of the report on them."""

from __future__ import annotations

import json

import pytest

import dalsegno as ds
from dalsegno.bench import bits, rows, summary
from dalsegno.bench.programs import PROGRAMS, selected
from tests.support import run_python

pytestmark = pytest.mark.once


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_results_warnings_and_arguments_are_those_of_eager(program):
    with ds.config(step_aside=False):
        assert bits.differences(program.function, program.arguments(quick=True)) == []


def test_differences_are_found():
    def counts(x, made=[]):  # noqa: B006 - a state of its own, so that the second session differs
        made.append(x)
        return len(made)

    found = bits.differences(counts, (1.0,))
    assert found and found[0].aspect == "outcome"


def test_a_program_that_calls_itself_finds_the_jitted_one():
    fib = next(p.function for p in PROGRAMS if p.name == "Fibonacci")
    jitted = bits.decorated(fib, ds.jit(store=False))
    assert jitted.__wrapped__ is not fib and jitted.__wrapped__.__globals__["fib"] is jitted
    assert jitted(10) == fib(10)
    pi = next(p.function for p in PROGRAMS if p.name == "Monte Carlo pi")
    assert bits.decorated(pi, ds.jit(store=False)).__wrapped__ is pi


def test_names_are_unique_and_arguments_new_and_equal():
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS) >= 40
    from dalsegno.bench.harness import same

    for program in PROGRAMS:
        one, other = program.arguments(True), program.arguments(True)
        assert same(one, other), program.name


def test_selected_looks_at_group_and_name():
    assert [p.name for p in selected("^filters: IIR")] == ["IIR"]
    assert {p.group for p in selected("^images:")} == {"images"}
    assert selected("no such program") == []


def row(**values):
    return rows.Row(**{"name": "p", "group": "g", "eager": 1.0, "replay": 0.5, "first": 1.5, **values})


@pytest.mark.parametrize(
    ("values", "complaints"),
    [
        ({}, []),
        ({"replay": 1.04}, []),
        ({"replay": 1.06}, ["steady"]),
        ({"first": 3.1}, ["first"]),
        ({"eager": 1e-4, "replay": 1e-4, "first": 2.9e-3}, []),
        ({"eager": 1e-4, "replay": 1e-4, "first": 3.1e-3}, ["first"]),
        ({"twenty": 0.89}, ["twenty"]),
        ({"twenty": 0.91, "warm_first": 3.1e-3}, ["warm"]),
        ({"faults": (1000, 1060)}, []),
        ({"faults": (1000, 1100)}, ["faults"]),
        ({"memory": (1 << 20, 1 << 21)}, ["memory"]),
        ({"different": ["call 0"], "replay": 2.0}, ["bits", "steady"]),
    ],
)
def test_limits(values, complaints):
    assert row(**values).complaints == complaints
    assert summary.verdict([row(), row(**values)]) == int(bool({"bits", "steady"} & set(complaints)))


def test_means_are_geometric_and_by_class():
    made = [row(replay=0.5), row(replay=2.0), row(group="h", replay=0.25)]
    assert summary.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    lines = summary.means(made)
    assert [line.split()[:3] for line in lines[1:]] == [["g", "2", "1.00"], ["h", "1", "4.00"], ["all", "3", "1.59"]]
    listed = "\n".join(summary.lists(made))
    assert "steady state under 1: 1\n    p (0.50)" in listed
    assert "bits differ: 0" in listed


def test_rows_of_the_command_line(tmp_path):
    target = tmp_path / "rows.json"
    source = "import sys; from dalsegno.bench.main import run_cli; run_cli(sys.argv[1:]); print(1)"
    assert run_python(source, "--quick", "--only", "Lorenz|softmax", "--json", str(target)) == 1
    found = {r["name"]: r for r in json.loads(target.read_text())["rows"]}
    assert set(found) == {"Lorenz", "softmax"}
    for one in found.values():
        assert one["different"] == [] and one["ratio"] > 0 and one["twenty"] > 0 and one["first"] > 0


def test_a_pattern_that_matches_nothing_is_a_mistake():
    from dalsegno.bench.main import run_cli
    from dalsegno.cli import UserError

    for pattern in ("no such program", "("):
        with pytest.raises(UserError, match="--only|no program"):
            run_cli(["--only", pattern])
