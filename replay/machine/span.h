// Elements in memory, as array ops without objects work on them.
#pragma once
#include <algorithm>
#include <utility>

#include "replay/machine/loop_plan.h"
#include "trace/fault.h"

namespace dalsegno::replay {

struct Span {
  static constexpr int kMaxRank = typed::kMaxViewRank;
  char* data;
  int rank;  // 0: one element, for all
  npy_intp shape[kMaxRank];
  npy_intp strides[kMaxRank];
  npy_intp size() const {
    npy_intp n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[d];
    return n;
  }
  // In C order, without gaps.
  void lay_out(npy_intp item) {
    for (int d = rank - 1; d >= 0; --d) strides[d] = item, item *= shape[d];
  }
};

// Of an array with kMaxRank axes at most.
inline void set_of_array(PyArrayObject* a, Span* out) {
  out->data = PyArray_BYTES(a);
  out->rank = PyArray_NDIM(a);
  std::copy_n(PyArray_DIMS(a), out->rank, out->shape);
  std::copy_n(PyArray_STRIDES(a), out->rank, out->strides);
}

inline bool same_shape(const Span& a, const Span& b) { return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape); }

// Strides that do not grow inwards: NumPy gives results of such operands in C order.
inline bool is_c_like(const Span& s) {
  npy_intp last = -1;
  for (int d = 0; d < s.rank; ++d) {
    if (s.strides[d] < 0) return false;
    if (s.shape[d] == 1 || s.strides[d] == 0) continue;
    if (last >= 0 && s.strides[d] > last) return false;
    last = s.strides[d];
  }
  return true;
}

inline bool is_contiguous(const Span& s, npy_intp item) {
  npy_intp dense = item;
  for (int d = s.rank - 1; d >= 0; --d) {
    if (s.shape[d] != 1 && s.strides[d] != dense) return false;
    dense *= s.shape[d];
  }
  return true;
}

// In C order, each element at a place of its own.
inline bool lies_apart(const Span& s, npy_intp item) {
  npy_intp inner = item;
  for (int d = s.rank - 1; d >= 0; --d) {
    if (s.shape[d] == 1) continue;
    if (s.strides[d] < inner) return false;
    inner += (s.shape[d] - 1) * s.strides[d];
  }
  return true;
}

inline bool same_elements(const Span& a, const Span& b) {
  if (a.data != b.data || !same_shape(a, b)) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.shape[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

// From its first byte to behind its last one.
inline std::pair<const char*, const char*> bounds(const Span& s, npy_intp item) {
  const char *first = s.data, *last = s.data;
  for (int d = 0; d < s.rank; ++d) (s.strides[d] < 0 ? first : last) += (s.shape[d] - 1) * s.strides[d];
  return {first, last + item};
}

// May some byte be of both? (Between their bounds.)
inline bool overlap(const Span& a, npy_intp item_a, const Span& b, npy_intp item_b) {
  if (planted(Fault::ignored_overlap)) return false;
  const auto [a0, a1] = bounds(a, item_a);
  const auto [b0, b1] = bounds(b, item_b);
  return a0 < b1 && b0 < a1;
}

// NumPy's rules of broadcasting. False: the shapes do not fit.
inline bool broadcast(const Span& from, Span* to) {
  if (from.rank > to->rank) {
    const int more = from.rank - to->rank;
    std::copy_backward(to->shape, to->shape + to->rank, to->shape + from.rank);
    std::fill(to->shape, to->shape + more, 1);
    to->rank = from.rank;
  }
  const int shift = to->rank - from.rank;
  for (int d = 0; d < from.rank; ++d) {
    npy_intp& extent = to->shape[d + shift];
    if (extent == 1) extent = from.shape[d];
    if (from.shape[d] != extent && from.shape[d] != 1) return false;
  }
  return true;
}

// A thread's memory for results that nobody sees: the same at every call, null if there is none.
char* scratch(size_t size);

// ---- blocks.cc: large groups by NumPy's loops, a piece of each op at a time, while it is in the first cache

// Can all ops be done so, if they are of one shape?
bool may_be_blocks(const LoopPlan& plan);
// Can all ops be done so? They are of one shape, which `shape` becomes.
bool suits_blocks(const LoopPlan& plan, const Span* inputs, Span* shape);
// Does them. results[k].data: where the result is to be, in C order; null: nobody sees it. `memory`: of kBlockMemory bytes, at a multiple
// of 64. The flags that were raised; raised[k], if it is asked for: those of op k are added to it.
int run_in_blocks(const LoopPlan& plan, const Span* inputs, const Span& shape, const Span* results, char* memory, int* raised = nullptr);
constexpr int kMostBlockSlots = 24;
constexpr npy_intp kBlockBytes = 8 << 10;
constexpr size_t kBlockMemory = static_cast<size_t>(kMostBlockSlots * kBlockBytes);

}  // namespace dalsegno::replay
