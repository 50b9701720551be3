"""The differential fuzzer: random programs, run eagerly, recorded, stepped, compiled and from the store of another process, must agree
to the bit. `run_cli` is `dalsegno fuzz`; `check_program` is what a printed failure calls; `equivalent` compares one's own function."""

from .cli import run_cli
from .equivalent import Call, call, equivalent
from .report import check_program

__all__ = ["Call", "call", "check_program", "equivalent", "run_cli"]
