"""The queries of docs/store.md, each on a store in which a real program has left something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dalsegno as ds

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("kernels_are_kept")]

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "store.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"([^\n]+:)\n\n```sql\n(.*?)```", TEXT, flags=re.DOTALL) + re.findall(
    r"([^\n]+\.)\n\n```sql\n(.*?)```", TEXT, flags=re.DOTALL
)


PROGRAM = """
import numpy as np
import dalsegno as ds


def helper(h):
    if h.sum() > 0:
        return np.maximum(h, 0)
    return np.tanh(h)


def job(x, w):
    return helper(x * w + 1) * 2


def stops(x):
    try:
        return x + [][0]
    except IndexError:
        return x + 1


x = np.arange(6.0).reshape(2, 3)
job, stops = ds.jit(job), ds.jit(stops)
for _ in range(4):
    for array in (x, -x - 5):
        job(array, x)
        stops(array)
ds.wait()
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs", numbered=True)
    directory.chmod(0o700)
    program, store = directory / "program.py", directory / "store.sqlite3"
    program.write_text(PROGRAM)
    environment = {**os.environ, "DALSEGNO_STORE": str(store), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, str(program)], env={**environment, "DALSEGNO_HOT_EXIT": "1"}, check=True)
    return store


def test_there_are_ten() -> None:
    assert len(QUERIES) == 10


@pytest.mark.parametrize("title, sql", QUERIES, ids=[title[:40] for title, _ in QUERIES])
def test_query(filled: Path, title: str, sql: str) -> None:
    with ds.config(store=str(filled)):
        rows = ds.store.query(sql)
    assert rows, title
    assert "functions f" not in sql or any("job" in str(value) for row in rows for value in row)
