"""Simulations: bodies, particles as objects, differential equations, events."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .data import F64, I64, Array


def n_body(positions: F64, masses: F64, steps: int) -> F64:
    """Arrays, all pairs at once."""
    x, v = positions.copy(), np.zeros_like(positions)
    for _ in range(steps):
        d = x[None, :, :] - x[:, None, :]
        r2 = (d * d).sum(axis=2) + 0.01
        force = (masses[None, :, None] * d / (r2 * np.sqrt(r2))[:, :, None]).sum(axis=1)
        v += 0.01 * force
        x += 0.01 * v
    return x


@dataclass
class Body:
    x: float
    y: float
    z: float
    vx: float
    vy: float
    vz: float
    mass: float


def solar_system() -> list[Body]:
    return [
        Body(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.47),
        Body(4.84, -1.16, -0.10, 0.60, 2.81, -0.02, 0.037),
        Body(8.34, 4.12, -0.40, -1.01, 1.82, 0.008, 0.011),
        Body(12.89, -15.11, -0.22, 1.08, 0.86, -0.01, 0.0017),
        Body(15.37, -25.9, 0.17, 0.97, 0.59, -0.03, 0.002),
    ]


def planets(steps: int) -> float:
    """Bodies as objects; the energy afterwards."""
    bodies = solar_system()
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1 :]]
    for _ in range(steps):
        for a, b in pairs:
            dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
            pull = 0.01 / (dx * dx + dy * dy + dz * dz) ** 1.5
            a.vx -= dx * b.mass * pull
            a.vy -= dy * b.mass * pull
            a.vz -= dz * b.mass * pull
            b.vx += dx * a.mass * pull
            b.vy += dy * a.mass * pull
            b.vz += dz * a.mass * pull
        for body in bodies:
            body.x += 0.01 * body.vx
            body.y += 0.01 * body.vy
            body.z += 0.01 * body.vz
    return sum(0.5 * b.mass * (b.vx**2 + b.vy**2 + b.vz**2) for b in bodies)


class Particle:
    """Bounces inside a box."""

    def __init__(self, x: float, y: float, vx: float, vy: float) -> None:
        self.x, self.y, self.vx, self.vy = x, y, vx, vy
        self.hits = 0

    def move(self, dt: float) -> None:
        self.x += self.vx * dt
        self.y += self.vy * dt
        if self.x < 0.0 or self.x > 1.0:
            self.vx = -self.vx
            self.hits += 1
        if self.y < 0.0 or self.y > 1.0:
            self.vy = -self.vy
            self.hits += 1


def bouncing(count: int, steps: int) -> int:
    particles = [Particle(i / count, (i * 7 % count) / count, 0.3 + 0.01 * i, 0.7 - 0.01 * i) for i in range(count)]
    for _ in range(steps):
        for particle in particles:
            particle.move(0.05)
    return sum(particle.hits for particle in particles)


def bouncing_arrays(x: F64, v: F64, steps: int) -> F64:
    """The same with masks."""
    x, v = x.copy(), v.copy()
    for _ in range(steps):
        x += 0.05 * v
        out = (x < 0.0) | (x > 1.0)
        v[out] = -v[out]
        np.clip(x, 0.0, 1.0, out=x)
    return x


def lorenz(steps: int) -> tuple[float, float, float]:
    x, y, z = 1.0, 1.0, 1.0
    dt = 0.005
    for _ in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
    return x, y, z


def runge_kutta(f: Callable[[float, F64], F64], y: F64, steps: int) -> F64:
    """Fourth order; the equation is an argument."""
    t, h = 0.0, 0.01
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return y


def pendulum(t: float, y: F64) -> F64:
    return np.array([y[1], -math.sin(y[0]) - 0.1 * y[1] + 0.5 * math.cos(t)])


def epidemic(days: int) -> list[tuple[float, float, float]]:
    s, i, r = 990.0, 10.0, 0.0
    history = [(s, i, r)]
    for _ in range(days):
        caught = 0.3 * s * i / 1000.0
        healed = 0.1 * i
        s, i, r = s - caught, i + caught - healed, r + healed
        history.append((s, i, r))
    return history


def queue(customers: int) -> float:
    """Events in a heap: two counters, one line; the mean wait."""
    events: list[tuple[float, int, str]] = [(1.0 + 0.7 * i + 0.3 * (i * i % 5), i, "arrive") for i in range(customers)]
    heapq.heapify(events)
    line: deque[tuple[float, int]] = deque()
    free, waited = 2, 0.0
    while events:
        now, who, what = heapq.heappop(events)
        if what == "arrive":
            line.append((now, who))
        else:
            free += 1
        while free and line:
            since, number = line.popleft()
            waited += now - since
            free -= 1
            heapq.heappush(events, (now + 1.0 + 0.2 * (number % 4), number, "leave"))
    return waited / customers


class Account:
    def __init__(self, owner: str, balance: int = 0) -> None:
        self.owner = owner
        self._balance = balance
        self.log: list[tuple[str, int]] = []

    @property
    def balance(self) -> int:
        return self._balance

    def deposit(self, amount: int) -> None:
        self._balance += amount
        self.log.append(("deposit", amount))

    def withdraw(self, amount: int) -> None:
        if amount > self._balance:
            raise ValueError(f"{self.owner} has only {self._balance}")
        self._balance -= amount
        self.log.append(("withdraw", amount))


def bank(transfers: int) -> dict[str, int]:
    """Objects, properties, exceptions that are handled."""
    accounts = [Account(f"customer {i}", 100 * i) for i in range(8)]
    refused = 0
    for i in range(transfers):
        source, target = accounts[i % 8], accounts[i * 3 % 8]
        try:
            source.withdraw(17 + i % 40)
        except ValueError:
            refused += 1
        else:
            target.deposit(17 + i % 40)
    return {"refused": refused, **{account.owner: account.balance for account in accounts}}


def ising(spins: F64, sweeps: int) -> F64:
    """A checkerboard of spins, by masks."""
    random = np.random.default_rng(4)
    spins = spins.copy()
    board = np.indices(spins.shape).sum(axis=0) % 2
    for sweep in range(2 * sweeps):
        around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
        energy = 2.0 * spins * around
        flip = (board == sweep % 2) & ((energy <= 0.0) | (random.random(spins.shape) < np.exp(-0.44 * energy)))
        spins[flip] *= -1.0
    return spins


def spins(coupling: Array, state: Array, steps: int) -> Array:
    """Small complex matrices that act on one another, pair by pair."""
    for _ in range(steps):
        after = np.zeros_like(state)
        for i in range(len(state)):
            for j in range(len(state)):
                after[i] += coupling[i, j] @ state[j] * 0.1
        state = state + after
    return state


def rays_and_spheres(width: int, height: int) -> F64:
    """A picture of three spheres, a ray at a time by vectors of three."""
    spheres = [((0.0, 0.0, 5.0), 1.0), ((1.5, 0.5, 4.0), 0.7), ((-1.5, -0.3, 6.0), 1.2)]
    light = np.array([5.0, 5.0, -5.0])
    picture = np.zeros((height, width))
    for y in range(height):
        for x in range(width):
            ray = np.array([(x - width / 2) / width, (y - height / 2) / height, 1.0])
            ray /= np.linalg.norm(ray)
            nearest, hit = np.inf, None
            for centre, radius in spheres:
                to = -np.array(centre)
                b = 2.0 * np.dot(to, ray)
                discriminant = b * b - 4.0 * (np.dot(to, to) - radius * radius)
                if discriminant > 0.0:
                    t = (-b - np.sqrt(discriminant)) / 2.0
                    if 0.0 < t < nearest:
                        nearest, hit = t, centre
            if hit is not None:
                point = nearest * ray
                normal = point - np.array(hit)
                normal /= np.linalg.norm(normal)
                towards = light - point
                picture[y, x] = max(0.1, np.dot(normal, towards / np.linalg.norm(towards)))
    return picture


def lennard_jones(positions: F64, size: float, steps: int) -> tuple[float, F64]:
    """Molecules in a box that repeats, pair by pair by vectors."""
    positions, velocities, energy = positions.copy(), np.zeros_like(positions), 0.0
    for _ in range(steps):
        forces, energy = np.zeros_like(positions), 0.0
        for i in range(len(positions) - 1):
            for j in range(i + 1, len(positions)):
                r = positions[i] - positions[j]
                r -= size * np.round(r / size)
                square = np.dot(r, r)
                if square < 6.25:
                    inverse = 1.0 / max(square, 0.5)
                    sixth = inverse**3
                    force = 48.0 * inverse * sixth * (sixth - 0.5) * r
                    forces[i] += force
                    forces[j] -= force
                    energy += 4.0 * sixth * (sixth - 1.0)
        velocities += 0.0005 * forces
        positions = (positions + 0.0005 * velocities) % size
    return energy, positions


def spinning_body(moments: F64, spin: F64, steps: int) -> F64:
    """Euler's equations of a body that turns freely."""
    way = np.zeros((steps, 3))
    for t in range(steps):
        spin = spin - 0.001 * np.cross(spin, moments * spin) / moments
        way[t] = spin
    return way


def forest_fire(height: int, width: int, steps: int) -> tuple[Array, list[int]]:
    random = np.random.default_rng(4)
    forest = (random.random((height, width)) < 0.6).astype(np.int8)
    forest[height // 2, width // 2] = 2
    burnt = []
    for _ in range(steps):
        fire = forest == 2
        near = np.zeros_like(fire)
        near[1:] |= fire[:-1]
        near[:-1] |= fire[1:]
        near[:, 1:] |= fire[:, :-1]
        near[:, :-1] |= fire[:, 1:]
        after = forest.copy()
        after[fire] = 3
        after[(forest == 1) & near] = 2
        forest = after
        burnt.append(int(np.count_nonzero(forest == 3)))
    return forest, burnt


def _flip(spins: I64, i: int, j: int, draws: F64, beta: float) -> None:
    n, m = spins.shape
    around = spins[(i - 1) % n, j] + spins[(i + 1) % n, j] + spins[i, (j - 1) % m] + spins[i, (j + 1) % m]
    cost = 2 * spins[i, j] * around
    if cost <= 0 or draws[i, j] < math.exp(-beta * cost):
        spins[i, j] = -spins[i, j]


def ising_elements(spins: I64, draws: F64, sweeps: int) -> I64:
    """Metropolis, site by site, each by a function that asks the lattice for its size."""
    n, m = spins.shape
    for _ in range(sweeps):
        for i in range(n):
            for j in range(m):
                _flip(spins, i, j, draws, 0.44)
    return spins


def orbits(bodies: list[tuple[list[float], list[float], float]], dt: float, steps: int) -> float:
    """Positions and velocities in lists, taken apart in the heads of loops."""
    pairs = [(a, b) for k, a in enumerate(bodies) for b in bodies[k + 1 :]]
    for _ in range(steps):
        for ([x, y, z], v, m), ([p, q, r], w, k) in pairs:
            dx, dy, dz = x - p, y - q, z - r
            pull = dt / ((dx * dx + dy * dy + dz * dz) ** 1.5 + 0.01)
            v[0] -= dx * k * pull
            v[1] -= dy * k * pull
            v[2] -= dz * k * pull
            w[0] += dx * m * pull
            w[1] += dy * m * pull
            w[2] += dz * m * pull
        for place, (vx, vy, vz), _ in bodies:
            place[0] += dt * vx
            place[1] += dt * vy
            place[2] += dt * vz
    return sum(m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) / 2 for _, v, m in bodies)


def damped_pendulum(n: int, g: float = 9.81, length: float = 1.3, damping: float = 0.1) -> tuple[float, float]:
    """By Runge and Kutta: what is integrated is a function within, which sees the parameters."""

    def slopes(angle: float, speed: float) -> tuple[float, float]:
        return speed, -g / length * math.sin(angle) - damping * speed

    angle, speed, h = 0.5, 0.0, 0.01
    for _ in range(n):
        a1, s1 = slopes(angle, speed)
        a2, s2 = slopes(angle + 0.5 * h * a1, speed + 0.5 * h * s1)
        a3, s3 = slopes(angle + 0.5 * h * a2, speed + 0.5 * h * s2)
        a4, s4 = slopes(angle + h * a3, speed + h * s3)
        angle += h * (a1 + 2 * a2 + 2 * a3 + a4) / 6
        speed += h * (s1 + 2 * s2 + 2 * s3 + s4) / 6
    return angle, speed


def _simpson(f: Callable[[float], float], a: float, b: float, n: int) -> float:
    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += (4 if i % 2 else 2) * f(a + i * h)
    return total * h / 3


def integrals(n: int) -> list[float]:
    """Of lambdas, which see a parameter, or have it as a default."""
    found = []
    for p in (0.5, 1.5, 2.5):
        found.append(_simpson(lambda x: math.exp(-p * x) * x**p, 0.0, 1.0, n))  # noqa: B023 - it is called at once
        found.append(_simpson(lambda x, k=p: math.sin(k * x) / (1 + x * x), 0.0, 1.0, n))  # type: ignore[misc]
    return found
