// Jumps to loops: what their heads expect goes there, boxed or unboxed on the way where it has to be.
#include <algorithm>
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

void Writer::jump(const Instr& in) {
  const std::string target = std::to_string(in.target);
  const bool meets = turns_meet(in.target) && loop_of(block_) == in.target && !in.asks && in.promises.empty();
  if (in.asks) guard(op("icmp ne i32 " + op("call i32 " + helper(offsetof(Frame, enters)) + "(ptr %f, i32 " + target + ")") + ", 0"));
  if (!meets) guard(nothing_waits());
  for (const Promise& promise : in.promises) ask(promise);
  if (region_.leaves_anywhere) line("store i64 " + op("add i64 " + op("load i64, ptr %turn") + ", 1") + ", ptr %turn");
  prepare(in);
  const GoesAlong known = goes_along(in);
  let_go_for(in.target);
  std::vector<std::string> values, objects;
  int32_t made = 0, parts = 0;
  for (const Move& move : in.moves) {
    values.push_back(move.unboxes   ? op(std::string("load ") + type_of(bits_of(move.rep)) + ", ptr " + part_of(parts++))
                     : move.to >= 0 ? get(move.from)
                                    : "");
    std::string object = move.same < 0 && move.to_object >= 0 && move.from_object >= 0 ? taken(move) : "";
    if (move.boxes) {
      const std::string box = op("load ptr, ptr " + element_of("%made", made++));
      object = object.empty() ? box : op("select i1 " + op("icmp eq ptr " + object + ", null") + ", ptr " + box + ", ptr " + object);
    }
    objects.push_back(object);
  }
  for (size_t k = 0; k < in.moves.size(); ++k)
    if (in.moves[k].same >= 0) objects[k] = shared(in.moves[k], objects[static_cast<size_t>(in.moves[k].same)]);
  for (int32_t reg : in.drops) drop(reg);
  for (size_t k = 0; k < in.moves.size(); ++k) {
    if (!values[k].empty()) set(key_of(in.target, in.moves[k].to), values[k]);
    if (objects[k].empty() || (objects[k] == "null" && is_null(key_of(in.target, in.moves[k].to_object)))) continue;
    line("store ptr " + objects[k] + ", ptr " + place(in.target, in.moves[k].to_object));
  }
  if (!in.drops.empty()) {  // the loop's first step is the machine's if code has run
    const std::string on = label("ok"), ran = label("r");
    branch(settled(), on, ran, true);
    begin(ran);
    if (loop_of(block_) == in.target)
      for (const Fact& fact : always_)
        if (fact.key.first == in.target && fact.type == kRangeFact && !is_changed(fact, block_)) rewind(fact.key);
    go("head" + target);
    begin(on);
    heads_.insert(in.target);
  }
  if (loop_of(block_) != in.target) {
    // What goes there as an object has no number: none is kept for it.
    for (const Key& key : unboxed_)
      if (key.first == in.target && !constant(key) && !goes_to(in, key))
        let(name_of(key), type_of(slots_.at(key)), literal({}, slots_.at(key)));
  }
  look_up(in.target, loop_of(block_) != in.target, known);
  if (meets) {
    latches_.insert(in.target);
    return go("g" + target);
  }
  enter_loop(in.target, loop_of(block_) == in.target);
}

// Is an object what the loop takes it for?
void Writer::ask(const Promise& promise) {
  if (promise.reg < 0) return guard("false");
  const std::string object = object_in(promise.reg);
  if (promise.what == Promise::kIsObject) return guard(op("icmp eq ptr " + object + ", " + address(kAddresses + promise.object)));
  if (promise.what == Promise::kIsOfTypeOrNull) {
    const std::string there = label("y"), join = label("j");
    branch(op("icmp eq ptr " + object + ", null"), join, there);
    begin(there);
    guard(is_type(object, static_cast<Address>(kAddresses + promise.object)));
    go(join);
    return begin(join);
  }
  guard(op("icmp ne ptr " + object + ", null"));
  if (promise.what == Promise::kIsOfType) return guard(is_type(object, static_cast<Address>(kAddresses + promise.object)));
  std::string known = is_type(object, kRangeIteratorType);  // these run no code
  for (const Address type : {kListIteratorType, kTupleIteratorType}) known = op("or i1 " + known + ", " + is_type(object, type));
  const std::string ask = label("q"), quiet = label("j");
  branch(known, quiet, ask, true);
  begin(ask);
  guard(op("icmp ne i32 " + op("call i32 " + helper(offsetof(Frame, is_quiet)) + "(ptr " + object + ")") + ", 0"));
  go(quiet);
  begin(quiet);
}

// Makes what is to be boxed and takes the numbers out of objects, before anything has moved: where that fails the machine does the jump.
void Writer::prepare(const Instr& in) {
  int32_t made = 0, parts = 0;
  for (const Move& move : in.moves) {
    if (!move.boxes) continue;
    const std::string there = label("y"), none = label("n"), failed = label("f"), join = label("j"), slot = element_of("%made", made);
    line("store ptr null, ptr " + slot);
    if (move.from_object >= 0) {
      branch(op("icmp ne ptr " + object_in(move.from_object) + ", null"), join, none);
      begin(none);
    }
    const std::string box = new_box(move.rep, get(move.from));
    line("store ptr " + box + ", ptr " + slot);
    branch(op("icmp ne ptr " + box + ", null"), join, failed, true);
    begin(failed);
    go_back(made);
    begin(join);
    ++made;
  }
  for (const Move& move : in.moves) {
    if (!move.unboxes) continue;
    const std::string object = object_in(move.from_object), slot = part_of(parts++), type = type_of(bits_of(move.rep));
    const std::string there = label("y"), none = label("n"), failed = label("f"), join = label("j");
    branch(op("icmp ne ptr " + object + ", null"), there, move.from >= 0 ? none : failed);
    if (move.from >= 0) {
      begin(none);
      if (move.checks) {
        const std::string fits = label("c");
        branch(op("icmp sge i64 " + get(move.from) + ", 0"), fits, failed, true);
        begin(fits);
      }
      line("store " + type + " " + get(move.from) + ", ptr " + slot);
      go(join);
    }
    begin(there);
    if (reads_number(move.rep)) {
      line("store " + type + " " + unboxed(move.rep, object, failed) + ", ptr " + slot);
      go(join);
    } else {
      const std::string rep = std::to_string(static_cast<int>(move.rep));
      const std::string done = op("call i32 " + helper(offsetof(Frame, unbox)) + "(ptr %f, i32 " + rep + ", i64 " +
                                  op("ptrtoint ptr " + object + " to i64") + ", i64 0, ptr " + slot + ")");
      branch(op("icmp ne i32 " + done + ", 0"), join, failed, true);
    }
    begin(failed);
    go_back(made);
    begin(join);
  }
  most_made_ = std::max(most_made_, made);
  most_parts_ = std::max(most_parts_, parts);
}

// The move's object, or the one that another has made of the same number.
std::string Writer::shared(const Move& move, const std::string& made) {
  if (move.from_object < 0) return add_reference(made), made;
  const std::string own = taken(move), slot = element_of("%parts", 0);
  const std::string none = label("n"), join = label("j");
  line("store ptr " + own + ", ptr " + slot);
  branch(op("icmp ne ptr " + own + ", null"), join, none);
  begin(none);
  add_reference(made);
  line("store ptr " + made + ", ptr " + slot);
  go(join);
  begin(join);
  return op("load ptr, ptr " + slot);
}

void Writer::go_back(int32_t made) {
  if (made > 0)
    line("call i32 " + helper(offsetof(Frame, discard)) + "(ptr %f, i32 " + std::to_string(made) + ", i64 " +
         op("ptrtoint ptr %made to i64") + ")");
  go(exit_label());
}

bool Writer::goes_to(const Instr& jump, Key key) const {
  return std::any_of(jump.moves.begin(), jump.moves.end(),
                     [&](const Move& move) { return move.to >= 0 && key_of(jump.target, move.to) == key; });
}

std::string Writer::element_of(const std::string& array, int32_t index) {
  return op("getelementptr i64, ptr " + array + ", i64 " + std::to_string(index));
}

std::string Writer::part_of(int32_t index) { return op("getelementptr [2 x i64], ptr %parts, i64 " + std::to_string(index)); }

// As it is handed to a function: of a complex number where it stands.
std::string Writer::bits_as_int(const std::string& value, Bits as) {
  if (as != Bits::kComplex) return as == Bits::kInt64 ? value : bits(value, as);
  line("store <2 x double> " + value + ", ptr %out");
  return op("ptrtoint ptr %out to i64");
}

}  // namespace dalsegno::native
