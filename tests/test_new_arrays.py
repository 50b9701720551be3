"""Large results lie in memory that dead arrays have left (replay/arrays.cc): nothing of that can be seen."""

import ctypes
import gc
import os
import resource
import sys
import tracemalloc

import pytest

import dalsegno as ds
import numpy as np
from tests.support import run_python

LARGE = 200_000


def compiled(function, *args):
    """The jitted function, its kernel in use."""
    jitted = ds.jit(function)
    for _ in range(3):
        jitted(*args)
    ds.wait()
    jitted(*args)
    return jitted


def faults(function, *args):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    function(*args)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def scaled(x, y):
    return x * 2.0 + y


def test_pages_are_asked_for_once():
    x, y = np.ones(LARGE), np.ones(LARGE)
    jitted = compiled(scaled, x, y)
    jitted(x, y)
    pages = x.nbytes // resource.getpagesize()
    assert sum(faults(jitted, x, y) for _ in range(50)) < 10 * pages


def sorted_and_repeated(x, y):
    return np.sort(np.repeat(x, 2))[::2] + np.zeros(len(x))


def test_so_they_are_where_numpys_functions_make_them():
    x = np.arange(float(LARGE))
    jitted = compiled(sorted_and_repeated, x, x)
    ds.config.step_aside = False
    try:
        for _ in range(3):
            jitted(x, x)
        made = sum(faults(jitted, x, x) for _ in range(20))
    finally:
        ds.config.step_aside = True
    pages = x.nbytes // resource.getpagesize()
    assert made < 10 * pages


FREED = """
import json, resource
import numpy as np
import dalsegno as ds

N = 450_000
x = np.ones(N)
freed = [np.ones(N) for _ in range(2)]
del freed  # from now on malloc() has such blocks in its heap
freed = [np.ones(N) for _ in range(8)]
behind = [bytearray(100_000) for _ in range(40)]  # so that the heap's end stays where it is
del freed

def run(x):
    return [x + float(k) for k in range(6)]

before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
made = ds.jit(run)(x)
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, x.nbytes // resource.getpagesize()]))
"""


def test_a_first_call_takes_what_malloc_has_as_eager_would():
    made, pages = run_python(FREED)
    assert made < 2 * pages  # of six


def mixed(x, y):
    total = np.zeros_like(x)
    for weight in range(1, 9):
        total = total + (x - y) * (y + weight) / (x + weight)
    return total


def test_so_they_are_where_a_jitted_function_runs_eagerly():
    x, y = np.ones(LARGE), np.ones(LARGE)
    jitted = ds.jit(mixed)
    sys.setprofile(lambda *_: None)  # while another tool observes the thread nothing is replayed
    try:
        jitted(x, y)
        assert min(faults(jitted, x, y) for _ in range(5)) < x.nbytes // resource.getpagesize() // 4
    finally:
        sys.setprofile(None)
    assert jitted.stats["replays"] == 0


SHORT = """
import resource
import numpy as np, dalsegno as ds

def doubled(x):
    return x + x

x = np.ones(8_000_000)
jitted = ds.jit(doubled, store=False)
for _ in range(3):
    jitted(x)
ds.wait()
jitted(x)  # 64 MB are kept
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (48 << 20),) * 2)
{}
print('"enough"')
"""


MUCH = "np.empty(90 << 20, np.uint8)"


@pytest.mark.parametrize("asks", [MUCH, f"ds.jit(lambda: {MUCH}, store=False)()"])
def test_what_is_kept_is_given_up_where_memory_is_short(asks):
    assert run_python(SHORT.format(asks)) == "enough"


IDLE = """
import resource
import numpy as np, dalsegno as ds

def made(size):
    return np.empty(size, np.uint8)[:1].shape  # (which nobody writes to)

def mapped():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

jitted = ds.jit(made, store=False)
before = mapped()
for _ in range(5):
    jitted(3 << 30)
    assert mapped() - before < (3 << 30) // 2, mapped() - before
print('"enough"')
"""


def test_little_is_kept_between_calls_of_what_is_very_large():
    assert run_python(IDLE) == "enough"


def zeros_and_ones(n):
    ones = np.ones(n)
    total = ones.sum()
    del ones
    return np.zeros(n), total


def test_zeros_in_the_memory_of_other_numbers():
    jitted = compiled(zeros_and_ones, LARGE)
    for _ in range(20):
        zeros, total = jitted(LARGE)
        assert not zeros.any() and total == LARGE
        del zeros


def test_arrays_made_in_a_replay_are_freed_elsewhere_and_the_other_way_round():
    jitted = compiled(sorted_and_repeated, *2 * [np.arange(float(LARGE))])
    for size in (LARGE, LARGE // 2, LARGE, 5000, LARGE):
        x = np.arange(float(size))
        want = sorted_and_repeated(x, x).tobytes()
        made = [jitted(x, x) for _ in range(3)]
        plain = [np.full(size, 7.0) for _ in range(3)]
        assert all(m.tobytes() == want for m in made)
        del made[1], plain[1]
        made.append(jitted(x, x))
        assert all(m.tobytes() == want for m in made)
        assert all((p == 7.0).all() for p in plain)


@pytest.mark.parametrize("shape", [(LARGE,), (400, 500), (4, 50, 1000)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_as_numpy_makes_them(shape, order):
    x, y = np.asarray(np.ones(shape), order=order), np.asarray(np.ones(shape), order=order)
    made, want = compiled(scaled, x, y)(x, y), scaled(x, y)
    for array in (made, want):
        assert np._core.multiarray.get_handler_name(array) == "default_allocator"
        assert np._core.multiarray.get_handler_version(array) == 1
    assert made.flags == want.flags
    assert made.flags.owndata and made.base is None
    assert made.strides == want.strides
    assert made.tobytes() == want.tobytes()


def test_tracemalloc_counts_what_it_counts_in_eager():
    x, y = np.ones(LARGE), np.ones(LARGE)
    jitted = compiled(scaled, x, y)
    domain = 389047  # NumPy's

    def traced():
        return sum(t.size for t in tracemalloc.take_snapshot().traces if t.domain == domain)

    tracemalloc.start()
    try:
        for function in (scaled, jitted):
            before = traced()
            held = function(x, y)
            assert traced() - before == held.nbytes
            del held
            assert traced() == before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scaled", [scaled, sorted_and_repeated])
def test_results_can_be_resized(scaled):
    x, y = np.ones(LARGE), np.arange(float(LARGE))
    jitted = compiled(scaled, x, y)
    for size in (2 * LARGE, LARGE // 2, 10, 3 * LARGE):
        made, want = jitted(x, y), scaled(x, y)
        made.resize(size, refcheck=False)
        want.resize(size, refcheck=False)
        assert made.tobytes() == want.tobytes()
        del made
        assert jitted(x, y).tobytes() == scaled(x, y).tobytes()


def test_an_array_that_says_to_be_smaller_is_freed_whole():
    """As extension modules do that fill an array and then set its length."""
    x = np.arange(float(LARGE))
    jitted = compiled(scaled, x, x)
    for size in (LARGE // 2, 10, 0):
        made = jitted(x, x)
        dimensions = ctypes.c_void_p.from_address(id(made) + 32).value  # PyArrayObject_fields.dimensions
        ctypes.c_ssize_t.from_address(dimensions).value = size
        assert made.shape == (size,)
        del made
        assert jitted(x, x).tobytes() == scaled(x, x).tobytes()


def test_results_that_are_held_are_left_alone():
    x = np.arange(float(LARGE))
    jitted = compiled(scaled, x, x)
    held = [jitted(x, x + i) for i in range(5)]
    del held[1], held[2]
    gc.collect()
    held += [jitted(x, x - i) for i in range(5)]
    want = [scaled(x, x + i) for i in (0, 2, 4)] + [scaled(x, x - i) for i in range(5)]
    assert [h.tobytes() for h in held] == [w.tobytes() for w in want]


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_children_of_forks_go_on():
    x = np.arange(float(LARGE))
    jitted = compiled(scaled, x, x)
    want = jitted(x, x).tobytes()  # (its memory is kept from here on)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if all(jitted(x, x).tobytes() == want for _ in range(10)) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert jitted(x, x).tobytes() == want
