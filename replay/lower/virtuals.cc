// Objects that are not built: they exist as their parts, and a plan to leave by builds them first (exits.cc).
#include <algorithm>

#include "replay/lower/lower.h"

namespace dalsegno::replay {

void Lowering::emit_tuple(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kVirtual) return emit_python(o, i);
  Virtual& what = p_->virtuals.emplace_back();
  what.reg = loc(i).obj;
  for (int32_t k = 0; k < o.n_inputs; ++k) {
    Loc part = loc(in(o)[k]);
    if (values_[in(o)[k]].passing) part.obj = -1;
    what.parts.push_back(part);
  }
  defined(i);
  virtuals_.emplace_back(i, &what);
  version_++;
}

// A part of something that is not built, of which others may hold the object.
bool Lowering::is_part(ValueId v) const {
  if (values_[v].passing) return false;
  return std::any_of(virtuals_.begin(), virtuals_.end(), [&](const auto& one) { return typed::takes(t(), op(one.first), v); });
}

bool Lowering::is_virtual(ValueId v) const {
  return std::any_of(virtuals_.begin(), virtuals_.end(), [&](const auto& one) { return one.first == v; });
}

// Numbers, texts and iterators over ranges die without running code.
bool Lowering::dies_quietly(ValueId v) const {
  const PyObject* type = values_[v].type;
  return values_[v].rep != Rep::kNone || type == reinterpret_cast<PyObject*>(&PyUnicode_Type) ||
         type == reinterpret_cast<PyObject*>(&PyRangeIter_Type);
}

bool Lowering::dies_quietly(const Op& release, ValueId v) const {
  return !(release.effects & kDropsReferences) || !loc(v).owned || dies_quietly(v);
}

// May op i be done while something is not built? What shows no frames, takes no object that is not built, and changes none of the parts.
bool Lowering::leaves_virtuals(const Op& o, ValueId i) const {
  switch (o.kind) {
    case OpKind::constant:
    case OpKind::build_tuple:
    case OpKind::guard_type:
    case OpKind::guard_array:
    case OpKind::guard_true:
    case OpKind::guard_false:
      return true;
    case OpKind::guard_world:
      return world_proven_;
    case OpKind::release:
      return std::all_of(in(o), in(o) + o.n_inputs, [&](ValueId v) { return is_virtual(v) || (!is_part(v) && dies_quietly(o, v)); });
    default:
      break;
  }
  switch (form(i).mode) {
    case Mode::kTyped:
    case Mode::kAlias:
    case Mode::kElement:
    case Mode::kLength:
    case Mode::kVirtual:
      return true;
    default:
      return false;
  }
}

void Lowering::build_virtuals(ValueId because) {
  for (const auto& [v, what] : virtuals_) {
    Step s;
    s.fn = step_build;
    s.what = what;
    s.exit = plan(because, 0);
    push(s);
  }
  virtuals_.clear();
  version_++;
}

void Lowering::forget_virtual(ValueId v) {
  version_ += std::erase_if(virtuals_, [&](const auto& one) { return one.first == v; });
}

}  // namespace dalsegno::replay
