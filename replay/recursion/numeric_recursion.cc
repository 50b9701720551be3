#include "replay/recursion/numeric_recursion.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "replay/recursion/operators.h"
#include "replay/typed/typed_trace.h"

namespace dalsegno::recursion {
namespace {

using typed::slots_of;
using Xbyak::Label;
using Xbyak::Reg64;

// What the code is called with, and keeps while it runs: r12 points to it.
struct Context {
  const int64_t* arguments;
  int64_t stack;  // the stack pointer to give up with
  int64_t frames, calls, result;
};

// A trace that is to be written, and what its parameters are.
struct Pending {
  int32_t trace;
  std::vector<Operand> params;
  int32_t slots;  // in use
  Label label;
  Pending& operator=(const Pending&) = delete;
};

class Code final : public NumericRecursion, private Operators {
 public:
  // `slots`: that it needs; 0: that is to be found out.
  Code(const std::vector<NumericTrace>& traces, const Signature& signature, int32_t slots) : traces_(&traces), signature_(signature) {
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
  bool may_be_constant(int64_t result) const override {
    return std::find(constants_.begin(), constants_.end(), result) != constants_.end();
  }

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
    if (!signature_.own_cells.empty()) given_ = params[0];
    pending_.push_back({0, params, slots_, Label()});
    for (size_t k = 0; k < pending_.size(); ++k) {
      L(pending_[k].label);
      slots_ = pending_[k].slots;  // those that other ways use are free
      write_trace((*traces_)[static_cast<size_t>(pending_[k].trace)], pending_[k].params);
    }
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
        return in(op, 0).kind == Operand::kFunction || (is_given(in(op, 0)) && t_->objects[static_cast<size_t>(op.object)].code);
      case OpKind::func_closure:
        if (is_given(in(op, 0)) && has_itself(op.imm)) values_[v].kind = Operand::kOwnCell;
        return true;
      case OpKind::cell_get:
        if (in(op, 0).kind == Operand::kOwnCell) values_[v] = given_;
        return true;
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
        return give(v, compare(op.imm, in(op, 0), in(op, 1)), true);
      case OpKind::truth:
      case OpKind::not_:
        return give(v, truth(in(op, 0), op.kind == OpKind::not_), true);
      case OpKind::unary:
        return give(v, unary(static_cast<UnaryOp>(op.imm), in(op, 0)), false);
      case OpKind::binary:
      case OpKind::inplace:
        return give(v, binary(static_cast<BinaryOp>(op.imm), in(op, 0), in(op, 1)), false);
      case OpKind::call_tree:
        return write_call(op, v);
      case OpKind::return_:
        return write_return(op), false;
      default:
        return false;
    }
  }

  // Is it the function that is called, which is handed on to all that it calls?
  bool is_given(const Operand& a) const { return given_.kind == Operand::kSlot && a.kind == Operand::kSlot && a.slot == given_.slot; }
  bool has_itself(int32_t cell) const {
    return std::find(signature_.own_cells.begin(), signature_.own_cells.end(), cell) != signature_.own_cells.end();
  }

  static bool is_of_type(const Operand& a, const Known& type) { return a.number() ? type.names == a.rep : a.type && a.type == type.type; }

  void write_constant(const Known& known, ValueId v) {
    if (known.itself) values_[v].kind = Operand::kItself;
    if (known.rep != Rep::kNone) values_[v] = {Operand::kConstant, known.rep, -1, known.bits};
  }

  // `flags`: the zero flag says whether it is true.
  bool give(ValueId v, const std::optional<Operand>& result, bool flags) {
    if (!result) return false;
    values_[v] = *result;
    flags_of_ = flags ? v : kNull;
    return true;
  }

  // ---- branches

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

  // ---- calls

  bool write_call(const Op& op, ValueId v) {
    if (in(op, 0).kind != Operand::kItself || op.n_inputs != static_cast<int32_t>(signature_.params.size()) + 1) return false;
    for (int32_t k = 1; k < op.n_inputs; ++k) {
      const Operand a = in(op, k);
      const Signature::Param param = signature_.params[static_cast<size_t>(k) - 1];
      if ((a.kind != Operand::kSlot && a.kind != Operand::kConstant) || a.rep != param.rep || a.type != param.type) return false;
    }
    for (int32_t k = 1; k < op.n_inputs; ++k) load(argument(static_cast<size_t>(k) - 1), in(op, k)), note_constant(in(op, k));
    sub(context(offsetof(Context, frames)), static_cast<int>(depth_));
    js(give_up_, T_NEAR);
    flags_of_ = kNull;
    call(body_);
    add(context(offsetof(Context, frames)), static_cast<int>(depth_));
    values_[v] = store(signature_.result, rax);
    ++calls_;
    return true;
  }

  // What is, or may be, given back.
  void note_constant(const Operand& a) {
    if (a.kind == Operand::kConstant) constants_.push_back(a.bits);
  }

  void write_return(const Op& op) {
    const Operand a = in(op, 0);
    if (!a.number() || a.rep != signature_.result) return jmp(give_up_, T_NEAR);
    load(rax, a);
    note_constant(a);
    add(rsp, frame_);
    ret();
    ++returns_;
    returns_arguments_ |= a.kind == Operand::kSlot && a.slot < static_cast<int32_t>(signature_.params.size());
  }

  const std::vector<NumericTrace>* traces_;  // while it is written
  const Signature signature_;
  int32_t frame_ = 0;
  Label body_;
  std::vector<Pending> pending_;
  int (*entry_)(Context*) = nullptr;
  int calls_ = 0, returns_ = 0;
  bool returns_arguments_ = false;
  Operand given_;  // the first parameter, if that is the function
  std::vector<int64_t> constants_;
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
