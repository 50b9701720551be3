"""Choices of the generator, each drawn from Hypothesis so that it can be shrunk. The first option is always the
simplest."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draw(Protocol):
    def __call__(self, strategy: st.SearchStrategy[T], /) -> T: ...


@functools.lru_cache(maxsize=1024)
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


class Weighted(Sequence[T]):
    """Options with integer weights."""

    _tables: ClassVar[list[Weighted[Any]]] = []

    def __init__(self, options: Sequence[tuple[int, T]]) -> None:
        self._options = [option for _, option in options]
        self._weights = [weight for weight, _ in options]
        self.ends = list(itertools.accumulate(self._weights))
        self._tables.append(self)

    @classmethod
    def prefer(cls, texts: Sequence[str]) -> None:
        """From now on, options that contain one of the texts are chosen as often as all the others of their table."""
        for table in cls._tables:
            liked = [any(text in _text_of(option) for text in texts) for option in table._options]
            pairs = list(zip(table._weights, liked, strict=True))
            rest = sum(weight for weight, like in pairs if not like)
            own = sum(weight for weight, like in pairs if like)
            factor = -(-rest // own) if own else 1
            table.ends = list(itertools.accumulate(weight * factor if like else weight for weight, like in pairs))

    def __len__(self) -> int:
        return len(self._options)

    def __getitem__(self, index: Any) -> Any:
        return self._options[index]


def _text_of(option: Any) -> str:
    return str(getattr(option, "__qualname__", option))


class Chooser:
    def __init__(self, draw: Draw | Callable[..., Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return low if low == high else int(self._draw(_integers(low, high)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def weighted(self, options: Weighted[T]) -> T:
        choice: T = options[bisect.bisect_right(options.ends, self.integer(0, options.ends[-1] - 1))]
        return choice

    def chance(self, percent: int) -> bool:
        """Shrinks to False."""
        return self.integer(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], percent: int) -> list[T]:
        return [option for option in options if self.chance(percent)]
