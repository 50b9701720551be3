"""Public functions of libraries, jitted as they are; most stand under decorators that hand on `*args, **kwargs`.

Nothing here is a dependency: rows of libraries that are not installed are left out."""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import dalsegno as ds
import numpy as np

from .bits import differences
from .harness import compare, duration
from .rows import first_call, warm_up

LEAST_RATIO = 0.95
MOST_FIRST = 3.0  # times an eager call, or
MOST_FIRST_MORE = 5e-3  # seconds over one

HEADER = f"{'':<44} {'eager':>8} {'ratio':>6} {'first ms':>9} {'ops':>6}"
EXPLANATION = (
    "ratio: eager / jitted, steady state.  first ms: the call that records, over eager's.  ops: recorded in all traces."
)


class Data:
    """Arguments, the same in each run."""

    def __init__(self) -> None:
        rng = np.random.default_rng(20)
        self.x, self.y = rng.normal(size=4000), rng.normal(size=4000)
        self.t = np.linspace(0.0, 1.0, 4000)
        self.image = rng.random((128, 128))
        self.other = np.clip(self.image * 0.9 + 0.02, 0.0, 1.0)
        self.rgb = rng.random((96, 96, 3))
        self.mask = self.image > 0.5
        self.truth, self.guess = (self.x > 0).astype(int), (self.x + self.y > 0).astype(int)
        self.table = rng.normal(size=(300, 8))
        self.matrix = rng.normal(size=(48, 48))


Arguments = Callable[[Data], tuple[Any, ...]]

# A library, what it is for, a function of it, its arguments.
ROWS: tuple[tuple[str, str, Arguments], ...] = (
    ("filters", "scipy.signal:savgol_filter", lambda d: (d.x, 11, 3)),
    ("filters", "scipy.signal:filtfilt", lambda d: ([0.2, 0.3], [1.0, -0.4], d.x)),
    ("filters", "scipy.signal:lfilter", lambda d: ([0.2, 0.3], [1.0, -0.4], d.x)),
    ("filters", "scipy.signal:fftconvolve", lambda d: (d.x, d.y[:501])),
    ("filters", "scipy.signal:hilbert", lambda d: (d.x,)),
    ("filters", "scipy.signal:resample", lambda d: (d.x, 1000)),
    ("filters", "scipy.signal:medfilt", lambda d: (d.x, 7)),
    ("filters", "scipy.ndimage:gaussian_filter", lambda d: (d.image, 2.0)),
    ("filters", "scipy.ndimage:median_filter", lambda d: (d.image, 5)),
    ("filters", "scipy.ndimage:uniform_filter", lambda d: (d.image, 5)),
    ("filters", "scipy.ndimage:zoom", lambda d: (d.image, 1.5)),
    ("filters", "scipy.ndimage:rotate", lambda d: (d.image, 30.0)),
    ("filters", "skimage.filters:gaussian", lambda d: (d.image, 2.0)),
    ("filters", "skimage.filters:median", lambda d: (d.image,)),
    ("filters", "skimage.filters:threshold_otsu", lambda d: (d.image,)),
    ("images", "skimage.color:rgb2hsv", lambda d: (d.rgb,)),
    ("images", "skimage.color:rgb2lab", lambda d: (d.rgb,)),
    ("images", "skimage.exposure:adjust_gamma", lambda d: (d.image, 2.0)),
    ("images", "skimage.exposure:equalize_hist", lambda d: (d.image,)),
    ("images", "skimage.transform:rotate", lambda d: (d.image, 10.0)),
    ("metrics", "skimage.metrics:normalized_root_mse", lambda d: (d.image, d.other)),
    ("metrics", "skimage.metrics:peak_signal_noise_ratio", lambda d: (d.image, d.other)),
    ("metrics", "scipy.spatial.distance:correlation", lambda d: (d.x, d.y)),
    ("metrics", "sklearn.metrics:mean_squared_error", lambda d: (d.x, d.y)),
    ("metrics", "sklearn.metrics:r2_score", lambda d: (d.x, d.y)),
    ("metrics", "sklearn.metrics:accuracy_score", lambda d: (d.truth, d.guess)),
    ("metrics", "sklearn.metrics:f1_score", lambda d: (d.truth, d.guess)),
    ("statistics", "scipy.stats:rankdata", lambda d: (d.x,)),
    ("statistics", "scipy.stats:spearmanr", lambda d: (d.x, d.y)),
    ("statistics", "scipy.stats:skew", lambda d: (d.x,)),
    ("statistics", "scipy.stats:iqr", lambda d: (d.x,)),
    ("statistics", "scipy.special:softmax", lambda d: (d.x,)),
    ("statistics", "scipy.integrate:simpson", lambda d: (d.x, d.t)),
    ("statistics", "scipy.linalg:solve", lambda d: (d.matrix, d.x[:48])),
    ("interpolation", "scipy.interpolate:griddata", lambda d: (d.table[:, :2], d.x[:300], d.table[:60, 2:4])),
    ("interpolation", "scipy.interpolate:pchip_interpolate", lambda d: (d.t, d.x, d.t[::4])),
    ("interpolation", "scipy.ndimage:map_coordinates", lambda d: (d.image, d.table[:, :2].T * 10 + 60)),
)


@dataclass
class Row:
    name: str
    group: str
    eager: float  # seconds of a call
    replay: float
    first: float  # seconds of a call that records
    ops: int
    identical: bool

    @property
    def ratio(self) -> float:
        return self.eager / self.replay

    @property
    def complaints(self) -> list[str]:
        broken = {
            "bits": not self.identical,
            "steady": self.ratio < LEAST_RATIO,
            "first": self.first > max(MOST_FIRST * self.eager, self.eager + MOST_FIRST_MORE),
            "not recorded": not self.ops,
        }
        return [name for name, is_broken in broken.items() if is_broken]

    def __str__(self) -> str:
        more = (self.first - self.eager) * 1e3
        broken = " !" + ",".join(self.complaints) if self.complaints else ""
        return f"{self.name:<44} {duration(self.eager):>8} {self.ratio:>6.2f} {more:>+9.2f} {self.ops:>6}{broken}"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "complaints": self.complaints}


def all_rows(quick: bool, only: str = "") -> Iterator[Row]:
    data = Data()
    for group, path, arguments in ROWS:
        if not re.search(only, path):
            continue
        module, _, name = path.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except ImportError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _measure(path, group, function, arguments(data), quick)


def _measure(name: str, group: str, function: Callable[..., Any], arguments: tuple[Any, ...], quick: bool) -> Row:
    function(*arguments)  # imports on first use
    identical = not differences(function, arguments)
    jitted: Any = ds.jit(store=False)(function)
    first = first_call(function, jitted, arguments, 0.2 if quick else 0.6, time.perf_counter)
    warm_up(jitted, arguments, 0.2 if quick else 0.8)
    ops = sum(len(trace["ops"]) for trace in jitted.explain().to_dict()["traces"])
    timing = compare(function, jitted, arguments, rounds=3 if quick else 7, budget=0.3 if quick else 1.5)
    return Row(name, group, min(timing.eager), min(timing.replay), first, ops, identical)


def verdict(rows: list[Row]) -> int:
    """0 if all keep to the limits."""
    if not rows:
        print("none of the libraries is installed: scipy, scikit-image, scikit-learn")
        return 0
    broken = [f"{row.name} ({', '.join(row.complaints)})" for row in rows if row.complaints]
    print(f"{len(rows)} functions; not within limits: {', '.join(broken) or 'none'}")
    return 1 if broken else 0
