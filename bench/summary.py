"""The report's arithmetic: geometric means by class, and which rows break which limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from . import rows as r
from .rows import Row

# Complaint -> what the list of its rows is called, and what is printed of each.
_LISTS: dict[str, tuple[str, Callable[[Row], str]]] = {
    "bits": ("bits differ", lambda row: row.different[0]),
    "steady": (f"steady state under {r.LEAST_STEADY}", lambda row: f"{row.ratio:.2f}"),
    "twenty": (f"first 20 calls from a warm store under {r.LEAST_TWENTY}", lambda row: f"{row.twenty:.2f}"),
    "first": (
        f"first call over {r.MOST_FIRST_LONG:g} times eager ({r.MOST_FIRST_SHORT:g} times under a millisecond)",
        lambda row: f"{row.first_ratio:.1f}",
    ),
    "warm": (
        f"first call of a warm second process over eager + {r.MOST_WARM_FIRST * 1e3:g} ms",
        lambda row: f"{row.warm_first * 1e3:+.1f}",
    ),
    "faults": ("page faults over eager's", lambda row: f"{row.faults[1]} for {row.faults[0]}"),
    "memory": ("peak memory over eager's", lambda row: f"{row.memory[1]} for {row.memory[0]}"),
}


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def means(rows: Sequence[Row]) -> list[str]:
    lines = [f"{'geometric means':<28} {'rows':>5} {'ratio':>6} {'first x':>7} {'20':>6}"]
    for group, members in [*by_group(rows).items(), ("all", list(rows))]:
        twenty = [row.twenty for row in members if row.twenty]
        last = f"{geometric_mean(twenty):>6.2f}" if twenty else ""
        ratio, first = (geometric_mean(getattr(row, what) for row in members) for what in ("ratio", "first_ratio"))
        lines.append(f"{group:<28} {len(members):>5} {ratio:>6.2f} {first:>7.1f} {last}".rstrip())
    return lines


def lists(rows: Sequence[Row]) -> list[str]:
    """The rows under 1, and those that break a limit."""
    under = sorted((row for row in rows if row.ratio < 1.0), key=lambda row: row.ratio)
    lines = [_list("steady state under 1", [f"{row.name} ({row.ratio:.2f})" for row in under])]
    for complaint, (title, show) in _LISTS.items():
        lines.append(_list(title, [f"{row.name} ({show(row)})" for row in rows if complaint in row.complaints]))
    return lines


def _list(title: str, names: list[str]) -> str:
    return f"{title}: {len(names)}" + "".join(f"\n    {name}" for name in names)


def verdict(rows: Sequence[Row]) -> int:
    """An exit code: 1 if bits differ or a program is slower than it may be in the end."""
    return int(any({"bits", "steady"} & set(row.complaints) for row in rows))
