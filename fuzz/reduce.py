"""Makes a failing program smaller after Hypothesis has: deletes statements, unwraps blocks, replaces expressions by
their parts."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator

from .hang import own_processor_seconds
from .program import Program

Fails = Callable[[Program], bool]
_BODIES = (
    "body",
    "orelse",
    "finalbody",
    "handlers",
    "cases",
    "args",
    "keywords",
    "elts",
    "values",
    "keys",
    "decorator_list",
    "targets",
)
_CONSTANTS = (ast.Constant(0), ast.Constant(1), ast.Name("a", ast.Load()))


def reduce_program(program: Program, fails: Fails, seconds: float) -> Program:
    """The smallest program found that still fails, within so much of the processor's time. `fails` is asked only of
    changed programs."""
    return _Reducer(fails, own_processor_seconds() + seconds).reduce(program)


class _Reducer:
    def __init__(self, fails: Fails, deadline: float) -> None:
        self._fails = fails
        self._deadline = deadline
        self._asked: set[Program] = set()

    def reduce(self, program: Program) -> Program:
        for name, value in (("warnings", "always"), ("errstate", "warn"), ("keep_results", True)):
            program = self._try(program, dataclasses.replace(program, **{name: value})) or program  # type: ignore[arg-type]
        while True:
            before = program
            for part in ("calls", "source"):
                program = self._reduce_part(program, part)
            if program == before or own_processor_seconds() > self._deadline:
                return program

    def _try(self, old: Program, new: Program) -> Program | None:
        if new == old or new in self._asked or own_processor_seconds() > self._deadline:
            return None
        self._asked.add(new)
        return new if self._fails(new) else None

    def _reduce_part(self, program: Program, part: str) -> Program:
        tree = ast.parse(getattr(program, part))
        normal = _with(program, part, _text(tree))
        if normal != program and not self._fails(normal):
            return program  # it depends on how the source is written
        program = normal
        for edit in _edits(tree):
            undo = edit()
            try:
                changed = _with(program, part, _text(tree))
            except (ValueError, AttributeError, IndexError):  # the edit left an impossible tree
                undo()
                continue
            kept = self._try(program, changed)
            if kept is None:
                undo()
            else:
                program = kept
        return program


def _with(program: Program, part: str, text: str) -> Program:
    return dataclasses.replace(program, source=text) if part == "source" else dataclasses.replace(program, calls=text)


def _text(tree: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


_Undo = Callable[[], None]


def _edits(tree: ast.AST) -> Iterator[Callable[[], _Undo]]:
    """Edits of the tree in place, largest first; each returns what takes it back."""
    yield from _block_edits(tree)
    yield from _expression_edits(tree)


def _block_edits(tree: ast.AST) -> Iterator[Callable[[], _Undo]]:
    for node in list(ast.walk(tree)):
        for name in _BODIES:
            items = getattr(node, name, None)
            if isinstance(items, list) and items:
                must_hold = name == "body"
                yield from _deletions(items, must_hold)
                for item in list(items):
                    yield from _unwrappings(items, item)


def _deletions(items: list[ast.AST], must_hold: bool) -> Iterator[Callable[[], _Undo]]:
    """Of halves, quarters, ... and single items, the last first."""
    size = max(1, len(items) // 2)
    while True:
        start = len(items) - size
        while start > -size and items:
            chosen = items[max(start, 0) : start + size]
            yield lambda chosen=chosen: _without(items, chosen, must_hold)  # type: ignore[misc]
            start -= size
        if size == 1:
            return
        size //= 2


def _unwrappings(items: list[ast.AST], item: ast.AST) -> Iterator[Callable[[], _Undo]]:
    """A compound statement replaced by one of its blocks."""
    if not isinstance(item, ast.stmt) or isinstance(item, (ast.FunctionDef, ast.ClassDef)):
        return
    for inner in ("body", "orelse", "finalbody"):
        block = getattr(item, inner, None)
        if block and any(other is item for other in items):
            yield lambda block=block: _instead(items, item, list(block))  # type: ignore[misc]


def _without(items: list[ast.AST], chosen: list[ast.AST], must_hold: bool) -> _Undo:
    left = [item for item in items if not any(item is other for other in chosen)]
    return _put(items, left or ([ast.Pass()] if must_hold else []))


def _instead(items: list[ast.AST], item: ast.AST, block: list[ast.AST]) -> _Undo:
    return _put(items, [new for old in items for new in (block if old is item else [old])])


def _put(items: list[ast.AST], new: list[ast.AST]) -> _Undo:
    before = list(items)
    items[:] = new

    def undo() -> None:
        items[:] = before

    return undo


def _expression_edits(tree: ast.AST) -> Iterator[Callable[[], _Undo]]:
    for parent in list(ast.walk(tree)):
        for name, value in list(ast.iter_fields(parent)):
            for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(child, ast.expr) and not isinstance(getattr(child, "ctx", None), (ast.Store, ast.Del)):
                    for other in _simpler(child):
                        yield lambda p=parent, n=name, i=index, o=other: _set(p, n, i, o)  # type: ignore[misc]


def _simpler(expression: ast.expr) -> Iterator[ast.expr]:
    if isinstance(expression, (ast.Constant, ast.Name, ast.FormattedValue)):
        return
    yield from _CONSTANTS
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr) and not isinstance(child, ast.FormattedValue):
            yield child


def _set(parent: ast.AST, name: str, index: int | None, new: ast.expr) -> _Undo:
    if index is None:
        before = getattr(parent, name)
        setattr(parent, name, new)
        return lambda: setattr(parent, name, before)
    items = getattr(parent, name)
    saved = list(items)
    if index < len(items):
        items[index] = new

    def undo() -> None:
        items[:] = saved

    return undo
