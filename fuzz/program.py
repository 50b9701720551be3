"""A generated program as data: a module's source, and the calls made of it.

The source defines `entry`, decorated with `@jit`; `jit` is put into its namespace by the engine. The calls are source
too, so that every engine builds its own equal arguments, with the same layouts and the same sharing: a generator
function `calls` that yields

    (args, kwargs)     call `entry`; the result, or None where it raised, is sent back
    "SCALE = 3"        a statement run in the program's namespace between two calls
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from types import CodeType

WARNING_MODES = ("always", "default", "error", "ignore")
ERRSTATES = ("warn", "ignore", "raise")


@dataclasses.dataclass(frozen=True)
class Program:
    source: str
    calls: str
    warnings: str = "always"
    errstate: str = "warn"
    keep_results: bool = True  # False: a result is dropped before the next call, so that its memory may be used again

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, object]) -> Program:
        return cls(**fields)  # type: ignore[arg-type]


class InvalidProgram(Exception):
    """The program cannot be compiled or its module body raises: the generator or the reducer made nonsense."""


@dataclasses.dataclass(frozen=True)
class LoadedProgram:
    """A program whose source lies in a real file, so that tracebacks and warnings have lines."""

    program: Program
    path: str
    code: CodeType
    calls_code: CodeType


def load(program: Program, directory: str, name: str = "program") -> LoadedProgram:
    path = os.path.join(directory, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.source)
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            code = compile(program.source, path, "exec", dont_inherit=True)  # its annotations are no texts
            calls_code = compile(program.calls, os.path.join(directory, f"{name}_calls.py"), "exec")
    except (SyntaxError, ValueError) as error:
        raise InvalidProgram(str(error)) from error
    return LoadedProgram(program, path, code, calls_code)
