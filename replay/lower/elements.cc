// Items, elements and attributes: of arrays unboxed, of lists and tuples by an unboxed index, those that iterators give, and look-ups.
#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {

// An element of an array, read or written unboxed.
void Lowering::emit_element(const Op& o, ValueId i) {
  const typed::Element e = *typed::element_of(typed_, o);
  const ArrayFacts& facts = t().facts[e.facts];
  const int32_t array = boxed(e.array, o, i);
  int32_t value = -1;
  if (e.stored != kNull) value = raw(e.stored, typed::rep_of_dtype(facts.dtype), o, i);
  std::vector<int32_t> indices;
  for (int32_t k = 0; k < e.rank; ++k) indices.push_back(e.at[k] == kNull ? constant_reg(e.constant[k]) : loc(e.at[k]).raw);
  Step s = base(o, i);
  s.fn = o.kind == OpKind::set_item ? store_step(facts.dtype) : load_step(facts.dtype, facts.rank);
  s.does = o.kind == OpKind::set_item ? native::Do::kStore : native::Do::kLoad;
  s.rep = typed::rep_of_dtype(facts.dtype);
  s.a = array;
  s.b = indices[0];
  s.c = value;
  s.n = e.rank;
  s.list = list(std::move(indices)).data();
  if (e.stored == kNull) s.dst = loc(i).raw;
  if (s.rep == Rep::kNone) s.fn = step_scalar_object, s.does = native::Do::kStep, s.dst = loc(i).obj;
  push(s);
  if (e.stored == kNull) defined(i);
}

int32_t Lowering::constant_reg(int64_t value) {
  auto [it, fresh] = constant_regs_.try_emplace(value, -1);
  if (fresh) {
    it->second = new_reg();
    p_->consts.push_back({it->second, Reg{.i = value}});
  }
  return it->second;
}

// An item of a list or tuple.
void Lowering::emit_item(const Op& o, ValueId i) {
  const typed::Item item = typed::item_of(typed_, o);
  const bool tuple = form(i).of_tuple, has_result = op_has_result(o.kind);
  const Rep rep = has_result ? values_[i].rep : Rep::kNone;
  Rep stored = Rep::kNone;
  int32_t part = -1;
  if (item.stored != kNull && values_[item.stored].passing) {
    stored = loc(item.stored).rep;
    part = loc(item.stored).raw;
  } else if (item.stored != kNull) {
    part = boxed(item.stored, o, i);
  } else if (rep != Rep::kNone) {
    part = loc(i).raw >= 0 ? loc(i).raw : new_reg();
  }
  const int32_t container = boxed(item.container, o, i);
  Step s = base(o, i);
  s.a = container;
  s.b = item.index == kNull ? -1 : loc(item.index).raw;
  s.c = part;
  s.imm = tuple;
  s.rep = item.stored != kNull ? stored : rep;
  s.dst = has_result ? loc(i).obj : -1;
  if (o.kind == OpKind::iter_next) s.other = plan(i, 1);
  auto one_of = [&](ItemSteps steps) { return tuple ? steps.tuple : steps.list; };
  s.fn = o.kind == OpKind::get_item    ? one_of(load_item_steps(rep, !values_[i].borrowed))
         : o.kind == OpKind::iter_next ? one_of(next_item_steps(rep))
         : o.kind == OpKind::set_item  ? store_item_step(stored)
         : item.stored != kNull        ? append_item_step(stored)
                                       : pop_item_step(rep);
  if (o.kind == OpKind::get_item) s.does = native::Do::kTakeItem, s.n = !values_[i].borrowed;
  if (o.kind == OpKind::iter_next) s.does = native::Do::kNextItem;
  if (o.kind == OpKind::set_item) s.does = native::Do::kPutItem;
  const bool takes = o.kind != OpKind::set_item && item.stored != kNull;
  if (takes || o.kind == OpKind::call) s.does = takes ? native::Do::kAppend : native::Do::kPop;
  settles_ = o.kind == OpKind::set_item && world_proven_ ? static_cast<int32_t>(p_->steps.size()) : -1;
  push(s);
  if (has_result) defined(i);
}

// A text, and another that it is compared with or asked about.
void Lowering::emit_text_question(const Op& o, ValueId i, const Quick& step, ValueId text, ValueId other) {
  const int32_t a = boxed(text, o, i), b = other == kNull ? -1 : boxed(other, o, i);
  const bool call = o.kind == OpKind::call;
  Step s = base(o, i);
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = native::Do::kQuick;
  s.a = a;
  s.b = call ? boxed(in(o)[0], o, i) : b;
  s.c = call ? b : -1;
  s.dst = loc(i).raw;
  s.truth = true;
  push(s);
  defined(i);
}

// Two texts compared, a question about one, or a character of one.
void Lowering::emit_text(const Op& o, ValueId i) {
  const bool compares = o.kind == OpKind::compare;
  if (compares && o.imm != Py_EQ && o.imm != Py_NE) return emit_text_question(o, i, text_order_step(), in(o)[0], in(o)[1]);
  if (o.kind == OpKind::call) return emit_text_question(o, i, text_test_step(), in(o)[1], o.n_inputs > 2 ? in(o)[2] : kNull);
  const int32_t a = boxed(in(o)[0], o, i), b = compares ? boxed(in(o)[1], o, i) : loc(in(o)[1]).raw;
  Step s = base(o, i);
  s.fn = compares ? step_same_text : step_letter;
  s.does = compares ? native::Do::kSameText : native::Do::kLetter;
  s.a = a;
  s.b = b;
  s.dst = compares ? loc(i).raw : loc(i).obj;
  push(s);
  defined(i);
  if (!compares) proven(i, reinterpret_cast<PyObject*>(&PyUnicode_Type), i);
}

// Of its slice the ends alone are looked at.
void Lowering::emit_piece(const Op& o, ValueId i) {
  const typed::IndexPart part = (*typed::view_index_of(typed_, o))[0];
  const auto end = [&](size_t k) {
    return !part.given[k] ? -1 : part.at[k] == kNull ? constant_reg(part.constant[k]) : loc(part.at[k]).raw;
  };
  const bool puts = o.kind == OpKind::set_item;
  const Quick step = puts ? put_piece_step() : piece_step(part.constant[2] == -1);
  const int32_t container = boxed(in(o)[0], o, i), put = puts ? boxed(in(o)[2], o, i) : -1;
  Step s = base(o, i);
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = native::Do::kPiece;
  s.a = container;
  s.b = end(0);
  s.c = end(1);
  s.other = put;
  if (!puts) s.dst = loc(i).obj;
  push(s);
  if (!puts) defined(i);
}

void Lowering::emit_byte(const Op& o, ValueId i) {
  const bool stores = o.kind == OpKind::set_item;
  const int32_t container = boxed(in(o)[0], o, i);
  Step s = base(o, i);
  s.fn = stores ? step_put_byte : step_byte;
  s.does = stores ? native::Do::kPutByte : native::Do::kByte;
  s.a = container;
  s.b = loc(in(o)[1]).raw;
  s.c = stores ? loc(in(o)[2]).raw : -1;
  s.imm = !form(i).of_tuple;  // a bytearray
  if (o.imm != 0) {
    s.rep = typed::item_of_typecode(o.imm);
    s.fn = (stores ? store_number_step : load_number_step)(typed::dtype_of_rep(s.rep));
    s.does = stores ? native::Do::kPutNumber : native::Do::kNumber;
    s.imm = o.imm;
  }
  if (!stores) s.dst = loc(i).raw;
  push(s);
  if (!stores) defined(i);
}

// In a dict or set, in its guard's stead.
void Lowering::emit_lookup(const Op& o, ValueId i) {
  const bool call = o.kind == OpKind::call, contains = o.kind == OpKind::contains;
  const bool stores = o.kind == OpKind::set_item || o.kind == OpKind::map_add;
  const ValueId* inputs = in(o) + (call ? 1 : 0);
  const int32_t n = o.n_inputs - (call ? 1 : 0);
  const int32_t container = boxed(inputs[contains ? 1 : 0], o, i), key = boxed(inputs[contains ? 0 : 1], o, i);
  const int32_t last = n > 2 ? boxed(inputs[2], o, i) : -1;
  const Quick step = lookup_step(contains                                ? Lookup::kContains
                                 : o.kind == OpKind::get_item            ? Lookup::kGet
                                 : stores                                ? Lookup::kPut
                                 : form(i).callee == typed::Callee::kGet ? Lookup::kGetOr
                                                                         : Lookup::kAdd);
  Step s = base(o, i);
  s.n = plan(i - 1, 0);
  s.list = found_in(inputs[contains ? 1 : 0], inputs[contains ? 0 : 1], i).data();
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = native::Do::kQuick;
  s.a = container;
  s.b = key;
  s.other = last;
  if (contains) {
    s.dst = loc(i).raw;
    s.truth = true;
  } else if (op_has_result(o.kind) && form(i).callee != typed::Callee::kAdd) {
    take_part(i, &s);
    s.by_type = s.rep != Rep::kNone;
  }
  push(s);
  if (op_has_result(o.kind)) defined(i);
}

// Where the machine keeps where it has found this key in this container, and whether it has looked for it before on the way to op i: here,
// or in the parent before its exit.
const std::vector<int32_t>& Lowering::found_in(ValueId container, ValueId key, ValueId i) {
  const auto look = [](const ProgramImpl& p, ValueId in, ValueId what, ValueId until) {
    for (const KnownLookup& known : p.lookups)
      if (known.container == in && known.key == what && known.at < until) return known.reg;
    return -1;
  };
  int32_t reg = look(*p_, container, key, i);
  const ValueId outer = values_[container].bound, outer_key = values_[key].bound;
  if (reg < 0 && p_->parent && outer != kNull && outer_key != kNull) reg = look(*p_->parent, outer, outer_key, parent_->op);
  const bool known = reg >= 0;
  if (!known) reg = new_reg();
  p_->lookups.push_back({container, key, i, reg});
  return list({reg, known});
}

// What a step gives, as an object and, where that is wanted, unboxed.
void Lowering::take_part(ValueId i, Step* s) {
  s->rep = values_[i].rep;
  s->c = s->rep == Rep::kNone || loc(i).raw >= 0 ? loc(i).raw : new_reg();
  s->dst = loc(i).obj;
}

void Lowering::emit_heap(const Op& o, ValueId i) {
  const int32_t list = boxed(in(o)[1], o, i), item = o.n_inputs > 2 ? boxed(in(o)[2], o, i) : -1;
  const Quick step = heap_step(form(i).callee);
  Step s = base(o, i);
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = native::Do::kQuick;
  s.a = list;
  s.b = item;
  if (!gives_none(form(i).callee)) take_part(i, &s);
  push(s);
  defined(i);
}

// Attributes found by the class as it was recorded.
void Lowering::emit_attribute(const Op& o, ValueId i) {
  if (o.kind == OpKind::class_attr && planted(Fault::stale_class)) return;
  if (o.kind == OpKind::set_own_attr && planted(Fault::lost_attribute_write)) return;
  const int32_t object = boxed(in(o)[0], o, i);
  const bool sets = o.kind == OpKind::set_own_attr, gets = o.kind == OpKind::own_attr;
  const bool unboxed = sets && values_[in(o)[1]].passing;
  const int32_t value = !sets ? -1 : unboxed ? loc(in(o)[1]).raw : boxed(in(o)[1], o, i);
  Step s = base(o, i);
  const Quick step = gets ? own_attribute_step(!values_[i].borrowed) : sets ? set_attribute_step() : class_attribute_step();
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = gets ? native::Do::kAttribute : sets ? native::Do::kSetAttribute : native::Do::kQuick;
  s.a = object;
  s.c = value;
  auto* type = reinterpret_cast<PyTypeObject*>(s.object);
  s.imm = dalsegno_keeps(type, s.object2);
  s.attribute = &p_->attributes.emplace_back(AttributePlace{{type, s.name, s.object2}, {}});
  if (unboxed) s.rep = loc(in(o)[1]).rep;
  if (gets) {
    take_part(i, &s);
    s.n = !values_[i].borrowed;
  }
  // (A dict may be a namespace that folded names stand in.)
  settles_ = sets && world_proven_ && s.imm == DALSEGNO_KEEPS_IN_SLOT ? static_cast<int32_t>(p_->steps.size()) : -1;
  push(s);
  if (gets) defined(i);
}

void Lowering::emit_make_instance(const Op& o, ValueId i) {
  const Quick step = make_instance_step();
  Step s = base(o, i);
  s.fn = step.fn;
  s.exec = step.quick;
  s.does = native::Do::kQuick;
  s.attribute = &p_->attributes.emplace_back(AttributePlace{{reinterpret_cast<PyTypeObject*>(s.object), s.name, s.object2}, {}});
  take_part(i, &s);
  push(s);
  defined(i);
}

// May it be a mask of an array? The step looks at it once more. (What runs unknown code lets facts be forgotten: arithmetic on complex
// numbers, for one; and of arrays of such, and what goes with them, none are asked for.)
bool Lowering::may_be_masked(ValueId array, ValueId mask) const {
  const ArrayFacts& facts = values_[mask].facts;
  if (facts.rank >= 0) return facts.rank > 0 && facts.dtype == DType::kBool;
  const auto may_be_array = [&](ValueId v) {
    const PyTypeObject* type = known_type(v);
    return !values_[v].born_raw && (!type || type == &PyArray_Type);
  };
  return may_be_array(array) && may_be_array(mask);
}

// Elements of a vector at positions of several axes, or rows at positions.
bool Lowering::gathers_many(ValueId array, ValueId positions) const {
  const ArrayFacts &of = values_[array].facts, &at = values_[positions].facts;
  return of.rank > 0 && at.rank > 0 && of.rank + at.rank > 2 && at.dtype != DType::kBool && !is_float(at.dtype) && !is_complex(at.dtype);
}

// Is it indexed by a list, or by a tuple with an array or a list in it?
bool Lowering::has_places(ValueId array, ValueId index) const {
  const Op& tuple = op(index);
  const auto holds = [&](ValueId v) { return values_[v].facts.rank > 0 || known_type(v) == &PyList_Type; };
  if (values_[array].facts.rank < 1 || tuple.kind != OpKind::build_tuple) return values_[array].facts.rank > 0 && holds(index);
  return std::any_of(in(tuple), in(tuple) + tuple.n_inputs, holds);
}

void Lowering::emit_get_item(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kLookup) return emit_lookup(o, i);
  if (form(i).mode == Mode::kText) return emit_text(o, i);
  if (form(i).mode == Mode::kByte) return emit_byte(o, i);
  if (form(i).mode == Mode::kItem) return emit_item(o, i);
  if (form(i).mode == Mode::kElement) return emit_element(o, i);
  if (form(i).mode == Mode::kVirtual) return emit_row(o, i);
  if (form(i).mode == Mode::kView) return emit_view(o, i);
  if (form(i).mode == Mode::kGather) return emit_gather(o, i);
  if (form(i).mode == Mode::kPiece) return emit_piece(o, i);
  const ValueId index = in(o)[1];
  const PyTypeObject* type = known_type(in(o)[0]);
  const bool of_items = !type || type == &PyList_Type || type == &PyTuple_Type;  // (others ask for an object, and a constant has one)
  if (form(i).mode != Mode::kIndex || (!of_items && is_constant(index))) {
    emit_python(o, i);
    p_->steps.back().fn = may_be_masked(in(o)[0], index)  ? step_get_masked
                          : gathers_many(in(o)[0], index) ? step_gather_many
                          : has_places(in(o)[0], index)   ? step_get_places
                                                          : step_get_item;
    return;
  }
  int32_t container = boxed(in(o)[0], o, i);
  Step s = base(o, i);
  const bool numpy = typed::is_numpy_integer(loc(index).rep);
  s.fn = numpy ? step_get_item_numpy_index : step_get_item_index;
  if (!numpy) s.does = native::Do::kItem;
  s.exec = exec_of(o.kind);
  s.dst = loc(i).obj;
  s.a = container;
  s.b = loc(index).raw;
  s.c = numpy ? new_reg() : loc(index).obj;
  s.n = static_cast<int32_t>(loc(index).rep);
  push(s);
  defined(i);
}

void Lowering::emit_set_item(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kLookup) return emit_lookup(o, i);
  if (form(i).mode == Mode::kByte) return emit_byte(o, i);
  if (form(i).mode == Mode::kItem) return emit_item(o, i);
  if (form(i).mode == Mode::kPiece) return emit_piece(o, i);
  if (form(i).mode == Mode::kElement) return emit_element(o, i);
  if (form(i).mode != Mode::kIndex) {
    emit_python(o, i);
    const ValueId index = in(o)[1];
    const bool many = gathers_many(in(o)[0], index) || values_[index].facts.rank == 1;  // (of a vector, at positions of one axis, too)
    p_->steps.back().fn = may_be_masked(in(o)[0], index)        ? step_set_masked
                          : many || has_places(in(o)[0], index) ? step_set_places
                                                                : p_->steps.back().fn;
    return;
  }
  int32_t container = boxed(in(o)[0], o, i);
  int32_t item = boxed(in(o)[2], o, i);
  ValueId index = in(o)[1];
  Step s = base(o, i);
  const bool numpy = typed::is_numpy_integer(loc(index).rep);
  s.fn = numpy ? step_set_item_numpy_index : step_set_item_index;
  if (!numpy) s.does = native::Do::kSetItem;
  s.exec = exec_of(o.kind);
  s.a = container;
  s.b = loc(index).raw;
  s.c = numpy ? -1 : loc(index).obj;
  s.n = static_cast<int32_t>(loc(index).rep);
  s.other = item;
  push(s);
}

// What comes at once: the items that a tuple is taken apart into behind it, which is not built.
void Lowering::emit_next(const Op& o, ValueId i) {
  const Walk walk = walk_of(o.imm);
  const std::vector<ValueId> items = typed::walked_by(t(), i);
  NextPlan& plan_of_items = p_->nexts.emplace_back();
  plan_of_items.holder = walk.holder;
  for (const ValueId v : items) {
    NextItem& item = plan_of_items.items[plan_of_items.n];
    item.over = walk.over[plan_of_items.n++];
    const Loc& l = loc(v);
    item.rep = values_[v].rep;
    item.raw = item.rep == Rep::kNone || l.raw >= 0 ? l.raw : new_reg();
    item.obj = values_[v].born_raw ? -1 : l.obj;
    plan_of_items.objects |= item.rep == Rep::kNone && (item.over == Walked::kList || item.over == Walked::kTuple);
  }
  Step s = base(o, i);
  s.other = plan(i, 1);
  s.a = boxed(in(o)[0], o, i);
  s.fn = step_next;
  s.does = native::Do::kNext;
  s.next = &plan_of_items;
  push(s);
  for (size_t k = 0; k < items.size(); ++k) {
    defined(items[k]);
    const bool text = walk.over[k] == Walked::kAscii || walk.over[k] == Walked::kText;
    if (text) proven(items[k], reinterpret_cast<PyObject*>(&PyUnicode_Type), i);
  }
  if (walk.holder == Holder::kNone) return;
  Virtual& tuple = p_->virtuals.emplace_back();
  tuple.reg = loc(i).obj;
  for (const ValueId v : items) tuple.parts.push_back(loc(v));
  is_not_built(i, &tuple);
  proven(i, reinterpret_cast<PyObject*>(&PyTuple_Type), i);
}

namespace {
const PyObject* list_iterator() { return reinterpret_cast<PyObject*>(&PyListIter_Type); }
const PyObject* tuple_iterator() { return reinterpret_cast<PyObject*>(&PyTupleIter_Type); }
}  // namespace

void Lowering::emit_iter_next(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kNext) return emit_next(o, i);
  if (form(i).mode == Mode::kItem) return emit_item(o, i);
  int32_t iterator = boxed(in(o)[0], o, i);
  Step s = base(o, i);
  s.other = plan(i, 1);
  s.a = iterator;
  s.dst = loc(i).obj;
  s.fn = !expects_item(o.imm) ? step_iter_end : step_iter_next;
  if (form(i).mode == Mode::kRange) {
    s.fn = !expects_item(o.imm) ? step_range_end : step_range_next;
    s.does = !expects_item(o.imm) ? native::Do::kRangeEnd : native::Do::kRangeNext;
    s.c = loc(i).raw;
  } else if (form(i).mode == Mode::kElement) {
    s.fn = next_element_step(t().facts[o.facts].dtype);
    s.does = native::Do::kNextElement;
    s.rep = typed::rep_of_dtype(t().facts[o.facts].dtype);
    s.dst = loc(i).raw;
  } else if (const PyObject* type = values_[in(o)[0]].type; !expects_item(o.imm) && (type == list_iterator() || type == tuple_iterator())) {
    s.does = native::Do::kItemsEnd;
    s.imm = type == tuple_iterator();
  }
  s.advances = s.fn == step_iter_next && !s.linked;
  if (s.advances && world_proven_) settles_ = static_cast<int32_t>(p_->steps.size());
  push(s);
  if (expects_item(o.imm)) defined(i);
}

}  // namespace dalsegno::replay
