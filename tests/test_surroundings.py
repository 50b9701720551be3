"""The store as users see it, import, and what happens where something around dalsegno is not as it should be."""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from tests.front import same

X = np.arange(5.0)

# ---- store -----------------------------------------------------------------------------------------------------------


def stored(x):
    return x * 3.0 - 1.0


def test_store_path_query_stats_clear(fresh_store):
    assert ds.store.path == str(fresh_store)
    f = ds.jit(stored)
    for _ in range(4):
        f(X)
    ds.wait()
    rows = ds.store.query("SELECT name, key FROM functions")
    assert [name.rpartition(".")[2] for name, _ in rows] == ["stored"]
    ops = ds.store.query("SELECT COUNT(*) FROM ops")[0][0]
    assert ops >= 4
    assert ds.store.stats()["functions"] == 1
    ds.store.clear()
    assert ds.store.query("SELECT COUNT(*) FROM functions") == [(0,)]
    assert same(f(X), stored(X))


@pytest.mark.parametrize(
    "sql", ["DELETE FROM functions", "CREATE TABLE t(x)", "DROP TABLE ops", "SELEKT 1", "SELECT * FROM nothing"]
)
def test_store_query_reads_only_and_complains_in_one_line(fresh_store, sql):
    f = ds.jit(stored)
    f(X)
    f(X)
    ds.wait()
    before = ds.store.query("SELECT COUNT(*) FROM functions")
    with pytest.raises(Exception) as caught:
        ds.store.query(sql)
    assert isinstance(caught.value, (ValueError, RuntimeError)) and "\n" not in str(caught.value) and str(caught.value)
    assert ds.store.query("SELECT COUNT(*) FROM functions") == before


def test_store_query_wants_text():
    with pytest.raises(TypeError, match="takes SQL text, not int"):
        ds.store.query(3)


def test_store_false_keeps_nothing(fresh_store):
    f = ds.jit(store=False)(stored)
    for _ in range(3):
        f(X)
    ds.wait()
    assert ds.store.query("SELECT COUNT(*) FROM functions") == [(0,)]


PROGRAM = """
import numpy as np, dalsegno as ds
@ds.jit
def f(x): return np.sqrt(x) * 2 + 1
results = [f(np.arange(4.0)).tolist() for _ in range(3)]
ds.wait()
print(results[0] == results[1] == results[2] == (np.sqrt(np.arange(4.0)) * 2 + 1).tolist())
"""


def unusable(tmp_path, kind):
    path = tmp_path / "other.file"
    if kind == "foreign":
        path.write_text("Dear diary, this is not a database.\n" * 100)
    elif kind == "no directory":
        path = tmp_path / "not" / "there" / "store.sqlite3"
    elif kind == "a directory":
        path.mkdir()
    return path


@pytest.mark.parametrize("kind", ["foreign", "no directory", "a directory"])
def test_an_unusable_store_is_left_alone_and_the_program_runs(run_python, tmp_path, kind):
    path = unusable(tmp_path, kind)
    content = path.read_bytes() if path.is_file() else None
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python("program.py", DALSEGNO_STORE=str(path))
    assert (done.returncode, done.stdout) == (0, "True\n")
    assert content is None or path.read_bytes() == content
    doctor = run_python("-m", "dalsegno", "doctor", DALSEGNO_STORE=str(path))
    line = next(line for line in doctor.stdout.splitlines() if line.split()[1:2] == ["store"])
    assert line.startswith("WRONG"), doctor.stdout
    assert doctor.returncode == 1 and "Traceback" not in doctor.stderr


@pytest.mark.parametrize("value", ["off", ""])
def test_no_store(run_python, tmp_path, value):
    (tmp_path / "program.py").write_text(PROGRAM + "print(repr(ds.store.path))")
    done = run_python("program.py", DALSEGNO_STORE=value)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n''\n", "")


# ---- import ----------------------------------------------------------------------------------------------------------


def test_import_is_lazy(run_python):
    code = (
        "import sys, numpy; before = set(sys.modules); import dalsegno; new = set(sys.modules) - before\n"
        "heavy = {'llvmlite', 'halide', 'hypothesis', 'matplotlib', 'IPython', 'sqlite3'}\n"
        "print(sorted({n.partition('.')[0] for n in new} & heavy))\n"
        "print(len(new))"
    )
    lines = run_python("-c", code).stdout.splitlines()
    assert lines[0] == "[]"
    assert int(lines[1]) < 60


def test_all_names_exist_and_nothing_hides_them(run_python):
    for name in ds.__all__:
        assert getattr(ds, name) is not None
    code = (
        "import dalsegno as ds, dalsegno.explain, dalsegno.stats, dalsegno.config, dalsegno.cli, dalsegno.doctor\n"
        "print(callable(ds.explain), callable(ds.stats), callable(ds.config), ds.store.path != '')"
    )
    assert run_python("-c", code).stdout == "True True True True\n"


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ("import numpy; numpy.__version__ = '1.26.4'", "dalsegno supports NumPy 2, not 1.26.4"),
        (
            "import sys; sys.version_info = (3, 9, 1, 'final', 0)",
            "dalsegno supports CPython 3.11 to 3.14, not cpython 3.9",
        ),
        (
            "import sys; sys.version_info = (3, 15, 0, 'final', 0)",
            "dalsegno supports CPython 3.11 to 3.14, not cpython 3.15",
        ),
        ("import sys; sys._is_gil_enabled = lambda: False", "dalsegno does not support free-threaded Python"),
        ("import sys; sys.implementation.name = 'pypy'", "dalsegno supports CPython 3.11 to 3.14, not pypy"),
    ],
)
def test_unsupported_surroundings_run_eagerly_with_one_warning(run_python, lie, words):
    program = "import dalsegno as ds\nf = ds.jit(lambda x: x + 1)\n"
    show = "print([f(i) for i in range(3)], f.stats['replays'])\nprint(f.explain())"
    done = run_python("-c", f"{lie}\n{program}{show}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[1, 2, 3] 0\n") and words in done.stdout
    assert done.stderr.count(words) == 1 and words in done.stderr and "jitted functions run eagerly" in done.stderr
