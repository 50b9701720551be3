"""Where replaying a recording could go wrong although each part is right: one test for each trap, and more where it has several forms.

Programs given as text run in every engine of the fuzzer, a second process that reads the first one's store among them.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dalsegno as ds
from tests.support import call, check, check_source, counting, run_python, stepped


def test_argument_changed_after_recording_and_between_calls():
    check_source(
        """
        @jit
        def entry(x, items, table):
            return x * 2 + x[0], sum(items) * len(items), table["k"], [x, items]
        """,
        """
        def calls():
            x, items, table = np.array([1.0, 2.0, 3.0]), [1, 2], {"k": 1.5}
            for n in range(8):
                yield (x, items, table), {}
                x[0] = -n
                items.append(n * 0.5 if n == 4 else n)
                table["k"] = x if n == 5 else n
        """,
    )


def test_output_of_one_call_passed_to_the_next():
    check_source(
        """
        @jit
        def entry(x, y):
            z = x * 0.5 + y
            z[0] += 1
            return z
        """,
        """
        def calls():
            x = y = np.array([1.0, 2.0, 3.0])
            for n in range(4):
                x = yield (x, y), {}
            for n in range(4):
                y = yield (y, y), {}
            z = yield (x, y), {}
            yield (z[::-1], z), {}
        """,
    )


def test_output_overwritten_by_the_caller_before_the_next_call():
    check_source(
        """
        @jit
        def entry(x):
            return x + 1, (x * 2).sum(), np.zeros(3)
        """,
        """
        def calls():
            x = np.array([1.0, 2.0, 3.0])
            for n in range(6):
                y, s, z = yield (x,), {}
                y[:] = 77
                z += n
        """,
    )


def test_the_same_array_twice():
    def product(a, b):
        a += 1
        c = a * b
        b[0] = 5
        return c + a, a is b

    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    check(product, (x, y), (x, x), (y, x), (y, y))
    check(product, (x, x), (x, y), (x, x[:]))


def test_a_view_of_an_input_at_another_offset():
    def shifted(a, b):
        a[1:] = b[:-1] * 2
        b += a
        return a - b, b[1:]

    base = np.arange(12.0)
    check(shifted, (base[0:5], base[5:10]), (base[0:5], base[1:6]), (base[3:8], base[0:5]), (base[0:5], base[0:5]))
    check(shifted, (base[0:5], base[2:7]), (base[0:5], base[7:12]), (base[0:10:2], base[1:11:2]))
    check(shifted, (base[1:6], base[5::-1][:5]), (base[0:5], base[5:10]))


@pytest.mark.parametrize("way", ["add", "slice", "in place"])
def test_an_input_that_overlaps_the_output(way):
    def by_add(a, out):
        return np.add(a * 2, a, out=out)

    def by_slice(a, out):
        out[...] = a * 2 + a
        return out

    def by_in_place(a, out):
        out += a
        out *= a
        return out

    function = {"add": by_add, "slice": by_slice, "in place": by_in_place}[way]
    base = np.arange(1.0, 11.0)
    calls = (base[:4], base[6:]), (base[:4], base[1:5]), (base[1:5], base[:4]), (base[:4], base[:4]), (base[3::-1], base[:4])
    check(function, *calls)
    check(function, *reversed(calls))


def test_a_constant_changed():
    source = """
        def helper(x):
            return x * 2

        @jit
        def entry(x):
            return helper(x) + LIMIT

        LIMIT = 0.0
        """
    calls = """
        def calls():
            x = np.array([-0.0, 2.0])
            for change in ("pass", "LIMIT = -0.0", "LIMIT = 1", "LIMIT = True", "LIMIT = 1.0", "pass",
                           "helper.__code__ = (lambda x: x * 3).__code__", "helper.__code__ = (lambda x: x * 3.0).__code__",
                           "helper = lambda x: x - 1", "getattr(entry, '__wrapped__', entry).__code__ = (lambda x: x - 7).__code__"):
                yield change
                for _ in range(3):
                    yield (x,), {}
                    yield (-0.0,), {}
        """
    check_source(source, calls)


@pytest.mark.parametrize("pair", [("0.0", "-0.0"), ("1", "True"), ("1", "1.0"), ("(1, 0.0)", "(1, -0.0)"), ("'a'", "b'a'"), ("2", "3")])
def test_a_constant_changed_between_processes(tmp_path, pair):
    template = "def helper(x):\n    return (x, CONSTANT)\n\ndef entry(x):\n    return (helper(x), [CONSTANT, x * 2])\n"
    driver = (
        "import json, sys, dalsegno as ds, program\n"
        "f = ds.jit(program.entry)\n"
        "print(json.dumps([repr(f(1.5)) for _ in range(3)]))\n"
    )
    (tmp_path / "driver.py").write_text(driver)
    for constant in (*pair, pair[0]):
        (tmp_path / "program.py").write_text(template.replace("CONSTANT", constant))
        wanted = f"((1.5, {constant}), [{constant}, 3.0])"
        got = run_python(tmp_path / "driver.py", store=tmp_path / "store.sqlite", PYTHONDONTWRITEBYTECODE="1")
        assert got == [wanted] * 3


def test_the_other_branch():
    def choose(x, flag):
        if flag:
            y = x + 1
        else:
            y = x - 1
        if y.sum() > 0:
            return y * 2
        return [y]

    x = np.array([1.0, 2.0])
    check(choose, (x, True), (x, False), (-x * 9, True), (-x, False), (x, []), (x, np.float64(2)))


def test_a_method_shared_by_two_instances():
    check_source(
        """
        class Model:
            def __init__(self, weight, bias):
                self.weight, self.bias, self.calls = weight, bias, 0

            @jit
            def __call__(self, x):
                self.calls += 1
                return self.weight * x + self.bias

            @jit
            def apply(self, x):
                return self(x) - self.bias

        class Other(Model):
            bias = 7

        one, two = Model(2, 1.5), Model(np.array([1.0, -1.0]), 3)
        three = Other(2.5, 1)
        del three.bias
        three.calls = 10.5

        def entry(which, x):
            m = (one, two, three)[which]
            return m(x), m.apply(x), m.calls, Model.__call__(m, x)
        """,
        """
        def calls():
            x = np.array([1.0, 2.0])
            for which in (0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2, 0, 1, 2):
                yield (which, x), {}
        """,
    )


def test_an_effect_once_per_call_not_once_per_recording(tmp_path, capsys):
    path = tmp_path / "effects"
    log: list[int] = []

    def effects(x):
        log.append(len(log))
        print("called", x)
        with_file(x)
        return x * 2 if x > 0 else -x

    def with_file(x):
        file = open(path, "a")
        file.write(f"{x}\n")
        file.close()

    jitted = ds.jit(store=False)(effects)
    arguments = [1, 1, 1, -1, -1, -1, 1, -1, 2.5, "x"]
    for x in arguments[:-1]:
        jitted(x)
    with pytest.raises(TypeError):
        jitted("x")
    assert log == list(range(len(arguments)))
    assert capsys.readouterr().out == "".join(f"called {x}\n" for x in arguments)
    assert path.read_text() == "".join(f"{x}\n" for x in arguments)
    assert jitted.stats["replays"] >= 2


def test_item_and_tolist():
    def leave_numpy(a):
        s = a.sum().item()
        first = a[0].item()
        items = a.tolist()
        if s > 3:
            return s * first, items
        return s, first, type(s), len(items), float(a[1]), int(a[1]), bool(a[1])

    floats = np.array([1.0, 2.0])
    check(leave_numpy, (floats,), (floats * 2,), (np.array([1, 2]),), (np.array([True, True]),), (floats.astype("f"),), (-floats,))


def test_shape_and_layout_change():
    def work(m, v):
        r = m * 2 + v
        return r, r.sum(), r.T, m.shape, len(m)

    def arrays(*shapes):
        return [np.arange(float(np.prod(s))).reshape(s) for s in shapes]

    small, wide, tall, one, empty = arrays((2, 3), (3, 8), (40, 3), (1, 1), (0, 3))
    check(work, (small, 1.0), (wide, 1.0), (tall, 1.0), (one, 1.0), (empty, 1.0))
    check(work, (small, small[0]), (tall, tall[0]), (wide.T, small[0]), (small[::-1, ::-1], small[1, ::-1]), (small[:, :1], small[0]))
    check(work, (small, small), (np.asfortranarray(small), small), (small, np.asfortranarray(small)), (small.astype("f"), small))
    check(work, (small, 1.0), (small[0], 1.0), (small[None], 1.0), (np.array(2.0).reshape(1), 1.0), (small, tall))


def test_keyword_instead_of_positional():
    def named(a, b=2, *, c=3):
        return a - b * c

    calls = call(7, 1), call(7, b=1), call(a=7, b=1), call(b=7, a=1), call(7), call(7, c=1), call(c=1, b=5, a=np.ones(2)), call(b=1), call(7, 1, a=2)
    check(named, *calls)
    check(named, *reversed(calls))


# ---- implicit inputs


_IMPLICIT = {
    "globals": ("SCALE = 2", "", "x * SCALE", ["SCALE = 3", "SCALE = np.array([1.0, 5.0])", "SCALE = 2", "del SCALE", "SCALE = 4", "x = 3"]),
    "builtins": ("", "", "len([x, x]) + x", ["len = lambda v: 10", "len = lambda v: 20", "del len", "sum = len"]),
    "closures": (
        "def make():\n    k = 2\n    def inner(x):\n        return x * k\n    def put(v):\n        nonlocal k\n        k = v\n    return inner, put\n"
        "inner, put = make()",
        "", "inner(x)", ["put(3)", "put(np.array([1.0, 5.0]))", "inner, put = make()", "put('a')", "put(2)"],
    ),
    "attributes": (
        "class Box: pass\nbox = Box(); box.v = 2", "", "x * box.v",
        ["box.v = 3", "box.v = 2.5", "box.v = np.ones(2)", "del box.v", "box.v = 1", "box = Box()", "box.v = 5"],
    ),
    "class attributes": (
        "class Base:\n    v = 1\nclass Box(Base): pass\nbox = Box()", "", "x * box.v",
        ["Base.v = 3", "Box.v = 2.5", "box.v = 7", "del Box.v", "del box.v", "Box.__getattribute__ = lambda s, n: 11 if n == 'v' else object.__getattribute__(s, n)",
         "del Box.__getattribute__", "box.__class__ = type('New', (), {'v': 13})", "del Base.v"],
    ),
    "module attributes": (
        "import types\nmod = types.ModuleType('mod'); mod.v = 2; mod.f = lambda x: x + 1", "", "mod.f(x) * mod.v",
        ["mod.v = 3", "mod.f = lambda x: x - 1", "mod.f = np.negative", "mod.v = 2.5", "del mod.v", "mod.__getattr__ = lambda n: 17"],
    ),
    "environment": (
        "import os\nos.environ['DALSEGNO_TEST_X'] = '2'", "", "x * int(os.environ.get('DALSEGNO_TEST_X', 9))",
        ["os.environ['DALSEGNO_TEST_X'] = '3'", "del os.environ['DALSEGNO_TEST_X']", "os.environ['DALSEGNO_TEST_X'] = 'no'",
         "os.environ['DALSEGNO_TEST_X'] = '4'"],
    ),
    "defaults": (
        "def helper(x, k=2, *, j=[1]):\n    j.append(k)\n    return x * k + len(j)", "", "helper(x)",
        ["helper.__defaults__ = (3,)", "helper.__defaults__ = None", "helper.__defaults__ = (np.ones(2),)", "helper.__kwdefaults__ = {'j': [1, 2, 3]}",
         "helper.__kwdefaults__ = None", "helper.__kwdefaults__ = {'j': [5]}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", _IMPLICIT)
def test_implicit_inputs(kind):
    setup, _, expression, changes = _IMPLICIT[kind]
    source = f"{setup}\n\ndef indirect(x):\n    return {expression}\n\n@jit\ndef entry(x):\n    return [{expression}, indirect(x)]\n"
    calls = f"def calls():\n    for change in ['pass', *{changes!r}]:\n        yield change\n        for _ in range(3):\n            yield (np.array([1.5, -2.0]),), {{}}\n        yield (2,), {{}}\n"
    check_source(source, calls)


def test_implicit_input_changed_inside_the_call():
    check_source(
        """
        FACTOR = 1
        class Box:
            v = 1
        box = Box()

        def change(by):
            global FACTOR
            FACTOR += by
            box.v = FACTOR
            if by > 2:
                Box.v = box.v
                del box.v
                globals()["helper"] = lambda x: x + by

        def helper(x):
            return x

        @jit
        def entry(x, by):
            before = FACTOR, box.v, helper(x)
            change(by)
            return before, x * FACTOR, box.v, helper(x)
        """,
        """
        def calls():
            for by in (1, 1, 1, 2, 2, 3, 3, 1, 1, 0.5):
                yield (np.array([1.0, 2.0]), by), {}
        """,
    )


# ---- things redefined


def test_a_function_redefined_as_by_a_notebook_cell_run_again():
    cell = """
@jit
def entry(x):
    return helper(x) {}
"""
    helper = "def helper(x):\n    return x {}\n"
    changes = [helper.format("+ 1"), cell.format("* 2"), cell.format("* 2"), cell.format("- 3"), helper.format("- 1"), cell.format("* 2"), helper.format("+ 1")]
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
    for body, wanted, recordings in (("x + 1", 6, 1), ("x + 1", 6, 0), ("x + 2", 7, 1), ("x * 2.0", 10.0, 1), ("x + 1", 6, None), ("x + 2", 7, None)):
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
        for text, wanted in (("", 6), ("K = 2\ndef helper(x):\n    return x + K\n", 14), ("K = 3\ndef helper(x):\n    return x - K\n", 6)):
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
    changes = [text.format(unit=1, more=""), text.format(unit=2, more=""), text.format(unit=2, more="+ 1"), text.format(unit=1, more=""), "old = Shape(1.5)"]
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


@pytest.mark.parametrize(("function", "calls"), [(_nothing, [()]), (_itself, [(1,), ([],), (np.ones(2),)]), (_constant, [(1,), ("a",)]), (_three, [(1, 2, 3), ([], {}, ())])])
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
    check(pick, good, ({"a": [1.0, 2.0]}, "b", 1), ({"a": [1.0, 2.0]}, "a", 7), ({"a": [0.0]}, "a", 0), ({"a": (1, 2)}, "a", 1), good)


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
    exec("@ds.jit(store=False)\ndef f(x):\n    return token, x + 1, g(x)\n\ndef g(x):\n    return np.sqrt(x) * 2\n\nf(1.0), f(1.0), f(1), f(1), f(1)\n", namespace)
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
    exec("def die():\n    del globals()['f']\n@ds.jit(store=False)\ndef f(x, last):\n    if last:\n        die()\n    return x + [last]\n", namespace)
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
