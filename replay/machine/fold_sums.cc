#include "replay/machine/fold_sums.h"

#include <algorithm>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "replay/arrays.h"
#include "replay/machine/fold_numbers.h"
#include "replay/memory/added_rows.h"
#include "trace/fault.h"

namespace dalsegno::replay::folds {
namespace {

constexpr npy_intp kPiece = 1024;             // elements of a row that are summed at once: two such pieces stay in the first cache
constexpr npy_intp kShorter = 512;            // where operations come between
constexpr npy_intp kMostWhole = 1 << 16;      // elements, where they may not be cut in pieces
constexpr int kMostSlots = 16;                // what operations give and others take yet
constexpr npy_intp kMostAdditions = 1 << 22;  // nobody else has the GIL for some milliseconds
constexpr npy_intp kFunction = 8;             // additions in the time of one

// Where the operations' results lie, piece by piece: each has a slot until it is taken last. False: they are too many.
bool find_slots(const Summands& of, std::vector<int>* slots) {
  std::vector<size_t> last(of.ops.size());  // behind how many operations it is not taken any more
  const auto takes = [&](const ArrayOp::Operand& operand, size_t behind) {
    if (operand.from == ArrayOp::Operand::kResult) last[static_cast<size_t>(operand.at)] = behind;
  };
  for (size_t k = 0; k < of.ops.size(); ++k) {
    last[k] = k + 1;
    for (int i = 0; i < of.ops[k].n; ++i) takes(of.ops[k].operands[i], k + 1);
  }
  for (const Summands::Summand& summand : of.all) takes(summand.what, summand.behind + 1);
  size_t taken[kMostSlots] = {};
  for (size_t k = 0; k < of.ops.size(); ++k) {
    size_t* const free = std::find_if(std::begin(taken), std::end(taken), [&](size_t until) { return until <= k; });
    if (free == std::end(taken)) return false;
    *free = last[k];
    slots->push_back(static_cast<int>(free - taken));
  }
  return true;
}

// Of views with the same extents, rolled or not, and of what operations give of such.
class Sum {
 public:
  Sum(const Summands& summands, PyArrayObject* made)
      : summands_(summands),
        views_(summands.views),
        shape_(views_[0].span),
        counts_(views_[0].dtype == DType::kBool),
        item_(PyArray_ITEMSIZE(made)),
        dense_(std::all_of(views_.begin(), views_.end(), [](const ArrayView& v) { return lies_densely(v); })),
        cut_(std::all_of(summands.ops.begin(), summands.ops.end(), [](const ArrayOp& op) { return op.exact; })),
        add_(numpy::kept_loop(ArrayFn::add, views_[0].dtype)) {
    set_of_array(made, &out_);
  }

  // False: there is no memory, or they are not known to be as NumPy's: functions that are not cut in pieces take what lies as in eager.
  bool find_memory() {
    if (summands_.ops.empty()) return true;
    if (!cut_ && (!dense_ || shape_.size() > kMostWhole || shape_.size() == 1)) return false;
    piece_ = cut_ ? kShorter : shape_.size();
    if (!find_slots(summands_, &slots_)) return false;
    const int most = *std::max_element(slots_.begin(), slots_.end()) + 1;
    memory_ = scratch(static_cast<size_t>(most * piece_) * sizeof(double));
    return memory_ != nullptr;
  }

  // The flags that were raised. (Loops that raise none clear those that were up: negative, absolute.)
  int run() {
    raised_ = rt::all_raised();
    add_all();
    return raised_ | rt::all_raised();
  }

 private:
  void add_all() {
    if (std::any_of(views_.begin(), views_.end(), [](const ArrayView& v) { return v.rolled; }))
      add_boxes();
    else if (dense_)
      add_whole(dtype_size(views_[0].dtype));
    else
      add_box(Box::of(shape_));
  }

  struct Box {
    npy_intp first[Span::kMaxRank] = {}, extent[Span::kMaxRank] = {};
    static Box of(const Span& whole) {
      Box box;
      std::copy_n(whole.shape, whole.rank, box.extent);
      return box;
    }
  };
  struct Line {
    char* data;
    npy_intp stride;
    Line behind(npy_intp n) const { return {data + n * stride, stride}; }
  };

  static bool lies_densely(const ArrayView& v) { return !v.rolled && is_contiguous(v.span, dtype_size(v.dtype)); }

  void add_whole(npy_intp item) {
    std::vector<Line> lines;
    for (const ArrayView& view : views_) lines.push_back({view.span.data, item});
    add_line(lines, {out_.data, item_}, shape_.size());
  }

  // In each of them all views are plain ones: they are cut where one of them begins anew.
  void add_boxes() {
    std::vector<npy_intp> cuts[Span::kMaxRank];
    for (int d = 0; d < shape_.rank; ++d) {
      cuts[d] = {0, shape_.shape[d]};
      for (const ArrayView& view : views_) cuts[d].push_back(view.shifts[d]);
      std::sort(cuts[d].begin(), cuts[d].end());
      cuts[d].erase(std::unique(cuts[d].begin(), cuts[d].end()), cuts[d].end());
    }
    size_t at[Span::kMaxRank] = {};
    for (int d = 0; d >= 0;) {
      Box box;
      for (int k = 0; k < shape_.rank; ++k) box.first[k] = cuts[k][at[k]], box.extent[k] = cuts[k][at[k] + 1] - box.first[k];
      add_box(box);
      for (d = shape_.rank - 1; d >= 0 && ++at[d] + 1 == cuts[d].size(); --d) at[d] = 0;
    }
  }

  static char* begin_of(const ArrayView& view, const Box& box) {
    char* at = view.span.data;
    for (int d = 0; d < view.span.rank; ++d) {
      const npy_intp n = view.span.shape[d];
      at += (box.first[d] - view.shifts[d] + n) % n * view.span.strides[d];
    }
    return at;
  }

  // Along its longest axis, the last one of those.
  void add_box(const Box& box) {
    int along = shape_.rank - 1;
    for (int d = along; d-- > 0;)
      if (box.extent[d] > box.extent[along]) along = d;
    std::vector<char*> begins;
    for (const ArrayView& view : views_) begins.push_back(begin_of(view, box));
    char* to = out_.data;
    for (int d = 0; d < shape_.rank; ++d) to += box.first[d] * out_.strides[d];
    std::vector<Line> lines(views_.size());
    npy_intp at[Span::kMaxRank] = {};
    for (int d = 0; d >= 0;) {
      Line out{to, out_.strides[along]};
      for (int k = 0; k < shape_.rank; ++k) out.data += at[k] * out_.strides[k];
      for (size_t v = 0; v < views_.size(); ++v) {
        lines[v] = {begins[v], views_[v].span.strides[along]};
        for (int k = 0; k < shape_.rank; ++k) lines[v].data += at[k] * views_[v].span.strides[k];
      }
      add_line(lines, out, box.extent[along]);
      for (d = shape_.rank - 1; d >= 0; --d) {
        if (d == along) continue;
        if (++at[d] < box.extent[d]) break;
        at[d] = 0;
      }
    }
  }

  using AddRows = void (*)(const char* const*, size_t, char*, intptr_t);
  // Null: no plain addition of numbers as the processor has them.
  static AddRows rows_of(DType dtype) {
    if (dtype == DType::kFloat64) return add_rows<double>;
    if (dtype == DType::kFloat32) return add_rows<float>;
    if (!is_int(dtype)) return nullptr;
    const int item = dtype_size(dtype);
    return item == 1 ? add_rows<uint8_t> : item == 2 ? add_rows<uint16_t> : item == 4 ? add_rows<uint32_t> : add_rows<uint64_t>;
  }

  bool add_dense(const std::vector<Line>& lines, size_t n, Line out, npy_intp length) const {
    constexpr size_t kMostRows = 32;
    const bool plain = summands_.ops.empty() && !summands_.start && !counts_ && n <= kMostRows && out.stride == item_;
    const AddRows add = plain ? rows_of(views_[0].dtype) : nullptr;
    if (!add) return false;
    const char* rows[kMostRows];
    for (size_t k = 0; k < n; ++k) {
      if (lines[k].stride != item_) return false;
      rows[k] = lines[k].data;
    }
    return add(rows, n, out.data, length), true;
  }

  // lines: one a view.
  void add_line(const std::vector<Line>& lines, Line out, npy_intp length) {
    const size_t n = summands_.all.size() - (planted(Fault::lost_summand) && summands_.all.size() > 2 ? 1 : 0);
    if (add_dense(lines, n, out, length)) return;
    for (npy_intp begin = 0; begin < length; begin += piece_) {
      const npy_intp piece = std::min(piece_, length - begin);
      const Line to = out.behind(begin);
      counts_ ? count_line(lines, n, begin, piece, to.data, to.stride) : add_piece(lines, n, begin, to, piece);
    }
  }

  void add_piece(const std::vector<Line>& lines, size_t n, npy_intp begin, Line to, npy_intp length) {
    static constexpr double kZero = 0;  // of every dtype
    Line sum{reinterpret_cast<char*>(const_cast<double*>(&kZero)), 0};
    if (summands_.start) sum = lines.back().behind(begin);
    size_t done = 0;
    const auto find = [&](const ArrayOp::Operand& operand) -> Line {
      switch (operand.from) {
        case ArrayOp::Operand::kView:
          return lines[static_cast<size_t>(operand.at)].behind(begin);
        case ArrayOp::Operand::kResult:
          return slot(static_cast<size_t>(operand.at));
        default:
          return {reinterpret_cast<char*>(const_cast<double*>(&operand.number)), 0};
      }
    };
    const auto compute = [&](size_t behind) {
      for (; done < behind; ++done) {
        const ArrayOp& op = summands_.ops[done];
        Line operands[3];
        for (int k = 0; k < op.n; ++k) operands[k] = find(op.operands[k]);
        operands[op.n] = slot(done);
        call(op.loop, operands, op.n, length);
      }
    };
    for (size_t k = 0; k < n; ++k) {
      const Summands::Summand& summand = summands_.all[k];
      compute(summand.behind);
      const Line operands[] = {sum, find(summand.what), to};
      call(add_, operands, 2, length);
      sum = to;
    }
    compute(summands_.ops.size());  // (NumPy would tell of these, too)
  }

  Line slot(size_t op) const { return {memory_ + slots_[op] * piece_ * static_cast<npy_intp>(sizeof(double)), sizeof(double)}; }

  // Truth values, of which any byte but 0 is one: in bytes, as long as there are no more of them than a byte can count.
  void count_line(const std::vector<Line>& lines, size_t n, npy_intp begin, npy_intp piece, char* to, npy_intp stride) const {
    using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = int8_t;  // that any x86-64 has
    constexpr npy_intp kLanes = sizeof(Vector);
    alignas(64) int8_t counted[kPiece] = {};
    for (size_t k = 0; k < n; ++k) {
      const npy_intp step = lines[k].stride;
      const char* from = lines[k].data + begin * step;
      npy_intp i = 0;
      for (; step == 1 && i + kLanes <= piece; i += kLanes)
        *reinterpret_cast<Vector*>(counted + i) -= *reinterpret_cast<const Vector*>(from + i) != 0;  // true is -1
      for (; i < piece; ++i) counted[i] = static_cast<int8_t>(counted[i] + (from[i * step] != 0));
    }
    for (npy_intp i = 0; i < piece; ++i) *reinterpret_cast<int64_t*>(to + i * stride) = static_cast<uint8_t>(counted[i]);
  }

  // operands: the result's behind the n others.
  void call(const numpy::InnerLoop& loop, const Line* operands, int n, npy_intp length) {
    char* data[3];
    npy_intp strides[3];
    for (int k = 0; k <= n; ++k) data[k] = operands[k].data, strides[k] = operands[k].stride;
    loop.function(data, &length, strides, loop.data);
    raised_ |= rt::all_raised();
  }

  const Summands& summands_;
  const std::vector<ArrayView>& views_;
  const Span& shape_;
  const bool counts_;
  const npy_intp item_;
  const bool dense_, cut_;
  Span out_;
  const numpy::InnerLoop add_;
  std::vector<int> slots_;  // of the operations
  npy_intp piece_ = kPiece;
  char* memory_ = nullptr;
  int raised_ = 0;
};

// (What operations take are arrays of one shape each.)
bool suit(const std::vector<ArrayView>& views, size_t summands) {
  constexpr size_t kMostCounted = 255;  // of truth values
  if (views.empty() || (views[0].dtype == DType::kBool && summands > kMostCounted)) return false;
  return views[0].span.size() > 0 && std::all_of(views.begin(), views.end(), [&](const ArrayView& v) {
           return v.dtype == views[0].dtype && same_shape(v.span, views[0].span) && is_c_like(v.span);
         });
}

}  // namespace

PyObject* sum_of(const Summands& summands) {
  const std::vector<ArrayView>& views = summands.views;
  if (summands.all.empty() || !suit(views, summands.all.size())) return nullptr;
  const Span& shape = views[0].span;
  npy_intp additions = static_cast<npy_intp>(summands.all.size());  // that take about as long
  for (const ArrayOp& op : summands.ops) additions += op.exact ? 1 : kFunction;
  if (shape.size() > kMostAdditions / additions) return nullptr;
  const DType dtype = views[0].dtype == DType::kBool ? DType::kInt64 : views[0].dtype;  // 0 + an array of bools is one of ints
  PyObject* made = new_array(dtype, shape.rank, shape.shape);
  if (!made) return nullptr;
  Sum sum(summands, reinterpret_cast<PyArrayObject*>(made));
  heed_flags();
  if (!sum.find_memory()) return Py_DECREF(made), nullptr;
  if (const int raised = sum.run(); raised != 0 && !numpy::errstate_ignores(raised)) Py_CLEAR(made);
  return made;
}

}  // namespace dalsegno::replay::folds
