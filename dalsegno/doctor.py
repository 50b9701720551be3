"""`dalsegno doctor`: versions, CPU features, the store, what works when tried, what is wrong (then exit code 1)."""

from __future__ import annotations

import importlib
import os
import platform
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One line of the report. `wrong` says what to do about it; "" where all is well."""

    name: str
    text: str
    wrong: str = ""

    def __str__(self) -> str:
        return f"{'WRONG' if self.wrong else 'ok':<6} {self.name:<16} {self.text}" + (
            f"; {self.wrong}" if self.wrong else ""
        )


def run_cli(arguments: list[str]) -> int:
    from .cli import Parser

    Parser(prog="dalsegno doctor", description=__doc__).parse_args(arguments)
    findings = []
    for check in _CHECKS:
        for finding in check():
            findings.append(finding)
            print(finding, flush=True)
    wrong = [finding.name for finding in findings if finding.wrong]
    print(f"\nwrong: {', '.join(wrong)}" if wrong else "\nnothing is wrong")
    return 1 if wrong else 0


# ---- versions --------------------------------------------------------------------------------------------------------


def _python() -> Iterator[Finding]:
    from ._backend import PYTHONS, why_unsupported

    supported = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    have = f"{platform.python_implementation()} {platform.python_version()} (supported: {supported})"
    yield Finding("Python", have, why_unsupported)
    yield Finding("machine", f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores")


# Package, what needs it, and the extra that brings it; the first three are always installed.
_PACKAGES = (
    ("numpy", "everything", ""),
    ("halide", "compiling kernels", ""),
    ("llvmlite", "loading kernels", ""),
    ("hypothesis", "dalsegno fuzz", "fuzz"),
    ("matplotlib", "dalsegno demo", "demo"),
)


def _packages() -> Iterator[Finding]:
    for name, needed_for, extra in _PACKAGES:
        try:
            yield Finding(name, f"{metadata.version(name)} ({needed_for})")
        except metadata.PackageNotFoundError:
            if extra:
                yield Finding(name, f"not installed; {needed_for} needs it: pip install 'dalsegno[{extra}]'")
            else:
                yield Finding(name, "not installed", f"{needed_for} needs it: {_how_to_install(name)}")


def _how_to_install(name: str) -> str:
    """Halide's wheels hold the same library for all versions of Python, but there is none for 3.14."""
    running = sys.version_info[:2]
    if name != "halide" or running < (3, 14):
        return f"pip install {name}"
    place = Path(__file__).parent.parent
    return f"pip install --no-deps --only-binary=:all: --python-version 3.13 --target {place} 'halide>=21,<22'"


def _core() -> Iterator[Finding]:
    from ._backend import core

    for name, version in core.versions().items():
        yield Finding(f"core: {name}", str(version))
    yield Finding("CPU features", core.cpu_features() or "none beyond the baseline")
    folder = Path(__file__).parent / "lib"
    own = folder / f"libdalsegno_rt{sysconfig.get_config_var('EXT_SUFFIX')}"
    library = own if own.exists() else folder / "libdalsegno_rt.so"
    yield Finding(
        "kernel runtime", str(library), "" if library.exists() else "is missing: build or install dalsegno again"
    )
    try:
        importlib.import_module("dalsegno._halide")
        yield Finding("compiler", "dalsegno._halide can be loaded")
    except ImportError as error:
        yield Finding(
            "compiler", str(error), "kernels can't be compiled, array operations stay NumPy's: install dalsegno again"
        )


# ---- surroundings ----------------------------------------------------------------------------------------------------


def _settings() -> Iterator[Finding]:
    from . import config
    from .config import SETTINGS

    changed = [f"{name}={value!r}" for name, value in config.to_dict().items() if value != SETTINGS[name].default]
    wrong = "everything runs eagerly: unset DALSEGNO_DISABLE" if config.disable else ""
    yield Finding("settings", ", ".join(changed) or "all at their defaults", wrong)
    tools = [
        name for name, active in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())) if active
    ]
    if tools:
        yield Finding(
            "tools", f"{' and '.join(tools)} active", "threads that are watched run eagerly: switch the tool off"
        )


def _store() -> Iterator[Finding]:
    from . import store

    path = store.path
    if not path:
        yield Finding(
            "store", "none", "nothing is kept between processes: set DALSEGNO_STORE to a file that can be written"
        )
        return
    try:
        version = store.query("PRAGMA user_version")[0][0]
        sqlite = store.query("SELECT sqlite_version()")[0][0]
    except ValueError as error:
        remedy = _place(Path(path)) or "nothing is kept between processes: set DALSEGNO_STORE to another file"
        yield Finding("store", store.why() or f"{path}: {error}", remedy)
        return
    yield Finding("store", path, _place(Path(path)))
    yield Finding("SQLite", sqlite)
    counts = ", ".join(f"{key} {value}" for key, value in store.stats().items())
    yield Finding("store contents", f"{counts}; schema {version}")


def _place(path: Path) -> str:
    """What is wrong with where the store lies, or ""."""
    if not path.parent.is_dir():
        return f"the directory {path.parent} does not exist: make it, or set DALSEGNO_STORE"
    if path.is_symlink():
        return "it is a symbolic link: set DALSEGNO_STORE to the file itself"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return "it cannot be written: set DALSEGNO_STORE to a file that can"
    if path.exists():
        if path.stat().st_uid != os.getuid():
            return "it belongs to somebody else: set DALSEGNO_STORE to a file of yours"
        if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others may write to it: chmod 600 {path}"
    return ""


# ---- trying it out ---------------------------------------------------------------------------------------------------


def _trial() -> Iterator[Finding]:
    """Records, replays and compiles a small function; nothing of it is stored."""
    import numpy as np

    from . import config, jit, stats, wait

    def trial(x: Any) -> Any:
        return (x * 2.0 + 1.0) * x - 0.5

    if config.disable:
        return
    before, x = stats(), np.linspace(0.0, 1.0, 1000)
    jitted = jit(store=False)(trial)
    with config(inner_loops=0):
        for _ in range(3):
            jitted(x)
        wait()
        same = bool((jitted(x) == trial(x)).all())
    process, own = stats() - before, jitted.stats
    replayed = f"{own['recordings']} recorded, {own['replays']} of {own['calls']} calls replayed"
    yield Finding("trial: replay", replayed, "" if own["replays"] else _first_reason(jitted))
    made = [f"{process.get(f'kernels_{how}', 0)} {how}" for how in ("assembled", "compiled")]
    kernels = f"{', '.join(made)}, {process.get('kernel_launches', 0)} launched"
    missing = own["replays"] and config.kernels and not process.get("kernel_launches", 0)
    yield Finding(
        "trial: kernels", kernels, "none was launched: see `compiler` and `kernel runtime` above" if missing else ""
    )
    yield Finding("trial: result", "equal to NumPy's" if same else "differs", "" if same else "please report this")


def _first_reason(jitted: Any) -> str:
    from .explain import note_text

    return "; ".join(note_text(note) for note in jitted.notes()[:1]) or "nothing was recorded, and no reason is known"


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (_python, _packages, _core, _settings, _store, _trial)
