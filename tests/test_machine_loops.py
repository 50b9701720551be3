"""Loop traces in the replay machine: unboxed around the back edge, left in time, interruptible."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import dalsegno as ds
from tests.machine_traces import ADD, EQ, EXIT, LOOP, LT, MOD, MUL, NONE, WRITES, TraceBuilder, machine, tree

RangeIterator = type(iter(range(0)))


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    """What is tested here is the machine's steps."""
    with ds.config(native=False):
        yield


def counting_loop(carry_type: type, operator: int = ADD) -> Any:
    """while i < n: acc = acc <op> i; i += 1, entered with (n, i, acc); left at its header, offset 9."""
    root = TraceBuilder(params=3)
    root.jump(1, root.snap(root.params, (), 9))
    loop = TraceBuilder(number=1, anchor=LOOP, params=3)
    n, i, acc = loop.params
    loop.entry(loop.frame([n, i, acc], (), 9))
    here = loop.snap([n, i, acc], (), 9)
    for value, type_ in ((i, int), (n, int), (acc, carry_type)):
        loop.type(value, type_, here)
    more = loop.compare(LT, i, n, here)
    loop.op("guard_true", more, effects=NONE, snapshot=here)
    total = loop.binary(operator, acc, i, here)
    loop.release(acc, more)
    after = loop.snap([n, i, total], (), 11)
    following = loop.binary(ADD, i, loop.const(1), after)
    loop.release(i)
    loop.jump(1, loop.snap([n, following, total], (), 9))
    return tree(root, loop)


def state(out: dict[str, Any]) -> list[Any]:
    return list(out["frames"][-1]["locals"])


def test_runs_to_the_end() -> None:
    out = counting_loop(int).run(0, (1000, 0, 5))
    assert (out["trace"], state(out)) == (1, [1000, 1000, 5 + sum(range(1000))])


def test_floats() -> None:
    acc = 0.5
    for i in range(100):
        acc += i
    assert state(counting_loop(float).run(0, (100, 0, 0.5))) == [100, 100, acc]


def test_not_once() -> None:
    start = object()
    assert state(counting_loop(int).run(0, (0, 0, 7))) == [0, 0, 7]
    out = counting_loop(int).run(0, (5, 0, start))
    assert out["trace"] == 0  # the jump does not fit: left before the loop, values as they were
    assert state(out)[2] is start


def test_a_value_that_does_not_fit_leaves_with_the_state_before_its_instruction() -> None:
    out = counting_loop(int, MUL).run(0, (100, 1, 1))
    n, i, acc = state(out)
    product = 1
    for k in range(1, i):
        product *= k
    assert (n, acc) == (100, product)
    assert out["frames"][0]["offset"] == 9
    assert product * i >= 2**63


def test_side_trace_of_an_overflow_goes_on_with_large_ints() -> None:
    made = counting_loop(int, MUL)
    out = made.run(0, (30, 1, 1))
    side = TraceBuilder(number=2, anchor=EXIT, params=3, parent=(1, out["op"], 0))
    n, i, acc = side.params
    side.entry(side.frame([n, i, acc], (), 9))
    here = side.snap([n, i, acc], (), 9)
    side.type(i, int, here)
    side.type(acc, int, here)
    side.ret(side.binary(MUL, acc, i, here))
    made.add(side.data)
    _, i_at, acc_at = state(out)
    assert made.run(0, (30, 1, 1))["value"] == i_at * acc_at >= 2**63


def range_loop(items: object, element: type) -> Any:
    """for x in items: acc = acc + x, entered with (iterator, acc, x); exhausted at offset 20."""
    root = TraceBuilder(params=3)
    root.jump(1, root.snap(root.params[1:], [root.params[0]], 9))
    loop = TraceBuilder(number=1, anchor=LOOP, params=3)
    iterator, acc, old = loop.params
    loop.entry(loop.frame([acc, old], [iterator], 9))
    here = loop.snap([acc, old], [iterator], 9)
    loop.type(iterator, type(items), here)
    end = loop.snap([acc, old], (), 20)
    item = loop.op("iter_next", iterator, imm=1, snapshot=here, exit_snapshot=end, effects=WRITES)
    loop.release(old)
    body = loop.snap([acc, item], [iterator], 12)
    loop.type(acc, element, body)
    loop.type(item, element, body)
    total = loop.binary(ADD, acc, item, body)
    loop.release(acc)
    loop.jump(1, loop.snap([total, item], [iterator], 9))
    return tree(root, loop)


def test_range() -> None:
    out = range_loop(iter(range(3)), int).run(0, (iter(range(10, 5000, 7)), 0, -1))
    assert (out["which"], state(out)) == (1, [sum(range(10, 5000, 7)), list(range(10, 5000, 7))[-1]])


def test_list_items_keep_their_identity() -> None:
    items = [float(k) + 0.5 for k in range(50)]
    out = range_loop(iter([]), float).run(0, (iter(items), 0.0, 0.25))
    assert state(out)[0] == sum(items)
    assert out["which"] == 1
    mixed = [1.5, 2.5, "x", 3.5]
    out = range_loop(iter([]), float).run(0, (iter(mixed), 0.0, 0.25))
    assert state(out)[0] == 4.0
    assert state(out)[1] is mixed[1]  # an item of another type is not taken: the interpreter does the instruction
    assert next(out["frames"][0]["stack"][0]) == "x"


def test_large_items_of_a_range() -> None:
    start = 2**63 - 3
    out = range_loop(iter(range(3)), int).run(0, (iter(range(start, start + 2)), 0, -1))
    assert state(out)[0] == start
    out = range_loop(iter(range(3)), int).run(0, (iter(range(2**70, 2**70 + 2)), 0, -1))
    assert state(out) == [0, -1]  # a longrange_iterator fails the guard


def test_exception_in_an_iterator() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise KeyError("from the iterator")

    out = range_loop(items(), int).run(0, (items(), 0, -1))
    assert isinstance(out["raised"], KeyError)
    assert state(out) == [3, 2]
    traceback: Any = out["raised"].__traceback__
    assert traceback.tb_frame.f_code is items.__code__


def branching() -> Any:
    """counting_loop with `if i % 3 == 0` around the sum; the other branch is a side trace that jumps back."""
    root = TraceBuilder(params=3)
    root.jump(1, root.snap(root.params, (), 9))
    loop = TraceBuilder(number=1, anchor=LOOP, params=3)
    n, i, acc = loop.params
    loop.entry(loop.frame([n, i, acc], (), 9))
    here = loop.snap([n, i, acc], (), 9)
    for value in (i, n, acc):
        loop.type(value, int, here)
    more = loop.compare(LT, i, n, here)
    loop.op("guard_true", more, effects=NONE, snapshot=here)
    rest = loop.binary(MOD, i, loop.const(3), here)
    third = loop.compare(EQ, rest, loop.const(0), here)
    loop.release(rest)
    branch = loop.op("guard_true", third, effects=NONE, snapshot=loop.snap([n, i, acc], (), 15))
    total = loop.binary(ADD, acc, i, here)
    loop.release(acc)
    following = loop.binary(ADD, i, loop.const(1), loop.snap([n, i, total], (), 17))
    loop.release(i)
    loop.jump(1, loop.snap([n, following, total], (), 9))
    side = TraceBuilder(number=2, anchor=EXIT, params=3, parent=(1, branch, 0))
    n, i, acc = side.params
    side.entry(side.frame([n, i, acc], (), 15))
    here = side.snap([n, i, acc], (), 15)
    following = side.binary(ADD, i, side.const(1), here)
    side.release(i)
    side.jump(1, side.snap([n, following, acc], (), 9))
    return tree(root, loop, side)


def test_side_trace_in_a_loop() -> None:
    made = branching()
    out = made.run(0, (5000, 0, 0))
    assert state(out) == [5000, 5000, sum(i for i in range(5000) if i % 3 == 0)]
    assert [e["count"] for e in made.exits(1) if e["side"] == 2] == [0]


def test_loop_that_calls() -> None:
    """A carried object, and a call that sees the loop's frame."""
    seen: list[Any] = []

    def call(value: int, old: object) -> list[int]:
        seen.append(old)
        return [value]

    root = TraceBuilder(params=2)
    root.jump(1, root.snap(root.params, (), 9))
    loop = TraceBuilder(number=1, anchor=LOOP, params=2)
    i, last = loop.params
    loop.entry(loop.frame([i, last], (), 9))
    here = loop.snap([i, last], (), 9)
    loop.type(i, int, here)
    more = loop.compare(LT, i, loop.const(50), here)
    loop.op("guard_true", more, effects=NONE, snapshot=here)
    new = loop.op("call", loop.const(call), i, last, imm=2, snapshot=here)
    loop.release(last)
    following = loop.binary(ADD, i, loop.const(1), loop.snap([i, new], (), 12))
    loop.release(i)
    loop.jump(1, loop.snap([following, new], (), 9))
    first: list[int] = []
    out = tree(root, loop).run(0, (0, first))
    assert state(out) == [50, [49]]
    assert seen[0] is first
    assert seen[1:] == [[k] for k in range(49)]


def test_a_loop_can_be_interrupted() -> None:
    made = counting_loop(int)

    def interrupt(*_: object) -> None:
        raise TimeoutError("enough")

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        out = made.run(0, (10**12, 0, 0))
    finally:
        signal.signal(signal.SIGALRM, old)
    assert isinstance(out["raised"], TimeoutError)
    n, i, acc = state(out)
    assert (n, acc) == (10**12, i * (i - 1) // 2)


def test_other_threads_run_meanwhile() -> None:
    made = counting_loop(int)
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    made.run(0, (20_000_000, 0, 0))
    end = time.monotonic()
    stop.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) > 3


def test_a_jump_to_a_trace_that_is_not_there_leaves() -> None:
    root = TraceBuilder(params=1)
    root.jump(7, root.snap(root.params, (), 4))
    out = tree(root).run(0, (5,))
    assert (out["outcome"], state(out)) == ("left", [5])


def test_steps_are_counted() -> None:
    before = machine.counters()
    counting_loop(int).run(0, (1000, 0, 0))
    after = machine.counters()
    assert 3000 < after["steps"] - before["steps"] < 10000
    assert after["exits"] - before["exits"] == 1
    assert after["guard_failures"] - before["guard_failures"] == 1


@pytest.mark.parametrize("value", [1.5, True, None, 2**80])
def test_another_type_at_the_back_edge(value: object) -> None:
    """A side trace hands the loop what it was not recorded for: the jump is left, with the value as it is."""
    made = counting_loop(int)
    out = made.run(0, (3, 0, 0))
    side = TraceBuilder(number=2, anchor=EXIT, params=3, parent=(1, out["op"], 0))
    n, i, acc = side.params
    side.entry(side.frame([n, i, acc], (), 9))
    side.release(acc)
    side.jump(1, side.snap([n, i, side.const(value)], (), 9))
    made.add(side.data)
    out = made.run(0, (3, 0, 0))
    assert (out["trace"], state(out)) == (2, [3, 3, value])
    assert state(out)[2] is value
