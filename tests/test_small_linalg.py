"""Linear algebra of small operands in steps of their own: NumPy's bits, errors and warnings."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import stepped
from tests.test_native_numpy_numbers import ODD, check, outcome


def solutions(matrices: Any, sides: Any) -> Any:
    out = []
    for i in range(len(matrices)):
        x = np.linalg.solve(matrices[i], sides[i])
        out.append((x, x.base is None, x.flags.owndata, x.strides))
    return out


def determinants(matrices: Any, sides: Any) -> Any:
    out = []
    for i in range(len(matrices)):
        out.append(np.linalg.det(matrices[i]) * 2)
    return out


def inverses(matrices: Any, sides: Any) -> Any:
    out = []
    for i in range(len(matrices)):
        out.append(np.linalg.inv(matrices[i]))
    return out


def some(n: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(9, n, n))


@pytest.mark.parametrize("function", [solutions, determinants, inverses])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 33])
def test_matrices_of_all_kinds(function: Any, n: int) -> None:
    m, v, w = some(n), some(n)[0], np.ones((9, n, 3))
    check(function, (m, some(n)[:, 0]), (m, w), (m.transpose(0, 2, 1), w[:, ::-1]), (m[:, ::-1, ::-1], w[:, :, ::-1]))
    check(
        function,
        (m.astype("f4"), w.astype("f4")),
        ((m * 9).astype(int), w),
        (m, w.astype("f4")),
        (m + 0j, w),
        (m, w[:, :, :0]),
    )
    check(function, ([x.tolist() for x in m], v), (m, [v] * 9))


@pytest.mark.parametrize("function", [solutions, determinants, inverses])
@pytest.mark.parametrize("under", ["ignore", "warn", "raise"])
def test_what_numpy_tells_of(function: Any, under: Any) -> None:
    jitted = ds.jit(store=False)(function)
    sides = np.ones((9, 3))
    odd = [np.array([[x, 1.0, 2.0], [0.0, 3.0, x], [1.0, 1.0, 1.0]]) for x in ODD]
    odd += [
        np.zeros((3, 3)),
        np.ones((3, 3)),
        some(3)[0] * 1e200,
        some(3)[0] * 1e-160,
        some(3)[0, :2],
        np.full((3, 3), np.nan),
    ]
    with stepped(step_aside=False, hot_loop=1), np.errstate(under=under):
        for one in odd:
            for matrices in list(some(3)), [*some(3)[:6], one, *some(3)[:2]]:
                assert outcome(jitted, matrices, sides) == outcome(function, matrices, sides)
