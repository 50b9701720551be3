"""Items of tuples and lists that a trace builds itself are the values they were built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.test_native_loops import check


def dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[-1] * b[2]


def sub(a: Any, b: Any) -> Any:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def rays(n: int, centre: Any) -> Any:
    out = []
    for i in range(n):
        oc = sub((i * 0.5, 1.0, 2), centre)
        b = dot(oc, (1.0, 0.5, i))
        if b > 3:
            out.append(oc)
        out.append(b)
    return out


def identities(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        x = i * 1000.5
        pair = (x, [i])
        out.append((pair[0] is x, pair[1] is pair[1], pair[-2] is pair[0], pair[0]))
        y = pair[0]
        pair = (1, 2)  # type: ignore[assignment]
        out.append(y + pair[1])
    return out


def lists(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        row = [i, i * 0.5, "x"]
        out.append(row[1])
        row[1] = 7
        out.append(row[1])
        row.append(3)
        out.append(row[-1])
        other = row
        other.reverse()
        out.append(row[0])
        out.append(row)
    return out


def errors(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        pair = (i, i + 0.5)
        for k in (0, 1, -1, -2):
            out.append(pair[k])
        try:
            out.append(pair[2] if i % 5 == 4 else pair[1])  # type: ignore[misc]
        except IndexError as error:
            out.append(str(error))
        out.append(pair[True])
    return out


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(rays, (60, (1.0, 2.0, 3.0))), (rays, (20, (1, 2, 3))), (identities, (60,)), (lists, (60,)), (errors, (60,))],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_as_eager(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    check(function, arguments, (3, *arguments[1:]))
