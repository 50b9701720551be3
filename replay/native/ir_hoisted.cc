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
  block_ = 0;
}

// How often each number is written in the loop, and the side traces that hang on it.
std::map<Writer::Key, int> Writer::writes_in(int32_t loop) const {
  std::map<Key, int> writes;
  for (int32_t block = loop; block < static_cast<int32_t>(region_.blocks.size()); ++block) {
    if (loop_of(block) != loop) continue;
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
  Hoisted hoisted;
  std::vector<int32_t> turns;  // blocks that end with a turn
  for (int32_t k = loop; k < static_cast<int32_t>(region_.blocks.size()); ++k) {
    const Instr& last = region_.blocks[k].instrs.back();
    if (loop_of(k) != loop || last.what != Do::kJump || last.target != loop) continue;
    turns.push_back(k);
    for (int32_t around = k; hoisted.blocks.insert(around).second && around != loop;) around = region_.blocks[around].parent;
  }
  size_t instructions = 0;
  for (int32_t block : hoisted.blocks) instructions += region_.blocks[block].instrs.size();
  if (turns.empty() || instructions > kMostInstructions) return;
  find_places(loop, turns, &hoisted);
  find_nulls(loop, &hoisted);
  find_forwarded(loop, turns, &hoisted);
  if (!hoisted.elements.empty() || !hoisted.nulls.empty()) hoisted_.emplace(loop, std::move(hoisted));
}

// What follows from the range's item, and what stays as it is from turn to turn.
void Writer::find_places(int32_t loop, const std::vector<int32_t>& turns, Hoisted* hoisted) {
  const std::map<Key, int> writes = writes_in(loop);
  std::map<Key, Place> places;
  for (int32_t block : hoisted->blocks) find_places_in(block, turns, writes, &places, hoisted);  // (parents come first)
  if (hoisted->range.type != kRangeFact) hoisted->elements.clear(), hoisted->sums.clear();
}

void Writer::find_places_in(int32_t block, const std::vector<int32_t>& turns, const std::map<Key, int>& writes,
                            std::map<Key, Place>* places, Hoisted* hoisted) {
  const auto stays = [&](const Fact& fact) {
    return always_.contains(fact) && std::none_of(turns.begin(), turns.end(), [&](int32_t k) { return is_changed(fact, k); });
  };
  block_ = block, number_ = region_.blocks[block].number;
  for (const Instr& in : region_.blocks[block].instrs) {
    const auto once = [&](int32_t reg) {
      const auto found = writes.find(key_of(reg));
      return found != writes.end() && found->second == 1;
    };
    const auto place = [&](int32_t reg) -> std::optional<Place> {
      const Key key = key_of(reg);
      if (const auto found = places->find(key); found != places->end()) return found->second;
      return writes.contains(key) ? std::nullopt : std::optional<Place>({key, 0});
    };
    if (is_loop(block) && in.what == Do::kRangeNext && hoisted->range.type != kRangeFact && once(in.c)) {
      const std::optional<Fact> fact = fact_of(in);
      if (!fact || !stays(*fact)) return;
      hoisted->range = *fact;
      hoisted->item = key_of(in.c);
      (*places)[hoisted->item] = {hoisted->item, 0};
    } else if (in.what == Do::kBinary && in.rep == Rep::kInt && in.object < 0 && once(in.dst)) {
      const auto op = static_cast<BinaryOp>(in.imm);
      const int64_t* by = op == BinaryOp::add || op == BinaryOp::subtract ? constant(key_of(in.b)) : nullptr;
      const std::optional<Place> from = by && -kFarthest < *by && *by < kFarthest ? place(in.a) : std::nullopt;
      if (from && from->offset >= -kFarthest && from->offset <= kFarthest) {
        (*places)[key_of(in.dst)] = {from->base, from->offset + (op == BinaryOp::add ? *by : -*by)};
        hoisted->sums.emplace(number_, from->base);
      }
    } else if ((in.what == Do::kLoad || in.what == Do::kStore) && stays(*fact_of(in))) {
      Element element{*fact_of(in), in.what == Do::kStore, {}};
      for (int32_t reg : in.list)
        if (const std::optional<Place> found = place(reg)) element.at.push_back(*found);
      element.implied = !is_loop(block);
      if (element.at.size() == in.list.size() && (is_loop(block) || is_implied(element, hoisted->elements)))
        hoisted->elements.emplace(number_, std::move(element));
    } else if (is_loop(block) && (in.what == Do::kGuardArray || in.what == Do::kGuardType) && stays(*fact_of(in))) {
      hoisted->facts.insert(*fact_of(in));
    }
    ++number_;
  }
}

// Of an element that not each turn comes to: nothing else has to hold for it. (What is asked of the first and the last item for its sake
// might not, where a branch looks after that.)
bool Writer::is_implied(const Element& element, const std::map<int32_t, Element>& others) {
  for (size_t axis = 0; axis < element.at.size(); ++axis) {
    bool above = false, below = false;
    for (const auto& [number, other] : others) {
      if (other.fact != element.fact || other.implied || other.at[axis].base != element.at[axis].base) continue;
      above |= other.at[axis].offset >= element.at[axis].offset;
      below |= other.at[axis].offset <= element.at[axis].offset;
    }
    if (!above || !below) return false;
  }
  return true;
}

// Object registers that a turn drops from, or moves, and puts nothing into: once there is nothing, there never is. (The objects of numbers
// that came from outside: the first turn drops them.) What a step looks at it may box.
void Writer::find_nulls(int32_t loop, Hoisted* hoisted) const {
  std::set<Key> put;
  std::vector<std::pair<Key, Key>> moved;  // from, to
  const auto asked = [&](int32_t block, int32_t reg) {
    const Key key = key_of(block, reg);
    if (reg >= 0 && is_loop(key.first) && !is_always_null(key) && !region_.blocks[loop].objects.contains(reg)) hoisted->nulls.insert(key);
  };
  for (int32_t block : hoisted->blocks) {
    for (const Move& box : region_.blocks[block].boxes)
      if (box.to_object >= 0) put.insert(key_of(block, box.to_object));
    for (const Instr& in : region_.blocks[block].instrs) {
      if (in.what == Do::kStep) return hoisted->nulls.clear();
      for (int32_t reg : puts(in)) put.insert(key_of(block, reg));
      if (in.what == Do::kRelease)
        for (int32_t reg : in.list) asked(block, reg);
      if (in.what == Do::kUnbox) asked(block, in.a);
      if (in.what != Do::kJump || in.target != loop) continue;
      for (int32_t reg : in.drops) asked(block, reg);
      for (const Move& move : in.moves) {
        if (move.to_object < 0) continue;
        const Key to = key_of(loop, move.to_object);
        asked(block, move.from_object);
        if (move.boxes || move.same >= 0)
          put.insert(to);
        else if (move.from_object >= 0)
          moved.emplace_back(key_of(block, move.from_object), to);
      }
    }
  }
  for (const Key& key : put) hoisted->nulls.erase(key);
  for (bool more = true; more;) {
    more = false;
    for (const auto& [from, to] : moved)
      if (!is_always_null(from) && !hoisted->nulls.contains(from)) more |= hoisted->nulls.erase(to) != 0;
  }
}

// Goes on at the loop's head, in the copy that may be run. What a turn has to drop first is asked for again after one turn.
void Writer::enter_loop(int32_t loop, bool turns) {
  const auto found = hoisted_.find(loop);
  const std::string number = std::to_string(loop), plain = "b" + number, copy = "f" + number;
  if (found == hoisted_.end()) return go(plain);
  if (turns && (hoisted_copy_ || found->second.nulls.empty())) return go(label_of(loop));
  if (turns) {
    const std::string again = label("a"), first = "%first" + number;
    branch(op("load i1, ptr " + first), again, plain);
    begin(again);
    line("store i1 false, ptr " + first);
  } else if (!found->second.nulls.empty()) {
    line("store i1 true, ptr %first" + number);
  }
  const bool forwards = found->second.forwarded.step != 0;
  const std::string copied = forwards ? label("p") : copy;
  branch(holds(found->second), copied, plain, true);
  if (!forwards) return;
  begin(copied);
  begin_forwarded(loop, found->second);
  go(copy);
}

// All turns come here: whoever waits for the thread is asked once, and ways that differ in little become one.
void Writer::write_latch(int32_t loop) {
  const std::string number = std::to_string(loop);
  begin("g" + number);
  const char* again = hoisted_.contains(loop) ? "f" : "b";
  line("br i1 " + nothing_waits() + ", label %" + again + number + ", label %fhead" + number + ", !prof !0");
  begin("fhead" + number);
  for (const Key& key : carried_)
    if (key.first == loop) store_to_file(key);
  for (const Fact& fact : always_)
    if (fact.key.first == loop && fact.type == kRangeFact) rewind(fact.key);
  line("ret i32 " + std::to_string(region_.blocks[loop].number));
}

std::string Writer::holds(const Hoisted& hoisted) {
  std::string all = hoisted.range.type == kRangeFact ? op("load i1, ptr " + name_of(hoisted.range) + "ok") : "";
  const auto also = [&](const std::string& condition) { all = all.empty() ? condition : op("and i1 " + all + ", " + condition); };
  for (const Fact& fact : hoisted.facts) also(op("load i1, ptr " + name_of(fact) + "ok"));
  for (const Key& key : hoisted.nulls) also(op("icmp eq ptr " + op("load ptr, ptr " + place(key.first, key.second)) + ", null"));
  if (!hoisted.elements.empty()) also(holds_places(hoisted));
  return all;
}

// Does all that has been hoisted hold? Computed where nothing can overflow: beyond these bounds it does not hold.
std::string Writer::holds_places(const Hoisted& hoisted) {
  std::string all = "true";
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
  if (hoisted.forwarded.step != 0 && !planted(Fault::native_forwarded))
    also("icmp eq i64 " + step + ", " + std::to_string(hoisted.forwarded.step));
  for (const auto& [number, element] : hoisted.elements) {
    const std::string array = name_of(element.fact);
    if (element.implied) {
      for (size_t axis = 0; axis < element.at.size() && element.written; ++axis) {
        const auto extent = [&](const char* part) { return op("load i64, ptr " + array + part + std::to_string(axis)); };
        also("icmp eq i64 " + extent("n") + ", " + extent("wn"));
      }
      continue;
    }
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
  return hoisted_.at(loop_of(block_)).elements.contains(number_) && fresh_.contains(*fact_of(in));
}

// Is it an array that is as it should be?
bool Writer::is_hoisted_array(const Fact& fact) const {
  if (!hoisted_copy_ || !fresh_.contains(fact)) return false;
  const Hoisted& hoisted = hoisted_.at(loop_of(block_));
  const auto& elements = hoisted.elements;
  return hoisted.facts.contains(fact) ||
         std::any_of(elements.begin(), elements.end(), [&](const auto& e) { return e.second.fact == fact; });
}

bool Writer::is_hoisted_sum() const { return hoisted_copy_ && hoisted_.at(loop_of(block_)).sums.contains(number_); }

// The range's iterator is the loop's own.
bool Writer::is_hoisted(const Fact& fact) const {
  return hoisted_copy_ && fresh_.contains(fact) && hoisted_.at(loop_of(block_)).range == fact;
}

}  // namespace dalsegno::native
