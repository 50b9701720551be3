"""Whom background threads give way to: that of the store, and that which compiles loops once more, to everybody, since
BLAS' threads wait for each other; those that somebody waits for, for milliseconds, to nobody. None starts on its
caller's processor."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.usefixtures("kernels_are_kept")

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

    def gave_way():
        return niceness().count(max(usual, 10))

    def processors():
        return {frozenset(os.sched_getaffinity(int(t))) for t in os.listdir("/proc/self/task")}

    usual, all_processors = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)
    settle(loop, 5000)
    assert gave_way() == 2 or usual >= 10, niceness()  # who writes to the store, and who compiles once more
    settle(arrays, np.arange(1e5))
    assert ds.stats()["kernels_compiled"] > 0
    assert gave_way() == 2 or usual >= 10, niceness()
    assert processors() == {frozenset(all_processors)}
    settle(lambda n: loop(n) + 1, 5000)
    assert usual in niceness()
    child = os.fork()
    if child == 0:
        settle(lambda n: loop(n) + 2, 5000)
        settle(lambda a: arrays(a) - 1.0, np.arange(1e5))
        assert processors() == {frozenset(all_processors)}
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print("ok")
"""


BESIDE = """
    import os, time
    import numpy as np
    import dalsegno as ds

    def processors(t):
        try:
            return os.sched_getaffinity(int(t))
        except OSError:  # it has ended
            return None

    f = ds.jit(lambda a: a * 2.0 + a)
    before, own = set(os.listdir("/proc/self/task")), min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {own})  # it stays there
    f(np.arange(1e5))
    seen = [p for t in set(os.listdir("/proc/self/task")) - before if (p := processors(t)) is not None]
    assert seen and all(p == {own} for p in seen), seen  # a thread that may use one processor uses that one
    ds.wait()
    print("ok")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="niceness belongs to threads on Linux only")
@pytest.mark.parametrize("program", [PROGRAM, BESIDE], ids=["priorities", "one processor"])
def test_background_threads_give_way(tmp_path, program):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "DALSEGNO_STORE": str(tmp_path / "s.db")},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ok\n"
