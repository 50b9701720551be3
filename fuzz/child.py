"""What runs in the fuzzer's child processes, started by the fuzzer only:

cold FOLDER     one phase of a batch of programs (cold.py)
work JSON       generate and check programs, reporting on stdout (worker.py)
shrink FILE     make the program in a file smaller that ends its process (crash.py); the result takes its place
"""

from __future__ import annotations

import json
import sys

from .cold import run_batch
from .crash import shrink_crash
from .worker import WorkOrder, work


def main(kind: str, argument: str) -> int:
    if kind == "cold":
        run_batch(argument)
        return 0
    if kind == "work":
        work(WorkOrder(**json.loads(argument)))
        return 0
    shrink_crash(argument)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
