// infer() while it runs: which values are unboxed, which ops are typed, who needs the object. Passes over the trace:
//   hoist    a loop's parameters: their guards on types are done where values come in (infer.cc)
//   forms    in order: each op's form follows from the representations of its operands (forms.cc; of calls: form_calls.cc)
//   passing  what is handed on and never seen (infer.cc)
//   virtual  what need not exist as an object (virtual.cc)
//   wants    who uses which part of a value (wants.cc)
// Internal to infer().
#pragma once
#include <utility>
#include <vector>

#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

class Inference {
 public:
  Inference(const Trace& trace, Knowledge known) : t_(trace) {
    typed_.trace = &trace;
    typed_.known = std::move(known);
    typed_.values.resize(trace.ops.size());
    typed_.ops.resize(trace.ops.size());
    types_.resize(trace.ops.size());
    arrays_.assign(trace.ops.size(), kNoFacts);
  }

  // False: it has to be done again without some of the wrapped values, which are in `refused` then.
  bool run(std::vector<bool>* refused);
  TypedTrace take() { return std::move(typed_); }

 private:
  const Op& op(ValueId i) const { return t_.ops[i]; }
  const ValueId* in(const Op& o) const { return t_.inputs_of(o); }
  ValueForm& value(ValueId v) { return typed_.values[v]; }
  OpForm& form(ValueId i) { return typed_.ops[i]; }
  bool is_constant(ValueId v) const { return op(v).kind == OpKind::constant; }
  const ObjectFacts& constant(ValueId v) const { return typed_.known.objects[op(v).object]; }
  Rep rep_named(const Op& guard) const { return allowed(rep_of_type(typed_.known.objects[guard.object].names)); }
  Rep allowed(Rep rep) const { return rep == Rep::kInt && typed_.known.box_ints ? Rep::kNone : rep; }

  // -- infer.cc
  void hoist();
  void unbox_carried();
  void find_expected();
  void count_uses();
  const Op* released_behind(ValueId i) const;
  void find_passing();
  bool is_new(ValueId v);
  uint32_t effects_of(ValueId i) const;
  static bool is_int_remainder(const Op& o, const OpForm& form);

  // -- modular.cc
  void find_natural_params();
  void find_chains(const std::vector<bool>& refused);
  bool is_silent(ValueId i) const;
  bool refuse(std::vector<bool>* refused);
  bool is_not_negative(ValueId v) const;
  Operator modular_operator(const Op& o, ValueId i) const;

  // -- forms.cc
  static bool is_refusing(OpKind kind);
  void born(ValueId i, Rep rep);
  bool is_first(const Op& o) const;
  void form_of(ValueId i);
  void form_guard_type(const Op& o, ValueId i);
  void form_operator(const Op& o, ValueId i);
  void form_truth(const Op& o, ValueId i);
  void form_subscript(const Op& o, ValueId i);
  bool gathers(const Op& o) const;
  bool is_lookup(ValueId i, ValueId container, ValueId key) const;
  void form_lookup(ValueId i, Callee callee);
  bool is_piece(const Op& o, Type container) const;
  bool puts_items(const Op& o, Type container) const;
  void form_piece(ValueId i, Type container);
  void form_letter(ValueId i);
  void form_byte(const Op& o, ValueId i, Type container);
  void form_item_of(ValueId i, Type container);
  void form_next(const Op& o, ValueId i);
  void find_texts(const Op& o, ValueId i);
  ArrayFacts array_of(const Op& o) const;
  ArrayFacts view_of(const Op& o) const;
  bool stores_array(const Op& o, ValueId i);
  bool is_byte(const Op& o, Type container);
  bool is_element(const Op& o) const;
  bool never_same(const Op& o);
  bool compares_as_float(ValueId v, Rep other) const;
  Rep taken_as(ValueId v, Rep other) const;
  bool is_complex_power(const Op& o, Rep a, Rep b) const;
  bool is_whole_power(const Op& o, ValueId i, Rep a, Rep b) const;
  static bool is_equality(const Op& o);
  bool compares_texts(const Op& o);
  void form_part_of_complex(const Op& o, ValueId i);
  Operator operator_of(const Op& o, ValueId i) const;

  // -- form_calls.cc
  static Rep python_rep(DType dtype);
  bool form_product(const Op& o, ValueId i, const ValueId* factors);
  static bool reduces(Callee callee) { return callee >= Callee::kSum && callee <= Callee::kNorm; }
  void form_reduction(const Op& o, ValueId i, Callee callee);
  static bool multiplies(DType dtype);
  void form_call(const Op& o, ValueId i);
  void form_draw(const Op& o, ValueId i, Callee callee);
  void form_round(const Op& o, ValueId i, Callee callee);
  bool is_instance(ValueId v) const;
  void form_ord(const Op& o, ValueId i);
  void form_text_test(const Op& o, ValueId i, Callee callee);
  void form_range(const Op& o, ValueId i);
  bool iterated_alone(ValueId v) const;
  void form_iterator(const Op& o, ValueId i);
  void form_item(const Op& o, ValueId i);
  void form_list_call(const Op& o, ValueId i, Callee callee);

  // -- wants.cc
  void mark_wants(ValueId i);
  void want_arguments(const Op& o, ValueId i);
  bool has_raw(ValueId v, ValueId i) {
    return value(v).rep != Rep::kNone && !is_modular(value(v).rep) && value(v).since < i && !is_constant(v);
  }
  void want_element(const Op& o);
  void want_item(const Op& o);
  void want_call(const Op& o, ValueId i);
  void want_index(const Op& o);
  void want_parts(const Op& o);

  const Trace& t_;
  TypedTrace typed_;
  std::vector<Type> types_;         // proven by guards so far, where they are no representation's
  std::vector<ArrayFacts> arrays_;  // what values are, where they are arrays; rank -1: unknown
  std::vector<Rep> expected_;       // per value: see find_expected()
  std::vector<bool> natural_;       // per parameter: it comes in as a natural
  std::vector<bool> chained_;       // per value: it may be wrapped
  std::vector<ValueId> taker_;      // per value: the last op that takes it
  std::vector<int32_t> uses_;       // per value: how many ops take it, but for guards of its type and releases
};

}  // namespace dalsegno::typed
