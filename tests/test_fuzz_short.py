"""A short run of the fuzzer through every engine."""

from dalsegno.fuzz import run_cli


def test_no_mismatch_in_a_short_run(capfd) -> None:
    status = run_cli(["--examples", "150", "--seed", "20"])
    out = capfd.readouterr().out
    assert status == 0, out
    assert "150 programs" in out and " 0 mismatches" in out
