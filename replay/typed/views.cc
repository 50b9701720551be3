// Basic indexing, taken apart.
#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {
namespace {

class IndexReader {
 public:
  explicit IndexReader(const TypedTrace& typed) : y_(typed), t_(*typed.trace) {}

  bool read(ValueId index) {
    const Op& o = op(index);
    if (o.kind == OpKind::build_tuple) {
      for (int32_t k = 0; k < o.n_inputs; ++k)
        if (!part(t_.inputs_of(o)[k])) return false;
      return true;
    }
    if (o.kind != OpKind::constant || object(index).positions.empty()) return part(index);
    for (const int64_t position : object(index).positions) {
      IndexPart& made = parts.emplace_back();
      made.constant[0] = position;
      made.given[0] = true;
    }
    return true;
  }

  std::vector<IndexPart> parts;

 private:
  const Op& op(ValueId v) const { return t_.ops[v]; }
  const ObjectFacts& object(ValueId v) const { return y_.known.objects[op(v).object]; }
  bool is_constant(ValueId v) const { return op(v).kind == OpKind::constant; }

  bool part(ValueId v) {
    IndexPart& made = parts.emplace_back();
    if (op(v).kind == OpKind::build_slice) {
      made.kind = IndexPart::kSlice;
      for (int32_t k = 0; k < op(v).n_inputs; ++k)
        if (!number(t_.inputs_of(op(v))[k], static_cast<size_t>(k), &made, true)) return false;
      return true;
    }
    if (is_constant(v) && (object(v).none || object(v).ellipsis)) {
      made.kind = object(v).none ? IndexPart::kNewAxis : IndexPart::kEllipsis;
      return true;
    }
    return number(v, 0, &made, false);
  }

  bool number(ValueId v, size_t k, IndexPart* made, bool may_be_none) const {
    if (is_constant(v) && object(v).none) return may_be_none;
    if (!is_position(y_.rep_in_ops(v))) return false;
    made->given[k] = true;
    if (is_constant(v))
      made->constant[k] = object(v).bits;
    else
      made->at[k] = v;
    return true;
  }

  const TypedTrace& y_;
  const Trace& t_;
};

}  // namespace

std::optional<std::vector<IndexPart>> view_index_of(const TypedTrace& typed, const Op& op) {
  if (op.kind != OpKind::get_item && op.kind != OpKind::set_item) return {};
  IndexReader reader(typed);
  if (!reader.read(typed.inputs_of(op)[1])) return {};
  return std::move(reader.parts);
}

Into into_of(const TypedTrace& typed, const Op& op) {
  const ValueId* inputs = typed.inputs_of(op);
  if (op.kind == OpKind::inplace) return {array_fn_of(static_cast<BinaryOp>(op.imm)), inputs[0], inputs, 2};
  if (op.kind != OpKind::call || op.object < 0 || !typed.known.objects[op.object].names_out) return {};
  const Op& callee = typed.trace->ops[inputs[0]];
  const ArrayFn fn = callee.kind == OpKind::constant ? typed.known.objects[callee.object].ufunc : ArrayFn::none;
  const int32_t n = array_fn_inputs(fn);
  if (!array_fn_is_expr(fn) || op.n_inputs != n + 2) return {};
  return {fn, inputs[n + 1], inputs + 1, n};
}

int32_t rank_of_view(const std::vector<IndexPart>& index, int32_t rank) {
  int32_t taken = 0, left = 0, ellipses = 0;
  for (const IndexPart& part : index) {
    taken += part.kind == IndexPart::kPosition || part.kind == IndexPart::kSlice;
    left += part.kind == IndexPart::kNewAxis || part.kind == IndexPart::kSlice;
    ellipses += part.kind == IndexPart::kEllipsis;
  }
  if (taken > rank || ellipses > 1) return -1;
  left += rank - taken;
  return left <= kMaxViewRank ? left : -1;
}

}  // namespace dalsegno::typed
