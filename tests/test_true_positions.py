"""np.nonzero() and what is made of it: values, layout, flags and bases."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.test_reduced_groups import same

pytestmark = pytest.mark.once

R = np.random.default_rng(8)


def found(m: Any) -> Any:
    return np.nonzero(m), m.nonzero(), np.where(m), np.flatnonzero(m), np.argwhere(m)


def compared(m: Any) -> Any:
    return np.where(m > 0.5)[0], np.flatnonzero(m < 0.2), np.argwhere(m > 0.9)


def look(array: Any) -> Any:
    base = array.base
    return array.flags.num, None if base is None else (
        base.shape,
        base.strides,
        base.flags.num,
        base.tobytes(),
        base.base is None,
    )


def agrees(function: Any, argument: Any) -> None:
    jitted = ds.jit(store=False)(function)
    want = function(argument)
    for _ in range(4):
        have = jitted(argument)
        for one, other in zip(have, want, strict=True):
            same(one, other)
            for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (one, other)), strict=True):
                assert look(a) == look(b)
                a[...] += 1  # may be written
                b[...] += 1
                same(a, b)
                a[...] -= 1
                b[...] -= 1


@pytest.mark.parametrize("density", [0.0, 0.01, 0.3, 0.97, 1.0])
@pytest.mark.parametrize(
    "shape", [(1,), (7,), (64,), (1000,), (1025,), (5000,), (1, 1), (3, 70), (200, 31), (2, 3000), (40, 0)]
)
def test_masks(shape: Any, density: float) -> None:
    a = R.random(shape)
    agrees(found, a < density)
    agrees(compared, a)


def test_other_arrays() -> None:
    a = R.random((30, 40)) < 0.4
    for m in (a.T, a[::2], a[:, ::-1], a[3:9, 4:], a[None], a.astype(int), a.astype(float), a.view(np.uint8) * 3):
        agrees(found, m)
    odd = (a.view(np.uint8) * 3).view(bool)
    agrees(found, odd)
