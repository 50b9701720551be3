# ruff: noqa: E501 - tables of attributes and calls
"""A jitted function is a function: attributes, decorators, inspect, mock, classes, coroutines, and code that is assigned."""

from __future__ import annotations

import asyncio
import copy
import dis
import functools
import gc
import inspect
import pickle
import sys
import types
import typing
import unittest
import weakref
from unittest import mock

import pytest

import dalsegno as ds

# ---- attributes ------------------------------------------------------------------------------------------------------


def make(a: int, /, b: float = 2.0, *rest: int, c: int = 3, **more: int) -> tuple[object, ...]:
    """Doc of make."""
    return a, b, rest, c, more


ATTRIBUTES = [
    "__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__", "__builtins__", "__name__", "__qualname__",
    "__doc__", "__module__", "__annotations__", "__dict__", "__class__",
]  # fmt: skip
if sys.version_info >= (3, 12):
    ATTRIBUTES.append("__type_params__")


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_the_plain_functions(name):
    assert getattr(ds.jit(make), name) is getattr(make, name)
    assert name in dir(ds.jit(make))


def fresh(function):
    """A copy of a plain function, with attributes of its own."""
    again = types.FunctionType(
        function.__code__, globals(), function.__name__, function.__defaults__, function.__closure__
    )
    functools.update_wrapper(again, function, updated=())
    again.__kwdefaults__ = copy.copy(function.__kwdefaults__)
    del again.__wrapped__
    return again


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("__name__", "n"),
        ("__qualname__", "q.n"),
        ("__doc__", None),
        ("__module__", "m"),
        ("__annotations__", {"a": int}),
    ],
)
def test_attributes_can_be_assigned(name, value):
    plain = fresh(make)
    f = ds.jit(plain)
    setattr(f, name, value)
    assert getattr(plain, name) == value == getattr(f, name)
    with pytest.raises((TypeError, AttributeError)) as ours:
        setattr(f, "__code__", 3)
    with pytest.raises(type(ours.value), match=str(ours.value)):
        plain.__code__ = 3


def test_an_attribute_that_is_not_there_says_so_as_a_function_does():
    plain = fresh(make)
    f = ds.jit(plain)
    for act in (lambda g: g.nothing, lambda g: delattr(g, "nothing"), lambda g: setattr(g, "__class__", int)):
        with pytest.raises((AttributeError, TypeError)) as wanted:
            act(plain)
        with pytest.raises(type(wanted.value)) as got:
            act(f)
        assert str(got.value) == str(wanted.value)


def test_attributes_of_ones_own():
    f = ds.jit(fresh(make))
    f.tag = 1
    assert f.__dict__ == vars(f) == {"tag": 1} and f.tag == 1 and hasattr(f, "tag")
    f.__dict__ = {"other": 2}
    assert f.other == 2 and not hasattr(f, "tag")
    del f.other
    assert not hasattr(f, "other")


def test_defaults_take_effect():
    @ds.jit
    def f(x=1, *, y=10):
        return x + y

    wanted = []
    for k in range(4):
        f.__defaults__, f.__kwdefaults__ = (k,), {"y": 100 * k}
        wanted.append([f(), f(5), f(y=7), 101 * k, 5 + 100 * k, 7 + k])
    assert all(row[:3] == row[3:] for row in wanted)
    f.__defaults__ = None
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'x'"):
        f()


def add_one(x):
    return x + 1


def add_hundred(x):
    return x + 100


@pytest.mark.parametrize("through", ["jitted", "plain"])
def test_code_assigned_takes_effect(through):
    plain = fresh(add_one)
    f = ds.jit(plain, store=False)
    assert [f(1) for _ in range(4)] == [2] * 4
    target = f if through == "jitted" else plain
    target.__code__ = add_hundred.__code__
    assert [f(1) for _ in range(4)] == [101] * 4
    assert f.stats["recordings"] == 2 and f.stats["replays"] == 6
    target.__code__ = add_one.__code__
    assert [f(1) for _ in range(4)] == [2] * 4


def test_code_assigned_many_times_as_in_a_notebook():
    f = ds.jit(fresh(add_one), store=False)
    for k in range(30):
        namespace: dict[str, types.FunctionType] = {}
        exec(f"def add(x): return x + {k}", namespace)
        f.__code__ = namespace["add"].__code__
        assert [f(1) for _ in range(3)] == [1 + k] * 3
    assert f.stats["replays"] == 60


def test_code_assigned_to_a_generator_function_and_back():
    def generate(x):
        yield x

    f = ds.jit(fresh(generate), store=False)
    assert list(f(1)) == [1]
    f.__code__ = add_one.__code__
    assert [f(1) for _ in range(3)] == [2] * 3 and f.stats["replays"] == 2
    f.__code__ = generate.__code__
    assert [list(f(1)) for _ in range(3)] == [[1]] * 3


def test_code_assigned_while_it_is_recorded():
    def first(n):
        if n == 0:
            f.__code__ = second.__code__
            return f(5)  # the new code, called inside the recording of the old
        return n

    def second(n):
        return n * 1000 if f or second else n

    f = ds.jit(first, store=False)
    assert f(0) == 5000
    assert [f(2) for _ in range(4)] == [2000] * 4


def test_code_assigned_while_it_is_replayed():
    codes = []

    def first(n, swap):
        swap()
        return n + 1

    def second(n, swap):
        return n + 1000

    f = ds.jit(first, store=False)
    for _ in range(3):
        f(1, lambda: None)

    def swap():
        codes.append(f.__code__)
        f.__code__ = second.__code__
        codes.append(f(1, swap))

    assert f(1, swap) == 2 and codes == [codes[0], 1001]
    assert [f(1, swap) for _ in range(3)] == [1001] * 3


# ---- decorators ------------------------------------------------------------------------------------------------------


def test_wraps_over_a_jitted_wrapper():
    def decorate(g):
        @functools.wraps(g)
        @ds.jit
        def wrapper(*args, **kwargs):
            return g(*args, **kwargs)

        return wrapper

    f = decorate(make)
    assert [f(1, c=5) for _ in range(3)] == [make(1, c=5)] * 3
    assert f.__wrapped__ is make and inspect.unwrap(f) is make and f.__name__ == "make" and f.__doc__ == make.__doc__
    assert inspect.signature(f) == inspect.signature(make)
    assert list(inspect.signature(f, follow_wrapped=False).parameters) == ["args", "kwargs"]
    assert f.stats["replays"] == 2 and "return g(*args, **kwargs)" in str(f.explain())
    again = ds.jit(f)  # the wrapper, not what it wraps
    assert [again(1) for _ in range(3)] == [make(1)] * 3 and again.stats["calls"] == 3
    del f.__wrapped__
    assert f.__wrapped__ is f._plain


def test_wraps_of_a_jitted_function():
    jitted = ds.jit(fresh(make))
    jitted.tag = 7

    @functools.wraps(jitted)
    def outer(*args):
        return jitted(*args)

    assert outer.__wrapped__ is jitted and outer.tag == 7 and inspect.signature(outer) == inspect.signature(make)
    assert inspect.unwrap(outer) is jitted._plain


def test_cached_and_partial():
    f = functools.lru_cache(ds.jit(add_one))
    assert [f(1) for _ in range(3)] == [2] * 3 and f.cache_info().hits == 2
    part = functools.partial(ds.jit(make), 1, c=9)
    assert [part() for _ in range(3)] == [make(1, c=9)] * 3


# ---- inspect and mock ------------------------------------------------------------------------------------------------


def test_inspect_sees_a_function():
    f = ds.jit(make)
    assert inspect.getfullargspec(f) == inspect.getfullargspec(make)
    assert inspect.signature(f, follow_wrapped=False) == inspect.signature(make)
    assert isinstance(f, types.FunctionType) and isinstance(f, ds.JitFunction)
    assert (
        inspect.isfunction(f)
        and inspect.isroutine(f)
        and not inspect.isbuiltin(f)
        and not inspect.isgeneratorfunction(f)
    )
    assert inspect.getsource(f) == inspect.getsource(make) and inspect.getfile(f) == __file__
    assert typing.get_type_hints(f) == typing.get_type_hints(make)
    assert [i.opname for i in dis.get_instructions(f)] == [i.opname for i in dis.get_instructions(make)]
    assert inspect.getclosurevars(f) == inspect.getclosurevars(make)
    assert inspect.getcallargs(f, 1) == inspect.getcallargs(make, 1)


class Shape:
    def __init__(self, width):
        self.width = width

    @ds.jit
    def area(self, height, *, scale=1):
        return self.width * height * scale


def test_mocks_with_a_spec_check_arguments():
    f = mock.create_autospec(ds.jit(make), return_value=4)
    assert f(1, 2) == 4
    with pytest.raises(TypeError, match="missing a required"):
        f()
    shape = mock.create_autospec(Shape)(3)
    shape.area(2, scale=3)
    with pytest.raises(TypeError):
        shape.area(2, 3)
    with mock.patch.object(Shape, "area", autospec=True, return_value=5) as area:
        one = Shape(2)
        assert one.area(3) == 5
        area.assert_called_once_with(one, 3)
        with pytest.raises(TypeError):
            one.area()
    assert [Shape(2).area(3) for _ in range(3)] == [6] * 3


# ---- classes ---------------------------------------------------------------------------------------------------------


def test_methods_that_become_class_methods_by_their_name():
    class A:
        @ds.jit
        def __init_subclass__(cls, **options):
            cls.tag = options

        @ds.jit
        def __class_getitem__(cls, key):
            return cls, key

        @ds.jit
        def __new__(cls, *args):
            made = object.__new__(cls)
            made.args = args
            return made

    class B(A, x=1):
        pass

    assert B.tag == {"x": 1} and not hasattr(A, "tag")
    for _ in range(3):
        assert A[3] == (A, 3) and B["k"] == (B, "k")
        assert type(B(1, 2)) is B and B(1, 2).args == (1, 2) and B(0).__new__(A, 5).args == (5,)
    kinds = [type(A.__dict__[name]) for name in ("__init_subclass__", "__class_getitem__", "__new__")]
    assert kinds == [classmethod, classmethod, staticmethod]


def test_methods_of_classes_with_slots_abstract_methods_and_properties():
    import abc

    class Base(abc.ABC):
        __slots__ = ("x",)

        @abc.abstractmethod
        @ds.jit
        def f(self): ...

        @functools.cached_property
        @ds.jit
        def never(self):
            raise AssertionError

    with pytest.raises(TypeError, match="abstract"):
        Base()

    class Made(Base):
        @ds.jit
        def f(self):
            return super().f()

    assert [Made().f() for _ in range(3)] == [None] * 3


# ---- coroutines and generators ---------------------------------------------------------------------------------------


@ds.jit
async def double(x):
    await asyncio.sleep(0)
    return 2 * x


@ds.jit
def numbers(n):
    for k in range(n):
        got = yield k
        if got:
            return got
    return -1


@ds.jit
async def later(n):
    for k in range(n):
        await asyncio.sleep(0)
        yield k


def test_coroutine_functions_stay_coroutine_functions():
    assert inspect.iscoroutinefunction(double) and asyncio.iscoroutinefunction(double)
    assert inspect.isgeneratorfunction(numbers) and not inspect.iscoroutinefunction(numbers)
    assert inspect.isasyncgenfunction(later) and not inspect.isgeneratorfunction(later)
    assert [asyncio.run(double(4)) for _ in range(3)] == [8] * 3
    assert list(numbers(3)) == [0, 1, 2] and inspect.isgenerator(numbers(1)) and inspect.isasyncgen(later(1))

    async def collect():
        return [k async for k in later(3)]

    assert asyncio.run(collect()) == [0, 1, 2]


def test_unittest_awaits_jitted_tests():
    class T(unittest.IsolatedAsyncioTestCase):
        @ds.jit
        async def test_x(self):
            await asyncio.sleep(0)
            raise AssertionError

    result = unittest.TestResult()
    T("test_x").run(result)
    assert len(result.failures) == 1 and not result.errors


def test_types_coroutine():
    @types.coroutine
    @ds.jit
    def wait(n):
        yield
        return n

    async def use():
        return await wait(5)

    assert inspect.isgeneratorfunction(wait) and wait.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE
    assert [asyncio.run(use()) for _ in range(3)] == [5] * 3
    assert types.coroutine(double) is double


def test_an_assigned_name_reaches_generators():
    f = ds.jit(fresh(numbers._plain))
    f.__name__, f.__qualname__ = "other", "some.other"
    made = f(2)
    assert (made.__name__, made.__qualname__) == ("other", "some.other")


# ---- as before -------------------------------------------------------------------------------------------------------


@ds.jit
def by_name(x):
    return x + 1


def test_pickles_copies_weakrefs_repr():
    assert pickle.loads(pickle.dumps(by_name)) is by_name and copy.copy(by_name) is by_name is copy.deepcopy(by_name)
    assert weakref.ref(by_name)() is by_name and repr(by_name).startswith("<dalsegno.jit of <function by_name at ")
    assert type(by_name) is ds.JitFunction and callable(by_name) and bool(by_name)


def test_a_jitted_function_that_holds_itself_is_collected():
    f = ds.jit(fresh(add_one))
    f.itself = f
    f.also = functools.partial(f, 1)
    for _ in range(3):
        f(1)
    gone = weakref.ref(f), weakref.ref(f._plain)
    del f
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_type_of_jitted_functions_loses_no_references():
    def count():
        gc.collect()
        return sys.getrefcount(ds.JitFunction)

    before = count()
    made = [ds.jit(lambda x: x) for _ in range(50)]
    assert count() >= before + 50
    made.clear()
    assert count() == before


def test_given_of_hypothesis():
    hypothesis = pytest.importorskip("hypothesis")
    seen = []

    @hypothesis.settings(max_examples=20, database=None, deadline=None)
    @hypothesis.given(x=hypothesis.strategies.integers(), y=hypothesis.strategies.booleans())
    @ds.jit
    def holds(x, y):
        seen.append(x)
        assert x + y >= x

    holds()
    assert len(seen) > 1

    @ds.jit
    @hypothesis.settings(max_examples=20, database=None, deadline=None)
    @hypothesis.given(hypothesis.strategies.integers())
    def fails(x):
        assert x < 100

    with pytest.raises(AssertionError):
        fails()
