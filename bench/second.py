"""A new process: `second.py NAME quick|normal eager|warm|replay CLOCK` prints the time of the first call and of 20."""

from __future__ import annotations

import json
import sys
import time

_CALLS = 20


def main(name: str, size: str, what: str, clock_name: str) -> None:
    import dalsegno as ds
    from dalsegno.bench.bits import decorated
    from dalsegno.bench.programs import PROGRAMS

    program = next(p for p in PROGRAMS if p.name == name)
    arguments = program.arguments(size == "quick")
    function = program.function if what == "eager" else decorated(program.function, ds.jit)
    clock = getattr(time, clock_name)
    start = clock()
    function(*arguments)
    first = clock() - start
    for _ in range(_CALLS - 1):
        function(*arguments)
    twenty = clock() - start
    ds.wait()
    print(json.dumps({"first": first, "twenty": twenty}))


if __name__ == "__main__":
    main(*sys.argv[1:])
