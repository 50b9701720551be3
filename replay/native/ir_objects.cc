// Objects: items of lists and tuples, boxes, references.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

void Writer::drop(int32_t reg) {
  let_go(key_of(reg));
  const std::string there = label("d"), gone = label("g");
  line("br i1 " + op("icmp ne ptr " + op("load ptr, ptr " + place(reg)) + ", null") + ", label %" + there + ", label %" + gone);
  begin(there);
  line("call void " + helper(offsetof(Frame, drop)) + "(ptr %f, i32 " + in_file(reg) + ")");
  line("br label %" + gone);
  begin(gone);
}

// ---- references ------------------------------------------------------------------------------------------------------------------

void Writer::add_reference(const std::string& object) {
  const std::string type = count_type(), more = op("add " + type + " " + op("load " + type + ", ptr " + object) + ", 1");
  if (!layout_.immortal) return line("store " + type + " " + more + ", ptr " + object);
  const std::string counted = label("c"), gone = label("k");
  branch(op("icmp ne i32 " + more + ", 0"), counted, gone);
  begin(counted);
  line("store i32 " + more + ", ptr " + object);
  go(gone);
  begin(gone);
}

// Goes on at `last`, with nothing done, if it is the last one.
void Writer::drop_reference(const std::string& object, const std::string& last) {
  const std::string type = count_type(), count = op("load " + type + ", ptr " + object);
  const std::string counted = label("c"), gone = label("k");
  if (layout_.immortal) {
    const std::string mortal = label("m");
    branch(op("icmp slt i32 " + count + ", 0"), gone, mortal);
    begin(mortal);
  }
  branch(op("icmp ne " + type + " " + count + ", 1"), counted, last, true);
  begin(counted);
  line("store " + type + " " + op("sub " + type + " " + count + ", 1") + ", ptr " + object);
  go(gone);
  begin(gone);
}

// An object on its way, with a reference; it may be missing.
std::string Writer::taken(const Move& move) {
  let_go(key_of(move.from_object));
  std::string object = object_in(move.from_object);
  if (move.takes) {
    line("store ptr null, ptr " + place(move.from_object));
    return object;
  }
  const std::string there = label("i"), gone = label("k");
  branch(op("icmp ne ptr " + object + ", null"), there, gone);
  begin(there);
  add_reference(object);
  go(gone);
  begin(gone);
  return object;
}

// Mostly there is nothing. What has come natively mostly lives on elsewhere.
void Writer::release(const Instr& in) {
  for (int32_t reg : in.list) {
    let_go(key_of(reg));
    const std::string there = label("d"), last = label("s"), gone = label("g"), object = object_in(reg);
    const bool shared = given_.find(key_of(reg)) != given_.end();
    branch(op("icmp eq ptr " + object + ", null"), gone, shared ? there : last, !shared);
    if (shared) {
      begin(there);
      drop_reference(object, last);
      line("store ptr null, ptr " + place(reg));
      go(gone);
    }
    begin(last);
    if (const auto made = boxed_.find(key_of(reg)); shared && made != boxed_.end()) keep_spare(made->second, reg, object, gone);
    const std::string quiet = aside(offsetof(Frame, quiet), in_file(reg));
    branch(op("icmp ne i32 " + quiet + ", 0"), gone, exit_label(), true);
    begin(gone);
  }
}

// ---- items -----------------------------------------------------------------------------------------------------------------------

std::string Writer::wrapped(const std::string& index, const std::string& length) {
  const std::string behind = op("add i64 " + index + ", " + length);
  return op("select i1 " + op("icmp slt i64 " + index + ", 0") + ", i64 " + behind + ", i64 " + index);
}

void Writer::length(const Instr& in) {
  const std::string object = object_in(in.a), other = label("t"), have = label("h"), slow = label("s"), join = label("j");
  branch(is_type(object, kListType), have, other);
  begin(other);
  branch(is_type(object, kTupleType), have, slow);
  begin(have);
  const std::string size = field(object, layout_.size, "i64");
  set(in.dst, size);
  go(join);
  slowly(in, slow, join);
}

// dst = a[b], of a list or a tuple.
void Writer::item(const Instr& in) {
  const std::string list = label("l"), other = label("t"), tuple = label("u"), have = label("h"), inside = label("i");
  const std::string slow = label("s"), join = label("j"), object = object_in(in.a), index = get(in.b);
  branch(is_type(object, kListType), list, other);
  begin(list);
  line("store ptr " + field(object, layout_.list_items, "ptr") + ", ptr %items");
  go(have);
  begin(other);
  branch(is_type(object, kTupleType), tuple, slow);
  begin(tuple);
  line("store ptr " + op("getelementptr i8, ptr " + object + ", i64 " + std::to_string(layout_.tuple_items)) + ", ptr %items");
  go(have);
  begin(have);
  const std::string size = field(object, layout_.size, "i64"), at = wrapped(index, size);
  branch(op("icmp ult i64 " + at + ", " + size), inside, slow, true);
  begin(inside);
  const std::string found = op("load ptr, ptr " + op("getelementptr ptr, ptr " + op("load ptr, ptr %items") + ", i64 " + at));
  add_reference(found);
  line("store ptr " + found + ", ptr " + place(in.dst));
  go(join);
  slowly(in, slow, join);
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key_of(in.dst); });
}

// a[b] = c, of a list. What stood there must not die of it: that may be seen.
void Writer::set_item(const Instr& in) {
  const std::string list = label("l"), inside = label("i"), slow = label("s"), join = label("j");
  const std::string object = object_in(in.a), index = get(in.b);
  branch(is_type(object, kListType), list, slow);
  begin(list);
  const std::string size = field(object, layout_.size, "i64"), at = wrapped(index, size);
  branch(op("icmp ult i64 " + at + ", " + size), inside, slow, true);
  begin(inside);
  const std::string place = op("getelementptr ptr, ptr " + field(object, layout_.list_items, "ptr") + ", i64 " + at);
  drop_reference(op("load ptr, ptr " + place), slow);
  const std::string stored = object_in(in.c);
  add_reference(stored);
  line("store ptr " + stored + ", ptr " + place);
  go(join);
  slowly(in, slow, join);
}

// ---- boxes -----------------------------------------------------------------------------------------------------------------------

// dst: the number in object register a; where there is no object, it has come unboxed.
void Writer::unbox(const Instr& in) {
  const std::string there = label("y"), slow = label("s"), join = label("j"), object = object_in(in.a);
  branch(op("icmp ne ptr " + object + ", null"), there, join, true);
  begin(there);
  set(in.dst, unboxed(in.rep, object, slow));
  go(join);
  slowly(in, slow, join);
}

// The number in an object; on to `slow` if it is none of this type, or an int of several digits.
std::string Writer::unboxed(Rep rep, const std::string& object, const std::string& slow) {
  const std::string right = label("r");
  if (rep == Rep::kBool) {
    const std::string yes = op("icmp eq ptr " + object + ", " + address(kTrue));
    const std::string no = op("icmp eq ptr " + object + ", " + address(kFalse));
    branch(op("or i1 " + yes + ", " + no), right, slow, true);
    begin(right);
    return truth_of(yes);
  }
  branch(is_type(object, rep == Rep::kInt ? kIntType : rep == Rep::kFloat ? kFloatType : kNumpyDoubleType), right, slow, true);
  begin(right);
  if (rep == Rep::kInt) return unboxed_int(object, slow);
  return field(object, rep == Rep::kFloat ? layout_.float_value : layout_.numpy_double_value, "double");
}

std::string Writer::unboxed_int(const std::string& object, const std::string& slow) {
  const std::string small = label("z"), size = field(object, layout_.int_size, "i64");
  const std::string digit = op("zext i32 " + field(object, layout_.int_digit, "i32") + " to i64");
  std::string sign = size;
  if (layout_.int_tagged) {  // sign in two bits (0, 1: none, 2: minus), one reserved, then the number of digits
    branch(op("icmp ult i64 " + size + ", 16"), small, slow, true);
    begin(small);
    sign = op("sub i64 1, " + op("and i64 " + size + ", 3"));
  } else {  // digits, with the number's sign
    branch(op("icmp ult i64 " + op("add i64 " + size + ", 1") + ", 3"), small, slow, true);
    begin(small);
  }
  return op("mul i64 " + sign + ", " + digit);
}

// ---- items of what is a list or tuple for certain -----------------------------------------------------------------------------------

std::string Writer::items(const Instr& in, const std::string& sequence) {
  if (in.imm == 0) return field(sequence, layout_.list_items, "ptr");
  return op("getelementptr i8, ptr " + sequence + ", i64 " + std::to_string(layout_.tuple_items));
}

// An item, borrowed, becomes dst and, unboxed, c.
void Writer::took(const Instr& in, const std::string& item, const std::string& slow) {
  if (in.rep != Rep::kNone) set(in.c, unboxed(in.rep, item, slow));
  if (in.what == Do::kNextItem || in.n != 0) add_reference(item);
  line("store ptr " + item + ", ptr " + place(in.dst));
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key_of(in.dst); });
}

void Writer::take_item(const Instr& in) {
  const std::string slow = label("s"), join = label("j"), object = object_in(in.a);
  const std::string size = field(object, layout_.size, "i64"), at = wrapped(get(in.b), size);
  guard(op("icmp ult i64 " + at + ", " + size));
  took(in, op("load ptr, ptr " + op("getelementptr ptr, ptr " + items(in, object) + ", i64 " + at)), slow);
  go(join);
  slowly(in, slow, join);
}

// The iterator is told that it has ended, if that runs no code, and the side trace goes on.
void Writer::ended(const Instr& in, const std::string& end) {
  begin(end);
  const std::string told = op("call i32 " + helper(offsetof(Frame, ends)) + "(ptr %f, i32 " + in_file(in.a) + ")");
  leads_to(in.side);
  branch(op("icmp ne i32 " + told + ", 0"), "b" + std::to_string(in.side), exit_label());
}

// At its end the iterator itself has to find that out.
void Writer::next_item(const Instr& in) {
  const std::string slow = label("s"), join = label("j"), more = label("m"), end = label("e"), it = object_in(in.a);
  const std::string sequence = field(it, layout_.iterator_sequence, "ptr");
  guard(op("icmp ne ptr " + sequence + ", null"));
  const std::string place = op("getelementptr i8, ptr " + it + ", i64 " + std::to_string(layout_.iterator_position));
  const std::string at = op("load i64, ptr " + place);
  branch(op("icmp ult i64 " + at + ", " + field(sequence, layout_.size, "i64")), more, in.side < 0 ? exit_label() : end);
  if (in.side >= 0) ended(in, end);
  begin(more);
  took(in, op("load ptr, ptr " + op("getelementptr ptr, ptr " + items(in, sequence) + ", i64 " + at)), slow);
  line("store i64 " + op("add i64 " + at + ", 1") + ", ptr " + place);
  go(join);
  slowly(in, slow, join);
}

// An old float that nobody else holds becomes the new one, as the same memory would.
void Writer::put_item(const Instr& in) {
  const std::string slow = label("s"), join = label("j"), object = object_in(in.a);
  const std::string size = field(object, layout_.size, "i64"), at = wrapped(get(in.b), size);
  guard(op("icmp ult i64 " + at + ", " + size));
  const std::string place = op("getelementptr ptr, ptr " + field(object, layout_.list_items, "ptr") + ", i64 " + at);
  const std::string old = op("load ptr, ptr " + place);
  if (in.rep == Rep::kNone) {
    const std::string stored = object_in(in.c);
    drop_reference(old, slow);
    add_reference(stored);
    line("store ptr " + stored + ", ptr " + place);
  } else if (in.rep == Rep::kFloat) {
    const std::string alike = label("y"), alone = label("a");
    branch(is_type(old, kFloatType), alike, slow);
    begin(alike);
    branch(op("icmp eq " + std::string(count_type()) + " " + op(std::string("load ") + count_type() + ", ptr " + old) + ", 1"), alone,
           slow);
    begin(alone);
    line("store double " + get(in.c) + ", ptr " + op("getelementptr i8, ptr " + old + ", i64 " + std::to_string(layout_.float_value)));
  } else {
    go(slow);
  }
  if (in.rep == Rep::kNone || in.rep == Rep::kFloat) go(join);
  begin(slow);
  store_all();
  const std::string done = aside(offsetof(Frame, put), std::to_string(number_));
  branch(op("icmp ne i32 " + done + ", 0"), join, exit_label(), true);
  begin(join);
}

}  // namespace dalsegno::native
