"""Turns any value into plain, picklable tuples that are equal exactly where the contract demands that the values are.

Bits of floats count, the sign of zero too; NaNs are all equal. Types, dtypes, shapes, strides and flags count.
Mutable objects and arrays are numbered in the order they are met over a whole session, so that "the same object as in
an earlier call" is visible; immutable boxed objects are numbered within one call, so that `a is b` of two results is.
Arrays say which memory they lie in and where. Addresses in texts are blanked out: they are outside the contract.
"""

from __future__ import annotations

import random
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np

Encoded = tuple[Any, ...]

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_SMALL_INTS = range(-5, 257)  # CPython keeps one object of each


def plain_text(text: str) -> str:
    return _ADDRESS.sub("0x...", text) if "0x" in text else text


class Encoder:
    """One session's encoder. It keeps every numbered object alive, so that a number never names two objects."""

    def __init__(self, hidden_files: frozenset[str] = frozenset()) -> None:
        """`hidden_files`: left out of tracebacks; only for stand-ins written in Python, which cannot avoid frames of
        their own."""
        self.hidden_files = hidden_files
        self._numbers: dict[int, int] = {}
        self._call_numbers: dict[int, int] = {}
        self._memories: dict[int, int] = {}
        self._described: set[int] = set()
        self._alive: list[object] = []

    def begin_call(self) -> None:
        """Mutable objects keep their numbers but are described afresh."""
        self._call_numbers.clear()
        self._described.clear()

    def forget(self) -> None:
        """Lets go of everything: what is met next gets new numbers."""
        for part in (self._numbers, self._call_numbers, self._memories, self._described, self._alive):
            part.clear()

    def encode(self, value: Any) -> Encoded:
        encoder = _ENCODERS.get(type(value))
        if encoder is not None:
            return encoder(self, value)
        if isinstance(value, np.generic):
            return self._numpy_scalar(value)
        if isinstance(value, np.ndarray):
            return (
                "array of a subclass",
                type(value).__qualname__,
                *self._mutable(
                    value, lambda: (self._array_facts(value), self.encode(getattr(value, "__dict__", None)))
                ),
            )
        if isinstance(value, tuple):
            return (type(value).__qualname__, *self._tuple(value))
        if isinstance(value, BaseException):
            return ("exception", *self._mutable(value, lambda: (type(value).__qualname__, self.encode(value.args))))
        name = getattr(value, "__qualname__", None)
        if name is not None:
            return ("callable", name)
        return self._instance(value)

    # ---- numbers

    def _number(self, value: object, numbers: dict[int, int]) -> int:
        known = numbers.get(id(value))
        if known is None:
            known = numbers[id(value)] = len(numbers)
            self._alive.append(value)
        return known

    def _mutable(self, value: object, describe: Callable[[], Encoded]) -> Encoded:
        number = self._number(value, self._numbers)
        if number in self._described:
            return (number,)
        self._described.add(number)
        return (number, *describe())

    def _boxed(self, value: object) -> int:
        return self._number(value, self._call_numbers)

    # ---- one method for each kind of value

    def _plain(self, value: object) -> Encoded:
        return (type(value).__name__, value)

    def _text(self, value: str) -> Encoded:
        return ("str", plain_text(value))

    def _int(self, value: int) -> Encoded:
        return ("int", value) if value in _SMALL_INTS else ("int", value, self._boxed(value))

    def _float(self, value: float) -> Encoded:
        return ("float", float.hex(value), self._boxed(value))

    def _complex(self, value: complex) -> Encoded:
        return ("complex", float.hex(value.real), float.hex(value.imag), self._boxed(value))

    def _numpy_scalar(self, value: np.generic) -> Encoded:
        if value.dtype.kind in "fc":
            return (type(value).__name__, value.dtype.str, _bits(np.asarray(value)), self._boxed(value))
        number = () if value.dtype.kind == "b" else (self._boxed(value),)  # np.True_ is one object
        return (type(value).__name__, value.dtype.str, value.tobytes(), *number)

    def _tuple(self, value: tuple[Any, ...]) -> Encoded:
        if not value:
            return ("tuple",)
        number = self._boxed(value)
        return ("tuple", number, *[self.encode(item) for item in value])

    def _list(self, value: list[Any]) -> Encoded:
        return ("list", *self._mutable(value, lambda: tuple([self.encode(item) for item in value])))

    def _dict(self, value: dict[Any, Any]) -> Encoded:
        return (
            "dict",
            *self._mutable(value, lambda: tuple([(self.encode(k), self.encode(v)) for k, v in value.items()])),
        )

    def _set(self, value: Any) -> Encoded:
        return (type(value).__name__, *self._mutable(value, lambda: self._set_items(value)))

    def _set_items(self, value: Any) -> Encoded:
        items = [self.encode(item) for item in value]
        # The order of ints is the same in every process; that of texts depends on the hash seed.
        return tuple(items if all(type(item) is int for item in value) else sorted(items, key=repr))

    def _array(self, value: np.ndarray[Any, Any]) -> Encoded:
        return ("array", *self._mutable(value, lambda: self._array_facts(value)))

    def _array_facts(self, value: np.ndarray[Any, Any]) -> Encoded:
        if value.dtype.hasobject:
            data: Any = tuple([self.encode(item) for item in value.ravel().tolist()])
        else:
            data = _bits(value)
        # A dtype may be another object than NumPy's own.
        flags = value.flags.num if value.dtype.isbuiltin else -value.flags.num
        return (value.dtype.str, value.shape, value.strides, flags, self._memory(value), data)

    def _memory(self, value: np.ndarray[Any, Any]) -> tuple[int, int]:
        """(number of the memory, offset in it): arrays share memory where the first agrees and the second overlaps."""
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        offset = 0
        if root is not value:
            offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return self._number(root, self._memories), offset

    def _instance(self, value: Any) -> Encoded:
        if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
            return ("object", type(value).__qualname__, *self._mutable(value, lambda: self._attributes(value)))
        return ("other", type(value).__qualname__, plain_text(repr(value)))

    def _random(self, value: Any, state: Callable[[], Any]) -> Encoded:
        return ("random", type(value).__name__, *self._mutable(value, lambda: (plain_text(repr(state())),)))

    def _attributes(self, value: Any) -> Encoded:
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if hasattr(value, name)]
        named = {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
        return tuple((name, self.encode(item)) for name, item in named.items())


def _bits(value: np.ndarray[Any, Any]) -> bytes:
    if value.dtype.kind in "fc":
        value = value.copy()
        parts = (value.real, value.imag) if value.dtype.kind == "c" else (value,)
        for part in parts:
            part[np.isnan(part)] = np.nan
    return value.tobytes()


_ENCODERS: dict[type, Callable[[Encoder, Any], Encoded]] = {
    type(None): Encoder._plain,
    bool: Encoder._plain,
    bytes: Encoder._plain,
    type(Ellipsis): Encoder._plain,
    str: Encoder._text,
    int: Encoder._int,
    float: Encoder._float,
    complex: Encoder._complex,
    tuple: Encoder._tuple,
    list: Encoder._list,
    dict: Encoder._dict,
    set: Encoder._set,
    frozenset: Encoder._set,
    np.ndarray: Encoder._array,
    random.Random: lambda self, value: self._random(value, value.getstate),
    np.random.Generator: lambda self, value: self._random(value, lambda: value.bit_generator.state),
    np.random.RandomState: lambda self, value: self._random(value, lambda: value.get_state(legacy=False)),
    types.FunctionType: lambda _, value: ("callable", value.__qualname__),
    types.FrameType: lambda _, value: ("frame", value.f_code.co_name, value.f_lineno, tuple(sorted(value.f_locals))),
    types.ModuleType: lambda _, value: ("module", value.__name__),
    type: lambda _, value: ("type", value.__qualname__),
}
