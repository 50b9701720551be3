// A region as text: registers, control.
#include <cstddef>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {

const char* type_of(Bits bits) { return bits == Bits::kDouble ? "double" : bits == Bits::kFloat ? "float" : "i64"; }

namespace {

constexpr const char* kDeclarations =
    "declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)\n"
    "declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)\n"
    "declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)\n"
    "declare double @llvm.fabs.f64(double)\n"
    "declare double @llvm.sqrt.f64(double)\n"
    "declare double @llvm.floor.f64(double)\n"
    "declare double @llvm.ceil.f64(double)\n"
    "declare double @llvm.trunc.f64(double)\n"
    "declare float @llvm.fabs.f32(float)\n"
    "!0 = !{!\"branch_weights\", i32 2000, i32 1}\n";

}  // namespace

std::string Writer::write(const std::string& symbol) {
  if (!find_slots()) return "";
  find_changes();
  head(symbol);
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_) write_block();
  for (const auto& [number, stores] : exits_) write_exit(number, stores);
  for (int32_t loop : heads_) write_head_exit(loop);
  text_ += "elsewhere:\n  ret i32 -1\n}\n";
  text_ += kDeclarations;
  return text_;
}

void Writer::write_exit(int32_t number, const std::string& stores) {
  const bool behind = planted(Fault::native_exit) && refused_.find(number) != refused_.end();
  text_ += "x" + std::to_string(number) + ":\n" + stores + "  ret i32 " + std::to_string(number + (behind ? 1 : 0)) + "\n";
}

// Leaves at a loop's head, with what was carried there.
void Writer::write_head_exit(int32_t loop) {
  block_ = loop;
  begin("h" + std::to_string(loop));
  for (const Key& key : carried_)
    if (key.first == loop) line(std::string("store ") + type_of(slots_.at(key)) + " " + get(key.second) + ", ptr " + place(key.second));
  line("ret i32 " + std::to_string(region_.blocks[loop].number));
}

Writer::Key Writer::key_of(int32_t block, int32_t reg) const {
  while (!is_loop(block) && reg < region_.blocks[block].first_reg) block = region_.blocks[block].parent;
  return {block, reg};
}

const int64_t* Writer::constant(Key key) const {
  const auto& constants = region_.blocks[key.first].constants;
  const auto found = constants.find(key.second);
  return found == constants.end() ? nullptr : &found->second;
}

bool Writer::find_slots() {
  for (int32_t block = 0; block < static_cast<int32_t>(region_.blocks.size()); ++block) {
    for (const Instr& in : region_.blocks[block].instrs) {
      for (const Use& use : uses_of(in)) {
        const Key key = key_of(use.written && in.what == Do::kJump ? in.target : block, use.reg);
        if (use.reg < 0 || (use.written && constant(key))) return false;
        const auto [slot, fresh] = slots_.try_emplace(key, use.bits);
        if (!fresh && slot->second != use.bits) return false;
        if (use.written) written_.insert(key);
        if (use.written && in.what == Do::kJump) carried_.insert(key);
      }
    }
  }
  return true;
}

std::string Writer::op(const std::string& text) {
  std::string name = fresh();
  line(name + " = " + text);
  return name;
}

std::string Writer::literal(int64_t bits, Bits as) {
  if (as == Bits::kDouble) return "bitcast (i64 " + std::to_string(bits) + " to double)";
  if (as == Bits::kFloat) return "bitcast (i32 " + std::to_string(static_cast<int32_t>(bits)) + " to float)";
  return std::to_string(bits);
}

std::string Writer::get(int32_t reg) {
  const Key key = key_of(reg);
  const Bits bits = slots_.at(key);
  if (const int64_t* value = constant(key)) return literal(*value, bits);
  return op(std::string("load ") + type_of(bits) + ", ptr " + name_of(key));
}

void Writer::set(Key key, const std::string& value) {
  line(std::string("store ") + type_of(slots_.at(key)) + " " + value + ", ptr " + name_of(key));
  dirty_.insert(key);
}

// Reads the variable again from the register file.
void Writer::reload(int32_t reg) {
  const Key key = key_of(reg);
  const auto slot = slots_.find(key);
  if (reg < 0 || slot == slots_.end() || constant(key)) return;
  const std::string value = op(std::string("load ") + type_of(slot->second) + ", ptr " + place(reg));
  line(std::string("store ") + type_of(slot->second) + " " + value + ", ptr " + name_of(key));
  dirty_.erase(key);
}

std::string Writer::place(int32_t block, int32_t reg) {
  const int32_t at = region_.blocks[block].offset + reg;
  places_.insert(at);
  return place_of(at);
}

// Stores what the register file does not have yet.
std::string Writer::stores() {
  std::vector<Key> keys;
  for (const Key& key : dirty_)
    if (key.first != block_ || live_[index_].find(key.second) != live_[index_].end()) keys.push_back(key);
  if (planted(Fault::native_registers) && !keys.empty()) keys.pop_back();
  std::string out;
  for (const Key& key : keys) {
    const std::string value = fresh(), type = type_of(slots_.at(key));
    out += "  " + value + " = load " + type + ", ptr " + name_of(key) + "\n";
    out += "  store " + type + " " + value + ", ptr " + place(key.second) + "\n";
  }
  return out;
}

std::string Writer::field(const std::string& base, size_t offset, const char* type) {
  return op(std::string("load ") + type + ", ptr " + op("getelementptr i8, ptr " + base + ", i64 " + std::to_string(offset)));
}

void Writer::head(const std::string& symbol) {
  head_ = "define i32 @" + symbol + "(ptr %r, ptr %f) {\nentry:\n";
  text_.clear();
  for (const auto& [key, bits] : slots_)
    if (!constant(key)) line(name_of(key) + " = alloca " + type_of(bits));
  breaker_ = field("%f", offsetof(Frame, breaker), "ptr");
  unsettled_ = field("%f", offsetof(Frame, unsettled), "ptr");
  step_ = field("%f", offsetof(Frame, step), "ptr");
  drop_ = field("%f", offsetof(Frame, drop), "ptr");
  const std::string addresses = field("%f", offsetof(Frame, addresses), "ptr");
  quiet_ = field("%f", offsetof(Frame, quiet), "ptr");
  scalar_ = field("%f", offsetof(Frame, scalar), "ptr");
  put_ = field("%f", offsetof(Frame, put), "ptr");
  holds_ = field("%f", offsetof(Frame, holds), "ptr");
  ends_ = field("%f", offsetof(Frame, ends), "ptr");
  fits_ = field("%f", offsetof(Frame, fits), "ptr");
  line("%out = alloca i64");
  line("%turn = alloca i64");
  line("store i64 0, ptr %turn");
  enters_ = field("%f", offsetof(Frame, enters), "ptr");
  for (int32_t i = 0; i < kAddresses + region_.objects; ++i)
    addresses_.push_back(field(addresses, static_cast<size_t>(i) * sizeof(void*), "ptr"));
  for (const auto& [key, bits] : slots_)
    if (key.first == 0) load_first(key, bits);
  for (block_ = 0; block_ < static_cast<int32_t>(region_.blocks.size()); ++block_)
    for (const Instr& in : region_.blocks[block_].instrs)
      if (const std::optional<Fact> fact = fact_of(in)) {
        declare(*fact);
        if (holds_always(*fact)) always_.insert(*fact);
      }
  line("%items = alloca ptr");
  block_ = 0;
  look_up(0);
  line("br label %b0");
}

void Writer::load_first(Key key, Bits bits) {
  if (constant(key)) return;
  const std::string value = op(std::string("load ") + type_of(bits) + ", ptr " + place(key.second));
  line(std::string("store ") + type_of(bits) + " " + value + ", ptr " + name_of(key));
}

std::string Writer::exit_label() {
  if (exits_.find(number_) == exits_.end()) exits_[number_] = stores();
  return "x" + std::to_string(number_);
}

// Goes on where the condition holds; else the machine does the instruction, or the side trace goes on.
void Writer::guard(const std::string& condition, bool wanted, int32_t side) {
  const std::string ok = label("ok"), fail = side >= 0 ? "b" + std::to_string(side) : exit_label();
  if (side >= 0) leads_to(side);
  if (wanted)
    line("br i1 " + condition + ", label %" + ok + ", label %" + fail + (side >= 0 ? "" : ", !prof !0"));
  else
    line("br i1 " + condition + ", label %" + fail + ", label %" + ok);
  begin(ok);
}

void Writer::leads_to(int32_t side) {
  before_[side] = fresh_;
  dirty_before_[side] = dirty_;
  if (region_.blocks[side].asks) exit_label();
}

std::string Writer::call_step() {
  text_ += stores();
  return op("call i32 " + step_ + "(ptr %f, i32 " + std::to_string(number_) + ")");
}

void Writer::by_step(const Instr& in) {
  const std::string came = call_step(), next = label("n");
  dirty_.clear();
  line("br i1 " + op("icmp eq i32 " + came + ", 0") + ", label %" + next + ", label %elsewhere");
  begin(next);
  reload(in.dst);
  reload(in.c);
  if (in.runs_code) fresh_.clear();
  std::erase_if(fresh_, [&](const Fact& fact) { return fact.key == key_of(in.dst); });
}

// Where `plain` does not hold the step's own function does it once more.
void Writer::unless(const std::string& plain, const Instr& in) {
  const std::string slow = label("s"), join = label("j");
  line("br i1 " + plain + ", label %" + join + ", label %" + slow + ", !prof !0");
  slowly(in, slow, join);
}

// The way round by the step's own function.
void Writer::slowly(const Instr& in, const std::string& slow, const std::string& join) {
  begin(slow);
  const std::set<Key> before = dirty_;
  const std::set<Fact> facts = fresh_;
  if (in.runs_code) {
    // What is known of arrays may hold no more: the machine goes on.
    const std::string came = call_step(), next = label("n");
    line("br i1 " + op("icmp eq i32 " + came + ", 0") + ", label %" + next + ", label %elsewhere");
    begin(next);
    line("ret i32 " + std::to_string(number_ + 1));
  } else {
    by_step(in);
    line("br label %" + join);
  }
  dirty_ = before;
  fresh_ = facts;
  begin(join);
}

// The same for an operator: its operands are handed over.
void Writer::unless_scalar(const std::string& plain, const Instr& in, const std::string& a, const std::string& b) {
  const std::string slow = label("s"), done = label("n"), join = label("j");
  line("br i1 " + plain + ", label %" + join + ", label %" + slow + ", !prof !0");
  begin(slow);
  const std::string operands = "i64 " + bits(a, bits_of(in.rep)) + ", i64 " + bits(b, bits_of(in.rep));
  const std::string ok = op("call i32 " + scalar_ + "(ptr %f, i32 " + std::to_string(number_) + ", " + operands + ", ptr %out)");
  line("br i1 " + op("icmp ne i32 " + ok + ", 0") + ", label %" + done + ", label %" + exit_label());
  begin(done);
  const std::string type = type_of(slots_.at(key_of(in.dst)));
  line("store " + type + " " + op("load " + type + ", ptr %out") + ", ptr " + name_of(key_of(in.dst)));
  line("br label %" + join);
  begin(join);
}

std::string Writer::bits(const std::string& value, Bits as) {
  if (as == Bits::kDouble) return op("bitcast double " + value + " to i64");
  return op("zext i32 " + op("bitcast float " + value + " to i32") + " to i64");
}

void Writer::write_block() {
  const Block& block = region_.blocks[block_];
  begin("b" + std::to_string(block_));
  fresh_ = is_loop(block_) ? always_ : before_[block_];
  dirty_ = is_loop(block_) ? std::set<Key>() : dirty_before_[block_];
  if (is_loop(block_))
    for (const Key& key : carried_)
      if (key.first == block_) dirty_.insert(key);
  find_live(block);
  number_ = block.number;
  index_ = 0;
  if (!is_loop(block_)) enter(block);
  for (const Instr& in : block.instrs) {
    if (number_ == region_.forced) leave_when_forced();
    write(in);
    ++number_, ++index_;
  }
  if (block.instrs.back().what == Do::kEnd) line("unreachable");
}

void Writer::leave_when_forced() {
  const std::string on = label("f"), turn = op("load i64, ptr %turn");
  line("br i1 " + op("icmp eq i64 " + turn + ", " + std::to_string(region_.forced_turn)) + ", label %" + exit_label() + ", label %" + on);
  begin(on);
}

// Which registers of the block's own the instructions from each one on, or whoever goes on there, may still look at. What the loop
// carries is always live.
void Writer::find_live(const Block& block) {
  std::set<int32_t> live;
  for (const Key& key : carried_)
    if (key.first == block_) live.insert(key.second);
  live_.assign(block.instrs.size() + 1, live);
  for (size_t i = block.instrs.size(); i-- > 0;) {
    const Instr& in = block.instrs[i];
    for (const Use& use : uses_of(in))
      if (!use.written) live.insert(use.reg);
    live.insert(in.needs.begin(), in.needs.end());
    if (in.needs_all || in.what == Do::kStep)
      for (const Key& key : written_)
        if (key.first == block_) live.insert(key.second);
    live_[i] = live;
  }
}

void Writer::write(const Instr& in) {
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
    case Do::kRangeNext:
      return range_next(in);
    case Do::kBox:
      return unless(op("icmp ne ptr " + op("load ptr, ptr " + place(in.dst)) + ", null"), in);
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
    case Do::kPutItem:
      return put_item(in);
    case Do::kUnbox:
      return unbox(in);
    case Do::kLength:
      return length(in);
    case Do::kGuardType:
    case Do::kGuardArray: {
      const Fact fact = *fact_of(in);
      know(fact);
      return guard(op("load i1, ptr " + name_of(fact) + "ok"));
    }
    case Do::kGuardWorld:
      return guard_world(in);
    case Do::kRelease:
      return release(in);
    case Do::kJump:
      return jump(in);
    case Do::kEnd:
      go(exit_label());
      return begin(label("e"));  // nothing comes there
  }
}

// The entry block, with the places of registers, which are known last.
std::string Writer::prologue() const {
  std::string out = head_;
  for (int32_t reg : places_) out += "  " + place_of(reg) + " = getelementptr i64, ptr %r, i64 " + std::to_string(reg) + "\n";
  return out;
}

// A side trace begins.
void Writer::enter(const Block& block) {
  if (block.asks) {
    const std::string ok = label("ok");
    for (const Move& box : block.boxes)
      if (const Key key = key_of(box.from); slots_.find(key) != slots_.end() && !constant(key))
        line(std::string("store ") + type_of(slots_.at(key)) + " " + get(box.from) + ", ptr " + place(box.from));
    const std::string may = op("call i32 " + enters_ + "(ptr %f, i32 " + std::to_string(block_) + ")");
    line("br i1 " + op("icmp ne i32 " + may + ", 0") + ", label %" + ok + ", label %x" + std::to_string(block.guard));
    begin(ok);
  }
  for (int32_t reg : block.owns) add_reference(object_in(reg));
  for (int32_t reg : block.drops) drop(reg);
  for (int32_t reg : block.nulls) line("store ptr null, ptr " + place(reg));
  const size_t loaded = offsetof(Frame, loaded) + sizeof(int32_t) * static_cast<size_t>(block.depth);
  line("store i32 0, ptr " + op("getelementptr i8, ptr %f, i64 " + std::to_string(loaded)));
  if (!block.drops.empty()) guard(settled());  // else code has run: on with the block's first step
}

void Writer::guard_world(const Instr& in) {
  if (in.n != 0) return guard(op("icmp ne i32 " + op("call i32 " + holds_ + "(ptr %f, i32 " + std::to_string(block_) + ")") + ", 0"));
  guard(settled());
}

void Writer::jump(const Instr& in) {
  if (in.by_step) {
    const std::string came = call_step(), next = label("n");
    line("br i1 " + op("icmp eq i32 " + came + ", 2") + ", label %" + next + ", label %elsewhere");
    begin(next);
    for (const auto& [key, bits] : slots_)
      if (key.first == 0) load_first(key, bits);
    return line("br label %b0");
  }
  const std::string target = std::to_string(in.target);
  if (in.asks) guard(op("icmp ne i32 " + op("call i32 " + enters_ + "(ptr %f, i32 " + target + ")") + ", 0"));
  const std::string waits = op("load volatile i8, ptr " + breaker_), other = op("load i8, ptr " + unsettled_);
  guard(op("icmp eq i8 " + op("or i8 " + waits + ", " + other) + ", 0"));
  if (in.checks) guard(op("icmp ne i32 " + op("call i32 " + fits_ + "(ptr %f, i32 " + std::to_string(number_) + ")") + ", 0"));
  if (region_.forced >= 0) line("store i64 " + op("add i64 " + op("load i64, ptr %turn") + ", 1") + ", ptr %turn");
  std::vector<std::string> values, objects;
  for (const Move& move : in.moves) {
    values.push_back(move.to >= 0 ? get(move.from) : "");
    objects.push_back(move.to_object >= 0 && move.from_object >= 0 ? taken(move) : "");
  }
  for (int32_t reg : in.drops) drop(reg);
  for (size_t k = 0; k < in.moves.size(); ++k) {
    if (!values[k].empty()) set(key_of(in.target, in.moves[k].to), values[k]);
    if (!objects[k].empty()) line("store ptr " + objects[k] + ", ptr " + place(in.target, in.moves[k].to_object));
  }
  if (!in.drops.empty()) {  // the loop's first step is the machine's if code has run
    const std::string on = label("ok");
    branch(settled(), on, "h" + target, true);
    begin(on);
    heads_.insert(in.target);
  }
  if (loop_of(block_) != in.target) look_up(in.target);
  line("br label %b" + target);
}

std::string to_ir(const Region& region, const Layout& layout, const std::string& symbol) {
  Writer writer(region, layout);
  const std::string body = writer.write(symbol);
  return body.empty() ? body : writer.prologue() + body;
}

}  // namespace dalsegno::native
