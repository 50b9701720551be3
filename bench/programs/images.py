"""Images: filters by slices, colour spaces, histograms."""

from __future__ import annotations

import numpy as np

from .data import F64, I64, U8, Array


def box_blur(picture: F64, radius: int) -> F64:
    """A sum of shifted slices in a generator expression."""
    size = 2 * radius + 1
    padded = np.pad(picture, radius, mode="edge")
    height, width = picture.shape
    total = sum(padded[i : i + height, j : j + width] for i in range(size) for j in range(size))
    return np.asarray(total / size**2)


def gaussian_blur(picture: F64, weights: F64) -> F64:
    """Two passes of weighted slices."""
    radius = len(weights) // 2
    padded = np.pad(picture, radius, mode="edge")
    height, width = picture.shape
    rows = np.zeros((height, width + 2 * radius))
    for k, weight in enumerate(weights):
        rows += weight * padded[k : k + height]
    result = np.zeros((height, width))
    for k, weight in enumerate(weights):
        result += weight * rows[:, k : k + width]
    return result


def sobel(picture: F64) -> F64:
    p = np.pad(picture, 1, mode="edge")
    gx = p[:-2, 2:] + 2.0 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2.0 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2.0 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2.0 * p[:-2, 1:-1] - p[:-2, 2:]
    return np.asarray(np.sqrt(gx * gx + gy * gy))


def median_filter(picture: U8) -> U8:
    """3 x 3, by sorting."""
    p = np.pad(picture, 1, mode="edge")
    height, width = picture.shape
    stack = np.stack([p[i : i + height, j : j + width] for i in range(3) for j in range(3)])
    stack.sort(axis=0)
    return np.asarray(stack[4])


def dilate(mask: Array, times: int) -> Array:
    for _ in range(times):
        grown = mask.copy()
        grown[1:] |= mask[:-1]
        grown[:-1] |= mask[1:]
        grown[:, 1:] |= mask[:, :-1]
        grown[:, :-1] |= mask[:, 1:]
        mask = grown
    return mask


def to_hsv(rgb: U8) -> F64:
    """With where."""
    r, g, b = (rgb[..., i] / 255.0 for i in range(3))
    high = np.maximum(np.maximum(r, g), b)
    low = np.minimum(np.minimum(r, g), b)
    span = high - low
    safe = np.where(span == 0.0, 1.0, span)
    hue = np.where(high == r, (g - b) / safe % 6.0, np.where(high == g, (b - r) / safe + 2.0, (r - g) / safe + 4.0))
    hue = np.where(span == 0.0, 0.0, hue / 6.0)
    saturation = np.where(high == 0.0, 0.0, span / np.where(high == 0.0, 1.0, high))
    return np.stack([hue, saturation, high], axis=-1)


def from_srgb(picture: F64) -> F64:
    """With masks."""
    linear = np.empty_like(picture)
    dark = picture <= 0.04045
    linear[dark] = picture[dark] / 12.92
    linear[~dark] = ((picture[~dark] + 0.055) / 1.055) ** 2.4
    return linear


def to_yuv(rgb: U8) -> U8:
    r, g, b = (rgb[..., i].astype(np.float64) for i in range(3))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    u = 128.0 + 0.492 * (b - y)
    v = 128.0 + 0.877 * (r - y)
    return np.clip(np.dstack([y, u, v]), 0, 255).astype(np.uint8)


def gray_pixels(rgb: list[tuple[int, int, int]]) -> list[int]:
    """Pixel by pixel."""
    result = []
    for r, g, b in rgb:
        value = (299 * r + 587 * g + 114 * b) // 1000
        result.append(255 if value > 255 else value)
    return result


def histogram(picture: U8) -> list[int]:
    """By hand."""
    counts = [0] * 256
    for value in picture.ravel():
        counts[value] += 1
    return counts


def equalise(picture: U8) -> U8:
    counts = np.bincount(picture.ravel(), minlength=256)
    total = counts.cumsum()
    low = total[total > 0][0]
    table = np.round((total - low) / (picture.size - low) * 255.0).astype(np.uint8)
    return np.asarray(table[picture])


def otsu(picture: U8) -> int:
    """The threshold that splits best."""
    counts = np.bincount(picture.ravel(), minlength=256).tolist()
    size = picture.size
    mean = sum(i * c for i, c in enumerate(counts))
    below = weight = 0
    best, threshold = -1.0, 0
    for level, count in enumerate(counts):
        weight += count
        below += level * count
        if weight == 0 or weight == size:
            continue
        distance = below / weight - (mean - below) / (size - weight)
        value = weight * (size - weight) * distance * distance
        if value > best:
            best, threshold = value, level
    return threshold


def alpha_blend(front: F64, back: F64, alpha: F64) -> F64:
    a = alpha[..., None]
    return front * a + back * (1.0 - a)


def bilinear(picture: F64, height: int, width: int) -> F64:
    y = np.linspace(0.0, picture.shape[0] - 1.001, height)
    x = np.linspace(0.0, picture.shape[1] - 1.001, width)
    i, j = y.astype(int), x.astype(int)
    v, u = (y - i)[:, None], (x - j)[None, :]
    top = picture[i][:, j] * (1 - u) + picture[i][:, j + 1] * u
    bottom = picture[i + 1][:, j] * (1 - u) + picture[i + 1][:, j + 1] * u
    return top * (1 - v) + bottom * v


def dither(picture: F64) -> F64:
    """Floyd and Steinberg, element by element."""
    a = picture.copy()
    height, width = a.shape
    for y in range(height - 1):
        for x in range(1, width - 1):
            old = a[y, x]
            new = 1.0 if old > 0.5 else 0.0
            error = old - new
            a[y, x] = new
            a[y, x + 1] += error * 7 / 16
            a[y + 1, x - 1] += error * 3 / 16
            a[y + 1, x] += error * 5 / 16
            a[y + 1, x + 1] += error / 16
    return a


def julia(points: Array, c: complex, turns: int) -> Array:
    """How long points stay near the origin, all of them at once; those that have left are masked."""
    z = points.copy()
    counts = np.zeros(z.shape, dtype=np.int64)
    for _ in range(turns):
        near = np.abs(z) < 2.0
        counts[near] += 1
        z[near] = z[near] * z[near] + c
    return counts


def hough_lines(edges: Array, angles: int) -> I64:
    """How many points of an image of edges lie on each line, point by point."""
    height, width = edges.shape
    diagonal = int(np.ceil(np.hypot(height, width)))
    theta = np.deg2rad(np.linspace(-90.0, 89.0, angles))
    cos, sin = np.cos(theta), np.sin(theta)
    votes = np.zeros((2 * diagonal, angles), dtype=np.int64)
    ys, xs = np.nonzero(edges)
    for i in range(len(xs)):
        for t in range(angles):
            rho = int(round(xs[i] * cos[t] + ys[i] * sin[t])) + diagonal  # noqa: RUF046 - as it is written
            votes[rho, t] += 1
    return votes


def tone_curve(picture: U8, gamma: float, contrast: float) -> U8:
    """Pixel by pixel, clipped and rounded."""
    result = np.empty_like(picture)
    height, width = picture.shape
    for y in range(height):
        for x in range(width):
            value = (picture[y, x] / 255) ** gamma
            value = np.clip((value - 0.5) * contrast + 0.5, 0.0, 1.0)
            result[y, x] = np.uint8(int(round(value * 255)))  # noqa: RUF046
    return result


def local_threshold(picture: F64, radius: int) -> Array:
    """Darker or lighter than the mean around, by a table of sums."""
    sums = np.pad(picture.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    height, width = picture.shape
    lighter = np.zeros(picture.shape, dtype=bool)
    for y in range(height):
        for x in range(width):
            top, bottom = max(0, y - radius), min(height, y + radius + 1)
            left, right = max(0, x - radius), min(width, x + radius + 1)
            total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
            lighter[y, x] = picture[y, x] > 0.95 * total / ((bottom - top) * (right - left))
    return lighter
