#include "replay/typed/virtual.h"

#include <algorithm>

namespace dalsegno::typed {
namespace {

class Virtuals {
 public:
  explicit Virtuals(TypedTrace& typed) : y_(typed), t_(*typed.trace), n_(static_cast<ValueId>(t_.ops.size())) {}

  void run() {
    find_rows();
    find_tuples();
  }

 private:
  const Op& op(ValueId i) const { return t_.ops[i]; }
  const ValueId* in(const Op& o) const { return t_.inputs_of(o); }
  Mode& mode(ValueId i) { return y_.ops[i].mode; }
  bool is_row(ValueId v) { return op(v).kind == OpKind::get_item && mode(v) == Mode::kVirtual; }

  // -- rows

  // First all that could be one; then, as long as there are any, those go that something needs.
  void find_rows() {
    std::vector<int32_t> facts(t_.ops.size(), -1);  // of arrays: by the guards so far, or as array ops give them
    std::vector<ValueId> rows;
    for (ValueId i = 0; i < n_; ++i) {
      const Op& o = op(i);
      if (o.kind == OpKind::guard_array) facts[in(o)[0]] = o.facts;
      if (o.fn != ArrayFn::none) facts[i] = o.facts;
      if (o.kind != OpKind::get_item || !could_be_row(i, facts[in(o)[0]])) continue;
      before_.push_back(y_.ops[i]);
      y_.ops[i] = {.mode = Mode::kVirtual, .facts = facts[in(o)[0]]};
      rows.push_back(i);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = 0; k < rows.size(); ++k) {
        if (!is_row(rows[k]) || stays(rows[k])) continue;
        y_.ops[rows[k]] = before_[k];
        changed = true;
      }
    }
  }

  bool could_be_row(ValueId i, int32_t facts) {
    if (facts < 0 || t_.facts[facts].rank < 2 || mode(i) != Mode::kIndex) return false;
    return is_position(y_.rep_in_ops(in(op(i))[1]));
  }

  bool stays(ValueId row) {
    ValueId last = kNull;
    for (ValueId i = row + 1; i < n_; ++i) {
      const Op& o = op(i);
      if (!takes(t_, o, row) || o.kind == OpKind::release) continue;
      if (!is_of_row(i, row)) return false;
      if (o.kind != OpKind::guard_array) last = i;
    }
    const ValueId array = array_of(row);
    for (ValueId i = row + 1; i < last; ++i)
      if (!leaves_row(op(i), i) || (op(i).kind == OpKind::release && takes(t_, op(i), array))) return false;
    return last != kNull;
  }

  ValueId array_of(ValueId row) {
    while (is_row(row)) row = in(op(row))[0];
    return row;
  }

  // Is that all op i wants of it: what kind of array it is, or an element?
  bool is_of_row(ValueId i, ValueId row) {
    const Op& o = op(i);
    const ArrayFacts& array = t_.facts[y_.ops[row].facts];
    if (o.kind == OpKind::guard_array) return t_.facts[o.facts] == ArrayFacts{array.dtype, array.rank - 1};
    if (!is_row(i) && (mode(i) != Mode::kElement || !element_of(y_, o))) return false;
    return in(o)[o.kind == OpKind::call ? 1 : 0] == row && std::count(in(o), in(o) + o.n_inputs, row) == 1;
  }

  // Can op i change neither a row nor what it is a row of?
  bool leaves_row(const Op& o, ValueId i) {
    if (o.kind == OpKind::release)
      return !(o.effects & kDropsReferences) ||
             std::all_of(in(o), in(o) + o.n_inputs, [&](ValueId v) { return is_number(y_, v) || is_row(v); });
    const Mode how = mode(i);
    return is_pure(o.effects) || o.kind == OpKind::guard_world || how == Mode::kTyped || how == Mode::kElement || how == Mode::kIterator ||
           how == Mode::kVirtual;
  }

  // -- tuples

  void find_tuples() {
    std::vector<ValueId> tuples;
    for (ValueId i = 0; i < n_; ++i) {
      if (mode(i) != Mode::kElement) continue;
      const std::optional<Element> e = element_of(y_, op(i));
      if (!e || e->tuple == kNull || mode(e->tuple) == Mode::kVirtual) continue;
      mode(e->tuple) = Mode::kVirtual;
      tuples.push_back(e->tuple);
    }
    if (tuples.empty()) return;
    for (ValueId i = 0; i < n_; ++i) {
      const Op& o = op(i);
      for (int32_t k = 0; k < o.n_inputs; ++k) {
        const bool index = mode(i) == Mode::kElement && k == 1;
        const ValueId v = in(o)[k];
        if (!index && o.kind != OpKind::release && op(v).kind == OpKind::build_tuple && mode(v) == Mode::kVirtual) mode(v) = Mode::kPython;
      }
    }
  }

  TypedTrace& y_;
  const Trace& t_;
  ValueId n_;
  std::vector<OpForm> before_;  // the rows' forms
};

}  // namespace

void find_virtual(TypedTrace& typed) { Virtuals(typed).run(); }

}  // namespace dalsegno::typed
