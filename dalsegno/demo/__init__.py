"""The demo: ordinary NumPy functions on real data that matplotlib's wheel carries. `python -m dalsegno demo`."""
