# ruff: noqa: E501 - programs as text
"""Allocations that fail, one after the other, while functions are recorded, replayed, left, kept and fetched: eager's value or MemoryError.

A small library, preloaded into a process of its own, lets the n-th allocation of a thread fail, for every n up to where none is left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FAULT = r"""
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_realloc(void*, size_t), *__libc_calloc(size_t, size_t);
static __thread long left = -1;
void fault_arm(long n) { left = n; }
long fault_left(void) { return left; }
static int hit(void) { return left >= 0 && left-- == 0; }
void* malloc(size_t n) { if (hit()) { errno = ENOMEM; return 0; } return __libc_malloc(n); }
void* realloc(void* p, size_t n) { if (hit()) { errno = ENOMEM; return 0; } return __libc_realloc(p, n); }
void* calloc(size_t a, size_t b) { if (hit()) { errno = ENOMEM; return 0; } return __libc_calloc(a, b); }
"""

# `phase(n)` is a generator: what it does up to its first yield is undisturbed; then the n-th allocation fails in what it calls.
DRIVER = """
import ctypes, itertools, json, sys
import numpy as np
import dalsegno as ds

process = ctypes.CDLL(None)
arm, left = process.fault_arm, process.fault_left
arm(-1)

def attempt(call, wanted, n):
    try:
        arm(n)
        got = call()
    except MemoryError:
        got = wanted
        told["MemoryError"] += 1
    finally:
        unused = left()
        arm(-1)
    assert got == wanted, (n, got, wanted)
    return unused < 0  # an allocation has failed

told = {"MemoryError": 0, "failed": 0}

def helper(x, *rest, **more):
    return [x, rest, dict(more)]

SOURCE = '''
def f(n, flag, text):
    total = 0
    out = []
    for i in range(n):
        total += i * 3 if flag else i - 1
        out.append((i + 1000, [i], {"i": i}))
        text += "abc"
    made = helper(total, n, 5, name=flag)
    try:
        half = len(out) // (n - 3)
    except ZeroDivisionError as error:
        half = str(error)
    def inner(y):
        return y + total
    return total, out[-1], len(text), made, half, inner(1), sorted(out)[0][0]
'''
if sys.version_info >= (3, 12):  # where a function cannot be made, CPython lets go of its code object twice
    SOURCE = SOURCE.replace("def inner(y):\\n        return y + total", "inner = abs")
count = 0
def fresh(jitted=True, **options):
    global count
    count += 1
    namespace = {"helper": helper, "__name__": "fresh"}
    exec(SOURCE.replace("text):", f"text):\\n    'no. {count}: one that no store knows'", 1), namespace)
    return ds.jit(namespace["f"], **options) if jitted else namespace["f"]

plain = fresh(False)
EASY, OTHER = (7, True, "x"), (6, False, "y")
WANTED, WANTED_OTHER = plain(*EASY), plain(*OTHER)

def sound(f):
    for _ in range(3):
        assert f(*EASY) == WANTED and f(*OTHER) == WANTED_OTHER
        assert "by zero" in f(3, True, "")[4]
    assert f.stats["replays"] > 0, f"nothing is recorded any more: {f.stats}"

def run(phase):
    for n in itertools.count():
        print(n, flush=True)
        if not phase(n): break
        told["failed"] += 1
    print(json.dumps(told))
"""

PHASES = {
    "recording": """
        def phase(n):
            f = fresh(store=False)
            failed = attempt(lambda: f(*EASY), WANTED, n)
            sound(f)
            return failed
    """,
    "replay": """
        def phase(n):
            f = fresh(store=False)
            for _ in range(4): f(*EASY)
            failed = attempt(lambda: f(*EASY), WANTED, n)
            sound(f)
            return failed
    """,
    "exit": """
        def phase(n):
            f = fresh(store=False)
            for _ in range(3): f(*EASY)
            failed = attempt(lambda: f(*OTHER), WANTED_OTHER, n)
            failed |= attempt(lambda: f(*OTHER), WANTED_OTHER, n)
            sound(f)
            return failed
    """,
    "keeping": """
        def phase(n):
            f = fresh()
            failed = attempt(lambda: f(*EASY), WANTED, n)
            sound(f)
            return failed
    """,
    "fetching": """
        f = fresh()
        for _ in range(4): f(*EASY)
        ds.wait()
        def phase(n):
            f.clear()
            before = f.stats["traces_loaded"]
            with ds.config(record=False):  # else the store grows, and with it what is allocated
                failed = attempt(lambda: f(*EASY), WANTED, n)
                assert failed or f.stats["traces_loaded"] > before
                f.clear()
                sound(f)
            return failed
    """,
    "arrays": """
        def array(x, w, flag):
            y = x * w + 1.0
            return np.sqrt(y * y) if flag else y - x
        x = np.linspace(-1.0, 1.0, 500)
        g = ds.jit(array, store=False)
        for k in range(6): g(x, 3.0, k % 2)
        ds.wait()
        want = [array(x, 3.0, k).tobytes() for k in (0, 1)]
        def phase(n):
            failed = False
            for k in (0, 1): failed |= attempt(lambda: g(x, 3.0, k).tobytes(), want[k], n)
            for k in (0, 1): assert g(x, 3.0, k).tobytes() == want[k]
            return failed
    """,
    "explaining": """
        def phase(n):
            f = fresh(store=False)
            for _ in range(3): f(*EASY)
            failed = attempt(lambda: bool(f.traces()) and bool(f.stats) and f.clear(), None, n)
            sound(f)
            return failed
    """,
}


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("fault")
    (folder / "fault.c").write_text(FAULT)
    subprocess.run(
        [
            compiler,
            "-O1",
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-ftls-model=initial-exec",
            "-o",
            folder / "fault.so",
            folder / "fault.c",
        ],
        check=True,
    )
    return folder / "fault.so"


def run(library: Path, tmp_path: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    tmp_path.chmod(0o700)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", source],
        env={
            **os.environ, "LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc", "PYTHONPATH": str(ROOT), "DALSEGNO_STORE": str(tmp_path / "s.db"),
            "DALSEGNO_STEP_ASIDE": "0", **environment,
        },
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("phase", PHASES)
def test_any_allocation_may_fail(phase: str, library: Path, tmp_path: Path):
    source = DRIVER + textwrap.dedent(PHASES[phase]) + "\nrun(phase)\n"
    done = run(library, tmp_path, source)
    assert done.returncode == 0, f"{phase}: {done.stdout[-60:]}\n{done.stderr[-3000:]}"
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failed"] >= 8
    assert told["MemoryError"] > 0


@pytest.mark.skipif(
    hasattr(sys, "gettotalrefcount") and sys.version_info[:2] == (3, 14),
    reason="a debug build of CPython 3.14 aborts by itself where a list that an item is appended to cannot grow",
)
def test_memory_that_ends_inside_a_replayed_loop():
    """Small objects until there is no more: MemoryError, which can be caught, and then all is well."""
    source = """
        import resource
        import dalsegno as ds

        @ds.jit
        def grow(n):
            out = []
            for i in range(n):
                out.append((i + 1000, [i], {"i": i}))
            return out

        for _ in range(4):
            grow(50)
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + (40 << 20),) * 2)
        for _ in range(3):
            try:
                print(len(grow(10**7)))
            except MemoryError:
                print("MemoryError")
        print(len(grow(5)))
    """
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(source)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DALSEGNO_STORE": "off"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["MemoryError"] * 3 + ["5"]
