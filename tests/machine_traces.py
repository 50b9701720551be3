"""Builds traces by hand for the replay machine's tests: ops by name, snapshots of one frame unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from dalsegno._testing import machine as machine

NONE, WRITES, ARRAY = 0, 32, 2 | 16 | 64  # Effect of trace/op_table.h; without any given, all that the kind may have
ENTRY, LOOP, EXIT = 0, 1, 2
ADD, AND, FLOORDIV, LSHIFT, MATMUL, MUL, MOD, OR, POW, RSHIFT, SUB, DIV, XOR = range(13)
LT, LE, EQ, NE, GT, GE = range(6)
BOOL, INT32, INT64, FLOAT32, FLOAT64 = range(5)

Frame = dict[str, Any]


def template() -> None:
    """The function that traces without one of their own pretend to be recorded from."""


class TraceBuilder:
    """Collects ops; each method that adds an op with a result returns the value's number."""

    def __init__(
        self,
        function: Callable[..., Any] = template,
        number: int = 0,
        anchor: int = ENTRY,
        params: int = 0,
        parent: tuple[int, int, int] | None = None,
    ) -> None:
        self.function = function
        self.data: dict[str, Any] = {
            "self": function,
            "number": number,
            "anchor": anchor,
            "ops": [],
            "snapshots": [],
            "folded": [],
        }
        if parent is not None:
            self.data["parent"], self.data["parent_op"], self.data["parent_exit"] = parent
        self.params = [self.op("param", imm=i) for i in range(params)]
        self.self = self.const(function)

    def op(self, kind: str, *inputs: int, **fields: Any) -> int:
        self.data["ops"].append({"kind": kind, "in": list(inputs), **fields})
        return len(self.data["ops"]) - 1

    def const(self, value: object) -> int:
        return self.op("constant", object=value, effects=NONE)

    def frame(
        self,
        locals_: Sequence[int | None],
        stack: Sequence[int | None] = (),
        offset: int = 0,
        function: int | None = None,
        **fields: Any,
    ) -> Frame:
        value = self.self if function is None else function
        live = self.data["ops"][value].get("object", self.function)
        code = live.__code__ if isinstance(live, FunctionType) else template.__code__
        return {
            "function": value,
            "code": code,
            "offset": offset,
            "locals": list(locals_),
            "stack": list(stack),
            **fields,
        }

    def snap(self, locals_: Sequence[int | None], stack: Sequence[int | None] = (), offset: int = 0) -> int:
        return self.snap_frames(self.frame(locals_, stack, offset))

    def snap_frames(self, *frames: Frame) -> int:
        self.data["snapshots"].append(list(frames))
        return len(self.data["snapshots"]) - 1

    def entry(self, *frames: Frame) -> None:
        self.data["entry"] = list(frames)

    def type(self, value: int, type_: type, snapshot: int) -> None:
        self.op("guard_type", value, object=type_, effects=NONE, snapshot=snapshot)

    def array(self, value: int, dtype: int, rank: int, snapshot: int) -> None:
        self.op("guard_array", value, facts=(dtype, rank), effects=NONE, snapshot=snapshot)

    def binary(self, imm: int, a: int, b: int, snapshot: int, **fields: Any) -> int:
        return self.op("binary", a, b, imm=imm, snapshot=snapshot, **{"effects": NONE, **fields})

    def array_binary(
        self, imm: int, fn: str, a: int, b: int, snapshot: int, dtype: int = FLOAT64, rank: int = 1
    ) -> int:
        return self.op("binary", a, b, imm=imm, fn=fn, facts=(dtype, rank), effects=ARRAY, snapshot=snapshot)

    def compare(self, imm: int, a: int, b: int, snapshot: int, **fields: Any) -> int:
        return self.op("compare", a, b, imm=imm, snapshot=snapshot, **{"effects": NONE, **fields})

    def release(self, *values: int) -> None:
        self.op("release", *values, effects=NONE)

    def jump(self, number: int, snapshot: int) -> None:
        self.op("jump", imm=number, snapshot=snapshot)

    def ret(self, value: int) -> None:
        self.op("return_", value)

    def fold(self, dict_: dict[str, Any], name: str, *value: object) -> None:
        self.data["folded"].append((dict_, name, *value))


def tree(*traces: TraceBuilder) -> Any:
    made = machine.Tree()
    for trace in traces:
        made.add(trace.data)
    return made
