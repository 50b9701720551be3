"""Instances in traces: __setitem__, unary operators, right operands of plain types; classes without __init__."""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any

import dalsegno as ds
import numpy as np
from tests.native_kit import check_beside_others, same


class Grid:
    def __init__(self, n: int) -> None:
        self.cells = [0] * n
        self.writes = 0

    def __setitem__(self, at: Any, value: Any) -> Any:
        self.writes += 1
        if value == 7:
            raise KeyError(at)
        self.cells[at] = value
        return "dropped"

    def __getitem__(self, at: Any) -> Any:
        return self.cells[at]


class Listed(list):  # type: ignore[type-arg]
    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value + 1)


def fills(kind: Any, n: int, turns: int) -> Any:
    grid = kind(n) if kind is Grid else kind([0] * n)
    out: list[Any] = []
    for k in range(turns):
        try:
            grid[k % n] = k
            grid[k % 3] += 1
            grid[-1], x = k * 2, grid[0]
            out.append(x)
        except (KeyError, IndexError) as error:
            out.append(repr(error))
    return out, list(getattr(grid, "cells", grid)), getattr(grid, "writes", 0)


def test_items_of_instances_are_set():
    check_beside_others(fills, (Grid, 5, 20), (Grid, 2, 9), (Grid, 4, 12))
    check_beside_others(fills, (Listed, 5, 12), (Grid, 5, 12))


def test_a_setter_of_items_sees_its_caller():
    class Sees:
        def __setitem__(self, at: Any, value: Any) -> None:
            frame = sys._getframe(1)
            seen.append((at, sorted(frame.f_locals), frame.f_lineno - frame.f_code.co_firstlineno))

    seen: list[Any] = []

    def sets(n: int) -> Any:
        seen.clear()
        it = Sees()
        for k in range(n):
            it[k] = k
        return list(seen)

    same(sets, lambda: (12,), lambda: (3,))


class Signed:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __neg__(self) -> Any:
        return Signed(-self.x)

    def __pos__(self) -> Any:
        return NotImplemented

    def __invert__(self) -> Any:
        if self.x > 5:
            raise OverflowError(self.x)
        return self.x

    def __repr__(self) -> str:
        return f"Signed({self.x})"


class Silent:
    pass


class Whole(int):
    pass


def signs(make: Any, n: int) -> Any:
    out: list[Any] = []
    for k in range(n):
        it = make(k)
        for sign in "-+~":
            try:
                out.append(-it if sign == "-" else +it if sign == "+" else ~it)
            except (TypeError, OverflowError) as error:
                out.append(repr(error))
    return [repr(o) for o in out]


def test_unary_operators():
    check_beside_others(signs, (Signed, 9), (lambda k: Silent(), 4), (Whole, 9), (float, 4))


class Sized:
    def __init__(self, k: int) -> None:
        self.k = k

    def __abs__(self) -> Any:
        if self.k % 7 == 6:
            raise OverflowError(self.k)
        return self if self.k % 5 == 4 else math.hypot(self.k, 3.0)

    def __repr__(self) -> str:
        return f"Sized({self.k})"


class Deep:
    def __init__(self) -> None:
        self.n = 0

    def __abs__(self) -> Any:
        self.n += 1
        return abs(self)


def absolutes(make: Any, n: int) -> list[Any]:
    out: list[Any] = []
    for k in range(n):
        it = make(k)
        try:
            out.append((abs(it), abs(k - 3), [abs(it)][0]))
        except (TypeError, OverflowError) as error:
            out.append(repr(error))
    return [repr(o) for o in out]


def test_abs() -> None:
    check_beside_others(absolutes, (Sized, 20), (lambda k: Silent(), 4), (Whole, 9), (float, 4))


def test_abs_counts_as_many_levels_as_eagers() -> None:
    def depth(n: int) -> list[int]:
        out = []
        for _ in range(n):
            it = Deep()
            try:
                abs(it)
            except RecursionError:
                out.append(it.n)
        return out

    jitted = ds.jit(store=False)(depth)
    for _ in range(4):
        assert jitted(3) == depth(3)
        ds.wait()


class Vec:
    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y

    def __mul__(self, k: Any) -> Any:
        return NotImplemented if isinstance(k, (str, list)) else Vec(self.x * k, self.y * k)

    def __truediv__(self, k: Any) -> Any:
        return Vec(self.x / k, self.y / k)

    def __add__(self, o: Any) -> Any:
        if isinstance(o, (tuple, list)):
            return Vec(self.x + o[0], self.y + o[1])
        return NotImplemented

    def __mod__(self, o: Any) -> Any:
        return NotImplemented if o is None or isinstance(o, (str, set)) else (self.x, o)

    def __or__(self, o: Any) -> Any:
        return NotImplemented

    def __index__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"Vec({self.x!r}, {self.y!r})"


def operates(operands: list[Any], n: int) -> Any:
    v = Vec(1.0, 2.0)
    out: list[Any] = []
    for k in range(n):
        for o in operands:
            for sign in "*/+%|":
                try:
                    if sign == "*":
                        out.append(v * o)
                    elif sign == "/":
                        out.append(v / o)
                    elif sign == "+":
                        out.append(v + o)
                    elif sign == "%":
                        out.append(v % o)
                    else:
                        out.append(v | o)
                except (TypeError, ZeroDivisionError) as error:
                    out.append(str(error))
        v = Vec(k + 0.5, 1.0)
    return repr(out)


def test_right_operands():
    numbers = [np.float64(2.5), np.int32(3), np.float32(0.5), 2, 1.5, True, 1j, np.complex128(2j)]
    others = [(1, 2), [3, 4], "text", b"ab", None, {1}, {1: 2}, range(3), deque([1, 2]), bytearray(b"c")]
    for operand in numbers + others:
        check_beside_others(operates, ([operand], 7), ([2.0], 3), ([operand], 3))
    check_beside_others(operates, (numbers + others, 4), (others, 4))


def test_instances_without_init():
    class Late:
        pass

    def makes(n: int) -> Any:
        out: list[Any] = []
        if "__init__" in vars(Late):
            del Late.__init__  # type: ignore[misc]
        for k in range(n):
            if k == 14:
                Late.__init__ = lambda self: setattr(self, "x", 5)  # type: ignore
            it, other = Late(), Silent()
            it.y = k  # type: ignore[attr-defined]
            other.z = it  # type: ignore[attr-defined]
            out.append((vars(it), it is other, type(it).__name__, other.z.y))  # type: ignore[attr-defined]
        try:
            Silent(1)  # type: ignore[call-arg]
        except TypeError as error:
            out.append(str(error))
        return out

    same(makes, lambda: (20,), lambda: (10,))
