// Emission: one handler a kind of op.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "numpy/elide.h"
#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"
#include "replay/typed/modular.h"
#include "trace/fault.h"
#include "trace/kind_table.h"
#include "trace/recorder/deaths.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {

// ---- helpers -------------------------------------------------------------------------------------------------------------------

const std::vector<int32_t>& Lowering::list(std::vector<int32_t> regs) { return p_->lists.emplace_back(std::move(regs)); }

Step& Lowering::push(Step step) { return p_->steps.emplace_back(step); }

int32_t Lowering::exit_record(ValueId i, int32_t which) {
  auto [it, fresh] = exit_index_.try_emplace(int64_t{i} * 2 + which, static_cast<int32_t>(p_->exit_records.size()));
  if (fresh) {
    Exit exit;
    exit.op = i;
    exit.which = which;
    p_->exit_records.push_back(exit);
    p_->exit_overflow.push_back(false);
    p_->exit_refused.push_back(false);
  }
  return it->second;
}

int32_t Lowering::plan(ValueId i, int32_t which) {
  int32_t snapshot = which == 0 ? op(i).snapshot : op(i).exit_snapshot;
  if (snapshot < 0) return -1;
  if (last_plan_.op == i && last_plan_.which == which && last_plan_.version == version_) return last_plan_.plan;
  ExitPlan made;
  made.exit = exit_record(i, which);
  made.op = i;
  made.snapshot = snapshot;
  made.live_at = p_->live_log.now();
  made.pending = waiting_;
  for (const auto& [v, what] : virtuals_) made.virtuals.push_back(what);
  made.at = static_cast<int32_t>(p_->steps.size());
  p_->plans.push_back(std::move(made));
  last_plan_ = {i, which, version_, static_cast<int32_t>(p_->plans.size()) - 1};
  return last_plan_.plan;
}

Step Lowering::base(const Op& o, ValueId i) {
  Step s;
  s.exit = plan(i, 0);
  s.imm = o.imm;
  s.pure = is_pure(o.effects);
  s.linked = shows_frames(o.effects);
  s.warns = s.linked && (o.effects & kRunsCode) == 0;
  if (s.linked && !s.warns) s.plain = plain_of(o.kind);
  if (s.linked && !s.warns) s.in_c = in_c_of(o.kind);
  const bool calls_known = o.kind == OpKind::call && is_constant(in(o)[0]);
  if (s.linked) s.silent = silent_of(o.kind, calls_known ? object(op(in(o)[0]).object) : nullptr);
  s.link = s.linked || (o.effects & kDropsReferences) ? o.snapshot : -1;
  if (o.kind == OpKind::iter_next) {
    const std::vector<ValueId> held = o.exit_snapshot < 0 ? std::vector<ValueId>() : slots_of(t().snapshot(o.exit_snapshot));
    s.dies = o.snapshot;
    s.lets_go = expects_item(o.imm) && p_->locs[in(o)[0]].owned && std::find(held.begin(), held.end(), in(o)[0]) == held.end();
  }
  s.object = object(o.object);
  s.object2 = object(o.object2);
  s.name = o.name < 0 ? nullptr : p_->live->names[o.name];
  return s;
}

void Lowering::defined(ValueId v) {
  const Loc& l = loc(v);
  if (!l.owned || l.obj < 0) return;
  p_->live_log.begins(l.obj);
  version_++;
}

int32_t Lowering::boxed(ValueId v, const Op&, ValueId i) {
  const Loc& l = loc(v);
  if (!values_[v].born_raw && !l.may_lack_object()) return l.obj;
  Step s;
  s.fn = box_step(l.rep);
  s.does = native::Do::kBox;
  s.rep = l.rep;
  s.dst = l.obj;
  s.a = l.raw;
  s.exit = plan(i, 0);
  push(s);
  return l.obj;
}

int32_t Lowering::raw(ValueId v, Rep rep, const Op&, ValueId i) {
  const Loc& from = loc(v);
  if (typed::same_bits(from.rep, rep)) return from.raw;
  int32_t& reg = values_[v].converted[static_cast<size_t>(rep)];
  if (reg >= 0) return reg;
  reg = new_reg();
  Reg known, converted;
  const bool asks_errstate = from.rep == Rep::kNpFloat64 && rep == Rep::kNpFloat32;  // (what that says when it runs)
  if (is_constant(v) && !asks_errstate && unbox(from.rep, object(op(v).object), &known) && convert(from.rep, rep, known, &converted)) {
    p_->consts.push_back({reg, converted});
    return reg;
  }
  Step s;
  s.fn = convert_step(from.rep, rep);
  s.does = native::Do::kConvert;
  s.rep = from.rep;
  s.c = static_cast<int32_t>(from.rep);
  s.imm = static_cast<int32_t>(rep);
  s.dst = reg;
  s.a = from.raw;
  s.exit = plan(i, 0);
  push(s);
  return reg;
}

// After code nothing is known of: arrays may have another shape, objects another class.
void Lowering::forget_facts() {
  for (ValueId v : learned_) {
    values_[v].facts = kNoFacts;
    if (may_change_class(values_[v].type)) values_[v].type = nullptr;
  }
  learned_.clear();
}

void Lowering::done(const Op& o, uint32_t effects) {
  if (effects & kRunsCode) forget_facts();
  if (disturbs(effects) && o.kind != OpKind::release) world_proven_ = false;  // (release looks for itself)
}

// ---- python ops ----------------------------------------------------------------------------------------------------------------

bool Lowering::dies_at(ValueId v, ValueId i) const { return typed::dies_behind(t(), v, i); }

static bool is_builtin(PyObject* callee, const char* name) {
  if (!callee || !PyCFunction_Check(callee)) return false;
  auto* function = reinterpret_cast<PyCFunctionObject*>(callee);
  const char* module = function->m_self && PyModule_Check(function->m_self) ? PyModule_GetName(function->m_self) : nullptr;
  if (!module) PyErr_Clear();
  return module && std::strcmp(module, "builtins") == 0 && std::strcmp(function->m_ml->ml_name, name) == 0;
}

// A call of this builtin function with one argument.
bool Lowering::calls_builtin(const Op& o, const char* name) const {
  return o.kind == OpKind::call && o.n_inputs == 2 && o.object < 0 && is_constant(in(o)[0]) &&
         is_builtin(object(op(in(o)[0]).object), name);
}

// The operands that eager NumPy may compute the operator into, or abs().
int Lowering::elidable(const Op& o, ValueId i) const {
  if (planted(Fault::unelided)) return 0;
  if (o.kind == OpKind::unary || calls_builtin(o, "abs"))
    return numpy::elides_unary() && dies_at(in(o)[o.n_inputs - 1], i) ? numpy::kElideLeft : 0;
  if (o.kind != OpKind::binary || in(o)[0] == in(o)[1]) return 0;
  const int dying = (dies_at(in(o)[0], i) ? numpy::kElideLeft : 0) | (dies_at(in(o)[1], i) ? numpy::kElideRight : 0);
  return dying & numpy::elidable_operands(static_cast<BinaryOp>(o.imm));
}

void Lowering::elide(const Op& o, ValueId i, Step* s) const {
  if (calls_builtin(o, "sum")) s->exec = exec_sum;
  const int dying = elidable(o, i);
  if (dying == 0) return;
  if (o.kind == OpKind::call) s->exec = exec_abs_eliding;
  if (o.kind == OpKind::unary) s->exec = exec_unary_eliding;
  if (o.kind == OpKind::binary) s->exec = exec_binary_eliding, s->n = dying;
}

void Lowering::emit_python(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kPart) return;  // it has come with the others
  if (o.kind == OpKind::cell_set && planted(Fault::lost_cell_write)) return;
  push(python_step(o, i));
  if (op_has_result(o.kind)) defined(i);
  learn_array(o, i);
}

// `s + t` whose left operand dies at once: appended in place, as the interpreter does.
bool Lowering::appends_to_string(const Op& o, ValueId i) const {
  auto* str = reinterpret_cast<PyObject*>(&PyUnicode_Type);
  ValueId left = in(o)[0];
  if (!waiting_.empty() || static_cast<BinaryOp>(o.imm) != BinaryOp::add || values_[left].type != str || values_[in(o)[1]].type != str)
    return false;
  return p_->locs[left].owned && left != in(o)[1] && dies_at(left, i);
}

void Lowering::emit_operator(const Op& o, ValueId i) {
  const typed::OpForm& how = form(i);
  if (how.mode == Mode::kText) return emit_text(o, i);
  if (how.mode == Mode::kProduct) return emit_product(o, i);
  if (how.mode != Mode::kTyped) {
    bool append = o.kind != OpKind::compare && o.kind != OpKind::unary && appends_to_string(o, i);
    emit_python(o, i);
    if (append) p_->steps.back().exec = exec_append_string;
    return;
  }
  const auto masked = typed::is_masked(how) ? typed::masked_by(t(), typed_.known, o) : std::nullopt;
  int32_t a = raw(in(o)[masked ? masked->operand : 0], how.typed.operand, o, i);
  int32_t b = o.kind == OpKind::unary ? -1 : masked ? new_reg() : raw(in(o)[1], how.typed.operand, o, i);
  if (masked) {
    Reg mask{};
    mask.i = static_cast<int64_t>(masked->mask);
    p_->consts.push_back({b, mask});
  }
  const bool subtracts = o.kind == OpKind::binary && static_cast<BinaryOp>(o.imm) == BinaryOp::subtract;
  if (subtracts && planted(Fault::swapped_operands)) std::swap(a, b);
  Step s = base(o, i);
  if (masked) s.imm = static_cast<int32_t>(BinaryOp::and_);
  s.fn = masked ? masked_step() : operator_step(o, how.typed);
  s.does = o.kind == OpKind::compare ? native::Do::kCompare : o.kind == OpKind::unary ? native::Do::kUnary : native::Do::kBinary;
  s.rep = how.typed.operand;
  s.dst = loc(i).raw;
  s.a = a;
  s.b = b;
  s.c = loc(i).obj;
  if (typed::is_pair(s.rep))
    s.other = static_cast<int32_t>(how.typed.real);
  else
    s.other = loc(in(o)[0]).rep == Rep::kInt ? loc(in(o)[0]).obj : -1;  // True % n is no bool
  push(s);
  defined(i);
}

void Lowering::emit_truth(const Op& o, ValueId i) {
  Mode mode = form(i).mode;
  if (mode == Mode::kPython) return emit_python(o, i);
  if (mode == Mode::kAlias) return defined(i);
  const Loc& from = loc(in(o)[0]);
  Step s;
  s.dst = loc(i).raw;
  s.a = from.raw;
  if (from.rep != Rep::kBool) {
    s.fn = truth_step(from.rep);
    s.does = native::Do::kTruth;
    s.rep = from.rep;
    push(s);
    s.a = s.dst;
  }
  s.fn = step_not;
  s.does = native::Do::kNot;
  if (o.kind == OpKind::not_) push(s);
  defined(i);
}

void Lowering::emit_is(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kFixed) return emit_python(o, i);
  Reg value;
  value.i = o.imm != 0;
  p_->consts.push_back({loc(i).raw, value});
  defined(i);
}

void Lowering::emit_jitted_func(const Op& o, ValueId i) {
  if (loc(i).owned) emit_python(o, i);  // else it is known
}

// A call of a jitted function: what dies in it may go along unboxed.
void Lowering::emit_call_tree(const Op& o, ValueId i) {
  CallSite site;
  site.callee = boxed(in(o)[0], o, i);
  for (int32_t k = 1; k < o.n_inputs; ++k) {
    const ValueId v = in(o)[k];
    Handover argument;
    argument.takes = loc(v).obj < 0 || (loc(v).owned && typed::hands_over(typed_, i, k));
    const bool raw = argument.takes && !is_constant(v) && loc(v).raw_after(i);
    if (!raw) boxed(v, o, i);
    argument.from = loc(v);
    if (!raw) argument.from.raw = -1;
    site.arguments.push_back(argument);
  }
  site.result = loc(i);
  Step s = base(o, i);
  s.fn = step_call_tree;
  s.does = native::Do::kEnd;
  s.link = o.snapshot;
  s.n = depth_;
  s.imm = static_cast<int32_t>(p_->calls.size());
  p_->calls.push_back(std::move(site));
  push(s);
  defined(i);
}

// ---- lifetimes and ends --------------------------------------------------------------------------------------------------------

// `as`: the op that says where, and what can be seen meanwhile.
void Lowering::release(const std::vector<ValueId>& values, ValueId as) {
  std::vector<int32_t> regs;
  for (ValueId v : values) {
    const Loc& l = loc(v);
    if (l.owned && p_->live_log.ends(l.obj)) regs.push_back(l.obj);
  }
  if (regs.empty()) return;
  version_++;
  const Op& o = op(as);
  const bool numbers = std::all_of(values.begin(), values.end(), [&](ValueId v) { return !loc(v).owned || dies_quietly(v); });
  const bool quick = numbers || (o.kind == OpKind::release && !(o.effects & kDropsReferences));
  Step s;
  if (!quick && !leads_elsewhere(o.kind)) s = base(o, as), s.link = o.snapshot;
  if (!quick) lend_virtuals();
  s.fn = quick && regs.size() == 1 ? step_release_one : quick ? step_release : step_release_shown;
  s.does = native::Do::kRelease;
  s.a = regs[0];
  s.n = static_cast<int32_t>(regs.size());
  s.list = list(std::move(regs)).data();
  push(s);
}

// While array ops wait, everything their snapshots name is kept.
void Lowering::emit_release(const Op& o, ValueId i) {
  if (planted(Fault::lost_release)) return;
  std::vector<ValueId> values(in(o), in(o) + o.n_inputs);
  if (waiting_.empty() && sink_ == kNull) {
    find_released(&values, o);
    return release(values, i);
  }
  deferred_.insert(deferred_.end(), values.begin(), values.end());
  for (ValueId v : values) {
    values_[v].released = i;
    dead_waiting_ += values_[v].pending;
  }
}

void Lowering::emit_leave_frame(const Op&, ValueId) {
  Step s;
  s.fn = step_leave_frame;
  s.does = native::Do::kLeaveFrame;
  s.imm = --depth_;
  push(s);
}

// The registers that the run lets go of as the function's frame would.
std::vector<int32_t> Lowering::in_order_of_deaths(const Op& end, std::vector<int32_t> registers) const {
  if (end.imm == 0) return registers;
  const SnapshotFrame frame = t().snapshot(end.imm - 1).frames.back();
  std::unordered_map<int32_t, int> dies;
  int place = 0;
  for (ValueId v : recorder::in_order_of_deaths(frame.locals, frame.stack))
    if (++place; v != kNull && p_->locs[v].obj >= 0) dies[p_->locs[v].obj] = place;
  std::stable_sort(registers.begin(), registers.end(), [&](int32_t a, int32_t b) { return dies[a] < dies[b]; });
  return registers;
}

void Lowering::emit_return(const Op& o, ValueId i) {
  Step s = base(o, i);
  s.fn = step_return;
  s.does = native::Do::kEnd;
  s.imm = in(o)[0];
  const std::vector<int32_t>& live = list(in_order_of_deaths(o, p_->live_log.at(p_->live_log.now())));
  s.n = static_cast<int32_t>(live.size());
  s.list = live.data();
  push(s);
}

void Lowering::emit_jump(const Op& o, ValueId i) {
  Step s = base(o, i);
  s.fn = step_jump;
  s.does = native::Do::kJump;
  s.link = o.snapshot;
  s.imm = static_cast<int32_t>(p_->jumps.size());
  p_->jumps.emplace_back();
  push(s);
}

void Lowering::emit_leave(const Op& o, ValueId i) {
  Step s = base(o, i);
  s.fn = step_leave;
  s.does = native::Do::kEnd;
  push(s);
}

// ---- the whole -----------------------------------------------------------------------------------------------------------------

Lowering::Emit Lowering::emit_of(OpKind kind) {
  static constexpr KindRow<Emit> kRows[] = {
      {OpKind::param, &Lowering::emit_nothing},
      {OpKind::constant, &Lowering::emit_nothing},
      {OpKind::guard_type, &Lowering::emit_guard_type},
      {OpKind::guard_array, &Lowering::emit_guard_array},
      {OpKind::guard_true, &Lowering::emit_guard_truth},
      {OpKind::guard_false, &Lowering::emit_guard_truth},
      {OpKind::guard_is, &Lowering::emit_guard},
      {OpKind::guard_is_not, &Lowering::emit_guard},
      {OpKind::guard_truthy, &Lowering::emit_guard},
      {OpKind::guard_function, &Lowering::emit_guard},
      {OpKind::guard_defaults, &Lowering::emit_guard},
      {OpKind::guard_builtin, &Lowering::emit_guard},
      {OpKind::guard_quiet_iterator, &Lowering::emit_guard_quiet},
      {OpKind::guard_quiet_lookup, &Lowering::emit_guard},
      {OpKind::guard_waiting, &Lowering::emit_guard},
      {OpKind::guard_world, &Lowering::emit_guard_world},
      {OpKind::own_attr, &Lowering::emit_attribute},
      {OpKind::class_attr, &Lowering::emit_attribute},
      {OpKind::set_own_attr, &Lowering::emit_attribute},
      {OpKind::make_instance, &Lowering::emit_make_instance},
      {OpKind::contains, &Lowering::emit_looking},
      {OpKind::get_item, &Lowering::emit_get_item},
      {OpKind::set_item, &Lowering::emit_set_item},
      {OpKind::set_add, &Lowering::emit_looking},
      {OpKind::map_add, &Lowering::emit_looking},
      {OpKind::binary, &Lowering::emit_operator},
      {OpKind::inplace, &Lowering::emit_operator},
      {OpKind::unary, &Lowering::emit_operator},
      {OpKind::compare, &Lowering::emit_operator},
      {OpKind::truth, &Lowering::emit_truth},
      {OpKind::not_, &Lowering::emit_truth},
      {OpKind::is_, &Lowering::emit_is},
      {OpKind::get_iter, &Lowering::emit_get_iter},
      {OpKind::iter_next, &Lowering::emit_iter_next},
      {OpKind::list_append, &Lowering::emit_item},
      {OpKind::build_tuple, &Lowering::emit_index},
      {OpKind::build_list, &Lowering::emit_index},
      {OpKind::build_slice, &Lowering::emit_index},
      {OpKind::call, &Lowering::emit_call},
      {OpKind::get_attr, &Lowering::emit_get_attr},
      {OpKind::bind_method, &Lowering::emit_bind_method},
      {OpKind::make_function, &Lowering::emit_make_function},
      {OpKind::set_function_attribute, &Lowering::emit_make_function},
      {OpKind::jitted_func, &Lowering::emit_jitted_func},
      {OpKind::call_tree, &Lowering::emit_call_tree},
      {OpKind::get_len, &Lowering::emit_length},
      {OpKind::release, &Lowering::emit_release},
      {OpKind::leave_frame, &Lowering::emit_leave_frame},
      {OpKind::return_, &Lowering::emit_return},
      {OpKind::jump, &Lowering::emit_jump},
      {OpKind::leave, &Lowering::emit_leave},
  };
  static constexpr auto kTable = by_kind(kRows, Emit{&Lowering::emit_python});
  return kTable[static_cast<size_t>(kind)];
}

void Lowering::emit_all() {
  p_->steps.reserve(t().ops.size());
  for (ValueId i = 0; i < static_cast<ValueId>(t().ops.size()); ++i) {
    const Op& o = op(i);
    if (o.kind == OpKind::enter) {
      ProgramImpl::deepest = std::max(ProgramImpl::deepest, ++depth_);
      continue;
    }
    if (sink_ != kNull && must_flush(o, i)) flush(i);
    if (std::vector<ValueId> operands; may_wait(o, &operands)) {
      wait(o, i, operands);
      continue;
    }
    if (may_sink(o, i)) {
      sink(o, i);
      continue;
    }
    if (must_flush(o, i)) {
      flush(i);
      if (may_sink(o, i)) {  // what it writes into is there now
        sink(o, i);
        continue;
      }
    }
    if (is_stored_in_place(o, i)) continue;
    if (!virtuals_.empty() && !leaves_virtuals(o, i)) build_virtuals(i);
    (this->*emit_of(o.kind))(o, i);
    if (reduced_ >= 0) p_->steps.back().other = std::exchange(reduced_, -1);
    done(o, form(i).effects);
  }
}

}  // namespace dalsegno::replay
