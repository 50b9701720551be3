// Items and elements: of arrays unboxed, of lists and tuples by an unboxed index, and those that iterators give.
#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

// An element of an array, read or written unboxed.
void Lowering::emit_element(const Op& o, ValueId i) {
  const ArrayFacts& facts = t().facts[o.facts];
  const int32_t array = boxed(in(o)[0], o, i);
  int32_t value = -1;
  if (o.kind == OpKind::set_item) value = raw(in(o)[2], typed::rep_of_dtype(facts.dtype), o, i);
  std::vector<int32_t> indices;
  int32_t n = 0;
  const ValueId* positions = typed::element_indices(typed_, o, &n);
  for (int32_t k = 0; k < n; ++k) indices.push_back(loc(positions[k]).raw);
  Step s = base(o, i);
  s.fn = o.kind == OpKind::set_item ? store_step(facts.dtype) : load_step(facts.dtype, facts.rank);
  s.a = array;
  s.b = indices[0];
  s.c = value;
  s.n = n;
  s.list = list(std::move(indices)).data();
  if (o.kind == OpKind::get_item) s.dst = loc(i).raw;
  push(s);
  if (o.kind == OpKind::get_item) defined(i);
}

void Lowering::emit_get_item(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kElement) return emit_element(o, i);
  if (form(i).mode != Mode::kIndex) {
    emit_python(o, i);
    p_->steps.back().fn = step_get_item;
    return;
  }
  int32_t container = boxed(in(o)[0], o, i);
  ValueId index = in(o)[1];
  Step s = base(o, i);
  s.fn = step_get_item_index;
  s.exec = exec_of(o.kind);
  s.dst = loc(i).obj;
  s.a = container;
  s.b = loc(index).raw;
  s.c = loc(index).obj;
  push(s);
  defined(i);
}

void Lowering::emit_set_item(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kElement) return emit_element(o, i);
  if (form(i).mode != Mode::kIndex) return emit_python(o, i);
  int32_t container = boxed(in(o)[0], o, i);
  int32_t item = boxed(in(o)[2], o, i);
  ValueId index = in(o)[1];
  Step s = base(o, i);
  s.fn = step_set_item_index;
  s.exec = exec_of(o.kind);
  s.a = container;
  s.b = loc(index).raw;
  s.c = loc(index).obj;
  s.other = item;
  push(s);
}

void Lowering::emit_iter_next(const Op& o, ValueId i) {
  int32_t iterator = boxed(in(o)[0], o, i);
  Step s = base(o, i);
  s.other = plan(i, 1);
  s.a = iterator;
  s.dst = loc(i).obj;
  s.fn = o.imm == 0 ? step_iter_end : step_iter_next;
  if (form(i).mode == Mode::kRange) {
    s.fn = step_range_next;
    s.c = loc(i).raw;
  } else if (form(i).mode == Mode::kElement) {
    s.fn = next_element_step(t().facts[o.facts].dtype);
    s.dst = loc(i).raw;
  }
  push(s);
  if (o.imm == 1) defined(i);
}

}  // namespace dalsegno::replay
