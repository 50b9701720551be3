"""A trace that is larger in the store than its ops account for is a finding."""

import sqlite3
from pathlib import Path

import pytest

from dalsegno.fuzz.kept import KeptTraces, most_bytes, most_ops
from tests.fuzz_backends import Identity

pytestmark = pytest.mark.once


def test_large_traces_are_seen_once(tmp_path: Path) -> None:
    kept = KeptTraces(str(tmp_path / "store.db"))
    assert kept.too_large(Identity(), 1) == ""
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("CREATE TABLE traces(function, number, ops, bytes)")
    database.executemany("INSERT INTO traces VALUES('f', ?, ?, ?)", [(0, 10, most_bytes(10)), (1, 50, 9000)])
    database.commit()
    assert kept.too_large(Identity(), 1) == "9000 bytes for 50 ops"
    assert kept.too_large(Identity(), 1) == ""
    longest = most_ops(1)
    database.execute("INSERT INTO traces VALUES('f', 2, ?, 10), ('f', 3, ?, 10)", (longest, longest + 1))
    database.commit()
    assert kept.too_large(Identity(), 1) == f"{longest + 1} ops for 1 lines"
    database.close()
