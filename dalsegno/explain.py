"""What became of a function: traces beside source, guards, segments, exits, reasons; as text, HTML or plain data."""

from __future__ import annotations

import linecache
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._backend import core

_SOURCE_WIDTH = 46
_OP_WIDTH = 58
# Ops that only say how long values live: in to_dict(), but not shown.
_HIDDEN = ("release",)
_ANCHORS = {"entry": "starts at the function's entry", "loop": "starts at a loop's header", "exit": "side trace"}


COMPANION = "called by its traces in the place of a plain function:"


class Explanation:
    """Data at the moment it was asked for. `str()` is text, `to_dict()` plain data; notebooks show HTML."""

    def __init__(
        self,
        name: str,
        place: str,
        stats: Mapping[str, int],
        traces: list[dict[str, Any]],
        notes: list[dict[str, Any]],
        companions: Sequence[Explanation] = (),
    ) -> None:
        self.name = name
        self.place = place
        self.stats = dict(stats)
        self.traces = traces
        self.notes = notes
        self.companions = tuple(companions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: name, place, stats, traces, notes, as the extension module gives them; companions likewise."""
        own = {"name": self.name, "place": self.place, "stats": self.stats, "traces": self.traces, "notes": self.notes}
        return {**own, "companions": [companion.to_dict() for companion in self.companions]}

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .ipython import explanation_html

        return explanation_html(self)


def explain(function: Any) -> Explanation:
    """What was recorded of a jitted function, and why not more. TypeError for anything else.

    Plain functions that have loops or call themselves have companions, which traces call in their place; they are
    explained, too.
    """
    while isinstance(function, (types.MethodType, staticmethod, classmethod)):
        function = function.__func__
    if not isinstance(function, core.JitFunction):
        got = repr(function)[:80]
        raise TypeError(
            f"dalsegno.explain needs a function made by dalsegno.jit, not {got}; write @dalsegno.jit above it"
        )
    return _explained(function, {id(function)})


def _explained(function: Any, seen: set[int]) -> Explanation:
    code = getattr(function._plain, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
    traces = [{"file": code.co_filename if code else "", **trace} for trace in function.traces()]
    new = [companion for companion in function.companions() if id(companion) not in seen]
    seen.update(map(id, new))
    inside = [_explained(companion, seen) for companion in new]
    return Explanation(function.__qualname__, place, function.stats, traces, function.notes(), inside)


# ---- text --------------------------------------------------------------------------------------------------------


def segment_name(index: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = chr(ord("a") + letter) + name
    return name


def headline(explanation: Explanation) -> str:
    """One line: what happened to the function's calls so far."""
    stats = explanation.stats
    counts = [
        (stats.get("calls", 0), "call"),
        (stats.get("replays", 0), "replayed"),
        (stats.get("eager_calls", 0), "eager"),
        (stats.get("recordings", 0), "recording"),
        (stats.get("exits", 0), "exit"),
    ]
    words = [plural(n, word) for n, word in counts]
    return f"{explanation.name} ({explanation.place}): {plural(len(explanation.traces), 'trace')}; {', '.join(words)}"


def plural(count: int, word: str) -> str:
    """3 exits, 1 exit, 2 replayed."""
    ending = "" if count == 1 or word.endswith(("ed", "er")) else "s"
    return f"{count:,} {word}{ending}"


def _lines(explanation: Explanation) -> Iterator[str]:
    yield headline(explanation)
    for trace in explanation.traces:
        yield ""
        yield from _trace_lines(trace)
    yield from _note_lines(explanation)
    for companion in explanation.companions:
        yield ""
        yield COMPANION
        yield from _lines(companion)


def _note_lines(explanation: Explanation) -> Iterator[str]:
    if not explanation.traces:
        yield ""
        if not explanation.stats.get("calls", 0):
            yield "nothing is recorded yet: the function has not been called in this process"
        elif not explanation.notes:
            yield "nothing is recorded"
    if explanation.notes:
        yield ""
        yield "not recorded, and why"
        for note in explanation.notes:
            yield f"  {note_text(note)}"


def note_text(note: Mapping[str, Any]) -> str:
    """A reason: what, where, how often, and what to do about it."""
    where = f" at {note['where']}" if note.get("where") else ""
    count = f" ({note['count']} times)" if note.get("count", 1) > 1 else ""
    remedy = f"; {note['remedy']}" if note.get("remedy") else ""
    return f"{note['text'] or note['reason']}{where}{count}{remedy}"


def trace_title(trace: Mapping[str, Any]) -> str:
    title = f"trace {trace['number']}: {_ANCHORS.get(trace['anchor'], trace['anchor'])}"
    if trace["anchor"] == "exit":
        title += f" of trace {trace['parent']}, left at its op {trace['parent_op']}"
    guards = sum(1 for op in trace["ops"] if op["guard"])
    counts = [plural(len(trace["ops"]), "op"), plural(guards, "guard")]
    counts += [plural(len(trace[kind]), kind[:-1]) for kind in ("segments", "exits")]
    return f"{title} ({', '.join(counts)})"


def _trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    yield trace_title(trace)
    for source, op in beside_source(trace):
        left = source if len(source) <= _SOURCE_WIDTH else source[: _SOURCE_WIDTH - 3] + "..."
        yield f"  {left:<{_SOURCE_WIDTH}} | {_op_line(trace, op)}".rstrip()
    yield from (f"  {line}" for line in summary(trace))


def beside_source(trace: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each op with the source line it came from; "" where that is the line of the op before it."""
    before: tuple[str, int, int] | None = None
    for op, file in zip(trace["ops"], _files(trace), strict=True):
        if op["kind"] in _HIDDEN:
            continue
        here = (file, op["line"], op["depth"])
        text = ""
        if here != before and op["line"] > 0:
            # Callees are indented, so that one sees where a call begins and ends.
            text = f"{op['line']:>5}  {'. ' * op['depth']}{linecache.getline(file, op['line']).strip()}"
            before = here
        yield text, op


def _files(trace: Mapping[str, Any]) -> list[str]:
    """The file of each op. One that is not known (such ops can't leave) is that of the next op of the same frame."""
    files: list[str] = []
    following: dict[int, str] = {0: trace["file"]}
    for op in reversed(trace["ops"]):
        files.append(op["file"] or following.get(op["depth"], ""))
        following[op["depth"]] = files[-1]
    return files[::-1]


def _op_line(trace: Mapping[str, Any], op: Mapping[str, Any]) -> str:
    segment = segment_name(op["segment"]) if op["segment"] is not None else ""
    line = f"{op['text']:<{_OP_WIDTH}} {segment:<2} {exit_of(trace, op)}".rstrip()
    return f"{line}   # {op['note']}" if op["note"] and op["note"] not in op["text"] else line


def exit_of(trace: Mapping[str, Any], op: Mapping[str, Any]) -> str:
    """Where an op leaves to; guards say it always, other ops (they may raise) only when it has happened."""
    if op["exit"] is None:
        return ""
    exits = [e for e in trace["exits"] if e["index"] == op["exit"]]
    used = any(e["count"] or e["side"] is not None for e in exits)
    return f"-> exit {op['exit']}" if op["guard"] or used else ""


def summary(trace: Mapping[str, Any]) -> Iterator[str]:
    """What follows a trace's ops: segments and their kernels, exits taken, folded globals, how the recording ended."""
    for index, segment in enumerate(trace["segments"]):
        writes = " and a write" if segment["writes"] is not None else ""
        yield f"segment {segment_name(index)}: {plural(len(segment['ops']), 'op')}{writes}, {_kernels(segment)}"
    for exit_ in trace["exits"]:
        if exit_["count"] or exit_["side"] is not None or exit_["closed"]:
            yield exit_text(exit_)
    if trace["native"] is not None:
        yield from _native(trace["native"])
    if trace["recursion"]:
        yield "calls of itself on numbers: machine code"
    quiet = sum(1 for e in trace["exits"] if not e["count"] and e["side"] is None and not e["closed"])
    if quiet:
        yield f"{plural(quiet, 'exit')} never taken"
    if trace["folded"]:
        yield f"folded and watched: {', '.join(trace['folded'])}"
    if trace["reason"] not in ("", "none"):
        yield f"ended: {note_text(reason_note(trace))}"


_HOW = {
    "leaves": "the machine goes on at",
    "runs code": "called, and may run any code:",
    "step": "called:",
}


def _native(native: Mapping[str, Any]) -> Iterator[str]:
    """The traces that are part of a loop's native code, and what it does by the machine's steps, costliest first."""
    others = ", ".join(str(number) for number in native["traces"][1:])
    yield f"native code, {native['state']}" + (f", with traces {others}" if others else "")
    for called in native["called"]:
        line = f" (line {called['line']})" if called["line"] > 0 else ""
        yield f"  {_HOW[called['how']]} {called['text']} of trace {called['trace']}{line}"


def native_texts(explanation: Explanation, assembly: bool = False) -> Iterator[str]:
    """LLVM IR or assembly of the loops that are native code, each under a line that says which trace it begins with."""
    for trace in explanation.traces:
        if trace["native"] is not None:
            text = trace["native"]["text"]
            mark = "#" if assembly else ";"
            yield f"{mark} native code of trace {trace['number']}\n{core.assembly(text) if assembly else text}"
    for companion in explanation.companions:
        yield from native_texts(companion, assembly)


def _kernels(segment: Mapping[str, Any]) -> str:
    kernels = [f"kernel for {layout}: {state}" for layout, state in segment["kernels"]]
    small = ["while small, NumPy's inner loops"] if segment["inner_loops"] else []
    none = "no kernel yet" if segment["usable"] else "no kernel: NumPy's own calls"
    return "; ".join([*small, *(kernels or [none])])


def exit_text(exit_: Mapping[str, Any]) -> str:
    line = f" (line {exit_['line']})" if exit_["line"] else ""
    text = f"exit {exit_['index']}{line}: left {exit_['count']} times"
    if exit_["side"] is not None:
        text += f", goes on in trace {exit_['side']}"
    if exit_["closed"]:
        text += ", no side trace will be recorded"
    elif exit_.get("patience", 1) > 1:
        text += f", a side trace is tried {exit_['patience']} times less often"
    text += f": {exit_['reason']}" if exit_.get("reason") else ""
    return text


def reason_note(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Why a trace's recording ended, in the form of a note."""
    return {name: trace[key] for name, key in _REASON.items()}


_REASON = {"reason": "reason", "text": "reason_text", "remedy": "remedy", "where": "where"}
