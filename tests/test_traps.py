# ruff: noqa: E501 - programs as text, tables of calls
"""Where replaying a recording could go wrong although each part is right: one test for each trap, and more where it has several forms.

Programs given as text run in every engine of the fuzzer, a second process that reads the first one's store among them.
"""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from tests.support import call, check, check_source, run_python


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
    calls = (
        (base[:4], base[6:]),
        (base[:4], base[1:5]),
        (base[1:5], base[:4]),
        (base[:4], base[:4]),
        (base[3::-1], base[:4]),
    )
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


@pytest.mark.parametrize(
    "pair", [("0.0", "-0.0"), ("1", "True"), ("1", "1.0"), ("(1, 0.0)", "(1, -0.0)"), ("'a'", "b'a'"), ("2", "3")]
)
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
    check(
        leave_numpy,
        (floats,),
        (floats * 2,),
        (np.array([1, 2]),),
        (np.array([True, True]),),
        (floats.astype("f"),),
        (-floats,),
    )


def test_shape_and_layout_change():
    def work(m, v):
        r = m * 2 + v
        return r, r.sum(), r.T, m.shape, len(m)

    def arrays(*shapes):
        return [np.arange(float(np.prod(s))).reshape(s) for s in shapes]

    small, wide, tall, one, empty = arrays((2, 3), (3, 8), (40, 3), (1, 1), (0, 3))
    check(work, (small, 1.0), (wide, 1.0), (tall, 1.0), (one, 1.0), (empty, 1.0))
    check(
        work,
        (small, small[0]),
        (tall, tall[0]),
        (wide.T, small[0]),
        (small[::-1, ::-1], small[1, ::-1]),
        (small[:, :1], small[0]),
    )
    check(
        work,
        (small, small),
        (np.asfortranarray(small), small),
        (small, np.asfortranarray(small)),
        (small.astype("f"), small),
    )
    check(work, (small, 1.0), (small[0], 1.0), (small[None], 1.0), (np.array(2.0).reshape(1), 1.0), (small, tall))


def test_keyword_instead_of_positional():
    def named(a, b=2, *, c=3):
        return a - b * c

    calls = (
        call(7, 1),
        call(7, b=1),
        call(a=7, b=1),
        call(b=7, a=1),
        call(7),
        call(7, c=1),
        call(c=1, b=5, a=np.ones(2)),
        call(b=1),
        call(7, 1, a=2),
    )
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
