"""Frame images for the hook tests: a function in the middle of one of its instructions, with given values."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable
from typing import Any

from dalsegno._testing import hook as hooktest
from tests import hook_places

Image = tuple[Any, ...]
PUSH, DISCARD = 0, 1
NULL = hooktest.NULL


def _find(function: types.FunctionType, opname: str, which: int) -> tuple[int, int]:
    """(code unit, next instruction) of an instruction, not behind an EXTENDED_ARG."""
    code = function.__code__
    places = hook_places.places(code)
    found = [i.offset // 2 for i in dis.get_instructions(code) if i.opname == opname]
    return found[which], places[found[which]][3]


def slots(function: types.FunctionType, values: dict[str, Any]) -> list[Any]:
    """Values by name in the order of the frame's slots; names without a value are unbound."""
    code = function.__code__
    names = [*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames), *code.co_freevars]
    assert set(values) <= set(names)
    return [values.get(name, NULL) for name in names]


def at(
    function: Callable[..., Any],
    values: dict[str, Any],
    stack: list[Any] | None = None,
    *,
    opname: str = "CALL",
    which: int = -1,
    action: int = PUSH,
    f_locals: Any = NULL,
    frame_object: Any = NULL,
) -> Image:
    """The function executing (or about to execute) the which-th of its instructions of that name."""
    assert isinstance(function, types.FunctionType)
    offset, after = _find(function, opname, which)
    return (function, offset, after, slots(function, values), stack or [], action, f_locals, frame_object)


def starting(function: Callable[..., Any], values: dict[str, Any]) -> Image:
    """The function behind its RESUME, with an empty stack."""
    assert isinstance(function, types.FunctionType)
    _, after = _find(function, "RESUME", 0)
    return (function, after, 0, slots(function, values), [], PUSH, NULL, NULL)


def with_frame_object(image: Image, frame_object: Any, f_locals: Any = NULL) -> Image:
    return (*image[:6], f_locals, frame_object)
