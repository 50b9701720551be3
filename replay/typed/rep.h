// How a value stands in a register. "Boxed as" is part of it: np.float64 is not float, though both are a double. No Python.h here.
#pragma once
#include <cstdint>
#include <utility>

#include "trace/array_fn.h"

namespace dalsegno::typed {

// X(name, text)  enum member, name in texts
#define DALSEGNO_REPS(X)                                                                           \
  X(kNone, "object")     /* as an object: no raw part */                                           \
  X(kInt, "int")         /* 64 bits */                                                             \
  X(kBool, "bool")       /* 0 or 1, in 64 bits */                                                  \
  X(kFloat, "float")     /* double */                                                              \
  X(kComplex, "complex") /* two doubles, the real one first */                                     \
  X(kNatural, "natural") /* an int from 0 to 2**64 - 1: its 64 bits */                             \
  X(kWrapped, "wrapped") /* an int modulo 2**64, that nobody sees: replay/typed/modular.h */       \
  X(kNpBool, "np.bool")  /* NumPy's scalars, in the order of DType; integers widened to 64 bits */ \
  X(kNpInt32, "np.int32")                                                                          \
  X(kNpInt64, "np.int64")                                                                          \
  X(kNpFloat32, "np.float32") /* float */                                                          \
  X(kNpFloat64, "np.float64")                                                                      \
  X(kNpInt8, "np.int8")                                                                            \
  X(kNpUint8, "np.uint8")                                                                          \
  X(kNpInt16, "np.int16")                                                                          \
  X(kNpUint16, "np.uint16")                                                                        \
  X(kNpUint32, "np.uint32")                                                                        \
  X(kNpUint64, "np.uint64")         /* its 64 bits, as they are */                                 \
  X(kNpComplex128, "np.complex128") /* as Python's complex numbers */

enum class Rep : uint8_t {
#define X(name, text) name,
  DALSEGNO_REPS(X)
#undef X
      kCount
};
const char* rep_name(Rep rep);

// What of a register holds the value.
enum class Bits : uint8_t { kNone, kInt64, kDouble, kFloat, kComplex };
constexpr Bits bits_of(Rep rep) {
  if (rep == Rep::kNone) return Bits::kNone;
  if (rep == Rep::kComplex || rep == Rep::kNpComplex128) return Bits::kComplex;
  if (rep == Rep::kFloat || rep == Rep::kNpFloat64) return Bits::kDouble;
  return rep == Rep::kNpFloat32 ? Bits::kFloat : Bits::kInt64;
}

// A complex number, of Python's or NumPy's.
constexpr bool is_pair(Rep rep) { return bits_of(rep) == Bits::kComplex; }
// Integers, not truth values.
constexpr bool is_numpy_integer(Rep rep) { return rep > Rep::kNpBool && rep < Rep::kCount && bits_of(rep) == Bits::kInt64; }
// What positions in sequences and arrays are taken from: it fits in an int64.
constexpr bool is_position(Rep rep) { return rep == Rep::kInt || (is_numpy_integer(rep) && rep != Rep::kNpUint64); }
constexpr bool is_unsigned(Rep rep) {
  return rep == Rep::kNpUint8 || rep == Rep::kNpUint16 || rep == Rep::kNpUint32 || rep == Rep::kNpUint64;
}
constexpr int size_of_integer(Rep rep) {
  if (rep == Rep::kBool || rep == Rep::kNpBool || rep == Rep::kNpInt8 || rep == Rep::kNpUint8) return 1;
  if (rep == Rep::kNpInt16 || rep == Rep::kNpUint16) return 2;
  return rep == Rep::kNpInt32 || rep == Rep::kNpUint32 ? 4 : 8;
}

// Does an int fit in NumPy's integers of this representation?
constexpr bool holds(Rep to, int64_t value) {
  const int bits = 8 * size_of_integer(to);
  if (is_unsigned(to)) return value >= 0 && (bits == 64 || value >> bits == 0);
  return bits == 64 || (value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1));
}

// Of an int, but not by itself a number of 64 bits with a sign.
constexpr bool is_modular(Rep rep) { return rep == Rep::kNatural || rep == Rep::kWrapped; }

// An int and a natural: the same bits where the highest one is not set.
constexpr bool may_be_same(Rep a, Rep b) { return (a == Rep::kInt && b == Rep::kNatural) || (a == Rep::kNatural && b == Rep::kInt); }

// Of those that are ordered.
constexpr bool is_python_number(Rep rep) { return rep == Rep::kInt || rep == Rep::kBool || rep == Rep::kFloat; }
constexpr bool is_numpy_scalar(Rep rep) { return rep >= Rep::kNpBool && rep < Rep::kCount; }
// kNone: complex64, whose scalars are objects.
constexpr Rep rep_of_dtype(DType dtype) {
  if (dtype == DType::kComplex128) return Rep::kNpComplex128;
  return is_known(dtype) ? static_cast<Rep>(static_cast<int>(Rep::kNpBool) + static_cast<int>(dtype)) : Rep::kNone;
}
constexpr DType dtype_of_rep(Rep rep) {
  if (rep == Rep::kNpComplex128) return DType::kComplex128;
  return static_cast<DType>(static_cast<int>(rep) - static_cast<int>(Rep::kNpBool));
}
static_assert(static_cast<int>(Rep::kNpComplex128) - static_cast<int>(Rep::kNpBool) == static_cast<int>(DType::kComplex64));
static_assert(rep_of_dtype(DType::kFloat64) == Rep::kNpFloat64 && rep_of_dtype(DType::kInt32) == Rep::kNpInt32);

// How the items of an array.array lie in memory; kNone: as something else than numbers that fit in 64 bits with a sign.
constexpr Rep item_of_typecode(int typecode) {
  constexpr std::pair<char, Rep> kItems[] = {{'d', Rep::kNpFloat64}, {'f', Rep::kNpFloat32}, {'b', Rep::kNpInt8},  {'B', Rep::kNpUint8},
                                             {'h', Rep::kNpInt16},   {'H', Rep::kNpUint16},  {'i', Rep::kNpInt32}, {'I', Rep::kNpUint32},
                                             {'l', Rep::kNpInt64},   {'q', Rep::kNpInt64}};
  for (const auto& [code, item] : kItems)
    if (code == typecode) return item;
  return Rep::kNone;
}
// What Python's number for it is.
constexpr Rep number_of_item(Rep item) { return bits_of(item) == Bits::kInt64 ? Rep::kInt : Rep::kFloat; }

}  // namespace dalsegno::typed
