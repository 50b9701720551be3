// Views that are not built, and products of vectors.
#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

// What a subscript's view is taken of, and by what.
void Lowering::set_index(const Op& o, ValueId i, Virtual* view) {
  view->kind = Virtual::kView;
  view->parts.push_back(loc(in(o)[0]));
  view->array = values_[in(o)[0]].facts;
  view->view = form(i).view;
  const std::vector<typed::IndexPart> index = *typed::view_index_of(typed_, o);
  for (const typed::IndexPart& part : index) {
    IndexPart& made = view->index.emplace_back();
    made.kind = part.kind;
    for (size_t k = 0; k < part.at.size(); ++k)
      if (part.given[k]) made.regs[k] = part.at[k] == kNull ? constant_reg(part.constant[k]) : loc(part.at[k]).raw;
  }
  view->block = new_reg();
  for (int32_t k = 0; k < 2 * view->view.rank; ++k) new_reg();
}

void Lowering::emit_view(const Op& o, ValueId i) {
  const int32_t array = boxed(in(o)[0], o, i);
  Virtual& what = p_->virtuals.emplace_back();
  what.reg = loc(i).obj;
  set_index(o, i, &what);
  Step s = base(o, i);
  s.fn = step_view;
  s.a = array;
  s.what = &what;
  push(s);
  values_[i].facts = what.view;
  values_[i].view_by = i;
  learned_.push_back(i);
  proven(i, reinterpret_cast<PyObject*>(&PyArray_Type), i);
  is_not_built(i, &what);
}

void Lowering::emit_product(const Op& o, ValueId i) {
  const int32_t first = o.kind == OpKind::call ? 1 : 0;
  Step s = base(o, i);
  s.fn = step_product;
  std::vector<int32_t> blocks;
  for (int32_t k = 0; k < 2; ++k) {
    const ValueId v = in(o)[first + k];
    const Virtual* view = view_of(v);
    blocks.push_back(view ? view->block : -1);
    (k == 0 ? s.a : s.b) = view ? -1 : boxed(v, o, i);
  }
  s.list = list(std::move(blocks)).data();
  s.imm = static_cast<int32_t>(form(i).callee);
  s.n = static_cast<int32_t>(form(i).view.dtype);
  s.dst = loc(i).raw;
  push(s);
  defined(i);
}

void Lowering::emit_reduction(const Op& o, ValueId i) {
  const ValueId v = in(o)[1];
  const Virtual* view = view_of(v);
  const int32_t array = view ? -1 : boxed(v, o, i);
  Step s = base(o, i);
  s.fn = step_reduction;
  s.a = array;
  s.b = view ? view->block : -1;
  s.c = form(i).view.rank;
  s.imm = static_cast<int32_t>(form(i).callee);
  s.n = static_cast<int32_t>(form(i).view.dtype);
  if (const auto ddof = typed::ddof_of(typed_, o)) s.list = list({static_cast<int32_t>(std::min<int64_t>(*ddof, INT32_MAX))}).data();
  s.dst = loc(i).raw;
  push(s);
  defined(i);
}

void Lowering::emit_gather(const Op& o, ValueId i) {
  Step s = base(o, i);
  s.fn = step_gather;
  std::vector<int32_t> blocks;
  for (int32_t k = 0; k < 2; ++k) {
    const ValueId v = in(o)[k];
    const Virtual* view = view_of(v);
    blocks.push_back(view ? view->block : -1);
    (k == 0 ? s.a : s.b) = view ? -1 : boxed(v, o, i);
    if (k == 0) s.other = view ? view->parts[0].obj : s.a;  // whose dtype the result has
  }
  s.list = list(std::move(blocks)).data();
  s.imm = static_cast<int32_t>(values_[in(o)[1]].facts.dtype);
  s.n = static_cast<int32_t>(form(i).view.dtype);
  s.dst = loc(i).obj;
  push(s);
  defined(i);
  values_[i].facts = form(i).view;
  learned_.push_back(i);
  proven(i, reinterpret_cast<PyObject*>(&PyArray_Type), i);
}

const Virtual* Lowering::virtual_of(ValueId v) const {
  for (const auto& [value, what] : virtuals_)
    if (value == v) return what;
  return nullptr;
}

// Null: it is an object, or something else.
const Virtual* Lowering::view_of(ValueId v) const {
  const Virtual* what = virtual_of(v);
  return what && what->kind == Virtual::kView ? what : nullptr;
}

// Does the op take a view as an object? (Array ops that wait take them as they are, and so do the writes that end these.)
bool Lowering::takes_views(const Op& o, ValueId i) const {
  const Mode how = form(i).mode;
  for (int32_t k = 0; k < o.n_inputs; ++k) {
    const ValueId v = in(o)[k];
    if (!view_of(v)) continue;
    const bool known = (o.kind == OpKind::guard_type && values_[v].type == object(o.object)) ||
                       (o.kind == OpKind::guard_array && values_[v].facts == t().facts[o.facts]) || o.kind == OpKind::release;
    if (!known && how != Mode::kProduct && how != Mode::kReduction && how != Mode::kGather) return true;
  }
  return false;
}

}  // namespace dalsegno::replay
