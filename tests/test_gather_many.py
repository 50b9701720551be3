"""Elements of a vector at positions of several axes: look-up tables of images."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.test_reduced_groups import same

pytestmark = pytest.mark.once

R = np.random.default_rng(5)


def looked_up(table: Any, at: Any) -> Any:
    return table[at], table[at] if len(table) else None


def agrees(table: Any, at: Any) -> None:
    jitted = ds.jit(store=False)(looked_up)
    try:
        want = looked_up(table, at)
    except IndexError as error:
        for _ in range(4):
            with pytest.raises(IndexError) as raised:
                jitted(table, at)
            assert str(raised.value) == str(error)
        return
    for _ in range(4):
        same(jitted(table, at), want)
        assert jitted(table, at)[0].flags.num == want[0].flags.num


@pytest.mark.parametrize("table", ["u1", "f4", "f8", "c16", "?", "i2", "S3", "O"])
@pytest.mark.parametrize("at", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_dtypes(table: str, at: str) -> None:
    t = R.integers(0, 100, 130).astype(table)
    for shape in ((3, 4), (60, 50), (2, 3, 4), (1, 1), (0, 5)):
        low = -130 if at in ("i2", "i4", "i8") else -128 if at == "i1" else 0
        p = R.integers(low, 127, shape).astype(at)
        agrees(t, p)
        agrees(t[::-2], p // 2)
        agrees(t, p.T)
    agrees(t, np.full((2, 2), 120, at))
    agrees(t[:100], np.full((2, 2), 120, at))
    agrees(t[:0], np.zeros((2, 2), at))


def test_other_positions() -> None:
    t = R.random(50)
    for p in (
        np.full((2, 3), -51),
        np.full((2, 3), 2**63 - 1),
        np.zeros((2, 50), bool),
        np.zeros((2, 2)),
        [[1, 2], [3, 4]],
    ):
        agrees(t, p)
    agrees(R.random((50, 3)), R.integers(0, 50, (4, 5)))
    agrees(t.view(np.ma.MaskedArray), R.integers(0, 50, (4, 5)))
    agrees(np.broadcast_to(3.0, 50), R.integers(0, 50, (4, 5)))
