"""Arguments, as source: arrays by dtype, shape, layout and sharing, special values, scalars and containers."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from .chooser import Chooser, Weighted

Shape = tuple[int, ...]

SHAPES: Weighted[Shape] = Weighted(
    [(10, (3,)), (8, (4,)), (6, (2, 3)), (4, (1,)), (2, (2,)), (2, ()), (2, (0,)), (3, (3, 3)), (3, (8,)),
     (2, (2, 1)), (2, (1, 4)), (3, (17,)), (2, (130,)), (2, (5, 7)), (1, (0, 3)), (1, (2, 3, 4)), (2, (1000,)),
     (1, (33, 9)), (1, (1, 1)), (1, (40000,)), (2, (260, 260)), (1, (40, 1, 1000))]
)  # fmt: skip
DTYPES: Weighted[str] = Weighted(
    [(16, "float64"), (4, "int64"), (4, "float32"), (4, "int32"), (3, "bool"), (5, "other"), (2, "complex128")]
)
_FLOATS = ("1.0", "2.5", "-1.5", "0.5", "3.0", "0.1", "-0.25", "100.0")
_SPECIAL_FLOATS = (
    "0.0",
    "-0.0",
    "np.nan",
    "np.inf",
    "-np.inf",
    "1e308",
    "5e-324",
    "1e-310",
    "-1e30",
    "16777217.0",
    "-2.0",
    "709.9",
)
_INTS = ("1", "2", "3", "0", "-1", "7", "100", "-13")
_SPECIAL_INTS = {"int32": ("2**31-1", "-2**31", "0", "65536"), "int64": ("2**63-1", "-2**63", "2**53+1", "0")}
_FLOAT32_SPECIAL = ("0.0", "-0.0", "np.nan", "np.inf", "-np.inf", "3e38", "1e-45", "1e-39", "16777217.0")
_COMPLEX = ("1.0", "1j", "-2.5", "1+2j", "0.1-3j", "-0.5+0.1j")
_SPECIAL_COMPLEX = (
    "complex(-0.0, 0.0)", "complex(0.0, -0.0)", "np.nan", "complex(0, np.nan)", "complex(np.inf, -1)",
    "complex(2, -np.inf)", "1e300+1e300j", "1e-310j",
)  # fmt: skip
_OTHER_DTYPES: dict[str, tuple[str, ...]] = {
    "uint8": ("1", "2", "200", "0", "255"),
    "int8": ("1", "-2", "100", "-128", "0"),
    "uint16": ("1", "2", "65535", "0"),
    "int16": ("1", "-2", "300", "0"),
    "uint32": ("1", "2", "2**32-1", "0"),
    "uint64": ("1", "2", "2**64-1", "0"),
    "float16": ("1.0", "0.1", "-0.0", "60000.0"),
    "complex64": ("1.0", "1j", "-2.5", "0.1+2j", "3e38", "1e-45j"),
    "object": ("1", "2.5", "-3", "True"),
    ">f8": ("1.0", "0.5", "-3.0", "np.nan"),
    "M8[s]": ("0", "1000"),
}
SCALARS = {
    "num": (
        "2",
        "0.5",
        "-1",
        "0",
        "3.5",
        "-0.0",
        "1",
        "np.float64(1.5)",
        "np.float32(0.1)",
        "np.int64(3)",
        "1e300",
        "True",
        "2**40",
    ),
    "odd_num": (
        "float('nan')",
        "float('inf')",
        "2**70",
        "None",
        "'a'",
        "1j",
        "np.int32(7)",
        "np.bool_(True)",
        "np.array(2.0)",
    ),
    "int": ("2", "0", "3", "1", "-1", "5", "300", "2**62", "2**65"),
    "bool": ("True", "False", "True", "False", "1", "np.True_"),
    "str": ("'a'", "''", "'bc'", "'a a'", "'xyz'"),
    "list": ("[1, 2]", "[]", "[1.5, -2.0, 3]", "[0]", "[3, 1, 2, 0]", "[1, 'a']"),
    "dict": ("{'a': 1}", "{'a': 1.5, 'b': 2}", "{}", "{'c': -1, 'a': 3}"),
    "tuple": ("(1, 2)", "()", "(1.5, 2, 3)", "(0,)"),
}


@dataclasses.dataclass
class Arguments:
    """The arguments of one call, as source."""

    setup: list[str]
    values: dict[str, str]

    def changed(self, name: str, other: Arguments) -> Arguments:
        """These, but `name` as in `other`."""
        values = {**self.values, name: other.values[name]}
        used = set(re.findall(r"x\d+", " ".join(values.values())))
        return Arguments([line for line in self.setup + other.setup if line.split()[0].strip(",b") in used], values)


class ArgumentWriter:
    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._count = 0

    def shape(self) -> Shape:
        return self._chooser.weighted(SHAPES)

    def arguments(self, parameters: list[tuple[str, str]], base: Shape) -> Arguments:
        """All arguments of a call. The arrays' shapes broadcast with `base`, most of the time."""
        made = Arguments([], {})
        arrays: list[str] = []
        for name, kind in parameters:
            if kind in ("arr", "odd"):
                made.values[name] = self._array_or_alias(base, arrays, made.setup)
                if made.values[name].isidentifier():
                    arrays.append(made.values[name])
            elif kind == "wave":
                made.values[name] = self._array(base, self._chooser.pick(("complex128", "complex128", "complex64")))
            elif kind == "mask":
                made.values[name] = self._array(base, "bool")
            else:
                made.values[name] = self.scalar(kind)
        return made

    def scalar(self, kind: str) -> str:
        if kind == "arrs":
            return f"[{self._array((3,), 'float64')}]"
        if kind == "num" and self._chooser.chance(8):
            kind = "odd_num"
        return self._chooser.pick(SCALARS[kind])

    def _array_or_alias(self, base: Shape, arrays: list[str], setup: list[str]) -> str:
        chooser = self._chooser
        if arrays and chooser.chance(25):
            other = chooser.pick(arrays)
            return other + chooser.pick(("", "[...]", "[::-1]" if base else "", ".T", ".view()", ".copy()"))
        self._count += 1
        name = f"x{self._count}"
        if arrays and len(base) == 1 and chooser.chance(8):  # two overlapping views of one base
            setup.append(f"{name} = {self._array((base[0] + 1,), chooser.weighted(DTYPES))}")
            setup.append(f"{name}, {name}b = {name}[1:], {name}[:-1]")
            arrays.append(name)
            return f"{name}b"
        text = self.array(base)
        if text.startswith("np.float"):
            return text
        setup.append(f"{name} = {text}")
        return name

    def array(self, base: Shape) -> str:
        chooser = self._chooser
        shape = base
        if base and chooser.chance(20):
            shape = chooser.pick(
                (base[1:], tuple(1 if i == 0 else n for i, n in enumerate(base)), (*base[:-1], 1), (), (1,))
            )
        if chooser.chance(3):
            return "np.float64(1.5)"
        return self._array(shape, chooser.weighted(DTYPES))

    def _array(self, shape: Shape, dtype: str) -> str:
        chooser = self._chooser
        if not shape:
            dtype = "float32" if dtype == "other" else dtype
            return f"np.array({self._items(dtype, 1)[1:-1]}, '{dtype}')"
        layout = chooser.weighted(_LAYOUTS)
        if layout == "transposed":
            return self._plain(shape[::-1], dtype) + ".T"
        if layout == "fortran":
            return f"np.asfortranarray({self._plain(shape, dtype)})"
        if layout == "strided":
            return self._plain((*shape[:-1], shape[-1] * 2), dtype) + "[..., ::2]"
        if layout == "negative":
            return self._plain(shape, dtype) + "[::-1]"
        if layout == "offset":
            return self._plain((shape[0] + 1, *shape[1:]), dtype) + "[1:]"
        if layout == "broadcast":
            return f"np.broadcast_to({self._array((), dtype)}, {shape})"
        if layout == "pickled":  # its dtype is another object than NumPy's own
            return f"__import__('pickle').loads(__import__('pickle').dumps({self._plain(shape, dtype)}))"
        if layout == "subclass":
            return f"{self._plain(shape, dtype)}.view(np.recarray)"
        return self._plain(shape, dtype)

    def _plain(self, shape: Shape, dtype: str) -> str:
        size = int(np.prod(shape))
        if dtype == "bool" and self._chooser.chance(10):  # bytes that are neither 0 nor 1
            return f"np.resize(np.array([0, 2, 255, 1], 'uint8'), {shape}).view(bool)"
        if dtype == "other":
            dtype = self._chooser.pick(tuple(_OTHER_DTYPES))
        if len(shape) == 1 and 1 <= size <= 3:
            return f"np.array({self._items(dtype, size)}, '{dtype}')"
        return f"np.resize(np.array({self._items(dtype, self._chooser.integer(1, 4))}, '{dtype}'), {shape})"

    def _items(self, dtype: str, count: int) -> str:
        chooser = self._chooser
        special = chooser.chance(25)
        if dtype in _OTHER_DTYPES:
            pool: tuple[str, ...] = _OTHER_DTYPES[dtype]
        elif dtype == "bool":
            pool = ("True", "False")
        elif dtype == "complex128":
            pool = _COMPLEX + (_SPECIAL_COMPLEX if special else ())
        elif dtype.startswith("float"):
            pool = _FLOATS + ((_SPECIAL_FLOATS if dtype == "float64" else _FLOAT32_SPECIAL) if special else ())
        else:
            pool = _INTS + (_SPECIAL_INTS[dtype] if special else ())
        return "[" + ", ".join(chooser.pick(pool) for _ in range(count)) + "]"


_LAYOUTS: Weighted[str] = Weighted(
    [
        (30, "plain"),
        (2, "pickled"),
        (4, "fortran"),
        (4, "transposed"),
        (5, "strided"),
        (4, "negative"),
        (3, "offset"),
        (1, "broadcast"),
        (1, "subclass"),
    ]
)
