"""Signals: filters, smoothing, tracking."""

from __future__ import annotations

import numpy as np

from .data import C128, F64, Array


def iir_filter(x: F64, b: list[float], a: list[float]) -> F64:
    """Second order, direct form, element by element."""
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        value = b[0] * x[n] + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x2, x1 = x1, x[n]
        y2, y1 = y1, value
        y[n] = value
    return y


class Biquad:
    """The same as an object with a state."""

    def __init__(self, b: tuple[float, float, float], a: tuple[float, float]) -> None:
        self.b0, self.b1, self.b2 = b
        self.a1, self.a2 = a
        self.z1 = self.z2 = 0.0

    def process(self, x: float) -> float:
        y = self.b0 * x + self.z1
        self.z1 = self.b1 * x - self.a1 * y + self.z2
        self.z2 = self.b2 * x - self.a2 * y
        return y


def biquad_chain(samples: list[float]) -> list[float]:
    chain = [Biquad((0.2, 0.4, 0.2), (-0.5, 0.3)), Biquad((0.5, 0.0, -0.5), (-0.2, 0.1))]
    result = []
    for sample in samples:
        for section in chain:
            sample = section.process(sample)
        result.append(sample)
    return result


def fir_filter(x: F64, taps: F64) -> F64:
    """A sum of shifted slices."""
    n = len(x) - len(taps) + 1
    y = np.zeros(n)
    for k, tap in enumerate(taps):
        y += tap * x[k : k + n]
    return y


def fir_windows(x: F64, taps: F64) -> F64:
    """A dot product for each output."""
    n = len(taps)
    return np.array([np.dot(x[i : i + n], taps) for i in range(len(x) - n + 1)])


def kalman(measured: F64, q: float, r: float) -> F64:
    """One dimension, scalars."""
    estimate, variance = 0.0, 1.0
    result = np.zeros(len(measured))
    for i, z in enumerate(measured):
        variance += q
        gain = variance / (variance + r)
        estimate += gain * (z - estimate)
        variance *= 1.0 - gain
        result[i] = estimate
    return result


def kalman_matrices(measured: F64) -> F64:
    """Position and speed: small matrices."""
    dt = 0.1
    f = np.array([[1.0, dt], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    q = 0.01 * np.eye(2)
    r = np.array([[0.5]])
    x = np.zeros(2)
    p = np.eye(2)
    track = []
    for z in measured:
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        k = p @ h.T @ np.linalg.inv(s)
        x = x + k @ (np.array([z]) - h @ x)
        p = (np.eye(2) - k @ h) @ p
        track.append(x[0])
    return np.array(track)


def running_median(x: F64, width: int) -> F64:
    half = width // 2
    padded = np.concatenate([np.full(half, x[0]), x, np.full(half, x[-1])])
    return np.array([np.sort(padded[i : i + width])[half] for i in range(len(x))])


def peaks(x: list[float], height: float) -> list[int]:
    found = []
    for i in range(1, len(x) - 1):
        if x[i] > height and x[i - 1] < x[i] >= x[i + 1]:
            found.append(i)
    return found


def envelope(x: F64, attack: float, release: float) -> F64:
    """Follows the amplitude: quickly up, slowly down."""
    level = 0.0
    result = np.empty(len(x))
    for i, value in enumerate(x.tolist()):
        size = abs(value)
        rate = attack if size > level else release
        level += rate * (size - level)
        result[i] = level
    return result


def fourier(samples: list[float]) -> list[float]:
    """The fast Fourier transform, recursively, and its power."""

    def transform(x: list[complex]) -> list[complex]:
        n = len(x)
        if n == 1:
            return x
        even, odd = transform(x[0::2]), transform(x[1::2])
        turned = [np.e ** (-2j * np.pi * k / n) * odd[k] for k in range(n // 2)]
        return [even[k] + turned[k] for k in range(n // 2)] + [even[k] - turned[k] for k in range(n // 2)]

    return [abs(c) ** 2 for c in transform([complex(s) for s in samples])]


def resample(x: F64, factor: float) -> F64:
    """Linear interpolation, all at once."""
    positions = np.arange(0.0, len(x) - 1.0, factor)
    index = positions.astype(np.int64)
    part = positions - index
    return x[index] * (1.0 - part) + x[index + 1] * part


def iir_windows(x: F64, b: F64, a: F64) -> F64:
    """Direct form by products with what has come before, the newest first."""
    m = len(b)
    padded = np.concatenate((np.zeros(m - 1), x))
    y = np.zeros(len(padded))
    for n in range(len(x)):
        y[n + m - 1] = np.dot(b, padded[n : n + m][::-1]) - np.dot(a[1:], y[n : n + m - 1][::-1])
    return y[m - 1 :]


def fourier_in_place(x: Array) -> Array:
    """Radix 2 by slices, after Cooley and Tukey."""
    x, n, j = x.copy(), len(x), 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    length = 2
    while length <= n:
        half = length // 2
        w = np.exp(-2j * np.pi * np.arange(half) / length)
        for s in range(0, n, length):
            a, b = x[s : s + half].copy(), x[s + half : s + length] * w
            x[s : s + half] = a + b
            x[s + half : s + length] = a - b
        length *= 2
    return x


def butterflies(x: C128) -> C128:
    """The same by elements; what it gives is in the order of reversed bits."""
    a = x.copy()
    half = len(a) // 2
    while half >= 1:
        root = np.exp(-1j * np.pi / half)
        for start in range(0, len(a), 2 * half):
            w = 1 + 0j
            for k in range(start, start + half):
                u, v = a[k], a[k + half]
                a[k] = u + v
                a[k + half] = (u - v) * w
                w *= root
        half //= 2
    return a


def without_outliers(values: F64, half: int, limit: float) -> tuple[F64, list[int]]:
    """Hampel's filter: what is far from the median of its window is replaced by it."""
    cleaned, found = values.copy(), []
    for i in range(half, len(values) - half):
        window = values[i - half : i + half + 1]
        middle = np.median(window)
        spread = 1.4826 * np.median(np.abs(window - middle))
        if abs(values[i] - middle) > limit * spread:
            cleaned[i] = middle
            found.append(i)
    return cleaned, found
