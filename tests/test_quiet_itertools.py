"""Iterators of itertools over what runs no code of the user's, and over what does; what they let go of at the end."""

from __future__ import annotations

import itertools

import pytest

from tests.support import check, check_source

PROGRAM = """
import itertools, sys
LOG = []

class Looking:
    def __init__(self, n): self.n = n
    def __del__(self):
        frame = sys._getframe(1)
        LOG.append((self.n, frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)))
    def __add__(self, other):
        LOG.append(('add', sys._getframe(1).f_code.co_name))
        return self.n
    __radd__ = __add__
    def __iter__(self):
        LOG.append(('iter', sys._getframe(1).f_lineno))
        return iter((1, 2))

def numbers():
    for i in range(4):
        LOG.append(sys._getframe(1).f_lineno)
        yield i

@jit
def entry(n):
    LOG.clear()
    total = 0
    for x in {made}:
        total += 1
        if type(x) is tuple:
            total += len(x)
        elif type(x) is int:
            total += x
        if total > n:
            break
    return total, LOG[:]

KEPT = [Looking(-1), Looking(-2), Looking(-3), Looking(-4)]
"""

MADE = [
    "itertools.product(range(3), 'ab', repeat=2)",
    "itertools.product([Looking(1), Looking(2)], (3, 4))",
    "itertools.combinations([1, 2, 3, 4], 2)",
    "itertools.combinations([Looking(k) for k in range(3)], 2)",
    "itertools.combinations_with_replacement('abc', 2)",
    "itertools.permutations((1, 2, 3))",
    "itertools.accumulate(range(9))",
    "itertools.accumulate(range(9), initial=2.5)",
    "itertools.accumulate(range(9), lambda a, b: LOG.append(a) or a + b)",
    "itertools.accumulate(range(9), initial=Looking(3))",
    "itertools.accumulate([1, Looking(2), 3])",
    "itertools.accumulate(numbers())",
    "itertools.chain(range(3), [4, 5], 'ab', {7: 8}, (1,))",
    "itertools.chain([Looking(1)], [Looking(2), Looking(3)], (4,))",
    "itertools.chain([1, 2], Looking(5), [3])",
    "itertools.chain([1, 2], numbers(), [3])",
    "itertools.chain.from_iterable([[1], Looking(4), (2, 3)])",
    "itertools.chain.from_iterable(((1,), [Looking(4)], (2, 3)))",
    "itertools.islice([1, 2, 3, 4], 1, None, 2)",
    "itertools.islice([Looking(1), Looking(2), Looking(3)], 2)",
    "itertools.islice([Looking(1), Looking(2), Looking(3)], 9)",
    "itertools.islice(numbers(), 3)",
    "itertools.islice(enumerate([Looking(1), Looking(2)]), 5)",
    "itertools.islice(itertools.chain([Looking(1), Looking(2)]), 5)",
    "itertools.islice(itertools.count(5), 7)",
    "itertools.islice(itertools.cycle([Looking(1), Looking(2)]), 5)",
    "itertools.cycle([1, 2, 3])",
    "itertools.cycle([Looking(1), Looking(2)])",
    "itertools.cycle(numbers())",
    "itertools.pairwise([1, 2, 3, 4])",
    "itertools.pairwise([Looking(1), Looking(2), Looking(3)])",
    "itertools.pairwise([Looking(1)])",
    "itertools.pairwise(numbers())",
    "itertools.count(3)",
    "itertools.count(2.5, 0.5)",
    "itertools.count(sys.maxsize - 2)",
    "itertools.repeat(7, 5)",
    "itertools.repeat(Looking(5), 5)",
    "itertools.zip_longest([1, 2, 3], 'a', range(2), fillvalue=None)",
    "itertools.zip_longest([Looking(1), Looking(2)], 'abc')",
    "enumerate(itertools.chain([Looking(1), Looking(2)], [Looking(3)]))",
    "zip(itertools.islice([Looking(1), Looking(2)], 2), range(5))",
    "enumerate(itertools.product([1, 2], [3, 4]))",
    "zip(itertools.count(), itertools.cycle([Looking(1)]), range(4))",
]


CALLS = "def calls():\n    for n in (6, 60, 60, 60, 3, 60, 60):\n        yield (n,), {}\n"
ENGINES = ("recording", "stepped", "native")


@pytest.mark.parametrize("made", MADE)
def test_as_in_eager(made: str) -> None:
    check_source(PROGRAM.replace("{made}", made), CALLS, engines=ENGINES)


@pytest.mark.parametrize(
    "made", ["itertools.pairwise(KEPT)", "itertools.islice(enumerate(KEPT), 9)", "itertools.islice(KEPT, 3)"]
)
def test_a_list_that_changes_meanwhile(made: str) -> None:
    source = PROGRAM.replace("{made}", made).replace(
        "total += 1\n", "total += 1; KEPT[total % len(KEPT)] = Looking(total)\n"
    )
    check_source(source, CALLS, engines=ENGINES)


def nexts(makes: list[object], n: int) -> object:
    out: list[object] = []
    for make in makes:
        it = make()  # type: ignore[operator]
        try:
            for _ in range(n):
                out.append((next(it), next(it, None)))
        except StopIteration as e:
            out.append(e.value)
    return out


def test_next() -> None:
    makes = [lambda: iter([1, 2, 3]), lambda: iter(range(5)), lambda: itertools.cycle("ab"), lambda: itertools.count(2)]
    makes += [lambda: iter({1: 2}.items()), lambda: zip([1, 2], "ab"), lambda: (i * i for i in range(7))]
    check(nexts, (makes, 30), (makes, 2), (makes[:2] * 9, 4))
