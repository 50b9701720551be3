"""When a program has hung: judged by what the processor did for it, so that a loaded machine hangs nothing."""

from __future__ import annotations

import os
from pathlib import Path

_PROCESSOR_SECONDS = 40.0
_STILL_SECONDS = 240.0


class Patience:
    """Is told again and again what a process is at, and how much of the processor it has had."""

    def __init__(self, processor: float = _PROCESSOR_SECONDS, still: float = _STILL_SECONDS) -> None:
        self._most = (processor, still)
        self._at: object = None
        self._began = 0.0  # in seconds of the processor, when it came to what it is at
        self._moved = (0.0, 0.0)  # what the processor had done for it when it last did anything, and when that was

    def is_over(self, at: object, processor: float, now: float, waits: bool = False) -> bool:
        """True if the process has computed for too long at one thing; or has waited, doing nothing, longer than any
        program does. `waits`: for another process, which has a limit of its own."""
        if at != self._at:
            self._at, self._began, self._moved = at, processor, (processor, now)
        if processor > self._moved[0] or waits:
            self._moved = (processor, now)
        return processor - self._began > self._most[0] or now - self._moved[1] > self._most[1]


def processor_seconds(pid: int, otherwise: float) -> float:
    """What the process has had, with its children that have ended; `otherwise` where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return otherwise
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def own_processor_seconds() -> float:
    """For limits on work that a loaded machine shall not shorten."""
    return sum(os.times()[:4])
