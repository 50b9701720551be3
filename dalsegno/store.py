"""`dalsegno.store`: the SQLite file that keeps traces and kernels between processes; `dalsegno.store.path` is where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._backend import core

if TYPE_CHECKING:
    path: str


def query(sql: str) -> list[tuple[Any, ...]]:
    """Rows of a read-only SQL query. `python -m dalsegno store show` lists tables and columns."""
    if not isinstance(sql, str):
        raise TypeError(f"dalsegno.store.query takes SQL text, not {type(sql).__name__}")
    return core.store_query(sql)


def stats() -> dict[str, Any]:
    """Size of the file, numbers of rows, hits and faults."""
    return core.store_stats()


def clear() -> None:
    """Removes everything that is stored, for all processes. What this process has in memory stays usable."""
    core.store_clear()


def verify() -> dict[str, int]:
    """Checks the sum of every row and deletes the damaged ones. OSError if the store cannot be read."""
    return core.store_verify()


def gc() -> None:
    """Drops what was used longest ago beyond the size cap, and gives the space back."""
    core.store_gc()


def why() -> str:
    """Why the store's last operation failed; "" if it did not."""
    return core.store_why()


def __getattr__(name: str) -> str:
    if name == "path":
        return core.store_path()
    raise AttributeError(f"module 'dalsegno.store' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["clear", "gc", "path", "query", "stats", "verify", "why"]
