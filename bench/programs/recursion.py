"""Recursion and generators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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


def sudoku_by_functions_within(text: str) -> list[list[int]]:
    """By trying; a 9 x 9 board that the functions close over."""
    board = [[int(text[9 * i + j]) for j in range(9)] for i in range(9)]

    def fits(row: int, column: int, value: int) -> bool:
        for k in range(9):
            if board[row][k] == value or board[k][column] == value:
                return False
        top, left = 3 * (row // 3), 3 * (column // 3)
        for i in range(top, top + 3):
            for j in range(left, left + 3):
                if board[i][j] == value:
                    return False
        return True

    def solve() -> bool:
        for row in range(9):
            for column in range(9):
                if board[row][column] == 0:
                    for value in range(1, 10):
                        if fits(row, column, value):
                            board[row][column] = value
                            if solve():
                                return True
                            board[row][column] = 0
                    return False
        return True

    solve()
    return board


def partitions_within(n: int) -> int:
    """How many ways there are to write n as a sum."""

    def ways(left: int, most: int) -> int:
        if left == 0:
            return 1
        return 0 if left < 0 or most == 0 else ways(left - most, most) + ways(left, most - 1)

    return ways(n, n)


class Place(NamedTuple):
    x: float
    y: float


def widest_pair(numbers: list[float]) -> float:
    places = [Place(math.cos(v), math.sin(2 * v)) for v in numbers]
    widest = 0.0
    for a in places:
        for b in places:
            widest = max(widest, math.hypot(a.x - b.x, a.y - b.y))
    return widest


class StackMachine:
    """Runs a program of instructions, each a method found by its name."""

    def __init__(self, program: list[tuple[str, int]]) -> None:
        self.program = program
        self.stack: list[int] = []
        self.memory = [0] * 8
        self.at = 0
        self.known: dict[str, Callable[[int], None]] = {
            "push": self.push, "add": self.add, "load": self.load, "store": self.store, "less": self.less,
            "jump_if": self.jump_if, "jump": self.jump,
        }  # fmt: skip

    def pop(self) -> int:
        return self.stack.pop()

    def push(self, argument: int) -> None:
        self.stack.append(argument)

    def add(self, _: int) -> None:
        self.stack.append(self.pop() + self.pop())

    def load(self, argument: int) -> None:
        self.stack.append(self.memory[argument])

    def store(self, argument: int) -> None:
        self.memory[argument] = self.pop()

    def less(self, _: int) -> None:
        self.stack.append(1 if self.pop() > self.pop() else 0)

    def jump_if(self, argument: int) -> None:
        if self.pop():
            self.at = argument

    def jump(self, argument: int) -> None:
        self.at = argument

    def run(self) -> list[int]:
        while self.at < len(self.program):
            name, argument = self.program[self.at]
            self.at += 1
            self.known[name](argument)
        return self.memory


def interpreted_sum(n: int) -> list[int]:
    """memory[1] = 0 + 1 + ... + (n - 1), by a program for the machine."""
    body = [("load", 0), ("load", 1), ("add", 0), ("store", 1), ("load", 0), ("push", 1), ("add", 0), ("store", 0)]
    return StackMachine([("jump", 9), *body, ("load", 0), ("push", n), ("less", 0), ("jump_if", 1)]).run()


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
