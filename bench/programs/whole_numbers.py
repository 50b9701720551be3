"""Integers and bits: sieves, checksums, number theory, cellular automata."""

from __future__ import annotations

import itertools

import numpy as np

from .data import Array


def collatz(limit: int) -> tuple[int, int]:
    """The longest chain that starts below the limit."""
    best = (0, 0)
    for start in range(1, limit):
        n, length = start, 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        if length > best[1]:
            best = (start, length)
    return best


def sieve_list(limit: int) -> list[int]:
    prime = [True] * limit
    prime[0] = prime[1] = False
    for i in range(2, int(limit**0.5) + 1):
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
    return [i for i, is_prime in enumerate(prime) if is_prime]


def sieve_array(limit: int) -> Array:
    prime = np.ones(limit, dtype=bool)
    prime[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return np.flatnonzero(prime)


def crc32_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ 0xEDB88320 if value & 1 else value >> 1
        table.append(value)
    return table


def crc32(data: bytes, table: list[int]) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc16_bits(data: bytes) -> int:
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF if crc & 0x8000 else (crc << 1) & 0xFFFF
    return crc


def adler32(data: bytes) -> int:
    a, b = 1, 0
    for byte in data:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return (b << 16) | a


def xorshift(seed: int, n: int) -> int:
    x = seed
    total = 0
    for _ in range(n):
        x ^= (x << 13) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= (x << 17) & 0xFFFFFFFFFFFFFFFF
        total += x & 0xFF
    return total


def euclid(pairs: list[tuple[int, int]]) -> int:
    """Greatest common divisors, added up."""
    total = 0
    for a, b in pairs:
        while b:
            a, b = b, a % b
        total += a
    return total


def factors(numbers: list[int]) -> list[list[int]]:
    result = []
    for n in numbers:
        found = []
        d = 2
        while d * d <= n:
            while n % d == 0:
                found.append(d)
                n //= d
            d += 1
        if n > 1:
            found.append(n)
        result.append(found)
    return result


def digits_of_pi(n: int) -> list[int]:
    """A spigot: integers of any size."""
    q, r, t, k, m, x = 1, 0, 1, 1, 3, 3
    digits: list[int] = []
    while len(digits) < n:
        if 4 * q + r - t < m * t:
            digits.append(m)
            q, r, m = 10 * q, 10 * (r - m * t), (10 * (3 * q + r)) // t - 10 * m
        else:
            q, r, t, k, m, x = q * k, (2 * q + r) * x, t * x, k + 1, (q * (7 * k + 2) + r * x) // (t * x), x + 2
    return digits


def life_elements(board: list[list[int]], steps: int) -> list[list[int]]:
    """Conway's game of life on lists, cell by cell."""
    height, width = len(board), len(board[0])
    for _ in range(steps):
        after = [[0] * width for _ in range(height)]
        for i in range(height):
            for j in range(width):
                neighbours = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di or dj:
                            neighbours += board[(i + di) % height][(j + dj) % width]
                after[i][j] = 1 if neighbours == 3 or (neighbours == 2 and board[i][j]) else 0
        board = after
    return board


def life_roll(board: Array, steps: int) -> Array:
    """The same on an array."""
    for _ in range(steps):
        neighbours = sum(
            np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)
    return board


def life_pairs(board: Array, steps: int) -> Array:
    """Both axes are rolled at once, by all pairs."""
    for _ in range(steps):
        around = sum(
            np.roll(board, (dy, dx), axis=(0, 1))
            for dy, dx in itertools.product((-1, 0, 1), repeat=2)
            if (dy, dx) != (0, 0)
        )
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(np.uint8)
    return board


def rule_110(cells: list[int], steps: int) -> int:
    for _ in range(steps):
        padded = [0, *cells, 0]
        cells = [(110 >> (4 * a + 2 * b + c)) & 1 for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)]
    return sum(cells)


def bubble_sort(values: list[int]) -> list[int]:
    values = values[:]
    for end in range(len(values) - 1, 0, -1):
        for i in range(end):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
    return values


def sums_of_digits(limit: int, base: int) -> int:
    total = 0
    for number in range(limit):
        while number:
            number, digit = divmod(number, base)
            total += digit
    return total
