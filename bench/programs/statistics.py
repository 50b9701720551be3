"""Statistics, finance and Monte Carlo."""

from __future__ import annotations

import math
import random

import numpy as np

from .data import F64, I64, Array


def k_means(points: F64, k: int, steps: int) -> F64:
    centres = points[:k].copy()
    for _ in range(steps):
        distance = np.sqrt(((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))
        nearest = distance.argmin(axis=1)
        for i in range(k):
            members = points[nearest == i]
            if len(members):
                centres[i] = members.mean(axis=0)
    return centres


def k_means_lists(points: list[tuple[float, float]], k: int, steps: int) -> list[tuple[float, float]]:
    """The same without NumPy."""
    centres = points[:k]
    for _ in range(steps):
        groups: list[list[tuple[float, float]]] = [[] for _ in range(k)]
        for x, y in points:
            nearest = min(range(k), key=lambda c: (x - centres[c][0]) ** 2 + (y - centres[c][1]) ** 2)
            groups[nearest].append((x, y))
        centres = [
            (sum(p[0] for p in group) / len(group), sum(p[1] for p in group) / len(group)) if group else centre
            for group, centre in zip(groups, centres, strict=True)
        ]
    return centres


def monte_carlo_pi(n: int) -> float:
    random = np.random.default_rng(7)
    x, y = random.random(n), random.random(n)
    return float(4.0 * np.mean(x * x + y * y < 1.0))


def random_walks(walks: int, steps: int) -> float:
    """The legacy generator; draws inside the loop."""
    np.random.seed(3)  # noqa: NPY002  users write it
    position = np.zeros(walks)
    farthest = np.zeros(walks)
    for _ in range(steps):
        position += np.random.choice([-1.0, 1.0], size=walks)  # noqa: NPY002
        farthest = np.maximum(farthest, np.abs(position))
    return float(farthest.mean())


def metropolis(steps: int) -> float:
    """A Markov chain of scalars."""
    random = np.random.default_rng(11)
    x = 0.0
    total = 0.0
    for _ in range(steps):
        proposal = x + random.normal(0.0, 0.5)
        if math.log(random.random()) < 0.5 * (x * x - proposal * proposal):
            x = proposal
        total += x * x
    return total / steps


def black_scholes(s: F64, k: F64, t: F64, r: float, sigma: float) -> tuple[F64, F64]:
    def cdf(x: F64) -> F64:
        a = 1.0 / (1.0 + 0.2316419 * np.abs(x))
        poly = a * (0.319381530 + a * (-0.356563782 + a * (1.781477937 + a * (-1.821255978 + a * 1.330274429))))
        tail = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi) * poly
        return np.where(x >= 0.0, 1.0 - tail, tail)

    root = sigma * np.sqrt(t)
    d1 = (np.log(s / k) + (r + sigma * sigma / 2.0) * t) / root
    d2 = d1 - root
    call = s * cdf(d1) - k * np.exp(-r * t) * cdf(d2)
    return call, call - s + k * np.exp(-r * t)


def black_scholes_scalar(s: float, strikes: list[float], t: float, r: float, sigma: float) -> list[float]:
    prices = []
    for k in strikes:
        d1 = (math.log(s / k) + (r + sigma * sigma / 2.0) * t) / (sigma * math.sqrt(t))
        d2 = d1 - sigma * math.sqrt(t)
        n1 = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
        n2 = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
        prices.append(s * n1 - k * math.exp(-r * t) * n2)
    return prices


def binomial_option(s: float, k: float, steps: int) -> float:
    """American put on a tree, backwards, a level at a time."""
    up = math.exp(0.2 * math.sqrt(1.0 / steps))
    down = 1.0 / up
    p = (math.exp(0.03 / steps) - down) / (up - down)
    discount = math.exp(-0.03 / steps)
    prices = s * up ** np.arange(steps, -steps - 1, -2.0)
    value = np.maximum(k - prices, 0.0)
    for _ in range(steps):
        prices = prices[:-1] * down
        value = np.maximum(discount * (p * value[:-1] + (1.0 - p) * value[1:]), k - prices)
    return float(value[0])


def correlations(rows: F64) -> F64:
    """By rows, with two loops."""
    n = len(rows)
    result = np.ones((n, n))
    for i in range(n):
        for j in range(i):
            a, b = rows[i] - rows[i].mean(), rows[j] - rows[j].mean()
            result[i, j] = result[j, i] = (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())
    return result


def covariance(rows: F64) -> F64:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.array([[np.dot(a, b) / (rows.shape[1] - 1) for b in centred] for a in centred])


def pairwise_distances(points: F64) -> F64:
    """Broadcast."""
    difference = points[:, None, :] - points[None, :, :]
    return np.asarray(np.sqrt((difference**2).sum(axis=-1)))


def pairwise_elements(points: list[tuple[float, float, float]]) -> float:
    total = 0.0
    for i, (x, y, z) in enumerate(points):
        for u, v, w in points[i + 1 :]:
            total += math.sqrt((x - u) ** 2 + (y - v) ** 2 + (z - w) ** 2)
    return total


def bootstrap(values: F64, times: int) -> tuple[float, float]:
    random = np.random.default_rng(5)
    means = np.empty(times)
    for i in range(times):
        means[i] = values[random.integers(0, len(values), len(values))].mean()
    means.sort()
    return float(means[int(0.025 * times)]), float(means[int(0.975 * times)])


def gradient_descent(x: F64, y: F64, steps: int) -> F64:
    """Logistic regression."""
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        w -= 0.5 * (x.T @ (p - y)) / len(y)
    return w


def gaussian_mixture(x: F64, steps: int) -> tuple[F64, F64, F64]:
    """Expectation and maximisation in one dimension."""
    mean, deviation, weight = np.array([x.min(), x.max()]), np.array([1.0, 1.0]), np.array([0.5, 0.5])
    for _ in range(steps):
        z = (x[:, None] - mean) / deviation
        density = weight * np.exp(-0.5 * z * z) / deviation
        share = density / density.sum(axis=1, keepdims=True)
        total = share.sum(axis=0)
        mean = (share * x[:, None]).sum(axis=0) / total
        deviation = np.sqrt((share * (x[:, None] - mean) ** 2).sum(axis=0) / total)
        weight = total / len(x)
    return mean, deviation, weight


def running_statistics(values: list[float]) -> tuple[float, float, float, float]:
    """Welford's algorithm."""
    count, mean, m2 = 0, 0.0, 0.0
    low, high = values[0], values[0]
    for value in values:
        count += 1
        delta = value - mean
        mean += delta / count
        m2 += delta * (value - mean)
        if value < low:
            low = value
        elif value > high:
            high = value
    return mean, m2 / (count - 1), low, high


def rank_scores(scores: Array) -> Array:
    """Standardised and ranked, by column."""
    result = np.empty_like(scores)
    for column in range(scores.shape[1]):
        values = scores[:, column]
        z = (values - values.mean()) / values.std()
        order = np.argsort(z)
        ranks = np.empty(len(z))
        ranks[order] = np.arange(len(z))
        result[:, column] = ranks / len(z)
    return result


def rings(picture: F64, distance: F64, n: int) -> F64:
    """Mean brightness by distance from the centre: a mask for each ring."""
    edges = np.linspace(0.0, float(distance.max()), n + 1)
    means = np.zeros(n)
    for k in range(n):
        inside = (distance >= edges[k]) & (distance < edges[k + 1])
        if inside.any():
            means[k] = picture[inside].mean()
    return means


def k_means_elements(points: F64, k: int, steps: int) -> F64:
    """The same, number by number."""
    centres = points[:k].copy()
    n, d = points.shape
    labels = np.zeros(n, dtype=int)
    for _ in range(steps):
        for i in range(n):
            least = np.inf
            for c in range(k):
                distance = 0.0
                for j in range(d):
                    distance += (points[i, j] - centres[c, j]) ** 2
                if distance < least:
                    least = distance
                    labels[i] = c
        for c in range(k):
            if (labels == c).any():
                centres[c] = points[labels == c].mean(axis=0)
    return centres


def needles(n: int, seed: int) -> float:
    """Buffon's: how often one that is thrown crosses a line."""
    throws = random.Random(seed)
    crossed = 0
    for _ in range(n):
        if throws.random() * 0.5 <= 0.5 * math.sin(throws.random() * math.pi):
            crossed += 1
    return 2 * n / crossed if crossed else math.inf


def way_on_the_globe(latitudes: F64, longitudes: F64) -> float:
    """The length of a way in km, by haversines."""
    total = 0.0
    for i in range(len(latitudes) - 1):
        a, b = math.radians(latitudes[i]), math.radians(latitudes[i + 1])
        across = math.radians(longitudes[i + 1] - longitudes[i])
        h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(across / 2) ** 2
        total += 2 * 6371 * math.asin(math.sqrt(h))
    return total


def nearest_neighbours(points: F64, labels: I64, asked: F64, k: int) -> I64:
    """The commonest label among the k nearest, a point at a time."""
    result = np.empty(len(asked), dtype=np.int64)
    for i, point in enumerate(asked):
        near = np.argsort(np.sqrt(((points - point) ** 2).sum(axis=1)))[:k]
        result[i] = np.bincount(labels[near]).argmax()
    return result


def particle_filter(observed: F64, particles: int) -> F64:
    random = np.random.default_rng(3)
    x = random.normal(size=particles)
    estimates = np.empty(len(observed))
    for t, z in enumerate(observed):
        x = 0.5 * x + 25.0 * x / (1.0 + x**2) + 8.0 * np.cos(1.2 * t) + random.normal(size=particles)
        weights = np.exp(-0.5 * (z - x**2 / 20.0) ** 2) + 1e-12
        weights /= weights.sum()
        estimates[t] = np.sum(weights * x)
        x = x[np.minimum(np.searchsorted(np.cumsum(weights), random.random(particles)), particles - 1)]
    return estimates


def forward_backward(start: F64, moves: F64, shows: F64, seen: I64) -> F64:
    """The probability of each hidden state at each time."""
    steps, states = len(seen), len(start)
    ahead, behind, scale = np.zeros((steps, states)), np.ones((steps, states)), np.zeros(steps)
    for t in range(steps):
        ahead[t] = (ahead[t - 1] @ moves if t else start) * shows[:, seen[t]]
        scale[t] = ahead[t].sum()
        ahead[t] /= scale[t]
    for t in range(steps - 2, -1, -1):
        behind[t] = moves @ (shows[:, seen[t + 1]] * behind[t + 1]) / scale[t + 1]
    both = ahead * behind
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def sums_of_rows(table: F64) -> list[tuple[float, float]]:
    """Element by element, a row at a time."""
    found = []
    for row in table:
        total, largest = 0.0, row[0]
        for value in row:
            total += value
            if value > largest:
                largest = value
        found.append((round(total, 3), largest))
    return found


class Mixture:
    """Gaussians of one variance each, fitted point by point; a class as a textbook has it."""

    def __init__(self, centres: F64, width: float = 1.0) -> None:
        self.centres = centres.copy()
        self.weights = np.ones(len(centres)) / len(centres)
        self.widths = np.full(len(centres), width)
        self.history: list[float] = []

    def density(self, x: F64, k: int) -> float:
        total = 0.0
        for j in range(x.shape[0]):
            total += (x[j] - self.centres[k, j]) ** 2
        return float(self.weights[k] * math.exp(-0.5 * total / self.widths[k]) / self.widths[k] ** (x.shape[0] / 2))

    def expect(self, points: F64) -> F64:
        shares = np.empty((len(points), len(self.centres)))
        likelihood = 0.0
        for i, x in enumerate(points):
            for k in range(len(self.centres)):
                shares[i, k] = self.density(x, k)
            total = shares[i].sum()
            shares[i] /= total
            likelihood += math.log(total)
        self.history.append(likelihood)
        return shares

    def maximize(self, points: F64, shares: F64) -> None:
        counts = shares.sum(axis=0)
        self.weights = counts / len(points)
        for k in range(len(self.centres)):
            self.centres[k] = (shares[:, k, None] * points).sum(axis=0) / counts[k]
            off = ((points - self.centres[k]) ** 2).sum(axis=1)
            self.widths[k] = (shares[:, k] * off).sum() / (counts[k] * points.shape[1])

    def fit(self, points: F64, steps: int = 5, tolerance: float = 1e-9) -> Mixture:
        for step in range(steps):
            self.maximize(points, self.expect(points))
            if step and abs(self.history[-1] - self.history[-2]) < tolerance:
                break
        return self


def mixture_of_gaussians(points: F64, k: int) -> tuple[F64, F64, list[float]]:
    fitted = Mixture(points[:k], width=0.5).fit(points)
    return fitted.centres, fitted.widths, fitted.history


def variances(returns: F64, omega: float, alpha: float, beta: float) -> F64:
    out = np.empty(len(returns))
    out[0] = returns.var()
    for t in range(1, len(returns)):
        out[t] = omega + alpha * returns[t - 1] ** 2 + beta * out[t - 1]
    return out


def loss_of_garch(returns: F64, omega: float, alpha: float, beta: float) -> float:
    if omega <= 0 or alpha < 0 or beta < 0 or alpha + beta >= 1:
        return 1e10
    s = variances(returns, omega, alpha, beta)
    return float(0.5 * np.sum(np.log(s) + returns**2 / s))


def garch(returns: F64, rounds: int) -> tuple[list[float], float]:
    """Fitted by going along one axis after the other, with a step that shrinks."""
    at, step = [0.1, 0.1, 0.5], 0.1
    best = loss_of_garch(returns, *at)
    for _ in range(rounds):
        for k in range(3):
            for way in (-step, step):
                there = [x + (way if i == k else 0.0) for i, x in enumerate(at)]
                value = loss_of_garch(returns, there[0], there[1], there[2])
                if value < best:
                    at, best = there, value
        step *= 0.8
    return at, best


def length_of_tour(tour: I64, distances: F64) -> float:
    n = len(tour)
    return sum(distances[tour[i], tour[(i + 1) % n]] for i in range(n))


def annealed_tour(distances: F64, steps: int) -> tuple[list[int], float]:
    """By swaps of two places; the length anew each time, by a generator expression."""
    draw = random.Random(5)
    n = len(distances)
    tour, warm = np.arange(n), 1.0
    length = length_of_tour(tour, distances)
    for _ in range(steps):
        i, j = draw.randrange(n), draw.randrange(n)
        other = tour.copy()
        other[i], other[j] = tour[j], tour[i]
        value = length_of_tour(other, distances)
        if value < length or draw.random() < math.exp((length - value) / warm):
            tour, length = other, value
        warm *= 0.99
    return tour.tolist(), length
