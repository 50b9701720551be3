"""The oracle sees each of a list of faults, and none where there is none."""

import importlib

import pytest

import numpy as np
from dalsegno.fuzz.cold import check_cold
from dalsegno.fuzz.engines import Engine, jitted_engines, load_backend
from dalsegno.fuzz.oracle import Session, compare
from dalsegno.fuzz.program import InvalidProgram, Program, load
from dalsegno.fuzz.report import find_mismatches
from dalsegno.fuzz.runner import Flaky, TooSlow, check, run_session

ARRAYS = """
def calls():
    yield (np.array([[-0.0, 2.0, 3.0]]),), {}
    yield (np.array([[1.0, -0.0, 3.0], [4.0, 5.0, 6.0]]),), {}
    yield (np.array([[1.0, -0.0, 5.0], [4.0, 5.0, 6.0]]),), {}
    yield (np.array([[1.0, -0.0, 7.0], [4.0, 5.0, 6.0]]),), {}
"""

# Each fault with a program that shows it, and the aspect it must show in.
CASES = {
    "StaleResult": ("@jit\ndef entry(x):\n    return x + 1\n", "outcome"),
    "SecondCallStale": ("@jit\ndef entry(x):\n    return x + 1\n", "outcome"),
    "DropsNegativeZero": ("@jit\ndef entry(x):\n    return x * 1\n", "outcome"),
    "OneUlp": ("@jit\ndef entry(x):\n    return [x * 1, 2]\n", "outcome"),
    "CopiesResult": ("@jit\ndef entry(x):\n    return x[1:]\n", "outcome"),
    "OtherLayout": ("@jit\ndef entry(x):\n    return x * 1\n", "outcome"),
    "ScalarType": ("@jit\ndef entry(x):\n    return x.sum()\n", "outcome"),
    "CopiesArguments": ("@jit\ndef entry(x):\n    x += 1\n", "arguments"),
    "RunsTwice": ("LOG = []\n@jit\ndef entry(x):\n    LOG.append(1)\n", "globals"),
    "LosesWarnings": ("import warnings\n@jit\ndef entry(x):\n    warnings.warn('w')\n", "events"),
    "LosesOutput": ("@jit\ndef entry(x):\n    print(x.shape)\n", "events"),
    "WrongLine": ("def f(x):\n    x[7] = 1\n@jit\ndef entry(x):\n    f(x)\n", "outcome"),
    "OtherMessage": ("@jit\ndef entry(x):\n    raise ValueError('a')\n", "outcome"),
    "LosesContext": (
        "@jit\ndef entry(x):\n    try:\n        1 // 0\n    except ZeroDivisionError:\n        raise ValueError('a')\n",
        "outcome",
    ),
    "ReusesBuffer": ("@jit\ndef entry(x):\n    return x * 2\n", "outcome"),
}


@pytest.mark.parametrize("fault", CASES)
def test_each_fault_is_seen(fault: str) -> None:
    source, aspect = CASES[fault]
    mismatches = find_mismatches(Program(source, ARRAYS), [Engine.STEPPED], f"tests.fuzz_backends:{fault}")
    assert mismatches, fault
    assert aspect in {difference.aspect for difference in mismatches[0].differences}


@pytest.mark.parametrize("fault", CASES)
def test_no_fault_no_mismatch(fault: str) -> None:
    here = [engine for engine in Engine if not engine.value.fresh_process]
    assert find_mismatches(Program(CASES[fault][0], ARRAYS), here, "tests.fuzz_backends:Identity") == []


def test_a_buffer_reused_after_the_result_was_looked_at(tmp_path) -> None:
    """The overwritten result is noticed even where the overwriting call's own result looks right."""
    head, tail = "KEEP = []\n@jit\ndef entry(x):\n    KEEP.append(x * 2)\n", "    return KEEP[-1]\n"
    source = head + "    if len(KEEP) > 1:\n        KEEP[0][...] = 9\n" + tail
    honest = head + tail
    sessions = [
        run_session(load(Program(text, ARRAYS), str(tmp_path), f"p{i}"), Engine.EAGER, None)
        for i, text in enumerate((source, honest))
    ]
    assert compare(sessions[1], sessions[0])
    assert sessions[0].afterwards != sessions[1].afterwards


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.0", "-0.0", False),
        ("1", "True", False),
        ("1", "1.0", False),
        ("1.0", "np.float64(1.0)", False),
        ("np.float32(1)", "np.float64(1)", False),
        ("float('nan')", "-float('nan')", True),
        ("np.array([np.nan])", "-np.array([np.nan])", True),
        ("np.array([0.0])", "np.array([-0.0])", False),
        ("np.array([1, 2])", "np.array([1, 2], 'int32')", False),
        ("np.zeros((2, 3))", "np.zeros((2, 3), order='F')", False),
        ("np.zeros((3, 1))", "np.zeros((3,))", False),
        ("np.array(1.0)", "np.float64(1.0)", False),
        ("[1]", "(1,)", False),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", False),
        ("(lambda x: (x, x))([1])", "([1], [1])", False),
        ("(lambda x: (x, x))(1.5 * len('ab'))", "(1.5 * len('ab'), 1.5 * len('ab'))", False),
        ("(lambda a: (a, a[:]))(np.arange(3))", "(np.arange(3), np.arange(3))", False),
        ("(lambda a: (a, a[1:3]))(np.arange(4))", "(lambda a: (a, a[0:2]))(np.array([0, 1, 2, 3]))", False),
        ("np.arange(4)[::2]", "np.array([0, 2])", False),
        ("object().__repr__()", "object().__repr__()", True),
        ("{3, 1, 2}", "{1, 2, 3}", True),
        ("1j", "-1j", False),
        ("np.array([1 + 0j])", "np.array([complex(1, -0.0)])", False),
        ("'a'", "b'a'", False),
        ("2**70", "2**70 + 1", False),
    ],
)
def test_values(one: str, other: str, same: bool, tmp_path) -> None:
    calls = "def calls():\n    yield (), {}\n"
    sessions = [
        run_session(
            load(Program(f"import numpy as np\ndef entry(): return {text}\n", calls), str(tmp_path), f"p{i}"),
            Engine.EAGER,
            None,
        )
        for i, text in enumerate((one, other))
    ]
    assert (compare(*sessions) == []) is same
    assert (sessions[0] == sessions[1]) is same


def test_locals_of_a_failed_frame_are_compared(tmp_path) -> None:
    """They differ in nothing but what a debugger would show of the frame that raised."""
    sessions = [
        run_session(
            load(
                Program(f"@jit\ndef entry():\n    v = {value}\n    1 // 0\n", "def calls():\n    yield (), {}\n"),
                str(tmp_path),
            ),
            Engine.EAGER,
            None,
        )
        for value in (1, 2)
    ]
    (difference,) = compare(*sessions)
    assert "traceback" in difference.where


def test_a_flaky_program_is_no_mismatch() -> None:
    program = Program(
        "import time\n@jit\ndef entry(): return time.perf_counter_ns()\n", "def calls():\n    yield (), {}\n"
    )
    with pytest.raises(Flaky):
        find_mismatches(program, [Engine.STEPPED], "tests.fuzz_backends:Identity")


def test_a_line_that_depends_on_how_often_the_function_has_run() -> None:
    """In eager, too: CPython 3.11's STORE_FAST__LOAD_FAST."""
    source = "def late(n):\n    a = n\n    b\n    b = a\n@jit\ndef entry(n):\n    return list(map(late, [n]))\n"
    program = Program(source, "def calls():\n    for n in range(3):\n        yield (n,), {}\n")
    assert find_mismatches(program, jitted_engines(here=True)) == []


@pytest.mark.parametrize("body", ["while True: pass", "try:\n  while True: pass\n finally: return 1"])
def test_a_program_that_takes_too_long(body: str) -> None:
    """Also one that swallows what ends it."""
    with pytest.raises(TooSlow):
        find_mismatches(Program(f"@jit\ndef entry():\n {body}\n", "def calls():\n    yield (), {}\n"), [Engine.STEPPED])


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("def entry(:", "def calls():\n    yield (), {}\n"),
        ("1 // 0", "def calls():\n    yield (), {}\n"),
        ("def entry(): pass", "def calls():\n    yield 3\n"),
        ("def entry(): pass", "def calls():\n    yield (1 // 0,), {}\n"),
        ("pass", "def calls():\n    yield (), {}\n"),
    ],
)
def test_nonsense_is_said_to_be_invalid(source: str, calls: str) -> None:
    with pytest.raises(InvalidProgram):
        find_mismatches(Program(source, calls), [Engine.STEPPED], "tests.fuzz_backends:Identity")


def test_results_and_rebinding_between_calls(tmp_path) -> None:
    program = Program(
        "SCALE = 2\n@jit\ndef entry(x): return x * SCALE\n",
        "def calls():\n    r = yield (np.array([1.0]),), {}\n    yield 'SCALE = 5'\n    yield (r,), {}\n",
    )
    session, mismatches = check(
        load(program, str(tmp_path)), [Engine.STEPPED], load_backend("tests.fuzz_backends:Identity")
    )
    assert mismatches == []
    last = session.observations[1].outcome[1]
    assert np.frombuffer(last[-1])[0] == 10.0
    stale = find_mismatches(program, [Engine.STEPPED], "tests.fuzz_backends:StaleResult")
    assert stale and stale[0].differences[0].call == 1


def test_a_cold_process_is_compared_and_its_death_noticed(tmp_path) -> None:
    good = Program("@jit\ndef entry(x): return x + 1\n", ARRAYS)
    expected = [run_session(load(good, str(tmp_path)), Engine.EAGER, None)] * 3
    assert check_cold([good] * 3, expected, "tests.fuzz_backends:Identity").mismatches == {}
    assert set(check_cold([good] * 3, expected, "tests.fuzz_backends:StaleResult").mismatches) == {0, 1, 2}
    dying = Program("import os\n@jit\ndef entry(x):\n    os._exit(3)\n", ARRAYS)
    found = check_cold([good, dying, good], expected, "tests.fuzz_backends:Identity").mismatches
    assert set(found) == {1}
    assert "exit status 3" in str(found[1].differences[0])


LARGE = "LARGE = np.ones((200, 200))\n@jit\ndef entry(x):\n    return (LARGE + x.sum()).sum()\n"


def test_memory_is_compared_but_not_what_is_loaded_once() -> None:
    program = Program("import numpy as np\n" + LARGE, ARRAYS)
    (mismatch,) = find_mismatches(program, [Engine.STEPPED], "tests.fuzz_backends:Hoards")
    assert [difference.aspect for difference in mismatch.differences] == ["memory"]
    assert find_mismatches(program, [Engine.STEPPED], "tests.fuzz_backends:HoardsOnce") == []


def test_what_a_cold_process_imports_is_not_its_calls_memory() -> None:
    importlib.import_module("numpy.testing")  # so that the eager session need not
    source = "import numpy as np\n" + LARGE.replace("    return", "    import numpy.testing\n    return")
    assert find_mismatches(Program(source, ARRAYS), [Engine.COLD_PROCESS]) == []


def test_a_recursion_without_end_goes_as_deep_in_every_process(tmp_path) -> None:
    loaded = load(
        Program(
            "def one(n):\n    return other(n + 1)\ndef other(n):\n    return one(n + 1)\n"
            "@jit\ndef entry(n):\n    return one(n)\n",
            "def calls():\n    yield (0,), {}\n",
        ),
        str(tmp_path),
    )

    def at_depth(depth: int) -> Session:
        return at_depth(depth - 1) if depth else run_session(loaded, Engine.EAGER, None)

    assert compare(at_depth(0), at_depth(1)) == []
    assert compare(at_depth(0), at_depth(10)) == []
