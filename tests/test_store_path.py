# ruff: noqa: E501 - programs as text
"""Where the store lies may be any bytes, and so may what it says of itself."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import dalsegno as ds
from tests.support import ROOT, run_python

pytestmark = pytest.mark.once

_PROGRAM = """
import json, os
import dalsegno as ds

@ds.jit
def f(x):
    return x + 1

f(1), f(2)
ds.wait()
print(json.dumps([os.fsencode(ds.store.path).hex(), ds.config.store == ds.store.path, ds.store.why(), ds.stats()["store_errors"], ds.stats()["traces_loaded"]]))
"""


@pytest.fixture
def odd(tmp_path: Path) -> bytes:
    tmp_path.chmod(0o700)
    return os.fsencode(tmp_path) + b"/\xff \xc3(.db"


def test_a_path_that_is_no_utf8(odd: bytes) -> None:
    for loaded in (0, 1):
        told = run_python(_PROGRAM, DALSEGNO_STORE=os.fsdecode(odd), store=os.fsdecode(odd))
        assert told == [odd.hex(), True, "", 0, loaded]
    assert os.path.exists(odd)


def test_a_path_given_as_bytes(odd: bytes) -> None:
    with ds.config(store=odd):
        assert os.fsencode(ds.store.path) == odd
        assert ds.config.store == os.fsdecode(odd)
    with pytest.raises(TypeError, match="must be a string"), ds.config(fault=b"name"):
        pass


@pytest.mark.parametrize("command", [["store", "path"], ["store", "ls"], ["doctor"]])
def test_the_command_line_prints_the_paths_bytes(odd: bytes, command: list[str]) -> None:
    run_python(_PROGRAM, store=os.fsdecode(odd))
    environment = {**os.environ, "DALSEGNO_STORE": os.fsdecode(odd), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "dalsegno", *command], env=environment, capture_output=True, check=False, timeout=250
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert odd in done.stdout


def test_damaged_text_in_a_message(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "s.db"
    before = ds.config.store
    try:
        ds.config.store = str(path)
        assert ds.store.query("SELECT 1") == [(1,)]
        ds.config.store = "off"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "UPDATE sqlite_schema SET name = CAST(x'747261636573ff' AS TEXT), sql = 'damaged' WHERE name = 'traces'"
        )
        connection.commit()
        connection.close()
        ds.config.store = str(path)
        assert ds.store.query("SELECT COUNT(*) FROM traces") == [(0,)]  # of the new file in its place
        assert "malformed" in ds.store.why()
        assert "\\xff" in ds.store.why()
    finally:
        ds.config.store = before
