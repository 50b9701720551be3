"""Index tuples that are not built: they exist as their parts until somebody could see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support import check, check_source, settles


def test_a_tuple_that_a_variable_holds() -> None:
    def walk(a: Any) -> Any:
        out = []
        for i in range(a.shape[0]):
            t = (i, i + 1)
            out.append(a[t])
            out.append(t)
        return out

    check(walk, (np.arange(12.0).reshape(3, 4),), (np.arange(12.0).reshape(4, 3)[:2],), (np.zeros((3, 3)),))


def test_a_tuple_in_a_variable_that_nothing_but_a_subscript_takes() -> None:
    def walk(a: Any, n: int, look: bool) -> Any:
        s = 0.0
        for i in range(n):
            k = i + 1000
            t = (i, k - 1000)
            del k
            s = s + a[t]
            a[t] = s
        return s, t, sorted(locals()) if look else None

    a = np.arange(9.0).reshape(3, 3)
    check(walk, (a, 3, True), (a, 2, True), (a, 5, False), (a, 3, False))
    settles(walk, (a, 3, False))


def test_a_tuple_whose_items_live_on_shares_their_objects() -> None:
    def walk(a: Any, n: int) -> Any:
        out: list[Any] = []
        for i in range(n):
            k = i - 1000 + 1000
            t = (i, k)
            a[t] = i
            out.append(k)
            out.append((t[1] is k, t[0] is i, t))
        return out, a

    check(walk, (np.zeros((900, 900)), 3), (np.zeros((3, 3)), 4))

    def left(a: Any, big: int) -> Any:
        k = big + 1
        t = (k - big, k)
        try:
            a[t] = 1.0
        except IndexError:
            return t[1] is k
        return a, t[1] is k

    check(left, (np.zeros((3, 3)), 1), (np.zeros((3, 3)), 1000), (np.zeros((3, 5000)), 1000))


def test_the_tuple_is_there_where_the_array_is_none() -> None:
    source = """
    class Table:
        def __getitem__(self, key):
            return (type(key).__name__, key, key[0])
        def __setitem__(self, key, value):
            LOG.append((key, value))

    LOG = []

    @jit
    def entry(kind, i, j):
        a = (np.arange(6.0).reshape(2, 3), {(1, 2): 5, (0, 1001): 6}, Table(), [1, 2], np.arange(6))[kind]
        k = j
        x = a[i, k]
        y = a[i - 0, k + 0]
        a[i, k] = 7.0
        return x, y, a if kind != 2 else None, LOG
    """
    calls = """
    def calls():
        for kind in (0, 0, 0, 1, 2, 3, 4, 0, 2, 1):
            yield (kind, 1, 2), {}
        yield (2, 0, 1001), {}
        yield (0, 0, 3), {}
    """
    check_source(source, calls)


def test_an_error_in_the_middle_of_a_grid_is_caught() -> None:
    def walk(a: Any, n: int) -> Any:
        out: list[Any] = []
        for i in range(n):
            for j in range(n):
                try:
                    out.append(a[i, j])
                    a[j, i] = i
                except IndexError as error:
                    out.append(str(error))
        return out, a

    a = np.arange(12.0).reshape(3, 4)
    check(walk, (a, 3), (a, 4), (a, 5))


def test_a_value_that_is_computed_between_the_tuple_and_its_use() -> None:
    source = """
    import sys, weakref

    class Dies:
        def __del__(self):
            LOG.append(sorted(sys._getframe(1).f_locals.items(), key=str)[:1])

    LOG = []

    def peek(x):
        LOG.append([k for k in sys._getframe(1).f_locals if k != "a"])
        return x

    @jit
    def entry(a, n, kind):
        LOG.clear()
        for i in range(n):
            t = (i, n - 1 - i)
            if kind == 0:
                a[t] += peek(i)
            elif kind == 1:
                d = Dies()
                del d
                a[t] = a[t] * 2.0
            else:
                a[i, i] += a[t] if i % 2 else i / (i - 2)
        return a, LOG, t
    """
    calls = """
    def calls():
        for kind in (0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2):
            yield (np.arange(16.0).reshape(4, 4), 2 if kind == 2 else 4, kind), {}
        yield (np.arange(16.0).reshape(4, 4), 4, 2), {}
    """
    check_source(source, calls)


def test_in_place_through_an_index_tuple() -> None:
    def walk(a: Any, b: Any) -> Any:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] += b[j, i]
                a[i, -1 - j] *= 0.5
        return a

    a, b = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3)
    check(
        walk,
        (a, b),
        (a.astype(np.float32), b),
        (a.astype(np.int64), b),
        (a, b.astype(np.int32)),
        (a[:, ::-1], b.T.copy().T),
    )
    settles(walk, (a, b))


def test_constant_positions() -> None:
    def walk(a: Any, n: int) -> Any:
        t = 0.0
        for i in range(n):
            a[0, 1] = a[1, -1] + i
            t = t + a[0, 1] * a[-2, 0]
        return t, a

    a = np.arange(6.0).reshape(2, 3)
    check(walk, (a, 5), (a[:1], 3), (a[:, :1], 3), (np.zeros((2, 2, 2)), 2), (np.arange(6).reshape(2, 3), 4))
    settles(walk, (a, 5))


def test_every_number_of_dimensions() -> None:
    source = """
    @jit
    def entry(a, i):
        if a.ndim == 1:
            return a[i,]
        if a.ndim == 2:
            return a[i, i]
        if a.ndim == 3:
            return a[i, i, 0], a[0, i, i], a[i, ..., i], a[i, None, 1]
        return a[i, 0, i, 0], a[0, 0, 0, 0]
    """
    calls = """
    def calls():
        for n in (1, 2, 3, 4) * 3:
            yield (np.arange(2.0 ** n).reshape((2,) * n), 1), {}
    """
    check_source(source, calls)
