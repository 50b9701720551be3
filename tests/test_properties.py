"""Getters of properties, operators of instances with arrays, slice(): eager's results, exceptions and frames."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import pytest

import numpy as np
from tests.native_kit import check_beside_others, same


class State:
    def __init__(self, s: Any, e: Any) -> None:
        self.s = s
        self.e = e

    @property
    def living(self) -> Any:
        return self.s + self.e

    @property
    def share(self) -> Any:
        return self.e / self.living

    @property
    def both(self) -> Any:
        if self.e > self.s:
            raise ValueError(f"too many: {self.e}")
        return self.s - self.e

    @both.setter
    def both(self, value: Any) -> None:
        self.s = value


class More(State):
    @property
    def living(self) -> Any:
        return super().living + 1


class Hidden(State):
    def __init__(self, s: Any, e: Any) -> None:
        super().__init__(s, e)
        self.__dict__["living"] = 77  # (a property decides all the same)


class Asks(State):
    @property
    def odd(self) -> Any:
        return self.missing

    def __getattr__(self, name: str) -> Any:
        return f"no {name}"


def reads(kind: Any, s: Any, e: Any, n: int) -> Any:
    state = kind(s, e)
    out: list[Any] = []
    for k in range(n):
        state.e = state.e + k
        out.append((state.living, state.share))
        try:
            out.append(state.both)
        except ValueError as error:
            out.append((str(error), [line.lineno for line in traceback.extract_tb(error.__traceback__)]))
            state.both = state.e * 2
    return out


def test_getters():
    for kind in (State, More, Hidden, Asks):
        check_beside_others(reads, (kind, 10, 1, 12), (kind, 2.5, 0.25, 9))
    check_beside_others(reads, (State, 10, 1, 12), (More, 10, 1, 12), (State, 2**62, 2**62, 9))


def test_getters_of_arrays():
    def shares(n: int) -> Any:
        state = State(np.arange(1.0, 4.0), np.ones(3))
        return [state.share * k for k in range(n)]

    check_beside_others(shares, (12,), (5,))


def test_what_a_getter_lacks_is_asked_elsewhere():
    def asks(n: int) -> Any:
        state = Asks(1, 2)
        return [(state.odd, state.living, state.nothing) for _ in range(n)]

    check_beside_others(asks, (12,))


def test_a_getter_raises_attribute_error():
    class Raises:
        def __init__(self) -> None:
            self.k = 0

        @property
        def value(self) -> Any:
            self.k += 1
            if self.k > 7:
                raise AttributeError("gone")
            return self.k

    def raises(n: int) -> Any:
        it = Raises()
        out: list[Any] = []
        for _ in range(n):
            try:
                out.append(it.value)
            except AttributeError as error:
                out.append(str(error))
        return out, getattr(it, "value", "none"), hasattr(it, "value")

    check_beside_others(raises, (12,), (4,))


def test_a_property_is_replaced():
    class Changing:
        @property
        def value(self) -> Any:
            return 1

    def changes(n: int) -> Any:
        Changing.value = property(lambda self: 1)  # type: ignore
        it = Changing()
        out = []
        for k in range(n):
            if k == 12:
                Changing.value = property(lambda self: 2)  # type: ignore
            if k == 18:
                Changing.value = 5  # type: ignore
            if k == 20:
                it.value = 6  # type: ignore
            out.append(it.value)
        return out

    same(changes, lambda: (30,), lambda: (10,))


def test_a_getter_sees_its_callers():
    class Sees:
        @property
        def names(self) -> Any:
            frame = sys._getframe(1)
            return frame.f_code.co_name, sorted(frame.f_locals), frame.f_lineno - frame.f_code.co_firstlineno

    def looked(n: int) -> Any:
        it = Sees()
        return [it.names for k in range(n)], it.names

    same(looked, lambda: (12,), lambda: (3,))


def test_a_deep_recursion_of_getters():
    class Deep:
        depth = 0

        @property
        def down(self) -> Any:
            self.depth += 1
            return self.down

    def sinks(n: int) -> Any:
        out = []
        for _ in range(n):
            it = Deep()
            try:
                it.down  # noqa: B018
            except RecursionError:
                out.append("deep")
        return out

    check_beside_others(sinks, (5,))


LATER = """
import dalsegno as ds
class Empty:
    pass
class State:
    def __init__(self, a):
        self.a = a
    @property
    def living(self):
        return self.a + 1
    def __setitem__(self, at, value):
        self.a += value
    def __neg__(self):
        return -self.a
def f(n):
    s, t, e = State(n), 0, Empty()
    for k in range(n):
        t += s.living
        s[k] = 1
        e.k = -s
    return t, e.k
jitted = ds.jit(f)
for _ in range(6):
    assert jitted(30) == f(30)
ds.wait()
print(ds.stats()["recordings"])
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="methods of classes are recorded through on 3.11")
def test_a_later_process_replays(run_python, fresh_store):
    first, second = (run_python("-c", LATER, DALSEGNO_STEP_ASIDE="0").stdout.split() for _ in range(2))
    assert int(first[0]) > 0
    assert second == ["0"]


# ---- operators with arrays


class Matrix:
    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, Matrix):
            return Matrix(self.rows @ x.rows)
        y = np.zeros(len(self.rows))
        for i in range(len(self.rows)):
            y[i] = self.rows[i] @ x
        return y

    def __add__(self, x: Any) -> Any:
        return NotImplemented if len(x) > 3 else Matrix(self.rows + x)

    def __mul__(self, x: Any) -> Any:
        return NotImplemented

    def __sub__(self, x: Any) -> Any:
        raise ValueError("no " + type(x).__name__)

    def __iadd__(self, x: Any) -> Any:
        self.rows = self.rows + x
        return self

    def __repr__(self) -> str:
        return f"Matrix({self.rows!r})"


class Scales(Matrix):
    """Arrays leave it to its own method."""

    __array_ufunc__ = None

    def __rmul__(self, x: Any) -> Any:
        return ("scaled", len(x))


class Counts(Matrix):
    """What arrays do with its instances goes through this."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return ufunc.__name__, method, len(inputs), sorted(sys._getframe(1).f_locals)


def operates(kind: Any, n: int, size: int, sign: str) -> Any:
    m, x = kind(np.arange(6.0).reshape(2, 3)), np.arange(float(size))
    out: list[Any] = []
    for k in range(n):
        try:
            if sign == "@":
                out.append(m @ x)
            elif sign == "+":
                out.append(m + x)
            elif sign == "*":
                out.append(m * x)
            elif sign == "-":
                out.append(m - x)
            else:
                m += x
        except (TypeError, ValueError) as error:
            out.append((type(error).__name__, str(error)))
        if k == n - 3 and sign == "+":
            x = np.arange(5.0)
    return repr(out), repr(m)


def test_instances_and_arrays():
    for kind in (Matrix, Scales, Counts):
        for sign in "@+*-=":
            check_beside_others(operates, (kind, 9, 3, sign), (kind, 4, 3, sign))


def test_a_method_that_gives_up_on_an_array():
    """It has not implemented it, which is found behind the trace: the array is asked, as in eager."""

    class Gives:
        def __init__(self, at: int) -> None:
            self.at = at
            self.k = 0

        def __add__(self, x: Any) -> Any:
            self.k += 1
            return NotImplemented if self.k > self.at else self.k

        def __radd__(self, x: Any) -> Any:
            return ("right", float(x))

    def gives(n: int, at: int) -> Any:
        it = Gives(at)
        out: list[Any] = []
        for other in [np.arange(3.0)] * n + [1, 2.5]:
            try:
                out.append(it + other)
            except TypeError as error:
                out.append(str(error))
        return [repr(o) for o in out]

    check_beside_others(gives, (12, 8), (12, 8), (5, 0), (12, 100), (12, 3))


# ---- slice()


def parts(n: int, first: Any, last: Any) -> Any:
    a, xs = np.arange(40.0), list(range(40))
    out: list[Any] = []
    for k in range(n):
        out.append(
            (a[slice(k)], a[slice(k, last)].sum(), xs[slice(first, last, 2)], slice(k, None), slice(None, k, first))
        )
    return [repr(o) for o in out]


def test_slices():
    ends = np.array([3, 9, 20])

    def rows(n: int) -> Any:
        return [float(np.arange(30.0)[slice(ends[k % 2], ends[k % 2 + 1])].sum()) for k in range(n)]

    check_beside_others(parts, (12, 1, 30), (12, 2, -3), (9, None, None), (9, np.int64(1), np.int32(9)), (4, 1.5, "x"))
    check_beside_others(rows, (12,), (3,))


class Position:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __index__(self) -> int:
        self.seen.append(sorted(sys._getframe(1).f_locals))
        return 2


def test_positions_that_look():
    def looks(n: int) -> Any:
        p, xs = Position(), list(range(9))
        out = [xs[slice(p, 5)] for k in range(n)]
        out.append(xs[slice(p)])
        try:
            slice(1, 2, 3, 4)  # type: ignore
        except TypeError as error:
            out.append(str(error))  # type: ignore
        return out, p.seen

    same(looks, lambda: (12,), lambda: (3,))
