"""Functions made anew, or given, in each call: what is called in their place is shared by all with their code."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

from .support import check_source, counting, stepped
from .test_companions import rounds
from .test_companions_loops import companions, settles
from .test_recursion import both, outcome

SEARCH = """
    def f(adjacent):
        seen, order = [False] * len(adjacent), []

        def visit(u, depth=0):
            seen[u] = True
            for v in adjacent[u]:
                if not seen[v]:
                    visit(v, depth=depth + 1) if v % 3 == 0 else visit(v, depth + 1)
            order.append((u, depth))

        for s in range(len(adjacent)):
            if not seen[s]:
                visit(s)
        return order
"""
QUEENS = """
    def f(n):
        columns, found = [0] * n, []

        def safe(row, column):
            for r in range(row):
                if columns[r] == column or abs(columns[r] - column) == row - r:
                    return False
            return True

        def place(row):
            if row == n:
                found.append(tuple(columns))
                return
            for column in range(n):
                if safe(row, column):
                    columns[row] = column
                    place(row + 1)

        place(0)
        return found
"""
NUMBERS = """
    def f(n):
        calls = 0

        def fib(k):
            return k if k < 2 else fib(k - 1) + fib(k - 2)

        def counted(k):
            nonlocal calls
            calls += 1
            return 1 if k <= 0 else counted(k - 1) + counted(k - 3)

        return fib(n), counted(n), calls, (lambda m: fib(m))(n // 2)
"""
FAILS = """
    def f(items, log, at):
        def down(k):
            log.append([sys._getframe(i).f_code.co_name for i in range(2)] if k == at else k)
            if k >= len(items):
                raise ValueError(k)
            try:
                return items[k] + down(k + 1)
            except TypeError as error:
                log.append(str(error))
                return 0
            finally:
                log.append(-k)

        def loop(xs):
            total = 0
            for x in xs:
                total += 1 / x
            return total

        try:
            first = down(0)
        except ValueError as error:
            first = error.args
        return first, loop(items)
"""
GIVEN = """
    def scaled(by):
        def apply(xs, start=0.0):
            for x in xs:
                start += x * by
            return start
        return apply

    def least(xs):
        best = xs[0]
        for x in xs:
            best = x if x < best else best
        return best

    def integral(g, a, b, n):
        total = 0.0
        for k in range(n):
            total += g(a + (b - a) * (k + 0.5) / n)
        return total * (b - a) / n

    def f(xs, n):
        ways = [scaled(2.0), least, scaled(0.5), max]
        out = [way(xs) for way in ways for _ in range(2)]
        for k in range(n):
            way = ways[k % 4]
            out.append(way(xs) if k % 4 else way(xs, start=k))
        return out, integral(lambda t: t * t, 0.0, 1.0, n), integral(lambda t: sum(xs[:3]) * t, 0.0, 1.0, n)
"""
REBOUND = """
    def f(n, how):
        def step(k):
            nonlocal step
            if k == 0:
                return []
            if k == n // 2:
                change(how)
            return [k] + step(k - 1)

        def other(k):
            return [-k] + (step(k - 1) if k > 1 else [])

        original = step

        def change(how):
            nonlocal step
            if how == 1:
                step = other
            elif how == 2:
                step.__code__ = (lambda k: [k, other(k)] if other else None).__code__
            elif how == 3:
                step.__defaults__ = (7,)

        return step(n), original is step
"""
CELLS = """
    def f(make, n):
        held = make()

        def walk(k):
            for i in range(k):
                if held is None:
                    return -1
            return k + walk(k - 1) if k else 0

        return [walk(n) for _ in range(3)]
"""
WITHIN = """
    def f(grid):
        rows, columns = len(grid), len(grid[0])
        label = [[0] * columns for _ in range(rows)]

        def fill(i, j, k):
            if i < 0 or j < 0 or i >= rows or j >= columns or not grid[i][j] or label[i][j]:
                return 0
            label[i][j] = k
            return 1 + fill(i + 1, j, k) + fill(i - 1, j, k) + fill(i, j + 1, k) + fill(i, j - 1, k)

        sizes = []
        for i in range(rows):
            for j in range(columns):
                size = fill(i, j, len(sizes) + 1)
                if size:
                    sizes.append(size)
        return sizes, label
"""


def graph(n: int) -> list[list[int]]:
    return [[(i * 7 + 1) % n, (i * 3 + 2) % n, (i + 1) % n] for i in range(n)]


def squares(n: int) -> list[list[bool]]:
    return [[(i * j * 7 + i) % 5 != 0 for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(
    ("source", "args", "names"),
    [
        (SEARCH, (graph(60),), {"f.<locals>.visit"}),
        (QUEENS, (5,), {"f.<locals>.place"}),
        (NUMBERS, (9,), {"f.<locals>.fib", "f.<locals>.counted"}),
        (WITHIN, (squares(9),), {"f.<locals>.fill"}),
        (GIVEN, ([1.5, -2.0, 3.25] * 30, 90), {"scaled.<locals>.apply", "integral"}),
    ],
)
def test_they_are_replayed(source: str, args: tuple[Any, ...], names: set[str]) -> None:
    jitted = rounds(source, "f", lambda: args)
    assert names <= set(companions(jitted)), jitted.explain()
    settles(jitted, *args)


def test_a_method_that_calls_anothers_of_its_name_is_gone_through() -> None:
    source = """
    class Stack:
        def __init__(self):
            self.items = []

        def pop(self):
            return self.items.pop()

        def f(self, n):
            for k in range(n):
                self.items.append(k)
                if k % 3 == 2:
                    self.items.append(self.pop() + self.pop())
            return self.items

    def f(n):
        return Stack().f(n)
    """
    jitted = rounds(source, "f", lambda: (90,))
    settles(jitted, 90)
    pop = companions(jitted).get("Stack.pop")
    assert pop is None or pop.stats["calls"] < 10, jitted.explain()


@pytest.mark.parametrize("items", [[1, 2, 3] * 8, [1, 2, "x", 4] * 3, [2, 0, 1], []])
def test_exceptions_frames_and_finally(items: list[Any]) -> None:
    rounds(FAILS, "f", lambda: (items, [], 4))


@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_the_name_or_the_function_changes_on_the_way(how: int) -> None:
    plain, jitted = both(REBOUND, "f", alone=True)
    with stepped():
        for turn in range(12):
            now = how if turn % 4 == 3 else 0
            assert outcome(jitted, 9, now) == outcome(plain, 9, now), jitted.explain()


def test_what_it_closes_over_may_change_its_type() -> None:
    source = """
    def f(table, n):
        def total(k):
            out = table[0]
            for i in range(k):
                out = out + table[i % len(table)]
            return out if k == 0 else total(k - 1) + out

        return total(n)
    """
    plain, jitted = both(source, "f", alone=True)
    kinds: list[Any] = [[1, 2, 3], [0.5, 1.5], np.arange(4), ("a", "b"), [1, 2.5, True], np.linspace(0, 1, 3)]
    with stepped():
        for turn in range(24):
            table = kinds[turn % len(kinds)]
            assert repr(outcome(jitted, table, 6)) == repr(outcome(plain, table, 6)), (table, jitted.explain())


def test_what_a_cell_holds_dies_with_the_call() -> None:
    class Held:
        pass

    plain, jitted = both(CELLS, "f", alone=True)
    with stepped():
        for function in [plain, *[jitted] * 12]:
            made: list[weakref.ref[Any]] = []

            def make(made: list[weakref.ref[Any]] = made) -> Held:
                held = Held()
                made.append(weakref.ref(held))
                return held

            assert function(make, 7) == plain(Held, 7)
            gc.collect()  # a function that closes over itself is a cycle
            assert made[0]() is None


def test_ten_thousand_replays_keep_nothing() -> None:
    _, jitted = both(SEARCH, "f", alone=True)
    adjacent = graph(5)
    with stepped():
        for _ in range(40):
            jitted(adjacent)
        gc.collect()
        before = len(gc.get_objects())
        references = sys.getrefcount(adjacent)
        for _ in range(10_000):
            jitted(adjacent)
        gc.collect()
        assert len(gc.get_objects()) < before + 60
        assert sys.getrefcount(adjacent) == references


def test_as_deep_as_the_interpreter_goes() -> None:
    source = """
    def f(n):
        def down(k):
            return 0 if k == 0 else 1 + down(k - 1)
        return down(n)
    """
    plain, jitted = both(source, "f", alone=True)
    with stepped():
        for n in [5, 50, 300, 5, 100_000, 300, 100_000]:
            mine, theirs = outcome(jitted, n), outcome(plain, n)
            assert mine == theirs if n < 1000 else mine[0] is theirs[0] is RecursionError


def test_two_threads_call_functions_of_one_code() -> None:
    plain, jitted = both(WITHIN, "f", alone=True)
    wanted = {n: plain(squares(n)) for n in (5, 8)}
    wrong: list[int] = []

    def run(n: int) -> None:
        for _ in range(60):
            if jitted(squares(n)) != wanted[n]:
                wrong.append(n)

    with stepped():
        threads = [threading.Thread(target=run, args=(n,)) for n in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_its_jitted_function_takes_the_function_first() -> None:
    jitted = rounds(NUMBERS, "f", lambda: (6,))
    fib = next(c for c in jitted._jitted.companions() if "fib" in repr(c)) if hasattr(jitted, "_jitted") else None
    found = fib or next(c for c in jitted.companions() if "fib" in repr(c))
    with pytest.raises(TypeError, match="first argument"):
        found(3)
    assert found(lambda k: k + 1, 3) == 4


def test_the_first_call_records_them() -> None:
    _, jitted = both(QUEENS, "f", alone=True)
    with stepped():
        jitted(6)
        assert companions(jitted)["f.<locals>.place"].traces, jitted.explain()
        with counting(jitted) as grown:
            jitted(6)
        assert grown["replays"] > 0


def test_switched_off_inside() -> None:
    plain, jitted = both(SEARCH, "f", alone=True)
    adjacent = graph(30)
    with stepped():
        for turn in range(8):
            if turn % 2:
                with ds.disabled():
                    assert jitted(adjacent) == plain(adjacent)
            else:
                assert jitted(adjacent) == plain(adjacent)


@pytest.mark.parametrize(
    ("source", "call"),
    [(NUMBERS, "7,"), (QUEENS, "5,"), (GIVEN, "[1.5, -2.0, 3.25] * 9, 9"), (SEARCH, "[[1, 2], [2], [0, 3], []],")],
)
def test_every_engine_and_a_second_process_agree(source: str, call: str) -> None:
    text = inspect.cleandoc(source).replace("def f(", "def entry(")
    check_source(text, f"def calls():\n    for _ in range(6):\n        yield (({call}), {{}})\n")
