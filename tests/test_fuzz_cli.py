"""`dalsegno fuzz` on stand-ins: progress, summary, exit status, crashes, bad usage."""

import re

import pytest

from dalsegno.fuzz import run_cli

pytestmark = pytest.mark.once


def backend(name: str) -> list[str]:
    return ["--backend", f"tests.fuzz_backends:{name}"]


def test_summary_line(capfd) -> None:
    assert run_cli(["--examples", "60", "--seed", "3", *backend("Plain")]) == 0
    out = capfd.readouterr().out
    last = out.strip().splitlines()[-1]
    assert re.fullmatch(
        r"60 programs, \d+ calls \(\d+ raised\), 0 mismatches, 0 flaky, \d+ invalid, 0 too slow, seed 3, "
        r"[\d.]+ programs/s",
        last,
    )
    assert "exercised:" in out


def test_a_fault_is_found_shrunk_and_printed(capfd) -> None:
    assert (
        run_cli(
            ["--examples", "60", "--seed", "4", "--stop-at-first", "--engines", "stepped", *backend("SecondCallStale")]
        )
        == 1
    )
    out = capfd.readouterr().out
    assert "check_program(SOURCE, CALLS, engines=['stepped']" in out
    assert re.search(r"^[1-9]\d* programs, .* [1-9]\d* mismatches", out.strip().splitlines()[-1])
    source = out.split("SOURCE = ")[1].split("CALLS = ")[0]
    assert len(source.strip().splitlines()) < 75  # of some 300; how far it goes depends on the program


def test_a_crash_is_a_finding(capfd) -> None:
    assert (
        run_cli(
            [
                "--examples",
                "60",
                "--seed",
                "3",
                "--stop-at-first",
                "--no-reduce",
                "--engines",
                "stepped",
                *backend("Crashes"),
            ]
        )
        == 1
    )
    assert "signal SIGSEGV" in capfd.readouterr().out


def test_time_limit(capfd) -> None:
    assert (
        run_cli(["--examples", "1000000", "--time", "4", "--seed", "1", "--engines", "stepped", *backend("Plain")]) == 0
    )
    programs = int(re.search(r"(\d+) programs, \d+ calls \(", capfd.readouterr().out)[1])
    assert 0 < programs < 100_000


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--engines", "warp"], "unknown engine 'warp'; known are eager, recording"),
        (["--examples", "0"], "must be positive"),
        (["--examples", "x"], "invalid int value"),
        (["numpy:sum"], "is not there yet"),
        (["--backend", "no_such_module:X"], "no_such_module"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_bad_usage(argv, message, capfd) -> None:
    assert run_cli(argv) == 2
    assert message in capfd.readouterr().err
