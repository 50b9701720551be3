"""The public surface: jit and its options, counters, explain, switches. What is replayed is tested elsewhere."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
import pickle
import sys
import types
import weakref

import pytest

import dalsegno as ds
import numpy as np
from tests.front import COUNTERS, assert_one_clear_line, same


def poly(x, k=3):
    """Doc of poly."""
    return 2 * x + k


jitted_poly = ds.jit(store=False)(poly)
X = np.arange(5.0)


# ---- jit: what it takes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda f: ds.jit(f),
        lambda f: ds.jit()(f),
        lambda f: ds.jit(f, store=False),
        lambda f: ds.jit(full_graph=True, mode="exact", device="cpu", store=False)(f),
    ],
)
def test_bare_and_with_options(make):
    f = make(poly)
    for k in (3, 4, 5.5):
        for _ in range(3):
            assert same(f(X, k), poly(X, k))
            assert same(f(X, k=k), poly(X, k=k))
    assert same(f(X), poly(X))


def test_looks_like_the_function():
    f = jitted_poly
    assert isinstance(f, ds.JitFunction)
    assert f.__wrapped__ is poly
    assert (f.__name__, f.__qualname__, f.__module__, f.__doc__) == ("poly", "poly", __name__, "Doc of poly.")
    assert inspect.signature(f) == inspect.signature(poly)
    assert inspect.unwrap(f) is poly
    assert callable(f) and inspect.getsource(f) == inspect.getsource(poly)
    assert weakref.ref(f)() is f
    assert "poly" in repr(f)
    assert f == f and hash(f) == hash(f) and f != ds.jit(poly)


@ds.jit(store=False)
def decorated(x):
    return x + 1


def test_pickles_by_name_and_copies_as_itself():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    assert copy.copy(decorated) is decorated
    with pytest.raises(pickle.PicklingError):  # its name is the plain function's
        pickle.dumps(jitted_poly)


class Scaled:
    factor = 2.0

    def __init__(self, by):
        self.by = by

    @ds.jit
    def method(self, x):
        return x * self.by

    @ds.jit
    @classmethod
    def of_class(cls, x):
        return x * cls.factor

    @ds.jit
    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    @ds.jit
    def of_class_too(cls, x):
        return x * cls.factor + 1

    @property
    @ds.jit
    def doubled(self):
        return self.by * 2

    def plain(self, x):
        return x - self.by


def test_methods():
    one, other = Scaled(3.0), Scaled(0.5)
    for _ in range(4):
        for s in (one, other):
            assert same(s.method(X), X * s.by)
            assert same(Scaled.method(s, X), X * s.by)
            assert same(s.of_class(X), X * 2.0) and same(Scaled.of_class(X), X * 2.0)
            assert same(s.static(X), X + 1) and same(Scaled.static(X), X + 1)
            assert same(s.of_class_too(X), X * 2.0 + 1)
            assert s.doubled == s.by * 2
    assert isinstance(one.method, types.MethodType) and one.method.__self__ is one
    assert Scaled.method.stats["calls"] == 16


def test_bound_method():
    s = Scaled(3.0)
    bound = ds.jit(s.plain)
    for _ in range(3):
        assert same(bound(X), X - 3.0)
    assert bound.__self__ is s
    assert bound.stats["calls"] == 3
    assert "plain" in str(ds.explain(bound))


def test_jit_of_jit_is_jit_of_the_function():
    again = ds.jit(jitted_poly)
    assert again.__wrapped__ is poly


def test_lambda_and_closure():
    offset = 1.5
    f = ds.jit(lambda x: x + offset)
    assert [f(1.0) for _ in range(3)] == [2.5] * 3
    offset = 2.5
    assert f(1.0) == 3.5


class Callable_:
    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (int, "class.*jit its methods"),
        (Scaled, "class.*jit its methods"),
        (len, "built-in function.*jit the function that calls it"),
        (np.add, "ufunc.*jit the function that calls it"),
        (str.upper, "no Python code"),
        (functools.partial(poly, k=1), "partial.*jit the function inside"),
        (property(poly), "property.*put @property above"),
        (sys, "module.*jit its functions"),
        (Callable_(), "jit the method __call__"),
        (3, "needs a Python function, not 3 of type int"),
        (None, "needs a Python function, not None"),
        ("poly", "needs a Python function, not 'poly'"),
        (X, "needs a Python function, not array.*of type ndarray"),
    ],
)
def test_not_a_function(thing, words):
    with pytest.raises(TypeError, match=words) as caught:
        ds.jit(thing)
    assert_one_clear_line(caught.value)
    with pytest.raises(TypeError, match=words):
        ds.jit(store=False)(thing)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"fullgraph": True}, TypeError, "no option 'fullgraph'; did you mean 'full_graph'"),
        ({"zzz": 1}, TypeError, "no option 'zzz'; there are full_graph, mode, device, store"),
        ({"full_graph": 1}, TypeError, "full_graph must be True or False, not 1"),
        ({"store": "no"}, TypeError, "store must be True or False, not 'no'"),
        ({"store": None}, TypeError, "store must be True or False"),
        ({"mode": "quick"}, ValueError, "mode must be 'exact' or 'fast', not 'quick'"),
        ({"mode": 1}, TypeError, "mode must be 'exact' or 'fast', not 1"),
        ({"mode": "fast"}, NotImplementedError, "mode='fast' is not implemented yet; use mode='exact'"),
        ({"device": "tpu"}, ValueError, "device must be 'cpu' or 'cuda' or 'opencl', not 'tpu'"),
        ({"device": 0}, TypeError, "device must be"),
        ({"device": "cuda"}, NotImplementedError, "device='cuda' is not implemented yet; use device='cpu'"),
        ({"device": "opencl"}, NotImplementedError, "device='opencl' is not implemented yet; use device='cpu'"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words) as caught:
        ds.jit(**options)
    assert_one_clear_line(caught.value)
    with pytest.raises(error, match=words):
        ds.jit(poly, **options)


# ---- functions that are not recorded ---------------------------------------------------------------------------------


@ds.jit
def counting(n):
    for i in range(n):
        yield i * 2


@ds.jit
async def waiting(x):
    await asyncio.sleep(0)
    return x + 1


@pytest.mark.parametrize(
    ("f", "use"), [(counting, lambda: list(counting(3))), (waiting, lambda: asyncio.run(waiting(1)))]
)
def test_generators_and_coroutines_run_eagerly_and_say_so(f, use):
    expected = [0, 2, 4] if f is counting else 2
    for _ in range(3):
        assert use() == expected
    assert f.stats["replays"] == 0 and f.stats["eager_calls"] == f.stats["calls"] == 3
    text = str(f.explain())
    assert "generator or coroutine" in text
    assert "jit the function that does the array work instead" in text


def calls_exec(x):
    exec("y = 1")
    return x + 1


def makes_a_class(x):
    class Inner:
        pass

    return x + 1


def test_full_graph_raises_graph_break_with_what_and_where():
    f = ds.jit(full_graph=True, store=False)(makes_a_class)
    for _ in range(3):
        with pytest.raises(ds.GraphBreak) as caught:
            f(1.0)
    line = makes_a_class.__code__.co_firstlineno + 1
    assert f"makes_a_class:{line}" in str(caught.value)
    assert "an instruction that is not recorded yet" in str(caught.value)
    assert "LOAD_BUILD_CLASS" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert issubclass(ds.GraphBreak, RuntimeError)


# ---- counters --------------------------------------------------------------------------------------------------------


def test_counters_of_a_function():
    f = ds.jit(store=False)(poly)
    assert set(ds.stats()) == set(f.stats) >= set(COUNTERS)
    assert not any(f.stats[name] for name in COUNTERS if name != "store_errors")
    seen = []
    for _ in range(5):
        f(X)
        seen.append(f.stats)
    assert [s["calls"] for s in seen] == [1, 2, 3, 4, 5]
    assert seen[0]["recordings"] == seen[-1]["recordings"] == 1
    assert seen[0]["replays"] == 0 and seen[-1]["replays"] == 4
    assert (seen[-1] - seen[0])["calls"] == 4
    for earlier, later in zip(seen, seen[1:], strict=False):
        assert all(later[name] >= earlier[name] for name in COUNTERS)
    assert all(isinstance(value, int) for value in f.stats.values())
    assert "calls" in repr(f.stats)


def test_counters_of_the_process_include_functions_that_are_gone():
    before = ds.stats()
    f = ds.jit(store=False)(poly)
    for _ in range(4):
        f(X)
    del f
    more = ds.stats() - before
    assert (more["calls"], more["recordings"], more["replays"]) == (4, 1, 3)


def test_what_a_replay_inside_another_one_does_is_counted_once():
    @ds.jit(store=False)
    def down(n):
        return 0 if n <= 0 else down(n - 1) + 1

    def steps(n):
        before = down.stats
        down(n)
        return (down.stats - before)["steps"]

    for _ in range(5):
        down(3)
    assert steps(24) > 24
    assert steps(48) - steps(36) == steps(36) - steps(24)  # a replay has a few levels of the recursion: 2, 3 or 4


# ---- explain ---------------------------------------------------------------------------------------------------------


def branchy(x):
    y = x * 2.0 + 1.0
    if y.sum() > 0:
        return np.sqrt(y)
    return -y


def test_explain_shows_ops_beside_source_guards_exits_and_side_traces():
    f = ds.jit(store=False)(branchy)
    for x in [X, X, -X, -X, -X, -X, X]:
        assert same(f(x), branchy(x))
    ds.wait()
    explanation = f.explain()
    text = str(explanation)
    assert text == str(ds.explain(f)) == repr(explanation)
    assert text.startswith("branchy (") and __file__ in text.splitlines()[0]
    for line in ("y = x * 2.0 + 1.0", "if y.sum() > 0:", "return np.sqrt(y)", "return -y"):
        assert line in text
    assert "trace 0: starts at the function's entry" in text
    assert "side trace of trace 0" in text
    assert "guard" in text and "-> exit" in text and "goes on in trace 1" in text
    ops = next(t for t in explanation.to_dict()["traces"] if t["number"] == 0)["ops"]
    multiply = [op for op in ops if op["line"] == branchy.__code__.co_firstlineno + 1]
    assert any("multiply" in op["text"] and op["segment"] is not None for op in multiply)
    assert "segment a: 1 op, while small, NumPy's inner loops; " in text
    assert "no kernel yet" in text or ": compiled" in text
    assert any(op["guard"] for op in ops)


def test_explanation_is_plain_data_and_html():
    f = ds.jit(store=False)(branchy)
    f(X)
    f(X)
    data = json.loads(json.dumps(f.explain().to_dict()))
    assert set(data) == {"name", "place", "stats", "traces", "notes", "companions"}
    assert data["name"] == "branchy"
    page = f.explain()._repr_html_()
    assert "<table>" in page and "y = x * 2.0 + 1.0" in page and "y.sum() &gt; 0" in page
    assert "y.sum() > 0" not in page  # escaped
    assert "<script" not in page


def test_explain_before_the_first_call():
    assert "has not been called" in str(ds.jit(poly).explain())


def test_explain_of_something_else():
    with pytest.raises(TypeError, match="dalsegno.explain needs a function made by dalsegno.jit"):
        ds.explain(poly)


def test_explain_names_every_reason():
    f = ds.jit(store=False)(calls_exec)
    for _ in range(3):
        f(1.0)
    text = str(f.explain())
    assert "not recorded, and why" in text or "ended:" in text
    assert "exec" in text


# ---- switches --------------------------------------------------------------------------------------------------------


def test_disable_enable_disabled():
    f = ds.jit(store=False)(poly)
    f(X)
    f(X)
    assert f.stats["replays"] == 1
    with ds.disabled():
        assert ds.config.disable
        assert same(f(X), poly(X))
        assert f.stats["replays"] == 1
        with ds.disabled():
            f(X)
        assert ds.config.disable
    assert not ds.config.disable
    f(X)
    assert f.stats["replays"] == 2
    ds.disable()
    f(X)
    assert f.stats["replays"] == 2
    ds.enable()
    f(X)
    assert f.stats["replays"] == 3


def test_disabled_ends_with_an_exception_too():
    with pytest.raises(KeyError), ds.disabled():
        raise KeyError
    assert not ds.config.disable


def test_disabled_by_the_environment(run_python):
    code = "import dalsegno as ds; f = ds.jit(lambda x: x + 1); print([f(i) for i in range(4)], f.stats['replays'])"
    assert run_python("-c", code).stdout.split("]")[1].strip() != "0"
    assert run_python("-c", code, DALSEGNO_DISABLE="1").stdout == "[1, 2, 3, 4] 0\n"


def test_clear_forgets_traces():
    f = ds.jit(store=False)(poly)
    f(X)
    f(X)
    assert f.stats["recordings"] == 1
    f.clear()
    assert not f.explain().traces
    f(X)
    assert f.stats["recordings"] == 2
    ds.clear()
    assert same(f(X), poly(X))
    assert f.stats["recordings"] == 3


def test_wait_returns():
    assert ds.wait() is None
