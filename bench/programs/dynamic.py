"""Dynamic programming: tables filled from their neighbours."""

from __future__ import annotations

import numpy as np

from .data import F64, Array


def time_warping(a: F64, b: F64) -> float:
    """The cost of dynamic time warping, element by element."""
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = abs(a[i - 1] - b[j - 1])
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return float(cost[n, m])


def edit_distance(one: str, other: str) -> int:
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def common_subsequence(one: str, other: str) -> str:
    n, m = len(one), len(other)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n):
        for j in range(m):
            if one[i] == other[j]:
                table[i + 1][j + 1] = table[i][j] + 1
            else:
                table[i + 1][j + 1] = max(table[i][j + 1], table[i + 1][j])
    letters = []
    i, j = n, m
    while i and j:
        if one[i - 1] == other[j - 1]:
            letters.append(one[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return "".join(reversed(letters))


def knapsack_list(weights: list[int], values: list[int], capacity: int) -> int:
    best = [0] * (capacity + 1)
    for weight, value in zip(weights, values, strict=True):
        for room in range(capacity, weight - 1, -1):
            taken = best[room - weight] + value
            if taken > best[room]:
                best[room] = taken
    return best[capacity]


def knapsack_rows(weights: list[int], values: list[int], capacity: int) -> int:
    """The same, a row at a time."""
    best = np.zeros(capacity + 1, dtype=np.int64)
    for weight, value in zip(weights, values, strict=True):
        taken = best[:-weight] + value
        best[weight:] = np.maximum(best[weight:], taken)
    return int(best[capacity])


def rna_folding(bases: str) -> int:
    """Nussinov: the greatest number of pairs."""
    n = len(bases)
    pairs = {("A", "U"), ("U", "A"), ("C", "G"), ("G", "C"), ("G", "U"), ("U", "G")}
    table = [[0] * n for _ in range(n)]
    for span in range(4, n):
        for i in range(n - span):
            j = i + span
            best = max(table[i + 1][j], table[i][j - 1])
            if (bases[i], bases[j]) in pairs:
                best = max(best, table[i + 1][j - 1] + 1)
            for k in range(i + 1, j):
                split = table[i][k] + table[k + 1][j]
                if split > best:
                    best = split
            table[i][j] = best
    return table[0][n - 1]


def viterbi(start: F64, moves: F64, emits: F64, seen: Array) -> list[int]:
    """The likeliest states of a hidden Markov model."""
    score = np.log(start) + np.log(emits[:, seen[0]])
    log_moves = np.log(moves)
    back = []
    for symbol in seen[1:]:
        ways = score[:, None] + log_moves
        back.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + np.log(emits[:, symbol])
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1]


def coin_ways(coins: list[int], amount: int) -> int:
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount]


def matrix_chain(sizes: list[int]) -> int:
    """The least number of multiplications for a product of matrices."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j] = min(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j))
    return cost[0, n - 1]


def longest_increasing(values: list[int]) -> int:
    lengths = [1] * len(values)
    for i in range(1, len(values)):
        for j in range(i):
            if values[j] < values[i] and lengths[j] + 1 > lengths[i]:
                lengths[i] = lengths[j] + 1
    return max(lengths)


def cheapest_seam(energy: F64) -> list[int]:
    """Seam carving: the path of least energy from top to bottom, a row at a time."""
    cost = energy[0].copy()
    rows = [cost]
    for line in energy[1:]:
        left = np.concatenate(([np.inf], cost[:-1]))
        right = np.concatenate((cost[1:], [np.inf]))
        cost = line + np.minimum(np.minimum(left, cost), right)
        rows.append(cost)
    column = int(np.argmin(cost))
    seam = [column]
    for row in reversed(rows[:-1]):
        low = max(column - 1, 0)
        column = low + int(np.argmin(row[low : column + 2]))
        seam.append(column)
    return seam[::-1]


def local_alignment(one: str, other: str) -> float:
    """Smith and Waterman: the best score of two parts."""
    n, m = len(one), len(other)
    score = np.zeros((n + 1, m + 1))
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            both = score[i - 1, j - 1] + (2 if one[i - 1] == other[j - 1] else -1)
            score[i, j] = max(0, both, score[i - 1, j] - 1, score[i, j - 1] - 1)
            if score[i, j] > best:
                best = score[i, j]
    return float(best)
