"""Other compilers, where they are installed: the same source under numba.njit, and under jax.jit with jax.numpy as np.

Only for comparison. A program that a peer does not take has no column; nothing checks a peer's bits.
"""

from __future__ import annotations

import importlib
import timeit
import types
import warnings
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def _numba(function: Function) -> Function:
    compiled: Function = importlib.import_module("numba").njit(function)
    return compiled


def _jax(function: Function) -> Function:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    space = {**function.__globals__, "np": importlib.import_module("jax.numpy")}
    own = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    compiled = jax.jit(own)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


PEERS: dict[str, Callable[[Function], Function]] = {"numba": _numba, "jax": _jax}


def ratios(function: Function, arguments: tuple[Any, ...], eager: float) -> dict[str, float]:
    """Eager's time over the peer's, for each peer that takes the program."""
    return {name: eager / taken for name, build in PEERS.items() if (taken := _time(build, function, arguments))}


def _time(build: Callable[[Function], Function], function: Function, arguments: tuple[Any, ...]) -> float | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = build(function)
            for _ in range(3):
                compiled(*arguments)
    except Exception:  # not installed, or not a program for this peer
        return None
    return min(timeit.repeat(lambda: compiled(*arguments), number=1, repeat=20))
