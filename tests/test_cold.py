# ruff: noqa: E501 - programs as text, tables of calls
"""A second process: it records nothing and compiles nothing for what it has seen, its first call is a replay, and what has changed since is a miss."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dalsegno as ds
from tests.support import ROOT, run_python

pytestmark = pytest.mark.usefixtures("kernels_are_kept")

_HEAD = """
import json, os, sys
import numpy as np
import dalsegno as ds

def report(*functions, **more):
    ds.wait()
    print(json.dumps({"stats": [f.stats for f in functions], **more}))
"""

_SEEN = {
    "arithmetic": "f = ds.jit(lambda x: 2 * x + 1)\nr = [f(X) for _ in range(4)] + [f(2.5), f(2.5), f(2.5), f(7), f(7), f(7)]",
    "a chain": """
def f(a, b):
    c = np.sqrt(np.abs(a)) * b
    return np.where(c > 1, c, -c) + np.exp(b)
f = ds.jit(f)
r = [f(X, X[::-1]) for _ in range(4)] + [f(X.astype("f"), X) for _ in range(4)]
""",
    "a loop": """
def f(n):
    s = 0
    for i in range(n):
        s += i if i % 3 else -i
    return s
f = ds.jit(f)
r = [f(100) for _ in range(12)] + [f(n) for n in (0, 1, 50)]
""",
    "helpers, containers, a class": """
class P:
    scale = 2
    def __init__(self, x): self.x = x
    def twice(self): return self.x * self.scale
def helper(p, log):
    log.append(p.twice())
    return {"p": p, "log": log}
def f(x):
    d = helper(P(x), [])
    (a,) = d["log"]
    return f"{a}", [v for v in (a, x)], d["p"].x
f = ds.jit(f)
r = [f(X) for _ in range(4)] + [f(3) for _ in range(4)]
""",
    "a closure and defaults": """
def make(k):
    def f(x, y=(1, k), *, z=2.5):
        return x * k + y[0] * z
    return f
f = ds.jit(make(3))
r = [f(X) for _ in range(4)] + [f(2, (3, 4), z=1) for _ in range(4)]
""",
    "functions that calls have made, in loops": """
def maker(k):
    def made(x):
        return x * k
    return made
def wrapping(f):
    def wrapper(x):
        return f(x) + 1
    return wrapper
@wrapping
@wrapping
def twice(x):
    return 2 * x
def around(given):
    def f(n, by):
        def inner(x):
            return x - 1
        s = 0
        for i in range(n):
            s += inner(i) + by(i) + given(i) if i % 2 else (lambda x: -x)(i)
        return s
    return f
f = ds.jit(around(twice))
r = [f(50, maker(3)) for _ in range(12)]
""",
    "exceptions caught": """
def helper(n):
    return 10 // n
def f(n, log):
    try:
        log.append(helper(n))
    except ZeroDivisionError as e:
        log.append(str(e))
    return log
f = ds.jit(f)
r = [f(n, []) for n in (1, 1, 0, 0, 0, 1, 0)]
""",
    "opaque calls": """
def numbers(n):
    yield from range(n)
def f(n):
    return sum(numbers(n)) + 1, sorted([1, n, 2], key=lambda v: -v), eval("n * 2", {"n": n})
f = ds.jit(f)
r = [f(5) for _ in range(6)]
""",
}


# Each kind in a module of its own, all in one process: {kind: what its module calls `told`}.
_ALL = """
import json, runpy, sys
print(json.dumps({kind: runpy.run_path(path)["told"] for kind, path in json.loads(sys.argv[1]).items()}))
"""


def _modules(folder: Path, sources: dict[str, str]) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    paths = {kind: folder / f"{kind.replace(' ', '_')}.py" for kind in sources}
    for kind, path in paths.items():
        path.write_text(sources[kind])
    return paths


def _told(paths: dict[str, Path], **options: Any) -> dict[str, Any]:
    """What the modules tell in a new process."""
    return run_python(_ALL, json.dumps({kind: str(path) for kind, path in paths.items()}), **options)


def _told_by_eager(paths: dict[str, Path]) -> dict[str, Any]:
    with ds.config(disable=True):
        return {kind: runpy.run_path(str(path))["told"] for kind, path in paths.items()}


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict[str, list[Any]]:
    """By kind: what eager tells, and three processes one after the other."""
    folder = tmp_path_factory.mktemp("seen")
    head = "import numpy as np\nimport dalsegno as ds\nX = np.array([1.0, -2.0, 0.5])\n"
    tail = 'ds.wait()\ntold = {"results": repr(r), "stats": dict(f.stats)}\n'
    paths = _modules(folder / "modules", {kind: f"{head}{source}\n{tail}" for kind, source in _SEEN.items()})
    kernels: dict[str, Any] = {"store": folder / "store.sqlite", "DALSEGNO_INNER_LOOPS": "0"}
    everything = [_told_by_eager(paths), *(_told(paths, **kernels) for _ in range(3))]
    return {kind: [told[kind] for told in everything] for kind in _SEEN}


@pytest.mark.parametrize("kind", _SEEN)
def test_a_second_process_records_and_compiles_nothing(seen, kind):
    plain, first, second, third = seen[kind]
    assert first["results"] == second["results"] == third["results"] == plain["results"]
    wrote = first["stats"]
    assert wrote["recordings"] > 0
    assert wrote["store_errors"] == 0
    for stats in (second["stats"], third["stats"]):
        wanted = {
            "recordings": 0,
            "kernels_compiled": 0,
            "eager_calls": 0,
            "store_errors": 0,
            "replays": stats["calls"],
        }
        assert stats == stats | wanted
        assert stats["traces_loaded"] > 0
        assert stats["kernels_loaded"] == wrote["kernels_compiled"] or stats["kernels_loaded"] > 0


def test_the_first_call_of_a_second_process_is_a_replay(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"{_HEAD}\nf = ds.jit(lambda x: np.sqrt(x) * 2 + x)\nfor _ in range(int(sys.argv[1])):\n    f(np.ones(4))\nreport(f)\n"
    )
    large = {"DALSEGNO_INNER_LOOPS": "0"}
    run_python(script, "2", store=tmp_path / "store.sqlite", **large)
    stats = run_python(script, "1", store=tmp_path / "store.sqlite", DALSEGNO_BACKGROUND="0", **large)["stats"][0]
    wanted = {
        "calls": 1,
        "replays": 1,
        "recordings": 0,
        "kernels_compiled": 0,
        "kernels_loaded": 1,
        "kernel_launches": 1,
        "exits": 0,
    }
    assert stats == stats | wanted


def test_kept_without_waiting(tmp_path):
    """A process that ends right after its call has kept what it recorded."""
    script = tmp_path / "script.py"
    script.write_text(
        "import dalsegno as ds, json\nf = ds.jit(lambda x: 2 * x + 1)\nr = f(3)\nprint(json.dumps([r, f.stats]))\n"
    )
    assert run_python(script, store=tmp_path / "store.sqlite")[1]["recordings"] == 1
    result, stats = run_python(script, store=tmp_path / "store.sqlite")
    assert result == 7
    assert stats == stats | {"recordings": 0, "replays": 1}


def test_moved_to_another_folder(tmp_path):
    """Keys know nothing of paths."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        script = tmp_path / folder / f"{folder}.py"
        script.write_text(
            "import dalsegno as ds, json\ndef h(x):\n    return x * 3\n@ds.jit\ndef f(x):\n    return h(x) - 1\nr = f(3)\nprint(json.dumps([r, f.stats]))\n"
        )
        result, stats = run_python(script, store=tmp_path / "store.sqlite")
        assert result == 8
    assert stats["recordings"] == 0
    assert stats["replays"] == 1


_CHANGED = """
import dalsegno as ds
import numpy as np
{setup}
@ds.jit
def f(x):
    "{kind}"
    return {expression}
results = repr([f(5) for _ in range(3)])
ds.wait()
told = {{"results": results, "loaded": f.stats["traces_loaded"]}}
"""
_VARIANTS = {
    "a global": [
        ("K = 2", "x * K"),
        ("K = 3", "x * K"),
        ("K = 2.0", "x * K"),
        ("K = None", "[x, K]"),
        ("K = 2", "x * K"),
    ],
    "a class": [
        (f"class C:\n    u = {u}\n    def m(self, x): return x * self.u {more}", "C().m(x)")
        for u, more in ((1, ""), (2, ""), (2, "+ 1"), (1, ""))
    ],
    "a base class": [
        (f"class B:\n    def m(self, x): return x * {k}\nclass C(B): pass", "C().m(x)") for k in (1, 2, 1)
    ],
    "a default": [(f"def h(x, k={k}): return x * k", "h(x)") for k in ("1", "2", "2.0", "True", "1")],
    "a closure": [
        (f"def make(k):\n    def h(x): return (x, k)\n    return h\nh = make({k})", "h(x)")
        for k in ("1", "2", "'a'", "1")
    ],
    "a function's kind": [
        (f"def h(x):\n    {body} x", "list(h(x)) if hasattr(h(x), '__next__') else h(x)")
        for body in ("return", "yield", "return")
    ],
    "a name shadowed": [("", "abs(-x)"), ("abs = str", "abs(-x)"), ("abs = lambda v: v", "abs(-x)"), ("", "abs(-x)")],
    "a C function": [(f"from math import {n} as g", "g(x)") for n in ("sqrt", "floor", "sqrt")],
    "a ufunc": [(f"g = np.{n}", "g(x)") for n in ("negative", "square", "negative")],
    "a module's function": [
        (f"import types\nm = types.SimpleNamespace(g=lambda v: v {more})", "m.g(x)") for more in ("+ 1", "- 1", "+ 1")
    ],
    "an instance": [(f"class C: pass\nc = C(); c.v = {v}", "c.v * x") for v in ("1", "2", "[1]", "1")],
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """One process for each change: what eager tells of each kind, and the process that knows the ones before it."""
    folder = tmp_path_factory.mktemp("changed")
    told = []
    for number in range(max(map(len, _VARIANTS.values())) + 1):
        variants = {kind: [*forms, forms[-1]][number] for kind, forms in _VARIANTS.items() if number <= len(forms)}
        sources = {kind: _CHANGED.format(kind=kind, setup=setup, expression=e) for kind, (setup, e) in variants.items()}
        paths = _modules(folder / "modules", sources)
        told.append((_told_by_eager(paths), _told(paths, store=folder / "store.sqlite")))
    return told


@pytest.mark.parametrize("kind", _VARIANTS)
def test_what_changed_between_processes_is_noticed(changed, kind):
    forms = _VARIANTS[kind]
    for (plain, got), form in zip(changed, [*forms, forms[-1]], strict=False):
        assert got[kind]["results"] == plain[kind]["results"], form
    if kind != "a module's function":  # of a namespace that is an instance: its traces are not kept
        assert changed[len(forms)][1][kind]["loaded"] > 0  # nothing had changed


def test_two_functions_of_one_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""{_HEAD}
def make(k):
    def inner(x):
        return [x, k]
    return ds.jit(inner)
f, g = make(1), make("a")
results = [h(2) for _ in range(4) for h in (f, g)]
report(f, g, results=results)
""")
    for _ in range(3):
        told = run_python(script, store=tmp_path / "store.sqlite")
        assert told["results"] == [[2, 1], [2, "a"]] * 4
    assert [stats["recordings"] for stats in told["stats"]] == [0, 0]


def test_nothing_is_kept_with_store_false(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"{_HEAD}\nf = ds.jit(store=False)(lambda x: np.sqrt(x) * 2 + x)\nr = [f(np.ones(4)).tolist() for _ in range(3)]\nreport(f, r=r)\n"
    )
    for _ in range(2):
        stats = run_python(script, store=tmp_path / "store.sqlite")["stats"][0]
        assert stats["recordings"] == 1
        assert stats["traces_loaded"] == stats["kernels_loaded"] == 0


def test_many_processes_at_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""{_HEAD}
fs = []
for k in range(6):
    exec(f"def f(x):\\n    return np.sqrt(x) * {{k}} + x")
    fs.append(ds.jit(f))
results = [[f(np.full(3, 4.0)).tolist() for f in fs] for _ in range(3)]
report(*fs, results=results)
""")
    command = [sys.executable, "-X", "faulthandler", str(script)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "DALSEGNO_STEP_ASIDE": "0",
        "DALSEGNO_STORE": str(tmp_path / "store.sqlite"),
        "PYTHONPATH": path,
    }
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in running:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        told = json.loads(out.splitlines()[-1])
        assert told["results"] == [[[2.0 * k + 4.0] * 3 for k in range(6)]] * 3
    run_python(script, store=tmp_path / "store.sqlite")  # keeps what was dropped where two wrote at the same moment
    told = run_python(script, store=tmp_path / "store.sqlite")
    assert sum(stats["recordings"] for stats in told["stats"]) == 0
    assert sum(stats["kernels_compiled"] for stats in told["stats"]) == 0


def test_forked_children_record_compile_and_keep(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""{_HEAD}
f = ds.jit(lambda x: np.sqrt(x) * 2 + x)
g = ds.jit(lambda x: np.exp(x) - x * 3)
X = np.ones(5)
before = [f(X).tolist() for _ in range(3)]
ds.wait()
pid = os.fork()
if pid == 0:
    after = [f(X).tolist() for _ in range(3)] + [g(X).tolist() for _ in range(3)]
    ds.wait()
    good = after[:3] == before and after[3:] == [(np.exp(X) - X * 3).tolist()] * 3
    os._exit(0 if good and g.stats["replays"] == 2 and g.stats["kernels_compiled"] == 1 else 1)
status = os.waitpid(pid, 0)[1]
more = [g(X).tolist() for _ in range(3)]
report(f, g, status=status, same=more == [(np.exp(X) - X * 3).tolist()] * 3)
""")
    told = run_python(script, store=tmp_path / "store.sqlite")
    assert told["status"] == 0
    assert told["same"]
    told = run_python(script, store=tmp_path / "store.sqlite")
    assert [stats["recordings"] for stats in told["stats"]] == [0, 0]


def test_a_second_process_knows_what_paid(tmp_path):
    """Verdicts and penalties are kept: what lost against eager, or could not be recorded, is not tried again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"""{_HEAD}
def loses(text):
    return text.upper().lower().title().swapcase().strip().split()
def raises(d):
    return d["missing"]
loses, raises = ds.jit(loses), ds.jit(raises)
for _ in range(3000):
    loses("a b")
for _ in range(3):
    try:
        raises({{}})
    except KeyError:
        pass
report(loses, raises)
"""
    )
    store = tmp_path / "store.sqlite"
    run_python(script, store=store, DALSEGNO_STEP_ASIDE="1")
    with contextlib.closing(sqlite3.connect(store)) as connection:
        verdicts = connection.execute("SELECT eager_wins, replay_ns, eager_ns FROM verdicts").fetchall()
        penalties = connection.execute("SELECT trace, points, reason FROM penalties").fetchall()
    assert len(verdicts) == 1 and all(ns > 0 for ns in verdicts[0][1:])
    assert penalties == [(-1, 18, "exception")]
    again = run_python(script, store=store, DALSEGNO_STEP_ASIDE="1")["stats"]
    assert [s["recordings"] for s in again] == [0, 0]
