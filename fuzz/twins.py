"""Twins: one program on two sets of data, which it has no reason to treat differently. What it costs is the oracle:
NaN in the data must not cost a launch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .chooser import Chooser, Weighted
from .engines import Backend

# Array expressions that raise no floating-point flag, with or without NaN; <t> is another one.
_TERMS: Weighted[str] = Weighted(
    [
        (6, "a"),
        (6, "b"),
        (5, "(<t> + <t>)"),
        (4, "(<t> - <t>)"),
        (4, "(<t> * <t>)"),
        (3, "(<t> / 3.0)"),
        (2, "(<t> * 0.25 - 1)"),
        (2, "-<t>"),
        (2, "abs(<t>)"),
        (2, "np.maximum(<t>, <t>)"),
        (2, "np.minimum(<t>, 0.75)"),
        (1, "np.fmax(<t>, <t>)"),
        (3, "np.where(<t> > 0.5, <t>, <t>)"),
        (2, "np.where(<t> <= <t>, <t>, 1.0)"),
        (1, "np.where(np.isnan(<t>), 2.0, <t>)"),
        (1, "(<t> * (<t> < 1.5))"),
        (1, "(<t> + (<t> != <t>))"),
        (1, "np.clip(<t>, -1.0, 1.0)"),
        (2, "np.sqrt(abs(<t>))"),
        (1, "np.square(<t>)"),
        (1, "np.floor(<t>)"),
        (1, "np.sin(<t>)"),
        (1, "np.tanh(<t>)"),
        (1, "np.exp(-abs(<t>))"),
        (1, "np.copysign(<t>, <t>)"),
    ]
)
CALLS = 6


def expression(chooser: Chooser, depth: int) -> str:
    template = chooser.weighted(_TERMS) if depth else chooser.pick(("a", "b"))
    return re.sub("<t>", lambda _: expression(chooser, depth - 1), template)


def source_of(chooser: Chooser) -> str:
    lines = [f"    c = {expression(chooser, 2)}", f"    d = {expression(chooser, 3)} + c"]
    return "\n".join(["def twin(a, b):", *lines, f"    return d * 0.5, {expression(chooser, 2)} - c"]) + "\n"


def data(dtype: str, with_nan: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    a, b = np.linspace(-1.5, 1.75, 600).astype(dtype).reshape(20, 30), np.linspace(2.0, 0.25, 30).astype(dtype)
    if with_nan:
        a[3, 4] = a[19, 29] = b[7] = np.nan
    return a, b


def launches(source: str, dtype: str, with_nan: bool, backend: Backend) -> int:
    """Of all calls together. AssertionError: a result is not eager's."""
    namespace: dict[str, Any] = {"np": np}
    exec(source, namespace)
    plain: Callable[..., Any] = namespace["twin"]
    jitted = backend.jit(plain, store=False)
    before = backend.stats()["kernel_launches"]
    with np.errstate(all="raise"):
        for _ in range(CALLS):
            arrays = data(dtype, with_nan)
            for here, wanted in zip(jitted(*arrays), plain(*arrays), strict=True):
                assert here.dtype == wanted.dtype and here.tobytes() == wanted.tobytes(), source
    return backend.stats()["kernel_launches"] - before
