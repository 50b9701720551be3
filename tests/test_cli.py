"""The command line: what each command prints, and that a user's mistake is one clear line and exit code 2."""

from __future__ import annotations

import re

import pytest

import dalsegno as ds
import numpy as np
from dalsegno.cli import main

X = np.arange(5.0)
MODULE = """
import numpy as np
import dalsegno as ds

@ds.jit
def jitted(x):
    y = x * 2.0
    return y + 1.0

def plain(x):
    return np.sqrt(x) - 1.0

class Shape:
    @ds.jit
    def area(self, x):
        return x * x

    def length(self, x):
        return x + x
"""


@pytest.fixture
def module(tmp_path):
    (tmp_path / "shapes.py").write_text(MODULE)
    return tmp_path


def out(capsys, *arguments, code=0):
    """Runs a command in this process; returns what it printed."""
    assert main(arguments) == code
    return capsys.readouterr().out


# ---- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demoo"], "no command 'demoo'; did you mean 'demo'?"),
        (["xyz"], "no command 'xyz'; there are demo, fuzz, explain, store, bench, doctor"),
        (["--bogus"], "no command '--bogus'"),
        (["explain"], "the following arguments are required: MODULE:FUNCTION"),
        (["explain", "numpy"], "'numpy' is not MODULE:FUNCTION"),
        (["explain", ":f"], "':f' is not MODULE:FUNCTION"),
        (["explain", "no_such_module:f"], "there is no module 'no_such_module'"),
        (["explain", "tests.nothing:f"], "there is no module 'tests.nothing'"),
        (["explain", "json:dumpz"], "json has no function 'dumpz'; did you mean 'dump"),
        (["explain", "math:sin"], "built-in function"),
        (["explain", "json:JSONDecoder"], "is a class; jit its methods"),
        (["explain", "json:dumps", "--call", "nonsense("], "'nonsense(' raised SyntaxError"),
        (["explain", "json:dumps", "--call", "1 / 0"], "'1 / 0' raised ZeroDivisionError: division by zero"),
        (["store"], "the following arguments are required"),
        (["store", "sho"], "no action 'sho'; did you mean 'show'?"),
        (["store", "ls", "f"], "dalsegno store ls takes no name"),
        (["store", "show", "no_such_function"], "no function or table 'no_such_function'"),
        (["bench", "--quik", "x"], "unrecognized arguments"),
        (["demo", "--outputs"], "dalsegno demo:"),
        (["doctor", "now"], "unrecognized arguments: now"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(capsys, arguments, words):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1 and printed.out == ""


def test_no_command_prints_the_usage(capsys):
    assert "explain MODULE:FUNCTION" in out(capsys, code=2)
    assert "explain MODULE:FUNCTION" in out(capsys, "--help")
    assert out(capsys, "--version") == f"dalsegno {ds.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "explain", "store", "bench", "doctor"])
def test_help_of_each_command(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"dalsegno {command}" in capsys.readouterr().out


def test_as_a_module_and_into_a_closed_pipe(run_python):
    assert run_python("-m", "dalsegno", "--version").stdout == f"dalsegno {ds.__version__}\n"
    wrong = run_python("-m", "dalsegno", "sotre")
    assert (wrong.returncode, wrong.stdout) == (2, "") and wrong.stderr.count("\n") == 1
    code = (
        "import os, subprocess, sys; reader, writer = os.pipe(); os.close(reader)\n"
        "command = [sys.executable, '-m', 'dalsegno', 'doctor']\n"
        "print(subprocess.run(command, stdout=writer, stderr=subprocess.PIPE).stderr)"
    )
    assert run_python("-c", code).stdout == "b''\n"


# ---- explain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "call", "line"),
    [
        ("shapes:jitted", "jitted(np.ones(3))", "y = x * 2.0"),
        ("shapes.py:jitted", "jitted(np.ones(3))", "y = x * 2.0"),
        ("shapes:plain", "plain(np.ones(3))", "return np.sqrt(x) - 1.0"),
        ("shapes:Shape.area", "Shape().area(np.ones(3))", "return x * x"),
        ("shapes:Shape.length", "Shape().length(np.ones(3))", "return x + x"),
    ],
)
def test_explain_after_calls(run_python, module, function, call, line):
    done = run_python("-m", "dalsegno", "explain", function, "--call", call, "--call", call, cwd=module)
    assert (done.returncode, done.stderr) == (0, "")
    assert line in done.stdout and "trace 0: starts at the function's entry" in done.stdout
    assert "2 calls" in done.stdout


def test_explain_without_calls_says_how_and_what_the_store_has(run_python, module, fresh_store):
    before = run_python("-m", "dalsegno", "explain", "shapes:jitted", cwd=module)
    assert before.returncode == 0
    assert "nothing is recorded yet" in before.stdout
    assert "the store has nothing of it either" in before.stdout
    assert "dalsegno explain shapes:jitted --call 'jitted(...)'" in before.stdout
    use = "import shapes, dalsegno, numpy\nfor _ in range(3): shapes.jitted(numpy.ones(3))\ndalsegno.wait()"
    assert run_python("-c", use, cwd=module).returncode == 0
    after = run_python("-m", "dalsegno", "explain", "shapes:jitted", cwd=module)
    assert "in the store: shapes.jitted, 1 traces" in after.stdout


# ---- store -----------------------------------------------------------------------------------------------------------


@ds.jit
def kept(x):
    return x * 2.0 + 1.0


def test_store_commands(capsys, fresh_store):
    assert out(capsys, "store", "path") == f"{fresh_store}\n"
    for _ in range(4):
        kept(X)
    ds.wait()
    listing = out(capsys, "store", "ls").splitlines()
    assert listing[0].split() == "function key traces ops guards bytes last used".split()
    assert listing[1].split()[0].endswith("kept") and listing[1].split()[2] == "1"
    assert listing[-1].startswith("1 functions, ")

    tables = out(capsys, "store", "show")
    for name in ("functions", "traces", "ops", "objects", "kernels", "guards", "exits"):
        assert any(line.startswith(f"{name} (") for line in tables.splitlines())
    name = listing[1].split()[0]
    shown = out(capsys, "store", "show", name)
    assert "trace 0, entry" in shown and "multiply" in shown.lower() or "*" in shown
    assert out(capsys, "store", "show", listing[1].split()[1]) == shown
    assert (
        out(capsys, "store", "show", "functions")
        .splitlines()[1]
        .startswith(ds.store.query("SELECT key FROM functions")[0][0])
    )

    stats = dict(line.split(maxsplit=1) for line in out(capsys, "store", "stats").splitlines())
    assert stats["functions"] == "1"

    assert re.fullmatch(r"[1-9]\d* rows checked, 0 damaged and deleted\n", out(capsys, "store", "verify"))
    assert out(capsys, "store", "gc").startswith("dropped 0 functions and kernels; ")
    assert out(capsys, "store", "clear").startswith("removed 1 functions")
    assert out(capsys, "store", "ls").splitlines()[-1].startswith("0 functions, 0 kernels")


def test_store_commands_on_an_empty_store(capsys, fresh_store):
    assert out(capsys, "store", "ls").splitlines()[-1].startswith("0 functions, 0 kernels of 0 bytes")
    assert main(["store", "show", "f"]) == 2
    assert "the store is empty" in capsys.readouterr().err
    assert out(capsys, "store", "clear").startswith("removed 0 functions")


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_doctor_finds_nothing_wrong_here(run_python, fresh_store):
    done = run_python("-m", "dalsegno", "doctor")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    for word in (
        "Python",
        "numpy",
        "halide",
        "llvmlite",
        "SQLite",
        "CPU features",
        "store",
        "trial: replay",
        "trial: kernels",
    ):
        assert f" {word} " in done.stdout
    assert "WRONG" not in done.stdout and done.stdout.endswith("nothing is wrong\n")


def test_doctor_says_what_is_wrong(run_python, fresh_store):
    done = run_python("-m", "dalsegno", "doctor", DALSEGNO_DISABLE="1")
    assert done.returncode == 1
    assert "unset DALSEGNO_DISABLE" in done.stdout and done.stdout.endswith("wrong: settings\n")


def test_doctor_says_what_is_missing(run_python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n_version = metadata.version\n"
        "def version(name):\n"
        "    if name in ('llvmlite', 'matplotlib'): raise metadata.PackageNotFoundError(name)\n"
        "    return _version(name)\n"
        "metadata.version = version\n"
    )
    from tests.conftest import ROOT

    done = run_python("-m", "dalsegno", "doctor", PYTHONPATH=f"{tmp_path}:{ROOT}")
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith(("ok ", "WRONG "))}
    assert lines["llvmlite"].startswith("WRONG") and "pip install llvmlite" in lines["llvmlite"]
    assert lines["matplotlib"].startswith("ok") and "pip install 'dalsegno[demo]'" in lines["matplotlib"]
    assert done.returncode == 1


def test_a_missing_extra_is_one_line(run_python):
    code = "import sys; sys.modules['matplotlib'] = None; from dalsegno.cli import main; sys.exit(main(['demo']))"
    done = run_python("-c", code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dalsegno demo needs matplotlib: pip install 'dalsegno[demo]'\n"


def test_fuzz_is_delegated(run_python, fresh_store):
    wrong = run_python("-m", "dalsegno", "fuzz", "--exampels", "2")
    assert wrong.returncode == 2 and "--exampels" in wrong.stderr and "Traceback" not in wrong.stderr
    done = run_python("-m", "dalsegno", "fuzz", "--examples", "2", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
