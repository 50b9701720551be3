// The layout of a segment: in which order the axes of its results lie in memory, and along which axes its kernel walks.
//
// A ufunc's result has no layout of its own. NumPy's iterator sorts the axes by the strides of the operands (nditer_constr.c,
// npyiter_find_best_axis_ordering) and allocates the result densely in that order: K order, the order in which the operands lie in memory.
// A program can read it (a.strides, a.ravel("K"), a.flags), and the order in which NumPy sums the result, and so its bits, hang on it. So a
// kernel's outputs are allocated in the very order NumPy would have found.
//
// An example. a is np.ones((2, 3, 4)).transpose(2, 0, 1): shape (4, 2, 3), strides in elements (1, 12, 4). b is np.ones(3), broadcast:
// strides (0, 0, 1). What is the layout of a + b? The axes start in C order, listed from the innermost: 2, 1, 0. Then insertion sort:
//
//   axis 1 against axis 2:  a has 12 against 4, so axis 1 stays outside. b has a 0 there and says nothing.           2, 1, 0
//   axis 0 against axis 1:  a has 1 against 12, so axis 0 moves inwards, past axis 1. b says nothing.
//   axis 0 against axis 2:  a has 1 against 4, so it moves past axis 2, too.                                         0, 2, 1
//
// The result's strides are 1 for axis 0, 4 for axis 2, 12 for axis 1: a's own. With c = np.ones((4, 2, 3)), strides (6, 3, 1), in the place
// of b, the operands disagree on axis 0 against axis 1 (1 < 12, but 6 > 3): there C order wins, and the result is C-contiguous. If no
// operand has a stride in both axes, the search goes on past them. sort_axes() is this sort; c_like() is the test that it would change
// nothing, which almost always holds.
//
// The order need not be that of the op's own operands: eager NumPy computes `t + x` into a large t that dies (temp_elide.c; number.c says
// for which operators), and the result has t's layout. elided() knows when.
//
// Neighbouring axes through which every operand walks evenly become one (coalesce): most segments are one long row.
//
// Ops of different shapes are no matter of refusal ("mixed"): split.cc makes a segment a shape. Refused, that is left to NumPy, are
//   an op's shapes do not broadcast  NumPy raises
//   arrays without elements          nothing to gain
//   negative strides, unless all is in C order otherwise, without inner loops
//                                    the iterator flips these axes, and some inner loops have other bits there (docs: exactness)
//   strides between elements         no multiple of the item's size
//   outputs of different orders      a kernel's outputs share one iteration
//   axes of one element, unless all is in C order
//                                    ufunc_object.c has fast paths (try_trivial_single_output_loop) for operands that are contiguous in one
//                                    order, and allocates in that order; the iterator gives such an axis another stride. Which of them runs
//                                    depends on casts and on the operands' alignment
//   extents and offsets past 32 bits Halide's buffers
#include "replay/segment/layout.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdlib>
#include <utility>

#include "halide_gen/plan/rules.h"
#include "numpy/elide.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr int64_t kMaxOffset = (int64_t{1} << 31) - 1;

// Strides of the inputs over the results' axes, 0 where broadcast.
using Strides = std::vector<Axes>;

class LayoutMaker {
 public:
  LayoutMaker(const SegmentSpec& spec, const ArrayView* arrays, Layout* out, bool rolls, bool backwards, const ArrayView* written)
      : spec_(spec), arrays_(arrays), out_(*out), rolls_(rolls), may_go_backwards_(backwards && !rolls), written_(written) {}

  LayoutResult run(const std::vector<uint64_t>& reaches) {
    if (!broadcast()) return disagree_ ? LayoutResult::kMixed : LayoutResult::kRefused;
    if (!align()) return LayoutResult::kRefused;
    if (!full_shapes(reaches)) return LayoutResult::kMixed;
    out_.c_order = all_c_like() || planted(Fault::always_c_order);
    if (out_.c_order) {
      for (int d = 0; d < out_.rank; ++d) out_.order[d] = out_.rank - 1 - d;
    } else if (rolls_ || backwards_ || !result_order()) {
      return LayoutResult::kRefused;
    }
    coalesce();
    return in_range() ? LayoutResult::kOk : LayoutResult::kRefused;
  }

 private:
  bool is_array(size_t i) const { return spec_.inputs[i].kind == InputKind::kArray; }

  bool broadcast() {
    out_.rank = 0;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (is_array(i)) out_.rank = std::max(out_.rank, arrays_[i].rank);
    }
    if (out_.rank < 1 || out_.rank > kMaxLayoutRank) return false;
    std::fill(out_.shape, out_.shape + out_.rank, 1);
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (is_array(i) && !widen(arrays_[i])) return false;
    }
    out_.size = 1;
    for (int d = 0; d < out_.rank; ++d) {
      if (out_.shape[d] == 0 || out_.shape[d] > kMaxOffset) return false;
      out_.size *= out_.shape[d];
      if (out_.size > (int64_t{1} << 40)) return false;
    }
    return true;
  }

  bool widen(const ArrayView& a) {
    const int shift = out_.rank - a.rank;
    for (int d = 0; d < a.rank; ++d) {
      intptr_t& extent = out_.shape[d + shift];
      if (a.shape[d] == 1) continue;
      if (extent != 1 && extent != a.shape[d]) return disagree_ = true, false;
      extent = a.shape[d];
    }
    return true;
  }

  // Strides over all axes, in elements; and the axes that each input spans.
  bool align() {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      spans_[i] = 0;
      if (!is_array(i)) continue;
      const ArrayView& a = arrays_[i];
      const int shift = out_.rank - a.rank;
      std::fill(strides_[i].at, strides_[i].at + out_.rank, 0);
      for (int d = 0; d < a.rank; ++d) {
        if (a.shape[d] == 1) continue;
        if ((a.strides[d] < 0 && !may_go_backwards_) || a.strides[d] % a.itemsize != 0) return false;
        backwards_ |= a.strides[d] < 0;
        strides_[i].at[d + shift] = a.strides[d] / a.itemsize;
        spans_[i] |= 1u << (d + shift);
      }
    }
    return true;
  }

  // Every op must have the results' shape.
  bool full_shapes(const std::vector<uint64_t>& reaches) const {
    unsigned all = 0;
    for (int d = 0; d < out_.rank; ++d) all |= out_.shape[d] != 1 ? 1u << d : 0;
    for (uint64_t reach : reaches) {
      unsigned spans = 0;
      int rank = 0;
      for (size_t i = 0; i < spec_.inputs.size(); ++i) {
        if (reach >> i & 1) spans |= spans_[i], rank = std::max(rank, arrays_[i].rank);
      }
      if (spans != all || rank != out_.rank) return false;
    }
    return true;
  }

  // Strides that do not grow from the outer axes to the inner: NumPy keeps C order for any mixture of these.
  bool c_like(const Axes& s) const {
    int64_t last = -1;  // of the nearest outer axis with a stride
    for (int d = 0; d < out_.rank; ++d) {
      if (s.at[d] == 0) continue;
      if (last >= 0 && std::abs(s.at[d]) > last) return false;
      last = std::abs(s.at[d]);
    }
    return true;
  }

  bool all_c_like() const {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (is_array(i) && !c_like(strides_[i])) return false;
    }
    return true;
  }

  // The layout of each op's result from those of its operands, as NumPy's iterator does it; all outputs must agree.
  bool result_order() {
    if (std::find(out_.shape, out_.shape + out_.rank, 1) != out_.shape + out_.rank) return false;  // NumPy's fast paths differ there
    std::vector<Axes> results(spec_.ops.size());
    bool first = true;
    for (size_t i = 0; i < spec_.ops.size(); ++i) {
      int order[kMaxLayoutRank];
      const int into = elided(spec_.ops[i]);
      if (into < 0) {
        sort_axes(spec_.ops[i].operands, results, order);
      } else {
        sort_axes({spec_.ops[i].operands[into]}, results, order);  // its own layout, as it is dense
      }
      int64_t stride = 1;
      for (int d = 0; d < out_.rank; ++d) {
        results[i].at[order[d]] = stride;
        stride *= out_.shape[order[d]];
      }
      if (into >= 0 && !is_dense(spec_.ops[i].operands[into], results[i])) return false;
      if (!spec_.ops[i].output) continue;
      if (!first && !std::equal(order, order + out_.rank, out_.order)) return false;
      std::copy(order, order + out_.rank, out_.order);
      first = false;
    }
    return true;
  }

  // The operand that NumPy computes the op into (elide.h), or -1. No extent is 1 here, so that with one array, or an array and a scalar,
  // the layout is the array's in any case.
  int elided(const SegmentOp& op) const {
    for (int k = 0; k < 2 && op.operands.size() == 2; ++k) {
      if (op.elidable >> k & 1 && is_large_temporary(op.operands[k]) && is_full(op.operands[1 - k]) &&
          casts_safely(dtype(op.operands[1 - k]), dtype(op.operands[k])) && (op.fn != ArrayFn::divide || is_float(dtype(op.operands[k]))))
        return k;
    }
    return -1;
  }

  DType dtype(int v) const { return v >= 0 ? spec_.ops[v].result : spec_.inputs[~v].dtype; }

  // An array of the results' shape. Scalars are of no interest: the layout is the other operand's anyway.
  bool is_full(int v) const {
    if (v >= 0) return true;
    return is_array(~v) && arrays_[~v].rank == out_.rank && std::equal(out_.shape, out_.shape + out_.rank, arrays_[~v].shape);
  }

  bool is_large_temporary(int v) const {
    return is_full(v) && (v >= 0 || arrays_[~v].temporary) && out_.size * dtype_size(dtype(v)) >= numpy::kMinElidedBytes;
  }

  bool is_dense(int v, const Axes& dense) const { return v >= 0 || std::equal(dense.at, dense.at + out_.rank, strides_[~v].at); }

  // NumPy's stable insertion sort of axes, from the innermost: an axis moves inwards past those of larger stride; where operands
  // disagree, C order wins; where none has a stride in both axes, the search goes on.
  void sort_axes(const std::vector<int>& operands, const std::vector<Axes>& results, int* order) const {
    const auto stride = [&](int v, int axis) {
      if (v >= 0) return results[v].at[axis];
      return is_array(~v) ? strides_[~v].at[axis] : 0;
    };
    for (int d = 0; d < out_.rank; ++d) order[d] = out_.rank - 1 - d;
    for (int d = 1; d < out_.rank; ++d) {
      const int axis = order[d];
      int place = d;
      for (int e = d - 1; e >= 0; --e) {
        bool ambiguous = true, inwards = false;
        for (int v : operands) {
          const int64_t mine = stride(v, axis), other = stride(v, order[e]);
          if (mine == 0 || other == 0) continue;
          inwards = other > mine && (ambiguous || inwards);
          ambiguous = false;
        }
        if (ambiguous) continue;
        if (!inwards) break;
        place = e;
      }
      std::rotate(order + place, order + d, order + d + 1);
    }
  }

  // Axes of one element vanish; neighbours that every operand walks through evenly become one.
  void coalesce() {
    if (written_ && (written_->rank != out_.rank || !std::equal(out_.shape, out_.shape + out_.rank, written_->shape))) written_ = nullptr;
    out_.loop_rank = 0;
    int64_t dense = 1;
    for (int k = 0; k < out_.rank; ++k) {
      const int axis = out_.order[k];
      const int64_t extent = out_.shape[axis];
      if (extent == 1) continue;
      if (out_.loop_rank > 0 && !rolls_ && follows(axis)) {
        out_.extents[out_.loop_rank - 1] *= extent;
      } else {
        const int d = out_.loop_rank++;
        out_.extents[d] = extent;
        innermost_ = axis;
        out_.dense.at[d] = dense;
        for (size_t i = 0; i < spec_.inputs.size(); ++i) out_.inputs[i].at[d] = is_array(i) ? strides_[i].at[axis] : 0;
      }
      dense *= extent;
    }
    if (out_.loop_rank == 0) single_element();
  }

  bool follows(int axis) const {
    const int d = out_.loop_rank - 1;
    if (written_ && written_->strides[axis] != written_->strides[innermost_] * out_.extents[d]) return false;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (is_array(i) && strides_[i].at[axis] != out_.inputs[i].at[d] * out_.extents[d]) return false;
    }
    return true;
  }

  void single_element() {
    out_.loop_rank = 1;
    out_.extents[0] = 1;
    out_.dense.at[0] = 1;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) out_.inputs[i].at[0] = 1;
  }

  bool in_range() const {
    int64_t furthest = 0;
    for (int d = 0; d < out_.loop_rank; ++d) furthest += out_.dense.at[d] * (out_.extents[d] - 1);
    if (furthest > kMaxOffset) return false;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      int64_t offset = 0;
      for (int d = 0; d < out_.loop_rank && is_array(i); ++d) offset += std::abs(out_.inputs[i].at[d]) * (out_.extents[d] - 1);
      if (offset > kMaxOffset) return false;
    }
    return true;
  }

  const SegmentSpec& spec_;
  const ArrayView* arrays_;
  Layout& out_;
  Axes strides_[64];
  unsigned spans_[64];
  const bool rolls_, may_go_backwards_;
  const ArrayView* written_;
  int innermost_ = 0;       // of the axes that are the last one of the iteration
  bool backwards_ = false;  // there are negative strides
  bool disagree_ = false;   // the inputs do not broadcast together; those of each op may
};

// An op's shape. What it is broadcast to has more axes that are not 1, or a higher rank, and so comes behind it.
struct Shape {
  int wide = 0;  // axes that are not 1
  int rank = 0;
  std::array<intptr_t, kMaxLayoutRank> extents;  // from the last axis, so that they mean the same whatever the rank

  Shape() { extents.fill(1); }
  auto operator<=>(const Shape&) const = default;

  bool widen(const Shape& by) {
    rank = std::max(rank, by.rank);
    for (size_t d = 0; d < extents.size(); ++d) {
      if (by.extents[d] == 1) continue;
      if (extents[d] != 1 && extents[d] != by.extents[d]) return false;
      extents[d] = by.extents[d];
    }
    return true;
  }
  bool widen(const ArrayView& by) {
    if (by.rank > kMaxLayoutRank) return false;
    Shape shape;
    shape.rank = by.rank;
    std::reverse_copy(by.shape, by.shape + by.rank, shape.extents.begin());
    return widen(shape);
  }
};

}  // namespace

LayoutResult make_layout(const SegmentSpec& spec, const std::vector<uint64_t>& reaches, const ArrayView* arrays, Layout* layout, bool rolls,
                         bool backwards, const ArrayView* written) {
  return LayoutMaker(spec, arrays, layout, rolls, backwards, written).run(reaches);
}

std::vector<int> shape_numbers(const SegmentSpec& spec, const ArrayView* arrays) {
  std::vector<Shape> shapes;
  for (const SegmentOp& op : spec.ops) {
    Shape shape;
    for (int v : op.operands) {
      const bool fits = v >= 0 ? shape.widen(shapes[v]) : spec.inputs[~v].kind == InputKind::kArray ? shape.widen(arrays[~v]) : true;
      if (!fits) return {};
    }
    shape.wide = static_cast<int>(std::count_if(shape.extents.begin(), shape.extents.end(), [](intptr_t n) { return n != 1; }));
    shapes.push_back(shape);
  }
  auto distinct = shapes;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int> numbers;
  for (const auto& s : shapes)
    numbers.push_back(static_cast<int>(std::lower_bound(distinct.begin(), distinct.end(), s) - distinct.begin()));
  return numbers;
}

bool is_c_contiguous(const ArrayView& view) {
  intptr_t dense = view.itemsize;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.shape[d] == 1) continue;
    if (view.strides[d] != dense) return false;
    dense *= view.shape[d];
  }
  return true;
}

bool usual_strides(const ArrayView& view) {
  intptr_t dense = view.itemsize;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.shape[d] == 1 && view.strides[d] != dense) return false;
    dense *= view.shape[d];
  }
  return true;
}

}  // namespace dalsegno::replay
