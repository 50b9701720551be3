"""Benchmarks against eager NumPy: `python -m dalsegno bench`. Both are timed turn by turn in one run; ratios count."""
