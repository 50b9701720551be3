"""Patterns: single constructs of known cost, small and large. What people write is in `programs/`."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

import numpy as np

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """A row of the bench: a function, and the arguments it is called with (the same ones on every call)."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def three_ops(a: F64, b: F64) -> F64:
    return (a + b) * a - b


def twelve_ops(a: F64, b: F64) -> F64:
    t = (a + b) * a - b
    t = t * 0.5 + a * 2.0
    t = np.sqrt(np.abs(t)) + b
    t = np.maximum(t, a) - np.minimum(t, b)
    return t * t + 1.0


def five_point_stencil(u: F64) -> F64:
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) - u[1:-1, 1:-1]


def exp_sin(x: F64) -> F64:
    t: F64 = np.exp(-x * x) * np.sin(3.0 * x) + np.sin(x) * np.exp(-0.5 * x)
    return t


class Particle:
    """For `python_heavy`: attributes, methods and containers."""

    def __init__(self, mass: float, speed: float) -> None:
        self.mass = mass
        self.speed = speed

    def energy(self) -> float:
        return 0.5 * self.mass * self.speed * self.speed

    def pushed(self, impulse: float) -> float:
        return self.speed + impulse / self.mass


def python_heavy(particles: list[Particle], names: list[str]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for particle, name in zip(particles, names, strict=True):
        key = name.strip().lower()
        totals[key] = totals.get(key, 0.0) + particle.energy()
        if particle.pushed(0.25) > 1.0:
            totals[f"fast {key}"] = max(particle.speed, totals.get(f"fast {key}", 0.0))
    return totals


def scalar_loop(data: bytes) -> int:
    """CRC-16, bit by bit."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            if crc & 0x8000:
                crc = ((crc << 1) ^ 0x1021) & 0xFFFF
            else:
                crc = (crc << 1) & 0xFFFF
    return crc


def branch(x: float, limit: float) -> float:
    """For the cost of an exit: which way it goes is up to the caller."""
    y = x * 2.0
    if y > limit:
        return y - limit
    return y + limit


def uses_globals(count: int) -> Callable[..., Any]:
    """A function that looks at `count` globals, and then does a little work."""
    names = [f"constant_{i}" for i in range(count)]
    source = "def look(x):\n" + "".join(f"    {name}\n" for name in names) + "    return (x + 1.0) * x - 2.0\n"
    file = f"<bench: {count} globals>"
    # explain shows source lines: tell linecache about them.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {name: float(i) for i, name in enumerate(names)}
    space["__name__"] = __name__
    exec(compile(source, file, "exec"), space)
    function: Callable[..., Any] = space["look"]
    return function


def pair(n: int) -> tuple[F64, F64]:
    random = np.random.default_rng(n)
    return random.random(n), random.random(n)


def rows(quick: bool) -> Iterator[Program]:
    """The rows that compare eager with replay, made one at a time: their arrays are large."""
    yield Program("three ops, 10 elements", three_ops, pair(10))
    for n in (10**3, 10**5) if quick else (10**3, 10**4, 10**5, 10**6, 10**7):
        yield Program(f"chain of 3 ops, {n:.0e} elements".replace("e+0", "e"), three_ops, pair(n))
        yield Program(f"chain of 12 ops, {n:.0e} elements".replace("e+0", "e"), twelve_ops, pair(n))
    side = 300 if quick else 2000
    random = np.random.default_rng(1)
    yield Program(f"five-point stencil, {side} x {side}", five_point_stencil, (random.random((side, side)),))
    yield Program("exp/sin mix, 1e5 elements", exp_sin, (random.random(10**5),))
    particles = [Particle(1.0 + i % 7, 0.1 * (i % 23)) for i in range(50)]
    names = [(" Red", "green ", "Blue")[i % 3] for i in range(50)]
    yield Program("Python-heavy, 50 objects", python_heavy, (particles, names))
    data = bytes(random.integers(0, 256, 256 if quick else 4096, dtype=np.uint8))
    yield Program(f"scalar loop (CRC-16), {len(data)} bytes", scalar_loop, (data,))
