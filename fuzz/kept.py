"""What a store holds of a program, as an oracle: traces are no longer than the program accounts for, their memory is
linear in their ops."""

from __future__ import annotations

import contextlib
import os
import sqlite3

from .engines import Backend

_BYTES_A_TRACE = 3000  # names, paths and constants of what it refers to
_BYTES_AN_OP = 100
_OPS_A_TRACE = 500
_OPS_A_LINE = 25  # of the source, where a line may call functions and is in a loop at most once in each trace


class KeptTraces:
    def __init__(self, store: str) -> None:
        self._store = store
        self._seen: set[tuple[str, int]] = set()

    def too_large(self, backend: Backend, lines: int) -> str:
        """The first trace that is new and longer than a source of so many lines accounts for, or larger than its ops
        do, in words; empty if there is none."""
        backend.wait()
        if not os.path.exists(self._store):
            return ""
        with contextlib.closing(sqlite3.connect(self._store)) as database:
            rows = database.execute("SELECT function, number, ops, bytes FROM traces").fetchall()
        new = [row for row in rows if row[:2] not in self._seen]
        self._seen.update(row[:2] for row in new)
        large = [f"{size} bytes for {ops} ops" for *_, ops, size in new if size > most_bytes(ops)]
        long = [f"{ops} ops for {lines} lines" for *_, ops, _ in new if ops > most_ops(lines)]
        return next(iter(large + long), "")


def most_bytes(ops: int) -> int:
    return _BYTES_A_TRACE + _BYTES_AN_OP * ops


def most_ops(lines: int) -> int:
    return _OPS_A_TRACE + _OPS_A_LINE * lines
