"""Reducing, printing a failure as a test, and comparing one's own function."""

import subprocess
import sys

import pytest

import numpy as np
from dalsegno.fuzz import call, equivalent
from dalsegno.fuzz.copying import CallCopier
from dalsegno.fuzz.engines import Engine
from dalsegno.fuzz.program import Program
from dalsegno.fuzz.reduce import reduce_program
from dalsegno.fuzz.report import as_test, find_mismatches, still_fails

pytestmark = pytest.mark.once

NEGATIVE_ZERO = "tests.fuzz_backends:DropsNegativeZero"

LONG = """
import numpy as np
LOG = []
def helper(x, n=2):
    for i in range(n):
        x = x + i
    return x
@jit
def entry(a, b):
    LOG.append(1)
    v = helper(b)
    with np.errstate(all='ignore'):
        try:
            if b is not None:
                w = a * -1.0
        finally:
            LOG.append(v)
    return w, v
"""
CALLS = """
def calls():
    yield (np.array([1.0]), 1), {}
    x = np.array([0.0, 2.0])
    yield (x, 2), {}
    yield (np.array([3.0]), 3), {}
"""


def test_reduced_to_what_matters() -> None:
    program = Program(LONG, CALLS, errstate="ignore", keep_results=False)
    small = reduce_program(program, lambda p: still_fails(p, Engine.STEPPED, NEGATIVE_ZERO), 30)
    assert still_fails(small, Engine.STEPPED, NEGATIVE_ZERO)
    assert (small.errstate, small.keep_results) == ("warn", True)
    assert "helper" not in small.source and "LOG" not in small.source and "try:" not in small.source
    assert small.calls.count("yield") == 1


def test_the_printed_failure_is_a_test_that_runs(tmp_path) -> None:
    program = Program(
        "@jit\ndef entry(x):\n    return x * -1.0\n",
        "def calls():\n    yield (np.array([0.0]),), {}\n",
        errstate="ignore",
    )
    text = as_test(program, Engine.STEPPED, "stepped: a\nsecond line", 7)
    file = tmp_path / "test_pasted.py"
    file.write_text(text)
    # dalsegno itself has no such fault, so a broken backend takes its place.
    conftest = "import dalsegno.fuzz.engines as engines, tests.fuzz_backends as backends\nengines.Dalsegno = backends."
    (tmp_path / "conftest.py").write_text(conftest + "DropsNegativeZero\n")
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "np.float64(-0.0) at (0,)" in done.stdout
    (tmp_path / "conftest.py").write_text(conftest + "Identity\n")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_difference_text_names_call_place_and_values() -> None:
    program = Program(
        "@jit\ndef entry(x):\n    return [x, x * -1.0]\n", "def calls():\n    yield (np.arange(3.0),), {}\n"
    )
    (mismatch,) = find_mismatches(program, [Engine.STEPPED], NEGATIVE_ZERO)
    text = str(mismatch.differences[0])
    assert "call 0, outcome" in text and "-0.0" in text and "1 of 3 items differ" in text


# ---- one's own functions


def twice(x, n=2):
    x += 1
    return x * n, x


def test_equivalent_function() -> None:
    a = np.arange(4.0)
    equivalent(twice, (a,), call(a, n=3), (a[::-1],), (1,), backend="tests.fuzz_backends:Identity")
    assert a[0] == 0.0  # each engine had copies
    with pytest.raises(AssertionError, match="recording: call 0, arguments"):
        equivalent(twice, (a,), backend="tests.fuzz_backends:CopiesArguments")


COUNTER = []


def counting():
    COUNTER.append(1)
    return len(COUNTER)


def test_equivalent_says_when_a_function_is_not_repeatable() -> None:
    with pytest.raises(ValueError, match="gives other results when it is run again"):
        equivalent(counting, (), backend="tests.fuzz_backends:Identity")


def test_copies_keep_layout_and_sharing() -> None:
    base = np.arange(24, dtype="float32").reshape(4, 6)
    views = [
        base,
        base.T,
        base[1:, ::2],
        base[::-1],
        base[0],
        base[:, :0],
        np.broadcast_to(base[0], (3, 6)),
        base[2:3, 1:2],
    ]
    other = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    value = {"views": views, "again": views, "other": (other, other[1]), "scalar": np.array(3)}
    made = CallCopier().copy(value)
    assert made["again"] is made["views"]
    assert made["other"][0].strides == other.strides and np.shares_memory(*made["other"])
    for left, right in zip(views, made["views"], strict=True):
        assert (left.dtype, left.shape, left.strides) == (right.dtype, right.shape, right.strides)
        assert left.flags.writeable == right.flags.writeable
        assert np.array_equal(left, right) and not np.shares_memory(left, right)
        if left.size:
            assert np.shares_memory(left, base) == np.shares_memory(right, made["views"][0])
    made["views"][0][...] = 7
    assert (made["views"][3] == 7).all() and base[0, 0] == 0


def test_plugin_fixture_is_the_same_function() -> None:
    from dalsegno.fuzz import plugin

    assert (
        plugin.dalsegno_equivalent.__wrapped__() is equivalent
        if hasattr(plugin.dalsegno_equivalent, "__wrapped__")
        else True
    )
