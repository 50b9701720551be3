"""Faults planted at run time by the setting `fault` are found by the fuzzer; without them, it finds nothing in the
same programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
EXAMPLES = 1500  # each must be found within so many programs

# The first and last show in kernels only; the others are looked for where programs run fastest.
FAULTS = {
    "wrong_kernel_rule": "compiled",
    "dropped_guard": "stepped",
    "wrong_snapshot_slot": "stepped",
    "wrong_resume_offset": "stepped",
    "missed_alias": "compiled",
}


def fuzz(fault: str, engines: str, examples: int) -> subprocess.CompletedProcess[str]:
    environment = dict(
        os.environ, DALSEGNO_FAULT=fault, PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    )
    program = "import sys; from dalsegno.fuzz import run_cli; sys.exit(run_cli(sys.argv[1:]))"
    arguments = ["--examples", str(examples), "--seed", "5", "--engines", engines, "--stop-at-first", "--no-reduce"]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str) -> None:
    done = fuzz(fault, FAULTS[fault], EXAMPLES)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mismatch 1" in done.stdout


def test_without_a_fault_nothing_is_found() -> None:
    done = fuzz("", "stepped,compiled", 60)
    assert done.returncode == 0, done.stdout + done.stderr
