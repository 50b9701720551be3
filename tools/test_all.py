"""test_all.py: everything that `make test` checks, then a table; the last lines are pytest's own summaries.

Run by the main version's environment (.venv/py311). Other CPython versions are tested where an interpreter is found. A
failed stage does not stop the later ones, but the exit status is 0 only if all passed. No stage can hang for ever.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OTHER_VERSIONS = ["3.12", "3.13"]
STAGE_LIMIT = 1200.0  # seconds


@dataclass
class Stage:
    """One command that ran: what it was, how it ended, and the last line it printed."""

    name: str
    ok: bool
    seconds: float
    last_line: str


@dataclass
class Runner:
    """Runs stages one after the other and remembers how they ended."""

    environment: dict[str, str]
    stages: list[Stage] = field(default_factory=list)

    def run(self, name: str, *command: str) -> bool:
        print(f"\n==> {name}", flush=True)
        start = time.monotonic()
        output = subprocess.PIPE
        process = subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=output, stderr=subprocess.STDOUT, text=True, process_group=0
        )
        # SIGABRT to the stage and all it started: Python's faulthandler then shows where every thread was.
        timers = [
            threading.Timer(STAGE_LIMIT + wait, os.killpg, [process.pid, number])
            for wait, number in ((0, signal.SIGABRT), (20, signal.SIGKILL))
        ]
        for timer in timers:
            timer.start()
        last_line = ""
        try:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                last_line = line.strip() or last_line
            ok = process.wait() == 0
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            for timer in timers:
                timer.cancel()
        self.stages.append(Stage(name, ok, time.monotonic() - start, last_line))
        return ok

    def report(self) -> bool:
        """Prints the table and pytest's summaries, the main version's last. True if all is well."""
        print("\n" + "-" * 100)
        for stage in self.stages:
            print(f"{'ok    ' if stage.ok else 'FAILED'}  {stage.seconds:6.0f} s  {stage.name}")
        for stage in reversed([s for s in self.stages if s.name.startswith("tests")]):
            print(f"{stage.name}:\n{stage.last_line}")
        return all(stage.ok for stage in self.stages)


def main() -> None:
    python = sys.executable
    with tempfile.TemporaryDirectory(prefix="dalsegno-test-") as scratch:
        environment = {
            **os.environ,
            "DALSEGNO_STORE": f"{scratch}/store.db",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        runner = Runner(environment)
        if runner.run("build 3.11", python, "tools/build.py", "--tests"):
            runner.run("tests 3.11 and C++", python, "-m", "pytest", "tests", "build/py311/gtest")
            runner.run("lint", python, "tools/lint.py")
        if runner.run("build under sanitizers", python, "tools/build.py", "--sanitize"):
            runner.run("C++ under sanitizers", "tools/run_sanitized.sh")
        runner.run("pip install", python, "tools/check_install.py")
        for version in OTHER_VERSIONS:
            test_version(runner, version)
        ok = runner.report()
    sys.exit(0 if ok else 1)


def test_version(runner: Runner, version: str) -> None:
    """Environment, build and Python tests of another CPython version, if it is on this machine."""
    found = subprocess.run(["tools/find_python.sh", version], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        print(f"\n==> CPython {version} is not on this machine: not tested")
        return
    folder = ".venv/py" + version.replace(".", "")
    python = str(ROOT / folder / "bin" / "python")
    if runner.run(
        f"environment {version}", found.stdout.strip(), "tools/setup_venv.py", folder, "build", "test"
    ) and runner.run(f"build {version}", python, "tools/build.py"):
        runner.run(f"tests {version}", python, "-m", "pytest", "tests")


if __name__ == "__main__":
    main()
