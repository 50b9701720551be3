"""Compares two sessions of one program and says where they differ, in words."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .encode import Encoded
from .memory import excess
from .observe import Observation

_MAX_DIFFERENCES = 6


MEMORY = "memory"  # the aspect of a call that took more of it


@dataclasses.dataclass(frozen=True)
class Session:
    """What one engine made of a program: an observation for each call, and everything kept, looked at again at the
    end."""

    observations: tuple[Observation, ...]
    afterwards: Encoded
    peaks: tuple[int, ...] = dataclasses.field(default=(), compare=False)  # bytes a call, where they are measured


@dataclasses.dataclass(frozen=True)
class Difference:
    call: int | None  # None: found after the last call
    aspect: str  # "outcome", "events", "arguments", "globals", "memory", "afterwards", "number of calls"
    where: str
    expected: str
    actual: str

    def __str__(self) -> str:
        place = "afterwards" if self.call is None else f"call {self.call}, {self.aspect}"
        return f"{place}{self.where}: eager {self.expected}, here {self.actual}"


def compare(expected: Session, actual: Session) -> list[Difference]:
    """Differences of `actual` from `expected`, first call first; empty if nothing observable differs."""
    if expected == actual:
        return _more_memory(expected, actual)
    found: list[Difference] = []
    for number, (left, right) in enumerate(zip(expected.observations, actual.observations, strict=False)):
        for field in dataclasses.fields(Observation):
            _walk(getattr(left, field.name), getattr(right, field.name), "", number, field.name, found)
    if len(expected.observations) != len(actual.observations):
        counts = str(len(expected.observations)), str(len(actual.observations))
        found.append(Difference(None, "number of calls", "", *counts))
    if not found:
        _walk(expected.afterwards, actual.afterwards, "", None, "afterwards", found)
    return found[:_MAX_DIFFERENCES]


def _more_memory(expected: Session, actual: Session) -> list[Difference]:
    found = excess(expected.peaks, actual.peaks)
    return [Difference(found[0], MEMORY, "", f"{found[1]} bytes", f"{found[2]}")] if found else []


def _walk(left: Any, right: Any, where: str, call: int | None, aspect: str, found: list[Difference]) -> None:
    if left == right or len(found) >= _MAX_DIFFERENCES:
        return
    both = isinstance(left, tuple) and isinstance(right, tuple)
    if both and len(left) == len(right) and left and left[0] == right[0]:
        if left[0] == "array":
            _walk_array(left, right, where, call, aspect, found)
            return
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            _walk(one, other, where + _step(left, index), call, aspect, found)
        return
    if both and not _is_node(left) and not _is_node(right):
        for index in range(max(len(left), len(right))):
            sides = [side[index] if index < len(side) else "nothing" for side in (left, right)]
            _walk(sides[0], sides[1], f"{where}[{index}]", call, aspect, found)
        return
    found.append(Difference(call, aspect, where, show(left), show(right)))


def _is_node(value: Encoded) -> bool:
    return bool(value) and isinstance(value[0], str)


def _step(node: Encoded, index: int) -> str:
    if _is_node(node):
        child = node[index]
        if isinstance(child, tuple) and _is_node(child) and node[0] == "raised":
            return ""
        return f".{node[0]}[{index - 1}]"
    return f"[{index}]"


_ARRAY_FIELDS = ("dtype", "shape", "strides", "flags", "memory", "data")


def _walk_array(
    left: Encoded, right: Encoded, where: str, call: int | None, aspect: str, found: list[Difference]
) -> None:
    if left[1] != right[1] or len(left) == 2:
        found.append(Difference(call, aspect, where + ".identity", show(left), show(right)))
        return
    for name, one, other in zip(_ARRAY_FIELDS, left[2:], right[2:], strict=True):
        if one == other:
            continue
        if name == "data":
            found.append(Difference(call, aspect, where, *_differing_items(left, right)))
        else:
            found.append(Difference(call, aspect, f"{where}.{name}", str(one), str(other)))


def _differing_items(left: Encoded, right: Encoded) -> tuple[str, str]:
    dtype, shape = left[2], left[3]
    if isinstance(left[7], tuple) or left[2] != right[2] or left[3] != right[3]:
        return show(left), show(right)
    arrays = [np.frombuffer(side[7], dtype=dtype) for side in (left, right)]
    bits = [np.frombuffer(side[7], dtype=np.uint8).reshape(arrays[0].size, -1) for side in (left, right)]
    places = np.flatnonzero((bits[0] != bits[1]).any(axis=1))
    first = int(places[0])
    index = tuple(int(i) for i in np.unravel_index(first, shape))
    note = f" at {index} ({len(places)} of {arrays[0].size} items differ)"
    return f"{arrays[0][first]!r}{note}", f"{arrays[1][first]!r}"


def show(node: Any) -> str:
    """An encoded value for a person."""
    if isinstance(node, tuple) and node and node[0] == "array" and len(node) == 8 and isinstance(node[7], bytes):
        data = np.frombuffer(node[7], dtype=node[2]).reshape(node[3])
        text = np.array2string(data, threshold=12, separator=", ").replace("\n", "")
        return f"array #{node[1]} {text} {node[2]} strides {node[4]}"
    if isinstance(node, tuple):
        text = "(" + ", ".join(show(item) for item in node) + ")"
    else:
        text = repr(node)
    return text if len(text) <= 400 else text[:400] + "..."
