"""Whom compiling gives way to: array kernels to everybody, since BLAS' threads wait for each other; loops to nobody."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import os
    import numpy as np
    import dalsegno as ds

    def niceness():
        tasks = [open(f"/proc/self/task/{t}/stat").read() for t in os.listdir("/proc/self/task")]
        return sorted(int(task.rpartition(")")[2].split()[16]) for task in tasks)

    def loop(n):
        s = 0
        for i in range(n):
            s += i & 3
        return s

    def arrays(a):
        return a * 2.0 + a

    def settle(f, *args):
        want = f(*args)
        g = ds.jit(f)
        for _ in range(4):
            assert np.array_equal(g(*args), want)
            ds.wait()

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    settle(loop, 5000)
    assert set(niceness()) == {usual}, niceness()
    settle(arrays, np.arange(1e5))
    assert ds.stats()["kernels_compiled"] > 0
    assert niceness().count(max(usual, 10)) == 1 or usual >= 10, niceness()
    settle(lambda n: loop(n) + 1, 5000)  # the other one still does loops
    assert usual in niceness()
    child = os.fork()
    if child == 0:
        settle(lambda n: loop(n) + 2, 5000)
        settle(lambda a: arrays(a) - 1.0, np.arange(1e5))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print("ok")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="niceness belongs to threads on Linux only")
def test_loops_do_not_give_way(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "DALSEGNO_STORE": str(tmp_path / "s.db")},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ok\n"
