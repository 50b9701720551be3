"""What NumPy's functions and types make of single numbers, without a call."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.native_kit import steps_of
from tests.support import stepped

pytestmark = pytest.mark.once  # nothing here asks the version of CPython

ODD = [
    0.0,
    -0.0,
    0.5,
    2.5,
    -2.5,
    0.125,
    2.675,
    1e-310,
    -1e308,
    5e-324,
    1e16,
    math.inf,
    -math.inf,
    math.nan,
    7.25,
    -7.255,
]
PLAIN = [((k * 37) % 101) / 8 - 5 for k in range(200)]


def compiled(source: str, **names: Any) -> Any:
    """A loop over two sequences that keeps what the expression gives."""
    loop = "    for i in range(len(xs)):\n        x = xs[i]\n        y = ys[i]\n"
    text = f"def of(xs, ys):\n    out = []\n{loop}        out.append({source})\n    return out\n"
    scope: dict[str, Any] = {"np": np, "math": math, **names}
    exec(compile(text, f"<{source}>", "exec"), scope)
    return scope["of"]


def check(of: Any, *calls: tuple[Any, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equivalent(of, *[call for call in calls for _ in range(2)], engines=["stepped", "native"])


DOUBLES = [
    "np.isnan(x)",
    "np.isinf(x)",
    "np.isfinite(y)",
    "np.isnan(x) or np.isfinite(y)",
    "np.round(x)",
    "np.around(x)",
    "np.round(x, 2)",
    "np.around(y, 1)",
    "round(x, 3)",
    "round(x, 0)",
    "int(np.round(y))",
    "np.clip(x, -1, 2)",
    "np.clip(x, y, 2.5)",
    "np.clip(x, y, -0.0)",
    "np.clip(0.5, x, y)",
    "np.deg2rad(x)",
    "np.degrees(y)",
    "np.heaviside(x, 0.5)",
    "np.arcsinh(x)",
    "np.fmod(x, y)",
    "np.nextafter(x, y)",
    "np.logaddexp(x, y)",
    "np.float64(x)",
]


@pytest.mark.parametrize("source", DOUBLES)
def test_functions_of_doubles(source: str) -> None:
    of = compiled(source)
    plain = np.array(PLAIN)
    check(
        of,
        (plain, plain[::-1]),
        (PLAIN, PLAIN[::-1]),
        *[(np.array([*PLAIN[:9], x, y, 1.0]), np.full(12, y)) for x in ODD for y in ODD[::4]],
    )
    check(of, (plain.astype("f4"), plain.astype("f4")), (np.arange(-6, 6), np.arange(12)[::-1]), (plain > 0, plain < 1))
    assert steps_of(of, plain, plain[::-1]) < 150


@pytest.mark.parametrize("places", [-1, 4, 8, 9, 23, True, None])
def test_places(places: Any) -> None:
    for source in "np.round(x, places)", "round(x, places)":
        check(
            compiled(source, places=places),
            (np.array(PLAIN), PLAIN),
            (np.array([*ODD, 1e304, 123456.7895]), [0.0] * 18),
            (PLAIN, PLAIN),
        )


DTYPES = ["f8", "f4", "i8", "i4", "i2", "u1", "u4", "u8", "?"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["float64", "float32", "int64", "int32", "int8", "uint8", "uint32", "uint64", "bool"])
def test_types_of_scalars(name: str, dtype: str) -> None:
    of = compiled(f"np.{name}(x) if y else np.{name}(y)")
    whole = np.arange(12)
    check(of, (whole.astype(dtype), [1] * 12), (whole.astype(dtype), [0, 1] * 6))
    if dtype[0] in "fi":
        check(
            of,
            ((-whole).astype(dtype), [1] * 12),
            (np.array([*whole[:9] / 2, 3.5, 300.0, -1.0]).astype(dtype), [1.5] * 12),
        )
    for odd in 2**7, 2**16 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -1, 2**64, 1e300, math.nan, 16777217, 2**53 + 1:
        check(of, ([1, 2, 3, 4, odd, 5], [1] * 6))


def test_types_of_scalars_give_others() -> None:
    """Numbers of a type that is there already are new ones."""
    check(compiled("np.float64(x) is x"), (np.array(PLAIN), PLAIN))
    assert steps_of(compiled("np.int16(x) + np.int16(y)"), list(range(100)), [7] * 100) < 150


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_quotients_of_integers(dtype: str) -> None:
    whole = np.arange(-20, 100).astype(dtype)
    for source in "x / 255", "x / -1", "7 / y", "x / 0", "x / 127", "x / y", "x / 70000", "x // 3 + y % 5":
        check(compiled(source), (whole[30:], whole[30:][::-1]), (whole, whole[::-1]))
    if dtype == "u1":
        assert steps_of(compiled("x / 255"), whole, whole) < 150


@pytest.mark.parametrize(
    "source",
    ["x & y", "x | y", "x ^ y", "x == y", "x != True", "x & True", "False | y", "x < y", "x + y", "x * y", "~x"],
)
def test_bools(source: str) -> None:
    of = compiled(source)
    a, b = np.array([True, False, True, False] * 20), np.array([True, True, False, False] * 20)
    check(
        of, (a, b), (a, b.tolist()), (a.tolist(), b), (a, [0, 1, 2, 3] * 20), (a, b.astype("i2")), (np.ones(80) > 0, a)
    )
    if source[0] != "~" and not set(source) & set("+*"):
        assert steps_of(of, a, b) < 200


def test_flags_are_told() -> None:
    """Overflow in a product by a power of ten warns, at the line that it is on."""
    of = compiled("np.round(x, 5) + round(y, 5)")
    jitted = ds.jit(store=False)(of)
    rows = np.array([*PLAIN[:20], 1e304, 1.0]), np.array([1e307, *PLAIN[:21]])
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(4):
            told = []
            for f in jitted, of:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    told.append((repr(f(*rows)), [(str(w.message), w.lineno) for w in caught]))
            assert told[0] == told[1]


LEAST = np.finfo("f8").tiny


@pytest.mark.parametrize("under", ["ignore", "warn", "raise"])
def test_what_is_rounded_up_to_the_least_normal_number(under: Any) -> None:
    """Such a product underflows, and the number is a normal one."""
    xs = np.array([1.5] * 9 + [np.nextafter(2 * LEAST, 0), 4 * LEAST, 1.0])
    ys = np.array([0.5] * 12)
    for source in "x * y", "x / (1 / y)", "x // y":
        of = compiled(source)
        jitted = ds.jit(store=False)(of)
        with stepped(step_aside=False, hot_loop=1), np.errstate(under=under):
            for _ in range(5):
                assert outcome(jitted, xs, ys) == outcome(of, xs, ys)


def outcome(f: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = repr(f(*args))
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [repr(a) for a in args], [(str(w.message), w.lineno) for w in caught]


@pytest.mark.parametrize("under", ["ignore", "warn", "raise"])
def test_doubles_in_arrays_of_floats(under: Any) -> None:
    """NumPy's cast of one tells of all flags."""
    scope: dict[str, Any] = {}
    exec("def put(to, xs):\n    for i in range(len(xs)):\n        to[i] = xs[i]\n", scope)
    single = float(np.finfo("f4").tiny)
    odd = [*ODD, 1e300, 3.5e38, single, single * (1 - 2.0**-24), single / 3, 1e-50, 0.1]
    for f in scope["put"], compiled("np.float32(xs[i]) + np.float32(ys[i])"):
        jitted = ds.jit(store=False)(f)
        with stepped(step_aside=False, hot_loop=1), np.errstate(under=under):
            for x in [1.5, *odd]:
                for made in np.array, list:
                    values = [*PLAIN[:12], x, 2.0]
                    told = [outcome(g, np.zeros(14, "f4"), made(values)) for g in (jitted, f)]
                    assert told[0] == told[1]
    put = scope["put"]
    assert steps_of(put, np.zeros(200, "f4"), np.array(PLAIN)) < 150


@pytest.mark.parametrize(
    "loop", ["for v in r:", "for j, v in enumerate(r):", "for v, w in zip(r, m[0]):", "for v, w in zip(m[0][:3], r):"]
)
def test_ends_of_iterators_over_arrays(loop: str) -> None:
    """They end without an IndexError being made, and stay ended."""
    lines = "def of(m):", "    s = 0.0", "    out = []", "    for r in m:"
    inside = f"        {loop}", "            s += v", "        out.append(s)", "    return out"
    scope: dict[str, Any] = {}
    exec("\n".join(lines + inside), scope)
    rows = [np.arange(3), np.arange(2.0), np.arange(0)]
    check(scope["of"], (np.arange(40.0).reshape(10, 4),), (np.arange(10.0).reshape(10, 1),), (rows,))


def test_iterators_that_are_asked_again() -> None:
    def halves(m: Any) -> Any:
        out = []
        for r in m:
            it = iter(r)
            for _, v in zip(range(2), it):
                out.append(v)
            out.append(list(it))
            out.append(next(it, None))
        return out

    check(halves, (np.arange(40.0).reshape(10, 4),), (np.arange(20.0).reshape(10, 2),), (np.arange(10).reshape(10, 1),))


def crosses(us: Any, vs: Any) -> Any:
    out = []
    for i in range(len(us)):
        w = np.cross(us[i], vs[i])
        out.append((w, w.base is not None, w.flags.owndata, w.strides))
    return out


def test_cross_products_of_vectors() -> None:
    u, v = np.arange(36.0).reshape(12, 3) % 7, np.arange(36.0).reshape(12, 3)[::-1] / 3
    odd = np.array([[x, y, 1.0] for x in ODD[:14] for y in ODD[::3]])
    check(
        crosses,
        (u, v),
        (u[:, ::-1], v),
        (u.astype("f4"), v.astype("f4")),
        (u.astype(int), v.astype(int)),
        (odd, odd[::-1]),
        (odd, -odd),
    )
    check(
        crosses,
        (u, v[:, None, :]),
        (u.tolist(), v),
        (u.astype("f4"), v),
        (u[:, :2], v),
        (np.zeros((12, 3)), -v),
        (u[:4], v[:, :1]),
    )
    check(lambda p, q: np.cross(p, q), (u, v), (u[0], v[0]), (u, v[0]), (u[0], v))
    assert steps_of(crosses, u, v) < 400
    jitted = ds.jit(store=False)(crosses)
    with stepped(step_aside=False, hot_loop=1):
        for rows in [(u, v)] * 3 + [(odd, odd[::-1]), (u * 1e300, v * 1e300), (u * 1e-160, v * 1e-160)] * 2:
            with np.errstate(under="warn"):
                assert outcome(jitted, *rows) == outcome(crosses, *rows)
