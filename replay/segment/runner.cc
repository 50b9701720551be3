// SegmentRunner: guards on shapes and layout, scalars, the kernel for the layout, results, launch, flags.
#include "replay/segment/runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "numpy/dtypes.h"
#include "numpy/elide.h"
#include "numpy/errstate.h"
#include "replay/arrays.h"
#include "replay/kernels/compile.h"
#include "replay/kernels/table.h"
#include "replay/segment/casts.h"
#include "replay/segment/layout.h"
#include "replay/segment/refusals.h"
#include "replay/segment/results.h"
#include "replay/segment/rolls.h"
#include "replay/segment/scalars.h"
#include "replay/segment/split.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

using halide_gen::Inner;

// In units of LoweredSegment::weight: about 30 microseconds. Below, a second thread costs more than it gains, and a kernel is done
// before another thread would have had the GIL.
constexpr int64_t kParallelWork = 1 << 20;
constexpr int64_t kReleaseWork = 1 << 20;
constexpr int64_t kAnyWork = std::numeric_limits<int64_t>::max();
constexpr int kMaxWholeRank = 4;   // loops of a kernel; more axes cost compile time
constexpr int64_t kShortRow = 64;  // tiles that are rows shorter than this are mostly overhead

// A kernel specialised for one way of moving through the operands.
struct Variant {
  uint64_t key;
  std::shared_ptr<Kernel> kernel;
};

class Runner final : public SegmentRunner {
 public:
  Runner(const SegmentSpec& spec, LoweredSegment lowered) : spec_(spec), lowered_(std::move(lowered)), split_(spec_) {
    plan_ = halide_gen::make_plan(kernel_spec(1, 0));
    tiled_ = plan_.tile != 0;
    for (size_t k = 0; k < spec_.ops.size(); ++k)
      if (spec_.ops[k].output) handed_.push_back(handed_from(spec_, static_cast<int>(k)));
  }

  const SegmentSpec& spec() const override { return spec_; }

  RunResult run(PyObject* const* inputs, PyObject** outputs) override {
    if (refusals_.refuse()) return RunResult::kMismatch;
    ArrayView views[64];
    SegmentOperand operands[rt::kMaxOperands];
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      operands[i].as = SegmentOperand::kObject, operands[i].object = inputs[i];
      if (is_array(i) && !look_at(i, inputs[i], &views[i])) return RunResult::kMismatch;
    }
    Launching how;
    if (const RunResult found = choose(views, &how); found != RunResult::kDone)
      return how.mixed ? split_.run(shape_numbers(spec_, views), inputs, outputs) : found;
    SegmentResult results[kMaxSegmentOutputs];
    const RunResult done = launch(how, operands, views, results, {});
    for (size_t i = 0; i < lowered_.outputs.size() && done == RunResult::kDone; ++i) outputs[i] = results[i].object;
    return done;
  }

  RunResult run(const SegmentOperand* inputs, SegmentResult* outputs, SegmentMemory memory, bool holds_gil) override {
    if (refusals_.refuse()) return RunResult::kMismatch;
    ArrayView views[64];
    if (!look_at_all(inputs, views)) return RunResult::kMismatch;
    Launching how;
    ArrayView room;
    const RunResult found = choose(views, &how, holds_gil ? kReleaseWork : kAnyWork, asked_place(lowered_, outputs, &room));
    if (found != RunResult::kDone) return found;
    return launch(how, inputs, views, outputs, memory);
  }

  RunResult run_in_pieces(const SegmentOperand* inputs, SegmentResult* outputs, int number, Taker* taker, bool holds_gil) override {
    if (refusals_.refuse()) return RunResult::kMismatch;
    ArrayView views[64];
    if (!look_at_all(inputs, views)) return RunResult::kMismatch;
    Launching how;
    if (const RunResult found = choose(views, &how, holds_gil ? kReleaseWork : kAnyWork); found != RunResult::kDone) return found;
    if (!how.layout.c_order || lowered_.rolls) return RunResult::kMismatch;
    const Layout& layout = how.layout;
    const bool row = how.pack || layout.loop_rank == 1;
    PieceRun pieces{taker, number, row ? 1 : layout.size / layout.extents[layout.loop_rank - 1], {}};
    std::vector<int64_t> first = taker->cut(layout.rank, layout.shape, pieces.unit, &pieces.ordered);
    if (first.size() < 2) return RunResult::kMismatch;
    int64_t most = 0;
    for (size_t i = 0; i + 1 < first.size(); ++i) most = std::max(most, first[i + 1] - first[i]);
    for (int64_t& at : first) at /= pieces.unit;
    pieces.first = first.data();
    const uint64_t aside = outputs[number].in_memory ? uint64_t{1} << number : 0;
    const rt::Pieces cut{static_cast<int32_t>(first.size()) - 1,
                         static_cast<int32_t>(lowered_.outputs.size()),
                         first.data(),
                         aside,
                         most * dtype_size(lowered_.outputs[number]),
                         PieceRun::take,
                         &pieces};
    how.pieces = &cut;
    return launch(how, inputs, views, outputs, {});
  }

  void prepare() override {
    Layout layout;
    if (vectors() != halide_gen::Vectors::kNone || !variants_.empty() || !likely(&layout))
      return;  // (what is assembled is there when it is needed)
    variant(layout, layout.loop_rank == 1);
  }

  std::vector<std::pair<std::string, std::string>> kernels() const override {
    static constexpr const char* kStates[] = {"new", "compiling", "compiled", "failed"};
    std::vector<std::pair<std::string, std::string>> out;
    for (const Variant& v : variants_) {
      const int state = v.kernel->state.load();
      std::string text = state == Kernel::kReady && v.kernel->from_cache ? "loaded" : kStates[state];
      if (v.kernel->assembled) text = "assembled";
      if (state == Kernel::kFailed) text += ": " + v.kernel->failure;
      out.emplace_back(layout_text(v.key), text);
    }
    split_.kernels(&out);
    return out;
  }

 private:
  bool is_array(size_t i) const { return spec_.inputs[i].kind == InputKind::kArray; }

  // Which kernel goes through the operands, and how.
  struct Launching {
    Layout layout;
    const Kernel* kernel = nullptr;
    bool pack = false;
    bool mixed = false;  // none: the ops are of different shapes
    const rt::Pieces* pieces = nullptr;
  };

  struct PieceRun {
    Taker* taker;
    int number;    // of the result
    int64_t unit;  // elements for each step along the axis that is cut
    const int64_t* first;
    bool ordered = false;
    static void take(void* context, int32_t piece, char* const* outputs, int raised) {
      const auto& run = *static_cast<PieceRun*>(context);
      run.taker->take(piece, outputs ? outputs[run.number] : nullptr, (run.first[piece + 1] - run.first[piece]) * run.unit, raised);
    }
  };

  bool look_at_all(const SegmentOperand* inputs, ArrayView* views) const {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!is_array(i)) continue;
      if (inputs[i].as == SegmentOperand::kView) {
        views[i] = inputs[i].view;
        if (!hands_on_its_dtype(i, views[i])) return false;
      } else if (!look_at(i, inputs[i].object, &views[i])) {
        return false;
      }
    }
    return true;
  }

  RunResult choose(const ArrayView* views, Launching* how, int64_t below = kAnyWork, const ArrayView* written = nullptr) {
    Layout& layout = how->layout;
    const bool flat = !lowered_.rolls && (!written || is_c_contiguous(*written)) && make_flat(views, &layout);
    if (!flat) {
      const LayoutResult result = make_layout(spec_, lowered_.reaches, views, &layout, lowered_.rolls, !plan_.loops, written);
      how->mixed = result == LayoutResult::kMixed;
      if (result != LayoutResult::kOk) return RunResult::kMismatch;
    }
    if (!allowed(layout, views) || (tiled_ && layout.size == 1 && !plain_elements(views))) return RunResult::kMismatch;
    how->pack = tiled_ && !lowered_.rolls && layout.loop_rank > 1 && layout.extents[0] < kShortRow &&
                layout.size <= std::numeric_limits<int32_t>::max();
    how->kernel = (flat || how->pack) && flat_kernel_ ? flat_kernel_ : variant(layout, flat || how->pack);
    if (!how->kernel || !how->kernel->ready()) return not_ready(how->kernel);
    return layout.size * lowered_.weight < below ? RunResult::kDone : RunResult::kMismatch;
  }

  // Guards that the caller has made already are not trusted where a wrong one would read foreign memory.
  bool look_at(size_t i, PyObject* object, ArrayView* view) const {
    if (!PyArray_CheckExact(object)) return false;
    auto* a = reinterpret_cast<PyArrayObject*>(object);
    if (!numpy::is_plain(PyArray_DESCR(a), spec_.inputs[i].dtype) || PyArray_NDIM(a) != spec_.inputs[i].rank || !PyArray_ISBEHAVED_RO(a))
      return false;
    *view = {PyArray_BYTES(a),
             PyArray_NDIM(a),
             dtype_size(spec_.inputs[i].dtype),
             PyArray_DIMS(a),
             PyArray_STRIDES(a),
             numpy::is_temporary(object),
             reinterpret_cast<PyObject*>(PyArray_DESCR(a))};
    if (!hands_on_its_dtype(i, *view)) return false;
    return !view->temporary || PyArray_NBYTES(a) < numpy::kMinElidedBytes || usual_strides(*view);
  }

  // Do results have the dtype objects that handed_ says?
  bool hands_on_its_dtype(size_t i, const ArrayView& view) const {
    return !elides_right_ || view.descr == reinterpret_cast<PyObject*>(numpy::descriptor(spec_.inputs[i].dtype));
  }

  // The common case: C-contiguous arrays of one shape, with more than one element.
  bool make_flat(const ArrayView* views, Layout* layout) const {
    const ArrayView* first = nullptr;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!is_array(i)) continue;
      if (!is_c_contiguous(views[i])) return false;
      if (!first) {
        first = &views[i];
      } else if (views[i].rank != first->rank || std::memcmp(views[i].shape, first->shape, sizeof(intptr_t) * first->rank) != 0) {
        return false;
      }
    }
    if (!first || first->rank > kMaxLayoutRank) return false;
    int64_t size = 1;
    for (int d = 0; d < first->rank; ++d) layout->shape[d] = first->shape[d], size *= first->shape[d];
    if (size <= 1 || size > std::numeric_limits<int32_t>::max()) return false;
    layout->rank = first->rank;
    layout->c_order = true;
    layout->size = layout->extents[0] = size;
    layout->loop_rank = 1;
    layout->dense.at[0] = 1;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) layout->inputs[i].at[0] = 1;
    return true;
  }

  bool allowed(const Layout& layout, const ArrayView* views) const {
    if ((lowered_.needs_several && layout.size < 2) || (lowered_.needs_one_run && (layout.loop_rank > 1 || lowered_.rolls))) return false;
    if (layout.loop_rank > (tiled_ ? kMaxLayoutRank : kMaxWholeRank)) return false;
    return !broadcast_among(lowered_.unbroadcast, layout) && copies_in_order(layout, views);
  }

  // NumPy sorts the strides of what astype copies, those of axes of one element and of broadcast ones too (PyArray_NewLikeArray),
  // unless it is contiguous.
  bool copies_in_order(const Layout& layout, const ArrayView* views) const {
    if (broadcast_among(lowered_.copied, layout)) return false;
    return std::all_of(lowered_.copied.begin(), lowered_.copied.end(), [&](int i) {
      const ArrayView& view = views[i];
      return is_c_contiguous(view) || std::find(view.shape, view.shape + view.rank, 1) == view.shape + view.rank;
    });
  }

  // Of one element, NumPy's inner loops are told the stride all the same, and some go another way by it.
  bool plain_elements(const ArrayView* views) const {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      for (int d = 0; is_array(i) && d < views[i].rank; ++d) {
        if (views[i].strides[d] != views[i].itemsize) return false;
      }
    }
    return true;
  }

  static bool broadcast_among(const std::vector<int>& inputs, const Layout& layout) {
    for (int i : inputs) {
      for (int d = 0; d < layout.loop_rank; ++d) {
        if (layout.inputs[i].at[d] == 0) return true;
      }
    }
    return false;
  }

  static RunResult not_ready(const Kernel* kernel) {
    if (kernel && kernel->state.load() == Kernel::kQueued) nudge_compiler();
    return RunResult::kNotReady;
  }

  // Adjacent axes are one loop, unless an operand's rows have gaps between them there, or it is repeated along the outer one.
  bool likely(Layout* layout) const {
    int rank = 0, cut = 0;
    for (const SegmentInput& input : spec_.inputs) rank = std::max(rank, input.kind == InputKind::kArray ? input.rank : 0);
    for (const SegmentInput& input : spec_.inputs) {
      if (input.kind != InputKind::kArray) continue;
      if (input.cut < 0) return false;
      cut |= input.cut << (rank - input.rank) | (input.rank < rank ? 1 << (rank - input.rank) : 0);
    }
    layout->loop_rank = 1 + std::popcount(static_cast<unsigned>(cut) & ~1U);
    if (layout->loop_rank > kMaxWholeRank && !tiled_) return false;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) layout->inputs[i].at[0] = 1;
    return true;
  }

  // Key of a variant: rank, then two bits for the innermost axis of each array input.
  uint64_t variant_key(const Layout& layout) const {
    uint64_t key = static_cast<uint64_t>(tiled_ ? 1 : layout.loop_rank);
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!is_array(i)) continue;
      const int64_t stride = layout.inputs[i].at[0];
      const Inner inner = stride == 1 ? Inner::kDense : stride == 0 ? Inner::kBroadcast : Inner::kStrided;
      key |= static_cast<uint64_t>(inner) << (4 + 2 * i);
    }
    return key;
  }

  // `flat`: one row of dense operands, as they are or as the launcher packs them.
  Kernel* variant(const Layout& layout, bool flat) {
    const uint64_t key = flat ? 1 : variant_key(layout);
    for (const Variant& v : variants_) {
      if (v.key == key) return v.kernel.get();
    }
    const std::shared_ptr<Kernel> kernel = find_kernel(kernel_spec(static_cast<int>(key & 15), key), plan_, keep_);
    if (!kernel) return nullptr;
    variants_.push_back({key, kernel});
    if (flat) flat_kernel_ = kernel.get();
    return kernel.get();
  }

  halide_gen::KernelSpec kernel_spec(int rank, uint64_t key) const {
    halide_gen::KernelSpec k;
    k.rank = rank;
    for (const KernelSource& s : lowered_.sources) {
      k.inputs.push_back({s.scalar, s.dtype, s.scalar ? Inner::kDense : static_cast<Inner>(key >> (4 + 2 * s.input) & 3)});
    }
    k.ops = lowered_.ops;
    return k;
  }

  std::string layout_text(uint64_t key) const {
    static constexpr const char* kNames[] = {"dense", "broadcast", "strided"};
    std::string out = "rank " + std::to_string(key & 15);
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (is_array(i)) out += std::string(" ") + kNames[key >> (4 + 2 * i) & 3];
    }
    return out;
  }

  RunResult launch(const Launching& how, const SegmentOperand* inputs, const ArrayView* views, SegmentResult* outputs,
                   SegmentMemory memory) {
    ScalarValue scalars[rt::kMaxOperands];
    rt::LaunchOperand in[rt::kMaxOperands], out[kMaxSegmentOutputs];
    for (size_t k = 0; k < lowered_.sources.size(); ++k) {
      const KernelSource& s = lowered_.sources[k];
      if (s.scalar) {
        if (!scalar(s, inputs[s.input], &scalars[k])) return RunResult::kMismatch;
        in[k].data = scalars[k].bytes;
      } else {
        in[k].data = views[s.input].data, in[k].size = views[s.input].itemsize;
        std::memcpy(in[k].strides, how.layout.inputs[s.input].at, sizeof(int64_t) * how.layout.loop_rank);
      }
    }
    if (!allocate(how, views, out, outputs, memory)) return RunResult::kMismatch;
    rt::Over room;
    const rt::Over* over = over_of(lowered_, outputs, &room);
    int status = 0;
    if (!lowered_.rolls) {
      status = run_kernel(how, in, out, over);
    } else if (const std::optional<RolledBoxes> boxes = rolled_boxes(how.layout, spec_, lowered_.sources)) {
      boxes->run(in, static_cast<int>(lowered_.sources.size()), out, static_cast<int>(lowered_.outputs.size()), [&](const Layout& box) {
        status |= run_kernel({box, how.kernel}, in, out);
      });
    } else {
      status = rt::kFailed;
    }
    if ((status == 0 || accept(status)) && make_views(outputs)) return refusals_.went_well(), count_launch(), RunResult::kDone;
    for (size_t i = 0; i < lowered_.outputs.size(); ++i) Py_CLEAR(outputs[i].object);
    return status & rt::kFailed || status == 0 ? RunResult::kMismatch : (refusals_.flagged(), RunResult::kFlags);
  }

  bool scalar(const KernelSource& source, const SegmentOperand& operand, ScalarValue* out) const {
    if (operand.as == SegmentOperand::kInteger) return convert_integer(operand.integer, source.dtype, out);
    if (operand.as == SegmentOperand::kDouble) return convert_double(operand.real, source.dtype, out);
    return convert_scalar(spec_.inputs[source.input], operand.object, source.dtype, out);
  }

  bool allocate(const Launching& how, const ArrayView* views, rt::LaunchOperand* out, SegmentResult* outputs, SegmentMemory memory) const {
    const Layout& layout = how.layout;
    for (size_t i = 0; i < lowered_.outputs.size(); ++i) {
      out[i].size = dtype_size(lowered_.outputs[i]);
      if (how.pieces && how.pieces->aside >> i & 1) {
        std::memcpy(out[i].strides, layout.dense.at, sizeof(int64_t) * layout.loop_rank);
        if (how.pack) out[i].strides[0] = 1;
        continue;
      }
      if (outputs[i].in_place && goes_in_place(how, i, outputs[i], &out[i])) continue;
      outputs[i].in_place = false;
      if (!make_result(layout, i, views, &outputs[i], &memory)) {
        for (size_t k = 0; k < i; ++k) Py_CLEAR(outputs[k].object);
        return false;
      }
      out[i].data = outputs[i].in_memory ? outputs[i].data : PyArray_BYTES(reinterpret_cast<PyArrayObject*>(outputs[i].object));
      std::memcpy(out[i].strides, layout.dense.at, sizeof(int64_t) * layout.loop_rank);
    }
    return true;
  }

  bool goes_in_place(const Launching& how, size_t i, const SegmentResult& result, rt::LaunchOperand* out) const {
    const Layout& layout = how.layout;
    if (lowered_.rolls || !lies_in_place(layout, lowered_.outputs[i], result, out->strides)) return false;
    if (result.over && (plan_.guards_invalid || !layout.c_order)) return false;
    out->data = result.data;
    return !how.pack || std::equal(out->strides, out->strides + layout.loop_rank, layout.dense.at);  // (one row)
  }

  bool make_result(const Layout& layout, size_t i, const ArrayView* views, SegmentResult* result, SegmentMemory* memory) const {
    const DType dtype = lowered_.outputs[i];
    if (result->in_memory && place_result(layout, dtype, result, memory)) return true;
    if (result->in_memory && !memory->or_object) return false;
    result->in_memory = false;
    result->object = new_result(layout, dtype, handed_[i] < 0 ? nullptr : views[handed_[i]].descr);
    return result->object != nullptr;
  }

  bool make_views(SegmentResult* outputs) const {
    for (size_t i = 0; i < lowered_.outputs.size(); ++i) {
      if (!lowered_.viewed[i] || !outputs[i].object) continue;
      PyObject* view = PyArray_View(reinterpret_cast<PyArrayObject*>(outputs[i].object), nullptr, nullptr);
      if (!view) return PyErr_Clear(), false;
      Py_SETREF(outputs[i].object, view);
    }
    return true;
  }

  static int threads_for(const Launching& how, int64_t work) {
    if (how.pieces && static_cast<const PieceRun*>(how.pieces->context)->ordered) return 1;
    return work >= kParallelWork ? launch_threads() : 1;
  }

  int run_kernel(const Launching& how, rt::LaunchOperand* in, rt::LaunchOperand* out, const rt::Over* over = nullptr) const {
    const Kernel& kernel = *how.kernel;
    const Layout& layout = how.layout;
    rt::Launch launch;
    launch.rank = layout.loop_rank;
    std::memcpy(launch.extents, layout.extents, sizeof(int64_t) * layout.loop_rank);
    launch.inputs = in, launch.outputs = out;
    launch.packing.packed = 0;
    launch.pieces = how.pieces, launch.over = over;
    if (how.pack) pack_inputs(layout, &launch);
    const int64_t work = layout.size * lowered_.weight;
    launch.threads = threads_for(how, work);
    if (work < kReleaseWork) return launcher()(&kernel.launch, &launch);
    PyThreadState* state = PyEval_SaveThread();
    const int status = launcher()(&kernel.launch, &launch);
    const hook::ThreadGuard guard;
    PyEval_RestoreThread(state);
    return status;
  }

  void pack_inputs(const Layout& layout, rt::Launch* launch) const {
    rt::Packing& p = launch->packing;
    p.rank = layout.loop_rank;
    std::memcpy(p.extents, layout.extents, sizeof(int64_t) * layout.loop_rank);
    for (size_t k = 0; k < lowered_.sources.size(); ++k) {
      const KernelSource& s = lowered_.sources[k];
      if (!s.scalar && std::memcmp(layout.inputs[s.input].at, layout.dense.at, sizeof(int64_t) * layout.loop_rank) != 0) {
        p.packed |= uint64_t{1} << k;
      }
    }
    launch->rank = 1;
    launch->extents[0] = layout.size;
  }

  // Flags that eager would say nothing about. After a float-to-integer cast out of range the values are not NumPy's.
  bool accept(int status) const {
    if (planted(Fault::ignored_flags)) return true;
    if (status & rt::kFailed || (plan_.guards_invalid && status & rt::kInvalid)) return false;
    return numpy::errstate_ignores(status);
  }

  const SegmentSpec spec_;
  const LoweredSegment lowered_;
  const bool keep_ = use_kernel_cache;
  halide_gen::Plan plan_;  // of all kernels: it does not depend on the layout
  bool tiled_ = false;
  std::vector<int> handed_;  // handed_from(), by output
  const bool elides_right_ = elides_right(spec_);
  Kernel* flat_kernel_ = nullptr;  // one of variants_
  std::vector<Variant> variants_;
  Refusals refusals_;
  SplitSegment split_;
};

bool small_enough(const LoweredSegment& low) {
  return low.sources.size() + low.outputs.size() <= rt::kMaxOperands && low.outputs.size() <= kMaxSegmentOutputs;
}

}  // namespace

std::unique_ptr<SegmentRunner> SegmentRunner::make(const SegmentSpec& spec) {
  LoweredSegment low = lower_segment(spec);
  if (!low.ok || !small_enough(low)) return nullptr;
  return std::make_unique<Runner>(spec, std::move(low));
}

}  // namespace dalsegno::replay
