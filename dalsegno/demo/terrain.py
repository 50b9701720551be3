"""Terrain: slope, hillshade and a flood of a digital elevation model. Plain NumPy, as anybody would write it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import numpy as np

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


def slope(height: F64, dx: float, dy: float) -> F64:
    """Steepness in degrees by Horn's method: eight neighbours, the direct ones with double weight."""
    h = np.pad(height, 1, mode="edge")
    west = h[:-2, :-2] + 2.0 * h[1:-1, :-2] + h[2:, :-2]
    east = h[:-2, 2:] + 2.0 * h[1:-1, 2:] + h[2:, 2:]
    north = h[:-2, :-2] + 2.0 * h[:-2, 1:-1] + h[:-2, 2:]
    south = h[2:, :-2] + 2.0 * h[2:, 1:-1] + h[2:, 2:]
    gx = (east - west) / (8.0 * dx)
    gy = (south - north) / (8.0 * dy)
    steepness: F64 = np.degrees(np.arctan(np.sqrt(gx * gx + gy * gy)))
    return steepness


def hillshade(height: F64, dx: float, dy: float, azimuth: float = 315.0, altitude: float = 45.0) -> F64:
    """Brightness of each cell under a sun at this azimuth and altitude, from 0 to 1."""
    gy, gx = np.gradient(height, dy, dx)
    az, alt = np.radians(360.0 - azimuth + 90.0), np.radians(altitude)
    sun = np.cos(az) * np.cos(alt), np.sin(az) * np.cos(alt), np.sin(alt)
    length = np.sqrt(gx * gx + gy * gy + 1.0)
    shade = (-gx * sun[0] + gy * sun[1] + sun[2]) / length
    low, high = shade.min(), shade.max()
    if high > low:
        shade = (shade - low) / (high - low)
    clipped: F64 = np.clip(shade, 0.0, 1.0)
    return clipped


def spread(wet: Mask, low: Mask) -> Mask:
    """The water goes on to low cells beside wet ones until nothing changes any more."""
    cells = wet.sum()
    while True:
        grown = wet.copy()
        grown[1:] |= wet[:-1]
        grown[:-1] |= wet[1:]
        grown[:, 1:] |= wet[:, :-1]
        grown[:, :-1] |= wet[:, 1:]
        grown &= low
        now = grown.sum()
        if now == cells:
            return grown
        wet, cells = grown, now


def flood(height: F64, source: tuple[int, int], share: float, rise: float = 8.0) -> tuple[Mask, float]:
    """Water rises at its source until this share of the land is under it; how often and how far is up to the data."""
    wet = np.zeros(height.shape, dtype=bool)
    wet[source] = True
    level = float(height[source])
    while wet.mean() < share:
        level += rise
        wet = spread(wet, height <= level)
    return wet, level


def programs(data: dict[str, Any]) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Name, function, arguments."""
    height, dx, dy, source = data["height"], data["dx"], data["dy"], data["source"]
    return [
        ("slope", slope, (height, dx, dy)),
        ("hillshade", hillshade, (height, dx, dy)),
        ("flood", flood, (height, source, 0.25)),
    ]
