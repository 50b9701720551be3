// What groups of array ops work on, where there are no objects for it: memory for results that nobody sees, a kernel's operands.
#include <cstdlib>

#include "halide_gen/runtime/per_thread.h"
#include "replay/arrays.h"
#include "replay/machine/loop_plan.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {
namespace {

// A thread's memory for results that nobody sees, for as long as it lives.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  ~Scratch() { std::free(bytes_); }
  char* reserve(size_t size) {
    if (size > size_) {
      std::free(bytes_);
      bytes_ = static_cast<char*>(std::aligned_alloc(64, size));
      size_ = bytes_ ? size : 0;
    }
    return bytes_;
  }

 private:
  char* bytes_ = nullptr;
  size_t size_ = 0;
};

bool number_for_kernel(Rep rep, Reg value, SegmentOperand* out) {
  const typed::Bits bits = typed::bits_of(rep);
  if (bits == typed::Bits::kInt64)
    return out->as = SegmentOperand::kInteger, out->integer = value.i, (rep != Rep::kNpUint64 || value.i >= 0) && !typed::is_modular(rep);
  return out->as = SegmentOperand::kDouble, out->real = bits == typed::Bits::kFloat ? value.s : value.f, bits != typed::Bits::kNone;
}

}  // namespace

char* scratch(size_t size) {
  thread_local Scratch* own = nullptr;  // (without a destructor: see per_thread.h)
  if (!own && !(own = rt::PerThread<Scratch>::get())) return nullptr;
  return own->reserve(size);
}

PyArrayObject* array_behind(const LoopInput& in, const Reg* r) {
  return reinterpret_cast<PyArrayObject*>(r[in.view ? in.view->parts[0].obj : in.loc.obj].o);
}

bool kernel_operands(const std::vector<LoopInput>& inputs, const Reg* r, SegmentOperand* operands, ViewRoom* room) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    const LoopInput& in = inputs[k];
    SegmentOperand& operand = operands[k];
    if (in.view) {
      const int rank = in.view->view.rank;
      const Reg* block = r + in.view->block;
      for (int d = 0; d < rank; ++d) room[k].shape[d] = block[1 + d].i, room[k].strides[d] = block[1 + rank + d].i;
      operand.as = SegmentOperand::kView;
      auto* descr = reinterpret_cast<PyObject*>(PyArray_DESCR(array_behind(in, r)));
      operand.view = {reinterpret_cast<char*>(block[0].i), rank, dtype_size(in.as.dtype), room[k].shape, room[k].strides, false, descr};
    } else if (in.as.kind == InputKind::kArray || in.loc.raw < 0 || in.loc.either()) {
      operand.as = SegmentOperand::kObject;
      operand.object = in.loc.obj >= 0 ? r[in.loc.obj].o : nullptr;
      if (!operand.object) return false;
    } else if (!number_for_kernel(in.loc.rep, r[in.loc.raw], &operand)) {
      return false;
    }
  }
  return true;
}

}  // namespace dalsegno::replay
