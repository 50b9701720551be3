"""What one new process does: `cold.py eager|replay|warm` prints, as JSON, time to the first result, and counters."""

from __future__ import annotations

import json
import sys
import time


def main(what: str) -> None:
    import numpy  # noqa: F401  (its import is everybody's)

    start = time.perf_counter()
    import dalsegno as ds

    imported = time.perf_counter() - start
    from dalsegno.bench import patterns

    arguments = patterns.pair(10**5)
    function = patterns.twelve_ops if what == "eager" else ds.jit(patterns.twelve_ops)
    start = time.perf_counter()
    function(*arguments)
    first = time.perf_counter() - start
    if what == "warm":
        for _ in range(3):
            function(*arguments)
        ds.wait()
    stats = ds.stats()
    names = ("recordings", "kernels_compiled", "kernels_loaded", "traces_loaded", "replays")
    print(json.dumps({"import": imported, "first": first, **{name: stats.get(name, 0) for name in names}}))


if __name__ == "__main__":
    main(sys.argv[1])
