"""Random classes, and loops over objects of several of them: the tables, with their weights; holes as in grammar.py.

Marks of statements: $o a list of objects, $z one of them, $k and $i counters, $t a total, $u, $v and $w locals of any
type, $y a list of what was seen, $x a list of ints, $r an array, $q a dict, $h a heap, $f a function that C code calls,
$n the number of turns, $e an error. Attributes n, x and y hold numbers for ever, so that nothing grows faster than the
loops do, and what `__getattr__` gives never raises anything else than an AttributeError: the oracle asks, too.
"""

from __future__ import annotations

from typing import NamedTuple

from .chooser import Weighted

# ---- classes

BASES: Weighted[str] = Weighted(
    [(6, "Thing"), (3, "Thing0"), (1, "Thing1"), (1, "Thing, metaclass=Tagged"), (1, "Sheet")]
)

# What methods do, by what they are: one body each.
BODIES: dict[str, Weighted[str]] = {
    "one": Weighted(
        [
            (6, "return <result>"),
            (5, "<effect>\nreturn <result>"),
            (2, "<effect>\nif <guard>:\n    raise <error>(self.n)\nreturn <result>"),
            (2, "if <guard>:\n    <effect>\nreturn <result>"),
            (2, "<effect>\nreturn <result> if <guard> else <result>"),
            (1, "if <guard>:\n    raise AttributeError('none')\nreturn <result>"),
            (1, "return type(self)(self.n)"),
            (1, "return self"),
            (1, "global LIMIT\nLIMIT = self.n\nreturn <result>"),
            (1, "for q in self.items:\n    self.n += q\nreturn <result>"),
            (1, "try:\n    return self.none\nfinally:\n    <effect>"),
            (1, "return super().m() if <guard> else <result>"),
        ]
    ),
    "two": Weighted(
        [
            (5, "return <answer>"),
            (4, "<effect>\nreturn <answer>"),
            (2, "if <guard>:\n    return NotImplemented\nreturn <answer>"),
            (2, "<effect>\nif <guard>:\n    raise <error>(self.n)\nreturn <answer>"),
            (1, "if isinstance(other, Thing):\n    return <answer>\n<effect>\nreturn <result>"),
            (1, "return type(self)(self.n)"),
            (1, "<effect>\nreturn self"),
        ]
    ),
    "sets": Weighted(
        [
            (3, "self.n = other"),
            (2, "<effect>\nself.y = 2.5"),
            (1, "if <guard>:\n    raise <error>(self.n)\nself.y = other"),
            (1, "LOG.append(type(other).__name__)"),
        ]
    ),
    "gets": Weighted(
        [
            (2, "return 5"),
            (1, "LOG.append(name)\nreturn self.n"),
            (1, "return 1.5 if name == 'none' else name"),
            (1, "return super().__getattribute__('n')"),
        ]
    ),
}


class Member(NamedTuple):
    """What a class may have. Without a body the head is all of it."""

    head: str
    body: str
    uses: tuple[str, ...]


def _two(name: str, *uses: str) -> Member:
    return Member(f"def __{name}__(self, other):", "two", uses)


def _one(name: str, *uses: str) -> Member:
    return Member(f"def __{name}__(self):", "one", uses)


MEMBERS: Weighted[Member] = Weighted(
    [
        (6, Member("@property\ndef p(self):", "one", ("$t += $z.p", "$u = $z.p", "$y.append($z.p)", "$z.p = $k"))),
        (5, Member("def m(self, k=0):", "one", ("$t += $z.m()", "$u = $z.m($k)", "$v = $z.m; $u = $v(k=$i)"))),
        (2, Member("rate = 7", "", ("$t += $z.rate", "$u = type($z).rate", "$y.append(Thing0.rate)"))),
        (1, Member("rate = 1.5", "", ("$z.rate = $k; $y.append(type($z).rate)", "$t += Thing1.rate"))),
        (1, Member("rate = True", "", ("$u = $z.rate", "$z.rate += 1"))),
        (1, Member("n = 4", "", ("$t += $z.n", "$t += type($z).n"))),
        (
            2,
            Member(
                "def __init__(self, x):\n    super().__init__(x)\n    self.n = 2.5\n    self.link = Narrow(x)",
                "",
                ("$u = $z.link.n", "$u = type($z)($k); $t += $u.n"),
            ),
        ),
        (1, Member("def __new__(cls, *given):\n    return super().__new__(cls)", "", ("$u = Thing0($k); $t += $u.p",))),
        (
            2,
            Member(
                "@property\ndef free(self):\n    return self.y\n@free.setter\ndef free(self, other):",
                "sets",
                ("$z.free = $k", "$t += $z.free", "$z.free += 1; $u = $z.free", "del $z.free"),
            ),
        ),
        (1, Member("@functools.cached_property\ndef once(self):", "one", ("$u = $z.once", "$t += $z.once"))),
        (1, Member("@classmethod\ndef made(cls, x):\n    return cls.rate + x", "", ("$u = $z.made($k)",))),
        (1, Member("@staticmethod\ndef twice(x):\n    return 2 * x", "", ("$t += $z.twice($k)",))),
        (1, Member("told = Told()", "", ("$u = $z.told", "$z.told = $k", "$u = Thing0.told"))),
        (1, Member("__slots__ = ('extra',)", "", ("$z.extra = $k; $t += $z.extra",))),
        (3, _two("add", "$u = $z + <operand>", "$y.append(<operand> + $z)", "$z += <operand>", "$t = $t % 97 + $z")),
        (2, _two("radd", "$y.append(<operand> + $z)", "$u = $k + $z")),
        (2, _two("iadd", "$z += <operand>; $y.append($z)", "$o[0] += $k")),
        (2, _two("sub", "$u = $z - <operand>", "$z -= 1")),
        (1, _two("rsub", "$u = <operand> - $z")),
        (2, _two("mul", "$u = $z * <operand>", "$u = operator.mul($z, $k)")),
        (2, _two("rmul", "$u = <operand> * $z", "$y.append(1.5 * $z)")),
        (1, _two("matmul", "$u = $z @ <operand>")),
        (1, _two("and", "$u = $z & <operand>", "$z &= $k")),
        (1, _two("or", "$u = $z | <operand>")),
        (1, _two("truediv", "$u = $z / <operand>")),
        (1, _two("mod", "$u = $z % <operand>")),
        (1, _two("floordiv", "$u = $z // <operand>")),
        (1, _two("divmod", "$y.append(divmod($z, <operand>))")),
        (1, _two("pow", "$u = $z ** <operand>")),
        (1, _two("lshift", "$u = $z << <operand>")),
        (
            3,
            _two("lt", "$u = $z < <operand>", "$v = $t > $z", "if $z < $k: $t += 1", "heapq.heappush($h, $z)"),
        ),
        (1, _two("ge", "$u = $z >= <operand>", "if $k <= $z: $t -= 1")),
        (3, _two("eq", "$u = $z == <operand>", "$v = $z != <operand>", "$y.append($k in [$z])", "$q[$z] = $k")),
        (1, Member("__hash__ = Thing.__hash__", "", ("$q[$z] = $k", "$u = $q.get($z, $k)"))),
        (
            1,
            Member(
                "def __hash__(self):\n    return 5", "", ("$u = hash($z)", "$q[$z] = $k", "$u = $q.get($z, $q.get(5))")
            ),
        ),
        (2, _one("neg", "$u = -$z", "$t += 1 if -$z else 2")),
        (1, _one("pos", "$u = +$z")),
        (1, _one("invert", "$u = ~$z")),
        (1, _one("abs", "$u = abs($z)")),
        (1, Member("def __float__(self):\n    return self.n * 0.5", "", ("$t += float($z)", "$u = math.sqrt($z)"))),
        (1, Member("def __int__(self):\n    return 5", "", ("$t += int($z)",))),
        (
            2,
            Member(
                "def __index__(self):\n    return int(self.n) % 5",
                "",
                ("$u = $x[$z]", "$u = $r[$z]", "$u = $x[:$z]", "for $i in range($z): $t += $i", "$u = slice($k, $z)"),
            ),
        ),
        (
            3,
            Member(
                "def __bool__(self):\n    return self.n % 3 != 0",
                "",
                ("$t += 1 if $z else 2", "$u = not $z", "$u = bool($z)", "$v = $z and $k", "if $z: $u = $z"),
            ),
        ),
        (2, Member("def __len__(self):\n    return self.n % 4", "", ("$t += len($z)", "$u = 1 if $z else None"))),
        (
            3,
            Member(
                "def __getitem__(self, other):\n    if other == 6:\n        raise IndexError(other)",
                "two",
                ("$u = $z[$k]", "$y.append($z[0])", "$t += $z[1]", "$y.append(3 in $z)", "$u = $z[$k:]"),
            ),
        ),
        (
            2,
            Member(
                "def __setitem__(self, index, other):", "sets", ("$z[$k] = $i", "$z[0] += 1", "$z['a'] = <operand>")
            ),
        ),
        (1, Member("def __contains__(self, other):", "two", ("$y.append($k in $z)", "if 1.5 not in $z: $t += 1"))),
        (2, Member("def __call__(self, other=1):", "two", ("$u = $z($k)", "$t += $z()", "$u = list(map($z, [$k]))"))),
        (
            2,
            Member(
                "def __iter__(self):\n    yield self.n\n    yield self.x", "", ("for $v in $z: $u = $v", "$u = [*$z]")
            ),
        ),
        (
            2,
            Member(
                "def __getattr__(self, name):\n    if name[:1] == '_':\n        raise AttributeError(name)",
                "gets",
                (
                    "$u = $z.none",
                    "$y.append(getattr($z, 'none', 3))",
                    "$y.append(hasattr($z, 'none'))",
                    "$v = $z.other",
                ),
            ),
        ),
        (
            1,
            Member(
                "def __getattribute__(self, name):\n    return 6 if name == 'rate' else super().__getattribute__(name)",
                "",
                ("$t += $z.rate", "$u = $z.n + $z.y"),
            ),
        ),
        (
            1,
            Member(
                "def __setattr__(self, name, value):\n    LOG.append(name)\n    super().__setattr__(name, value)",
                "",
                ("$z.n = $k", "$z.y += 1"),
            ),
        ),
        (
            1,
            Member(
                "def __enter__(self):\n    return self.n\ndef __exit__(self, *other):",
                "two",
                ("with $z as $u: $t += 1", "with $z: $t += $u"),
            ),
        ),
        (
            1,
            Member(
                "def __repr__(self):\n    return f'{type(self).__name__} {self.n}'",
                "",
                ("$u = str($z)", "$u = f'{$z}'"),
            ),
        ),
    ]
)

# ---- loops over objects

# What a mark starts as, where a statement has it; in this order.
STARTS_OF: dict[str, str] = {
    "t": "$t = <small>",
    "u": "$u = $v = $w = None",
    "y": "$y = []",
    "x": "$x = [1, 2, 3, 4]",
    "r": "$r = np.arange(4.0)",
    "q": "$q = {}",
    "h": "$h = []",
    "i": "$i = 0",
    "z": "$z = $o[0]",
    "k": "$k = 0",
}
POKE = "def $f(q):\n    if q == <turn>:\n        <poke>\n    return 0"
OBJECTS: Weighted[str] = Weighted(
    [
        (4, "[Thing0(0), Thing2(<num>)]"),
        (4, "[made(<num>) for made in (Thing0, Thing0, Thing1)]"),
        (3, "[made(1) for made in (Thing0, Thing1, Thing0)]"),
        (2, "[Thing1(<num>)]"),
        (2, "[Thing0(<num>), Thing1(2), Thing2(1.5)]"),
        (3, "[made(1.5) for made in (Narrow, Narrow, Thing0)]"),
        (1, "[made(k) for k, made in enumerate((Thing2, Narrow, Thing1, Thing0))]"),
        (1, "[Thing0(2**62), Sheet(1), Thing0(3)]"),
        (2, "[*STOCK]"),
        (1, "STOCK"),
        (1, "[Thing0(1)] * 2 + [Thing1(1)]"),
    ]
)

# (head, what stands first in the body)
OUTER: Weighted[tuple[str, str]] = Weighted(
    [
        (10, ("for $k in range($n):", "")),
        (2, ("while $k < $n:", "$k += 1")),
        (1, ("for $k, $z in enumerate($o * 9):", "")),
        (1, ("for $k in map(int, range($n)):", "")),
        (1, ("for $k in list(range($n)):", "$z = $o[$k % len($o)]")),
    ]
)
INNER: Weighted[tuple[str, str]] = Weighted(
    [
        (10, ("for $z in $o:", "")),
        (3, ("for $i, $z in enumerate($o):", "")),
        (2, ("for $z in tuple($o):", "")),
        (2, ("for $z, $i in zip($o, range(9)):", "")),
        (2, ("for $z in reversed($o):", "")),
        (2, ("for $z in $o[::-1]:", "")),
        (2, ("for $z in dict(enumerate($o)).values():", "")),
        (2, ("for $i, $z in dict(enumerate($o)).items():", "")),
        (2, ("for $z in collections.deque($o):", "")),
        (2, ("for $z in (q for q in $o):", "")),
        (2, ("for $z in handing($o):", "")),
        (2, ("for $i in range(len($o)):", "$z = $o[$i]")),
        (1, ("for $z in filter(None, $o):", "")),
        (1, ("for $i, $z in sorted(enumerate($o), key=lambda q: -q[0]):", "")),
        (1, ("for $z in {'a': $o[0], 'b': $o[-1]}.values():", "")),
    ]
)

# Statements of the inner loop: on the object that it is at.
NESTED: Weighted[str] = Weighted(
    [
        (7, "$t += $z.n"),
        (4, "$t += $z.y"),
        (2, "$z.n = $z.n + 1"),
        (2, "$z.n += 1"),
        (2, "$z.y = $k"),
        (1, "$z.x = $k"),
        (1, "$t = $z.x"),
        (2, "$u = $z.link.n"),
        (1, "$u = $z.link"),
        (1, "$z.link.n = $k"),
        (1, "$u = $z.link.link.n"),
        (1, "$u = $z.pair[1]"),
        (2, "$t += $z.pair[0]"),
        (1, "$u, $v = $z.pair[:2]"),
        (2, "for $w in $z.items: $u = $w"),
        (1, "$t += len($z.items)"),
        (1, "$u = $z.items"),
        (1, "$u = $z.items[$k % len($z.items)]"),
        (1, "$z.items[0] = $k"),
        (1, "$u = $z.items[0]; $v = $z.table"),
        (1, "$u = $z.table.get(1, $k)"),
        (1, "$u = $z.table.get($k % 3)"),
        (1, "$z.table[$k % 3] = $k"),
        (2, "$u = type($z)"),
        (1, "$u = type($z).tag"),
        (2, "$u = $z"),
        (1, "$v = $z.x"),
        (1, "$v = $u"),
        (1, "$u = None if $k % 3 else $z"),
        (2, "if $z.n > 3: $u = $z; $t -= 1"),
        (1, "if $z.x: $v = $k"),
        (2, "if type($z) is Thing0: $t += 1"),
        (2, "if isinstance($z, Thing1): $u = 1.5"),
        (1, "if $z.n == $z.y: $v = $z"),
        (1, "$t += isinstance($z, (Thing2, Narrow))"),
        (1, "$v = max($k, $z.n)"),
        (1, "$v = min($z.y, 2)"),
        (1, "$w = abs($z.n)"),
        (1, "if $z is $w: continue\n$w = $z"),
        (1, "if $k % 5 == 4: break"),
        (1, "$u = $x[$k % 3]"),
        (1, "$t += $r[$k % 4]"),
        (1, "$r[$k % 4] = $z.n"),
        (1, "$u = $q.get($k % 5, $z)"),
        (2, "$q[$k % 5] = $z"),
        (1, "$q[$k % 7] = $k"),
        (1, "$q[$z.n] = $q.get($z.n, 0) + 1"),
        (1, "$u = str($k)"),
        (1, "$u = ($z, $k)"),
        (1, "$u = [$z.n, $k]"),
        (1, "$u = handed($z)"),
        (1, "$v = $k / 2"),
        (1, "$u = -$k"),
        (1, "$v = $t > 5"),
        (1, "$u = LIMIT"),
        (1, "$u = <num>"),
        (1, "$u = math.sqrt($k)"),
        (1, "try:\n    $u = $z.none\nexcept AttributeError:\n    $u = 5"),
        (1, "$i += 1"),
        (1, "$u = $o[$i % len($o)]"),
        (1, "$u = $o[-1].n"),
        (1, "$u = bool($z.items)"),
        (1, "$u = not $z.x"),
        (1, "heapq.heappush($h, ($k % 4, $i))"),
        (1, "$u = heapq.heappop($h) if $h else $z"),
        (1, "$y.append(type($z).__name__)"),
        (1, "getattr($z, '__dict__', {}).pop('y', None)"),
        (1, "del $z.y; $z.y = $k"),
        (1, "$z.__class__ = Thing1"),
        (1, "$u = list(map(nothing, [$z]))"),
        (1, "$v = $z == $o[0]"),
        (1, "$v = $z in $o; $u = $o.index($z)"),
        (1, "$v = {$z: $k}.get($o[0])"),
        (1, "$v = {type($z): $k}.get(Thing0, 1.5)"),
        (1, "$v = issubclass(type($z), Thing0)"),
        (1, "$t += Several(($z.n, $k)).total()"),
        (1, "$u = Several($z.items); $u.append($k); $t += len($u); $v = $u[-1]"),
        (1, "for $w in Several($x): $u = $w"),
        (1, "$v = {$z.n, $k} <= {1, 2, 3, 4, $k}; $u = min({$z.n, $k} | {2})"),
    ]
)

# Statements before and behind it: on the last object, on what the inner loop left, and calls of code that C code calls.
BESIDE: Weighted[str] = Weighted(
    [
        (8, "$z = $o[$k % len($o)]"),
        (3, "$y.append(type($z).__name__)"),
        (4, "list(map($f, [$k]))"),
        (3, "$u = sorted([$k, 1], key=$f)"),
        (2, "list(map(nothing, [$k]))"),
        (1, "$y.append(list(map(nothing, [$k])))"),
        (2, "$y.append(max($x, key=$f))"),
        (1, "$u = type($z)"),
        (1, "$u = len($o)"),
        (2, "$y.append(($k, $t))"),
        (2, "$y.append($u)"),
        (2, "$y.append(type($u).__name__)"),
        (2, "$y.append($z.n)"),
        (1, "$u = handed($z)"),
        (1, "$u = max($k, 3)"),
        (1, "$u = ($w, $z, $t)"),
        (1, "$u = 'a' + type($z).__name__"),
        (1, "$v = [$w, $z, $t]"),
        (1, "$y.append(isinstance($z, Thing1))"),
        (1, "$t = $t % 97 + $k * 2"),
        (1, "$t = 0"),
        (1, "if $k % 4 == 3: $t = 0"),
        (1, "if $k % 6 == 5: continue"),
        (1, "if $k == 29: break"),
        (1, "$u = str($t)"),
        (2, "$u = Thing0.rate"),
        (1, "Thing0.rate = $k"),
        (1, "$r[0] += $k; $u = $r.sum()"),
        (1, "for $v in $o[::-1]: $u = $v.n"),
        (2, "for $u in $x: $t += $u"),
        (1, "$u = {'a': $w, 'b': $z.n}"),
        (1, "$t = sum($x) + $z.y"),
        (2, "$t += sum(q.n for q in $o)"),
        (1, "$y.append(any(q.y > $k for q in $o))"),
        (1, "$y.append(list((q.n, q.x) for q in $o if q.m))"),
        (1, "$u = max($o, key=lambda q: q.n).y"),
        (1, "$y.append([q.n for q in sorted($o, key=lambda q: (-q.y, q.n))])"),
        (1, "$u = ','.join(str(q.n) for q in $o)"),
        (1, "$t += sum(q.m() for q in $o if q is not $z)"),
        (1, "$u = [q.y for q in $o]"),
        (1, "$x[0] = $k; $u = $x[$k % 3]"),
        (1, "$x.append($k); $x.pop(0)"),
        (1, "$u = (print, LIMIT, range($k), slice($k), $q)[$k % 5]"),
        (1, "$u = Narrow($k).y"),
        (1, "$v = Decimal($k) * 3 + 1; $u = -$v; $y.append($v > $k)"),
        (1, "$y.append(print($k, $u is $z, file=io.StringIO()))"),
        (1, "$u = left($k); $v = left($k, 2)"),
        (1, "$u = Thing0($k).n"),
        (1, "$u = Thing($k); $u.z = $k; $y.append($u.z)"),
        (1, "$o[$k % len($o)].n = $k"),
        (1, "$o[$k % len($o)] = Thing1($k)"),
        (1, "$u = np.float64($k)"),
        (1, "$u = tuple($x)"),
        (1, "$i = 0"),
        (1, "$u = Sheet(1, $k); $t += $u.n + $u.y; $u.x = $t"),
        (1, "$y.append(Sheet(1) == Sheet(1, $k % 4))"),
        (1, "$u = FIXED.n; $t += $u"),
        (1, "FIXED.n = $k"),
        (1, "$u = Point($k, 2.5); $t += $u.x + $u.y"),
        (2, "$u = Hue.RED if $k % 3 else Hue.BLUE; $y.append($u.value)"),
        (1, "$y.append((Hue(1) is Hue.RED, $u is Hue.BLUE, Hue['BLUE'].name))"),
        (1, "$q[Hue.RED] = $k"),
        (1, "$u = [q.value for q in Hue]"),
        (1, "$u = int.__add__($k, 1); $v = float.__mul__(1.5, 2.0)"),
        (1, "$u = functools.reduce(lambda p, q: p + q.n, $o, 0)"),
        (1, "$u = min($o, key=lambda q: q.n)"),
        (1, "$o.sort(key=lambda q: -q.n)"),
        (1, "warnings.warn(type($z).__name__)"),
        (1, "$t = <num>"),
    ]
)

# What is kept of it all.
SEEN: Weighted[str] = Weighted(
    [
        (4, "$o"),
        (3, "[(type(q).__name__, getattr(q, 'n', None)) for q in $o]"),
        (2, "[sorted(getattr(q, '__dict__', ())) for q in $o]"),
        (1, "$o[0]"),
    ]
)
