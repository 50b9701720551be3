"""Layouts of results where eager NumPy computes an operator into a large temporary (numpy/elide.h)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from tests.support import counting, stepped

SHAPE = (182, 190)  # of float64: more than 256 KiB


def chain(a: Any, c: Any) -> Any:
    return (a + a) * c


def on_the_right(a: Any, c: Any) -> Any:
    return c * (a + a)


def not_commutative(a: Any, c: Any) -> Any:
    return c - (a + a), (a + a) - c, (a * 2) / c, c / (a * 2), (a + a) // c


def both_die(a: Any, c: Any) -> Any:
    return (a * 2) + (c * 3), (c * 3) - (a * 2)


def long_chain(a: Any, c: Any) -> Any:
    return ((-(a * 2) + c) * a - c) / 3


def named(a: Any, c: Any) -> Any:
    t = a + a
    return t * c, t


def helper(h: Any, c: Any) -> Any:
    return h * c, (h + 1) * c


def through_a_call(a: Any, c: Any) -> Any:
    return helper(a + a, c)


def from_a_step(a: Any, c: Any) -> Any:
    return np.cumsum(a, axis=0) + c, a.copy("K") * c, np.asfortranarray(a) + c


def from_a_view(a: Any, c: Any) -> Any:
    return (a + a)[::-1] * c, (a + a).T.T * c, (a + a)[1:] + c[1:]


def kept_elsewhere(a: Any, c: Any) -> Any:
    kept = []
    kept.append(a + a)
    return kept[0] * c, kept.pop() * c


def broadcast(a: Any, c: Any) -> Any:
    return (a + a) + c[0], c[:1] * (a + a), (a[0] + 1) * c


def remainders_and_powers(a: Any, c: Any) -> Any:
    return (a * 2) % c, (a * 2) ** 2 + c, abs(a * 2) + c


def bits(a: Any, c: Any) -> Any:
    i, k = a.astype(np.int64), c.astype(np.int64)
    return (i + 1) & k, k | (i + 1), k ^ (i + 1), (i + 1) << (k & 3), k >> ((i + 1) & 3)


def written_in_place(a: Any, c: Any) -> Any:
    t = a + a
    t += c
    u = (a + a) * c
    u -= a
    return t, u


PROGRAMS = [
    chain, on_the_right, not_commutative, both_die, long_chain, named, through_a_call, from_a_step, from_a_view,
    kept_elsewhere, broadcast, remainders_and_powers, bits, written_in_place,
]  # fmt: skip


def arrays() -> Iterator[Any]:
    random = np.random.default_rng(5)

    def made(dtype: str, shape: tuple[int, ...] = SHAPE) -> Any:
        return (random.random(shape) * 9 + 1).astype(dtype)

    yield "f8", np.asfortranarray(made("f8")), made("f8")
    yield "c order first", made("f8"), np.asfortranarray(made("f8"))
    yield "i8 and i4", np.asfortranarray(made("i8")), made("i4")
    yield "i4 and i8", np.asfortranarray(made("i4", (300, 300))), made("i8", (300, 300))
    yield "f8 and f4", np.asfortranarray(made("f8")), made("f4")
    yield "f4 and f8", np.asfortranarray(made("f4", (300, 300))), made("f8", (300, 300))
    yield "small", np.asfortranarray(made("f8", (30, 30))), made("f8", (30, 30))
    yield "rank 3", made("f8", (40, 30, 40)).transpose(1, 2, 0), made("f8", (30, 40, 40))
    yield "one row", np.asfortranarray(made("f8", (200, 1, 200))), made("f8", (200, 1, 200))
    yield "strided", np.asfortranarray(made("f8"))[::-1], made("f8")[:, ::-1]


def picture(results: Any) -> list[Any]:
    results = results if isinstance(results, tuple) else (results,)
    return [(r.dtype.str, r.shape, r.strides, r.flags.f_contiguous, r.tobytes("A")) for r in results]


@pytest.mark.parametrize("kernels", [False, True], ids=["steps", "kernels"])
@pytest.mark.parametrize("case", list(arrays()), ids=lambda case: case[0].replace(" ", "-"))
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_results_have_the_layout_of_the_elided_temporary(program: Callable[..., Any], case: Any, kernels: bool) -> None:
    _, a, c = case
    if program is bits and a.dtype.kind == "f":
        a, c = a.astype("i8", order="K"), c.astype("i8", order="K")
    with stepped(kernels=kernels):
        expected = picture(program(a, c))
        jitted = ds.jit(program)
        assert picture(jitted(a, c)) == expected
        with counting(jitted) as grown:
            for call in range(3):
                assert picture(jitted(a, c)) == expected, f"replay {call}"
        assert grown["replays"] == 3
