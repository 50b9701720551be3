// A region as text: control.
#include <algorithm>
#include <cstddef>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {

const char* type_of(Bits bits) {
  return bits == Bits::kDouble ? "double" : bits == Bits::kFloat ? "float" : bits == Bits::kComplex ? "<2 x double>" : "i64";
}

namespace {

constexpr const char* kDeclarations =
    "declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)\n"
    "declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)\n"
    "declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)\n"
    "declare i64 @llvm.abs.i64(i64, i1)\n"
    "declare i64 @llvm.ctlz.i64(i64, i1)\n"
    "declare double @llvm.fabs.f64(double)\n"
    "declare <2 x double> @llvm.fabs.v2f64(<2 x double>)\n"
    "declare double @llvm.sqrt.f64(double)\n"
    "declare double @llvm.floor.f64(double)\n"
    "declare double @llvm.ceil.f64(double)\n"
    "declare double @llvm.trunc.f64(double)\n"
    "declare double @llvm.rint.f64(double)\n"
    "declare float @llvm.fabs.f32(float)\n"
#if defined(__x86_64__)
    "attributes #0 = { noinline cold \"target-cpu\"=\"x86-64\" \"target-features\"=\"\" }\n"
#else
    "attributes #0 = { noinline cold }\n"
#endif
    "!0 = !{!\"branch_weights\", i32 2000, i32 1}\n";

}  // namespace

std::string Writer::write(const std::string& symbol) {
  if (!find_slots()) return "";
  find_changes();
  head(symbol);
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_) write_block();
  hoisted_copy_ = true;
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_)
    if (const auto found = hoisted_.find(loop_of(block_)); found != hoisted_.end() && found->second.blocks.contains(block_)) write_block();
  hoisted_copy_ = false;
  write_exits();
  for (int32_t loop : latches_) write_latch(loop);
  for (int32_t loop : heads_) write_head_exit(loop);
  if (differs_) return "";
  text_ += "elsewhere:\n  ret i32 -1\n}\n";
  write_functions();
  return text_ += kDeclarations;
}

// Leaves at a loop's head, with what was carried there.
void Writer::write_head_exit(int32_t loop) {
  block_ = loop;
  begin("head" + std::to_string(loop));
  for (const Key& key : carried_)
    if (key.first == loop) store_to_file(key);
  line("ret i32 " + std::to_string(region_.blocks[loop].number));
}

void Writer::head(const std::string& symbol) {
  // No vectors where several registers are stored: no upper half is in use (llvm.h).
  head_ = "define i32 @" + symbol + "(ptr %r, ptr %f) noimplicitfloat {\nentry:\n";
  text_.clear();
  for (const auto& [key, bits] : slots_)
    if (!constant(key)) line(name_of(key) + " = alloca " + type_of(bits));
  breaker_ = field("%f", offsetof(Frame, breaker), "ptr");
  unsettled_ = field("%f", offsetof(Frame, unsettled), "ptr");
  line("%out = alloca {[2 x i64], i32}, align 16");
  line("%came = getelementptr i8, ptr %out, i64 16");
  line("%nowhere = alloca [8 x i64]");
  line("%pairs = alloca [2 x <2 x double>]");
  line("%digits = alloca i64");
  if (region_.leaves_anywhere) {
    line("%turn = alloca i64");
    line("store i64 0, ptr %turn");
  }
  for (const auto& [key, bits] : slots_)
    if (key.first == 0 && !made_here_.contains(key)) load_first(key, bits);
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_)
    for (const Instr& in : region_.blocks[block_].instrs)
      if (const std::optional<Fact> fact = fact_of(in)) {
        declare(*fact);
        if (holds_always(*fact)) always_.insert(*fact);
      }
  carry_through();
  line("%items = alloca ptr");
  if (copies_) find_hoisted();
  for (const auto& [loop, hoisted] : hoisted_)
    if (!hoisted.nulls.empty()) line("%first" + std::to_string(loop) + " = alloca i1");
  for (const auto& [loop, hoisted] : hoisted_)
    if (hoisted.forwarded.step != 0)
      line(name_of_forwarded(loop) + " = alloca " + memory_of(hoisted.elements.at(hoisted.forwarded.first).fact.rep).type);
  look_up(0, true);
  enter_loop(0, false);
}

// Goes on where the condition holds; else the machine does the instruction, or the side trace goes on.
void Writer::guard(const std::string& condition, bool wanted, int32_t side) {
  const std::string ok = label("ok"), fail = side >= 0 ? label_of(side) : exit_label();
  if (side >= 0) leads_to(side);
  std::string bit = condition;
  if (!taken_.empty()) bit = wanted ? op("or i1 " + bit + ", " + op("xor i1 " + taken_ + ", true")) : op("and i1 " + bit + ", " + taken_);
  if (wanted)
    line("br i1 " + bit + ", label %" + ok + ", label %" + fail + (side >= 0 ? "" : ", !prof !0"));
  else
    line("br i1 " + bit + ", label %" + fail + ", label %" + ok);
  begin(ok);
}

void Writer::leads_to(int32_t side) {
  if (hoisted_copy_ && !hoisted_.at(loop_of(side)).blocks.contains(side)) {  // it has been written: as it expects it?
    const auto as_expected = [&](const auto& expected, const auto& here) {
      return std::includes(expected.begin(), expected.end(), here.begin(), here.end());
    };
    differs_ |= !as_expected(dirty_before_[side], dirty_) || !as_expected(fresh_, before_[side]);
    return;
  }
  before_[side] = fresh_;
  dirty_before_[side] = dirty_;
  leave_before_[side] = leave_;
  if (region_.blocks[side].asks) exit_label();
}

std::string Writer::call_step(size_t function) {
  store_all();
  return op("call i32 " + helper(function) + "(ptr %f, i32 " + std::to_string(number_) + ")");
}

void Writer::by_step(const Instr& in) {
  const std::string came = call_step(in.advances   ? offsetof(Frame, advance)
                                     : in.computes ? offsetof(Frame, compute)
                                                   : offsetof(Frame, step)),
                    next = label("n");
  dirty_.clear();
  leave_ = -1;
  std::string other = "elsewhere";
  if (in.advances) other = label("o");
  line("br i1 " + op("icmp eq i32 " + came + ", 0") + ", label %" + next + ", label %" + other);
  if (in.advances) {
    begin(other);
    if (in.side >= 0) leads_to(in.side);
    branch(op("icmp eq i32 " + came + ", " + std::to_string(kEnded)), in.side >= 0 ? label_of(in.side) : exit_label(), "elsewhere");
  }
  begin(next);
  reload(in.dst);
  reload(in.c);
  for (const NextItem& item : in.next) reload(item.raw);
  if (in.runs_code) fresh_.clear();
  forget(key_of(in.dst));
  for (const int32_t reg : in.fills) forget(key_of(reg));
  const auto of_iterator = [](const Fact& fact) { return fact.type == kRangeFact || fact.type == kElementsFact; };
  if (in.what == Do::kStep) std::erase_if(fresh_, [&](const Fact& fact) { return of_iterator(fact) && fact.key == key_of(in.a); });
}

// Where `plain` does not hold the step's own function does it once more.
void Writer::unless(const std::string& plain, const Instr& in) {
  const std::string slow = label("s"), join = label("j");
  line("br i1 " + plain + ", label %" + join + ", label %" + slow + ", !prof !0");
  slowly(in, slow, join);
}

// The function's result.
std::string Writer::aside(size_t function, const std::string& number, const std::string& a, const std::string& b) {
  goes_aside_ = true;
  const std::string arguments = "i64 " + std::to_string(function) + ", i32 " + number + ", i64 " + a + ", i64 " + b;
  line("call preserve_allcc void @aside(ptr %f, " + arguments + ", ptr %out)");
  return op("load i32, ptr %came");
}

void Writer::step_aside(const std::string& next) {
  store_all();
  branch(op("icmp eq i32 " + aside(offsetof(Frame, step), std::to_string(number_)) + ", 0"), next, "elsewhere");
  begin(next);
}

// The way round by the step's own function. What that puts into registers is not there before.
void Writer::slowly(const Instr& in, const std::string& slow, const std::string& join) {
  begin(slow);
  const std::set<Key> before = dirty_;
  for (const Use& use : uses_of(in))
    if (use.written) dirty_.erase(key_of(use.reg));
  const std::set<Fact> facts = fresh_;
  const int32_t leave = leave_;
  step_aside(label("n"));
  if (in.runs_code || (hoisted_copy_ && in.what == Do::kLeaveFrame)) {
    // What is known of arrays, or of registers that hold nothing (the step has boxed an operand; who has been shown a frame is given its
    // numbers' objects), may hold no more: the machine goes on.
    line("ret i32 " + std::to_string(number_ + 1));
  } else {
    reload(in.dst);
    reload(in.c);
    line("br label %" + join);
  }
  dirty_ = before;
  fresh_ = facts;
  leave_ = leave;
  begin(join);
}

// The same for an operator: its operands are handed over.
void Writer::unless_scalar(const std::string& plain, const Instr& in, const std::string& a, const std::string& b) {
  const std::string slow = label("s"), done = label("n"), join = label("j");
  branch(plain, join, slow, true);
  begin(slow);
  if (bits_of(in.rep) == Bits::kComplex) {
    const std::string second = op("getelementptr i8, ptr %pairs, i64 16");
    line("store <2 x double> " + a + ", ptr %pairs");
    line("store <2 x double> " + b + ", ptr " + second);
    aside(offsetof(Frame, scalar), std::to_string(number_), op("ptrtoint ptr %pairs to i64"), op("ptrtoint ptr " + second + " to i64"));
  } else if (bits_of(in.rep) == Bits::kDouble) {
    goes_aside_ = true;
    line("call preserve_allcc void @scalar(ptr %f, i32 " + std::to_string(number_) + ", double " + a + ", double " + b + ", ptr %out)");
  } else {
    aside(offsetof(Frame, scalar), std::to_string(number_), bits(a, Bits::kFloat), bits(b, Bits::kFloat));
  }
  if (in.rep != Rep::kFloat) {  // Python's floats refuse nothing here
    branch(op("icmp ne i32 " + op("load i32, ptr %came") + ", 0"), done, exit_label());
    begin(done);
  }
  const char* type = type_of(slots_.at(key_of(in.dst)));
  let(name_of(key_of(in.dst)), type, op(std::string("load ") + type + ", ptr %out"));
  line("br label %" + join);
  begin(join);
}

std::string Writer::bits(const std::string& value, Bits as) {
  if (as == Bits::kDouble) return op("bitcast double " + value + " to i64");
  return op("zext i32 " + op("bitcast float " + value + " to i32") + " to i64");
}

void Writer::write_block() {
  if (joined_.contains(block_)) return;
  const Block& block = region_.blocks[block_];
  begin(label_of(block_));
  fresh_ = is_loop(block_) ? always_ : before_[block_];
  dirty_ = is_loop(block_) ? std::set<Key>() : dirty_before_[block_];
  leave_ = is_loop(block_) ? -1 : leave_before_[block_];
  if (is_loop(block_)) {
    for (const Key& key : carried_)
      if (key.first == block_) dirty_.insert(key);
    for (const Fact& fact : always_)
      if (fact.key.first == block_ && fact.type == kRangeFact) dirty_.insert(state_of(fact.key));
  }
  find_live(block);
  number_ = block.number;
  index_ = 0;
  if (!is_loop(block_)) enter(block);
  for (const Instr& in : block.instrs) {
    if (region_.leaves_anywhere) leave_when_forced();
    if (joins(in)) return join(in);
    write(in);
    ++number_, ++index_;
  }
  if (block.instrs.back().what == Do::kEnd) line("unreachable");
}

void Writer::leave_when_forced() {
  const std::string here = op("icmp eq i64 " + field("%f", offsetof(Frame, forced), "i64") + ", " + std::to_string(number_));
  const std::string now = op("icmp sge i64 " + op("load i64, ptr %turn") + ", " + field("%f", offsetof(Frame, forced_turn), "i64"));
  guard(op("and i1 " + here + ", " + now), false);
}

// What is of another class may well be what the side trace is for; how that is found out otherwise costs more.
void Writer::guard_class(const Instr& in) {
  const std::string type = field(object_in(in.a), static_cast<size_t>(layout_.type), "ptr");
  guard(op("icmp eq ptr " + type + ", " + address(kAddresses + in.of_class)), true, in.side);
}

void Writer::write(const Instr& in) {
  if (in.of_class >= 0 && in.side >= 0) guard_class(in);
  switch (in.what) {
    case Do::kStep:
      return by_step(in);
    case Do::kBinary:
      return binary(in);
    case Do::kUnary:
      return unary(in);
    case Do::kCompare:
    case Do::kGuardedCompare:
      return compare(in);
    case Do::kNot:
      return set(in.dst, truth_of(op("icmp eq i64 " + get(in.a) + ", 0")));
    case Do::kTruth:
      return truth(in);
    case Do::kConvert:
      return convert(in);
    case Do::kGuardTruth:
      return guard(op("icmp ne i64 " + get(in.a) + ", 0"), in.n != 0, in.side);
    case Do::kLoad:
    case Do::kStore:
      return element(in);
    case Do::kRangeIterator:
      return range_iterator(in);
    case Do::kItemsIterator:
      return items_iterator(in);
    case Do::kRangeNext:
      return range_next(in);
    case Do::kRangeEnd:
      return range_end(in);
    case Do::kItemsEnd:
      return items_end(in);
    case Do::kBox:
      return make_box(in);
    case Do::kCall:
      return call(in);
    case Do::kItem:
      return item(in);
    case Do::kSetItem:
      return set_item(in);
    case Do::kTakeItem:
      return take_item(in);
    case Do::kNextItem:
      return next_item(in);
    case Do::kPop:
      return pop(in);
    case Do::kHasItems:
      return set(in.dst, truth_of(op("icmp ne i64 " + field(object_in(in.a), static_cast<size_t>(in.imm), "i64") + ", 0")));
    case Do::kNextElement:
      return next_element(in);
    case Do::kAppend:
      return append(in);
    case Do::kOrd:
      return ord(in);
    case Do::kSameText:
      return same_text(in);
    case Do::kLetter:
      return letter(in);
    case Do::kNumber:
    case Do::kPutNumber:
      return number(in);
    case Do::kByte:
    case Do::kPutByte:
      return byte(in);
    case Do::kNext:
      return next(in);
    case Do::kPutItem:
      return put_item(in);
    case Do::kCell:
      return cell(in);
    case Do::kUnpack:
      return unpack(in);
    case Do::kField:
    case Do::kFieldItem:
    case Do::kTupleItem:
      return tuple_item(in);
    case Do::kUnbox:
      return unbox(in);
    case Do::kExtent:
      return extent(in);
    case Do::kLength:
      return length(in);
    case Do::kDraw:
      return draw(in);
    case Do::kDrawBits:
      return draw_bits(in);
    case Do::kGuardType:
    case Do::kGuardArray: {
      const Fact fact = *fact_of(in);
      know(fact);
      return is_hoisted_array(fact) ? void() : guard(op("load i1, ptr " + name_of(fact) + "ok"), true, in.side);
    }
    case Do::kGuardWorld:
      return guard_world(in);
    case Do::kAttribute:
      return attribute(in);
    case Do::kSetAttribute:
      return set_attribute(in);
    case Do::kGuardIs:
      return guard(op("icmp eq ptr " + object_in(in.a) + ", " + address(kAddresses + in.object)), in.n != 0, in.side);
    case Do::kGuardFunction:
    case Do::kGuardDefaults:
      return guard_function(in);
    case Do::kGuardTruthy:
      return guard_truthy(in);
    case Do::kGuardWaiting:
    case Do::kTakeSlot:
    case Do::kBeginToRun:
    case Do::kWaitAt:
      return generator(in);
    case Do::kQuick:
    case Do::kPiece:
      return quick(in);
    case Do::kLeaveFrame:
      return unless(
          op("icmp ne i32 " + op("call i32 " + helper(offsetof(Frame, leaves)) + "(ptr %f, i32 " + std::to_string(in.imm) + ")") + ", 0"),
          in);
    case Do::kRelease:
      return release(in);
    case Do::kJump:
      return jump(in);
    case Do::kEnd:
      go(exit_label());
      return begin(label("e"));  // nothing comes there
  }
}

// The entry block, with the places of registers and the addresses, which are known last.
std::string Writer::prologue() const {
  std::string out = head_;
  out += "  %made = alloca [" + std::to_string(most_made_ + 1) + " x ptr]\n  %parts = alloca [" + std::to_string(most_parts_ + 1) +
         " x [2 x i64]], align 16\n";
  out += loaded_addresses();
  for (int32_t reg : places_) out += "  " + place_of(reg) + " = getelementptr [2 x i64], ptr %r, i64 " + std::to_string(reg) + "\n";
  return out;
}

// What the text refers to.
std::string Writer::loaded_addresses() const {
  std::string out;
  const auto load = [&](const std::string& name, const std::string& from, size_t offset) {
    out += "  " + name + "p = getelementptr i8, ptr " + from + ", i64 " + std::to_string(offset) + "\n";
    out += "  " + name + " = load ptr, ptr " + name + "p\n";
  };
  load("%a", "%f", offsetof(Frame, addresses));
  for (int32_t index : addresses_) load(name_of_address(index), "%a", static_cast<size_t>(index) * sizeof(void*));
  return out;
}

// May a side trace be entered? Else on at `otherwise`.
void Writer::ask(int32_t side, const std::string& otherwise) {
  for (const Move& box : region_.blocks[side].boxes)
    if (const Key key = key_of(side, box.from); box.from >= 0 && slots_.find(key) != slots_.end() && !constant(key)) store_to_file(key);
  const std::string ok = label("ok");
  const std::string may = op("call i32 " + helper(offsetof(Frame, enters)) + "(ptr %f, i32 " + std::to_string(side) + ")");
  branch(op("icmp ne i32 " + may + ", 0"), ok, otherwise);
  begin(ok);
}

// A side trace begins.
void Writer::enter(const Block& block) {
  if (block.asks && !asked_.contains(block_)) ask(block_, exit_name(block.guard, hoisted_copy_));
  for (int32_t reg : block.owns) add_reference(object_in(reg));
  for (int32_t reg : block.drops) drop(reg);
  for (const Move& box : block.boxes)
    if (box.to_object >= 0) forget(key_of(box.to_object));
  for (int32_t reg : block.nulls) line("store ptr null, ptr " + place(reg));
  if (!is_light(block_)) note_entered(block_);
  if (!block.drops.empty()) guard(settled());  // else code has run: on with the block's first step
}

// The block's constants are in their registers still, if no other block of this depth has been entered since they were loaded. Else those
// of the blocks that hang on it are to be loaded with them.
void Writer::note_entered(int32_t block) {
  const int32_t depth = region_.blocks[block].depth;
  const auto place = [&](int32_t at) {
    return op("getelementptr i8, ptr %f, i64 " + std::to_string(offsetof(Frame, loaded) + sizeof(int32_t) * static_cast<size_t>(at)));
  };
  const std::string here = place(depth), self = std::to_string(block);
  const std::string still = op("icmp eq i32 " + op("load i32, ptr " + here) + ", " + self);
  line("store i32 " + op("select i1 " + still + ", i32 " + self + ", i32 0") + ", ptr " + here);
  if (depth + 1 >= kDeepest) return;
  const std::string behind = place(depth + 1);
  line("store i32 " + op("select i1 " + still + ", i32 " + op("load i32, ptr " + behind) + ", i32 0") + ", ptr " + behind);
}

// Before the file is given what the block, and those it hangs on, have computed.
void Writer::note_light(int32_t block) {
  for (; !is_loop(block); block = region_.blocks[block].parent)
    if (is_light(block)) note_entered(block);
}

void Writer::guard_world(const Instr& in) {
  if (index_ > 0 && region_.blocks[block_].instrs[index_ - 1].settles) return;
  const std::string on = label("ok"), ask = label("h");
  if (in.n == 0) branch(settled(), on, ask, true), begin(ask);
  guard(op("icmp ne i32 " + op("call i32 " + helper(offsetof(Frame, holds)) + "(ptr %f, i32 " + std::to_string(block_) + ")") + ", 0"));
  if (in.n == 0) go(on), begin(on);
}

std::string to_ir(const Region& region, const Layout& layout, const std::string& symbol) {
  for (const bool copies : {true, false}) {
    Writer writer(region, layout, copies);
    const std::string body = writer.write(symbol);
    if (!body.empty()) return writer.prologue() + body;
    if (!writer.differs()) break;
  }
  return "";
}

}  // namespace dalsegno::native
