#include "replay/typed/virtual.h"

#include <algorithm>
#include <utility>

namespace dalsegno::typed {
namespace {

class Virtuals {
 public:
  explicit Virtuals(TypedTrace& typed) : y_(typed), t_(*typed.trace), n_(static_cast<ValueId>(t_.ops.size())) {}

  void run() {
    find_rows();
    find_views();
    find_indices();
    find_unseen();
    find_bound();
    find_used_up();
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

  // -- views

  // What somebody wants as an object is built where it is first wanted: without a tuple, NumPy's parsing of it, or unknown code.
  void find_views() {
    for (ValueId i = 0; i < n_; ++i) {
      const bool plain = mode(i) == Mode::kPython || mode(i) == Mode::kIndex;
      if (op(i).kind == OpKind::get_item && plain && y_.ops[i].view.rank > 0) mode(i) = Mode::kView;
    }
  }

  // -- tuples and slices

  void find_indices() {
    bool some = false;
    for (ValueId i = 0; i < n_; ++i) {
      const bool element = mode(i) == Mode::kElement;
      if (!element && mode(i) != Mode::kView && mode(i) != Mode::kPiece) continue;
      const std::optional<Element> e = element ? element_of(y_, op(i)) : std::nullopt;
      const ValueId index = !element ? in(op(i))[1] : e ? e->tuple : kNull;
      if (index != kNull) some |= put_off(index);
    }
    for (bool changed = some; changed;) {
      changed = false;
      for (ValueId i = 0; i < n_; ++i)
        for (int32_t k = 0; k < op(i).n_inputs; ++k) changed |= needs_object(i, k) && is_index(in(op(i))[k]) && keep(in(op(i))[k]);
    }
  }

  bool is_index(ValueId v) const {
    return (op(v).kind == OpKind::build_tuple || op(v).kind == OpKind::build_slice) && y_.ops[v].mode == Mode::kVirtual;
  }
  bool keep(ValueId v) { return mode(v) = Mode::kPython, true; }

  bool put_off(ValueId index) {
    const Op& o = op(index);
    if (o.kind != OpKind::build_tuple && o.kind != OpKind::build_slice) return false;
    mode(index) = Mode::kVirtual;
    for (int32_t k = 0; k < o.n_inputs; ++k)
      if (op(in(o)[k]).kind == OpKind::build_slice) mode(in(o)[k]) = Mode::kVirtual;
    return true;
  }

  bool needs_object(ValueId i, int32_t k) const {
    const Mode how = y_.ops[i].mode;
    if (op(i).kind == OpKind::release || is_index(i)) return false;
    return !((how == Mode::kElement || how == Mode::kView || how == Mode::kPiece) && k == 1);
  }

  // -- tuples and lists that nobody sees

  void find_unseen() {
    for (ValueId i = 0; i < n_; ++i) {
      const Op& o = op(i);
      const bool one = o.kind == OpKind::build_tuple || o.kind == OpKind::build_list;
      if (!one || mode(i) != Mode::kPython || o.n_inputs == 0) continue;
      if (std::all_of(in(o), in(o) + o.n_inputs, [&](ValueId v) { return is_number(y_, v); }) && dies_unseen(i)) mode(i) = Mode::kVirtual;
    }
  }

  // Methods bound to objects, of which nothing but the calls is left.
  void find_bound() {
    for (ValueId i = 0; i < n_; ++i)
      if (op(i).kind == OpKind::bind_method && mode(i) == Mode::kPython && dies_unseen(i)) mode(i) = Mode::kVirtual;
  }

  // -- generator expressions that a builtin uses up at once

  void find_used_up() {
    for (ValueId i = 0; i < n_; ++i) {
      const std::vector<ValueId> made = made_for(i);
      if (made.empty()) continue;
      bool unseen = true;
      for (ValueId k = made.back(); k < i && unseen; ++k) unseen = leaves_delayed(k, made);
      if (!unseen) continue;
      for (const ValueId v : made) mode(v) = Mode::kDelayed;
    }
  }

  // May op k be done while those are not made? (Who releases what may be seen while it dies makes them first.)
  bool leaves_delayed(ValueId k, const std::vector<ValueId>& made) const {
    const auto is_one = [&](ValueId v) { return std::find(made.begin(), made.end(), v) != made.end(); };
    const Op& o = op(k);
    return is_one(k) || o.kind == OpKind::release || (std::none_of(in(o), in(o) + o.n_inputs, is_one) && keeps_quiet(k));
  }

  // The generator that call i uses up, and what makes its function, the last one first; none: it is no such call.
  std::vector<ValueId> made_for(ValueId i) const {
    if (!calls(i) || op(in(op(i))[0]).kind != OpKind::constant) return {};
    const int32_t operand = y_.known.objects[op(in(op(i))[0]).object].uses_up;
    if (operand == 0 || op(i).n_inputs != operand + 1) return {};
    std::vector<ValueId> made = {in(op(i))[operand]};
    if (!calls(made[0]) || op(made[0]).n_inputs != 2 || (op(made[0]).effects & kRunsCode)) return {};
    for (ValueId v = in(op(made[0]))[0];; v = in(op(v))[0]) {
      constexpr int32_t kClosure = 8;
      const bool attribute = op(v).kind == OpKind::set_function_attribute && op(v).imm == kClosure;
      const bool plain = op(v).kind == OpKind::make_function && (op(v).imm == 0 || op(v).imm == kClosure);
      if (!attribute && !plain) return {};
      made.push_back(v);
      if (plain) break;
    }
    ValueId taker = i;
    for (const ValueId v : made)
      if (y_.ops[v].mode != Mode::kPython || !dies_behind(t_, v, std::exchange(taker, v))) return {};
    return made;
  }

  bool calls(ValueId i) const { return op(i).kind == OpKind::call && op(i).n_inputs > 1 && op(i).object < 0; }

  // Where finalisers may have run the run leaves.
  bool keeps_quiet(ValueId i) const { return leaves_unbuilt(y_, i) || !shows_frames(op(i).effects); }

  bool dies_unseen(ValueId tuple) const {
    for (ValueId i = tuple + 1; i < n_; ++i) {
      const bool passes = op(i).kind == OpKind::enter || op(i).kind == OpKind::leave_frame;  // from frame to frame
      if (takes(t_, op(i), tuple) && !passes) return op(i).kind == OpKind::release;
      if (!leaves_unbuilt(y_, i)) return false;
    }
    return false;
  }

  TypedTrace& y_;
  const Trace& t_;
  ValueId n_;
  std::vector<OpForm> before_;  // the rows' forms
};

}  // namespace

bool leaves_unbuilt(const TypedTrace& typed, ValueId i) {
  const Op& o = typed.trace->ops[i];
  switch (o.kind) {
    case OpKind::constant:
    case OpKind::build_tuple:
    case OpKind::build_list:
    case OpKind::build_slice:
    case OpKind::bind_method:
    case OpKind::guard_type:
    case OpKind::guard_array:
    case OpKind::guard_true:
    case OpKind::guard_false:
    case OpKind::guard_is:
    case OpKind::guard_is_not:
    case OpKind::guard_truthy:
    case OpKind::guard_function:
    case OpKind::guard_defaults:
    case OpKind::guard_builtin:
    case OpKind::guard_world:
    case OpKind::enter:
    case OpKind::leave_frame:
    case OpKind::release:
      return true;
    default:
      break;
  }
  switch (typed.ops[i].mode) {
    case Mode::kTyped:
    case Mode::kAlias:
    case Mode::kFixed:
    case Mode::kElement:
    case Mode::kLength:
    case Mode::kDraw:
    case Mode::kText:
    case Mode::kPart:
    case Mode::kIterator:
    case Mode::kVirtual:
    case Mode::kProduct:
    case Mode::kReduction:
    case Mode::kGather:
    case Mode::kDelayed:
    case Mode::kPiece:
      return true;
    case Mode::kItem:
    case Mode::kByte:
    case Mode::kView:
      return o.kind == OpKind::get_item;
    default:
      return false;
  }
}

void find_virtual(TypedTrace& typed) { Virtuals(typed).run(); }

}  // namespace dalsegno::typed
