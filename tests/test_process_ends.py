# ruff: noqa: E501 - programs as text
"""Threads that cannot start, daemon threads at exit, forks: what happens around a process, each in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(source: str, store: str = "off", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(source)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DALSEGNO_STORE": store, "DALSEGNO_STEP_ASIDE": "0", **environment},
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-3000:]}"
    assert done.stderr == "", done.stderr[-3000:]
    return done.stdout.strip()


DAEMONS = {
    "sleep": "time.sleep(0.001)",
    "python": "sum(k for k in range(1000)); time.sleep(0)",
    "nested": "inner(x)",
    "linked": "held.append(Loud()); held.clear(); time.sleep(0)",
}


@pytest.mark.parametrize("disable", ["0", "1"])
@pytest.mark.parametrize("body", DAEMONS)
def test_daemon_threads_at_exit(body: str, disable: str):
    source = f"""
        import sys, threading, time
        import dalsegno as ds
        sys.setswitchinterval(1e-4)
        held = []
        class Loud:
            def __del__(self): time.sleep(0)
        @ds.jit
        def inner(x):
            time.sleep(0.001)
            return x
        @ds.jit
        def f(x):
            {DAEMONS[body]}
            return x
        running = threading.Barrier(5)
        def work():
            for _ in range(5): f(1)
            running.wait()
            while True: f(1)
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        running.wait()
        print("ended")
    """
    for _ in range(3):
        assert run(source, DALSEGNO_DISABLE=disable) == "ended"


def test_no_thread_can_be_started(tmp_path: Path):
    """RLIMIT_NPROC does not bind root: threads fail for want of address space for their stacks."""
    tmp_path.chmod(0o700)
    source = """
        import resource
        import numpy as np
        import dalsegno as ds
        def work(x, w): return np.sqrt(x * w + 1.0) - x
        def small(n): return [k * 2 for k in range(n)], n + 1
        x = np.linspace(0.0, 1.0, 30000)
        wanted = work(x, 2.0).tobytes()
        fs = [ds.jit(work), ds.jit(small)]
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + (3 << 20), resource.RLIM_INFINITY))  # a thread wants 8 MiB
        for _ in range(4):
            assert fs[0](x, 2.0).tobytes() == wanted and fs[1](5) == small(5)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        for _ in range(4):
            assert fs[0](x, 2.0).tobytes() == wanted and fs[1](5) == small(5)
        ds.wait()
        assert fs[0](x, 2.0).tobytes() == wanted and ds.stats()["kernel_launches"] > 0
        print("fine")
    """
    assert run(source, str(tmp_path / "s.db")) == "fine"


@pytest.mark.parametrize("kept", [False, True])
def test_a_fork_warns_of_no_thread(kept: bool, tmp_path: Path):
    tmp_path.chmod(0o700)
    source = """
        import os, sys, threading, warnings
        import numpy as np
        import dalsegno as ds
        warnings.simplefilter("error")
        @ds.jit
        def f(x): return x * 2 + 1
        for round in range(3):
            f.clear()
            for _ in range(4): f(np.ones(5 + round))
            if round: ds.wait()
            pid = os.fork()
            if not pid:
                for _ in range(4): f(np.ones(5))
                ds.wait()
                os._exit(0 if (f(np.ones(2)) == 3).all() else 1)
            assert os.waitpid(pid, 0)[1] == 0
        print("forked")
    """
    assert run(source, str(tmp_path / "s.db") if kept else "off") == "forked"


def test_a_child_records_though_another_thread_was_recording_at_the_fork():
    source = """
        import os, sys, threading, warnings
        import dalsegno as ds
        warnings.simplefilter("ignore")
        go, done = threading.Event(), threading.Event()
        def slow(x):
            if x:
                go.set(); done.wait(60)
            return x + 1
        jitted = ds.jit(slow)
        @ds.jit
        def other(x): return x * 2
        thread = threading.Thread(target=jitted, args=(1,))
        thread.start()
        go.wait()
        pid = os.fork()
        if pid == 0:
            instrumented = sys.version_info >= (3, 12) and [sys.monitoring.get_local_events(t, slow.__code__) for t in range(6) if sys.monitoring.get_tool(t)]
            for _ in range(5): other(1), jitted(0)
            told = [other.stats["recordings"], other.stats["replays"], jitted.stats["recordings"], jitted.stats["replays"]]
            print(told, instrumented or [], flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        done.set()
        thread.join()
        for _ in range(5): other(1), jitted(0)
        print(other.stats["replays"], jitted.stats["replays"])
    """
    child, parent = run(source).splitlines()
    assert child == "[1, 4, 2, 4] []" and parent.split()[0] == "4"


def test_forks_while_other_threads_are_inside_the_store(tmp_path: Path):
    """The child inherits no lock that nobody holds: it reads the store, records, writes and ends."""
    tmp_path.chmod(0o700)
    source = """
        import os, threading, warnings
        import dalsegno as ds
        warnings.simplefilter("ignore")
        ds.store.query("SELECT 1")
        def record(text):
            f = ds.jit(eval("lambda x: " + text))
            return [f(1) for _ in range(3)]
        stop = threading.Event()
        turns = [0] * 4
        def write(n):
            while not stop.is_set():
                record(f"x * {n} + {turns[n]}")
                ds.wait()
                turns[n] += 1
        def read(n):
            while not stop.is_set():
                ds.store.query("SELECT COUNT(*) FROM traces")
                turns[n] += 1
        threads = [threading.Thread(target=work, args=(n,)) for n, work in enumerate([write, write, read, read])]
        for thread in threads: thread.start()
        children = []
        for child in range(24):
            seen = turns[:]
            while turns == seen: pass
            pid = os.fork()
            if pid == 0:
                told = record(f"x - {child}.5")
                ds.wait()
                rows = ds.store.query("SELECT 1")
                os._exit(0 if told == [0.5 - child] * 3 and rows == [(1,)] else 1)
            children.append(pid)
        ended = [os.waitpid(pid, 0)[1] for pid in children]
        stop.set()
        for thread in threads: thread.join()
        print(ended == [0] * 24, min(turns) > 0, ds.store.verify()["damaged"])
    """
    assert run(source, str(tmp_path / "s.db")) == "True True 0"


def test_a_thread_that_records_may_fork():
    source = """
        import os
        import dalsegno as ds
        @ds.jit
        def f(x):
            pid = os.fork()
            if pid: os.waitpid(pid, 0)
            return x + 1, pid != 0
        first = f(1)
        again = [f(1)[0] for _ in range(3)] if first[1] else []
        if not first[1]: os._exit(0 if first[0] == 2 else 1)
        print(first, again)
    """
    assert run(source).splitlines()[-1] == "(2, True) [2, 2, 2]"


def test_clear_while_finalisers_make_jitted_functions():
    source = """
        import dalsegno as ds
        keep = []
        class D:
            def __del__(self):
                for _ in range(3000): keep.append(ds.jit(lambda x: x))
                del others[::2]
        def make():
            def helper(x): return x + 1
            helper.d = D()
            return helper
        helper = make()
        @ds.jit
        def f(x): return helper(x)
        others = [ds.jit(lambda x: x) for _ in range(60)]
        for _ in range(3): f(1)
        helper = None
        ds.clear()
        print(len(keep))
    """
    assert run(source, PYTHONMALLOC="malloc", MALLOC_PERTURB_="165") == "3000"
