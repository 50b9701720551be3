"""What a store holds of a program, as an oracle: a trace takes memory linear in its ops."""

from __future__ import annotations

import contextlib
import os
import sqlite3

from .engines import Backend

_BYTES_A_TRACE = 3000  # names, paths and constants of what it refers to
_BYTES_AN_OP = 100


class KeptTraces:
    def __init__(self, store: str) -> None:
        self._store = store
        self._seen: set[tuple[str, int]] = set()

    def too_large(self, backend: Backend) -> str:
        """The first trace that is new and larger than its ops account for, in words; empty if there is none."""
        backend.wait()
        if not os.path.exists(self._store):
            return ""
        with contextlib.closing(sqlite3.connect(self._store)) as database:
            rows = database.execute("SELECT function, number, ops, bytes FROM traces").fetchall()
        new = [row for row in rows if row[:2] not in self._seen]
        self._seen.update(row[:2] for row in new)
        large = [f"{size} bytes for {ops} ops" for *_, ops, size in new if size > most_bytes(ops)]
        return large[0] if large else ""


def most_bytes(ops: int) -> int:
    return _BYTES_A_TRACE + _BYTES_AN_OP * ops
