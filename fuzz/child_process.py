"""How the fuzzer starts its own child processes (child.py)."""

from __future__ import annotations

import os
import sys


def child_command(*arguments: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", "-m", f"{__package__}.child", *arguments]


def child_environment() -> dict[str, str]:
    """This process's, with the same modules to be found."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path or os.getcwd() for path in sys.path))
