"""Parts of modules: functions that call themselves, or each other."""

from __future__ import annotations

_RECURSIVE = """

def recursive(n, x):
    if n <= 0:
        return x
    return recursive(n - 1, x + LIMIT)
"""

_HALVING = """

def halving(n, a):
    mid = a.size // 2
    if n <= 0 or mid < 1:
        return a.ndim + LIMIT
    total = 0
    for k in range(len(a)):
        a[k] = a[k] // 2
        total += k if a[k] > 1 else 0.5
    left = halving(n - 1, a[:mid])
    return left + halving(n - 1, a[mid:].copy()) - total
"""

# Functions made anew in each call: they call themselves, each other, and have loops; what they close over changes.
_NESTED = """

def nested(n, x, xs=()):
    out, calls = [], 0

    def down(k, y=SCALE):
        nonlocal calls
        calls += 1
        if k <= 0:
            return x
        for q in range(k % 3):
            out.append(q * y)
        return down(k - 1, y + LIMIT) if k % 2 else down(k - 1) + x

    def tree(k):
        return k * SCALE if k < 2 else tree(k - 1) + tree(k - 2)

    def total(values, start=0):
        for value in values:
            start = start + value
        return start

    first = down(n)
    if n % 5 == 4:
        down = lambda k, y=0: total([k, y])
    return first + down(n // 2) + tree(min(n, 5)) + total(out) + total(xs, start=calls)
"""

_DEEP = """

@jit
def deep(n, x):
    if n <= 0:
        return x
    return deep(n - 1, x + LIMIT) - 1
"""

_BRANCHING = """

@jit
def leaf(x, seen):
    frame = sys._getframe(1)
    LOG.append((frame.f_lineno, frame.f_locals['n'], type(x)))
    if len(seen) > 2:
        raise ValueError('too deep')
    return x


@jit
def branching(n, x, seen=()):
    if n <= 0 or n > 6:
        return leaf(x, seen)
    try:
        left = branching(n - 1, x + LIMIT, (*seen, n))
    except ValueError:
        left = n
    return left - branching(n - 2, x * 0.5 if n % 2 else x)
"""

_COUNTED = """

@jit
def counted(n, x):
    last = n < 1
    y = x - n
    if last:
        return y // 3 if x > 2 else n - x
    return counted(n - 1, y) % 5 + counted(n - 2, x * 2 if n != 3 else -x)
"""

_TURNS = """

@jit
def evens(n, x=1, *, step=1):
    return x if n <= 0 or n > 8 else odds(n - step, x + 1, step=step)


@jit
def odds(n, x=1, *, step=1):
    total = x
    for _ in range(2):
        if n > 0:
            total -= evens(n - step, x, step=step)
    return total
"""

# Name that stands for the part in a source -> the part.
RECURSIVE: dict[str, str] = {
    "recursive": _RECURSIVE,
    "halving": _HALVING,
    "nested": _NESTED,
    "deep": _DEEP,
    "branching": _BRANCHING,
    "counted": _COUNTED,
    "evens": _TURNS,
}
