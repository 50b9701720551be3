"""The demo's data, from matplotlib's own files. Nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np


def load() -> dict[str, Any]:
    """Arrays by name; ModuleNotFoundError where there is no matplotlib."""
    from matplotlib import cbook
    from matplotlib import image as mpimage

    dem: Any = cbook.get_sample_data("jacksboro_fault_dem.npz")
    height = dem["elevation"].astype(np.float64)
    # Metres between cells: the model's own steps are in degrees, and those of longitude shrink with the latitude.
    latitude = np.radians(float(dem["ymin"] + dem["ymax"]) / 2.0)
    dy = 111_200.0 * float(dem["dy"])
    dx = 111_200.0 * float(dem["dx"]) * float(np.cos(latitude))
    row, column = np.unravel_index(int(height.argmin()), height.shape)
    photograph = mpimage.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    quotes: Any = cbook.get_sample_data("goog.npz")
    return {
        "height": height,
        "dx": dx,
        "dy": dy,
        "source": (int(row), int(column)),
        "photograph": np.ascontiguousarray(photograph),
        "prices": quotes["price_data"]["adj_close"].astype(np.float64),
        "strikes": np.linspace(0.5, 1.5, 201),
    }


def programs(data: dict[str, Any]) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Everything the demo runs: name, function, arguments."""
    from . import finance, photograph, terrain

    return [*terrain.programs(data), *photograph.programs(data), *finance.programs(data)]
