"""Small arrays side by side (replay/machine/steps_made.cc): concatenate, stack, hstack, vstack and column_stack give
what NumPy gives, in its layout."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np

R = np.random.default_rng(3)

TEXTS = """
np.concatenate([a, b])
np.concatenate((a, b), 0)
np.concatenate([a, b], axis=1)
np.concatenate([a, b], -1)
np.concatenate([a, b], axis=None)
np.concatenate([a, b], axis=5)
np.concatenate([a, [1.0, 2]])
np.stack([a, b])
np.stack([a, b], axis=1)
np.stack((a, b, a), -1)
np.stack([a], 0)
np.stack([a, b], axis=0, dtype='f4')
np.stack([a, b], out=None)
np.vstack([a, b])
np.vstack((a, b, b))
np.vstack([a])
np.hstack([a, b])
np.hstack((a, b, a))
np.hstack([a, 2.0])
np.hstack(a)
np.column_stack([a, b])
np.column_stack((a, b, b))
np.dstack([a, b])
""".strip().splitlines()

SHAPES: list[tuple[Any, Any]] = [
    ((9,), (9,)), ((9,), (4,)), ((3, 4), (3, 4)), ((3, 4), (2, 4)), ((3, 4), (3, 1)), ((5, 1), (5, 1)),
    ((1, 5), (1, 5)), ((1,), (1,)),
    ((0,), (3,)), ((2, 3, 4), (2, 3, 4)), ((0, 3), (2, 3)), ((1, 1, 3), (1, 1, 3)), ((), ()),
    ((3, 4), (4,)), ((2, 2, 2, 2, 2), (2, 2, 2, 2, 2)), ((100, 100), (100, 100)),
]  # fmt: skip


def made(text: str) -> Any:
    space: dict[str, Any] = {"np": np}
    exec(f"def joined(a, b):\n    return {text}", space)
    return space["joined"]


def observed(function: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = function(*args)
        except Exception as error:
            return repr(error)
    said = [str(w.message) for w in caught]
    return type(x), x.dtype, x.shape, x.strides, x.tobytes(), x.flags.f_contiguous, x.base is None, said


def operands(dtype: str) -> Any:
    for one, other in SHAPES:
        a, b = ((R.standard_normal(shape) * 9).astype(dtype) for shape in (one, other))
        a, b = np.asarray(a), np.asarray(b)
        yield a, b
        if a.ndim == 2 and one == other:
            f = np.asfortranarray
            yield from ((a.T, b.T), (a[::-1], b), (a, f(b)), (f(a), f(b)), (a, b.astype("f8")))
        if a.ndim == 1 and one == other:
            yield from ((a[::-1], b), (a[::2], b[::2]))


@pytest.mark.parametrize("text", TEXTS)
def test_side_by_side(text: str) -> None:
    function = made(text)
    jitted = ds.jit(function, store=False)
    with ds.config(step_aside=False):
        for dtype in ("f8", "f4", "i8", "u1"):
            for given in operands(dtype):
                expected = observed(function, *given)
                for _ in range(2):
                    assert observed(jitted, *given) == expected
