"""`dalsegno store path|ls|show [NAME]|stats|verify|gc|clear`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from . import store
from .cli import Parser, UserError
from .config import suggest

_FUNCTIONS = (
    "SELECT f.name, f.key, COUNT(t.number), IFNULL(SUM(t.ops), 0), IFNULL(SUM(t.guards), 0), IFNULL(SUM(t.bytes), 0), "
    "MAX(f.last_used, IFNULL(MAX(t.created), 0)) FROM functions f LEFT JOIN traces t ON t.function = f.key "
    "GROUP BY f.key ORDER BY f.name, f.key"
)
_KEY_WIDTH = 12


def run_cli(arguments: list[str]) -> int:
    words = "|".join(_ACTIONS)
    parser = Parser(
        prog="dalsegno store", description="What is kept between processes.", usage=f"dalsegno store {words} [NAME]"
    )
    parser.add_argument("action", metavar=words)
    parser.add_argument(
        "name", nargs="?", help="for show: a function's name or the beginning of its key, or a table's name"
    )
    options = parser.parse_args(arguments)
    if options.action not in _ACTIONS:
        raise UserError(f"dalsegno store: no action {options.action!r}{suggest(options.action, list(_ACTIONS))}")
    if options.name is not None and options.action != "show":
        raise UserError(f"dalsegno store {options.action} takes no name")
    try:
        _ACTIONS[options.action](options.name)
    except OSError as error:
        raise UserError(f"dalsegno store: {store.path}: {error}") from None
    return 0


def stored_functions() -> list[tuple[Any, ...]]:
    """Name, key, traces, ops, guards, bytes, last used; empty if there is no store."""
    return query(_FUNCTIONS) if store.path else []


def query(sql: str) -> list[tuple[Any, ...]]:
    """store.query, with the store's faults as one line."""
    try:
        return store.query(sql)
    except Exception as error:
        raise UserError(f"dalsegno store: {store.path or 'no store'}: {error}") from None


def _path(_: str | None) -> None:
    print(store.path or "(no store)")


def _list(_: str | None) -> None:
    rows = stored_functions()
    table(
        ("function", "key", "traces", "ops", "guards", "bytes", "last used"),
        [(name, key[:_KEY_WIDTH], *counts, _moment(used)) for name, key, *counts, used in rows],
    )
    kernels = query("SELECT COUNT(*), IFNULL(SUM(LENGTH(object)), 0) FROM kernels") if store.path else [(0, 0)]
    print(f"{len(rows)} functions, {kernels[0][0]} kernels of {kernels[0][1]:,} bytes in {store.path or '(no store)'}")


def _moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "-"


def _show(name: str | None) -> None:
    tables = {
        row[0]: row[1]
        for row in query("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY 1")
    }
    if name is None:
        for known, kind in tables.items():
            columns = ", ".join(row[0] for row in query(f"SELECT name FROM pragma_table_info('{known}')"))
            count = query(f'SELECT COUNT(*) FROM "{known}"')[0][0]
            print(f"{known} ({kind}, {count} rows): {columns}")
    elif name in tables:
        header = tuple(row[0] for row in query(f"SELECT name FROM pragma_table_info('{name}')"))
        table(header, query(f'SELECT * FROM "{name}"'))
    else:
        _show_function(name)


def _show_function(name: str) -> None:
    functions = stored_functions()
    chosen = [row for row in functions if name == row[0] or (len(name) >= 4 and row[1].startswith(name))]
    if not chosen:
        names = [row[0] for row in functions]
        hint = suggest(name, names[:20]) if names else "; the store is empty"
        raise UserError(f"dalsegno store: no function or table {name!r}{hint}")
    for function, key, *_ in chosen:
        print(f"{function}  {key}")
        where = "function = '" + key.replace("'", "''") + "'"
        for number, anchor, parent, parent_op, reason, ended_at in query(
            f"SELECT number, anchor, parent, parent_op, reason, ended_at FROM traces WHERE {where} ORDER BY number"
        ):
            origin = f" of trace {parent} op {parent_op}" if anchor == "exit" else ""
            ended = f"; ended: {reason} {ended_at}".rstrip() if reason and reason != "none" else ""
            print(f" trace {number}, {anchor}{origin}{ended}")
            rows = query(f"SELECT op, line, depth, text FROM ops WHERE {where} AND trace = {int(number)} ORDER BY op")
            for op, line, depth, text in rows:
                print(f"  {op:>5} {line or '':>5}  {'. ' * depth}{text}")


def _stats(_: str | None) -> None:
    for key, value in store.stats().items():
        print(
            f"{key:<20} {value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{key:<20} {value}"
        )


def _verify(_: str | None) -> None:
    result = store.verify()
    print(f"{result['rows']} rows checked, {result['damaged']} damaged and deleted")


def _gc(_: str | None) -> None:
    before = store.stats()
    store.gc()
    after = store.stats()
    dropped = after["evictions"] - before["evictions"]
    print(f"dropped {dropped} functions and kernels; {before['bytes']:,} bytes before, {after['bytes']:,} now")


def _clear(_: str | None) -> None:
    before = len(stored_functions())
    store.clear()
    print(f"removed {before} functions and their kernels from {store.path or '(no store)'}")


def table(header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    """Prints columns as wide as what is in them; numbers to the right."""
    cells = [header, *(tuple(_cell(value) for value in row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    numeric = [
        all(row[i].replace(",", "").isdigit() for row in cells[1:]) and len(cells) > 1 for i in range(len(header))
    ]
    for row in cells:
        print("  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return f"{value:,}" if isinstance(value, int) else str(value if value is not None else "-")


_ACTIONS: dict[str, Callable[[str | None], None]] = {
    "path": _path,
    "ls": _list,
    "show": _show,
    "stats": _stats,
    "verify": _verify,
    "gc": _gc,
    "clear": _clear,
}
