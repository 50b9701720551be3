// A segment's life inside a process: what is computed (SegmentSpec), its kernels per layout, its launch on NumPy arrays.
// Owned by a lowered trace. run() needs the GIL and releases it only around long kernels.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replay/segment/layout.h"
#include "replay/segment/spec.h"

namespace dalsegno::rt {
struct Over;
}

namespace dalsegno::replay {

enum class RunResult : uint8_t {
  kDone,      // outputs[] are set: one new reference per op with output == true, in order
  kNotReady,  // no kernel for this layout yet (one is being compiled, or never will be): run the ops as steps
  kMismatch,  // extents do not broadcast, too large, a scalar out of range, a layout kernels do not do: run the ops as steps
  kFlags,     // a floating-point flag that np.errstate does not ignore came up (or might have): nothing kept; run the ops as steps
};

// An operand: an object, or what is known of it where there is none.
struct SegmentOperand {
  enum As : uint8_t { kObject, kView, kInteger, kDouble } as;
  union {
    PyObject* object;  // borrowed
    ArrayView view;    // of an array: aligned, in native byte order, its dtype the input's, without metadata; its memory stays
    int64_t integer;
    double real;
  };
};

// A result: a new array, or elements in the caller's memory.
struct SegmentResult {
  bool in_memory = false;          // asked for, and whether it is so
  bool in_place = false;           // of one of them, the same: where `data` is, of that shape and strides, which no operand is read from
  const rt::Over* over = nullptr;  // in place, but operands may be read there, element on element: what it watches, and whom it tells
  PyObject* object = nullptr;      // new reference
  char* data = nullptr;            // in memory: where, and how it lies there (strides in bytes)
  int rank = 0;
  intptr_t shape[kMaxLayoutRank], strides[kMaxLayoutRank];
};

// Memory of the caller's for results, each at a multiple of 64 bytes.
struct SegmentMemory {
  char* next = nullptr;  // at such a multiple
  size_t left = 0;
  bool or_object = false;  // what it has no room for is a new array; else there is no result
};

// Who takes one of the results piece by piece, as it is made.
class Taker {
 public:
  // The result will be in C order. It is made in pieces of a multiple of `unit` elements: where they begin, and where the last one ends.
  // Empty: it is not to be made so. `ordered`: one piece after the other, on one thread.
  virtual std::vector<int64_t> cut(int rank, const intptr_t* shape, int64_t unit, bool* ordered) = 0;
  // Any thread, without the GIL. `data`: where the piece begins; null: it could not be made. `raised`: the flags that came up
  // (rt::kInvalid ...).
  virtual void take(int piece, const char* data, int64_t elements, int raised) = 0;

 protected:
  ~Taker() = default;
};

class SegmentRunner {
 public:
  // Null if no kernel can compute this exactly (a dtype combination or function without a rule): the ops stay steps for ever.
  static std::unique_ptr<SegmentRunner> make(const SegmentSpec& spec);
  virtual ~SegmentRunner() = default;
  // inputs[i]: borrowed object for spec.inputs[i]. Sets no exception.
  virtual RunResult run(PyObject* const* inputs, PyObject** outputs) = 0;
  // The same without objects. What would take long lets go of the GIL, or is kMismatch if the GIL is to be held. outputs[i]: in order. What
  // is asked for in place has been written, or begun, wherever it is not kMismatch or kNotReady.
  virtual RunResult run(const SegmentOperand* inputs, SegmentResult* outputs, SegmentMemory memory, bool holds_gil) = 0;
  // As run(); the result of this number is handed to `taker`. outputs[i].in_memory: it is not kept.
  virtual RunResult run_in_pieces(const SegmentOperand* inputs, SegmentResult* outputs, int number, Taker* taker, bool holds_gil) = 0;
  // Asks for the kernel of the likely layout (operands that are dense but for how they are cut) before any call needs it.
  virtual void prepare() = 0;
  // For explain: kernels of this segment so far, as (layout text, state: "compiled" | "loaded" | "compiling" | "failed: ...").
  virtual std::vector<std::pair<std::string, std::string>> kernels() const = 0;
  virtual const SegmentSpec& spec() const = 0;
};

}  // namespace dalsegno::replay
