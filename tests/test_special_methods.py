"""Instances made, operators and subscripts in Python: recorded through, whatever the methods do."""

from __future__ import annotations

import textwrap

import pytest

from tests.support import check_source

VEC = """
    import sys, traceback
    LOG = []

    class Vec:
        __slots__ = ("x", "y")
        def __init__(self, x, y=1.0):
            self.x, self.y = x, y
        def __add__(self, other):
            if not isinstance(other, Vec):
                return NotImplemented
            return Vec(self.x + other.x, self.y + other.y)
        def __mul__(self, k):
            return Vec(self.x * k, self.y * k)
        def __rmul__(self, k):
            return Vec(k * self.x, k * self.y)
        def __eq__(self, other):
            return self.x == other.x if isinstance(other, Vec) else NotImplemented
        def __lt__(self, other):
            return self.x < (other.x if isinstance(other, Vec) else other)
        def __getitem__(self, i):
            return (self.x, self.y)[i]

    class Plain:
        unit = 2
        def __init__(self, *rest, scale=3, **more):
            self.rest = rest
            self.scale = scale
            for key in more:
                setattr(self, key, more[key])
"""

BODIES = {
    "sums": """
        @jit
        def entry(n):
            s = Vec(0.0)
            for i in range(n):
                s = s + 2 * Vec(i * 0.5) * 3
                s += Vec(1.0, 2.0)
            return s.x, s.y, s[1]
    """,
    "comparisons": """
        @jit
        def entry(n):
            s, c = Vec(0), 0
            for i in range(n):
                s = s + Vec(i)
                c += (s == Vec(6)) + (s == 6) * 100 + (s < Vec(50)) + (s < 20) + (s != s) + (5 == s)
            return c, s[0]
    """,
    "not implemented": """
        @jit
        def entry(n):
            s = Vec(0)
            for i in range(n):
                other = Vec(i) if i < 7 else i
                s = s + other
            return s.x
    """,
    "not implemented in place": """
        @jit
        def entry(n):
            s = Vec(0)
            for i in range(n):
                s += Vec(i) if i % 9 else 1.5
            return s.x
    """,
    "no order": """
        class Only:
            def __init__(self, x): self.x = x
            def __lt__(self, other): return NotImplemented if self.x > 5 else True
            def __gt__(self, other): LOG.append(self.x); return NotImplemented if self.x > 8 else False
        @jit
        def entry(n):
            return [Only(i) < Only(i + 1) for i in range(n)], LOG
    """,
    "attributes in any order": """
        @jit
        def entry(n):
            made = []
            for i in range(n):
                p = Plain(i, i, scale=i, **({"a": 1} if i % 3 else {"b": 2, "rest": 5}))
                p.z = i
                made.append((p.__dict__, Plain(unit=i).unit, Plain().unit))
            return made
    """,
    "init raises": """
        class Picky:
            def __init__(self, x):
                self.x = x
                self.inverse = 1 / x
        @jit
        def entry(n):
            seen = []
            for i in range(-n, n):
                try:
                    seen.append(Picky(i).inverse)
                except ZeroDivisionError as e:
                    seen.append([f.name for f in traceback.extract_tb(e.__traceback__)])
            return seen
    """,
    "init returns something": """
        class Odd:
            def __init__(self, x):
                return None if x < 9 else x
        @jit
        def entry(n):
            seen = []
            for i in range(n):
                try:
                    seen.append(type(Odd(i)).__name__)
                except TypeError as e:
                    seen.append(str(e))
            return seen
    """,
    "too many arguments": """
        @jit
        def entry(n):
            for i in range(n):
                v = Vec(*range(1 + i // 6))
            return v.x
    """,
    "class changes": """
        class Late:
            def __init__(self, x): self.x = x
            def __add__(self, other): return self.x + other
        @jit
        def entry(n):
            seen = []
            for i in range(n):
                seen.append(Late(i) + 1)
                if i == 8: Late.__add__ = lambda self, other: -other
                if i == 10: Late.__init__ = lambda self, x: setattr(self, "x", -x)
                if i == 12: Late.__new__ = lambda cls, x: Vec(x)
            return seen
    """,
    "class of an operand changes": """
        class Sub(Vec):
            __slots__ = ()
            def __radd__(self, other): return "sub"
            def __gt__(self, other): return "reflected"
        @jit
        def entry(n):
            seen = []
            for i in range(n):
                v = Vec(i)
                if i > 6: v.__class__ = Sub
                seen.append((type(Vec(1) + v).__name__, Vec(1) < v))
            return seen
    """,
    "frames": """
        class Looks:
            def __init__(self, x):
                self.x = x
                self.seen = tuple(f.name for f in traceback.extract_stack()[-2:])
            def __add__(self, other): return sys._getframe(1).f_lineno, self.seen
            def __getitem__(self, i): return sys._getframe(0).f_code.co_name, i
        @jit
        def entry(n):
            return [(Looks(i) + i, Looks(i)[i]) for i in range(n)][-1]
    """,
    "dies inside": """
        class Dying:
            def __init__(self, x): self.x = x
            def __del__(self): LOG.append((self.x, sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno))
            def __add__(self, other): self = other; return Dying(other)
            def __getitem__(self, i): return i
        @jit
        def entry(n):
            d = Dying(0)
            for i in range(n):
                d = d + i
                LOG.append(Dying(-i)[i])
                if i == n - 3: Dying(1 / (i - n + 3) if i > n else 7)
            return d.x, LOG[:]
    """,
    "abstract and metaclasses": """
        import abc
        class Meta(type):
            def __call__(cls, *a): LOG.append(a); return type.__call__(cls, *a)
        class M(metaclass=Meta):
            def __init__(self, x): self.x = x
        class A(abc.ABC):
            def __init__(self, x): self.x = x
        class S(A):
            pass
        class T(tuple):
            def __init__(self, x): self.x = x
            def __add__(self, other): return "T"
        @jit
        def entry(n):
            for i in range(n):
                x = M(i).x + A(i).x + S(i).x + T((i, i)).x[0]
                y = T((i,)) + T((1,)), T((i,)) * 2
            return x, y, LOG
    """,
    "numbers": """
        class F(float):
            def __init__(self, x): self.extra = 1
            def __mul__(self, other): return "F"
        class L(list):
            def __init__(self, *x): self.append(x)
            def __mul__(self, other): return NotImplemented
        @jit
        def entry(n):
            return [(F(i) * 2, 2 * F(i), F(i) + 1, L(i) * 2, L(1) + L(2)) for i in range(n)]
    """,
    "keeps its frame": """
        class Keeps:
            def __init__(self, x):
                self.frame = sys._getframe()
                self.x = x
                x = None
        @jit
        def entry(n):
            seen = []
            for i in range(n):
                k = Keeps(i)
                seen.append((k.frame.f_locals["x"], k.x, k.frame.f_back is None))
                k.frame = None
            return seen
    """,
    "traced": """
        @jit
        def entry(n):
            events = []
            s = Vec(0)
            for i in range(n):
                if i == n - 2: sys.settrace(lambda f, what, arg: events.append((what, f.f_code.co_name)))
                s = s + Vec(i)
            sys.settrace(None)
            return events, s.x
    """,
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    source = textwrap.dedent(VEC) + textwrap.dedent(BODIES[name])
    check_source(source, "def calls():\n    for n in (12, 12, 15, 3, 12, 40):\n        yield (n,), {}\n")


def test_depth_of_recursion() -> None:
    source = """
        class Node:
            def __init__(self, n):
                self.below = Node(n - 1) if n else None
            def __eq__(self, other):
                return self.below == other.below
            def __add__(self, n):
                return self.below + n if self.below is not None else n
        @jit
        def entry(n):
            try:
                node = Node(n)
                return node == node, node + 1
            except RecursionError as e:
                return str(e)
    """
    check_source(source, "def calls():\n    for n in (3, 20, 3, 100, 20, 5000):\n        yield (n,), {}\n")
