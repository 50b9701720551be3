"""How the fuzzer starts its own child processes (child.py)."""

from __future__ import annotations

import os
import sys


def child_command(*arguments: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", "-m", f"{__package__}.child", *arguments]


def child_environment() -> dict[str, str]:
    """This process's, with the same modules to be found, and no threads of OpenBLAS: a signal that one of them gets is
    not seen by CPython's main thread as long as nothing but a loop runs there, so what waits for one hangs, plain, too.
    """
    found = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return dict(os.environ, PYTHONPATH=found, OPENBLAS_NUM_THREADS="1")
