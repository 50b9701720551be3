"""Loops inside loops as one native function: what an inner one does not ask at each turn is asked before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.support import counting, stepped


def native(source: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    exec(source, space)
    return space["work"]


RESHAPED = """
def work(n, d, switch, change):
    t = 0.0
    for k in range(n):
        if k == switch:
            change(d)
        for j in range(d.shape[0]):
            if d[j, k % 2] < 0.5:
                t = t + d[j, k % 2]
            else:
                t = t - 1.0
            d[j, 0] = t * 0.25
    return t, d
"""


def turned(d: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        d.shape = (d.shape[1], d.shape[0])


def locked(d: Any) -> None:
    d.flags.writeable = False


@pytest.mark.parametrize("change", [turned, locked])
@pytest.mark.parametrize("switch", [0, 5, 30, 99])
def test_an_array_that_changes_between_the_turns_of_the_outer_loop(change: Callable[..., None], switch: int) -> None:
    row = (40, np.linspace(0.0, 1.0, 24).reshape(12, 2), switch, change)
    equivalent(native(RESHAPED), *[row] * 4, engines=["native"])


RENAMED = """
def half(x):
    return x * 0.5

def twice(x):
    return x * 2.0

def change(k):
    globals()["use"] = twice if k % 7 == 3 else half

use = half

def work(n, m):
    t = 1.0
    for k in range(n):
        change(k)
        for j in range(m):
            if j % 3 == 1:
                t = t + use(j)
            else:
                t = t - use(t) * 0.5
    return t
"""


def test_a_global_that_changes_between_the_turns_of_the_outer_loop() -> None:
    equivalent(native(RENAMED), *[(30, 12)] * 4, engines=["native"])


FINALISED = """
class Dies:
    def __init__(self, k):
        self.k = k
    def __del__(self):
        global use
        use = twice if self.k % 5 == 2 else half

def half(x):
    return x * 0.5

def twice(x):
    return x * 2.0

use = half

def work(n):
    t = 1.0
    for k in range(n):
        for o in [Dies(k), Dies(k + 1)]:
            t = t + use(k)
        o = None
        for j in range(8):
            if j % 3 == 1:
                t = t + use(j)
            else:
                t = t - use(t) * 0.5
    return t
"""


def test_what_dies_at_the_end_of_a_loop_changes_a_global() -> None:
    equivalent(native(FINALISED), *[(30,)] * 4, engines=["native"])


def test_the_first_call_of_a_loop_becomes_native_code() -> None:
    def summed(n: int) -> int:
        total = 0
        for i in range(n):
            total = total + i * i
        return total

    jitted = ds.jit(store=False)(summed)
    with stepped(), counting(jitted) as grown:
        assert jitted(50_000) == summed(50_000)
    assert grown["loops_entered"] == 1
    assert 0 < grown["steps"] < 10_000


def steps_of(function: Callable[..., Any], *args: Any) -> int:
    """How many steps the machine still does in a call whose loops are native."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False):
        for _ in range(30):
            jitted(*args)
        with counting(jitted) as grown:
            jitted(*args)
    return grown["steps"]


def crc16(data: bytes) -> int:
    crc = 0xFFFF
    for b in data:
        crc ^= b << 8
        for _ in range(8):
            if crc & 0x8000:
                crc = ((crc << 1) ^ 0x1021) & 0xFFFF
            else:
                crc = (crc << 1) & 0xFFFF
    return crc


def mandelbrot(w: int, h: int, most: int) -> int:
    out = 0
    for py in range(h):
        y0 = py * 2.0 / h - 1.0
        for px in range(w):
            x0 = px * 3.0 / w - 2.0
            x = y = 0.0
            k = 0
            while k < most and x * x + y * y <= 4.0:
                t = x * x - y * y + x0
                y = 2.0 * x * y + y0
                x = t
                k += 1
            out += k
    return out


def carried_along(n: int, start: Any) -> Any:
    kept = []
    x = start
    before: Any = None
    for i in range(n):
        y = x
        for j in range(6):
            if j == i % 4:
                before = x
            x = x * 0.5 + j
        if i % 5 == 0:
            kept.append((y + 0.5, before + 0.5, j))
    return kept, x


@pytest.mark.parametrize(
    ("function", "args", "most"),
    [(crc16, (bytes(range(256)) * 4,), 500), (mandelbrot, (24, 20, 40), 500), (carried_along, (60, 1.5), 5000)],
)
def test_what_is_a_number_in_one_loop_and_an_object_in_the_other(
    function: Callable[..., Any], args: tuple[Any, ...], most: int
) -> None:
    equivalent(function, *[args] * 6, engines=["native"])
    assert steps_of(function, *args) < most


def test_an_object_that_is_a_number_in_the_inner_loop_and_changes_its_type() -> None:
    def work(n: int, values: list[Any]) -> Any:
        out = []
        last: Any = 0
        for i in range(n):
            last = values[i % len(values)]
            for j in range(7):
                last = last + j
            out.append(last)
        return out

    for values in ([1, 2, 3], [1, 2, 3, 2.5], [1, True, 1 << 70, 4], [0.5, np.float64(0.5), 1]):
        equivalent(work, *[(50, values)] * 5, engines=["native"])


def test_of_a_loop_that_is_too_large_the_nearest_paths_are_compiled() -> None:
    branches = "".join(f"        if x & {1 << k % 10} > {k % 3}: t += a[x % {k + 3}]\n" for k in range(20))
    source = f"def f(n, a):\n    t = 0\n    for i in range(n):\n        x = i * 7919 & 1023\n{branches}    return t\n"
    space: dict[str, Any] = {}
    exec(source, space)
    a = list(range(100))
    with stepped(step_aside=False, hot_loop=5):
        work = ds.jit(store=False)(space["f"])
        for n in (100, 200, 300, 400, 500):
            assert work(n, a) == space["f"](n, a)
            ds.wait()
        text = str(work.explain())
    assert "native code, compiled" in text
    assert "not compiled" not in text


def test_constants_of_side_traces_are_what_they_are() -> None:
    def f(n: int) -> list[Any]:
        seen: list[Any] = []
        good = None
        for i in range(n):
            if i % 3 == 0:
                good = True
            elif i % 3 == 1:
                good = "text"
            else:
                good = False
            if i % 50 == 0:
                seen.append((i, good))
        return seen

    with stepped(step_aside=False, hot_loop=5):
        work = ds.jit(store=False)(f)
        for _ in range(20):
            assert work(400) == f(400)
            ds.wait()
        assert "native code, compiled" in str(work.explain())
