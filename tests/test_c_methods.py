"""Methods of the standard library's C types that run no code of the user's (trace/recorder/facts.cc, kMethods)."""

from __future__ import annotations

import decimal
import functools
import heapq
import random
import sys
from collections import OrderedDict, deque
from types import MethodType
from typing import Any, ClassVar

import pytest

import dalsegno as ds
import numpy as np
from tests.support import check, reasons


def _walk(source, turns):
    total = 0.0
    for _ in range(turns):
        total += source.random() * source.getrandbits(7)
    return total


class _Loaded(random.Random):
    def random(self):
        return 0.25


def test_numbers_of_a_generator_come_in_order():
    check(_walk, (random.Random(3), 20), (random.Random(4), 20), (_Loaded(1), 5))


def test_a_generators_own_attribute_hides_its_method():
    hidden = random.Random(1)
    hidden.random = lambda: 2.0  # type: ignore[method-assign]
    check(_walk, (random.Random(3), 20), (hidden, 4), (random.Random(3), 20))


def test_the_modules_own_generator():
    def seeded(seed, turns):
        random.seed(seed)
        return [random.random() for _ in range(turns)], random.getrandbits(9)

    check(seeded, (1, 8), (2, 8), (1, 8))


def test_a_method_is_replaced_in_its_class():
    class Own(random.Random):
        pass

    jitted = ds.jit(store=False)(_walk)
    for _ in range(4):
        assert jitted(Own(3), 9) == _walk(Own(3), 9)
    Own.random = lambda self: 0.5  # type: ignore[method-assign]
    assert jitted(Own(3), 9) == _walk(Own(3), 9)


def _through_queue(queue, items):
    out = []
    for item in items:
        queue.append(item)
        queue.appendleft(-item)
        if len(queue) > 3:
            out.append((queue.popleft(), queue.pop()))
    while queue:
        out.append(queue.pop())
    return out


def test_queues_with_and_without_a_greatest_length():
    numbers = list(range(12))
    check(
        _through_queue,
        (deque(), numbers),
        (deque([1.5]), numbers),
        (deque(maxlen=3), numbers),
        (deque([4], 2), numbers),
        (deque(), []),
    )


class _Seen:
    """Says which line was running when it died."""

    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append(sys._getframe(1).f_lineno)


def test_what_a_full_queue_drops_sees_the_frames():
    def fill(queue, log, turns):
        kept = 0
        for i in range(turns):
            queue.append(_Seen(log))
            kept += i
        return kept, list(log)

    def run(function):
        log: list[int] = []
        return function(deque(maxlen=2), log, 6), function(deque(), [], 3), function(deque(maxlen=2), log, 6)

    jitted = ds.jit(store=False)(fill)
    for _ in range(4):
        assert run(jitted) == run(fill)


def test_an_empty_queue_raises_as_in_eager():
    def drain(queue):
        total = 0
        for _ in range(5):
            total += queue.popleft()
        return total

    check(drain, (deque(range(6)),), (deque(range(3)),), (deque(),), (deque(range(9)),))


class _Text(str):
    def __add__(self, other):
        raise AssertionError


@pytest.mark.parametrize("items", [["a", "b"], ("a", _Text("c")), ["one"], [], ["a", 3], ["\xe9", "\u20ac"]], ids=repr)
def test_texts_are_joined(items):
    def joined(separator, items):
        return separator.join(items), "".join(items)

    check(joined, ("-", ["x", "y"]), ("-", items), ("\u20ac", items))


def test_methods_of_texts():
    def looked_at(text):
        return [
            text.rfind("o"), text.count("o"), text.lstrip(), text.rstrip(), text.rsplit(" ", 1), text.splitlines(),
            text.partition(" "), text.rpartition(" "), text.center(20), text.ljust(20, "."), text.rjust(20),
            text.title(), text.capitalize(), text.swapcase(), text.casefold(), text.removeprefix("fo"),
            text.removesuffix("r"),
            text.isalpha(), text.isalnum(), text.isdecimal(), text.isnumeric(), text.isspace(), text.isupper(),
            text.islower(), text.index("o"),
        ]  # fmt: skip

    check(looked_at, (" foo bar ",), ("foo",), ("F\xf6o",), ("\u0663",), ("",))


def _counted(words, table, seen):
    for word in words:
        table.setdefault(word, []).append(len(table))
        seen.discard(word)
    return table, seen, table.pop(words[0]), table.pop("nobody", None)


def test_dicts_and_sets_change_quietly():
    words = "to be or not to be".split()
    check(_counted, (words, {}, {"or", "and"}), (words[::-1], {"be": [7]}, set()), (["a"], {}, {"a"}), ([], {}, set()))


def test_a_loop_of_such_calls_is_recorded_without_unknown_code():
    def play(source, queue, turns):
        for i in range(turns):
            queue.append(source.random())
            if i > 3:
                queue.popleft()
        return len(queue)

    jitted = ds.jit(store=False)(play)
    for _ in range(4):
        jitted(random.Random(2), deque(), 9)
    assert reasons(jitted) == {"none"}


class _Watching:
    """Compares, and notes where it was called from and what stood there."""

    seen: ClassVar[list[Any]] = []

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        frame = sys._getframe(1)
        self.seen.append((frame.f_lineno, {k: v for k, v in frame.f_locals.items() if isinstance(v, int)}))
        return self.value < other.value


def test_python_code_that_c_functions_run_sees_the_frames():
    def queue(values, loud):
        heap: list[Any] = []
        total = 0
        for turn, value in enumerate(values):
            heapq.heappush(heap, _Watching(value) if loud else value)
            total += turn * value
        first = sorted(heap, key=lambda item: len(_Watching.seen) * 0)[0]
        highest = max(heap)
        return total, first.value if loud else first, highest.value if loud else highest

    def outcome(function, *args):
        _Watching.seen.clear()
        return function(*args), list(_Watching.seen)

    jitted = ds.jit(store=False)(queue)
    for loud in (False, False, True, True, False, True):
        for values in ([3, 1, 2, 5, 4], [2, 2], [9, 8, 7]):
            assert outcome(jitted, values, loud) == outcome(queue, values, loud)


def test_a_frame_that_such_code_keeps_is_the_one():
    kept = []

    def keeps(item):
        kept.append(sys._getframe(1))
        return item

    def walk(n):
        total = 0
        for i in range(n):
            total += sum(map(keeps, (i, 1)))
        return total, [frame.f_locals["total"] for frame in kept], len({id(frame) for frame in kept})

    jitted = ds.jit(store=False)(walk)
    for n in (3, 4, 5, 6):
        kept.clear()
        told = jitted(n)
        kept.clear()
        assert told == walk(n)
    kept.clear()


# ---- types in C that are not recorded through: code of the user's that they run sees the variables


class _Key:
    """A key whose look-ups say what the loop's variables are."""

    def __init__(self, value: int, log: list[Any]) -> None:
        self.value, self.log = value, log

    def __hash__(self) -> int:
        self._look()
        return self.value

    def __eq__(self, other: object) -> bool:
        self._look()
        return isinstance(other, _Key) and self.value == other.value

    def _look(self) -> None:
        frame = sys._getframe(2)
        self.log.append((frame.f_lineno, frame.f_locals.get("i"), frame.f_locals.get("total")))


def _ordered(make: Any, n: int, log: list[Any]) -> Any:
    cache: OrderedDict[Any, int] = OrderedDict()
    total = 0.5
    for i in range(n):
        key = make(i % 3, log)
        if key in cache:
            cache.move_to_end(key)
            total += cache[key]
        else:
            cache[key] = i
        if len(cache) > 2:
            cache.popitem(last=False)
    return total, [repr(v) for v in cache.values()]


@pytest.mark.parametrize(
    "make", [_Key, lambda value, log: value, lambda value, log: [value]], ids=["seen", "ints", "lists"]
)
def test_ordered_dicts_of_any_keys(make):
    jitted = ds.jit(store=False)(_ordered)
    for n in (9, 9, 5, 9, 9):
        logs: list[list[Any]] = [[], []]
        outcomes = []
        for f, log in zip((jitted, _ordered), logs, strict=True):
            try:
                outcomes.append(f(make, n, log))
            except TypeError as e:
                outcomes.append(str(e))
        assert outcomes[0] == outcomes[1] and logs[0] == logs[1]
        ds.wait()


def test_cached_functions_see_the_callers_variables():
    log: list[Any] = []

    @functools.lru_cache
    def cached(x):
        frame = sys._getframe(1)
        log.append((frame.f_lineno, dict(frame.f_locals)))
        if x == 5:
            raise ValueError(x)
        return x * 2

    def f(n):
        total = 0
        for i in range(n):
            total += cached(i % 4 if n < 10 else i)
        return total

    jitted = ds.jit(store=False)(f)
    for n in (8, 8, 9, 12, 8):
        seen = []
        for function in (jitted, f):
            cached.cache_clear()
            log.clear()
            try:
                result = function(n)
            except ValueError as e:
                result = e.args
            seen.append(
                (result, [(line, {k: v for k, v in found.items() if k in ("i", "total", "n")}) for line, found in log])
            )
        assert seen[0] == seen[1]
        ds.wait()


def test_a_frame_kept_by_code_under_c_code_shows_later_variables():
    class Odd:
        def __eq__(self, other):
            kept.append(sys._getframe(1))
            return False

        __hash__ = None  # type: ignore[assignment]

    def f(queue, n):
        found = 0
        for i in range(n):
            found += (i in queue) + queue.count(i)
        return found

    jitted = ds.jit(store=False)(f)
    for _ in range(5):
        shown = []
        for function in (jitted, f):
            kept: list[Any] = []
            result = function(deque([1, Odd(), 2]), 4)
            shown.append((result, [frame.f_locals["i"] for frame in kept], [frame.f_lineno for frame in kept]))
        assert shown[0] == shown[1]
        ds.wait()


def test_methods_of_other_functions_bound_to_what_is_in_c():
    def f(call, n):
        here = 3
        for i in range(n):
            here += len(call())
        return here

    check(
        f,
        (MethodType(sorted, [3, 1]), 4),
        (MethodType(eval, "list(locals())"), 4),
        (MethodType(lambda text: list(sys._getframe(1).f_locals), "x"), 4),
    )


def test_decimals_and_generators_in_loops():
    def f(n, a, random):
        total = a
        for _ in range(n):
            total = total * a / 3 + 1
            if total > 2:
                total -= int(random.integers(0, 3))
        return total, random.normal()

    for a in (decimal.Decimal("1.5"), decimal.Decimal("NaN"), 2.5):
        jitted = ds.jit(store=False)(f)
        for _ in range(5):
            results = []
            for function in (jitted, f):
                try:
                    results.append(repr(function(12, a, np.random.default_rng(4))))
                except decimal.InvalidOperation as e:
                    results.append(repr(e))
            assert results[0] == results[1]
            ds.wait()


def _moving_maxima(values, width, make):
    best = make()
    out = []
    for i, x in enumerate(values):
        while best and values[best[-1]] <= x:
            best.pop()
        best.append(i)
        if best[0] <= i - width:
            best.popleft()
        out.append(values[best[0]])
    return out


class _Doubled(deque):
    def __getitem__(self, i):
        return super().__getitem__(i) if i else self.last()

    def last(self):
        return super().__getitem__(-1)


class _Queue(list):
    popleft = functools.partialmethod(list.pop, 0)


def test_items_of_deques_are_read_in_loops():
    values = [k * 7919 % 331 for k in range(400)]
    floats = [float(v) for v in values]
    turns = [(values, 10, deque)] * 8 + [
        (floats, 7, deque),
        (values, 3, _Doubled),
        (values, 3, _Queue),
        (values, 10, deque),
    ]
    check(_moving_maxima, *turns)


def _items_around(queue, positions):
    total = 0
    for k in positions:
        queue.rotate(1)
        total += queue[0] - queue[-1] + queue[k]
    return total


@pytest.mark.parametrize("at", [5, -6, 2**70, 1.0, True, np.int64(2), slice(1), None])
def test_positions_that_a_deque_does_not_have(at):
    positions = [0, 1, -1, 2, 3, -3] * 50

    def run(queue, positions):
        try:
            return _items_around(queue, positions), list(queue)
        except (IndexError, TypeError) as e:
            return type(e), str(e), list(queue)

    few = deque(range(5))
    for last in (positions, positions, positions, [*positions, at], positions, [*positions, at]):
        check(run, *[(deque(few), last)] * 3)


def test_an_empty_deques_item_is_an_error_in_its_line():
    def drain(queue):
        taken = []
        try:
            while True:
                taken.append(queue[0])
                queue.popleft()
        except IndexError as e:
            return taken, str(e), e.__traceback__.tb_lineno

    check(drain, *[(deque(range(n)),) for n in (300, 300, 0, 5, 300)])
    check(drain, (deque([1, 2.5, "a", None, [1]] * 40),), (deque(range(30)),))


def test_copies_of_plain_containers_are_quiet():
    def copies(rows, text):
        out = []
        for row in rows:
            taken = list(row), tuple(row), list(text), sorted(text), "".join(sorted(text)), tuple(range(len(row)))
            out.append(
                (taken, tuple(row) is row, len(list()) + len(tuple()) + len(dict()) + len(set()) + len(set(text)))
            )
        return out

    objects = [object(), [1], None]
    check(lambda n: len(copies([objects] * n, "b")), (300,), (300,))
    rows: list[Any] = [[1, 2], [3.5], [], ["a", None]] * 60
    check(
        copies, (rows, "bca"), (rows, ""), ([(1, 2)] * 250, "xy"), ([{1: 2}, {3}, frozenset("a"), range(3)] * 9, "zz")
    )
    check(copies, (rows, "bca"), ([iter([1, 2]), "ab", np.arange(3.0), deque([1])] * 3, "q"))


class _Watched(list):
    def __iter__(self):
        frame = sys._getframe(1)
        if frame.f_code.co_name == "copies":
            frame.f_locals["seen"].append((len(self), frame.f_locals["total"]))
        return super().__iter__()


def test_copies_of_a_subclass_run_its_code():
    def copies(rows):
        seen: list[Any] = []
        total = 0
        for row in rows:
            total += len(list(row)) + len(tuple(row))
        return total, seen

    check(copies, ([[1, 2]] * 300,), ([_Watched([1, 2, 3])] * 20,), ([[1], _Watched([1])] * 150,))
    check(copies, ([[1]] * 300 + [3],), ([[1]] * 300,))
