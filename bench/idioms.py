"""Idioms: NumPy's functions as people call them, one expression a row, on small arrays and on medium ones.

Nothing steps aside here, so that what replay itself takes is seen where it loses, too: whole programs (`programs/`)
are what counts, and these rows say where they lose it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import dalsegno as ds
import numpy as np

from .harness import compare, duration, same

# Names: matrices x and y, a mask m of x; vectors v and w, one that is sorted (s); indices k of v; complex numbers z; a
# square matrix q and a symmetric one p; a list of numbers a; a generator g.
EXPRESSIONS = {
    "reductions": """
x.sum(axis=0)
x.mean(axis=1, keepdims=True)
x.std(axis=0, ddof=1)
np.var(x, ddof=1)
x.max(axis=1)
x.argmax(axis=1)
x.argmin(axis=0)
np.any(m, axis=0)
np.count_nonzero(m)
m.mean()
np.average(v, weights=w)
np.median(x, axis=1)
np.percentile(v, 90)
np.ptp(v)
np.prod(x, axis=0)
np.nanmean(x)
np.linalg.norm(x, axis=1)
np.cumsum(x, axis=0)
np.maximum.accumulate(v)
np.logical_or.reduce(m)
np.isfinite(x).all()
""",
    "elementwise": """
np.clip(x, 0.2, 0.8)
np.where(x > 0.5, x, 0)
np.hypot(x, y)
np.arctan2(x, y)
x**3
2.0**x
x % 0.3
np.round(x, 2)
np.exp(-(x**2))
np.abs(z) ** 2
np.exp(1j * v)
z.conj() * z
np.heaviside(v, 0.5)
np.nan_to_num(x)
np.isclose(x, y)
v[:, None] - w
(x - x.mean(axis=0)) / x.std(axis=0)
""",
    "indexing": """
v[k]
x[m]
x[x[:, 0].argsort()]
np.take_along_axis(x, np.argsort(x, axis=1), axis=1)
np.flatnonzero(v > 0.5)
np.argwhere(m)
np.searchsorted(s, v)
np.digitize(v, s)
np.interp(v, s, w)
np.unique(k)
np.bincount(k, weights=v)
np.histogram(v, bins=20)
np.isin(k, k[:5])
np.sort(v)[::-1]
np.argsort(v, kind="stable")
np.partition(v, 5)
""",
    "shapes": """
np.concatenate([x, y])
np.stack([v, w], axis=1)
np.vstack([v, w])
np.append(v, 1.0)
np.repeat(v, 3)
np.tile(v, 3)
np.roll(x, 1, axis=0)
np.flip(x, axis=1)
np.pad(x, 1, mode="edge")
np.diff(v)
np.gradient(v)
np.meshgrid(v, w)
np.linspace(0.0, 1.0, 50)
np.arange(50) * 2.0
np.zeros_like(x)
np.eye(20)
np.triu(x, 1)
np.array(a)
x.T.copy()
x.reshape(-1, 2).sum(axis=1)
x.tolist()
""",
    "linear algebra": """
x @ y.T
np.dot(v, w)
np.outer(v, w)
np.einsum("ij,ij->i", x, y)
np.trace(q)
np.linalg.solve(q, q[0])
np.linalg.inv(q)
np.linalg.det(q)
np.linalg.eigh(p)
np.linalg.svd(q)
np.cov(x)
np.corrcoef(v, w)[0, 1]
np.convolve(v, w[:5], mode="same")
np.polyfit(v, w, 2)
np.polyval(a, v)
np.fft.rfft(v)
""",
    "sums of expressions": """
sum(c * v**i for i, c in enumerate(a))
sum(c * np.sin(c * v) for c in a)
sum(np.exp(-((v - c) ** 2)) for c in a)
sum((np.dot(v, u) * u for u in (v, w)), np.zeros_like(v))
sum(c * row for c, row in zip(a, x))
sum(c * v[i : i + 5] for i, c in enumerate(a))
sum(abs(v - c) for c in a)
max(c * c for c in a)
[c * c for c in a]
""",
    "random numbers": """
g.random(50)
g.normal(size=50)
g.integers(0, 10, 50)
g.choice(50, 10)
g.permutation(50)
g.uniform(0.0, 1.0)
""",
}
SIZES = {"small": (12, 8, 30), "medium": (120, 80, 1000)}  # rows and columns of matrices, length of vectors
HEADER = f"{'':52s} {'eager':>9s} {'ratio':>6s}"
EXPLANATION = "ratio: eager / jitted, steady state, a call in a loop; nothing steps aside"
LOSS = 0.9


@dataclass(frozen=True)
class Row:
    """One expression at one size. `eager`: seconds."""

    group: str
    name: str
    size: str
    eager: float
    ratio: float
    identical: bool

    def __str__(self) -> str:
        differs = "" if self.identical else "  !bits"
        return f"{self.name:52s} {duration(self.eager):>9s} {self.ratio:6.2f}{differs}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def operands(size: str) -> dict[str, Any]:
    """What the expressions' names mean: the same at every call."""
    height, width, n = SIZES[size]
    random = np.random.default_rng(3)
    x, q = random.random((height, width)), random.random((20, 20))
    return {
        "x": x,
        "y": x[::-1] * 0.5,
        "m": x > 0.5,
        "v": random.random(n),
        "w": random.random(n),
        "s": np.sort(random.random(n)),
        "k": random.integers(0, 20, n),
        "z": random.random(n) + 1j * random.random(n),
        "q": q + 5 * np.eye(20),
        "p": q @ q.T,
        "a": [0.5, -1.25, 2.0, 3.0],
        "g": np.random.default_rng(1),
    }


def all_rows(quick: bool, only: str = "") -> Iterator[Row]:
    """quick: fewer samples, and small arrays alone. only: what the expression has in it."""
    with ds.config(step_aside=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in ("small",) if quick else SIZES:
            for group, text in EXPRESSIONS.items():
                for expression in text.strip().splitlines():
                    if only in expression:
                        yield _measured(group, expression, size, quick)


def _measured(group: str, expression: str, size: str, quick: bool) -> Row:
    names: dict[str, Any] = {"np": np}
    values = operands(size)
    exec(f"def idiom(n, {', '.join(values)}):\n    for _ in range(n):\n        r = {expression}\n    return r", names)
    plain = names["idiom"]
    jitted = ds.jit(store=False)(plain)
    arguments = (100, *values.values())
    for _ in range(4):
        found = jitted(*arguments)
        ds.wait()
    # (Drawn numbers go on where the last ones ended.)
    identical = "g." in expression or same(found, plain(*arguments))
    timing = compare(plain, jitted, arguments, rounds=3, samples=3, budget=0.05 if quick else 0.3)
    return Row(group, expression, size, min(timing.eager) / 100, timing.ratio, identical)


def summary(rows: list[Row]) -> list[str]:
    """Means by group and size, and the rows that lose."""
    lines = []
    for size in dict.fromkeys(row.size for row in rows):
        of_size = [row for row in rows if row.size == size]
        for group in [*dict.fromkeys(row.group for row in of_size), "all"]:
            logs = [math.log(row.ratio) for row in of_size if group in (row.group, "all")]
            lines.append(f"{group + ', ' + size:40s} {len(logs):4d} {math.exp(sum(logs) / len(logs)):6.2f}")
    losses = sorted((row.ratio, row.size, row.name) for row in rows if row.ratio < LOSS)
    return [*lines, f"under {LOSS}: {len(losses)}", *(f"    {r:.2f} {size}: {name}" for r, size, name in losses)]


def verdict(rows: list[Row]) -> int:
    """1 if some row's bits differ: single calls of C functions may cost more than what they replace."""
    return int(any(not row.identical for row in rows))
