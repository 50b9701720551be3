"""Stands in for _core where that can't work (an unsupported Python or NumPy): every function simply runs."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

_WHY = {"reason": "unsupported", "where": "", "count": 1, "remedy": "see `python -m dalsegno doctor`"}
_on = True


class JitFunction:
    """Calls the function it wraps, and has its attributes."""

    _plain: Callable[..., Any]
    _calls: int

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__dict__.update(_plain=function, _calls=0)  # first: attributes are set through to the function
        functools.update_wrapper(self, function)

    def __getattr__(self, name: str) -> Any:
        if "_plain" not in self.__dict__:  # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        if name != "__wrapped__":
            setattr(self._plain, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__["_calls"] += 1
        return self._plain(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def stats(self) -> dict[str, int]:
        return {"calls": self._calls, "recordings": 0, "replays": 0, "eager_calls": self._calls}

    def traces(self) -> list[dict[str, Any]]:
        return []

    def companions(self) -> tuple[JitFunction, ...]:
        return ()

    def notes(self) -> list[dict[str, Any]]:
        from ._backend import why_unsupported

        return [{**_WHY, "text": why_unsupported}]

    def clear(self) -> None:
        pass


def jit(function: Callable[..., Any], full_graph: bool, mode: str, device: str, store: bool) -> JitFunction:
    return JitFunction(function)


def stats() -> dict[str, int]:
    return {"calls": 0, "recordings": 0, "replays": 0, "eager_calls": 0}


def wait() -> None:
    pass


def clear() -> None:
    pass


def set_enabled(on: bool, /) -> None:
    global _on
    _on = on


def enabled() -> bool:
    return _on


def configure(name: str, value: object, /) -> None:
    pass


def store_path() -> str:
    return ""


def store_query(sql: str, /) -> list[tuple[Any, ...]]:
    return []


def store_stats() -> dict[str, Any]:
    return {}


def store_clear() -> None:
    pass


def store_why() -> str:
    return ""


def store_verify() -> dict[str, int]:
    return {}


def store_gc() -> None:
    pass


def store_open(path: str, /) -> None:
    pass


def store_close() -> None:
    pass


def versions() -> dict[str, str]:
    return {}


def cpu_features() -> str:
    return ""
