// The forms of calls.
#include <algorithm>
#include <iterator>

#include "replay/typed/inference.h"

namespace dalsegno::typed {

std::optional<int64_t> ddof_of(const TypedTrace& typed, const Op& op) {
  if (op.kind != OpKind::call || op.object < 0 || op.n_inputs != 3 || !typed.known.objects[op.object].names_ddof) return {};
  const ValueId* inputs = typed.inputs_of(op);
  const Op &callee = typed.trace->ops[inputs[0]], &number = typed.trace->ops[inputs[2]];
  if (callee.kind != OpKind::constant || number.kind != OpKind::constant) return {};
  const ObjectFacts& ddof = typed.known.objects[number.object];
  if (!finds_spread(typed.known.objects[callee.object].callee) || ddof.type != Type::kInt || !ddof.unboxes || ddof.bits < 0) return {};
  return ddof.bits;
}

Rep Inference::python_rep(DType dtype) {
  const Bits bits = bits_of(rep_of_dtype(dtype));
  if (bits == Bits::kComplex) return Rep::kComplex;
  return dtype == DType::kBool ? Rep::kBool : bits == Bits::kInt64 ? Rep::kInt : Rep::kFloat;
}

// The product of two vectors of one dtype.
bool Inference::form_product(const Op& o, ValueId i, const ValueId* factors) {
  const ArrayFacts &a = arrays_[factors[0]], &b = arrays_[factors[1]];
  if (a.rank != 1 || !(a == b) || !multiplies(a.dtype)) return false;
  form(i).mode = Mode::kProduct;
  form(i).view = a;
  born(i, rep_of_dtype(a.dtype));
  return true;
}

void Inference::form_reduction(const Op& o, ValueId i, Callee callee) {
  const ArrayFacts& array = arrays_[in(o)[1]];
  if ((o.n_inputs != 2 && !ddof_of(typed_, o)) || array.rank < 1 || array.rank > kMaxViewRank) return;
  const Rep made = reduced_rep(callee, array.dtype);
  if (made == Rep::kNone) return;
  form(i).mode = Mode::kReduction;
  form(i).callee = callee;
  form(i).view = array;
  born(i, made);
}

bool Inference::multiplies(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kFloat32 || dtype == DType::kInt64 || dtype == DType::kInt32;
}

// Of a class written in Python: made here, or asked for an attribute.
bool Inference::is_instance(ValueId v) const {
  if (op(v).kind == OpKind::make_instance) return true;
  constexpr OpKind kAsking[] = {OpKind::own_attr, OpKind::class_attr, OpKind::set_own_attr};
  return std::any_of(typed_.trace->ops.begin(), typed_.trace->ops.end(), [&](const Op& o) {
    return std::find(std::begin(kAsking), std::end(kAsking), o.kind) != std::end(kAsking) && in(o)[0] == v;
  });
}

void Inference::form_call(const Op& o, ValueId i) {
  arrays_[i] = array_of(o);
  if ((o.object >= 0 && !ddof_of(typed_, o)) || o.fn != ArrayFn::none || !is_constant(in(o)[0])) return;
  const Callee callee = constant(in(o)[0]).callee;
  if (draw_of(callee).result != Rep::kNone) return form_draw(o, i, callee);
  if (o.n_inputs < 2) return;
  if (callee == Callee::kNone) return;
  if (callee == Callee::kLen) {
    if (o.n_inputs != 2 || (o.effects & kRunsCode)) return;
    form(i).mode = Mode::kLength;
    return born(i, Rep::kInt);
  }
  if (callee == Callee::kRange) return form_range(o, i);
  if (reduces(callee)) return form_reduction(o, i, callee);
  if (callee == Callee::kDot || callee == Callee::kDotMethod || callee == Callee::kMatmul) {
    if (o.n_inputs == 3 && form_product(o, i, in(o) + 1)) form(i).callee = callee;
    return;
  }
  if (callee == Callee::kRoundTo || (callee == Callee::kRound && o.n_inputs == 3)) return form_round(o, i, callee);
  if (callee == Callee::kOrd) return form_ord(o, i);
  if (is_text_test(callee)) return form_text_test(o, i, callee);
  if (callee == Callee::kItem) return form_item(o, i);
  if (callee == Callee::kAppend || callee == Callee::kPop) return form_list_call(o, i, callee);
  if (callee == Callee::kHeappush || callee == Callee::kHeappop) {
    if (o.n_inputs != (callee == Callee::kHeappush ? 3 : 2) || is_instance(callee == Callee::kHeappush ? in(o)[2] : i)) return;
    form(i) = {.mode = Mode::kHeap, .callee = callee};
    if (callee == Callee::kHeappop) value(i).rep = expected_[i];
    return;
  }
  if (callee == Callee::kGet || callee == Callee::kAdd) {
    const bool one = o.n_inputs == 3, two = o.n_inputs == 4 && callee == Callee::kGet;
    if ((one || two) && is_lookup(i, in(o)[1], in(o)[2])) form_lookup(i, callee);
    return;
  }
  std::vector<Rep> arguments;
  for (int32_t k = 1; k < o.n_inputs; ++k) arguments.push_back(typed_.rep_in_ops(in(o)[k]));
  const ArrayFn fn = callee == Callee::kUfunc ? constant(in(o)[0]).ufunc : ArrayFn::none;
  const auto operator_called = [&] {
    if (callee == Callee::kScalar)
      return arguments.size() == 1 ? scalar_operator(rep_of_type(constant(in(o)[0]).names), arguments[0]) : Operator{};
    return fn != ArrayFn::none ? ufunc_operator(fn, arguments) : call_operator(callee, arguments);
  };
  const Operator found = operator_called();
  if (!found) return;
  const Callee test = test_of(fn);
  form(i) = {Mode::kTyped, found, test != Callee::kNone ? test : callee, fn};
  born(i, found.result);
}

// Of a generator, or by a method bound to one; numbers come last.
void Inference::form_draw(const Op& o, ValueId i, Callee callee) {
  const Draw draw = draw_of(callee);
  const int32_t first = draw.first_number(o.n_inputs), given = o.n_inputs - first;
  if (first < 1 || first > 2 || given < draw.least || given > draw.most || (o.effects & kRunsCode)) return;
  if (draw.most > 0 && typed_.known.box_ints) return;
  for (int32_t k = first; k < o.n_inputs; ++k)
    if (const Rep rep = typed_.rep_in_ops(in(o)[k]); rep != Rep::kInt && !(draw.takes_floats() && rep == Rep::kFloat)) return;
  form(i) = {.mode = Mode::kDraw, .callee = callee};
  born(i, draw.result);
}

// np.round(x), np.round(x, places) and, of NumPy's double, round(x, places), which is the same. (Python's own float rounds by its digits.)
void Inference::form_round(const Op& o, ValueId i, Callee callee) {
  const Rep rep = typed_.rep_in_ops(in(o)[1]);
  const bool takes = rep == Rep::kNpFloat64 || (rep == Rep::kFloat && callee == Callee::kRoundTo);
  if (!takes || o.n_inputs > 3) return;
  const Operator found{Rep::kFloat, Rep::kNpFloat64};
  if (o.n_inputs == 2) {
    form(i) = {Mode::kTyped, found, Callee::kUfunc, ArrayFn::rint};
    return born(i, found.result);
  }
  const ValueId places = in(o)[2];
  if (!is_constant(places) || typed_.rep_in_ops(places) != Rep::kInt || !constant(places).unboxes) return;
  if (constant(places).bits < 0 || constant(places).bits > kMostPlaces) return;
  form(i) = {Mode::kTyped, found, Callee::kRoundTo};
  born(i, found.result);
}

void Inference::form_ord(const Op& o, ValueId i) {
  if (o.n_inputs != 2 || types_[in(o)[1]] != Type::kText || typed_.known.box_ints) return;
  form(i) = {.mode = Mode::kText, .callee = Callee::kOrd};
  born(i, Rep::kInt);
}

void Inference::form_text_test(const Op& o, ValueId i, Callee callee) {
  if (o.n_inputs != 1 + texts_tested(callee) || (o.effects & kRunsCode)) return;
  for (int32_t k = 1; k < o.n_inputs; ++k)
    if (types_[in(o)[k]] != Type::kText) return;
  form(i) = {.mode = Mode::kText, .callee = callee};
  born(i, Rep::kBool);
}

// A range that nothing but the iter() behind it takes.
void Inference::form_range(const Op& o, ValueId i) {
  if (o.n_inputs > 4) return;
  for (int32_t k = 1; k < o.n_inputs; ++k)
    if (typed_.rep_in_ops(in(o)[k]) != Rep::kInt) return;
  if (uses_[i] != 1 || !iterated_alone(i)) return;
  form(i) = {.mode = Mode::kVirtual, .callee = Callee::kRange};
}

bool Inference::iterated_alone(ValueId v) const {
  bool iterated = false;
  for (ValueId i = v + 1; i < static_cast<ValueId>(t_.ops.size()); ++i) {
    const Op& o = op(i);
    if (!takes(t_, o, v)) continue;
    if (o.kind == OpKind::release) return iterated;
    if (o.kind != OpKind::get_iter) return false;
    iterated = true;
  }
  return false;
}

void Inference::form_iterator(const Op& o, ValueId i) {
  const OpForm& range = form(in(o)[0]);
  if (range.mode != Mode::kVirtual || range.callee != Callee::kRange) return;
  form(i).mode = Mode::kIterator;
  types_[i] = Type::kRangeIterator;
}

// a.item(i) is the element as Python's own number.
void Inference::form_item(const Op& o, ValueId i) {
  if (!is_element(o)) return;
  const DType dtype = t_.facts[o.facts].dtype;
  if (dtype == DType::kFloat32 || dtype == DType::kUint64 || (typed_.known.box_ints && python_rep(dtype) == Rep::kInt)) return;
  form(i) = {Mode::kElement, {}, Callee::kItem};
  born(i, python_rep(dtype));
}

// xs.append(v), xs.pop()
void Inference::form_list_call(const Op& o, ValueId i, Callee callee) {
  if (types_[in(o)[1]] != Type::kList || o.n_inputs != (callee == Callee::kAppend ? 3 : 2)) return;
  form(i).callee = callee;
  form_item_of(i, Type::kList);
}

}  // namespace dalsegno::typed
