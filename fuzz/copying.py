"""Copies a call's arguments, for functions the fuzzer did not write: each engine gets its own."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


class CallCopier:
    """Copies arguments deeply; arrays keep dtype, strides, flags and what they share with other arguments."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._roots: dict[int, np.ndarray[Any, Any]] = {}
        self._alive: list[Any] = []

    def copy(self, value: Any) -> Any:
        self._find_arrays(value, set())
        return copy.deepcopy(value, self._memo)

    def _find_arrays(self, value: Any, seen: set[int]) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        if type(value) is np.ndarray and not value.dtype.hasobject:
            self._memo[id(value)] = self._array(value)
            self._alive.append(value)
        elif isinstance(value, dict):
            for item in value.values():
                self._find_arrays(item, seen)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                self._find_arrays(item, seen)
        elif hasattr(value, "__dict__") and not callable(value):
            self._find_arrays(vars(value), seen)

    def _array(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        root = value
        while type(root.base) is np.ndarray:
            root = root.base
        if not (root.flags.c_contiguous or root.flags.f_contiguous):
            return value.copy(order="K")
        fresh = self._roots.get(id(root))
        if fresh is None:
            fresh = self._roots[id(root)] = root.copy(order="K")
            self._alive.append(root)
        if root is value:
            made = fresh
        else:
            offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            flat = fresh.reshape(-1, order="A").view(np.uint8)
            made = np.ndarray(value.shape, value.dtype, flat, offset, value.strides)
        made.flags.writeable = value.flags.writeable
        return made
