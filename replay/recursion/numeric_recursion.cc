#include "replay/recursion/numeric_recursion.h"

#include <xbyak/xbyak.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "trace/fault.h"

namespace dalsegno::recursion {
namespace {

using Xbyak::Label;
using Xbyak::Reg64;

constexpr int kLess = 0, kLessEqual = 1, kEqual = 2, kNotEqual = 3, kGreater = 4, kGreaterEqual = 5;  // Py_LT ...

// What the code is called with, and keeps while it runs: r12 points to it.
struct Context {
  const int64_t* arguments;
  int64_t stack;  // the stack pointer to give up with
  int64_t frames, calls, result;
};

// Where a value of a trace is.
struct Operand {
  enum Kind : uint8_t { kUnknown, kSlot, kConstant, kItself, kFunction };
  Kind kind = kUnknown;
  Rep rep = Rep::kNone;
  int32_t slot = -1;
  int64_t bits = 0;
  const void* type = nullptr;  // of an object
  bool number() const { return (kind == kSlot || kind == kConstant) && rep != Rep::kNone; }
  bool whole() const { return number() && (rep == Rep::kInt || rep == Rep::kBool); }
};

// A trace that is to be written, and what its parameters are.
struct Pending {
  int32_t trace;
  std::vector<Operand> params;
  int32_t slots;  // in use
  Label label;
  Pending& operator=(const Pending&) = delete;
};

std::vector<ValueId> slots_of(const Snapshot& snapshot) {
  std::vector<ValueId> slots;
  for (const SnapshotFrame& frame : snapshot.frames) {
    slots.push_back(frame.function);
    slots.insert(slots.end(), frame.locals.begin(), frame.locals.end());
    slots.insert(slots.end(), frame.stack.begin(), frame.stack.end());
  }
  return slots;
}

class Code final : public NumericRecursion, private Xbyak::CodeGenerator {
 public:
  // `slots`: that it needs; 0: that is to be found out.
  Code(const std::vector<NumericTrace>& traces, const Signature& signature, int32_t slots)
      : CodeGenerator(4096, Xbyak::AutoGrow), traces_(&traces), signature_(signature) {
    frame_ = (8 * slots + 15) / 16 * 16 + 8;
    write_entry();
    write_body();
    ready(PROTECT_RE);
    entry_ = getCode<int (*)(Context*)>();
    traces_ = nullptr;
  }

  bool useful() const { return calls_ > 0 && returns_ > 0; }
  int32_t slots() const { return most_slots_; }
  int64_t stack_bytes() const override { return frame_ + 8; }
  bool returns_arguments() const override { return returns_arguments_; }

  bool run(const int64_t* arguments, int64_t frames, int64_t* calls, int64_t* result) const override {
    Context context{arguments, 0, frames - 1, *calls, 0};
    const bool done = frames > 0 && entry_(&context) != 0;
    *calls = std::max<int64_t>(context.calls, 0);
    if (done) *result = context.result;
    return done;
  }

 private:
  // ---- the frame of all

  const Reg64& argument(size_t i) const {
    const Reg64* const registers[kMostParams] = {&rdi, &rsi, &rdx, &rcx, &r8, &r9};
    return *registers[i];
  }
  Xbyak::Address context(size_t offset) { return qword[r12 + static_cast<int>(offset)]; }

  void write_entry() {
    push(rbx);
    push(r12);
    mov(r12, rdi);
    mov(context(offsetof(Context, stack)), rsp);
    mov(rbx, context(offsetof(Context, arguments)));
    for (size_t i = 0; i < signature_.params.size(); ++i) mov(argument(i), qword[rbx + static_cast<int>(8 * i)]);
    call(body_);
    mov(context(offsetof(Context, result)), rax);
    mov(eax, 1);
    Label out;
    jmp(out);
    L(give_up_);
    mov(rsp, context(offsetof(Context, stack)));
    xor_(eax, eax);
    L(out);
    pop(r12);
    pop(rbx);
    ret();
  }

  void write_body() {
    align(16);
    L(body_);
    dec(context(offsetof(Context, calls)));
    js(give_up_, T_NEAR);
    sub(rsp, frame_);
    std::vector<Operand> params;
    for (size_t i = 0; i < signature_.params.size(); ++i) {
      params.push_back(new_slot(signature_.params[i].rep));
      params.back().type = signature_.params[i].type;
      mov(at(params.back()), argument(i));
    }
    pending_.push_back({0, params, slots_, Label()});
    for (size_t k = 0; k < pending_.size(); ++k) {
      L(pending_[k].label);
      slots_ = pending_[k].slots;  // those that other ways use are free
      write_trace((*traces_)[static_cast<size_t>(pending_[k].trace)], pending_[k].params);
    }
  }

  // ---- values

  Operand new_slot(Rep rep) {
    most_slots_ = std::max(most_slots_, slots_ + 1);
    return {Operand::kSlot, rep, slots_++, 0};
  }
  Xbyak::Address at(const Operand& o) { return qword[rsp + 8 * o.slot]; }
  void load(const Reg64& to, const Operand& o) { o.kind == Operand::kConstant ? mov(to, o.bits) : mov(to, at(o)); }
  // As a double, an int rounded as PyLong_AsDouble does.
  void load_double(const Xbyak::Xmm& to, const Operand& o) {
    load(rax, o);
    if (o.rep == Rep::kFloat) return movq(to, rax);
    xorpd(to, to);
    cvtsi2sd(to, rax);
  }
  Operand store(Rep rep, const Reg64& from) {
    const Operand o = new_slot(rep);
    mov(at(o), from);
    return o;
  }
  Operand store(const Xbyak::Xmm& from) {
    movq(rax, from);
    return store(Rep::kFloat, rax);
  }

  // ---- traces

  void write_trace(const NumericTrace& t, const std::vector<Operand>& params) {
    values_.assign(t.trace->ops.size(), {});
    std::copy(params.begin(), params.end(), values_.begin());
    depth_ = t.trace->anchor == AnchorKind::entry ? 1 : static_cast<int64_t>(t.trace->entry.frames.size());
    flags_of_ = kNull;
    t_ = &t;
    for (size_t i = params.size(); i < t.trace->ops.size(); ++i)
      if (!write(t.trace->ops[i], static_cast<ValueId>(i))) return jmp(give_up_, T_NEAR);
  }

  const Operand& in(const Op& op, int32_t k) const { return values_[static_cast<size_t>(t_->trace->inputs_of(op)[k])]; }

  // False: what is here is not written, so nothing behind it is either.
  bool write(const Op& op, ValueId v) {
    switch (op.kind) {
      case OpKind::constant:
        return write_constant(t_->objects[static_cast<size_t>(op.object)], v), true;
      case OpKind::jitted_func:
        if (in(op, 0).kind == Operand::kItself) values_[v].kind = Operand::kFunction;
        return true;
      case OpKind::guard_function:  // (the caller has looked whether the function is what it was)
        return in(op, 0).kind == Operand::kFunction;
      case OpKind::guard_type:
        return is_of_type(in(op, 0), t_->objects[static_cast<size_t>(op.object)]);
      case OpKind::guard_true:
      case OpKind::guard_false:
        return write_branch(op, v);
      case OpKind::enter:
        return ++depth_, true;
      case OpKind::leave_frame:
        return --depth_, true;
      case OpKind::guard_world:
      case OpKind::release:
        return true;
      case OpKind::compare:
        return write_compare(op, v);
      case OpKind::truth:
      case OpKind::not_:
        return write_truth(op, v);
      case OpKind::unary:
        return write_unary(op, v);
      case OpKind::binary:
      case OpKind::inplace:
        return write_binary(op, v);
      case OpKind::call_tree:
        return write_call(op, v);
      case OpKind::return_:
        return write_return(op), false;
      default:
        return false;
    }
  }

  static bool is_of_type(const Operand& a, const Known& type) { return a.number() ? type.names == a.rep : a.type && a.type == type.type; }

  void write_constant(const Known& known, ValueId v) {
    if (known.itself) values_[v].kind = Operand::kItself;
    if (known.rep != Rep::kNone) values_[v] = {Operand::kConstant, known.rep, -1, known.bits};
  }

  // ---- branches

  bool write_compare(const Op& op, ValueId v) {
    const Operand a = in(op, 0), b = in(op, 1);
    if (!a.number() || !b.number()) return false;
    if (a.whole() && b.whole()) {
      load(rax, a);
      load(rcx, b);
      cmp(rax, rcx);
      switch (op.imm) {
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
    } else {
      if (a.rep != Rep::kFloat || b.rep != Rep::kFloat) return false;  // an int is compared exactly
      const bool swapped = op.imm == kLess || op.imm == kLessEqual;
      load_double(xmm0, swapped ? b : a);
      load_double(xmm1, swapped ? a : b);
      ucomisd(xmm0, xmm1);
      switch (op.imm) {  // of a NaN nothing but != holds
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
    store_truth(v);
    return true;
  }

  bool write_truth(const Op& op, ValueId v) {
    const Operand a = in(op, 0);
    if (!a.number()) return false;
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
    if (op.kind == OpKind::not_) xor_(al, 1);
    store_truth(v);
    return true;
  }

  // al, whose zero flag a branch right behind it may use.
  void store_truth(ValueId v) {
    movzx(eax, al);
    values_[v] = store(Rep::kBool, rax);
    test(eax, eax);
    flags_of_ = v;
  }

  bool write_branch(const Op& op, ValueId v) {
    const ValueId on = t_->trace->inputs_of(op)[0];
    const Operand a = values_[on];
    if (!a.whole()) return false;
    if (std::exchange(flags_of_, kNull) != on) {
      load(rax, a);
      test(rax, rax);
    }
    const bool holds = op.kind == OpKind::guard_true;
    const auto side = t_->sides.find(v);
    const std::optional<Pending> next = side != t_->sides.end() ? follow(op, side->second) : std::nullopt;
    if (!next) return holds ? jz(give_up_, T_NEAR) : jnz(give_up_, T_NEAR), true;
    holds ? jz(next->label, T_NEAR) : jnz(next->label, T_NEAR);
    pending_.push_back(*next);
    return true;
  }

  // The side trace behind an exit: its parameters are what the exit's slots hold.
  std::optional<Pending> follow(const Op& left, int32_t number) {
    const Trace& side = *(*traces_)[static_cast<size_t>(number)].trace;
    const std::vector<ValueId> outer = slots_of(t_->trace->snapshot(left.snapshot)), inner = slots_of(side.entry);
    if (outer.size() != inner.size()) return {};
    Pending made{number, std::vector<Operand>(static_cast<size_t>(side.n_params)), slots_, Label()};
    for (size_t i = 0; i < inner.size(); ++i)
      if (inner[i] != kNull && inner[i] < side.n_params && outer[i] != kNull) made.params[inner[i]] = values_[outer[i]];
    return made;
  }

  // ---- operators

  bool write_unary(const Op& op, ValueId v) {
    const Operand a = in(op, 0);
    if (!a.number() || a.rep == Rep::kBool) return false;
    const auto which = static_cast<UnaryOp>(op.imm);
    if (which == UnaryOp::positive) return values_[v] = a, true;
    load(rax, a);
    if (a.rep == Rep::kFloat) {
      if (which != UnaryOp::negative) return false;
      btc(rax, 63);
      return values_[v] = store(Rep::kFloat, rax), true;
    }
    if (which == UnaryOp::invert) {
      not_(rax);
    } else if (which == UnaryOp::negative) {
      neg(rax);
      jo(give_up_, T_NEAR);
    } else {
      return false;
    }
    return values_[v] = store(Rep::kInt, rax), true;
  }

  bool write_binary(const Op& op, ValueId v) {
    const Operand a = in(op, 0), b = in(op, 1);
    if (!a.number() || !b.number()) return false;
    const auto which = static_cast<BinaryOp>(op.imm);
    if (a.rep == Rep::kFloat || b.rep == Rep::kFloat) return write_of_floats(which, a, b, v);
    if (which == BinaryOp::true_divide) return false;
    if (a.rep == Rep::kBool && b.rep == Rep::kBool) return false;  // & | ^ of them are truth values
    load(rax, a);
    load(rcx, b);
    return write_of_ints(which, v);
  }

  bool write_of_floats(BinaryOp which, const Operand& a, const Operand& b, ValueId v) {
    load_double(xmm0, a);
    load_double(xmm1, b);
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
        return false;
    }
    return values_[v] = store(xmm0), true;
  }

  // rax and rcx.
  bool write_of_ints(BinaryOp which, ValueId v) {
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
        return values_[v] = store(Rep::kInt, rax), true;
      case BinaryOp::or_:
        or_(rax, rcx);
        return values_[v] = store(Rep::kInt, rax), true;
      case BinaryOp::xor_:
        xor_(rax, rcx);
        return values_[v] = store(Rep::kInt, rax), true;
      case BinaryOp::floor_divide:
      case BinaryOp::remainder:
        write_division(which == BinaryOp::remainder);
        return values_[v] = store(Rep::kInt, rax), true;
      case BinaryOp::rshift:
        cmp(rcx, 63);
        ja(give_up_, T_NEAR);  // or negative, which raises
        sar(rax, cl);
        return values_[v] = store(Rep::kInt, rax), true;
      case BinaryOp::lshift:
        cmp(rcx, 62);
        ja(give_up_, T_NEAR);
        mov(rdx, rax);
        shl(rax, cl);
        mov(rbx, rax);
        sar(rbx, cl);
        cmp(rbx, rdx);
        jne(give_up_, T_NEAR);
        return values_[v] = store(Rep::kInt, rax), true;
      default:
        return false;
    }
    if (!planted(Fault::native_overflow)) jo(give_up_, T_NEAR);
    return values_[v] = store(Rep::kInt, rax), true;
  }

  // Python's: the remainder has the divisor's sign.
  void write_division(bool remainder) {
    Label same;
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

  // ---- calls

  bool write_call(const Op& op, ValueId v) {
    if (in(op, 0).kind != Operand::kItself || op.n_inputs != static_cast<int32_t>(signature_.params.size()) + 1) return false;
    for (int32_t k = 1; k < op.n_inputs; ++k) {
      const Operand a = in(op, k);
      const Signature::Param param = signature_.params[static_cast<size_t>(k) - 1];
      if ((a.kind != Operand::kSlot && a.kind != Operand::kConstant) || a.rep != param.rep || a.type != param.type) return false;
    }
    for (int32_t k = 1; k < op.n_inputs; ++k) load(argument(static_cast<size_t>(k) - 1), in(op, k));
    sub(context(offsetof(Context, frames)), static_cast<int>(depth_));
    js(give_up_, T_NEAR);
    call(body_);
    add(context(offsetof(Context, frames)), static_cast<int>(depth_));
    values_[v] = store(signature_.result, rax);
    ++calls_;
    return true;
  }

  void write_return(const Op& op) {
    const Operand a = in(op, 0);
    if (!a.number() || a.rep != signature_.result) return jmp(give_up_, T_NEAR);
    load(rax, a);
    add(rsp, frame_);
    ret();
    ++returns_;
    returns_arguments_ |= a.kind == Operand::kSlot && a.slot < static_cast<int32_t>(signature_.params.size());
  }

  const std::vector<NumericTrace>* traces_;  // while it is written
  const Signature signature_;
  int32_t frame_ = 0;
  Label body_, give_up_;
  std::vector<Pending> pending_;
  int (*entry_)(Context*) = nullptr;
  int calls_ = 0, returns_ = 0;
  bool returns_arguments_ = false;
  int32_t slots_ = 0, most_slots_ = 0;
  // of the trace that is being written
  const NumericTrace* t_ = nullptr;
  std::vector<Operand> values_;
  int64_t depth_ = 1;  // frames
  ValueId flags_of_ = kNull;
};

}  // namespace

std::unique_ptr<const NumericRecursion> NumericRecursion::make(const std::vector<NumericTrace>& traces, const Signature& signature) {
  if (traces.empty() || signature.params.size() > kMostParams || signature.result == Rep::kNone) return nullptr;
  for (const auto& [rep, type] : signature.params)
    if (rep != Rep::kNone && rep != Rep::kInt && rep != Rep::kFloat && rep != Rep::kBool) return nullptr;
  try {
    const Code sized(traces, signature, 0);
    if (sized.useful()) return std::make_unique<Code>(traces, signature, sized.slots());
  } catch (const std::exception&) {  // no memory, or none for code
  }
  return nullptr;
}

}  // namespace dalsegno::recursion
