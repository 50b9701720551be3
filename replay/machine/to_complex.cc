#include "replay/machine/to_complex.h"

#include <cstring>
#include <type_traits>

#include "numpy/dtypes.h"

namespace dalsegno::replay {
namespace {

template <class Part, class From>
void write_parts(Part* to, const char* from) {
  From value;
  std::memcpy(&value, from, sizeof(value));
  to[0] = static_cast<Part>(value), to[1] = 0;
}

// Two at a time.
void spread_doubles(const char* in, int64_t n, char* out) {
  using Two [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = double;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    const Two x = *reinterpret_cast<const Two*>(in + i * 8);
    auto* to = reinterpret_cast<Two*>(out + i * 16);
    to[0] = __builtin_shufflevector(x, Two{}, 0, 2), to[1] = __builtin_shufflevector(x, Two{}, 1, 2);
  }
  if (i < n) write_parts<double, double>(reinterpret_cast<double*>(out + i * 16), in + i * 8);
}

// (Of the bytes of a bool any but 0 is true.)
template <class Part, DType from>
void cast(char** data, const int64_t* size, const int64_t* strides, void*) {
  const char* in = data[0];
  char* out = data[1];
  if constexpr (std::is_same_v<Part, double> && from == DType::kFloat64)
    if (strides[0] == sizeof(double) && strides[1] == 2 * sizeof(double)) return spread_doubles(in, *size, out);
  for (int64_t i = 0; i < *size; ++i, in += strides[0], out += strides[1]) {
    Part parts[2];
    if constexpr (from == DType::kComplex64) {
      float own[2];
      std::memcpy(own, in, sizeof(own));
      parts[0] = own[0], parts[1] = own[1];
    } else {
      write_parts<Part, typename numpy::Element<from>::Type>(parts, in);
      if constexpr (from == DType::kBool) parts[0] = parts[0] != 0;
    }
    std::memcpy(out, parts, sizeof(parts));
  }
}

template <class Part>
rt::LoopFunction cast_from(DType from) {
  static constexpr auto kCasts = numpy::by_dtype([]<DType dtype>() -> rt::LoopFunction { return cast<Part, dtype>; });
  return from == DType::kComplex64 ? cast<Part, DType::kComplex64> : kCasts[static_cast<size_t>(from)];
}

}  // namespace

numpy::InnerLoop loop_to_complex(DType from, DType to) {
  if (from == to || !is_complex(to) || !casts_safely(from, to)) return {};
  return {to == DType::kComplex64 ? cast_from<float>(from) : cast_from<double>(from), nullptr};
}

}  // namespace dalsegno::replay
