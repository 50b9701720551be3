// Groups of array ops whose result is reduced: `((a - b) ** 2).sum(axis=1)`. What is reduced is made in pieces that stay in the cache, and
// each is reduced as soon as it is there, by NumPy's inner loop in NumPy's order: whole rows, where rows are reduced, or, where all is one
// sum, the stretches that NumPy's pairwise sum itself cuts it into (pairwise_sum in numpy/_core/src/umath/loops_utils.h.src: in halves, the
// first a multiple of 8). Where anything is not as expected, or a flag comes up, nothing has been done, and the steps behind do it all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "hook/hook.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "replay/machine/loop_plan.h"
#include "replay/machine/reductions.h"
#include "replay/machine/run.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/machine/whole_numbers.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr int64_t kLeast = 4096;     // elements: below, objects cost less than pieces
constexpr int64_t kPiece = 1 << 14;  // elements of a piece, about
constexpr int64_t kMostPiece = 1 << 17;
constexpr int kRefusals = 64;
constexpr int kMostAxes = 8;

// Rows to one element each.
class Rows final : public Taker {
 public:
  Rows(const ReducedGroup& group, PyArray_Descr* descr, PyObject* axis, PyObject* keep)
      : group_(group), descr_(descr), fn_(reduction_of(group.callee)), axis_(axis), keep_(keep) {}
  ~Rows() { Py_XDECREF(made_); }

  std::vector<int64_t> cut(int rank, const intptr_t* shape, int64_t unit, bool*) override {
    int first, last;
    if (!PyBool_Check(keep_) || rank > kMostAxes || !reduced_axes(axis_, rank, &first, &last) || last + 1 != rank) return {};
    npy_intp left[kMostAxes];
    int n_left = 0;
    for (int d = 0; d < rank; ++d) {
      (d < first ? rows_ : row_) *= shape[d];
      if (d < first || keep_ == Py_True) left[n_left++] = d < first ? shape[d] : 1;
    }
    const int64_t least = std::lcm(row_, unit), size = rows_ * row_;
    too_small_ = size < kLeast;
    if (too_small_ || least > kMostPiece) return {};
    made_ = new_array(descr_, n_left, left);
    if (!made_) return {};
    piece_ = std::max<int64_t>(1, kPiece / least) * least;
    std::vector<int64_t> begins;
    for (int64_t at = 0; at < size; at += piece_) begins.push_back(at);
    begins.push_back(size);
    return begins;
  }

  void take(int piece, const char* data, int64_t elements, int) override {
    if (!data) return;
    char* to = data_of(made_) + piece * (piece_ / row_) * dtype_size(group_.dtype);
    reduce_rows(fn_, group_.dtype, data, elements / row_, row_, to);
    if (is_mean(group_.callee)) divide_sums(group_.dtype, to, elements / row_, row_);
  }

  PyObject* result() { return std::exchange(made_, nullptr); }
  bool too_small() const { return too_small_; }

 private:
  const ReducedGroup& group_;
  PyArray_Descr* const descr_;  // borrowed
  const ArrayFn fn_;
  PyObject *axis_, *keep_;  // borrowed
  PyObject* made_ = nullptr;
  int64_t rows_ = 1, row_ = 1, piece_ = 0;
  bool too_small_ = false;
};

// All elements to one number.
class All final : public Taker {
 public:
  explicit All(const ReducedGroup& group) : group_(group), fn_(reduction_of(group.callee)) {}

  std::vector<int64_t> cut(int rank, const intptr_t* shape, int64_t unit, bool*) override {
    size_ = 1;
    for (int d = 0; d < rank; ++d) size_ *= shape[d];
    too_small_ = size_ < kLeast;
    if (too_small_) return {};
    begins_.clear();
    if (fn_ == ArrayFn::add && is_float(group_.dtype)) {
      if (unit != 1) return {};
      halve(0, size_);
    } else {
      const int64_t piece = (kPiece + unit - 1) / unit * unit;
      if (piece > kMostPiece) return {};
      for (int64_t at = 0; at < size_; at += piece) begins_.push_back(at);
    }
    begins_.push_back(size_);
    parts_.resize(begins_.size() - 1);
    return begins_;
  }

  void take(int piece, const char* data, int64_t elements, int) override {
    if (!data) return;
    Part& part = parts_[static_cast<size_t>(piece)];
    if (is_float(group_.dtype)) return reduce_rows(fn_, group_.dtype, data, 1, elements, part.bytes);
    const int64_t made = fold_whole(group_.dtype, fold_of(group_.callee), data, elements, dtype_size(group_.dtype));
    std::memcpy(part.bytes, &made, sizeof made);
  }

  // False: NumPy's may be other bits.
  bool result(Reg* out) {
    if (!is_float(group_.dtype)) return whole(out);
    return group_.dtype == DType::kFloat64 ? number<double>(out) : number<float>(out);
  }
  bool too_small() const { return too_small_; }

 private:
  union Part {
    char bytes[8];
  };

  static int64_t first_half(int64_t n) { return n / 2 - n / 2 % 8 - (planted(Fault::unequal_halves) ? 8 : 0); }

  void halve(int64_t first, int64_t n) {
    if (n <= kPiece) return begins_.push_back(first);
    halve(first, first_half(n));
    halve(first + first_half(n), n - first_half(n));
  }

  template <class T>
  T part(size_t i) const {
    T value;
    std::memcpy(&value, parts_[i].bytes, sizeof value);
    return value;
  }

  template <class T>
  T sum(int64_t n, size_t* next) const {
    if (n <= kPiece) return part<T>((*next)++);
    const T a = sum<T>(first_half(n), next);
    return a + sum<T>(n - first_half(n), next);
  }

  bool whole(Reg* out) const {
    int64_t made = part<int64_t>(0);
    for (size_t i = 1; i < parts_.size(); ++i) made = fold_both(group_.dtype, fold_of(group_.callee), made, part<int64_t>(i));
    return give_whole(group_.callee, group_.dtype, made, size_, out);
  }

  template <class T>
  bool number(Reg* out) const {
    T made{};
    size_t next = 0;
    if (fn_ == ArrayFn::add) {
      made = T{0} + sum<T>(size_, &next);
      if (is_mean(group_.callee)) made = static_cast<T>(static_cast<double>(made) / static_cast<double>(size_));
    } else {
      made = part<T>(0);
      for (size_t i = 1; i < parts_.size(); ++i) {
        const T other = part<T>(i);
        if (fn_ == ArrayFn::maximum ? other > made : other < made) made = other;
        if (std::isnan(other)) return false;
      }
      if (made == 0 || std::isnan(made)) return false;  // which zero, which NaN: that hangs on how NumPy goes through them
    }
    part_of<T>(*out) = made;
    return true;
  }

  const ReducedGroup& group_;
  const ArrayFn fn_;
  int64_t size_ = 0;
  std::vector<int64_t> begins_;
  std::vector<Part> parts_;
  bool too_small_ = false;
};

constexpr size_t kMost = 48;  // operands

class ReducedRun {
 public:
  ReducedRun(ReducedGroup& group, Reg* r) : group_(group), r_(r) {}

  bool run() {
    if (!kernel_operands(group_.inputs, r_, operands_, room_)) return false;
    for (size_t k = 0; k < group_.outputs.size(); ++k) made_[k].in_memory = group_.outputs[k] < 0;
    return group_.axis >= 0 ? to_rows() : to_number();
  }

 private:
  bool launch(Taker* taker) { return group_.runner->run_in_pieces(operands_, made_, group_.number, taker, false) == RunResult::kDone; }

  bool to_rows() {
    Rows rows(group_, descr(), r_[group_.axis].o, group_.keep >= 0 ? r_[group_.keep].o : Py_False);
    if (!launch(&rows)) return refused(rows.too_small());
    r_[group_.dst].o = rows.result();
    return keep_outputs(), true;
  }

  // Of what is reduced, where the result is of its dtype.
  PyArray_Descr* descr() const {
    if (group_.handed < 0) return numpy::descriptor(group_.dtype);
    const SegmentOperand& first = operands_[group_.handed];
    PyArray_Descr* own = first.as == SegmentOperand::kObject ? PyArray_DESCR(reinterpret_cast<PyArrayObject*>(first.object))
                                                             : reinterpret_cast<PyArray_Descr*>(first.view.descr);
    return handed_on(own, group_.dtype);
  }

  bool to_number() {
    All all(group_);
    if (!launch(&all)) return refused(all.too_small());
    rt::clear_all_raised();
    Reg number{};
    const bool known = all.result(&number);
    const int raised = is_float(group_.dtype) ? rt::all_raised() : 0;
    if (!known || (raised != 0 && !planted(Fault::ignored_flags) && !numpy::errstate_ignores(raised))) return drop_outputs(), false;
    r_[group_.dst] = number;
    return keep_outputs(), true;
  }

  bool refused(bool too_small) {
    if (too_small) group_.refusals = kRefusals;
    return false;
  }

  void keep_outputs() {
    for (size_t k = 0; k < group_.outputs.size(); ++k)
      if (group_.outputs[k] >= 0) r_[group_.outputs[k]].o = made_[k].object;
  }
  void drop_outputs() {
    for (size_t k = 0; k < group_.outputs.size(); ++k) Py_CLEAR(made_[k].object);
  }

  ReducedGroup& group_;
  Reg* r_;
  SegmentOperand operands_[kMost];
  ViewRoom room_[kMost];
  SegmentResult made_[kMost];
};

}  // namespace

bool is_reduced(const ReducedGroup& group, const Reg* r) { return r[group.done].i != 0; }

const Step* step_reduced_group(const Step* s, Reg* r, Machine& m) {
  ProgramImpl& p = *m.program;
  ReducedGroup& reduced = *p.reduced_groups[static_cast<size_t>(s->imm)];
  Group& group = p.groups[static_cast<size_t>(s->n)];
  r[reduced.done].i = 0;
  if (!reduced.runner || *m.breaker != 0 || !m.kept_frames.empty() || (m.dirty && !facts_hold(group, r))) return go_on(s + 1, r, m);
  if (reduced.refusals > 0) return --reduced.refusals, go_on(s + 1, r, m);
  if (reduced.inputs.size() > kMost || reduced.outputs.size() > kMost || way_of(p, group, r, false) != Way::kAtOnce)
    return go_on(s + 1, r, m);
  r[reduced.done].i = ReducedRun(reduced, r).run();
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
