"""test_all.py: everything that `make test` checks, then a table; the last lines are pytest's own summaries.

Run by the main version's environment (.venv/py311). Other CPython versions are tested where an interpreter is found. A
failed stage does not stop the others, but the exit status is 0 only if all passed. No stage can hang for ever. Groups
of stages run side by side: tests keep one core busy, compilers any number. What a stage prints is shown at its end.
"""

import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OTHER_VERSIONS = ["3.12", "3.13", "3.14"]
STAGE_LIMIT = 4500.0  # seconds; other stages run beside it


@dataclass
class Stage:
    """One command that ran: what it was, how it ended, and the last line it printed."""

    name: str
    ok: bool
    seconds: float
    last_line: str


@dataclass
class Runner:
    """Runs stages, from several threads, and remembers how they ended. Each gets a store of its own."""

    scratch: Path
    stages: list[Stage] = field(default_factory=list)
    printing: threading.Lock = field(default_factory=threading.Lock)
    groups: set[int] = field(default_factory=set)  # process groups that run

    def say(self, text: str) -> None:
        with self.printing:
            print(text, flush=True)

    def run(self, name: str, *command: str) -> bool:
        self.say(f"\n==> {name} begins")
        start = time.monotonic()
        environment = {
            **os.environ,
            "DALSEGNO_STORE": str(self.scratch / name.replace(" ", "-") / "store.db"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
        self.groups.add(process.pid)
        # SIGABRT to the stage and all it started: Python's faulthandler then shows where every thread was.
        timers = [
            threading.Timer(STAGE_LIMIT + wait, os.killpg, [process.pid, number])
            for wait, number in ((0, signal.SIGABRT), (20, signal.SIGKILL))
        ]
        for timer in timers:
            timer.start()
        try:
            output, _ = process.communicate()
        finally:
            for timer in timers:
                timer.cancel()
            self.groups.discard(process.pid)
        lines = output.rstrip().splitlines() or [""]
        self.say("\n".join([f"\n==> {name}", *lines]))
        stage = Stage(name, process.returncode == 0, time.monotonic() - start, lines[-1].strip())
        self.stages.append(stage)
        return stage.ok

    def stop(self) -> None:
        for group in list(self.groups):
            os.killpg(group, signal.SIGKILL)

    def report(self, seconds: float) -> bool:
        """Prints the table and pytest's summaries, the main version's last. True if all is well."""
        print("\n" + "-" * 100)
        for stage in self.stages:
            print(f"{'ok    ' if stage.ok else 'FAILED'}  {stage.seconds:6.0f} s  {stage.name}")
        print(f"        {seconds:6.0f} s  in all")
        for stage in sorted((s for s in self.stages if s.name.startswith("tests")), key=lambda s: s.name, reverse=True):
            print(f"{stage.name}:\n{stage.last_line}")
        return all(stage.ok for stage in self.stages)


def main() -> None:
    start = time.monotonic()
    plain = threading.Event()  # what knows nothing of Python has been built, or will not be
    idle = threading.Event()  # another version has been tested, or there is none: a core has nothing to do
    groups: list[Callable[[Runner], None]] = [functools.partial(test_main_version, plain)]
    groups += [functools.partial(test_sanitized, plain)]
    groups += [functools.partial(test_version, version, plain, idle) for version in OTHER_VERSIONS]
    groups += [functools.partial(check_the_rest, plain, idle)]
    with tempfile.TemporaryDirectory(prefix="dalsegno-test-") as scratch:
        runner = Runner(Path(scratch))
        with ThreadPoolExecutor(len(groups)) as pool:
            try:
                for group in [pool.submit(group, runner) for group in groups]:
                    group.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                runner.stop()
                raise
        ok = runner.report(time.monotonic() - start)
    sys.exit(0 if ok else 1)


def test_main_version(plain: threading.Event, runner: Runner) -> None:
    """The main version: what is tested on each."""
    try:
        built = runner.run("build 3.11", sys.executable, "tools/build.py")
    finally:
        plain.set()
    if built:
        runner.run("tests 3.11", sys.executable, "-m", "pytest", "-m", "not once", "tests")


def test_sanitized(plain: threading.Event, runner: Runner) -> None:
    """The C++ layers, under sanitizers."""
    plain.wait()
    if runner.run("build under sanitizers", sys.executable, "tools/build.py", "--sanitize"):
        runner.run("tests C++", "tools/run_sanitized.sh", sys.executable, "-m", "pytest", "build/asan/gtest")


def check_the_rest(plain: threading.Event, idle: threading.Event, runner: Runner) -> None:
    """What needs the main version's build, and nobody waits for; last what keeps all cores busy."""
    plain.wait()
    idle.wait()
    runner.run("tests 3.11, once", sys.executable, "-m", "pytest", "-m", "once", "tests")
    runner.run("lint", sys.executable, "tools/lint.py")
    runner.run("pip install", sys.executable, "tools/check_install.py")


def test_version(version: str, plain: threading.Event, idle: threading.Event, runner: Runner) -> None:
    try:
        test_other_version(version, plain, runner)
    finally:
        idle.set()


def test_other_version(version: str, plain: threading.Event, runner: Runner) -> None:
    """Environment, build and Python tests of another CPython version, if it is on this machine."""
    found = subprocess.run(["tools/find_python.sh", version], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        runner.say(f"\n==> CPython {version} is not on this machine: not tested")
        return
    folder = ".venv/py" + version.replace(".", "")
    python = str(ROOT / folder / "bin" / "python")
    if not runner.run(f"environment {version}", found.stdout.strip(), "tools/setup_venv.py", folder, "build", "test"):
        return
    plain.wait()
    if runner.run(f"build {version}", python, "tools/build.py"):
        runner.run(f"tests {version}", python, "-m", "pytest", "-m", "not once", "tests")


if __name__ == "__main__":
    main()
