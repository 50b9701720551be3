"""Generator expressions over texts, tuples, instances, dicts and sets that a builtin uses up; sorting by keys."""

import gc
import math
import sys
from collections import Counter, defaultdict, namedtuple
from typing import Any, NamedTuple

import pytest

import dalsegno as ds
from tests.test_folds import outcome, same


class Point:
    kind = "point"

    def __init__(self, x: Any, y: Any) -> None:
        self.x = x
        self.y = y

    def norm(self) -> Any:
        return self.x * self.x + self.y * self.y

    def near(self, x: Any, y: Any = 0) -> bool:
        return bool(abs(self.x - x) < 2)

    @property
    def total(self) -> Any:
        return self.x + self.y

    @staticmethod
    def twice(x: Any) -> Any:
        return 2 * x


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


class Asked(Point):
    def __getattr__(self, name: str) -> Any:
        return len(name)


class Named(NamedTuple):
    x: Any
    y: Any


Pair = namedtuple("Pair", "x y")

WORDS = ["alpha", "Beta", "", "gamma", "δelta", "be", "b\u20ac", "alpha"]
MIXED: list[Any] = [3, 1.5, True, "a", None, (1, 2), 2**70, -1]


def attributes(points: list[Any]) -> Any:
    return (
        sum(p.x for p in points),
        max(p.x * p.y for p in points),
        any(p.y > 3 for p in points),
        all(p.kind == "point" for p in points),
        list(p.kind for p in points),
        tuple(p.x for p in points if p.y),
    )


def bare_attributes(points: list[Any]) -> Any:
    return sum(p.x for p in points), min(p.x + p.y for p in points), list((p.y, p.x) for p in points)


def methods(points: list[Any], x: Any) -> Any:
    return (
        sum(p.norm() for p in points),
        any(p.near(x, 1) for p in points),
        [p.total for p in points],
        sum(p.total for p in points if p.near(x, 0)),
        max(points, key=lambda p: p.norm()).x,
        min(points, key=lambda p: (p.y, p.x)).y,
        [p.x for p in sorted(points, key=lambda p: p.x)],
        [p.x for p in sorted(points, key=lambda p: (-p.y, p.x), reverse=True)],
        sum(p.twice(p.x) for p in points),
    )


def texts(words: list[Any], a: Any) -> Any:
    return (
        "".join(w for w in words),
        ",".join(w.upper() for w in words if w),
        " ".join(w[::-1] for w in words),
        "-".join(w[:2] for w in words),
        "".join(w[0] for w in words if w),
        "".join(w[-1] + "!" for w in words if len(w) > 1),
        any(w.startswith(p) for w in words for p in ("be", a)),
        any(w.startswith(("be", "x")) for w in words),
        sum(w.count("a") for w in words),
        max(len(w) for w in words),
        max(w for w in words),
        min(w.lower() for w in words),
        sum(len(w.split("a")) for w in words),
        ";".join(f"{w}:{len(w):03d}{w!r:>9}" for w in words),
        ";".join(f"{w}" for w in words),
        ";".join("%s=%d" % (w, len(w)) for w in words),
        "".join(chr(ord(c) + 1) for w in words for c in w),
        sum(1 for w in words if "a" in w and w != "alpha"),
        sum(ord(c) for c in "".join(words)),
        "".join(w * 2 for w in words),
        "".join(sorted(w for w in words)),
        [w for w in sorted(words, key=len)],
        sorted(words, key=str.lower),
        sorted(words, key=lambda w: (len(w), w)),
        sorted(words, key=lambda w: w[-1:], reverse=True),
    )


def numbers_as_text(xs: list[Any]) -> Any:
    return (
        ",".join(str(x) for x in xs),
        ",".join(map(str, xs)),
        ",".join(f"{x:>6}" for x in xs),
        ",".join(repr(x) for x in xs),
        "".join(str(int(x)) for x in xs if x),
        " ".join(f"{x!s}{x!a}" for x in xs),
        ", ".join("%s" % x for x in xs),
        sum(int(str(x)[:1] or "0") for x in (1, 22, 333)),
    )


def containers(xs: list[Any]) -> Any:
    return (
        set(x for x in xs),
        set(x % 3 for x in xs),
        frozenset(-x for x in xs),
        set((x, x + 1) for x in xs),
        list(set(str(x) for x in range(20))),
        dict((x, x * x) for x in xs),
        dict((str(x), [x]) for x in xs),
        sorted(x % 5 for x in xs),
        sorted((x % 3, x) for x in xs),
        sorted((-x for x in xs)),
        min((x % 4, -x) for x in xs),
        max((x % 4, x, "a") for x in xs),
        list((x, x) for x in xs),
        tuple((i, x) for i, x in enumerate(xs)),
        all((x, 1) != (1, x) for x in xs),
        sum(1 for x in xs for y in xs if (x, y) < (y, x)),
        sum((x, x + 1) in {(1, 2), (5, 6)} for x in xs),
        any((x, y) == (2, 3) for x in xs for y in xs),
        [t for t in list((a, b, c, d) for a, b in zip(xs, xs[1:]) for c, d in ((1, 2), (3, 4)))][:3],
    )


def entries(d: dict[Any, Any]) -> Any:
    return (
        sum(v for v in d.values()),
        sum(v for k, v in d.items() if k != "b"),
        max(v for _, v in d.items()),
        [k for k in d],
        set(k for k in d),
        max(d, key=d.get),
        min(d, key=lambda k: d[k]),
        max(d.items(), key=lambda kv: kv[1]),
        sorted(d.items(), key=lambda kv: (-kv[1], str(kv[0]))),
        sorted(d, key=lambda k: -d[k]),
        sorted(d.values(), key=lambda v: v % 3, reverse=True),
        sum(d.get(k, 0) for k in ("a", "zz", 1)),
        any(d.get(k) is None for k in ("a", "zz", 1)),
        list((k, v) for k, v in d.items()),
        dict((v, k) for k, v in d.items()),
        all(k in d for k in ("a", "b")),
        "".join(str(k) for k in d),
    )


def members(s: Any) -> Any:
    return (
        sum(x for x in s),
        sorted(x for x in s),
        list(-x for x in s),
        any(x + 1 in s for x in s),
        max(x * 2 for x in s),
    )


@pytest.mark.parametrize("kind", [Point, Slotted, Named, Pair, Asked])
@pytest.mark.parametrize(
    "values", [[(1, 2), (3, 4), (5, 0)], [(1.5, 2), (-3, 4.25)], [(2**62, 2**62), (1, 1)], [], [(1, "a")]]
)
def test_attributes(kind: Any, values: list[Any]) -> None:
    points = [kind(x, y) for x, y in values]
    same(attributes, points)
    same(bare_attributes, points)
    same(methods, points, 1)


def test_attributes_of_several_classes_and_changed_ones() -> None:
    class Local(Point):
        @property
        def x(self) -> Any:  # type: ignore[override]
            return 7

        @x.setter
        def x(self, value: Any) -> None:
            self.__dict__["x"] = value

    def total(points: list[Any]) -> Any:
        return sum(p.x for p in points), [p.x for p in points], sum(p.norm() for p in points)

    points: list[Any] = [Point(1, 2), Local(3, 4), Slotted(5, 6), Named(7, 8), Point(9, 0)]
    jitted = ds.jit(store=False)(total)
    for change in range(12):
        if change == 4:
            Local.x = property(lambda self: -1)  # type: ignore[assignment, misc]
        if change == 6:
            points[0].__dict__["norm"] = lambda: 1000
        if change == 8:
            Point.norm = lambda self: 5  # type: ignore[method-assign, assignment, misc]
        if change == 10:
            del points[0].x
        assert outcome(jitted, points) == outcome(total, points)
        ds.wait()


@pytest.mark.parametrize("words", [WORDS, [], ["", ""], ["a", 3], ["one"], [None], ["a", b"b"]])
def test_texts(words: list[Any]) -> None:
    same(texts, words, "al")


@pytest.mark.parametrize(
    "xs", [[], [0, 1, 2], [1.5, -2.0, math.nan, math.inf], [True, False], [2**70, 1], ["a", "b"], [None], [1, (2, 3)]]
)
def test_numbers_as_text(xs: list[Any]) -> None:
    same(numbers_as_text, xs)


@pytest.mark.parametrize("xs", [[], [1, 2, 3], [5, 1, 2, 300, 7000, 1], [1.5, 2.5, 1.0], [2**62, 2**63], [True, 2]])
def test_containers(xs: list[Any]) -> None:
    same(containers, xs)


@pytest.mark.parametrize("kind", [dict, Counter, lambda d: defaultdict(int, d)])
@pytest.mark.parametrize("d", [{"a": 1, "b": 2, 1: 7}, {"a": 1.5, "b": 1.5}, {"b": 3}, {}, {"a": 1, "b": None}])
def test_entries(kind: Any, d: dict[Any, Any]) -> None:
    same(entries, kind(d))


@pytest.mark.parametrize("s", [{1, 2, 3}, frozenset({5, 1000, -7}), {1.5, 2.5}, set(), {"a", "b"}, {1, "a"}, {(1, 2)}])
def test_members(s: Any) -> None:
    same(members, s)


def test_members_where_some_were_taken_out() -> None:
    s = set(range(40))
    for k in range(0, 40, 3):
        s.discard(k)
    same(members, s)


def test_the_same_number_twice_is_one_object() -> None:
    def pairs(n: int) -> list[bool]:
        made = list((x, x) for x in range(n, n + 3)) + list((x, y) for x in range(n, n + 2) for y in (x, x + 0))
        rows = list(x for x in range(n, n + 2) for _ in range(3))
        return [a is b for a, b in made] + [a is b for a, b in zip(rows, rows[1:])]

    same(pairs, 100_000)


def test_identity_of_what_functions_give_back() -> None:
    def largest(x: Any, y: Any) -> Any:
        return x if x > y else y

    def pairs(xs: list[Any]) -> Any:
        a = list((x, largest(x, 0)) for x in xs)
        b = list((y, max(y, -1), int(y)) for y in range(70_000, 70_003))
        return [p[0] is p[1] for p in a], [q[0] is q[1] for q in b], [q[0] is q[2] for q in b]

    same(pairs, [100_000, 1.5, -3])


def test_keys_that_raise_or_cannot_be_compared() -> None:
    def by(items: list[Any], key: Any) -> Any:
        out = []
        for f in (sorted, max, min):
            try:
                out.append(f(items, key=key))  # type: ignore[operator]
            except Exception as e:
                out.append((type(e), str(e)))
        copy = list(items)
        try:
            copy.sort(key=key)
        except Exception as e:
            out.append((type(e), str(e)))
        return out, copy

    for items in (MIXED, [1, "a"], [(1, "a"), (1, 2)], [math.nan, 1.0, 0.5], [2**70, 5], [], [3, 1, 2], [1, 2.5, True]):
        for key in (lambda x: x, lambda x: (x, 1), lambda x: -x, len, str, None, lambda x: x[0]):
            same(by, items, key)


def test_sort_sees_an_empty_list_in_its_key() -> None:
    def by_itself(n: int) -> Any:
        xs = [k * 7 % 11 for k in range(n)]
        xs.sort(key=lambda x: len(xs) * 100 - x)
        ys = [k * 7 % 11 for k in range(n)]
        ys.sort(key=lambda y: -y, reverse=True)
        zs = sorted(xs, key=lambda x: (x in xs, x % 3))
        return xs, ys, zs, sys.getsizeof(ys) == sys.getsizeof([k for k in range(n)])

    same(by_itself, 11)


def test_sorts_are_stable() -> None:
    def stable(rows: list[Any]) -> Any:
        a = sorted(rows, key=lambda r: r[0])
        b = sorted(rows, key=lambda r: r[0], reverse=True)
        c = list(rows)
        c.sort(key=lambda r: r[1] % 3, reverse=False)
        d = sorted(rows, key=lambda r: str(r[0]))
        return a, b, c, d

    same(stable, [(k * 7 % 5, k) for k in range(200)])


def test_what_a_dying_list_holds_is_seen_to_die() -> None:
    died: list[int] = []

    class Seen:
        def __init__(self, k: int) -> None:
            self.k = k

        def __del__(self) -> None:
            died.append(self.k)

    def run(n: int) -> Any:
        died.clear()
        total = sum(s.k for s in [Seen(k) for k in range(n)])
        text = ",".join(str(s.k) for s in [Seen(k) for k in range(n)])
        first = any(s.k == 1 for s in [Seen(k) for k in range(n)])
        values = sum(s.k for s in {k: Seen(k) for k in range(n)}.values())
        return total, text, first, values, list(died)

    same(run, 4)


def test_finalisers_that_change_what_is_gone_through() -> None:
    xs: list[Any] = []

    class Cycle:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            del xs[len(xs) // 2 :]

    def run() -> Any:
        return (
            list((x, x + 1) for x in xs),
            sum(len(str(x).split("0")) for x in xs),
            sorted(xs, key=lambda x: (x % 7, x)),
            dict((x, (x, x)) for x in xs),
        )

    jitted = ds.jit(store=False)(run)
    before = gc.get_threshold()
    try:
        for k in range(12):
            gc.disable()
            xs[:] = range(1000, 1400)
            for _ in range(3):
                Cycle()
            gc.set_threshold(1 + k)
            gc.enable()
            pairs, _, ordered, table = jitted()
            gc.set_threshold(*before)
            assert pairs == [(x, x + 1) for x in range(1000, 1000 + len(pairs))]
            assert set(ordered) <= set(range(1000, 1400)) and all(v == (k, k) for k, v in table.items())
            ds.wait()
    finally:
        gc.set_threshold(*before)
        gc.enable()


def test_no_growth() -> None:
    points = [Point(k, k + 1.5) for k in range(6)]
    words = ["a\u20ac" * k for k in range(5)]
    d = {w: k for k, w in enumerate(words)}

    def all_of_them() -> Any:
        return (
            sum(p.total for p in points),
            ",".join(f"{w}{len(w)}" for w in words),
            sorted(d.items(), key=lambda kv: (-kv[1], kv[0])),
            set((p.x, str(p.y)) for p in points),
            max(points, key=lambda p: str(p.x)).x,
            max((w + "x", 1) for w in words),
        )

    jitted = ds.jit(store=False)(all_of_them)
    for _ in range(20):
        jitted()
        ds.wait()
    gc.collect()
    before = sys.getrefcount(points[0]), sys.getrefcount(words[3]), len(gc.get_objects()), sys.getallocatedblocks()
    for _ in range(3000):
        jitted()
    gc.collect()
    after = sys.getrefcount(points[0]), sys.getrefcount(words[3]), len(gc.get_objects()), sys.getallocatedblocks()
    assert before[:2] == after[:2]
    assert after[2] - before[2] < 50 and after[3] - before[3] < 200
