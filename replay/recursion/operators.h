// Operators on numbers as machine code: the part of replay/recursion that knows what numbers do. No Python.h here.
#pragma once
#include <xbyak/xbyak.h>

#include <cstdint>
#include <optional>

#include "replay/typed/rep.h"
#include "trace/trace.h"

namespace dalsegno::recursion {

using typed::Rep;

// Where a value of a trace is.
struct Operand {
  enum Kind : uint8_t { kUnknown, kSlot, kConstant, kItself, kFunction, kOwnCell };
  Kind kind = kUnknown;
  Rep rep = Rep::kNone;
  int32_t slot = -1;
  int64_t bits = 0;
  const void* type = nullptr;  // of an object
  bool number() const { return (kind == kSlot || kind == kConstant) && rep != Rep::kNone; }
  bool whole() const { return number() && (rep == Rep::kInt || rep == Rep::kBool); }
};

// Each operator takes numbers and gives one, in a slot of its own; nothing: what it does with such operands is not written. What it does
// not do with some numbers (an int that does not fit, a division by zero) jumps to give_up_. rbx belongs to it.
class Operators : protected Xbyak::CodeGenerator {
 protected:
  Operators() : CodeGenerator(4096, Xbyak::AutoGrow) {}

  std::optional<Operand> compare(int how, const Operand& a, const Operand& b);  // how: Py_LT ...
  std::optional<Operand> truth(const Operand& a, bool negated);
  std::optional<Operand> unary(UnaryOp which, const Operand& a);
  std::optional<Operand> binary(BinaryOp which, const Operand& a, const Operand& b);

  // ---- values

  Operand new_slot(Rep rep);
  Xbyak::Address at(const Operand& o) { return qword[rsp + 8 * o.slot]; }
  void load(const Xbyak::Reg64& to, const Operand& o) { o.kind == Operand::kConstant ? mov(to, o.bits) : mov(to, at(o)); }
  Operand store(Rep rep, const Xbyak::Reg64& from);

  Xbyak::Label give_up_;
  int32_t slots_ = 0, most_slots_ = 0;  // in use, and ever

 private:
  // As a double, an int rounded as PyLong_AsDouble does.
  void load_double(const Xbyak::Xmm& to, const Operand& o);
  Operand store(const Xbyak::Xmm& from);
  // al, whose zero flag a branch right behind it may use.
  Operand store_truth();
  void compare_ints(int how);
  void compare_floats(int how);
  std::optional<Operand> of_floats(BinaryOp which);
  std::optional<Operand> of_ints(BinaryOp which);
  void divide(bool remainder);
};

}  // namespace dalsegno::recursion
