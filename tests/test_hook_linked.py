"""Rule 1: linked frames. Code that a step runs sees the frames that it would see in eager, and may keep them."""

from __future__ import annotations

import collections
import enum
import gc
import inspect
import io
import logging
import sys
import traceback
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from dalsegno._testing import hook as hooktest
from tests.hook_images import NULL, at, starting, with_frame_object

PY313 = sys.version_info >= (3, 13)


def helper(h: Any, step: Callable[..., Any]) -> Any:
    k = h
    return step(), k, h


def job(x: Any, step: Callable[..., Any]) -> Any:
    y = x
    return helper(y, step)


def images(step: Callable[..., Any], x: Any = 5) -> list[Any]:
    """job, at its call of helper, at its call of step."""
    return [at(job, {"x": x, "y": x, "step": step}), at(helper, {"h": x, "k": x, "step": step})]


def linked(step: Callable[..., Any], x: Any = 5) -> Any:
    """What step gives under linked frames; nobody may keep a frame."""
    (succeeded, value), kept, _, objects = hooktest.link(images(step, x), step)
    assert not kept and objects == [NULL, NULL]
    if not succeeded:
        raise value
    return value


def frames() -> list[Any]:
    found = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < 2:
        found.append(
            (
                frame.f_code,
                frame.f_lineno,
                sorted(frame.f_locals),
                frame.f_globals is globals(),
                frame.f_builtins["len"] is len,
            )
        )
        frame = frame.f_back
    return found


def warns() -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("one", stacklevel=2)
        warnings.warn("two", stacklevel=3)
    return [(str(w.message), w.lineno, w.filename) for w in caught]


def logs() -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(funcName)s %(lineno)d %(message)s"))
    logger = logging.Logger("hook")
    logger.addHandler(handler)
    logger.warning("here")
    logger.warning("there", stacklevel=2)
    logger.warning("further", stacklevel=3)
    return stream.getvalue()


def names_types() -> Any:
    return collections.namedtuple("T", "a")("x").__class__.__module__, enum.Enum("E", "a").__module__


def stack_lines() -> list[Any]:
    return [(entry.name, entry.lineno) for entry in traceback.extract_stack()[-3:]]


def inspects() -> list[Any]:
    return [(entry.function, entry.lineno, entry.positions is None) for entry in inspect.stack()[1:3]]


@pytest.mark.parametrize("step", [frames, warns, logs, names_types, stack_lines, inspects], ids=lambda f: f.__name__)
def test_a_step_sees_the_frames_of_eager(step: Callable[..., Any]) -> None:
    assert linked(step) == job(5, step)[0]


def test_the_outermost_goes_on_to_the_caller() -> None:
    def step() -> Any:
        frame = sys._getframe(1)
        assert frame.f_back is not None and frame.f_back.f_back is not None
        return [f.f_code.co_name for f in (frame, frame.f_back, frame.f_back.f_back, frame.f_back.f_back.f_back) if f]

    assert linked(step) == ["helper", "job", "linked", "test_the_outermost_goes_on_to_the_caller"]


def test_a_linked_frame_is_an_executing_frame() -> None:
    def step() -> None:
        with pytest.raises(RuntimeError, match="executing"):
            sys._getframe(1).clear()

    linked(step)


class Base:
    def method(self) -> str:
        return "base"


class Derived(Base):
    def method(self) -> Any:
        found = super()
        return found.method()

    def captured(self) -> Any:
        def inside() -> Any:
            return self

        found = super()
        return found.method(), inside


def test_super_looks_at_the_linked_frame() -> None:
    derived = Derived()
    cell = Derived.method.__closure__[0]
    # Where in the method the call is made does not matter to super().
    (succeeded, value), kept, _, _ = hooktest.link([at(Derived.method, {"self": derived, "__class__": cell})], super)
    assert succeeded and not kept
    assert value.method() == "base"
    boxed = {"self": types.CellType(derived), "__class__": Derived.captured.__closure__[0]}
    (succeeded, value), _, _, _ = hooktest.link([at(Derived.captured, boxed)], super)
    assert succeeded and value.method() == "base"


def test_an_exception_of_a_c_function_keeps_nothing() -> None:
    (succeeded, error), kept, _, _ = hooktest.link(images(nothing), int, "x")
    assert not succeeded and isinstance(error, ValueError) and not kept
    assert [f.name for f in traceback.extract_tb(error.__traceback__)] == []


def test_locals_and_eval_and_globals() -> None:
    values = hooktest.link(images(frames), locals)[0][1]
    assert values == {"h": 5, "k": 5, "step": frames}
    assert hooktest.link(images(frames), globals)[0][1] is globals()
    assert hooktest.link(images(frames), eval, "h + k")[0][1] == 10
    assert sorted(hooktest.link(images(frames), dir)[0][1]) == ["h", "k", "step"]


@pytest.mark.skipif(PY313, reason="3.13 gives a new dict each time")
def test_the_dict_of_locals_stays_the_same() -> None:
    (_, first), kept, dicts, _ = hooktest.link(images(frames), locals)
    assert not kept and dicts[1] is first and dicts[0] is NULL
    again = [images(frames)[0], with_frame_object(images(frames)[1], NULL, first)]
    (_, second), _, dicts, _ = hooktest.link(again, locals)
    assert second is first and dicts[1] is first

    def reads(step: Any) -> Any:
        step()
        return locals()

    image = at(reads, {"step": nothing}, [NULL, nothing] if not PY313 else [nothing, NULL], which=0, f_locals=first)
    assert hooktest.resume([image], None) is first
    assert first["step"] is nothing


def nothing() -> None:
    pass


# ---- frames that are kept ----


def reports(h: Any, step: Callable[..., Any]) -> Any:
    k = h
    step()
    k = (k, "later")
    frame = sys._getframe()
    return frame, frame.f_back, k


def calls_reports(x: Any, step: Callable[..., Any]) -> Any:
    y = x
    return reports(y, step)


def report_images(x: Any, keep: Callable[..., Any], objects: list[Any], *, resumed: bool) -> list[Any]:
    """calls_reports and reports, at their calls; or, resumed, reports behind its call."""
    outer = at(calls_reports, {"x": x, "y": x, "step": keep})
    inner = at(reports, {"h": x, "k": x, "step": keep}, which=0)
    if resumed:
        inner = (inner[0], inner[2], 0, inner[3], [None], *inner[5:])
    return [with_frame_object(outer, objects[0]), with_frame_object(inner, objects[1])]


def test_a_kept_frame_becomes_the_resumed_activation_s() -> None:
    kept_frames: list[types.FrameType] = []

    def keep() -> None:
        kept_frames.append(sys._getframe(1))

    _, kept, _, objects = hooktest.link(report_images(5, keep, [NULL, NULL], resumed=False), keep)
    (frame,) = kept_frames
    assert kept and objects[1] is frame and objects[0] is frame.f_back
    # Meanwhile it can be looked at.
    gc.collect()
    assert frame.f_code is reports.__code__ and frame.f_lineno == reports.__code__.co_firstlineno + 2
    assert dict(frame.f_locals) == {"h": 5, "k": 5, "step": keep}
    assert frame.f_back is not None and frame.f_back.f_locals["y"] == 5
    assert frame.f_back.f_back is sys._getframe()
    # Resumed, it runs on.
    inside, back, k = hooktest.resume(report_images(5, keep, objects, resumed=True), None)
    assert inside is frame and back is objects[0] and k == (5, "later")
    assert frame.f_locals["k"] == (5, "later") and frame.f_lineno > reports.__code__.co_firstlineno + 3
    assert frame.f_back is back
    frame.clear()
    assert dict(frame.f_locals) == {}


def test_kept_frames_can_be_released_without_being_resumed() -> None:
    class Value:
        pass

    kept_frames: list[types.FrameType] = []

    def keep() -> None:
        kept_frames.append(sys._getframe(1))

    value = Value()
    gone = weakref.ref(value)
    _, kept, _, objects = hooktest.link(report_images(value, keep, [NULL, NULL], resumed=False), keep)
    assert kept
    del value
    assert gone() is not None
    kept_frames.clear()
    objects.clear()
    gc.collect()
    assert gone() is None


def test_a_frame_kept_by_a_traceback() -> None:
    """The traceback of an exception holds the step's frame, and that one its callers."""

    def step() -> None:
        raise KeyError

    (succeeded, error), kept, _, objects = hooktest.link(images(step), step)
    assert not succeeded and kept
    frame = error.__traceback__.tb_frame
    assert frame.f_back is objects[1] and frame.f_back.f_back is objects[0]
    with pytest.raises(KeyError) as found:
        hooktest.resume([with_frame_object(i, o) for i, o in zip(images(step), objects, strict=True)], error)
    assert found.value is error
    entries = [
        f
        for f in traceback.walk_tb(error.__traceback__)
        if f[0].f_code in (job.__code__, helper.__code__, step.__code__)
    ]
    assert [f.f_code.co_name for f, _ in entries] == ["job", "helper", "step"]
    assert [f for f, _ in entries][:2] == objects
    del found, error, frame, entries


@pytest.mark.skipif(not PY313, reason="f_locals writes through since 3.13")
@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("keeps", [False, True])
def test_writing_through_f_locals(keeps: bool, extra: bool) -> None:
    kept_frames: list[types.FrameType] = []

    def step() -> None:
        frame = sys._getframe(1)
        frame.f_locals["k"] = "written"
        if extra:
            frame.f_locals["extra"] = "new"
        if keeps:
            kept_frames.append(frame)

    _, kept, _, objects = hooktest.link(report_images(5, step, [NULL, NULL], resumed=False), step)
    assert kept
    frame, _, k = hooktest.resume(report_images(5, step, objects, resumed=True), None)
    assert k == ("written", "later")
    assert frame.f_locals.get("extra") == ("new" if extra else None)
    assert not keeps or kept_frames == [frame]


def test_a_debugger_that_starts_in_a_step() -> None:
    """sys.settrace called in a step, f_trace set on its callers as pdb does: resumed frames are traced as in eager."""
    events: list[Any] = []

    def tracer(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code in (reports.__code__, calls_reports.__code__):
            events.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    def step() -> None:
        sys.settrace(tracer)
        frame: types.FrameType | None = sys._getframe(1)
        for _ in range(2):
            assert frame is not None
            frame.f_trace = tracer
            frame = frame.f_back

    calls_reports(5, step)
    sys.settrace(None)
    expected = list(events)
    events.clear()
    _, kept, _, objects = hooktest.link(report_images(5, step, [NULL, NULL], resumed=False), step)
    assert kept
    hooktest.resume(report_images(5, step, objects, resumed=True), None)
    sys.settrace(None)
    assert events == expected and len(events) > 4


def test_code_assigned_by_a_step() -> None:
    def victim(step: Callable[..., Any]) -> Any:
        local = 1
        return step(), local

    def step() -> Any:
        victim.__code__ = (lambda: None).__code__
        gc.collect()
        return sys._getframe(1).f_code.co_name, dict(sys._getframe(1).f_locals)

    image = at(victim, {"step": step, "local": 1})
    (succeeded, value), _, _, _ = hooktest.link([image], step)
    assert succeeded and value == ("victim", {"step": step, "local": 1})


def test_recursion_is_counted() -> None:
    def depth_left(n: int = 0) -> int:
        try:
            return depth_left(n + 1)
        except RecursionError:
            return n

    def eager(n: int) -> int:
        return eager(n - 1) if n else depth_left()

    def count(n: int) -> int:
        image = starting(eager, {"n": 0, "eager": types.CellType(0), "depth_left": types.CellType(0)})
        return int(hooktest.link([image] * n, depth_left)[0][1])

    assert count(1) - count(21) == 20
    limit = sys.getrecursionlimit()
    assert count(2 * limit) >= 0  # more frames than the limit allows: no crash
    assert sys.getrecursionlimit() == limit and eager(1) > 100


def test_many_links_leak_nothing() -> None:
    value = object()
    kept_frames: list[Any] = []

    def keep() -> None:
        kept_frames.append(sys._getframe(1))

    def look() -> None:
        sys._getframe(1).f_locals

    plain, looked, calling, behind = (
        report_images(value, step, [NULL, NULL], resumed=resumed)
        for step, resumed in ((nothing, False), (look, False), (keep, False), (keep, True))
    )

    def rounds(n: int) -> None:
        for _ in range(n):
            hooktest.link(plain, nothing)
            hooktest.link(looked, look)
            objects = hooktest.link(calling, keep)[3]
            if n % 2:
                hooktest.resume([with_frame_object(i, o) for i, o in zip(behind, objects, strict=True)], None)
            kept_frames.clear()

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(o) for o in (value, reports, calls_reports, reports.__code__, calls_reports.__code__)]

    rounds(100)
    rounds(101)
    before, memory = counts(), psutil.Process().memory_info().rss
    rounds(10_000)
    rounds(10_001)
    assert max(abs(a - b) for a, b in zip(counts(), before, strict=True)) <= 1
    assert psutil.Process().memory_info().rss - memory < 4 << 20


def test_frames_larger_than_the_pool_s() -> None:
    names = [f"v{i}" for i in range(100)]
    namespace: dict[str, Any] = {}
    exec("def large(step):\n" + "".join(f" {n} = {i}\n" for i, n in enumerate(names)) + " return step()\n", namespace)
    large = namespace["large"]

    def step() -> Any:
        return dict(sys._getframe(1).f_locals)

    values = {"step": step, **{n: i for i, n in enumerate(names)}}
    three = [at(large, values)] * 3
    for _ in range(300):
        assert hooktest.link(three, step)[0] == (True, values)


def test_cost() -> None:
    """A smoke test of the budget (40 ns a frame), with room for a busy machine."""
    cost = min(hooktest.link_cost(images(nothing), 20_000) for _ in range(5))
    assert cost < 400
