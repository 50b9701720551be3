// Loops as native code: when they are compiled, and running them.
#include "replay/machine/native.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "replay/machine/scalars.h"
#include "replay/settings.h"

namespace dalsegno::replay {
namespace {

constexpr int32_t kAlone = 3;  // a step and those behind it that it may go on with, where it is to be done alone

// For tests.
int32_t forced_number = -1;
int64_t forced_turn = 0;
NativeCounters counters;

// ---- running -----------------------------------------------------------------------------------------------------------------------

// What a native function's frame leads back to.
struct Running {
  Machine* m;
  const Native* native;
  int32_t base;  // of the registers of the loop it begins with
  Reg* r;
  const Step* next = nullptr;
  bool no_memory = false;
};

Running& running_of(native::Frame* frame) { return *static_cast<Running*>(frame->extra); }

// The machine's registers are those of a block.
void turn_to(Running& running, size_t block) {
  Machine& m = *running.m;
  m.program = running.native->programs[block];
  m.base = running.base + running.native->offsets[block];
  m.r = running.r + running.native->offsets[block];
}

// Constants of side traces are put into the registers when the machine needs them.
void load(native::Frame& frame, const Running& running, ProgramImpl* p, int32_t depth) {
  if (!p->parent) return;
  load(frame, running, p->parent, depth - 1);
  const std::vector<ProgramImpl*>& programs = running.native->programs;
  const auto block = static_cast<int32_t>(std::find(programs.begin(), programs.end(), p) - programs.begin());
  if (frame.loaded[depth] == block) return;
  load_constants(*running.m, *p);
  frame.loaded[depth] = block;
}

int32_t depth_of(const ProgramImpl* p) {
  int32_t depth = 0;
  for (; p->parent; p = p->parent) ++depth;
  return depth;
}

// The step with this number, its program being the one that runs. (Where a side trace's constants are loaded so are those around it.)
const Step* turn_to(native::Frame& frame, Running& running, int32_t number) {
  const NativePlace& at = running.native->places[static_cast<size_t>(number)];
  turn_to(running, static_cast<size_t>(at.block));
  if (at.depth > 0 && frame.loaded[at.depth] != at.block) load(frame, running, running.m->program, at.depth);
  return at.step;
}

// The machine goes on with the registers where they were.
void turn_back(const Running& running) {
  Machine& m = *running.m;
  if (m.base == running.base) return;
  const Reg* from = m.r;
  m.base = running.base;
  m.r = m.room->registers.data() + m.base;
  std::copy(from, from + m.program->n_regs, m.r);
}

// One step: not those that it goes on with itself.
int32_t do_step(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const Step* s = turn_to(*frame, running, number);
  const Step* alone = &running.native->alone[static_cast<size_t>(number) * kAlone];
  const bool quiet = makes_quiet_iterator(*s);
  const Py_ssize_t before = quiet ? hook::collections(running.m->thread) : 0;
  try {
    running.next = alone->fn(alone, running.m->r, *running.m);
  } catch (const std::bad_alloc&) {  // native code is not to be unwound
    running.no_memory = true;
    return native::kLeft;
  }
  if (running.next > alone && running.next < alone + kAlone) running.next = running.next->behind;
  if (quiet && hook::collections(running.m->thread) != before) {  // finalisers may have run: the machine goes on
    running.m->unsettled = true;
    return native::kLeft;
  }
  // (A step may pass over a guard of the world behind it, which is done all the same.)
  return running.next > s && running.next < s + kAlone ? native::kNext : native::kLeft;
}

const Step* stop(const Step* s, Reg*, Machine&) { return s->behind; }

// Steps to be done one at a time.
void make_alone(Native& native) {
  for (size_t block = 0; block < native.programs.size(); ++block)
    for (const Step& s : native.programs[block]->steps) {
      native.places.push_back({&s, static_cast<int32_t>(block), depth_of(native.programs[block])});
      for (int32_t k = 0; k < kAlone; ++k) {
        Step& made = native.alone.emplace_back(k == 0 ? s : Step{});
        if (k == 0) continue;
        made.fn = stop;
        made.behind = &s + k;
      }
    }
}

void drop_one(native::Frame* frame, int32_t reg) {
  Running& running = running_of(frame);
  PyObject* o = std::exchange(running.r[reg].o, nullptr);
  if (o && !drops_quietly(o)) running.m->unsettled = true;  // it may run code
  Py_XDECREF(o);
}

int32_t drop_quietly(native::Frame* frame, int32_t reg) {
  PyObject*& o = running_of(frame).r[reg].o;
  if (!drops_quietly(o)) return 0;
  Py_CLEAR(o);
  return 1;
}

int32_t do_scalar(native::Frame* frame, int32_t number, int64_t a, int64_t b, int64_t* out) {
  const Running& running = running_of(frame);
  const Step& s = *running.native->places[static_cast<size_t>(number)].step;
  Reg result;
  if (!scalar_result(static_cast<BinaryOp>(s.imm), s.rep, Reg{.i = a}, Reg{.i = b}, &result)) return 0;
  *out = result.i;
  return 1;
}

// list[b] = c, where what stood there dies quietly.
int32_t put(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const Step* s = turn_to(*frame, running, number);
  const Reg* r = running.m->r;
  auto* list = reinterpret_cast<PyListObject*>(r[s->a].o);
  const int64_t i = r[s->b].i < 0 ? r[s->b].i + Py_SIZE(list) : r[s->b].i;
  PyObject* old = list->ob_item[i];
  if (!drops_quietly(old)) return 0;
  PyObject* item = s->rep == Rep::kNone ? Py_NewRef(r[s->c].o) : box(s->rep, r[s->c]);
  if (!item) return PyErr_Clear(), 0;
  list->ob_item[i] = item;
  Py_DECREF(old);
  return 1;
}

int32_t do_quickly(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const NativePlace& at = running.native->places[static_cast<size_t>(number)];
  if (at.depth > 0 && frame->loaded[at.depth] != at.block) turn_to(*frame, running, number);
  const Py_ssize_t before = hook::collections(running.m->thread);
  const bool done = at.step->exec(*at.step, running.r + running.native->offsets[static_cast<size_t>(at.block)]);
  if (!done) return PyErr_Clear(), 0;
  if (hook::collections(running.m->thread) == before) return 1;
  running.m->unsettled = true;  // finalisers may have run: the machine goes on
  return 2;
}

// The iterator lets go of what it went through.
int32_t ends(native::Frame* frame, int32_t reg) {
  PyObject* o = running_of(frame).r[reg].o;
  if (!ends_quietly(o)) return 0;
  Py_XDECREF(Py_TYPE(o)->tp_iternext(o));
  return 1;
}

int32_t is_quiet(void* iterator) { return hook::quiet_iterator(static_cast<PyObject*>(iterator)); }

Reg number_of(Rep rep, int64_t bits) {
  return rep == Rep::kComplex ? Reg{.c = *reinterpret_cast<const Py_complex*>(bits)} : Reg{.i = bits};
}

void* make_box(native::Frame*, int32_t rep, int64_t bits) {
  PyObject* made = box(static_cast<Rep>(rep), number_of(static_cast<Rep>(rep), bits));
  if (!made) PyErr_Clear();
  return made;
}

int32_t take_number(native::Frame*, int32_t rep, int64_t object, int64_t, int64_t* out) {
  Reg number{};
  const bool fits = unbox(static_cast<Rep>(rep), reinterpret_cast<PyObject*>(object), &number);
  std::memcpy(out, &number, static_cast<Rep>(rep) == Rep::kComplex ? sizeof number.c : sizeof number.i);
  return fits;
}

int32_t same(native::Frame*, void* a, void* b) { return same_text(static_cast<PyObject*>(a), static_cast<PyObject*>(b)); }

void* letter(native::Frame*, void* text, int64_t at) {
  PyObject* made = letter_at(static_cast<PyObject*>(text), at);
  if (!made) PyErr_Clear();
  return made;
}

int32_t make_in_register(native::Frame* frame, int32_t reg, int64_t rep, int64_t bits) {
  PyObject* made = box(static_cast<Rep>(rep), number_of(static_cast<Rep>(rep), bits));
  if (!made) return PyErr_Clear(), 0;
  running_of(frame).r[reg].o = made;
  return 1;
}

int32_t next_of_range(native::Frame* frame, int32_t reg, int64_t, int64_t, int64_t* out) {
  return hook::advance_range(running_of(frame).r[reg].o, out);
}

int32_t make_range(native::Frame* frame, int32_t reg, int64_t start, int64_t stop, int64_t step) {
  void*& spare = frame->spare[native::kSpareIterator];
  PyObject* made = hook::range_iterator(start, stop, step, static_cast<PyObject*>(spare));
  if (!made) return PyErr_Clear(), 0;
  spare = nullptr;
  running_of(frame).r[reg].o = made;
  return 1;
}

void discard(native::Frame*, void* const* made, int32_t n) {
  for (int32_t k = 0; k < n; ++k) Py_XDECREF(static_cast<PyObject*>(made[k]));
}

int32_t holds(native::Frame* frame, int32_t block) {
  const Running& running = running_of(frame);
  return !running.m->unsettled && running.native->programs[static_cast<size_t>(block)]->world_holds();
}

bool worlds_hold(const Native& native) {
  return std::all_of(native.worlds.begin(), native.worlds.end(), [](ProgramImpl* p) { return p->world_holds(); });
}

int32_t enters(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const auto block = static_cast<size_t>(number);
  ProgramImpl* p = running.native->programs[block];
  if (running.m->unsettled || !worlds_hold(*running.native)) return 0;
  if (!p->parent) return 1;
  turn_to(running, block);
  for (const Loc& loc : running.native->plans[block]->box) {
    PyObject*& object = running.m->r[loc.obj].o;
    if (!object && !(object = box(loc.rep, running.m->r[loc.raw]))) return PyErr_Clear(), 0;
  }
  load(*frame, running, p, depth_of(p));
  return 1;
}

// Calling a step from native code costs more than the machine takes to go on to the next one, and so does what handles objects: the rest
// has to be worth it.
bool pays(const native::Region& region) {
  using native::Do;
  constexpr Do kNoGain[] = {Do::kBox, Do::kRelease, Do::kEnd, Do::kJump, Do::kGuardWorld, Do::kGuardType, Do::kGuardArray};
  int64_t gains = 0, called = 0;
  for (const native::Block& block : region.blocks)
    for (const native::Instr& in : block.instrs) {
      called += in.what == Do::kStep;
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
  if (settings().hot_loop > 1 && !pays(region)) {
    size_t steps = 0;
    for (const ProgramImpl* p : made->programs) steps += p->steps.size();
    return made->programs.size() > 1 ? make_native(root, below, only_kept, than, steps - 1 - steps / 4) : std::move(made);
  }
  region.leaves_anywhere = forced_number >= 0;
  ++counters.regions;
  made->entry.fn = step_native;
  make_alone(*made);
  counters.instructions = std::max(counters.instructions, static_cast<int32_t>(made->places.size()));
  made->code = std::make_shared<NativeCode>(std::move(region), native_layout(), root.keeps_code, only_kept);
  return made;
}

// In place of what was too large: with half of its steps, as long as that is more than `than` has. Null: there is none.
std::unique_ptr<Native> make_smaller(ProgramImpl& root, const Native& large, const Native* than = nullptr) {
  size_t steps = 0;
  for (const ProgramImpl* p : large.programs) steps += p->steps.size();
  std::unique_ptr<Native> made = make_native(root, large.seen, large.code->only_kept, than, steps / 2);
  if (!made) return nullptr;
  made->times = large.times;
  made->often = large.often;
  return made;
}

// What an earlier process may have compiled: a region of all traces, or of those there were at some time before. The next one that is
// smaller than `than`, or null.
std::unique_ptr<Native> next_kept(ProgramImpl& root, const Native* than) {
  constexpr int32_t kMostTries = 16;
  const auto number = [](const ProgramImpl* p) { return static_cast<size_t>(p->data().number); };
  size_t below = root.tree->size();
  if (than) {
    below = 0;
    for (const ProgramImpl* p : than->programs) below = std::max(below, number(p));
    if (below <= number(&root) || than->times >= kMostTries) return nullptr;
  }
  std::unique_ptr<Native> made = make_native(root, below, true);
  if (!made->code) return nullptr;
  made->times = than ? than->times + 1 : 0;
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

// Where that happens often, the region is compiled once more, if the tree has more by now.
void grow(ProgramImpl& root) {
  constexpr int32_t kMostTimes = 12;
  Native& native = *root.native;
  if (++native.left < std::min(native.often, settings().hot_loop) || native.times >= kMostTimes) return;
  native.left = 0;
  if (is_coming(root)) return;
  native.often *= 2;
  native.seen = root.tree->size();
  native.next = make_native(root, root.tree->size(), false, &native);
  if (!native.next) return;
  native.next->times = native.times + 1;
  native.next->often = native.often;
  compile(*native.next);
}

// What was compiled with more side traces takes the place of what it grew from, which may be running.
void take_next(ProgramImpl& root) {
  const int state = state_of(*root.native->next);
  if (state == NativeCode::kWaiting) return;
  std::unique_ptr<Native> next = std::move(root.native->next);
  if (state == NativeCode::kTooLarge) {
    root.native->next = make_smaller(root, *next, root.native.get());
    if (root.native->next) compile(*root.native->next);
    return;
  }
  if (state == NativeCode::kFailed) return;
  next->previous = std::move(root.native);
  root.native = std::move(next);
  root.start = &root.native->entry;
}

}  // namespace

const Step* step_native(const Step*, Reg* r, Machine& m) {
  ProgramImpl& root = *m.program;
  if (root.native->next) take_next(root);
  Native& native = *root.native;
  if (!worlds_hold(native)) return root.steps.data();
  if (native.programs.size() > 1) {
    m.reserve(native.n_regs);
    r = m.r;
  }
  Running running{&m, &native, m.base, r};
  for (size_t k = 1; k < native.programs.size(); ++k) {
    if (native.programs[k]->parent) continue;
    turn_to(running, k);
    start_program(m, *native.programs[k]);
  }
  native::Frame frame;
  frame.breaker = m.breaker;
  frame.unsettled = &m.unsettled;
  frame.step = do_step;
  frame.drop = drop_one;
  frame.quiet = drop_quietly;
  frame.scalar = do_scalar;
  frame.holds = holds;
  frame.ends = ends;
  frame.is_quiet = is_quiet;
  frame.put = put;
  frame.quick = do_quickly;
  frame.box = make_box;
  frame.unbox = take_number;
  frame.same = same;
  frame.letter = letter;
  frame.make = make_in_register;
  frame.next = next_of_range;
  frame.range = make_range;
  frame.discard = discard;
  frame.enters = enters;
  frame.addresses = native.addresses.data();
  frame.forced = forced_number, frame.forced_turn = forced_turn;
  frame.extra = &running;
  static_assert(sizeof(native::Register) == sizeof(Reg));
  const int32_t number = native.code->function(reinterpret_cast<native::Register*>(r), &frame);
  for (void* left : frame.spare) Py_XDECREF(static_cast<PyObject*>(left));
  counters.forced += number == forced_number;
  const Step* s = running.next;
  if (number != native::kElsewhere) s = turn_to(frame, running, number);
  turn_back(running);
  if (running.no_memory) throw std::bad_alloc();
  if (number != native::kElsewhere && could_grow(native, *m.program, *s)) grow(root);
  return s;
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
    if (!kept && is_coming(*this)) return turns = 0, steps.data();
    native = kept ? next_kept(*this, nullptr) : make_native(*this, tree->size(), false);
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
  if (state == NativeCode::kMissing) {
    native = next_kept(*this, native.get());
    native ? compile(*native) : void(kept_asked = true);
    return steps.data();
  }
  if (native->code && native->code->only_kept && !kept_asked) kept_asked = true, native->times = 0;
  start = state == NativeCode::kReady ? &native->entry : steps.data();
  return start;
}

}  // namespace dalsegno::replay
