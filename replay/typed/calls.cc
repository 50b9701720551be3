#include "replay/typed/calls.h"

#include <algorithm>
#include <iterator>

namespace dalsegno::typed {
namespace {

struct Row {
  const char* module;
  const char* name;
};
constexpr Row kCallees[] = {
#define X(name, module, text) {module, text},
    DALSEGNO_CALLEES(X)
#undef X
};

bool is_truth(Rep rep) { return rep == Rep::kBool || rep == Rep::kNpBool; }
bool is_double(Rep rep) { return rep == Rep::kFloat || rep == Rep::kNpFloat64; }
bool is_any_float(Rep rep) { return bits_of(rep) == Bits::kDouble || bits_of(rep) == Bits::kFloat; }

// The absolute value of a bool is an int, which is another object.
Operator absolute(Rep a) { return is_truth(a) ? Operator{} : Operator{a, a}; }

// What they give is one of the arguments: all have to be of one type.
Operator extreme(std::span<const Rep> arguments) {
  const Rep first = arguments[0];
  const bool same = std::all_of(arguments.begin(), arguments.end(), [&](Rep rep) { return rep == first; });
  return same && !is_truth(first) && first != Rep::kNpUint64 && arguments.size() >= 2 ? Operator{first, first} : Operator{};
}

// Numbers of a subclass of float, or with a __float__ of NumPy's, are taken by their value.
Operator of_double(Rep a, Rep result) {
  return a == Rep::kFloat || is_numpy_scalar(a) || a == Rep::kInt ? Operator{Rep::kFloat, result} : Operator{};
}

Operator to_int(Rep a) {
  if (is_any_float(a)) return {a == Rep::kNpFloat32 ? Rep::kFloat : a, Rep::kInt};
  return {a == Rep::kNpUint64 ? Rep::kInt : a, Rep::kInt};  // not every one fits
}

// A number and its bounds: all of them ints, or a double between what becomes one.
Operator clip_operator(std::span<const Rep> arguments) {
  const auto whole = [](Rep rep) { return rep == Rep::kInt || rep == Rep::kNpInt64; };
  const auto real = [](Rep rep) { return is_double(rep) || rep == Rep::kInt; };
  if (arguments.size() != 3) return {};
  if (std::all_of(arguments.begin(), arguments.end(), whole)) return {Rep::kNpInt64, Rep::kNpInt64};
  return is_double(arguments[0]) && std::all_of(arguments.begin(), arguments.end(), real) ? Operator{Rep::kFloat, Rep::kNpFloat64}
                                                                                          : Operator{};
}

// Floats alone: ints give themselves. NumPy's floats round to the nearest (scalartypes.c: rint), halves to the even one, as Python's do.
Operator to_whole(Callee callee, Rep a) {
  const bool takes = callee == Callee::kRound ? is_any_float(a) : is_double(a);
  return takes ? Operator{Rep::kFloat, Rep::kInt} : Operator{};
}

// (NumPy's scalars may have a __complex__, which is asked for the first argument: its doubles have none.)
Operator to_complex(std::span<const Rep> arguments) {
  const bool real = std::all_of(arguments.begin(), arguments.end(), [](Rep a) { return is_python_number(a) || a == Rep::kNpFloat64; });
  return real && arguments.size() <= 2 ? Operator{Rep::kFloat, Rep::kComplex} : Operator{};
}

Operator of_complex(Callee callee, Rep a) {
  const Rep part = a == Rep::kComplex ? Rep::kFloat : Rep::kNpFloat64;
  switch (callee) {
    case Callee::kAbs:
    case Callee::kReal:
    case Callee::kImag:
      return {a, part};
    case Callee::kBool:
      return {a, Rep::kBool};
    case Callee::kComplex:  // (Python's own is the very object)
      return a == Rep::kNpComplex128 ? Operator{a, Rep::kComplex} : Operator{};
    case Callee::kConjugate:
      return a == Rep::kComplex ? Operator{a, a} : Operator{};
    case Callee::kScalarConjugate:
      return a == Rep::kNpComplex128 ? Operator{a, a} : Operator{};
    default:
      return {};
  }
}

}  // namespace

Draw draw_of(Callee callee) {
  switch (callee) {
    case Callee::kRandom:
      return {Rep::kFloat, 0, 0, 0};
    case Callee::kRandomBits:
      return {Rep::kInt, 0, 1, 1};
    case Callee::kNumpyRandom:
      return {Rep::kFloat, 2, 0, 0};
    case Callee::kBoundRandom:
      return {Rep::kFloat, 1, 0, 0};
    case Callee::kUniform:
      return {Rep::kFloat, 2, 0, 2};
    case Callee::kBoundUniform:
      return {Rep::kFloat, 1, 0, 2};
    case Callee::kNormal:
      return {Rep::kFloat, 2, 0, 2};
    case Callee::kBoundNormal:
      return {Rep::kFloat, 1, 0, 2};
    case Callee::kExponential:
      return {Rep::kFloat, 2, 0, 1};
    case Callee::kBoundExponential:
      return {Rep::kFloat, 1, 0, 1};
    case Callee::kStandardNormal:
    case Callee::kStandardExponential:
      return {Rep::kFloat, 2, 0, 0};
    case Callee::kBoundStandardNormal:
    case Callee::kBoundStandardExponential:
      return {Rep::kFloat, 1, 0, 0};
    case Callee::kIntegers:
      return {Rep::kNpInt64, 2, 1, 2};
    case Callee::kRandint:
      return {Rep::kInt, 2, 1, 2};
    case Callee::kBoundRandint:
      return {Rep::kInt, 1, 1, 2};
    default:
      return {};
  }
}

const char* callee_name(Callee callee) { return callee < Callee::kCount ? kCallees[static_cast<int>(callee)].name : "?"; }
const char* callee_module(Callee callee) { return callee < Callee::kCount ? kCallees[static_cast<int>(callee)].module : "?"; }

Operator call_operator(Callee callee, std::span<const Rep> arguments) {
  if (arguments.empty() || std::find(arguments.begin(), arguments.end(), Rep::kNone) != arguments.end()) return {};
  const Rep a = arguments[0];
  if (std::any_of(arguments.begin(), arguments.end(), is_pair)) return arguments.size() == 1 ? of_complex(callee, a) : Operator{};
  if (callee == Callee::kComplex) return to_complex(arguments);
  if (callee == Callee::kMin || callee == Callee::kMax) return extreme(arguments);
  if (callee == Callee::kGcd)
    return arguments.size() == 2 && a == Rep::kInt && arguments[1] == Rep::kInt ? Operator{Rep::kInt, Rep::kInt} : Operator{};
  if (callee == Callee::kClip) return clip_operator(arguments);
  if (callee == Callee::kRoundTo) return arguments.size() == 2 && is_double(a) ? Operator{Rep::kFloat, Rep::kNpFloat64} : Operator{};
  if (takes_two_doubles(callee))
    return arguments.size() == 2 && of_double(a, Rep::kFloat) && of_double(arguments[1], Rep::kFloat) ? Operator{Rep::kFloat, Rep::kFloat}
                                                                                                      : Operator{};
  if (arguments.size() != 1 || is_text_test(callee) || draws_by_distribution(callee)) return {};
  switch (callee) {
    case Callee::kNone:
    case Callee::kLen:
    case Callee::kRange:
    case Callee::kComplex:
    case Callee::kReal:
    case Callee::kImag:
    case Callee::kConjugate:
    case Callee::kScalarConjugate:
    case Callee::kItem:
    case Callee::kAppend:
    case Callee::kPop:
    case Callee::kDot:
    case Callee::kMatmul:
    case Callee::kDotMethod:
    case Callee::kSum:
    case Callee::kSumMethod:
    case Callee::kLargest:
    case Callee::kLargestMethod:
    case Callee::kLeast:
    case Callee::kLeastMethod:
    case Callee::kMean:
    case Callee::kMeanMethod:
    case Callee::kArgmax:
    case Callee::kArgmaxMethod:
    case Callee::kArgmin:
    case Callee::kArgminMethod:
    case Callee::kNorm:
    case Callee::kStd:
    case Callee::kStdMethod:
    case Callee::kVar:
    case Callee::kVarMethod:
    case Callee::kAnyOf:
    case Callee::kAnyMethod:
    case Callee::kAllOf:
    case Callee::kAllMethod:
    case Callee::kCountNonzero:
    case Callee::kArray:
    case Callee::kEye:
    case Callee::kOnes:
    case Callee::kFull:
    case Callee::kArange:
    case Callee::kCopyMethod:
    case Callee::kZerosLike:
    case Callee::kEmptyLike:
    case Callee::kConcatenate:
    case Callee::kStack:
    case Callee::kVstack:
    case Callee::kHstack:
    case Callee::kColumnStack:
    case Callee::kRoll:
    case Callee::kOuter:
    case Callee::kCross:
    case Callee::kWhere:
    case Callee::kNonzero:
    case Callee::kFlatnonzero:
    case Callee::kArgwhere:
    case Callee::kSearchsorted:
    case Callee::kSearchsortedMethod:
    case Callee::kDigitize:
    case Callee::kInterp:
    case Callee::kTrace:
    case Callee::kArrayEqual:
    case Callee::kMedian:
    case Callee::kPtp:
    case Callee::kProd:
    case Callee::kSort:
    case Callee::kHistogram:
    case Callee::kInv:
    case Callee::kSolve:
    case Callee::kDet:
    case Callee::kCumsum:
    case Callee::kCumsumMethod:
    case Callee::kCumprod:
    case Callee::kCumprodMethod:
    case Callee::kUfunc:
    case Callee::kClip:
    case Callee::kRoundTo:
    case Callee::kRandom:
    case Callee::kRandomBits:
    case Callee::kNumpyRandom:
    case Callee::kBoundRandom:
    case Callee::kUniform:
    case Callee::kBoundUniform:
    case Callee::kIntegers:
    case Callee::kRandint:
    case Callee::kBoundRandint:
    case Callee::kOrd:
      return {};
    case Callee::kAbs:
      return absolute(a);
    case Callee::kInt:
      return to_int(a);
    case Callee::kBitLength:
      return a == Rep::kInt ? Operator{Rep::kInt, Rep::kInt} : Operator{};
    case Callee::kFloat:
      return {Rep::kFloat, Rep::kFloat};
    case Callee::kBool:
      return {a, Rep::kBool};
    case Callee::kScalar:  // of one that it is already
      return {a, a};
    case Callee::kRound:
    case Callee::kFloor:
    case Callee::kCeil:
    case Callee::kTrunc:
      return to_whole(callee, a);
    case Callee::kIsnan:
    case Callee::kIsinf:
    case Callee::kIsfinite:
      return of_double(a, Rep::kBool);
    default:
      return of_double(a, Rep::kFloat);
  }
}

Callee test_of(ArrayFn fn) {
  if (fn == ArrayFn::isnan) return Callee::kIsnan;
  if (fn == ArrayFn::isinf) return Callee::kIsinf;
  return fn == ArrayFn::isfinite ? Callee::kIsfinite : Callee::kNone;
}

// Of one complex number. (Squares and absolute values hang on how NumPy's vectors come to it.)
Operator ufunc_of_complex(ArrayFn fn) {
  constexpr ArrayFn kOfComplex[] = {ArrayFn::exp,    ArrayFn::exp2,    ArrayFn::expm1,    ArrayFn::log,      ArrayFn::log2,
                                    ArrayFn::log10,  ArrayFn::log1p,   ArrayFn::sin,      ArrayFn::cos,      ArrayFn::tan,
                                    ArrayFn::sinh,   ArrayFn::cosh,    ArrayFn::tanh,     ArrayFn::arcsin,   ArrayFn::arccos,
                                    ArrayFn::arctan, ArrayFn::arcsinh, ArrayFn::arccosh,  ArrayFn::arctanh,  ArrayFn::sqrt,
                                    ArrayFn::sign,   ArrayFn::rint,    ArrayFn::negative, ArrayFn::positive, ArrayFn::reciprocal};
  if (std::find(std::begin(kOfComplex), std::end(kOfComplex), fn) == std::end(kOfComplex)) return {};
  return {Rep::kNpComplex128, Rep::kNpComplex128};
}

// Doubles and Python's floats; of two, one may be an int of Python's, which becomes a double then.
Operator ufunc_operator(ArrayFn fn, std::span<const Rep> arguments) {
  if (arguments.size() == 1 && is_pair(arguments[0])) return ufunc_of_complex(fn);
  if (test_of(fn) != Callee::kNone)
    return arguments.size() == 1 && is_any_float(arguments[0]) ? Operator{Rep::kFloat, Rep::kNpBool} : Operator{};
  constexpr ArrayFn kOfDoubles[] = {
      ArrayFn::sqrt,        ArrayFn::exp,      ArrayFn::log,       ArrayFn::log2,       ArrayFn::log10,     ArrayFn::log1p,
      ArrayFn::expm1,       ArrayFn::exp2,     ArrayFn::sin,       ArrayFn::cos,        ArrayFn::tan,       ArrayFn::arcsin,
      ArrayFn::arccos,      ArrayFn::arctan,   ArrayFn::sinh,      ArrayFn::cosh,       ArrayFn::tanh,      ArrayFn::cbrt,
      ArrayFn::fabs,        ArrayFn::absolute, ArrayFn::square,    ArrayFn::floor,      ArrayFn::ceil,      ArrayFn::trunc,
      ArrayFn::rint,        ArrayFn::sign,     ArrayFn::negative,  ArrayFn::reciprocal, ArrayFn::maximum,   ArrayFn::minimum,
      ArrayFn::fmax,        ArrayFn::fmin,     ArrayFn::arctan2,   ArrayFn::hypot,      ArrayFn::copysign,  ArrayFn::deg2rad,
      ArrayFn::rad2deg,     ArrayFn::radians,  ArrayFn::degrees,   ArrayFn::arcsinh,    ArrayFn::arccosh,   ArrayFn::arctanh,
      ArrayFn::heaviside,   ArrayFn::fmod,     ArrayFn::logaddexp, ArrayFn::logaddexp2, ArrayFn::nextafter, ArrayFn::positive,
      ArrayFn::add,         ArrayFn::subtract, ArrayFn::multiply,  ArrayFn::divide,     ArrayFn::power,     ArrayFn::remainder,
      ArrayFn::floor_divide};
  if (std::find(std::begin(kOfDoubles), std::end(kOfDoubles), fn) == std::end(kOfDoubles)) return {};
  if (static_cast<int>(arguments.size()) != array_fn_inputs(fn) || std::none_of(arguments.begin(), arguments.end(), is_double)) return {};
  const bool all = std::all_of(arguments.begin(), arguments.end(), [](Rep rep) { return is_double(rep) || rep == Rep::kInt; });
  return all ? Operator{Rep::kFloat, Rep::kNpFloat64} : Operator{};
}

Operator scalar_operator(Rep to, Rep from) {
  if (!is_numpy_scalar(to) || is_truth(to) || from == Rep::kNone || is_modular(from)) return {};
  if (to == Rep::kNpComplex128) return {to, to};
  if (is_pair(from)) return {};
  const bool whole = bits_of(from) == Bits::kInt64;
  if (to == Rep::kNpFloat64 || from == to) return {to, to};
  // (NumPy's own large integers are rounded once, not twice.)
  if (to == Rep::kNpFloat32) return is_python_number(from) || !whole || size_of_integer(from) <= 4 ? Operator{to, to} : Operator{};
  return whole ? Operator{to, to} : Operator{};
}

bool gives_argument(Callee callee, Rep argument) {
  switch (callee) {
    case Callee::kMin:
    case Callee::kMax:
      return true;
    case Callee::kAbs:
    case Callee::kInt:
      return argument == Rep::kInt;
    case Callee::kFloat:
      return argument == Rep::kFloat;
    default:
      return false;
  }
}

// As NumPy's functions choose it (_methods.py; the dtypes of add.reduce).
Rep reduced_rep(Callee callee, DType dtype) {
  if (is_complex(dtype)) return Rep::kNone;
  const Rep same = rep_of_dtype(dtype);
  const bool floats = same == Rep::kNpFloat64 || same == Rep::kNpFloat32;
  if (finds_position(callee)) return Rep::kNpInt64;
  switch (callee) {
    case Callee::kSum:
    case Callee::kSumMethod:
      if (floats) return same;
      return is_unsigned(same) ? Rep::kNpUint64 : Rep::kNpInt64;
    case Callee::kMean:
    case Callee::kMeanMethod:
      if (floats) return same;
      return size_of_integer(same) < 8 ? Rep::kNpFloat64 : Rep::kNone;
    case Callee::kLargest:
    case Callee::kLargestMethod:
    case Callee::kLeast:
    case Callee::kLeastMethod:
      return same;
    case Callee::kAnyOf:
    case Callee::kAnyMethod:
    case Callee::kAllOf:
    case Callee::kAllMethod:
      return floats ? Rep::kNone : Rep::kNpBool;
    case Callee::kCountNonzero:
      return floats ? Rep::kNone : Rep::kNpInt64;
    default:
      return floats ? same : Rep::kNone;
  }
}

}  // namespace dalsegno::typed
