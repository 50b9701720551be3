"""Loops over generators: what one does up to its next yield is in the trace, and its frame is where eager has it."""

from __future__ import annotations

import gc
import sys
import textwrap
import threading
import weakref
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

from .generator_programs import PROGRAMS
from .support import counting, run_python, stepped
from .test_recursion import both, outcome

FUNCTIONS = [(name, "f") for name in PROGRAMS] + [
    ("caught inside", "g"),
    ("delegating", "g"),
    ("asked for the next one", "raised"),
]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_as_in_eager(name: str, function: str) -> None:
    plain, jitted = both(PROGRAMS[name], function, alone=True, np=np, sys=sys)
    with stepped():
        for n in (40, 40, 41, 3, 40, 12, 40, 0, 5, 40, 40, 41):
            assert outcome(jitted, n) == outcome(plain, n), f"{n}\n{jitted.explain()}"
        ds.wait()
        for n in (40, 41, 3, 40, 12, 40, 0, 6):
            assert outcome(jitted, n) == outcome(plain, n), f"{n}\n{jitted.explain()}"


def test_they_are_recorded() -> None:
    _, jitted = both(PROGRAMS["neighbours"], alone=True)
    with stepped():
        for _ in range(16):
            jitted(4)
        with counting(jitted) as grown:
            jitted(4)
    assert (grown["replays"], grown["exits"], grown["recordings"]) == (1, 0, 0), jitted.explain()
    assert "guard_waiting" in str(jitted.explain())


def test_nothing_is_kept() -> None:
    _, jitted = both(PROGRAMS["in one another"], alone=True)
    jitted(9)
    for _ in range(30):
        jitted(9)
    ds.wait()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(10_000):
        jitted(5)
    gc.collect()
    assert len(gc.get_objects()) < before + 100


def test_code_that_is_assigned_to() -> None:
    plain, jitted = both(PROGRAMS["sums"], alone=True)
    with stepped():
        for _ in range(8):
            assert jitted(20) == plain(20)
        for f in (plain, jitted):

            def count(n: int, step: int = 1) -> Any:
                yield n
                yield step

            f.__globals__["count"].__code__ = count.__code__
        for _ in range(8):
            assert jitted(20) == plain(20) == 20 + 1 - 20 - 3


def test_another_thread_asks_a_generator_that_runs() -> None:
    source = """
    def slow(n, asked):
        for x in range(n):
            asked(x)
            yield x

    def f(n):
        log, own = [], []

        def asked(x):
            if x % 5:
                return

            def other():
                try:
                    next(own[0])
                except ValueError as e:
                    log.append(str(e))

            t = threading.Thread(target=other)
            t.start()
            t.join()

        own.append(slow(n, asked))
        t = 0
        for v in own[0]:
            t += v
        return t, log
    """
    plain, jitted = both(source, alone=True, threading=threading)
    with stepped():
        for n in (11, 11, 11, 11, 3, 11):
            assert outcome(jitted, n) == outcome(plain, n)


@pytest.mark.parametrize("tool", ["settrace", "setprofile"])
def test_tools_that_are_switched_on_within(tool: str) -> None:
    source = """
    def switching(n, log):
        def note(frame, event, arg):
            if frame.f_code.co_name in ("switching", "f"):
                log.append((event, frame.f_code.co_name, frame.f_lineno))
            return note

        for x in range(n):
            if x == n - 3:
                switch(note)
            yield x
        switch(None)

    def f(n):
        log, t = [], 0
        for v in switching(n, log):
            t += v
        return t, log
    """
    plain, jitted = both(source, alone=True, switch=getattr(sys, tool))
    with stepped():
        for n in (9, 9, 9, 9, 5, 9):
            expected = outcome(plain, n)
            assert outcome(jitted, n) == expected


def test_a_variable_assigned_to_through_its_frame() -> None:
    source = """
    def open_to(n, poke):
        x = 0
        while x < n:
            poke()
            x += 1
            yield x

    def f(n):
        def poke():
            frame = sys._getframe(1)
            if frame.f_locals["x"] == 4:
                write(frame, "x", 6)

        return [v for v in open_to(n, poke)]
    """

    def write(frame: Any, name: str, value: Any) -> None:
        frame.f_locals[name] = value

    plain, jitted = both(source, alone=True, sys=sys, write=write)
    with stepped():
        for n in (9, 9, 9, 9, 3, 9):
            assert outcome(jitted, n) == outcome(plain, n)


def test_what_a_generator_yields_dies_with_the_body() -> None:
    source = """
    def made(n):
        for k in range(n):
            yield Thing(k)

    def f(n):
        refs = []
        for x in made(n):
            refs.append(weakref.ref(x))
            del x
            refs.append(refs[-1]() is None)
        return refs[1::2], [r() is None for r in refs[::2]]
    """
    plain, jitted = both(source, alone=True, weakref=weakref, Thing=type("Thing", (), {"__init__": lambda s, k: None}))
    with stepped():
        for n in (6, 6, 6, 6, 2, 6):
            assert outcome(jitted, n) == outcome(plain, n)


def test_the_stack_of_a_generator_has_nulls_at_a_yield_within_a_call() -> None:
    source = """
    def h(a, b):
        return a

    def g(n):
        yield "first"
        for i in range(n):
            yield "begin"
            yield h(i, (yield -1))
            yield h((1, i), (yield i))
            yield len([i, (yield -1)])
            yield h(*(i, (yield 5)))

    def f(n):
        it = g(n)
        o = [next(it), next(it)]
        for x in it:
            o.append(x)
        return o
    """
    plain, jitted = both(source, alone=True)
    with stepped():
        for n in (4, 4, 4, 4, 2, 4, 4):
            assert outcome(jitted, n) == outcome(plain, n)


def test_generators_of_the_same_code_with_other_globals() -> None:
    text = "def g(n):\n global Z\n for i in range(n):\n  Z = Z + 1\n  yield Z\n"

    def numbers(start: int, n: int) -> Any:
        space: dict[str, Any] = {"Z": start}
        exec(code, space)
        return space["g"](n)

    code = compile(text, "m", "exec")
    source = """
    def f(it):
        return [x for x in it]
    """
    _, jitted = both(source, alone=True)
    with stepped():
        for _ in range(8):
            assert jitted(numbers(0, 3)) == [1, 2, 3]
            assert jitted(numbers(100, 3)) == [101, 102, 103]


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("end", ["return b", "return Loud('r', log)", "pass"])
def test_finalisers_at_the_end_of_a_generator(end: str, looks: bool) -> None:
    source = f"""
    class Loud:
        def __init__(self, k, log):
            self.k, self.log = k, log

        def __del__(self):
            self.log.append(self.k)

    def peek(it):
        return len(it.gi_frame.f_locals)

    def g(n, log):
        a, b, c = Loud("a", log), Loud("b", log), Loud("c", log)
        for i in range(n):
            b = Loud(i, log)
            yield i
        {end}

    def f(n):
        log = []
        it = g(n, log)
        for x in it:
            if {looks} and x == n - 2:
                peek(it)
        log.append("end")
        it = None
        log.append("gone")
        return log
    """
    plain, jitted = both(source, alone=True)
    with stepped():
        for n in (4, 4, 4, 4, 2, 4, 4):
            assert outcome(jitted, n) == outcome(plain, n)


def test_memory_that_ends_while_a_generator_runs() -> None:
    testcapi = pytest.importorskip("_testcapi")
    source = """
    def g(n):
        i = 0
        while i < n:
            yield (i, [i])
            i += 1

    def f(n, keep):
        t = 0.0
        keep.append(g(n))
        for x in keep[0]:
            t += x[0]
        return t
    """
    _, jitted = both(source, alone=True)
    with stepped():
        for _ in range(8):
            jitted(50, [])
        for k in range(1, 10):
            keep: list[Any] = []
            testcapi.set_nomemory(k, k + 1)
            try:
                jitted(6, keep)
            except MemoryError:
                pass
            finally:
                testcapi.remove_mem_hooks()
            if keep:
                assert not keep[0].gi_running
                list(keep[0])


def test_a_second_process_has_the_traces(tmp_path: Any) -> None:
    source = """
        import dalsegno as ds

        def count(n):
            i = 0
            while i < n:
                yield i
                i += 1

        @ds.jit
        def f(n):
            t = 0
            for x in count(n):
                t += x
            return t

        for _ in range(8):
            assert f(50) == 1225
        ds.wait()
        print(f.stats["traces_loaded"])
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(source))
    store = tmp_path / "s.db"
    assert run_python(path, store=store) == 0
    assert run_python(path, store=store) >= 2
