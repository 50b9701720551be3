"""Recursion and generators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .data import F64


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def hanoi(n: int, source: str, target: str, spare: str) -> int:
    if n == 0:
        return 0
    return hanoi(n - 1, source, spare, target) + 1 + hanoi(n - 1, spare, target, source)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def queens(n: int, row: int, columns: tuple[int, ...]) -> int:
    """How many ways there are to place them."""
    if row == n:
        return 1
    ways = 0
    for column in range(n):
        if all(column != c and abs(column - c) != row - r for r, c in enumerate(columns)):
            ways += queens(n, row + 1, (*columns, column))
    return ways


def permutations(items: list[int]) -> list[list[int]]:
    if len(items) <= 1:
        return [items]
    result = []
    for i, item in enumerate(items):
        for rest in permutations(items[:i] + items[i + 1 :]):
            result.append([item, *rest])
    return result


def merge_sort(values: list[int]) -> list[int]:
    if len(values) <= 1:
        return values
    middle = len(values) // 2
    left, right = merge_sort(values[:middle]), merge_sort(values[middle:])
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def quick_sort(values: list[int]) -> list[int]:
    if len(values) <= 1:
        return values
    pivot = values[len(values) // 2]
    return (
        quick_sort([v for v in values if v < pivot])
        + [v for v in values if v == pivot]
        + quick_sort([v for v in values if v > pivot])
    )


@dataclass
class Node:
    key: int
    left: Node | None = None
    right: Node | None = None


def insert(node: Node | None, key: int) -> Node:
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = insert(node.left, key)
    elif key > node.key:
        node.right = insert(node.right, key)
    return node


def walk(node: Node | None) -> Iterator[int]:
    if node is not None:
        yield from walk(node.left)
        yield node.key
        yield from walk(node.right)


def tree_sort(values: list[int]) -> list[int]:
    root = None
    for value in values:
        root = insert(root, value)
    return list(walk(root))


def numbers_from(values: list[int]) -> Iterator[int]:
    yield from values


def odd_only(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        if value % 2:
            yield value


def squared(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        yield value * value


def pipeline(values: list[int]) -> int:
    """Generators in a row."""
    return sum(squared(odd_only(numbers_from(values))))


def fibonacci_numbers() -> Iterator[int]:
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def even_fibonacci(limit: int) -> int:
    total = 0
    for number in fibonacci_numbers():
        if number > limit:
            return total
        if number % 2 == 0:
            total += number
    return total


def windows(values: list[float], width: int) -> Iterator[tuple[float, ...]]:
    for i in range(len(values) - width + 1):
        yield tuple(values[i : i + width])


def moving_maxima(values: list[float], width: int) -> list[float]:
    return [max(window) for window in windows(values, width)]


def sudoku(cells: list[int]) -> list[int] | None:
    """By trying; a 4 x 4 board."""
    if 0 not in cells:
        return cells
    place = cells.index(0)
    row, column = divmod(place, 4)
    used = set()
    for i in range(16):
        r, c = divmod(i, 4)
        if r == row or c == column or (r // 2 == row // 2 and c // 2 == column // 2):
            used.add(cells[i])
    for value in (1, 2, 3, 4):
        if value not in used:
            solved = sudoku([*cells[:place], value, *cells[place + 1 :]])
            if solved:
                return solved
    return None


def partition(a: F64, low: int, high: int) -> int:
    pivot = a[high]
    i = low - 1
    for j in range(low, high):
        if a[j] <= pivot:
            i += 1
            a[i], a[j] = a[j], a[i]
    a[i + 1], a[high] = a[high], a[i + 1]
    return i + 1


def _sort_between(a: F64, low: int, high: int) -> None:
    if low < high:
        middle = partition(a, low, high)
        _sort_between(a, low, middle - 1)
        _sort_between(a, middle + 1, high)


def sorted_by_parts(numbers: F64) -> F64:
    """A helper calls itself, not the function that is jitted."""
    a = numbers.copy()
    _sort_between(a, 0, len(a) - 1)
    return a
