"""The queries of docs/store.md, each on a store in which a real program has left something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dalsegno as ds

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "store.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"([^\n]+:)\n\n```sql\n(.*?)```", TEXT, flags=re.DOTALL) + re.findall(
    r"([^\n]+\.)\n\n```sql\n(.*?)```", TEXT, flags=re.DOTALL
)


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


@pytest.fixture
def filled(fresh_store: Path) -> Iterator[None]:
    x = np.arange(6.0).reshape(2, 3)
    with ds.config(background=False, hot_exit=1):
        for function in (job, stops):
            jitted = ds.jit(function)
            for _ in range(4):
                for array in (x, -x - 5):
                    jitted(*((array, x) if function is job else (array,)))
        ds.wait()
    yield


def test_there_are_ten() -> None:
    assert len(QUERIES) == 10


@pytest.mark.parametrize("title, sql", QUERIES, ids=[title[:40] for title, _ in QUERIES])
def test_query(filled: None, title: str, sql: str) -> None:
    rows = ds.store.query(sql)
    assert rows, title
    assert any("job" in str(value) for row in rows for value in row) or " f" not in sql
    assert all(len(row) == len(rows[0]) for row in rows)
