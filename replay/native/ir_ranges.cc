// Iterators over ranges: their state is in variables of the function while nothing else can look at it.
//
// A range's iterator that the register alone holds a reference to is seen by nobody else. Its next item and what is left are looked up
// like other facts of objects (ir_arrays.cc), and are written back (rewind) wherever the register file is. All others are advanced by their
// step.
#include <cstddef>
#include <utility>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {

void Writer::range_iterator(const Instr& in) {
  const size_t n = in.list.size();
  const std::string start = n > 1 ? get(in.list[0]) : "0", stop = get(in.list[n > 1 ? 1 : 0]), step = n > 2 ? get(in.list[2]) : "1";
  const Fact fact{key_of(in.dst), kRangeFact};
  if (step == "1" && layout_.range_start >= 0 && declared_.contains(fact)) return range_by_ones(in, start, stop);
  guard(op("icmp ne i32 " +
           op("call i32 " + helper(offsetof(Frame, range)) + "(ptr %f, i32 " + in_file(in.dst) + ", i64 " + start + ", i64 " + stop +
              ", i64 " + step + ")") +
           ", 0"));
  forget(key_of(in.dst));
}

std::string Writer::spare_iterator(size_t kind) {
  return op("getelementptr i8, ptr %f, i64 " + std::to_string(offsetof(Frame, spare) + sizeof(void*) * kind));
}

// The one that is kept starts anew, if there is one, and what is known of it is known.
void Writer::range_by_ones(const Instr& in, const std::string& start, const std::string& stop) {
  const Fact fact{key_of(in.dst), kRangeFact};
  const std::string name = name_of(fact), some = label("y"), fits = label("f"), slow = label("s"), join = label("j");
  const std::string at = spare_iterator(kSpareIterator), object = op("load ptr, ptr " + at);
  branch(op("icmp ne ptr " + object + ", null"), some, slow, true);
  begin(some);
  const std::string both = op("call {i64, i1} @llvm.ssub.with.overflow.i64(i64 " + stop + ", i64 " + start + ")");
  branch(op("extractvalue {i64, i1} " + both + ", 1"), slow, fits);
  begin(fits);
  const std::string distance = op("extractvalue {i64, i1} " + both + ", 0");
  const std::string length = op("select i1 " + op("icmp sgt i64 " + distance + ", 0") + ", i64 " + distance + ", i64 0");
  line("store ptr null, ptr " + at);
  put_field(start, object, layout_.range_start);
  put_field("1", object, layout_.range_step);
  put_field(length, object, layout_.range_length);
  if (layout_.range_index >= 0) put_field("0", object, layout_.range_index);
  line("store ptr " + object + ", ptr " + place(in.dst));
  let(name + "ok", "i1", "true");
  let(name + "at", "ptr", object);
  let(name + "item", "i64", start);
  let(name + "step", "i64", "1");
  let(name + "left", "i64", length);
  let(name + "length", "i64", length);
  go(join);
  begin(slow);
  guard(op("icmp ne i32 " +
           op("call i32 " + helper(offsetof(Frame, range)) + "(ptr %f, i32 " + in_file(in.dst) + ", i64 " + start + ", i64 " + stop +
              ", i64 1)") +
           ", 0"));
  refresh_range(name, object_in(in.dst));
  go(join);
  begin(join);
  forget(fact.key);
  fresh_.insert(fact);
}

// An object that dies, if it is a range's iterator that nobody else has: it is kept for the next range, if there is none yet.
void Writer::keep_iterator(int32_t reg, const std::string& object, const std::string& gone) {
  if (!declared_.contains(Fact{key_of(reg), kRangeFact})) return;
  const std::string kept = label("l"), other = label("o"), type = count_type();
  const std::string at = spare_iterator(kSpareIterator);
  const std::string alone = op("icmp eq " + type + " " + op("load " + type + ", ptr " + object) + ", 1");
  const std::string none = op("icmp eq ptr " + op("load ptr, ptr " + at) + ", null");
  branch(op("and i1 " + is_type(object, kRangeIteratorType) + ", " + op("and i1 " + alone + ", " + none)), kept, other);
  begin(kept);
  line("store ptr " + object + ", ptr " + at);
  line("store ptr null, ptr " + place(reg));
  go(gone);
  begin(other);
}

void Writer::range_next(const Instr& in) {
  const std::optional<Fact> fact = fact_of(in);
  if (!fact) return by_step(in);
  know(*fact);
  const std::string name = name_of(*fact);
  if (is_hoisted(*fact)) {
    guard(op("icmp sgt i64 " + op("load i64, ptr " + name + "left") + ", 0"), true, in.side);
    return advance(in, *fact);
  }
  const std::string mine = label("m"), slow = label("s"), join = label("j");
  branch(op("load i1, ptr " + name + "ok"), mine, slow, true);
  begin(mine);
  guard(op("icmp sgt i64 " + op("load i64, ptr " + name + "left") + ", 0"), true, in.side);
  const std::string leave = exit_label();
  const std::set<Key> before = dirty_;
  advance(in, *fact);
  go(join);
  begin(slow);
  const std::set<Key> advanced = std::exchange(dirty_, before);
  const std::string got = aside(offsetof(Frame, next), in_file(in.a)), done = label("n");
  branch(op("icmp ne i32 " + got + ", 0"), done, leave, true);
  begin(done);
  let(name_of(key_of(in.c)), "i64", op("load i64, ptr %out"));
  go(join);
  dirty_ = advanced;
  begin(join);
}

// There should be no item. The side trace begins behind the one that there is.
void Writer::range_end(const Instr& in) {
  const std::optional<Fact> fact = fact_of(in);
  if (!fact) return by_step(in);
  know(*fact);
  const std::string name = name_of(*fact), mine = label("m"), more = label("w"), slow = label("s"), join = label("j");
  branch(op("load i1, ptr " + name + "ok"), mine, slow, true);
  begin(mine);
  branch(op("icmp sgt i64 " + op("load i64, ptr " + name + "left") + ", 0"), in.side >= 0 ? more : exit_label(), join);
  if (in.side >= 0) {
    const std::set<Key> before = dirty_;
    begin(more);
    if (region_.blocks[in.side].asks) {
      asked_.insert(in.side);
      ask(in.side, exit_label());
    }
    advance(in, *fact);
    leads_to(in.side);
    go(label_of(in.side));
    dirty_ = before;
  }
  slowly(in, slow, join);
}

void Writer::advance(const Instr& in, const Fact& fact) {
  const std::string name = name_of(fact), item = op("load i64, ptr " + name + "item");
  let(name + "left", "i64", op("sub i64 " + op("load i64, ptr " + name + "left") + ", 1"));
  let(name + "item", "i64", op("add i64 " + item + ", " + op("load i64, ptr " + name + "step")));
  set(in.c, item);
  dirty_.insert(state_of(fact.key));
}

// What belongs to nobody is read from, and written to, a place that nobody looks at.
void Writer::refresh_range(const std::string& name, const std::string& object) {
  const std::string there = label("y"), join = label("j"), begun = label("w");
  let(name + "ok", "i1", "false");
  let(name + "at", "ptr", "%nowhere");
  for (const char* part : {"item", "step", "left", "length"}) let(name + part, "i64", "0");
  branch(op("icmp ne ptr " + object + ", null"), there, join);
  begin(there);
  const std::string type = is_type(object, kRangeIteratorType);
  const std::string count =
      op(std::string("icmp eq ") + count_type() + " " + op(std::string("load ") + count_type() + ", ptr " + object) + ", 1");
  branch(op("and i1 " + type + ", " + count), begun, join);
  begin(begun);
  let(name + "ok", "i1", "true");
  let(name + "at", "ptr", object);
  const std::string first = field(object, static_cast<size_t>(layout_.range_start), "i64");
  const std::string step = field(object, static_cast<size_t>(layout_.range_step), "i64");
  const std::string length = field(object, static_cast<size_t>(layout_.range_length), "i64");
  let(name + "step", "i64", step);
  let(name + "length", "i64", length);
  if (layout_.range_index < 0) {
    let(name + "item", "i64", first);
    let(name + "left", "i64", length);
  } else {
    const std::string index = field(object, static_cast<size_t>(layout_.range_index), "i64");
    let(name + "item", "i64", op("add i64 " + first + ", " + op("mul i64 " + index + ", " + step)));
    let(name + "left", "i64", op("sub i64 " + length + ", " + index));
  }
  go(join);
  begin(join);
}

// Writes a range's state back to its iterator.
void Writer::rewind(Key key) {
  if (planted(Fault::native_range)) return;
  const std::string name = name_of(Fact{key, kRangeFact});
  const std::string at = op("load ptr, ptr " + name + "at"), left = op("load i64, ptr " + name + "left");
  const auto put = [&](const std::string& value, int32_t offset) { line("store i64 " + value + ", ptr " + at_offset(at, offset)); };
  if (layout_.range_index < 0) {
    put(op("load i64, ptr " + name + "item"), layout_.range_start);
    put(left, layout_.range_length);
  } else {
    put(op("sub i64 " + op("load i64, ptr " + name + "length") + ", " + left), layout_.range_index);
  }
}

// Before the register's object goes elsewhere, or dies.
void Writer::let_go(Key key) {
  if (dirty_.erase(state_of(key)) != 0) {
    rewind(key);
    leave_ = -1;  // no exit behind this one may write to what is gone
  }
  forget(key);
}

// Before the jump to a loop: what is not looked up anew there stays in its variables.
void Writer::let_go_for(int32_t target) {
  std::vector<Key> keys;
  for (const Key& key : dirty_) {
    const Key range = range_of(key);
    const Fact fact{range, kRangeFact};
    const bool stays = loop_of(block_) == target && always_.contains(fact) && !is_changed(fact, block_);
    if (is_state(key) && !stays) keys.push_back(range);
  }
  for (const Key& key : keys) let_go(key);
}

}  // namespace dalsegno::native
