"""The names that functions and objects have in the store: equal exactly where the program is."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numpy as np
from dalsegno._testing import persist

ROOT = Path(__file__).resolve().parent.parent


def module(source: str, name: str = "keys_module", file: str = "keys.py") -> types.ModuleType:
    made = types.ModuleType(name)
    exec(compile(source, file, "exec"), made.__dict__)
    return made


def key(source: str, **where: str) -> str:
    return persist.function_key(module(source, **where).f)


BASE = "def f(x):\n    return x * 2 + 1\n"

# Nothing that a trace could notice.
SAME = {
    "a comment": "def f(x):\n    # twice\n    return x * 2 + 1\n",
    "shifted lines": "\n\n\n" + BASE,
    "other columns": "def f(x):\n        return (x * 2) + 1\n",
    "another function beside it": BASE + "def g(): pass\n",
    "annotations evaluated elsewhere": "def f(x: int) -> int:\n    return x * 2 + 1\n",
}
OTHER = {
    "constant": "def f(x):\n    return x * 3 + 1\n",
    "type of a constant": "def f(x):\n    return x * 2.0 + 1\n",
    "True for 1": "def f(x):\n    return x * 2 + True\n",
    "operator": "def f(x):\n    return x * 2 - 1\n",
    "parameter's name": "def f(y):\n    return y * 2 + 1\n",
    "one more parameter": "def f(x, y):\n    return x * 2 + 1\n",
    "kind of parameter": "def f(*, x):\n    return x * 2 + 1\n",
    "positional only": "def f(x, /):\n    return x * 2 + 1\n",
    "global's name": "def f(x):\n    return x * two + 1\n",
    "docstring": "def f(x):\n    'doc'\n    return x * 2 + 1\n",
    "closure": "def outer(two):\n    def f(x):\n        return x * two + 1\n    return f\nf = outer(2)\n",
    "qualified name": "class C:\n    def f(x):\n        return x * 2 + 1\nf = C.f\n",
    "generator": "def f(x):\n    yield x * 2 + 1\n",
    "handler": "def f(x):\n    try:\n        return x * 2 + 1\n    except ValueError:\n        pass\n",
}


@pytest.mark.parametrize("change", SAME)
def test_what_does_not_change_the_key(change: str) -> None:
    assert key(SAME[change]) == key(BASE)


def test_files_and_addresses_do_not_matter() -> None:
    assert key(BASE, file="/somewhere/else.py") == key(BASE)


@pytest.mark.parametrize("change", OTHER)
def test_what_changes_the_key(change: str) -> None:
    assert key(OTHER[change]) != key(BASE)


def test_the_module_is_in_the_key() -> None:
    assert key(BASE, name="other_module") != key(BASE)


# Constants that compare equal and are not.
CONSTANTS = [
    "1",
    "True",
    "1.0",
    "1j",
    "'1'",
    "b'1'",
    "0.0",
    "-0.0",
    "(1,)",
    "(True,)",
    "(1.0,)",
    "((1,),)",
    "(1, 2)",
    "None",
    "...",
] + ["1e308 * 10", "'\\ud800'", "'a\\0b'", "2 ** 70", "-1", "(0.0,)", "(-0.0,)", "(1, (0.0, 'x'))", "(1, (-0.0, 'x'))"]


def test_constants_count_by_type_and_bits() -> None:
    keys = {c: key(f"def f(x):\n    return {c}, x\n") for c in CONSTANTS}
    assert len(set(keys.values())) == len(CONSTANTS), keys
    plain = [c for c in CONSTANTS if "1e308" not in c and "**" not in c]
    in_sets = {c: key(f"def f(x):\n    return x in {{{c}, 99}}\n") for c in plain}
    assert len(set(in_sets.values())) == len(in_sets)


def test_nested_code_is_part_of_the_key() -> None:
    assert key("def f(x):\n    return lambda: x + 1\n") != key("def f(x):\n    return lambda: x + 1.0\n")
    assert key("def f(x):\n    return lambda: x + 1\n") == key("def f(x):\n\n    return (lambda:\n x + 1)\n")


def test_running_does_not_change_the_key() -> None:
    f = module("def f(x):\n    s = 0\n    for i in range(x):\n        s += i * 2\n    return s\n").f
    before = persist.function_key(f)
    for _ in range(200):
        f(100)  # specialised by now
    assert persist.function_key(f) == before
    sys.settrace(lambda *_: None)
    try:
        f(10)
        assert persist.function_key(f) == before
    finally:
        sys.settrace(None)
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        monitoring.use_tool_id(3, "test")
        monitoring.set_local_events(3, f.__code__, monitoring.events.INSTRUCTION | monitoring.events.LINE)
        try:
            f(10)
            assert persist.function_key(f) == before
        finally:
            monitoring.set_local_events(3, f.__code__, 0)
            monitoring.free_tool_id(3)


OTHER_PROCESS = """
import types
from dalsegno._testing import persist
SOURCE = "def f(x, y=(1, 2)):\\n    return x in {'a', 'b', 'c', 'd', 1, 2.5, None}, lambda: {(1, 2), (3, 4)}\\n"
SOURCE += "class C:\\n    __slots__ = ('p', 'q')\\n    def m(self): return 1\\n"
m = types.ModuleType("other")
exec(compile(SOURCE, "x.py", "exec"), m.__dict__)
import numpy as np
c_objects = [np.add, np.sum, np.ndarray, len, np.ndarray.sum, int, np.__dict__, np.float64]
for o in [m.f, m.f.__code__, m.C, m.f.__defaults__, np, *c_objects]:
    print(persist.fingerprint(o))
print(persist.function_key(m.f))
"""


def test_other_processes_give_the_same_names() -> None:
    def names(seed: str) -> list[str]:
        path = ":".join(p for p in sys.path if p)
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": path, "DALSEGNO_STORE": "off"}
        command = [sys.executable, "-c", OTHER_PROCESS]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.splitlines()

    first = names("1")
    assert len(first) == 14 and all(first), first
    assert names("2") == first
    assert first[5] == f"c:numpy.add:{np.__version__}"


# ---- literals ----------------------------------------------------------------------------------------------

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.binary(max_size=20)
    | st.just(...)
    | st.text(alphabet=st.characters(exclude_categories=()), max_size=20)
)
LITERALS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4), max_leaves=15
)


def bits(value: Any) -> Any:
    """A value that equals another one only if types and bits do."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, complex):
        return ("complex", struct.pack("<dd", value.real, value.imag))
    if isinstance(value, tuple):
        return ("tuple", *map(bits, value))
    if isinstance(value, frozenset):
        return ("frozenset", sorted(map(repr, map(bits, value))))
    return (type(value).__name__, value)


@given(LITERALS)
def test_literals_come_back(value: Any) -> None:
    back = persist.decode_literal(persist.encode_literal(value))
    assert bits(back) == bits(value)
    assert persist.encode_literal(back) == persist.encode_literal(value)


PREFIXES = st.sampled_from([b"int:", b"tuple:3:", b"float:", b"bytes:", b"frozenset:7:"])


@given(st.binary(max_size=40) | st.builds(lambda prefix, rest: prefix + rest, PREFIXES, st.binary(max_size=20)))
def test_hostile_literals_are_refused_or_sound(text: bytes) -> None:
    try:
        value = persist.decode_literal(text)
    except KeyError:
        return
    assert persist.encode_literal(value) is not None


def test_slices_and_dtypes_are_literals() -> None:
    for value in (
        slice(1),
        slice(None, -1),
        slice(0, 9, 2),
        np.dtype("f8"),
        np.dtype(bool),
        (np.dtype("c8"), slice(2)),
    ):
        assert persist.decode_literal(persist.encode_literal(value)) == value
    assert persist.encode_literal(np.dtype(">f8")) is None


def test_what_is_no_literal() -> None:
    class Int(int):
        pass

    for value in ([], {}, set(), Int(1), np.float64(1.0), ([],), object(), slice([]), np.dtype("V3")):
        assert persist.encode_literal(value) is None
    deep: Any = ()
    for _ in range(10000):
        deep = (deep,)
    assert persist.encode_literal(deep) is None
    with pytest.raises(KeyError):
        persist.decode_literal(b"tuple:" * 1000)
    assert persist.encode_literal(math.nan) != persist.encode_literal(-math.nan)


# ---- fingerprints ------------------------------------------------------------------------------------------

CLASS = """
class C:
    limit = 1
    def m(self):
        return 1
    @property
    def p(self):
        return 2
    @staticmethod
    def s():
        return 3
"""


def fingerprint(source: str, name: str = "C") -> str:
    return persist.fingerprint(getattr(module(source), name))


@pytest.mark.parametrize(
    "old, new",
    [
        ("return 1", "return 5"),
        ("return 2", "return 5"),
        ("return 3", "return 5"),
        ("limit = 1", "limit = 1.0"),
        ("def m", "def n"),
    ]
    + [
        ("class C:", "class C(Exception):"),
        ("    limit", "    __slots__ = ('a',)\n    limit"),
        ("@staticmethod\n", "@classmethod\n"),
    ],
)
def test_a_class_is_its_content(old: str, new: str) -> None:
    assert fingerprint(CLASS) == fingerprint("# moved\n\n" + CLASS)
    assert fingerprint(CLASS) != fingerprint(CLASS.replace(old, new))


def test_a_class_is_its_bases_content() -> None:
    derived = "class D(C):\n    pass\n"
    assert fingerprint(CLASS + derived, "D") != fingerprint(CLASS.replace("return 1", "return 5") + derived, "D")


def test_functions_differ_by_simple_defaults() -> None:
    defaults = [("1", "1"), ("1.0", "1"), ("1", "2"), ("None", "1"), ("[]", "1")]
    names = [fingerprint(f"def f(x={d}, *, k={k}): return x\n", "f") for d, k in defaults]
    assert len(set(names)) == len(names) and all(n.startswith("function:") for n in names)
    assert fingerprint("def f(x=[]): return x\n", "f") == fingerprint("def f(x=[1]): return x\n", "f")


def test_what_has_no_name_in_another_process() -> None:
    for value in (
        object(),
        [],
        [].append,
        np.zeros(3),
        np.frompyfunc(abs, 1, 1),
        {},
        np.random.default_rng(0),
        iter([]),
    ):
        assert persist.fingerprint(value) == "", value


def test_metaclasses_own_code_does_not_run() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit

    assert persist.fingerprint(Meta("C", (), {})) == ""


# ---- the way back ------------------------------------------------------------------------------------------

PROGRAM = """
import math
import numpy as np
LIMIT = 10
def helper(x, y=(1, 2.5)):
    return x + y[0], lambda: 'inner'
class K:
    def m(self): return 1
    @staticmethod
    def s(): return 2
def outer(h):
    def f(x, *, k=3):
        return h(np.add(x, LIMIT)), 'constant', 2.5
    return f
f = outer(helper)
"""


@pytest.fixture
def program() -> Any:
    made = module(PROGRAM, "keys_program")
    sys.modules["keys_program"] = made
    yield made
    del sys.modules["keys_program"]


def fetch(source: str, expected: Any, self: Any) -> Any:
    return persist.fetch(source, persist.fingerprint(expected), self)


def test_paths_lead_back(program: Any) -> None:
    f = program.f
    consts = f.__code__.co_consts
    for source, expected in [
        ("self", f),
        ("self.globals", f.__globals__),
        ("self.builtins", f.__builtins__),
        ("self.builtins[len]", len),
        ("self.code", f.__code__),
        (f"self.code.const[{consts.index('constant')}]", "constant"),
        ("self.globals[np]", np),
        ("self.globals[np].attr(add)", np.add),
        ("self.globals[np].attr(__dict__)", np.__dict__),
        ("self.closure[0]", program.helper),
        ("self.closure[0].defaults", program.helper.__defaults__),
        ("self.closure[0].defaults[0]", program.helper.__defaults__[0]),
        ("self.closure[0].defaults[0][1]", program.helper.__defaults__[0][1]),
        ("self.closure[0].code", program.helper.__code__),
        ("module:keys_program.attr(helper).globals", program.__dict__),
        ("module:keys_program.attr(K).attr(m)", program.K.m),
        ("module:keys_program.attr(K).attr(s)", program.K.s),
        ("type:keys_program.K", program.K),
        ("type:numpy.ndarray", np.ndarray),
        ("type:numpy.ndarray.attr(sum)", np.ndarray.sum),
        ("type:builtins.int", int),
        ("type:types.NoneType", type(None)),
        ("type:numpy.random.Generator", np.random.Generator),
        ("module:math", sys.modules["math"]),
        ("module:math.attr(sqrt)", math.sqrt),
        ("const:None", None),
        ("const:str:a.b[c]", "a.b[c]"),
    ]:
        found = fetch(source, expected, f)
        assert found is expected or (source.startswith("const:") and found == expected), source


@pytest.mark.parametrize(
    "source",
    [
        "",
        "sel",
        "selfish",
        "self.",
        "self[",
        "self.code.const[99]",
        "self.code.const[-1]",
        "self.code.const[x]",
        "self.globals[nothing]",
    ]
    + [
        "self.closure[1]",
        "self.closure[0",
        "self.attr(",
        "module:no_such_module",
        "module:os.path2",
        "type:builtins.no",
        "type:int",
        "type:.",
    ]
    + [
        "const:",
        "const:eval:1",
        "self.globals.globals",
        "self.code[0]",
        "self.defaults",
        "self.globals[np].attr(nothing)",
        "type:keys_program.f",
    ],
)
def test_paths_that_lead_nowhere(source: str, program: Any) -> None:
    with pytest.raises(KeyError):
        persist.fetch(source, persist.fingerprint(program.f), program.f)


def test_what_is_there_must_be_the_same(program: Any) -> None:
    named = persist.fingerprint(program.helper)
    assert persist.fetch("self.closure[0]", named, program.f) is program.helper
    other = module(PROGRAM.replace("'inner'", "'other'"), "keys_program")
    with pytest.raises(KeyError):
        persist.fetch("self.closure[0]", named, other.f)
    with pytest.raises(KeyError):
        persist.fetch("self.globals[LIMIT]", persist.fingerprint(10.0), program.f)
    with pytest.raises(KeyError):
        persist.fetch("self.globals", "", program.f)


def test_looking_up_runs_nothing(program: Any) -> None:
    class Loud(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit

    class Descriptor:
        def __get__(self, instance: Any, owner: Any) -> Any:
            raise SystemExit

    program.K.loud = Descriptor()
    program.__dict__["__getattr__"] = lambda name: sys.exit()
    program.module = Loud("loud")
    for source in (
        "type:keys_program.K.attr(loud)",
        "module:keys_program.attr(absent)",
        "self.globals[module].attr(x)",
    ):
        with pytest.raises(KeyError):
            persist.fetch(source, "const:None", program.f)
