"""Modules that a function imports itself, or is given: found again, they are folded as globals are."""

from __future__ import annotations

import math
import types

import dalsegno as ds
import numpy as np
from tests.support import check, check_source, settles, stepped


def imported(values):
    import math

    s = 0.0
    for x in values:
        s += math.sqrt(abs(x)) + math.sin(x)
    return s


def given(module, x):
    return module.sqrt(x) + module.sqrt(x + 1)


def test_functions_of_a_local_module_are_typed():
    check(imported, ([1.5, 2.5, -3.0],), ([1, 2.5],), (["x"],), ([],))
    settles(imported, ([1.5, 2.5, -3.0],))
    jitted = ds.jit(store=False)(imported)
    with stepped():
        jitted([1.5, 2.5])
    assert not any("get_attr" in op for trace in jitted.traces() for op in map(str, trace["ops"]))


def test_another_module_under_the_same_name():
    other = types.ModuleType("math")
    other.sqrt = lambda x: x * 100
    modules = [math, np, other]  # (modules are not copied)

    def chosen(k, x):
        return given(modules[k], x)

    check(chosen, (0, 4.0), (1, 4.0), (2, 4.0), (0, -1.0))


def test_a_module_whose_attribute_changes():
    check_source(
        """
        import math
        import sys
        import types

        tool = types.ModuleType("tool_of_a_test")
        tool.step = lambda x: x + 1
        sys.modules["tool_of_a_test"] = tool

        @jit
        def run(n):
            import tool_of_a_test

            s = 0
            for i in range(n):
                s = tool_of_a_test.step(s)
            return s

        def entry(n, by, again):
            tool.step = lambda x: x + by
            if again:
                other = types.ModuleType("tool_of_a_test")
                other.step = lambda x: x - by
                sys.modules["tool_of_a_test"] = other
            else:
                sys.modules["tool_of_a_test"] = tool
            return run(n)
        """,
        """
        def calls():
            for by, again in ((1, False), (1, False), (1, False), (2, False), (2, True), (2, True), (3, False)):
                yield (5, by, again), {}
        """,
    )
