"""build.py [--tests] [--sanitize] [--alone]: builds the tree, incrementally, for the Python that runs this.

The extension modules go into dalsegno/, the rest into build/py3XX; with --sanitize, the C++ tests alone, under
sanitizers, into build/asan. What knows nothing of Python is built once: where the main version has a build folder,
other versions take it from there, unless they are to stand alone.
"""

import argparse
import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = ROOT / "build" / "py311"


def configure(build: Path, arguments: list[str]) -> None:
    """Runs CMake where it has not run yet for this very Python and these arguments; ninja notices later changes."""
    stamp = build / "configured-for"
    configured_for = "\n".join([sys.version, sys.base_prefix, *arguments])
    if stamp.exists() and stamp.read_text() == configured_for and (build / "build.ninja").exists():
        return
    print(f"Configuring {build.relative_to(ROOT)}", flush=True)
    subprocess.run(
        ["cmake", "--fresh", "--log-level=WARNING", *arguments], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    stamp.write_text(configured_for)


def ninja(build: Path, *targets: str) -> int:
    """Builds; one at a time in a folder, as other versions' builds may be at work in the main version's."""
    jobs = str(len(os.sched_getaffinity(0)))
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.run(["ninja", "-C", str(build), "-j", jobs, "--quiet", *targets], cwd=ROOT).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="the GoogleTest binaries too")
    parser.add_argument("--sanitize", action="store_true", help="the GoogleTest binaries alone, under ASan and UBSan")
    parser.add_argument("--alone", action="store_true", help="take nothing from the main version's build folder")
    options = parser.parse_args()

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cmake and ninja
    python = f"-DPython_EXECUTABLE={sys.executable}"
    if options.sanitize:
        build = ROOT / "build" / "asan"
        configure(build, ["--preset", "asan", python])
    else:
        build = ROOT / "build" / f"py{sys.version_info[0]}{sys.version_info[1]}"
        tests = f"-DDALSEGNO_TESTS={'ON' if options.tests else 'OFF'}"
        shared = build != MAIN and not options.alone and (MAIN / "build.ninja").exists() and ninja(MAIN, "plain") == 0
        plain = f"-DDALSEGNO_PLAIN_FROM={MAIN if shared else ''}"
        alone = f"-DDALSEGNO_ALONE={'ON' if options.alone else 'OFF'}"
        configure(build, ["-G", "Ninja", "-S", ".", "-B", str(build), "-DDALSEGNO_DEV=ON", tests, plain, alone, python])
    raise SystemExit(ninja(build))


if __name__ == "__main__":
    main()
