"""Native code against eager: calls in turn, with what became of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.support import counting, stepped

Make = Callable[[], tuple[Any, ...]]


def check_beside_others(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Each of the calls three times, by all engines, and then by the one that compiles loops at their first turn."""
    rows = [made for made in calls for _ in range(3)]
    equivalent(function, *rows)
    equivalent(function, *rows, engines=["native"])


def told(function: Callable[..., Any], *args: Any) -> Any:
    """The outcome of a call, and what became of its arguments."""
    try:
        result: Any = repr(function(*args))
    except Exception as error:
        result = (type(error).__name__, str(error))
    return result, [repr(a) for a in args if isinstance(a, np.ndarray)]


def same(function: Callable[..., Any], *calls: Make, **settings: object) -> None:
    """Calls are made in turn, each of them twice, by eager and by native code."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, hot_loop=1, **settings):
        for _ in range(3):
            for make in calls:
                for _ in range(2):
                    assert told(jitted, *make()) == told(function, *make())


def steps_of(function: Callable[..., Any], *args: Any) -> int:
    """How many steps the machine still does in a call whose loops are native."""
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(*args)
        with counting(jitted) as grown:
            jitted(*args)
    return grown["steps"]


def written(expression: str) -> Callable[..., Any]:
    """A loop over two sequences of operands, in which the operator stands where native code can do it."""
    namespace: dict[str, Any] = {"np": np}
    source = f"""
def f(left, right):
    out = []
    for k in range(len(left)):
        a = left[k]
        b = right[k]
        try:
            out.append({expression})
        except (ZeroDivisionError, FloatingPointError, OverflowError, TypeError) as error:
            out.append(repr(error))
    return out
"""
    exec(source, namespace)
    found: Callable[..., Any] = namespace["f"]
    return found
