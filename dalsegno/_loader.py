"""Loads kernels' object code with LLVM's ORC. Called by the extension module, with the GIL, from any thread."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

_RUNTIME = Path(__file__).with_name("lib") / "libdalsegno_rt.so"


class _Linker:
    """One ORC session for the process. Libraries stay loaded as long as their handle lives."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._jit = llvm.create_lljit_compiler(machine)
        self._numbers = itertools.count()

    def link(self, image: bytes, symbols: list[str]) -> Any:
        builder = llvm.JITLibraryBuilder().add_current_process().add_object_img(image)
        for symbol in symbols:
            builder.export_symbol(symbol)
        return builder.link(self._jit, f"kernel{next(self._numbers)}")


_linker: _Linker | None = None
_runtime: ctypes.CDLL | None = None


def runtime() -> int:
    """The address of the launcher in libdalsegno_rt.so, which stays loaded and visible to kernels."""
    global _runtime
    if _runtime is None:
        _runtime = ctypes.CDLL(str(_RUNTIME), mode=ctypes.RTLD_GLOBAL)
    return ctypes.cast(_runtime.dalsegno_launch, ctypes.c_void_p).value or 0


def load(image: bytes, symbols: list[str]) -> tuple[Any, list[int]]:
    """Links an object file; returns a handle that keeps it loaded, and the addresses of the symbols."""
    global _linker
    if _linker is None:
        _linker = _Linker()
    library = _linker.link(image, symbols)
    return library, [library[symbol] for symbol in symbols]


def extension_file() -> str:
    """The file of dalsegno._halide, so that it can be mapped before it is imported, without the GIL."""
    spec = importlib.util.find_spec("dalsegno._halide")
    return spec.origin or "" if spec else ""
