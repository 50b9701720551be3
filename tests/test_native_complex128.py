"""np.complex128 in registers: elements of complex arrays, NumPy's arithmetic on them, its bits, flags and types."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.fuzz import equivalent
from tests.native_kit import written
from tests.support import check, counting, stepped

PARTS = [0.0, -0.0, 1.0, -2.5, 5e-324, 1e-310, -1e-200, 3e-154, 1e200, 1.7e308, math.inf, -math.inf, math.nan]
VALUES = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)])
PLAIN = np.array([1 + 2j, 0.5 - 1j, 3 + 0j, -1j, 0.25 + 0.125j] * 8)
REALS = [0.0, -0.0, 1.5, 1e-310, 1e300, math.inf, math.nan]
INTS = [0, 1, -3, 2**53 + 1, 2**62]
OTHERS: list[list[Any]] = [
    [complex(a, b) for a, b in itertools.product(PARTS[::2], PARTS[::3])],
    [*REALS],
    [*INTS],
    [True, False],
    [np.float64(x) for x in REALS],
    [np.float32(x) for x in (0, -0.0, 1.5, 1e-40, math.inf, math.nan)],
    [np.int64(x) for x in INTS],
    [np.uint64(2**63 + 1), np.uint64(3)],
    [np.int8(-7), np.int8(0)],
    [np.bool_(True), np.bool_(False)],
    [np.complex64(1.5 - 2j), np.complex64(0)],
]


OPERATORS = ["+", "-", "*", "/", "==", "!=", "**"]


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_give_what_eager_gives(symbol: str) -> None:
    f = written(f"a {symbol} b")
    left, right = (np.array(side) for side in zip(*itertools.product(VALUES[::2], VALUES[::3]), strict=True))
    equivalent(f, (PLAIN, PLAIN), (PLAIN, PLAIN[::-1]), (left, right), (left, right), engines=["native"])


@pytest.mark.parametrize("others", OTHERS, ids=lambda others: type(others[0]).__name__)
@pytest.mark.parametrize("symbol", OPERATORS[:6])
def test_operators_beside_other_numbers(symbol: str, others: list[Any]) -> None:
    f = written(f"a {symbol} b")
    usual = [others[-1] if symbol != "/" else type(others[0])(1)] * len(PLAIN)
    values, besides = zip(*itertools.product(VALUES[::2], others), strict=True)
    one = np.array(values), list(besides)
    for pair, plain in ((one, (PLAIN, usual)), (one[::-1], (usual, PLAIN))):
        equivalent(f, plain, plain, pair, pair, engines=["native"])


@pytest.mark.parametrize("symbol", OPERATORS)
def test_doubles_of_numpys_beside_pythons_complex_numbers(symbol: str) -> None:
    f = written(f"a {symbol} b")
    ours = [complex(z) for z in VALUES[::2]]
    doubles, pairs = zip(*itertools.product(PARTS, ours), strict=True)
    plain = np.linspace(1, 2, 40), [1 + 2j] * 40
    one = np.array(doubles), list(pairs)
    for swap in (1, -1):
        equivalent(f, plain[::swap], plain[::swap], one[::swap], one[::swap], engines=["native"])


def test_random_bits() -> None:
    def f(a: Any, b: Any) -> Any:
        out = np.zeros((5, len(a)), complex)
        size = np.zeros(len(a))
        for k in range(len(a)):
            x = a[k]
            y = b[k]
            out[0, k] = x * y
            out[1, k] = x / y
            out[2, k] = x + y
            out[3, k] = x - y * 1.5
            out[4, k] = 2 / x
            size[k] = abs(x)
        return out, size

    r = np.random.default_rng(7)
    a, b = (r.normal(size=20000) + 1j * r.normal(size=20000) for _ in range(2))
    wide = a * 10.0 ** r.integers(-300, 300, 20000)
    equivalent(f, (a, b), (a, b), (wide, b), (b, wide), (wide, wide[::-1]), engines=["native"])


def parts(values: Any) -> list[Any]:
    out: list[Any] = []
    for k in range(len(values)):
        z = values[k]
        out.append(z.real)
        out.append(z.imag)
        out.append(z.conjugate())
        out.append(z.conj())
        out.append(-z)
        out.append(+z)
        out.append(bool(z))
        out.append(not z)
        out.append(abs(z))
        out.append(abs(z) > 2)
        out.append(z.real * z.real + z.imag * z.imag)
        out.append(np.complex128(z))
        out.append(np.complex128(z.real))
        out.append(complex(z))
        out.append(values.item(k))
        out.append(complex.conjugate(z))
        out.append(1 if z else 2)
    return out


def test_parts_and_sizes() -> None:
    equivalent(parts, (PLAIN,), (PLAIN,), (VALUES,), (VALUES,), engines=["native"])


def test_sizes_that_are_too_large_say_nothing() -> None:
    def f(values: Any) -> Any:
        with np.errstate(all="raise"):
            out = []
            for z in values:
                out.append(abs(z))
        return out

    equivalent(f, (PLAIN,), (PLAIN,), (np.append(PLAIN, 1.7e308 * (1 + 1j)),), (VALUES,), engines=["native"])


@pytest.mark.parametrize("turn", [lambda a: a, lambda a: a[::-1], lambda a: a[::3], lambda a: np.repeat(a, 2)[1::2]])
def test_strides(turn: Callable[[Any], Any]) -> None:
    def f(a: Any, b: Any) -> Any:
        total = np.complex128(0)
        for k in range(len(a)):
            total += a[k] * b[-k - 1]
            b[k] = a[k] - total
        return total

    a = turn(np.arange(300) * (0.5 - 0.25j))
    check(f, (a, a[::-1].copy()), (a.copy(), turn(np.ones(300, complex))[: len(a)]))


def test_elements_of_matrices() -> None:
    def f(m: Any, n: int) -> Any:
        i = np.int64(0)
        for k in range(n):
            m[k, k] += m[k][k - 1] * m[-1, k]
            m[k][0] = m[i, k] - 1j
            m[0, -1] -= m[k, 0].conjugate()
            i = i + 1
        return m

    grid = np.arange(144).reshape(12, 12) * (0.01 + 0.02j)
    check(f, (grid, 12), (grid.T.copy(), 12), (np.asfortranarray(grid), 12), (grid, 13))


def test_what_is_stored() -> None:
    def f(a: Any, values: list[Any]) -> Any:
        for k in range(len(values)):
            a[k] = values[k]
        return a

    for value in (
        2j,
        1.5,
        3,
        True,
        np.float64(-0.0),
        np.float32(0.1),
        np.int64(7),
        np.uint64(2**63),
        np.bool_(True),
        np.complex64(1j),
    ):
        check(f, (np.ones(60, complex), [value] * 60), (np.ones(60, complex), [value] * 59 + [10**30]))
    check(f, (np.ones(60), [1.5] * 59 + [np.complex128(1j)]), (np.ones(60, "complex64"), [np.complex128(1j)] * 60))
    with pytest.raises(OverflowError):
        f(np.ones(1, complex), [10**400])
    check(
        f,
        (np.ones(60, complex), [1j] * 59 + [10**400]),
        (np.ones(60, complex), [1j] * 59 + ["x"]),
        (np.ones(60, complex), [1j] * 61),
    )


def test_elements_that_change_places() -> None:
    def f(a: Any) -> Any:
        n = len(a)
        j = 0
        for i in range(1, n):
            bit = n >> 1
            while j & bit:
                j ^= bit
                bit >>= 1
            j |= bit
            if i < j:
                a[i], a[j] = a[j], a[i]
        return a

    check(f, (np.arange(64) * 1j,), (VALUES[:128].copy(),))


def test_views_take_them() -> None:
    def f(a: Any, m: Any) -> Any:
        for k in range(len(a) - 1):
            z = a[k] * 1j
            m[k, 1:] = z
            m[k] *= a[k + 1]
            m[k + 1] = m[k] + z
        return m

    check(
        f,
        (np.linspace(0, 1, 12) + 1j, np.zeros((12, 5), complex)),
        (np.linspace(0, 1, 12) - 1j, np.zeros((12, 5), "complex64")),
    )


def test_walks() -> None:
    def f(a: Any, b: Any) -> Any:
        total = 0j
        for z in a:
            total = total * 0.5 + z
        for z, w in zip(a, b, strict=True):
            total += z * w
        for k, z in enumerate(a):
            total -= k * z
        return total, total is f

    for other in (PLAIN, PLAIN.astype("complex64"), PLAIN.real.copy(), list(PLAIN), [1j] * 40):
        check(f, (PLAIN, other), (other if isinstance(other, np.ndarray) else PLAIN, PLAIN))


def test_a_variable_that_starts_as_another_number() -> None:
    def f(x: Any, start: Any, turns: int) -> Any:
        out = []
        for _ in range(turns):
            s = start
            last = None
            for t in range(len(x)):
                last = s
                s = s + x[t] * 0.5
            out.append(s)
            out.append(last)
        return out

    rows = [(PLAIN, start, 6) for start in (0, 0j, 1.5, np.float64(2), np.complex128(1j), np.complex64(1j), 10**30)]
    check(f, *rows)


def waits(a: Any, b: Any, kind: str) -> Any:
    out = np.zeros(len(a), complex)
    with np.errstate(all=kind):
        for k in range(len(a)):
            out[k] = a[k] * b[k] - a[k] / b[k]
    return out


@pytest.mark.parametrize("kind", ["warn", "ignore", "raise"])
@pytest.mark.parametrize(
    "bad", [0j, math.nan + 0j, complex(math.inf, 1), 1e-200 + 1e-200j, 1e300 - 1e300j, complex(0, 5e-324)]
)
def test_flags_in_the_middle(kind: str, bad: complex) -> None:
    a, b = np.linspace(1, 2, 50) + 1e-160j, np.linspace(2, 3, 50) - 1j
    worse = b.copy()
    worse[[20, 21, 40]] = bad
    equivalent(
        waits, (a, b, kind), (a, b, kind), (a, worse, kind), (a, worse, kind), (worse, worse, kind), engines=["native"]
    )


def test_nan_in_the_data_is_native() -> None:
    def f(a: Any) -> Any:
        total = np.complex128(0)
        for k in range(len(a)):
            total = total + a[k]
            total = total * a[k]
        return total

    data = np.linspace(0, 1, 3000) + 1j
    data[5] = complex(math.nan, math.nan)
    check(f, (data,))
    assert takes_few_steps(f, data)


def test_nan_beside_pythons_complex_numbers_is_native() -> None:
    def f(x: Any, w: complex) -> Any:
        total = np.complex128(0)
        for k in range(len(x)):
            total = total + x[k] * w
        return total

    data = np.linspace(0, 1, 3000)
    data[5:2000:3] = math.nan
    check(f, (data, 0.5 + 1j), (data, 5e-324j))
    assert takes_few_steps(f, data, 0.5 + 1j)


def takes_few_steps(function: Callable[..., Any], *arguments: Any) -> bool:
    jitted = ds.jit(store=False)(function)
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            jitted(*arguments)
        with counting(jitted) as grown:
            jitted(*arguments)
    return bool(grown["steps"] < 100)


def butterflies(x: Any) -> Any:
    a = x.copy()
    n = len(a)
    length = 2
    while length <= n:
        w = complex(math.cos(2 * math.pi / length), -math.sin(2 * math.pi / length))
        for i in range(0, n, length):
            wk = 1 + 0j
            for k in range(length // 2):
                u = a[i + k]
                v = a[i + k + length // 2] * wk
                a[i + k] = u + v
                a[i + k + length // 2] = u - v
                wk *= w
        length <<= 1
    return a


def gate(state: Any, g: Any, qubit: int) -> Any:
    new = state.copy()
    for i in range(len(state)):
        if not (i >> qubit) & 1:
            j = i | (1 << qubit)
            new[i] = g[0, 0] * state[i] + g[0, 1] * state[j]
            new[j] = g[1, 0] * state[i] + g[1, 1] * state[j]
    return new


def tridiagonal(a: Any, b: Any, c: Any, d: Any) -> Any:
    n = len(a)
    cp, dp, x = np.zeros(n, complex), np.zeros(n, complex), np.zeros(n, complex)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def test_programs_are_native() -> None:
    r = np.random.default_rng(3)
    x = r.normal(size=256) + 1j * r.normal(size=256)
    h = np.array([[1, 1], [1, -1]]) / math.sqrt(2) + 0j
    check(butterflies, (x,), (VALUES[:128].copy(),))
    check(gate, (x, h, 3), (np.eye(1, 256)[0] + 0j, h, 0), (VALUES[:128].copy(), h, 2))
    bands = (np.full(256, 1j), np.full(256, 2 + 3j), np.full(256, 1j), x)
    check(tridiagonal, bands, (bands[0], np.zeros(256, complex), bands[2], x))
    for program, arguments in ((butterflies, (x,)), (gate, (x, h, 3)), (tridiagonal, bands)):
        assert takes_few_steps(program, *arguments), program


def test_ends_in_the_middle() -> None:
    def f(a: Any, n: int) -> Any:
        z = a[0]
        for k in range(n):
            z = z * a[k] + a[k - 1]
            a[k] = z / 2
        return z

    frozen = PLAIN.copy()
    frozen.flags.writeable = False
    check(
        f, (PLAIN, 40), (PLAIN, 41), (frozen, 3), (PLAIN.astype(">c16"), 40), (PLAIN.real.copy(), 40), (list(PLAIN), 40)
    )


class Odd(np.complex128):
    def __add__(self, other: Any) -> Any:
        return "odd"

    __radd__ = __add__


def test_subclasses_are_asked() -> None:
    def each(values: list[Any], a: Any) -> list[Any]:
        return [values[k] + a[k] for k in range(len(values))] + [abs(v) for v in values]

    usual = [np.complex128(2j)] * 30
    check(each, (usual, PLAIN), (usual[:10] + [Odd(1)] + usual[:10], PLAIN))


def test_objects_of_them_in_lists_and_attributes() -> None:
    class Filter:
        def __init__(self) -> None:
            self.state = np.complex128(0)

    def f(a: Any, turns: int) -> Any:
        kept = [a[0], a[1]]
        held = Filter()
        first = kept[0]
        for k in range(turns):
            kept[0], kept[1] = kept[1], kept[0] * 0.5 + a[k]
            held.state = held.state * 0.9 + kept[0]
            kept.append(held.state)
        same = kept[0]
        return kept, held.state, first is a[0], same is kept[0], type(held.state)

    check(f, (PLAIN, 40), (PLAIN, 41))


def test_operators_called_as_functions() -> None:
    f = written("(operator.add(a, b), operator.mul(a, b), np.conj(a), np.abs(b), np.add(a, b))")
    f.__globals__["operator"] = operator
    check(f, (PLAIN, PLAIN[::-1].copy()))


FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt square reciprocal negative positive "
    "conjugate absolute arcsin arccos arctan arcsinh arccosh arctanh sign rint isnan isfinite"
)


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_functions_of_one(name: str) -> None:
    f = written(f"(np.{name}(a), np.{name}(b))")
    theirs = [complex(z) for z in VALUES]
    plain = PLAIN * 0.3, [0.5 - 0.25j] * 40
    r = np.random.default_rng(5)
    some = r.normal(size=600) + 1j * r.normal(size=600)
    equivalent(f, plain, plain, (VALUES, theirs), (VALUES, theirs), (some, some.tolist()), engines=["native"])


def test_complex_numbers_made_of_doubles() -> None:
    f = written("(complex(a, b), complex(b, a), complex(a), complex(b), complex(2, a), complex(a, True))")
    pairs = np.array(list(itertools.product(PARTS, PARTS)))
    plain = np.linspace(0, 1, 40), [1.5] * 40
    for one in ((pairs[:, 0].copy(), pairs[:, 1].copy()), (pairs[:, 0].copy(), pairs[:, 1].tolist())):
        equivalent(f, plain, plain, one, one, engines=["native"])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 7, 64, 99, 100, -1, -2, 2.0, 0.5, 1j, True])
def test_powers_by_constants(exponent: Any) -> None:
    f = written(f"(a ** {exponent!r}, (b + 1) ** {exponent!r})")
    r = np.random.default_rng(9)
    some = r.normal(size=3000) + 1j * r.normal(size=3000)
    equivalent(f, (PLAIN, PLAIN), (PLAIN, PLAIN), (VALUES, VALUES), (VALUES, VALUES), (some, -some), engines=["native"])


def test_orbits_are_native() -> None:
    def f(c: Any, limit: int) -> Any:
        turns = np.zeros(len(c), int)
        for k in range(len(c)):
            z = c[k]
            n = 0
            while abs(z) <= 2.0 and n < limit:
                z = z**2 + c[k]
                n += 1
            turns[k] = n
        return turns

    points = np.linspace(-2, 1, 60) + 0.3j
    check(f, (points, 40), (VALUES, 9))
    assert takes_few_steps(f, points, 40)
