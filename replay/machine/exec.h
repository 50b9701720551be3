// What the files that do python ops share. Internal to the replay machine.
#pragma once
#include "replay/machine/run.h"

namespace dalsegno::replay {

// Hands a new reference (or null: failed) to the step's result register.
inline bool give(const Step& s, Reg* r, PyObject* v) {
  r[s.dst].o = v;
  return v != nullptr;
}

// The operands of a step as an array, with a free place before the arguments, as vectorcall wants it. Borrowed.
class Args {
 public:
  Args(const Step& s, const Reg* r) {
    if (s.n > kFew) many_ = std::make_unique<PyObject*[]>(s.n);
    data_ = s.n > kFew ? many_.get() : few_;
    for (int32_t i = 0; i < s.n; ++i) data_[i] = r[s.list[i]].o;
  }
  PyObject** data() { return data_; }
  PyObject* const* data() const { return data_; }
  PyObject* operator[](int i) const { return data_[i]; }

 private:
  static constexpr int kFew = 12;
  PyObject* few_[kFew];
  std::unique_ptr<PyObject*[]> many_;
  PyObject** data_;
};

// Does it by `quick`, which fails with an exception.
template <Exec quick>
const Step* step_by(const Step* s, Reg* r, Machine& m) {
  if (quick(*s, r)) [[likely]]
    return go_on(s + 1, r, m);
  return fail(m, s->exit, false);
}
// The same, where what `quick` does not do is the interpreter's.
template <Exec quick>
const Step* step_by_or_refuse(const Step* s, Reg* r, Machine& m) {
  return quick(*s, r) ? go_on(s + 1, r, m) : refuse(m, s->exit);
}

Exec exec_of_building(OpKind kind);  // steps_build.cc

// steps_python.cc: what others fall back to
using BinaryFn = PyObject* (*)(PyObject*, PyObject*);
BinaryFn inplace_operator(BinaryOp op);
bool exec_binary(const Step& s, Reg* r);
bool exec_unary(const Step& s, Reg* r);
bool exec_call(const Step& s, Reg* r);

}  // namespace dalsegno::replay
