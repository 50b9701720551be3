// Loops over ranges that read and write elements at places that follow from the range's item are written twice: checked once as they are
// entered, or checked at each element. Classic hoisting of bounds checks by loop versioning (Bik, Girkar, Haghighat 1999), decided anew
// each time the loop is entered.
//
// What has to hold of the first and of the last item then holds of all: places are the item or what the loop does not change, plus a
// constant. A place that is negative is left to the checked copy, which wraps it.
#include <algorithm>
#include <cstddef>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {
namespace {

constexpr size_t kMostInstructions = 160;        // of a loop that is written twice
constexpr int64_t kFarthest = int64_t{1} << 32;  // constant from the item

}  // namespace

void Writer::find_hoisted() {
  for (int32_t loop = 0; loop < static_cast<int32_t>(region_.blocks.size()); ++loop)
    if (is_loop(loop)) find_hoisted(loop);
}

// How often each number is written in a turn of the loop.
std::map<Writer::Key, int> Writer::writes_in(const std::vector<int32_t>& blocks) const {
  std::map<Key, int> writes;
  for (int32_t block : blocks) {
    for (const Instr& in : region_.blocks[block].instrs) {
      for (const Use& use : uses_of(in))
        if (use.written) ++writes[key_of(in.what == Do::kJump ? in.target : block, use.reg)];
      if (in.what == Do::kStep)
        for (int32_t reg : {in.dst, in.c}) ++writes[key_of(block, reg)];
    }
  }
  return writes;
}

void Writer::find_hoisted(int32_t loop) {
  std::vector<int32_t> blocks, turns;  // of the loop; those that end with a turn
  size_t instructions = 0;
  for (int32_t k = loop; k < static_cast<int32_t>(region_.blocks.size()); ++k) {
    if (loop_of(k) != loop) continue;
    blocks.push_back(k);
    instructions += region_.blocks[k].instrs.size();
    const Instr& last = region_.blocks[k].instrs.back();
    if (last.what == Do::kJump && last.target == loop) turns.push_back(k);
  }
  if (instructions > kMostInstructions) return;
  const auto stays = [&](const Fact& fact) {
    return always_.contains(fact) && std::none_of(turns.begin(), turns.end(), [&](int32_t k) { return is_changed(fact, k); });
  };
  const std::map<Key, int> writes = writes_in(blocks);
  Hoisted hoisted;
  std::map<Key, Place> places;
  block_ = loop, number_ = region_.blocks[loop].number;
  for (const Instr& in : region_.blocks[loop].instrs) {
    const auto once = [&](int32_t reg) {
      const auto found = writes.find(key_of(reg));
      return found != writes.end() && found->second == 1;
    };
    const auto place = [&](int32_t reg) -> std::optional<Place> {
      const Key key = key_of(reg);
      if (const auto found = places.find(key); found != places.end()) return found->second;
      return writes.contains(key) ? std::nullopt : std::optional<Place>({key, 0});
    };
    if (in.what == Do::kRangeNext && hoisted.range.type != kRangeFact && once(in.c)) {
      const std::optional<Fact> fact = fact_of(in);
      if (!fact || !stays(*fact)) break;
      hoisted.range = *fact;
      hoisted.item = key_of(in.c);
      places[hoisted.item] = {hoisted.item, 0};
    } else if (in.what == Do::kBinary && in.rep == Rep::kInt && in.object < 0 && once(in.dst)) {
      const auto op = static_cast<BinaryOp>(in.imm);
      const int64_t* by = op == BinaryOp::add || op == BinaryOp::subtract ? constant(key_of(in.b)) : nullptr;
      const std::optional<Place> from = by && -kFarthest < *by && *by < kFarthest ? place(in.a) : std::nullopt;
      if (!from || from->offset < -kFarthest || from->offset > kFarthest) {
        ++number_;
        continue;
      }
      places[key_of(in.dst)] = {from->base, from->offset + (op == BinaryOp::add ? *by : -*by)};
      hoisted.sums.emplace(number_, from->base);
    } else if ((in.what == Do::kLoad || in.what == Do::kStore) && stays(*fact_of(in))) {
      std::vector<Place> at;
      for (int32_t reg : in.list)
        if (const std::optional<Place> found = place(reg)) at.push_back(*found);
      if (at.size() == in.list.size()) hoisted.elements.emplace(number_, Element{*fact_of(in), in.what == Do::kStore, at});
    }
    ++number_;
  }
  block_ = 0;
  if (hoisted.range.type == kRangeFact && !hoisted.elements.empty()) hoisted_.emplace(loop, std::move(hoisted));
}

// Goes on at the loop's head, in the copy that may be run.
void Writer::enter_loop(int32_t loop, bool turns) {
  const auto found = hoisted_.find(loop);
  if (turns) return go(label_of(loop));
  if (found == hoisted_.end()) return go("b" + std::to_string(loop));
  branch(holds(found->second), "f" + std::to_string(loop), "b" + std::to_string(loop), true);
}

// Does all that has been hoisted hold? Computed where nothing can overflow: beyond these bounds it does not hold.
std::string Writer::holds(const Hoisted& hoisted) {
  std::string all = op("load i1, ptr " + name_of(hoisted.range) + "ok");
  std::set<std::string> asked;
  const auto also = [&](const std::string& condition) {
    if (asked.insert(condition).second) all = op("and i1 " + all + ", " + op(condition));
  };
  const auto within = [&](const std::string& value, int64_t limit) {
    also("icmp ult i64 " + op("add i64 " + value + ", " + std::to_string(limit)) + ", " + std::to_string(2 * limit));
  };
  const std::string name = name_of(hoisted.range), first = op("load i64, ptr " + name + "item");
  const std::string step = op("load i64, ptr " + name + "step"), left = op("load i64, ptr " + name + "left");
  within(first, int64_t{1} << 60);
  within(step, int64_t{1} << 20);
  within(left, int64_t{1} << 38);
  const std::string last = op("add i64 " + first + ", " + op("mul i64 " + op("sub i64 " + left + ", 1") + ", " + step));
  const std::string down = op("icmp slt i64 " + step + ", 0");
  const std::string least = op("select i1 " + down + ", i64 " + last + ", i64 " + first);
  const std::string most = op("select i1 " + down + ", i64 " + first + ", i64 " + last);
  const auto base = [&](Key key) { return constant(key) ? std::to_string(*constant(key)) : op("load i64, ptr " + name_of(key)); };
  for (const auto& [number, key] : hoisted.sums)
    if (key != hoisted.item) within(base(key), int64_t{1} << 60);
  for (const auto& [number, element] : hoisted.elements) {
    const std::string array = name_of(element.fact);
    also("icmp ne i1 " + op("load i1, ptr " + array + "ok") + ", false");
    for (size_t axis = 0; axis < element.at.size(); ++axis) {
      const Key key = element.at[axis].base;
      const int64_t offset = element.at[axis].offset;
      const bool item = key == hoisted.item;
      const std::string extent = op("load i64, ptr " + array + (element.written ? "wn" : "n") + std::to_string(axis));
      const auto moved = [&](const std::string& value) {
        return offset == 0 ? value : op("add i64 " + value + ", " + std::to_string(offset));
      };
      if (!item) {
        also("icmp ult i64 " + moved(base(key)) + ", " + extent);
        continue;
      }
      also("icmp sge i64 " + moved(least) + ", 0");
      also(std::string(planted(Fault::native_hoisted) ? "icmp sle" : "icmp slt") + " i64 " + moved(most) + ", " + extent);
    }
  }
  return all;
}

// Is it an element whose place has been looked at?
bool Writer::is_hoisted(const Instr& in) const {
  if (!hoisted_copy_) return false;
  const auto& elements = hoisted_.at(loop_of(block_)).elements;
  return block_ == loop_of(block_) && elements.contains(number_) && fresh_.contains(*fact_of(in));
}

// Is it an array that is as it should be?
bool Writer::is_hoisted_array(const Fact& fact) const {
  if (!hoisted_copy_ || !fresh_.contains(fact)) return false;
  const auto& elements = hoisted_.at(loop_of(block_)).elements;
  return std::any_of(elements.begin(), elements.end(), [&](const auto& e) { return e.second.fact == fact; });
}

bool Writer::is_hoisted_sum() const {
  return hoisted_copy_ && block_ == loop_of(block_) && hoisted_.at(loop_of(block_)).sums.contains(number_);
}

// The range's iterator is the loop's own.
bool Writer::is_hoisted(const Fact& fact) const {
  return hoisted_copy_ && fresh_.contains(fact) && hoisted_.at(loop_of(block_)).range == fact;
}

}  // namespace dalsegno::native
