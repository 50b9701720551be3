// Attributes of instances: in a slot, or in the array of values that an object has as long as nobody asks for its dict.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

// Where it stands, of an object whose class is as the step has found it last; on to `slow` with others.
std::string Writer::attribute_place(const Instr& in, const std::string& slow) {
  const auto expect = [&](const std::string& condition) {
    const std::string ok = label("o");
    branch(condition, ok, slow, true);
    begin(ok);
  };
  const std::string object = object_in(in.a), found = address(kAddresses + in.object);
  const std::string type = field(object, static_cast<size_t>(layout_.type), "ptr");
  const auto part = [&](int32_t offset, const char* as) { return field(found, static_cast<size_t>(offset), as); };
  const std::string same_type = op("icmp eq ptr " + type + ", " + part(layout_.place_type, "ptr"));
  const std::string version = op("zext i32 " + field(type, static_cast<size_t>(layout_.type_version), "i32") + " to i64");
  const std::string same_version = op("icmp eq i64 " + op("add i64 " + version + ", 1") + ", " + part(layout_.place_version, "i64"));
  expect(op("and i1 " + same_type + ", " + same_version));
  if (in.imm == kInSlot || in.imm == kAsItem) {
    const std::string slot = part(layout_.place_slot, "i64"), items = part(layout_.place_items, "i64");
    const std::string other = in.imm == kInSlot ? items : slot;  // is 0 where the object keeps it in another way
    expect(op(std::string("icmp ") + (in.imm == kInSlot ? "eq" : "ne") + " i64 " + other + ", 0"));
    if (in.imm == kInSlot) expect(op("icmp ne i64 " + slot + ", 0"));
    if (in.imm == kAsItem) expect(op("icmp sge i64 " + field(object, static_cast<size_t>(layout_.size), "i64") + ", " + items));
    return op("getelementptr i8, ptr " + object + ", i64 " + slot);
  }
  const std::string index = part(layout_.place_index, "i64");
  const std::string values = op("load ptr, ptr " + at_offset(object, layout_.values));
  const std::string none = layout_.values_tag == 0 ? op("icmp ne ptr " + values + ", null")
                                                   : op("trunc i64 " + op("ptrtoint ptr " + values + " to i64") + " to i1");
  expect(op("and i1 " + none + ", " + op("icmp sge i64 " + index + ", 0")));
  const std::string first = at_offset(values, layout_.values_first);
  return op("getelementptr ptr, ptr " + first + ", i64 " + index);
}

// (An object with a dict is its step's.)
void Writer::attribute(const Instr& in) {
  const std::string slow = label("s"), there = label("v"), done = label("n"), join = label("j"), leave = exit_label();
  const std::string value = op("load ptr, ptr " + attribute_place(in, slow));
  branch(op("icmp ne ptr " + value + ", null"), there, slow, true);
  begin(there);
  took(in, value);
  go(join);
  begin(slow);
  const std::set<Key> dirty = dirty_;
  branch(op("icmp ne i32 " + aside(offsetof(Frame, quick), std::to_string(number_)) + ", 0"), done, leave, true);
  begin(done);
  if (in.rep != Rep::kNone) reload(in.c);
  dirty_ = dirty;
  go(join);
  begin(join);
}

void Writer::set_attribute(const Instr& in) {
  const std::string slow = label("s"), there = label("v"), place = attribute_place(in, slow), old = op("load ptr, ptr " + place);
  branch(op("icmp ne ptr " + old + ", null"), there, slow, true);
  begin(there);
  put_at(in, place, old, slow, offsetof(Frame, quick));
}

// (What is no function has other things there, if anything.)
void Writer::guard_function(const Instr& in) {
  const bool defaults = in.what == Do::kGuardDefaults;
  const std::string object = object_in(in.a), type = address(kAddresses + (defaults ? in.object : in.list[1]));
  const std::string is = op("icmp eq ptr " + field(object, static_cast<size_t>(layout_.type), "ptr") + ", " + type);
  const std::string function = op("select i1 " + is + ", ptr " + object + ", ptr " + type);
  if (defaults) {
    const std::string tuple = field(function, static_cast<size_t>(layout_.function_defaults), "ptr");
    const std::string has_some = op("and i1 " + is + ", " + op("icmp ne ptr " + tuple + ", null"));
    const std::string counted = op("select i1 " + has_some + ", ptr " + tuple + ", ptr " + type);  // the type, of a size, too: it is 0
    const std::string count = op("icmp eq i64 " + field(counted, layout_.size, "i64") + ", " + std::to_string(in.imm));
    return guard(op("and i1 " + is + ", " + count), true, in.side);
  }
  const auto has = [&](int32_t offset, int32_t what) {
    return op("icmp eq ptr " + field(function, static_cast<size_t>(offset), "ptr") + ", " + address(kAddresses + what));
  };
  guard(op("and i1 " + has(layout_.function_code, in.object) + ", " + has(layout_.function_globals, in.list[0])), true, in.side);
}

void Writer::guard_truthy(const Instr& in) {
  const std::string type = address(kAddresses + in.object);
  std::string holds = op("icmp eq ptr " + field(object_in(in.a), static_cast<size_t>(layout_.type), "ptr") + ", " + type);
  for (const int32_t function : layout_.class_truth)
    holds = op("and i1 " + holds + ", " + op("icmp eq ptr " + field(type, static_cast<size_t>(function), "ptr") + ", null"));
  guard(holds, true, in.side);
}

// What the step does without running code, or the machine does.
void Writer::quick(const Instr& in) {
  store_operands(in);
  came_quickly(in, op("call i32 " + helper(offsetof(Frame, quick)) + "(ptr %f, i32 " + std::to_string(number_) + ")"));
  for (const Use& use : uses_of(in))
    if (use.written) reload(use.reg);
  if (in.imm == 0 && in.dst >= 0) forget(key_of(in.dst));
}

// The one that is kept, if there is one, starts anew.
void Writer::items_iterator(const Instr& in) {
  const std::string object = object_in(in.a), kept = label("k"), made = label("s"), join = label("j");
  const std::string spare = spare_iterator(in.imm != 0 ? kSpareTupleIterator : kSpareListIterator), it = op("load ptr, ptr " + spare);
  const std::string some = label("y");
  branch(op("icmp ne ptr " + it + ", null"), some, made, true);
  begin(some);  // (known to the collector, as it was)
  const std::string tracked = at_offset(it, layout_.tracked);
  branch(layout_.tracked == 0 ? "false" : op("icmp ne i64 " + op("load i64, ptr " + tracked) + ", 0"), kept, made, true);
  begin(kept);
  line("store ptr null, ptr " + spare);
  add_reference(object);
  put_field("0", it, layout_.iterator_position);
  line("store ptr " + object + ", ptr " + at_offset(it, layout_.iterator_sequence));
  line("store ptr " + it + ", ptr " + place(in.dst));
  go(join);
  begin(made);
  came_quickly(in, op("call i32 " + helper(offsetof(Frame, iterate)) + "(ptr %f, i32 " + in_file(in.dst) + ", ptr " + object + ", i32 " +
                      std::to_string(in.imm) + ")"));
  go(join);
  begin(join);
  forget(key_of(in.dst));
}

// What has not been done is the machine's; so is what follows where finalisers may have run.
void Writer::came_quickly(const Instr& in, const std::string& done) {
  const std::string on = label("o"), other = label("h"), behind = label("b"), leave = exit_label();
  const bool leads = in.side >= 0 && in.of_class < 0;  // (of the class, and yet another: that is rare)
  if (leads) leads_to(in.side);
  branch(op("icmp eq i32 " + done + ", 1"), on, other, true);
  begin(other);
  branch(op("icmp eq i32 " + done + ", 0"), leads ? label_of(in.side) : leave, behind);
  begin(behind);
  leave_behind(in, behind);
  begin(on);
}

}  // namespace dalsegno::native
