"""Ordinary whole programs, written as users write them: one module for each class, one table (`table.PROGRAMS`)."""

from .table import PROGRAMS, Program, selected

__all__ = ["PROGRAMS", "Program", "selected"]
