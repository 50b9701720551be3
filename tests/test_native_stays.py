"""Loops stay native over objects of several classes and behind unknown code; what that code changes is seen."""

from __future__ import annotations

import heapq
import sys
from collections import deque
from typing import Any

import pytest

import numpy as np
from tests.native_kit import check_beside_others, same, steps_of


class Shape:
    sides = 0

    def __init__(self, size: Any) -> None:
        self.size = size
        self.seen = 0

    def area(self) -> Any:
        return self.size

    def visit(self) -> None:
        self.seen += 1


class Square(Shape):
    sides = 4

    def area(self) -> Any:
        return self.size * self.size


class Slim:
    __slots__ = ("seen", "size")
    sides = 1

    def __init__(self, size: Any) -> None:
        self.size = size
        self.seen = 0

    def area(self) -> Any:
        return self.size + 0.5

    def visit(self) -> None:
        self.seen += 2


def visits(shapes: list[Any], turns: int) -> Any:
    total, sides = 0, 0
    for _ in range(turns):
        for shape in shapes:
            shape.visit()
            total += shape.area()
            sides += shape.sides
    return total, sides, [s.seen for s in shapes]


def shapes_of(kinds: list[Any], n: int, size: Any) -> list[Any]:
    return [kinds[i % len(kinds)](size + i) for i in range(n)]


def visits_new(kinds: list[Any], n: int, size: Any, turns: int) -> Any:
    return visits(shapes_of(kinds, n, size), turns)


def test_objects_of_several_classes():
    kinds = [Shape, Square, Slim]
    for size in (2, 2.5, 2**62):
        check_beside_others(visits_new, (kinds, 12, size, 8), (kinds[:1], 5, size, 9), (kinds[::-1], 7, 1, 9))


def test_a_loop_over_several_classes_is_native():
    shapes = shapes_of([Shape, Square, Slim], 12, 2)
    assert steps_of(visits, shapes, 60) < 120


def test_an_attribute_of_its_own_hides_a_method():
    def hiding(n: int) -> Any:
        shapes = shapes_of([Shape, Square, Slim], n, 1)
        shapes[4].area = lambda: 100
        return visits(shapes, 9)

    check_beside_others(hiding, (9,), (12,))


# ---- behind code that nothing is known of


class Priority:
    """Compared by Python code."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        return self.value < other.value


def served(n: int) -> Any:
    queue: list[Any] = []
    out = []
    for i in range(n):
        heapq.heappush(queue, Priority(i * 7919 % 31))
        if i % 3 == 2:
            out.append(heapq.heappop(queue).value)
    return out


def test_heaps_of_objects():
    check_beside_others(served, (60,), (10,), (90,))


LIMIT = 5


def changed_by(poke: Any, at: int, n: int) -> Any:
    """`poke` is called by C code, which the loop calls."""
    a = np.arange(12.0)
    o = Shape(3)
    xs = [1, 2, 3]
    total = 0.0
    for k in range(n):
        if k >= at:
            list(map(poke, [(k, a, o, xs)]))
        total += a[k % len(a)].sum() + o.area() + len(xs) + LIMIT
        o.seen += 1
    return total, a.shape, type(o).__name__, o.seen, xs


def _reshapes(given: Any) -> None:
    given[1].shape = (12,) if given[0] % 3 else (3, 4)


def _turns_class(given: Any) -> None:
    given[2].__class__ = Square if given[0] % 2 else Shape


def _grows(given: Any) -> None:
    given[3].append(given[0])


def _sets_global(given: Any) -> None:
    global LIMIT
    LIMIT = given[0] % 4


def _sets_and_restores(given: Any) -> None:
    global LIMIT
    LIMIT = 5 if given[0] % 2 else 6


def _resizes(given: Any) -> None:
    given[1].resize((given[0] % 5 + 2,), refcheck=False)


@pytest.mark.parametrize(
    "poke", [_reshapes, _turns_class, _grows, _sets_global, _sets_and_restores, _resizes, str, repr]
)
@pytest.mark.parametrize("at", [0, 40])
def test_what_such_code_changes_is_seen(poke, at):
    def changed(n: int) -> Any:
        global LIMIT
        LIMIT = 5
        return changed_by(poke, at, n)

    same(changed, lambda: (90,), lambda: (60,))


def test_who_looks_at_the_frames_sees_the_variables():
    seen = []

    def looks(k: Any) -> Any:
        seen.append(sorted((name, repr(value)) for name, value in sys._getframe(1).f_locals.items() if name in "nkt"))
        return k

    def looked(n: int) -> Any:
        seen.clear()
        t = 0
        for k in range(n):
            t += sum(map(looks, [k]))
            t ^= k
        return t, list(seen)

    same(looked, lambda: (40,), lambda: (25,))


def test_a_trace_function_set_by_c_code_is_called():
    def traced(n: int) -> Any:
        lines = []

        def trace(frame: Any, event: str, argument: Any) -> Any:
            if frame.f_code.co_name == "traced":
                lines.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
            return trace

        total = 0
        sys.settrace(None)
        for k in range(n):
            if k == 33:
                list(map(sys.settrace, [trace]))
                sys._getframe().f_trace = trace
            if k == 36:
                list(map(sys.settrace, [None]))
            total += k
        return total, lines

    before = sys.gettrace()
    try:
        same(traced, lambda: (50,), lambda: (20,))
    finally:
        sys.settrace(before)


# ---- side traces of one loop have the same registers


class Marked:
    n = 4

    def __init__(self) -> None:
        self.n = 0


class Other(Marked):
    pass


def named(kinds: list[Any], n: int) -> Any:
    objects = [kind() for kind in kinds]
    total = 0
    out: list[Any] = []
    put = out.append
    for k in range(n):
        o = objects[k % len(objects)]
        for z in objects:
            total += z.n
        put(type(o).__name__)
    return total, out


def test_constants_of_one_side_trace_are_not_what_another_borrows():
    for kinds in ([Marked, Marked, Other], [Marked, Other, Marked], [Marked, Other], [Other, Marked, Marked]):
        same(named, lambda kinds=kinds: (kinds, 31))  # type: ignore[misc]
        check_beside_others(named, (kinds, 31), (kinds, 12))


# ---- values of two types under the keys of a dict


def nearest(n: int) -> Any:
    best: dict[Any, Any] = {}
    for k in range(n):
        for key in ((k % 7, k % 3), (k % 5, 1)):
            now = k * 31 % 17
            if now < best.get(key, float("inf")):
                best[key] = now
    return best


def test_defaults_of_another_type():
    check_beside_others(nearest, (60,), (9,), (120,))
    assert steps_of(nearest, 300) < 200


# ---- attributes of classes, and operators as functions


class Tagged(type):
    @property
    def tag(cls) -> str:
        return f"{cls.__name__} {sorted(sys._getframe(1).f_locals)}"


class Told:
    """Told by a descriptor what it is read from."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return len(sys._getframe(1).f_locals)


class Simple:
    rate = 3
    told = Told()

    @staticmethod
    def double(x: Any) -> Any:
        return 2 * x

    @classmethod
    def make(cls, x: Any) -> Any:
        return cls.rate + x


class Holder(Simple, metaclass=Tagged):
    pass


def reads_classes(classes: list[Any], n: int) -> Any:
    out: list[Any] = []
    for k in range(n):
        for c in classes:
            out.append((c.rate, c.told, c.double(k), c.make(k), c.__name__))
    return out


def test_attributes_of_classes():
    check_beside_others(reads_classes, ([Simple], 30), ([Simple, Holder], 20))


def test_attributes_of_a_metaclass_see_the_frames():
    def tags(n: int) -> Any:
        return [(k, Holder.tag, Holder.rate) for k in range(n)]

    same(tags, lambda: (20,), lambda: (5,))


def test_attributes_of_classes_that_change():
    def changes(n: int) -> Any:
        out = []
        Simple.rate, Simple.double = 3, staticmethod(lambda x: 2 * x)  # type: ignore
        for k in range(n):
            out.append(Simple.rate + int.__add__(k, 1) + Simple.double(k))
            if k % 10 == 9:
                Simple.rate += 1
                Simple.double = staticmethod(lambda x, k=k: x + k) if k > 30 else staticmethod(lambda x: 2 * x)  # type: ignore
        return out

    same(changes, lambda: (60,), lambda: (20,))


def operates(names: list[str], left: Any, right: Any) -> Any:
    out: list[Any] = []
    for name in names:
        try:
            out.append(
                {"add": int.__add__, "sub": float.__sub__, "neg": int.__neg__, "size": tuple.__len__}[name](left, right)
            )
        except TypeError as error:
            out.append(str(error))
    return out


def test_operators_as_functions():
    names = ["add", "sub", "neg", "size", "add"] * 6
    for pair in ((1, 2), (1.5, 2.0), (True, 2**70), ((1, 2), 3), (np.float64(2.5), 1.0)):
        check_beside_others(operates, (names, *pair), (names, 3, 4))


def test_operators_of_a_class_of_ones_own_see_the_frames():
    class Number(int):
        def __index__(self) -> int:
            return len(sys._getframe(1).f_locals)

        def __radd__(self, other: Any) -> Any:
            return sorted(sys._getframe(1).f_locals)

    def adds(n: int) -> Any:
        out = []
        for k in range(n):
            out.append(getattr(int, "__add__")(k, Number(2)))  # noqa: B009
            out.append(k + Number(3))
        return out

    same(adds, lambda: (20,), lambda: (30,))


class Falsy:
    def __bool__(self) -> bool:
        return len(sys._getframe(1).f_locals) % 2 == 0


class Sized:
    def __len__(self) -> int:
        return len(sys._getframe(1).f_locals)


def test_truths():
    def truths(things: list[Any]) -> Any:
        out = []
        for thing in things:
            try:
                out.append(bool(thing))
            except ValueError as error:
                out.append(str(error))
        return out, callable(things)

    plain = [[], [1], {}, {1: 2}, deque(), deque([1]), "", "a", (), (0,), 0, 1.5, None, set(), range(0), range(2)]
    odd = [np.zeros(1), np.ones(1), np.ones(2), np.float64(0.0), Falsy(), Sized(), Shape(1)]
    check_beside_others(truths, (plain,), (plain[::-1] * 2,), (plain + odd,), (odd,), ([deque([1])] * 20,))


class Size:
    """A size that says what it sees of its caller."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def __index__(self) -> int:
        self.seen.append(sorted(name for name in sys._getframe(1).f_locals if len(name) == 1))
        return 3


def test_random_numbers_of_a_size_that_looks():
    def drawn(n: int) -> Any:
        seen: list[Any] = []
        g = np.random.default_rng(3)
        total = 0.0
        for k in range(n):
            total += g.normal(size=Size(seen) if k == 25 else 4).sum()
            total += float(g.integers(0, 5, 3).sum())
        return total, seen

    same(drawn, lambda: (40,), lambda: (12,))
