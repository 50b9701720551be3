"""`jit` and the switches. Options and functions are checked here, so the extension module gets only what it can use."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from ._backend import core
from .config import Config, Value, suggest
from .explain import Explanation, explain
from .stats import Stats, ordered

if TYPE_CHECKING:
    from ._core import JitFunction as JitFunction
else:
    JitFunction = core.JitFunction

P = ParamSpec("P")
R = TypeVar("R")

_MODES = ("exact", "fast")
_DEVICES = ("cpu", "cuda", "opencl")
_OPTIONS: dict[str, object] = {"full_graph": False, "mode": "exact", "device": "cpu", "store": True}
_HELP = "use it as @dalsegno.jit, or as @dalsegno.jit(full_graph=True) with options"
_MISSING: Any = object()


@overload
def jit(function: Callable[P, R], /) -> JitFunction[P, R]: ...
@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    full_graph: bool = ...,
    mode: Literal["exact", "fast"] = ...,
    device: Literal["cpu", "cuda", "opencl"] = ...,
    store: bool = ...,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    full_graph: bool = ...,
    mode: Literal["exact", "fast"] = ...,
    device: Literal["cpu", "cuda", "opencl"] = ...,
    store: bool = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(function: Any = _MISSING, /, **options: Any) -> Any:
    """Makes a function record itself on its first call and replay on later ones, with the same results bit for bit.

    Bare (`@jit`) or with options:

    full_graph  True: raise dalsegno.GraphBreak, saying what and where, instead of running a part eagerly
    mode        "exact"; "fast" is not implemented yet
    device      "cpu"; "cuda" and "opencl" are not implemented yet
    store       False: nothing of this function is kept on disk
    """
    chosen = _checked_options(options)
    if function is _MISSING:
        return functools.partial(_jit, options=chosen)
    return _jit(function, chosen)


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"dalsegno.jit has no option {name!r}{suggest(name, _OPTIONS)}")
    chosen: dict[str, Any] = {**_OPTIONS, **options}
    for name in ("full_graph", "store"):
        if not isinstance(chosen[name], bool):
            raise TypeError(f"dalsegno.jit: {name} must be True or False, not {chosen[name]!r}")
    for name, known in (("mode", _MODES), ("device", _DEVICES)):
        words = " or ".join(repr(k) for k in known)
        if not isinstance(chosen[name], str):
            raise TypeError(f"dalsegno.jit: {name} must be {words}, not {chosen[name]!r}")
        if chosen[name] not in known:
            raise ValueError(f"dalsegno.jit: {name} must be {words}, not {chosen[name]!r}")
    for name in ("mode", "device"):
        if chosen[name] != _OPTIONS[name]:
            instead = f"use {name}={_OPTIONS[name]!r}, the default"
            raise NotImplementedError(f"dalsegno.jit: {name}={chosen[name]!r} is not implemented yet; {instead}")
    return chosen


def _jit(function: Any, options: dict[str, Any]) -> Any:
    if isinstance(function, core.JitFunction):
        return core.jit(function._plain, **options)
    if isinstance(function, types.FunctionType):
        return core.jit(function, **options)
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_jit(function.__func__, options))
    if isinstance(function, types.MethodType):
        return types.MethodType(_jit(function.__func__, options), function.__self__)
    raise TypeError(f"dalsegno.jit: {_describe(function)}")


# Kinds of thing that people pass by mistake, and what to do instead. The first that fits is used.
_NOT_FUNCTIONS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (inspect.isclass, "is a class; jit its methods instead"),
    (inspect.isbuiltin, "is a built-in function, which has no Python code; jit the function that calls it"),
    (lambda f: type(f).__name__ == "ufunc", "is a NumPy ufunc, without Python code; jit the function that calls it"),
    (lambda f: isinstance(f, functools.partial), "is a partial; jit the function inside: partial(jit(f), ...)"),
    (inspect.ismethoddescriptor, "has no Python code; jit the function that calls it"),
    (lambda f: isinstance(f, property), "is a property; jit the function and put @property above it"),
    (inspect.ismodule, "is a module; jit its functions"),
    (callable, "is an object that can be called; jit the method __call__ in its class"),
)


def _describe(function: Any) -> str:
    text = repr(function)
    text = text if len(text) <= 60 else text[:57] + "..."
    for fits, advice in _NOT_FUNCTIONS:
        if fits(function):
            return f"{text} {advice}"
    return f"needs a Python function, not {text} of type {type(function).__name__}; {_HELP}"


def _push(name: str, value: Value) -> None:
    if name == "disable":
        core.set_enabled(not value)
    else:
        core.configure(name, value)


config = Config(_push)


def wait() -> None:
    """Returns when background compilation has finished."""
    core.wait()


def clear() -> None:
    """Forgets this process's traces. Kernels that nothing uses are unloaded in time; the store keeps what it has."""
    core.clear()


def disable() -> None:
    """From now on every jitted function runs as the plain function it wraps, in all threads."""
    config.disable = True


def enable() -> None:
    """Ends what disable() began."""
    config.disable = False


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """`with disabled():` runs jitted functions as plain ones inside the block."""
    with config(disable=True):
        yield


def _equip(jit_function: Any) -> None:
    """Gives the extension's type what is better written in Python: `f.stats`, a mapping, and `f.explain()`."""
    if isinstance(jit_function.stats, property):
        return  # this module was loaded before
    counters = jit_function.stats

    def stats(self: Any) -> Stats:
        """This function's counters, at this moment."""
        return ordered(counters(self))

    def explain_method(self: Any) -> Explanation:
        """Traces, guards, segments, exits, and every reason why something was not recorded; its str is text."""
        return explain(self)

    explain_method.__name__, explain_method.__qualname__ = "explain", "JitFunction.explain"
    jit_function.stats = property(stats)
    jit_function.explain = explain_method


_equip(core.JitFunction)
