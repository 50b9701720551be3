"""Makes a program smaller that kills its process: each candidate runs in a fork."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess

from .child_process import child_command, child_environment
from .engines import Engine, engine_named
from .program import Program
from .reduce import reduce_program
from .report import still_fails

_REDUCE_SECONDS = 40.0
_FORK_SECONDS = 10


def reduced_crash(program: Program, engine: Engine, directory: str, backend: str) -> Program:
    """The smaller program, or the same one where nothing smaller crashes."""
    path = os.path.join(directory, "crash.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"program": program.to_json(), "engine": engine.label, "backend": backend}, file)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            child_command("shrink", path),
            env=child_environment(),
            capture_output=True,
            timeout=3 * _REDUCE_SECONDS,
            check=False,
        )
    with open(path, encoding="utf-8") as file:
        return Program.from_json(json.load(file)["program"])


def shrink_crash(path: str) -> None:
    """The child's side. Nothing is run in this process itself, so every fork starts from the same clean state."""
    with open(path, encoding="utf-8") as file:
        order = json.load(file)
    engine, backend = engine_named(order["engine"]), order["backend"]
    smaller = reduce_program(
        Program.from_json(order["program"]), lambda p: _crashes_in_fork(p, engine, backend), _REDUCE_SECONDS
    )
    with open(path, "w", encoding="utf-8") as file:
        json.dump(order | {"program": smaller.to_json()}, file)


def _crashes_in_fork(program: Program, engine: Engine, backend: str) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(_FORK_SECONDS)
        try:
            still_fails(program, engine, backend)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) not in (signal.SIGALRM, signal.SIGKILL)
