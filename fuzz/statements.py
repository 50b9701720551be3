"""The statements of a function's body. Loops end by construction; blocks are short."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .chooser import Chooser, Weighted
from .class_parts import ObjectLoops
from .expressions import Expressions, Unavailable
from .loop_table import (
    ELEMENT_BODIES,
    ELEMENT_LOOPS,
    ELEMENTS,
    GRID_BODIES,
    GRIDS,
    ITEM_BODIES,
    ITEM_LOOPS,
    ITEMS,
    LONG_STEPS,
    LOOPS,
    PAIR_BODIES,
    PAIR_ELEMENTS,
    PAIR_STARTS,
    READS,
    STARTS,
    WRITES,
)
from .scope import Helper, Scope
from .statement_table import ASSIGNED_KINDS, MANAGERS, RAISE_AGAIN, SIMPLE, VIEWS

_INDENT = "    "


class Body:
    """Writes one function's body, line by line."""

    def __init__(self, chooser: Chooser, scope: Scope) -> None:
        self._chooser = chooser
        self._scope = scope
        self._expressions = Expressions(chooser, scope)
        self._lines: list[str] = []
        self._depth = 1

    def write(self, statements: int) -> list[str]:
        percent_guarded = 60 if self._chooser.chance(25) else 0
        for _ in range(statements):
            if self._chooser.chance(percent_guarded):
                self._guarded()
            else:
                self._statement()
        return self._lines

    def _guarded(self) -> None:
        """A statement whose error does not end the function. What it binds may be unbound later."""
        self.line("try:")
        self._depth += 1
        self._statement()
        self._depth -= 1
        name = self._scope.fresh("e")
        self.line(f"except Exception as {name}:")
        self.line(_INDENT + self._chooser.pick((f"LOG.append(type({name}).__name__)", f"LOG.append(str({name}))")))

    def line(self, text: str) -> None:
        self._lines.append(_INDENT * self._depth + text)

    def expression(self, kind: str, depth: int = 3) -> str:
        return self._expressions.expression(kind, depth)

    def fill(self, template: str, depth: int = 2) -> str:
        return self._expressions.fill(template, depth)

    def bind(self, kind: str, value: str, percent_new: int = 70) -> None:
        names = [name for name in self._scope.names.get(kind, []) if name not in self._scope.protected]
        name = self._chooser.pick(names) if names and not self._chooser.chance(percent_new) else ""
        target = name or self._scope.fresh({"arr": "a", "odd": "o", "num": "v", "int": "k"}.get(kind, kind[0] + "_"))
        self.line(f"{target} = {value}")
        if not name:
            self._scope.add(kind, target)

    def block(self, most: int = 3) -> None:
        self._depth += 1
        with self._scope.block():
            for _ in range(self._chooser.integer(1, most)):
                self._statement()
        self._depth -= 1

    # ---- statements

    def _statement(self) -> None:
        writer = self._chooser.weighted(_DEEP if self._depth > 3 or len(self._lines) > 40 else _STATEMENTS)
        writer(self)

    def _assign(self) -> None:
        kind = self._chooser.weighted(ASSIGNED_KINDS)
        self.bind(kind, self.expression(kind))

    def _simple(self) -> None:
        try:
            self.line(self.fill(self._chooser.weighted(SIMPLE)))
        except Unavailable:
            self._assign()

    def _augment(self) -> None:
        names = [name for name in self._scope.names.get("num", []) if name not in self._scope.protected]
        if not names:
            return self._assign()
        self.line(f"{self._chooser.pick(names)} {self.fill('<addsub>')}= {self.expression('num')}")

    def _unpack(self) -> None:
        shape = self._chooser.integer(0, 4)
        if shape == 0:
            names = self._scope.fresh("u"), self._scope.fresh("u")
            self.line(f"{names[0]}, {names[1]} = {self.expression('num')}, {self.expression('num')}")
            new = [("num", name) for name in names]
        elif shape == 1:
            names = self._scope.fresh("u"), self._scope.fresh("r")
            self.line(f"{names[0]}, *{names[1]} = {self.expression('list')}")
            new = [("num", names[0]), ("list", names[1])]
        elif shape == 2:
            names = self._scope.fresh("u"), self._scope.fresh("u")
            self.line(f"{names[0]}, {names[1]} = {self.expression('arr')}[:2]")
            new = [("arr", name) for name in names]
        elif shape == 3:
            names = self._scope.fresh("u"), self._scope.fresh("a")
            self.line(f"({names[0]}, {names[1]}) = [{self.expression('num')}, {self.expression('arr')}]")
            new = [("num", names[0]), ("arr", names[1])]
        else:
            name = self._scope.fresh("w")
            self.line(f"{name} = {name}2 = {self.expression('list')}")
            new = [("list", name), ("list", name + "2")]
        for kind, name in new:
            self._scope.add(kind, name)

    def _rotate(self) -> None:
        """Numbers through a tuple that nobody sees."""
        # (a global that is assigned to would be a local without a value)
        unknown = {*self._scope.protected, *self._scope.global_numbers}
        numbers = [name for name in self._scope.of("num") if name not in unknown]
        if len(numbers) < 2:
            return self._assign()
        names = [self._chooser.pick(numbers) for _ in range(self._chooser.integer(3, 5))]
        last = self.expression("num", 2) if self._chooser.chance(60) else names[0]
        self.line(f"{', '.join(names)} = {', '.join(names[1:])}, {last}")

    def _swap(self) -> None:
        arrays = [name for name in self._scope.of("arr") if name not in self._scope.protected]
        if len(arrays) < 2:
            return self._assign()
        one, other = self._chooser.pick(arrays), self._chooser.pick(arrays)
        self.line(f"{one}, {other} = {other}, {one}")

    def _if(self) -> None:
        self.line(f"if {self.expression('bool')}:")
        self.block()
        if self._chooser.chance(15):
            self.line(f"elif {self.expression('bool')}:")
            self.block()
        if self._chooser.chance(40):
            self.line("else:")
            self.block()

    def _for(self) -> None:
        if self._scope.loop_depth >= self._scope.max_loops:
            return self._simple()
        name, other = self._scope.fresh("i"), self._scope.fresh("x")
        header, kinds = self._chooser.weighted(LOOPS)
        try:
            self.line(f"for {self.fill(header, 1).replace('$i', name).replace('$x', other)}:")
        except Unavailable:
            return self._simple()
        with self._scope.block(), self._scope.loop():
            for target, kind in zip((name, other), kinds, strict=False):
                self._scope.add(kind, target)
            self._loop_body()
        self._loop_else()

    def _while(self) -> None:
        if self._scope.loop_depth >= self._scope.max_loops:
            return self._simple()
        counter = self._scope.fresh("n")
        self.line(f"{counter} = 0")
        data = f" and {self.expression('bool', 2)}" if self._chooser.chance(50) else ""
        self.line(f"while {counter} < {self._chooser.integer(1, 5)}{data}:")
        self.line(f"{_INDENT}{counter} += 1")
        with self._scope.block(), self._scope.loop():
            self._scope.protected.add(counter)
            self._scope.add("int", counter)
            self._loop_body()
        self._loop_else()

    def _long_loop(self) -> None:
        """So many turns that a first call goes on in the loop's trace; some of them leave it."""
        if self._scope.loop_depth or self._depth > 3:
            return self._simple()
        name, total = self._scope.fresh("i"), self._scope.fresh("s")
        turns = self._chooser.integer(10, 45)
        try:
            step = self.fill(self._chooser.weighted(LONG_STEPS), 1).replace("$s", total).replace("$i", name)
        except Unavailable:
            return self._simple()
        self.line(f"{total} = {self._chooser.integer(0, 9)}")
        counted = self._chooser.chance(65)
        if counted:
            over = self._chooser.pick(("range({})", "list(range({}))", "map(int, range({}))")).format(turns)
            self.line(f"for {name} in {over}:")
        else:
            self.line(f"{name} = 0")
            self.line(f"while {name} < {turns}:")
            self.line(f"{_INDENT}{name} += 1")
        with self._scope.block(), self._scope.loop():
            self._scope.protected |= {name, total}
            self._scope.add("int", name)
            self._depth += 1
            self.line(step)
            if self._chooser.chance(70):
                every = self._chooser.integer(turns // 5 + 1, turns)
                self.line(f"if {name} % {every} == {self._chooser.integer(0, every - 1)}:")
                self.block()
            if self._chooser.chance(35):
                self.line(f"if {name} == {self._chooser.integer(3, turns)}:")
                ways = (
                    "continue",
                    "break",
                    "break",
                    f"raise ValueError({name})",
                    f"{total} //= {name} - {name}",
                    f"LOG.append({total})",
                )
                self.line(_INDENT + self._chooser.pick(ways))
            self._depth -= 1
        self._loop_else()
        self._scope.add("num", total)

    def _loop_body(self) -> None:
        self.block()
        if self._chooser.chance(25):
            self._depth += 1
            self.line(f"if {self.expression('bool', 2)}:")
            self.line(_INDENT + self._chooser.pick(("continue", "break")))
            self._depth -= 1

    def _loop_else(self) -> None:
        if self._chooser.chance(10):
            self.line("else:")
            self.block(1)

    def _try(self) -> None:
        self.line("try:")
        self.block()
        handlers = self._chooser.integer(0, 2)
        for _ in range(handlers):
            self._handler()
        if handlers and self._chooser.chance(15):
            self.line("else:")
            self.block(1)
        if not handlers or self._chooser.chance(25):
            self.line("finally:")
            self.block(2)

    def _handler(self) -> None:
        name = self._scope.fresh("e")
        caught = self.fill("<error>") if self._chooser.chance(60) else self.fill("(<error>, <error>)")
        self.line(f"except {caught} as {name}:")
        self._depth += 1
        with self._scope.block():
            if self._chooser.chance(40):
                self.bind("str", self._chooser.pick((f"str({name})", f"type({name}).__name__", f"repr({name})")), 50)
            if self._chooser.chance(15):
                self.line(self._chooser.pick(RAISE_AGAIN).replace("$e", name))
            self._statement()
        self._depth -= 1

    def _raise(self) -> None:
        self.line(f"if {self.expression('bool', 2)}:")
        self.line(_INDENT + self.fill("raise <error>(<str>)", 1))

    def _leave(self) -> None:
        self.line(f"if {self.expression('bool', 2)}:")
        if self._scope.loop_depth and self._chooser.chance(60):
            self.line(_INDENT + self._chooser.pick(("continue", "break")))
        else:
            self.line(_INDENT + "return " + self.expression(self._chooser.pick(("num", "arr", "list"))))

    def _with(self) -> None:
        self.line(f"with {self.fill(self._chooser.pick(MANAGERS))}:")
        self.block()

    def _closure(self) -> None:
        name, parameter = self._scope.fresh("f"), self._scope.fresh("p")
        writes = [n for n in self._scope.names.get("num", []) if n not in self._scope.protected]
        self.line(f"def {name}({parameter}{self.fill('=<intlit>') if self._chooser.chance(30) else ''}):")
        self._depth += 1
        if writes and self._chooser.chance(50):
            target = self._chooser.pick(writes)
            self.line(f"nonlocal {target}")
            self.line(f"{target} = {target} {self.fill('<addsub>')} {parameter}")
        with self._scope.block():
            self._scope.add("num", parameter)
            self.line(f"return {self.expression('num', 2)}")
        self._depth -= 1
        self._scope.add("fn", name)

    def _view(self) -> None:
        source = self.fill("<arr>", 0)
        kind, text = self._chooser.pick(VIEWS)
        self.bind(kind, source + text, 100)

    def _read_then_write(self) -> None:
        """What was computed from an array before it is written to must not see the write."""
        try:
            array = self._expressions.variable("arr")
            read = self.fill(self._chooser.pick(READS), 1).replace("$a", array)
            write = self.fill(self._chooser.pick(WRITES), 1).replace("$a", array)
        except Unavailable:
            return self._simple()
        self.bind("arr", read, 100)
        self.line(write)

    def _elements(self) -> None:
        """A loop over an array's elements with an accumulator. Many end with an error, which is caught."""
        if self._chooser.chance(35):
            loops = (("for $i in range(2):", "for $j in range(2):"),)
            return self._accumulating("$g", GRIDS, ("<num>",), loops, GRID_BODIES)
        if self._chooser.chance(20):
            return self._accumulating("$e", PAIR_ELEMENTS, PAIR_STARTS, ELEMENT_LOOPS, PAIR_BODIES)
        self._accumulating("$e", ELEMENTS, STARTS, ELEMENT_LOOPS, ELEMENT_BODIES)

    def _items(self) -> None:
        """The same over the items of a list or tuple."""
        self._accumulating("$e", ITEMS, STARTS, ITEM_LOOPS, ITEM_BODIES)

    def _accumulating(
        self,
        over: str,
        made: Sequence[str],
        starts: Sequence[str],
        loops: Sequence[tuple[str, str]],
        bodies: Weighted[str],
    ) -> None:
        if self._scope.loop_depth >= self._scope.max_loops or self._depth > 3:
            return self._simple()
        names = {mark: self._scope.fresh(mark) for mark in ("e", "g", "s", "x", "i", "j")}

        def put(template: str) -> str:
            text = self.fill(template, 1)
            for mark, name in names.items():
                text = text.replace("$" + mark, name)
            return text

        grid = over == "$g"
        try:
            setup = [put(f"{over} = " + self._chooser.pick(made)), put("$s = " + self._chooser.pick(starts))]
            header, first = self._chooser.pick(loops)
            lines = [put(self._chooser.weighted(bodies)) for _ in range(self._chooser.integer(1, 4))]
            header, first = put(header), put(first)
        except Unavailable:
            return self._simple()
        guarded = self._chooser.chance(70)
        if guarded:
            self.line("try:")
        self._depth += guarded
        for text in (*setup, header):
            self.line(text)
        self._depth += 1
        if first:
            self.line(first)
        for text in lines:
            self.line(_INDENT * grid + text)
        self._depth -= 1
        self.line(f"LOG.append({names['s']})")
        self._depth -= guarded
        if guarded:
            self.line("except Exception as e:")
            self.line(f"{_INDENT}LOG.append(str(e))")
        else:
            self._scope.add("num", names["s"])

    def objects(self) -> None:
        """A loop over objects of random classes."""
        if self._scope.loop_depth or self._depth > 3:
            return self._simple()
        loops = ObjectLoops(self._chooser, self.fill, self._scope.fresh, self._scope.members)
        for text in loops.lines(33 if self._scope.max_loops > 1 else 12):
            self.line(text)

    def _watched(self) -> None:
        """An object that a local holds to the end, used or not, and a weak reference to it."""
        name, ref = self._scope.fresh("b_"), self._scope.fresh("ref")
        self.line(f"{name} = Box({self.expression('num', 2)})")
        self.line(f"{ref} = weakref.ref({name})")
        self._scope.protected.add(name)
        self._scope.add("ref", ref)

    def _for_growing(self) -> None:
        """A list that grows while it is iterated over."""
        if self._scope.loop_depth >= self._scope.max_loops or not self._scope.of("list"):
            return self._simple()
        items, name = self._chooser.pick(self._scope.of("list")), self._scope.fresh("i")
        self.line(f"for {name} in {items}:")
        self.line(f"{_INDENT}if len({items}) > 6:")
        self.line(f"{_INDENT * 2}break")
        self.line(f"{_INDENT}{items}.append({name})")
        with self._scope.block(), self._scope.loop():
            self._scope.protected.add(items)
            self._scope.add("num", name)
            self._loop_body()

    def _local_class(self) -> None:
        name = self._scope.fresh("C")
        self.line(f"class {name}(Box):")
        self.line(f"{_INDENT}extra = {self.expression('num', 2)}")
        self.line(f"{_INDENT}def total(self, extra=extra):")
        self.line(f"{_INDENT * 2}return super().total(extra) + self.extra")
        self.bind("box", f"{name}({self.expression('num', 2)})", 100)

    def _delete(self) -> None:
        names = [name for name in self._scope.names.get("list", []) if name not in self._scope.protected]
        if not names or self._depth > 1:
            return self._assign()
        name = self._chooser.pick(names)
        self.line(f"del {name}")
        self._scope.remove(name)

    def _match(self) -> None:
        self.line(f"match {self.expression(self._chooser.pick(('int', 'list', 'dict', 'tuple')), 2)}:")
        name = self._scope.fresh("m")
        self._depth += 1
        for pattern in self._chooser.some(
            ("0 | 1", "[]", f"[{name}]", f"[{name}, *_]", f"{{'a': {name}}}", f"int({name}) if {name} > 3"), 40
        ):
            self.line(f"case {pattern}:")
            self.block(1)
        self.line("case _:")
        self.block(1)
        self._depth -= 1


_Writer = Callable[[Body], None]
_DEEP: Weighted[_Writer] = Weighted([(3, Body._assign), (5, Body._simple)])
_STATEMENTS: Weighted[_Writer] = Weighted(
    [
        (26, Body._assign),
        (34, Body._simple),
        (5, Body._augment),
        (4, Body._unpack),
        (2, Body._swap),
        (2, Body._rotate),
        (12, Body._if),
        (9, Body._for),
        (4, Body._while),
        (5, Body._long_loop),
        (6, Body._try),
        (2, Body._raise),
        (2, Body._leave),
        (3, Body._with),
        (3, Body._closure),
        (4, Body._view),
        (6, Body._read_then_write),
        (5, Body._elements),
        (4, Body._items),
        (1, Body.objects),
        (1, Body._delete),
        (2, Body._watched),
        (1, Body._for_growing),
        (1, Body._local_class),
        (1, Body._match),
    ]
)


def write_function(
    chooser: Chooser,
    helper: Helper,
    scope: Scope,
    statements: int,
    returned: Callable[[Expressions], str],
    decorator: str = "",
    objects: bool = False,
) -> list[str]:
    """The source lines of one module-level function. `objects`: it begins with a loop over objects."""
    for parameter in helper.parameters:
        scope.add(parameter.kind, parameter.name)
    body = Body(chooser, scope)
    signature = ", ".join(p.name + (f"={p.default}" if p.default else "") for p in helper.parameters)
    lines = [decorator] if decorator else []
    lines.append(f"def {helper.name}({signature}):")
    if scope.global_numbers and chooser.chance(20):
        body.line(f"global {scope.global_numbers[0]}")
        body.line(body.fill(f"{scope.global_numbers[0]} = {scope.global_numbers[0]} <addsub> <positive>"))
    if objects:
        body.objects()
    lines += body.write(statements)
    lines.append(_INDENT + "return " + returned(Expressions(chooser, scope)))
    return lines
