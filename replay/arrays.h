// Memory of arrays: large ones that are made while a jitted function runs lie in that of dead ones (replay/memory/kept_blocks.h), in
// mappings of their own (mapped_blocks.h). With the GIL.
#pragma once
#include "numpy/dtypes.h"
#include "replay/memory/kept_blocks.h"

namespace dalsegno::replay {

// From now on NumPy's own allocator asks here: its functions are exchanged for ones that call them, so nothing of this can be seen of an
// array. Once, when NumPy has been imported. False: arrays are made as ever.
bool take_over_memory();

// While one that is `on` lives, a jitted function runs, by a replay or eagerly.
class MemoryReused {
 public:
  explicit MemoryReused(bool on = true) : on_(on) { depth_ += on_; }
  ~MemoryReused() {
    depth_ -= on_;
    if (much_kept && depth_ == 0) [[unlikely]]
      let_go();
  }
  MemoryReused(const MemoryReused&) = delete;
  static bool now() { return depth_ > 0; }
  static inline bool much_kept = false;  // more than may be between calls

 private:
  static void let_go();  // of that

  const int on_;
  static inline int depth_ = 0;  // of any thread: others that make arrays meanwhile come by the same memory
};

// How much memory of large arrays is in use at once, bytes, while one lives, and was not before: what is made anew by a call that is the
// first of its process to need so much.
class MemoryMeasured {
 public:
  MemoryMeasured();
  ~MemoryMeasured();
  MemoryMeasured(const MemoryMeasured&) = delete;
  size_t end();  // at the latest when it dies

 private:
  KeptBlocks::Measure measure_;
  bool ended_ = false;
};

// As PyArray_NewFromDescr() makes an exact ndarray that has its own memory, not written yet: of a dtype without objects, in C order where
// `strides` (bytes) is null. Null, without an exception, where there is no memory.
PyObject* new_array(DType dtype, int rank, const npy_intp* shape, const npy_intp* strides = nullptr);
PyObject* new_array(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides = nullptr);
// The dtype object that a ufunc gives its result: its first operand's, where that is of the result's dtype (but may be another object than
// NumPy's), else NumPy's own (PyArray_ResultType). Borrowed. `first`: null: it is no array.
PyArray_Descr* handed_on(PyArray_Descr* first, DType dtype);

}  // namespace dalsegno::replay
