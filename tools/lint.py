"""lint.py [--fix]: formatters, linters and type checks, each with the version that pyproject.toml pins.

Fails if any has something to say. --fix lets ruff and clang-format change the files.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CPP_FOLDERS = ["hook", "numpy", "trace", "store", "halide_gen", "replay"]
# What clang-tidy reads: the layers without Python.h, whose headers clang parses quickly and without noise.
TIDY_FOLDERS = ["trace", "store", "replay/typed", "replay/native", "replay/recursion", "replay/masks", "replay/memory"]

# Who may include what: (headers, files that must not include them).
LAYERS = [
    (r"pycore_\w+\.h", r"(?!hook/)"),
    (
        r"(Python|pybind11/\w+|numpy/\w+)\.h",
        r"(trace/(?!recorder/)|store/|halide_gen/(?!module\.cc)|replay/(typed|native|recursion|masks|memory)/)",
    ),
    (r"(replay/(?!typed/)|hook|halide_gen|store|trace/recorder)[\w/]*/\w+\.h", r"replay/typed/"),
    (r"(replay/(?!typed/|native/)|hook|halide_gen|store|trace/recorder)[\w/]*/\w+\.h", r"replay/native/"),
    (r"(replay/(?!typed/|recursion/)|hook|halide_gen|store|trace/recorder)[\w/]*/\w+\.h", r"replay/recursion/"),
    (r"(replay/(?!masks/)|hook|halide_gen|store|trace|numpy)[\w/]*/\w+\.h", r"replay/masks/"),
    (r"(replay/(?!memory/)|hook|halide_gen|store|trace|numpy)[\w/]*/\w+\.h", r"replay/memory/"),
    (r"Halide\.h", r"(?!halide_gen/)"),
    (r"sqlite3\.h", r"(?!store/)"),
    (r"(replay|halide_gen|store)/[\w/]+\.h", r"(trace|hook)/"),
    (r"(replay|store|hook)/[\w/]+\.h|trace/recorder/\w+\.h", r"numpy/"),
    # The recorder's two halves know nothing of each other: what follows the interpreter, and what writes the trace.
    (
        r"trace/recorder/(recorder|follower|instructions)\.h",
        r"trace/recorder/(builder|shadows|knowledge|made|anchors|sources)\.",
    ),
    (r"trace/recorder/(recorder|builder)\.h", r"trace/recorder/follower\."),
]


def cpp_files(folders: list[str], endings: tuple[str, ...]) -> list[str]:
    """C and C++ files below the folders, relative to the root."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in endings)
    return sorted(str(path.relative_to(ROOT)) for path in found)


def run(*command: str) -> bool:
    """Runs a tool of this environment in the root; its output is shown if it fails."""
    done = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True)
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'}  {' '.join(command[:3])}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def layers(sources: list[str]) -> bool:
    """No file includes a header that its layer must not know."""
    wrong = [
        f"{file}: includes {header[0]}"
        for file in sources
        for header in re.finditer(r'(?<=^#include ["<])[\w/.]+', (ROOT / file).read_text(), re.MULTILINE)
        for headers, files in LAYERS
        if re.fullmatch(rf"(.*/)?{headers}", header[0]) and re.match(files, file)
    ]
    print("\n".join([f"{'FAILED' if wrong else 'ok    '}  layers", *wrong]), flush=True)
    return not wrong


def compile_commands(folder: str) -> None:
    """The build's commands, for clang-tidy: without precompiled headers, so that a source includes what it needs, and
    without what GCC alone knows."""
    build = ROOT / "build" / f"py{sys.version_info[0]}{sys.version_info[1]}"
    text = (build / "compile_commands.json").read_text()
    (Path(folder) / "compile_commands.json").write_text(
        re.sub(r"-Winvalid-pch|-include \S+/cmake_pch\.hxx|-mmem\w+-strategy=\S+", "", text)
    )


def tidy(folder: str, file: str) -> bool:
    """clang-tidy on one file; the wheel of clang-tidy lacks the compiler's own headers, so GCC's are used."""
    own_headers = subprocess.run(
        ["g++", "-print-file-name=include"], capture_output=True, text=True, check=True
    ).stdout.strip()
    extra = f"--extra-arg-before=-isystem{own_headers}"
    return run("clang-tidy", "--quiet", file, "-p", folder, extra, "--extra-arg=-Wno-unknown-warning-option")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="change the files")
    fix = parser.parse_args().fix
    sources = cpp_files(CPP_FOLDERS, (".c", ".cc", ".h"))
    results = [
        run("ruff", "check", *(["--fix"] if fix else []), "."),
        run("ruff", "format", *([] if fix else ["--check"]), "."),
        run("clang-format", *(["-i"] if fix else ["--dry-run", "--Werror"]), *sources),
        run("mypy"),
        layers(sources),
    ]
    read = [file for file in cpp_files(TIDY_FOLDERS, (".cc",)) if "recorder" not in file and "_test" not in file]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        compile_commands(folder)
        results += pool.map(functools.partial(tidy, folder), read)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
