#include "replay/typed/borrow.h"

#include <algorithm>

#include "trace/fault.h"

namespace dalsegno::typed {
namespace {

class Borrowing {
 public:
  explicit Borrowing(TypedTrace& typed) : y_(typed), t_(*typed.trace) {}

  void run() {
    if (builds_on_leaving()) return;
    const auto n = static_cast<ValueId>(t_.ops.size());
    for (ValueId i = 0; i < n; ++i)
      if (gives_item(i) && stays(i)) y_.values[i].borrowed = true;
  }

 private:
  const Op& op(ValueId i) const { return t_.ops[i]; }
  Mode mode(ValueId i) const { return y_.ops[i].mode; }

  // A run that leaves here may first build objects or do array ops that waited, in which a collection or a warning runs code.
  bool builds_on_leaving() const {
    for (ValueId i = 0; i < static_cast<ValueId>(t_.ops.size()); ++i)
      if (op(i).fn != ArrayFn::none || mode(i) == Mode::kView || mode(i) == Mode::kDelayed ||
          (mode(i) == Mode::kVirtual && op(i).kind != OpKind::call))
        return true;  // (a range is no container)
    return false;
  }

  bool gives_item(ValueId i) const {
    return (mode(i) == Mode::kItem && op(i).kind == OpKind::get_item) || (mode(i) == Mode::kAttribute && op(i).kind == OpKind::own_attr);
  }

  // From its birth to its release.
  bool stays(ValueId v) const {
    if (planted(Fault::loose_items)) return true;
    for (ValueId i = v + 1; i < static_cast<ValueId>(t_.ops.size()); ++i) {
      const Op& o = op(i);
      if (o.kind == OpKind::release && takes(t_, o, v)) return true;
      if (keeps(i)) continue;
      return stores_last(i, v);
    }
    return false;
  }

  bool keeps(ValueId i) const {
    const Op& o = op(i);
    switch (o.kind) {
      case OpKind::constant:
      case OpKind::guard_type:
      case OpKind::guard_true:
      case OpKind::guard_false:
      case OpKind::is_:
        return true;
      case OpKind::release:
        return std::all_of(t_.inputs_of(o), t_.inputs_of(o) + o.n_inputs,
                           [&](ValueId v) { return is_number(y_, v) || y_.values[v].borrowed; });
      default:
        break;
    }
    switch (mode(i)) {
      case Mode::kTyped:
      case Mode::kAlias:
      case Mode::kFixed:
      case Mode::kElement:
      case Mode::kRange:
      case Mode::kText:
      case Mode::kByte:
      case Mode::kPart:
      case Mode::kIterator:
        return true;
      case Mode::kVirtual:
        return o.kind == OpKind::call;
      case Mode::kItem:
        return o.kind == OpKind::get_item;
      case Mode::kAttribute:
        return o.kind == OpKind::own_attr;
      case Mode::kLookup:
        return o.kind != OpKind::set_item && o.kind != OpKind::map_add;
      default:
        return false;
    }
  }

  // `xs[i] = v`, `xs.append(v)`, and v is gone: the list takes its own reference before it drops what stood there.
  bool stores_last(ValueId i, ValueId v) const {
    const bool attribute = mode(i) == Mode::kAttribute && op(i).kind == OpKind::set_own_attr && t_.inputs_of(op(i))[1] == v;
    return (attribute || (mode(i) == Mode::kItem && item_of(y_, op(i)).stored == v)) && dies_behind(t_, v, i);
  }

  TypedTrace& y_;
  const Trace& t_;
};

}  // namespace

void find_borrowed(TypedTrace& typed) { Borrowing(typed).run(); }

}  // namespace dalsegno::typed
