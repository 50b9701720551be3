"""check_install.py: `pip install .` into an environment of its own, then the installed package at work, elsewhere."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import os
from pathlib import Path
import numpy as np
import dalsegno as ds
from dalsegno import _core, fuzz

@ds.jit
def f(x):
    return x * 2 + 1

x = np.linspace(-1, 1, 100_001)  # too large for NumPy's inner loops
for _ in range(8):
    assert f(x).tobytes() == (x * 2 + 1).tobytes()
    ds.wait()
print("installed in", os.path.dirname(ds.__file__))
print({name: count for name, count in f.stats.items() if count})
assert not ds.__file__.startswith(os.environ["SOURCE_TREE"])
folder = Path(ds.__file__).parent
assert {path.name.split(".")[0] for path in folder.glob("*.so")} == {"_core", "_halide"}, list(folder.glob("*.so"))
assert b"PyInit__core" in Path(_core.__file__).read_bytes() and b"_testing" not in Path(_core.__file__).read_bytes()
assert f.stats["replays"] and f.stats["kernel_launches"]
assert f.stats["kernels_assembled"] or f.stats["kernels_compiled"]
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dalsegno-install-") as scratch:
        folder = Path(scratch) / "venv"
        venv.create(folder, symlinks=True, with_pip=True)
        python = str(folder / "bin" / "python")
        pip = [
            python,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "install",
            "--quiet",
            "--prefer-binary",
        ]
        # Not optimised: what is looked at is that all that is needed is there, and a fourth build takes its time.
        plainly = "--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0"
        subprocess.run([*pip, plainly, str(ROOT)], check=True, cwd=scratch)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"DALSEGNO_STORE": f"{scratch}/store.db", "SOURCE_TREE": str(ROOT)}
        # In a file: a function is recorded from its source as a user has it.
        program = Path(scratch) / "program.py"
        program.write_text(PROGRAM)
        for command in ([python, str(program)], [str(folder / "bin" / "dalsegno"), "doctor"]):
            done = subprocess.run(command, cwd=scratch, env=environment)
            if done.returncode:
                sys.exit(f"FAILED: {' '.join(command)}")


if __name__ == "__main__":
    main()
