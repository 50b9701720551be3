#include "replay/typed/modular.h"

#include <algorithm>
#include <bit>
#include <set>

#include "replay/typed/inference.h"

namespace dalsegno::typed {
namespace {

constexpr uint64_t kHighest = uint64_t{1} << 63;

bool is_binary(const Op& o) { return o.kind == OpKind::binary || o.kind == OpKind::inplace; }
bool is_bitwise(BinaryOp op) { return op == BinaryOp::and_ || op == BinaryOp::or_ || op == BinaryOp::xor_; }

// Does the operator's result modulo 2**64 depend on nothing but its operands modulo 2**64?
bool wraps(const Op& o) {
  if (o.kind == OpKind::unary) return static_cast<UnaryOp>(o.imm) == UnaryOp::negative || static_cast<UnaryOp>(o.imm) == UnaryOp::invert;
  if (!is_binary(o)) return false;
  const auto op = static_cast<BinaryOp>(o.imm);
  return is_bitwise(op) || op == BinaryOp::add || op == BinaryOp::subtract || op == BinaryOp::multiply || op == BinaryOp::lshift;
}

bool is_whole(Rep rep) { return rep == Rep::kInt || rep == Rep::kBool || is_modular(rep); }

const ObjectFacts* int_constant(const Trace& trace, const Knowledge& known, ValueId v) {
  if (trace.ops[v].kind != OpKind::constant) return nullptr;
  const ObjectFacts& facts = known.objects[trace.ops[v].object];
  return facts.type == Type::kInt ? &facts : nullptr;
}
bool is_natural(const ObjectFacts* facts) { return facts && (facts->natural || (facts->unboxes && facts->bits >= 0)); }

// A count that is constant, from `least` to 63.
bool shifts(const ObjectFacts* count, int64_t least) { return count && count->unboxes && count->bits >= least && count->bits < 64; }

}  // namespace

std::optional<Masked> masked_by(const Trace& trace, const Knowledge& known, const Op& o) {
  if (!is_binary(o)) return {};
  const ValueId* in = trace.inputs_of(o);
  const auto op = static_cast<BinaryOp>(o.imm);
  if (op == BinaryOp::and_) {
    for (const int32_t k : {1, 0})
      if (const ObjectFacts* mask = int_constant(trace, known, in[k]); is_natural(mask) && trace.ops[in[1 - k]].kind != OpKind::constant)
        return Masked{1 - k, static_cast<uint64_t>(mask->bits)};
  }
  const ObjectFacts* by = op == BinaryOp::remainder ? int_constant(trace, known, in[1]) : nullptr;
  if (by && (by->power_64 || (is_natural(by) && std::has_single_bit(static_cast<uint64_t>(by->bits)))))
    return Masked{0, static_cast<uint64_t>(by->bits) - 1};
  return {};
}

// A loop's variable is a natural if each turn leaves it as one: by a mask of 64 bits, or computed of such by & | ^. Here the types of
// values are not known yet: a parameter that turns out to be something else is none.
void Inference::find_natural_params() {
  natural_.assign(t_.ops.size(), false);
  const Op& end = t_.ops.back();
  if (end.kind != OpKind::jump || end.imm != t_.number) return;
  const std::vector<ValueId> in = slots_of(t_.entry), out = slots_of(t_.snapshot(end.snapshot));
  std::vector<bool> natural(t_.ops.size(), true), large(t_.ops.size(), false);  // for all that is known; of 64 bits for certain
  const auto look = [&] {
    for (size_t i = static_cast<size_t>(t_.n_params); i < t_.ops.size(); ++i) {
      const Op& o = t_.ops[i];
      if (o.kind == OpKind::constant) {
        natural[i] = is_natural(int_constant(t_, typed_.known, static_cast<ValueId>(i)));
      } else if (const auto masked = masked_by(t_, typed_.known, o)) {
        natural[i] = true, large[i] = masked->mask >= kHighest;
      } else if (is_binary(o)) {
        const ValueId a = this->in(o)[0], b = this->in(o)[1];
        const auto op = static_cast<BinaryOp>(o.imm);
        natural[i] = natural[a] && natural[b] && (is_bitwise(op) || op == BinaryOp::rshift);
        large[i] = natural[i] && is_bitwise(op) && (large[a] || large[b]);
      } else {
        natural[i] = false;
      }
    }
  };
  for (bool again = true; again;) {
    again = false;
    look();
    for (size_t k = 0; k < in.size() && k < out.size(); ++k) {
      if (in[k] == kNull || out[k] == kNull || in[k] >= t_.n_params) continue;
      if (natural[in[k]] && !natural[out[k]]) natural[in[k]] = false, again = true;
      if (large[out[k]] && !large[in[k]]) large[in[k]] = true, again = true;
    }
  }
  for (ValueId v = 0; v < t_.n_params; ++v) natural_[v] = natural[v] && large[v];
}

// What may be wrapped, as far as the operators go.
void Inference::find_chains(const std::vector<bool>& refused) {
  const size_t n = t_.ops.size();
  chained_.assign(n, false);
  taker_.assign(n, kNull);
  for (size_t i = 0; i < n; ++i) {
    const Op& o = t_.ops[i];
    if (o.kind == OpKind::release) continue;
    for (int32_t k = 0; k < o.n_inputs; ++k) taker_[in(o)[k]] = static_cast<ValueId>(i);
  }
  for (size_t i = n; i-- > 0;) {
    if (!wraps(t_.ops[i]) || refused[i] || uses_[i] != 1 || taker_[i] == kNull) continue;
    const Op& taker = t_.ops[taker_[i]];
    const auto masked = masked_by(t_, typed_.known, taker);
    const bool counts = is_binary(taker) && static_cast<BinaryOp>(taker.imm) == BinaryOp::lshift && in(taker)[1] == static_cast<ValueId>(i);
    chained_[i] = !counts && (chained_[taker_[i]] || (masked && in(taker)[masked->operand] == static_cast<ValueId>(i)));
  }
}

bool Inference::is_not_negative(ValueId v) const {
  if (typed_.values[v].rep == Rep::kNatural) return true;
  if (typed_.values[v].rep != Rep::kInt) return false;
  if (is_constant(v)) return constant(v).bits >= 0;
  return typed_.ops[v].typed.operand == Rep::kNatural || masked_by(t_, typed_.known, op(v)).has_value();
}

Operator Inference::modular_operator(const Op& o, ValueId i) const {
  const auto rep = [&](int k) { return allowed(typed_.values[in(o)[k]].rep); };
  if (o.kind == OpKind::compare || !is_whole(rep(0))) return {};
  if (o.kind == OpKind::unary) return chained_[i] && rep(0) != Rep::kBool ? Operator{Rep::kWrapped, Rep::kWrapped} : Operator{};
  const auto op = static_cast<BinaryOp>(o.imm);
  if (const auto masked = masked_by(t_, typed_.known, o); masked && !chained_[i]) {
    const Rep of = rep(masked->operand);
    const bool remains = op == BinaryOp::remainder && of != Rep::kWrapped;  // the remainder may be the very object
    const bool large = masked->mask >= kHighest;
    if (is_whole(of) && !remains && (large || is_modular(of))) return {Rep::kWrapped, large ? Rep::kNatural : Rep::kInt};
  }
  if (!is_whole(rep(1)) || (rep(0) == Rep::kBool && rep(1) == Rep::kBool)) return {};
  const ObjectFacts* count = int_constant(t_, typed_.known, in(o)[1]);
  if (chained_[i]) return op != BinaryOp::lshift || shifts(count, 0) ? Operator{Rep::kWrapped, Rep::kWrapped} : Operator{};
  if (op == BinaryOp::rshift && rep(0) == Rep::kNatural && shifts(count, 1)) return {Rep::kNatural, Rep::kInt};
  const bool natural = (rep(0) == Rep::kNatural || rep(1) == Rep::kNatural) && is_not_negative(in(o)[0]) && is_not_negative(in(o)[1]);
  return natural && is_bitwise(op) ? Operator{Rep::kNatural, Rep::kNatural} : Operator{};
}

// Neither leaves nor shows frames.
bool Inference::is_silent(ValueId i) const {
  const Op& o = op(i);
  const OpForm& how = typed_.ops[i];
  if (o.kind == OpKind::constant) return true;
  if (o.kind == OpKind::release) return std::all_of(in(o), in(o) + o.n_inputs, [&](ValueId v) { return is_number(typed_, v); });
  if (o.kind == OpKind::guard_type) {
    const ValueForm& of = typed_.values[in(o)[0]];
    return (of.born_raw || of.hoisted) && (of.rep == Rep::kNatural || of.rep == Rep::kInt) && rep_named(o) == Rep::kInt;
  }
  return how.mode == Mode::kTyped && is_modular(how.typed.operand);
}

// Wrapped values that something asks for that does not know of them, or that a slot shows where the run may leave.
bool Inference::refuse(std::vector<bool>* refused) {
  const auto n = static_cast<ValueId>(t_.ops.size());
  const auto is_wrapped = [&](ValueId v) { return v != kNull && value(v).rep == Rep::kWrapped && !is_constant(v); };
  bool any = false, again = false;
  const auto give_up = [&](ValueId v) {
    again |= !(*refused)[v];
    (*refused)[v] = true;
  };
  for (ValueId v = 0; v < n; ++v) {
    if (!is_wrapped(v)) continue;
    any = true;
    if (form(taker_[v]).mode != Mode::kTyped || form(taker_[v]).typed.operand != Rep::kWrapped) give_up(v);
  }
  if (!any) return false;
  std::set<int32_t> shown;
  for (ValueId i = 0; i < n; ++i) {
    const Op& o = op(i);
    if (o.kind == OpKind::guard_type && is_wrapped(in(o)[0])) give_up(in(o)[0]);
    if (is_silent(i)) continue;
    shown.insert({o.snapshot, o.exit_snapshot});
  }
  shown.erase(-1);
  for (const int32_t snapshot : shown)
    for (const ValueId v : slots_of(t_.snapshot(snapshot)))
      if (is_wrapped(v)) give_up(v);
  return again;
}

}  // namespace dalsegno::typed
