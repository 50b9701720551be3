// Groups of array ops without objects for the views that they read and write: small ones by NumPy's own inner loops, as what a kernel
// costs to be launched, and NumPy to be called, is more than such ops cost themselves; larger ones by their kernel, and those in between
// by NumPy's loops until it has been compiled. Each op of the small runs over whole operands, in the program's order, its result in scratch
// memory or in a new array; what ends the group by writing into an array is computed in scratch, too, and copied when no flag is up. So
// where anything is not as it was expected, nothing has been done, and NumPy does it all.
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/elide.h"
#include "numpy/errstate.h"
#include "replay/arrays.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/complex_spans.h"
#include "replay/machine/scalars.h"
#include "replay/machine/shared_work.h"
#include "replay/machine/written_pieces.h"
#include "replay/memory/strided_copy.h"
#include "replay/segment/casts.h"
#include "replay/segment/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr int kMaxRank = Span::kMaxRank;
constexpr size_t kMostOperands = 48;
constexpr size_t kScratchBytes = 512 << 10;
constexpr npy_intp kCallOfLoop = 525;        // elements that take as long as it takes to call a loop (that of a kernel: all of 4000)
constexpr npy_intp kMostWhole = 1 << 17;     // elements of all ops together that are done op by op
constexpr npy_intp kMostRefused = 1 << 14;   // the same, where the kernel does not do it
constexpr npy_intp kMostInBlocks = 1 << 21;  // that are done in blocks as long as there is no kernel: the GIL is held for some ms
constexpr size_t kMostScratchBytes = 2 * kMostStored;  // for a kernel: beyond, it is the memory that takes the time
static_assert(kBlockMemory <= kMostStored && WrittenPieces::kBytes <= kMostStored);
constexpr npy_intp kSharedBytes = 256 << 10;  // that several threads write
constexpr int kParts = 4;                     // in so many parts

void set_of_block(const Virtual& view, const Reg* r, Span* out) {
  out->data = reinterpret_cast<char*>(r[view.block].i);
  out->rank = view.view.rank;
  for (int d = 0; d < out->rank; ++d) {
    out->shape[d] = r[view.block + 1 + d].i;
    out->strides[d] = r[view.block + 1 + out->rank + d].i;
  }
}

class GroupRun {
 public:
  GroupRun(ProgramImpl& p, Group& group, Reg* r, npy_intp most)
      : p_(p), group_(group), plan_(*group.loops), r_(r), most_(most), in_parts_(!group.parts[0].empty() || !group.parts[1].empty()) {}

  // attempt->way: of what is not small.
  bool run(Attempt* attempt) {
    attempt_ = attempt;
    if (group_.refusals.refuse()) return false;
    if (!find_operands()) return false;
    const bool has_kernel = group_.runner >= 0 || group_.fused >= 0;
    const bool small = is_small(std::clamp(most_, has_kernel ? 0 : kMostRefused, kMostWhole));
    if (!small && ((!has_kernel && group_.ops.empty()) || *(attempt->way = way_of(p_, group_, r_, true)) != Way::kAtOnce)) return false;
    if (!(small ? compute() : has_kernel ? compute_large() : compute_in_blocks())) return drop_made(), false;
    return end();
  }

  // What is written, and all that it is computed from, by the kernel, which lets go of the GIL.
  bool run_letting_go(Attempt* attempt) {
    attempt_ = attempt;
    lets_go_ = true;
    if (group_.fused < 0 && (group_.runner < 0 || !plan_.sink.view)) return false;
    if (group_.ops.empty() || !find_operands()) return false;
    // (Meanwhile the array may have become another.)
    if (!by_kernel() || (!in_place_ && (!find_target() || !can_be_stored()))) return drop_made(), false;
    return end();
  }

 private:
  bool find_operands() {
    if (plan_.inputs.size() + plan_.ops.size() > kMostOperands) return false;
    std::fill_n(made_, plan_.ops.size(), nullptr);
    for (size_t k = 0; k < plan_.inputs.size(); ++k)
      if (!find_input(plan_.inputs[k], k)) return false;
    if (plan_.writes && !find_target()) return false;
    return !plan_.forwards || suits_complex();
  }

  bool end() {
    write_and_keep();
    if (!attempt_->raised.empty()) return group_.refusals.flagged(), false;
    return group_.refusals.went_well(), true;
  }

  void write_and_keep() {
    if (plan_.writes) write();
    for (size_t k = 0; k < plan_.ops.size(); ++k) {
      if (!made_[k]) continue;
      if (plan_.ops[k].out >= 0)
        r_[plan_.ops[k].out].o = made_[k];
      else
        Py_DECREF(made_[k]);
    }
  }

  bool is_well(int raised) {
    if (raised == 0 || planted(Fault::ignored_flags) || numpy::errstate_ignores(raised)) return true;
    return group_.refusals.flagged(), false;
  }

  bool is_small(npy_intp most) { return plan_.by_loops && most_ > 0 && find_shapes(most); }

  bool compute_large() {
    Span shape;
    if (most_ > kMostWhole && fits_blocks(most_, &shape)) return in_blocks(shape);
    if (by_kernel()) return true;
    if (refused_) return is_small(kMostRefused) && compute();
    return waits_ && compute_in_blocks();
  }

  // There is no kernel, or not yet.
  bool compute_in_blocks() {
    Span shape;
    return fits_blocks(kMostInBlocks, &shape) ? in_blocks(shape) : is_small(kMostWhole) && compute();
  }

  bool suits_complex() const {
    const bool operates = plan_.writes && !plan_.sink.view;
    for (size_t k = 0; k < plan_.inputs.size(); ++k)
      if (!goes_forwards(inputs_[k], dtype_size(plan_.inputs[k].dtype)) || (operates && reads_near(inputs_[k], target_))) return false;
    return !operates || goes_forwards(target_, item_of_target());
  }

  const Span& operand(int32_t v) const { return v >= 0 ? results_[v] : inputs_[~v]; }

  bool find_input(const LoopInput& in, size_t k) {
    Span& span = inputs_[k];
    if (in.view) {
      set_of_block(*in.view, r_, &span);
    } else if (in.as.kind == InputKind::kArray) {
      PyArrayObject* a = plain_array(r_[in.loc.obj].o, {in.as.dtype, in.as.rank});
      if (!a) return false;
      set_of_array(a, &span);
    } else {
      span.rank = 0;
      span.data = numbers_[k].bytes;
      return number(in, &numbers_[k]);
    }
    return true;
  }

  bool number(const LoopInput& in, ScalarValue* out) const {
    PyObject* object = in.loc.obj >= 0 ? r_[in.loc.obj].o : nullptr;
    if (in.loc.raw < 0 || in.loc.either()) return object && convert_scalar(in.as, object, in.dtype, out);
    return convert_unboxed(in.loc.rep, r_[in.loc.raw], in.dtype, out);
  }

  // Through registers that the step owns: nothing has been found there before.
  bool find_target() {
    const LoopSink& sink = plan_.sink;
    if (sink.view) {
      if (!find_view(*sink.view, r_)) return false;
      set_of_block(*sink.view, r_, &target_);
      array_ = reinterpret_cast<PyArrayObject*>(r_[sink.view->parts[0].obj].o);
    } else if (sink.target.view) {
      set_of_block(*sink.target.view, r_, &target_);
      array_ = reinterpret_cast<PyArrayObject*>(r_[sink.target.view->parts[0].obj].o);
    } else {
      array_ = plain_array(r_[sink.target.loc.obj].o, {sink.target.as.dtype, sink.target.as.rank});
      if (!array_) return false;
      set_of_array(array_, &target_);
    }
    return is_writeable(array_);
  }

  // Where results go, and whether all of it is small enough.
  bool find_shapes(npy_intp most) {
    char* memory = scratch(kScratchBytes);
    if (!memory) return false;
    size_t bytes = 0;
    npy_intp work = 0;
    for (size_t k = 0; k < plan_.ops.size(); ++k) {
      const LoopOp& op = plan_.ops[k];
      Span& result = results_[k];
      result.rank = 0;
      for (const int32_t v : op.operands)
        if (!broadcast(operand(v), &result)) return false;
      const npy_intp size = result.size(), item = dtype_size(op.result);
      if (size == 0 || size > most || size * item >= numpy::kMinElidedBytes || result.rank == 0) return false;
      if (result.rank > 1 && !std::all_of(op.operands.begin(), op.operands.end(), [&](int32_t v) { return is_c_like(operand(v)); }))
        return false;
      work += size;
      if (in_parts_ && !waits_ && size * item >= kMinCounted) return false;
      if (plan_.forwards && size == 1) return false;  // NumPy may give its loop a stride of 0
      result.lay_out(item);
      if (op.out >= 0) continue;
      bytes = (bytes + 63) & ~size_t{63};
      result.data = memory + bytes;
      bytes += static_cast<size_t>(size * item);
    }
    if (plan_.writes) {
      const Span& stored = operand(plan_.sink.stored);
      if (stored.rank != 0 && !same_shape(stored, target_)) return false;
      const npy_intp size = target_.size();
      if (size == 0 || size > most) return false;
      work += size;
      // What is read from memory that is written goes through scratch.
      if (plan_.sink.stored < 0 && stored.rank != 0 && overlap(stored, item_of_target(), target_, item_of_target())) {
        bytes = (bytes + 63) & ~size_t{63};
        aside_ = memory + bytes;
        bytes += static_cast<size_t>(size * item_of_target());
      }
    }
    return work + kCallOfLoop * static_cast<npy_intp>(plan_.ops.size()) <= most && bytes <= kScratchBytes;
  }

  npy_intp item_of_target() const { return PyArray_ITEMSIZE(array_); }

  bool compute() {
    rt::clear_all_raised();
    int raised = 0;
    for (size_t k = 0; k < plan_.ops.size(); ++k) {
      const LoopOp& op = plan_.ops[k];
      Span& result = results_[k];
      if (op.out >= 0 && !new_result(op, k, &result)) return false;
      if (!(op.shifts.empty() ? apply(op, result) : roll(op, result))) return false;
      raised |= rt::all_raised();
    }
    return is_well(raised);
  }

  // ---- in blocks: until there is a kernel

  bool fits_blocks(npy_intp most, Span* shape) const {
    if (!plan_.by_loops || most_ <= 0 || !suits_blocks(plan_, inputs_, shape)) return false;
    if (plan_.elides_right && !are_of_own_dtypes()) return false;
    const npy_intp size = shape->size();
    if (size * static_cast<npy_intp>(plan_.ops.size()) > most) return false;
    return !plan_.writes || (plan_.sink.stored >= 0 && same_shape(*shape, target_) && size * item_of_target() <= kMostStored);
  }

  bool are_of_own_dtypes() const {
    return std::all_of(plan_.inputs.begin(), plan_.inputs.end(), [&](const LoopInput& in) {
      return in.as.kind != InputKind::kArray || PyArray_DESCR(array_behind(in, r_)) == numpy::descriptor(in.as.dtype);
    });
  }

  bool in_blocks(const Span& shape) {
    char* memory = scratch(kMostScratchBytes);
    if (!memory) return false;
    const int32_t stored = plan_.writes ? plan_.sink.stored : -1;
    for (size_t k = 0; k < plan_.ops.size(); ++k) {
      const LoopOp& op = plan_.ops[k];
      Span& result = results_[k];
      result = shape, result.data = nullptr;
      result.lay_out(dtype_size(op.result));
      if (op.out >= 0 && !new_result(op, k, &result)) return false;
      if (static_cast<int32_t>(k) == stored && op.out < 0) result.data = memory + kMostStored;
    }
    return is_well(run_in_blocks(plan_, inputs_, shape, results_, memory));
  }

  // ---- by the kernel

  // Its results in scratch memory where no slot holds them.
  bool by_kernel() {
    const bool fused = group_.fused >= 0;
    SegmentRunner& runner = fused ? *p_.part_runners[group_.fused] : *p_.runners[group_.runner];
    const std::vector<SegmentOp>& ops = runner.spec().ops;
    SegmentOperand operands[kMostOperands];
    ViewRoom room[kMostOperands];
    SegmentResult made[kMaxSegmentOutputs];
    aside_ = nullptr;
    // What is cast to the dtype of an operator's complex target is one more op, which the kernel does not do.
    const bool operates = plan_.writes && !plan_.sink.view && !fused;
    if (plan_.ops.size() != ops.size() + (operates ? 1 : 0)) return refused_ = true, false;
    const std::vector<LoopInput>& inputs = fused ? plan_.of_fused : plan_.of_kernel;
    if (inputs.size() > kMostOperands || !kernel_operands(inputs, r_, operands, room)) return false;
    char* memory = scratch(kMostScratchBytes);
    if (!memory) return refused_ = true, false;
    size_t n = 0, stored = kMostOperands;
    for (size_t k = 0; k < ops.size(); ++k) {
      if (!ops[k].output) continue;
      made[n].in_memory = plan_.ops[k].out < 0;
      if (made[n].in_memory && plan_.writes && (fused || plan_.sink.view) && static_cast<int32_t>(k) == plan_.sink.stored) stored = n;
      ++n;
    }
    Writes writes = stored < n ? writes_of(plan_, inputs, operands, target_, item_of_target()) : Writes::kAside;
    if (writes == Writes::kInPieces && group_.unread) writes = Writes::kAside;
    std::optional<WrittenPieces> pieces;
    rt::Over over;
    if (writes != Writes::kAside) set_in_place(&made[stored]);
    if (writes == Writes::kInPieces) {
      over = pieces.emplace(plan_, inputs_, target_, item_of_target(), memory + kMostStored)
                 .over(planted(Fault::ignored_flags) ? 0 : numpy::watched_flags());
      made[stored].over = &over;
    }
    const RunResult ran = runner.run(operands, made, {memory, kMostStored, lets_go_}, !lets_go_);
    waits_ = ran == RunResult::kNotReady, refused_ = ran == RunResult::kMismatch;
    if (ran != RunResult::kDone) return false;
    n = 0;
    for (size_t k = 0; k < ops.size(); ++k) {
      if (!ops[k].output) continue;
      SegmentResult& result = made[n++];
      if (result.in_place) {
        in_place_ = true, ++g_machine_counters.in_place;
        if (result.over) attempt_->raised = pieces->finish();
      } else if (result.in_memory) {
        results_[k] = {.data = result.data, .rank = result.rank};
        std::copy_n(result.shape, result.rank, results_[k].shape);
        std::copy_n(result.strides, result.rank, results_[k].strides);
      } else {
        made_[k] = result.object;
        set_of_array(reinterpret_cast<PyArrayObject*>(result.object), &results_[k]);
      }
    }
    return !plan_.writes || in_place_ || (fused || plan_.sink.view ? can_be_stored() : operate_in_place());
  }

  void set_in_place(SegmentResult* result) const {
    result->in_place = true;
    result->data = target_.data, result->rank = target_.rank;
    std::copy_n(target_.shape, target_.rank, result->shape);
    std::copy_n(target_.strides, target_.rank, result->strides);
  }

  bool can_be_stored() const {
    const Span& stored = operand(plan_.sink.stored);
    return plan_.sink.stored >= 0 && same_shape(stored, target_);
  }

  // The operator that ends the group, by its loop, into scratch memory.
  bool operate_in_place() {
    const LoopOp& op = plan_.ops.back();
    Span& result = results_[plan_.ops.size() - 1];
    result.rank = 0;
    for (const int32_t v : op.operands)
      if (!broadcast(operand(v), &result) || !is_c_like(operand(v))) return false;
    const npy_intp item = item_of_target();
    if (!same_shape(result, target_) || result.size() * item > kMostStored) return false;
    result.lay_out(item);
    result.data = scratch(kMostScratchBytes) + kMostStored;
    rt::clear_all_raised();
    if (!apply(op, result)) return false;
    return is_well(rt::all_raised());
  }

  bool new_result(const LoopOp& op, size_t k, Span* result) {
    PyArray_Descr* first = op.handed < 0 ? nullptr : PyArray_DESCR(array_behind(plan_.of_kernel[static_cast<size_t>(op.handed)], r_));
    made_[k] = new_array(handed_on(first, op.result), result->rank, result->shape);
    if (!made_[k]) return false;
    result->data = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(made_[k]));
    return true;
  }

  // As empty_like() makes it, of what is in C order without a gap.
  bool roll(const LoopOp& op, const Span& result) {
    const Span& in = operand(op.operands[0]);
    npy_intp by[kMaxRank] = {};
    if (!is_contiguous(in, dtype_size(op.result))) return false;
    for (const Shift& shift : op.shifts) {
      const npy_intp n = in.shape[shift.axis];
      by[shift.axis] = ((by[shift.axis] + shift.by) % n + n) % n;
    }
    if (planted(Fault::lost_turn)) std::fill_n(by, in.rank, 0);
    copy_rolled(in.data, result.data, in.shape, by, in.rank, static_cast<size_t>(dtype_size(op.result)));
    const auto made = static_cast<size_t>(&op - plan_.ops.data());
    if (!op.viewed || !made_[made]) return true;
    PyObject* view = PyArray_View(reinterpret_cast<PyArrayObject*>(made_[made]), nullptr, nullptr);
    if (!view) return PyErr_Clear(), false;
    Py_SETREF(made_[made], view);
    return true;
  }

  // One loop over the innermost axis, or over all where every operand is dense.
  bool apply(const LoopOp& op, const Span& result) const {
    const size_t n = op.operands.size();
    char* data[4];
    npy_intp strides[4], outer[4][kMaxRank];
    const int rank = result.rank;
    bool whole = true;
    for (size_t i = 0; i < n; ++i) {
      const Span& in = operand(op.operands[i]);
      data[i] = in.data;
      const int shift = rank - in.rank;
      std::fill_n(outer[i], shift, 0);
      for (int d = 0; d < in.rank; ++d) outer[i][d + shift] = in.shape[d] == 1 ? 0 : in.strides[d];
      strides[i] = outer[i][rank - 1];
      whole &= in.rank == 0 || (same_shape(in, result) && is_contiguous(in, strides[i]) && result.shape[rank - 1] != 1);
    }
    data[n] = result.data;
    strides[n] = result.strides[rank - 1];
    npy_intp size = result.size();
    if (!op.exact && ((rank > 1 && !whole) || size == 1)) return false;
    if (rank == 1 || whole) {
      op.loop.function(data, &size, strides, op.loop.data);
      return true;
    }
    std::copy_n(result.strides, rank, outer[n]);
    const int along = axis_of_rows(result);
    for (size_t i = 0; i <= n; ++i) strides[i] = outer[i][along];
    npy_intp at[kMaxRank] = {};
    const npy_intp row = result.shape[along];
    for (npy_intp done = 0; done < size; done += row) {
      char* here[4];
      for (size_t i = 0; i <= n; ++i) {
        here[i] = data[i];
        for (int d = 0; d < rank; ++d) here[i] += at[d] * outer[i][d];
      }
      npy_intp length = row;
      op.loop.function(here, &length, strides, op.loop.data);
      for (int d = rank - 1; d >= 0; --d) {
        if (d == along) continue;
        if (++at[d] < result.shape[d]) break;
        at[d] = 0;
      }
    }
    return true;
  }

  // The innermost one, unless its rows are so short that calling the loop takes the time.
  static int axis_of_rows(const Span& result) {
    constexpr npy_intp kShortRow = 16;
    const npy_intp* last = result.shape + result.rank - 1;
    return static_cast<int>((*last < kShortRow ? std::max_element(result.shape, last + 1) : last) - result.shape);
  }

  void copy(const char* from, const npy_intp* from_strides, char* to, const npy_intp* to_strides) const {
    const CopiedSpace space{target_.rank, target_.shape, from_strides, to_strides, static_cast<size_t>(item_of_target())};
    const bool one_by_one = planted(Fault::ignored_overlap);
    const npy_intp rows = target_.rank == 0 ? 0 : target_.shape[0];
    if (!lets_go_ || one_by_one || rows < kParts || target_.size() * item_of_target() < kSharedBytes || !launcher())
      return copy_strided(from, to, space, one_by_one);
    share(kParts, [&](int part) {
      const npy_intp first = rows * part / kParts;
      npy_intp shape[kMaxRank];
      std::copy_n(space.shape, space.rank, shape);
      shape[0] = rows * (part + 1) / kParts - first;
      copy_strided(from + first * from_strides[0], to + first * to_strides[0], {space.rank, shape, from_strides, to_strides, space.item});
    });
  }

  void write() {
    if (!in_place_) store();
    if (plan_.sink.result >= 0 && !plan_.sink.target.view) r_[plan_.sink.result].o = Py_NewRef(reinterpret_cast<PyObject*>(array_));
  }

  void store() {
    const Span& stored = operand(plan_.sink.stored);
    const npy_intp item = item_of_target();
    npy_intp dense[kMaxRank], stride = item;
    const npy_intp none[kMaxRank] = {};
    for (int d = target_.rank - 1; d >= 0; --d) dense[d] = stride, stride *= target_.shape[d];
    const char* from = stored.data;
    const npy_intp* strides = stored.rank == 0 ? none : stored.strides;
    if (aside_) {
      copy(from, strides, aside_, dense);
      from = aside_, strides = dense;
    }
    copy(from, strides, target_.data, target_.strides);
  }

  void drop_made() {
    for (size_t k = 0; k < plan_.ops.size(); ++k) Py_CLEAR(made_[k]);
  }

  ProgramImpl& p_;
  Group& group_;
  const LoopPlan& plan_;
  Reg* r_;
  const npy_intp most_;
  const bool in_parts_;
  Span inputs_[kMostOperands], results_[kMostOperands], target_;  // (not all of them are ever looked at)
  ScalarValue numbers_[kMostOperands];
  PyObject* made_[kMostOperands];
  PyArrayObject* array_ = nullptr;  // that is written into
  char* aside_ = nullptr;
  Attempt* attempt_ = nullptr;
  bool in_place_ = false;  // what is written has been
  bool lets_go_ = false;   // of the GIL
  bool waits_ = false;     // for its kernel, with which all would be done at once
  bool refused_ = false;   // by it: for shapes or strides
};

}  // namespace

bool run_letting_go(ProgramImpl& p, Group& group, Reg* r, Attempt* attempt) {
  return group.loops && group.sink >= 0 && GroupRun(p, group, r, 0).run_letting_go(attempt);
}

bool run_without_objects(ProgramImpl& p, Group& group, Reg* r, int64_t most, Attempt* attempt) {
  if (!group.loops) return false;
  return GroupRun(p, group, r, most).run(attempt);
}

}  // namespace dalsegno::replay
