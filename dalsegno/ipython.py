"""How notebooks show an explanation. Nothing of IPython is imported."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from .explain import COMPANION, beside_source, exit_of, headline, note_text, segment_name, summary, trace_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .explain import Explanation

# Green: compiled in a kernel; yellow: a guard; nothing: a step.
_COLOURS = {"kernel": "rgba(80, 180, 80, 0.18)", "guard": "rgba(220, 180, 0, 0.18)", "step": "transparent"}
_CELL = "text-align:left;padding:0 0.8em 0 0;white-space:pre;font-family:monospace;border:none"


def explanation_html(explanation: Explanation) -> str:
    """One table a trace, open for the first; no scripts, no links, readable where styles are dropped."""
    parts = [f"<div><p><b>{escape(headline(explanation))}</b></p>"]
    for index, trace in enumerate(explanation.traces):
        opened = " open" if index == 0 else ""
        parts.append(f"<details{opened}><summary>{escape(trace_title(trace))}</summary>")
        parts.append("<table>" + "".join(_rows(trace)) + "</table>")
        parts.append("<br>".join(escape(line) for line in summary(trace)))
        parts.append("</details>")
    if explanation.notes:
        reasons = "".join(f"<li>{escape(note_text(note))}</li>" for note in explanation.notes)
        parts.append(f"<p>not recorded, and why</p><ul>{reasons}</ul>")
    for companion in explanation.companions:
        parts.append(f"<p>{escape(COMPANION)}</p>{explanation_html(companion)}")
    parts.append("</div>")
    return "".join(parts)


def _rows(trace: Mapping[str, Any]) -> Iterator[str]:
    for source, op in beside_source(trace):
        segment = segment_name(op["segment"]) if op["segment"] is not None else ""
        cells = [source, op["text"], segment, exit_of(trace, op)]
        colour = _COLOURS["guard" if op["guard"] else "kernel" if segment else "step"]
        row = "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in cells)
        yield f'<tr style="background:{colour}" title="{escape(op["note"] or "", quote=True)}">{row}</tr>'
