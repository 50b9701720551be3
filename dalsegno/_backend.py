"""Finds the extension module. On a Python or NumPy that it does not support, a stand-in runs everything eagerly."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from .errors import DalsegnoWarning

PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
NUMPY_MAJOR = 2


def unsupported() -> str:
    """One line saying why functions can't be recorded here, or ""."""
    running = sys.version_info[:2]
    if sys.implementation.name != "cpython" or running not in PYTHONS:
        have = f"{sys.implementation.name} {running[0]}.{running[1]}"
        return f"dalsegno supports CPython 3.11 to 3.14, not {have}: jitted functions run eagerly; use one of these"
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or "t" in getattr(sys, "abiflags", ""):
        return "dalsegno does not support free-threaded Python: jitted functions run eagerly; use the ordinary build"
    import numpy

    if int(numpy.__version__.split(".")[0]) != NUMPY_MAJOR:
        have = numpy.__version__
        return f"dalsegno supports NumPy 2, not {have}: jitted functions run eagerly; pip install 'numpy>=2,<3'"
    return ""


why_unsupported = unsupported()

if TYPE_CHECKING:
    from . import _core as core
elif why_unsupported:
    from . import _eager as core

    warnings.warn(why_unsupported, DalsegnoWarning, stacklevel=3)
else:
    try:
        from . import _core as core
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}._core":
            raise
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise ImportError(
            f"dalsegno's extension module is not built for CPython {version}: in a source tree run `make build`, "
            "elsewhere `pip install --force-reinstall dalsegno`"
        ) from None

__all__ = ["core", "unsupported", "why_unsupported"]
