// Elements of arrays, and what is known of objects.
#include <algorithm>
#include <limits>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {

Writer::Memory Writer::memory_of(Rep rep) {
  if (bits_of(rep) == Bits::kComplex) return {"<2 x double>", "", ", align 8"};  // (as its parts)
  if (bits_of(rep) == Bits::kDouble) return {"double", ""};
  if (bits_of(rep) == Bits::kFloat) return {"float", ""};
  const int size = typed::size_of_integer(rep);
  const bool natural = typed::is_unsigned(rep) || rep == Rep::kNpBool;
  return {size == 1 ? "i8" : size == 2 ? "i16" : size == 4 ? "i32" : "i64", size == 8 ? "" : natural ? "zext" : "sext"};
}

void Writer::element(const Instr& in) {
  const Fact fact = *fact_of(in);
  know(fact);
  refused_.insert(number_);
  const std::string name = name_of(fact), dim = in.what == Do::kStore ? "wn" : "n";
  const bool hoisted = is_hoisted(in) && !planted(Fault::native_hoisted);
  const bool forwards = hoisted && hoisted_.at(loop_of(block_)).forwarded.step != 0;
  if (forwards && in.what == Do::kLoad && hoisted_.at(loop_of(block_)).forwarded.loads.contains(number_))
    return set(in.dst, op("load " + std::string(memory_of(in.rep).type) + ", ptr " + name_of_forwarded(loop_of(block_))));
  std::string at = op("load ptr, ptr " + name + "data");
  for (size_t k = 0; k < in.list.size(); ++k) {
    const std::string axis = std::to_string(k), i = get(in.list[k]);
    const std::string n = op("load i64, ptr " + name + dim + axis), stride = op("load i64, ptr " + name + "s" + axis);
    if (hoisted) {
      at = op("getelementptr i8, ptr " + at + ", i64 " + op("mul nsw i64 " + i + ", " + stride));
      continue;
    }
    const std::string wrapped = op("add i64 " + i + ", " + n);
    std::string index = op("select i1 " + op("icmp slt i64 " + i + ", 0") + ", i64 " + wrapped + ", i64 " + i);
    const std::string inside = op("icmp ult i64 " + index + ", " + n);
    if (planted(Fault::native_bounds) || is_hoisted(in)) {
      guard(op("icmp ne i64 " + n + ", 0"));
      index = op("select i1 " + inside + ", i64 " + index + ", i64 0");
    } else {
      guard(inside);
    }
    at = op("getelementptr i8, ptr " + at + ", i64 " + op("mul i64 " + index + ", " + stride));
  }
  if (in.what == Do::kLoad) return set(in.dst, loaded(in.rep, at));
  const Memory memory = memory_of(in.rep);
  std::string value = get(in.c);
  if (*memory.wider) value = op("trunc i64 " + value + " to " + memory.type);
  line(std::string("store ") + memory.type + " " + value + ", ptr " + at + memory.alignment);
  if (forwards) let(name_of_forwarded(loop_of(block_)), memory.type, value);
}

std::string Writer::loaded(Rep rep, const std::string& at) {
  const Memory memory = memory_of(rep);
  const std::string value = op(std::string("load ") + memory.type + ", ptr " + at + memory.alignment);
  if (rep == Rep::kNpBool) return op("zext i1 " + op("icmp ne i8 " + value + ", 0") + " to i64");  // any byte (a.view(bool))
  return *memory.wider ? op(std::string(memory.wider) + " " + memory.type + " " + value + " to i64") : value;
}

// As next_item(): at its end the iterator itself has to find that out.
void Writer::next_element(const Instr& in) {
  const Fact fact = *fact_of(in);
  know(fact);
  const std::string name = name_of(fact), more = label("m"), end = label("e");
  guard(op("load i1, ptr " + name + "ok"));
  const std::string place = at_offset(object_in(in.a), layout_.iterator_position);
  const std::string at = op("load i64, ptr " + place), n = op("load i64, ptr " + name + "n0");
  guard(op("icmp sge i64 " + at + ", 0"));
  branch(op("icmp slt i64 " + at + ", " + n), more, in.side < 0 ? exit_label() : end);
  if (in.side >= 0) ended(in, end);
  begin(more);
  const std::string offset = op("mul i64 " + at + ", " + op("load i64, ptr " + name + "s0"));
  set(in.dst, loaded(in.rep, op("getelementptr i8, ptr " + op("load ptr, ptr " + name + "data") + ", i64 " + offset)));
  line("store i64 " + op("add i64 " + at + ", 1") + ", ptr " + place);
}

std::optional<Writer::Fact> Writer::fact_of(const Instr& in) const {
  switch (in.what) {
    case Do::kLoad:
    case Do::kStore:
      return Fact{key_of(in.a), -1, in.rep, static_cast<int32_t>(in.list.size())};
    case Do::kGuardArray:
      return Fact{key_of(in.a), -1, in.rep, in.n};
    case Do::kNextElement:
      return Fact{key_of(in.a), kElementsFact, in.rep, 1};
    case Do::kGuardType:
      return Fact{key_of(in.a), in.object};
    case Do::kRangeNext:
    case Do::kRangeEnd:
      if (layout_.range_start < 0) return {};
      return Fact{key_of(in.a), kRangeFact};
    default:
      return {};
  }
}

std::string Writer::name_of(const Fact& fact) {
  const std::string name = "%k" + std::to_string(fact.key.first) + "_" + std::to_string(fact.key.second) + "_";
  if (fact.type == kRangeFact) return name + "r_";
  if (fact.type >= 0) return name + "t" + std::to_string(fact.type) + "_";
  return name + (fact.type == kElementsFact ? "e" : "a") + std::to_string(static_cast<int>(fact.rep)) + "_" + std::to_string(fact.rank) +
         "_";
}

// What each block changes of object registers. What a jump to another loop takes away or brings is looked up there (look_up).
void Writer::find_changes() {
  changes_.assign(region_.blocks.size(), {});
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_) {
    const Block& block = region_.blocks[block_];
    number_ = block.number;
    for (int32_t reg : block.drops) note_change(key_of(reg));
    for (const Move& box : block.boxes)
      if (box.to_object >= 0) note_change(key_of(box.to_object));
    for (const Instr& in : block.instrs) find_given(in), find_changes(in), ++number_;
  }
  block_ = 0;
  find_held();
}

void Writer::find_held() {
  for (int32_t k = 0; k < static_cast<int32_t>(region_.blocks.size()); ++k) {
    const Block& block = region_.blocks[k];
    for (int32_t reg : block.holds) held_.insert(key_of(k, reg));
    for (const Move& box : block.boxes)
      if (box.to_object >= 0) held_.insert(key_of(k, box.to_object));
    for (const Instr& in : block.instrs) {
      if (in.what == Do::kStep) stepped_.insert(loop_of(k));
      for (int32_t reg : puts(in)) held_.insert(key_of(k, reg));
      for (const Move& move : in.moves) held_.insert(key_of(in.target, move.to_object));
    }
  }
}

// The object registers that it may put an object into. (What is done with unboxed numbers makes no boxes, natively or by the step: but for
// a remainder, which may be its operand's object.)
std::vector<int32_t> Writer::puts(const Instr& in) const {
  switch (in.what) {
    case Do::kRangeNext:
    case Do::kRangeEnd:
      if (layout_.range_start < 0) break;
      return {};
    case Do::kBinary:
      if (static_cast<BinaryOp>(in.imm) == BinaryOp::remainder) break;
      return {};
    case Do::kUnary:
    case Do::kCompare:
    case Do::kGuardedCompare:
    case Do::kNot:
    case Do::kTruth:
    case Do::kLoad:
    case Do::kStore:
    case Do::kNextElement:
    case Do::kHasItems:
      return {};
    default:
      break;
  }
  std::vector<int32_t> regs = {in.dst, in.c};
  regs.insert(regs.end(), in.objects.begin(), in.objects.end());
  regs.insert(regs.end(), in.fills.begin(), in.fills.end());
  for (const NextItem& item : in.next) regs.push_back(item.obj);
  return regs;
}

void Writer::find_given(const Instr& in) {
  const bool quick = in.what == Do::kPiece || (in.what == Do::kQuick && in.imm == 0);
  if (in.dst >= 0 && quick) given_.insert(key_of(in.dst));
  if (in.dst >= 0 && (quick || in.what == Do::kStep)) made_anew_.insert(key_of(in.dst));
  if (gives_object(in.what)) given_.insert(key_of(in.dst));
  if (!in.objects.empty()) given_.insert(key_of(in.c));
  if (in.what == Do::kBox && boxes(in.rep)) {
    given_.insert(key_of(in.dst));
    if (spare_of(in.rep) >= 0) boxed_.try_emplace(key_of(in.dst), in.rep);
  }
  for (const NextItem& item : in.next)
    if (item.obj >= 0) given_.insert(key_of(item.obj));
  for (const Move& move : in.moves)
    if ((move.boxes || move.same >= 0) && move.to_object >= 0 && spare_of(move.rep) >= 0)
      boxed_.try_emplace(key_of(in.target, move.to_object), move.rep);
  for (const Move& move : in.moves) {
    if (move.to_object < 0) continue;
    if (move.from_object >= 0 || move.boxes || move.same >= 0) given_.insert(key_of(in.target, move.to_object));
    if (move.from_object >= 0 && made_anew_.contains(key_of(move.from_object))) made_anew_.insert(key_of(in.target, move.to_object));
  }
}

void Writer::note_change(Key key) { changes_[static_cast<size_t>(block_)].changed.try_emplace(key, number_); }

void Writer::find_changes(const Instr& in) {
  Changes& changes = changes_[static_cast<size_t>(block_)];
  if (in.what == Do::kStep) changes.stepped.try_emplace(key_of(in.a), number_);
  if (in.what == Do::kStep && in.runs_code) changes.runs_code = std::min(changes.runs_code, number_);
  for (const NextItem& item : in.next)
    if (item.obj >= 0) note_change(key_of(item.obj));
  for (int32_t reg : {in.dst, in.what == Do::kStep || !in.objects.empty() ? in.c : -1}) note_change(key_of(reg));
  for (int32_t reg : in.objects)
    if (reg >= 0) note_change(key_of(reg));
  for (int32_t reg : in.fills) note_change(key_of(reg));
  if (in.what == Do::kRelease)
    for (int32_t reg : in.list) note_change(key_of(reg));
  if (in.what == Do::kJump && loop_of(block_) != in.target) return;
  for (int32_t reg : in.drops) note_change(key_of(reg));
  for (const Move& move : in.moves)
    for (int32_t reg : {move.from_object, move.to_object}) note_change(key_of(reg));
}

// Has it been changed on the way from the loop's head to the block's end?
bool Writer::is_changed(const Fact& fact, int32_t block) const {
  const bool of_iterator = fact.type == kRangeFact || fact.type == kElementsFact;
  int32_t end = std::numeric_limits<int32_t>::max();  // number of the instruction that the way turns off at
  const auto before_end = [&](const std::map<Key, int32_t>& numbers) {
    const auto found = numbers.find(fact.key);
    return found != numbers.end() && found->second < end;
  };
  for (;; block = region_.blocks[block].parent) {
    const Changes& changes = changes_[static_cast<size_t>(block)];
    if (changes.runs_code < end || before_end(changes.changed) || (of_iterator && before_end(changes.stepped))) return true;
    if (is_loop(block)) return false;
    end = region_.blocks[block].guard;
  }
}

// Does it hold from turn to turn, on one way at least? Where it does not it is looked up again.
bool Writer::holds_always(const Fact& fact) const {
  // Only of what is there where a turn begins: what a turn makes, and some ways come back before, is anything until then.
  if (!is_loop(fact.key.first)) return false;
  const std::vector<int32_t>& there = region_.blocks[static_cast<size_t>(fact.key.first)].holds;
  if (std::find(there.begin(), there.end(), fact.key.second) == there.end()) return false;
  for (int32_t block = 0; block < static_cast<int32_t>(region_.blocks.size()); ++block) {
    const Instr& last = region_.blocks[block].instrs.back();
    const bool turns = last.what == Do::kJump && last.target == fact.key.first && loop_of(block) == last.target;
    if (turns && !is_changed(fact, block)) return true;
  }
  return false;
}

void Writer::forget(Key key) {
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key; });
}

// Objects that go to another loop as they are: what is known of them goes along. (A range's iterator must be nobody else's.)
Writer::GoesAlong Writer::goes_along(const Instr& jump) const {
  GoesAlong known;
  if (loop_of(block_) == jump.target) return known;
  for (const Move& move : jump.moves) {
    if (move.from_object < 0 || move.to_object < 0 || move.boxes || move.same >= 0) continue;
    for (const Fact& fact : always_) {
      Fact here = fact;
      here.key = key_of(move.from_object);
      const bool whole = fact.type != kRangeFact || move.takes;
      if (fact.key == key_of(jump.target, move.to_object) && whole && fresh_.contains(here)) known.emplace(fact, here);
    }
  }
  return known;
}

// What a loop knows of an object that another loop takes and brings back is known there, too: else it would be looked up again behind it.
void Writer::carry_through() {
  for (bool more = true; more;) {
    more = false;
    for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_)
      for (const Instr& in : region_.blocks[block_].instrs)
        if (in.what == Do::kJump && in.target != loop_of(block_)) more |= carry_through(in, in.target);
  }
  block_ = 0;
}

// The jump leads from a loop that knows something to one that brings it back.
bool Writer::carry_through(const Instr& jump, int32_t through) {
  const auto brings = [&](Key from, Key to) {
    for (int32_t k = 0; k < static_cast<int32_t>(region_.blocks.size()); ++k) {
      const Instr& last = region_.blocks[k].instrs.back();
      if (loop_of(k) != through || last.what != Do::kJump) continue;
      for (const Move& move : last.moves)
        if (move.from_object >= 0 && move.to_object >= 0 && !move.boxes && key_of(k, move.from_object) == from &&
            key_of(last.target, move.to_object) == to)
          return true;
    }
    return false;
  };
  std::set<Fact> more;
  for (const Move& move : jump.moves) {
    if (move.from_object < 0 || move.to_object < 0 || move.boxes || move.same >= 0) continue;
    const Key from = key_of(move.from_object), to = key_of(jump.target, move.to_object);
    for (Fact fact : always_) {
      if (fact.key != from || fact.type == kRangeFact || !brings(to, from)) continue;
      fact.key = to;
      if (!always_.contains(fact) && holds_always(fact)) more.insert(fact);
    }
  }
  for (const Fact& fact : more) {
    declare(fact);
    always_.insert(fact);
  }
  return !more.empty();
}

// The facts of a loop that is entered, or those that have changed in this turn.
void Writer::look_up(int32_t loop, bool enters, const GoesAlong& known) {
  for (const Fact& fact : always_) {
    if (fact.key.first != loop || (!enters && !is_changed(fact, block_))) continue;
    if (const auto from = known.find(fact); from != known.end())
      take_over(fact, from->second);
    else
      refresh(fact);
  }
}

// The variables that a fact is kept in, and their types.
std::vector<std::pair<std::string, const char*>> Writer::parts_of(const Fact& fact) const {
  if (fact.type == kRangeFact) return {{"ok", "i1"}, {"at", "ptr"}, {"item", "i64"}, {"step", "i64"}, {"left", "i64"}, {"length", "i64"}};
  std::vector<std::pair<std::string, const char*>> parts = {{"ok", "i1"}};
  if (fact.type >= 0) return parts;
  parts.emplace_back("data", "ptr");
  for (int32_t k = 0; k < fact.rank; ++k)
    for (const char* part : {"n", "wn", "s"}) parts.emplace_back(part + std::to_string(k), "i64");
  return parts;
}

void Writer::declare(const Fact& fact) {
  if (!declared_.insert(fact).second) return;
  for (const auto& [part, type] : parts_of(fact)) line(name_of(fact) + part + " = alloca " + type);
}

void Writer::take_over(const Fact& fact, const Fact& from) {
  for (const auto& [part, type] : parts_of(fact))
    let(name_of(fact) + part, type, op(std::string("load ") + type + ", ptr " + name_of(from) + part));
}

void Writer::refresh(const Fact& fact) {
  const std::string name = name_of(fact), object = object_in(fact.key);
  if (fact.type == kRangeFact) return refresh_range(name, object);
  if (fact.type == kElementsFact) return refresh_elements(fact, name, object);
  if (fact.type < 0) return refresh_array(fact, name, object);
  const std::string there = label("y"), join = label("j");
  let(name + "ok", "i1", "false");
  line("br i1 " + op("icmp ne ptr " + object + ", null") + ", label %" + there + ", label %" + join);
  begin(there);
  const std::string same = op("icmp eq ptr " + field(object, layout_.type, "ptr") + ", " + address(kAddresses + fact.type));
  let(name + "ok", "i1", same);
  line("br label %" + join);
  begin(join);
}

void Writer::refresh_elements(const Fact& fact, const std::string& name, const std::string& object) {
  const std::string there = label("y"), join = label("j"), type = label("y"), slot = "%items";
  line("store ptr null, ptr " + slot);
  branch(op("icmp ne ptr " + object + ", null"), there, join);
  begin(there);
  branch(is_type(object, kSequenceIteratorType), type, join);
  begin(type);
  line("store ptr " + field(object, static_cast<size_t>(layout_.iterator_sequence), "ptr") + ", ptr " + slot);
  go(join);
  begin(join);
  refresh_array(fact, name, op("load ptr, ptr " + slot));
}

void Writer::refresh_array(const Fact& fact, const std::string& name, const std::string& object) {
  const std::string there = label("y"), array = label("y"), fits = label("y"), join = label("j");
  let(name + "ok", "i1", "false");
  let(name + "data", "ptr", "null");
  for (int32_t k = 0; k < fact.rank; ++k)
    for (const char* part : {"n", "wn", "s"}) let(name + part + std::to_string(k), "i64", "0");
  line("br i1 " + op("icmp ne ptr " + object + ", null") + ", label %" + there + ", label %" + join);
  begin(there);
  const std::string type = op("icmp eq ptr " + field(object, layout_.type, "ptr") + ", " + address(kArrayType));
  line("br i1 " + type + ", label %" + array + ", label %" + join);
  begin(array);
  const std::string descr = field(object, layout_.descr, "ptr"), flags = field(object, layout_.flags, "i32");
  std::string all = op("icmp eq i32 " + field(object, layout_.rank, "i32") + ", " + std::to_string(fact.rank));
  const auto also = [&](const std::string& condition) { all = op("and i1 " + all + ", " + op(condition)); };
  also("icmp eq i32 " + field(descr, layout_.dtype_number, "i32") + ", " + std::to_string(layout_.numbers.at(fact.rep)));
  also("icmp ne i8 " + field(descr, layout_.byteorder, "i8") + ", 62");  // '>': not the machine's
  also("icmp ne i32 " + op("and i32 " + flags + ", " + std::to_string(layout_.aligned)) + ", 0");
  line("br i1 " + all + ", label %" + fits + ", label %" + join);
  begin(fits);
  let(name + "ok", "i1", "true");
  let(name + "data", "ptr", field(object, layout_.data, "ptr"));
  const std::string mask = op("and i32 " + flags + ", " + std::to_string(layout_.writeable | layout_.warns));
  const std::string writes = op("icmp eq i32 " + mask + ", " + std::to_string(layout_.writeable));
  const std::string dims = field(object, layout_.dims, "ptr"), strides = field(object, layout_.strides, "ptr");
  for (int32_t k = 0; k < fact.rank; ++k) {
    const std::string axis = std::to_string(k), n = field(dims, static_cast<size_t>(k) * 8, "i64");
    let(name + "n" + axis, "i64", n);
    let(name + "wn" + axis, "i64", op("select i1 " + writes + ", i64 " + n + ", i64 0"));
    let(name + "s" + axis, "i64", field(strides, static_cast<size_t>(k) * 8, "i64"));
  }
  line("br label %" + join);
  begin(join);
}

}  // namespace dalsegno::native
