"""Frame objects that somebody keeps: what they show later is what the frame has come to by then, as in eager."""

from __future__ import annotations

import sys

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check_source

PROGRAM = """
import sys, inspect, traceback
KEPT = []

def keep(depth=1):
    KEPT.append(sys._getframe(depth))

def local_names(frame):
    return {{name: value for name, value in frame.f_locals.items() if name not in ('fr', 'frame', 'KEPT')}}

def poke(name, value, depth=1):
    sys._getframe(depth).f_locals[name] = value
    return value

def raising(n):
    if n:
        raise ValueError(n)
    return n

class Poking:
    def __init__(self):
        self.n = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        if self.n > 3:
            raise StopIteration
        sys._getframe(1).f_locals['x'] = self.n * 10
        return self.n

{body}
"""

BODIES = {
    "own frame read later": """
@jit
def entry(a):
    fr = sys._getframe()
    x = a * 2
    y = x + 1
    first = local_names(fr), fr.f_lineno
    x = 'changed'
    del y
    return first, local_names(fr), fr.f_lineno
""",
    "kept by a callee, read after the return": """
def inner(a):
    keep(2)
    b = a + 1
    keep(1)
    c = b * 2
    return c

@jit
def entry(a):
    KEPT.clear()
    before = a
    r = inner(a)
    after = r
    return [(f.f_code.co_name, local_names(f), f.f_lineno) for f in KEPT]
""",
    "read by a callee each time": """
@jit
def entry(a):
    KEPT.clear()
    keep()
    out = []
    for i in range(4):
        x = a + i
        out.append((local_names(KEPT[0]).get('x'), KEPT[0].f_lineno))
    return out
""",
    "the same frame object": """
@jit
def entry(a):
    one = sys._getframe()
    x = a
    two = sys._getframe()
    three = inspect.currentframe()
    return one is two, two is three, one.f_lineno
""",
    "used and forgotten": """
@jit
def entry(a):
    line = sys._getframe().f_lineno
    x = a * 2
    return line, x, sys._getframe().f_code.co_name, inspect.currentframe().f_lineno
""",
    "a traceback keeps it": """
def inner(a):
    x = a
    try:
        raising(a)
    except ValueError as e:
        KEPT.append(e)
    y = x + 1
    return y

@jit
def entry(a):
    KEPT.clear()
    r = inner(a)
    return r, [(local_names(e.__traceback__.tb_frame), e.__traceback__.tb_lineno) for e in KEPT]
""",
    "an object keeps it in its method": """
class Keeper:
    def __enter__(self):
        self.frame = sys._getframe(1)
    def __exit__(self, *_):
        pass

@jit
def entry(a):
    k = Keeper()
    x = 1
    with k:
        x = a
    y = x
    return local_names(k.frame)['x'], local_names(k.frame)['y'], k.frame.f_lineno
""",
}
WRITES = {
    "written by a callee": """
@jit
def entry(a):
    x = a
    poke('x', 5)
    y = x + 1
    poke('y', y * 2)
    return x, y
""",
    "written where the result is stored": """
@jit
def entry(a):
    x = a
    x = poke('x', 7) + 1
    y = a
    x, y = poke('y', 8), y
    return x, y
""",
    "written in a loop": """
@jit
def entry(a):
    x = a
    out = []
    for i in range(5):
        if i == 3:
            poke('x', 100)
        x = x + i
        out.append(x)
    return out
""",
    "written by an iterator": """
@jit
def entry(a):
    x = a
    out = []
    for i in Poking():
        out.append((i, x))
    return out, x
""",
    "written in a frame further out": """
def middle(b):
    poke('x', b * 3, 2)
    return b + 1

@jit
def entry(a):
    x = a
    b = middle(a)
    return x, b
""",
    "written later through a kept frame": """
@jit
def entry(a):
    x = y = a
    fr = sys._getframe()
    y = 2
    fr.f_locals['x'] = 9
    z = x + y
    fr.f_locals['z'] = z + 1
    return x, y, z
""",
    "another variable than the frame has": """
@jit
def entry(a):
    x = a
    poke('new', 5)
    return x, sys._getframe().f_locals.get('new')
""",
}
CALLS = "def calls():\n    for a in (1, 2, 0, 3, 4, 5, 0, 6, 7):\n        yield (a,), {}\n"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_a_kept_frame_shows(body: str) -> None:
    check_source(PROGRAM.format(body=body), CALLS, engines=("recording", "stepped", "compiled"))


@pytest.mark.parametrize("body", WRITES.values(), ids=WRITES)
@pytest.mark.skipif(sys.version_info < (3, 13), reason="f_locals writes through since 3.13")
def test_variables_written_through_a_frame(body: str) -> None:
    check_source(PROGRAM.format(body=body), CALLS, engines=("recording", "stepped", "compiled"))


def lengths(points, step, which):
    here = points[0]
    n = here.shape[0]
    stiff, mass = -2.5, 0.25
    total = np.zeros((n, 2))
    for i in range(1, n):
        dx, dy = here[i] - here[i - 1]
        length = np.sqrt(dx**2 + dy**2)
        force = stiff * length
        row = np.array([force * dx, force * dy])
        total[i] += row
    total[which] += step
    return (2 - mass) * here + total * (step**2)


def lengths_from_half(n):
    count, width = n, 1200
    points = np.ones((2, count, 2))
    start = np.zeros(count)
    for i in range(1, count):
        start[i] = start[i - 1] + float(width) / count
    half = count // 2
    return lengths(points, 1.0 / (width * count), half)


def test_a_number_that_two_frames_hold_is_not_taken_for_one_that_was_looked_at() -> None:
    want = lengths_from_half(1000).tobytes()
    with ds.config(step_aside=False):
        jitted = ds.jit(lengths_from_half)
        for _ in range(6):
            assert jitted(1000).tobytes() == want
        before = dict(jitted.stats)
        assert jitted(1000).tobytes() == want
    assert jitted.stats["replays"] == before["replays"] + 1
    assert jitted.stats["exits"] == before["exits"]
