"""`a, b = array`: the array's items are read one by one, without an iterator."""

from __future__ import annotations

import pytest

from tests.support import check_second_processes, check_source

CALLS = "def calls():\n    for k in range(5):\n        yield (k,), {}\n"
PROGRAMS = {
    "numbers of every dtype": """
@jit
def entry(k):
    found = []
    for dtype in ('f8', 'f4', 'i8', 'u1', '?', 'c16', 'U3', 'M8[s]', '>f8'):
        a, b, c = np.arange(3).astype(dtype) if dtype != 'M8[s]' else np.arange(3).astype('i8').astype(dtype)
        found += [a, b, type(c).__name__]
    return found
""",
    "differences in a loop": """
@jit
def entry(k):
    points = np.arange(40.0).reshape(20, 2) ** 1.5
    total = 0.0
    for i in range(1, len(points)):
        dx, dy = points[i] - points[i - 1]
        total += np.sqrt(dx**2 + dy**2) + k
    return total
""",
    "rows": """
@jit
def entry(k):
    rows = np.arange(12.0).reshape(3, 4)
    x, y, z = rows
    x[k % 4] = -1.0
    return rows, x.base is rows, y + z
""",
    "too few, too many, none": """
@jit
def entry(k):
    try:
        a, b = np.arange(4.0)[:k]
    except ValueError as error:
        return str(error)
    return a, b
""",
    "no axis": """
@jit
def entry(k):
    try:
        a, b = np.float64(3) if k % 2 else np.array(3)
    except TypeError as error:
        return str(error)
""",
    "reversed, and of one item": """
@jit
def entry(k):
    a, b, c = np.arange(6.0)[::-2]
    (d,) = np.array([a + k])
    return a, b, c, d
""",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_unpacked_arrays(body: str) -> None:
    check_source(body, CALLS)


def test_unpacked_arrays_in_second_processes() -> None:
    check_second_processes()
