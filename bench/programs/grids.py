"""Time steps on grids."""

from __future__ import annotations

import numpy as np

from .data import F64


def heat_1d(u: F64, steps: int) -> F64:
    u = u.copy()
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.25 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def heat_1d_elements(u: list[float], steps: int) -> list[float]:
    for _ in range(steps):
        after = u[:]
        for i in range(1, len(u) - 1):
            after[i] = u[i] + 0.25 * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        u = after
    return u


def heat_2d(u: F64, steps: int) -> F64:
    u = u.copy()
    for _ in range(steps):
        middle = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] = middle + 0.1 * (around - 4.0 * middle)
    return u


def heat_3d(u: F64, steps: int) -> F64:
    for _ in range(steps):
        after = u.copy()
        after[1:-1, 1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1, 1:-1]
            + u[:-2, 1:-1, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:]
            + u[1:-1, 1:-1, :-2]
            - 6.0 * u[1:-1, 1:-1, 1:-1]
        )
        u = after
    return u


def wave(u: F64, steps: int) -> F64:
    before, now = u, u.copy()
    for _ in range(steps):
        laplacian = (
            np.roll(now, 1, axis=0) + np.roll(now, -1, axis=0) + np.roll(now, 1, axis=1) + np.roll(now, -1, axis=1)
        ) - 4.0 * now
        now, before = 2.0 * now - before + 0.2 * laplacian, now
    return now


def cavity_flow(n: int, steps: int) -> tuple[F64, F64, F64]:
    """Lid-driven cavity, as in the twelve steps to Navier-Stokes."""
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    dx = dy = 2.0 / (n - 1)
    dt, rho, nu = 0.001, 1.0, 0.1
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        b = np.zeros_like(p)
        ux = (un[1:-1, 2:] - un[1:-1, :-2]) / (2 * dx)
        uy = (un[2:, 1:-1] - un[:-2, 1:-1]) / (2 * dy)
        vx = (vn[1:-1, 2:] - vn[1:-1, :-2]) / (2 * dx)
        vy = (vn[2:, 1:-1] - vn[:-2, 1:-1]) / (2 * dy)
        b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)
        for _ in range(5):
            pn = p.copy()
            p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2) / (
                2.0 * (dx**2 + dy**2)
            ) - dx**2 * dy**2 / (2.0 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0.0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0.0, 0.0, 0.0, 1.0
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0.0, 0.0, 0.0, 0.0
    return u, v, p


def gauss_seidel(u: F64, sweeps: int) -> F64:
    """Element by element, in place."""
    u = u.copy()
    rows, columns = u.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def jacobi(u: F64, tolerance: float, most: int) -> tuple[F64, int]:
    for step in range(most):
        after = u.copy()
        after[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        change = np.max(np.abs(after - u))
        u = after
        if change < tolerance:
            return u, step
    return u, most


def gray_scott(u: F64, v: F64, steps: int) -> F64:
    """Reaction and diffusion."""

    def laplacian(a: F64) -> F64:
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4.0 * a

    for _ in range(steps):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u)
        v = v + 0.08 * laplacian(v) + reaction - 0.1 * v
    return v


def burgers(u: F64, steps: int) -> F64:
    """Upwind, with a limiter."""
    for _ in range(steps):
        left, right = np.roll(u, 1), np.roll(u, -1)
        flux = np.where(u > 0.0, u * (u - left), u * (right - u))
        u = np.clip(u - 0.1 * flux + 0.02 * (right - 2.0 * u + left), -2.0, 2.0)
    return u


def shallow_water(h: F64, steps: int) -> F64:
    """A staggered grid in one dimension; in-place updates of slices."""
    h = h.copy()
    u = np.zeros(len(h) + 1)
    for _ in range(steps):
        u[1:-1] -= 0.1 * (h[1:] - h[:-1])
        u *= 0.999
        h -= 0.1 * (u[1:] - u[:-1])
    return h


def lattice_boltzmann(density: F64, steps: int) -> F64:
    """Nine directions, each relaxed and moved on."""
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    flow = weights[:, None, None] * (1.0 + 0.1 * density)
    for _ in range(steps):
        rho = flow.sum(axis=0)
        ux = (flow[1] + flow[5] + flow[8] - flow[3] - flow[6] - flow[7]) / rho
        uy = (flow[2] + flow[5] + flow[6] - flow[4] - flow[7] - flow[8]) / rho
        square = 1.5 * (ux**2 + uy**2)
        for i, (dx, dy) in enumerate(ways):
            along = 3.0 * (dx * ux + dy * uy)
            balance = rho * weights[i] * (1.0 + along + 0.5 * along**2 - square)
            flow[i] += 1.2 * (balance - flow[i])
            flow[i] = np.roll(flow[i], (dx, dy), axis=(0, 1))
    return flow


def edge_preserving(picture: F64, steps: int) -> F64:
    """Diffusion that stops at edges (Perona and Malik)."""
    u = picture.copy()
    for _ in range(steps):
        near = [np.roll(u, shift, axis) - u for shift in (-1, 1) for axis in (0, 1)]
        u += 0.2 * sum(np.exp(-((d / 0.3) ** 2)) * d for d in near)
    return u
