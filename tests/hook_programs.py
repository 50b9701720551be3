"""Functions with every kind of block and frame, for leaving and throwing at each of their instructions.

Each returns everything that it computed, and keeps no state between calls.
"""
# ruff: noqa: F821

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from tests import hook_block_programs
from tests.hook_block_programs import Outcome, handled


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
    """Constants, names and jumps past 255: EXTENDED_ARG everywhere. Most is passed over: tests cut wherever it runs."""
    lines = ["def big(x):", " s = v0 = 0", " if x < 0:"]
    lines += [f"  v{i} = {1000 + i}" for i in range(260)]
    lines += [f" s += x * {2000 + i}\n v{i} = s" for i in range(255, 260)]
    lines += [" for q in range(3):", "  if q == 1:", "   s += x * 4999", "   if x < 0:"]
    lines += [f"    s += x * {5000 + i}" for i in range(60)]
    lines += [" try:", "  s += len(str(v259)) + undefined_name"]
    lines += [" except NameError:", "  s += max(v0, v259, key=lambda v: v + x)", " return s, v259, v0"]
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile("\n".join(lines), __file__, "exec"), namespace)
    return namespace["big"]


big = _make_big()

# Programs with their arguments.
PROGRAMS: list[tuple[Callable[..., Outcome], tuple[Any, ...]]] = [
    *hook_block_programs.PROGRAMS,
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
