# ruff: noqa: E501 - programs as text, tables of calls
"""More of replay's own traps: things redefined, odd traces, recursion, and what lives how long. See test_traps.py."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, counting, run_python, stepped

# ---- things redefined


def test_a_function_redefined_as_by_a_notebook_cell_run_again():
    cell = """
@jit
def entry(x):
    return helper(x) {}
"""
    helper = "def helper(x):\n    return x {}\n"
    changes = [
        helper.format("+ 1"),
        cell.format("* 2"),
        cell.format("* 2"),
        cell.format("- 3"),
        helper.format("- 1"),
        cell.format("* 2"),
        helper.format("+ 1"),
    ]
    check_source(
        helper.format("+ 1") + cell.format("* 2"),
        # A class statement, not a def: the namespace's "entry" has to be there before the first call.
        f"def calls():\n    for change in {changes!r}:\n        yield change\n        for _ in range(3):\n            yield (np.array([1.0, 2.0]),), {{}}\n",
    )


def test_a_redefined_function_has_its_own_counters():
    namespace = {"ds": ds}
    source = "@ds.jit(store=False)\ndef f(x):\n    return x {}\n"
    exec(source.format("+ 1"), namespace)
    first = namespace["f"]
    assert [first(1) for _ in range(3)] == [2, 2, 2]
    exec(source.format("- 1"), namespace)
    assert [namespace["f"](1) for _ in range(3)] == [0, 0, 0]
    assert first(1) == 2


_CALLER = "from {module} import helper\nimport dalsegno as ds\n\n@ds.jit\ndef entry(x):\n    return [helper(x), 1]\n"


def test_a_callee_in_another_file_edited(tmp_path):
    (tmp_path / "caller.py").write_text(_CALLER.format(module="callee"))
    (tmp_path / "main.py").write_text(
        "import json, dalsegno as ds, caller\nr = [caller.entry(5) for _ in range(3)]\nds.wait()\nprint(json.dumps([r, caller.entry.stats]))\n"
    )
    for body, wanted, recordings in (
        ("x + 1", 6, 1),
        ("x + 1", 6, 0),
        ("x + 2", 7, 1),
        ("x * 2.0", 10.0, 1),
        ("x + 1", 6, None),
        ("x + 2", 7, None),
    ):
        (tmp_path / "callee.py").write_text(f"def helper(x):\n    return {body}\n")
        results, stats = run_python(tmp_path / "main.py", store=tmp_path / "store.sqlite", PYTHONDONTWRITEBYTECODE="1")
        assert results == [[wanted, 1]] * 3, body
        assert recordings is None or stats["recordings"] == recordings, (body, stats)
        assert stats["replays"] >= 2


def test_importlib_reload(tmp_path, monkeypatch):
    import importlib
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "dalsegno_test_reloaded.py"
    path.write_text("K = 1\ndef helper(x):\n    return x + K\n")
    import dalsegno_test_reloaded as module

    @ds.jit(store=False)
    def entry(x):
        return module.helper(x) * module.K

    try:
        for text, wanted in (
            ("", 6),
            ("K = 2\ndef helper(x):\n    return x + K\n", 14),
            ("K = 3\ndef helper(x):\n    return x - K\n", 6),
        ):
            if text:
                path.write_text(text)
                importlib.invalidate_caches()
                importlib.reload(module)
            assert [entry(5) for _ in range(4)] == [wanted] * 4
    finally:
        del sys.modules["dalsegno_test_reloaded"]
    assert entry.stats["replays"] >= 3


def test_a_class_redefined():
    text = "class Shape:\n    unit = {unit}\n    def __init__(self, n):\n        self.n = n\n    def area(self):\n        return self.n * self.unit {more}\n"
    changes = [
        text.format(unit=1, more=""),
        text.format(unit=2, more=""),
        text.format(unit=2, more="+ 1"),
        text.format(unit=1, more=""),
        "old = Shape(1.5)",
    ]
    check_source(
        text.format(unit=1, more="")
        + "\nold = Shape(5)\n\n@jit\ndef entry(n):\n    s = Shape(n)\n    return s.area(), old.area(), type(s) is type(old), isinstance(old, Shape), s\n",
        f"def calls():\n    for change in ['pass', *{changes!r}]:\n        yield change\n        for _ in range(3):\n            yield (2,), {{}}\n        yield (np.array([1.0, 2.0]),), {{}}\n",
    )


def test_a_class_changed_in_place():
    check_source(
        """
        class Vector:
            def __init__(self, x):
                self.x = x
            def __add__(self, other):
                return Vector(self.x + other.x)
            def size(self):
                return self.x

        @jit
        def entry(a, b):
            v = Vector(a) + Vector(b)
            return v.size(), v
        """,
        """
        def calls():
            for change in ("pass", "Vector.size = lambda self: self.x * 2", "Vector.__add__ = lambda s, o: s", "Vector.size = property(lambda s: lambda: 5)",
                           "Vector.__init__ = lambda s, x: setattr(s, 'x', -x)", "Vector.__new__ = lambda c, x: object.__new__(c)",
                           "Vector.__setattr__ = lambda s, n, v: object.__setattr__(s, n, v + 1)", "del Vector.size"):
                yield change
                for _ in range(3):
                    yield (1, 2), {}
                yield (1.5, np.ones(2)), {}
        """,
    )


# ---- odd traces


def _nothing():
    pass


def _itself(x):
    return x


def _constant(x):
    return 5


def _three(a, b, c):
    return c


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (_nothing, [()]),
        (_itself, [(1,), ([],), (np.ones(2),)]),
        (_constant, [(1,), ("a",)]),
        (_three, [(1, 2, 3), ([], {}, ())]),
    ],
)
def test_an_empty_trace(function, calls):
    check(function, *calls)


def test_an_empty_trace_gives_back_the_argument_itself():
    jitted = ds.jit(store=False)(_itself)
    value = object()
    for _ in range(5):
        assert jitted(value) is value


def test_an_exception_on_the_first_call():
    def inverse(x, log):
        log.append("before")
        r = 10 // x
        log.append("after")
        return r

    check(inverse, (0, []), (2, []), ("a", []), (0, []))
    check(inverse, ("a", []), (0, []), (3, []))
    check(inverse, (np.zeros(2, int), []), (np.ones(2, int), []))


def test_an_exception_on_a_later_call_only():
    def pick(table, key, i):
        row = table[key]
        row.append(i)
        return row[i] / i

    good = ({"a": [1.0, 2.0]}, "a", 1)
    check(
        pick,
        good,
        ({"a": [1.0, 2.0]}, "b", 1),
        ({"a": [1.0, 2.0]}, "a", 7),
        ({"a": [0.0]}, "a", 0),
        ({"a": (1, 2)}, "a", 1),
        good,
    )


def test_recursion_into_the_function_while_it_is_being_recorded():
    check_source(
        """
        @jit
        def entry(n, x):
            if n <= 0:
                return x * 2
            a = entry(n - 1, x + 1)
            return a + entry(n - 2, x)
        """,
        """
        def calls():
            for n in (5, 5, 5, 3, 0, 7, 4, -1):
                yield (n, 1), {}
                yield (n, np.array([1.0, 2.0])), {}
        """,
    )


def _deepest(function):
    reached, failed = 1, 4 * sys.getrecursionlimit()
    while failed - reached > 1:
        middle = (reached + failed) // 2
        try:
            function(middle)
            reached = middle
        except RecursionError:
            failed = middle
    return reached


def _countdowns(jit):
    @jit
    def itself(n):
        return 0 if n <= 0 else itself(n - 1) + 1

    def helper(n):
        return 0 if n <= 0 else mutual(n - 1)

    @jit
    def mutual(n):
        return helper(n) + 1

    @jit
    def spread(n):
        return (0 if n <= 0 else spread(*(n - 1,))) + 1

    return itself, mutual, spread


@pytest.mark.parametrize("settings", [{}, {"kernels": False, "background": False}, {"disable": True}])
def test_recursion_goes_as_deep_as_in_eager(settings):
    """3.12 counts evaluators, too: it is 1,500 of them that may be nested, two by two."""
    eager = [_deepest(f) for f in _countdowns(lambda f: f)]
    with ds.config(**settings):
        jitted = [_deepest(f) for f in _countdowns(ds.jit(store=False))]
    assert jitted == eager


def test_mutual_recursion_of_two_jitted_functions():
    check_source(
        """
        @jit
        def even(n, log):
            log.append(n)
            return True if n == 0 else odd(n - 1, log)

        @jit
        def odd(n, log):
            return False if n == 0 else even(n - 1, log)

        def entry(n):
            log = []
            return even(n, log), odd(n, log), log
        """,
        """
        def calls():
            for n in (4, 4, 5, 5, 0, 30, 1):
                yield (n,), {}
        """,
    )


def test_deep_recursion_ends_in_recursion_error_and_not_in_a_crash():
    @ds.jit(store=False)
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    for _ in range(4):
        assert down(50) == 50
        with pytest.raises(RecursionError):
            down(10**6)


def test_a_jitted_function_passed_to_itself():
    check_source(
        """
        @jit
        def entry(x, f=None):
            return x + 1 if f is None else f(x * 2) + f(x)
        """,
        """
        def calls():
            for n in range(3):
                yield (n,), {}
        """,
    )

    @ds.jit(store=False)
    def twice(x, f=None):
        return x + 1 if f is None else f(x * 2) + f(x)

    assert [twice(3, twice) for _ in range(6)] == [11] * 6


# ---- garbage collection


def _collected(reference: weakref.ref) -> bool:
    for _ in range(3):
        gc.collect()
    return reference() is None


class _Token:
    pass


def test_garbage_collection_of_the_function():
    def make():
        token = _Token()

        @ds.jit(store=False)
        def f(x):
            return x, token is not None

        for x in (1, 1, 1, "a", "a", "a"):
            assert f(x) == (x, True)
        return weakref.ref(f), weakref.ref(f.__wrapped__), weakref.ref(token)

    with stepped():
        for reference in make():
            assert _collected(reference)


def test_garbage_collection_of_the_functions_globals():
    namespace = {"ds": ds, "token": _Token(), "np": np}
    exec(
        "@ds.jit(store=False)\ndef f(x):\n    return token, x + 1, g(x)\n\ndef g(x):\n    return np.sqrt(x) * 2\n\nf(1.0), f(1.0), f(1), f(1), f(1)\n",
        namespace,
    )
    token, function = weakref.ref(namespace["token"]), weakref.ref(namespace["f"])
    del namespace
    assert _collected(token)
    assert _collected(function)


def test_garbage_collection_of_the_functions_class():
    def make():
        class Local:
            scale = 2

            @ds.jit(store=False)
            def method(self, x):
                return self.scale * x

        for x in (1, 1, 1.5, 1.5):
            assert Local().method(x) == 2 * x
        return weakref.ref(Local)

    assert _collected(make())


def test_the_function_dies_while_it_runs():
    namespace = {"ds": ds}
    exec(
        "def die():\n    del globals()['f']\n@ds.jit(store=False)\ndef f(x, last):\n    if last:\n        die()\n    return x + [last]\n",
        namespace,
    )
    for _ in range(3):
        assert namespace["f"]([1], False) == [1, False]
    assert namespace["f"]([1], True) == [1, True]
    assert "f" not in namespace


def test_cleared_while_it_runs():
    @ds.jit(store=False)
    def f(x, forget):
        if forget:
            f.clear()
        return x + [forget]

    for forget in (False, False, False, True, False, True, True, True, False, False):
        assert f([1], forget) == [1, forget]


def test_arguments_are_not_kept_alive():
    @ds.jit(store=False)
    def f(x):
        return [x, 1]

    with counting(f) as grown:
        for _ in range(5):
            token = _Token()
            reference = weakref.ref(token)
            f(token)
            del token
            assert _collected(reference)
    assert grown["calls"] == 5
