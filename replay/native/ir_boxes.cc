// Numbers become objects, and objects other numbers where nobody else holds them: lists of numbers that are written.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {
// Are objects of these numbers made here?
bool Writer::boxes(Rep rep) const {
  return rep == Rep::kFloat || rep == Rep::kComplex || rep == Rep::kBool || (rep == Rep::kInt && layout_.small_int_size > 0);
}

int32_t Writer::spare_of(Rep rep) const {
  if (rep == Rep::kInt) return layout_.small_int_size > 0 ? static_cast<int32_t>(kSpareInt) : -1;
  if (rep == Rep::kComplex) return static_cast<int32_t>(kSpareComplex);
  if (rep == Rep::kNpComplex128) return static_cast<int32_t>(kSpareNumpyComplex);
  return rep == Rep::kFloat ? 0 : rep == Rep::kNpFloat64 ? 1 : -1;
}

Address Writer::type_of_number(Rep rep) {
  if (rep == Rep::kComplex) return kComplexType;
  if (rep == Rep::kNpComplex128) return kNumpyComplexType;
  return rep == Rep::kInt ? kIntType : rep == Rep::kFloat ? kFloatType : kNumpyDoubleType;
}

std::string Writer::truth_object(const std::string& value) {
  const std::string yes = address(kTrue), no = address(kFalse);
  return op("select i1 " + op("icmp ne i64 " + value + ", 0") + ", ptr " + yes + ", ptr " + no);
}

// A new reference to the object of a number; where there is no memory the machine does the instruction.
std::string Writer::boxed(Rep rep, const std::string& value) {
  std::string made = new_box(rep, value);
  if (rep != Rep::kBool) guard(op("icmp ne ptr " + made + ", null"));
  return made;
}

// The same; null where there is no memory.
std::string Writer::new_box(Rep rep, const std::string& value) {
  if (rep == Rep::kBool) {
    std::string object = truth_object(value);
    add_reference(object);
    return object;
  }
  if (spare_of(rep) >= 0) return by_function(Shared::kBox, rep, type_of(bits_of(rep)) + (" " + value));
  return lasting_box(rep, value);
}

// One that is hardly given back.
std::string Writer::lasting_box(Rep rep, const std::string& value) {
  return op("call ptr " + helper(offsetof(Frame, box)) + "(ptr %f, i32 " + std::to_string(static_cast<int>(rep)) + ", i64 " +
            bits_as_int(value, bits_of(rep)) + ")");
}

// The result of a call is one of its operands: the object is that at `chosen`, made of the number if there is none yet; null: there never
// is one.
void Writer::share(const Instr& in, const std::string& chosen, const std::string& value) {
  if (in.objects.empty()) return;
  const std::string some = label("o"), none = label("n"), have = label("h"), join = label("j");
  branch(op("icmp ne ptr " + chosen + ", null"), some, join, true);
  begin(some);
  branch(op("icmp ne ptr " + op("load ptr, ptr " + chosen) + ", null"), have, none);
  begin(none);
  line("store ptr " + boxed(in.rep, value) + ", ptr " + chosen);
  go(have);
  begin(have);
  give(in.c, op("load ptr, ptr " + chosen));
  go(join);
  begin(join);
}

// Where the object of a call's operand is. (A side trace's constants need not stand in its registers yet.)
std::string Writer::object_of(const Instr& in, size_t operand) {
  if (in.objects.empty() || in.objects[operand] < 0) return "null";
  const Key key = key_of(in.objects[operand]);
  if (region_.blocks[static_cast<size_t>(key.first)].objects.contains(key.second))
    line("store ptr " + object_in(key) + ", ptr " + place(key.first, key.second));
  return place(in.objects[operand]);
}

void Writer::put_item(const Instr& in) {
  const std::string object = object_in(in.a), size = field(object, layout_.size, "i64"), at = wrapped(get(in.b), size);
  guard(op("icmp ult i64 " + at + ", " + size));
  const std::string place = op("getelementptr ptr, ptr " + field(object, layout_.list_items, "ptr") + ", i64 " + at);
  put_at(in, place, op("load ptr, ptr " + place), label("s"), offsetof(Frame, put));
}

// An old number that nobody else holds becomes the new one, as the same memory would. What dies otherwise must be a number: that of others
// may be seen, and is told by the machine (`function`: the frame's).
void Writer::put_at(const Instr& in, const std::string& place, const std::string& old, const std::string& slow, size_t function) {
  const std::string join = label("j"), type = count_type();
  if (in.rep == Rep::kInt && boxes(in.rep)) {
    branch(by_function(Shared::kPutInt, in.rep, "ptr " + place + ", i64 " + get(in.c)), join, slow, true);
  } else if (in.rep == Rep::kNone || boxes(in.rep)) {
    const bool is_new = in.rep == Rep::kFloat || in.rep == Rep::kComplex;
    std::string object = is_new ? "" : in.rep == Rep::kNone ? object_in(in.c) : truth_object(get(in.c));
    const std::string last = label("a"), shared = label("c"), alike = label("y");
    branch(op("icmp eq " + type + " " + op("load " + type + ", ptr " + old) + ", 1"), last, shared);
    begin(last);
    if (is_new) {
      branch(is_type(old, type_of_number(in.rep)), alike, slow);
      begin(alike);
      write_number(in.rep, get(in.c), old, slow);
      go(join);
    } else {
      branch(by_function(Shared::kPut, Rep::kNone, "ptr " + place + ", ptr " + object), join, slow, true);
    }
    begin(shared);
    is_new ? void(object = boxed(in.rep, get(in.c))) : add_reference(object);
    line("store ptr " + object + ", ptr " + place);
    drop_reference(old, join);  // (which is not the last one)
    go(join);
  } else {
    go(slow);
  }
  begin(slow);
  store_operands(in);
  branch(op("icmp ne i32 " + aside(function, std::to_string(number_)) + ", 0"), join, exit_label(), true);
  begin(join);
}

}  // namespace dalsegno::native
