"""Arrays whose dtype is another object than NumPy's own, as what was pickled has it: replayed as others are.

Results have the dtype objects that eager's have: ufuncs hand on their first operand's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, counting

EXPRESSIONS = """
a * 2.0; 2.0 * a; a + b; b + a; o + a; a + o; (a * 2 + o) / 3; (o + a) * a; o * (a + b); a - (o + b) * o
np.sqrt(a); np.exp(a); -a; np.maximum(o, a); np.maximum(a, o); np.where(a > 0.5, a, o); a > o
(a > 0.5) & (a > o); np.clip(a, 0.2, 0.8); np.round(a); a.copy(); a[1:]; a[1:] + 1; a[:, 1] * 2
(o[1:] + a[1:]) * 0.5; a.T; a.T + o.T; a[a > 0.5]; a[[1, 2]]; a[:, 0][np.arange(3)]; a[1]; a.ravel()
a.sum(axis=0); a.sum(axis=1); (a * a).sum(axis=1); (o * a).sum(axis=1); a.mean(axis=1); a.max(axis=0); a.sum()
a.cumsum(axis=1); a.std(axis=0); a @ b.T; o @ a.T; np.outer(a[0], a[1]); np.dot(a[0], b[0]); np.roll(a, 1)
np.roll(a[0], 1); np.concatenate([a, o]); np.diff(a); a.astype(float); np.linalg.norm(a, axis=1)
sum(a[k:k + 3] for k in range(2)); np.array([a[0], a[1]]); i + 1; i * 2.0; i // 2; i.sum(axis=0)
i.cumsum(axis=1); m & (a > 0.5); ~m; m.any(axis=0); m.sum(axis=1); i + a; a + i; f * 2; f + a; f.sum(axis=1)
np.zeros_like(a); np.add.outer(o[0], a[1]); m > 0; m > True; m == (a > 0.5); m == i; np.isnan(m)
np.isfinite(m); np.signbit(m); np.logical_and(m, i); np.logical_or(m, a); np.logical_not(m); np.logical_not(a)
m & True; m & 1; np.maximum(m, True); i & (i > 3); i + (i > 3); i << 1; i ** 2; i // 3; np.abs(m)
np.bitwise_count(i); np.any(a, axis=0); np.copysign(o, a); a ** 2
""".replace("\n", ";").split(";")


def pickled(array: Any) -> Any:
    again = pickle.loads(pickle.dumps(array))
    assert again.dtype == array.dtype and again.dtype is not array.dtype
    return again


def operands(rows: int, columns: int) -> dict[str, Any]:
    random = np.random.default_rng(5)
    a, b, o = (random.random((rows, columns)) for _ in range(3))
    return {
        "a": pickled(a), "b": pickled(b), "o": o, "i": pickled(np.arange(rows * columns).reshape(rows, columns)),
        "m": pickled(a > 0.3), "f": pickled(a.astype("f4")),
    }  # fmt: skip


@pytest.mark.parametrize("shape", [(6, 5), (120, 130), (300, 400)], ids=str)
@pytest.mark.parametrize("text", [text.strip() for text in EXPRESSIONS if text.strip()])
def test_results_have_the_dtype_objects_of_eager(text: str, shape: tuple[int, int]) -> None:
    given = operands(*shape)
    names = {id(array.dtype): name for name, array in given.items()}
    function = eval(f"lambda {', '.join(given)}: {text}", {"np": np})
    for settings in ({"kernels": False}, {}, {"native": False}):
        with ds.config(step_aside=False, background=False, **settings):
            jitted = ds.jit(store=False)(function)
            for _ in range(4):
                expected, actual = function(**given), jitted(**given)
                assert np.array_equal(expected, actual)
                assert type(expected) is type(actual) and expected.dtype == actual.dtype
                assert names.get(id(expected.dtype)) == names.get(id(actual.dtype)), settings


def eliminate(a: Any) -> Any:
    a = a.copy()
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def blur(a: Any) -> Any:
    for _ in range(3):
        a = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return a.sum(axis=0), a[a > 0.5]


def elements(a: Any) -> Any:
    total = 0.0
    for row in a:
        for x in row:
            total += x if x > 0.5 else -x
    return total


@pytest.mark.parametrize("program", [eliminate, blur, elements])
def test_programs_do_not_leave_for_them(program: Callable[..., Any]) -> None:
    own = np.random.default_rng(1).random((20, 20)) + np.eye(20)
    check(program, (pickled(own),), (own,))
    exits = []
    for array in (own, pickled(own)):
        with ds.config(step_aside=False, background=False):
            jitted = ds.jit(store=False)(program)
            for _ in range(8):
                jitted(array)
            with counting(jitted) as grown:
                jitted(array)
        exits.append((grown["exits"], grown["recordings"]))
    assert exits[0] == exits[1]


THROUGH = (
    "np.gradient(a)[0]", "np.diff(a, axis=0)", "np.diff(a * 2, axis=0)", "np.mean(a, axis=0)", "np.round(a, 1)",
    "np.average(a, axis=0)", "np.linalg.norm(a, axis=1)", "np.var(a, axis=0)", "np.tril(a)", "np.trapezoid(a)",
    "np.cross(a[:, :3], a[:, :3])", "np.isclose(a, a)", "np.polyval([1.0, 2.0], a)",
)  # fmt: skip


@pytest.mark.parametrize("text", THROUGH)
def test_functions_that_ask_for_the_dtype(text: str) -> None:
    """What they find in one array's dtype does not hold for another dtype object, nor for one with metadata."""
    function = eval(f"lambda a: {text}", {"np": np})
    own = np.random.default_rng(3).random((4, 5))
    noted = own.astype(np.dtype(float, metadata={"unit": "m"}))
    others = [own, own, pickled(own), pickled(own), noted, noted, own]
    with ds.config(step_aside=False, background=False):
        jitted = ds.jit(store=False)(function)
        for _ in range(3):
            for array in others:
                expected, actual = function(array), jitted(array)
                assert np.array_equal(expected, actual)
                given, own_dtype = array.dtype, np.dtype(expected.dtype.str)
                assert [actual.dtype is x for x in (given, own_dtype)] == [
                    expected.dtype is x for x in (given, own_dtype)
                ]
                assert actual.dtype.metadata == expected.dtype.metadata


def of_a_list(xs: Any) -> Any:
    return np.gradient(xs[0])[0]


def computed_into_the_second(a: Any, b: Any, c: Any) -> Any:
    return np.gradient(a * (b + c))[0]


def test_where_a_dtype_object_comes_from() -> None:
    """Items of lists come from nowhere; large temporaries on the right keep theirs, as NumPy computes into them."""
    own = np.random.default_rng(3).random((4, 5))
    large = np.ones((300, 300))
    again = pickled(large)
    calls: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
        (of_a_list, [([own],), ([own],), ([pickled(own)],), ([own],)]),
        (computed_into_the_second, [(large,) * 3, (large,) * 3, (large, again, large), (again, large, large)]),
    ]
    with ds.config(step_aside=False, background=False):
        for function, made in calls:
            jitted = ds.jit(store=False)(function)
            for arguments in made * 3:
                expected, actual = function(*arguments), jitted(*arguments)
                assert np.array_equal(expected, actual)
                assert expected.dtype.isbuiltin == actual.dtype.isbuiltin
