"""Recursion in the machine: a jitted function that calls itself, or another one, runs inside the same replay."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds

from .support import counting, stepped


def both(source: str, name: str = "f", alone: bool = False, **names: Any) -> tuple[Callable[..., Any], Any]:
    """A function of this text twice, in spaces of their own: plain, and jitted under the name it calls itself by.

    `alone`: it is the only one, and jitted under no name, so that all it calls is plain.
    """
    spaces: list[dict[str, Any]] = [{"__name__": "programs", **names} for _ in range(2)]
    code = compile(inspect.cleandoc(source), "<recursion>", "exec")
    for space in spaces:
        exec(code, space)
    jitted = spaces[1]
    if alone:
        return spaces[0][name], ds.jit(store=False)(jitted[name])
    for key, value in list(jitted.items()):
        if isinstance(value, types.FunctionType) and value.__module__ == "programs" and not key.startswith("plain"):
            jitted[key] = ds.jit(store=False)(value)
    return spaces[0][name], jitted[name]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename == "<recursion>":
                frames.append((code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        return type(error), error.args, frames


def same(source: str, *calls: tuple[Any, ...], name: str = "f", rounds: int = 6, **names: Any) -> Any:
    plain, jitted = both(source, name, **names)
    with stepped():
        for args in calls * rounds:
            assert outcome(jitted, *args) == outcome(plain, *args), f"{args}\n{jitted.explain()}"
    return jitted


FIB = """
    def f(n):
        return n if n < 2 else f(n - 1) + f(n - 2)
"""
LIST = """
    def f(n, out):
        if n:
            out.append(n)
            f(n - 1, out)
            out.append(-n)
        return out
"""


def test_calls_of_itself_run_in_the_same_replay() -> None:
    jitted = same(FIB, (14,))
    with stepped(), counting(jitted) as grown:
        jitted(14)
    assert grown["eager_calls"] == grown["exits"] == grown["recordings"] == 0
    assert grown["calls"] == grown["replays"] > 50


def test_ints_that_do_not_fit_a_register() -> None:
    same("def f(n): return 1 if n == 0 else n * f(n - 1)", (5,), (40,), (3,), (70,))


def test_types_that_change_between_levels() -> None:
    same("def f(x, n): return x if n == 0 else f(x + (0.5 if n % 3 == 0 else 1), n - 1)", (0, 9), (0.0, 9), (True, 4))


def test_many_arguments_of_all_kinds() -> None:
    source = "def f(n, a, b, c): return 0 if n == 0 else f(n - 1, a, c, b) + 1 + f(n - 1, c, b, a)"
    same(source, (5, "a", "b", "c"), (6, 1.5, None, (1,)))


def test_the_identity_of_arguments_and_results() -> None:
    source = """
        def f(n, x, seen):
            seen.append(x)
            if n == 0:
                return x
            y = f(n - 1, x, seen)
            seen.append(y is x)
            return y
        def g(n, x):
            seen = []
            f(n, x, seen)
            return [v is x if not isinstance(v, bool) else v for v in seen]
    """
    same(source, (6, 10**6), (6, 2.5), (6, "abc"), name="g")


def test_a_number_handed_over_is_one_object() -> None:
    source = """
        def f(n, x, seen):
            seen.append(x)
            seen.append(x)
            if n:
                f(n - 1, x + 1000.5, seen)
        def g(n, x):
            seen = []
            f(n, x, seen)
            return [a is b for a, b in zip(seen[::2], seen[1::2])]
    """
    same(source, (8, 0.5), (8, 10**9), name="g")


@pytest.mark.parametrize("extra", [0, 1, 7])
def test_the_depth_of_recursion_error(extra: int) -> None:
    plain, jitted = both("def f(n): return 0 if n == 0 else 1 + f(n - 1)")

    def deepest(function: Callable[..., Any]) -> int:
        low, high = 0, 3000
        while low < high:
            middle = (low + high + 1) // 2
            try:
                function(middle)
                low = middle
            except RecursionError:
                high = middle - 1
        return low

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(300 + extra)
    try:
        with stepped():
            for _ in range(8):
                jitted(20)
            wanted = deepest(plain)
            assert deepest(jitted) == wanted
            assert jitted(20) == 20
    finally:
        sys.setrecursionlimit(old)


def test_deep_recursion_beyond_the_usual_limit() -> None:
    plain, jitted = both("def f(n): return 0 if n == 0 else 1 + f(n - 1)")
    old = sys.getrecursionlimit()
    sys.setrecursionlimit(60_000)
    try:
        with stepped():
            for _ in range(6):
                jitted(30)
            assert jitted(20_000) == 20_000
    finally:
        sys.setrecursionlimit(old)


def test_an_exception_passes_through_all_levels() -> None:
    source = """
        def f(n, d):
            if n == 0:
                return 1 // d
            x = n * 2
            return f(n - 1, d) + x
    """
    same(source, (9, 1), (9, 0), (9, 1), (2, 0))


def test_an_exception_is_caught_at_a_level() -> None:
    source = """
        def f(n, at, out):
            if n == 0:
                raise ValueError(at)
            try:
                f(n - 1, at, out)
            except ValueError as error:
                out.append((n, error.args, error.__context__))
                if n == at:
                    return out
                raise
            finally:
                out.append(n)
    """
    same(source, *[(7, at, []) for at in (3, 3, 3, 9, 3)], rounds=4)


def test_frames_seen_from_inside() -> None:
    source = """
        def plain_look():
            frame, seen = sys._getframe(1), []
            while frame is not None and frame.f_code.co_filename == '<recursion>':
                seen.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
                frame = frame.f_back
            return seen
        def f(n, k):
            half = n / 2
            if n == 0:
                return plain_look()
            got = f(n - 1, k)
            if n == k:
                got = plain_look()
            return got
    """
    same(source, (6, 0), (6, 4), (6, 6), (9, 2), sys=sys)


def test_a_kept_frame_shows_later_values() -> None:
    source = """
        def plain_keep(frames):
            frames.append(sys._getframe(1))
        def f(n, frames):
            x = n
            if n == 2:
                plain_keep(frames)
                plain_keep(frames)
            if n:
                x = f(n - 1, frames)
            y = x + n
            return y
        def g(n):
            frames = []
            return f(n, frames), [(k.f_locals['n'], k.f_locals['x'], k.f_locals.get('y')) for k in frames]
    """
    same(source, (5,), name="g", sys=sys)


def test_a_name_rebound_in_the_middle() -> None:
    source = """
        def f(n, at):
            if n == at:
                globals()['f'] = plain_other
            return n if n < 2 else f(n - 1, at) + f(n - 2, at)
        def plain_other(n, at):
            return 100 * n
        def g(n, at, keep=[]):
            keep.append(globals()['f']) if not keep else None
            globals()['f'] = keep[0]
            return f(n, at)
    """
    plain, jitted = both(source, "g")
    with stepped():
        for at in (99, 99, 99, 99, 3, 99, 5, 5, 99):
            assert jitted(8, at) == plain(8, at)


def test_code_replaced_in_the_middle() -> None:
    source = """
        def f(n, hook):
            if n == 3:
                hook()
            return n if n < 2 else f(n - 1, hook) + f(n - 2, hook)
        def plain_other(n, hook):
            return 7
    """
    plain, jitted = both(source)
    inner = jitted.__wrapped__
    codes = {plain: plain.__code__, inner: inner.__code__}
    other = plain.__globals__["plain_other"].__code__

    def replace(function: Any) -> None:
        function.__code__ = other

    with stepped():
        for round_ in range(8):
            results = []
            for function, target in ((plain, plain), (jitted, inner)):
                hook = functools.partial(replace, target) if round_ % 4 == 3 else int
                results.append(function(7, hook))
                target.__code__ = codes[target]
            assert results[0] == results[1]


def test_cleared_in_the_middle() -> None:
    source = """
        def f(n, hook):
            if n == 2:
                hook()
            return n if n < 2 else f(n - 1, hook) + f(n - 2, hook)
    """
    plain, jitted = both(source)
    with stepped():
        for round_ in range(12):
            hook = jitted.clear if round_ % 3 == 2 else (lambda: None)
            assert jitted(8, hook) == plain(8, lambda: None)


def test_tracing_switched_on_in_the_middle() -> None:
    source = """
        def f(n, hook):
            if n == 2:
                hook()
            total = n
            if n:
                total += f(n - 1, hook)
            return total
    """
    plain, jitted = both(source)

    def traced(function: Callable[..., Any]) -> list[Any]:
        events: list[Any] = []

        def trace(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code.co_filename == "<recursion>":
                events.append((event, frame.f_lineno, frame.f_locals["n"]))
            return trace

        try:
            events.append(function(5, lambda: sys.settrace(trace)))
        finally:
            sys.settrace(None)
        return events

    with stepped():
        for _ in range(8):
            assert jitted(5, lambda: None) == 15
        for _ in range(2):
            assert traced(jitted) == traced(plain)


def test_mutual_recursion() -> None:
    source = """
        def even(n):
            return True if n == 0 else odd(n - 1)
        def odd(n):
            return False if n == 0 else even(n - 1)
    """
    same(source, (10,), (11,), (40,), name="even")


def test_closures_and_methods() -> None:
    source = """
        class Tree:
            def __init__(self, n):
                self.left = Tree(n - 1) if n else None
                self.right = Tree(n - 2) if n > 1 else None
                self.n = n
        def f(tree, seen):
            if tree is None:
                return 0
            add = lambda k: k + tree.n
            seen.append(tree.n)
            return add(f(tree.left, seen)) + f(tree.right, seen)
        def g(n):
            seen = []
            return f(Tree(n), seen), seen
    """
    same(source, (5,), (7,), name="g")


def test_generators_between_the_levels() -> None:
    source = """
        def f(items):
            if not items:
                return 1
            return sum(f(items[:i]) for i in range(len(items)) if items[i] % 2) + 1
    """
    same(source, ([1, 2, 3, 5, 7],), ([2, 4, 1],))


def test_loops_with_calls_in_them() -> None:
    source = """
        def f(n, row, columns):
            if row == n:
                return 1
            ways = 0
            for column in range(n):
                if all(column != c and abs(column - c) != row - r for r, c in enumerate(columns)):
                    ways += f(n, row + 1, (*columns, column))
            return ways
    """
    same(source, (4, 0, ()), (5, 0, ()))


def test_finalisers_of_arguments() -> None:
    source = """
        class Noisy:
            def __init__(self, n, log):
                self.n, self.log = n, log
            def __del__(self):
                self.log.append((self.n, sys._getframe(1).f_code.co_name, sys._getframe(1).f_locals.get('n')))
        def f(n, noisy, log):
            noisy = None
            log.append(n)
            if n:
                f(n - 1, Noisy(n, log), log)
            log.append(-n)
        def g(n):
            log = []
            f(n, Noisy(99, log), log)
            return log
    """
    same(source, (5,), name="g", sys=sys)


def test_what_a_call_holds_dies_with_it() -> None:
    class Thing:
        pass

    source = "def f(n, thing, make): return n if n == 0 else f(n - 1, make(), make) + 1"
    _, jitted = both(source)
    made: list[weakref.ref[Thing]] = []

    def make() -> Thing:
        thing = Thing()
        made.append(weakref.ref(thing))
        return thing

    with stepped():
        for _ in range(8):
            jitted(6, None, make)
    gc.collect()
    assert made and all(reference() is None for reference in made)


@pytest.mark.parametrize("source", [FIB, LIST], ids=["numbers", "lists"])
def test_references_do_not_grow(source: str) -> None:
    _, jitted = both(source)
    out: list[int] = []
    arguments: tuple[Any, ...] = (10,) if source is FIB else (10, out)
    watched = [10**6 + k for k in range(3)]

    def turn() -> None:
        out.clear()
        jitted(*arguments)

    with stepped():
        for _ in range(50):
            turn()
        gc.collect()
        before = (sys.getallocatedblocks(), [sys.getrefcount(w) for w in watched])
        for _ in range(10_000 if source is LIST else 1_000):
            turn()
        gc.collect()
        assert sys.getallocatedblocks() - before[0] < 300
        assert [sys.getrefcount(w) for w in watched] == before[1]


def test_references_do_not_grow_with_exceptions() -> None:
    _, jitted = both("def f(n, d, x): return 1 // d if n == 0 else f(n - 1, d, x + 1.5) + 1")
    with stepped():

        def turn() -> None:
            with pytest.raises(ZeroDivisionError):
                jitted(6, 0, 2.5)

        for _ in range(50):
            turn()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(2000):
            turn()
        gc.collect()
        assert sys.getallocatedblocks() - before < 300
