"""Linear algebra written out: by elements, by rows, and with small matrices."""

from __future__ import annotations

import math
from array import array

import numpy as np

from .data import C128, F64, I64


def sparse_product(starts: I64, columns: I64, values: F64, x: F64) -> F64:
    """Sparse matrix times vector, row by row."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        begin, end = starts[i], starts[i + 1]
        y[i] = values[begin:end] @ x[columns[begin:end]]
    return y


def sparse_product_elements(starts: list[int], columns: list[int], values: list[float], x: list[float]) -> list[float]:
    """The same on lists, element by element."""
    y = []
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y.append(total)
    return y


def forward_substitution(lower: F64, b: F64) -> F64:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def back_substitution(lower: F64, b: F64) -> F64:
    """The transposed system, element by element."""
    n = len(b)
    x = b.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= lower[j, i] * x[j]
        x[i] /= lower[i, i]
    return x


def lu_decomposition(a: F64) -> F64:
    """Without pivots, a row at a time."""
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def gauss_jordan(rows: list[list[float]]) -> list[list[float]]:
    """With pivots, on lists."""
    a = [row[:] for row in rows]
    n = len(a)
    for column in range(n):
        pivot = max(range(column, n), key=lambda r: abs(a[r][column]))
        a[column], a[pivot] = a[pivot], a[column]
        scale = a[column][column]
        a[column] = [value / scale for value in a[column]]
        for r in range(n):
            if r != column:
                factor = a[r][column]
                a[r] = [value - factor * p for value, p in zip(a[r], a[column], strict=True)]
    return a


def cholesky(a: F64) -> F64:
    """Element by element."""
    n = len(a)
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(total) if i == j else total / lower[j, j]
    return lower


def gram_schmidt(vectors: F64) -> F64:
    basis: list[F64] = []
    for v in vectors:
        w = v - sum((np.dot(v, b) * b for b in basis), np.zeros_like(v))
        basis.append(w / np.linalg.norm(w))
    return np.array(basis)


def floyd_warshall(d: F64) -> F64:
    """All shortest ways, a matrix at a time."""
    d = d.copy()
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


def floyd_warshall_lists(rows: list[list[float]]) -> list[list[float]]:
    d = [row[:] for row in rows]
    n = len(d)
    for k in range(n):
        via = d[k]
        for row in d:
            first = row[k]
            for j in range(n):
                if first + via[j] < row[j]:
                    row[j] = first + via[j]
    return d


def conjugate_gradient(a: F64, b: F64, steps: int) -> F64:
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rr = r @ r
    for _ in range(steps):
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + (new / rr) * p
        rr = new
    return x


def power_iteration(a: F64, steps: int) -> tuple[float, F64]:
    v = np.ones(len(a))
    for _ in range(steps):
        w = a @ v
        v = w / np.linalg.norm(w)
    return float(v @ a @ v), v


def tridiagonal(low: F64, middle: F64, high: F64, right: F64) -> F64:
    """Thomas' algorithm, element by element."""
    n = len(middle)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = high[0] / middle[0], right[0] / middle[0]
    for i in range(1, n):
        scale = middle[i] - low[i] * c[i - 1]
        c[i] = high[i] / scale
        d[i] = (right[i] - low[i] * d[i - 1]) / scale
    x = d.copy()
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def rotations(angles: list[float]) -> F64:
    """A chain of small matrices."""
    total = np.eye(3)
    for angle in angles:
        c, s = math.cos(angle), math.sin(angle)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        tilt = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        total = total @ turn @ tilt
    return total


def multiply_lists(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]


def determinant(matrices: list[F64]) -> float:
    """Of 3 x 3 matrices, written out."""
    total = 0.0
    for m in matrices:
        total += (
            m[0, 0] * (m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1])
            - m[0, 1] * (m[1, 0] * m[2, 2] - m[1, 2] * m[2, 0])
            + m[0, 2] * (m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0])
        )
    return float(total)


def sparse_product_arrays(starts: I64, columns: I64, values: F64, x: F64) -> F64:
    """The same on arrays, element by element."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


def durbin(r: F64) -> F64:
    """Levinson's and Durbin's recursion for Toeplitz systems."""
    y = np.empty_like(r)
    alpha, beta, y[0] = -r[0], 1.0, -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def householder(a: F64) -> tuple[F64, F64]:
    """Q and R."""
    r, n = a.copy(), len(a)
    q = np.eye(n)
    for k in range(n - 1):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2.0 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2.0 * np.outer(q[:, k:] @ v, v)
    return q, r


def lanczos(a: F64, start: F64, steps: int) -> tuple[F64, F64]:
    """The tridiagonal matrix, every vector made orthogonal to those before."""
    basis = np.zeros((steps + 1, len(start)))
    basis[0] = start / np.linalg.norm(start)
    alpha, beta = np.zeros(steps), np.zeros(steps)
    for j in range(steps):
        w = a @ basis[j]
        alpha[j] = w @ basis[j]
        for i in range(j + 1):
            w -= (w @ basis[i]) * basis[i]
        beta[j] = np.linalg.norm(w)
        basis[j + 1] = w / beta[j]
    return alpha, beta


def sparse_product_typed(rows: array[int], columns: array[int], values: array[float], x: array[float]) -> array[float]:
    """Of numbers in arrays of the standard library."""
    y = array("d", bytes(8 * (len(rows) - 1)))
    for r in range(len(rows) - 1):
        total = 0.0
        for k in range(rows[r], rows[r + 1]):
            total += x[columns[k]] * values[k]
        y[r] = total
    return y


def gates(state: C128, gate: C128) -> C128:
    """A gate on each qubit of a register, by the amplitudes that it mixes."""
    for qubit in range(len(state).bit_length() - 1):
        after = state.copy()
        for i in range(len(state)):
            if not (i >> qubit) & 1:
                j = i | (1 << qubit)
                after[i] = gate[0, 0] * state[i] + gate[0, 1] * state[j]
                after[j] = gate[1, 0] * state[i] + gate[1, 1] * state[j]
        state = after
    return state
