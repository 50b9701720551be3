"""Loops over iterators of the interpreter's own (hook::quiet_iterator), and over others that look like them."""

from __future__ import annotations

import pytest

import numpy as np
from tests.support import check, check_source, settles

PLAIN = {
    "bytes": "b'abc'",
    "bytearray": "bytearray(b'abc')",
    "str": "'abc'",
    "wide str": "'a\\xe9\\u20ac'",
    "dict": "{1: 2, 'a': 4}",
    "values": "{1: 2, 'a': 4}.values()",
    "items": "{1: 2, 'a': 4}.items()",
    "set": "{1, 2}",
    "reversed list": "reversed([1, 2.5, 'a'])",
    "reversed tuple": "reversed((1, 2.5, 'a'))",
    "reversed dict": "reversed({1: 2, 3: 4})",
    "enumerate": "enumerate([5, 6.5])",
    "enumerate of enumerate": "enumerate(enumerate('ab'))",
    "zip": "zip([1, 2], (3, 4, 5), range(9))",
    "zip of nothing": "zip()",
    "strict zip": "zip([1, 2], 'ab', strict=True)",
    "long range": "range(1 << 70, (1 << 70) + 2)",
    "list": "[1, 2.5, None]",
}
OWN = {
    "generator": "(i for i in range(3))",
    "enumerate of a generator": "enumerate(i for i in range(3))",
    "zip with a generator": "zip([1, 2, 3], (LOG.append(i) for i in range(9)))",
    "reversed of a sequence": "reversed(Sequence())",
    "iter of a sequence": "iter(Sequence())",
    "iterator": "Iterator()",
    "a strict zip that raises": "zip([1, 2], [1, 2, 3], strict=True)",
    "a dict that changes": "(TABLE.clear() or TABLE.update(a=1, b=2) or TABLE)",
}

PROGRAM = """
LOG = []
TABLE = {{}}

class Sequence:
    def __len__(self):
        LOG.append('len')
        return 3
    def __getitem__(self, i):
        LOG.append(i)
        if i > 2:
            raise IndexError
        return i * 1.5

class Iterator:
    n = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        LOG.append(self.n)
        if self.n > 3:
            raise StopIteration
        return self.n

@jit
def entry(kind):
    LOG.clear()
    out = []
    n = 0
    iterable = ({iterable}) if kind else [7, 8]
    try:
        for item in iterable:
            out.append((n, item))
            n += 1
            if n == 2:
                TABLE['later'] = 5
    except Exception as e:
        out.append(repr(e))
    return out, list(LOG)
"""


@pytest.mark.parametrize("iterable", [*PLAIN.values(), *OWN.values()], ids=[*PLAIN, *OWN])
def test_loops_over_all_kinds(iterable: str) -> None:
    check_source(
        PROGRAM.format(iterable=iterable),
        "def calls():\n    for kind in (1, 1, 1, 1, 0, 0, 0, 1):\n        yield (kind,), {}\n",
        engines=("recording", "stepped", "compiled"),
    )


@pytest.mark.parametrize("iterable", PLAIN.values(), ids=PLAIN)
def test_plain_ones_link_no_frames(iterable: str) -> None:
    space: dict[str, object] = {}
    exec(f"def f():\n    n = 0\n    for item in {iterable}:\n        n += 1\n    return n\n", space)
    settles(space["f"], ())  # type: ignore[arg-type]


def total(items: object) -> float:
    t = 0.0
    for item in items:  # type: ignore[attr-defined]
        t += item
    return t


def test_the_kind_of_iterable_changes() -> None:
    check(total, ([1, 2],), ((1, 2.5),), ({1: 0, 2: 0},), (b"ab",), (np.arange(3.0),), ({1.5},), (range(4),))


def compared(x: float, n: int) -> list[bool]:
    out = []
    for _ in range(3):
        out += [x > 1, x < 1, 1 <= x, x == 0, x != 9007199254740993, 9007199254740992 == x, x >= n, n == x, x > True]
        x = x * 2
    return out


def test_floats_beside_ints() -> None:
    values = (0.0, -0.0, 1.0, 0.5, 9007199254740992.0, 9007199254740994.0, 1e300, float("inf"), float("nan"))
    check(compared, *((x, n) for x in values for n in (0, 9007199254740993)), rounds=1)
    check(compared, (1.5, 2), (float("nan"), 2**70))
