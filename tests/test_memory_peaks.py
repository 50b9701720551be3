"""A replayed call has no more arrays at once than an eager one, and shows the same where it is done in parts."""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.engines import Engine, load_backend
from dalsegno.fuzz.program import load
from dalsegno.fuzz.report import describe_all
from dalsegno.fuzz.runner import check as compare_engines
from dalsegno.fuzz.single import program_of
from tests.support import check, stepped


def peak(function: Callable[..., Any], *args: Any) -> int:
    """Bytes at once that a call takes, least of a few."""
    tracemalloc.start()
    try:
        peaks = []
        for _ in range(3):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            function(*args)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return min(peaks)
    finally:
        tracemalloc.stop()


def old_value_of_a_variable(a: Any) -> Any:
    x = np.ones_like(a)
    for _ in range(6):
        step = (x * x * x - a) / (3.0 * x * x)
        x = x - step
        if np.abs(step).max() < 1e-12:
            break
    return x


def whole_numbers(a: Any) -> Any:
    best = np.zeros(len(a), dtype=np.int64)
    for weight in range(1, 9):
        taken = best[:-weight] + weight
        best[weight:] = np.maximum(best[weight:], taken)
    return best


def rolled(a: Any) -> Any:
    before, now = a, a.copy()
    for _ in range(4):
        lap = (np.roll(now, 1) + np.roll(now, -1) + np.roll(now, 2) + np.roll(now, -2)) - 4.0 * now
        now, before = 2.0 * now - before + 0.2 * lap, now
    return now


def used_after(a: Any) -> Any:
    p = a
    for _ in range(5):
        p = 1.0 / (1.0 + np.exp(-(a.copy() + p)))
        a = a - 0.5 * (p - 0.25)
    return a


def not_read_again(a: Any) -> Any:
    top = a.copy() * 0.5 + a.copy() * 2.0
    bottom = a.copy() * 3.0 + a.copy() * 4.0
    return top * 0.25 + bottom * 0.75


LARGE = np.arange(40_000.0).reshape(200, 200)


def temporaries_before_an_unknown_call(a: Any) -> Any:
    return np.sqrt(LARGE) - np.sqrt(LARGE) * min([a[0]], key=abs)


def of_two_shapes(a: Any) -> Any:
    a % 3.0
    return np.sqrt(LARGE) + 1.0


def of_two_shapes_the_wider_first(a: Any) -> Any:
    LARGE % 3.0
    return np.sqrt(a) + 1.0


PROGRAMS = [
    old_value_of_a_variable,
    whole_numbers,
    rolled,
    used_after,
    not_read_again,
    temporaries_before_an_unknown_call,
    of_two_shapes,
    of_two_shapes_the_wider_first,
]


@pytest.mark.parametrize("size", [3_000, 50_000])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_no_more_than_eager(program: Callable[..., Any], size: int) -> None:
    a = np.linspace(1.0, 9.0, size)
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(program)
        for _ in range(8):
            assert jitted(a).tobytes() == program(a).tobytes()
        assert jitted.stats["kernel_launches"] > 0
        assert peak(jitted, a) <= 1.05 * peak(program, a) + 4096


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_sizes_that_change(program: Callable[..., Any]) -> None:
    with ds.config(background=False, step_aside=False):
        jitted = ds.jit(store=False)(program)
        for size in [40_000, 50, 3_000, 40_000, 9_000, 70_000, 3_000] * 3:
            a = np.linspace(1.0, 9.0, size)
            assert jitted(a).tobytes() == program(a).tobytes()


def test_tracemalloc_walks_the_frames_of_exits(tmp_path: Path) -> None:
    """While a recorder takes hold of a frame that an exit has built, the frame already knows what called it."""
    loaded = load(program_of("num: relaxed(LARGE, <num>)[1, -1]"), str(tmp_path))
    expected, mismatches = compare_engines(loaded, [Engine.COMPILED, Engine.STEPPED], load_backend())
    assert len(expected.peaks) == len(expected.observations)
    assert not mismatches, describe_all(mismatches)


def divides(a: Any, log: Any) -> Any:
    x = step = a
    for k in range(5):
        step = (x * 2.0 - k) / (x - 3.0)
        x = x - step / (k - 2.0)
        old = np.abs(step / x)
        log.append(float(old.sum()) > 0)
    return x, step


@pytest.mark.parametrize("size", [40, 5_000, 50_000])
@pytest.mark.parametrize("mode", ["ignore", "warn", "raise"])
def test_flags_that_come_up_in_a_part(size: int, mode: str) -> None:
    def run(a: Any, log: Any) -> Any:
        with np.errstate(all=mode):  # type: ignore[arg-type]
            return divides(a, log)

    for special in (0.0, 3.0):
        a = np.full(size, special)
        check(run, (a, []))
        check(divides, (a, []))


def test_a_warning_in_a_part_shows_the_variables_of_its_time() -> None:
    seen: list[Any] = []

    def show(*_: Any, **__: Any) -> None:
        frame = sys._getframe(1)
        while frame.f_code is not divides.__code__:
            assert frame.f_back is not None
            frame = frame.f_back
        held = {
            name: np.copy(frame.f_locals[name]).tobytes() for name in ("x", "step", "old") if name in frame.f_locals
        }
        seen.append((frame.f_lineno, frame.f_locals["k"], held))

    a = np.linspace(2.0, 3.0, 40_000)
    with warnings.catch_warnings(), ds.config(background=False, step_aside=False):
        warnings.simplefilter("always")
        warnings.showwarning = show
        divides(a, [])
        expected, seen = seen, []
        jitted = ds.jit(store=False)(divides)
        for _ in range(5):
            jitted(a, [])
            assert seen == expected
            seen.clear()


@pytest.mark.parametrize(
    "view", ["LARGE", "LARGE[()]", "LARGE[:]", "LARGE[::-1]", "LARGE[:, :] + LARGE[()]", "LARGE[None][0]"]
)
def test_views_and_globals_do_not_count(view: str) -> None:
    """They have no memory that eager would drop: an operator of a dying array and a view makes no new one."""
    names: dict[str, Any] = {"LARGE": np.arange(40_000.0).reshape(200, 200)}
    exec(f"def f(b): return LARGE * 1 + all(b) - {view}", names)
    with stepped(kernels=True):
        jitted = ds.jit(store=False)(names["f"])
        for _ in range(4):
            jitted([])
        assert peak(jitted, []) <= peak(names["f"], []) + 2_000


def test_a_frame_kept_by_a_warning_has_what_is_not_read_again() -> None:
    frames: list[Any] = []

    def divided(a: Any) -> Any:
        first = 1.0 / (a - 2.0)
        second = first * 2.0 + a
        return second - 1.0

    def show(*_: Any, **__: Any) -> None:
        frame = sys._getframe(1)
        while frame.f_code is not divided.__code__:
            assert frame.f_back is not None
            frame = frame.f_back
        frames.append(frame)

    calm, wild = np.linspace(3.0, 4.0, 300), np.linspace(2.0, 3.0, 300)
    with warnings.catch_warnings(), stepped(kernels=True):
        warnings.simplefilter("always")
        warnings.showwarning = show
        jitted = ds.jit(store=False)(divided)
        for a in [calm, calm, calm, wild, wild, calm, wild]:
            for function in (divided, jitted):
                frames.clear()
                function(a)
                left = [{name: value.tobytes() for name, value in frame.f_locals.items()} for frame in frames]
                if function is divided:
                    expected = left
            assert left == expected
