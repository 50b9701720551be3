// Calls that need no call: builtins and math's functions on unboxed numbers.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "numpy/random.h"
#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

// What native code does for one of math's functions, and for the ufunc, too, as far as it does not leave it to the step.
static typed::Callee same_natively(ArrayFn ufunc) {
  if (ufunc == ArrayFn::sqrt) return typed::Callee::kSqrt;
  return ufunc == ArrayFn::fabs || ufunc == ArrayFn::absolute ? typed::Callee::kFabs : typed::Callee::kNone;
}

void Lowering::emit_call(const Op& o, ValueId i) {
  if (form(i).mode == Mode::kElement) return emit_element(o, i);
  if (form(i).mode == Mode::kItem) return emit_item(o, i);
  if (form(i).mode == Mode::kVirtual) return emit_range(o, i);
  if (form(i).mode == Mode::kDelayed) return delay(o, i);
  if (uses_up(o)) return emit_use(o, i);
  if (form(i).mode == Mode::kLookup) return emit_lookup(o, i);
  if (form(i).mode == Mode::kHeap) return emit_heap(o, i);
  if (form(i).mode == Mode::kProduct) return emit_product(o, i);
  if (form(i).mode == Mode::kReduction) return emit_reduction(o, i);
  if (form(i).mode == Mode::kText)
    return form(i).callee == typed::Callee::kOrd ? emit_number_of(o, i, step_ord, native::Do::kOrd) : emit_text(o, i);
  if (form(i).mode == Mode::kLength) return emit_length(o, i);
  if (form(i).mode == Mode::kDraw) return emit_draw(o, i);
  if (form(i).mode != Mode::kTyped) return emit_python(o, i);
  emit_typed_call(o, i, 1);
}

void Lowering::emit_length(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kLength) return emit_python(o, i);
  const int32_t axis = o.kind == OpKind::get_len ? o.imm : 0;
  if (axis > 0 || values_[in(o)[o.n_inputs - 1]].facts.rank > 0) {
    emit_number_of(o, i, step_extent, native::Do::kExtent);
    p_->steps.back().imm = axis;
    return;
  }
  emit_number_of(o, i, step_length, native::Do::kLength);
  p_->steps.back().imm = offset_of_number(known_type(in(o)[o.n_inputs - 1]));
}

// What the last input's object gives unboxed; n: the number of arguments.
void Lowering::emit_number_of(const Op& o, ValueId i, StepFn fn, native::Do does) {
  const int32_t object = boxed(in(o)[o.n_inputs - 1], o, i);
  Step s = base(o, i);
  s.fn = fn;
  s.does = does;
  s.a = object;
  s.n = o.n_inputs - 1;
  s.dst = loc(i).raw;
  push(s);
  defined(i);
}

// a: the generator, or (n 0) the method bound to it; b, c: the numbers that are given.
void Lowering::emit_draw(const Op& o, ValueId i) {
  const typed::Draw draw = typed::draw_of(form(i).callee);
  const bool by = typed::draws_by_distribution(form(i).callee);
  if (draw.most == 0 && !by) return emit_number_of(o, i, step_draw, native::Do::kDraw);
  const bool between = draw.takes_floats(), bits = form(i).callee == typed::Callee::kRandomBits;
  const int32_t first = draw.first_number(o.n_inputs);
  const Rep rep = between ? Rep::kFloat : Rep::kInt;
  const auto number = [&](int32_t k) { return k < o.n_inputs ? raw(in(o)[k], rep, o, i) : -1; };
  const int32_t object = boxed(in(o)[first - 1], o, i), b = number(first), c = number(first + 1);
  Step s = base(o, i);
  s.fn = by ? step_draw_by : bits ? step_draw_bits : step_draw_whole;
  if (bits) s.does = native::Do::kDrawBits;
  if (by) s.imm = static_cast<int32_t>(numpy::drawn_by(this->object(op(in(o)[0]).object)));
  s.a = object;
  s.b = b;
  s.c = c;
  s.n = first - 1;
  s.dst = loc(i).raw;
  push(s);
  defined(i);
}

// A part of a complex number.
void Lowering::emit_get_attr(const Op& o, ValueId i) { form(i).mode == Mode::kTyped ? emit_typed_call(o, i, 0) : emit_python(o, i); }

// `first`: of its inputs, the first operand.
void Lowering::emit_typed_call(const Op& o, ValueId i, int32_t first) {
  const typed::OpForm& how = form(i);
  std::vector<int32_t> regs;
  for (int32_t k = first; k < o.n_inputs; ++k) regs.push_back(raw(in(o)[k], how.typed.operand, o, i));
  const auto n = static_cast<int32_t>(regs.size());
  Step s = base(o, i);
  s.a = regs[0];
  s.b = n > 1 ? regs[1] : -1;
  bool shares = false;
  for (int32_t k = first; k < o.n_inputs; ++k) {
    const ValueId v = in(o)[k];
    const bool shared = typed::gives_argument(how.callee, loc(v).rep) && !values_[v].passing;
    regs.push_back(shared ? loc(v).obj : -1);
    shares |= shared;
  }
  s.dst = loc(i).raw;
  if (how.callee == typed::Callee::kUfunc) {
    const bool pair = typed::is_pair(how.typed.operand);
    s.fn = pair ? step_ufunc_of_complex : step_ufunc;
    s.link = -1, s.linked = false;  // it runs no code: what NumPy would say something about leaves
    s.imm = static_cast<int32_t>(how.fn);
    if (const typed::Callee same = pair ? typed::Callee::kNone : same_natively(how.fn); same != typed::Callee::kNone) {
      s.does = native::Do::kCall;
      s.rep = how.typed.operand;
      s.other = static_cast<int32_t>(same);
      s.n = n;
      s.list = list(std::move(regs)).data();
    }
    push(s);
    return defined(i);
  }
  s.fn = call_step(how.callee, how.typed, shares, n);
  s.imm = static_cast<int32_t>(how.typed.operand);
  s.does = native::Do::kCall;
  s.rep = how.typed.operand;
  s.other = static_cast<int32_t>(how.callee);
  s.dst = loc(i).raw;
  s.c = loc(i).obj;
  s.n = n;
  s.list = list(std::move(regs)).data();
  push(s);
  defined(i);
}

// Of what is proven, or made here; null: nothing is known.
PyTypeObject* Lowering::known_type(ValueId v) const {
  if (values_[v].type) return reinterpret_cast<PyTypeObject*>(values_[v].type);
  const Op& o = op(v);
  switch (o.kind) {
    case OpKind::constant:
      return Py_TYPE(object(o.object));
    case OpKind::build_tuple:
      return &PyTuple_Type;
    case OpKind::build_list:
      return &PyList_Type;
    case OpKind::build_slice:
      return &PySlice_Type;
    case OpKind::build_map:
      return &PyDict_Type;
    case OpKind::build_string:
      return &PyUnicode_Type;
    case OpKind::cell_new:
    case OpKind::func_closure:
      return &PyCell_Type;
    case OpKind::make_function:
      return &PyFunction_Type;
    case OpKind::get_item: {  // a part of a list, tuple or text
      PyTypeObject* of = op(in(o)[1]).kind == OpKind::build_slice ? known_type(in(o)[0]) : nullptr;
      return of == &PyList_Type || of == &PyTuple_Type || of == &PyUnicode_Type ? of : nullptr;
    }
    default:
      return nullptr;
  }
}

// Does it run no code, and nothing by halves, so that native code may call it, and the step sees once more where it fails? (What is given a
// range's iterator is not: native code may have its state in variables. Neither are arrays, of which it knows the memory.)
bool Lowering::is_quick(const Op& o, const Step& s) const {
  constexpr OpKind kKinds[] = {OpKind::call,         OpKind::get_attr,  OpKind::get_item,   OpKind::contains,     OpKind::compare,
                               OpKind::binary,       OpKind::inplace,   OpKind::build_list, OpKind::build_tuple,  OpKind::build_map,
                               OpKind::build_string, OpKind::build_set, OpKind::get_len,    OpKind::format,       OpKind::list_extend,
                               OpKind::build_slice,  OpKind::get_iter,  OpKind::cell_new,   OpKind::make_function};
  if (s.linked || s.link >= 0 || s.fn != step_exec || s.does != native::Do::kStep) return false;
  if (std::find(std::begin(kKinds), std::end(kKinds), o.kind) == std::end(kKinds)) return false;
  const auto is_still = [&](ValueId v) {
    const PyTypeObject* type = known_type(v);
    const OpKind made = op(v).kind;
    const bool text = made == OpKind::format || made == OpKind::build_string || made == OpKind::convert;  // of a class of its own, maybe
    return is_constant(v) || text || values_[v].born_raw || (type && type->tp_iternext == nullptr && type != &PyArray_Type);
  };
  return std::all_of(in(o), in(o) + o.n_inputs, is_still);
}

}  // namespace dalsegno::replay
