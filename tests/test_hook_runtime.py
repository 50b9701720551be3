"""Versions of dicts, range iterators, the handled exception, and what observing an unobserved thread costs."""

from __future__ import annotations

import gc
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dalsegno._testing import hook as hooktest


def change_by_popitem(d: dict[Any, Any]) -> None:
    d["new"] = 1
    d.popitem()


def change_by_update(d: dict[Any, Any]) -> None:
    d.update(more=1)


def change_by_merging(d: dict[Any, Any]) -> None:
    d |= {"more": 1}


CHANGES: list[Callable[[dict[Any, Any]], Any]] = [
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__setitem__("new", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.pop("a"),
    lambda d: d.setdefault("new", 1),
    lambda d: d.clear(),
    change_by_popitem,
    change_by_update,
    change_by_merging,
]
READS: list[Callable[[dict[Any, Any]], Any]] = [
    lambda d: d["a"],
    len,
    list,
    lambda d: d.get("none"),
    lambda d: d.setdefault("a"),
    dict,
]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change: Callable[[dict[Any, Any]], Any]) -> None:
    d: dict[Any, Any] = {"a": object()}
    version = hooktest.dict_version(d)
    assert hooktest.dict_unchanged(version)
    change(d)
    assert not hooktest.dict_unchanged(version)
    assert not hooktest.dict_unchanged(version)
    hooktest.dict_refresh(version)
    assert hooktest.dict_unchanged(version)
    d["again"] = 1
    assert not hooktest.dict_unchanged(version)


@pytest.mark.parametrize("read", READS)
def test_reading_is_no_change(read: Callable[[dict[Any, Any]], Any]) -> None:
    d = {"a": object()}
    version = hooktest.dict_version(d)
    read(d)
    assert hooktest.dict_unchanged(version)


def test_versions_of_one_dict_are_independent() -> None:
    d = {"a": 1}
    other = {"a": 1}
    first, second, third = hooktest.dict_version(d), hooktest.dict_version(d), hooktest.dict_version(other)
    d["a"] = 2
    assert (hooktest.dict_unchanged(first), hooktest.dict_unchanged(second), hooktest.dict_unchanged(third)) == (
        False,
        False,
        True,
    )
    hooktest.dict_refresh(first)
    assert (hooktest.dict_unchanged(first), hooktest.dict_unchanged(second)) == (True, False)
    del first
    hooktest.dict_refresh(second)
    assert hooktest.dict_unchanged(second)
    d["a"] = 3
    assert not hooktest.dict_unchanged(second)
    del second
    late = hooktest.dict_version(d)
    assert hooktest.dict_unchanged(late)
    d["a"] = 4
    assert not hooktest.dict_unchanged(late)


def test_moving_and_lifetime() -> None:
    class Dict(dict[Any, Any]):
        pass

    d, other = Dict(a=1), Dict(a=1)
    gone = weakref.ref(d), weakref.ref(other)
    first, second = hooktest.dict_version(d), hooktest.dict_version(other)
    hooktest.dict_move(first, second)
    d["a"] = 2
    assert not hooktest.dict_unchanged(second)
    del d, other, first
    gc.collect()
    assert gone[0]() is not None  # held by the version
    del second
    gc.collect()
    assert (gone[0](), gone[1]()) == (None, None)


def test_globals_of_a_module_and_attributes_of_an_instance() -> None:
    module = types.ModuleType("m")
    exec("def set(v):\n global name\n name = v\ndef remove():\n global name\n del name\n", module.__dict__)
    version = hooktest.dict_version(module.__dict__)
    for change in (lambda: module.set(1), lambda: module.set(2), lambda: setattr(module, "other", 1), module.remove):
        hooktest.dict_refresh(version)
        assert hooktest.dict_unchanged(version)
        change()
        assert not hooktest.dict_unchanged(version)


@pytest.mark.parametrize("empty", [False, True])
def test_attributes_of_an_instance(empty: bool) -> None:
    class Instance:
        def __init__(self) -> None:
            self.w = 0
            self.x = 0

    def store(instance: Instance, value: int) -> None:
        instance.x = value

    warm = Instance()
    for i in range(100):  # until the interpreter has specialised the store
        store(warm, i)
    instance = Instance()
    if empty:
        del instance.x, instance.w
    before = list(instance.__dict__.items())
    version = hooktest.dict_version(instance.__dict__)
    assert list(instance.__dict__.items()) == before == list(vars(instance).items())
    for i in range(100):
        hooktest.dict_refresh(version)
        store(instance, i + 1000)
        assert not hooktest.dict_unchanged(version)
        assert instance.x == instance.__dict__["x"] == i + 1000


def test_many_versions() -> None:
    generator = random.Random(1)
    dicts = [{"a": 0} for _ in range(50)]
    versions = [(d, hooktest.dict_version(d)) for d in dicts for _ in range(3)]
    for _ in range(500):
        changed = generator.choice(dicts)
        changed["a"] = object()
        for d, version in versions:
            assert hooktest.dict_unchanged(version) is (d is not changed)
            hooktest.dict_refresh(version)
        place = generator.randrange(len(versions))
        versions[place] = (versions[place][0], hooktest.dict_version(versions[place][0]))


def test_dict_versions_leak_nothing() -> None:
    d = {"a": 1}
    before = sys.getrefcount(d)
    for _ in range(10_000):
        hooktest.dict_unchanged(hooktest.dict_version(d))
    after = sys.getrefcount(d)
    assert after == before


@pytest.mark.parametrize(
    "values",
    [
        range(0),
        range(5),
        range(3, 20, 4),
        range(10, -10, -3),
        range(5, 5),
        range(2**62, 2**62 + 9, 4),
        range(-(2**63), 0, 2**62),
    ],
)
def test_range_next(values: range) -> None:
    iterator = iter(values)
    found = []
    while (step := hooktest.range_next(iterator))[0] == 1:
        found.append(step[1])
    assert step[0] == 0
    assert found == list(values)
    assert list(iterator) == []


def test_range_next_mixes_with_next() -> None:
    iterator = iter(range(0, 100, 3))
    found = []
    while True:
        status, value = hooktest.range_next(iterator)
        if status == 0:
            break
        found += [value, next(iterator, None)]
        if len(found) == 8:
            assert iterator.__length_hint__() == 34 - 8
    assert found == list(range(0, 100, 3))


@pytest.mark.parametrize(
    "other", [iter([1]), iter(range(2**70)), range(3), reversed([1]), 5, None, iter({}.items())], ids=repr
)
def test_range_next_of_something_else(other: Any) -> None:
    assert hooktest.range_next(other)[0] == -1


def test_handled_exception() -> None:
    assert hooktest.handled_exception() is None
    try:
        raise KeyError(1)
    except KeyError as error:
        assert hooktest.handled_exception() is error

        def generator() -> Any:
            yield hooktest.handled_exception()

        assert next(generator()) is error
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(hooktest.handled_exception()))
        thread.start()
        thread.join()
        assert others == [None]
    assert hooktest.handled_exception() is None
