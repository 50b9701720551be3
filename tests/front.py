"""What the tests of the Python front share."""

from __future__ import annotations

from dalsegno.bench.harness import same

__all__ = ["COUNTERS", "assert_one_clear_line", "same"]

# Every counter that the documentation promises.
COUNTERS = (
    "calls recordings replays eager_calls exits side_traces guard_failures steps "
    "kernel_launches kernels_compiled kernels_loaded traces_loaded store_errors"
).split()


def assert_one_clear_line(error):
    assert "\n" not in str(error)
    assert str(error).startswith("dalsegno.")
    assert len(str(error)) < 200
