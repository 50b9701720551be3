"""Black-Scholes prices of options on a stock's daily prices. Plain NumPy, as anybody would write it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import numpy as np

F64 = NDArray[np.float64]


def normal_cdf(x: F64) -> F64:
    """Abramowitz and Stegun 26.2.17; absolute error below 7.5e-8."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * x * x) * 0.3989422804014327 * poly
    return np.where(x < 0.0, tail, 1.0 - tail)


def volatility(prices: F64, days: int = 252) -> float:
    """Yearly volatility of daily closing prices."""
    returns = np.log(prices[1:] / prices[:-1])
    return float(returns.std() * np.sqrt(days))


def black_scholes(prices: F64, strikes: F64, years: float, rate: float) -> tuple[F64, F64]:
    """Calls and puts for every day and strike."""
    sigma = volatility(prices)
    s, k = prices[:, None], strikes[None, :] * prices[:, None]
    root = sigma * np.sqrt(years)
    d1 = (np.log(s / k) + (rate + 0.5 * sigma * sigma) * years) / root
    d2 = d1 - root
    discounted = k * np.exp(-rate * years)
    call = s * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = call - s + discounted
    return call, put


def programs(data: dict[str, Any]) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Name, function, arguments."""
    return [("Black-Scholes", black_scholes, (data["prices"], data["strikes"], 0.5, 0.03))]
