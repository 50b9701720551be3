"""Memory as an oracle: a call must not need much more at once than an eager one.

Counted by tracemalloc, which knows Python's objects and NumPy's arrays, so that it does not depend on the machine's
mood. Only in programs of large arrays: what else replay keeps is small beside these."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_LARGE = ("LARGE", "WIDE")  # words for a program's large arrays (module_parts.py)
_MORE = 1.05
_SLACK = 128 << 10  # bytes: what recording makes; LARGE has 320,000


class Peaks:
    """For each call of a session, the most bytes at once that it took."""

    def __init__(self, source: str, measured: bool) -> None:
        self._on = measured and any(word in source for word in _LARGE)
        self.bytes: list[int] = []

    @contextmanager
    def call(self) -> Iterator[None]:
        if not self._on or tracemalloc.is_tracing():
            yield
            return
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            yield
            self.bytes.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()


def excess(expected: Sequence[int], actual: Sequence[int]) -> tuple[int, int, int] | None:
    """The first call that took more than it may: its number, what eager took, what it took."""
    for number, (eager, here) in enumerate(zip(expected, actual, strict=False)):
        if here > eager * _MORE + _SLACK:
            return number, eager, here
    return None
