"""A store for every session, so that tests neither see nor touch the user's; settings are put back after each test."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Before anything imports dalsegno. A directory of our own: the store refuses one that others may write to.
_scratch = tempfile.TemporaryDirectory(prefix="dalsegno-tests-")
os.environ["DALSEGNO_STORE"] = str(Path(_scratch.name) / "store.sqlite3")
for _name in [n for n in os.environ if n.startswith("DALSEGNO_") and n != "DALSEGNO_STORE"]:
    del os.environ[_name]


def pytest_unconfigure() -> None:
    _scratch.cleanup()


@pytest.fixture(autouse=True)
def _settings_put_back() -> Iterator[None]:
    import dalsegno as ds

    before = ds.config.to_dict()
    ds.config.step_aside = False  # tests look at replay, also where it is the slower way
    yield
    for name, value in before.items():
        setattr(ds.config, name, value)


@pytest.fixture(autouse=True, scope="module")
def _little_to_collect() -> None:
    """What tests and modules are made of stays to the end: the many calls of gc.collect() need not look through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _second_processes() -> Iterator[None]:
    """What differs in the processes that a module's programs share is an error of its last test, and names its own."""
    yield
    from tests.support import check_second_processes

    check_second_processes()


@pytest.fixture(scope="module")
def kernels_are_kept() -> Iterator[None]:
    """In other processes, which run here: kernels that are assembled are in no store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALSEGNO_ASSEMBLE", "0")
        yield


@pytest.fixture
def fresh_store(tmp_path: Path) -> Iterator[Path]:
    """An empty store of this test alone, in use while the test runs."""
    import dalsegno as ds

    tmp_path.chmod(0o700)
    path = tmp_path / "fresh.sqlite3"
    with ds.config(store=str(path)):
        yield path


RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Runs Python in a new process, on the store in use here: run_python("-c", code, DALSEGNO_X="1")."""

    def run(*arguments: str, cwd: Path = tmp_path, timeout: float = 120.0, **environment: str) -> Any:
        import dalsegno as ds

        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, "DALSEGNO_STORE": ds.store.path, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
