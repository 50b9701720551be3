"""Colour correction of a photograph. Plain NumPy, as anybody would write it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import numpy as np

F64 = NDArray[np.float64]
Pixels = NDArray[np.uint8]


def brightness(rgb: F64) -> F64:
    return 0.2126 * rgb[..., 0] + 0.7152 * rgb[..., 1] + 0.0722 * rgb[..., 2]


def tone(rgb: F64, target: float) -> F64:
    """Brings the mean brightness nearer to the target, dark and light pictures in different ways."""
    mean = float(brightness(rgb).mean())
    if mean < target:
        return 1.0 - (1.0 - rgb) ** (1.0 + (target - mean))
    return np.sqrt(rgb) * (target / mean) + rgb * (1.0 - target / mean)


def colour_correct(pixels: Pixels, target: float = 0.5, saturation: float = 1.25) -> Pixels:
    """White balance (the mean of the picture becomes grey), tone, saturation."""
    rgb = pixels / 255.0
    grey = rgb.mean(axis=(0, 1))
    rgb = np.clip(rgb * (grey.mean() / grey), 0.0, 1.0)
    rgb = tone(rgb, target)
    light = brightness(rgb)[..., None]
    rgb = light + saturation * (rgb - light)
    return (np.clip(rgb, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


def programs(data: dict[str, Any]) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Name, function, arguments."""
    return [("colour correction", colour_correct, (data["photograph"],))]
