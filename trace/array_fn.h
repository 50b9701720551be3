// The one table NumPy function -> how it is traced. X(name, inputs, treatment)
//   name       NumPy's name (a ufunc, or a function of numpy); the enum member is the same
//   treatment  expr: a Halide expression; loop: NumPy's own inner loop as an extern stage
// roll is none of these: what it is given is read elsewhere.
// Also the dtypes of arrays. No Python.h here.
#pragma once
#include <cstdint>

// clang-format off
#define DALSEGNO_ARRAY_FNS(X)                                                                                                              \
  X(add, 2, expr)                                                                                                                          \
  X(subtract, 2, expr)                                                                                                                     \
  X(multiply, 2, expr) X(divide, 2, expr) X(floor_divide, 2, expr) X(remainder, 2, expr) X(negative, 1, expr) X(positive, 1, expr)         \
      X(absolute, 1, expr) X(square, 1, expr) X(reciprocal, 1, expr) X(sqrt, 1, expr) X(floor, 1, expr) X(ceil, 1, expr) X(trunc, 1, expr) \
          X(rint, 1, expr) X(sign, 1, expr) X(maximum, 2, expr) X(minimum, 2, expr) X(fmax, 2, expr) X(fmin, 2, expr) X(less, 2, expr)     \
              X(less_equal, 2, expr) X(greater, 2, expr) X(greater_equal, 2, expr) X(equal, 2, expr) X(not_equal, 2, expr)                 \
                  X(logical_and, 2, expr) X(logical_or, 2, expr) X(logical_xor, 2, expr) X(logical_not, 1, expr) X(bitwise_and, 2, expr)   \
                      X(bitwise_or, 2, expr) X(bitwise_xor, 2, expr) X(invert, 1, expr) X(left_shift, 2, expr) X(right_shift, 2, expr)     \
                          X(isnan, 1, expr) X(isinf, 1, expr) X(isfinite, 1, expr) X(signbit, 1, expr) X(copysign, 2, expr)                \
                              X(where, 3, expr) X(clip, 3, expr) X(astype, 1, expr) X(fabs, 1, expr) X(exp, 1, loop) X(exp2, 1, loop) X(expm1, 1, loop)     \
                                  X(log, 1, loop) X(log2, 1, loop) X(log10, 1, loop) X(log1p, 1, loop) X(sin, 1, loop) X(cos, 1, loop)     \
                                      X(tan, 1, loop) X(arcsin, 1, loop) X(arccos, 1, loop) X(arctan, 1, loop) X(sinh, 1, loop)            \
                                          X(cosh, 1, loop) X(tanh, 1, loop) X(arcsinh, 1, loop) X(arccosh, 1, loop) X(arctanh, 1, loop)    \
                                              X(cbrt, 1, loop) X(power, 2, loop) X(float_power, 2, loop) X(arctan2, 2, loop)               \
                                                  X(hypot, 2, loop) X(fmod, 2, loop) X(logaddexp, 2, loop) X(logaddexp2, 2, loop)          \
                                                      X(nextafter, 2, loop) X(spacing, 1, loop) X(deg2rad, 1, expr) X(rad2deg, 1, expr)    \
                                                          X(heaviside, 2, expr) X(gcd, 2, loop) X(lcm, 2, loop) X(bitwise_count, 1, loop)    \
                                                          X(roll, 1, expr) X(radians, 1, expr) X(degrees, 1, expr)
// clang-format on

namespace dalsegno {

enum class ArrayFn : uint8_t {
  none,
#define X(name, inputs, treatment) name,
  DALSEGNO_ARRAY_FNS(X)
#undef X
      kCount
};
const char* array_fn_name(ArrayFn fn);       // "" for none
ArrayFn array_fn_by_name(const char* name);  // none if unknown
int array_fn_inputs(ArrayFn fn);
bool array_fn_is_expr(ArrayFn fn);

// Element types. With arrays of complex ones NumPy's loops compute, no kernel does; no register holds an element of complex64.
enum class DType : uint8_t {
  kBool,
  kInt32,
  kInt64,
  kFloat32,
  kFloat64,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kUint32,
  kUint64,
  kComplex64,
  kComplex128,
  kCount
};
constexpr bool is_complex(DType t) { return t == DType::kComplex64 || t == DType::kComplex128; }
constexpr bool is_known(DType dtype) { return dtype < DType::kComplex64; }  // to kernels
constexpr DType part_of_complex(DType t) { return t == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64; }
constexpr bool is_float(DType t) { return t == DType::kFloat32 || t == DType::kFloat64; }
constexpr bool is_unsigned(DType t) { return t == DType::kUint8 || t == DType::kUint16 || t == DType::kUint32 || t == DType::kUint64; }
constexpr bool is_int(DType t) { return t != DType::kBool && !is_float(t) && !is_complex(t); }
const char* dtype_name(DType dtype);      // "float64"
int dtype_size(DType dtype);              // bytes
bool casts_safely(DType from, DType to);  // NumPy's "safe" casting
DType promoted(DType a, DType b);         // the common dtype of two arrays

}  // namespace dalsegno
