"""Functions with every kind of block: branches, loops, handlers, context managers. See hook_programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

Outcome = Any


def handled() -> str | None:
    """The type of the exception being handled, as a program sees it."""
    exception = sys.exc_info()[1]
    return None if exception is None else type(exception).__name__


class Manager:
    """A context manager that writes down what it is told, and may swallow exceptions."""

    def __init__(self, log: list[Any], swallow: bool = False) -> None:
        self.log = log
        self.swallow = swallow

    def __enter__(self) -> Manager:
        self.log.append("enter")
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        self.log.append(("exit", kind and kind.__name__, handled()))
        return self.swallow


def nothing() -> None:
    pass


def arithmetic(a: int, b: float) -> Outcome:
    c = a + b * 2 - a // 3 + a % 5 - b / 4 + a**2
    d = (a << 3) | (a >> 1) & ~a ^ 5
    c += a
    c *= 2
    return (
        c,
        d,
        -c,
        not d,
        a < b,
        a == b,
        a is None,
        a is not b,
        a in (1, 2),
        a not in [1, 2],
        a < 5 < 7,
        a and b,
        a or b,
    )


def branches(n: int) -> Outcome:
    out = []
    if n > 3 and n % 2 == 0 or n == 1:
        out.append("a")
    elif not n:
        out.append("b")
    else:
        out.append("c")
    value = "x" if n is None else "y" if n else "z"
    while True:
        n -= 1
        if n < 0:
            break
        if n % 2:
            continue
        out.append(n)
    else:
        out.append("never")
    return out, value


def loops(n: int) -> Outcome:
    out = []
    for i in range(n):
        for j, c in enumerate("ab"):
            if i == 1:
                continue
            if j == 1 and i == 2:
                break
            out.append((i, c))
        else:
            out.append(i)
    else:
        out.append("done")
    for key, value in {"k": 1}.items():
        out.append((key, value))
    return out


def handlers(x: int) -> Outcome:
    out = []
    try:
        try:
            out.append(1)
            raise ValueError(x)
        except KeyError:
            out.append("no")
        finally:
            out.append(handled())
    except ValueError as error:
        out.append(str(error))
        try:
            raise KeyError(1)
        except (IndexError, KeyError) as second:
            out.append((type(second.__context__).__name__, handled()))
        out.append(handled())
    except Exception:
        out.append("no")
    else:
        out.append("no")
    out.append(handled())
    return out


def reraised(x: int) -> Outcome:
    out: list[Any] = []
    try:
        try:
            try:
                raise ValueError(x)
            except ValueError as error:
                out.append(handled())
                raise
            finally:
                out.append(handled())
        except ValueError as error:
            raise KeyError(2) from error
    except KeyError as error:
        out.append((type(error.__cause__).__name__, type(error.__context__).__name__))
    try:
        try:
            raise KeyError(x)
        except KeyError:
            raise IndexError(x) from None
    except IndexError as error:
        out.append((error.__cause__, error.__suppress_context__))
    return out


def finals(n: int) -> Outcome:
    out: list[Any] = []
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            out.append(i)
        finally:
            out.append(("finally", i, handled()))
    else:
        out.append("else")
    return out


def return_in_finally(x: int) -> Outcome:
    for i in range(3):
        try:
            try:
                x // 0
            finally:
                if i == 1:
                    return "returned", i, handled()
                continue
        except ZeroDivisionError:
            return "never"
    return None


def groups(x: int) -> Outcome:
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), TypeError(x)])
    except* ValueError as error:
        out.append(repr(error.exceptions))
    except* (KeyError, TypeError) as error:
        out.append((repr(error.exceptions), handled()))
    return out


def managers(x: int) -> Outcome:
    log: list[Any] = []
    with Manager(log) as a, Manager(log, True) as b:
        y = x + 1
        raise ValueError(y)
    with Manager(log):
        log.append(a is b)
    return log, y


def return_from_with(x: int) -> Outcome:
    log: list[Any] = []
    with Manager(log):
        for i in range(x):
            with Manager(log, True):
                if i == 1:
                    return i, log
                if i == 0:
                    raise KeyError
    return -1, log


def nested_with(x: int) -> Outcome:
    log: list[Any] = []
    try:
        with Manager(log), Manager(log):
            try:
                raise LookupError(x)
            finally:
                log.append(handled())
    except LookupError as error:
        log.append(str(error))
    return log


@contextmanager
def generated(log: list[Any]) -> Any:
    log.append("begin")
    try:
        yield 5
    finally:
        log.append("end")


def generator_manager(x: int) -> Outcome:
    log: list[Any] = []
    with generated(log) as value:
        log.append(value + x)
    return log


def counting(n: int) -> Any:
    for i in range(n):
        yield i * i


def over_generator(n: int) -> Outcome:
    total = 0
    for i in counting(n):
        total += i
        for j in counting(2):
            total += j
    return total, list(counting(n)), sum(i for i in range(n)), [*counting(2)]


PROGRAMS: list[tuple[Callable[..., Outcome], tuple[Any, ...]]] = [
    (nothing, ()),
    (arithmetic, (7, 2.5)),
    (branches, (5,)),
    (branches, (0,)),
    (loops, (4,)),
    (handlers, (1,)),
    (reraised, (1,)),
    (finals, (5,)),
    (finals, (2,)),
    (return_in_finally, (1,)),
    (groups, (3,)),
    (managers, (1,)),
    (return_from_with, (3,)),
    (nested_with, (1,)),
    (generator_manager, (1,)),
    (over_generator, (3,)),
]
