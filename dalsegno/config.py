"""Every setting: its default, its environment variable, what it may be. `dalsegno.config` is the one Config object.

Settings belong to the process, not to a thread. Reading is by attribute; changing by assignment, or for a block:
`with ds.config(kernels=False): ...`. A change is pushed down to the extension module at once.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType

from .errors import DalsegnoWarning

Value = bool | int | str

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str
    default: Value
    doc: str
    low: int = 0  # for integers
    high: int = 0

    @property
    def variable(self) -> str:
        return f"DALSEGNO_{self.name.upper()}"

    @property
    def allowed(self) -> str:
        if isinstance(self.default, bool):
            return "True or False"
        return f"an integer from {self.low} to {self.high}" if isinstance(self.default, int) else "a string"

    def check(self, value: object) -> Value:
        """The value, if this setting may have it; TypeError or ValueError with one clear line otherwise."""
        if isinstance(self.default, str):
            if isinstance(value, os.PathLike):
                value = os.fspath(value)
            if isinstance(value, bytes) and self.name == "store":
                value = os.fsdecode(value)
            if isinstance(value, str):
                return value
        elif isinstance(self.default, bool):
            if isinstance(value, bool):
                return value
        elif isinstance(value, int) and not isinstance(value, bool):
            if self.low <= value <= self.high:
                return value
            raise ValueError(f"dalsegno.config.{self.name} must be {self.allowed}, not {value}")
        raise TypeError(f"dalsegno.config.{self.name} must be {self.allowed}, not {value!r}")

    def parse(self, text: str) -> Value:
        """The value that an environment variable's text means; ValueError if it means none."""
        if isinstance(self.default, str):
            # An empty variable is no file: whoever empties DALSEGNO_STORE does not want the default one.
            return text or ("off" if self.name == "store" else "")
        word = text.strip().lower()
        if isinstance(self.default, bool):
            if word in _TRUE + _FALSE:
                return word in _TRUE
            raise ValueError(f"{self.variable} must be 1 or 0, not {text!r}")
        try:
            number = int(word)
        except ValueError:
            raise ValueError(f"{self.variable} must be {self.allowed}, not {text!r}") from None
        if self.low <= number <= self.high:
            return number
        raise ValueError(f"{self.variable} must be {self.allowed}, not {text!r}")


SETTINGS: Mapping[str, Setting] = {
    s.name: s
    for s in (
        Setting("disable", False, "run every jitted function as the plain function it wraps"),
        Setting("store", "", "the store's file; empty: one file in the user's cache directory; off: none"),
        Setting("threads", 0, "threads for kernels and for compiling; 0: as many as there are cores", 0, 1024),
        Setting(
            "hot_exit", 2, "an exit left this often gets a side trace; the end of a loop: half as often", 1, 1_000_000
        ),
        Setting("max_ops", 20_000, "ops a trace may have", 1, 10_000_000),
        Setting("max_depth", 20, "calls inside one another that a trace goes into", 0, 1000),
        Setting("max_traces", 64, "traces a function may have", 1, 100_000),
        Setting("kernels", True, "compile array operations; False: they stay NumPy's own calls"),
        Setting(
            "inner_loops",
            4000,
            "elements, and 525 for each op, up to which NumPy's loops do array ops; 0: none",
            0,
            1_000_000,
        ),
        Setting("native", True, "compile loops; False: they stay steps of the replay machine"),
        Setting("assemble", True, "assemble kernels as they are needed (AVX2, AVX-512); False: compile and keep them"),
        Setting("vector_bits", 512, "bits of the vectors that assembled kernels may use; below 512: AVX2", 256, 512),
        Setting("refine", True, "compile loops once more when they run, as well as can be; False: quickly, only"),
        Setting("hot_loop", 200, "turns of a loop before it is compiled; 1: also where little is gained", 1, 1_000_000),
        Setting("record", True, "record what has no trace yet; False: replay only what is in the store"),
        Setting("background", True, "compile in a thread of its own; False: at once, on the caller's thread"),
        Setting("step_aside", True, "call the plain function where replay was measured to be slower"),
        Setting("fault", "", "name of a fault to plant, for the tests of the fuzzer only"),
    )
}


class Config:
    """The settings in force. See the module's text."""

    __slots__ = ("_push", "_values")
    _push: Callable[[str, Value], None]
    _values: dict[str, Value]

    # What the table says, for type checkers.
    disable: bool
    store: str
    threads: int
    hot_exit: int
    max_ops: int
    max_depth: int
    max_traces: int
    kernels: bool
    inner_loops: int
    native: bool
    assemble: bool
    vector_bits: int
    refine: bool
    hot_loop: int
    record: bool
    background: bool
    step_aside: bool
    fault: str

    def __init__(self, push: Callable[[str, Value], None], environment: Mapping[str, str] | None = None) -> None:
        """`push` is told every setting once, now, and then every change."""
        object.__setattr__(self, "_push", push)
        object.__setattr__(self, "_values", _from_environment(os.environ if environment is None else environment))
        for name, value in self._values.items():
            push(name, value)

    def __getattr__(self, name: str) -> Value:
        # Called only for what is not in __slots__. copy and pickle look for special names before there are values.
        if name.startswith("_"):
            raise AttributeError(name)
        return self._values[_setting(name).name]

    def __setattr__(self, name: str, value: object) -> None:
        setting = _setting(name)
        checked = setting.check(value)
        if checked != self._values[name]:
            self._push(name, checked)
        self._values[name] = checked

    def __dir__(self) -> list[str]:
        return [*SETTINGS, *super().__dir__()]

    def __call__(self, **values: object) -> ConfigBlock:
        """A context manager (and decorator) under which these settings hold; they are checked at once."""
        for name, value in values.items():
            _setting(name, TypeError).check(value)
        return ConfigBlock(self, values)

    def to_dict(self) -> dict[str, Value]:
        return dict(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(SETTINGS)

    def __repr__(self) -> str:
        rows = [("setting", "value", "default", "environment", "meaning")]
        for name, setting in SETTINGS.items():
            rows.append((name, repr(self._values[name]), repr(setting.default), setting.variable, setting.doc))
        widths = [max(len(row[i]) for row in rows) for i in range(4)] + [0]
        return "\n".join("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)


class ConfigBlock(contextlib.ContextDecorator):
    """Settings that hold inside a with block. May be entered again, also inside itself."""

    def __init__(self, config: Config, values: Mapping[str, object]) -> None:
        self._config = config
        self._values = dict(values)
        self._before: list[dict[str, Value]] = []

    def __enter__(self) -> Config:
        before = self._config.to_dict()
        self._before.append({name: before[name] for name in self._values})
        self._set(self._values)
        return self._config

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set(self._before.pop())

    def _set(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            setattr(self._config, name, value)


def _setting(name: str, error: type[Exception] = AttributeError) -> Setting:
    if name in SETTINGS:
        return SETTINGS[name]
    raise error(f"dalsegno.config has no setting {name!r}{suggest(name, SETTINGS)}")


def suggest(name: str, known: Mapping[str, object] | list[str]) -> str:
    """The end of an error message about an unknown name."""
    import difflib  # only for mistakes

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    """Defaults, overridden by environment variables. A bad one is a warning: the user's program must still run."""
    values: dict[str, Value] = {}
    for name, setting in SETTINGS.items():
        values[name] = setting.default
        if (text := environment.get(setting.variable)) is None:
            continue
        try:
            values[name] = setting.parse(text)
        except ValueError as error:
            warnings.warn(f"{error}; the default, {setting.default!r}, is used", DalsegnoWarning, stacklevel=2)
    return values
