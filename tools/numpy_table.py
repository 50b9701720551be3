"""numpy_table.py: writes docs/numpy.md, which says how each of NumPy's functions is done, from the tables of the code.

Needs a development build (dalsegno._testing). tests/test_numpy_docs.py compares the page with what this makes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "numpy.md"
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

numpy_functions: Any = importlib.import_module("dalsegno._testing").numpy_functions

WAYS = {
    "expression": "an expression: computed in kernels, together with what stands around it",
    "loop": "NumPy's own inner loop, in kernels, on pieces that stay in the cache",
    "view": "read where it lies: no elements are copied, and kernels go through them as they stand",
    "reduction": "NumPy's inner loop in NumPy's order; of what array operations have just given, as it is made, "
    "without an array for that; along axes, on several threads",
    "product": "of two vectors unboxed, of small matrices by NumPy's inner loop at once, else NumPy's call",
    "running": "each element from the one before it, without going through memory; else NumPy's call",
    "small": "made at once, without a call (most of them: small arrays); else NumPy's call",
    "through": "written in Python, and recorded through: what it does with arrays is done as if it stood in your code",
    "known": "NumPy's call, known to run none of the user's code: the trace goes on, and what is known of arrays stays",
    "call": "NumPy's call, of which nothing is known: the trace goes on, and asks anew",
}
GROUPS = {
    "integers": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "floats": ("float32", "float64"),
    "complex": ("complex64", "complex128"),
}


def dtypes_in_words(found: list[str]) -> str:
    left, words = set(found), []
    if "bool" in left:
        words.append("bool")
        left.discard("bool")
    for name, group in GROUPS.items():
        if left.issuperset(group):
            words.append(name)
            left -= set(group)
    return ", ".join([*words, *sorted(left)])


def functions() -> list[tuple[str, str, Callable[..., Any]]]:
    """What NumPy's module and its arrays have in public that is called with arrays: module, name, object."""
    of_module = [("numpy", name, getattr(np, name)) for name in sorted(set(np.__all__))]
    of_array = [("ndarray", name, getattr(np.ndarray, name)) for name in dir(np.ndarray) if not name.startswith("_")]
    return [row for row in of_module + of_array if callable(row[2]) and not isinstance(row[2], type)]


def page() -> str:
    rows: dict[str, list[str]] = {way: [] for way in WAYS}
    counts = {way: [0, 0] for way in WAYS}
    for module, name, function in functions():
        way, dtypes = numpy_functions.describe(function, module, name)
        shown = f"`{'a.' if module == 'ndarray' else ''}{name}`"
        rows[way].append(shown + (f" ({dtypes_in_words(dtypes)})" if dtypes else ""))
        counts[way][module == "ndarray"] += 1
    version = ".".join(np.__version__.split(".")[:2])
    total = [sum(count[k] for count in counts.values()) for k in (0, 1)]
    lines = [
        "# NumPy's functions, and how each is done",
        "",
        f"Made by `tools/numpy_table.py` from the tables of the code, for NumPy {version}. Whatever stands here, "
        "results are eager's to the bit; other dtypes than those named, and other ways to call a function, are NumPy's "
        "call.",
        "",
        "Operators are the functions that NumPy calls for them; `a ** 2` is `square`. Subscripts by slices, numbers "
        "and new axes are views that exist as numbers only; by a mask, and by an array of positions, they are done at "
        "once.",
        "",
        "| way | functions of `numpy` | methods of arrays | what that means |",
        "|---|---|---|---|",
        *(f"| {way} | {counts[way][0]} | {counts[way][1]} | {what} |" for way, what in WAYS.items()),
        f"| all | {total[0]} | {total[1]} | |",
    ]
    for way, names in rows.items():
        if names:
            lines += ["", f"## {way}", ""]
            if any("(" in name for name in names):
                lines += [
                    "In brackets: the dtypes of arrays that kernels know it for; complex ones: that groups of "
                    "operations do by NumPy's own loops.",
                    "",
                ]
            lines += [", ".join(names) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
