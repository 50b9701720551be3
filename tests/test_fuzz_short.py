"""A short run of the fuzzer through every engine."""

import pytest

from dalsegno.fuzz import run_cli


@pytest.mark.timeout(1200)  # on a machine that others keep busy, 150 programs take minutes
def test_no_mismatch_in_a_short_run(capfd) -> None:
    status = run_cli(["--examples", "150", "--seed", "20"])
    out = capfd.readouterr().out
    assert status == 0, out
    assert "150 programs" in out and " 0 mismatches" in out
