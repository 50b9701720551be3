// Bytecode of generator expressions and small functions -> FoldCode. The interpreter's stack is followed by the slots its entries stand in;
// where ways meet, and behind every operation, the entry at depth d stands in the d-th temporary.
#include <Python.h>

#include <algorithm>
#include <map>
#include <optional>

#include "replay/machine/fold.h"
#include "replay/machine/fold_stack.h"
#include "trace/recorder/code_extra.h"
#include "trace/recorder/instructions.h"
#include "trace/trace.h"

namespace dalsegno::replay {
namespace {

using folds::Entry;
using folds::Stack;
using recorder::CodeInfo;
using recorder::Instr;
using recorder::Opcode;

class Translator : folds::OperandStack {
 public:
  Translator(PyCodeObject* code, bool generator, FoldCode* out)
      : OperandStack(code, out), generator_(generator), info_(CodeInfo::of(code)) {}

  bool run() {
    out_->variables = code_->co_nlocalsplus;
    out_->first_cell = code_->co_nlocalsplus - code_->co_nfreevars;
    temporaries_ = out_->variables;
    out_->slots = temporaries_ + code_->co_stacksize;
    if (code_->co_ncellvars > 0 || out_->slots > FoldCode::kMostSlots) return false;
    int offset = info_->prefix().empty() ? 0 : info_->prefix().back().next;
    for (const Instr* i = info_->at(offset); i; i = info_->at(i->next)) {
      if (!arrive(*i)) return false;
      if (!reached_) continue;
      if (!translate(*i)) return false;
    }
    return link();
  }

 private:
  // ---- ways ----------------------------------------------------------------------------------------------------------------------------
  bool settle() {
    for (size_t d = 0; d < stack_.size(); ++d) {
      if (stack_[d].kind == Entry::kIterator) continue;
      if (!make_tuple(d)) return false;
      if (stack_[d].kind != Entry::kSlot) return false;
      const int16_t to = temporary(d);
      if (stack_[d].slot == to) continue;
      if (is_temporary(stack_[d].slot)) return false;
      out_->instrs.push_back({FoldOp::kMove, 0, to, stack_[d].slot});
      stack_[d].slot = to;
    }
    return true;
  }

  // Before the instruction: does another way come here?
  bool arrive(const Instr& i) {
    const auto known = stacks_.find(i.start);
    if (known == stacks_.end() && !(reached_ && info_->is_header(i.start))) return true;
    if (reached_ && !settle()) return false;
    if (known != stacks_.end()) {
      if (reached_ && known->second != stack_) return false;
      stack_ = known->second;
    }
    reached_ = true;
    stacks_[i.start] = stack_;
    starts_[i.start] = here();
    last_label_ = here();
    return true;
  }

  int32_t here() const { return static_cast<int32_t>(out_->instrs.size()); }

  // The last operation goes there; the stack is as it is to be there, and settled.
  bool goes_to(int offset, bool back) {
    const auto [at, added] = stacks_.try_emplace(offset, stack_);
    if ((back && added) || at->second != stack_) return false;
    jumps_.emplace_back(here() - 1, offset);
    return true;
  }

  bool link() {
    for (const auto& [from, offset] : jumps_) {
      const auto to = starts_.find(offset);
      if (to == starts_.end()) return false;
      out_->instrs[from].target = to->second - from;
    }
    for (FoldInstr& instr : out_->instrs) instr.fn = fold_function(instr);
    return !out_->instrs.empty() && out_->slots <= FoldCode::kMostSlots;
  }

  bool jump(const Instr& i, FoldOp op) {
    const bool back = i.target < i.next;
    int16_t condition = -1;
    if (op != FoldOp::kJump && !pop(&condition)) return false;
    if (!settle()) return false;
    out_->instrs.push_back({op, 0, -1, condition});
    if (op == FoldOp::kJump) reached_ = false;
    return goes_to(i.target, back);
  }

  // `and`, `or`: what is on top stays there where it jumps.
  bool jump_or_pop(const Instr& i, FoldOp op) {
    if (stack_.empty() || stack_.back().kind != Entry::kSlot || !settle()) return false;
    out_->instrs.push_back({op, 0, -1, stack_.back().slot});
    if (!goes_to(i.target, false)) return false;
    return stack_.pop_back(), true;
  }

  // ---- variables ---------------------------------------------------------------------------------------------------------------------
  // Where the operation has that slot as what it gives.
  int16_t* result_in(FoldInstr* of, int16_t slot) {
    if (of->op != FoldOp::kUnpack) return of->dst == slot ? &of->dst : nullptr;
    int16_t* given = &out_->list[static_cast<size_t>(of->b)];
    int16_t* found = std::find(given, given + of->c, slot);
    return found == given + of->c ? nullptr : found;
  }

  bool store(int local) {
    int16_t from;
    if (!pop(&from)) return false;
    const auto held = [&](const Entry& e) {
      if (e.kind == Entry::kPair && e.second == local) return true;
      return e.is_index() || (e.slot == local && e.kind != Entry::kIterator && e.kind != Entry::kNull);
    };
    if (std::any_of(stack_.begin(), stack_.end(), held)) return false;
    if (int16_t* dst = here() > last_label_ && from >= temporaries_ ? result_in(&out_->instrs.back(), from) : nullptr)
      *dst = static_cast<int16_t>(local);
    else
      out_->instrs.push_back({FoldOp::kMove, 0, static_cast<int16_t>(local), from});
    return true;
  }

  bool load(int local) {
    if (generator_ && local == 0) return stack_.push_back({Entry::kIterator, 0}), true;
    return push(local);
  }

  // ---- what the instructions do --------------------------------------------------------------------------------------------------------
  bool operation(FoldOp op, uint8_t sub, int operands, bool in_place = false) {
    FoldInstr made{op, sub};
    made.c = in_place;
    if (operands > 1 && !pop(&made.b)) return false;
    return pop(&made.a) && push_result(made);
  }

  bool item() {
    if (!stack_.empty() && stack_.back().is_index()) {
      FoldInstr made{FoldOp::kSlice};
      made.b = stack_.back().slot, made.c = stack_.back().second;
      stack_.pop_back();
      return pop(&made.a) && push_result(made);
    }
    if (!stack_.empty() && stack_.back().kind == Entry::kPair) {
      FoldInstr made{FoldOp::kPairItem};
      made.b = stack_.back().slot, made.c = stack_.back().second;
      stack_.pop_back();
      return pop(&made.a) && push_result(made);
    }
    return operation(FoldOp::kItem, 0, 2);
  }

  static constexpr int kMostUnpacked = 8;
  // The first item is on top then.
  bool unpack(const Instr& i) {
    FoldInstr made{FoldOp::kUnpack};
    if (i.arg < 2 || i.arg > kMostUnpacked || !pop(&made.a)) return false;
    FoldInstr& before = out_->instrs.back();
    if (i.arg <= kMostInRow && here() > last_label_ && before.op == FoldOp::kNext && before.dst == made.a)
      before.c = static_cast<int16_t>(i.arg);
    made.b = static_cast<int16_t>(out_->list.size()), made.c = static_cast<int16_t>(i.arg);
    out_->list.resize(out_->list.size() + static_cast<size_t>(i.arg));
    for (int k = i.arg; k-- > 0;) push(out_->list[static_cast<size_t>(made.b + k)] = temporary(stack_.size()));
    out_->instrs.push_back(made);
    return true;
  }

  bool comparison(int op) {
    const size_t n = stack_.size();
    const auto is_pair = [&](size_t k) { return k <= n && stack_[n - k].kind == Entry::kPair; };
    if (!is_pair(1) && !is_pair(2)) return operation(FoldOp::kCompare, static_cast<uint8_t>(op), 2);
    const bool numbers = (op == Py_EQ || op == Py_NE) && n > 1 && (is_pair(1) || is_constant_pair(stack_[n - 1])) &&
                         (is_pair(2) || is_constant_pair(stack_[n - 2]));
    if (!numbers) return operation(FoldOp::kCompare, static_cast<uint8_t>(op), 2);
    FoldInstr made{FoldOp::kPairs, static_cast<uint8_t>(op)};
    made.b = static_cast<int16_t>(out_->list.size());
    return pop_pair() && pop_pair() && push_result(made);
  }

  static bool names_axis(PyObject* names) {
    return PyTuple_GET_SIZE(names) == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "axis") == 0;
  }

  bool attribute(const Instr& i) {
    const bool method = recorder::load_attr_is_method(i.op, i.arg);
    FoldInstr made{method ? FoldOp::kMethod : FoldOp::kAttr};
    if (!pop(&made.a)) return false;
    made.b = input(false, PyTuple_GET_ITEM(code_->co_names, recorder::load_attr_name(i.op, i.arg)));
    made.target = static_cast<int32_t>(out_->attributes.size());
    out_->attributes.emplace_back();
    if (!method) return push_result(made);
    const Entry self{Entry::kNull, made.c = static_cast<int16_t>(out_->slots++)};
    if (!recorder::kHas313Calls) stack_.push_back(self);
    push_result(made);
    if (recorder::kHas313Calls) stack_.push_back(self);
    return true;
  }

  bool call(const Instr& i) {
    const size_t n = static_cast<size_t>(i.arg);
    if (n > FoldCode::kMostArguments || stack_.size() < n + 2) return false;
    if (i.kwnames >= 0 && !names_axis(PyTuple_GET_ITEM(code_->co_consts, i.kwnames))) return false;
    const bool pairs = n == 3 && stack_[stack_.size() - 2].kind == Entry::kPair && is_constant_pair(stack_.back());
    if (!pairs && !make_tuples(n)) return false;
    FoldInstr made{FoldOp::kCall, static_cast<uint8_t>(i.kwnames >= 0)};
    made.b = static_cast<int16_t>(out_->list.size()), made.c = static_cast<int16_t>(n);
    if (!(pairs ? pop_pairs_of_call(&made) : pop_arguments(n))) return false;
    const size_t null = recorder::kHas313Calls ? stack_.size() - 1 : stack_.size() - 2;
    const Entry callee = stack_[recorder::kHas313Calls ? stack_.size() - 2 : stack_.size() - 1];
    if (stack_[null].kind != Entry::kNull || callee.kind != Entry::kSlot) return false;
    made.a = callee.slot;
    made.target = stack_[null].slot;
    stack_.resize(stack_.size() - 2);
    return push_result(made);
  }

  // The last n entries one behind the other.
  bool texts(int count) {
    const auto n = static_cast<size_t>(count);
    FoldInstr made{FoldOp::kTexts};
    made.b = static_cast<int16_t>(out_->list.size()), made.c = static_cast<int16_t>(count);
    return stack_.size() >= n && pop_arguments(n) && push_result(made);
  }

  // FORMAT_VALUE: how it is converted before, and whether the format is on top.
  bool format(int arg) {
    constexpr int kConversion = 3, kSpec = 4;
    FoldInstr made{FoldOp::kFormat};
    if ((arg & kSpec) && !pop_part(&made.b)) return false;
    if ((arg & kConversion) && !operation(FoldOp::kConvert, static_cast<uint8_t>(arg & kConversion), 1)) return false;
    return pop(&made.a) && push_result(made);
  }

  bool iterate() {
    int16_t of;
    if (stack_.empty()) return false;
    if (stack_.back().kind == Entry::kIterator) return true;  // (3.14 asks once more)
    if (!pop(&of) || out_->iterators == FoldCode::kMostIterators) return false;
    out_->instrs.push_back({FoldOp::kIterate, static_cast<uint8_t>(out_->iterators), -1, of});
    return stack_.push_back({Entry::kIterator, static_cast<int16_t>(out_->iterators++)}), true;
  }

  bool next(const Instr& i) {
    if (stack_.empty() || stack_.back().kind != Entry::kIterator || !settle()) return false;
    const Entry iterator = stack_.back();
    out_->instrs.push_back({FoldOp::kNext, static_cast<uint8_t>(iterator.slot), temporary(stack_.size())});
    stack_.pop_back();
    if (!goes_to(recorder::for_iter_exhausted(i), false)) return false;
    stack_.push_back(iterator);
    return push(temporary(stack_.size()));
  }

  bool yield() {
    FoldInstr made{FoldOp::kYield};
    if (!generator_ || !pop(&made.a)) return false;
    out_->instrs.push_back(made);
    return stack_.push_back({Entry::kYielded}), true;
  }

  bool ends(bool constant) {
    FoldInstr made{generator_ ? FoldOp::kEnd : FoldOp::kReturn};
    reached_ = false;
    if (!constant && !pop(&made.a)) return false;
    return out_->instrs.push_back(made), true;
  }

  bool global(const Instr& i) {
    const bool null = recorder::load_global_pushes_null(i.arg);
    if (null && !recorder::kHas313Calls) stack_.push_back({Entry::kNull});
    push(input(true, PyTuple_GET_ITEM(code_->co_names, recorder::load_global_name(i.arg))));
    if (null && recorder::kHas313Calls) stack_.push_back({Entry::kNull});
    return true;
  }

  bool constant(int index) { return push(input(false, PyTuple_GET_ITEM(code_->co_consts, index))); }

  bool small(int value) {
    PyObject* number = PyLong_FromLong(value);  // one of those that the interpreter keeps
    Py_XDECREF(number);
    return number && push(input(false, number));
  }

  bool translate(const Instr& i) {
    switch (i.op) {
      case Opcode::NOP:
      case Opcode::RESUME:
      case Opcode::CACHE:
      case Opcode::TO_BOOL:  // of what a jump or `not` takes
        return true;
      case Opcode::END_FOR:  // (for_iter_exhausted() passes them over)
      case Opcode::POP_ITER:
        return false;
      case Opcode::POP_TOP:
        if (stack_.empty() || (stack_.back().kind != Entry::kYielded && stack_.back().kind != Entry::kSlot)) return false;
        return stack_.pop_back(), true;
      case Opcode::PUSH_NULL:
        return stack_.push_back({Entry::kNull}), true;
      case Opcode::LOAD_CONST:
        return constant(i.arg);
      case Opcode::LOAD_SMALL_INT:
        return small(i.arg);
      case Opcode::LOAD_FAST:
      case Opcode::LOAD_FAST_CHECK:
        return load(i.arg);
      case Opcode::LOAD_DEREF:
        return i.arg >= out_->first_cell && push(i.arg);
      case Opcode::LOAD_FAST_LOAD_FAST:
        return load(i.arg >> 4) && load(i.arg & 15);
      case Opcode::STORE_FAST:
        return store(i.arg);
      case Opcode::STORE_FAST_LOAD_FAST:
        return store(i.arg >> 4) && load(i.arg & 15);
      case Opcode::STORE_FAST_STORE_FAST:
        return store(i.arg >> 4) && store(i.arg & 15);
      case Opcode::LOAD_GLOBAL:
        return global(i);
      case Opcode::LOAD_ATTR:
      case Opcode::LOAD_METHOD:
        return attribute(i);
      case Opcode::BINARY_OP:  // (in place, it is the same of numbers)
        return i.arg < 2 * recorder::kInplaceFrom &&
               operation(FoldOp::kBinary, static_cast<uint8_t>(i.arg % recorder::kInplaceFrom), 2, i.arg >= recorder::kInplaceFrom);
      case Opcode::BINARY_SUBSCR:
        return item();
      case Opcode::BINARY_SLICE:
        return slice(2) && item();
      case Opcode::BUILD_SLICE:
        return slice(i.arg);
      case Opcode::BUILD_TUPLE:
        return tuple(i.arg);
      case Opcode::UNPACK_SEQUENCE:
        return unpack(i);
      case Opcode::COMPARE_OP:
        return comparison(recorder::compare_op(i.arg));
      case Opcode::CONTAINS_OP:
        return operation(FoldOp::kContains, static_cast<uint8_t>(i.arg), 2);
      case Opcode::IS_OP:
        return operation(FoldOp::kIs, static_cast<uint8_t>(i.arg), 2);
      case Opcode::UNARY_NEGATIVE:
        return operation(FoldOp::kNegate, 0, 1);
      case Opcode::UNARY_NOT:
        return operation(FoldOp::kNot, 0, 1);
      case Opcode::FORMAT_VALUE:
        return format(i.arg);
      case Opcode::FORMAT_SIMPLE:
        return format(0);
      case Opcode::FORMAT_WITH_SPEC:
        return operation(FoldOp::kFormat, 0, 2);
      case Opcode::CONVERT_VALUE:
        return operation(FoldOp::kConvert, static_cast<uint8_t>(i.arg), 1);
      case Opcode::BUILD_STRING:
        return texts(i.arg);
      case Opcode::CALL:
        return call(i);
      case Opcode::GET_ITER:
        return iterate();
      case Opcode::FOR_ITER:
        return next(i);
      case Opcode::YIELD_VALUE:
        return yield();
      case Opcode::JUMP_FORWARD:
      case Opcode::JUMP_BACKWARD:
        return jump(i, FoldOp::kJump);
      case Opcode::POP_JUMP_IF_TRUE:
        return jump(i, FoldOp::kJumpTrue);
      case Opcode::POP_JUMP_IF_FALSE:
        return jump(i, FoldOp::kJumpFalse);
      case Opcode::JUMP_IF_TRUE_OR_POP:
        return jump_or_pop(i, FoldOp::kJumpTrue);
      case Opcode::JUMP_IF_FALSE_OR_POP:
        return jump_or_pop(i, FoldOp::kJumpFalse);
      case Opcode::COPY:
        return i.arg == 1 && !stack_.empty() && stack_.back().kind == Entry::kSlot && push(stack_.back().slot);
      case Opcode::RETURN_VALUE:
        return ends(false);
      case Opcode::RETURN_CONST:
        return (generator_ || constant(i.arg)) && ends(generator_);
      default:
        return false;
    }
  }

  bool generator_;
  std::shared_ptr<const CodeInfo> info_;
  bool reached_ = true;
  int32_t last_label_ = 0;  // what follows it is reached from before it alone
  std::map<int, Stack> stacks_;
  std::map<int, int32_t> starts_;
  std::vector<std::pair<int32_t, int>> jumps_;
};

// A generator expression takes nothing but the iterator over what it goes through.
bool fits(PyCodeObject* code, bool generator) {
  constexpr int kOther = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE | CO_VARARGS | CO_VARKEYWORDS;
  if ((code->co_flags & kOther) || code->co_kwonlyargcount || ((code->co_flags & CO_GENERATOR) != 0) != generator) return false;
  if (!generator) return !CodeInfo::of(code)->loops();
  return code->co_argcount == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, 0), ".0") == 0;
}

}  // namespace

FoldCode* fold_code(PyCodeObject* code, bool generator) {
  static const recorder::CodeExtra<FoldCode> kKept;
  FoldCode* known = kKept.get(code);
  if (!known) {
    auto made = std::make_unique<FoldCode>();
    if (!fits(code, generator) || !Translator(code, generator, made.get()).run()) made->instrs.clear();
    if (!kKept.keep(code, made.get())) return nullptr;
    known = made.release();
  }
  return known->instrs.empty() ? nullptr : known;
}

}  // namespace dalsegno::replay
