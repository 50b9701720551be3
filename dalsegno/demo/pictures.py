"""Draws the demo's results into PNG files. No display is needed: the figures never meet pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import numpy as np


def draw(data: dict[str, Any], results: dict[str, Any], folder: Path) -> list[Path]:
    """Writes the pictures; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "terrain": _terrain(results),
        "photograph": _photograph(data, results),
        "options": _options(data, results),
    }
    paths = []
    for name, figure in figures.items():
        path = (folder / f"{name}.png").resolve()
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def _terrain(results: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    shade, steepness, (wet, level) = results["hillshade"], results["slope"], results["flood"]
    left, middle, right = figure.subplots(1, 3)
    left.imshow(shade, cmap="gray")
    left.set_title("hillshade")
    figure.colorbar(middle.imshow(steepness, cmap="magma"), ax=middle, label="degrees")
    middle.set_title("slope")
    right.imshow(shade, cmap="gray")
    right.imshow(np.ma.masked_where(~wet, wet), cmap="winter", alpha=0.6)
    right.set_title(f"flood, {wet.mean():.0%} of the land, at {level:.0f} m")
    for axes in (left, middle, right):
        axes.set_axis_off()
    return figure


def _photograph(data: dict[str, Any], results: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    pictures = {"as it is": data["photograph"], "colour corrected": results["colour correction"]}
    for axes, (title, pixels) in zip(figure.subplots(1, 2), pictures.items(), strict=True):
        axes.imshow(pixels)
        axes.set_title(title)
        axes.set_axis_off()
    return figure


def _options(data: dict[str, Any], results: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    extent = (data["strikes"][0], data["strikes"][-1], len(data["prices"]), 0)
    for axes, prices, title in zip(figure.subplots(1, 2), results["Black-Scholes"], ("call", "put"), strict=True):
        image = axes.imshow(prices, aspect="auto", cmap="viridis", extent=extent)
        axes.set_title(f"{title}, half a year, GOOG")
        axes.set_xlabel("strike / price")
        axes.set_ylabel("trading day")
        figure.colorbar(image, ax=axes, label="dollars")
    return figure
