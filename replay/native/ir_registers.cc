// Registers as variables, what has been computed already, and what the register file is given where the region is left.
#include <algorithm>
#include <cstddef>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {

// The number of the instruction to leave before goes along, through what the exits store together.
void Writer::write_exits() {
  std::vector<std::string> comes(leaving_.size());  // by group, as a phi has it
  const auto lead = [&](int32_t group, const std::string& number, const std::string& from) {
    comes[static_cast<size_t>(group)] += (comes[static_cast<size_t>(group)].empty() ? "[" : ", [") + number + ", %" + from + "]";
  };
  for (const auto& [exit, group] : exits_) {
    const auto& [hoisted, number] = exit;
    const bool behind = planted(Fault::native_exit) && refused_.find(number) != refused_.end();
    const std::string at = exit_name(number, hoisted);
    begin(at);
    note_light(block_at(number));
    go("stores" + std::to_string(group));
    lead(group, std::to_string(number + (behind ? 1 : 0)), at);
  }
  for (const Behind& way : behind_) lead(way.group, std::to_string(way.number), way.label);
  for (size_t k = leaving_.size(); k-- > 0;) {  // a group is behind the one that it leads to
    const Leaving& group = leaving_[k];
    const std::string at = "stores" + std::to_string(k), number = fresh();
    begin(at);
    line(number + " = phi i32 " + comes[k]);
    for (const Key& key : group.stores) store_to_file(key);
    if (group.on < 0) {
      line("ret i32 " + number);
    } else {
      go("stores" + std::to_string(group.on));
      lead(group.on, number, at);
    }
  }
}

// The instruction has been done, and what follows it is the machine's: what is stored before it (exit_label() has been asked) is stored
// here as well, but for what it has written itself.
void Writer::leave_behind(const Instr& in, const std::string& here) {
  const int32_t group = exits_.at({hoisted_copy_, number_});
  const std::set<Key> stored = stored_from(group);
  const std::vector<Use> uses = uses_of(in);
  if (std::none_of(uses.begin(), uses.end(), [&](const Use& use) { return use.written && stored.contains(key_of(use.reg)); })) {
    note_light(block_);
    behind_.push_back({here, number_ + 1, group});
    return go("stores" + std::to_string(group));
  }
  const std::set<Key> dirty = dirty_;
  for (const Use& use : uses)
    if (use.written) dirty_.erase(key_of(use.reg));
  store_all();
  line("ret i32 " + std::to_string(number_ + 1));
  dirty_ = dirty;
}

// The block of an instruction's number.
int32_t Writer::block_at(int32_t number) const {
  int32_t block = static_cast<int32_t>(region_.blocks.size()) - 1;
  while (region_.blocks[block].number > number) --block;
  return block;
}

Writer::Key Writer::key_of(int32_t block, int32_t reg) const {
  while (!is_loop(block) && reg < region_.blocks[block].first_reg) block = region_.blocks[block].parent;
  return {block, reg};
}

const int64_t* Writer::constant(Key key) const {
  const auto& constants = region_.blocks[key.first].constants;
  const auto found = constants.find(key.second);
  return found == constants.end() ? nullptr : &found->second.bits;
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
        if (use.written) (in.what == Do::kUnbox ? unboxed_ : given_numbers_).insert(key);
      }
      if (in.what == Do::kNextItem || in.what == Do::kItemsEnd) over_items_[key_of(block, in.a)] |= in.imm != 0 ? kTuple : kList;
      if (in.what == Do::kStep)
        for (int32_t reg : {in.dst, in.c}) given_numbers_.insert(key_of(block, reg));
    }
  }
  find_made_here();
  return true;
}

void Writer::find_made_here() {
  std::set<Key> read = carried_;
  for (const Instr& in : region_.blocks[0].instrs) {
    for (const Use& use : uses_of(in))
      if (!use.written) read.insert(key_of(0, use.reg));
    if (in.what == Do::kJump) continue;
    for (const Use& use : uses_of(in))
      if (use.written && !read.contains(key_of(0, use.reg))) made_here_.insert(key_of(0, use.reg));
  }
}

// Does it give the same wherever it has been computed before? Variables are looked after by let().
bool Writer::is_pure(const std::string& text) {
  if (text.starts_with("load ")) return text.find(" %v") != std::string::npos || text.find(" %k") != std::string::npos;
  return !text.starts_with("call ") || text.find("@llvm.") != std::string::npos;
}

std::string Writer::op(const std::string& text) {
  const bool pure = is_pure(text);
  if (pure)
    if (const auto found = known_.find(text); found != known_.end()) return found->second;
  std::string name = fresh();
  line(name + " = " + text);
  if (pure) remember(text, name);
  return name;
}

void Writer::remember(const std::string& text, const std::string& value) {
  known_[text] = value;
  remembered_.emplace_back(++moment_, text);
}

void Writer::let(const std::string& name, const char* type, const std::string& value) {
  line(std::string("store ") + type + " " + value + ", ptr " + name);
  remember(std::string("load ") + type + ", ptr " + name, value);
}

std::string Writer::label(const char* what) {
  std::string name = std::string(".") + what + std::to_string(next_++);  // (values have other names)
  made_[name] = moment_;
  return name;
}

// What was computed since the label was made may not have been on the way to it.
void Writer::begin(const std::string& label) {
  text_ += label + ":\n";
  const auto made = made_.find(label);
  const int64_t then = made == made_.end() ? 0 : made->second;
  for (; !remembered_.empty() && remembered_.back().first > then; remembered_.pop_back()) known_.erase(remembered_.back().second);
}

std::string Writer::literal(const Constant& value, Bits as) {
  const auto real = [](int64_t bits) { return "bitcast (i64 " + std::to_string(bits) + " to double)"; };
  if (as == Bits::kDouble) return real(value.bits);
  if (as == Bits::kComplex) return "<double " + real(value.bits) + ", double " + real(value.imag) + ">";
  if (as == Bits::kFloat) return "bitcast (i32 " + std::to_string(static_cast<int32_t>(value.bits)) + " to float)";
  return std::to_string(value.bits);
}

std::string Writer::get(int32_t reg) {
  const Key key = key_of(reg);
  const Bits bits = slots_.at(key);
  if (constant(key)) return literal(constant_of(key), bits);
  return op(std::string("load ") + type_of(bits) + ", ptr " + name_of(key));
}

void Writer::set(Key key, const std::string& value) {
  let(name_of(key), type_of(slots_.at(key)), value);
  dirty_.insert(key);
}

// Reads the variable again from the register file.
void Writer::reload(int32_t reg) {
  const Key key = key_of(reg);
  const auto slot = slots_.find(key);
  if (reg < 0 || slot == slots_.end() || constant(key)) return;
  const std::string value = op(std::string("load ") + type_of(slot->second) + ", ptr " + place(reg));
  let(name_of(key), type_of(slot->second), value);
  dirty_.erase(key);
}

std::string Writer::place(int32_t block, int32_t reg) {
  const int32_t at = region_.blocks[block].offset + reg;
  places_.insert(at);
  return place_of(at);
}

// What the register file does not have yet, and somebody may look at.
std::vector<Writer::Key> Writer::unstored() const {
  std::vector<Key> keys;
  for (const Key& key : dirty_)
    if (is_state(key) || live_[index_].contains(key)) keys.push_back(key);
  if (planted(Fault::native_registers) && !keys.empty()) keys.pop_back();
  return keys;
}

void Writer::store_to_file(Key key) {
  if (is_state(key)) return rewind(range_of(key));
  const char* type = type_of(slots_.at(key));
  line(std::string("store ") + type + " " + op(std::string("load ") + type + ", ptr " + name_of(key)) + ", ptr " +
       place(key.first, key.second));
}

// (Borrowed objects are put into the file, too: other side traces have constants in the same registers.)
bool Writer::is_light(int32_t block) const {
  const Block& b = region_.blocks[static_cast<size_t>(block)];
  if (b.parent < 0 || !b.nulls.empty() || !b.boxes.empty() || !b.owns.empty() || !b.drops.empty()) return false;
  const auto puts_object = [](const Instr& in) { return gives_object(in.what) || in.what == Do::kNext || !in.objects.empty(); };
  return std::none_of(b.instrs.begin(), b.instrs.end(), puts_object);
}

// What an instruction's step reads.
void Writer::store_operands(const Instr& in) {
  note_light(block_);
  for (const Use& use : uses_of(in))
    if (!use.written && !constant(key_of(use.reg))) store_to_file(key_of(use.reg));
}

void Writer::store_all() {
  note_light(block_);
  for (const Key& key : unstored()) store_to_file(key);
}

std::string Writer::at_offset(const std::string& base, int64_t offset) {
  return op("getelementptr i8, ptr " + base + ", i64 " + std::to_string(offset));
}

std::string Writer::field(const std::string& base, size_t offset, const char* type) {
  return op(std::string("load ") + type + ", ptr " + at_offset(base, static_cast<int64_t>(offset)));
}

void Writer::load_first(Key key, Bits bits) {
  if (constant(key)) return;
  const std::string value = op(std::string("load ") + type_of(bits) + ", ptr " + place(key.second));
  let(name_of(key), type_of(bits), value);
}

// An exit stores what the one before it in the same turn does not store, and goes on there: one after the other, exits would store all
// that the turn has come to, each of them. But what nobody looks at any more would have to be kept for it: the smaller the region, the
// less of that.
std::string Writer::exit_label() {
  constexpr size_t kSmall = 200, kFew = 2, kMany = 12;
  const size_t most_for_nobody = instructions_ < kSmall ? kFew : kMany;
  if (exits_.find({hoisted_copy_, number_}) == exits_.end()) {
    std::vector<Key> keys = unstored();
    const std::set<Key> stored = stored_from(leave_);
    const auto known = std::count_if(keys.begin(), keys.end(), [&](const Key& key) { return stored.find(key) != stored.end(); });
    if (leave_ >= 0 && stored.size() - static_cast<size_t>(known) > most_for_nobody) {
      leave_ = -1;
    } else {
      std::erase_if(keys, [&](const Key& key) { return stored.find(key) != stored.end(); });
    }
    if (leave_ < 0 || !keys.empty()) {
      leaving_.push_back({std::move(keys), leave_});
      leave_ = static_cast<int32_t>(leaving_.size()) - 1;
    }
    exits_[{hoisted_copy_, number_}] = leave_;
  }
  return exit_name(number_, hoisted_copy_);
}

std::set<Writer::Key> Writer::stored_from(int32_t group) const {
  std::set<Key> stored;
  for (; group >= 0; group = leaving_[static_cast<size_t>(group)].on) {
    const std::vector<Key>& stores = leaving_[static_cast<size_t>(group)].stores;
    stored.insert(stores.begin(), stores.end());
  }
  return stored;
}

// Which registers of the block and of those around it the instructions from each one on, or whoever goes on there, may still look at. What
// the loop carries is always live.
void Writer::find_live(const Block& block) {
  std::set<Key> live;
  for (const Key& key : carried_)
    if (key.first == loop_of(block_)) live.insert(key);
  live_.assign(block.instrs.size() + 1, live);
  for (size_t i = block.instrs.size(); i-- > 0;) {
    const Instr& in = block.instrs[i];
    for (const Use& use : uses_of(in))
      if (!use.written && (in.what != Do::kUnbox || comes_unboxed(key_of(use.reg)))) live.insert(key_of(use.reg));
    for (int32_t reg : in.needs) live.insert(key_of(reg));
    if (in.needs_all || in.what == Do::kStep)
      for (const Key& key : written_)
        if (is_around(key.first)) live.insert(key);
    live_[i] = live;
  }
}

// Is it the block, or one that it hangs on?
bool Writer::is_around(int32_t block) const {
  int32_t at = block_;
  while (at != block && !is_loop(at)) at = region_.blocks[at].parent;
  return at == block;
}

}  // namespace dalsegno::native
