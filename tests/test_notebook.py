"""The tour runs from top to bottom and prints what it says; cells tagged "timing" or "machine" only have to run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
TOUR = ROOT / "notebooks" / "tour.ipynb"
_VARIES = {"timing", "machine"}


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(TOUR, as_version=4)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    notebook = nbformat.read(TOUR, as_version=4)
    folder = tmp_path_factory.mktemp("tour")
    patch = pytest.MonkeyPatch()
    patch.setenv("DALSEGNO_STEP_ASIDE", "0")  # what it prints must not depend on time
    patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    patch.setenv("IPYTHONDIR", str(folder / "ipython"))
    patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
    try:
        client = NotebookClient(
            notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        return client.execute()
    finally:
        patch.undo()


def outputs(cell):
    """What a reader sees of a cell, as text: streams joined, results as text/plain."""
    streams = "".join(o.text for o in cell.outputs if o.output_type == "stream")
    results = [o.data["text/plain"] for o in cell.outputs if o.output_type in ("execute_result", "display_data")]
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", "\n".join([streams, *results]))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_it_runs_and_prints_what_it_says(stored, executed):
    for before, after in zip(code_cells(stored), code_cells(executed), strict=True):
        if not _VARIES & set(before.metadata.get("tags", [])):
            assert outputs(after) == outputs(before), before.source
        assert bool(after.outputs) == bool(before.outputs), before.source
        assert not [o for o in after.outputs if o.output_type == "error" or o.get("name") == "stderr"]


def test_explain_is_shown_as_a_table_with_a_plain_text_twin(executed):
    cell = next(c for c in code_cells(executed) if "wave.explain()" in c.source)
    data = cell.outputs[0].data
    assert "<table>" in data["text/html"] and "np.sqrt(x * x + 1.0)" in data["text/html"]
    assert "np.sqrt(x * x + 1.0)" in data["text/plain"]


def test_most_outputs_are_compared(stored):
    compared = [c for c in code_cells(stored) if c.outputs and not _VARIES & set(c.metadata.get("tags", []))]
    assert len(compared) >= 9


def test_nothing_of_this_machine_is_in_it():
    text = TOUR.read_text()
    assert "/home/" not in text and "/root" not in text and str(ROOT) not in text
