"""The bench of libraries: functions under their wrappers give eager's results. Without the library, nothing."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

import dalsegno as ds
from dalsegno.bench import libraries
from dalsegno.bench.bits import differences

pytestmark = pytest.mark.once


@pytest.mark.parametrize("path", [path for _, path, _ in libraries.ROWS])
def test_a_function_of_a_library(path: str) -> None:
    module, _, name = path.partition(":")
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed")
    function = getattr(importlib.import_module(module), name)
    (arguments,) = [made for _, one, made in libraries.ROWS if one == path]
    with ds.config(kernels=False, background=False, step_aside=False):
        assert differences(function, arguments(libraries.Data()), calls=4) == []


def test_rows_of_what_is_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "ROWS", (("none", "no_such_library:function", lambda data: ()),))
    assert list(libraries.all_rows(quick=True)) == []
    assert libraries.verdict([]) == 0
