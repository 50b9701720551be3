"""Variances and deviations that divide by fewer than there are: `a.std(axis=0, ddof=1)`, `np.var(a, ddof=1)`."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno
import numpy as np
from tests.test_reduced_groups import agrees, values

pytestmark = pytest.mark.once


def of_all(a: Any) -> Any:
    return a.var(ddof=1), a.std(ddof=2), np.var(a, ddof=0), np.std(a, ddof=1), a.std(ddof=1) * 2.0


def along_axes(a: Any) -> Any:
    return (
        a.std(axis=0, ddof=1),
        np.var(a, axis=-1, ddof=2),
        a.var(1, ddof=1),
        np.std(a, ddof=1, keepdims=True, axis=1),
        a.std(keepdims=True, axis=0),
    )


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("shape", [(3, 4), (4, 300), (300, 5), (70, 1100)])
def test_shapes(dtype: str, shape: tuple[int, int]) -> None:
    a = (values(shape, "f8") * 50).astype(dtype)
    agrees(of_all, a)
    agrees(along_axes, a)
    agrees(along_axes, a.T)
    agrees(along_axes, a[:, ::2])


def test_axes_apart() -> None:
    agrees(
        lambda a: (a.std(axis=(0, 2), ddof=1), np.var(a, axis=(2, 0), ddof=3, keepdims=True)), values((4, 5, 6), "f8")
    )
    agrees(lambda a: a.var(axis=(1, 2), ddof=1), values((4, 5, 6), "f4"))


def test_nothing_to_divide_by() -> None:
    """NumPy warns, and what it gives are infinities and NaN."""
    a = values((3, 3), "f8")
    agrees(lambda a: (a.std(axis=0, ddof=3), a.var(axis=1, ddof=5)), a)
    agrees(lambda a: (a.std(ddof=9), np.var(a, ddof=10)), a)
    agrees(lambda a: (a[:1].var(axis=0, ddof=1), a[0, :1].std(ddof=1)), a)


@pytest.mark.parametrize("ddof", [1.5, True, -1, np.int64(1)])
def test_other_numbers(ddof: Any) -> None:
    agrees(lambda a: (a.std(axis=0, ddof=ddof), a.var(ddof=ddof)), values((4, 5), "f8"))


def test_not_a_number() -> None:
    with pytest.raises(TypeError):
        np.ones((2, 2)).std(axis=0, ddof=None)
    jitted = dalsegno.jit(lambda a: a.std(axis=0, ddof=None))
    for _ in range(4):
        with pytest.raises(TypeError):
            jitted(np.ones((2, 2)))


def test_changing_number() -> None:
    """A parameter: no constant of the trace."""
    jitted = dalsegno.jit(lambda a, ddof: (a.std(axis=1, ddof=ddof), a.var(ddof=ddof)))
    a = values((6, 7), "f8")
    for ddof in (0, 1, 2, 1, 3, 0, 5):
        got = jitted(a, ddof)
        assert got[0].tobytes() == a.std(axis=1, ddof=ddof).tobytes() and got[1] == a.var(ddof=ddof)


def test_numpys_function_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own is written in Python, and costs more than what it computes."""
    from numpy._core import _methods

    calls = []
    own = _methods._std

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return own(*args, **kwargs)

    monkeypatch.setattr(_methods, "_std", counted)
    jitted = dalsegno.jit(lambda a: (np.std(a, axis=1, ddof=1), np.std(a, ddof=1)))
    a = values((30, 40), "f8")
    for _ in range(3):
        jitted(a)
    assert calls
    calls.clear()
    for _ in range(5):
        jitted(a)
    assert not calls
