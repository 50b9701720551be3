"""Arguments of the programs: deterministic, from a seed, made anew on every call."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import numpy as np

F64 = NDArray[np.float64]
C128 = NDArray[np.complex128]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Array = NDArray[Any]

_WORDS = (
    "the of and a to in he that was it his her is you as had with for she not at but be my on have him said me".split()
)


def floats(*shape: int, seed: int = 1) -> F64:
    """Uniform in [0, 1)."""
    return np.random.default_rng(seed).random(shape)


def normal(*shape: int, seed: int = 1) -> F64:
    return np.random.default_rng(seed).standard_normal(shape)


def integers(n: int, high: int, seed: int = 1) -> I64:
    return np.random.default_rng(seed).integers(0, high, n)


def numbers(n: int, high: int, seed: int = 1) -> list[int]:
    """Python ints in a list."""
    drawn: list[int] = integers(n, high, seed).tolist()
    return drawn


def signal(n: int, seed: int = 1) -> F64:
    """A slow wave, a fast one, and noise."""
    t = np.linspace(0.0, 1.0, n)
    wave: F64 = np.sin(6.0 * t) + 0.3 * np.sin(90.0 * t) + 0.1 * normal(n, seed=seed)
    return wave


def image(height: int, width: int, channels: int = 0, seed: int = 1) -> U8:
    """A gradient with noise, as bytes."""
    shape = (height, width, channels) if channels else (height, width)
    noise = np.random.default_rng(seed).integers(0, 96, shape)
    gradient = np.add.outer(np.arange(height), np.arange(width)) * 159 // (height + width)
    return (noise + (gradient[..., None] if channels else gradient)).astype(np.uint8)


def positive_definite(n: int, seed: int = 1) -> F64:
    a = normal(n, n, seed=seed)
    return a @ a.T + n * np.eye(n)


def lower_triangle(n: int, seed: int = 1) -> F64:
    return np.tril(floats(n, n, seed=seed)) + n * np.eye(n)


def sparse(n: int, per_row: int, seed: int = 1) -> tuple[I64, I64, F64]:
    """A matrix by compressed rows: row starts, columns, values."""
    random = np.random.default_rng(seed)
    columns = np.sort(random.integers(0, n, (n, per_row)), axis=1).reshape(-1)
    return np.arange(n + 1) * per_row, columns, random.random(n * per_row)


def letters(n: int, alphabet: str = "ACGU", seed: int = 1) -> str:
    return "".join(alphabet[i] for i in numbers(n, len(alphabet), seed))


def prose(n: int, seed: int = 1) -> str:
    """`n` words in sentences, as a text of several lines."""
    words = [_WORDS[i * j // len(_WORDS)] for i, j in zip(numbers(n, 29, seed), numbers(n, 29, seed + 1), strict=True)]
    for i in range(0, n, 11):
        words[i] = words[i].capitalize()
        words[i - 1] += ".\n"
    return " ".join(words)


def table_text(rows: int, seed: int = 1) -> str:
    """Comma-separated values with a header."""
    lines = ["name,count,price"]
    for i, count in enumerate(numbers(rows, 1000, seed)):
        lines.append(f"item{i % 17},{count},{count * 7 % 113 / 8}")
    return "\n".join(lines)


def graph(n: int, degree: int, seed: int = 1) -> dict[int, list[tuple[int, float]]]:
    """Each node's neighbours with the edge's length."""
    random = np.random.default_rng(seed)
    edges: dict[int, list[tuple[int, float]]] = {}
    for node in range(n):
        nearby = [(node + 1) % n, *random.integers(0, n, degree - 1).tolist()]
        edges[node] = [(other, 1.0 + (node * other) % 10) for other in nearby]
    return edges


def links(n: int, degree: int, seed: int = 1) -> dict[int, list[int]]:
    return {node: [other for other, _ in near] for node, near in graph(n, degree, seed).items()}


def distances(n: int, seed: int = 1) -> F64:
    """Lengths of direct ways; some are missing."""
    d = floats(n, n, seed=seed) * 10.0
    d[d > 6.0] = np.inf
    np.fill_diagonal(d, 0.0)
    return d


# A sudoku (Wikipedia's), row by row, and its solution.
SUDOKU = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


def sudoku(solved: int) -> str:
    """So many of its last places are solved."""
    return SUDOKU[: 81 - solved] + SOLVED[81 - solved :]
