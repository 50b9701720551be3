"""The differential fuzzer: random programs, run eagerly, recorded, stepped, compiled and from the store of another
process, must agree to the bit. `run_cli` is `dalsegno fuzz`; `check_program` is what a printed failure calls;
`equivalent` compares one's own function."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .equivalent import Call, call, equivalent
from .report import check_program

__all__ = ["Call", "call", "check_program", "equivalent", "run_cli"]


def run_cli(argv: Sequence[str]) -> int:
    """`dalsegno fuzz ARGV`. Exit status 0: no mismatch; 1: mismatches were found; 2: bad usage."""
    try:
        import hypothesis  # noqa: F401  only what generates programs needs it
    except ImportError:
        print("dalsegno fuzz needs Hypothesis: pip install 'dalsegno[fuzz]'", file=sys.stderr)
        return 2
    from .cli import run

    return run(argv)
