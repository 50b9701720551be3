// Objects: items of lists and tuples, boxes, references.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

void Writer::drop(int32_t reg) {
  if (is_null(key_of(reg))) return;
  let_go(key_of(reg));
  const std::string there = label("d"), gone = label("g");
  line("br i1 " + op("icmp ne ptr " + object_in(reg) + ", null") + ", label %" + there + ", label %" + gone);
  begin(there);
  if (given_.contains(key_of(reg)) && !made_anew_.contains(key_of(reg))) {  // mostly somebody else has it, too
    const std::string last = label("s");
    drop_reference(object_in(reg), last);
    line("store ptr null, ptr " + place(reg));
    go(gone);
    begin(last);
  }
  keep_iterator(reg, object_in(reg), gone);
  keep_items_iterator(reg, object_in(reg), gone);
  line("call void " + helper(offsetof(Frame, drop)) + "(ptr %f, i32 " + in_file(reg) + ")");
  line("br label %" + gone);
  begin(gone);
}

// ---- references ------------------------------------------------------------------------------------------------------------------

void Writer::add_reference(const std::string& object) {
  const std::string type = count_type(), count = op("load " + type + ", ptr " + object);
  const auto add = [&] { line("store " + type + " " + op("add " + type + " " + count + ", 1") + ", ptr " + object); };
  if (!layout_.immortal) return add();
  const std::string counted = label("c"), gone = label("k");
  branch(op("icmp ult i32 " + count + ", " + std::to_string(layout_.immortal)), counted, gone);
  begin(counted);
  add();
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

// Objects that are constants are known by their addresses: the machine puts a side trace's into registers when it needs them itself.
std::string Writer::object_in(Key key) {
  if (is_null(key)) return "null";
  const auto& objects = region_.blocks[static_cast<size_t>(key.first)].objects;
  const auto found = objects.find(key.second);
  return found == objects.end() ? op("load ptr, ptr " + place(key.first, key.second)) : address(kAddresses + found->second);
}

// An object on its way, with a reference; it may be missing.
std::string Writer::taken(const Move& move) {
  if (is_null(key_of(move.from_object))) return "null";
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
    if (is_null(key_of(reg))) continue;
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
    if (const auto made = boxed_.find(key_of(reg)); shared && made != boxed_.end()) {
      const std::string kept = label("q"), other = label("o");
      branch(by_function(Shared::kKeep, made->second, "ptr " + object), kept, other);
      begin(kept);
      line("store ptr null, ptr " + place(reg));
      go(gone);
      begin(other);
    }
    keep_iterator(reg, object, gone);
    keep_items_iterator(reg, object, gone);
    const bool often = over_items_.contains(key_of(reg)) || made_anew_.contains(key_of(reg));  // (each loop's end comes here)
    const std::string quiet = often ? op("call i32 " + helper(offsetof(Frame, quiet)) + "(ptr %f, i32 " + in_file(reg) + ")")
                                    : aside(offsetof(Frame, quiet), in_file(reg));
    branch(op("icmp ne i32 " + quiet + ", 0"), gone, exit_label(), true);
    begin(gone);
  }
}

// ---- items -----------------------------------------------------------------------------------------------------------------------

std::string Writer::wrapped(const std::string& index, const std::string& length) {
  const std::string behind = op("add i64 " + index + ", " + length);
  return op("select i1 " + op("icmp slt i64 " + index + ", 0") + ", i64 " + behind + ", i64 " + index);
}

void Writer::extent(const Instr& in) {
  const std::string array = object_in(in.a), rank = field(array, static_cast<size_t>(layout_.rank), "i32");
  refused_.insert(number_);
  guard(op("icmp sgt i32 " + rank + ", " + std::to_string(in.imm)));
  set(in.dst, field(field(array, static_cast<size_t>(layout_.dims), "ptr"), static_cast<size_t>(in.imm) * 8, "i64"));
}

void Writer::length(const Instr& in) {
  if (in.imm > 0) return set(in.dst, field(object_in(in.a), static_cast<size_t>(in.imm), "i64"));
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

void Writer::draw(const Instr& in) {
  const std::string bound = in.n == 0 ? "1" : "0";
  const std::string done = op("call i32 " + helper(offsetof(Frame, draw)) + "(ptr " + object_in(in.a) + ", i32 " + bound + ", ptr %out)");
  refused_.insert(number_);
  guard(op("icmp ne i32 " + done + ", 0"));
  set(in.dst, op("load double, ptr %out"));
}

void Writer::draw_bits(const Instr& in) {
  const std::string bound = in.n == 0 ? "1" : "0";
  const std::string done = op("call i32 " + helper(offsetof(Frame, draw_bits)) + "(ptr " + object_in(in.a) + ", i32 " + bound + ", i64 " +
                              get(in.b) + ", ptr %out)");
  refused_.insert(number_);
  guard(op("icmp ne i32 " + done + ", 0"));
  set(in.dst, op("load i64, ptr %out"));
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
  line("store ptr " + at_offset(object, layout_.tuple_items) + ", ptr %items");
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

// dst: the number in object register a; where there is no object, it has come unboxed. The side trace goes on with an object of another
// type.
void Writer::unbox(const Instr& in) {
  if (is_there(in)) return;
  const std::string there = label("y"), join = label("j"), object = object_in(in.a), leave = exit_label();
  if (in.side >= 0) leads_to(in.side);
  branch(op("icmp ne ptr " + object + ", null"), there, comes_unboxed(key_of(in.dst)) ? join : leave, true);
  begin(there);
  take_number(in.dst, in.rep, object, in.side);
  go(join);
  begin(join);
}

// The register becomes the number in an object. Where there is none the side trace, or the machine, goes on.
void Writer::take_number(int32_t reg, Rep rep, const std::string& object, int32_t side) {
  set(reg, unboxed(rep, object, side >= 0 ? label_of(side) : exit_label()));
}

// The object of an unboxed register, unless it is there.
void Writer::make_box(const Instr& in) {
  const std::string none = label("s"), join = label("j"), leave = exit_label();
  branch(op("icmp ne ptr " + object_in(in.dst) + ", null"), join, none, true);
  begin(none);
  if (boxes(in.rep)) {
    line("store ptr " + boxed(in.rep, get(in.a)) + ", ptr " + place(in.dst));
    go(join);
  } else {
    const std::string value = bits_as_int(get(in.a), bits_of(in.rep)), rep = std::to_string(static_cast<int>(in.rep));
    branch(op("icmp ne i32 " + aside(offsetof(Frame, make), in_file(in.dst), rep, value) + ", 0"), join, leave, true);
  }
  begin(join);
}

// The number in an object; on to `slow` if it is none of this type, or an int that does not fit.
std::string Writer::unboxed(Rep rep, const std::string& object, const std::string& slow) {
  if (rep == Rep::kInt) return unboxed_int(object, slow);
  const std::string right = label("r");
  if (rep == Rep::kBool) {
    const std::string yes = op("icmp eq ptr " + object + ", " + address(kTrue));
    const std::string no = op("icmp eq ptr " + object + ", " + address(kFalse));
    branch(op("or i1 " + yes + ", " + no), right, slow, true);
    begin(right);
    return truth_of(yes);
  }
  if (typed::is_pair(rep)) {
    branch(is_type(object, type_of_number(rep)), right, slow, true);
    begin(right);
    const auto at = static_cast<size_t>(rep == Rep::kComplex ? layout_.complex_value : layout_.numpy_complex_value);
    return of_parts(field(object, at, "double"), field(object, at + sizeof(double), "double"));
  }
  branch(is_type(object, rep == Rep::kFloat ? kFloatType : kNumpyDoubleType), right, slow, true);
  begin(right);
  return field(object, rep == Rep::kFloat ? layout_.float_value : layout_.numpy_double_value, "double");
}

// Mostly it has one digit.
std::string Writer::unboxed_int(const std::string& object, const std::string& slow) {
  const std::string whole = label("y"), one = label("z"), more = label("r"), some = label("n"), join = label("w"), slot = "%digits";
  branch(is_type(object, kIntType), whole, more, true);
  begin(whole);
  const std::string size = field(object, static_cast<size_t>(layout_.int_size), "i64");
  branch(op("icmp ult i64 " + (layout_.int_tagged ? size + ", 16" : op("add i64 " + size + ", 1") + ", 3")), one, more, true);
  begin(one);
  const std::string digit = op("zext i32 " + field(object, static_cast<size_t>(layout_.int_digit), "i32") + " to i64");
  // The sign: the size itself; or what stands in two bits (0, 1: none, 2: minus).
  const std::string sign = layout_.int_tagged ? op("sub i64 1, " + op("and i64 " + size + ", 3")) : size;
  line("store i64 " + op("mul i64 " + sign + ", " + digit) + ", ptr " + slot);
  go(join);
  begin(more);
  const std::string value = by_function(Shared::kIntOf, Rep::kInt, "ptr " + object);
  branch(op("icmp ne i64 " + value + ", " + kNoNumber), some, slow, true);
  begin(some);
  line("store i64 " + value + ", ptr " + slot);
  go(join);
  begin(join);
  return op("load i64, ptr " + slot);
}

// ---- items of what is a list or tuple for certain -----------------------------------------------------------------------------------

std::string Writer::items(const Instr& in, const std::string& sequence) {
  if (in.imm == 0) return field(sequence, layout_.list_items, "ptr");
  return at_offset(sequence, layout_.tuple_items);
}

// An item, borrowed, becomes dst and, unboxed, c. The side trace goes on with one of another type.
void Writer::took(const Instr& in, const std::string& item) {
  const int32_t side = tells_types(in.what, in.rep) ? in.side : -1;
  if (side >= 0) leads_to(side);
  if (in.rep != Rep::kNone) take_number(in.c, in.rep, item, side);
  if (in.what == Do::kNextItem || in.n != 0) add_reference(item);
  line("store ptr " + item + ", ptr " + place(in.dst));
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key_of(in.dst); });
}

void Writer::take_item(const Instr& in) {
  const std::string object = object_in(in.a), size = field(object, layout_.size, "i64"), at = wrapped(get(in.b), size);
  guard(op("icmp ult i64 " + at + ", " + size));
  took(in, op("load ptr, ptr " + op("getelementptr ptr, ptr " + items(in, object) + ", i64 " + at)));
}

// A tuple that is taken apart; one of another length is the machine's.
void Writer::unpack(const Instr& in) {
  const std::string tuple = object_in(in.a);
  guard(op("icmp eq i64 " + field(tuple, layout_.size, "i64") + ", " + std::to_string(in.imm)));
  give(in.dst, tuple);
}

// kFieldItem: without such a tuple, or where it has no such item, it is the machine's.
void Writer::tuple_item(const Instr& in) {
  std::string tuple = object_in(in.a);
  if (in.what == Do::kField) return give(in.dst, field(tuple, static_cast<size_t>(in.imm), "ptr"));
  if (in.what == Do::kFieldItem) {
    tuple = field(tuple, static_cast<size_t>(in.n), "ptr");
    guard(op("icmp ne ptr " + tuple + ", null"));
    guard(op("icmp sgt i64 " + field(tuple, layout_.size, "i64") + ", " + std::to_string(in.imm)));
  }
  give(in.dst, field(tuple, static_cast<size_t>(layout_.tuple_items) + sizeof(void*) * static_cast<size_t>(in.imm), "ptr"));
}

// A new reference into an object register.
void Writer::give(int32_t reg, const std::string& object) {
  add_reference(object);
  line("store ptr " + object + ", ptr " + place(reg));
  forget(key_of(reg));
}

// An empty cell, or one that is none, is the machine's.
void Writer::cell(const Instr& in) {
  const std::string object = object_in(in.a);
  const std::string content = field(object, layout_.cell_content, "ptr");
  guard(op("and i1 " + is_type(object, kCellType) + ", " + op("icmp ne ptr " + content + ", null")));
  give(in.dst, content);
}

// An iterator over a list or tuple that dies at its end, if nobody else has it: it is kept for the next one, if there is none yet.
void Writer::keep_items_iterator(int32_t reg, const std::string& object, const std::string& gone) {
  const auto over = over_items_.find(key_of(reg));
  if (over == over_items_.end() || (over->second != kList && over->second != kTuple)) return;
  const bool tuple = over->second == kTuple;
  const std::string right = label("r"), kept = label("l"), other = label("o"), type = count_type();
  const std::string spare = spare_iterator(tuple ? kSpareTupleIterator : kSpareListIterator);
  branch(is_type(object, tuple ? kTupleIteratorType : kListIteratorType), right, other);
  begin(right);
  const std::string alone = op("icmp eq " + type + " " + op("load " + type + ", ptr " + object) + ", 1");
  const std::string ended = op("icmp eq ptr " + field(object, static_cast<size_t>(layout_.iterator_sequence), "ptr") + ", null");
  const std::string none = op("icmp eq ptr " + op("load ptr, ptr " + spare) + ", null");
  branch(op("and i1 " + alone + ", " + op("and i1 " + ended + ", " + none)), kept, other);
  begin(kept);
  line("store ptr " + object + ", ptr " + spare);
  line("store ptr null, ptr " + place(reg));
  go(gone);
  begin(other);
}

// An iterator at its end lets go of what it goes through, and knows that by it having none; at `last`, with nothing done, if nobody else
// has that.
void Writer::let_go_of_items(const std::string& it, const std::string& sequence, const std::string& last) {
  drop_reference(sequence, last);
  line("store ptr null, ptr " + at_offset(it, layout_.iterator_sequence));
}

// The iterator is told that it has ended, if that runs no code, and the side trace goes on.
void Writer::ended(const Instr& in, const std::string& end) {
  begin(end);
  const std::string told = op("call i32 " + helper(offsetof(Frame, ends)) + "(ptr %f, i32 " + in_file(in.a) + ")");
  leads_to(in.side);
  branch(op("icmp ne i32 " + told + ", 0"), label_of(in.side), exit_label());
}

// At its end the iterator itself has to find that out.
void Writer::next_item(const Instr& in) {
  const std::string more = label("m"), end = label("e"), it = object_in(in.a);
  const std::string sequence = field(it, layout_.iterator_sequence, "ptr");
  guard(op("icmp ne ptr " + sequence + ", null"));
  const std::string place = at_offset(it, layout_.iterator_position);
  const std::string at = op("load i64, ptr " + place);
  branch(op("icmp ult i64 " + at + ", " + field(sequence, layout_.size, "i64")), more, in.side < 0 ? exit_label() : end);
  if (in.side >= 0) {
    const std::string last = label("d");
    begin(end);
    let_go_of_items(it, sequence, last);
    leads_to(in.side);
    go(label_of(in.side));
    ended(in, last);
  }
  begin(more);
  took(in, op("load ptr, ptr " + op("getelementptr ptr, ptr " + items(in, sequence) + ", i64 " + at)));
  line("store i64 " + op("add i64 " + at + ", 1") + ", ptr " + place);
}

// An item that should not be there goes along to the side trace.
void Writer::items_end(const Instr& in) {
  const std::string more = label("m"), none = label("n"), join = label("j"), it = object_in(in.a);
  const std::string sequence = field(it, layout_.iterator_sequence, "ptr"), begun = label("w");
  branch(op("icmp ne ptr " + sequence + ", null"), begun, join);
  begin(begun);
  const std::string place_of_it = at_offset(it, layout_.iterator_position);
  const std::string at = op("load i64, ptr " + place_of_it);
  branch(op("icmp ult i64 " + at + ", " + field(sequence, layout_.size, "i64")), in.side >= 0 ? more : exit_label(), none);
  if (in.side >= 0) {
    begin(more);
    if (region_.blocks[in.side].asks) {
      asked_.insert(in.side);
      ask(in.side, exit_label());
    }
    const std::string item = op("load ptr, ptr " + op("getelementptr ptr, ptr " + items(in, sequence) + ", i64 " + at));
    add_reference(item);
    line("store ptr " + item + ", ptr " + place(in.dst));
    line("store i64 " + op("add i64 " + at + ", 1") + ", ptr " + place_of_it);
    leads_to(in.side);
    go(label_of(in.side));
  }
  const std::string last = label("d");
  begin(none);
  let_go_of_items(it, sequence, last);
  go(join);
  begin(last);
  guard(op("icmp ne i32 " + op("call i32 " + helper(offsetof(Frame, ends)) + "(ptr %f, i32 " + in_file(in.a) + ")") + ", 0"));
  go(join);
  begin(join);
}

// Where there is no room the list grows as the interpreter's does.
void Writer::append(const Instr& in) {
  const std::string room = label("r"), full = label("s"), join = label("j"), leave = exit_label(), list = object_in(in.a);
  const bool made = in.rep != Rep::kNone;
  const bool lasts = in.rep == Rep::kInt || in.rep == Rep::kFloat;
  const auto fresh = [&] { return by_function(Shared::kFresh, in.rep, type_of(bits_of(in.rep)) + (" " + get(in.c))); };
  const std::string object = lasts ? fresh() : made ? boxed(in.rep, get(in.c)) : object_in(in.c);
  if (lasts) guard(op("icmp ne ptr " + object + ", null"));
  const std::string size = field(list, static_cast<size_t>(layout_.size), "i64");
  branch(op("icmp slt i64 " + size + ", " + field(list, static_cast<size_t>(layout_.list_allocated), "i64")), room, full, true);
  begin(full);
  const std::string done =
      aside(offsetof(Frame, append), made ? "1" : "0", op("ptrtoint ptr " + list + " to i64"), op("ptrtoint ptr " + object + " to i64"));
  branch(op("icmp ne i32 " + done + ", 0"), join, leave, true);
  begin(room);
  if (!made) add_reference(object);
  const std::string items = field(list, static_cast<size_t>(layout_.list_items), "ptr");
  line("store ptr " + object + ", ptr " + op("getelementptr ptr, ptr " + items + ", i64 " + size));
  put_field(op("add i64 " + size + ", 1"), list, layout_.size);
  go(join);
  begin(join);
}

// Where the list keeps its memory (list_resize() of Objects/listobject.c); else by the step.
void Writer::pop(const Instr& in) {
  const std::string keeps = label("k"), slow = label("s"), join = label("j"), list = object_in(in.a);
  const std::string left = op("sub i64 " + field(list, static_cast<size_t>(layout_.size), "i64") + ", 1");
  guard(op("icmp sge i64 " + left + ", 0"));
  const std::string half = op("ashr i64 " + field(list, static_cast<size_t>(layout_.list_allocated), "i64") + ", 1");
  std::string kept = op("icmp sge i64 " + left + ", " + half);
  if (layout_.list_least > 0) kept = op("and i1 " + kept + ", " + op("icmp sge i64 " + left + ", " + std::to_string(layout_.list_least)));
  branch(kept, keeps, slow, true);
  begin(keeps);
  took(in, op("load ptr, ptr " +
              op("getelementptr ptr, ptr " + field(list, static_cast<size_t>(layout_.list_items), "ptr") + ", i64 " + left)));
  put_field(left, list, layout_.size);
  go(join);
  slowly(in, slow, join);
}

}  // namespace dalsegno::native
