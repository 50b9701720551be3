// Numbers become objects, and objects other numbers where nobody else holds them: lists of numbers that are written.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {
namespace {

constexpr int64_t kDigit = 30;  // bits

std::string power_of_two(int64_t exponent) { return std::to_string(int64_t{1} << exponent); }

}  // namespace

// Are objects of these numbers made here?
bool Writer::boxes(Rep rep) const {
  return rep == Rep::kFloat || rep == Rep::kComplex || rep == Rep::kBool || (rep == Rep::kInt && layout_.small_int_size > 0);
}

int32_t Writer::spare_of(Rep rep) const {
  if (rep == Rep::kInt) return layout_.small_int_size > 0 ? static_cast<int32_t>(kSpareInt) : -1;
  if (rep == Rep::kComplex) return static_cast<int32_t>(kSpareComplex);
  return rep == Rep::kFloat ? 0 : rep == Rep::kNpFloat64 ? 1 : -1;
}

std::string Writer::spare(Rep rep) {
  const size_t offset = offsetof(Frame, spare) + sizeof(void*) * static_cast<size_t>(spare_of(rep));
  return op("getelementptr i8, ptr %f, i64 " + std::to_string(offset));
}

// The box that is left over becomes the number's, if there is one that has room, else on.
void Writer::take_spare(Rep rep, const std::string& value, const std::string& slot, const std::string& join) {
  const std::string left = label("l"), none = label("n"), at = spare(rep), object = op("load ptr, ptr " + at);
  branch(op("icmp ne ptr " + object + ", null"), left, none);
  begin(left);
  write_number(rep, value, object, none);
  line("store ptr null, ptr " + at);
  line("store ptr " + object + ", ptr " + slot);
  go(join);
  begin(none);
}

// The last reference to a box: it is kept for the next one, if there is none yet; else on.
void Writer::keep_spare(Rep rep, const std::string& object, const std::string& kept) {
  const std::string alike = label("y"), left = label("l"), other = label("o"), at = spare(rep);
  branch(is_type(object, type_of_number(rep)), alike, other);
  begin(alike);
  std::string room = op("icmp eq ptr " + op("load ptr, ptr " + at) + ", null");
  if (rep == Rep::kInt) {  // large ones are not kept
    const std::string small = op("icmp ult i64 " + digits_of(field(object, static_cast<size_t>(layout_.int_size), "i64")) + ", 3");
    room = op("and i1 " + room + ", " + small);
  }
  branch(room, left, other);
  begin(left);
  line("store ptr " + object + ", ptr " + at);
  go(kept);
  begin(other);
}

Address Writer::type_of_number(Rep rep) {
  if (rep == Rep::kComplex) return kComplexType;
  return rep == Rep::kInt ? kIntType : rep == Rep::kFloat ? kFloatType : kNumpyDoubleType;
}

// An object of this type that nobody else holds becomes another number; on to `slow` if it cannot: it is one of the interpreter's own, or
// has more digits than the old one. (An int of more than two keeps none in its memory.)
void Writer::write_number(Rep rep, const std::string& value, const std::string& object, const std::string& slow) {
  if (rep == Rep::kComplex)
    return line("store <2 x double> " + value + ", ptr " +
                op("getelementptr i8, ptr " + object + ", i64 " + std::to_string(layout_.complex_value)) + ", align 8");
  if (rep != Rep::kInt) {
    const int32_t offset = rep == Rep::kFloat ? layout_.float_value : layout_.numpy_double_value;
    return line("store double " + value + ", ptr " + op("getelementptr i8, ptr " + object + ", i64 " + std::to_string(offset)));
  }
  const std::string room = label("r"), two = label("t"), done = label("d");
  const std::string magnitude = magnitude_of(value), high = op("lshr i64 " + magnitude + ", " + std::to_string(kDigit));
  const std::string more = op("icmp ne i64 " + high + ", 0");
  const std::string digits = digits_of(field(object, static_cast<size_t>(layout_.int_size), "i64"));
  const std::string needed = op("select i1 " + more + ", i64 2, i64 1");
  const std::string enough = op("and i1 " + op("icmp ule i64 " + needed + ", " + digits) + ", " + op("icmp ult i64 " + digits + ", 3"));
  const std::string fits = op("and i1 " + enough + ", " + op("icmp ult i64 " + magnitude + ", " + power_of_two(2 * kDigit)));
  branch(op("select i1 " + is_small_int(value) + ", i1 false, i1 " + fits), room, slow);
  begin(room);
  const std::string negative = op("icmp slt i64 " + value + ", 0");
  const std::string size = layout_.int_tagged
                               ? op("add i64 " + op("shl i64 " + needed + ", 3") + ", " + op("select i1 " + negative + ", i64 2, i64 0"))
                               : op("select i1 " + negative + ", i64 " + op("sub i64 0, " + needed) + ", i64 " + needed);
  put_field(size, object, layout_.int_size);
  const auto put_digit = [&](const std::string& digit, int32_t k) {
    line("store i32 " + op("trunc i64 " + digit + " to i32") + ", ptr " +
         op("getelementptr i8, ptr " + object + ", i64 " + std::to_string(layout_.int_digit + 4 * k)));
  };
  put_digit(op("and i64 " + magnitude + ", " + std::to_string((int64_t{1} << kDigit) - 1)), 0);
  branch(more, two, done);
  begin(two);
  put_digit(high, 1);
  go(done);
  begin(done);
}

// A new reference to the object of a number; where there is no memory the machine does the instruction.
std::string Writer::boxed(Rep rep, const std::string& value) {
  if (rep == Rep::kBool) {
    const std::string yes = address(kTrue), no = address(kFalse);
    std::string object = op("select i1 " + op("icmp ne i64 " + value + ", 0") + ", ptr " + yes + ", ptr " + no);
    add_reference(object);
    return object;
  }
  const std::string slot = "%items", join = label("j");
  if (rep == Rep::kInt && layout_.small_int_size > 0) {
    const std::string small = label("i"), large = label("b");
    branch(is_small_int(value), small, large);
    begin(small);
    const std::string found = small_int(value);
    add_reference(found);
    line("store ptr " + found + ", ptr " + slot);
    go(join);
    begin(large);
  }
  if (spare_of(rep) >= 0) take_spare(rep, value, slot, join);
  const std::string made = op("call ptr " + helper(offsetof(Frame, box)) + "(ptr %f, i32 " + std::to_string(static_cast<int>(rep)) +
                              ", i64 " + bits_as_int(value, bits_of(rep)) + ")");
  guard(op("icmp ne ptr " + made + ", null"));
  line("store ptr " + made + ", ptr " + slot);
  go(join);
  begin(join);
  return op("load ptr, ptr " + slot);
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

// The last reference to a number is dropped: it is kept for the next one.
void Writer::retire(const std::string& number, const std::string& join) {
  for (const Rep rep : {Rep::kInt, Rep::kFloat, Rep::kComplex})
    if (spare_of(rep) >= 0) keep_spare(rep, number, join);
  line("store ptr " + number + ", ptr %items");
  line("call void " + helper(offsetof(Frame, discard)) + "(ptr %f, ptr %items, i32 1)");
  go(join);
}

// The item is the last reference to what it was.
void Writer::replace_last(const Instr& in, const std::string& place, const std::string& old, const std::string& slow,
                          const std::string& join) {
  const std::string number = label("n"), plain = op("or i1 " + is_type(old, kIntType) + ", " + is_type(old, kFloatType));
  branch(plain, number, slow);
  begin(number);
  if (in.rep == Rep::kInt) {
    const std::string alike = label("y"), other = label("o");
    branch(is_type(old, kIntType), alike, other);
    begin(alike);
    write_number(in.rep, get(in.c), old, other);
    go(join);
    begin(other);
  }
  const std::string stored = in.rep == Rep::kNone ? object_in(in.c) : boxed(in.rep, get(in.c));
  if (in.rep == Rep::kNone) {
    const std::string differs = label("d");
    branch(op("icmp ne ptr " + stored + ", " + old), differs, slow, true);
    begin(differs);
    add_reference(stored);
  }
  line("store ptr " + stored + ", ptr " + place);
  retire(old, join);
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
  const std::string last = label("a"), shared = label("c"), join = label("j"), type = count_type();
  if (in.rep != Rep::kNone && !boxes(in.rep)) {
    go(slow);
  } else {
    const std::string alone = op("icmp eq " + type + " " + op("load " + type + ", ptr " + old) + ", 1");
    branch(alone, last, shared);
    begin(last);
    if (in.rep == Rep::kFloat || in.rep == Rep::kComplex) {
      const std::string alike = label("y");
      branch(is_type(old, type_of_number(in.rep)), alike, slow);
      begin(alike);
      write_number(in.rep, get(in.c), old, slow);
      go(join);
    } else {
      replace_last(in, place, old, slow, join);
    }
    begin(shared);
    const std::string stored = in.rep == Rep::kNone ? object_in(in.c) : boxed(in.rep, get(in.c));
    drop_reference(old, slow);
    if (in.rep == Rep::kNone) add_reference(stored);
    line("store ptr " + stored + ", ptr " + place);
    go(join);
  }
  begin(slow);
  store_all();
  const std::string done = aside(function, std::to_string(number_));
  branch(op("icmp ne i32 " + done + ", 0"), join, exit_label(), true);
  begin(join);
}

}  // namespace dalsegno::native
