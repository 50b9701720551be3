"""Items of lists and tuples: read, stored, appended, popped, iterated over by typed steps; what these leave alone."""

from __future__ import annotations

import gc
import sys

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, settles


def histogram(values, n):
    counts = [0] * n
    for x in values:
        counts[x] += 1
    return counts


def swap_sort(values):
    values = list(values)
    for i in range(len(values)):
        for j in range(len(values) - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return values


def products(a, b):
    c = [[0.0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for j in range(len(b[0])):
            s = 0.0
            for k in range(len(b)):
                s += a[i][k] * b[k][j]
            c[i][j] = s
    return c


def stacked(n):
    stack, total = [], 0
    for i in range(n):
        stack.append(i * 1000)
        if i % 3 == 2:
            total += stack.pop()
    while stack:
        total += stack.pop()
    return total


def test_loops_over_lists_stay_in_the_machine():
    rows = [[float(i * j) + 0.5 for i in range(6)] for j in range(6)]
    for function, made in (
        (histogram, ([3, 1, 2, 3, 0, 1] * 9, 4)),
        (swap_sort, ([5000, 3, 2.5 * 2, 70000, 1, 9, 2**40],)),
        (products, (rows, rows)),
        (stacked, (50,)),
    ):
        check(function, made)
    settles(histogram, ([3, 1, 2, 3, 0, 1] * 9, 4))
    settles(stacked, (50,))
    settles(products, (rows, rows))


@pytest.mark.parametrize(
    "values", [[1, 4, 2], [1, -1, -4], [1, -5, 0], [True, False, True], [np.int64(2), np.uint8(1)], [1, 2.0]]
)
def test_indices_out_of_bounds_negative_and_of_other_types(values):
    class Whole(int):
        pass

    class Index:
        def __index__(self):
            return 2

    check(histogram, ([0, 1, 3], 4), (values, 4), ([0, 1, Whole(2), 3], 4), ([1, Index(), 1], 4), ([1, 2**70], 4))


def reads(a, at):
    total = 0
    for i in at:
        x = a[i]
        total = total + x
    return total, x


def test_an_item_of_another_type_in_the_middle():
    class Number(int):
        def __radd__(self, other):
            return int(other) + 100

    at = list(range(8))
    for odd in (2.5, True, 2**70, "text", None, np.float64(3), np.int64(3), Number(7), [1], 1 + 2j):
        for plain in (1, 1000, 0.5):
            check(
                reads,
                ([plain] * 8, at),
                ([plain] * 5 + [odd] + [plain] * 2, at),
                ((plain,) * 8, at),
                ((odd, plain) * 4, at),
            )


def test_subclasses_and_other_sequences_are_asked():
    class Loud(list):
        def __getitem__(self, i):
            return list.__getitem__(self, i) + 1

        def __setitem__(self, i, value):
            list.__setitem__(self, i, value * 2)

    def both(a, n):
        for i in range(n):
            a[i] = a[i] + 1
        return a

    def truths(a, n):
        for i in range(n):
            a[i > 1] = i + 5
        return a, str(a)

    class Told(list):
        def __setitem__(self, i, value):
            self.append(repr(i))

    check(truths, ({}, 4), (Told(), 3), ([0, 1], 4), ({True: 2, 0: 1}, 3))
    check(
        both,
        ([1, 2, 3, 4], 4),
        (Loud([1, 2, 3, 4]), 4),
        (np.arange(4), 4),
        ({0: 1, 1: 2, 2: 3, 3: 4}, 4),
        ((1, 2), 2),
        (bytearray(4), 4),
    )


def same_objects(a, n):
    kept = []
    for i in range(n):
        x = a[i]
        y = a[i] if i % 2 else x
        kept.append(x)
        a[i - 1] = x
        kept.append((x is y, x is kept[-1], a[i - 1] is x, min(x, a[i]) is x, max(min(x, 7), 3) is x))
    last = a.pop()
    return kept, last is kept[-2]


def test_an_item_is_one_object():
    check(
        same_objects,
        ([1000, 2000, 3000, 4000], 4),
        ([1.5, 2.5, 3.5, 4.5], 4),
        ([1, 2, 3, 4], 4),
        ([2**40, 2**41, 5.0, 6], 4),
    )


def largest(a, b):
    for i in range(len(a)):
        a[i] = max(a[i], b[i])
        b[i] = max(a[i] * 1, b[i]) % 2**61
        b[i] = abs(b[i])
    return [x is y for x in a for y in b], a, b


def test_what_is_stored_is_the_argument_that_was_chosen():
    check(largest, ([1.5, 7.5, 2.5], [2.5, 3.5, 4.5]), ([1000, 3000, 2**59], [2000, 2500, 2**60]))


def while_it_changes(a, n):
    seen = []
    for x in a:
        seen.append(x)
        if len(a) < n:
            a.append(x + 1)
        elif x % 2:
            a.pop()
    return seen, a


def emptied(a):
    seen = []
    for x in a:
        seen.append(x)
        a.clear()
    it = iter(a)
    return seen, list(it)


def test_a_list_that_changes_while_it_is_iterated_over():
    check(while_it_changes, ([1, 2, 3], 12), ([1000], 40), ([], 3), ([1.5], 9), ([3, 5, 7, 9, 11], 2))
    check(emptied, ([1, 2, 3],), ([],))


def test_popping_an_empty_list_and_memory_given_back():
    def down(a, n):
        sizes = []
        for _ in range(n):
            sizes.append(a.pop())
        return sizes, a.__sizeof__()

    check(
        down,
        (list(range(1000, 1100)), 60),
        ([1000, 2000], 2),
        ([1, 2.5, 3], 3),
        ([1], 5),
        ([], 1),
        (list(range(300)), 299),
    )


DYING = """
    import sys

    LOG = []
    STEP = 1

    class Dying:
        def __init__(self, a, how):
            self.a, self.how = a, how

        def __del__(self):
            global STEP
            frame = sys._getframe(1)
            if frame.f_code.co_name in ("run", "boxed"):
                LOG.append((frame.f_lineno, frame.f_locals["i"]))
            if self.how == "pop":
                self.a.pop()
            if self.how == "fill":
                self.a[:] = [7] * len(self.a)
            if self.how == "name":
                STEP += 1

    def step():
        return STEP

    @jit
    def run(a, n):
        for i in range(n):
            x = a[i]
            a[i] = i * 1000
            x = None
            a[i - 1] = a[i] + step()
        return list(a), LOG[-9:]

    @jit
    def boxed(a, n):
        total = 2**62
        for i in range(n):
            total = total + 2**62
            a[i % 6] = i * 1000
        return list(a), LOG[-9:]

    def entry(n, at, how):
        a = [1, 2, 3, 4, 5, 6]
        if at >= 0:
            a[at] = Dying(a, how)
        return run(a, n), boxed([Dying([0, 0], how), *a], n)
"""


@pytest.mark.parametrize("how", ["pop", "fill", "name", "log"])
def test_a_replaced_item_runs_code(how):
    check_source(
        DYING,
        f"""
        def calls():
            for k in range(9):
                yield (5, k % 5 if k > 3 else -1, {how!r}), {{}}
        """,
    )


def test_a_borrowed_item_survives_what_leaves():
    """The item is the list's alone until the guard on the other operand leaves: the interpreter may then drop it."""

    class Emptying:
        def __init__(self, a):
            self.a = a

        def __radd__(self, other):
            self.a.clear()
            gc.collect()
            return other

    def add(a, b, n):
        out = []
        for i in range(n):
            out.append(a[i % len(a)] + b[i])
        return out

    jitted = ds.jit(store=False)(add)
    for _ in range(6):
        for plain in (10.5, 123456):
            a = [plain + k for k in range(4)]
            b = [1, 2, Emptying(a)]
            expected = add(list(a), [1, 2, 0], 3)
            assert jitted(a, b, 3) == expected
            assert a == []


def test_references_are_kept_even():
    values = [object() for _ in range(4)] + [12345.5, 99999]
    before = [sys.getrefcount(v) for v in values]

    def run(a, n):
        kept = []
        for i in range(n):
            kept.append(a[i])
            a[i], a[i - 1] = a[i - 1], a[i]
            x = a[i] is a[i - 1]
        while kept:
            x = kept.pop()
        return x is a[0]

    jitted = ds.jit(store=False)(run)
    for _ in range(12):
        jitted(values, 6)
        jitted(list(values), 5)
    assert sorted(sys.getrefcount(v) for v in values) == sorted(before)


def test_lists_that_trade_places_around_the_back_edge():
    def rows(width, n):
        old, new = [1.5] * width, (0,) * width
        for i in range(n):
            new = [0] * width
            for j in range(width):
                new[j] = old[j] + old[j - 1] * i
            old, new = new, old
        return old, new

    check(rows, (4, 6), (3, 9), (1, 1), (2, 0))
    settles(rows, (4, 9))


def test_a_loop_entered_with_other_types_than_it_was_recorded_with():
    def total(a, n):
        s = 0
        for i in range(n):
            s = s + a[i]
        return s

    for values in ([1, 2, 3], (1, 2, 3), np.arange(3), {0: 1, 1: 5, 2: 7}, [1.5, 2, 3], "abc", range(3), (2.5, 1, 1)):
        check(total, ([1, 2, 3], 3), (values, 3), ((4, 5, 6), 3), ([7, 8], 3))


@pytest.mark.parametrize("first", [[0.5, 1, 2, 3], [5000] * 8, [1] * 8])
def test_a_side_trace_unboxes_what_its_parent_only_proved(first):
    """The parent appends the loop's variable as an object; the side trace uses it as an index."""

    def mixed(a, d, n):
        for i, _ in enumerate(a):
            last = d[0].pop()
            a.append(i)
            if not last:
                d[0][0] = a[i + 1 % len(a)]
        return last

    rows = [[1000, 0, 3, 2, 1000, 2, 2, 1], [5000, 2]]
    check(mixed, (first, rows, 4), ([-0.0, 0, 1000, 1, 1000, 123456, 3.5, 1.5], rows, 4))


def test_a_set_that_is_added_to():
    class Equal:
        def __hash__(self):
            return hash(3)

        def __eq__(self, other):
            return other == 3

    def distinct(values, seen):
        again = 0
        for x in values:
            if x in seen:
                again += 1
            seen.add(x)
        return again, len(seen)

    check(
        distinct,
        ([1, 2, 1, 3.5, 2.0], set()),
        (["a", "b", "a"], {"b"}),
        ([1, [2]], set()),
        ([3, 4, 3], {Equal()}),
        ([Equal(), 3], set()),
    )


def test_iterators_that_are_quiet_and_are_not_any_more_the_same():
    class Counting:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            self.n -= 1
            if self.n < 0:
                raise StopIteration
            return self.n

    def pairs(a, b):
        seen = []
        for i, x in enumerate(a):
            for y, z in zip(a, b):
                seen.append((i, x, y, z))
        return seen

    def restarted(it, other, n):
        seen = []
        for k in range(n):
            for x in it:
                seen.append(x)
                if k % 2:
                    it = other
                    break
            it, other = other, it
        return seen

    check(pairs, ([1, 2], "ab"), ([1.5, 2], Counting(3)), ((1, 2, 3), [4, 5]), ([1, 2], {3: 4}), ([], []), ([1], 5))
    check(restarted, (enumerate([1, 2, 3]), "abc", 5), ("abc", enumerate("xyz"), 5), (Counting(9), reversed([1, 2]), 6))
