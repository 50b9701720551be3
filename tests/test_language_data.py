# ruff: noqa: E501 - programs as text, tables of calls
"""One function for each kind of instruction and situation: as eager on every call, whatever changes from call to call; and for
those that the recorder covers, replayed from end to end. Here: containers, attributes, names, strings, unpacking."""

from __future__ import annotations

import collections
import math

import numpy as np
from tests.language_cases import A, B, Cases, M, Point

case = Cases()


# ---- containers


@case((1, 2), (A, B), (None, "x"))
def build_containers(a, b):
    return (a, b), [a, b], {"a": a, "b": b}, {1, 2}, frozenset((3,)), [], (), {}, (a,), [*(a, b), a], (*[b], a)


@case(([1, 2],), ([],), ([A],))
def list_methods(items):
    items.append(5)
    items.extend((6, 7))
    items.insert(0, "first")
    last = items.pop()
    items.reverse()
    return items, last, len(items), items.index(5), items[1:3], 6 in items


@case(({"a": 1},), ({},), ({"b": A, "a": 2},))
def dict_methods(d):
    d["new"] = 3
    d.setdefault("a", "default")
    d.update(z=1)
    d.update({"y": 2})
    gone = d.pop("new")
    return d, gone, d.get("nothing"), list(d), list(d.items()), "a" in d, "q" not in d, {**d, "k": 1}


@case(({1, 2},), (set(),))
def set_methods(s):
    s.add(7)
    s.discard(1)
    s |= {9}
    return s, s & {7, 9}, 7 in s, sorted(s)


@case(([1, 2, 3],), ([A, B],), ([1],))
def aliasing(items):
    same = items
    same.append("end")
    nested = [items, same]
    nested[0][0] = "start"
    return items, same, nested, items is nested[1]


@case(((3, "a"),), ((1.5, None),))
def tuples(t):
    return t + (1,), t * 2, t[0], t[-1], t[:1], len(t), t == (3, "a"), hash(t) == hash((3, "a"))


@case(
    ([3, 1, 2], 1), ([3, 1, 2], -5), ((1, 2, 3), 1), ("text", 2), ({1: "one"}, 1), (A, 1), (M, 1), (M, (0, 1)), ([1], 3)
)
def get_item(container, key):
    return container[key]


@case(([3, 1, 2], 1, "v"), ({}, 1, 2), (A, 0, 9.0), (M, 1, 5), (M, (0, 1), 7), (A, 0, "x"), ((1,), 0, 0))
def set_item(container, key, value):
    container[key] = value
    return container


@case(([3, 1, 2], 0), ({"a": 1, "b": 2}, "a"), ([1], 4), ({}, "a"))
def delete_item(container, key):
    del container[key]
    return container


@case(([1, 2, 3, 4],), ("abcdef",), (np.arange(9),))
def slices(s):
    return s[1:], s[:2], s[::2], s[::-1], s[-2:], s[1:3]


@case((M,), (np.arange(60).reshape(3, 4, 5),))
def array_slices(m):
    m[0] = m[1]
    m[1:, ::2] += 1
    m[..., 0] *= 2
    return m[1:, :2], m[None, 0], m[..., -1], m[m > 3], m[[0, 2]]


@case(([1, 2, 3, 4],), ([],))
def slice_assignment(s):
    s[1:3] = ["x"]
    s[:0] = (0,)
    s[len(s) :] = [9]
    del s[0]
    return s


Pair = collections.namedtuple("Pair", "left right")


@case((1, 2), (A, B))
def dataclass_and_namedtuple(a, b):
    p = Point(a, b)
    q = p.shifted(1) + p
    pair = Pair(q.x, b)
    return q, pair.left, pair[1], pair._replace(left=0)


@case(([1, 2],), ([],))
def collections_types(items):
    d = collections.deque(items)
    d.append(3)
    d.appendleft(0)
    counted = collections.defaultdict(list)
    counted["k"].append(d.pop())
    ordered = collections.OrderedDict(a=1)
    ordered["b"] = 2
    return list(d), dict(counted), list(ordered.items())


# ---- attributes


@case((Point(1, 2),), (Point(A, B),), (Point("a", "b"),), (Point([1], [2]),))
def attributes(p):
    p.x = p.x + p.y
    p.fresh = p.x
    p.y += p.x
    del p.fresh
    return p.x, p.y, hasattr(p, "fresh"), getattr(p, "fresh", None)


@case((M,), (A,), (np.float64(2),))
def array_attributes(a):
    return a.shape, a.dtype, a.ndim, a.size, a.T, a.strides, a.real


class Sized:
    count = 3

    def __init__(self, step):
        self.step = step

    @property
    def doubled(self):
        return self.step * 2

    @classmethod
    def counted(cls, n):
        return cls.count + n

    @staticmethod
    def plain(n):
        return n - 1

    def method(self, n):
        return self.step + n

    def __call__(self, n):
        return self.method(n) * self.count

    def __getitem__(self, key):
        return key * self.step

    def __len__(self):
        return 2

    def __eq__(self, other):
        return self.step == other

    __hash__ = None


@case((Sized(3), 1), (Sized(2.5), 2), (Sized(A), 1), (Sized("a"), 1))
def methods(s, n):
    return (
        s.method(n),
        s(n),
        Sized.counted(n),
        s.counted(n),
        s.plain(n),
        s.doubled,
        s[n],
        len(s),
        s == n,
        Sized.method(s, n),
    )


class Child(Sized):
    def method(self, n):
        return super().method(n) + 100


@case((Child(3), 1), (Child(1.5), 2), replays=False)
def super_method(s, n):
    return s.method(n)


@case((1,), (2.5,), (A,))
def new_instances(v):
    s = Sized(v)
    s.step = s.step + 1
    return s.step, s, type(s) is Sized


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a

    def __getattr__(self, name):
        return name + "?"


@case((1,), (A,))
def slots_and_getattr(v):
    s = Slotted(v)
    s.b = v
    return s.a, s.b, s.other


# ---- names and closures


@case((1,), (A,))
def walrus(a):
    if (b := a) is not None:
        c = [d := 3, d + 1]
    return b, c, d


@case((1,), (A,))
def delete_name(a):
    b = a
    del a
    return b


COUNTER = 0
FACTOR = 2.5


@case((1,), (A,), (2,))
def globals_read(a):
    return a * FACTOR, math.pi, np.pi, len


@case((1,), (A,), ("t",))
def closure_read(a):
    def inner(b):
        return a, b

    return inner(3), inner(a)


@case((5,), (0,), (1.5,), (40,), replays=False)
def closure_write(n):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    history = [add(n), add(2)]
    for i in range(int(n)):
        history.append(add(i))
    return total, history


@case((3,), (A,))
def closure_shared(a):
    def get():
        return a

    def put(v):
        nonlocal a
        a = v

    before = get()
    put((before, 1))
    return get(), before


def _adder(n):
    return lambda x: x + n


@case((1, 2), (A, 1.5), ("a", "b"))
def function_that_makes_a_function(x, n):
    add = _adder(n)
    return add(x), _adder(x)(n)


@case((3,), (1.5,))
def defaults_of_an_inner_function(a):
    def inner(x, y=a, *, z=(1, a)):
        return x, y, z

    return inner(1), inner(1, 2), inner(1, z=0), inner.__defaults__


# ---- f-strings


@case((3, 0.5), ("text", None), (np.float64(1.25), [1]), (True, "é"))
def f_strings(a, b):
    return f"{a}", f"<{a!r:>8}|{b!s}>", f"{a}{b}" + "x", f"{{}} {a=} {b!a}"


@case((3.14159, 8), (2, 10), (np.float64(0.1), 3), (1e300, 2), ("no", 1))
def f_string_formats(a, n):
    return f"{a:.3f} {a:{n}.2e} {n:03d}"


@case(("a b c", 2), ("", 0), ("Été", 1))
def strings(s, n):
    return (
        s.upper(),
        s.split(),
        s * n,
        s + "!",
        s[:n],
        "-".join(s),
        s.replace("a", "bb"),
        "%s:%d" % (s, n),
        s == "a b c",
        len(s),
    )


# ---- unpacking


@case(((1, 2),), ([A, B],), ("ab",), ({1: 0, 2: 0},), ((1, 2, 3),), (5,), (np.array([1.0, 2.0]),))
def unpack_two(pair):
    a, b = pair
    return b, a


@case(([1, 2, 3, 4],), ((1, 2),), ("abcd",), ([1],), (range(5),))
def unpack_star(items):
    first, *middle, last = items
    return first, middle, last


@case(((1, (2, [3, 4])),), (("a", "bc"),))
def unpack_nested(value):
    a, (b, c) = value
    a, b = b, a
    return a, b, c


@case((1, 2, 3, 4))
def swaps(a, b, c, d):
    a, b, c = c, a, b
    c, d = d, c
    return a, b, c, d


test_same_as_eager, test_replayed_from_end_to_end = case.tests()
