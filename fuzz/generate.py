"""Whole programs: globals, classes, helpers, the entry, and the calls."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from .chooser import Chooser, Weighted
from .class_parts import write_classes
from .class_table import Member
from .expressions import Expressions
from .module_parts import PARTS, PRELUDE, REBINDINGS
from .program import ERRSTATES, WARNING_MODES, Program
from .scope import Helper, Parameter, Scope
from .statements import write_function
from .values import Arguments, ArgumentWriter

# Kinds of variables whose values a program gives back.
_LOOKED_AT = ("arr", "num", "odd", "mask", "list", "dict", "tuple", "str", "set", "arrs", "box", "bool", "pair", "wave")
_ENTRY_KINDS: Weighted[str] = Weighted(
    [(10, "num"), (10, "arr"), (5, "int"), (3, "bool"), (5, "list"), (3, "dict"), (2, "str"), (2, "tuple"), (1, "mask"),
     (3, "wave")]
)  # fmt: skip
_HELPER_KINDS: Weighted[str] = Weighted(
    [(10, "arr"), (8, "num"), (3, "int"), (2, "list"), (1, "bool"), (1, "dict"), (2, "wave")]
)
_RETURN_KINDS: Weighted[str] = Weighted([(10, "arr"), (8, "num"), (2, "list"), (1, "bool"), (2, "int"), (1, "mask")])
_PERCENT_OBJECTS = 12  # programs that are about objects of random classes, and short otherwise
_DEFAULTS = {"num": ("0.5", "2"), "int": ("2", "1"), "bool": ("False", "True"), "list": ("()",)}


class _ProgramWriter:
    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._helpers: list[Helper] = []
        self._members: list[Member] = []  # of random classes

    def program(self) -> Program:
        chooser = self._chooser
        functions: list[str] = []
        objects = chooser.chance(_PERCENT_OBJECTS)
        for index in range(chooser.integer(0, 1 if objects else 3)):
            functions += ["", "", *self._helper(index)]
        parameters = self._parameters(_ENTRY_KINDS, chooser.integer(1, 2 if objects else 4))
        functions += ["", "", *self._entry(parameters, objects)]
        body = "\n".join(functions) + "\n"
        if "THINGS" in body:
            body = write_classes(chooser, self._members) + body
        prelude = PRELUDE.format(scale=chooser.pick(("2", "0.5", "1")), limit=chooser.pick(("1.5", "0", "3")))
        source = prelude + "".join(text for word, text in PARTS.items() if word in body) + body
        return Program(
            source,
            self._calls(parameters, source, 4 if objects else 14 if chooser.chance(15) else 7),
            warnings=chooser.pick(WARNING_MODES) if chooser.chance(15) else WARNING_MODES[0],
            errstate=chooser.pick(ERRSTATES) if chooser.chance(20) else ERRSTATES[0],
            keep_results=not chooser.chance(25),
        )

    def _scope(self, max_loops: int) -> Scope:
        return Scope(list(self._helpers), ["SCALE", "LIMIT"], max_loops=max_loops, members=self._members)

    def _parameters(self, kinds: Weighted[str], more: int) -> tuple[Parameter, ...]:
        chooser = self._chooser
        made = [Parameter("a", "arr")]
        optional = False
        for name in "bcdf"[:more]:
            kind = chooser.weighted(kinds)
            optional = kind in _DEFAULTS and (optional or chooser.chance(30))
            if not optional and made[-1].default:
                made.append(Parameter(name, "num", "1"))
            else:
                made.append(Parameter(name, kind, chooser.pick(_DEFAULTS[kind]) if optional else ""))
        return tuple(made)

    def _helper(self, index: int) -> list[str]:
        chooser = self._chooser
        kind = chooser.weighted(_RETURN_KINDS)
        helper = Helper(f"helper{index}", self._parameters(_HELPER_KINDS, chooser.integer(0, 2)), kind)
        scope = self._scope(max_loops=1)
        if index:  # calls of helpers in loops of helpers would multiply
            scope.helpers = scope.helpers[-1:]
        decorator = "@jit" if chooser.chance(12) else ""
        lines = write_function(
            chooser, helper, scope, chooser.integer(0, 4), lambda made: made.expression(kind, 3), decorator
        )
        self._helpers.append(helper)
        return lines

    def _entry(self, parameters: tuple[Parameter, ...], objects: bool) -> list[str]:
        helper = Helper("entry", parameters, "")
        return write_function(
            self._chooser,
            helper,
            self._scope(max_loops=2),
            self._chooser.integer(0, 1) if objects else self._chooser.integer(1, 9),
            self._entry_result({parameter.name for parameter in parameters}),
            decorator="@jit",
            objects=objects,
        )

    def _entry_result(self, parameters: set[str]) -> Callable[[Expressions], str]:
        chooser = self._chooser

        def write(made: Expressions) -> str:
            scope = made.scope
            names = [
                name
                for kind in _LOOKED_AT
                for name in scope.names.get(kind, [])
                if name not in parameters  # they are looked at anyway
            ]
            chosen = [made.expression("arr", 1), *chooser.some(names[:12], 70)]
            return chosen[0] if len(chosen) == 1 else "(" + ", ".join(chosen) + ")"

        return write

    # ---- calls

    def _calls(self, parameters: tuple[Parameter, ...], source: str, most: int) -> str:
        chooser = self._chooser
        writer = ArgumentWriter(chooser)
        kinds = [(p.name, p.kind) for p in parameters]
        base = writer.shape()
        seen: list[Arguments] = []
        lines = ["def calls():"]
        for number in range(chooser.integer(2, most)):
            if chooser.chance(12):
                lines.append(f"    yield {self._rebinding(source)!r}")
            if seen and chooser.chance(40):
                arguments = chooser.pick(seen)
            else:
                new_base = chooser.chance(30)
                if new_base:
                    base = writer.shape()
                arguments = writer.arguments(kinds, base)
                if seen and chooser.chance(10 if new_base else 60):  # one argument changes, the others stay
                    arguments = seen[-1].changed(chooser.pick(kinds)[0], arguments)
                seen.append(arguments)
            lines += ["    " + line for line in arguments.setup]
            lines.append(f"    r{number} = yield {self._call(parameters, arguments, number)}")
        return "\n".join(lines) + "\n"

    def _call(self, parameters: tuple[Parameter, ...], arguments: Arguments, number: int) -> str:
        chooser = self._chooser
        positional, keyword = [], {}
        by_keyword = chooser.chance(15)
        for parameter in parameters:
            if parameter.default and chooser.chance(40):
                by_keyword = True
                continue
            value = arguments.values[parameter.name]
            if number and parameter.kind == "arr" and chooser.chance(5):
                value = f"r{number - 1} if isinstance(r{number - 1}, np.ndarray) else {value}"
            if by_keyword and parameter.name != "a":
                keyword[parameter.name] = value
            else:
                positional.append(f"({value})" if " if " in value else value)
        inner = ", ".join(positional) + ","
        return f"(({inner}), {{{', '.join(f'{k!r}: {v}' for k, v in keyword.items())}}})"

    def _rebinding(self, source: str) -> str:
        if self._helpers and self._chooser.chance(30):
            helper = self._chooser.pick(self._helpers)
            names = ", ".join(p.name + (f"={p.default}" if p.default else "") for p in helper.parameters)
            if helper.parameters[-1].default and self._chooser.chance(30):
                return f"{helper.name}.__defaults__ = ({helper.parameters[-1].default},)"
            return f"def {helper.name}({names}): return a"
        sensible = [statement for statement, needed in REBINDINGS if needed in source]
        return self._chooser.pick(sensible) if sensible else "SCALE = 3"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    return _ProgramWriter(Chooser(draw)).program()
