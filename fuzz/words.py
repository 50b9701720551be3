"""The words that holes of the grammar's templates are filled with."""

from __future__ import annotations

WORDS: dict[str, tuple[str, ...]] = {
    "arith": ("+", "-", "*", "/", "//", "%"),
    "mathfn": ("math.sqrt", "math.exp", "math.log", "math.sin", "math.tanh", "math.floor", "math.isnan", "math.erf"),
    "converter": ("int", "float", "bool", "abs", "round"),
    "fold": ("sum", "max", "min", "sum"),
    "addsub": ("+", "-"),
    "cmp": ("<", ">", "<=", ">=", "==", "!="),
    "bitop": ("&", "|", "^"),
    "ringop": ("+", "-", "*", "+", "-", "*", "/"),
    "ringufunc2": ("add", "subtract", "multiply", "divide"),
    "ringfn": (
        "square", "negative", "positive", "reciprocal", "sqrt", "exp", "log", "sin", "cos", "conjugate", "sign", "tanh",
    ),
    "inplace": ("+=", "-=", "*=", "+=", "*=", "/=", "//=", "%="),
    "index": ("0", "-1", "0", "1", "0", "-1", "2", "4"),
    "dtype": (
        "np.float64", "np.float32", "np.int64", "np.int32", "bool", "'float32'", "int", "float",
        "np.dtype('int32')", "np.uint8", "'int16'", "np.uint32", "np.int8",
    ),
    "step": ("1", "1", "2", "3", "-1"),
    "position": ("i8", "i4", "u4", "i2", "u1", "u8", "?"),
    "small": ("0", "1", "2", "3", "4", "-1"),
    "positive": ("1", "2", "3", "4"),
    "depth": ("1", "2", "3", "4", "150"),
    "intlit": ("0", "1", "2", "3", "7", "-1", "-5", "10", "100", "1000003", "2147483647"),
    "wide": ("0", "1", "2**63 - 1", "2**63", "2**64 - 1", "-1", "-2**63", "2**64", "0x9e3779b97f4a7c15", "True"),
    "wideop": (
        "* 0x100000001b3", "* 6364136223846793005", "+ 0x9e3779b97f4a7c15", "- 2**63", "^ 255", "| 1", "& -7", "<< 13",
        "<< 63", "<< 64",
    ),
    "masked": (
        "& 0xffffffffffffffff", "% 2**64", "& 0xffffffff", "& 0x7fffffffffffffff", "% 2**63", "& 0xffffffffffffffff",
        "% 2**31",
    ),
    "pairlit": (
        "0j",
        "1j",
        "(1+2j)",
        "(0.5-0.25j)",
        "(-1.5+0j)",
        "complex(-0.0, 0.0)",
        "complex(0.0, -0.0)",
        "(1e200+1e200j)",
        "complex('nan')",
        "complex(1, float('inf'))",
    ),
    "floatlit": ("0.0", "1.0", "0.5", "-1.5", "2.5", "3.0", "-0.0", "1e-3", "1e10"),
    "strlit": ("''", "'a'", "'b'", "'ab c'", "'xyz'"),
    "key": ("'a'", "'b'", "'c'"),
    "axis": ("0", "-1", "None"),
    "fmt": ("", ":.3f", ":>8", "!r", ":g", ":.2e", "!s"),
    "ufunc1": (
        "sqrt", "absolute", "negative", "floor", "ceil", "trunc", "rint", "sign", "square", "exp", "log", "sin",
        "cos", "tanh", "reciprocal",
        "log1p", "expm1", "arctan", "cbrt", "exp2", "log2", "positive", "fabs", "sinh", "arcsinh", "spacing", "deg2rad",
    ),
    "ufunc2": (
        "add", "subtract", "multiply", "maximum", "minimum", "divide", "floor_divide", "remainder", "fmax", "fmin",
        "power", "arctan2",
        "hypot", "copysign", "logaddexp", "fmod", "nextafter", "heaviside", "float_power",
    ),
    "predicate": ("isnan", "isfinite", "isinf", "signbit", "logical_not"),
    "logical2": (
        "logical_and", "logical_or", "logical_xor", "less", "greater", "equal", "not_equal", "less_equal",
        "greater_equal",
    ),
    "reduce": ("sum", "mean", "max", "min", "prod"),
    "category": ("UserWarning", "RuntimeWarning", "DeprecationWarning"),
    "error": (
        "ValueError", "ZeroDivisionError", "IndexError", "TypeError", "KeyError", "Exception", "RuntimeError",
        "OverflowError",
    ),
    "errmode": ("ignore", "raise", "warn"),
    "scalartype": ("np.float64", "np.float32", "np.int64", "np.int32", "float", "int", "bool"),
}  # fmt: skip
