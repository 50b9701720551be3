// verify() and print() of typed traces.
#include "replay/typed/modular.h"
#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {
namespace {

class Verifier {
 public:
  explicit Verifier(const TypedTrace& typed) : y_(typed), t_(*typed.trace) {}

  std::string run() {
    const size_t n = t_.ops.size();
    if (y_.values.size() != n || y_.ops.size() != n) return "not one form an op";
    if (y_.known.objects.size() != t_.objects.size()) return "not one row of facts an object";
    for (ValueId i = 0; i < static_cast<ValueId>(n); ++i) {
      std::string fault = value(i);
      if (fault.empty()) fault = op(i);
      if (!fault.empty()) return "op " + std::to_string(i) + " " + op_name(t_.ops[i].kind) + ": " + fault;
    }
    return "";
  }

 private:
  std::string value(ValueId v) const {
    const ValueForm& f = y_.values[v];
    if (f.rep >= Rep::kCount) return "unknown representation";
    if (!op_has_result(t_.ops[v].kind)) return f == ValueForm{} ? "" : "a form without a value";
    if (f.rep == Rep::kNone && (f.born_raw || f.hoisted)) return "unboxed, but as nothing";
    if (f.borrowed && ((y_.ops[v].mode != Mode::kItem && y_.ops[v].mode != Mode::kAttribute) || f.born_raw)) return "borrowed, but no item";
    if (f.rep == Rep::kWrapped && f.wants_obj && t_.ops[v].kind != OpKind::constant) return "wrapped, but an object";
    if (f.rep == Rep::kNone && f.wants_raw) return "an unboxed part is used that there is none of";
    if (f.hoisted && (v >= t_.n_params || t_.anchor != AnchorKind::loop)) return "hoisted, but no parameter of a loop";
    if (f.since != -1 && !guards(f.since, v)) return "unboxed since an op that does not guard it";
    if (f.since != -1 && f.born_raw) return "born unboxed, and unboxed later";
    return "";
  }

  bool guards(int32_t i, ValueId v) const {
    return i > v && i < static_cast<int32_t>(t_.ops.size()) && t_.ops[i].kind == OpKind::guard_type && y_.inputs_of(t_.ops[i])[0] == v;
  }

  // Has v an unboxed part when op i is done?
  bool unboxed(ValueId v, ValueId i) const { return y_.values[v].rep != Rep::kNone && y_.values[v].since < i; }

  std::string op(ValueId i) const {
    const Op& o = t_.ops[i];
    const OpForm& f = y_.ops[i];
    switch (f.mode) {
      case Mode::kPython:
      case Mode::kFixed:
        return "";
      case Mode::kIndex:
        return unboxed(y_.inputs_of(o)[1], i) ? "" : "its index is not unboxed";
      case Mode::kRange:
        return o.kind == OpKind::iter_next && y_.values[i].born_raw ? "" : "no item of a range";
      case Mode::kElement:
        return element(o, i);
      case Mode::kItem:
        return item(o, i);
      case Mode::kLength:
        return (o.kind == OpKind::get_len || (o.kind == OpKind::call && o.n_inputs == 2)) && y_.values[i].born_raw ? ""
                                                                                                                   : "the length of what?";
      case Mode::kDraw:
        for (int32_t k = draw_of(f.callee).first_number(o.n_inputs); k < o.n_inputs; ++k)
          if (k < 1 || !unboxed(y_.inputs_of(o)[k], i)) return "a number drawn up to what?";
        return o.kind == OpKind::call && o.n_inputs <= 4 && y_.values[i].born_raw ? "" : "a number drawn from what?";
      case Mode::kText:
        if (o.kind == OpKind::compare || o.kind == OpKind::call) return y_.values[i].born_raw ? "" : "typed, but its result is not unboxed";
        return o.kind == OpKind::get_item && unboxed(y_.inputs_of(o)[1], i) ? "" : "its index is not unboxed";
      case Mode::kByte:
        for (int32_t k = 1; k < o.n_inputs; ++k)
          if (!unboxed(y_.inputs_of(o)[k], i)) return "operand " + std::to_string(k) + " is not unboxed";
        return o.kind == OpKind::set_item || y_.values[i].born_raw ? "" : "its byte is not unboxed";
      case Mode::kNext:
        return o.kind == OpKind::iter_next && !walked_by(t_, i).empty() ? "" : "the next of what?";
      case Mode::kPart:
        return part(o) ? "" : "a part of what?";
      case Mode::kIterator: {
        const OpForm& range = y_.ops[y_.inputs_of(o)[0]];
        return range.mode == Mode::kVirtual && range.callee == Callee::kRange ? "" : "an iterator over what?";
      }
      case Mode::kVirtual:
        if (o.kind == OpKind::get_item) return row(o, f, i);
        if (o.kind == OpKind::call && f.callee == Callee::kRange) break;
        if (o.kind == OpKind::build_tuple || o.kind == OpKind::build_slice) return index(o, i);
        if (o.kind == OpKind::bind_method || o.kind == OpKind::build_list) return "";
        return "virtual, but neither tuple, list, slice, row, range nor bound method";
      case Mode::kView:
        return view_index_of(y_, o) && f.view.rank > 0 && f.view.rank <= kMaxViewRank ? "" : "a view of what?";
      case Mode::kDelayed:
        return o.kind == OpKind::make_function || o.kind == OpKind::set_function_attribute || o.kind == OpKind::call ? ""
                                                                                                                     : "what is delayed?";
      case Mode::kPiece:
        return view_index_of(y_, o) ? "" : "a piece from where?";
      case Mode::kProduct:
        return f.view.rank == 1 && gives(i, f.view.dtype) ? "" : "a product of what?";
      case Mode::kReduction:
        return f.view.rank > 0 && f.view.rank <= kMaxViewRank && y_.values[i].born_raw &&
                       y_.values[i].rep == reduced_rep(f.callee, f.view.dtype)
                   ? ""
                   : "a reduction of what?";
      case Mode::kGather:
        return o.kind == OpKind::get_item && f.view.rank == 1 ? "" : "gathered of what?";
      case Mode::kHeap:
        return f.callee == Callee::kHeappush || f.callee == Callee::kHeappop ? "" : "a heap without a call";
      case Mode::kAttribute:
        return o.kind == OpKind::own_attr || o.kind == OpKind::set_own_attr ? "" : "an attribute of what?";
      case Mode::kLookup:
        return i > 0 && t_.ops[i - 1].kind == OpKind::guard_quiet_lookup ? "" : "a look-up without its guard";
      case Mode::kAlias:
      case Mode::kTyped:
        break;
    }
    if (is_masked(f)) {
      const auto mask = masked_by(t_, y_.known, o);
      return mask && unboxed(y_.inputs_of(o)[mask->operand], i) ? "" : "masked by what?";
    }
    for (int32_t k = o.kind == OpKind::call ? 1 : 0; k < o.n_inputs; ++k)
      if (!unboxed(y_.inputs_of(o)[k], i)) return "operand " + std::to_string(k) + " is not unboxed";
    return f.mode == Mode::kVirtual || y_.values[i].born_raw ? "" : "typed, but its result is not unboxed";
  }

  bool gives(ValueId i, DType dtype) const { return y_.values[i].born_raw && y_.values[i].rep == rep_of_dtype(dtype); }

  // Of a tuple that exists as its items?
  bool part(const Op& o) const {
    if (o.kind != OpKind::unpack && o.kind != OpKind::tuple_item) return false;
    const ValueId of = y_.inputs_of(o)[0];
    return y_.ops[of].mode == (o.kind == OpKind::unpack ? Mode::kNext : Mode::kPart);
  }

  // Parts that have no object are unboxed.
  std::string index(const Op& o, ValueId i) const {
    for (int32_t k = 0; k < o.n_inputs; ++k) {
      const ValueId part = y_.inputs_of(o)[k];
      if (y_.values[part].passing && !unboxed(part, i)) return "part " + std::to_string(k) + " is not unboxed";
    }
    return "";
  }

  std::string row(const Op& o, const OpForm& f, ValueId i) const {
    if (f.facts < 0 || f.facts >= static_cast<int32_t>(t_.facts.size()) || t_.facts[f.facts].rank < 2) return "a row of what?";
    return unboxed(y_.inputs_of(o)[1], i) ? "" : "its index is not unboxed";
  }

  std::string element(const Op& o, ValueId i) const {
    if (o.facts < 0) return "an element of what?";
    const Rep rep = rep_of_dtype(t_.facts[o.facts].dtype), got = y_.values[i].rep;
    const bool same = o.kind == OpKind::call ? same_bits(rep, got) : got == rep;
    const bool object = rep == Rep::kNone && o.kind == OpKind::get_item;  // of complex64
    if (rep == Rep::kNone && !object) return "an element without a representation";
    if (op_has_result(o.kind) && !object && (!y_.values[i].born_raw || !same)) return "its element is not unboxed";
    if (o.kind == OpKind::iter_next) return t_.facts[o.facts].rank == 1 ? "" : "an iterator over more than elements";
    const std::optional<Element> e = element_of(y_, o);
    if (!e) return "no indices";
    const ArrayFacts &array = t_.facts[e->facts], &own = t_.facts[o.facts];
    if (array.dtype != own.dtype || array.rank != e->rank) return "an element of another array";
    for (int32_t k = 0; k < e->rank; ++k)
      if (e->at[k] != kNull && !unboxed(e->at[k], i)) return "index " + std::to_string(k) + " is not unboxed";
    return e->stored == kNull || unboxed(e->stored, i) ? "" : "what it stores is not unboxed";
  }

  std::string item(const Op& o, ValueId i) const {
    const Item it = item_of(y_, o);
    if (it.container == kNull) return "an item of what?";
    if (y_.values[i].born_raw) return "an item that is no object";
    if (it.index != kNull && !unboxed(it.index, i)) return "its index is not unboxed";
    return it.stored == kNull || !y_.values[it.stored].passing || unboxed(it.stored, i) ? "" : "what it stores is not unboxed";
  }

  const TypedTrace& y_;
  const Trace& t_;
};

constexpr const char* kModes[] = {"python",    "typed",  "alias",   "fixed", "index",  "range",    "element",  "item", "length",
                                  "draw",      "text",   "byte",    "next",  "part",   "iterator", "virtual",  "view", "product",
                                  "reduction", "gather", "delayed", "piece", "lookup", "heap",     "attribute"};

std::string value_text(const TypedTrace& typed, ValueId v) {
  const ValueForm& f = typed.values[v];
  std::string text = rep_name(f.rep);
  if (f.since >= 0) text += " since " + std::to_string(f.since);
  if (f.born_raw) text += " born";
  if (f.hoisted) text += " hoisted";
  if (f.wants_raw) text += " raw";
  if (f.wants_obj) text += " boxed";
  if (f.borrowed) text += " borrowed";
  if (f.passing) text += " passing";
  return text;
}

std::string form_text(const OpForm& form) {
  std::string text = mode_name(form.mode);
  if (form.of_tuple) text += " of a tuple";
  if (form.callee != Callee::kNone) text += std::string(" ") + callee_module(form.callee) + "." + callee_name(form.callee);
  if (form.fn != ArrayFn::none) text += array_fn_name(form.fn);
  if (form.typed) text += std::string(" ") + rep_name(form.typed.operand) + " -> " + rep_name(form.typed.result);
  if (form.typed.real != Real::kNeither) text += form.typed.real == Real::kLeft ? ", left real" : ", right real";
  return text;
}

}  // namespace

const char* mode_name(Mode mode) {
  const auto i = static_cast<size_t>(mode);
  return i < std::size(kModes) ? kModes[i] : "?";
}

std::string verify(const TypedTrace& typed) { return Verifier(typed).run(); }

std::string print(const TypedTrace& typed) {
  const Trace& t = *typed.trace;
  std::string text = "anchor";
  for (ValueId v : slots_of(t.entry)) text += v == kNull ? " null" : std::string(" ") + rep_name(typed.values[v].rep);
  text += typed.known.box_ints ? ", ints boxed\n" : "\n";
  for (ValueId i = 0; i < static_cast<ValueId>(t.ops.size()); ++i) {
    text += print_op(t, i);
    if (op_has_result(t.ops[i].kind)) text += "  : " + value_text(typed, i);
    if (typed.ops[i].mode != Mode::kPython) text += "  [" + form_text(typed.ops[i]) + "]";
    text += "\n";
  }
  return text;
}

}  // namespace dalsegno::typed
