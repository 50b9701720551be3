"""NumPy's functions that do no more than call a method of their array (trace/recorder/facts.cc: kByMethod)."""

from __future__ import annotations

from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, stepped

EXPRESSIONS = (
    "np.ravel(a)", "np.ravel(a, 'F')", "np.ravel(a, order='K')", "np.transpose(a)", "np.transpose(a, (1, 0))",
    "np.transpose(a, axes=None)", "np.squeeze(a)", "np.squeeze(a, axis=0)", "np.squeeze(a, 1)", "np.nonzero(a)",
    "np.nonzero(a > 0)[0]", "np.argsort(a)", "np.argsort(a, 0)", "np.argsort(a, kind='stable', axis=0)",
    "np.argsort(a, order='x')", "np.ravel(a * 2) + 1", "np.transpose(a)[0] * np.ravel(a)[0]",
    "np.argsort(-np.ravel(a))",
)  # fmt: skip
LISTS = ([[3, 1], [2, 0]], [1, 2, 3], ((1, 2), (3, 4)), 5, None)


class Own(np.ndarray):
    def ravel(self, *args: Any) -> Any:
        return "own"


def arrays() -> list[Any]:
    base = (np.arange(12.0) * 7 % 5).reshape(3, 4)
    kinds = [base, base.astype("i4").T, base[:, ::2], base[:1], base[0], base[:0], np.asfortranarray(base), base > 2]
    kinds += [base.astype(">f4"), base.astype(object), base.astype("c8"), np.zeros((2, 1, 2)), np.array(3.0)]
    return [*kinds, np.float64(2.5), base.view(Own), np.ma.masked_less(base, 2)]


def made(expression: str) -> Any:
    space: dict[str, Any] = {"np": np}
    exec(compile(f"def f(a, k):\n    return {expression}\n", f"<{expression}>", "exec"), space)
    return space["f"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_the_function(expression: str) -> None:
    k = np.array([1, 0, 1])
    check(made(expression), *[(a, k) for a in (*arrays(), *LISTS)], rounds=2)


@pytest.mark.parametrize("expression", ["np.ravel(a)", "np.transpose(a)", "np.squeeze(a)", "np.argsort(a)"])
def test_no_frame_is_linked(expression: str) -> None:
    jitted = ds.jit(store=False)(made(expression))
    a, k = arrays()[0], np.array([1, 0])
    with stepped():
        for _ in range(4):
            assert np.array_equal(jitted(a, k), made(expression)(a, k))
    assert "may run any code" not in str(jitted.explain())
    assert "type:numpy.ndarray.attr" in str(jitted.explain())


def test_the_function_is_replaced(monkeypatch) -> None:
    def f(a: Any, k: Any) -> Any:
        return np.ravel(a), k

    jitted = ds.jit(store=False)(f)
    a = arrays()[0]
    with stepped():
        for _ in range(4):
            assert jitted(a, 1)[0].shape == (12,)
        monkeypatch.setattr(np, "ravel", lambda a: "replaced")
        assert jitted(a, 1) == ("replaced", 1)
