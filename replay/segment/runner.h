// A segment's life inside a process: what is computed (SegmentSpec), its kernels per layout, its launch on NumPy arrays.
// Owned by a lowered trace. run() needs the GIL and releases it only around long kernels.
#pragma once
#include <Python.h>

#include <memory>
#include <vector>

#include "trace/array_fn.h"

namespace dalsegno::replay {

enum class InputKind : uint8_t {
  kArray,      // exact, aligned, native ndarray of `dtype` and `rank` >= 1 (guarded before; extents and strides are looked at on launch)
  kWeakInt,    // exact Python int (NEP 50: weak): converted to the op's dtype; out of range -> kMismatch
  kWeakFloat,  // exact Python float (weak)
  kWeakBool,   // exact Python bool
  kScalar,     // NumPy scalar of `dtype` (strong)
};
struct SegmentInput {
  InputKind kind = InputKind::kArray;
  DType dtype = DType::kFloat64;  // kArray, kScalar
  int rank = 0;                   // kArray
  bool operator==(const SegmentInput&) const = default;
};
struct SegmentOp {
  ArrayFn fn = ArrayFn::none;
  std::vector<int> operands;       // i >= 0: result of ops[i]; i < 0: inputs[~i]
  DType result = DType::kFloat64;  // dtype eager gave; NEP 50 decides the dtype the loop computes in
  int rank = 1;
  bool output = false;  // must exist in memory after the segment
  int elidable = 0;     // operands that NumPy may compute the op into if they are large temporaries: bit 0 the first, bit 1 the second
  bool operator==(const SegmentOp&) const = default;
};
struct SegmentSpec {
  std::vector<SegmentInput> inputs;
  std::vector<SegmentOp> ops;  // in the order eager runs them
  bool operator==(const SegmentSpec&) const = default;
};

enum class RunResult : uint8_t {
  kDone,      // outputs[] are set: one new reference per op with output == true, in order
  kNotReady,  // no kernel for this layout yet (one is being compiled, or never will be): run the ops as steps
  kMismatch,  // extents do not broadcast, too large, a scalar out of range, a layout kernels do not do: run the ops as steps
  kFlags,     // a floating-point flag that np.errstate does not ignore came up (or might have): nothing kept; run the ops as steps
};

class SegmentRunner {
 public:
  // Null if no kernel can compute this exactly (a dtype combination or function without a rule): the ops stay steps for ever.
  static std::unique_ptr<SegmentRunner> make(const SegmentSpec& spec);
  virtual ~SegmentRunner() = default;
  // inputs[i]: borrowed object for spec.inputs[i]. Sets no exception.
  virtual RunResult run(PyObject* const* inputs, PyObject** outputs) = 0;
  // Asks for the kernel of the usual layout (dense operands of one shape) before any call needs it.
  virtual void prepare() = 0;
  // For explain: kernels of this segment so far, as (layout text, state: "compiled" | "loaded" | "compiling" | "failed: ...").
  virtual std::vector<std::pair<std::string, std::string>> kernels() const = 0;
  virtual const SegmentSpec& spec() const = 0;
};

// Process-wide.
void wait_for_compilers();  // until background compilation has finished (GIL released while waiting)
struct KernelCounters {
  uint64_t launches, compiled, loaded;
};
KernelCounters kernel_counters();

}  // namespace dalsegno::replay
