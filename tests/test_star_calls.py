# ruff: noqa: E501 - tables of calls
"""Calls that spread their arguments: f(*args, **kwargs), wrappers, partial objects, instances with __call__. Recorded through, with
eager's bindings, identities and messages."""

from __future__ import annotations

import collections
import functools
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import call, check, counting, reasons, settles, stepped

A = np.arange(6.0)


def callee(a: Any, b: Any = 2, *rest: Any, c: Any = 3, **more: Any) -> Any:
    return a, b, rest, c, more


def plain(x: Any, y: Any = 1) -> Any:
    return x * 2 + y


def passed(*args: Any, **kwargs: Any) -> Any:
    return callee(*args, **kwargs)


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@wrapping
@wrapping
def decorated(x: Any, y: Any = 1, *, scale: Any = 2.0) -> Any:
    return (x + y) * scale


def through(function: Any, made: Any, warm_up: int = 16) -> None:
    """Replayed from end to end, and nothing is left as it is: no opaque call."""
    check(function, made)
    settles(function, made, warm_up)
    jitted = ds.jit(store=False)(function)
    with stepped():
        args, kwargs = (made.args, made.kwargs) if isinstance(made, type(call())) else (made, {})
        for _ in range(3):
            jitted(*args, **kwargs)
    assert "opaque_call" not in reasons(jitted), jitted.explain()


def spread_parts(x: Any) -> Any:
    pair = (x, x + 1)
    return callee(*pair), callee(0, *pair), callee(*pair, x, *pair), callee(*(), a=x), callee(*(1, 2, 3))


def spread_lists(x: Any) -> Any:
    items = [x, x + 1]
    return callee(*items), callee(*[x, 2]), callee(*items, *[3], 4), plain(*items)


def spread_names(x: Any) -> Any:
    return (
        callee(x, **{"c": 1}),
        callee(**{"a": x, "z": 2}),
        callee(1, **dict(b=2, q=x)),
        callee(b=1, **{"a": x}, **{"k": 1}),
    )


def wrapped(x: Any) -> Any:
    return decorated(x), decorated(x, 2), decorated(x, y=3), decorated(x, scale=x, y=1)


def wrapped_in_a_loop(n: int) -> Any:
    total = 0.0
    for i in range(n):
        total = decorated(total, i, scale=0.5)
    return total


HALF = functools.partial(callee, 1, c=5, z=6)
NESTED = functools.partial(functools.partial(plain, y=3), 4)


def partials(x: Any) -> Any:
    return HALF(x), HALF(x, c=x), HALF(*[x], **{"z": 1, "w": 2}), NESTED(), NESTED(y=x)


class Scaled:
    def __init__(self, by: Any) -> None:
        self.by = by

    def __call__(self, x: Any, *more: Any, **named: Any) -> Any:
        return x * self.by, more, named

    def method(self, x: Any, y: Any = 0) -> Any:
        return x * self.by + y


SCALED = Scaled(3)


def instances(x: Any) -> Any:
    bound = SCALED.method
    return SCALED(x), SCALED(x, 1, k=x), SCALED(*(x, 2), **{"k": 1}), SCALED.method(*(x,), **{"y": 2}), bound(*[x, 1])


@pytest.mark.parametrize("function", [spread_parts, spread_lists, wrapped, partials, instances])
@pytest.mark.parametrize("x", [3, 2.5, A], ids=["int", "float", "array"])
def test_recorded_through(function: Any, x: Any) -> None:
    through(function, (x,))


def test_names_of_a_dict_made_here() -> None:
    check(spread_names, (1,), (A,))


def test_a_loop_through_two_wrappers() -> None:
    through(wrapped_in_a_loop, (50,))


def only_passes(*args: Any, **kwargs: Any) -> Any:
    return plain(*args, **kwargs)


@pytest.mark.parametrize("made", [call(1), call(1, 2), call(1, y=2), call(x=A, y=3), call(y=1, x=2.0)])
def test_the_wrapper_itself(made: Any) -> None:
    through(only_passes, made)


def test_another_length_or_another_name() -> None:
    check(
        passed, call(1), call(1, 2), call(1, 2, 3), call(1, c=2), call(1, d=2), call(a=1, b=2), call(b=2, a=1), call(1, d=1, e=2), call(1, e=1, d=2),
    )  # fmt: skip


def test_lists_of_every_length() -> None:
    def spread(items: Any) -> Any:
        return callee(*items), callee(0, *items), max(1, *items)

    check(spread, ([1, 2],), ((1, 2),), ([1],), ((3, 4, 5),), (range(4),), ({"a": 1},), ("ab",), (np.arange(3),), ([],))


def errors(x: Any, *args: Any, **kwargs: Any) -> Any:
    return plain(*args, **kwargs)


@pytest.mark.parametrize(
    "made",
    [
        call(0), call(0, 1, 2, 3), call(0, 1, x=2), call(0, 1, z=2), call(0, 1, 2, y=3), call(0, y=1), call(0, 1, **{"not a name": 1}),
    ],
)  # fmt: skip
def test_wrong_arguments_raise_as_in_eager(made: Any) -> None:
    check(errors, made, call(0, 1, y=2))


def spreads(args: Any, kwargs: Any) -> Any:
    return plain(*args, **kwargs)


class Mapping:
    def __init__(self, **items: Any) -> None:
        self.items = items

    def keys(self) -> Any:
        return self.items.keys()

    def __getitem__(self, name: str) -> Any:
        return self.items[name]


class Iterable:
    def __iter__(self) -> Any:
        return iter((1, 2))


@pytest.mark.parametrize(
    "made",
    [
        ((1,), {1: 2}), ((1,), None), (None, {}), (5, {}), ((1,), [("y", 2)]), ((1,), Mapping(y=2)), ((1,), Mapping(x=2)), (Iterable(), {}),
        ([1], collections.OrderedDict(y=2)), ((), {"x": 1, "y": 2}), ((1,), {"x": 1}),
    ],
)  # fmt: skip
def test_what_is_no_tuple_and_no_dict(made: Any) -> None:
    check(spreads, made, ((1,), {"y": 2}))


def test_twice_the_same_keyword() -> None:
    def twice(a: Any, b: Any) -> Any:
        return callee(1, **a, **b)

    check(twice, ({"c": 1}, {"d": 2}), ({"c": 1}, {"c": 2}), ({}, {}))


def test_the_callees_dict_and_tuple_are_its_own() -> None:
    def keeps(*args: Any, **kwargs: Any) -> Any:
        kwargs["new"] = 1
        return args, kwargs

    def f(args: Any, kwargs: Any) -> Any:
        got, named = keeps(*args, **kwargs)
        again, named_again = keeps(*got, **named)
        return got is args, named is kwargs, got == args, kwargs, named, again is got, named_again is named

    check(f, ((1, 2), {"a": 1}), ((), {}))


def test_a_dict_changed_before_it_is_passed_on() -> None:
    def middle(**kwargs: Any) -> Any:
        first = kwargs.pop("a", None)
        kwargs["z"] = first
        kwargs.setdefault("y", 0)
        return callee(1, **kwargs)

    def f(x: Any) -> Any:
        return middle(a=x, b=2), middle(b=x), middle(y=x, z=1)

    check(f, (1,), (A,))


def test_a_list_changed_before_it_is_passed_on() -> None:
    def f(x: Any) -> Any:
        items = [x]
        items.append(x + 1)
        first = callee(*items)
        items.pop()
        return first, callee(*items), callee(*items, 5)

    check(f, (1,), (A,))


def test_locals_reach_a_dict_that_is_passed_on() -> None:
    def changes(kwargs: Any) -> Any:
        kwargs["b"] = 7

    def f(opaque: Any, **kwargs: Any) -> Any:
        def inner(**named: Any) -> Any:
            list(map(opaque, [named]))
            return callee(1, **named)

        return inner(**kwargs), inner(b=1, c=2)

    check(f, call(changes, c=1), call(changes, b=1))


def test_a_partial_whose_state_changes() -> None:
    part = functools.partial(plain, 1)

    @ds.jit(store=False)
    def f() -> Any:
        return part()

    with stepped():
        got = [f() for _ in range(4)]
        part.keywords["y"] = 10
        got += [f() for _ in range(4)]
        part.__setstate__((callee, (5, 6), {"q": 1}, None))  # type: ignore[attr-defined]
        got += [f() for _ in range(4)]
    assert got == [3] * 4 + [12] * 4 + [(5, 6, (), 3, {"q": 1})] * 4


def test_a_partial_made_here() -> None:
    def f(x: Any) -> Any:
        made = functools.partial(plain, x)
        return made(), made(y=x), functools.partial(made, y=3)()

    check(f, (2,), (A,))


def test_call_assigned_on_the_class_and_on_the_instance() -> None:
    class Own:
        def __call__(self, x: Any) -> Any:
            return x + 1

    own = Own()

    @ds.jit(store=False)
    def f(x: Any) -> Any:
        return own(x)

    with stepped():
        got = [f(1) for _ in range(4)]
        own.__call__ = lambda x: x  # type: ignore[method-assign] # of no effect
        got += [f(1) for _ in range(4)]
        Own.__call__ = lambda self, x: x + 10  # type: ignore[method-assign]
        got += [f(1) for _ in range(4)]
    assert got == [2] * 8 + [11] * 4


def test_a_ufunc_by_star_is_an_array_operation() -> None:
    def f(*args: Any) -> Any:
        return np.add(*args) * np.subtract(*args)

    check(f, (A, A + 1), (A, 2.0))
    settles(f, (A, A + 1))
    jitted = ds.jit(store=False)(f)
    with ds.config(inner_loops=0):
        for _ in range(4):
            jitted(A, A)
            ds.wait()
        with counting(jitted) as grown:
            jitted(A, A)
    assert grown["kernel_launches"] == 1


def test_an_exception_keeps_the_arguments_tuple() -> None:
    def f(*args: Any) -> Any:
        return ValueError(*args).args is args

    check(f, (1, 2))
