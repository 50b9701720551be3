"""Stand-ins for dalsegno with one fault each; the oracle must see every one of them."""

from __future__ import annotations

import contextlib
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Function = Callable[..., Any]


class Identity:
    """No fault: the function itself."""

    hidden_files = (__file__,)

    def jit(self, function: Function, *, store: bool) -> Function:
        return _Jitted(function, self.call)

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def settings(self, values: Mapping[str, object]) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def stats(self) -> Mapping[str, int]:
        return {"calls": 1}

    def wait(self) -> None:
        pass


class Plain(Identity):
    """Not even a wrapper, which holds its arguments while they are used."""

    def jit(self, function: Function, *, store: bool) -> Function:
        function.clear = _forget_nothing  # type: ignore[attr-defined]
        return function


def _forget_nothing() -> None:
    pass


class _Jitted:
    def __init__(self, function: Function, call: Function) -> None:
        self.__wrapped__ = function
        self.__qualname__ = function.__qualname__
        self._call = call
        self._memory: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self.__wrapped__, self._memory, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __code__(self) -> types.CodeType:
        return self.__wrapped__.__code__

    @__code__.setter
    def __code__(self, code: types.CodeType) -> None:
        self.__wrapped__.__code__ = code

    def clear(self) -> None:
        self._memory.clear()


class StaleResult(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        if "result" not in memory:
            memory["result"] = function(*args, **kwargs)
        return memory["result"]


class SecondCallStale(Identity):
    """Right on the first two calls."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        memory["calls"] = memory.get("calls", 0) + 1
        if memory["calls"] <= 2 or "result" not in memory:
            memory["result"] = function(*args, **kwargs)
        return memory["result"]


class DropsNegativeZero(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for array in _arrays(result):
            if array.dtype.kind == "f" and array.flags.writeable:
                array += 0.0
        return result


class OneUlp(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for array in _arrays(result):
            if array.dtype.kind == "f" and array.flags.writeable:
                array[...] = np.nextafter(array, array.dtype.type(np.inf))
        return result


class CopiesResult(Identity):
    """Results no longer share memory or identity with arguments."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result.copy(order="K") if isinstance(result, np.ndarray) else result


class OtherLayout(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return np.asfortranarray(result) if isinstance(result, np.ndarray) and result.ndim > 1 else result


class ScalarType(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result.item() if isinstance(result, np.generic) else result


class CopiesArguments(Identity):
    """Mutations of arguments are lost."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return function(*[arg.copy(order="K") if isinstance(arg, np.ndarray) else arg for arg in args], **kwargs)


class RunsTwice(Identity):
    """Effects happen twice."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            function(*args, **kwargs)
        return function(*args, **kwargs)


class LosesWarnings(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)


class LosesOutput(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        stdout = sys.stdout
        sys.stdout = _Nowhere()  # type: ignore[assignment]
        try:
            return function(*args, **kwargs)
        finally:
            sys.stdout = stdout


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class WrongLine(Identity):
    """The traceback lacks its innermost entry."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            entry = error.__traceback__
            while entry is not None and entry.tb_next is not None and entry.tb_next.tb_next is not None:
                entry = entry.tb_next
            if entry is not None:
                entry.tb_next = None
            raise


class OtherMessage(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            error.args = (str(error) + "!",)
            raise


class LosesContext(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            error.__context__ = None
            raise


class ReusesBuffer(Identity):
    """A later call writes into what an earlier one returned."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        buffer = memory.get("buffer")
        if isinstance(result, np.ndarray) and result.flags.owndata:
            if buffer is not None and buffer.shape == result.shape and buffer.dtype == result.dtype:
                buffer[...] = result
                return buffer
            memory["buffer"] = result
        return result


class Crashes(Identity):
    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        memory["calls"] = memory.get("calls", 0) + 1
        if memory["calls"] == 3:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGSEGV)
        return function(*args, **kwargs)


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return []


class Hoards(Identity):
    """Each call holds eight megabytes more than it needs."""

    def call(self, function: Function, memory: dict[str, Any], args: Any, kwargs: Any) -> Any:
        hoard = np.ones(1_000_000) if self.hoards() else None
        return (function(*args, **kwargs), hoard)[0]

    def hoards(self) -> bool:
        return True


class HoardsOnce(Hoards):
    """The first call of the process does: something is loaded."""

    before = False

    def hoards(self) -> bool:
        first, self.before = not self.before, True
        return first
