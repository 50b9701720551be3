"""Runs the same little program through a segment's kernel and through NumPy, and compares what can be observed."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import dalsegno as ds
import numpy as np
from dalsegno._testing import segments

DTYPES = ("bool", "int32", "int64", "float32", "float64")
FLOATS = ("float32", "float64")
INTS = ("int32", "int64")
NARROW = ("int8", "uint8", "int16", "uint16", "uint32", "uint64")  # and without sign
ALL_DTYPES = DTYPES + NARROW
_MIXED = "uint8-int8 int16-uint8 uint16-int16 uint32-int32 uint64-int64 uint64-uint8 int64-uint32 int8-int32 bool-uint8"
_MIXED += " uint8-float32 int16-float32 uint32-float32 uint64-float64 float64-int8"
MIXED = [*((d, d) for d in NARROW), *((a, b) for a, b in (p.split("-") for p in _MIXED.split()))]

# One op: function, operands (i >= 0: result of op i; i < 0: input ~i), and the target dtype for astype.
Op = tuple[Any, ...]

UNARY = (
    "negative positive absolute square reciprocal sqrt floor ceil trunc rint sign logical_not invert isnan isinf "
    "isfinite signbit fabs exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh cbrt spacing deg2rad rad2deg radians degrees bitwise_count"
).split()
INTEGER_UNARY = (
    "negative positive absolute square reciprocal floor ceil trunc sign logical_not invert isnan sqrt bitwise_count"
).split()
BINARY = (
    "add subtract multiply divide floor_divide remainder maximum minimum fmax fmin less less_equal greater "
    "greater_equal equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor "
    "left_shift right_shift copysign power float_power arctan2 hypot fmod logaddexp logaddexp2 nextafter "
    "heaviside gcd lcm"
).split()

VECTORS = {"avx2": 256, "avx512": 512}  # bits, of what is assembled
COMPILERS = ("llvm", *(by for by, bits in VECTORS.items() if bits <= segments.widest_vectors()))


@contextlib.contextmanager
def compiled_at_once(by: str, threads: int) -> Iterator[None]:
    """Makes kernels on the caller's thread, by one of COMPILERS or "halide"; launches on so many threads."""
    kept = segments.keep_idle_kernels(0)  # none that another has compiled is found again
    segments.compile_by_halide(by == "halide")
    try:
        bits = VECTORS.get(by, 512)
        with ds.config(assemble=by in VECTORS, vector_bits=bits, background=False):
            segments.configure(kernels=True, background=False, threads=threads)
            yield
    finally:
        segments.compile_by_halide(False)
        segments.configure(kernels=True, background=True, threads=0)
        segments.keep_idle_kernels(kept)


def special_values(dtype: str) -> np.ndarray:
    """The values that break things."""
    d = np.dtype(dtype)
    if d.kind == "b":
        return np.array([False, True])
    if d.kind in "iu":
        i = np.iinfo(d)
        edges = [i.min, i.max, i.min + 1, i.max - 1]
        values = [0, 1, -1, 2, 3, -3, 7, 8, 15, 16, 31, 32, 33, 63, 64, -64, 1 << 20, *edges]
        return np.array([v for v in values if i.min <= v <= i.max], d)
    f = np.finfo(d)
    limits = [float(v) for v in (f.max, f.tiny, f.smallest_subnormal)]
    finite = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 1e-3, 7.25, 1e6, 1e-320, 710.0, 88.8, *limits]
    with np.errstate(all="ignore"):
        return np.array([*finite, *(-v for v in finite), np.inf, -np.inf, np.nan], d)


def pairs(a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
    """Every special value of one dtype with every one of another."""
    x, y = np.meshgrid(special_values(a), special_values(b))
    return x.ravel().copy(), y.ravel().copy()


def random_values(dtype: str, shape: tuple[int, ...] | int, seed: int) -> np.ndarray:
    """Ordinary values, nothing that raises a flag in most functions."""
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    if d.kind == "b":
        return rng.random(shape) < 0.5
    if d.kind in "iu":
        return rng.integers(1, 40, shape).astype(d)
    return (rng.random(shape) * 0.9 + 0.05).astype(d)


def evaluate(ops: Sequence[Op], inputs: Sequence[Any]) -> list[Any]:
    """Eager NumPy: the value of every op."""
    values: list[Any] = []
    for op in ops:
        operands = [values[v] if v >= 0 else inputs[~v] for v in op[1]]
        values.append(operands[0].astype(op[2]) if op[0] == "astype" else getattr(np, op[0])(*operands))
    return values


def describe(value: Any) -> tuple[Any, ...]:
    """A segment's input, from an example."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.name, value.ndim)
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.name)
    return ({bool: "bool", int: "int", float: "float"}[type(value)],)


def make(ops: Sequence[Op], inputs: Sequence[Any], outputs: Sequence[int] | None = None) -> segments.Segment | None:
    """The segment of a program, by example; None if NumPy raises, or gives what kernels do not know."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = evaluate(ops, inputs)
        except (TypeError, ValueError, OverflowError):
            return None
    if any(not isinstance(v, np.ndarray) or v.dtype.name not in ALL_DTYPES for v in values):
        return None
    wanted = [len(ops) - 1] if outputs is None else outputs
    pairs_of_both = enumerate(zip(ops, values, strict=True))
    spec = [(op[0], list(op[1]), v.dtype.name, v.ndim, i in wanted) for i, (op, v) in pairs_of_both]
    return segments.Segment([describe(v) for v in inputs], spec)


def eager(ops: Sequence[Op], inputs: Sequence[Any], outputs: Sequence[int]) -> tuple[list[np.ndarray], set[str]]:
    """Results and the kinds of floating-point trouble that NumPy reports by default."""
    seen: set[str] = set()
    modes = {"divide": "call", "over": "call", "invalid": "call", "under": "ignore"}
    with np.errstate(**modes, call=lambda kind, _flags: seen.add(kind)):
        values = evaluate(ops, inputs)
    return [values[i] for i in outputs], seen


def same(a: np.ndarray, b: np.ndarray) -> str:
    """What differs between two arrays, or ''. Any NaN equals any NaN."""
    if type(a) is not type(b) or a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides:
        return f"{a.dtype} {a.shape} {a.strides} against {b.dtype} {b.shape} {b.strides}"
    if a.flags.writeable != b.flags.writeable or a.flags.owndata != b.flags.owndata:
        return "flags differ"
    x, y = a.ravel("K"), b.ravel("K")
    if x.dtype.kind == "f":
        bits = f"u{x.itemsize}"
        equal = (x.view(bits) == y.view(bits)) | (np.isnan(x) & np.isnan(y))
    else:
        equal = x == y
    bad = np.flatnonzero(~equal)
    if not bad.size:
        return ""
    return f"{bad.size} of {x.size} values differ, first at {bad[0]}: {x[bad[0]]!r} against {y[bad[0]]!r}"


def check(ops: Sequence[Op], inputs: Sequence[Any], outputs: Sequence[int] | None = None, expect: str = "done") -> str:
    """Runs both and asserts that they agree: bits where the kernel ran; flags where NumPy reports something.

    Returns the kernel's outcome; `expect` "" accepts any.
    """
    wanted = [len(ops) - 1] if outputs is None else list(outputs)
    segment = make(ops, inputs, wanted)
    if segment is None or not segment.usable:
        outcome = "unusable"
    else:
        result = segment.run(*inputs)
        outcome = result if isinstance(result, str) else "done"
        if outcome == "not ready" and "constant zero" in str(segment.kernels()):
            return "unusable"  # Halide finds a divisor that is always zero, and refuses
        assert outcome != "not ready", segment.kernels()
        if outcome == "done":
            values, trouble = eager(ops, inputs, wanted)
            assert not trouble, f"{ops}: NumPy reports {trouble}, the kernel did not notice"
            for got, want in zip(result, values, strict=True):
                assert not same(got, want), f"{ops}: {same(got, want)}"
        elif outcome == "flags" and expect == "done":
            trouble = eager(ops, inputs, wanted)[1]
            assert trouble, f"{ops}: the kernel refused for flags that NumPy does not report"
            return outcome
    assert expect in ("", outcome), f"{ops}: {outcome}"
    return outcome
