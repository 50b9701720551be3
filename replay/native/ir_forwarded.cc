// Recurrences along an array: `y[i] = a * x[i] + b * y[i - 1]`. What a turn stores, and the next one loads, is kept in a variable as well:
// the memory would take longer to give it back than the operation on it takes. (Scalar replacement across iterations: Callahan, Carr,
// Kennedy 1990.) In the copy of a loop whose checks are hoisted only, where the range's step is the one that it holds for.
//
// All that the loop stores to is one element a turn, of one array, so nothing comes between. The first turn's is loaded before.
#include <algorithm>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {
namespace {

bool writes_unknown_memory(Do what) {
  constexpr Do kWriting[] = {Do::kStep, Do::kQuick, Do::kPiece, Do::kPutByte, Do::kPutNumber};
  return std::find(std::begin(kWriting), std::end(kWriting), what) != std::end(kWriting);
}

}  // namespace

void Writer::find_forwarded(int32_t loop, const std::vector<int32_t>& turns, Hoisted* hoisted) const {
  const Element* stored = nullptr;
  int32_t first_store = std::numeric_limits<int32_t>::max();
  std::set<int32_t> storing;  // blocks
  for (int32_t block : hoisted->blocks) {
    int32_t number = region_.blocks[block].number - 1;
    for (const Instr& in : region_.blocks[block].instrs) {
      ++number;
      if (writes_unknown_memory(in.what)) return;
      if (in.what != Do::kStore) continue;
      const auto found = hoisted->elements.find(number);
      if (found == hoisted->elements.end() || *memory_of(in.rep).wider) return;
      const auto same = [](const Place& a, const Place& b) { return a.base == b.base && a.offset == b.offset; };
      const std::vector<Place>& at = found->second.at;
      if (stored && (stored->fact != found->second.fact || !std::equal(at.begin(), at.end(), stored->at.begin(), same))) return;
      stored = &found->second;
      storing.insert(block);
      if (block == loop) first_store = std::min(first_store, number);
    }
  }
  if (!stored) return;
  const auto stores = [&](int32_t block) {  // does each turn that ends there? (A side trace may turn off before its parent's store.)
    return storing.contains(block) && (block == loop || std::find(turns.begin(), turns.end(), block) != turns.end());
  };
  if (!std::all_of(turns.begin(), turns.end(), stores)) return;
  for (const auto& [number, element] : hoisted->elements) {
    if (element.written || element.fact != stored->fact || block_at(number) != loop || number > first_store) continue;
    int64_t distance = 0;
    bool follows = true;
    for (size_t axis = 0; axis < element.at.size(); ++axis) {
      const Place &from = element.at[axis], &to = stored->at[axis];
      const int64_t by = to.offset - from.offset;
      const bool moves = from.base == hoisted->item;
      follows &= from.base == to.base && (moves ? by != 0 && (distance == 0 || by == distance) : by == 0);
      if (moves) distance = by;
    }
    Forwarded& forwarded = hoisted->forwarded;
    if (!follows || distance == 0 || (forwarded.step != 0 && distance != forwarded.step)) continue;
    if (forwarded.step == 0) forwarded.first = number;
    forwarded.step = distance;
    forwarded.loads.insert(number);
  }
}

// Before the first turn, if there is one: what it would load.
void Writer::begin_forwarded(int32_t loop, const Hoisted& hoisted) {
  const Element& element = hoisted.elements.at(hoisted.forwarded.first);
  const std::string name = name_of_forwarded(loop), array = name_of(element.fact), range = name_of(hoisted.range);
  const std::string some = label("y"), join = label("j"), type = memory_of(element.fact.rep).type;
  line("store " + type + " " + (type == "i64" ? "0" : type == "double" || type == "float" ? "0.0" : "zeroinitializer") + ", ptr " + name);
  branch(op("icmp sgt i64 " + op("load i64, ptr " + range + "left") + ", 0"), some, join, true);
  begin(some);
  std::string at = op("load ptr, ptr " + array + "data");
  for (size_t axis = 0; axis < element.at.size(); ++axis) {
    const auto& [base, offset] = element.at[axis];
    const std::string from = base == hoisted.item ? op("load i64, ptr " + range + "item")
                             : constant(base)     ? std::to_string(*constant(base))
                                                  : op("load i64, ptr " + name_of(base));
    const std::string index = op("add i64 " + from + ", " + std::to_string(offset));
    at = op("getelementptr i8, ptr " + at + ", i64 " +
            op("mul i64 " + index + ", " + op("load i64, ptr " + array + "s" + std::to_string(axis))));
  }
  line("store " + type + " " + op("load " + type + ", ptr " + at + memory_of(element.fact.rep).alignment) + ", ptr " + name);
  go(join);
  begin(join);
}

}  // namespace dalsegno::native
