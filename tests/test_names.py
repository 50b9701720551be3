"""Names that cannot be encoded, and names that are not asked for: recording runs no code of the user's."""

from __future__ import annotations

import types
from typing import Any

import pytest

import dalsegno as ds
from tests.support import check, reasons

ODD = "\ud800"


def named(**attributes: str) -> types.FunctionType:
    def h(x):
        return x + 1

    for name, value in attributes.items():
        setattr(h, name, value)
    return h


@pytest.mark.parametrize("attribute", ["__qualname__", "__module__", "__name__"])
def test_a_functions_name_with_a_lone_surrogate(attribute):
    inner = named(**{attribute: ODD})

    @ds.jit(store=False)
    def outer(x):
        return inner(x)

    root = ds.jit(store=False)(named(**{attribute: ODD}))
    for _ in range(4):
        assert outer(1) == 2 and root(1) == 2
    assert outer.stats["replays"] == 3 and root.stats["replays"] == 3
    outer.explain().to_dict(), str(root.explain()), root.notes()
    with ds.disabled():
        assert root(1) == 2
    assert getattr(root, attribute) == ODD


def test_an_opaque_callees_name_with_a_lone_surrogate():
    class Callable_:
        __qualname__ = ODD

        def __call__(self, x):
            return x

    callee = Callable_()
    callee.__qualname__ = ODD
    other = type("Other", (), {"__init__": lambda self, x: None})
    other.__qualname__ = ODD

    @ds.jit
    def f(x):
        return callee(x), type(other(x)).__qualname__

    assert [f(1) for _ in range(4)] == [(1, ODD)] * 4
    assert str(f.explain())


def test_generators_and_observed_functions_with_such_names():
    def generate():
        yield 1

    generate.__qualname__ = ODD
    g = ds.jit(generate)
    assert [list(g()) for _ in range(3)] == [[1]] * 3 and "generator" in reasons(g)


def test_globals_of_a_module_with_such_a_name(fresh_store):
    namespace: dict[str, Any] = {"__name__": ODD, "len": len}
    exec("def h(x): return len(x)\ndef f(x): return h(x) + len(x)", namespace)
    f = ds.jit(namespace["f"])
    assert [f("ab") for _ in range(4)] == [4] * 4
    ds.wait()


def test_names_that_differ_only_where_they_cannot_be_encoded(fresh_store):
    """Told apart in a trace; such a trace is not kept."""
    code = (lambda a: (a.first, a.second, a.third)).__code__
    code = code.replace(co_names=("\ud800", "\ud801", "\\ud800"))
    made = ds.jit(types.FunctionType(code, {}, "made"))

    class Has:
        pass

    a = Has()
    for k, name in enumerate(("\ud800", "\ud801", "\\ud800")):
        setattr(a, name, k)
    assert [made(a) for _ in range(4)] == [(0, 1, 2)] * 4
    ds.wait()
    made.clear()
    assert [made(a) for _ in range(4)] == [(0, 1, 2)] * 4


def test_keywords_with_such_names():
    def takes(**more):
        return more

    def f(d):
        return takes(**d), dict(**d)

    check(f, ({ODD: 1, "\\ud800": 2},))


# ---- nothing of the user's is run ------------------------------------------------------------------------------------


def test_recording_asks_no_getattr_of_a_callee():
    asked = []

    class Loud:
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

        def __call__(self, x):
            return x + 1

    class Louder(Loud):
        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

    loud, louder = Loud(), Louder()

    @ds.jit
    def f(x):
        return loud(x) + louder(x)

    assert [f(1) for _ in range(4)] == [4] * 4
    assert asked == [] and {"Loud", "Louder"} <= {note["text"].split(":")[0] for note in f.notes()}


def test_recording_asks_no_metaclass():
    asked = []

    class Meta(type):
        def __getattribute__(cls, name):
            asked.append(name)
            return type.__getattribute__(cls, name)

    class A(metaclass=Meta):
        pass

    @ds.jit
    def g():
        return A()

    asked.clear()
    for _ in range(4):
        g()
    assert asked == []


def test_notes_still_name_what_can_be_named():
    class Plain:
        pass

    words: list[Any] = [sorted, "x".encode, Plain, dict.fromkeys]

    @ds.jit
    def f(k):
        return words[0]("ba"), words[1]("ascii"), words[2](), words[3]("ab")

    for _ in range(3):
        f(1)
    text = str(f.explain())
    for name in ("str.encode", "Plain", "dict.fromkeys"):
        assert name in text, text
