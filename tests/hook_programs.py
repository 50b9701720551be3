"""Functions with every kind of block and frame, for leaving and throwing at each of their instructions.

Each returns everything that it computed, and keeps no state between calls.
"""
# ruff: noqa: F821

from __future__ import annotations

import sys
import warnings
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


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x = x
        self.y = y

    def scaled(self, by: Any, *, plus: Any = 0) -> Any:
        return self.x * by + plus


class Base:
    def method(self, x: int) -> Outcome:
        return ["base", x]

    @property
    def size(self) -> int:
        return 11


class Derived(Base):
    def method(self, x: int) -> Outcome:
        first = super().method(x + 1)

        def inside() -> Outcome:
            return self.__class__.__name__, __class__.__name__

        return first, super().size, inside(), super(Derived, self).method(x)


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


def cells(a: int, b: int) -> Outcome:
    c = a + 1

    def inner(k: int) -> Callable[[], int]:
        nonlocal c
        c += k + a

        def innermost() -> int:
            nonlocal c
            c *= 2
            return c + b

        return innermost

    f = inner(3)
    out: list[Any] = [f(), c]
    del b
    try:
        f()
    except NameError as error:
        out.append(str(error))
    return out


def make_free(q: int, w: int) -> Callable[[int], Outcome]:
    def free(x: int) -> Outcome:
        nonlocal q
        q += x

        def reader() -> int:
            return q + w + x

        return [reader(), q, (lambda: x)()]

    return free


def free_variables(x: int) -> Outcome:
    return make_free(3, 4)(x)


def comprehensions(x: int) -> Outcome:
    y = 5
    i = "kept"
    first = [i * y + x for i in range(3) if i != 1]
    second = {k: [v + y for v in range(k)] for k in range(3)}
    third = {(lambda: j)() for j in range(3)}
    closures = [(lambda: j + x) for j in range(3)]
    return first, second, sorted(third), i, [f() for f in closures]


def failing_comprehension(x: int) -> Outcome:
    i = "kept"
    try:
        out = [x // (i - 1) for i in range(3)]
    except ZeroDivisionError as error:
        return i, x, str(error), handled()
    return out


def unbound_after_comprehension(x: int) -> Outcome:
    out = [i for i in range(x)]
    try:
        i
    except NameError as error:
        return out, type(error).__name__
    return None


def matching(x: Any) -> Outcome:
    out: list[Any] = []
    for subject in ({"a": 1, "b": [1, 2, 3], "c": x}, [1, [2, 3]], ("x",), 3, Point(1, 2), "s", {"z": 0}, None):
        match subject:
            case {"a": 1, "b": [head, *tail], **rest}:
                out.append((head, tail, rest))
            case [a, [b, c]] if a == 1:
                out.append((a, b, c))
            case ("x",):
                out.append("x")
            case Point(1, y=y):
                out.append(y)
            case int(z) | float(z):
                out.append(z)
            case str() as s:
                out.append(s)
            case None:
                out.append("none")
            case _:
                out.append("other")
    return out


def calls(x: int) -> Outcome:
    point = Point(x, y=2)

    def f(a: int, b: int, *, c: int = 0, **more: int) -> Outcome:
        return a, b, c, sorted(more.items())

    return (
        f(x, b=1, c=3, d=4),
        point.scaled(2, plus=5),
        f(b=1, a=x),
        dict(a=1, **{"b": x}),
        f(*[1, 2], **dict(c=9)),
        max([3, 1], key=lambda v: -v),
        sorted("bca", key=str.upper),
        "%d" % len([x]),
    )


def every_parameter(p: int, /, a: int, b: int = 2, *args: int, k: int, d: int = 4, **more: int) -> Outcome:
    total = p + a + b + k + d + len(args)

    def reader() -> Outcome:
        return total, args, more

    return reader(), sorted(more)


def all_parameters(x: int) -> Outcome:
    return every_parameter(x, 2, 3, 4, 5, k=6, z=7, y=8), every_parameter(1, a=2, k=3)


def only_varargs(*args: Any, **more: Any) -> Outcome:
    args = (*args, 1)
    more["q"] = 2
    return args, more


def with_super(x: int) -> Outcome:
    return Derived().method(x)


def formatting(x: int) -> Outcome:
    y = "q"
    return f"{x!r:>10}{y:{x}}{x}{{}}" + "%s" % (x,) + f"{y!s}{y!a}{x + 1=}"


def unpacking(x: int) -> Outcome:
    a, (b, *c), d = x, (1, 2, 3), 4
    a, b = b, a
    items = [*c, a, *range(2)]
    table = {**{"a": 1}, "b": x}
    (e := 5)
    items[1:2] = [9]
    items[0] += 3
    del items[-1]
    first, *_ = items
    return a, b, c, d, items, table, e, first, items[::2], {*items, 3}


def containers(x: int) -> Outcome:
    s = {1, 2, x}
    table: dict[str, Any] = {"a": x, "b": 2}
    table["c"] = 1
    del table["a"]
    pair = (x, [1])
    pair[1].append(2)
    point = Point(1, 2)
    point.x += 1
    point.x = point.x * 2
    del point.y
    constant = [1, 2, 3, 4, 5, 6]
    return (
        s,
        table,
        pair,
        constant[1:x],
        point.x,
        hasattr(point, "y"),
        slice(1, x),
        (1, "a", None, 2.5, -0.0, frozenset({1})),
    )


def imports(x: int) -> Outcome:
    import json
    import os.path as path
    from math import floor as fl
    from math import sqrt

    return path.join("a", str(x)), sqrt(4), fl(2.5), json.__name__


def assertion(x: int) -> Outcome:
    try:
        assert x > 5, "no"
    except AssertionError as error:
        return str(error)
    return None


def global_names(x: int) -> Outcome:
    global COUNTER
    COUNTER = x
    COUNTER += 1
    out = COUNTER
    del COUNTER
    return out, len, [len([1])]


def local_names(x: int) -> Outcome:
    y = 2
    names = sorted(locals().items())
    z = 3
    return names, sorted(locals())


def deleted(x: int) -> Outcome:
    y = x
    del y
    try:
        return y
    except UnboundLocalError as error:
        return str(error)


def class_inside(x: int) -> Outcome:
    y = x

    class Inside:
        z = y

        def method(self) -> Outcome:
            return self.z, y, __class__.__name__

    return Inside().method()


def lambdas(x: int) -> Outcome:
    return (lambda a, b=x, *c: (a, b, c))(1), (lambda **k: k)(a=1), (lambda *, k=x: k)()


def uncaught(x: int) -> Outcome:
    y = [1]
    return y[x + 7]


def helper(y: int) -> Outcome:
    z = y + 1
    if z > 100:
        raise ValueError("boom", z)
    return z, handled(), sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno


def caught_from_helper(x: int) -> Outcome:
    before = "local"
    try:
        raise KeyError("handled")
    except KeyError:
        try:
            out = helper(x)
        except ValueError as error:
            out = ("caught", type(error.__context__).__name__, error.args)
    return out, before


def second(x: int) -> Outcome:
    try:
        return helper(x) + helper(x + 1)
    finally:
        x = 0


def chain(x: int) -> Outcome:
    total = []
    for i in range(2):
        total.append(second(x + i))
    return total


def failing_chain(x: int) -> Outcome:
    return second(99 + x)


def caller_frames(x: int) -> Outcome:
    names = []
    for depth in (0, 1):  # further out are the frames of whoever leaves this one
        names.append(
            (sys._getframe(depth).f_code.co_name, sys._getframe(depth).f_lineno, sorted(sys._getframe(depth).f_locals))
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("here", stacklevel=1)
        warnings.warn("there", stacklevel=2)
    return names, [(w.lineno, str(w.message)) for w in caught]


def looks_around(x: int) -> Outcome:
    inside = caller_frames(x)
    return inside, x


def recursive(n: int) -> Outcome:
    if n == 0:
        return 0
    return n + recursive(n - 1)


def _make_big() -> Callable[[int], Outcome]:
    """Constants, names and jumps past 255: EXTENDED_ARG everywhere."""
    lines = ["def big(x):", " s = 0"]
    lines += [f" s += x * {1000 + i}\n v{i} = s" for i in range(260)]
    lines += [" for q in range(3):", "  if q == 1:"]
    lines += [f"   s += x * {5000 + i}" for i in range(60)]
    lines += [" try:", "  s += len(str(v259)) + undefined_name"]
    lines += [" except NameError:", "  s += max(v0, v259, key=lambda v: v + x)", " return s, v259, v0"]
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile("\n".join(lines), __file__, "exec"), namespace)
    return namespace["big"]


big = _make_big()

# Programs with their arguments.
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
    (cells, (1, 2)),
    (free_variables, (5,)),
    (comprehensions, (2,)),
    (failing_comprehension, (2,)),
    (unbound_after_comprehension, (2,)),
    (matching, (1,)),
    (calls, (1,)),
    (all_parameters, (1,)),
    (only_varargs, (1, 2)),
    (with_super, (3,)),
    (formatting, (7,)),
    (unpacking, (2,)),
    (containers, (3,)),
    (imports, (1,)),
    (assertion, (1,)),
    (global_names, (3,)),
    (local_names, (1,)),
    (deleted, (1,)),
    (class_inside, (3,)),
    (lambdas, (3,)),
    (uncaught, (1,)),
    (caught_from_helper, (1,)),
    (caught_from_helper, (200,)),
    (chain, (3,)),
    (failing_chain, (4,)),
    (looks_around, (1,)),
    (recursive, (4,)),
    (big, (2,)),
]
# Python functions that the programs call, whose frames are left together with theirs.
CALLED = [helper, second, every_parameter, Derived.method, Base.method, Point.scaled, caller_frames, recursive, handled]
