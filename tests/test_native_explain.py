"""What `explain` says of loops that are native code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dalsegno as ds
from dalsegno.cli import main
from tests.support import stepped

SOURCE = """
def asked(k):
    return [k].count(k)

def work(n, ask):
    t = 0
    for i in range(n):
        if i % 3 == 0:
            t = t + i
        else:
            t = t ^ i
    for k in range(n):
        t = t + ask(k)
    return t
"""


def test_what_is_native_and_what_is_called() -> None:
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    work = ds.jit(store=False)(space["work"])
    with stepped(step_aside=False, hot_loop=1):
        for _ in range(6):
            work(60, space["asked"])
        traces = work.explain().to_dict()["traces"]
    loops = [trace["native"] for trace in traces if trace["native"] is not None]
    assert len(loops) >= 2
    assert all(native["state"] == "compiled" and "define i32 @" in native["text"] for native in loops)
    assert any(len(native["traces"]) > 1 for native in loops)  # the branch is part of it
    hows = [[called["how"] for called in native["called"]] for native in loops]
    assert any("runs code" in how for how in hows)
    rank = ["leaves", "runs code", "step"]
    assert all(how == sorted(how, key=rank.index) for how in hows)
    text = str(work.explain())
    assert "native code, compiled" in text
    assert "called, and may run any code: " in text


def test_the_command_line_prints_the_code(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "m.py").write_text("def f(n):\n    t = 0\n    for i in range(n):\n        t = t + i\n    return t\n")
    with stepped(step_aside=False, hot_loop=1):
        call = ["--call", "[f(50) for _ in range(4)]"]
        assert main(["explain", f"{tmp_path}/m.py:f", *call]) == 0
        assert "define i32 @" not in capsys.readouterr().out
        assert main(["explain", f"{tmp_path}/m.py:f", "--ir", *call]) == 0
        assert "define i32 @" in capsys.readouterr().out
        assert main(["explain", f"{tmp_path}/m.py:f", "--asm", *call]) == 0
    text = capsys.readouterr().out
    assert "define i32 @" not in text
    assert "dalsegno_region:" in text
    assert "\tret" in text
