"""Each python op of the replay machine against what the interpreter does with the same operands."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from tests.machine_traces import ADD, NONE, TraceBuilder, tree


class Odd:
    """Answers with what it was asked."""

    def __getitem__(self, key: object) -> object:
        return ("item", key)

    def __getattr__(self, name: str) -> object:
        return ("attribute", name)

    def __iadd__(self, other: object) -> object:
        return ("iadd", other)

    def __eq__(self, other: object) -> Any:
        return "eq"

    def __hash__(self) -> int:
        return 7

    def __bool__(self) -> bool:
        raise KeyError("bool")

    def __len__(self) -> int:
        return 3

    def __format__(self, spec: str) -> str:
        return f"<{spec}>"


NO_RESULT = {
    *(
        "set_item",
        "del_item",
        "list_append",
        "list_extend",
        "set_add",
        "set_update",
        "map_add",
        "dict_update",
        "dict_merge",
    ),
    *("cell_set", "cell_delete", "store_global", "delete_global"),
}


def run(kind: str, *operands: Any, flags: int = 0, **fields: Any) -> Any:
    """The op's outcome: its value, or the operands after an op that has none; ("raised", exception); ("left",)."""
    b = TraceBuilder(params=len(operands))
    snapshot = b.snap(b.params, (), 3)
    value = b.op(kind, *b.params, snapshot=snapshot, flags=flags, **fields)
    result = kind not in NO_RESULT and not kind.startswith("guard")
    b.ret(value if result else b.op("build_tuple", *b.params, effects=NONE))
    out = tree(b).run(0, operands)
    if out["outcome"] == "returned":
        return out["value"]
    assert out["op"] == value
    assert all(a is b for a, b in zip(out["frames"][0]["locals"], operands, strict=True))
    return ("left",) if out["raised"] is None else ("raised", out["raised"])


def pairs(d: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(d.items())


VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("get_attr", (1 + 2j,), {"name": "imag"}, 2.0),
    ("get_item", ([1, 2, 3], -1), {}, 3),
    ("get_item", ((1, 2, 3), True), {}, 2),
    ("get_item", ({"a": 1}, "a"), {}, 1),
    ("get_item", (Odd(), 5), {}, ("item", 5)),
    ("binary", ("a", "b"), {"imm": ADD}, "ab"),
    ("inplace", (Odd(), 4), {"imm": ADD}, ("iadd", 4)),
    ("compare", (Odd(), 1), {"imm": 2}, "eq"),
    ("contains", (2, [1, 2]), {}, True),
    ("contains", (2, [1, 2]), {"imm": 1}, False),
    ("is_", (None, None), {}, True),
    ("is_", (None, None), {"imm": 1}, False),
    ("truth", ([],), {}, False),
    ("not_", ([],), {}, True),
    ("call", (max, 1, 5, 3), {"imm": 3}, 5),
    ("call", (sorted, [1, 3, 2], True), {"imm": 1, "object": ("reverse",)}, [3, 2, 1]),
    ("call_ex", (max, (4, 2)), {}, 4),
    ("call_ex", (max, [4, 2]), {}, 4),
    ("call_ex", (dict, (), {"a": 1}), {}, {"a": 1}),
    ("build_tuple", (1, 2), {}, (1, 2)),
    ("build_tuple", (), {}, ()),
    ("build_list", tuple(range(40)), {}, list(range(40))),
    ("build_set", (1, 2, 1), {}, {1, 2}),
    ("build_map", ("a", 1, "b", 2), {}, {"a": 1, "b": 2}),
    ("build_string", ("a", "", "b"), {}, "ab"),
    ("build_slice", (1, 2), {}, slice(1, 2)),
    ("build_slice", (1, 2, 3), {}, slice(1, 2, 3)),
    ("list_to_tuple", ([1, 2],), {}, (1, 2)),
    ("convert", (1.5,), {"imm": 1}, "1.5"),
    ("convert", ("é",), {"imm": 2}, "'é'"),
    ("convert", ("é",), {"imm": 3}, "'\\xe9'"),
    ("format", (Odd(),), {}, "<>"),
    ("format", (1.5, ".3f"), {}, "1.500"),
    ("unpack", ([1, 2],), {"imm": 2}, (1, 2)),
    ("unpack", (iter("ab"),), {"imm": 2}, ("a", "b")),
    ("tuple_item", ((1, 2),), {"imm": 1}, 2),
    ("get_len", (Odd(),), {}, 3),
    ("import_from", (sys,), {"name": "path"}, sys.path),
]


@pytest.mark.parametrize(
    ("kind", "operands", "fields", "wanted"), VALUES, ids=[f"{i}-{row[0]}" for i, row in enumerate(VALUES)]
)
def test_values(kind: str, operands: tuple[Any, ...], fields: dict[str, Any], wanted: Any) -> None:
    got = run(kind, *operands, **fields)
    assert got == wanted
    assert type(got) is type(wanted)


EFFECTS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("set_item", ([1, 2], 0, "x"), {}, ["x", 2]),
    ("set_item", ({}, Odd, 1), {}, {Odd: 1}),
    ("del_item", ([1, 2], 0), {}, [2]),
    ("list_append", ([1], 2), {}, [1, 2]),
    ("list_extend", ([1], "ab"), {}, [1, "a", "b"]),
    ("set_add", ({1}, 2), {}, {1, 2}),
    ("set_update", ({1}, [2, 3]), {}, {1, 2, 3}),
    ("map_add", ({}, "k", 1), {}, {"k": 1}),
    ("dict_update", ({"a": 1}, {"a": 2}), {}, {"a": 2}),
    ("dict_merge", ({"a": 1}, {"b": 2}), {}, {"a": 1, "b": 2}),
]


@pytest.mark.parametrize(("kind", "operands", "fields", "wanted"), EFFECTS, ids=[row[0] for row in EFFECTS])
def test_effects(kind: str, operands: tuple[Any, ...], fields: dict[str, Any], wanted: Any) -> None:
    assert run(kind, *operands, **fields)[0] == wanted


def raises(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as e:
        return e
    raise AssertionError("eager raises nothing")


RAISING: list[tuple[str, tuple[Any, ...], dict[str, Any], Callable[[], Any]]] = [
    ("get_attr", (1,), {"name": "nope"}, lambda: operator.attrgetter("nope")(1)),
    ("get_item", ([1], 5), {}, lambda: [1][int("5")]),
    ("get_item", ({}, "k"), {}, lambda: dict[str, int]()["k"]),
    ("set_item", ([1], 5, 0), {}, lambda: operator.setitem([1], 5, 0)),
    ("binary", (1, "a"), {"imm": ADD}, lambda: operator.add(1, "a")),
    ("truth", (Odd(),), {}, lambda: bool(Odd())),
    ("call", (int, "x"), {"imm": 1}, lambda: int("x")),
    ("dict_update", ({}, 5), {}, lambda: eval("{**5}")),
    ("unpack", (iter("abc"),), {"imm": 2}, lambda: exec("a, b = iter('abc')")),
    ("unpack", (iter("a"),), {"imm": 2}, lambda: exec("a, b = iter('a')")),
]


@pytest.mark.parametrize(
    ("kind", "operands", "fields", "eager"), RAISING, ids=[f"{i}-{row[0]}" for i, row in enumerate(RAISING)]
)
def test_raising(kind: str, operands: tuple[Any, ...], fields: dict[str, Any], eager: Callable[[], Any]) -> None:
    what, raised = run(kind, *operands, **fields)
    wanted = raises(eager)
    assert what == "raised"
    assert (type(raised), raised.args) == (type(wanted), wanted.args)


LEAVING: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("unpack", ((1, 2, 3),), {"imm": 2}),
    ("unpack", ([1],), {"imm": 2}),
    ("unpack", (5,), {"imm": 2}),
    ("list_extend", ([], 5), {}),
    ("dict_merge", ({"a": 1}, {"a": 2}), {}),
    ("dict_merge", ({}, 5), {}),
    ("call_ex", (max, 5), {}),
    ("cell_get", (types.CellType(),), {}),
    ("cell_delete", (types.CellType(),), {}),
    ("import_from", (sys,), {"name": "no_such_name"}),
    ("guard_is", (1,), {"object": None}),
    ("guard_is_not", (None,), {"object": None}),
    ("guard_type", (True,), {"object": int}),
    ("guard_true", (1,), {}),
    ("guard_array", ([1.0],), {"facts": (4, 1)}),
]


@pytest.mark.parametrize(
    ("kind", "operands", "fields"), LEAVING, ids=[f"{i}-{row[0]}" for i, row in enumerate(LEAVING)]
)
def test_what_the_interpreter_words_itself_leaves_before_the_instruction(
    kind: str, operands: tuple[Any, ...], fields: dict[str, Any]
) -> None:
    assert run(kind, *operands, **fields) == ("left",)


def test_a_pure_quiet_op_that_fails_leaves_without_exception() -> None:
    assert run("binary", 1, "a", imm=ADD, effects=NONE) == ("left",)


def test_cells_and_functions() -> None:
    cell = types.CellType(5)
    assert run("cell_get", cell) == 5
    run("cell_set", cell, 6)
    assert cell.cell_contents == 6
    run("cell_delete", cell)
    with pytest.raises(ValueError, match="empty"):
        _ = cell.cell_contents

    def outer(a: int = 1, *, b: int = 2) -> object:
        return (a, b, cell)

    assert run("func_closure", outer, imm=0) is outer.__closure__[0]  # type: ignore[index]
    assert run("func_default", outer, imm=0) == 1
    assert run("func_kwdefault", outer, name="b") == 2
    assert run("func_kwdefault", outer, name="c") == ("left",)
    method: Any = Odd().__len__
    assert run("method_func", method) is Odd.__len__
    assert run("method_self", method) is method.__self__
    made = run("make_function", outer.__code__, (7,), {"b": 8}, (types.CellType(1),), object=globals(), imm=1 | 2 | 8)
    assert made()[:2] == (7, 8)
    assert made.__qualname__ == outer.__qualname__
    assert made.__module__ == __name__
    assert run("set_function_attribute", made, (9,), imm=1) is made
    assert made()[0] == 9


def test_globals() -> None:
    module = {"x": 1}
    builtins = {"y": 2}
    for name, wanted in [("x", 1), ("y", 2), ("z", ("left",))]:
        assert run("load_global", object=module, object2=builtins, name=name) == wanted
    run("store_global", 5, object=module, name="z")
    assert module["z"] == 5
    run("delete_global", object=module, name="z")
    assert "z" not in module
    assert run("delete_global", object=module, name="z") == ("left",)


def test_import() -> None:
    import os.path

    assert run("import_name", 0, None, object=globals(), name="os.path") is os
    assert run("import_name", 0, ("join",), object=globals(), name="os.path") is os.path
    what, raised = run("import_name", 0, None, object=globals(), name="no_such_module_here")
    assert (what, type(raised)) == ("raised", ModuleNotFoundError)


def test_function_guard() -> None:
    def f(a: int = 1) -> int:
        return a

    def guard(function: Any) -> Any:
        b = TraceBuilder(params=1)
        snapshot = b.snap(b.params)
        b.op(
            "guard_function",
            b.params[0],
            object=f.__code__,
            imm_object=globals(),
            effects=NONE,
            snapshot=snapshot,
        )
        b.op("guard_defaults", b.params[0], imm=len(f.__defaults__), effects=NONE, snapshot=snapshot)
        b.ret(b.params[0])
        return tree(b).run(0, (function,))["outcome"]

    assert guard(f) == "returned"
    assert guard(types.FunctionType(f.__code__, globals(), "g", f.__defaults__)) == "returned"
    assert guard(types.FunctionType(f.__code__, {}, "g", f.__defaults__)) == "left"
    assert guard(types.FunctionType(f.__code__, globals(), "g", (1, 2, 3))) == "left"
    assert guard(len) == "left"


def test_string_append_in_place() -> None:
    def append(pieces: int) -> Any:
        b = TraceBuilder(params=2)
        text, more = b.params
        b.type(text, str, b.snap([text, more]))
        b.type(more, str, b.snap([text, more]))
        for _ in range(pieces):
            value = b.binary(ADD, text, more, b.snap([text, more]))
            b.release(text)
            text = value
        b.ret(text)
        return tree(b)

    text = "".join(["a", "bc"])
    assert append(5).run(0, (text, "xyz"))["value"] == text + "xyz" * 5
    assert text == "abc"
