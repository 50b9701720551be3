#include "replay/recursion/operators.h"

#include <algorithm>

#include "trace/fault.h"

namespace dalsegno::recursion {
namespace {

constexpr int kLess = 0, kLessEqual = 1, kEqual = 2, kNotEqual = 3, kGreater = 4, kGreaterEqual = 5;  // Py_LT ...

}  // namespace

// ---- values

Operand Operators::new_slot(Rep rep) {
  most_slots_ = std::max(most_slots_, slots_ + 1);
  return {Operand::kSlot, rep, slots_++, 0};
}

void Operators::load_double(const Xbyak::Xmm& to, const Operand& o) {
  load(rax, o);
  if (o.rep == Rep::kFloat) return movq(to, rax);
  xorpd(to, to);
  cvtsi2sd(to, rax);
}

Operand Operators::store(Rep rep, const Xbyak::Reg64& from) {
  const Operand o = new_slot(rep);
  mov(at(o), from);
  return o;
}

Operand Operators::store(const Xbyak::Xmm& from) {
  movq(rax, from);
  return store(Rep::kFloat, rax);
}

Operand Operators::store_truth() {
  movzx(eax, al);
  const Operand o = store(Rep::kBool, rax);
  test(eax, eax);
  return o;
}

// ---- comparisons

std::optional<Operand> Operators::compare(int how, const Operand& a, const Operand& b) {
  if (!a.number() || !b.number()) return {};
  if (a.whole() && b.whole()) {
    load(rax, a);
    load(rcx, b);
    compare_ints(how);
    return store_truth();
  }
  if (a.rep != Rep::kFloat || b.rep != Rep::kFloat) return {};  // an int is compared exactly
  const bool swapped = how == kLess || how == kLessEqual;
  load_double(xmm0, swapped ? b : a);
  load_double(xmm1, swapped ? a : b);
  compare_floats(how);
  return store_truth();
}

// rax with rcx.
void Operators::compare_ints(int how) {
  cmp(rax, rcx);
  switch (how) {
    case kLess:
      setl(al);
      break;
    case kLessEqual:
      setle(al);
      break;
    case kEqual:
      sete(al);
      break;
    case kNotEqual:
      setne(al);
      break;
    case kGreater:
      setg(al);
      break;
    default:
      setge(al);
  }
}

// xmm0 with xmm1, exchanged for < and <=.
void Operators::compare_floats(int how) {
  ucomisd(xmm0, xmm1);
  switch (how) {  // of a NaN nothing but != holds
    case kLess:
    case kGreater:
      seta(al);
      break;
    case kLessEqual:
    case kGreaterEqual:
      setae(al);
      break;
    case kEqual:
      setnp(cl);
      sete(al);
      and_(al, cl);
      break;
    default:
      setp(cl);
      setne(al);
      or_(al, cl);
  }
}

std::optional<Operand> Operators::truth(const Operand& a, bool negated) {
  if (!a.number()) return {};
  if (a.rep == Rep::kFloat) {
    load_double(xmm0, a);
    xorpd(xmm1, xmm1);
    ucomisd(xmm0, xmm1);
    setp(cl);
    setne(al);
    or_(al, cl);
  } else {
    load(rax, a);
    test(rax, rax);
    setne(al);
  }
  if (negated) xor_(al, 1);
  return store_truth();
}

// ---- arithmetic

std::optional<Operand> Operators::unary(UnaryOp which, const Operand& a) {
  if (!a.number() || a.rep == Rep::kBool) return {};
  if (which == UnaryOp::positive) return a;
  load(rax, a);
  if (a.rep == Rep::kFloat) {
    if (which != UnaryOp::negative) return {};
    btc(rax, 63);
    return store(Rep::kFloat, rax);
  }
  if (which == UnaryOp::invert) {
    not_(rax);
  } else if (which == UnaryOp::negative) {
    neg(rax);
    jo(give_up_, T_NEAR);
  } else {
    return {};
  }
  return store(Rep::kInt, rax);
}

std::optional<Operand> Operators::binary(BinaryOp which, const Operand& a, const Operand& b) {
  if (!a.number() || !b.number()) return {};
  if (a.rep == Rep::kFloat || b.rep == Rep::kFloat) {
    load_double(xmm0, a);
    load_double(xmm1, b);
    return of_floats(which);
  }
  if (a.rep == Rep::kBool && b.rep == Rep::kBool) return {};  // & | ^ of them are truth values
  load(rax, a);
  load(rcx, b);
  return of_ints(which);
}

// xmm0 and xmm1.
std::optional<Operand> Operators::of_floats(BinaryOp which) {
  switch (which) {
    case BinaryOp::add:
      addsd(xmm0, xmm1);
      break;
    case BinaryOp::subtract:
      subsd(xmm0, xmm1);
      break;
    case BinaryOp::multiply:
      mulsd(xmm0, xmm1);
      break;
    case BinaryOp::true_divide:
      xorpd(xmm2, xmm2);
      ucomisd(xmm1, xmm2);
      je(give_up_, T_NEAR);  // which raises (or is a NaN)
      divsd(xmm0, xmm1);
      break;
    default:
      return {};
  }
  return store(xmm0);
}

// rax and rcx.
std::optional<Operand> Operators::of_ints(BinaryOp which) {
  switch (which) {
    case BinaryOp::add:
      add(rax, rcx);
      break;
    case BinaryOp::subtract:
      sub(rax, rcx);
      break;
    case BinaryOp::multiply:
      imul(rax, rcx);
      break;
    case BinaryOp::and_:
      and_(rax, rcx);
      return store(Rep::kInt, rax);
    case BinaryOp::or_:
      or_(rax, rcx);
      return store(Rep::kInt, rax);
    case BinaryOp::xor_:
      xor_(rax, rcx);
      return store(Rep::kInt, rax);
    case BinaryOp::floor_divide:
    case BinaryOp::remainder:
      divide(which == BinaryOp::remainder);
      return store(Rep::kInt, rax);
    case BinaryOp::rshift:
      cmp(rcx, 63);
      ja(give_up_, T_NEAR);  // or negative, which raises
      sar(rax, cl);
      return store(Rep::kInt, rax);
    case BinaryOp::lshift:
      cmp(rcx, 62);
      ja(give_up_, T_NEAR);
      mov(rdx, rax);
      shl(rax, cl);
      mov(rbx, rax);
      sar(rbx, cl);
      cmp(rbx, rdx);
      jne(give_up_, T_NEAR);
      return store(Rep::kInt, rax);
    default:
      return {};
  }
  if (!planted(Fault::native_overflow)) jo(give_up_, T_NEAR);
  return store(Rep::kInt, rax);
}

// Python's: the remainder has the divisor's sign.
void Operators::divide(bool remainder) {
  Xbyak::Label same;
  lea(rdx, ptr[rcx + 1]);  // 0 raises, and by -1 the least int overflows
  cmp(rdx, 1);
  jbe(give_up_, T_NEAR);
  cqo();
  idiv(rcx);
  if (!planted(Fault::native_recursion)) {
    test(rdx, rdx);
    jz(same);
    mov(rbx, rdx);
    xor_(rbx, rcx);
    jns(same);
    add(rdx, rcx);
    dec(rax);
  }
  L(same);
  if (remainder) mov(rax, rdx);
}

}  // namespace dalsegno::recursion
