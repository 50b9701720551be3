// Generators that wait at a yield, or have not begun: hook/generators.h says what these do.
#include <cstddef>

#include "replay/native/writer.h"

namespace dalsegno::native {

// What a generator has for the instruction that it goes on with.
std::string Writer::next_of_generator(const Instr& in) {
  const int32_t offset = layout_.generator.first + in.imm * 2;  // instructions have two bytes
  return at_offset(address(kAddresses + in.object), offset);
}

void Writer::guard_waiting(const Instr& in) {
  const GeneratorLayout& l = layout_.generator;
  const std::string object = object_in(in.a), type = address(kAddresses + in.list[0]);
  const std::string is = op("icmp eq ptr " + field(object, static_cast<size_t>(layout_.type), "ptr") + ", " + type);
  guard(is, true, in.side);
  std::string holds;
  const auto expect = [&](const std::string& condition) { holds = holds.empty() ? condition : op("and i1 " + holds + ", " + condition); };
  const auto has = [&](int32_t offset) { return field(object, static_cast<size_t>(offset), "ptr"); };
  const std::string state = field(object, static_cast<size_t>(l.state), "i8"), handled = has(l.handled);
  expect(op("or i1 " + op("icmp eq i8 " + state + ", " + std::to_string(l.created)) + ", " +
            op("icmp eq i8 " + state + ", " + std::to_string(l.suspended))));
  expect(op("or i1 " + op("icmp eq ptr " + handled + ", null") + ", " +
            op("icmp eq ptr " + handled + ", " + address(kAddresses + in.list[1]))));
  expect(op("icmp eq ptr " + has(l.code) + ", " + address(kAddresses + in.object)));
  expect(op("icmp eq ptr " + has(l.globals) + ", " + address(kAddresses + in.list[2])));
  expect(op("icmp eq ptr " + has(l.shown) + ", null"));
  expect(op("icmp eq ptr " + has(l.next) + ", " + next_of_generator(in)));
  expect(op("icmp eq i32 " + field(object, static_cast<size_t>(l.count), "i32") + ", " + std::to_string(in.slots.size())));
  // (Slots in use alone are looked at: the code tells how many there are at most.)
  guard(holds, true, in.side);
  holds.clear();
  for (size_t i = 0; i < in.slots.size(); ++i)
    expect(op(std::string("icmp ") + (in.slots[i] ? "ne" : "eq") + " ptr " + has(l.slots + static_cast<int32_t>(i * sizeof(void*))) +
              ", null"));
  if (!holds.empty()) guard(holds, true, in.side);
}

void Writer::take_slot(const Instr& in) {
  const std::string generator = object_in(in.a);
  if (in.imm < 0) return give(in.dst, field(generator, static_cast<size_t>(layout_.generator.function), "ptr"));
  const int32_t offset = layout_.generator.slots + in.imm * static_cast<int32_t>(sizeof(void*));
  const std::string slot = at_offset(generator, offset);
  const std::string object = op("load ptr, ptr " + slot);
  line("store ptr null, ptr " + slot);
  line("store ptr " + object + ", ptr " + place(in.dst));
  forget(key_of(in.dst));
}

void Writer::put_state(const std::string& generator, int32_t state, int32_t count) {
  const auto at = [&](int32_t offset) { return at_offset(generator, offset); };
  line("store i8 " + std::to_string(state) + ", ptr " + at(layout_.generator.state));
  line("store i32 " + std::to_string(count) + ", ptr " + at(layout_.generator.count));
}

// A range's iterator is written back to before another frame has it.
void Writer::wait_at(const Instr& in) {
  const std::string generator = object_in(in.list[0]);
  for (size_t slot = 0, k = 1; slot < in.slots.size(); ++slot) {
    std::string object = "null";
    if (in.slots[slot] != 0) {
      let_go(key_of(in.list[k]));
      object = object_in(in.list[k++]);
      add_reference(object);
    }
    const int32_t offset = layout_.generator.slots + static_cast<int32_t>(slot * sizeof(void*));
    line("store ptr " + object + ", ptr " + at_offset(generator, offset));
  }
  const std::string next = at_offset(generator, layout_.generator.next);
  line("store ptr " + next_of_generator(in) + ", ptr " + next);
  put_state(generator, layout_.generator.suspended, in.n);
}

void Writer::generator(const Instr& in) {
  if (in.what == Do::kGuardWaiting) return guard_waiting(in);
  if (in.what == Do::kTakeSlot) return take_slot(in);
  if (in.what == Do::kWaitAt) return wait_at(in);
  put_state(object_in(in.a), layout_.generator.executing, in.n);  // kBeginToRun
}

}  // namespace dalsegno::native
