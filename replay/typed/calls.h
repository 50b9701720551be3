// Which calls of functions exist on unboxed operands: builtins and math. No Python.h here.
#pragma once
#include <span>

#include "replay/typed/operators.h"
#include "trace/array_fn.h"

namespace dalsegno::typed {

// X(name, module, text)  Functions that are done unboxed.
#define DALSEGNO_CALLEES(X)                                     \
  X(kNone, "", "")                                              \
  X(kAbs, "builtins", "abs")                                    \
  X(kMin, "builtins", "min")                                    \
  X(kMax, "builtins", "max")                                    \
  X(kLen, "builtins", "len")                                    \
  X(kRound, "builtins", "round")                                \
  X(kInt, "type", "int")                                        \
  X(kFloat, "type", "float")                                    \
  X(kBool, "type", "bool")                                      \
  X(kComplex, "type", "complex")                                \
  X(kReal, "complex", "real")                                   \
  X(kImag, "complex", "imag")                                   \
  X(kConjugate, "complex", "conjugate")                         \
  X(kScalarConjugate, "generic", "conjugate")                   \
  X(kRange, "type", "range")                                    \
  X(kItem, "ndarray", "item")                                   \
  X(kAppend, "list", "append")                                  \
  X(kPop, "list", "pop")                                        \
  X(kGet, "dict", "get")                                        \
  X(kAdd, "set", "add")                                         \
  X(kHeappush, "_heapq", "heappush")                            \
  X(kHeappop, "_heapq", "heappop")                              \
  X(kFloor, "math", "floor")                                    \
  X(kCeil, "math", "ceil")                                      \
  X(kTrunc, "math", "trunc")                                    \
  X(kIsnan, "math", "isnan")                                    \
  X(kIsinf, "math", "isinf")                                    \
  X(kIsfinite, "math", "isfinite")                              \
  X(kLog, "math", "log")                                        \
  X(kLog2, "math", "log2")                                      \
  X(kLog10, "math", "log10")                                    \
  X(kAtan2, "math", "atan2")                                    \
  X(kPow, "math", "pow")                                        \
  X(kFmod, "math", "fmod")                                      \
  X(kCopysign, "math", "copysign")                              \
  X(kLog1p, "math", "log1p")                                    \
  X(kGcd, "math", "gcd")                                        \
  X(kOrd, "builtins", "ord")                                    \
  X(kAcos, "math", "acos")                                      \
  X(kAcosh, "math", "acosh")                                    \
  X(kAsin, "math", "asin")                                      \
  X(kAsinh, "math", "asinh")                                    \
  X(kAtan, "math", "atan")                                      \
  X(kAtanh, "math", "atanh")                                    \
  X(kCbrt, "math", "cbrt")                                      \
  X(kCos, "math", "cos")                                        \
  X(kCosh, "math", "cosh")                                      \
  X(kExp, "math", "exp")                                        \
  X(kExp2, "math", "exp2")                                      \
  X(kExpm1, "math", "expm1")                                    \
  X(kFabs, "math", "fabs")                                      \
  X(kSin, "math", "sin")                                        \
  X(kSinh, "math", "sinh")                                      \
  X(kSqrt, "math", "sqrt")                                      \
  X(kTan, "math", "tan")                                        \
  X(kTanh, "math", "tanh")                                      \
  X(kErf, "math", "erf")                                        \
  X(kErfc, "math", "erfc")                                      \
  X(kRadians, "math", "radians")                                \
  X(kDegrees, "math", "degrees")                                \
  X(kDot, "numpy", "dot")                                       \
  X(kMatmul, "numpy", "matmul")                                 \
  X(kDotMethod, "ndarray", "dot")                               \
  X(kSum, "numpy", "sum")                                       \
  X(kSumMethod, "ndarray", "sum")                               \
  X(kLargest, "numpy", "max")                                   \
  X(kLargestMethod, "ndarray", "max")                           \
  X(kLeast, "numpy", "min")                                     \
  X(kLeastMethod, "ndarray", "min")                             \
  X(kMean, "numpy", "mean")                                     \
  X(kMeanMethod, "ndarray", "mean")                             \
  X(kArgmax, "numpy", "argmax")                                 \
  X(kArgmaxMethod, "ndarray", "argmax")                         \
  X(kArgmin, "numpy", "argmin")                                 \
  X(kArgminMethod, "ndarray", "argmin")                         \
  X(kStd, "numpy", "std")                                       \
  X(kStdMethod, "ndarray", "std")                               \
  X(kVar, "numpy", "var")                                       \
  X(kVarMethod, "ndarray", "var")                               \
  X(kAnyOf, "numpy", "any")                                     \
  X(kAnyMethod, "ndarray", "any")                               \
  X(kAllOf, "numpy", "all")                                     \
  X(kAllMethod, "ndarray", "all")                               \
  X(kCountNonzero, "numpy", "count_nonzero")                    \
  X(kNorm, "numpy", "norm")                                     \
  X(kArray, "numpy", "array")                                   \
  X(kEye, "numpy", "eye")                                       \
  X(kOnes, "numpy", "ones")                                     \
  X(kFull, "numpy", "full")                                     \
  X(kArange, "numpy", "arange")                                 \
  X(kCopyMethod, "ndarray", "copy")                             \
  X(kZerosLike, "numpy", "zeros_like")                          \
  X(kEmptyLike, "numpy", "empty_like")                          \
  X(kConcatenate, "numpy", "concatenate")                       \
  X(kStack, "numpy", "stack")                                   \
  X(kVstack, "numpy", "vstack")                                 \
  X(kHstack, "numpy", "hstack")                                 \
  X(kColumnStack, "numpy", "column_stack")                      \
  X(kRoll, "numpy", "roll")                                     \
  X(kOuter, "numpy", "outer")                                   \
  X(kCross, "numpy", "cross")                                   \
  X(kWhere, "numpy", "where")                                   \
  X(kNonzero, "ndarray", "nonzero")                             \
  X(kFlatnonzero, "numpy", "flatnonzero")                       \
  X(kArgwhere, "numpy", "argwhere")                             \
  X(kHistogram, "numpy", "histogram")                           \
  X(kSearchsorted, "numpy", "searchsorted")                     \
  X(kSearchsortedMethod, "ndarray", "searchsorted")             \
  X(kDigitize, "numpy", "digitize")                             \
  X(kInterp, "numpy", "interp")                                 \
  X(kTrace, "numpy", "trace")                                   \
  X(kArrayEqual, "numpy", "array_equal")                        \
  X(kMedian, "numpy", "median")                                 \
  X(kPtp, "numpy", "ptp")                                       \
  X(kProd, "numpy", "prod")                                     \
  X(kSort, "numpy", "sort")                                     \
  X(kSolve, "numpy", "solve")                                   \
  X(kDet, "numpy", "det")                                       \
  X(kInv, "numpy", "inv")                                       \
  X(kCumsum, "numpy", "cumsum")                                 \
  X(kCumsumMethod, "ndarray", "cumsum")                         \
  X(kCumprod, "numpy", "cumprod")                               \
  X(kCumprodMethod, "ndarray", "cumprod")                       \
  X(kRandom, "Random", "random")                                \
  X(kRandomBits, "Random", "getrandbits")                       \
  X(kNumpyRandom, "Generator", "random")                        \
  X(kBoundRandom, "bound", "random")                            \
  X(kUniform, "Generator", "uniform")                           \
  X(kBoundUniform, "bound", "uniform")                          \
  X(kNormal, "Generator", "normal")                             \
  X(kBoundNormal, "bound", "normal")                            \
  X(kExponential, "Generator", "exponential")                   \
  X(kBoundExponential, "bound", "exponential")                  \
  X(kStandardNormal, "Generator", "standard_normal")            \
  X(kBoundStandardNormal, "bound", "standard_normal")           \
  X(kStandardExponential, "Generator", "standard_exponential")  \
  X(kBoundStandardExponential, "bound", "standard_exponential") \
  X(kIntegers, "Generator", "integers")                         \
  X(kRandint, "RandomState", "randint")                         \
  X(kBoundRandint, "bound", "randint")                          \
  X(kBitLength, "int", "bit_length")                            \
  X(kIsalnum, "str", "isalnum")                                 \
  X(kIsalpha, "str", "isalpha")                                 \
  X(kIsascii, "str", "isascii")                                 \
  X(kIsdecimal, "str", "isdecimal")                             \
  X(kIsdigit, "str", "isdigit")                                 \
  X(kIslower, "str", "islower")                                 \
  X(kIsnumeric, "str", "isnumeric")                             \
  X(kIsspace, "str", "isspace")                                 \
  X(kIsupper, "str", "isupper")                                 \
  X(kStartswith, "str", "startswith")                           \
  X(kEndswith, "str", "endswith")                               \
  X(kClip, "numpy", "clip")                                     \
  X(kRoundTo, "numpy", "round")                                 \
  X(kScalar, "scalar", "")                                      \
  X(kUfunc, "ufunc", "")

enum class Callee : uint8_t {
#define X(name, module, text) name,
  DALSEGNO_CALLEES(X)
#undef X
      kCount
};
const char* callee_name(Callee callee);
const char* callee_module(
    Callee callee);  // "type": a type itself; "ndarray", "list", "dict", "set", "complex", "generic": a method of theirs; "numpy": NumPy's

// How a number is drawn.
struct Draw {
  Rep result = Rep::kNone;      // kNone: the callee draws none
  int32_t before = 0;           // inputs that are no numbers: the callee, and its generator, unless it is bound to that; 0: either way
  int32_t least = 0, most = 0;  // numbers that it is given
  // Where there are n inputs, the first that is a number; n: none is.
  constexpr int32_t first_number(int32_t n) const { return result == Rep::kNone ? n : before > 0 ? before : n - least; }
  constexpr bool takes_floats() const { return result == Rep::kFloat && most > 0; }
};
Draw draw_of(Callee callee);
// Is it drawn by a distribution with parameters that are floats, if it has any?
constexpr bool draws_by_distribution(Callee callee) { return callee >= Callee::kUniform && callee <= Callee::kBoundStandardExponential; }

// In what a call with these arguments computes and gives its result; false: not done unboxed.
Operator call_operator(Callee callee, std::span<const Rep> arguments);
// What a ufunc of floats, or of a complex number, computes in; the result is of NumPy's types. False: not done unboxed.
Operator ufunc_operator(ArrayFn fn, std::span<const Rep> arguments);
// Which function of math's asks the same as a ufunc; kNone: that asks nothing.
Callee test_of(ArrayFn fn);
// What a type of NumPy's scalars makes of a number: the result, to which that is converted. False: not done unboxed.
Operator scalar_operator(Rep to, Rep from);
// Does it tell how far elements are spread?
constexpr bool finds_spread(Callee callee) { return callee >= Callee::kStd && callee <= Callee::kVarMethod; }
// What a reduction gives of all elements of an array of this dtype; kNone: that is not done unboxed.
Rep reduced_rep(Callee callee, DType dtype);
// Does it make an array, or compute with a whole matrix? (Steps of their own may do that at once.)
constexpr bool makes_array(Callee callee) { return callee >= Callee::kArray && callee <= Callee::kInv; }
// Does it give running sums or products?
constexpr bool runs_along(Callee callee) { return callee >= Callee::kCumsum && callee <= Callee::kCumprodMethod; }
// Does it give the position of an element?
constexpr bool finds_position(Callee callee) { return callee >= Callee::kArgmax && callee <= Callee::kArgminMethod; }
// Does it say yes or no about a text, or about two?
constexpr bool is_text_test(Callee callee) { return callee >= Callee::kIsalnum && callee <= Callee::kEndswith; }
constexpr int32_t texts_tested(Callee callee) { return callee >= Callee::kStartswith ? 2 : 1; }
// Does it take two numbers, both as doubles?
constexpr bool takes_two_doubles(Callee callee) {
  return callee == Callee::kAtan2 || callee == Callee::kPow || callee == Callee::kFmod || callee == Callee::kCopysign ||
         callee == Callee::kRoundTo;
}
// To how many decimal places kRoundTo rounds: as the powers of ten stand in a table of NumPy's (calculation.c).
constexpr int64_t kMostPlaces = 8;
// Does the call give back one of its arguments, the very object? (abs of an int that is not negative does.)
bool gives_argument(Callee callee, Rep argument);

}  // namespace dalsegno::typed
