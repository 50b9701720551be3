"""Dal Segno: a record-replay trace compiler for Python code on NumPy arrays.

    import dalsegno as ds

    @ds.jit
    def f(x, w): ...

The first call runs eagerly and is recorded; later calls replay the recording: same bits, same exceptions, same effects.
"""

# Every submodule whose name is also a public name (config, explain, stats, store) is imported here, before that name is
# bound: imported later, the submodule would take the name's place.
from . import store
from .api import JitFunction, clear, config, disable, disabled, enable, jit, wait
from .errors import DalsegnoWarning, GraphBreak
from .explain import Explanation, explain
from .stats import Stats, stats

__version__ = "0.1.0"

__all__ = [
    "DalsegnoWarning",
    "Explanation",
    "GraphBreak",
    "JitFunction",
    "Stats",
    "clear",
    "config",
    "disable",
    "disabled",
    "enable",
    "explain",
    "jit",
    "stats",
    "store",
    "wait",
]
