# ruff: noqa: E501 - programs as text, tables of calls
"""A store that is damaged, foreign, unwritable or full: the user sees the eager result, and no crash."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat

import pytest

from tests.support import run_python

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("kernels_are_kept")]

_PROGRAM = """
import numpy as np

def helper(h, log):
    log.append(len(log))
    if h.sum() > 0:
        return np.maximum(h, 0) * 3
    return np.sqrt(-h) + h

def chain(x, w):
    log = []
    r = helper(x * w + 1, log)
    return [r.tobytes().hex(), log, f"{r[0]:.3f}"]

def loop(n):
    s = 0
    for i in range(n):
        s += i if i % 3 else -1
    return s

class Point:
    def __init__(self, x):
        self.x = x
    def moved(self, d):
        return Point(self.x + d)

def objects(x):
    return [Point(x).moved(k).x for k in (1, 2.5)]

X = np.array([1.0, -3.0, 0.5])
W = X * 2, X - 5

def results(ds):
    ds.config.inner_loops = 0  # small arrays by kernels: they are what the store keeps
    f, g, h = ds.jit(chain), ds.jit(loop), ds.jit(objects)
    told = [[f(X, W[n % 2]), g(40 + n), h(n % 2), h(0.5)] for n in range(6)]
    ds.wait()
    return told, [f, g, h]
"""

_WRITE = "import dalsegno as ds\nimport program\ntold, fs = program.results(ds)\nimport json\nprint(json.dumps([told, ds.stats()]))\n"

# Each damaged copy is met by a process of its own, forked before anything is loaded: that is what makes hundreds of them cheap.
_FLIPS = """
import json, os, random, sys
import llvmlite.binding  # what would else be imported in each
import program
import dalsegno as ds

wanted, _ = json.load(open("wanted.json"))
first, count = int(sys.argv[1]), int(sys.argv[2])
whole = open("whole.sqlite", "rb").read()

def try_flipped(seed):
    data = bytearray(whole)
    place = random.Random(seed).randrange(len(data) * 8)
    data[place // 8] ^= 1 << place % 8
    name = f"flipped{seed}.sqlite"
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, 0o600)
    ds.config.store = name
    told, functions = program.results(ds)
    right = json.loads(json.dumps(told)) == wanted
    return {**ds.stats(), "damaged": ds.store.stats()["damaged"], "wrong": int(not right)}

bad, total = [], {}
for seed in range(first, first + count):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(try_flipped(seed)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        told = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status or not told or json.loads(told)["wrong"]:
        bad.append([seed, status, told])
    else:
        for key, n in json.loads(told).items():
            total[key] = total.get(key, 0) + n
    for end in ("", "-journal"):
        if os.path.exists(f"flipped{seed}.sqlite{end}"):
            os.remove(f"flipped{seed}.sqlite{end}")
print(json.dumps([bad, total]))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the program, a store that holds all of it, and its right results."""
    folder = tmp_path_factory.mktemp("store")
    folder.chmod(0o700)
    (folder / "program.py").write_text(_PROGRAM)
    (folder / "write.py").write_text(_WRITE)
    (folder / "flips.py").write_text(_FLIPS)
    plain, _ = run_python(folder / "write.py", DALSEGNO_DISABLE="1")
    told, stats = run_python(folder / "write.py", store=folder / "whole.sqlite")
    assert told == plain
    assert stats["recordings"] > 0
    assert stats["kernels_compiled"] > 0
    (folder / "wanted.json").write_text(json.dumps([plain, stats]))
    told, stats = run_python(folder / "write.py", store=folder / "whole.sqlite")
    assert told == plain
    assert stats["recordings"] == stats["kernels_compiled"] == 0
    return folder


@pytest.mark.parametrize("batch", range(4))
def test_single_bit_flips(written, tmp_path, batch, monkeypatch):
    for name in ("program.py", "flips.py", "wanted.json", "whole.sqlite"):
        shutil.copy(written / name, tmp_path / name)
    tmp_path.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    bad, total = run_python(tmp_path / "flips.py", str(batch * 50), "50")
    assert bad == []
    # What is not damaged is still used, and damage is met.
    assert total["traces_loaded"] > 0
    assert total["kernels_loaded"] > 0
    assert total["damaged"] + total["store_errors"] > 0


def _size(path):
    return os.path.getsize(path)


def _damage(path, kind):
    size = _size(path)
    with open(path, "r+b") as file:
        if kind == "empty":
            file.truncate(0)
        elif kind == "half":
            file.truncate(size // 2)
        elif kind == "header gone":
            file.write(b"\0" * 100)
        elif kind == "not SQLite":
            file.write(b"this is a text file, not a database. " * 40)
        elif kind == "a page of noise":
            file.seek(4096 * 2)
            file.write(random.Random(1).randbytes(4096))
        elif kind == "all noise":
            file.seek(100)
            file.write(random.Random(2).randbytes(size - 100))


@pytest.mark.parametrize("kind", ["empty", "half", "header gone", "not SQLite", "a page of noise", "all noise"])
def test_coarse_damage(written, tmp_path, kind):
    tmp_path.chmod(0o700)
    path = tmp_path / "store.sqlite"
    shutil.copy(written / "whole.sqlite", path)
    _damage(path, kind)
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    for _ in range(2):
        told, _ = run_python(written / "write.py", store=path)
        assert told == plain


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trace_data SET data = x'00'",
        "UPDATE trace_data SET number = number + 1 WHERE number = (SELECT max(number) FROM trace_data)",
        "UPDATE trace_data SET data = (SELECT data FROM trace_data ORDER BY length(data) LIMIT 1)",
        "UPDATE kernels SET object = substr(object, 1, 200)",
        "UPDATE kernels SET object = (SELECT object FROM kernels LIMIT 1)",
        "UPDATE trace_data SET sum = NULL WHERE 0; DELETE FROM trace_data WHERE number > 0",
        "DELETE FROM kernels",
        "PRAGMA user_version = 999",
        "PRAGMA user_version = 0",
        "DROP TABLE kernels",
        "ALTER TABLE trace_data ADD COLUMN extra",
        "UPDATE trace_data SET link = data, data = link",
    ],
)
def test_rows_that_somebody_changed(written, tmp_path, change):
    tmp_path.chmod(0o700)
    path = tmp_path / "store.sqlite"
    shutil.copy(written / "whole.sqlite", path)
    database = sqlite3.connect(path)
    try:
        database.executescript(change)
    except sqlite3.IntegrityError:
        pass
    database.close()
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    for _ in range(2):
        assert run_python(written / "write.py", store=path)[0] == plain


def test_somebody_elses_database_is_left_alone(written, tmp_path):
    path = tmp_path / "store.sqlite"
    tmp_path.chmod(0o700)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE kernels(a, b)")
    database.execute("INSERT INTO kernels VALUES (1, 'theirs')")
    database.commit()
    database.close()
    path.chmod(0o600)
    before = path.read_bytes()
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    assert run_python(written / "write.py", store=path)[0] == plain
    assert path.read_bytes() == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder(written, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    assert run_python(written / "write.py", store=folder / "store.sqlite")[0] == plain


@pytest.mark.parametrize("kind", ["a folder", "below a file", "world-writable", "a link"])
def test_places_where_a_store_cannot_or_must_not_be(written, tmp_path, kind):
    tmp_path.chmod(0o700)
    path = tmp_path / "store.sqlite"
    if kind == "a folder":
        path.mkdir()
    elif kind == "below a file":
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "store.sqlite"
    elif kind == "world-writable":
        shutil.copy(written / "whole.sqlite", path)
        path.chmod(0o666)
    else:
        shutil.copy(written / "whole.sqlite", tmp_path / "target")
        path.symlink_to(tmp_path / "target")
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    told, stats = run_python(written / "write.py", store=path)
    assert told == plain
    assert stats["traces_loaded"] == 0


def test_the_file_is_the_users_own(written, tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "store.sqlite"
    run_python(written / "write.py", store=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_locked_store_is_a_miss(written, tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "store.sqlite"
    shutil.copy(written / "whole.sqlite", path)
    plain = run_python(written / "write.py", DALSEGNO_DISABLE="1")[0]
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    try:
        assert run_python(written / "write.py", store=path)[0] == plain
    finally:
        database.close()
