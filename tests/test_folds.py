"""Generator expressions that a builtin uses up: done over unboxed numbers, or as they are."""

import random
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dalsegno as ds


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        result = f(*args)
    except Exception as e:
        return type(e), str(e)
    return type(result), repr(result)


def same(f: Callable[..., Any], *args: Any) -> None:
    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        assert outcome(jitted, *args) == outcome(f, *args)
        ds.wait()


def sums(xs: list[Any]) -> Any:
    return sum(x * x for x in xs)


def least(xs: list[Any]) -> Any:
    return min(x - 1 for x in xs)


def most(xs: list[Any]) -> Any:
    return max(-x for x in xs)


def some(xs: list[Any]) -> Any:
    return any(x > 3 for x in xs), all(x > 3 for x in xs), any(not x for x in xs)


def lists(xs: list[Any]) -> Any:
    return list(x if x > 1 else -x for x in xs), tuple(x + 1 for x in xs if x != 2 and x < 100)


def shapes(xs: list[Any]) -> Any:
    n = len(xs)
    table = {(i, i + 1): i for i in range(n)}
    return (
        sum(xs[i] * i for i in range(n)),
        min((table[i, i + 1] + xs[i] for i in range(n)), default=None),
        sum(table[i, i + 1] for i in range(n)),
        max(abs(xs[-i]) for i in range(1, n)),
        sum(min(x, 3) // 2 + x % 3 - x**2 for x in xs),
        list(a * b for a in xs for b in xs if b),
        list(i for i in range(1000, 1003) for _ in xs),
    )


def sizes(xs: list[Any]) -> Any:
    return [sys.getsizeof(list(x + 1 for x in range(n))) for n in range(20)]


def side_by_side(xs: list[Any]) -> Any:
    ys = xs[::-1]
    return (
        sum(x * y for x, y in zip(xs, ys)),
        sum(x - y + k for x, y, k in zip(xs, ys, range(100), strict=False) if k != 1),
        max((i * x for i, x in enumerate(xs, 3)), default=None),
        list(i for i, x in enumerate(xs) if x),
        any(x == y for x, y in zip(xs, xs[1:])),
        sum(a * b for a, b in [(1, 2), (3.5, 4)]),
        list(p for p in zip(xs, ys)),
        tuple(i + j for (i, x), j in zip(enumerate(xs), ys)),
    )


def strictly(xs: list[Any]) -> Any:
    ys = [*xs[1:], *xs[:1]]
    return sum(x * y for x, y in zip(xs, ys, strict=True)), sum(x for x, y in zip(xs, ys[1:], strict=True))


def pairs(xs: list[Any]) -> Any:
    rows = [(x, x) for x in xs]
    return sum(a * b for a, b in rows), list(a for a, b, c in [(1, 2, 3), (4, 5, 6)]), sum(a for a, b in [(1, 2), (3,)])


def pairs_compared(xs: list[Any]) -> Any:
    return (
        list(x for i, x in enumerate(xs) if (i, x) != (0, 1)),
        sum(i for i, x in enumerate(xs) for y in xs if (x, i) == (y, 0)),
        any((x + i, i - 1) == (x, i - 1) for i, x in enumerate(xs)),
        all((x + 1, i * 2) != (i * 2, x + 1) for i, x in enumerate(xs)),
        list((x, 1) == (1.0, True) for x in xs),
        list(i for i, x in enumerate(xs) if (i, x) < (2, 3)),
        list(i for i, x in enumerate(xs) if (x, x, i) != (1, 1, 0)),
        list((1, x) == x for x in xs),
    )


CASES: list[list[Any]] = [
    [1, 2, 3, 4],
    [0.5, -0.0, 2.5, float("nan"), 1e308, -7.25],
    [-0.0],
    [1, 2.5, 3, 1e16, -1e16, 0.1],
    [],
    [2**62, 2**62, 2**63, 5],
    [2**53 + 1, 0.5, 2.0**53],
    [True, 2, False],
    [1, None, 2],
    ["a", 1],
    [1 + 2j, 3],
    [float("inf"), -float("inf"), 1.0],
]


@pytest.mark.parametrize(
    "f", [sums, least, most, some, lists, shapes, sizes, side_by_side, strictly, pairs, pairs_compared]
)
@pytest.mark.parametrize("xs", CASES, ids=str)
def test_as_eager(f: Callable[..., Any], xs: list[Any]) -> None:
    same(f, xs)


def test_what_changes_between_calls() -> None:
    jitted = ds.jit(store=False)(shapes)
    random.seed(3)
    for _ in range(60):
        xs = random.choice(
            [CASES[0], CASES[1], CASES[3], [random.random() for _ in range(5)], [random.randrange(9) for _ in range(4)]]
        )
        assert outcome(jitted, xs) == outcome(shapes, xs)
        ds.wait()


def test_items_are_the_objects_themselves() -> None:
    def f(xs: list[float]) -> Any:
        return min(x for x in xs), list(x for x in xs), max(max(x, 0.0) for x in xs)

    jitted = ds.jit(store=False)(f)
    xs = [1000.5, 20.25, 3000.75]
    for _ in range(6):
        low, items, high = jitted(xs)
        assert low is xs[1] and high is xs[2] and all(a is b for a, b in zip(items, xs, strict=True))


def test_functions_and_variables_around() -> None:
    def f(n: int, d: float) -> Any:
        def a(i: int, j: int) -> float:
            return 1.0 / ((i + j) * (i + j + 1) / 2 + i + d)

        u = [1.0] * n
        return [sum(a(i, j) * u[j] for j in range(n)) for i in range(n)]

    same(f, 8, 1)
    same(f, 8, 0)  # divides by zero


def test_what_is_seen_elsewhere() -> None:
    def f(xs: list[int]) -> Any:
        it = iter(xs)
        first = sum(x for x in it)
        g = (x for x in xs)
        return first, list(it), sum(g), list(g), next(g, "over")

    same(f, [1, 2, 3])


def test_side_effects_and_what_they_change() -> None:
    def f(xs: list[int], seen: list[int]) -> Any:
        return any(seen.append(x) or x > 2 for x in xs)  # type: ignore[func-returns-value]

    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        seen: list[int] = []
        assert jitted([1, 2, 3, 4], seen) and seen == [1, 2, 3]


def test_what_dies_with_the_items() -> None:
    class Thing:
        pass

    log: list[str] = []

    def make(n: int) -> list[Thing]:
        things = [Thing() for _ in range(n)]
        for t in things:
            weakref.finalize(t, log.append, "dead")
        return things

    def f(n: int) -> Any:
        count = sum(1 for t in make(n))
        return count, len(log)

    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        log.clear()
        expected = f(3)
        log.clear()
        assert jitted(3) == expected


def test_a_traceback_shows_the_expression() -> None:
    def f(xs: list[int]) -> float:
        return sum(1 / x for x in xs)

    def names(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
        try:
            function([1, 2, 0, 4])
        except ZeroDivisionError as e:
            at = e.__traceback__
            while at is not None:
                yield at.tb_frame.f_code.co_name, at.tb_lineno
                at = at.tb_next

    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        assert list(names(jitted))[1:] == list(names(f))[1:]


def test_what_dies_with_what_is_left() -> None:
    class Thing:
        def __del__(self) -> None:
            log.append("dead")

    log: list[str] = []

    def f() -> Any:
        found = any(x > 0 for x in [0, 1, Thing()]), len(log)
        return found, len(log)

    jitted = ds.jit(store=False)(f)
    for _ in range(6):
        log.clear()
        expected = f()
        log.clear()
        assert jitted() == expected


def test_another_function_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __call__(self, items: Any) -> Any:
            return list(items)

    monkeypatch.setattr("builtins.sum", Other())
    same(sums, [1, 2, 3])


def test_identity_of_ints() -> None:
    def f(xs: list[int]) -> Any:
        return list(abs(x) for x in xs), list(x % 2**40 for x in xs)

    jitted = ds.jit(store=False)(f)
    xs = [1000, 2000, -3000]
    for _ in range(6):
        assert [[a is b for a, b in zip(xs, ys, strict=True)] for ys in jitted(xs)] == [
            [a is b for a, b in zip(xs, ys, strict=True)] for ys in f(xs)
        ]


def test_what_only_a_zip_holds_dies_while_it_runs() -> None:
    class Loud:
        def __init__(self, log: list[Any], value: int) -> None:
            self.log, self.value = log, value

        def __del__(self) -> None:
            self.log.append(sys._getframe(1).f_code.co_name)

    def f(n: int) -> Any:
        log: list[Any] = []
        total = 0
        for k in range(n):
            total += sum(a for a, b in zip([1, 2, 3], [Loud(log, k)]))
            total += sum(i for i, x in enumerate([Loud(log, k), k]))
            total += sum(a * b for a, b in zip([k, 2], [3, k]))
        return total, log

    same(f, 7)


def by_key(xs: list[Any]) -> Any:
    n = len(xs)

    def distance(k: int) -> Any:
        return abs(xs[k] - 2) if n else 0

    return (
        max(range(n), key=lambda k: xs[k], default=None),
        min(range(n), key=distance) if n else 0,
        max(xs or [0], key=abs),
        min([(x, k) for k, x in enumerate(xs)] or [(1, 2)], key=lambda p: p[0]),
        max(["ab", "c", "def", "ghi"], key=len),
    )


def mapped(xs: list[Any]) -> Any:
    return (
        sum(map(lambda x: x * x, xs)),
        list(map(float, xs)),
        tuple(map(int, range(3))),
        max(map(abs, xs), default=None),
        any(map(lambda x: x > 3, xs)),
        list(map(lambda x, y: x + y, xs, xs)),
        sum(int(x) for x in xs),
    )


@pytest.mark.parametrize("f", [by_key, mapped])
@pytest.mark.parametrize("xs", CASES, ids=str)
def test_keys_and_maps_as_eager(f: Callable[..., Any], xs: list[Any]) -> None:
    same(f, xs)


def test_the_item_that_a_key_chooses_is_the_object_itself() -> None:
    def f(xs: list[float]) -> Any:
        return max(xs, key=lambda x: -x), min(xs, key=lambda x: -x)

    jitted = ds.jit(store=False)(f)
    xs = [1000.5, 20.25, 20.25, 3000.75]
    for _ in range(6):
        low, high = jitted(xs)
        assert low is xs[1] and high is xs[3]
        ds.wait()


def test_keys_that_see_and_change_things() -> None:
    seen: list[Any] = []

    def f(xs: list[Any]) -> Any:
        def key(x: Any) -> Any:
            seen.append(x)
            return -x

        return max(xs, key=key), sum(map(key, xs)), len(seen)

    for _ in range(2):
        seen.clear()
        jitted = ds.jit(store=False)(f)
        for k in range(6):
            assert jitted([1, 5, 2]) == (1, -8, 6 * (k + 1))
            ds.wait()
