# ruff: noqa: E501 - a table
"""The table of programs: what each is called, its class, its function, and its arguments by size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import data as d
from . import (
    dynamic,
    filters,
    graphs,
    grids,
    images,
    linear,
    networks,
    recurrences,
    recursion,
    simulation,
    statistics,
    texts,
    whole_numbers,
)


@dataclass(frozen=True)
class Program:
    """`make(size)` gives the arguments: new and equal on every call."""

    name: str
    group: str
    function: Callable[..., Any]
    make: Callable[[int], tuple[Any, ...]]
    quick: int
    normal: int

    def arguments(self, quick: bool) -> tuple[Any, ...]:
        return self.make(self.quick if quick else self.normal)


def _group(name: str, rows: Iterable[tuple[Any, ...]]) -> list[Program]:
    """Rows: name, function, how the arguments follow from a size, quick size, normal size."""
    return [Program(row[0], name, *row[1:]) for row in rows]


# Names are unique: the second process is told one.
PROGRAMS: tuple[Program, ...] = (
    *_group("recurrences", [
        ("moving average", recurrences.moving_average, lambda n: (d.floats(n), 0.1), 300, 20_000),
        ("moving average of a list", recurrences.moving_average_of_list, lambda n: (d.floats(n).tolist(), 0.1), 300, 20_000),
        ("running total of an array", recurrences.running_total, lambda n: (d.floats(n),), 500, 30_000),
        ("Kahan sum", recurrences.kahan_sum, lambda n: (d.floats(n).tolist(),), 500, 30_000),
        ("logistic map", recurrences.logistic_map, lambda n: (3.7, n), 500, 50_000),
        ("Newton, scalars", recurrences.newton_roots, lambda n: ((d.floats(n) * 100).tolist(),), 60, 1_000),
        ("Kepler's equation", recurrences.kepler, lambda n: ((d.floats(n) * 6).tolist(), 0.3), 60, 1_500),
        ("Newton, array", recurrences.newton_array, lambda n: (d.floats(n) * 50 + 1,), 200, 50_000),
        ("Mandelbrot, complex", recurrences.mandelbrot_scalar, lambda n: (n, n, 30), 8, 40),
        ("Julia, complex", recurrences.julia_scalar, lambda n: (n, n, 30), 8, 40),
        ("roots of a polynomial", recurrences.polynomial_roots, lambda n: ([1.0, *(d.floats(8) * 4 - 2).tolist()], n), 4, 60),
        ("Mandelbrot, reals", recurrences.mandelbrot_reals, lambda n: (n, n, 30), 8, 40),
        ("Mandelbrot, masks", recurrences.mandelbrot_masks, lambda n: (n, 20), 16, 150),
        ("Horner's rule", recurrences.horner, lambda n: (d.floats(12).tolist(), d.floats(n).tolist()), 40, 1_500),
        ("Simpson's rule", recurrences.simpson, lambda n: (n,), 200, 10_000),
    ]),
    *_group("whole numbers", [
        ("Collatz", whole_numbers.collatz, lambda n: (n,), 60, 1_000),
        ("sieve, list", whole_numbers.sieve_list, lambda n: (n,), 500, 30_000),
        ("sieve, array", whole_numbers.sieve_array, lambda n: (n,), 5_000, 1_000_000),
        ("CRC-32 by table", whole_numbers.crc32, lambda n: (bytes(d.numbers(n, 256)), whole_numbers.crc32_table()), 400, 20_000),
        ("CRC-16 by bits", whole_numbers.crc16_bits, lambda n: (bytes(d.numbers(n, 256)),), 60, 4_000),
        ("Adler-32", whole_numbers.adler32, lambda n: (bytes(d.numbers(n, 256)),), 400, 20_000),
        ("xorshift", whole_numbers.xorshift, lambda n: (88172645463325252, n), 200, 10_000),
        ("greatest common divisors", whole_numbers.euclid,
         lambda n: (list(zip(d.numbers(n, 10**6), d.numbers(n, 10**6, 2), strict=True)),), 80, 2_000),
        ("prime factors", whole_numbers.factors, lambda n: ([v + 2 for v in d.numbers(n, 10**5)],), 20, 300),
        ("digits of pi", whole_numbers.digits_of_pi, lambda n: (n,), 30, 300),
        ("sums of digits", whole_numbers.sums_of_digits, lambda n: (n, 10), 200, 8_000),
        ("life, elements", whole_numbers.life_elements,
         lambda n: ([d.numbers(n, 2, seed) for seed in range(n)], 3), 8, 32),
        ("life, roll", whole_numbers.life_roll, lambda n: (d.integers(n * n, 2).reshape(n, n), 5), 16, 200),
        ("rule 110", whole_numbers.rule_110, lambda n: (d.numbers(n, 2), 10), 40, 500),
        ("bubble sort", whole_numbers.bubble_sort, lambda n: (d.numbers(n, 1000),), 25, 200),
    ]),
    *_group("dynamic programming", [
        ("time warping", dynamic.time_warping, lambda n: (d.floats(n), d.floats(n, seed=2)), 15, 100),
        ("edit distance", dynamic.edit_distance, lambda n: (d.letters(n), d.letters(n, seed=2)), 25, 200),
        ("local alignment", dynamic.local_alignment, lambda n: (d.letters(n), d.letters(n, seed=2)), 20, 120),
        ("common subsequence", dynamic.common_subsequence, lambda n: (d.letters(n), d.letters(n, seed=2)), 25, 150),
        ("knapsack, list", dynamic.knapsack_list,
         lambda n: ([v + 1 for v in d.numbers(n, 20)], d.numbers(n, 90, 2), 8 * n), 15, 60),
        ("knapsack, rows", dynamic.knapsack_rows,
         lambda n: ([v + 1 for v in d.numbers(n, 20)], d.numbers(n, 90, 2), 8 * n), 30, 400),
        ("RNA folding", dynamic.rna_folding, lambda n: (d.letters(n),), 18, 60),
        ("Viterbi", dynamic.viterbi,
         lambda n: (d.floats(8), d.floats(8, 8), d.floats(8, 6), d.integers(n, 6)), 40, 2_000),
        ("ways to pay", dynamic.coin_ways, lambda n: ([1, 2, 5, 10, 20, 50], n), 100, 5_000),
        ("matrix chain", dynamic.matrix_chain, lambda n: ([v + 5 for v in d.numbers(n, 60)],), 10, 30),
        ("longest increasing", dynamic.longest_increasing, lambda n: (d.numbers(n, 1000),), 30, 250),
        ("cheapest seam", dynamic.cheapest_seam, lambda n: (d.floats(n, n),), 16, 300),
    ]),
    *_group("linear algebra", [
        ("sparse product, rows", linear.sparse_product, lambda n: (*d.sparse(n, 8), d.floats(n)), 50, 3_000),
        ("sparse product, elements", linear.sparse_product_elements,
         lambda n: (*(part.tolist() for part in d.sparse(n, 8)), d.floats(n).tolist()), 50, 2_000),
        ("sparse product, arrays by elements", linear.sparse_product_arrays, lambda n: (*d.sparse(n, 8), d.floats(n)), 50, 2_000),
        ("Durbin", linear.durbin, lambda n: (d.floats(n),), 40, 400),
        ("forward substitution", linear.forward_substitution, lambda n: (d.lower_triangle(n), d.floats(n)), 40, 500),
        ("back substitution, elements", linear.back_substitution, lambda n: (d.lower_triangle(n), d.floats(n)), 20, 120),
        ("LU", linear.lu_decomposition, lambda n: (d.positive_definite(n),), 14, 80),
        ("Gauss and Jordan, lists", linear.gauss_jordan,
         lambda n: (np.hstack([d.positive_definite(n), d.floats(n, 1)]).tolist(),), 10, 40),
        ("Cholesky, elements", linear.cholesky, lambda n: (d.positive_definite(n),), 10, 40),
        ("Gram and Schmidt", linear.gram_schmidt, lambda n: (d.normal(n, 2 * n),), 8, 60),
        ("Floyd and Warshall", linear.floyd_warshall, lambda n: (d.distances(n),), 20, 120),
        ("Floyd and Warshall, lists", linear.floyd_warshall_lists, lambda n: (d.distances(n).tolist(),), 10, 40),
        ("conjugate gradient", linear.conjugate_gradient, lambda n: (d.positive_definite(n), d.floats(n), 25), 20, 300),
        ("power iteration", linear.power_iteration, lambda n: (d.positive_definite(n), 50), 20, 100),
        ("tridiagonal", linear.tridiagonal,
         lambda n: (d.floats(n), d.floats(n) + 4, d.floats(n, seed=2), d.floats(n, seed=3)), 60, 5_000),
        ("rotations", linear.rotations, lambda n: (d.floats(n).tolist(),), 30, 1_000),
        ("product of lists", linear.multiply_lists, lambda n: (d.floats(n, n).tolist(), d.floats(n, n).tolist()), 10, 35),
        ("determinants", linear.determinant, lambda n: (list(d.floats(n, 3, 3)),), 40, 1_500),
    ]),
    *_group("filters", [
        ("IIR", filters.iir_filter, lambda n: (d.signal(n), [0.2, 0.3, 0.2], [1.0, -0.5, 0.2]), 150, 8_000),
        ("recursive filter by windows", filters.iir_windows,
         lambda n: (d.signal(n), np.array([0.2, 0.3, 0.2]), np.array([1.0, -0.5, 0.2])), 80, 4_000),
        ("biquads as objects", filters.biquad_chain, lambda n: (d.signal(n).tolist(),), 100, 5_000),
        ("FIR, slices", filters.fir_filter, lambda n: (d.signal(n), d.floats(31)), 300, 50_000),
        ("FIR, windows", filters.fir_windows, lambda n: (d.signal(n), d.floats(31)), 100, 3_000),
        ("Kalman", filters.kalman, lambda n: (d.signal(n), 1e-3, 0.1), 150, 8_000),
        ("Kalman, matrices", filters.kalman_matrices, lambda n: (d.signal(n),), 20, 300),
        ("running median", filters.running_median, lambda n: (d.signal(n), 9), 60, 1_500),
        ("peaks", filters.peaks, lambda n: (d.signal(n).tolist(), 0.4), 300, 20_000),
        ("envelope", filters.envelope, lambda n: (d.signal(n), 0.3, 0.01), 200, 10_000),
        ("Fourier, recursive", filters.fourier, lambda n: (d.signal(n).tolist(),), 32, 512),
        ("resampling", filters.resample, lambda n: (d.signal(n), 0.7), 500, 100_000),
    ]),
    *_group("images", [
        ("box blur, generator", images.box_blur, lambda n: (d.floats(n, n), 2), 24, 300),
        ("Gaussian blur", images.gaussian_blur, lambda n: (d.floats(n, n), np.hanning(9)[1:-1]), 24, 300),
        ("Sobel", images.sobel, lambda n: (d.floats(n, n),), 24, 300),
        ("median by sort", images.median_filter, lambda n: (d.image(n, n),), 16, 100),
        ("dilation", images.dilate, lambda n: (d.image(n, n) > 200, 4), 24, 400),
        ("to HSV, where", images.to_hsv, lambda n: (d.image(n, n, 3),), 16, 150),
        ("from sRGB, masks", images.from_srgb, lambda n: (d.floats(n, n),), 24, 200),
        ("to YUV", images.to_yuv, lambda n: (d.image(n, n, 3),), 24, 200),
        ("gray, pixel by pixel", images.gray_pixels, lambda n: ([tuple(p) for p in d.image(n, n, 3).reshape(-1, 3).tolist()],), 12, 100),
        ("histogram by hand", images.histogram, lambda n: (d.image(n, n),), 12, 100),
        ("equalisation", images.equalise, lambda n: (d.image(n, n),), 24, 300),
        ("Otsu's threshold", images.otsu, lambda n: (d.image(n, n),), 24, 100),
        ("alpha blending", images.alpha_blend, lambda n: (d.floats(n, n, 3), d.floats(n, n, 3, seed=2), d.floats(n, n)), 24, 250),
        ("bilinear scaling", images.bilinear, lambda n: (d.floats(n, n), n * 3 // 2, n * 2), 16, 150),
        ("dithering, elements", images.dither, lambda n: (d.floats(n, n),), 8, 50),
        ("Julia set, masks", images.julia,
         lambda n: (np.linspace(-1.5, 1.5, n) + 1j * np.linspace(-1.5, 1.5, n)[:, None], -0.8 + 0.156j, 20), 12, 150),
    ]),
    *_group("grids", [
        ("heat, 1-d", grids.heat_1d, lambda n: (d.floats(n), 20), 100, 10_000),
        ("heat, 1-d, elements", grids.heat_1d_elements, lambda n: (d.floats(n).tolist(), 5), 40, 1_000),
        ("heat, 2-d", grids.heat_2d, lambda n: (d.floats(n, n), 10), 20, 200),
        ("heat, 3-d", grids.heat_3d, lambda n: (d.floats(n, n, n), 4), 8, 48),
        ("wave", grids.wave, lambda n: (d.floats(n, n), 8), 20, 200),
        ("cavity flow", grids.cavity_flow, lambda n: (n, 4), 11, 61),
        ("Gauss and Seidel", grids.gauss_seidel, lambda n: (d.floats(n, n), 3), 7, 40),
        ("Jacobi", grids.jacobi, lambda n: (d.floats(n, n), 1e-3, 40), 16, 100),
        ("Gray and Scott", grids.gray_scott, lambda n: (d.floats(n, n), d.floats(n, n, seed=2), 5), 16, 128),
        ("Burgers", grids.burgers, lambda n: (d.signal(n), 20), 60, 5_000),
        ("shallow water", grids.shallow_water, lambda n: (d.floats(n), 30), 60, 5_000),
    ]),
    *_group("statistics", [
        ("k-means", statistics.k_means, lambda n: (d.normal(n, 3), 4, 4), 40, 3_000),
        ("k-means, lists", statistics.k_means_lists, lambda n: ([tuple(p) for p in d.normal(n, 2).tolist()], 4, 3), 30, 500),
        ("k-means, elements", statistics.k_means_elements, lambda n: (d.normal(n, 3), 4, 3), 20, 300),
        ("Buffon's needle", statistics.needles, lambda n: (n, 7), 300, 20_000),
        ("way on the globe", statistics.way_on_the_globe, lambda n: (d.floats(n) * 90, d.floats(n, seed=2) * 90), 60, 3_000),
        ("Monte Carlo pi", statistics.monte_carlo_pi, lambda n: (n,), 500, 200_000),
        ("random walks", statistics.random_walks, lambda n: (n, 30), 20, 2_000),
        ("Metropolis", statistics.metropolis, lambda n: (n,), 60, 2_000),
        ("Black and Scholes", statistics.black_scholes,
         lambda n: (d.floats(n) * 50 + 50, d.floats(n, seed=2) * 50 + 50, d.floats(n, seed=3) + 0.1, 0.03, 0.2), 200, 50_000),
        ("Black and Scholes, scalars", statistics.black_scholes_scalar,
         lambda n: (100.0, (d.floats(n) * 50 + 75).tolist(), 1.0, 0.03, 0.2), 60, 3_000),
        ("binomial option", statistics.binomial_option, lambda n: (100.0, 105.0, n), 25, 400),
        ("correlations by rows", statistics.correlations, lambda n: (d.normal(n, 100),), 6, 30),
        ("covariance by rows", statistics.covariance, lambda n: (d.normal(n, 200),), 8, 40),
        ("pairwise distances", statistics.pairwise_distances, lambda n: (d.floats(n, 3),), 20, 300),
        ("pairwise, elements", statistics.pairwise_elements, lambda n: ([tuple(p) for p in d.floats(n, 3).tolist()],), 16, 100),
        ("bootstrap", statistics.bootstrap, lambda n: (d.normal(n), 60), 40, 1_000),
        ("logistic regression", statistics.gradient_descent, lambda n: (d.normal(n, 5), d.integers(n, 2) * 1.0, 20), 50, 3_000),
        ("Gaussian mixture", statistics.gaussian_mixture, lambda n: (d.normal(n), 10), 60, 5_000),
        ("running statistics", statistics.running_statistics, lambda n: (d.normal(n).tolist(),), 200, 20_000),
        ("ranks by column", statistics.rank_scores, lambda n: (d.normal(n, 4),), 40, 5_000),
        ("rings of an image", statistics.rings,
         lambda n: (d.floats(n, n), np.hypot(*np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]), 20), 24, 200),
    ]),
    *_group("networks", [
        ("softmax", networks.softmax, lambda n: (d.normal(n, 64),), 8, 500),
        ("attention", networks.attention, lambda n: tuple(d.normal(4, n, 32, seed=s) for s in (1, 2, 3)), 8, 128),
        ("causal attention", networks.causal_attention,
         lambda n: (d.normal(n, 32), *(d.normal(32, 32, seed=s) for s in (1, 2, 3)), 4), 8, 128),
        ("layer norm", networks.layer_norm, lambda n: (d.normal(n, 64), d.floats(64), d.floats(64, seed=2)), 8, 1_000),
        ("batch norm", networks.batch_norm, lambda n: (d.normal(4, 8, n, n), d.floats(8), d.floats(8, seed=2)), 6, 40),
        ("GELU", networks.gelu, lambda n: (d.normal(n),), 300, 200_000),
        ("perceptron", networks.perceptron,
         lambda n: (d.normal(n, 32), [(d.normal(32, 32, seed=s), d.normal(32, seed=s)) for s in (1, 2, 3)]), 8, 500),
        ("convolution by slices", networks.convolution, lambda n: (d.normal(2, 3, n, n), d.normal(8, 3, 3, 3)), 10, 48),
        ("max pool", networks.max_pool, lambda n: (d.normal(4, 8, n, n),), 8, 64),
        ("LSTM", networks.lstm, lambda n: (d.normal(n, 8), d.normal(8, 64), d.normal(16, 64), d.normal(64)), 10, 300),
        ("training with Adam", networks.train, lambda n: (d.normal(n, 4), d.normal(n, 1), 20), 16, 256),
        ("cross entropy", networks.cross_entropy, lambda n: (d.normal(n, 10), d.numbers(n, 10)), 16, 2_000),
        ("rotary embedding", networks.rotary, lambda n: (d.normal(n, 64),), 8, 500),
        ("layer, position by position", networks.per_position, lambda n: (d.normal(4, n, 32), d.normal(32, 24)), 6, 250),
    ]),
    *_group("simulation", [
        ("n-body, arrays", simulation.n_body, lambda n: (d.normal(n, 3), d.floats(n), 10), 10, 80),
        ("planets as objects", simulation.planets, lambda n: (n,), 6, 200),
        ("bouncing particles", simulation.bouncing, lambda n: (n, 20), 8, 60),
        ("bouncing, masks", simulation.bouncing_arrays, lambda n: (d.floats(n), d.normal(n), 20), 60, 10_000),
        ("Lorenz", simulation.lorenz, lambda n: (n,), 150, 10_000),
        ("Runge and Kutta", simulation.runge_kutta, lambda n: (simulation.pendulum, np.array([0.1, 0.0]), n), 15, 400),
        ("epidemic", simulation.epidemic, lambda n: (n,), 80, 4_000),
        ("queue of events", simulation.queue, lambda n: (n,), 30, 800),
        ("bank", simulation.bank, lambda n: (n,), 60, 2_000),
        ("Ising", simulation.ising, lambda n: (np.where(d.floats(n, n) < 0.5, -1.0, 1.0), 4), 12, 120),
        ("complex spins", simulation.spins,
         lambda n: (d.normal(n, n, 2, 2) + 1j * d.normal(n, n, 2, 2, seed=2), d.normal(n, 2, 2) + 0j, 3), 4, 16),
    ]),
    *_group("text", [
        ("word count", texts.word_count, lambda n: (d.prose(n),), 100, 5_000),
        ("most common words", texts.most_common, lambda n: (d.prose(n), 10), 100, 5_000),
        ("table of values", texts.parse_table, lambda n: (d.table_text(n),), 30, 1_000),
        ("Caesar", texts.caesar, lambda n: (d.prose(n), 13), 40, 1_500),
        ("run lengths", texts.run_lengths, lambda n: (d.letters(n, "ab"),), 150, 8_000),
        ("tokens", texts.tokens, lambda n: ("rate1 * (price + 12.5) / 3 - x" * n,), 5, 150),
        ("expressions", texts.evaluate, lambda n: ("+".join(["2*(x-1)/4", "-y*3"] * n), {"x": 2.0, "y": 0.5}), 5, 150),
        ("anagrams", texts.anagrams, lambda n: ([d.letters(3, "abcd", s) for s in range(n)],), 40, 1_000),
        ("JSON", texts.parse_json, lambda n: ("[" + ",".join(['{"a": [1, 2.5], "bc": "text"}'] * n) + "]",), 6, 150),
        ("justified lines", texts.justify, lambda n: (d.prose(n), 60), 60, 3_000),
        ("longest palindrome", texts.palindromes, lambda n: (d.letters(n, "ab"),), 60, 1_000),
    ]),
    *_group("graphs and containers", [
        ("breadth first", graphs.breadth_first, lambda n: (d.links(n, 4), 0), 50, 2_000),
        ("Dijkstra", graphs.dijkstra, lambda n: (d.graph(n, 4), 0), 40, 1_000),
        ("PageRank, dicts", graphs.page_rank, lambda n: (d.links(n, 4), 5), 30, 500),
        ("PageRank, arrays", graphs.page_rank_arrays,
         lambda n: (np.repeat(np.arange(n), 4), d.integers(4 * n, n), n, 10), 30, 3_000),
        ("Kruskal", graphs.kruskal,
         lambda n: (n, list(zip(d.floats(4 * n).tolist(), d.numbers(4 * n, n), d.numbers(4 * n, n, 2), strict=True))), 30, 500),
        ("topological order", graphs.topological, lambda n: (d.links(n, 4),), 40, 1_500),
        ("least recently used", graphs.least_recently_used, lambda n: (d.numbers(n, 60), 32), 150, 5_000),
        ("trie", graphs.trie,
         lambda n: ([d.letters(6, "abcd", s) for s in range(n)], [d.letters(3, "abcd", s) for s in range(n)]), 20, 300),
        ("group and join", graphs.group_and_join,
         lambda n: (list(zip(d.numbers(n, 50), d.numbers(n, 90, 2), strict=True)), {i: i * 0.5 for i in range(0, 90, 2)}), 100, 5_000),
        ("islands", graphs.flood_fill, lambda n: ([d.letters(n, "#.", s) for s in range(n)],), 10, 50),
        ("widest paths, outer minima", graphs.widest_paths, lambda n: (d.floats(n, n),), 10, 120),
    ]),
    *_group("recursion and generators", [
        ("Fibonacci", recursion.fib, lambda n: (n,), 9, 18),
        ("Hanoi", recursion.hanoi, lambda n: (n, "a", "b", "c"), 6, 12),
        ("Ackermann", recursion.ackermann, lambda n: (2, n), 3, 30),
        ("queens", recursion.queens, lambda n: (n, 0, ()), 4, 6),
        ("permutations", recursion.permutations, lambda n: (list(range(n)),), 4, 7),
        ("merge sort", recursion.merge_sort, lambda n: (d.numbers(n, 1000),), 30, 1_000),
        ("quick sort", recursion.quick_sort, lambda n: (d.numbers(n, 1000),), 30, 1_500),
        ("tree sort", recursion.tree_sort, lambda n: (d.numbers(n, 1000),), 20, 300),
        ("pipeline of generators", recursion.pipeline, lambda n: (d.numbers(n, 1000),), 150, 10_000),
        ("even Fibonacci numbers", recursion.even_fibonacci, lambda n: (10**n,), 8, 100),
        ("moving maxima", recursion.moving_maxima, lambda n: (d.floats(n).tolist(), 8), 60, 3_000),
        ("sudoku", recursion.sudoku, lambda n: ([1, *[0] * n, *[3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 1][n - 3 :]],), 4, 7),
    ]),
)  # fmt: skip


def selected(pattern: str) -> list[Program]:
    """The programs whose name or group contains the regular expression."""
    return [p for p in PROGRAMS if re.search(pattern, f"{p.group}: {p.name}", re.IGNORECASE)]
