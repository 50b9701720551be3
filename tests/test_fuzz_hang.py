"""A program has hung when the processor has done too much for it, or nothing at all for long."""

import json
import os
import signal

import pytest

from dalsegno.fuzz.cli import Options, _Fuzz
from dalsegno.fuzz.hang import Patience, processor_seconds

pytestmark = pytest.mark.once


def test_a_program_that_waits_for_the_processor_has_not_hung() -> None:
    patience = Patience(processor=40, still=240)
    for second in range(0, 4000, 50):  # a hundredth of the processor
        assert not patience.is_over("program", second / 100, second)


def test_a_program_that_computes_on_and_on_has_hung() -> None:
    patience = Patience(processor=40, still=240)
    assert not patience.is_over("one", 100.0, 0.0)
    assert not patience.is_over("one", 139.0, 39.0)
    assert not patience.is_over("other", 141.0, 41.0)  # each program has a time of its own
    assert not patience.is_over("other", 181.0, 81.0)
    assert patience.is_over("other", 181.5, 81.5)


def test_a_program_that_stands_still_has_hung() -> None:
    patience = Patience(processor=40, still=240)
    assert not patience.is_over("program", 3.0, 0.0)
    assert not patience.is_over("program", 3.0, 240.0)
    assert patience.is_over("program", 3.0, 241.0)


def test_a_process_that_waits_for_another_one_does_not_stand_still() -> None:
    patience = Patience(processor=40, still=240)
    for second in range(0, 2000, 5):
        assert not patience.is_over("batch", 3.0, second, waits=True)


def test_what_the_processor_does_is_seen() -> None:
    before = processor_seconds(os.getpid(), -1.0)
    assert before >= 0
    while processor_seconds(os.getpid(), -1.0) == before:
        sum(range(10000))
    assert processor_seconds(2**30, -1.0) == -1.0


def test_a_program_that_does_not_end_in_eager_is_too_slow(tmp_path, capsys) -> None:
    """np.power.outer of two large arrays, 12 GB, was reported as hung in the engine of the program before it."""
    fuzz = _Fuzz(Options(100, 1, 1e9, ["stepped"], "", False, False, ()))
    program = {"source": "", "calls": ""}
    (tmp_path / "current.json").write_text(json.dumps({"program": program, "engine": "eager"}), encoding="utf-8")
    fuzz._ended_badly(str(tmp_path), -signal.SIGKILL, True, "")
    fuzz._summary()
    assert " 0 mismatches, 0 flaky, 0 invalid, 1 too slow" in capsys.readouterr().out
