"""The engines: one entry each. A new engine joins by one entry in the table."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol


class Backend(Protocol):
    """What the fuzzer needs of `dalsegno`. The oracle's own tests put broken ones in its place."""

    def jit(self, function: Callable[..., Any], *, store: bool) -> Callable[..., Any]: ...
    def settings(self, values: Mapping[str, object]) -> contextlib.AbstractContextManager[object]: ...
    def stats(self) -> Mapping[str, int]: ...
    def wait(self) -> None: ...


class Dalsegno:
    """The real one."""

    def __init__(self) -> None:
        self._ds: Any = importlib.import_module("dalsegno")

    def jit(self, function: Callable[..., Any], *, store: bool) -> Callable[..., Any]:
        jitted: Callable[..., Any] = self._ds.jit(store=store)(function)
        return jitted

    def settings(self, values: Mapping[str, object]) -> contextlib.AbstractContextManager[object]:
        return self._ds.config(**values) if values else contextlib.nullcontext()

    def stats(self) -> Mapping[str, int]:
        return self._ds.stats()  # type: ignore[no-any-return]

    def wait(self) -> None:
        self._ds.wait()


def load_backend(spec: str = "") -> Backend:
    """`MODULE:CLASS`; empty: dalsegno itself."""
    if not spec:
        return Dalsegno()
    module, _, name = spec.partition(":")
    backend: Backend = getattr(importlib.import_module(module), name)()
    return backend


class Watch(enum.Enum):
    """When an engine forgets what it has recorded, or waits."""

    NEVER = "never"
    FORGET_BEFORE_CALL = "forget before each call"
    WAIT_AFTER_CALL = "wait after each call"


@dataclasses.dataclass(frozen=True)
class EngineSpec:
    jitted: bool = True
    settings: tuple[tuple[str, object], ...] = ()
    watch: Watch = Watch.NEVER
    fresh_process: bool = False  # written to a store by one process, read by another (cold.py)
    peaks: bool = True  # a call's memory is its own: no other thread adds to it, nor what is imported first


# Replay is what is to be tested, so these do not step aside where it is slow; BACKGROUND runs as a user's process does.
_REPLAYING = ("step_aside", False)
_AT_ONCE = (("kernels", True), ("background", False), _REPLAYING)
_STEPS = ("native", False)


class Engine(enum.Enum):
    EAGER = EngineSpec(jitted=False)
    RECORDING = EngineSpec(settings=(("kernels", False), _STEPS, _REPLAYING), watch=Watch.FORGET_BEFORE_CALL)
    STEPPED = EngineSpec(settings=(("kernels", False), ("background", False), _STEPS, _REPLAYING))
    # Loops are compiled at their first turn, before anything else is done in them.
    NATIVE = EngineSpec(settings=(("background", False), ("hot_loop", 1), _REPLAYING))
    # Arrays in blocks, and loops as they are compiled at first.
    BLOCKS = EngineSpec(settings=(*_AT_ONCE, ("inner_loops", 1_000_000), ("hot_loop", 1), ("refine", False)))
    # Kernels that are assembled, where they can be; those of the next two are compiled.
    COMPILED = EngineSpec(settings=(*_AT_ONCE, ("inner_loops", 0)))
    BACKGROUND = EngineSpec(
        settings=(("kernels", True), ("background", True), ("assemble", False)),
        watch=Watch.WAIT_AFTER_CALL,
        peaks=False,
    )
    # Assembled as on a processor without AVX-512.
    NARROW = EngineSpec(settings=(*_AT_ONCE, ("inner_loops", 0), ("vector_bits", 256)))
    COLD_PROCESS = EngineSpec(settings=(*_AT_ONCE, ("assemble", False)), fresh_process=True, peaks=False)

    @property
    def label(self) -> str:
        return self.name.lower()


def jitted_engines(here: bool) -> tuple[Engine, ...]:
    """Those that are not the same as another on this processor. `here`: and run in this process."""
    wide = "avx512bw" in importlib.import_module("dalsegno._core").cpu_features()
    engines = (e for e in Engine if e.value.jitted and not (here and e.value.fresh_process))
    return tuple(e for e in engines if wide or e is not Engine.NARROW)


def engine_named(name: str) -> Engine:
    try:
        return Engine[name.strip().upper()]
    except KeyError:
        known = ", ".join(e.label for e in Engine)
        raise ValueError(f"unknown engine {name.strip()!r}; known are {known}") from None


class ActiveEngine:
    """An engine at work on one program: gives the program its `jit`, and is told when a call begins and ends."""

    def __init__(self, engine: Engine, backend: Backend | None, store: bool) -> None:
        self._spec = engine.value
        self._backend = backend
        self._store = store
        self._made: list[Any] = []

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not self._spec.jitted or self._backend is None:
            return function
        jitted = self._backend.jit(function, store=self._store)
        self._made.append(jitted)
        return jitted

    @property
    def hidden_files(self) -> frozenset[str]:
        return frozenset(getattr(self._backend, "hidden_files", ()))

    @property
    def peaks(self) -> bool:
        return self._spec.peaks

    def before_call(self) -> None:
        if self._spec.watch is Watch.FORGET_BEFORE_CALL:
            for jitted in self._made:
                jitted.clear()

    def after_call(self) -> None:
        if self._spec.watch is Watch.WAIT_AFTER_CALL and self._backend is not None:
            self._backend.wait()


@contextlib.contextmanager
def activate(engine: Engine, backend: Backend | None, store: bool = False) -> Iterator[ActiveEngine]:
    settings = dict(engine.value.settings) if engine.value.jitted else {}
    with backend.settings(settings) if backend is not None else contextlib.nullcontext():
        yield ActiveEngine(engine, backend, store)
