"""docs/numpy.md says what the code's tables say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import dalsegno as ds
import numpy as np

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "numpy.md").read_text(encoding="utf-8")
VERSION = ".".join(np.__version__.split(".")[:2])


@pytest.mark.skipif(f"for NumPy {VERSION}." not in TEXT, reason="the page is about another version of NumPy")
def test_the_page_is_what_its_tool_makes():
    spec = importlib.util.spec_from_file_location("numpy_table", ROOT / "tools" / "numpy_table.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.page() == TEXT, "python tools/numpy_table.py writes it anew"


def section(name: str) -> list[str]:
    found = re.search(rf"## {name}\n(.*?)(?=\n## |\Z)", TEXT, flags=re.DOTALL)
    assert found is not None
    return re.findall(r"`(\w+)`", found[1])


@pytest.mark.parametrize("name", [*section("expression"), *section("loop")])
def test_what_is_in_kernels_gets_into_one(name: str):
    function, a = getattr(np, name), np.linspace(0.0, 1.0, 50_000)
    if any(word in name for word in ("bitwise", "invert", "shift", "gcd", "lcm")):
        a = (a * 30).astype(np.int32)
    given = {"where": (a > 0.5, a, a), "clip": (a, 0.2, 0.7)}
    operands = given[name] if name in given else (a,) * function.nin
    names = "xyz"[: len(operands)]
    jitted = ds.jit(eval(f"lambda {', '.join(names)}: np.{name}({', '.join(names)})", {"np": np}))
    with ds.config(step_aside=False), np.errstate(all="ignore"):
        before = ds.stats()["kernel_launches"]
        for _ in range(6):
            got = jitted(*operands)
            ds.wait()
            assert got.tobytes() == function(*operands).tobytes()
        assert ds.stats()["kernel_launches"] > before


@pytest.mark.parametrize("name", section("through"))
def test_what_is_recorded_through_is_no_call(name: str):
    function, a = getattr(np, name), np.linspace(0.0, 1.0, 20).reshape((20,) if name == "gradient" else (4, 5))
    more = {"round": (1,), "around": (1,), "polyval": (a,), "isclose": (a,)}.get(name, ())
    operands = (3,) if name == "tri" else (a, *more)
    names = "xy"[: len(operands)]
    jitted = ds.jit(eval(f"lambda {', '.join(names)}: np.{name}({', '.join(names)})", {"np": np}), store=False)
    for _ in range(3):
        assert jitted(*operands).tobytes() == function(*operands).tobytes()
    assert " enter " in str(jitted.explain())
