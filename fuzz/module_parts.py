"""What modules are made of besides generated functions: a head, and classes and functions where they are used."""

from __future__ import annotations

from .class_parts import CLASS_PARTS
from .disturbing_parts import DISTURBING
from .generator_parts import GENERATORS
from .recursive_parts import RECURSIVE

PRELUDE = """\
import _thread
import cmath
import collections
import contextlib
import functools
import gc
import itertools
import math
import operator
import signal
import sys
import threading
import types
import warnings
import weakref
import numpy as np

SCALE = {scale}
LIMIT = {limit}
TABLE = {{'a': 1}}
LOG = []
SETTINGS = types.SimpleNamespace(rate=1.5)
"""

_BOX = """

class Box:
    def __init__(self, value):
        self.value = value
        self.items = []
    def total(self, extra=0):
        self.items.append(extra)
        return self.value + extra
    @property
    def double(self):
        return self.value * 2
    def __enter__(self):
        return self
    def __exit__(self, *_):
        LOG.append('left')
        return False
"""

_SWALLOW = """

class Swallow:
    def __enter__(self):
        return 1
    def __exit__(self, kind, value, traceback):
        LOG.append(kind and kind.__name__)
        return kind is not None and issubclass(kind, ArithmeticError)
"""

_MONEY = """

class Money:
    __slots__ = ('amount',)
    def __init__(self, amount):
        self.amount = amount
    def __add__(self, other):
        return Money(self.amount + getattr(other, 'amount', other))
    def __radd__(self, other):
        return Money(other + self.amount)
    def __neg__(self):
        return Money(-self.amount)
    def __lt__(self, other):
        return self.amount < other
    def __eq__(self, other):
        return self.amount == other
    def __bool__(self):
        return bool(self.amount)
    def __len__(self):
        return 2
    def __getitem__(self, index):
        if index > 3:
            raise IndexError(index)
        return self.amount + index
    def __setitem__(self, index, value):
        self.amount = value
    def __contains__(self, item):
        return item == self.amount
    def __iter__(self):
        yield self.amount
        yield 1
    def __call__(self, x, *more):
        return x * self.amount
    def __getattr__(self, name):
        if name == 'other':
            return 7
        raise AttributeError(name)
    def __format__(self, spec):
        return 'money' + spec
"""

_PAIR = """

class Pair:
    __slots__ = ('x', 'n')
    def __init__(self, x):
        self.x = x
        self.n = 0
    def step(self, y):
        self.x = y
        self.n += 1
        return self.x
    def __add__(self, other):
        return Pair(self.x + (other.x if isinstance(other, Pair) else other))
    def __rmul__(self, k):
        return Pair(k * self.x) if k != 3 else NotImplemented
    def __eq__(self, other):
        return self.n == other.n if isinstance(other, Pair) else NotImplemented
    def __lt__(self, other):
        LOG.append('lt')
        return self.n < other.n if other.n else NotImplemented
    def __getitem__(self, i):
        return (self.x, self.n)[i]

class Spot:
    weight = 3
    def __init__(self, x):
        self.x = x
        self.n = 0
    def step(self, y):
        self.x = y
        self.n += self.weight
        return self.x
    def __sub__(self, other):
        made = Spot(self.n)
        made.n = other if self.n != 5 else NotImplemented
        return made.n

PAIRS = [Pair(0.5), Spot(1.5), Pair(2), Spot(3)]
"""

_DERIVED = """

class Base:
    scale = 2
    def of(self, x):
        return x * self.scale
    @classmethod
    def make(cls, x):
        made = cls()
        made.scale = x
        return made
    @staticmethod
    def plain(x):
        return x + 1


class Derived(Base):
    def of(self, x):
        return super().of(x) + 1
    @jit
    def jitted(self, x):
        return x + self.scale
"""

_NUMBERS = """

def numbers(n):
    for i in range(n):
        yield i * SCALE
"""

_ROTATED = """

def rotated(x):
    p, q, r, s = 0, 1, 0.5, 1.5
    for i in range(6):
        p, q = q, p + q
        r, s = s, r - s
    return p * s + x
"""

_SWAPPED = """

def swapped(x):
    items = [x - 0.5, x + 0.25, x * 2.0, x + 1.5]
    for i in range(6):
        k = i % 3
        items[k], items[k + 1] = items[k + 1], items[k]
    first = items[0]
    items[0] = x + 7.5
    items[1] = x + 8.5
    return first, items
"""

_ADDER = """

def make_adder(n):
    def add(x):
        nonlocal n
        n += 1
        return x + n
    return add


ADDER = make_adder(2)
"""

_SECTION = """

@contextlib.contextmanager
def section(x):
    LOG.append('in')
    try:
        yield x
    finally:
        LOG.append('out')
"""

_WRAPPED = """

def passing(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@passing
@passing
def wrapped(x, y=1, *rest, z=2, **more):
    return x - y * z + len(rest) + len(more) + more.get('b', 0)
"""

_COLLECTS = """

def collects(*args, **kwargs):
    kwargs['q'] = len(args)
    return [*args, len(kwargs)]


def hands_on(*args, **kwargs):
    first = kwargs.pop('a', 0)
    return collects(first, *args, **kwargs)
"""

_PART = """

def parted(x, y=1, *, k=2, **more):
    return x + y * k + len(more)


PART = functools.partial(parted, 2, k=3)
"""

_SMALL_FUNCTIONS = {
    "cached": "@functools.lru_cache\n"
    "def cached(x):\n"
    "    LOG.append((x, sys._getframe(1).f_lineno, sorted(sys._getframe(1).f_locals)))\n"
    "    return x + 1\n",
    "variadic": "def variadic(*args, scale=1, **more):\n    return sum(args) * scale + len(more)\n",
    "only": "def only(x, /, y=1, *, k=2):\n    return x - k * y\n",
    "crossed": "def crossed(field, x):\n"
    "    for _ in range(3):\n"
    "        left = field + x\n"
    "        right = field - x\n"
    "        field = left * right\n"
    "        left = field + x\n"
    "        right = field - x\n"
    "        field = left * right\n"
    "        if field[0, 0] < -1e300:\n"
    "            break\n"
    "    return field\n",
    "relaxed": "def relaxed(field, x):\n"
    "    for _ in range(3):\n"
    "        step = (field * field * field - x) / (3.0 * field * field + 1.0)\n"
    "        field = field - step\n"
    "        if np.abs(step)[0, 0] < 1e-300:\n"
    "            break\n"
    "    return field\n",
    "brushed": "def brushed(field, x):\n"
    "    made, row = np.zeros((202, 202)), np.zeros(40000)\n"
    "    for k in range(3):\n"
    "        made[1:-1, 1:-1] = (field - x) * 0.5 + k / (field + 1)\n"
    "        made[k:200 + k, :200] = np.where(field > x, field, -field)\n"
    "        row[:] = field.ravel() * x - 1.0\n"
    "        row[1:] = row[:-1] * 0.5 + k\n"
    "        row -= 0.1 * (row * row - x) / (row + 3.5)\n"
    "    return made + row[:202]\n",
    "noticed": "def notice(kind, flags):\n"
    "    frame = sys._getframe(1)\n"
    "    LOG.append((kind, frame.f_lineno, sorted(frame.f_locals)))\n"
    "def noticed(x, y):\n"
    "    with np.errstate(all='call', call=notice):\n"
    "        z = x * 2\n"
    "        return z / y\n",
    "raising": "def raising(x):\n    if x > 1:\n        raise ValueError('too much')\n    return x + 1\n",
    "stepped": "def stepped(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n",
    "who": "def who():\n"
    "    frame = sys._getframe(1)\n"
    "    return (frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals))\n",
    "keeper": "def keeper():\n"
    "    shown = sys._getframe(1).f_locals\n"
    "    LOG.append([shown[name] for name in sorted(shown) if type(shown[name]) in (int, float)])\n",
    "ORDERED": "ORDERED = collections.OrderedDict({1: 2, 0: 5})\n",
    "DECIMAL": "import decimal\n\nDECIMAL = decimal.Decimal('1.25')\n",
    "GENERATOR": "import random\n\nGENERATOR = random.Random(5)\n",
    "REALS": "import array\n\nREALS = array.array('d', [1.5, -0.0, 7.0, 0.25])\n"
    "WHOLES = array.array('h', [1, -5, 300])\n",
    "DRAWS": "DRAWS = np.random.default_rng(5)\n",
    "LEGACY": "LEGACY = np.random.RandomState(5)\n",
    "Looking": "class Looking:\n"
    "    def __del__(self):\n"
    "        frame = sys._getframe(1)\n"
    "        if frame.f_globals is globals():  # not the fuzzer's, where it dies behind the call\n"
    "            LOG.append((frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)))\n",
    "Named": "class Named:\n"
    "    def __init__(self, name):\n"
    "        self.name = name\n"
    "    def __del__(self):\n"
    "        LOG.append(self.name)\n",
    "Point": "Point = collections.namedtuple('Point', 'x y')\n",
}

# Name that stands for the part in a source -> the part.
PARTS: dict[str, str] = {
    "Box": _BOX,
    "Swallow": _SWALLOW,
    "Money": _MONEY,
    "PAIRS": _PAIR,
    "HEAP": "import heapq\n\nHEAP = [1, 2, 5, 2.5]\n",
    "PILE": "import heapq\n\nPILE = [(-1, 2), (0, 1.5), (3, 'a')]\n",
    "MISSING": "MISSING = collections.defaultdict(int, {0: 5})\n",
    "Derived": _DERIVED,
    "numbers": _NUMBERS,
    "rotated": _ROTATED,
    "swapped": _SWAPPED,
    "ADDER": _ADDER,
    "section": _SECTION,
    "wrapped": _WRAPPED,
    "hands_on": _COLLECTS,
    "PART": _PART,
    **RECURSIVE,
    **GENERATORS,
    **DISTURBING,
    **CLASS_PARTS,
    "WAVES": "\n\nWAVES = np.exp(1j * np.arange(15000.0).reshape(100, 150))\n",
    "LARGE": "\n\nLARGE = np.arange(40000.0).reshape(200, 200)\n",
    "WIDE": "\n\nWIDE = np.linspace(-2.0, 2.0, 300000)\n",
    **{name: "\n\n" + text for name, text in _SMALL_FUNCTIONS.items()},
}

# Statements between two calls; the second column: what must be in the source for it to make sense.
REBINDINGS: tuple[tuple[str, str], ...] = (
    ("SCALE = 3", "SCALE"),
    ("SCALE = 0.5", "SCALE"),
    ("LIMIT = -1", "LIMIT"),
    ("LIMIT = 2", "LIMIT"),
    ("SCALE = np.float64(2)", "SCALE"),
    ("TABLE['a'] = 5", "TABLE"),
    ("TABLE = {'a': 0.5}", "TABLE"),
    ("LOG.clear()", "LOG"),
    ("LOG = [1]", "LOG"),
    ("SETTINGS.rate = 4", "SETTINGS"),
    ("SETTINGS = types.SimpleNamespace(rate=-2)", "SETTINGS"),
    ("Base.scale = 5", "Derived"),
    ("Spot.x = property(lambda self: 4, lambda self, value: LOG.append(value))", "PAIRS"),
    ("Pair.step = lambda self, y: y", "PAIRS"),
    ("Pair.__init__ = lambda self, x: setattr(self, 'x', x) or setattr(self, 'n', 1)", "PAIRS"),
    ("Spot.__init__ = lambda self, x: 5 if setattr(self, 'n', 5) else None", "PAIRS"),
    ("Pair.__add__ = lambda self, other: NotImplemented", "PAIRS"),
    ("Spot.weight = 0.5", "PAIRS"),
    ("Spot.__bool__ = lambda self: LOG.append('truth') or self.n % 2 == 0", "PAIRS"),
    ("Pair.__len__ = lambda self: 0", "PAIRS"),
    ("PAIRS[1].__class__ = type('Other', (Spot,), {'weight': 2})", "PAIRS"),
    ("PAIRS[3].__dict__ = {'n': 4, 'x': 1}", "PAIRS"),
    ("Derived.of = lambda self, x: x", "Derived"),
    ("Point.x = property(lambda self: self[1])", "Point"),
    ("Point.y = 3", "Point"),
    ("Box.total = lambda self, extra=0: 7", "class Box"),
    ("Box.double = 3", "class Box"),
    ("Box.value = property(lambda self: 9, lambda self, value: LOG.append(value))", "class Box"),
    ("Box.__getattr__ = lambda self, name: 5", "class Box"),
    (
        "Box.__getattribute__ = lambda self, name: 6 if name == 'value' else object.__getattribute__(self, name)",
        "class Box",
    ),
    ("Box.__setattr__ = lambda self, name, value: object.__setattr__(self, name, 1.5)", "class Box"),
    ("Box.total.__code__ = (lambda self, extra=0: extra).__code__", "class Box"),
    ("del Box.total", "class Box"),
    ("ADDER = make_adder(7)", "ADDER"),
    ("def numbers(n): return [1] * n", "def numbers"),
    ("def paired(xs, k): return [(1, k)] * 3", "def paired"),
    ("paced.__code__ = (lambda n, x, step=1: (yield x)).__code__", "def paced"),
    ("paced.__defaults__ = (2,)", "def paced"),
    ("FLOWS[0].close()", "FLOWS ="),
    ("FLOWS[1] = flowing(2)", "FLOWS ="),
    ("def raising(x): return -x", "def raising"),
    ("only.__kwdefaults__ = {'k': 5}", "def only"),
    ("variadic.__code__ = (lambda *args, scale=1, **more: scale).__code__", "def variadic"),
    ("turned = abs", "def turned"),
    ("def turned(x): return x - 1", "def turned"),
    ("PART.keywords['k'] = 5", "PART ="),
    ("PART.keywords['z'] = 5", "PART ="),
    ("PART.__setstate__((parted, (1, 2), {'k': 1}, None))", "PART ="),
    ("PART = functools.partial(max, 1)", "PART ="),
    ("wrapped = passing(lambda *args, **kwargs: len(args) + len(kwargs))", "def wrapped"),
    ("wrapped.__wrapped__.__wrapped__.__kwdefaults__ = {'z': 7}", "def wrapped"),
    ("Money.__call__ = lambda self, *more, **named: len(more)", "class Money"),
    ("def leaf(x, seen): return -x", "def leaf"),
    ("branching.__code__ = (lambda n, x, seen=(): x).__code__", "def branching"),
    ("def odds(n, x=1, *, step=1): return n + x", "def odds"),
    ("evens.__kwdefaults__ = {'step': 2}", "def evens"),
    ("def len(x): return 2", "len("),
    ("def abs(x): return x", "abs("),
    ("del SCALE", "SCALE"),
    ("def sum(x, start=0): return 4", "sum("),
    ("recode()", "def coded"),
    ("coded.__code__ = (lambda x: -x).__code__", "def coded"),
    ("def heard(x): return -x", "def heard"),
    ("CHOICES = (abs, lambda x: -x)", "CHOICES"),
    ("Thing.p = property(lambda self: self.n)", "THINGS"),
    ("Thing0.p = property(lambda self: 4, lambda self, other: LOG.append(other))", "THINGS"),
    ("Thing0.__add__ = lambda self, other: NotImplemented", "THINGS"),
    ("Thing1.__eq__ = lambda self, other: self.n == 3", "THINGS"),
    ("Thing1.__bool__ = lambda self: self.n % 2 == 0", "THINGS"),
    ("Thing1.rate = 2.5", "THINGS"),
    ("Thing2.n = property(lambda self: 1.5)", "THINGS"),
    ("Thing2.m = lambda self, k=1: k", "THINGS"),
    ("Thing0.__getattr__ = lambda self, name: 5 if name == 'none' else object.__getattribute__(self, name)", "THINGS"),
    ("STOCK[0].n = 1.5", "THINGS"),
    ("STOCK[-1].__class__ = type('Other', (type(STOCK[-1]),), {'__slots__': (), 'rate': 7})", "THINGS"),
    ("STOCK.reverse()", "THINGS"),
)
