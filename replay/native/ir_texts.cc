// Texts and bytes.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

// The text of one ASCII character, with a reference.
std::string Writer::letter_in(const std::string& code) {
  const std::string offset = op("mul i64 " + code + ", " + std::to_string(layout_.letter_size));
  std::string object = op("getelementptr i8, ptr " + address(kLetters) + ", i64 " + offset);
  add_reference(object);
  return object;
}

std::string Writer::new_letter(const std::string& text, const std::string& at) {
  std::string object = op("call ptr " + helper(offsetof(Frame, letter)) + "(ptr %f, ptr " + text + ", i64 " + at + ")");
  guard(op("icmp ne ptr " + object + ", null"));
  return object;
}

// Mostly they are one character each, or differ in their first.
void Writer::same_text(const Instr& in) {
  constexpr int32_t kEqual = 2;  // Py_EQ
  const std::string a = object_in(in.a), b = object_in(in.b), same = label("q"), other = label("u"), sizes = label("z"), plain = label("p");
  const std::string letters = label("l"), all = label("a"), join = label("j");
  const auto answer = [&](bool equal) {
    set(in.dst, equal == (in.imm == kEqual) ? "1" : "0");
    go(join);
  };
  const auto part = [&](const std::string& object, int32_t at, const char* type) { return field(object, static_cast<size_t>(at), type); };
  branch(op("icmp eq ptr " + a + ", " + b), same, sizes);
  begin(sizes);
  const std::string n = part(a, layout_.text_length, "i64");
  branch(op("icmp eq i64 " + n + ", " + part(b, layout_.text_length, "i64")), plain, other);
  begin(plain);
  const std::string mask = std::to_string(layout_.text_mask), wanted = std::to_string(layout_.text_plain);
  const auto is_plain = [&](const std::string& object) {
    return op("icmp eq i32 " + op("and i32 " + part(object, layout_.text_state, "i32") + ", " + mask) + ", " + wanted);
  };
  const std::string some = op("icmp ne i64 " + n + ", 0");
  branch(op("and i1 " + some + ", " + op("and i1 " + is_plain(a) + ", " + is_plain(b))), letters, all);
  begin(letters);
  const std::string first = op("icmp eq i8 " + part(a, layout_.ascii_data, "i8") + ", " + part(b, layout_.ascii_data, "i8"));
  const std::string alike = label("k");
  branch(first, alike, other);
  begin(alike);
  branch(op("icmp eq i64 " + n + ", 1"), same, all);
  begin(all);
  const std::string equal = op("call i32 " + helper(offsetof(Frame, same)) + "(ptr %f, ptr " + a + ", ptr " + b + ")");
  branch(op("icmp ne i32 " + equal + ", 0"), same, other);
  begin(same);
  answer(true);
  begin(other);
  answer(false);
  begin(join);
}

void Writer::ord(const Instr& in) {
  const std::string text = object_in(in.a), slow = label("s"), plain = label("p"), join = label("j");
  const std::string state = field(text, static_cast<size_t>(layout_.text_state), "i32");
  const std::string ascii =
      op("icmp eq i32 " + op("and i32 " + state + ", " + std::to_string(layout_.text_mask)) + ", " + std::to_string(layout_.text_plain));
  const std::string one = op("icmp eq i64 " + field(text, static_cast<size_t>(layout_.text_length), "i64") + ", 1");
  branch(op("and i1 " + ascii + ", " + one), plain, slow, true);
  begin(plain);
  set(in.dst, op("zext i8 " + field(text, static_cast<size_t>(layout_.ascii_data), "i8") + " to i64"));
  go(join);
  slowly(in, slow, join);
}

void Writer::letter(const Instr& in) {
  const std::string text = object_in(in.a), n = field(text, static_cast<size_t>(layout_.text_length), "i64"), at = wrapped(get(in.b), n);
  refused_.insert(number_);
  guard(op("icmp ult i64 " + at + ", " + n));
  const std::string plain = label("p"), wide = label("w"), join = label("j");
  const auto put = [&](const std::string& object) {
    line("store ptr " + object + ", ptr " + place(in.dst));
    go(join);
  };
  const std::string state =
      op("and i32 " + field(text, static_cast<size_t>(layout_.text_state), "i32") + ", " + std::to_string(layout_.text_mask));
  if (layout_.letter_size > 0) {
    branch(op("icmp eq i32 " + state + ", " + std::to_string(layout_.text_plain)), plain, wide, true);
    begin(plain);
    const std::string data = at_offset(text, layout_.ascii_data);
    put(letter_in(op("zext i8 " + op("load i8, ptr " + op("getelementptr i8, ptr " + data + ", i64 " + at)) + " to i64")));
    begin(wide);
  }
  put(new_letter(text, at));
  begin(join);
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key_of(in.dst); });
}

void Writer::byte(const Instr& in) {
  const bool array = in.what == Do::kPutByte || in.imm != 0;
  const std::string object = object_in(in.a), n = field(object, static_cast<size_t>(layout_.size), "i64"), at = wrapped(get(in.b), n);
  refused_.insert(number_);
  guard(op("icmp ult i64 " + at + ", " + n));
  const std::string value = in.what == Do::kPutByte ? get(in.c) : "";
  if (in.what == Do::kPutByte) guard(op("icmp ult i64 " + value + ", 256"));
  const std::string data =
      array ? field(object, static_cast<size_t>(layout_.bytearray_start), "ptr") : at_offset(object, layout_.bytes_data);
  const std::string place = op("getelementptr i8, ptr " + data + ", i64 " + at);
  if (in.what == Do::kPutByte) return line("store i8 " + op("trunc i64 " + value + " to i8") + ", ptr " + place);
  set(in.dst, op("zext i8 " + op("load i8, ptr " + place) + " to i64"));
}

void Writer::number(const Instr& in) {
  const std::string object = object_in(in.a), n = field(object, static_cast<size_t>(layout_.size), "i64"), at = wrapped(get(in.b), n);
  const std::string kind = field(object, static_cast<size_t>(layout_.numeric_kind), "ptr");
  const bool puts = in.what == Do::kPutNumber, floats = typed::number_of_item(in.rep) == Rep::kFloat;
  const bool narrow = floats ? bits_of(in.rep) == Bits::kFloat : *memory_of(in.rep).wider != 0;
  refused_.insert(number_);
  guard(op("icmp ult i64 " + at + ", " + n));
  guard(op("icmp eq i8 " + field(kind, 0, "i8") + ", " + std::to_string(in.imm)));
  const Memory memory = memory_of(in.rep);
  const std::string place = op(std::string("getelementptr ") + memory.type + ", ptr " +
                               field(object, static_cast<size_t>(layout_.numeric_items), "ptr") + ", i64 " + at);
  if (!puts) {
    const std::string value = loaded(in.rep, place);
    return set(in.dst, floats && narrow ? op("fpext float " + value + " to double") : value);
  }
  std::string value = get(in.c);
  if (floats && narrow) value = op("fptrunc double " + value + " to float");
  if (!floats && narrow) {
    const std::string whole = value;
    value = op("trunc i64 " + whole + " to " + memory.type);
    guard(op("icmp eq i64 " + op(std::string(memory.wider) + " " + memory.type + " " + value + " to i64") + ", " + whole));
  }
  line(std::string("store ") + memory.type + " " + value + ", ptr " + place);
}

}  // namespace dalsegno::native
