"""What ends a group of array operations by a write is written by its kernel, element by element, as it is made: where
none of what is written is read, and nobody can tell from eager, which warns before it writes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

import dalsegno as ds
import numpy as np
from dalsegno._testing import machine
from tests.support import check, run_python

R = np.random.default_rng(3)
SIZES = [12_000, 250_000, 3_000_000]  # with the GIL, without it, and past the caches


def line(a: Any, b: Any) -> None:
    a[1:-1] = 0.25 * (b[:-2] + b[2:]) + b[1:-1]


def grid(a: Any, b: Any) -> None:
    a[1:-1, 1:-1] = 0.25 * (b[1:-1, :-2] + b[1:-1, 2:]) - b[2:, 1:-1] / b[:-2, 1:-1]


def layer(a: Any, b: Any, i: int) -> None:
    a[i] = np.where(b > 0.5, b * 2.0, b - 1.0)


def divided(a: Any, b: Any) -> None:
    a[:] = 1.0 / b + 2.0 * np.sqrt(b)  # (Ω)


def smoothed(a: Any, b: Any) -> float:
    mean = (b[:-2] + b[2:]) * 0.5
    a[1:-1] = mean - b[1:-1]
    return mean[0]  # type: ignore[no-any-return]


def columns(a: Any, b: Any) -> None:
    a[:, 3] = b * 2.0 + 1.0
    a.T[4] = b * 3.0 - 1.0


def updated(a: Any, b: Any) -> None:
    a -= 0.5 * (b + 1.0 / b)  # a line that not every file can show: Ω


def leaped(a: Any, b: Any) -> None:
    a[1:] -= 0.5 * (b[1:] - b[:-1]) * b[1:]
    a[:, 2:] = np.sqrt(a[:, 2:]) * b[:, :-2] + b[0, 2:] / b[:, :1]


def planes(a: Any, b: Any) -> None:
    a[:, 1:-1] *= (b[:, 2:] - b[:, :-2]) / b[:, 1:-1]


def with_names(a: Any, b: Any) -> None:
    for _ in range(2):
        twice = b * 2.0
        change = twice - 1.0 / b
        a -= change * 0.5


def shrinking(a: Any, b: Any) -> None:
    for k in range(1, 30):
        twice = b[k:] * 2.0
        a[k:] -= twice - 1.0


def over_itself(a: Any) -> None:
    a[1:] = a[:-1] * 0.5 + 1.0
    a[:-1] = a[1:] * 0.5 - 1.0
    a[:] = a * 2.0 - 1.0


def warmed(f: Callable[..., None], *arguments: Any) -> Any:
    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        jitted(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
    return jitted


def written(jitted: Any, *arguments: Any) -> int:
    before = machine.counters()["in_place"]
    jitted(*arguments)
    return int(machine.counters()["in_place"] - before)


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with ds.config(background=False):
        yield


@pytest.fixture
def recorded() -> Iterator[None]:
    """Pytest's own stderr is no plain file, and it makes errors of warnings; what records runs nothing."""
    with warnings.catch_warnings(record=True):
        warnings.resetwarnings()
        yield


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_it_is_written_as_it_is_made(n: int, dtype: str) -> None:
    rows = n // 150

    def made(*shape: int) -> Any:
        return (R.random(shape) + 0.1).astype(dtype)

    for f, a in (
        (line, lambda: (made(n), made(n))),
        (grid, lambda: (made(rows, 150), made(rows, 150))),
        (grid, lambda: (made(150, rows), made(150, rows))),
        (layer, lambda: (made(4, rows, 150), made(rows, 150), 2)),
        (divided, lambda: (made(rows, 150)[:, 3:-4], made(rows, 143))),
        (smoothed, lambda: (made(n), made(n))),
    ):
        jitted = warmed(f, *a())
        ours = a()
        eager = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in ours)
        f(*eager)
        assert written(jitted, *ours) == 1, f
        assert ours[0].tobytes() == eager[0].tobytes()


@pytest.mark.usefixtures("recorded")
def test_what_is_read_is_not_written_in_place() -> None:
    n = SIZES[0]
    assert written(warmed(over_itself, R.random(n)), R.random(n)) == 1  # of the same elements, the last
    a = R.random(n)
    assert written(warmed(line, R.random(n), R.random(n)), a, a) == 0
    both = R.random(n + 1)
    assert written(warmed(line, R.random(n), R.random(n)), both[:-1], both[1:]) == 0
    bytes_of = np.zeros(8 * n + 8, "i1")  # of another dtype, in the same memory
    assert (
        written(
            warmed(layer, R.random((1, n)), np.ones(n, "i1"), 0),
            bytes_of[: 8 * n].view("f8").reshape(1, n),
            bytes_of[-n:],
            0,
        )
        == 0
    )


@pytest.mark.usefixtures("recorded")
def test_where_elements_lie_apart() -> None:
    n = SIZES[0]
    assert written(warmed(columns, np.zeros((n, 6)), R.random(n)), np.zeros((n, 6)), R.random(n)) == 0
    assert written(warmed(columns, np.zeros((n, 6)), R.random(n)), np.zeros((6, n)).T, R.random(n)) == 2


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_operands_in_place_are_written_in_pieces(dtype: str) -> None:
    def made(*shape: int) -> Any:
        return (R.random(shape) + 0.3).astype(dtype)

    for f, shape, writes in (
        (updated, (6_000,), 1),
        (updated, (20_011,), 1),
        (updated, (80_000,), 1),
        (updated, (3_000_001,), 1),
        (leaped, (90, 100), 2),
        (leaped, (100, 66), 2),
        (leaped, (300, 310), 2),
        (leaped, (3, 200_000), 2),
        (leaped, (7001, 20), 2),
        (planes, (4, 260, 300), 1),
        (planes, (200, 5, 150), 1),
        (with_names, (3_000, 30), 2),
        (shrinking, (20_000,), 29),  # no more memory than before: not measured each time
    ):
        jitted = warmed(f, made(*shape), made(*shape))
        ours = made(*shape), made(*shape)
        eager = ours[0].copy(), ours[1]
        f(*eager)
        assert written(jitted, *ours) == writes, (f, shape)
        assert ours[0].tobytes() == eager[0].tobytes()


def told(f: Callable[..., None], a: Any, *arguments: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        f(a, *arguments)
    return a.tobytes(), [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("f", [updated, leaped, planes, with_names])
def test_every_op_warns_as_in_eager(f: Callable[..., None]) -> None:
    shape = (40, 18, 301) if f is planes else (260, 305)
    jitted = warmed(f, R.random(shape) + 0.5, R.random(shape) + 0.5)
    for value in (0.25, 0.0, -1.0, np.nan, np.inf, 1e308, 1e-308):
        for places in ([0], [-1], [1000, 70_000], [40_000]):
            for which in (0, 1):
                both = R.random(shape) + 0.5, R.random(shape) + 0.5
                both[which].reshape(-1)[places] = value
                for errstate in ({}, {"all": "ignore"}, {"all": "warn"}, {"over": "ignore"}):
                    with np.errstate(**errstate):  # type: ignore[arg-type]
                        assert told(f, both[0].copy(), both[1]) == told(jitted, both[0].copy(), both[1]), (
                            value,
                            places,
                            which,
                        )
    before = machine.counters()["in_place"]
    for _ in range(2000):  # (what raises flags is left to NumPy for a while)
        told(jitted, R.random(shape) + 0.5, R.random(shape) + 0.5)
        if machine.counters()["in_place"] > before:
            break
    b = R.random(shape) + 0.5
    b.reshape(-1)[40_000] = 0.0
    for _ in range(2):
        a = R.random(shape) + 0.5
        before = machine.counters()["in_place"]
        assert told(f, a.copy(), b) == told(jitted, a.copy(), b)
        assert machine.counters()["in_place"] > before


def test_equal_to_eager_whatever_the_layout() -> None:
    n, rows = SIZES[0], 90

    def row(k: int = n) -> Any:
        return R.random(k) + 0.1

    def plane() -> Any:
        return R.random((rows, 150)) + 0.1

    check(
        line,
        (row(), row()),
        (row()[::-1], row()),
        (row(2 * n)[::2], row()),
        (row(), row()[::-1]),
        (a := row(), a),
        (a[1:], a[:-1]),
    )
    check(
        grid,
        (plane(), plane()),
        (plane().T, plane().T),
        (plane()[::-1], plane()[:, ::-1]),
        (g := plane(), g),
        (plane(), g.T.copy().T),
    )
    check(grid, (np.lib.stride_tricks.as_strided(row(), (rows, 150), (8 * 75, 8)), plane()))
    check(over_itself, (row(),), (row()[::-1],))
    check(columns, (np.zeros((n, 6)), row()), (np.zeros((6, n)).T, row()))
    for value in (0.0, -1.0, np.nan, 1e308, 1e-308):
        b = row()
        b[n // 3] = value
        check(divided, (row(), row()), (row(), b))
        check(line, (row(), b * 1e150))


class Looks:
    """Code that a warning runs, and what it finds in the array that is about to be written."""

    def __init__(self) -> None:
        self.array: Any = None
        self.seen: list[tuple[str, bytes]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.seen.append((str(args[0]), self.array.tobytes()))
        return "a line"

    def write(self, text: str) -> None:
        self.seen.append((text.partition("Warning")[1], self.array.tobytes()))

    def flush(self) -> None: ...


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def filtered_by_hand(action: str = "error") -> Iterator[None]:
    """Past the module's functions, which would tell that its filters are others."""
    warnings.filters.insert(0, (action, None, RuntimeWarning, None, 0))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del warnings.filters[0]  # type: ignore[attr-defined]


@contextmanager
def written_to(file: Any) -> Iterator[None]:
    with replaced(sys, "stderr", file):
        yield


def closed_file() -> Any:
    file = open(os.devnull, "w", errors="backslashreplace")  # noqa: SIM115
    file.close()
    return file


LOOKS: dict[str, Callable[[Looks], AbstractContextManager[Any]]] = {
    "nothing": lambda _: warnings.catch_warnings(record=True),
    "errstate raises": lambda _: np.errstate(all="raise"),
    "errstate calls": lambda look: np.errstate(all="call", call=look),
    "a filter raises": lambda _: warnings.catch_warnings(action="error"),
    "a filter put in by hand": lambda _: filtered_by_hand(),
    "an unknown action": lambda _: filtered_by_hand("perhaps"),
    "stderr closed": lambda _: written_to(closed_file()),
    "stderr in ASCII": lambda _: written_to(open(os.devnull, "w", encoding="ascii")),
    "showwarning": lambda look: replaced(warnings, "showwarning", look),
    "_showwarnmsg": lambda look: replaced(warnings, "_showwarnmsg", look),
    "_showwarnmsg_impl": lambda look: replaced(warnings, "_showwarnmsg_impl", look),
    "formatwarning": lambda look: replaced(warnings, "formatwarning", look),
    "stderr": lambda look: replaced(sys, "stderr", look),
}


def outcomes_of(way: str, n: int, g: Callable[..., None] = divided) -> list[list[Any]]:
    """For each divisor: what eager does, and what the jitted function."""
    b = R.random(n) + 0.1
    jitted = warmed(g, R.random(n), b)
    found = []
    for value in (b[0], 0.0, -1.0):
        b[n - 5] = value
        outcomes = []
        for f in (g, jitted):
            look = Looks()
            look.array = a = np.ones(n)
            said: list[str] = []
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                with LOOKS[way](look) as caught:
                    try:
                        f(a, b)
                    except (FloatingPointError, RuntimeWarning, RuntimeError, ValueError) as e:
                        said.append(repr(e))
                if isinstance(caught, list):
                    said += [str(w.message) for w in caught]
            outcomes.append([said, look.seen, a.tobytes()])
        found.append(outcomes)
    return found


SCRIPT = """
import json
import dalsegno as ds
from tests.test_written_in_place import divided, outcomes_of, updated

with ds.config(background=False):
    found = [outcomes_of({way!r}, n, f) for f in (divided, updated) for n in {sizes}]
told = lambda outcome: (outcome[0], [text for text, _ in outcome[1]])
print(json.dumps([[a == b for each in found for a, b in each], [told(a) for each in found for a, _ in each]]))
"""


@pytest.mark.parametrize("way", LOOKS)
def test_warnings_come_before_it_is_written(way: str) -> None:
    """In a process of its own, where nobody but the program catches warnings."""
    equal, told = run_python(SCRIPT.format(way=way, sizes=SIZES[:2]))
    assert all(equal)
    # Somebody was told of a zero, and of the negative number.
    assert all(said or seen for said, seen in told[1:3]), told
