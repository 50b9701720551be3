"""Parts of modules: generators that loops go through."""

from __future__ import annotations

_PACED = """

def paced(n, x, step=1):
    i, y = 0, x
    while i < n:
        if i % 3 == 1:
            yield y
        y = y * 0.5 + i if i % 2 else y - SCALE
        if i == 5 and n > 6:
            return y
        yield i + y
        i += step
"""

_PAIRED = """

def paired(xs, k):
    last = None
    for i, x in enumerate(xs):
        for j in range(i % 3):
            yield i, x * k + j
        if i % 4 == 3:
            del last
        last = x
        yield i, last
"""

_CLOSING = """

def closing(xs, x):
    LOG.append('begun')
    try:
        for y in xs:
            try:
                yield y - x
            finally:
                LOG.append(y)
    except ZeroDivisionError:
        yield LIMIT
    finally:
        LOG.append('closed')
"""

_SHOWN = """

def shown(xs, x):
    for k, y in enumerate(xs):
        frame = sys._getframe()
        LOG.append((frame.f_lineno - frame.f_code.co_firstlineno, sorted(frame.f_locals), frame.f_back.f_code.co_name))
        frame = None
        yield y // (3 - k) + x
"""

_FLOWING = """

def flowing(x):
    while True:
        got = yield x
        x = x * 0.5 + 1 if got is None else got


FLOWS = [flowing(1), flowing(0.5), (x * SCALE for x in range(40))]
"""

# As PARTS of module_parts.py.
GENERATORS: dict[str, str] = {
    "paced": _PACED,
    "paired": _PAIRED,
    "closing": _CLOSING,
    "shown": _SHOWN,
    "FLOWS": _FLOWING,
}
