"""Kernels and the process: background, forks, exit, threads, memory. Each in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("kernels_are_kept")]

ROOT = Path(__file__).resolve().parent.parent
PRELUDE = """
import gc, os, sys, threading, time
import numpy as np
from dalsegno._testing import segments
from tests import kernel_kit as kit

OPS = [("multiply", [~0, ~1]), ("exp", [0]), ("add", [1, ~0])]
x, y = kit.random_values("float64", 1000, 1), kit.random_values("float64", 1000, 2)
want = np.exp(x * y) + x

def right(result):
    return not isinstance(result, str) and result[0].tobytes() == want.tobytes()
"""


def run(code: str, timeout: float = 60) -> str:
    """What a script prints; it must end well."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout.strip()


def test_compiled_in_the_background():
    assert run("""
        segments.configure(kernels=True, background=True, threads=0)
        s = kit.make(OPS, [x, y])
        first = s.run(x, y)
        segments.wait()
        print(first, right(s.run(x, y)), s.kernels()[0][1])
    """) in ("not ready True compiled", "not ready True loaded")


def test_switched_off():
    assert (
        run("""
        segments.configure(kernels=False, background=False, threads=0)
        print(kit.make(OPS, [x, y]).run(x, y))
    """)
        == "not ready"
    )


def test_the_compiler_is_loaded_only_when_needed():
    assert (
        run("""
        print("libHalide" in open("/proc/self/maps").read())
    """)
        == "False"
    )


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.1, 1.0])
def test_exit_while_compiling(pause: float):
    """Whatever the compile thread is doing, the process ends, quietly."""
    run(f"""
        segments.configure(kernels=True, background=True, threads=0)
        made = [kit.make(OPS * n, [x, y]) for n in range(1, 10)]
        for s in made: s.run(x, y)
        time.sleep({pause})
    """)


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.5])
def test_fork_while_compiling(pause: float):
    """Parent and child both get their kernels, and their worker threads."""
    assert (
        run(f"""
        segments.configure(kernels=True, background=True, threads=3)
        big = kit.random_values("float64", 400_000, 1)
        s, t = kit.make(OPS, [x, y]), kit.make([("add", [~0, ~0]), ("sqrt", [0])], [big])
        s.run(x, y), t.run(big)
        time.sleep({pause})
        child = os.fork()
        segments.wait()
        ok = right(s.run(x, y)) and (t.run(big)[0] == np.sqrt(big + big)).all()
        if child == 0:
            os._exit(0 if ok else 1)
        print(ok, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
        == "True 0"
    )


def test_many_threads_run_one_segment():
    assert (
        run("""
        segments.configure(kernels=True, background=True, threads=0)
        s = kit.make(OPS, [x, y])
        bad = []
        def work():
            for _ in range(2000):
                r = s.run(x, y)
                if not isinstance(r, str) and not right(r): bad.append(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        segments.wait()
        print(len(bad), right(s.run(x, y)))
    """)
        == "0 True"
    )


def test_nothing_grows():
    grown = run("""
        segments.configure(kernels=True, background=False, threads=1)
        import resource
        row = np.ones(1000)
        s = kit.make(OPS, [x, y])
        m = kit.make([("exp", [~0]), ("multiply", [0, ~1]), ("add", [1, ~2])], [row, np.ones((5, 1000)), 1.5], [0, 2])
        d = kit.make([("divide", [~0, ~1])], [x, y])
        zero = np.zeros(1000)
        five = np.ones((5, 1000))
        def work(n):
            for _ in range(n):
                s.run(x, y), m.run(row, five, 1.5), d.run(x, zero), s.run(x, five)
        work(5000)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        counts = [sys.getrefcount(o) for o in (x, y, row, five, zero, np.dtype("f8"))]
        work(30000)
        grew = [sys.getrefcount(o) - c for o, c in zip((x, y, row, five, zero, np.dtype("f8")), counts)]
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, max(map(abs, grew)))
    """)
    kilobytes, references = map(int, grown.split())
    assert kilobytes < 2000
    assert references < 10
