"""Functions of numbers that call themselves run as machine code (replay/recursion); results and errors are eager's."""

from __future__ import annotations

import random
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds

SOURCE = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))

def hanoi(n, source, target, spare):
    if n == 0:
        return 0
    return hanoi(n - 1, source, spare, target) + 1 + hanoi(n - 1, spare, target, source)

def tak(x, y, z):
    if y >= x:
        return z
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))

def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half

def collatz(n):
    return 0 if n == 1 else 1 + collatz(3 * n + 1 if n & 1 else n >> 1)

def partitions(n, m):
    if n == 0:
        return 1
    if n < 0 or m == 0:
        return 0
    return partitions(n - m, m) + partitions(n, m - 1)

def integral(a, b, n):
    if n == 0:
        return (b - a) * (a * a + b * b) * 0.5
    middle = (a + b) / 2
    return integral(a, middle, n - 1) + integral(middle, b, n - 1)

def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)

def total(n):
    return 0 if n == 0 else n + total(n - 1)

def mixed(n, d):
    if n <= 0:
        return -n // 7 + (~n ^ 5) % -3 + (n << 2) - (n >> 1)
    return mixed(n - 1, d) * 3 // d - mixed(n - 3, d) % 11

def quotient(n, d):
    return 1.5 if n == 0 else quotient(n - 1, d) / (n - d)

def later(n, a):
    small = n < 2
    b = a - n
    if small:
        return b
    return later(n - 1, b) + later(n - 2, a)

def even(n, flag):
    return flag if n == 0 else even(n - 1, not flag)

def inner(n):
    return 1 if n == 0 else inner(n - 1) + outer(n - 1)

def outer(n):
    return 2 if n == 0 else inner(n - 1)
"""
CALLS = [
    ("fib", (17,)),
    ("ackermann", (2, 9)),
    ("hanoi", (8, "a", "b", "c")),
    ("tak", (9, 6, 3)),
    ("tak", (1009, 1006, 1003)),
    ("power", (1.0001, 5000)),
    ("collatz", (27,)),
    ("partitions", (16, 16)),
    ("integral", (0.0, 1.0, 7)),
    ("factorial", (18,)),
    ("factorial", (40,)),
    ("total", (150,)),
    ("mixed", (18, 5)),
    ("mixed", (14, -4)),
    ("quotient", (60, 100)),
    ("even", (77, True)),
    ("later", (15, 3)),
    ("later", (14, 900)),
    ("inner", (12,)),
]


def modules() -> tuple[dict[str, Any], dict[str, Any]]:
    plain, jitted = {}, {"jit": ds.jit}
    exec(compile(SOURCE, "plain", "exec"), plain)
    exec(compile(SOURCE.replace("def ", "@jit\ndef "), "jitted", "exec"), jitted)
    return plain, jitted


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return repr(function(*args))
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


@pytest.mark.parametrize("step_aside", [False, True])
@pytest.mark.parametrize(("name", "args"), CALLS)
def test_results(name: str, args: tuple[Any, ...], step_aside: bool) -> None:
    plain, jitted = modules()
    with ds.config(step_aside=step_aside):
        want = outcome(plain[name], *args)
        for _ in range(12):
            assert outcome(jitted[name], *args) == want
        smaller = (max(args[0] - 1, 0), *args[1:]) if isinstance(args[0], int) else args
        assert outcome(jitted[name], *smaller) == outcome(plain[name], *smaller)


def test_errors_deep_inside() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        for _ in range(12):
            for n in (9, 5, 60):
                assert outcome(jitted["quotient"], n, 3) == outcome(plain["quotient"], n, 3)
                assert outcome(jitted["mixed"], n % 17, 0) == outcome(plain["mixed"], n % 17, 0)


def test_the_recursion_limit_is_the_interpreters() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        for _ in range(10):
            assert jitted["total"](100) == 5050
        limit = sys.getrecursionlimit()
        for depth in (limit // 2, limit - 200, limit + 10, 10 * limit):
            want, have = outcome(plain["total"], depth), outcome(jitted["total"], depth)
            assert have == want if isinstance(want, str) else have[0] is want[0]


def test_other_types_come() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        for n in (15, 15, 15, 15.0, True, 15, 2**70, 3.5, 15):
            args = (0, n) if n == 2**70 else (2, 3) if n is True else (1, n)
            assert outcome(jitted["ackermann"], *args) == outcome(plain["ackermann"], *args)
            if n != 2**70:
                assert outcome(jitted["fib"], n) == outcome(plain["fib"], n)


def test_what_is_given_back_is_the_object_that_was_given() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        for _ in range(40):
            x, y, z = 10**9 + 3, 10**9 + 1, 10**9 + 2
            assert jitted["tak"](x, x, z) is z
            assert jitted["tak"](x, y, z) == plain["tak"](x, y, z)


CONSTANTS = """
@jit
def ends(n, x):
    if n < 1:
        return 1000 if x else 2.5
    return ends(n - 1, x)

@jit
def hands_on(n, x):
    if n < 1:
        return x
    return hands_on(n - 1, 70000)

@jit
def same(n):
    found = []
    for x in (1, 1, 1):
        a, b = ends(n, x), ends(n + 1, x)
        c, d = hands_on(n, n), hands_on(n + 1, x)
        found.append((a is b, c is d))
    return found
"""


def test_constants_are_one_object() -> None:
    plain, jitted = {"jit": lambda function: function}, {"jit": ds.jit(store=False)}
    exec(CONSTANTS, plain)
    exec(CONSTANTS, jitted)
    with ds.config(step_aside=False, hot_loop=1, hot_exit=1):
        for n in (5, 6, 7, 8, 9, 10) * 2:
            assert jitted["same"](n) == plain["same"](n) == [(True, True)] * 3


def test_a_name_that_changes() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        for _ in range(20):
            jitted["fib"](15)
        calls = []
        was = jitted["fib"]
        jitted["fib"] = lambda n: calls.append(n) or 1
        assert was(10) == 2 and calls == [9, 8]
        jitted["fib"] = was
        assert was(15) == plain["fib"](15)


def test_code_that_changes() -> None:
    plain, jitted = modules()
    with ds.config(step_aside=False):
        function = jitted["total"]
        for _ in range(20):
            function(90)
        function.__wrapped__.__code__ = (lambda n: 0 if n == 0 else 2 * n + total(n - 1)).__code__  # noqa: F821
        assert function(90) == 2 * plain["total"](90)


def test_signals_are_handled_meanwhile() -> None:
    plain, jitted = modules()
    seen: list[types.FrameType | None] = []
    before = signal.signal(signal.SIGALRM, lambda _, frame: seen.append(frame))
    try:
        with ds.config(step_aside=False):
            jitted["fib"](18)
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
            for _ in range(20):
                jitted["fib"](22)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert jitted["fib"](22) == plain["fib"](22)
    assert all(frame is not None for frame in seen)


def test_threads_with_small_stacks() -> None:
    plain, jitted = modules()
    found: list[Any] = []

    def work() -> None:
        found.append([outcome(jitted["total"], n) for n in (20, 30, 40) * 5])

    before = threading.stack_size(
        64 << 10 if not hasattr(sys, "gettotalrefcount") else 1 << 20
    )  # debug builds ask for more
    try:
        with ds.config(step_aside=False):
            for _ in range(3):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
    finally:
        threading.stack_size(before)
    assert found == [[outcome(plain["total"], n) for n in (20, 30, 40) * 5]] * 3


class Written:
    """A function of numbers that calls itself, at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def f(n, a, b):"]
        self.numbers = ["n", "a", "b"]
        self.truths: list[str] = []
        self.body(1, 2)
        self.lines.append(f"    return {self.number(1)} % 1009 + f(n - 1, {self.argument()}, {self.argument()})")

    def number(self, depth: int) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.25:
            return self.random.choice([*self.numbers, "1", "3", "-2", "n"])
        if pick < 0.35:
            return f"{self.random.choice(['-', '+', '~'])}{self.number(0)}"
        if pick < 0.45:
            return f"({self.number(depth - 1)} if {self.truth(depth - 1)} else {self.number(depth - 1)})"
        operator = self.random.choice(["+", "-", "*", "//", "%", "&", "|", "^", ">>", "<<"])
        return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"

    def truth(self, depth: int) -> str:
        pick = self.random.random()
        if self.truths and pick < 0.3:
            return self.random.choice(self.truths)
        if pick < 0.45:
            return f"not {self.number(0)}"
        if depth > 0 and pick < 0.6:
            return f"({self.truth(depth - 1)} {self.random.choice(['and', 'or'])} {self.truth(depth - 1)})"
        return f"{self.number(depth)} {self.random.choice(['<', '<=', '==', '!=', '>', '>='])} {self.number(depth)}"

    def argument(self) -> str:
        return self.random.choice(["a", "b", "a + 1", "b - a", self.number(1) + " & 1023", "n"])

    def body(self, indent: int, depth: int) -> None:
        space = "    " * indent
        if indent == 1:
            self.lines.append(f"{space}if n < {self.random.choice([1, 2])}:\n{space}    return {self.number(2)}")
        for _ in range(self.random.randint(1, 4)):
            pick = self.random.random()
            if pick < 0.4:
                name = f"v{len(self.numbers)}"
                self.lines.append(f"{space}{name} = {self.number(2)}")
                self.numbers.append(name)
            elif pick < 0.7:
                name = f"t{len(self.truths)}"
                self.lines.append(f"{space}{name} = {self.truth(1)}")
                self.truths.append(name)
            elif depth > 0:
                known = len(self.numbers), len(self.truths)
                self.lines.append(f"{space}if {self.truth(1)}:")
                self.body(indent + 1, depth - 1)
                calls = f"f(n - {self.random.choice([1, 2])}, {self.argument()}, {self.argument()})"
                self.lines.append(
                    f"{space}    return {self.random.choice([self.number(2), calls, f'{calls} - {calls}'])}"
                )
                del self.numbers[known[0] :], self.truths[known[1] :]
            else:
                self.lines.append(f"{space}b = {self.number(1)} & 255")


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed: int) -> None:
    source = "\n".join(Written(seed).lines)
    plain: dict[str, Any] = {}
    jitted: dict[str, Any] = {"jit": ds.jit(store=False)}
    exec(source, plain)
    exec("@jit\n" + source, jitted)
    with ds.config(step_aside=False, hot_loop=1, hot_exit=1):
        for n, a, b in (
            (3, 5, 2),
            (7, 5, 2),
            (9, -4, 11),
            (8, 0, 1),
            (10, 100, 3),
            (9, 7, 7),
            (6, 2**40, -3),
            (9, 2.5, 3),
            (8, 5, 2),
        ):
            want = outcome(plain["f"], n, a, b)
            assert outcome(jitted["f"], n, a, b) == want, source
            assert outcome(jitted["f"], n, a, b) == want, source
