// Loops as native code: when they are compiled, and running them.
#include "replay/machine/native.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "replay/machine/scalars.h"
#include "replay/persist/kept_as.h"
#include "replay/settings.h"

namespace dalsegno::replay {
namespace {

// For tests.
int32_t forced_number = -1;
int64_t forced_turn = 0;
NativeCounters counters;

// The loop that a block is, or hangs on.
int32_t loop_of(const native::Region& region, const native::Block& block) {
  const native::Block* at = &block;
  while (at->parent >= 0) at = &region.blocks[static_cast<size_t>(at->parent)];
  return static_cast<int32_t>(at - region.blocks.data());
}

// Calling a step from native code costs more than the machine takes to go on to the next one, and so does what handles objects: the rest
// has to be worth it. So is a loop of which native code need not be left for the one around it, and entered again.
bool pays(const native::Region& region) {
  using native::Do;
  constexpr Do kNoGain[] = {Do::kBox, Do::kRelease, Do::kEnd, Do::kJump, Do::kGuardWorld, Do::kGuardType, Do::kGuardArray};
  constexpr int64_t kNotLeft = 24;
  int64_t gains = 0, called = 0;
  for (const native::Block& block : region.blocks)
    for (const native::Instr& in : block.instrs) {
      if (in.what == Do::kJump && in.target != loop_of(region, block)) gains += kNotLeft;
      called += in.what == Do::kStep && !in.only_called;
      gains += in.what != Do::kStep && !in.only_called && std::find(std::begin(kNoGain), std::end(kNoGain), in.what) == std::end(kNoGain);
    }
  return gains > 4 * called;
}

// Of the traces with numbers below `below`, and of more programs than `than` has, or null. Where that does not pay (an inner loop whose
// outer one calls steps), with fewer steps.
std::unique_ptr<Native> make_native(ProgramImpl& root, size_t below, bool only_kept, const Native* than = nullptr,
                                    size_t most = kMostNativeSteps) {
  auto made = std::make_unique<Native>();
  made->seen = below;
  made->most = most;
  if (root.steps.size() > most) return made;
  native::Region region = describe(root, made.get(), below);
  if (than && made->programs.size() <= than->programs.size()) return nullptr;
  const size_t steps = made->n_steps();
  if (settings().hot_loop > 1 && !pays(region))
    return made->programs.size() > 1 ? make_native(root, below, only_kept, than, steps - 1 - steps / 4) : std::move(made);
  region.leaves_anywhere = forced_number >= 0;
  ++counters.regions;
  made->entry.fn = step_native;
  counters.instructions = std::max(counters.instructions, static_cast<int32_t>(steps));
  made->code = std::make_shared<NativeCode>(std::move(region), native_layout(), root.keeps_code, only_kept);
  if (root.kept_as) {
    made->code->of_function = root.kept_as->function;
    made->code->of = {root.data().number, static_cast<int32_t>(below), static_cast<int32_t>(most)};
  }
  return made;
}

// In place of what was too large: with as many steps as will hardly be, as long as that is more than `than` has. Null: there is none.
std::unique_ptr<Native> make_smaller(ProgramImpl& root, const Native& large, const Native* than = nullptr) {
  const double part = 0.9 * static_cast<double>(NativeCode::kMostText) / static_cast<double>(large.code->text_size);
  const auto most = static_cast<size_t>(part * static_cast<double>(large.n_steps()));
  std::unique_ptr<Native> made = make_native(root, large.seen, large.code->only_kept, than, most);
  if (!made) return nullptr;
  made->times = large.times;
  made->often = large.often;
  return made;
}

// What an earlier process has compiled last, or null.
std::unique_ptr<Native> make_kept(ProgramImpl& root) {
  const store::KeptRegion of = root.kept_as ? root.kept_as->region : store::KeptRegion();
  if (of.below <= root.data().number || of.most <= 0) return nullptr;
  const size_t below = std::min(static_cast<size_t>(of.below), root.tree->size());
  std::unique_ptr<Native> made = make_native(root, below, true, nullptr, std::min(static_cast<size_t>(of.most), kMostNativeSteps));
  if (!made->code) return nullptr;
  made->often = settings().hot_loop;
  return made;
}

int state_of(const Native& native) { return native.code ? native.code->state.load(std::memory_order_acquire) : NativeCode::kFailed; }

// Compiling may leave the GIL to other threads, which find what is being compiled in its place: they do not ask for it again.
void compile(const Native& native) {
  if (const std::shared_ptr<NativeCode> code = native.code) compile_native(code);
}

// A step at which native code has left: does something go on there that is no part of it yet, and could be?
bool could_grow(const Native& native, const ProgramImpl& p, const Step& left) {
  if (native.next || native.seen == p.tree->size()) return false;
  const ProgramImpl* on = nullptr;
  if (const int32_t plan = side_plan(left.does, left); plan >= 0)
    on = static_cast<const ProgramImpl*>(p.exit_records[p.plans[plan].exit].side);
  if (left.does == native::Do::kJump) on = p.jumps[left.imm].target;
  return on && comes_back(*on) && std::find(native.programs.begin(), native.programs.end(), on) == native.programs.end();
}

// Is another loop's region that this loop is part of under way? Then whoever comes from there will hardly come here any more: a nest is
// compiled once.
bool is_coming(const ProgramImpl& root) {
  const auto holds_it = [&](const Native* native) {
    return native && state_of(*native) == NativeCode::kWaiting &&
           std::find(native->programs.begin(), native->programs.end(), &root) != native->programs.end();
  };
  return std::any_of(root.tree->begin(), root.tree->end(), [&](const std::unique_ptr<Program>& program) {
    const auto* other = static_cast<const ProgramImpl*>(program.get());
    return other && other != &root && other->native && (holds_it(other->native.get()) || holds_it(other->native->next.get()));
  });
}

// The region is compiled once more, if the tree has more by now.
void grow_now(ProgramImpl& root) {
  constexpr int32_t kMostTimes = 12;
  Native& native = *root.native;
  native.left = 0;
  if (native.times >= kMostTimes || is_coming(root)) return;
  native.often *= 2;
  native.seen = root.tree->size();
  native.next = make_native(root, root.tree->size(), false, &native);
  if (!native.next) return;
  native.code->outgrow();
  native.next->times = native.times + 1;
  native.next->often = native.often;
  compile(*native.next);
}

// Where it is left often at what it could have.
void grow(ProgramImpl& root) {
  if (++root.native->left >= std::min(root.native->often, settings().hot_loop)) grow_now(root);
}

// What was compiled with more side traces takes the place of what it grew from, which may be running.
void take_next(ProgramImpl& root) {
  const int state = state_of(*root.native->next);
  if (state == NativeCode::kWaiting) return;
  std::unique_ptr<Native> next = std::move(root.native->next);
  if (state == NativeCode::kTooLarge) {
    root.native->next = make_smaller(root, *next, root.native.get());
    root.native->next ? compile(*root.native->next) : root.native->code->stay();
    return;
  }
  if (state == NativeCode::kFailed) return root.native->code->stay();
  make_alone(*next);
  next->previous = std::move(root.native);
  root.native = std::move(next);
  root.start = &root.native->entry;
}

}  // namespace

size_t Native::n_steps() const {
  return std::accumulate(programs.begin(), programs.end(), size_t{0}, [](size_t n, const ProgramImpl* p) { return n + p->steps.size(); });
}

const Step* step_native(const Step*, Reg* r, Machine& m) {
  ProgramImpl& root = *m.program;
  if (root.native->next) take_next(root);
  Native& native = *root.native;
  if (!worlds_hold(native)) return root.steps.data();
  if (native.programs.size() > 1) {
    m.reserve(native.n_regs);
    r = m.r;
  }
  Running running{&m, &native, m.base, r, native.places.data(), m.collections};
  for (size_t k = 1; k < native.programs.size(); ++k) {
    if (native.programs[k]->parent) continue;
    turn_to(running, k);
    start_program(m, *native.programs[k]);
  }
  native::Frame frame;
  fill(&frame, &running);
  frame.addresses = native.addresses.data();
  frame.forced = forced_number, frame.forced_turn = forced_turn;
  static_assert(sizeof(native::Register) == sizeof(Reg));
  native.code->entered.store(native.code->entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const int32_t number = native.code->function.load(std::memory_order_acquire)(reinterpret_cast<native::Register*>(r), &frame);
  drop_spares(&frame);
  counters.forced += number == forced_number;
  const Step* s = running.next;
  if (number != native::kElsewhere) s = turn_to(frame, running, number);
  turn_back(running);
  if (running.no_memory) throw std::bad_alloc();
  if (number != native::kElsewhere && could_grow(native, *m.program, *s)) ++g_machine_counters.growing, grow(root);
  return s;
}

void grow_regions(const Programs& tree) {
  for (const auto& program : tree) {
    auto* root = static_cast<ProgramImpl*>(program.get());
    const bool could = root && root->native && root->native->left > 0 && !root->native->next && root->native->seen != tree.size();
    if (could && state_of(*root->native) == NativeCode::kReady) grow_now(*root);
  }
}

void force_native_exit(int32_t number, int64_t turn) {
  forced_number = number, forced_turn = turn;
  counters = {};
}
NativeCounters native_counters() { return counters; }

const Step* ProgramImpl::warm_start() {
  constexpr int32_t kSoon = 16;  // turns of a loop that an earlier process may have compiled
  if (!native) {
    if (!settings().native) return steps.data();
    const bool kept = from_store && keeps_code && !kept_asked;
    if (++turns < (kept ? std::min(kSoon, settings().hot_loop) : settings().hot_loop)) return steps.data();
    if (is_coming(*this)) return turns = kept ? turns - 1 : 0, steps.data();
    native = kept ? make_kept(*this) : make_native(*this, tree->size(), false);
    if (!native) return kept_asked = true, steps.data();
    compile(*native);
  }
  const int state = state_of(*native);
  if (state == NativeCode::kWaiting) return steps.data();
  if (state == NativeCode::kTooLarge) {
    native = make_smaller(*this, *native);
    compile(*native);
    return steps.data();
  }
  if (state == NativeCode::kMissing) return native.reset(), kept_asked = true, steps.data();
  if (state == NativeCode::kReady) make_alone(*native);
  return start = state == NativeCode::kReady ? &native->entry : steps.data();
}

}  // namespace dalsegno::replay
