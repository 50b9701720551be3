"""Layers of neural networks, in plain NumPy."""

from __future__ import annotations

import numpy as np

from .data import F64


def softmax(x: F64) -> F64:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def attention(q: F64, k: F64, v: F64) -> F64:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return np.asarray(softmax(scores) @ v)


def causal_attention(x: F64, wq: F64, wk: F64, wv: F64, heads: int) -> F64:
    n, d = x.shape
    mask = np.triu(np.full((n, n), -np.inf), 1)
    outputs = []
    for q, k, v in zip(*(np.split(x @ w, heads, axis=1) for w in (wq, wk, wv)), strict=True):
        outputs.append(softmax(q @ k.T / np.sqrt(d // heads) + mask) @ v)
    return np.hstack(outputs)


def layer_norm(x: F64, gain: F64, bias: F64) -> F64:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + 1e-5) + bias


def batch_norm(x: F64, gain: F64, bias: F64) -> tuple[F64, F64, F64]:
    mean = x.mean(axis=(0, 2, 3))
    variance = ((x - mean[None, :, None, None]) ** 2).mean(axis=(0, 2, 3))
    scale = gain / np.sqrt(variance + 1e-5)
    return (x - mean[None, :, None, None]) * scale[None, :, None, None] + bias[None, :, None, None], mean, variance


def gelu(x: F64) -> F64:
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


def perceptron(x: F64, layers: list[tuple[F64, F64]]) -> F64:
    for w, b in layers[:-1]:
        x = np.maximum(x @ w + b, 0.0)
    w, b = layers[-1]
    return softmax(x @ w + b)


def convolution(images: F64, kernels: F64) -> F64:
    """A stack of images by slices: batch x channels x height x width."""
    size = kernels.shape[-1]
    height, width = images.shape[2] - size + 1, images.shape[3] - size + 1
    result = np.zeros((images.shape[0], kernels.shape[0], height, width))
    for i in range(size):
        for j in range(size):
            patch = images[:, :, i : i + height, j : j + width]
            result += np.einsum("nchw,kc->nkhw", patch, kernels[:, :, i, j])
    return result


def max_pool(x: F64) -> F64:
    return np.maximum(
        np.maximum(x[..., ::2, ::2], x[..., 1::2, ::2]), np.maximum(x[..., ::2, 1::2], x[..., 1::2, 1::2])
    )


def lstm(xs: F64, w: F64, u: F64, b: F64) -> F64:
    def sigmoid(x: F64) -> F64:
        return 1.0 / (1.0 + np.exp(-x))

    n = u.shape[0]
    h, c = np.zeros(n), np.zeros(n)
    for x in xs:
        gates = x @ w + h @ u + b
        i, f, o = sigmoid(gates[:n]), sigmoid(gates[n : 2 * n]), sigmoid(gates[2 * n : 3 * n])
        c = f * c + i * np.tanh(gates[3 * n :])
        h = o * np.tanh(c)
    return h


class Adam:
    """An optimiser as an object."""

    def __init__(self, parameters: list[F64]) -> None:
        self.parameters = parameters
        self.m = [np.zeros_like(p) for p in parameters]
        self.v = [np.zeros_like(p) for p in parameters]
        self.t = 0

    def step(self, gradients: list[F64]) -> None:
        self.t += 1
        rate = 0.01 * np.sqrt(1.0 - 0.999**self.t) / (1.0 - 0.9**self.t)
        for i, gradient in enumerate(gradients):
            self.m[i] = 0.9 * self.m[i] + 0.1 * gradient
            self.v[i] = 0.999 * self.v[i] + 0.001 * gradient * gradient
            self.parameters[i] = self.parameters[i] - rate * self.m[i] / (np.sqrt(self.v[i]) + 1e-8)


def train(x: F64, y: F64, steps: int) -> F64:
    """Two layers, written out, with Adam."""
    random = np.random.default_rng(2)
    optimiser = Adam([random.normal(0.0, 0.5, (x.shape[1], 16)), random.normal(0.0, 0.5, (16, 1))])
    for _ in range(steps):
        w1, w2 = optimiser.parameters
        hidden = np.tanh(x @ w1)
        error = hidden @ w2 - y
        g2 = hidden.T @ error / len(x)
        g1 = x.T @ ((error @ w2.T) * (1.0 - hidden**2)) / len(x)
        optimiser.step([g1, g2])
    return np.vstack([optimiser.parameters[0], optimiser.parameters[1].T])


def cross_entropy(scores: F64, labels: list[int]) -> float:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(len(labels)), labels].mean())


def rotary(x: F64) -> F64:
    """Rotary position embedding."""
    n, d = x.shape
    angle = np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    cos, sin = np.cos(angle), np.sin(angle)
    result = np.empty_like(x)
    result[:, ::2] = x[:, ::2] * cos - x[:, 1::2] * sin
    result[:, 1::2] = x[:, ::2] * sin + x[:, 1::2] * cos
    return result


def per_position(x: F64, weights: F64) -> F64:
    """A layer over the last axis, one position after the other."""
    out = np.empty((*x.shape[:2], weights.shape[1]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j, :] = x[i, j, :] @ weights
    return out
