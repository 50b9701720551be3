"""Programs of one construct each: every template of the grammar alone, so that none depends on luck to be run."""

from __future__ import annotations

import re

from .chooser import Chooser
from .class_parts import ObjectLoops, classes, with_body
from .class_table import BESIDE, BODIES, MEMBERS, NESTED, Member
from .expressions import Expressions
from .grammar import EXPRESSIONS
from .loop_table import ELEMENT_BODIES, GRID_BODIES, ITEM_BODIES, PAIR_BODIES
from .module_parts import PARTS, PRELUDE
from .program import Program
from .scope import Scope
from .statement_table import SIMPLE
from .words import WORDS

# The parameters of the entry: kind and argument. Arguments change from call to call; the last call changes types.
_PARAMETERS = {
    "a": ("arr", "np.array([1.0, 2.0, 3.0]) + i"),
    "o": ("odd", "np.array([1.0, 2.0])"),
    "m": ("mask", "np.array([True, False, i == 1])"),
    "v": ("num", "1.5 + i"),
    "k": ("int", "2 + i"),
    "b": ("bool", "i % 2 == 1"),
    "c": ("pair", "complex(i, 0.5 - i)"),
    "u": ("wave", "np.array([1j, -2.5, 0.5 - 1j]) * (i - 2.5)"),
    "s": ("str", "'a'"),
    "l": ("list", "[1, 2.0, 3, 4, 5]"),
    "t": ("tuple", "(1, 2, 3, 4, 5)"),
    "d": ("dict", "{'a': 1, 'b': i} if i < 4 else {'b': i, 'c': 2}"),
    "z": ("set", "{1, i}"),
    "r": ("arrs", "[np.array([1.0]), np.array([2.0])]"),
    "f": ("fn", "abs"),
    "q": ("iter", "iter([1, 2, 3, 4, 5])"),
}
_CALLS = """
def calls():
    for i in range(8):
        yield ({values},), {{}}
    yield (
        np.arange(3, dtype="i4"), np.arange(3), np.array([True]), 2, 3.5, 0, 2.5, np.ones(3, "c8"), "b", [1], (),
        {{}}, set(), [], max, iter([])
    ), {{}}
""".format(values=", ".join(value for _, value in _PARAMETERS.values()))


# Loops by kind: what stands before their body, and how deep that is indented. In all of them $s is a float.
_LOOPS = {
    "grid": (("$g = np.arange(6.0).reshape(2, 3) + k", "for $i in range(2):", "    for $j in range(2):"), 2),
    "elements": (("$e = np.arange(6.0) + k", "for $i in range($e.size):", "    $x = $e[$i]"), 1),
    "pairs": (("$e = np.arange(6.0) - 1j * k", "for $i in range($e.size):", "    $x = $e[$i]"), 1),
    "items": (("$e = [v, 1000, 2.5, k, v]", "for $i in range(5):", "    $x = $e[$i % len($e)]"), 1),
}
_BODIES = {"grid": GRID_BODIES, "elements": ELEMENT_BODIES, "items": ITEM_BODIES, "pairs": PAIR_BODIES}


# What stands for a word of random classes, where it is tried: by the kind of a body.
_WORD_BODIES = (
    ("effect", "one", "{}\nreturn self.n"),
    ("guard", "one", "self.n += 1\nif {}:\n    return self.y\nreturn self.n"),
    ("result", "one", "self.n += 1\nreturn {}"),
    ("answer", "two", "self.n += 1\nreturn {}"),
)
_BODY = "self.n += 1\nreturn self.n"


def _member_uses() -> dict[str, tuple[Member, str, str]]:
    """Members of random classes, each body and each word of theirs: the member, its body and a use."""
    of_kind = {member.body: member for member in reversed(MEMBERS)}
    made = {f"{member.head} | {use}": (member, _BODY, use) for member in MEMBERS for use in member.uses}
    bodies = [(kind, body) for kind, table in BODIES.items() for body in table]
    bodies += [(kind, text.format(word)) for hole, kind, text in _WORD_BODIES for word in WORDS[hole]]
    made |= {f"{kind} | {body}": (of_kind[kind], body, of_kind[kind].uses[0]) for kind, body in bodies}
    add = next(member for member in MEMBERS if "__add__" in member.head)
    return made | {f"operand | {word}": (add, _BODY, f"$u = $z + {word}") for word in WORDS["operand"]}


_MEMBER_USES = _member_uses()
_ON_OBJECTS = {"nested": NESTED, "beside": BESIDE, "members": tuple(_MEMBER_USES)}


class _First(Chooser):
    """Always the simplest choice."""

    def __init__(self) -> None:
        super().__init__(lambda strategy: None)

    def integer(self, low: int, high: int) -> int:
        return low

    def chance(self, percent: int) -> bool:
        return False


class _Leaves(Expressions):
    def expression(self, kind: str, depth: int = 2) -> str:
        return self.variable(kind)


def constructs() -> dict[str, str]:
    """Template by name: `kind: template`, `statement: template`, or what stands in a loop, `grid: template`."""
    expressions = {f"{kind}: {template}": template for kind, table in EXPRESSIONS.items() for _, template in table}
    loops = {f"{kind}: {template}": template for kind, table in _BODIES.items() for template in table}
    loops |= {f"{kind}: {template}": template for kind, table in _ON_OBJECTS.items() for template in table}
    return expressions | loops | {f"statement: {template}": template for template in SIMPLE}


def _loop(kind: str, body: str) -> str:
    """A loop with this body, whose errors are caught."""
    before, depth = _LOOPS[kind]
    lines = ["$s = v", *before, "    " * depth + body, "LOG.append($s)"]
    text = "\n".join(
        ["try:", *(f"    {line}" for line in lines), "except Exception as error:", "    LOG.append(str(error))"]
    )
    return re.sub(r"\$([egsxij])", r"\1_", text)


def _on_objects(kind: str, template: str, expressions: Expressions) -> tuple[str, list[str]]:
    """Random classes, and a loop over objects of them with this statement, whose errors are caught."""
    members: list[str] = []
    if kind == "members":
        member, body, template = _MEMBER_USES[template]
        members = with_body(member, expressions.fill(body) if member.body else "")
    inner = "for $z in $o:" if kind != "beside" else "for $z in [$o[$k % len($o)]]:"
    tried = [f"            {line}" for line in template.split("\n")]
    kept = ["        except Exception as $e:", "            $y.append(str($e))"]
    lines = ["for $k in range($n):", f"    {inner}", "        try:", *tried, *kept]
    loops = ObjectLoops(_First(), expressions.fill, expressions.scope.fresh, [])
    text = classes([("Thing", members), ("Thing0", []), ("Thing", members)], "Thing1(1), Thing2(1.5)")
    return text, loops.complete("[Thing0(v), Thing1(2), Narrow(k), Thing0(1), Thing2(0)]", lines, "$o", 12)


def program_of(name: str) -> Program:
    """The program of one of the constructs."""
    scope = Scope([], [])
    for variable, (kind, _) in _PARAMETERS.items():
        scope.add(kind, variable)
    scope.add("box", "x")
    scope.add("ref", "y")
    kind, template = name.split(": ", 1)
    expressions = _Leaves(_First(), scope)
    classes_text, lines = _on_objects(kind, template, expressions) if kind in _ON_OBJECTS else ("", [])
    text = "" if lines else expressions.fill(template)
    if lines:
        lines.append("return a")
    elif kind in _LOOPS:
        lines = [*_loop(kind, text).splitlines(), "return a"]
    else:
        lines = [text, "return a"] if kind == "statement" else [f"z = {text}", "return z, a"]
    lines.insert(0, "w = v + 0")  # so that the construct is not what comes first
    if re.search(r"\b[xy]\b", text):
        lines = ["x = Box(v)", "y = weakref.ref(x)", *lines]
    body = f"\n\n@jit\ndef entry({', '.join(_PARAMETERS)}):\n" + "".join(f"    {line}\n" for line in lines)
    body = classes_text + body
    parts = "".join(part for word, part in PARTS.items() if word in body)
    return Program(PRELUDE.format(scale=2, limit=0.5) + parts + body, _CALLS)
