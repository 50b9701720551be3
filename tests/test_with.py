# ruff: noqa: E501 - programs as text
"""`with`: recorded as long as nothing is raised; what is raised finds the manager where the interpreter would have it."""

from __future__ import annotations

import pytest

import numpy as np
from tests.support import check_source, settles

PROGRAM = """
import contextlib, threading, io, warnings
LOG = []
LOCK = threading.Lock()

class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow
    def __enter__(self):
        LOG.append('enter')
        return self
    def __exit__(self, kind, value, traceback):
        LOG.append(('exit', kind and kind.__name__, str(value), traceback and traceback.tb_lineno))
        return self.swallow

class Raises(Manager):
    def __enter__(self):
        LOG.append('enter')
        raise KeyError('enter')

class RaisesLater(Manager):
    def __exit__(self, *_):
        LOG.append('exit')
        raise KeyError('exit')

class NoExit:
    def __enter__(self):
        LOG.append('entered')

class NoEnter:
    def __exit__(self, *_):
        LOG.append('left')

class Described:
    class Get:
        def __init__(self, name):
            self.name = name
        def __get__(self, o, owner):
            LOG.append(self.name)
            return lambda *_: LOG.append((self.name, len(_)))
    __enter__ = Get('enter')
    __exit__ = Get('exit')

class OnInstance:
    pass

@contextlib.contextmanager
def generated(x):
    LOG.append('before')
    try:
        yield x * 2
    finally:
        LOG.append('after')

@jit
def entry(x, how):
    LOG.clear()
    out = []
    {body}
    return out, list(LOG)
"""

BODIES = {
    "a class": "with Manager() as m:\n        out.append(m.swallow)",
    "raises inside": "with Manager(how == 2) as m:\n        if how:\n            out.append(x / 0)\n        out.append(1)",
    "raises in enter": "with Raises():\n        out.append(1)",
    "raises in exit": "with RaisesLater():\n        out.append(1)",
    "no exit": "with NoExit():\n        out.append(1)",
    "no enter": "with NoEnter():\n        out.append(1)",
    "descriptors": "with Described():\n        out.append(1)",
    "methods of the instance": "o = OnInstance()\n    o.__enter__ = o.__exit__ = lambda *_: None\n    with o:\n        out.append(1)",
    "a generator": "with generated(x) as y:\n        out.append(y)\n        if how:\n            raise ValueError(y)",
    "a lock": "with LOCK:\n        out.append(LOCK.locked())\n    out.append(LOCK.locked())",
    "a file": "with io.StringIO() as f:\n        f.write(str(x))\n        out.append(f.getvalue())",
    "errstate": "with np.errstate(divide='ignore' if how else 'raise'):\n        out.append(np.array([1.0, 2.0]) / x)",
    "errstate around kernels": "a = np.arange(4.0)\n    with np.errstate(divide='ignore', invalid='ignore'):\n        out.append((a / (a * 0.0) + 1) * 2)\n    out.append(a * 2 + 1)",
    "warnings": "with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n        out.append(np.array([1.0]) / 0)",
    "suppress": "with contextlib.suppress(ZeroDivisionError):\n        out.append(x / how)\n        out.append('not reached')",
    "return": "with Manager():\n        if how:\n            return 'returned', list(LOG)\n        out.append(1)",
    "loop": "for i in range(4):\n        with Manager() as m:\n            if i == how:\n                continue\n            if i == 2:\n                break\n            out.append(i)",
    "nested": "with Manager() as a, Manager(True) as b:\n        with generated(x) as c:\n            out.append(c)\n            if how == 2:\n                raise TypeError('inside')\n    out.append(2)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_way_through(body: str) -> None:
    check_source(
        PROGRAM.format(body=body),
        "def calls():\n    for how in (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2):\n        yield (1.5 if how < 2 else 0.0, how), {}\n",
        engines=("recording", "stepped", "compiled"),
    )


class Plain:
    def __enter__(self) -> int:
        return 3

    def __exit__(self, *_: object) -> None:
        pass


PLAIN = Plain()


def with_in_a_loop(x: float) -> float:
    for _ in range(3):
        with PLAIN as n:
            x += n
    return x


def with_errstate(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x / 0


def test_it_replays_from_end_to_end() -> None:
    settles(with_in_a_loop, (1.5,))
    settles(with_errstate, (np.arange(3.0),))
