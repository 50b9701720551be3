#include "replay/machine/complex_pieces.h"

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kNumbers = 131;

// Parts whose products round.
template <class T>
std::vector<char> numbers(int which) {
  std::vector<T> parts(2 * kNumbers);
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = static_cast<T>(std::sin(1.0 + static_cast<double>(i) * (which == 0 ? 0.7 : 1.3)) * 3.0);
  std::vector<char> bytes(parts.size() * sizeof(T));
  std::memcpy(bytes.data(), parts.data(), bytes.size());
  return bytes;
}

std::vector<char> computed(const numpy::InnerLoop& loop, const std::vector<std::vector<char>>& operands, npy_intp item, npy_intp result,
                           bool repeats, npy_intp piece) {
  std::vector<char> out(static_cast<size_t>(kNumbers * result));
  const auto n = operands.size();
  for (npy_intp begin = 0; begin < kNumbers;) {
    // No piece is of one element.
    const npy_intp size = kNumbers - begin < piece + 2 ? kNumbers - begin : piece;
    char* data[3];
    npy_intp strides[3];
    for (size_t k = 0; k < n; ++k) {
      strides[k] = repeats && k + 1 == n ? 0 : item;
      data[k] = const_cast<char*>(operands[k].data()) + begin * strides[k];
    }
    data[n] = out.data() + begin * result, strides[n] = result;
    loop.function(data, &size, strides, loop.data);
    begin += size;
  }
  return out;
}

bool tried(ArrayFn fn, DType dtype, DType result) {
  const numpy::InnerLoop loop = numpy::inner_loop(fn, dtype, result);
  const int inputs = array_fn_inputs(fn);
  if (!loop.function || inputs < 1 || inputs > 2) return false;
  std::vector<std::vector<char>> operands;
  for (int k = 0; k < inputs; ++k) operands.push_back(dtype == DType::kComplex64 ? numbers<float>(k) : numbers<double>(k));
  for (const bool repeats : {false, true}) {
    const auto whole = computed(loop, operands, dtype_size(dtype), dtype_size(result), repeats, kNumbers);
    for (const npy_intp piece : {2, 3, 5, 8, 13, 16, 64})
      if (computed(loop, operands, dtype_size(dtype), dtype_size(result), repeats, piece) != whole) return false;
  }
  return true;
}

}  // namespace

bool same_in_pieces(ArrayFn fn, DType loop, DType result) {
  static auto* known = new std::map<std::array<int, 3>, bool>;
  const auto [found, fresh] = known->try_emplace({static_cast<int>(fn), static_cast<int>(loop), static_cast<int>(result)}, false);
  if (fresh) found->second = tried(fn, loop, result), rt::clear_all_raised();
  return found->second;
}

}  // namespace dalsegno::replay
