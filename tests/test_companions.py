"""Plain functions that call themselves, in jitted ones: traces call a companion in their place."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np

from .support import counting, stepped
from .test_recursion import both, outcome

SORTS = """
    from dalsegno.bench.programs.recursion import partition

    def quicksort(a, low, high):
        if low < high:
            p = partition(a, low, high)
            quicksort(a, low, p - 1)
            quicksort(a, p + 1, high)

    def f(a):
        quicksort(a, 0, len(a) - 1)
        return a

    def merged(a):
        if a.size > 1:
            mid = a.size // 2
            left, right = merged(a[:mid].copy()), merged(a[mid:].copy())
            i = j = 0
            for k in range(a.size):
                if j >= right.size or (i < left.size and left[i] <= right[j]):
                    a[k] = left[i]
                    i += 1
                else:
                    a[k] = right[j]
                    j += 1
        return a
"""
FIB = """
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def f(n):
        return [fib(k) for k in range(n)], fib(n)
"""
FAILS = """
    def down(n, log, step=1):
        if n == 3:
            log.append([sys._getframe(k).f_code.co_name for k in range(3)])
        if n < 0:
            raise ValueError(n)
        try:
            return 1 + down(n - step, log)
        finally:
            log.append(n)

    def f(n, log, m=0):
        return down(n, log, step=2 - n % 2) if n < m else n
"""
DEEP = """
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    def f(n):
        return down(n)
"""


def rounds(source: str, name: str, make: Callable[[], tuple[Any, ...]], times: int = 12) -> Any:
    plain, jitted = both(source, name, alone=True, np=np, sys=sys)
    with stepped():
        for _ in range(times):
            mine, theirs = make(), make()
            told, expected = outcome(jitted, *mine), outcome(plain, *theirs)
            assert repr(told) == repr(expected), jitted.explain()
            assert repr(mine) == repr(theirs)
    return jitted


@pytest.mark.parametrize("name", ["f", "merged"])
def test_sorting_arrays_settles_in_traces(name: str) -> None:
    numbers = np.random.default_rng(0).random(300)
    jitted = rounds(SORTS, name, lambda: (numbers.copy(),))
    with stepped(), counting(jitted) as grown:
        assert jitted(numbers.copy()).tolist() == sorted(numbers.tolist())
    assert grown["exits"] == 0, jitted.explain()


def test_numbers() -> None:
    jitted = rounds(FIB, "f", lambda: (11,))
    rounds(FIB, "fib", lambda: (15,))
    with stepped(), counting(jitted) as grown:
        jitted(11)
    assert grown["exits"] == 0, jitted.explain()


@pytest.mark.parametrize("n", [5, 6])
def test_exceptions_frames_and_what_finally_blocks_do(n: int) -> None:
    rounds(FAILS, "f", lambda: (n, [], 9))
    rounds(FAILS, "down", lambda: (n, []))


def test_the_recursion_limit_is_eagers() -> None:
    rounds(DEEP, "f", lambda: (300,))
    plain, jitted = both(DEEP, "f", alone=True)
    with stepped():
        for _ in range(6):
            jitted(20)
        limit = sys.getrecursionlimit()
        for n in (limit - 200, limit + 50):
            assert outcome(jitted, n)[:2] == outcome(plain, n)[:2] if n > limit else outcome(jitted, n) == n


def test_a_name_that_comes_to_stand_for_another_function() -> None:
    _, jitted = both(FIB, "f", alone=True)
    space = jitted.__globals__
    with stepped():
        for _ in range(8):
            assert jitted(9)[1] == 34
        exec("def fib(n):\n    return 2 if n < 1 else fib(n - 1) * 2\n", space)
        for _ in range(8):
            assert jitted(9)[1] == 1024
        space["fib"].__code__ = (lambda n: n * 3).__code__
        for _ in range(8):
            assert jitted(9)[1] == 27


def test_types_of_arguments_may_change() -> None:
    plain, jitted = both(SORTS, "f", alone=True)
    with stepped():
        for _ in range(4):
            for values in ([3, 1, 2, 9, 5, 5], [2.5, 1.5, -0.0, 7.0], list("banana"), [3, 1.5, True, 2]):
                for make in (list, np.array):
                    assert outcome(jitted, make(values)).__repr__() == outcome(plain, make(values)).__repr__()


def test_companions_die_with_those_that_call_them() -> None:
    _, jitted = both(SORTS, "f", alone=True)
    space = jitted.__globals__
    with stepped():
        for _ in range(8):
            jitted(np.arange(50.0)[::-1].copy())
    alive = weakref.ref(space["quicksort"])
    jitted.clear()
    space.clear()
    del jitted
    gc.collect()
    assert alive() is None


PROGRAM = f"""
import sys
import numpy as np
import dalsegno as ds
{inspect.cleandoc(SORTS)}
jitted = ds.jit(f)
numbers = np.random.default_rng(0).random(300)
with ds.config(step_aside=False):
    for _ in range(int(sys.argv[1])):
        assert jitted(numbers.copy()).tolist() == sorted(numbers.tolist())
ds.wait()
print(jitted.stats["traces_loaded"], jitted.stats["exits"], jitted.stats["recordings"])
"""


def test_another_process_goes_on_with_the_traces(fresh_store: Any, run_python: Any) -> None:
    run_python("-c", PROGRAM, "14")
    loaded, exits, recordings = run_python("-c", PROGRAM, "2").stdout.split()
    assert int(loaded) > 0
    assert (exits, recordings) == ("0", "0")


def test_explain_tells_of_companions_too() -> None:
    jitted = rounds(SORTS, "f", lambda: (np.array([3.0, 1.0, 2.0, 0.5]),))
    shown = jitted.explain()
    (companion,) = shown.companions
    assert companion.name == "quicksort" and companion.traces
    assert "in the place of a plain function:\nquicksort (" in str(shown)
    assert "quicksort (" in shown._repr_html_()
    assert shown.to_dict()["companions"][0]["traces"] == companion.traces
    assert rounds(SORTS, "merged", lambda: (np.array([3.0, 1.0]),)).explain().companions == ()
