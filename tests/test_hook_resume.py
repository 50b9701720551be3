"""Resuming: chains of frames, what becomes of results, and what must not be left behind (rules 2 to 6, 9, 12, 14)."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import types
import weakref
from typing import Any

import psutil
import pytest

from dalsegno._testing import hook as hooktest
from tests.hook_images import DISCARD, NULL, at, starting


def inner(y: int) -> int:
    z = y + 1
    if z > 100:
        raise ValueError("boom", z)
    return z


def outer(x: int) -> tuple[int, int]:
    kept = "local"
    r = inner(x)
    return r, x


def guarded(x: int) -> Any:
    try:
        r = inner(x)
    except ValueError as error:
        return "caught", error.args, [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    return r


def chain(function: Any, x: int) -> list[Any]:
    """The function at its call of inner, and inner before its addition."""
    return [
        at(function, {"x": x, **({"kept": "local"} if function is outer else {})}, which=0),
        starting(inner, {"y": x}),
    ]


def lines(error: BaseException) -> list[tuple[str, int | None]]:
    return [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]


def test_a_chain() -> None:
    assert hooktest.resume(chain(outer, 5), None) == outer(5)
    assert hooktest.resume(chain(guarded, 5), None) == guarded(5)


def test_an_exception_is_caught_in_the_outer_frame() -> None:
    assert hooktest.resume(chain(guarded, 200), None) == guarded(200)
    thrown = ValueError("thrown")
    kind, arguments, entries = hooktest.resume(
        [*chain(guarded, 5)[:1], at(inner, {"y": 5}, [5, 1], opname="BINARY_OP")], thrown
    )
    assert (kind, arguments) == ("caught", ("thrown",))
    first = inner.__code__.co_firstlineno
    assert entries == [("guarded", guarded.__code__.co_firstlineno + 2), ("inner", first + 1)]


def test_an_exception_that_nobody_catches() -> None:
    with pytest.raises(ValueError) as expected:
        outer(200)
    with pytest.raises(ValueError) as found:
        hooktest.resume(chain(outer, 200), None)
    names = {"outer", "inner"}
    assert [e for e in lines(found.value) if e[0] in names] == [e for e in lines(expected.value) if e[0] in names]
    assert found.value.args == expected.value.args


def test_context_and_traceback_of_a_thrown_exception_stay() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise LookupError("second")
    except LookupError as error:
        thrown = error
    before = thrown.__context__
    assert before is not None
    with pytest.raises(LookupError) as found:
        hooktest.resume([at(outer, {"x": 1, "kept": 0}, [NULL, inner, 1])], thrown)
    assert found.value is thrown and found.value.__context__ is before
    assert [name for name, _ in lines(thrown)][-2:] == [
        "outer",
        "test_context_and_traceback_of_a_thrown_exception_stay",
    ]


def observed_inner(y: int) -> Any:
    frame = sys._getframe(1)
    assert frame.f_back is not None
    return frame.f_code.co_name, frame.f_lineno, frame.f_locals.get("x"), frame.f_back.f_code.co_name


def observed_outer(x: int) -> Any:
    return [observed_inner(x)]


def test_rule_2_the_inner_frame_sees_its_caller() -> None:
    def caller() -> Any:
        return hooktest.resume([at(observed_outer, {"x": 5}), starting(observed_inner, {"y": 5})], None)

    name, line, x, back = observed_outer(5)[0]
    found = hooktest.resume([at(observed_outer, {"x": 5}), starting(observed_inner, {"y": 5})], None)
    assert found == [(name, line, x, "test_rule_2_the_inner_frame_sees_its_caller")]
    assert caller() == [(name, line, x, "caller")]
    # The resumed frame stays what it was for a function that it calls afterwards.
    assert hooktest.resume([starting(observed_outer, {"x": 7})], None)[0][:3] == (name, line, 7)


class Box:
    def __init__(self) -> None:
        self.items: list[Any] = []

    def __setitem__(self, key: Any, value: Any) -> Any:
        self.items.append((key, value))
        return "ignored"


def stores(box: Box) -> Any:
    box[1] = 2
    return box.items


def test_rule_3_a_result_is_pushed_or_discarded() -> None:
    box = Box()
    images = [
        at(stores, {"box": box}, opname="STORE_SUBSCR", action=DISCARD),
        starting(Box.__setitem__, {"self": box, "key": 3, "value": 4}),
    ]
    assert hooktest.resume(images, None) == [(3, 4)]


def parameters(a: int, /, b: int, c: int = 3, *rest: int, k: int, o: int = 4, **more: int) -> Any:
    return a, b, c, rest, k, o, more


def many_parameters() -> Any:
    names = [f"p{i}" for i in range(300)]
    namespace: dict[str, Any] = {}
    exec(f"def many({', '.join(names)}, *, last): return p0, p299, last", namespace)
    return namespace["many"]


def test_every_kind_of_parameter() -> None:
    values = {"a": 1, "b": 2, "c": 5, "rest": (6,), "k": 7, "o": 8, "more": {"z": 9}}
    assert hooktest.resume([starting(parameters, values)], None) == tuple(values.values())
    many = many_parameters()
    assert hooktest.resume([starting(many, {"p0": 1, "p299": 2, "last": 3})], None) == (1, 2, 3)


def test_cells_and_free_variables() -> None:
    def make(a: int, b: int) -> Any:
        def add(c: int) -> int:
            nonlocal a
            a += c
            return a + b

        return add(1), add

    cell_a, cell_b = types.CellType(10), types.CellType(20)
    result, add = hooktest.resume([starting(make, {"a": cell_a, "b": cell_b})], None)
    assert (result, cell_a.cell_contents) == (31, 11)
    assert add.__closure__ == (cell_a, cell_b)
    other = types.CellType(100)
    assert hooktest.resume([starting(add, {"c": 1, "a": other, "b": cell_b})], None) == 121
    assert other.cell_contents == 101


def test_generators_are_refused() -> None:
    def numbers(x: int) -> Any:
        yield x

    with pytest.raises(SystemError, match="generator"):
        hooktest.resume([starting(numbers, {"x": 1})], None)
    images = [at(outer, {"x": 1, "kept": 0}, which=0), starting(numbers, {"x": 1})]
    with pytest.raises(SystemError, match="generator"):
        hooktest.resume(images, None)
    assert hooktest.default_evaluator()


def test_rule_6_the_handled_exception_is_the_thread_s() -> None:
    def reads() -> Any:
        return sys.exc_info()[1]

    assert hooktest.handled_exception() is None
    try:
        raise KeyError("k")
    except KeyError as error:
        assert hooktest.handled_exception() is error
        assert hooktest.resume([starting(reads, {})], None) is error
    assert hooktest.resume([starting(reads, {})], None) is None


def test_rule_12_recursion_is_counted() -> None:
    """Frames that wait for the frame inside count as eager's frames do."""

    def depth_left(n: int = 0) -> int:
        try:
            return depth_left(n + 1)
        except RecursionError:
            return n

    def leaf() -> int:
        return depth_left()

    def call(n: int) -> int:
        r = call(n - 1) if n else leaf()
        return r

    def eager() -> int:
        return call(8)

    def resumed() -> int:
        cell = dict(zip(call.__code__.co_freevars, call.__closure__ or (), strict=True))
        images: list[Any] = [at(call, {"n": n, **cell}, which=0 if n else 1) for n in range(8, -1, -1)]
        leaf_cells = dict(zip(leaf.__code__.co_freevars, leaf.__closure__ or (), strict=True))
        return int(hooktest.resume([*images, starting(leaf, leaf_cells)], None))

    assert abs(eager() - resumed()) <= 1  # resumed() itself is a C call further away
    assert hooktest.default_evaluator()


def test_rule_14_nothing_is_left_behind() -> None:
    enabled = gc.isenabled()
    for state in (True, False):
        (gc.enable if state else gc.disable)()
        seen: list[Any] = []

        def looks(seen: list[Any]) -> None:
            seen.append((gc.isenabled(), hooktest.default_evaluator()))

        hooktest.resume([starting(looks, {"seen": seen})], None)
        assert seen == [(state, True)]
        assert gc.isenabled() is state
    (gc.enable if enabled else gc.disable)()
    assert hooktest.default_evaluator()


def test_rule_14_collections_and_other_threads_meanwhile() -> None:
    """Finalisers, and threads that call functions, while frames are entered again and again."""
    stop = threading.Event()
    finalised: list[int] = []

    class Cyclic:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            finalised.append(inner(1))

    def busy() -> None:
        while not stop.is_set():
            outer(3)

    def makes(n: int, *rest: Any, **more: Any) -> int:
        Cyclic()
        return inner(n)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    thresholds = gc.get_threshold()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(1)
    for thread in threads:
        thread.start()
    try:
        free = dict(zip(makes.__code__.co_freevars, makes.__closure__ or (), strict=True))
        making, calling = [starting(makes, {"n": 5, "rest": (), "more": {}, **free})], chain(outer, 5)
        for _ in range(1000):
            assert hooktest.resume(making, None) == 6
            assert hooktest.resume(calling, None) == (6, 5)
    finally:
        stop.set()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert finalised and set(finalised) == {2}
    assert hooktest.default_evaluator()


def test_code_assigned_while_the_frame_was_away() -> None:
    """An image made for other code than the function's present one is entered with its own code (FrameImage::code)."""

    def changing(x: int) -> int:
        return x + 1

    def other(x: int, y: int, z: int) -> int:
        return x - 1

    image = starting(changing, {"x": 5})
    old = changing.__code__
    changing.__code__ = other.__code__
    assert hooktest.resume([(*image, old)], None) == 6
    assert changing.__code__ is other.__code__
    assert changing(5, 0, 0) == 4


def test_rule_9_values_are_released_when_eager_would() -> None:
    class Value:
        pass

    def drops(a: Any, b: Any) -> Any:
        a = None
        gone.append((first() is None, second() is None))
        return gone

    gone: list[Any] = []
    one, two = Value(), Value()
    first, second = weakref.ref(one), weakref.ref(two)
    free = dict(zip(drops.__code__.co_freevars, drops.__closure__ or (), strict=True))
    arguments = [[starting(drops, {"a": one, "b": two, **free})], None]
    del one, two, free
    image = arguments[0][0]
    locals_ = image[3]
    # The list of the test itself must not hold the values either.
    hooktest.resume_and_clear(arguments[0], locals_)
    assert gone == [(True, False)]
    assert second() is None


def test_many_resumes_leak_nothing() -> None:
    value = object()
    images = [at(outer, {"x": 5, "kept": value}, which=0), starting(inner, {"y": 5})]
    failing = [at(outer, {"x": 500, "kept": value}, which=0), starting(inner, {"y": 500})]
    refused = [at(outer, {"x": 1, "kept": value}, which=0), starting(counting, {"x": value})]

    def rounds(n: int) -> None:
        for _ in range(n):
            hooktest.resume(images, None)
            for bad in (failing, refused):
                try:
                    hooktest.resume(bad, None)
                except (ValueError, SystemError):
                    pass

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(o) for o in (value, inner, outer, inner.__code__, outer.__code__, None.__class__)]

    rounds(200)
    before, memory = counts(), psutil.Process().memory_info().rss
    rounds(10_000)
    assert max(abs(a - b) for a, b in zip(counts(), before, strict=True)) <= 1
    assert psutil.Process().memory_info().rss - memory < 4 << 20


def counting(x: Any) -> Any:
    yield x
