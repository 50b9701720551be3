#include "replay/machine/whole_numbers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "numpy/dtypes.h"

namespace dalsegno::replay {
namespace {

constexpr int64_t kFew = 16;      // of pixels: to look at each by itself takes three times as long
constexpr int64_t kBlock = 4096;  // elements that are looked at before it is asked whether that is enough

template <class T>
T at(const char* data, int64_t i, int64_t stride) {
  return numpy::element_at<T>(data + i * stride);
}

// Calls take(i, element) for each, where they lie close together in a loop of its own.
template <class T, class Take>
void each_of(const char* data, int64_t n, int64_t stride, Take take) {
  if (stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) take(i, at<T>(data, i, sizeof(T)));
  } else {
    for (int64_t i = 0; i < n; ++i) take(i, at<T>(data, i, stride));
  }
}

// A function of an element is added up in lanes, each of which sums so few that it does not overflow.
template <class T, class Lane, class Each>
int64_t sum_in_lanes(const char* data, int64_t n, int64_t most, Each each) {
  constexpr int64_t kLanes = 64 / sizeof(Lane);
  int64_t total = 0, i = 0;
  while (n - i >= kLanes) {
    Lane lanes[kLanes] = {};
    const int64_t turns = std::min(most, (n - i) / kLanes);
    for (int64_t k = 0; k < turns; ++k, i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] = static_cast<Lane>(lanes[j] + each(at<T>(data, i + j, sizeof(T))));
    for (const Lane lane : lanes) total += static_cast<int64_t>(lane);
  }
  for (; i < n; ++i) total += static_cast<int64_t>(each(at<T>(data, i, sizeof(T))));
  return total;
}

template <class T>
int64_t count(const char* data, int64_t n, int64_t stride) {
  if (stride == sizeof(T)) return sum_in_lanes<T, uint8_t>(data, n, 255, [](T x) { return static_cast<uint8_t>(x != 0); });
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += at<T>(data, i, stride) != 0;
  return total;
}

template <class T, bool truth>
int64_t sum(const char* data, int64_t n, int64_t stride) {
  if constexpr (truth) {
    return count<T>(data, n, stride);
  } else {
    using Small = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
    using Middle = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
    using Lane = std::conditional_t<sizeof(T) == 1, Small, std::conditional_t<sizeof(T) == 2, Middle, uint64_t>>;
    constexpr int64_t kMost = sizeof(T) == 1 ? 128 : 32768;
    if (stride == sizeof(T)) return sum_in_lanes<T, Lane>(data, n, kMost, [](T x) { return static_cast<Lane>(x); });
    uint64_t total = 0;
    for (int64_t i = 0; i < n; ++i) total += static_cast<uint64_t>(at<T>(data, i, stride));
    return static_cast<int64_t>(total);
  }
}

template <class T, bool truth, bool largest>
int64_t extreme(const char* data, int64_t n, int64_t stride) {
  T made = largest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  each_of<T>(data, n, stride, [&](int64_t, T x) {
    if constexpr (truth) x = x != 0;
    made = largest ? std::max(made, x) : std::min(made, x);
  });
  return static_cast<int64_t>(made);
}

// Is there a byte that is not 0 (any), or one that is 0? By words. (A byte that is 0 borrows from the one above it, which can only then
// seem to be 0, too.)
template <bool any>
bool has_byte(const char* data, int64_t n) {
  constexpr int64_t kWords = 8, kBytes = kWords * sizeof(uint64_t);
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = kOnes << 7;
  int64_t i = 0;
  const auto look = [&](int64_t words) {
    uint64_t found = 0;
    for (int64_t k = 0; k < words; ++k) {
      const auto word = at<uint64_t>(data + i, k, sizeof(uint64_t));
      found |= any ? word : (word - kOnes) & ~word & kTops;
    }
    return found != 0;
  };
  for (; i + kBytes <= n; i += kBytes)
    if (look(kWords)) return true;
  for (; i + int64_t{sizeof(uint64_t)} <= n; i += sizeof(uint64_t))
    if (look(1)) return true;
  for (; i < n; ++i)
    if ((data[i] != 0) == any) return true;
  return false;
}

// Is there one that is not 0 (any), or one that is 0?
template <class T, bool any>
int64_t find(const char* data, int64_t n, int64_t stride) {
  if (stride == sizeof(T) && (any || sizeof(T) == 1)) return has_byte<any>(data, n * int64_t{sizeof(T)}) == any;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t here = std::min(kBlock, n - i), found = count<T>(data + i * stride, here, stride);
    if (any ? found != 0 : found != here) return any;
  }
  return !any;
}

template <DType dtype>
int64_t folded(Fold fold, const char* data, int64_t n, int64_t stride) {
  using Element = typename numpy::Element<dtype>::Type;
  if constexpr (std::is_floating_point_v<Element>) {
    return 0;
  } else {
    constexpr bool truth = dtype == DType::kBool;
    using T = std::conditional_t<truth, uint8_t, Element>;
    switch (fold) {
      case Fold::kSum:
        return sum<T, truth>(data, n, stride);
      case Fold::kLargest:
        return extreme<T, truth, true>(data, n, stride);
      case Fold::kLeast:
        return extreme<T, truth, false>(data, n, stride);
      case Fold::kCount:
        return count<T>(data, n, stride);
      case Fold::kAny:
        return find<T, true>(data, n, stride);
      case Fold::kAll:
        return find<T, false>(data, n, stride);
      case Fold::kNone:
        break;
    }
    return 0;
  }
}

template <DType dtype>
void rows_folded(Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, int64_t* made) {
  using Element = typename numpy::Element<dtype>::Type;
  if constexpr (!std::is_floating_point_v<Element> && dtype != DType::kBool) {
    if (fold == Fold::kSum && n <= kFew) {
      for (int64_t k = 0; k < rows; ++k, data += step) {
        uint64_t total = 0;
        for (int64_t i = 0; i < n; ++i) total += static_cast<uint64_t>(at<Element>(data, i, stride));
        made[k] = static_cast<int64_t>(total);
      }
      return;
    }
  }
  for (int64_t k = 0; k < rows; ++k) made[k] = folded<dtype>(fold, data + k * step, n, stride);
}

template <DType dtype>
void row_added(const char* data, int64_t n, int64_t stride, int64_t* sums) {
  using Element = typename numpy::Element<dtype>::Type;
  const auto add = [&](int64_t i, uint64_t x) { sums[i] = static_cast<int64_t>(static_cast<uint64_t>(sums[i]) + x); };
  if constexpr (dtype == DType::kBool) {
    each_of<uint8_t>(data, n, stride, [&](int64_t i, uint8_t x) { add(i, x != 0); });
  } else if constexpr (!std::is_floating_point_v<Element>) {
    each_of<Element>(data, n, stride, [&](int64_t i, Element x) { add(i, static_cast<uint64_t>(x)); });
  }
}

template <DType dtype>
void rows_asked(Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, char* known) {
  using Element = typename numpy::Element<dtype>::Type;
  if constexpr (!std::is_floating_point_v<Element>) {
    using T = std::conditional_t<dtype == DType::kBool, uint8_t, Element>;
    const bool any = fold == Fold::kAny;
    for (int64_t k = 0; k < rows; ++k, data += step) {
      bool is = n > kFew ? folded<dtype>(fold, data, n, stride) != 0 : !any;
      for (int64_t i = 0; n <= kFew && i < n; ++i) {
        const bool here = at<T>(data, i, stride) != 0;
        is = any ? is | here : is & here;
      }
      known[k] = static_cast<char>(is);
    }
  }
}

template <DType dtype>
void row_asked(Fold fold, const char* data, int64_t n, int64_t stride, char* known) {
  using Element = typename numpy::Element<dtype>::Type;
  if constexpr (!std::is_floating_point_v<Element>) {
    using T = std::conditional_t<dtype == DType::kBool, uint8_t, Element>;
    if (fold == Fold::kAny)
      each_of<T>(data, n, stride, [&](int64_t i, T x) { known[i] = static_cast<char>(known[i] | (x != 0)); });
    else
      each_of<T>(data, n, stride, [&](int64_t i, T x) { known[i] = static_cast<char>(known[i] & (x != 0)); });
  }
}

}  // namespace

Fold fold_of(typed::Callee callee) {
  using typed::Callee;
  switch (callee) {
    case Callee::kSum:
    case Callee::kSumMethod:
    case Callee::kMean:
    case Callee::kMeanMethod:
      return Fold::kSum;
    case Callee::kLargest:
    case Callee::kLargestMethod:
      return Fold::kLargest;
    case Callee::kLeast:
    case Callee::kLeastMethod:
      return Fold::kLeast;
    case Callee::kCountNonzero:
      return Fold::kCount;
    case Callee::kAnyOf:
    case Callee::kAnyMethod:
      return Fold::kAny;
    case Callee::kAllOf:
    case Callee::kAllMethod:
      return Fold::kAll;
    default:
      return Fold::kNone;
  }
}

int64_t fold_whole(DType dtype, Fold fold, const char* data, int64_t n, int64_t stride) {
  static constexpr auto kFolds = numpy::by_dtype([]<DType dtype>() { return folded<dtype>; });
  return kFolds[static_cast<size_t>(dtype)](fold, data, n, stride);
}

void fold_rows(DType dtype, Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, int64_t* made) {
  static constexpr auto kFolds = numpy::by_dtype([]<DType dtype>() { return rows_folded<dtype>; });
  kFolds[static_cast<size_t>(dtype)](fold, data, rows, step, n, stride, made);
}

void add_row(DType dtype, const char* data, int64_t n, int64_t stride, int64_t* sums) {
  static constexpr auto kAdds = numpy::by_dtype([]<DType dtype>() { return row_added<dtype>; });
  kAdds[static_cast<size_t>(dtype)](data, n, stride, sums);
}

void ask_rows(DType dtype, Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, char* known) {
  static constexpr auto kAsks = numpy::by_dtype([]<DType dtype>() { return rows_asked<dtype>; });
  kAsks[static_cast<size_t>(dtype)](fold, data, rows, step, n, stride, known);
}

void ask_row(DType dtype, Fold fold, const char* data, int64_t n, int64_t stride, char* known) {
  static constexpr auto kAsks = numpy::by_dtype([]<DType dtype>() { return row_asked<dtype>; });
  kAsks[static_cast<size_t>(dtype)](fold, data, n, stride, known);
}

void divide_whole(int64_t* sums, int64_t n, int64_t by) {
  for (int64_t i = 0; i < n; ++i) {
    const double mean = static_cast<double>(sums[i]) / static_cast<double>(by);
    std::memcpy(&sums[i], &mean, sizeof mean);
  }
}

int64_t fold_both(DType dtype, Fold fold, int64_t a, int64_t b) {
  switch (fold) {
    case Fold::kLargest:
    case Fold::kLeast: {
      const bool less = dtype == DType::kUint64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
      return less == (fold == Fold::kLargest) ? b : a;
    }
    case Fold::kAny:
      return a | b;
    case Fold::kAll:
      return a & b;
    default:
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}

bool is_mean_exact(DType dtype, int64_t n) {
  constexpr int kMantissa = 53;
  const int bits = dtype == DType::kBool ? 1 : 8 * dtype_size(dtype);
  return bits < kMantissa && n <= int64_t{1} << (kMantissa - bits);
}

}  // namespace dalsegno::replay
