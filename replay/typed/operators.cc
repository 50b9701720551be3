#include "replay/typed/operators.h"

namespace dalsegno::typed {

bool g_converts_to_complex = true;

namespace {

constexpr const char* kRepNames[] = {
#define X(name, text) text,
    DALSEGNO_REPS(X)
#undef X
};

bool integral(Rep rep) { return rep == Rep::kInt || rep == Rep::kBool; }
bool bitwise(BinaryOp op) { return op == BinaryOp::and_ || op == BinaryOp::or_ || op == BinaryOp::xor_; }

Operator integer_operator(BinaryOp op, bool bools) {
  switch (op) {
    case BinaryOp::power:  // a negative exponent gives a float
    case BinaryOp::matmul:
      return {};
    case BinaryOp::true_divide:
      return {Rep::kInt, Rep::kFloat};
    default:
      return {Rep::kInt, bools && bitwise(op) ? Rep::kBool : Rep::kInt};
  }
}

Operator float_operator(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply:
    case BinaryOp::true_divide:
    case BinaryOp::floor_divide:
    case BinaryOp::remainder:
    case BinaryOp::power:
      return {Rep::kFloat, Rep::kFloat};
    default:
      return {};
  }
}

// Of two integers of NumPy's: the smallest that holds both, or a double.
Rep common_integer(Rep a, Rep b) {
  const int size_a = size_of_integer(a), size_b = size_of_integer(b);
  if (is_unsigned(a) == is_unsigned(b)) return size_a >= size_b ? a : b;
  const Rep whole = is_unsigned(a) ? b : a;
  const int natural = is_unsigned(a) ? size_a : size_b;
  if (size_of_integer(whole) > natural) return whole;
  return natural == 1 ? Rep::kNpInt16 : natural == 2 ? Rep::kNpInt32 : natural == 4 ? Rep::kNpInt64 : Rep::kNpFloat64;
}

bool is_truth(Rep rep) { return rep == Rep::kBool || rep == Rep::kNpBool; }

// The dtype in which NumPy computes with two scalars, or with one and a Python number (NEP 50: a bool or an int takes any dtype of numbers,
// a float any of floats; NumPy's own bool is a dtype that any other holds). kNone: not done here.
Rep common(Rep a, Rep b) {
  if (a == b) return a;
  if (is_truth(a) && is_truth(b)) return Rep::kNpBool;
  if (a == Rep::kBool || b == Rep::kBool) return common(a == Rep::kBool ? Rep::kInt : a, b == Rep::kBool ? Rep::kInt : b);
  if (a == Rep::kNpBool || b == Rep::kNpBool) {
    const Rep other = a == Rep::kNpBool ? b : a;
    return other == Rep::kInt ? Rep::kNpInt64 : other == Rep::kFloat ? Rep::kNpFloat64 : other;
  }
  if (!is_numpy_scalar(a)) return is_numpy_scalar(b) ? common(b, a) : Rep::kNone;
  const bool floating = bits_of(a) != Bits::kInt64;
  if (b == Rep::kInt) return a;
  if (b == Rep::kFloat) return floating ? a : Rep::kNpFloat64;
  if (is_numpy_integer(a) && is_numpy_integer(b)) return common_integer(a, b);
  const Rep whole = is_numpy_integer(a) ? a : b;
  const bool single = a == Rep::kNpFloat32 || b == Rep::kNpFloat32;
  return single && is_numpy_integer(whole) && size_of_integer(whole) <= 2 ? Rep::kNpFloat32 : Rep::kNpFloat64;
}

Operator numpy_integer_operator(BinaryOp op, Rep dtype, bool python_int) {
  switch (op) {
    case BinaryOp::power:
    case BinaryOp::matmul:
      return {};
    case BinaryOp::true_divide:
      // An int that does not fit in the dtype is an error, even where a double is computed.
      if (python_int && dtype != Rep::kNpInt64) return {};
      return {Rep::kNpFloat64, Rep::kNpFloat64};
    default:
      return {dtype, dtype};
  }
}

// own: the dtype is an operand's. If it is neither's NumPy's scalars leave the operator to the ufunc (scalarmath.c.src,
// PROMOTION_REQUIRED), whose powers are others than the C library's on processors with AVX-512.
Operator numpy_float_operator(BinaryOp op, Rep dtype, bool own) {
  switch (op) {
    case BinaryOp::power:
      return own ? Operator{dtype, dtype} : Operator{};
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply:
    case BinaryOp::true_divide:
    case BinaryOp::floor_divide:
    case BinaryOp::remainder:
      return {dtype, dtype};
    default:
      return {};
  }
}

// A number that is not complex becomes it first (Objects/complexobject.c, TO_COMPLEX, on 3.14 COMPLEX_BINOP).
Operator complex_operator(BinaryOp op, Rep a, Rep b) {
  if (b == Rep::kNpFloat64) b = Rep::kFloat;  // which it derives from
  if ((a != Rep::kComplex && !is_python_number(a)) || (b != Rep::kComplex && !is_python_number(b))) return {};
  const bool converts = a == b || op == BinaryOp::power || g_converts_to_complex;
  const Real real = converts ? Real::kNeither : a == Rep::kComplex ? Real::kRight : Real::kLeft;
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply:
    case BinaryOp::true_divide:
    case BinaryOp::power:
      return {Rep::kComplex, Rep::kComplex, real};
    default:
      return {};
  }
}

// NumPy's scalars make a complex number of the other operand, whichever side it is on (scalarmath.c.src, convert_to_cdouble): Python's are
// classes that np.complex128 derives from, or know nothing of it. A double of NumPy's on the left of Python's complex number alone is
// the ufunc's.
Operator numpy_complex_operator(BinaryOp op, Rep a, Rep b) {
  const bool by_ufunc = a == Rep::kNpFloat64 && b == Rep::kComplex;
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply:
    case BinaryOp::true_divide:
      return {Rep::kNpComplex128, Rep::kNpComplex128, by_ufunc ? Real::kLeft : Real::kNeither};
    default:
      return {};
  }
}

bool becomes_complex(Rep rep) { return rep != Rep::kNone && !is_modular(rep); }

Operator numpy_operator(BinaryOp op, Rep a, Rep b) {
  if (a == Rep::kNone || b == Rep::kNone) return {};
  if (is_truth(a) && is_truth(b)) return bitwise(op) ? Operator{Rep::kNpBool, Rep::kNpBool} : Operator{};
  const Rep dtype = common(a, b);
  const auto whole = [](Rep rep) { return rep == Rep::kInt || rep == Rep::kBool; };
  if (bits_of(dtype) == Bits::kInt64) return numpy_integer_operator(op, dtype, whole(a) || whole(b));
  const bool own = dtype == a || dtype == b;
  return numpy_float_operator(op, dtype, own && a != Rep::kNpBool && b != Rep::kNpBool);
}

}  // namespace

const char* rep_name(Rep rep) { return rep < Rep::kCount ? kRepNames[static_cast<int>(rep)] : "?"; }

Operator binary_operator(BinaryOp op, Rep a, Rep b) {
  if (a == Rep::kNpComplex128 || b == Rep::kNpComplex128)
    return becomes_complex(a) && becomes_complex(b) ? numpy_complex_operator(op, a, b) : Operator{};
  if (a == Rep::kNpFloat64 && b == Rep::kComplex) return numpy_complex_operator(op, a, b);
  if (a == Rep::kComplex || b == Rep::kComplex) return complex_operator(op, a, b);
  if (is_numpy_scalar(a) || is_numpy_scalar(b)) return numpy_operator(op, a, b);
  if (!is_python_number(a) || !is_python_number(b)) return {};
  if (integral(a) && integral(b)) return integer_operator(op, a == Rep::kBool && b == Rep::kBool);
  return float_operator(op);
}

// An int beside a float is compared as objects: beyond 2**53 a double does not tell. (A constant that is exact in a double counts as a
// float: infer() sees to that.)
Operator compare_operator(Rep a, Rep b, bool equality) {
  if (a == Rep::kNpComplex128 || b == Rep::kNpComplex128)
    return equality && becomes_complex(a) && becomes_complex(b) ? Operator{Rep::kNpComplex128, Rep::kNpBool} : Operator{};
  if (a == Rep::kComplex || b == Rep::kComplex) {
    const auto takes = [](Rep rep) { return rep == Rep::kComplex || rep == Rep::kFloat; };
    return equality && takes(a) && takes(b) ? Operator{Rep::kComplex, Rep::kBool} : Operator{};
  }
  if (integral(a) && integral(b)) return {Rep::kInt, Rep::kBool};
  if (a == Rep::kFloat && b == Rep::kFloat) return {Rep::kFloat, Rep::kBool};
  const bool numbers = a != Rep::kNone && b != Rep::kNone;
  // NumPy compares uint64 with signed integers by their values, in no common dtype.
  const bool natural = a == Rep::kNpUint64 || b == Rep::kNpUint64;
  if (numbers && !natural && (is_numpy_scalar(a) || is_numpy_scalar(b))) return {common(a, b), Rep::kNpBool};
  return {};
}

// `+x` is x itself, and ~True warns: those stay objects.
Operator unary_operator(UnaryOp op, Rep a) {
  if (op == UnaryOp::negative && (a == Rep::kFloat || a == Rep::kComplex)) return {a, a};
  if (op == UnaryOp::negative && integral(a)) return {Rep::kInt, Rep::kInt};
  if (op == UnaryOp::negative && is_numpy_scalar(a) && !is_truth(a)) return {a, a};
  if (op == UnaryOp::invert && is_numpy_integer(a)) return {a, a};
  if (op == UnaryOp::invert && a == Rep::kInt) return {Rep::kInt, Rep::kInt};
  return {};
}

bool stores(DType dtype, Rep value) {
  switch (dtype) {
    case DType::kBool:
      return is_truth(value);
    case DType::kInt8:
    case DType::kUint8:
    case DType::kInt16:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt32:
    case DType::kInt64:
      return value == Rep::kInt || value == rep_of_dtype(dtype);
    case DType::kFloat32:
      return value == Rep::kFloat || value == Rep::kNpFloat64 || value == Rep::kNpFloat32;
    case DType::kFloat64:
      return value == Rep::kFloat || value == Rep::kInt || (is_numpy_scalar(value) && !is_truth(value) && !is_pair(value));
    case DType::kComplex64:
      return value == Rep::kComplex || value == Rep::kFloat || value == Rep::kInt;
    case DType::kComplex128:
      return is_pair(value) || stores(DType::kFloat64, value);
    default:
      return false;
  }
}

}  // namespace dalsegno::typed
