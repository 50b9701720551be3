"""Fills the grammar's templates with what is bound at a place in the program."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from .chooser import Chooser, Weighted
from .grammar import EXPRESSIONS
from .scope import Helper, Scope
from .words import WORDS

_HOLE = re.compile(r"<([a-z0-9]+)(?::(\d))?>")


@functools.lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[tuple[str, str, str, bool], ...]:
    """(text before the hole, hole, number, is it what a comprehension iterates over?) ...; the last hole is empty."""
    parts, end = [], 0
    for match in _HOLE.finditer(template):
        _, loop, head = template[: match.start()].rpartition(" for ")
        iterated = bool(loop) and " in " in head and " if " not in head
        parts.append((template[end : match.start()], match[1], match[2] or "", iterated))
        end = match.end()
    return (*parts, (template[end:], "", "", False))


def _weighted(kind: str) -> Weighted[str]:
    return Weighted(EXPRESSIONS[kind])


_ANY = {kind: _weighted(kind) for kind in EXPRESSIONS}
_LITERAL = {kind: templates[0][1] for kind, templates in EXPRESSIONS.items()}
_PREFERRED_LITERALS = {"num": ("<intlit>", "<floatlit>"), "list": ("[]", "[<num>]")}


class Unavailable(Exception):
    """The template needs a variable of a kind that none is bound to."""


class Expressions:
    def __init__(self, chooser: Chooser, scope: Scope) -> None:
        self._chooser = chooser
        self.scope = scope
        self._iterated = False  # in what a comprehension iterates over, where `:=` is a syntax error

    def expression(self, kind: str, depth: int = 2) -> str:
        """`depth`: how many operations may lie inside each other."""
        if depth <= 0:
            return self._leaf(kind)
        helper = self._helper_returning(kind)
        if helper is not None:
            return self.call(helper, depth - 1)
        template = self._chooser.weighted(_ANY[kind])
        if self._iterated and ":=" in template:
            return self._leaf(kind)
        try:
            return self.fill(template, depth - 1)
        except Unavailable:
            return self._leaf(kind)

    def variable(self, kind: str) -> str:
        names = self.scope.of(kind)
        if not names:
            raise Unavailable(kind)
        return self._chooser.pick(names)

    def fill(self, template: str, depth: int = 1) -> str:
        numbered: dict[str, str] = {}
        pieces = []
        for text, hole, number, iterated in _parts(template):
            pieces.append(text)
            if hole:
                key = hole + number
                filled = numbered.get(key) if number else None
                if filled is None:
                    filled = self._filled(hole, depth, iterated or self._iterated)
                    if number:
                        numbered[key] = filled
                pieces.append(filled)
        return "".join(pieces)

    def call(self, helper: Helper, depth: int) -> str:
        """A call with some arguments by position, some by keyword, some left to their defaults."""
        chooser = self._chooser
        by_position = chooser.integer(0, len(helper.parameters)) if chooser.chance(40) else len(helper.parameters)
        arguments = []
        for index, parameter in enumerate(helper.parameters):
            if parameter.default and chooser.chance(40):
                by_position = min(by_position, index)
                continue
            value = self.expression(parameter.kind, depth)
            arguments.append(value if index < by_position else f"{parameter.name}={value}")
        if len(arguments) == 2 and by_position >= 2 and chooser.chance(10):
            return f"{helper.name}(*({arguments[0]}, {arguments[1]}))"
        return f"{helper.name}({', '.join(arguments)})"

    def _filled(self, hole: str, depth: int, iterated: bool) -> str:
        outer, self._iterated = self._iterated, iterated
        try:
            return self._hole(hole, depth)
        finally:
            self._iterated = outer

    def _hole(self, hole: str, depth: int) -> str:
        words = WORDS.get(hole)
        if words is not None:
            return self._chooser.pick(words)
        if hole.endswith("var"):
            return self.variable(hole[:-3])
        return self.expression(hole, depth)

    def _leaf(self, kind: str) -> str:
        names = self.scope.of(kind)
        if names and not self._chooser.chance(20 if kind in _PREFERRED_LITERALS else 3):
            return self._chooser.pick(names)
        literals: Sequence[str] = _PREFERRED_LITERALS.get(kind, (_LITERAL[kind],))
        return self.fill(self._chooser.pick(literals), 0)

    def _helper_returning(self, kind: str) -> Helper | None:
        helpers = [helper for helper in self.scope.helpers if helper.returns == kind]
        return self._chooser.pick(helpers) if helpers and self._chooser.chance(15) else None
