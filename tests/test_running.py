"""Running sums and products (replay/machine/steps_running.cc): bits, flags, layouts and dtypes are NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.equivalent import equivalent

R = np.random.default_rng(3)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.5, 5e-324, 1e308, -1e308, 0.1]
SHAPES: list[Any] = [(9,), (1,), (0,), (3, 4), (2, 3, 4), (70_000,), (300, 300), (5, 1), (1, 5)]

CALLS: dict[str, Callable[[Any], Any]] = {
    "sums": lambda a: np.cumsum(a),
    "by a method": lambda a: a.cumsum(),
    "along the first axis": lambda a: np.cumsum(a, 0),
    "along the last axis": lambda a: np.cumsum(a, axis=-1),
    "by a method along": lambda a: a.cumsum(axis=0),
    "products": lambda a: np.cumprod(a),
    "products along": lambda a: a.cumprod(-1),
    "axis out of range": lambda a: np.cumsum(a, axis=1),
    "of a result": lambda a: np.cumsum(a * 2) + 1,
    "of all": lambda a: np.cumprod(a, axis=None),
    "as another dtype": lambda a: np.cumsum(a, dtype="f4"),
    "into nothing": lambda a: np.cumsum(a, 0, out=None),
}


def observed(function: Callable[[Any], Any], a: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = function(a)
        except Exception as error:
            return repr(error)
    said = [(w.filename, w.lineno, str(w.message)) for w in caught]
    return type(made), made.dtype, made.shape, made.strides, made.tobytes(), made.base is None, said


def values(shape: Any, dtype: str, special: bool) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (R.choice(SPECIAL, shape) if special else R.standard_normal(shape) * 9).astype(dtype)


@pytest.mark.parametrize("name", CALLS)
def test_running(name: str) -> None:
    function = CALLS[name]
    jitted = ds.jit(function, store=False)
    with ds.config(step_aside=False):
        for dtype in ("f8", "f4", "i8", "i4", "u1", "?", "c16"):
            for shape in SHAPES:
                for special in (False, True):
                    a = values(shape, dtype, special)
                    for given in (a, a[::-1], a.T, a[::2]):
                        expected = observed(function, given)
                        for _ in range(3):
                            assert observed(jitted, given) == expected


def test_flags_are_told_as_numpy_tells_them() -> None:
    for mode in ("raise", "warn", "ignore"):
        with np.errstate(all=mode):
            for large in (np.full(9, 1e308), np.full((4, 4), 1e200)):
                equivalent(lambda a: (np.cumsum(a), np.cumprod(a, axis=0)), *[(large,)] * 4, engines=["native"])
