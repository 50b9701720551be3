"""dalsegno._core.store_*: the store as Python sees it. The store's own tests lie beside it, in store/."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dalsegno import _core

TABLES = {
    "trace_data",
    "kernels",
    "functions",
    "traces",
    "listings",
    "penalties",
    "verdicts",
    "regions",
    "ops",
    "objects",
    "guards",
    "exits",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    before = _core.store_path() or "off"
    path = tmp_path / "s.sqlite3"
    _core.store_open(str(path))
    yield path
    _core.store_open(before)


def raw(path: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(path)
    with connection:
        rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def test_a_new_store(store: Path) -> None:
    assert _core.store_path() == str(store)
    assert _core.store_why() == ""
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert {row[0] for row in _core.store_query("SELECT name FROM sqlite_schema WHERE type <> 'index'")} == TABLES
    stats = _core.store_stats()
    assert stats.pop("bytes") == store.stat().st_size
    assert set(stats) == {"functions", "traces", "kernels", "hits", "misses", "saves", "evictions", "damaged", "errors"}
    assert not list(store.parent.glob("*-wal"))


def test_values_of_every_kind(store: Path) -> None:
    rows = _core.store_query(
        "SELECT NULL, 1, -9223372036854775808, 1.5, 'text ü', x'00ff', '', x'', CAST(x'ff41' AS TEXT)"
    )
    assert rows == [(None, 1, -(2**63), 1.5, "text ü", b"\x00\xff", "", b"", "\udcffA")]
    assert _core.store_query("SELECT 1 WHERE 0") == []
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n"
    assert _core.store_query(count) == [(1,), (2,), (3,), (4,), (5,)]


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("", "one statement"),
        ("DELETE FROM kernels", "read"),
        ("INSERT INTO functions VALUES('k', 'n', 0, x'', 0)", "read"),
        ("PRAGMA user_version = 9", "read"),
        ("PRAGMA writable_schema = 1; DELETE FROM sqlite_schema", "one statement"),
        ("ATTACH 'other.db' AS other", "read|attached"),
        ("SELECT load_extension('x')", "load_extension|not authorized"),
        ("DROP TABLE listings", "read"),
        ("VACUUM", "read"),
    ],
)
def test_queries_only_read(store: Path, sql: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.store_query(sql)
    assert raw(store, "PRAGMA user_version") == [(5,)]
    assert not Path("other.db").exists()


def test_clear_verify_and_gc(store: Path) -> None:
    raw(store, "INSERT INTO kernels VALUES('key', 'text', x'00', 1, x'00', 1)")
    assert _core.store_stats()["kernels"] == 1
    assert _core.store_verify() == {"rows": 1, "damaged": 1}
    assert _core.store_stats()["kernels"] == 0
    raw(store, "INSERT INTO functions VALUES('key', 'name', 1, x'00', 1)")
    _core.store_gc()
    _core.store_clear()
    assert _core.store_query("SELECT COUNT(*) FROM functions") == [(0,)]


def test_no_store() -> None:
    before = _core.store_path() or "off"
    try:
        _core.store_close()
        assert _core.store_path() == ""
        assert _core.store_why() == "no store is configured"
        errors = _core.store_stats()["errors"]  # of the whole process
        _core.store_clear()
        with pytest.raises(ValueError, match="no store"):
            _core.store_query("SELECT 1")
        assert _core.store_stats()["errors"] == errors
    finally:
        _core.store_open(before)


def test_a_refused_place_says_why(store: Path, tmp_path: Path) -> None:
    errors = _core.store_stats()["errors"]
    _core.store_open(str(tmp_path / "missing" / "s.sqlite3"))
    assert "No such file" in _core.store_why()
    assert _core.store_stats()["errors"] > errors
    with pytest.raises(ValueError, match="no store: .*No such file"):
        _core.store_query("SELECT 1")
    with pytest.raises(OSError, match="No such file"):
        _core.store_clear()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    _core.store_open(str(open_to_all / "s.sqlite3"))
    assert "can be written to by others" in _core.store_why()
    assert not list(open_to_all.iterdir())


def test_a_foreign_file_is_left_alone(store: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "theirs.db"
    raw(foreign, "CREATE TABLE theirs(x)")
    foreign.chmod(0o600)
    before = foreign.read_bytes()
    _core.store_open(str(foreign))
    assert "left alone" in _core.store_why()
    assert foreign.read_bytes() == before


def test_threads_may_query_while_others_do(store: Path) -> None:
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(50):
            try:
                if _core.store_query("SELECT COUNT(*) FROM ops") != [(0,)]:
                    wrong.append("rows")
            except ValueError as error:
                if "no store" not in str(error):
                    wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_own_connection(store: Path) -> None:
    _core.store_query("SELECT 1")
    child = os.fork()
    if child == 0:
        try:
            _core.store_clear()
            ok = _core.store_query("SELECT COUNT(*) FROM ops") == [(0,)]
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _core.store_query("SELECT 1") == [(1,)]


DEFAULT_PLACE = "from dalsegno import _core; _core.store_open(''); print(_core.store_path()); print(_core.store_why())"


@pytest.mark.parametrize(
    "environment, path",
    [
        ({"XDG_CACHE_HOME": "{}/cache"}, "{}/cache/dalsegno/store.sqlite3"),
        ({"XDG_CACHE_HOME": "not/absolute", "HOME": "{}/home"}, "{}/home/.cache/dalsegno/store.sqlite3"),
        ({"HOME": "{}"}, "{}/.cache/dalsegno/store.sqlite3"),
        ({"HOME": "{}", "DALSEGNO_STORE": "{}/mine.db"}, "{}/mine.db"),
        ({"HOME": "{}", "DALSEGNO_STORE": "off"}, ""),
        ({"HOME": "{}", "DALSEGNO_STORE": ""}, ""),
    ],
)
def test_the_default_place(tmp_path: Path, environment: dict[str, str], path: str) -> None:
    tmp_path.chmod(0o700)
    variables = {name: value.format(tmp_path) for name, value in environment.items()}
    variables["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", DEFAULT_PLACE], capture_output=True, text=True, env=variables, check=True
    )
    assert done.stdout.splitlines()[0] == path.format(tmp_path)
    if path:
        assert done.stdout.splitlines()[1] == ""
        assert Path(path.format(tmp_path)).stat().st_size > 0
