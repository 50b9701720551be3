"""build.py [--tests] [--sanitize]: builds the tree, incrementally, for the Python that runs this.

The extension modules go into dalsegno/, the rest into build/py3XX; with --sanitize, the C++ tests alone, under
sanitizers, into build/asan.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="the GoogleTest binaries too")
    parser.add_argument("--sanitize", action="store_true", help="the GoogleTest binaries alone, under ASan and UBSan")
    options = parser.parse_args()

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cmake and ninja
    python = f"-DPython_EXECUTABLE={sys.executable}"
    if options.sanitize:
        build = ROOT / "build" / "asan"
        configure(build, ["--preset", "asan", python])
    else:
        build = ROOT / "build" / f"py{sys.version_info[0]}{sys.version_info[1]}"
        tests = f"-DDALSEGNO_TESTS={'ON' if options.tests else 'OFF'}"
        configure(build, ["-G", "Ninja", "-S", ".", "-B", str(build), "-DDALSEGNO_DEV=ON", tests, python])
    jobs = str(len(os.sched_getaffinity(0)))
    raise SystemExit(subprocess.run(["ninja", "-C", str(build), "-j", jobs, "--quiet"], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
