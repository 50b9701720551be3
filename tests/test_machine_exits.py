"""Leaving the replay machine: frames, exceptions, side traces, folded globals, shown frames; nothing leaks."""

from __future__ import annotations

import dis
import gc
import sys
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.machine_traces import ADD, EXIT, FLOAT64, GT, MUL, NONE, WRITES, TraceBuilder, machine, template, tree


@contextmanager
def planted(name: str) -> Iterator[None]:
    machine.set_fault(name)
    try:
        yield
    finally:
        machine.set_fault("")


def square_then_guard(function: Any = template) -> TraceBuilder:
    """y = x * x; if y > 1: return y. Left at offset 5 with y in a local."""
    b = TraceBuilder(function, params=1)
    x = b.params[0]
    start = b.snap([x, None], (), 1)
    b.type(x, float, start)
    y = b.binary(MUL, x, x, start)
    more = b.compare(GT, y, b.const(1.0), start)
    b.op("guard_true", more, effects=NONE, snapshot=b.snap([x, y], (), 5))
    b.release(x)
    b.ret(y)
    return b


def test_frames_of_an_exit() -> None:
    def inner(h: float) -> float:
        return h

    b = TraceBuilder(params=2)
    x, y = b.params
    callee = b.const(inner)
    b.op("enter", callee, x, effects=NONE)
    outer = b.frame([x, y, None], [y], 20, after=22)
    nested = b.frame([x], [None, x], 3, function=callee)
    b.op("guard_is", x, object=None, effects=NONE, snapshot=b.snap_frames(outer, nested))
    b.ret(x)
    one, two = object(), object()
    out = tree(b).run(0, (one, two))
    first, second = out["frames"]
    assert first == {"function": template, "offset": 20, "after": 22, "locals": [one, two, ...], "stack": [two]}
    assert second == {"function": inner, "offset": 3, "after": 0, "locals": [one], "stack": [..., one]}


def test_exception_keeps_its_traceback() -> None:
    def fails() -> None:
        raise LookupError("here")

    b = TraceBuilder(params=0)
    b.ret(b.op("call", b.const(fails), imm=0, snapshot=b.snap([])))
    out = tree(b).run(0, ())
    raised = out["raised"]
    assert isinstance(raised, LookupError)
    traceback: Any = raised.__traceback__
    assert traceback.tb_frame.f_code is fails.__code__
    assert traceback.tb_next is None
    assert out["op"] == 2


def test_side_trace_takes_over_unboxed_values() -> None:
    root = square_then_guard()
    made = tree(root)
    out = made.run(0, (0.5,))
    assert out["frames"][0]["locals"] == [0.5, 0.25]
    side = TraceBuilder(number=1, anchor=EXIT, params=2, parent=(0, out["op"], 0))
    x, y = side.params
    side.entry(side.frame([x, y], (), 5))
    here = side.snap([x, y], (), 5)
    side.type(x, float, here)
    side.type(y, float, here)
    z = side.binary(ADD, x, y, here)
    more = side.compare(GT, z, side.const(0.1), here)
    guard = side.op("guard_true", more, effects=NONE, snapshot=side.snap([x, z], (), 8))
    side.release(y, x)
    side.ret(z)
    made.add(side.data)
    assert made.run(0, (0.5,))["value"] == 0.75
    assert made.run(0, (2.0,))["value"] == 4.0
    assert made.exits(0)[-1] == {"op": out["op"], "which": 0, "count": 1, "side": 1}
    out = made.run(0, (0.01,))
    assert (out["trace"], out["op"], out["frames"][0]["locals"]) == (1, guard, [0.01, 0.01 + 0.01 * 0.01])
    grandchild = TraceBuilder(number=2, anchor=EXIT, params=2, parent=(1, guard, 0))
    grandchild.entry(grandchild.frame(grandchild.params, (), 8))
    grandchild.ret(grandchild.op("build_tuple", *grandchild.params, effects=NONE))
    made.add(grandchild.data)
    x_object = 0.01
    value = made.run(0, (x_object,))["value"]
    assert value == (0.01, 0.01 + 0.01 * 0.01)
    assert value[0] is x_object


def test_side_trace_of_an_item_that_came_though_exhaustion_was_expected() -> None:
    b = TraceBuilder(params=1)
    iterator = b.params[0]
    here = b.snap([], [iterator], 4)
    item = len(b.data["ops"])
    b.op("iter_next", iterator, imm=0, snapshot=here, exit_snapshot=b.snap([], [iterator, item], 5), effects=WRITES)
    b.ret(iterator)
    made = tree(b)
    assert made.run(0, (iter(()),))["outcome"] == "returned"
    out = made.run(0, (iter([7, 8]),))
    assert (out["which"], out["frames"][0]["stack"][1]) == (1, 7)
    side = TraceBuilder(number=1, anchor=EXIT, params=2, parent=(0, item, 1))
    side.entry(side.frame([], side.params, 5))
    side.ret(side.params[1])
    made.add(side.data)
    assert made.run(0, (iter([7, 8]),))["value"] == 7


def test_folded_globals() -> None:
    namespace: dict[str, Any] = {"helper": len, "other": 1}
    b = TraceBuilder(params=1)
    b.fold(namespace, "helper", len)
    b.fold(namespace, "absent")
    new = b.op("call", b.params[0], imm=0, snapshot=b.snap(b.params))
    b.op("guard_world", effects=NONE, snapshot=b.snap(b.params, [new], 7))
    b.ret(new)
    made = tree(b)
    assert made.run(0, (list,))["value"] == []
    namespace["other"] = 2
    namespace["more"] = 3
    assert made.run(0, (list,))["value"] == []
    out = made.run(0, (lambda: namespace.update(helper=max),))
    assert (out["outcome"], out["frames"][0]["offset"]) == ("left", 7)
    assert made.run(0, (list,))["outcome"] == "refused"
    namespace["helper"] = len
    assert made.run(0, (list,))["outcome"] == "returned"
    namespace["absent"] = 0
    assert made.run(0, (list,))["outcome"] == "refused"


def test_globals_that_changed_before_the_first_run() -> None:
    namespace = {"helper": max}
    b = TraceBuilder(params=0)
    b.fold(namespace, "helper", len)
    b.ret(b.const(1))
    assert tree(b).run(0, ())["outcome"] == "refused"


def test_side_trace_with_a_stale_global_is_not_taken() -> None:
    made = tree(square_then_guard())
    op = made.run(0, (0.5,))["op"]
    namespace = {"helper": max}
    side = TraceBuilder(number=1, anchor=EXIT, params=2, parent=(0, op, 0))
    side.fold(namespace, "helper", len)
    side.entry(side.frame(side.params, (), 5))
    side.ret(side.params[0])
    made.add(side.data)
    assert made.run(0, (0.5,))["outcome"] == "left"
    namespace["helper"] = len  # type: ignore[assignment]
    assert made.run(0, (0.5,))["outcome"] == "returned"


# ---- the interpreter goes on ---------------------------------------------------------------------------------------


def offset_of(function: Any, opname: str, nth: int = 0) -> int:
    found = [i for i in dis.get_instructions(function) if i.opname.startswith(opname)]
    return found[nth].offset // 2


def clamp(x: float) -> Any:
    y = x * x
    if y > 1.0:
        return y
    return ("small", x, y)


def test_the_interpreter_goes_on_after_a_failed_guard() -> None:
    b = TraceBuilder(clamp, params=1)
    x = b.params[0]
    start = b.snap([x, None], (), offset_of(clamp, "LOAD_FAST"))
    b.type(x, float, start)
    y = b.binary(MUL, x, x, start)
    more = b.compare(GT, y, b.const(1.0), start)
    b.op(
        "guard_true",
        more,
        effects=NONE,
        snapshot=b.snap([x, y], (), offset_of(clamp, "LOAD_FAST", 1 if sys.version_info >= (3, 13) else 2)),
    )
    b.release(x)
    b.ret(y)
    made = tree(b)
    for value in (3.0, 0.5, -1.0, 2, "no number"):
        try:
            wanted: Any = clamp(value)  # type: ignore[arg-type]
        except TypeError as e:
            with pytest.raises(TypeError) as caught:
                made.call(0, (value,))
            assert caught.value.args == e.args
            assert e.__traceback__ is not None
            assert e.__traceback__.tb_next is not None
            entries = [t.tb_frame.f_code for t in iter_traceback(caught.value.__traceback__)]
            assert entries[-1] is clamp.__code__
        else:
            assert made.call(0, (value,)) == wanted


def iter_traceback(traceback: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def outer(value: Any) -> Any:
    local = value
    return inner(local)


def inner(h: Any) -> Any:
    here = probe()
    return h, here


def probe() -> Any:
    frame = sys._getframe(1)
    names = [frame.f_code.co_name]
    values = [dict(frame.f_locals)]
    while frame.f_back is not None and len(names) < 2:
        frame = frame.f_back
        names.append(frame.f_code.co_name)
        values.append(dict(frame.f_locals))
    return names, values


def test_unknown_code_sees_the_frames_of_eager() -> None:
    b = TraceBuilder(outer, params=1)
    value = b.params[0]
    callee = b.const(inner)
    b.type(value, int, b.snap([value, None]))
    total = b.binary(ADD, value, value, b.snap([value, None]))
    b.op("enter", callee, total, effects=NONE)
    call = offset_of(outer, "CALL")
    frames = (
        b.frame([value, total], [], call, after=call + 4),
        b.frame([total, None], [], offset_of(inner, "CALL"), function=callee),
    )
    seen = b.op("call", b.const(probe), imm=0, snapshot=b.snap_frames(*frames))
    b.op("leave_frame", seen, effects=NONE)
    b.ret(seen)
    names, values = tree(b).run(0, (21,))["value"]
    assert names == ["inner", "outer"]
    assert values == [{"h": 42}, {"value": 21, "local": 42}]


def test_a_kept_frame_object_never_brings_back_old_variables() -> None:
    kept: list[types.FrameType] = []
    b = TraceBuilder(clamp, params=1)
    x = b.params[0]
    start = offset_of(clamp, "LOAD_FAST")
    none = b.op("call", b.const(lambda: kept.append(sys._getframe(1))), imm=0, snapshot=b.snap([x, None], (), start))
    b.release(none)
    new = b.op("call", b.const(float), x, imm=1, snapshot=b.snap([x, None], (), start))
    b.release(x)
    b.op("leave", snapshot=b.snap([new, None], (), start))
    made = tree(b)
    assert made.call(0, (3,)) == 9.0
    assert kept[0].f_code is clamp.__code__
    assert kept[0].f_locals["x"] == 3


# ---- planted faults ------------------------------------------------------------------------------------------------


def test_planted_faults_are_felt() -> None:
    assert tree(square_then_guard()).run(0, (0.5,))["outcome"] == "left"
    with planted("dropped_guard"):
        assert tree(square_then_guard()).run(0, (0.5,))["value"] == 0.25
    with planted("wrong_snapshot_slot"):
        assert tree(square_then_guard()).run(0, (0.5,))["frames"][0]["locals"] == [0.25, 0.5]
    b = TraceBuilder(params=1)
    x = b.params[0]
    b.op("guard_is", x, object=None, effects=NONE, snapshot=b.snap([x], (), 3))
    b.op("guard_is", x, object=None, effects=NONE, snapshot=b.snap([x], [x], 4))
    b.op("guard_is", x, object=None, effects=NONE, snapshot=b.snap([x], (), 6))
    b.ret(x)
    assert tree(b).run(0, (5,))["frames"][0]["offset"] == 3
    with planted("wrong_resume_offset"):
        assert tree(b).run(0, (5,))["frames"][0]["offset"] == 6


# ---- references ----------------------------------------------------------------------------------------------------


class Thing:
    """Counts how many there are."""

    alive = 0

    def __init__(self) -> None:
        Thing.alive += 1

    def __del__(self) -> None:
        Thing.alive -= 1


def busy_trace() -> TraceBuilder:
    """Objects, unboxed values, an inlined frame, an exit with all of them, a raising call."""
    b = TraceBuilder(params=3)
    x, f, flag = b.params
    start = b.snap([x, f, flag, None])
    b.type(x, float, start)
    y = b.binary(MUL, x, x, start)
    thing = b.op("call", f, imm=0, snapshot=start)
    pair = b.op("build_tuple", thing, y, effects=NONE)
    b.release(f)
    b.op("guard_is", flag, object=None, effects=NONE, snapshot=b.snap([x, None, flag, thing], [y, pair, pair], 9))
    z = b.binary(ADD, y, x, b.snap([x, None, flag, thing], [y, pair], 9))
    b.release(x, thing)
    b.ret(b.op("build_list", pair, z, effects=NONE))
    return b


@pytest.mark.parametrize("how", ["returns", "leaves", "raises", "refuses a type", "side trace"])
def test_no_references_are_kept(how: str) -> None:
    made = tree(busy_trace())

    def fails() -> None:
        raise ValueError

    x: Any = 1.5 if how != "refuses a type" else "1.5"
    flag = None if how in {"returns", "raises"} else object()
    args = (x, fails if how == "raises" else Thing, flag)
    if how == "side trace":
        out = made.run(0, args)
        side = TraceBuilder(number=1, anchor=EXIT, params=6, parent=(0, out["op"], 0))
        _, x_in, flag_in, thing, y, pair = side.params
        side.entry(side.frame([x_in, None, flag_in, thing], [y, pair, pair], 9, function=side.params[0]))
        side.data["entry"][0]["code"] = template.__code__
        side.ret(side.op("build_tuple", y, thing, effects=NONE))
        made.add(side.data)
        assert made.run(0, args)["outcome"] == "returned"
        del out
    made.repeat(0, args, 100)
    gc.collect()
    gc.disable()
    try:
        counts = [sys.getrefcount(o) for o in (*args, Thing)]
        blocks = sys.getallocatedblocks()
        made.repeat(0, args, 100_000)
        assert sys.getallocatedblocks() - blocks < 10_000
        assert all(abs(sys.getrefcount(o) - n) < 5000 for o, n in zip((*args, Thing), counts, strict=True))
    finally:
        gc.enable()
    assert Thing.alive == 0


def test_a_value_dies_where_it_is_released() -> None:
    order: list[str] = []

    class Noisy:
        def __del__(self) -> None:
            order.append("died")

    b = TraceBuilder(params=2)
    make, say = b.params
    first = b.op("call", make, imm=0, snapshot=b.snap(b.params))
    b.release(first)
    b.ret(b.op("call", say, imm=0, snapshot=b.snap(b.params)))
    tree(b).run(0, (Noisy, lambda: order.append("said")))
    assert order == ["died", "said"]


def test_programs_free_their_trace() -> None:
    class Marker:
        pass

    marker = Marker()
    reference = weakref.ref(marker)
    b = TraceBuilder(params=0)
    b.ret(b.const(marker))
    made = tree(b)
    made.run(0, ())
    del marker, b
    assert reference() is not None
    del made
    assert reference() is None


def test_deep_recursion_through_opaque_calls() -> None:
    """A RecursionError or an answer, never a crash."""
    b = TraceBuilder(params=1)
    again = b.params[0]
    b.ret(b.op("call", again, again, imm=1, snapshot=b.snap([again])))
    made = tree(b)
    depth = 0

    def recurse(me: Any) -> Any:
        nonlocal depth
        depth += 1
        out = made.run(0, (me,))
        if out["outcome"] == "refused":
            raise RecursionError
        if out["outcome"] == "left":
            raise out["raised"]
        return out["value"]

    with pytest.raises(RecursionError):
        recurse(recurse)
    assert depth > 100


def test_types_of_arrays_are_guarded() -> None:
    numpy = pytest.importorskip("numpy")
    b = TraceBuilder(params=1)
    b.array(b.params[0], FLOAT64, 2, b.snap(b.params))
    b.ret(b.params[0])
    made = tree(b)

    class Sub(numpy.ndarray):  # type: ignore[misc, name-defined]
        pass

    good = numpy.zeros((2, 3))
    unaligned = numpy.frombuffer(bytearray(49), dtype=numpy.uint8)[1:].view(numpy.float64).reshape(2, 3)
    for array, fits in [
        (good, True),
        (good.T, True),
        (good[::2], True),
        (good[0], False),
        (good.astype(numpy.float32), False),
        (good.astype(">f8"), False),
        (good.astype(numpy.longdouble), False),
        (good.view(Sub), False),
        (unaligned, False),
        (numpy.float64(1), False),
    ]:
        assert (made.run(0, (array,))["outcome"] == "returned") == fits


def test_the_class_of_an_object_is_guarded_again_after_unknown_code() -> None:
    class One:
        pass

    class Two:
        pass

    b = TraceBuilder(params=2)
    thing, change = b.params
    b.type(thing, One, b.snap(b.params))
    new = b.op("call", change, thing, imm=1, snapshot=b.snap(b.params))
    b.release(new)
    b.type(thing, One, b.snap(b.params, (), 7))
    b.ret(thing)
    made = tree(b)
    assert made.run(0, (One(), id))["outcome"] == "returned"
    out = made.run(0, (One(), lambda thing: setattr(thing, "__class__", Two)))
    assert (out["outcome"], out["frames"][0]["offset"]) == ("left", 7)
