"""Times two ways of doing the same thing, interleaved, so that a busy machine disturbs both alike.

A sample is the mean time of a few calls in a row; a round takes several samples of each side by turns and keeps each
side's least. The ratio is that of the least times over all rounds; its spread is that of the rounds' own ratios.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SAMPLE = 2e-3  # seconds a sample should last at least, so that the clock's own cost does not count
Function = Callable[..., object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Comparison:
    """Seconds a call takes, eager and replayed: the least of each round."""

    eager: tuple[float, ...]
    replay: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast as eager replay is."""
        return min(self.eager) / min(self.replay)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and greatest ratio of a single round."""
        ratios = [e / r for e, r in zip(self.eager, self.replay, strict=True)]
        return min(ratios), max(ratios)


def compare(
    eager: Function,
    replay: Function,
    arguments: tuple[Any, ...] = (),
    rounds: int = 5,
    samples: int = 5,
    budget: float = 2.0,
    clock: Clock = time.perf_counter,
) -> Comparison:
    """Compares calls with these arguments; takes `budget` seconds, or one sample of each a round if that is longer."""
    timers = [_timer(function, arguments, clock) for function in (eager, replay)]
    loops = [_loops(timer) for timer in timers]
    a_pair = sum(timer.timeit(n) for timer, n in zip(timers, loops, strict=True))
    samples = max(1, min(samples, int(budget / (rounds * a_pair))))
    best: list[list[float]] = [[], []]
    for _ in range(rounds):
        times = [[timer.timeit(n) / n for timer, n in zip(timers, loops, strict=True)] for _ in range(samples)]
        for side in (0, 1):
            best[side].append(min(pair[side] for pair in times))
    return Comparison(tuple(best[0]), tuple(best[1]))


def _timer(function: Function, arguments: tuple[Any, ...], clock: Clock) -> timeit.Timer:
    """A loop with the call written out: `f(*arguments)` would cost more than some of what is measured."""
    names = {f"a{i}": value for i, value in enumerate(arguments)}
    return timeit.Timer(f"f({', '.join(names)})", timer=clock, globals={"f": function, **names})


def _loops(timer: timeit.Timer) -> int:
    """How many calls in a row make a sample."""
    loops = 1
    while (taken := timer.timeit(loops)) < SAMPLE:
        loops *= 2 if taken > SAMPLE / 10 else 8
    return loops


def duration(seconds: float) -> str:
    """120 ns, 4.56 us, 7.89 ms, 1.2 s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1000 * scale else f"{seconds / scale:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def same(one: Any, other: Any) -> bool:
    """Bit for bit, in the fuzzer's sense: types, layout and identities count too."""
    from dalsegno.fuzz.encode import Encoder

    return Encoder().encode(one) == Encoder().encode(other)
