// If-conversion (Allen, Kennedy, Porterfield, Warren 1983): where a branch parts two short ways to the same loop's next turn, and both do
// no more than compute numbers, both are computed, one behind the other, and what the loop carries is selected. A branch that follows the
// data is guessed wrong half of the time, which costs more than all they do.
//
// Where turns meet only (turns_meet()). Ints that grow too large are left to the step only where that is the way that is taken. (A product
// on the way makes the loop wait for both: the steps of Collatz's sequences took 3.6 ns for 2.0, the branch being guessed right mostly.)
#include <algorithm>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {
namespace {

constexpr ptrdiff_t kMostJoined = 12;  // instructions of both ways

}  // namespace

// Does the instruction do nothing but compute a number, in a few cycles? (NaN is made by a function, which does nothing else.)
bool Writer::is_short(const Instr& in) const {
  const bool whole = in.rep == Rep::kInt || typed::is_modular(in.rep);
  switch (in.what) {
    case Do::kNot:
      return true;
    case Do::kUnary:
    case Do::kTruth:
    case Do::kCompare:
      return whole || in.rep == Rep::kBool || in.rep == Rep::kFloat;
    case Do::kConvert:
      return bits_of(in.rep) == Bits::kInt64 && in.to == Rep::kFloat;
    case Do::kBinary: {
      const auto op = static_cast<BinaryOp>(in.imm);
      const bool divides = op == BinaryOp::floor_divide || op == BinaryOp::remainder;
      if (in.rep == Rep::kFloat) return op == BinaryOp::add || op == BinaryOp::subtract || op == BinaryOp::multiply;
      const bool takes_long = op == BinaryOp::power || op == BinaryOp::true_divide || op == BinaryOp::multiply;
      if (!whole || in.object >= 0 || takes_long) return false;
      return !divides || (shift_of(in) >= 0 && shift_of(in) < 30);
    }
    case Do::kUnbox:
      return is_there(in);
    case Do::kRelease:
      return std::all_of(in.list.begin(), in.list.end(), [&](int32_t reg) { return is_null(key_of(reg)); });
    default:
      return false;
  }
}

// The jump to the loop's next turn, with numbers alone.
bool Writer::goes_round(const Instr& in, int32_t loop) const {
  if (in.what != Do::kJump || in.target != loop || in.asks || !in.promises.empty()) return false;
  const auto nothing = [&](int32_t reg) { return is_null(key_of(reg)); };
  return std::all_of(in.drops.begin(), in.drops.end(), nothing) && std::all_of(in.moves.begin(), in.moves.end(), [&](const Move& move) {
           const bool number = !move.boxes && !move.unboxes && move.same < 0;
           const bool object = move.to_object >= 0 && move.from_object >= 0;
           return number && (!object || (nothing(move.from_object) && is_null(key_of(loop, move.to_object))));
         });
}

// Are the instruction's two ways to be joined? It is the one at index_ of the block that is being written.
bool Writer::joins(const Instr& in) {
  const int32_t loop = loop_of(block_), own = block_;
  if (in.side < 0 || (in.what != Do::kGuardTruth && in.what != Do::kGuardedCompare) || !turns_meet(loop)) return false;
  const Block &here = region_.blocks[own], &side = region_.blocks[in.side];
  if (!is_light(in.side) || side.asks || typed::is_pair(in.rep)) return false;
  const auto from = here.instrs.begin() + static_cast<ptrdiff_t>(index_) + 1;
  if ((here.instrs.end() - from) + (side.instrs.end() - side.instrs.begin()) - 2 > kMostJoined) return false;
  const std::map<Key, int> writes = writes_in(loop);
  const auto is_own = [&](const Use& use) {  // nobody else has anything there
    return !use.written || (writes.at(key_of(use.reg)) == 1 && !carried_.contains(key_of(use.reg)));
  };
  const auto is_way = [&](int32_t block, auto first, auto last) {
    block_ = block;
    return goes_round(*last, loop) && std::all_of(first, last, [&](const Instr& each) {
             const std::vector<Use> uses = uses_of(each);
             return is_short(each) && (is_there(each) || std::all_of(uses.begin(), uses.end(), is_own));
           });
  };
  const bool both = is_way(own, from, here.instrs.end() - 1) && is_way(in.side, side.instrs.begin(), side.instrs.end() - 1);
  block_ = own;
  return both;
}

// The rest of the block that is being written, from the instruction at index_ on, but for its jump. What that carries.
std::map<Writer::Key, std::string> Writer::write_way(const std::string& taken) {
  const std::vector<Instr>& instrs = region_.blocks[block_].instrs;
  taken_ = taken;
  for (; index_ + 1 < instrs.size(); ++number_, ++index_) write(instrs[index_]);
  taken_.clear();
  std::map<Key, std::string> carried;
  for (const Move& move : instrs.back().moves)
    if (move.to >= 0) carried[key_of(instrs.back().target, move.to)] = get(move.from);
  return carried;
}

void Writer::join(const Instr& in) {
  const int32_t own = block_;
  const Instr& back = region_.blocks[own].instrs.back();
  std::string goes = in.what == Do::kGuardTruth ? op("icmp ne i64 " + get(in.a) + ", 0") : compared(in);
  if (in.n == 0) goes = op("xor i1 " + goes + ", true");
  const std::string other = op("xor i1 " + goes + ", true");
  const std::set<Key> dirty = dirty_;
  const std::set<Fact> facts = fresh_;
  ++number_, ++index_;
  const int32_t leave = leave_;
  std::map<Key, std::string> first = write_way(goes);
  const int32_t number = number_;
  const size_t index = index_;
  block_ = in.side, number_ = region_.blocks[in.side].number, index_ = 0;
  dirty_ = dirty, fresh_ = facts, leave_ = leave;
  find_live(region_.blocks[in.side]);
  std::map<Key, std::string> second = write_way(other);
  block_ = own, number_ = number, index_ = index;
  dirty_ = dirty, fresh_ = facts, leave_ = leave;
  find_live(region_.blocks[own]);
  joined_.insert(in.side);
  if (planted(Fault::native_joined)) std::swap(first, second);
  const GoesAlong known = goes_along(back);
  let_go_for(back.target);
  const auto value = [&](const std::map<Key, std::string>& way, Key key, const std::string& type) {
    const auto found = way.find(key);
    return found != way.end() ? found->second : op("load " + type + ", ptr " + name_of(key));
  };
  std::map<Key, std::string> all = first;
  all.insert(second.begin(), second.end());
  for (auto& [key, chosen] : all) {
    const std::string type = type_of(slots_.at(key)), one = value(first, key, type), two = value(second, key, type);
    chosen = one == two ? one : op("select i1 " + goes + ", " + type + " " + one + ", " + type + " " + two);
  }
  for (const auto& [key, chosen] : all) set(key, chosen);
  look_up(back.target, false, known);
  latches_.insert(back.target);
  go("g" + std::to_string(back.target));
}

}  // namespace dalsegno::native
