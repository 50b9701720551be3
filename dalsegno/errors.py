"""Exceptions that users see."""

from __future__ import annotations


class GraphBreak(RuntimeError):
    """A function jitted with full_graph=True would have had to run a part eagerly; says what, where and what to do."""


class DalsegnoWarning(RuntimeWarning):
    """Something around Dal Segno is wrong (a setting, the store, a version); the program runs on without it."""
