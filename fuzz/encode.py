"""Turns any value into plain, picklable tuples that are equal exactly where the contract demands that the values are.

Bits of floats count, the sign of zero too; NaNs are all equal. Types, dtypes, shapes, strides and flags count.
Mutable objects and arrays are numbered in the order they are met over a whole session, so that "the same object as in
an earlier call" is visible; immutable boxed objects are numbered within one call, so that `a is b` of two results is.
Arrays say which memory they lie in and where. Addresses in texts are blanked out: they are outside the contract.

Most of what a test or a fuzzed program takes is spent here: what is met most often, and the numbers, are in C++
(replay/bind/encoder.cc): None, bool, int, float, str, tuple, list, dict, type, NumPy's own numbers and their dtypes,
arrays of them.
"""

from __future__ import annotations

import random
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _core

Encoded = tuple[Any, ...]

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def plain_text(text: str) -> str:
    return _ADDRESS.sub("0x...", text) if "0x" in text else text


class Encoder(_core.Encoder):
    """One session's encoder. It keeps every numbered object alive, so that a number never names two objects."""

    def __init__(self, hidden_files: frozenset[str] = frozenset()) -> None:
        """`hidden_files`: left out of tracebacks; only for stand-ins written in Python, which cannot avoid frames of
        their own."""
        super().__init__()
        self.hidden_files = hidden_files

    def _mutable(self, value: object, describe: Callable[[Any], Iterable[Any]]) -> Encoded:
        number, first = self._met(value)
        return (number, *describe(value)) if first else (number,)

    def _other(self, value: Any) -> Encoded:
        """Called by encode() for what C++ leaves."""
        return _METHODS[type(value)](self, value)

    # ---- one method for each kind of value

    def _plain(self, value: object) -> Encoded:
        return (type(value).__name__, value)

    def _text(self, value: str) -> Encoded:
        return ("str", plain_text(value))

    def _complex(self, value: complex) -> Encoded:
        return ("complex", value.real.hex(), value.imag.hex(), self._boxed(value))

    def _numpy_scalar(self, value: np.generic) -> Encoded:
        if value.dtype.kind in "fc":
            return (type(value).__name__, value.dtype.str, _bits(np.asarray(value)), self._boxed(value))
        number = () if value.dtype.kind == "b" else (self._boxed(value),)  # np.True_ is one object
        return (type(value).__name__, value.dtype.str, value.tobytes(), *number)

    def _named_tuple(self, value: tuple[Any, ...]) -> Encoded:
        return (type(value).__qualname__, *self._tuple(value))

    def _set(self, value: Any) -> Encoded:
        return (type(value).__name__, *self._mutable(value, self._set_items))

    def _set_items(self, value: Any) -> list[Encoded]:
        items = [self.encode(item) for item in value]
        # The order of ints is the same in every process; that of texts depends on the hash seed.
        return items if all(type(item) is int for item in value) else sorted(items, key=repr)

    def _array_of_a_subclass(self, value: np.ndarray[Any, Any]) -> Encoded:
        return (
            "array of a subclass",
            type(value).__qualname__,
            *self._mutable(value, lambda _: (self._array_facts(value), self.encode(getattr(value, "__dict__", None)))),
        )

    def _array_facts(self, value: np.ndarray[Any, Any]) -> Encoded:
        dtype = value.dtype
        if dtype.hasobject:
            data: Any = tuple([self.encode(item) for item in value.ravel().tolist()])
        else:
            data = _bits(value)
        # A dtype may be another object than NumPy's own.
        flags = value.flags.num if dtype.isbuiltin else -value.flags.num
        return (dtype.str, value.shape, value.strides, flags, self._memory(value), data)

    def _exception(self, value: BaseException) -> Encoded:
        return ("exception", *self._mutable(value, lambda _: (type(value).__qualname__, self.encode(value.args))))

    def _anything(self, value: Any) -> Encoded:
        name = getattr(value, "__qualname__", None)
        if name is not None:
            return ("callable", name)
        if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
            return ("object", type(value).__qualname__, *self._mutable(value, self._attributes))
        return ("other", type(value).__qualname__, plain_text(repr(value)))

    def _random(self, value: Any, state: Callable[[], Any]) -> Encoded:
        return ("random", type(value).__name__, *self._mutable(value, lambda _: (plain_text(repr(state())),)))

    def _attributes(self, value: Any) -> Encoded:
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if hasattr(value, name)]
        named = {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
        return tuple((name, self.encode(item)) for name, item in named.items())


def _bits(value: np.ndarray[Any, Any]) -> bytes:
    if value.dtype.kind in "fc" and np.count_nonzero(np.isnan(value)):
        value = value.copy()
        for part in (value.real, value.imag) if value.dtype.kind == "c" else (value,):
            part[np.isnan(part)] = np.nan
    return value.tobytes()


class _Methods(dict[type, "Method"]):
    """Which method encodes the values of a type. A program's own classes are looked up each time, and not kept."""

    def __missing__(self, cls: type) -> Method:
        return next((method for base, method in _FAMILIES if issubclass(cls, base)), Encoder._anything)


Method = Callable[[Encoder, Any], Encoded]
_FAMILIES: tuple[tuple[type, Method], ...] = (
    (np.generic, Encoder._numpy_scalar),
    (np.ndarray, Encoder._array_of_a_subclass),
    (tuple, Encoder._named_tuple),
    (BaseException, Encoder._exception),
)
_METHODS = _Methods(
    {
        bytes: Encoder._plain,
        type(Ellipsis): Encoder._plain,
        str: Encoder._text,
        complex: Encoder._complex,
        set: Encoder._set,
        frozenset: Encoder._set,
        random.Random: lambda self, value: self._random(value, value.getstate),
        np.random.Generator: lambda self, value: self._random(value, lambda: value.bit_generator.state),
        np.random.RandomState: lambda self, value: self._random(value, lambda: value.get_state(legacy=False)),
        types.FunctionType: lambda _, value: ("callable", value.__qualname__),
        types.FrameType: lambda _, value: (
            "frame",
            value.f_code.co_name,
            value.f_lineno,
            tuple(sorted(value.f_locals)),
        ),
        types.ModuleType: lambda _, value: ("module", value.__name__),
    }
)
