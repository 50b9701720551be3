"""Counters: of one function (`f.stats`) or of the process (`dalsegno.stats()`)."""

from __future__ import annotations

from collections.abc import Mapping

from ._backend import core

# Meaning of every counter, in the order in which they are shown.
COUNTERS: Mapping[str, str] = {
    "calls": "calls",
    "recordings": "traces recorded, side traces included",
    "replays": "calls that were replayed",
    "eager_calls": "calls that the interpreter ran: not traced, or stepped aside",
    "exits": "times a trace was left for the interpreter",
    "side_traces": "traces attached to exits",
    "guard_failures": "guards that did not hold",
    "steps": "steps that the replay machine ran",
    "kernel_launches": "launches of compiled kernels",
    "kernels_compiled": "kernels compiled by this process",
    "kernels_assembled": "kernels assembled by this process",
    "kernels_loaded": "kernels taken from the store",
    "traces_loaded": "traces taken from the store",
    "store_errors": "faults of the store, each of them treated as a miss",
    "loops_entered": "loops that were entered in the middle of a call",
}


class Stats(dict[str, int]):
    """Counters at one moment. `after - before` is what happened between."""

    def __sub__(self, before: Mapping[str, int]) -> Stats:
        return Stats({name: value - before.get(name, 0) for name, value in self.items()})

    def __repr__(self) -> str:
        return "\n".join(f"{name:<18}{value:>12,}  {COUNTERS.get(name, '')}".rstrip() for name, value in self.items())


def ordered(counters: Mapping[str, int]) -> Stats:
    """As COUNTERS lists them, then whatever else there is."""
    known = {name: counters[name] for name in COUNTERS if name in counters}
    return Stats({**known, **counters})


def stats() -> Stats:
    """The process's counters."""
    return ordered(core.stats())
