"""A folded name gets another value between two uses, in every way that a program has to do that."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import stepped


def one(x):
    return x + 1


def two(x):
    return x + 2


helper = one


@pytest.fixture(autouse=True)
def _helper_put_back() -> Iterator[None]:
    yield
    globals()["helper"] = one


def agree(function: Callable[..., Any], *calls: Callable[[], tuple[Any, ...]]) -> None:
    """Each call eagerly and jitted, `helper` being `one` before both; five times in a row, and all by turns."""
    jitted = ds.jit(store=False)(function)
    with stepped():
        for make in [call for call in calls for _ in range(5)] + list(calls) * 3:
            globals()["helper"] = one
            wanted = function(*make())
            globals()["helper"] = one
            assert jitted(*make()) == wanted


NAMES = globals()


class Config:
    pass


config = Config()
config.__dict__ = NAMES


def stores_an_item(x, which):
    NAMES["helper"] = which
    return helper(x)


def updates(x, which):
    NAMES.update(helper=which)
    return helper(x)


def stores_an_attribute(x, which):
    config.helper = which
    return helper(x)


def stores_in_a_loop(x, which):
    for i in range(4):
        if i == 2:
            NAMES["helper"] = which
        x = helper(x)
    return x


def stores_as_a_global(x, which):
    global helper
    helper = which
    return helper(x)


@pytest.mark.parametrize(
    "function", [stores_an_item, updates, stores_an_attribute, stores_in_a_loop, stores_as_a_global]
)
def test_a_store_into_the_namespace(function: Callable[..., Any]) -> None:
    agree(function, lambda: (1, one), lambda: (1, two))


class Index:
    def __init__(self, value: Callable[..., Any]) -> None:
        self.value = value

    def __index__(self) -> int:
        NAMES["helper"] = self.value
        return 0


def inserts(x, which, items):
    items.insert(which, x)
    return helper(x), items


def pops(x, which, items):
    return items.pop(which), helper(x)


@pytest.mark.parametrize("function", [inserts, pops])
def test_an_index_that_is_asked(function: Callable[..., Any]) -> None:
    agree(
        function,
        lambda: (1, 0, [5, 6]),
        lambda: (1, True, [5, 6]),
        lambda: (1, Index(one), [5, 6]),
        lambda: (1, Index(two), [5, 6]),
    )


def formats(x, a, how):
    return np.array2string(a, formatter=how), helper(x)


def represents(x, a, how):
    return np.array_repr(a), helper(x)


def chooser(value: Callable[..., Any]) -> Callable[[Any], str]:
    def choose(_: Any) -> str:
        NAMES["helper"] = value
        return "v"

    return choose


def test_a_formatter_in_a_dict() -> None:
    a = np.arange(3.0)
    agree(formats, lambda: (1, a, {"float": chooser(one)}), lambda: (1, a, {"float": chooser(two)}))


def test_a_formatter_in_the_print_options() -> None:
    chosen = [one]
    with np.printoptions(formatter={"float": lambda v: chooser(chosen[0])(v)}):
        jitted = ds.jit(store=False)(represents)
        for which in (one, one, one, one, two, two, one):
            chosen[0] = which
            globals()["helper"] = one
            wanted = represents(1, np.arange(3.0), None)
            globals()["helper"] = one
            assert jitted(1, np.arange(3.0), None) == wanted


class Dies:
    def __init__(self, value: Callable[..., Any]) -> None:
        self.value = value

    def __del__(self) -> None:
        NAMES["helper"] = self.value


class Holder:
    pass


def replaces_an_item(x, items, key):
    items[key] = None
    return helper(x)


def replaces_a_local(x, items, key):
    v = items.pop()
    v = None
    return helper(x), v


def replaces_an_attribute(x, items, key):
    items.x = 0
    return helper(x)


def replaces_a_cell(x, items, key):
    v = items.pop()

    def inner():
        return v

    v = None
    return helper(x), inner()


def drops_a_result(x, items, key):
    items.pop()
    return helper(x)


def drops_within(x, items, key):
    made = [[items.pop()], 1]
    made = (made, 2)
    made = None
    return helper(x), made


def holding(value: Callable[..., Any]) -> Holder:
    holder = Holder()
    holder.x = Dies(value)
    return holder


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (replaces_an_item, lambda value: (1, [Dies(value)], 0)),
        (replaces_an_item, lambda value: (1, {"a": Dies(value)}, "a")),
        (replaces_an_item, lambda value: (1, {7: Dies(value)}, 7)),
        (replaces_a_local, lambda value: (1, [Dies(value)], 0)),
        (replaces_an_attribute, lambda value: (1, holding(value), 0)),
        (replaces_a_cell, lambda value: (1, [Dies(value)], 0)),
        (drops_a_result, lambda value: (1, [Dies(value)], 0)),
        (drops_within, lambda value: (1, [Dies(value)], 0)),
    ],
)
def test_a_finaliser(function: Callable[..., Any], make: Callable[[Any], tuple[Any, ...]]) -> None:
    agree(function, lambda: make(one), lambda: make(two))


# ---- where names are not looked up in a plain dict


def test_globals_that_are_a_dict_of_a_class_of_its_own() -> None:
    class Names(dict):
        def __getitem__(self, key):
            return "mine" if key == "x" else dict.__getitem__(self, key)

    names = Names(ds=ds, x=len)
    exec("@ds.jit(store=False)\ndef f(): return x", names)
    assert [dict.__getitem__(names, "f")() for _ in range(4)] == ["mine"] * 4


module = types.ModuleType("module")
module.x = len


class Special(types.ModuleType):
    def __getattribute__(self, name):
        return "mine" if name == "x" else super().__getattribute__(name)


def test_a_module_that_is_given_another_class() -> None:
    def reads(change):
        if change:
            module.__class__ = change
        return module.x

    jitted = ds.jit(store=False)(reads)
    for change in (None, None, None, Special, Special, types.ModuleType, None, Special):
        wanted = reads(change)
        module.__class__ = types.ModuleType
        assert jitted(change) is wanted or jitted(change) == wanted
        module.__class__ = types.ModuleType
