"""A mismatch as text: what differs, and a test that can be pasted and run."""

from __future__ import annotations

import dataclasses
import platform
import tempfile
from collections.abc import Iterable, Sequence

import numpy as np

from .cold import check_cold
from .engines import Engine, engine_named, load_backend
from .program import ERRSTATES, WARNING_MODES, InvalidProgram, Program, load
from .runner import Flaky, Mismatch, TooSlow, check


def versions() -> str:
    try:
        from importlib.metadata import version

        own = version("dalsegno")
    except Exception:  # run from the source tree
        own = "(source tree)"
    return f"dalsegno {own}, CPython {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"


def find_mismatches(program: Program, engines: Iterable[Engine], backend: str = "") -> list[Mismatch]:
    """What differs from eager. Raises InvalidProgram, Flaky or TooSlow where there is nothing to compare."""
    chosen = list(engines)
    with tempfile.TemporaryDirectory(prefix="dalsegno-fuzz-") as directory:
        loaded = load(program, directory)
        expected, mismatches = check(loaded, [e for e in chosen if not e.value.fresh_process], load_backend(backend))
        if Engine.COLD_PROCESS in chosen:
            mismatches += check_cold([program], [expected], backend).mismatches.values()
    return mismatches


def still_fails(program: Program, engine: Engine, backend: str = "", signature: tuple[str, ...] | None = None) -> bool:
    """Whether the program differs from eager; with a signature, in that way."""
    try:
        mismatches = find_mismatches(program, [engine], backend)
    except (InvalidProgram, Flaky, TooSlow):
        return False
    return bool(mismatches) and (signature is None or mismatches[0].signature() == signature)


def check_program(source: str, calls: str, *, engines: Sequence[str] = (), **options: object) -> None:
    """Runs a program through engines (all of them, if none is named); AssertionError says where one differs from
    eager."""
    program = Program(source.lstrip("\n"), calls.lstrip("\n"), **options)  # type: ignore[arg-type]
    if "jit" not in program.source:
        raise ValueError("nothing in the program is jitted: put @jit on a function")
    if program.warnings not in WARNING_MODES or program.errstate not in ERRSTATES:
        raise ValueError(f"warnings must be one of {WARNING_MODES}, errstate one of {ERRSTATES}")
    chosen = [engine_named(name) for name in engines] or list(Engine)
    mismatches = find_mismatches(program, chosen)
    assert not mismatches, describe_all(mismatches)


def describe(mismatch: Mismatch) -> str:
    return "\n".join(f"{mismatch.engine.label}: {difference}" for difference in mismatch.differences)


def describe_all(mismatches: Iterable[Mismatch]) -> str:
    return "\n".join(map(describe, mismatches))


def as_test(program: Program, engine: Engine, text: str, seed: int) -> str:
    """A pytest module. Its name in pytest is made of the engine and the seed."""
    options = "".join(
        f", {field.name}={getattr(program, field.name)!r}"
        for field in dataclasses.fields(Program)
        if field.name not in ("source", "calls") and getattr(program, field.name) != field.default
    )
    notes = "\n".join("# " + line for line in text.splitlines())
    return (
        f"# {versions()}; seed {seed}\n{notes}\n"
        f"from dalsegno.fuzz import check_program\n\n"
        f"SOURCE = {_quoted(program.source)}\n\nCALLS = {_quoted(program.calls)}\n\n\n"
        f"def test_{engine.label}_{seed}():\n"
        f"    check_program(SOURCE, CALLS, engines=[{engine.label!r}]{options})\n"
    )


def _quoted(text: str) -> str:
    if "\\" in text or "'''" in text:
        return repr(text)
    return f"'''\n{text}'''"
