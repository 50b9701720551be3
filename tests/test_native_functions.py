"""What loops ask functions that they call for: their cells, their defaults."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
from tests.native_kit import check_beside_others as check
from tests.support import stepped


def runge_kutta(n: int, g: Any, damping: Any) -> Any:
    def slope(x: Any, v: Any) -> Any:
        return v, -g * x - damping * v

    x, v, h = 0.5, 0.0, 0.125
    for _ in range(n):
        a, b = slope(x, v)
        c, d = slope(x + h * a, v + h * b)
        x += h * (a + c) / 2
        v += h * (b + d) / 2
    return x, v


def simpson(n: int, p: Any, q: Any) -> Any:
    def area(f: Callable[..., Any]) -> Any:
        total = f(0.0)
        for i in range(1, n):
            total += (4 if i % 2 else 2) * f(i / n)
        return total

    return area(lambda x, k=q: x * k - p), area(lambda x: x * p), area(lambda x, k=1, j=q: x + k - j)


def offsets(n: int, k: Any) -> Any:
    f = lambda x, y=k, z=2: x * y + z
    total = 0
    for i in range(n):
        total += f(i)
    return total


def test_cells_and_defaults() -> None:
    check(offsets, (40, 3), (40, 0.5), (40, 1 << 70), (0, 1))
    check(runge_kutta, (40, 9.5, 0.25), (40, 3, 0.5), (40, 1j, True), (1, 1.0, 1.0))
    check(simpson, (40, 1.5, 2.5), (40, 1, 2), (40, 1 << 70, 0.5), (1, 0.5, 0.5))


def test_they_are_not_called() -> None:
    for function, args in ((runge_kutta, (400, 9.5, 0.25)), (offsets, (400, 2.5))):
        jitted = ds.jit(store=False)(function)
        with stepped(step_aside=False, hot_loop=1):
            for _ in range(6):
                jitted(*args)
                ds.wait()
            loops = [trace["native"] for trace in jitted.explain().to_dict()["traces"] if trace["native"] is not None]
        assert loops
        assert not [called for native in loops for called in native["called"]], jitted.explain()


NUMBERS_OF_DEFAULTS: list[Any] = [None, (), (1,), (2.5,), (3, 4), ("a",)]


@pytest.mark.parametrize("native", [True, False])
def test_defaults_that_change_in_a_loop(native: bool) -> None:
    def changes(n: int, every: int, defaults: list[Any]) -> Any:
        def f(x: Any, y: Any = 10, z: Any = 20) -> Any:
            return x, y, z

        out = []
        for i in range(n):
            try:
                out.append(f(i))
            except TypeError as error:
                out.append(str(error))
            try:
                out.append(f(i, 5))
            except TypeError as error:
                out.append(str(error))
            if i % every == every - 1:
                f.__defaults__ = defaults[i // every % len(defaults)]
        return out

    jitted = ds.jit(store=False)(changes)
    with stepped(step_aside=False, native=native, hot_loop=1):
        for every in (20, 3, 1, 50):
            for _ in range(3):
                assert jitted(60, every, NUMBERS_OF_DEFAULTS) == changes(60, every, NUMBERS_OF_DEFAULTS)
                ds.wait()


def test_functions_of_one_code_with_other_cells_and_defaults() -> None:
    def make(k: Any, default: Any) -> Callable[..., Any]:
        def f(x: Any, y: Any = default) -> Any:
            return x * k + y

        return f

    def mixed(functions: list[Any], n: int) -> Any:
        return [functions[i % len(functions)](i) for i in range(n)]

    without = types.FunctionType(make(1, 2).__code__, globals(), "f", None, make(3, 4).__closure__)
    functions = [make(2, 1.5), make(0.5, 3), make(True, 1j), make(-1, -1)]
    check(mixed, (functions[:1], 50), (functions, 60), (functions[::-1], 60))
    jitted = ds.jit(store=False)(mixed)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(3):
            jitted(functions[:1], 60)
            ds.wait()
        with pytest.raises(TypeError, match="missing 1 required"):
            jitted([*functions[:1] * 40, without], 60)


def test_a_cell_that_is_emptied_in_a_loop() -> None:
    def empties(n: int, at: int) -> Any:
        k = 3

        def f(x: int) -> int:
            return x * k

        total = 0
        try:
            for i in range(n):
                if i == at:
                    del k
                total += f(i)
        except NameError as error:
            return total, str(error)
        return total

    check(empties, (60, 100), (60, 40), (60, 0))
