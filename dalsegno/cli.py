"""The command line. Commands import what they need when they run; a user's mistake is one line and exit code 2."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .config import suggest

USAGE = """\
usage: dalsegno COMMAND [OPTIONS]      (the same as python -m dalsegno)

  demo [--output DIR] [--quick]                   real data through ordinary NumPy functions, eager against replay
  fuzz [--examples N] [--seed S] [...]            random programs: eager, recorded, replayed, compiled, in a new process
  explain MODULE:FUNCTION [--call EXPRESSION]     traces beside source, guards, segments, exits, and reasons
  store path|ls|show [NAME]|stats|verify|gc|clear what is kept between processes
  bench [--quick] [--only REGEX] [...]            times of ordinary programs against eager
  doctor                                          versions, CPU features, what is usable and what is wrong

dalsegno COMMAND --help says more."""


class UserError(Exception):
    """Its text is the one line that the user sees."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{self.prog}: {message}; try {self.prog} --help")


# Packages that are not there in a plain installation, and the extra that brings them.
_EXTRAS = {"matplotlib": "demo", "PIL": "demo", "hypothesis": "fuzz"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # paths go out as the bytes they are
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0 if words else 2
    if words[0] == "--version":
        from . import __version__

        print(f"dalsegno {__version__}")
        return 0
    try:
        return _run(words[0], words[1:])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f"dalsegno {words[0]} needs {error.name}: pip install 'dalsegno[{extra}]'", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone: not a fault. Nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(command: str, arguments: list[str]) -> int:
    if command not in COMMANDS:
        raise UserError(f"dalsegno: no command {command!r}{suggest(command, list(COMMANDS))}")
    return COMMANDS[command](arguments)


def _delegate(module: str) -> Callable[[list[str]], int]:
    """A command whose module has a run_cli of its own."""

    def run(arguments: list[str]) -> int:
        code: int = importlib.import_module(f"dalsegno.{module}").run_cli(arguments)
        return code

    return run


# ---- explain ---------------------------------------------------------------------------------------------------------


def _explain(arguments: list[str]) -> int:
    parser = Parser(prog="dalsegno explain", description="What became of a function, and why not more.")
    parser.add_argument(
        "function", metavar="MODULE:FUNCTION", help="a module (or file.py) and a function in it, jitted or not"
    )
    parser.add_argument(
        "--call",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="evaluate this in the module first, as in --call 'f(np.ones(3))'; may be given several times",
    )
    parser.add_argument("--ir", action="store_true", help="print the LLVM IR of native loops, too")
    parser.add_argument("--asm", action="store_true", help="print the assembly of native loops, too")
    options = parser.parse_args(arguments)
    from . import api
    from .explain import explain, native_texts

    module, owner, name, function = find_function(options.function)
    jitted = function if isinstance(function, api.JitFunction) else _jit(options.function, function)
    if jitted is not function:
        setattr(owner, name.rpartition(".")[2], jitted)  # so that the expressions call it
    for expression in options.call:
        _evaluate(expression, {"np": importlib.import_module("numpy"), **vars(module)})
    api.wait()
    explanation = explain(jitted)
    print(explanation)
    for shown, assembly in ((options.ir, False), (options.asm, True)):
        for text in native_texts(explanation, assembly) if shown else ():
            print(f"\n{text}")
    if not explanation.traces and not options.call:
        _print_stored(name)
        print(f"to record it here: dalsegno explain {options.function} --call '{name}(...)'")
    return 0


def _evaluate(expression: str, space: dict[str, Any]) -> None:
    try:
        eval(compile(expression, "--call", "eval"), space)
    except Exception as error:
        raise UserError(f"dalsegno explain: {expression!r} raised {type(error).__name__}: {error}") from None


def _jit(place: str, function: Any) -> Any:
    from . import api

    try:
        return api.jit(function)
    except TypeError as error:
        raise UserError(f"dalsegno explain: {place}: {error}") from None


def _print_stored(name: str) -> None:
    from .store_cli import stored_functions

    rows = [row for row in stored_functions() if str(row[0]).rpartition(".")[2] == name.rpartition(".")[2]]
    for row in rows:
        print(f"in the store: {row[0]}, {row[2]} traces; dalsegno store show {row[0]} prints them")
    if not rows:
        print("the store has nothing of it either")


def find_function(text: str) -> tuple[Any, Any, str, Any]:
    """Module, what has the function as an attribute, qualified name, function; UserError if there is no such thing."""
    where, colon, name = text.partition(":")
    if not colon or not where or not name:
        raise UserError(f"dalsegno: {text!r} is not MODULE:FUNCTION, as in package.module:function")
    sys.path.insert(0, os.getcwd())
    if where.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        where = os.path.basename(where).removesuffix(".py")
    try:
        module: Any = importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not (where == error.name or where.startswith(f"{error.name}.")):
            raise
        raise UserError(
            f"dalsegno: there is no module {error.name!r}; is it installed, or in this directory?"
        ) from None
    owner, found = None, module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [n for n in dir(found) if not n.startswith("_")]
            raise UserError(f"dalsegno: {where} has no function {name!r}{suggest(part, known[:20])}")
        owner, found = found, getattr(found, part)
    return module, owner, name, found


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "demo": _delegate("demo.main"),
    "fuzz": _delegate("fuzz"),
    "explain": _explain,
    "store": _delegate("store_cli"),
    "bench": _delegate("bench.main"),
    "doctor": _delegate("doctor"),
}
