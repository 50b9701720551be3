"""NumPy's functions written in Python that are recorded through (trace/recorder/record_certain.cc), and clip() and
round(), which are array operations: results, warnings, errors, tracebacks and frames are eager's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz.equivalent import equivalent
from tests.support import stepped

R = np.random.default_rng(5)
ENGINES = ["recording", "stepped", "native", "blocks", "compiled"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 5e-324, 1.0, -2.0]

Call = Callable[..., Any]

CALLS: dict[str, Call] = {
    "diff": lambda a, b: np.diff(a),
    "diff twice": lambda a, b: np.diff(a, 2) + 1,
    "diff along": lambda a, b: np.diff(a, axis=0),
    "diff with ends": lambda a, b: np.diff(a, prepend=0, append=b[:1]),
    "gradient": lambda a, b: np.gradient(a),
    "gradient of steps": lambda a, b: np.gradient(a, 0.5) * 2,
    "gradient at places": lambda a, b: np.gradient(a, np.cumsum(np.abs(b) + 1)),
    "gradient along": lambda a, b: np.gradient(a, axis=-1, edge_order=2),
    "outer": lambda a, b: np.outer(a, b),
    "outer and more": lambda a, b: np.outer(a, b) + 1 - np.outer(a, b[:1]),
    "outputs that are None": lambda a, b: np.add(a, b, None) + np.negative(a, None),
    "round": lambda a, b: np.round(a, 2),
    "round to whole": lambda a, b: np.round(a) + np.round(b, 1),
    "round before": lambda a, b: a.round(-1) + b.round(decimals=3),
    "around": lambda a, b: np.around(a, decimals=1),
    "average": lambda a, b: np.average(a),
    "average by weights": lambda a, b: np.average(a, weights=b),
    "average along": lambda a, b: np.average(a, axis=0),
    "trapezoid": lambda a, b: np.trapezoid(a),
    "trapezoid of steps": lambda a, b: np.trapezoid(a, dx=0.1),
    "trapezoid at places": lambda a, b: np.trapezoid(a, b),
    "polyval": lambda a, b: np.polyval([1.0, -2.0, 3.0], a),
    "polyval of an array": lambda a, b: np.polyval(b, a),
    "isclose": lambda a, b: np.isclose(a, b),
    "isclose to itself": lambda a, b: np.isclose(a, a + 1e-9, atol=1e-6, equal_nan=True),
    "tril": lambda a, b: np.tril(a) + np.triu(a, 1),
    "tri": lambda a, b: np.tri(len(a), 3) * 2,
    "ediff1d": lambda a, b: np.ediff1d(a, to_begin=b[:1]),
    "fix": lambda a, b: np.fix(a) + b,
    "cross": lambda a, b: np.cross(np.column_stack([a.ravel()[:4]] * 3), np.arange(12.0).reshape(4, 3) + b.ravel()[0]),
    "norm": lambda a, b: np.linalg.norm(a),
    "norm along": lambda a, b: np.linalg.norm(a, axis=-1),
    "norm of a result along": lambda a, b: np.linalg.norm(a - b, axis=0) * 2,
    "norm kept": lambda a, b: a / np.linalg.norm(a, axis=-1, keepdims=True),
    "norms of other orders": lambda a, b: (np.linalg.norm(a, 1, axis=0), np.linalg.norm(a, np.inf, -1)),
    "norm of a matrix": lambda a, b: np.linalg.norm(a, "fro"),
    "reduce": lambda a, b: (np.add.reduce(a), np.maximum.reduce(a, None), np.multiply.reduce(b)),
    "reduce along": lambda a, b: (np.add.reduce(a, axis=0), np.minimum.reduce(a * b, axis=-1), np.add.reduce(b, 0)),
    "reduce and keep": lambda a, b: np.maximum.reduce(a * 2, axis=-1, keepdims=True) + a,
    "parts of what is real": lambda a, b: (a.conj() * a).real + b.real,
    "clip": lambda a, b: np.clip(a, -0.5, 2),
    "clip a result": lambda a, b: np.clip(a * 2 + b, 0, 1) - 1,
    "clip by a method": lambda a, b: a.clip(0, 3) + b.clip(-1, 1),
    "clip by names": lambda a, b: np.clip(a, a_min=-1, a_max=1) + np.clip(b, 0, a_max=2.5) + a.clip(min=0, max=1),
    "clip by strange names": lambda a, b: np.clip(a, max=2, min=-1, out=None) - np.clip(b, -1, min=0),
    "clip by arrays": lambda a, b: np.clip(a, b, 2 * b),
    "clip at one end": lambda a, b: np.clip(a, None, 1) + a.clip(min=0),
    "clip into": lambda a, b: np.clip(a, 0, 1, out=b),
}


def same(function: Call, *args: Any, engines: Any = ENGINES) -> None:
    equivalent(function, *[args] * 4, engines=engines)


def values(shape: Any, dtype: str, special: bool = False) -> Any:
    made = (R.standard_normal(shape) * 9).astype("f8")
    if special:
        chosen = R.random(shape) < 0.4
        made[chosen] = R.choice(SPECIAL, int(chosen.sum()))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.astype(dtype)


@pytest.mark.parametrize("name", CALLS)
def test_of_vectors(name: str) -> None:
    for dtype in ("f8", "f4", "i8", "u1", "?", "c16"):
        same(CALLS[name], values(9, dtype), values(9, dtype), engines=ENGINES if dtype == "f8" else ["native"])
    same(CALLS[name], values(33, "f8", special=True), values(33, "f8", special=True), engines=["native", "compiled"])


@pytest.mark.parametrize("name", CALLS)
def test_of_other_shapes(name: str) -> None:
    for shape in ((4, 5), (3, 2, 4), (1,), (0,), (2, 1), ()):
        same(CALLS[name], values(shape, "f8"), values(shape, "f8"), engines=["stepped", "native"])
    same(CALLS[name], values((5, 6), "f8").T, values((6, 5), "f8")[:, ::-1], engines=["native", "compiled"])


@pytest.mark.parametrize("name", CALLS)
def test_of_what_is_no_array(name: str) -> None:
    class Tagged(np.ndarray):
        pass

    class Own:
        def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return function.__name__, len(args), sorted(kwargs)

    tagged = values(6, "f8").view(Tagged)
    for a, b in (
        ([1.0, 4.0, 2.0], [3, 1, 2]),
        ((1, 2, 3), (2.5, 1.0, 9.0)),
        (2.5, 3),
        (tagged, tagged),
        (Own(), Own()),
    ):
        same(CALLS[name], a, b, engines=["native"])


@pytest.mark.parametrize("name", CALLS)
def test_what_is_given_changes(name: str) -> None:
    calls = [
        (9, "f8"),
        (9, "f8"),
        (7, "f8"),
        (9, "f4"),
        ((3, 4), "f8"),
        (9, "i8"),
        (9, "f8"),
        ((3, 4), "f8"),
        (9, "i8"),
    ]
    equivalent(CALLS[name], *[(values(s, d), values(s, d)) for s, d in calls * 2], engines=["stepped", "native"])


def test_errors_within() -> None:
    def negative(a: Any) -> Any:
        return np.diff(a, -1)

    def short(a: Any) -> Any:
        return np.gradient(a[:1])

    def caught(a: Any) -> Any:
        try:
            return np.gradient(a, edge_order=5)
        except ValueError as error:
            return str(error), error.__traceback__.tb_next.tb_lineno

    def strange(a: Any) -> Any:
        return np.average(a, weights=a * 0)

    for function in (negative, short, caught, strange):
        same(function, values(5, "f8"))


def test_warnings_name_the_line_within() -> None:
    def overflows(a: Any) -> Any:
        return np.round(a, 3), np.diff(a), a.round(2)

    large = np.array([1e307, -1e308, 1e308, 2.0])
    same(overflows, large)
    jitted = ds.jit(overflows, store=False)
    first: list[Any] = []
    for function in (overflows, jitted, jitted, jitted):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(large)
        told = [(w.filename, w.lineno, str(w.message)) for w in caught]
        first = told if function is overflows else first
        assert told == first


def test_a_default_is_replaced(monkeypatch) -> None:
    def step(a: Any) -> Any:
        return np.diff(a)

    jitted = ds.jit(step, store=False)
    a = values(6, "f8")
    for _ in range(4):
        assert np.array_equal(jitted(a), step(a))
    implementation = np.diff._implementation
    monkeypatch.setattr(implementation, "__defaults__", (2, *implementation.__defaults__[1:]))
    for _ in range(4):
        assert jitted(a).shape == (4,)
        assert np.array_equal(jitted(a), step(a))


def test_a_helper_is_replaced(monkeypatch) -> None:
    def rounded(a: Any) -> Any:
        return np.round(a, 1)

    jitted = ds.jit(rounded, store=False)
    a = values(6, "f8")
    for _ in range(4):
        jitted(a)
    monkeypatch.setattr(sys.modules[np.round._implementation.__module__], "_wrapfunc", lambda *_, **__: "replaced")
    assert jitted(a) == rounded(a) == "replaced"


def test_arguments_stay_until_the_function_has_returned() -> None:
    import weakref

    def died(a: Any, log: Any) -> Any:
        def made() -> Any:
            part = a * 2
            weakref.finalize(part, log.append, "gone")
            return part

        changed = np.diff(made())
        log.append("returned")
        return changed

    jitted = ds.jit(died, store=False)
    for _ in range(6):
        eager: list[str] = []
        ours: list[str] = []
        died(values(5, "f8"), eager)
        jitted(values(5, "f8"), ours)
        assert ours == eager


def test_a_second_process_replays(run_python, fresh_store) -> None:
    script = """
import numpy as np, dalsegno as ds
a, b = np.linspace(0, 3, 40) ** 2, np.linspace(1, 2, 40)
for text in (
    "np.diff(a)", "np.gradient(b)", "np.round(a, 2)", "np.average(a, weights=b)", "np.average(a)", "np.clip(a, 0, 1)",
    "np.polyval([1.0, 2.0], a)", "np.isclose(a, b)", "np.trapezoid(a, b)", "np.tril(np.outer(a, b))", "np.fix(a)",
    "np.ediff1d(a)", "np.linalg.norm(a.reshape(8, 5), axis=1)",
):
    exec(f"def f(a, b):\\n    return {text}")
    f(a, b)  # (what NumPy remembers from then on, it finds through exceptions)
    jitted = ds.jit(f)
    for _ in range(6):
        assert np.array_equal(jitted(a, b), f(a, b)), text
    ds.wait()
    print(ds.stats()["recordings"])
"""
    first, second = (run_python("-c", script, DALSEGNO_STEP_ASIDE="0").stdout.split() for _ in range(2))
    assert first == [str(k) for k in range(1, len(first) + 1)]
    assert set(second) == {"0"}


def test_rounding_takes_no_more_memory() -> None:
    def rounded(a: Any) -> Any:
        return (a * 2).round(3), np.round(a, 1), (a * 2).round(), np.round(a)

    same(rounded, np.resize([1.0, 2.33, -7.77], (260, 260)))


@pytest.mark.parametrize("places", [0, 1])
def test_replays_use_kernels_and_groups(places: int) -> None:
    def chain(a: Any, b: Any) -> Any:
        return np.clip(np.diff(a) * 2 + np.round(b[1:], places), 0, 5)

    jitted = ds.jit(chain, store=False)
    a, b = values(500, "f8"), values(500, "f8")
    with ds.config(background=False, inner_loops=0):
        before = ds.stats()["kernel_launches"]
        for _ in range(5):
            assert np.array_equal(jitted(a, b), chain(a, b))
        assert ds.stats()["kernel_launches"] > before


def layouts() -> list[Any]:
    """Arrays of C's order, of Fortran's, and of neither."""
    whole, cube = np.resize([1.23456, -2.5, 3.75], (100, 40)), np.resize([1.23456, 0.5], (6, 7, 5))
    flat = [whole, whole.T, whole.T[::-1], whole.T[:, ::-1], whole[::2].T, whole[::-1], whole[:1].T[::-1]]
    deep = [cube, cube.transpose(1, 0, 2), cube.T, cube[:, ::2]]
    return [*flat, *deep, np.broadcast_to(whole[0], (3, 40)), whole[0], whole[0, ::-2]]


# Of an array that is of neither order the result is of C's: it was of the array's.
@pytest.mark.parametrize("which", [0, 1])
def test_the_order_of_what_is_rounded(which: int) -> None:
    def to_places(a: Any) -> Any:
        return np.round(a, 2), a.round(decimals=1), np.round(a * 0.5, 3), np.round(a + a.copy(order="F"), 2)

    def to_whole(a: Any) -> Any:
        return np.round(a), a.round(0), np.round(a * 0.5), np.round(a + a.copy(order="F"))

    rounds = (to_places, to_whole)[which]
    for first in layouts():
        jitted = ds.jit(store=False)(rounds)
        with stepped(step_aside=False):
            for a in [first] * 4 + layouts() * 2:
                for given, wanted in zip(jitted(a), rounds(a), strict=True):
                    assert np.array_equal(given, wanted)
                    assert (given.strides, given.flags.num) == (wanted.strides, wanted.flags.num)
