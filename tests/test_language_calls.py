# ruff: noqa: E501 - programs as text, tables of calls
"""One function for each kind of instruction and situation: as eager on every call, whatever changes from call to call; and for
those that the recorder covers, replayed from end to end. Here: try, calls, and what is not recorded."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import numpy as np
from tests.language_cases import A, B, Cases, I, M, Point
from tests.support import call

case = Cases()


# ---- try, without an exception taken and with one


@case((4,), (0,), ("a",))
def try_except(a):
    try:
        r = 10 // a
    except ZeroDivisionError:
        r = "zero"
    return r


@case((4,), (0,), ("a",))
def try_else_finally(a):
    log = []
    try:
        r = 10 // a
    except ZeroDivisionError as error:
        log.append(str(error))
        r = None
    else:
        log.append("else")
    finally:
        log.append("finally")
    return r, log


@case((4,), (0,))
def try_nested_return(a):
    log = []
    try:
        try:
            return log, 10 // a
        finally:
            log.append("inner")
    except ZeroDivisionError:
        log.append("outer")
        return log, None


@case((4,), (2,), (0,), replays=False)
def try_in_a_loop(n):
    out = []
    for i in range(n + 20):
        try:
            if i == n:
                out.append(1 // (i - n))
            out.append(i)
        except ZeroDivisionError:
            continue
        finally:
            out.append("f")
    return out


@case((A, 0), (A, 3), ([1], 0))
def array_index_error(a, i):
    try:
        return a[i + 1]
    except IndexError as error:
        return str(error)


# ---- calls


def _callee(a, b=2, *rest, c=3, **more):
    return a, b, rest, c, more


def _positional(a, b, /, c):
    return a - b, c


def _keyword_only(*, k, j=1):
    return k, j


@case((1,), (A,))
def call_positional(v):
    return _callee(v), _callee(v, 5), _callee(v, 5, 6, v)


@case((1,), (A,))
def call_keywords(v):
    return (
        _callee(a=v),
        _callee(1, b=v),
        _callee(v, c=v),
        _callee(v, x=v, y=2),
        _callee(b=1, a=v, c=2),
        _keyword_only(k=v),
        _keyword_only(j=2, k=v),
    )


@case(((1, 2, 3),), ([1],), ((),), ((A, B),))
def call_star(items):
    return _callee(0, *items), _callee(*items, 4, *items)


@case(({"a": 1},), ({"a": A, "c": 2, "z": 3},), ({},), ({"b": 1},))
def call_double_star(d):
    return _callee(**d)


@case(((1,), {"c": 2}), ((1, 2, 3), {}), ((1,), {"a": 2}))
def call_star_and_double_star(items, d):
    return _callee(*items, **d, q=1)


@case((1, 2, 3), (A, 1, 2), (1,))
def call_positional_only(*args):
    return _positional(*args), _positional(args[0], args[1], c=args[2])


@case(call(1), call(1, 2), call(1, b=3), call(1, 2, 3, 4), call(1, c=9, d=8), call(), call(a=1, b=2), call(1, a=2))
def parameters_of_every_kind(a, b=2, *rest, c=3, **more):
    return a, b, rest, c, more


@case(call(1, c=2), call(1, 2, c=3), call(1), call(a=1, c=2))
def keyword_only_and_positional_only(a, /, b=5, *, c, d=7):
    return a + b + c + d


@case((3,), (A,), (-2.5,))
def call_c_functions(v):
    return (
        abs(v),
        len([v]),
        isinstance(v, int),
        type(v),
        max(1, 2),
        min([3, 1]),
        round(2.5),
        divmod(7, 2),
        str(2),
        int("7"),
        repr(1.5),
        tuple([1]),
        sum([1, 2]),
        pow(2, 5),
    )


@case((2.0,), (0.5,), ("x",), (-1.0,))
def call_math(v):
    return math.sqrt(v), math.floor(v), math.sin(v), operator.add(v, 1), math.hypot(v, 1.0)


@case((A, 1), (M, 0), (I, 0), (A, -1), (A, 5))
def call_methods_of_arrays(a, axis):
    if a.ndim <= axis:
        axis = 0
    return (
        a.sum(axis=axis),
        a.mean(),
        a.max(),
        a.reshape(-1),
        a.astype("f"),
        a.copy(),
        np.concatenate([a, a]),
        np.dot(a.T, a),
        a.any(),
    )


@case((A,), (I,))
def call_with_out(a):
    r = np.empty_like(a)
    same = np.multiply(a, 2, out=r)
    np.add(a, 1, out=a, where=a > 0)
    return r, same is r, a


@case((5,), (0,), (12,))
def recursion(n):
    return _fib(n)


def _fib(n):
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


@case((3,), (0,), (7,), replays=False)
def inner_recursion(n):
    def down(k):
        return [] if k == 0 else [k, *down(k - 1)]

    return down(n)


@case((1,), (A,))
def lambdas(v):
    twice = lambda f, x: f(f(x))  # noqa: E731
    return twice(lambda x: x * 2, v)


@case((2, 3), (A, 2))
def partials(a, b):
    add = functools.partial(_callee, a, c=b)
    return add(), add(b), add(z=1)


def _logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return "logged", function(*args, **kwargs)

    return wrapper


@_logged
def _decorated(a, b=1):
    return a, b


@case((1,), (A,))
def call_decorated(v):
    return _decorated(v), _decorated(v, b=3)


@case(([3, 1, 2],), (["b", "a"],), ([],))
def callbacks(items):
    return (
        sorted(items, key=lambda v: -v if v != "a" and v != "b" else 0),
        list(map(str, items)),
        list(filter(None, items)),
        functools.reduce(lambda a, b: a, items, 0),
    )


@case((3,), (0,), (30,))
def generator_expression(n):
    return sum(i * i for i in range(n)), any(i > 2 for i in range(n)), list(itertools.islice((i for i in range(n)), 2))


@case((1,), (A,))
def higher_order(v):
    def apply(function, *args):
        return function(*args)

    return apply(_positional, v, 1, 2), apply(abs, v), apply(_callee, v)


# ---- not covered by the recorder yet, or only as opaque calls: the results must be eager's all the same


@case((1,), (2,), ("x",), ((1, 2),), ([1, 2, 3],), ({"k": 5},), (Point(0, 5),), (None,), replays=False)
def match_statement(v):
    match v:
        case 1 | None:
            return "one or none"
        case (a, b):
            return a + b
        case [first, *rest]:
            return first, rest
        case {"k": found}:
            return found
        case Point(x=0, y=y):
            return y
        case str():
            return "text"
        case _:
            return "other"


class Swallow:
    def __init__(self, log, kind):
        self.log, self.kind = log, kind

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(kind and kind.__name__)
        return kind is self.kind


@case((2,), (0,), ("a",), replays=False)
def with_statement(a):
    log = []
    with Swallow(log, ZeroDivisionError) as s, Swallow(log, None):
        log.append(10 // a)
    return log


@case((A,), (-A,), replays=False)
def with_errstate(a):
    with np.errstate(all="ignore"):
        return np.sqrt(a), np.log(a), a / 0


def _counting(n):
    for i in range(n):
        sent = yield i
        if sent:
            return sent


@case((3,), (0,), (40,), replays=False)
def generators(n):
    g = _counting(n)
    out = []
    for v in g:
        out.append(v)
    h = _counting(n)
    return out, next(h, None), list(_counting(2)), [*h]


@case((2,), (1.5,), replays=False)
def class_statement(n):
    class Local:
        value = n

        def get(self):
            return self.value

    return Local().get(), Local.value


@case((4,), replays=False)
def imports(n):
    import math as m
    from os.path import join

    return m.sqrt(n), join("a", "b")


@case((3,), (-1,), (0,))
def assertion(n):
    assert n, "no n"
    if n < 0:
        raise ValueError(f"negative: {n}")
    return n


@case((3,), (0,), replays=False)
def exception_group(n):
    try:
        if not n:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as group:
        return_value = len(group.exceptions)
    else:
        return_value = None
    return return_value


test_same_as_eager, test_replayed_from_end_to_end = case.tests()
