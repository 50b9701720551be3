// Lowering's frame: parameters of side traces, registers, what is checked at entry.
#include "replay/lower/lower.h"

#include <algorithm>
#include <utility>

#include "replay/kernels/config.h"

namespace dalsegno::replay {

std::unique_ptr<Program> Program::lower(std::unique_ptr<LiveTrace> trace, Exit* parent, const std::vector<std::unique_ptr<Program>>* tree) {
  return Lowering(std::move(trace), parent, tree).lower();
}

Lowering::Lowering(std::unique_ptr<LiveTrace> trace, Exit* parent, const std::vector<std::unique_ptr<Program>>* tree)
    : p_(std::make_unique<ProgramImpl>()), parent_(parent) {
  p_->live = std::move(trace);
  p_->keeps_code = use_kernel_cache;
  p_->tree = tree;
  values_.resize(t().ops.size());
}

std::unique_ptr<ProgramImpl> Lowering::lower() {
  if (t().anchor == AnchorKind::exit ? !parent_ || !bind_params() : parent_ != nullptr) return nullptr;
  if (!infer()) return nullptr;
  place();
  prove_types();
  make_folded_guards();
  emit_all();
  finish();
  return std::move(p_);
}

// A side trace's parameters are the values in the exit's snapshot; one parameter a value.
bool Lowering::bind_params() {
  auto& up = static_cast<ProgramImpl&>(*parent_->owner);
  const Op& left = up.data().ops[parent_->op];
  const Snapshot there = up.data().snapshot(parent_->which == 0 ? left.snapshot : left.exit_snapshot);
  std::vector<ValueId> outer = slots_of(there), inner = slots_of(t().entry);
  if (outer.size() != inner.size() || there.frames.size() != t().entry.frames.size()) return false;
  p_->parent = &up;
  p_->first_reg = p_->n_regs = up.n_regs;
  auto exit_number = static_cast<size_t>(parent_ - up.exit_records.data());
  p_->box_ints = up.box_ints || up.exit_overflow[exit_number];
  python_first_ = up.exit_refused[exit_number];
  std::vector<ValueId> used;
  for (size_t i = 0; i < inner.size(); ++i) {
    ValueId v = inner[i];
    if ((v == kNull) != (outer[i] == kNull)) return false;
    if (v == kNull) continue;
    if (v >= t().n_params) {
      // A constant: of the parent too, and the same.
      const Op& there_op = up.data().ops[outer[i]];
      if (there_op.kind != OpKind::constant || up.live->objects[there_op.object] != object(op(v).object)) return false;
      continue;
    }
    Value& param = values_[v];
    if (param.bound == outer[i]) continue;
    if (param.bound != kNull || std::find(used.begin(), used.end(), outer[i]) != used.end()) return false;
    param.bound = outer[i];
    used.push_back(outer[i]);
    const Loc& from = up.locs[outer[i]];
    if (from.raw_after(parent_->op) && from.rep != Rep::kWrapped) param.rep = from.rep;
  }
  for (ValueId v = 0; v < t().n_params; ++v)
    if (values_[v].bound == kNull) return false;
  return true;
}

// A type in this sense is final for a value, so a guard on a loop's parameter holds wherever it stands: it is done where the value comes
// in, at the jump. What a parent has proven of a parameter still holds in a side trace.
void Lowering::prove_types() {
  p_->types.resize(t().ops.size());
  if (t().anchor == AnchorKind::exit)
    for (ValueId v = 0; v < t().n_params; ++v)
      if (const auto& known = p_->parent->types[values_[v].bound]; known.type && known.since < parent_->op && values_[v].since < 0)
        known.type == quiet_mark() ? void(p_->types[v] = {known.type, -1}) : proven(v, known.type, -1);  // (else the guard unboxes it)
  if (t().anchor != AnchorKind::loop) return;
  for (const Op& o : t().ops) {
    if (o.kind == OpKind::guard_quiet_iterator && in(o)[0] < t().n_params && !p_->types[in(o)[0]].type)
      p_->types[in(o)[0]] = {quiet_mark(), -1};
    if (o.kind != OpKind::guard_type) continue;
    const ValueId v = in(o)[0];
    PyObject* type = object(o.object);
    if (v < t().n_params && values_[v].rep == Rep::kNone && !values_[v].type && !may_change_class(type)) proven(v, type, -1);
  }
}

void Lowering::place() {
  p_->locs.resize(t().ops.size());
  depth_ = t().entry.frames.empty() ? 1 : static_cast<int32_t>(t().entry.frames.size());
  ProgramImpl::deepest = std::max(ProgramImpl::deepest, depth_);
  for (ValueId v = 0; v < static_cast<ValueId>(t().ops.size()); ++v) {
    Value& value = values_[v];
    if (!op_has_result(op(v).kind)) continue;
    if (form(v).mode == Mode::kPart && op(v).kind == OpKind::unpack) continue;  // it is not there
    if (op(v).kind == OpKind::param) {
      place_param(v);
    } else if (is_constant(v)) {
      place_constant(v);
    } else if (PyObject* plain = known_plain(v)) {
      loc(v) = {new_reg(), -1, Rep::kNone, false, -1};
      Reg reg;
      reg.o = plain;
      p_->consts.push_back({loc(v).obj, reg, true});
    } else if (value.born_raw) {
      bool alias = form(v).mode == Mode::kAlias;
      loc(v) = {value.wants_obj ? new_reg() : -1, alias ? loc(in(op(v))[0]).raw : new_reg(), value.rep, value.wants_obj, -1, false};
    } else if (gives_none(form(v).callee)) {
      loc(v).obj = new_reg();
      p_->consts.push_back({loc(v).obj, Reg{.o = Py_None}, true});
    } else {
      const bool is_object = !typed::may_lack_object(typed_, v);
      loc(v) = {new_reg(), value.wants_raw ? new_reg() : -1, value.rep, !value.borrowed, value.since, is_object, value.borrowed};
    }
    if (loc(v).raw < 0) loc(v).rep = Rep::kNone;
  }
}

bool Lowering::gives_none(typed::Callee callee) {
  return callee == typed::Callee::kAppend || callee == typed::Callee::kAdd || callee == typed::Callee::kHeappush;
}

// The plain function of a jitted one that is a constant: it stays the same.
PyObject* Lowering::known_plain(ValueId v) const {
  if (op(v).kind != OpKind::jitted_func || !is_constant(in(op(v))[0])) return nullptr;
  const Jitted* callee = jitted_at(object(op(in(op(v))[0]).object));
  return callee ? callee->plain() : nullptr;
}

// Does any op look at the value? Else it only stands in slots.
bool Lowering::is_used(ValueId v) {
  if (used_.empty()) {
    used_.resize(t().ops.size());
    for (const Op& o : t().ops)
      if (o.kind != OpKind::release)
        for (int32_t k = 0; k < o.n_inputs; ++k) used_[in(o)[k]] = true;
  }
  return used_[v];
}

// A loop's variable that nothing looks at before it is written: as what it comes back at the end of a turn, if that is unboxed, or as what
// it was when the loop was recorded.
Rep Lowering::carried_rep(ValueId v) {
  if (t().anchor != AnchorKind::loop || is_used(v)) return Rep::kNone;
  if (const Rep rep = closing_rep(v); rep != Rep::kNone) return rep;
  const int32_t seen = op(v).object;
  const Rep rep = seen < 0 ? Rep::kNone : typed::rep_of_type(typed_.known.objects[seen].names);
  return rep == Rep::kInt && typed_.known.box_ints ? Rep::kNone : rep;
}

Rep Lowering::closing_rep(ValueId v) {
  const Op& last = t().ops.back();
  if (last.kind != OpKind::jump || last.imm != t().number) return Rep::kNone;
  const std::vector<ValueId> here = slots_of(t().entry), there = slots_of(t().snapshot(last.snapshot));
  if (here.size() != there.size()) return Rep::kNone;
  const auto slot = std::find(here.begin(), here.end(), v);
  if (slot == here.end()) return Rep::kNone;
  const ValueId next = there[static_cast<size_t>(slot - here.begin())];
  return next != kNull && next != v && values_[next].born_raw ? values_[next].rep : Rep::kNone;
}

void Lowering::place_param(ValueId v) {
  Value& value = values_[v];
  if (value.bound != kNull) {
    Loc from = p_->parent->locs[value.bound];
    if (std::exchange(from.borrowed, false)) from.owned = true;
    if (from.rep == Rep::kWrapped) from.raw = -1, from.rep = Rep::kNone;  // a constant
    if (from.either() && !is_used(v)) {
      // it stays so
    } else if (from.either() && value.since >= 0 && from.rep == value.rep) {
      from.since = value.since;  // the guard takes it as it has come
    } else if (!from.raw_after(parent_->op)) {
      from.raw = value.wants_raw ? new_reg() : -1;
      from.rep = value.rep;
      from.since = value.since;
    } else {
      from.since = -1;
      value.born_raw = true;
    }
    if (from.obj < 0 && value.wants_obj) {
      from.obj = new_reg();
      from.owned = true;
    }
    loc(v) = from;
  } else if (value.hoisted && value.wants_raw && !is_used(v)) {  // another trace may come back with something else
    loc(v) = {new_reg(), new_reg(), value.rep, true, Loc::kNever, false};
    static_cast<typed::ValueForm&>(value) = {.wants_obj = true};
  } else if (value.hoisted && value.wants_raw) {
    value.born_raw = true;
    loc(v) = {value.wants_obj ? new_reg() : -1, new_reg(), value.rep, value.wants_obj, -1, false};
  } else {
    if (value.hoisted) static_cast<typed::ValueForm&>(value) = {.wants_obj = value.wants_obj};
    loc(v) = {new_reg(), value.wants_raw ? new_reg() : -1, value.rep, true, value.since, !typed::may_lack_object(typed_, v)};
    if (const Rep rep = carried_rep(v); rep != Rep::kNone) loc(v) = {loc(v).obj, new_reg(), rep, true, Loc::kNever, false};
    if (t().anchor == AnchorKind::entry) p_->params.push_back(v);
  }
  if (loc(v).owned && loc(v).obj >= 0) p_->live_log.begins(loc(v).obj);
}

void Lowering::place_constant(ValueId v) {
  PyObject* o = object(op(v).object);
  Value& value = values_[v];
  if (!PyModule_Check(o)) value.type = reinterpret_cast<PyObject*>(Py_TYPE(o));  // a module may be given another class
  loc(v) = {new_reg(), value.wants_raw ? new_reg() : -1, value.rep, false, -1};
  Reg reg;
  reg.o = o;
  p_->consts.push_back({loc(v).obj, reg, true});
  if (!value.wants_raw) return;
  unbox(value.rep, o, &reg);
  p_->consts.push_back({loc(v).raw, reg});
}

void Lowering::make_folded_guards() {
  for (const Folded& f : t().folded) {
    PyObject* dict = object(f.dict);
    auto it = std::find_if(p_->folded.begin(), p_->folded.end(), [&](const FoldedGuards& w) { return w.version.dict() == dict; });
    if (it == p_->folded.end()) it = p_->folded.insert(it, FoldedGuards{hook::DictVersion(dict), false, {}});
    it->names.emplace_back(p_->live->names[f.name], object(f.value));
    it->version.watch(p_->live->names[f.name]);
  }
  for (PyObject* o : p_->live->objects)
    if (PyCode_Check(o)) p_->codes.push_back(reinterpret_cast<PyCodeObject*>(o));
}

// Indices become pointers once nothing moves any more.
void Lowering::finish() {
  for (Exit& exit : p_->exit_records) exit.owner = p_.get();
  for (const Loc& l : p_->locs)
    if (l.owned && l.obj >= p_->first_reg) p_->object_regs.push_back(l.obj);
  if (!waiting_.empty() || !deferred_.empty() || !held_.empty()) Py_FatalError("dalsegno: array ops left waiting");
}

}  // namespace dalsegno::replay
