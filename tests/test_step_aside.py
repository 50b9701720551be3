"""Where replay loses against eager, it steps aside."""

from __future__ import annotations

import dalsegno as ds


def leaves_always(x):
    y = [x, x + 1]
    y.append(x)
    try:
        return y[0] // x
    except ZeroDivisionError:
        return None


def test_a_function_that_leaves_on_every_call_ends_up_called_directly():
    jitted = ds.jit(store=False)(leaves_always)
    with ds.config(step_aside=True):
        assert {jitted(0) for _ in range(4000)} == {None}
    assert jitted.stats["eager_calls"] > 400
    assert jitted.stats["calls"] == jitted.stats["replays"] + jitted.stats["eager_calls"] + 1
    assert "replay was measured slower than eager" in str(jitted.explain())


def test_stepping_aside_can_be_switched_off():
    jitted = ds.jit(store=False)(leaves_always)
    with ds.config(step_aside=False):
        assert {jitted(0) for _ in range(2000)} == {None}
    assert jitted.stats["eager_calls"] == 0
