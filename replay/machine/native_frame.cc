// What native code calls: the functions of its frame (native::Frame).
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "hook/random_numbers.h"
#include "replay/machine/native.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

namespace {

constexpr int32_t kAlone = 3;  // a step and those behind it that it may go on with, where it is to be done alone

Running& running_of(native::Frame* frame) { return *static_cast<Running*>(frame->extra); }

}  // namespace

// ---- registers of blocks -------------------------------------------------------------------------------------------------------------

// The machine's registers are those of a block.
void turn_to(Running& running, size_t block) {
  Machine& m = *running.m;
  m.program = running.native->programs[block];
  m.base = running.base + running.native->offsets[block];
  m.r = running.r + running.native->offsets[block];
}

namespace {

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

}  // namespace

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

// (Its programs fold names of the same few dicts.)
bool worlds_hold(const Native& native) {
  using Held = std::pair<const uint64_t*, uint64_t>;
  const auto unchanged = [](const Held& dict) { return *dict.first == dict.second; };
  if (!native.held.empty() && std::all_of(native.held.begin(), native.held.end(), unchanged)) return true;
  if (!std::all_of(native.worlds.begin(), native.worlds.end(), [](ProgramImpl* p) { return p->world_holds(); })) return false;
  native.held.clear();
  for (const ProgramImpl* p : native.worlds) {
    for (const FoldedGuards& world : p->folded) {
      const uint64_t* counter = world.version.counter();
      if (!counter) return native.held.clear(), true;
      native.held.emplace_back(counter, *counter);
    }
  }
  std::sort(native.held.begin(), native.held.end());
  native.held.erase(std::unique(native.held.begin(), native.held.end()), native.held.end());
  return true;
}

// ---- steps, one at a time --------------------------------------------------------------------------------------------------------------

namespace {

const Step* stop(const Step* s, Reg*, Machine&) { return s->behind; }

}  // namespace

// As large as the region's programs, so made once the code is there.
void make_alone(Native& native) {
  if (!native.places.empty()) return;
  native.places.reserve(native.n_steps());
  native.alone.reserve(native.n_steps() * kAlone);
  for (size_t block = 0; block < native.programs.size(); ++block) {
    const int32_t depth = depth_of(native.programs[block]);
    for (const Step& s : native.programs[block]->steps) {
      native.places.push_back({&s, static_cast<int32_t>(block), depth, native.offsets[block]});
      for (int32_t k = 0; k < kAlone; ++k) {
        Step& made = native.alone.emplace_back(k == 0 ? s : Step{});
        if (k == 0) continue;
        made.fn = stop;
        made.behind = &s + k;
      }
    }
  }
}

// ---- the functions ---------------------------------------------------------------------------------------------------------------------

namespace {

// Iterators over lists and tuples that are kept go on being known to the collector while nobody can ask it.
void hide_iterators(native::Frame* frame) {
  for (const size_t kind : {native::kSpareListIterator, native::kSpareTupleIterator})
    if (auto* o = static_cast<PyObject*>(frame->spare[kind])) PyObject_GC_UnTrack(o);
}
void show(PyObject* iterator) {
  if (!PyObject_GC_IsTracked(iterator)) PyObject_GC_Track(iterator);
}

// Of a step that runs no code, or none on what its operands are now: what came of it. kUnknown: it may run some.
constexpr int32_t kUnknown = -1;
int32_t do_silently(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const NativePlace& at = running.places[number];
  const Step& s = *at.step;
  const bool views = s.fn == step_view;
  if (!views && !s.runs_none && !(s.on_objects && s.silent)) return kUnknown;
  if (at.depth > 0 && frame->loaded[at.depth] != at.block) turn_to(*frame, running, number);
  Reg* r = running.r + at.offset;
  if (views) return find_view(*s.what, r) ? native::kNext : kUnknown;
  if (s.silent && !s.silent(s, r)) return kUnknown;
  Machine& m = *running.m;
  const uint64_t run = m.code_run;
  const bool done = exec_silent(s, r, m), collected = m.code_run != run;
  if (done && !collected) return native::kNext;
  if (!done && !collected && !PyErr_Occurred()) return kUnknown;
  turn_to(*frame, running, number);  // where finalisers may have run the machine goes on
  running.next = done ? &s + 1 : fail(m, s.exit, s.pure);
  return native::kLeft;
}

// What a step does (its function, or another with the step given), and not what it goes on with itself.
template <typename Function>
int32_t do_alone(native::Frame* frame, int32_t number, const Function& function) {
  Running& running = running_of(frame);
  const Step* s = turn_to(*frame, running, number);
  if (s->link >= 0 || s->exec) hide_iterators(frame);  // it may run code
  const Step* alone = &running.native->alone[static_cast<size_t>(number) * kAlone];
  const bool quiet = makes_quiet_iterator(*s);
  const Py_ssize_t before = quiet ? hook::collections(running.m->collections) : 0;
  try {
    running.next = function(alone, running.m->r, *running.m);
  } catch (const std::bad_alloc&) {  // native code is not to be unwound
    running.no_memory = true;
    return native::kLeft;
  }
  if (running.next > alone && running.next < alone + kAlone) running.next = running.next->behind;
  if (quiet && hook::collections(running.m->collections) != before) {  // finalisers may have run: the machine goes on
    running.m->unsettled = true;
    return native::kLeft;
  }
  // (A step may pass over a guard of the world behind it, which is done all the same.)
  return running.next > s && running.next < s + kAlone ? native::kNext : native::kLeft;
}

int32_t do_step(native::Frame* frame, int32_t number) {
  if (const int32_t came = do_silently(frame, number); came != kUnknown) return came;
  return do_alone(frame, number, running_of(frame).places[number].step->fn);
}

// Array ops without objects, which run no code. What has to be done in another way leaves: what is known of objects may hold no more.
int32_t compute(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const NativePlace& at = running.places[number];
  if (at.depth > 0 && frame->loaded[at.depth] != at.block) turn_to(*frame, running, number);
  ProgramImpl& p = *running.native->programs[static_cast<size_t>(at.block)];
  Tried tried = Tried::kNot;
  Attempt attempt;
  try {
    tried = run_at_once(p, *at.step, running.r + at.offset, *running.m, &attempt);
  } catch (const std::bad_alloc&) {  // NumPy may have more luck
  }
  if (tried == Tried::kDone) return native::kNext;
  do_alone(frame, number,
           [&](const Step* s, Reg* r, Machine& m) { return tried == Tried::kNot ? s->fn(s, r, m) : run_with_objects(s, r, m, attempt); });
  return native::kLeft;
}

// The next item of an iterator that runs no code. What it goes through may die with its end.
int32_t advance(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  Machine& m = *running.m;
  const NativePlace& at = running.native->places[static_cast<size_t>(number)];
  const Step* s = at.step;
  Reg* r = running.r + at.offset;
  PyObject *it = r[s->a].o, *through = hook::held_by(it);
  const Py_ssize_t before = hook::collections(m.collections);
  const bool alone = through && Py_REFCNT(through) == 1;
  if (alone || !advances_quietly(it)) {
    const uint64_t run = m.code_run;
    const int32_t came = do_step(frame, number);
    if (came != native::kNext || m.code_run == run) return came;
  } else if (PyObject* item = hook::next_of(it)) {
    r[s->dst].o = item;
    if (hook::collections(m.collections) == before) return native::kNext;
    turn_to(*frame, running, number);
  } else {
    if (!PyErr_Occurred() && drops_quietly(it)) return native::kEnded;
    turn_to(*frame, running, number);
    running.next = PyErr_Occurred() ? fail(m, s->exit, false) : s;  // (it ends once more)
    return native::kLeft;
  }
  m.unsettled = true;  // finalisers may have run: the machine goes on
  running.next = s + 1;
  return native::kLeft;
}

// Iterators over lists and tuples that nobody has any more are kept for the next ones.
bool is_over_items(PyObject* o) {
  return (Py_IS_TYPE(o, &PyListIter_Type) || Py_IS_TYPE(o, &PyTupleIter_Type)) && hook::g_sequence_iterators;
}
void*& spare_over_items(native::Frame* frame, PyTypeObject* type) {
  return frame->spare[type == &PyTupleIter_Type ? native::kSpareTupleIterator : native::kSpareListIterator];
}

bool keep_iterator(native::Frame* frame, PyObject* o) {
  void*& spare = spare_over_items(frame, Py_TYPE(o));
  auto* it = reinterpret_cast<hook::SequenceIterator*>(o);
  if (spare || Py_REFCNT(o) > 1 || (it->sequence && !drops_quietly(it->sequence))) return false;
  Py_CLEAR(it->sequence);
  spare = o;
  return true;
}

int32_t iterate(native::Frame* frame, int32_t reg, void* over, int32_t tuple) {
  Running& running = running_of(frame);
  PyTypeObject* type = tuple ? &PyTupleIter_Type : &PyListIter_Type;
  auto* sequence = static_cast<PyObject*>(over);
  PyObject*& o = running.r[reg].o;
  if (void*& spare = spare_over_items(frame, type); spare) {
    auto* it = static_cast<hook::SequenceIterator*>(std::exchange(spare, nullptr));
    it->position = 0;
    it->sequence = Py_NewRef(sequence);
    o = reinterpret_cast<PyObject*>(it);
    show(o);
    return 1;
  }
  const Py_ssize_t before = hook::collections(running.m->collections);
  PyObject* made = PyObject_GetIter(sequence);
  if (!made) return PyErr_Clear(), 0;
  o = made;
  if (hook::collections(running.m->collections) == before) return 1;
  running.m->unsettled = true;
  return 2;
}

void drop_one(native::Frame* frame, int32_t reg) {
  Running& running = running_of(frame);
  PyObject* o = std::exchange(running.r[reg].o, nullptr);
  if (o && is_over_items(o) && keep_iterator(frame, o)) return;
  if (!o || drops_quietly(o)) {
    Py_XDECREF(o);
    return;
  }
  running.m->unsettled = true;  // it may run code
  hide_iterators(frame);
  Py_XDECREF(o);
}

int32_t drop_quietly(native::Frame* frame, int32_t reg) {
  PyObject*& o = running_of(frame).r[reg].o;
  if (is_leaf_object(o)) {
    Py_CLEAR(o);
    return 1;
  }
  if (is_over_items(o) && keep_iterator(frame, o)) return o = nullptr, 1;
  if (!drops_quietly(o)) return 0;
  Py_CLEAR(o);
  return 1;
}

int32_t do_scalar(native::Frame* frame, int32_t number, int64_t a, int64_t b, int64_t* out) {
  const Running& running = running_of(frame);
  const Step& s = *running.native->places[static_cast<size_t>(number)].step;
  Reg result;
  if (typed::is_pair(s.rep)) {
    const auto at = [](int64_t address) { return *reinterpret_cast<const Py_complex*>(address); };
    return numpy_complex_result(static_cast<BinaryOp>(s.imm), static_cast<typed::Real>(s.other), at(a), at(b),
                                reinterpret_cast<Py_complex*>(out));
  }
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
  const NativePlace& at = running.places[number];
  if (at.depth > 0 && frame->loaded[at.depth] != at.block) turn_to(*frame, running, number);
  const Py_ssize_t before = hook::collections(running.collections);
  const bool done = at.step->exec(*at.step, running.r + at.offset);
  if (!done) return PyErr_Clear(), 0;
  if (hook::collections(running.collections) == before) return 1;
  running.m->unsettled = true;  // finalisers may have run: the machine goes on
  return 2;
}

// The iterator lets go of what it went through.
int32_t ends(native::Frame* frame, int32_t reg) {
  PyObject* o = running_of(frame).r[reg].o;
  const auto* over = reinterpret_cast<hook::SequenceIterator*>(o);
  const bool lives_on = is_over_items(o) && over->sequence && Py_REFCNT(over->sequence) > 1;
  if (!lives_on && !(ends_quietly(o) && (is_over_items(o) || drops_quietly(o)))) return 0;
  Py_XDECREF(hook::next_of(o));
  return 1;
}

int32_t draw_in(void* object, int32_t bound, double* out) { return draw(static_cast<PyObject*>(object), bound != 0, out); }

int32_t draw_bits(void* object, int32_t bound, int64_t bits, int64_t* out) {
  return hook::draw_random_bits(static_cast<PyObject*>(object), bound != 0, bits, out);
}

int32_t is_quiet(void* iterator) { return hook::quiet_iterator(static_cast<PyObject*>(iterator)); }

Reg number_of(Rep rep, int64_t bits) { return typed::is_pair(rep) ? Reg{.c = *reinterpret_cast<const Py_complex*>(bits)} : Reg{.i = bits}; }

int32_t leaves(native::Frame* frame, int32_t left) {
  const Machine& m = *running_of(frame).m;
  return m.n_links < m.first_frame + static_cast<size_t>(left) && m.kept_frames.empty();
}

void* make_box(native::Frame*, int32_t rep, int64_t bits) {
  PyObject* made = box(static_cast<Rep>(rep), number_of(static_cast<Rep>(rep), bits));
  if (!made) PyErr_Clear();
  return made;
}

int32_t take_number(native::Frame*, int32_t rep, int64_t object, int64_t, int64_t* out) {
  Reg number{};
  const bool fits = unbox(static_cast<Rep>(rep), reinterpret_cast<PyObject*>(object), &number);
  std::memcpy(out, &number, typed::is_pair(static_cast<Rep>(rep)) ? sizeof number.c : sizeof number.i);
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

int32_t append(native::Frame*, int32_t takes, int64_t list, int64_t object) {
  auto* o = reinterpret_cast<PyObject*>(object);
  const bool failed = PyList_Append(reinterpret_cast<PyObject*>(list), o) != 0;
  if (takes != 0) Py_DECREF(o);
  return failed ? (PyErr_Clear(), 0) : 1;
}

int32_t discard(native::Frame*, int32_t n, int64_t made) {
  for (int32_t k = 0; k < n; ++k) Py_XDECREF(reinterpret_cast<PyObject**>(made)[k]);
  return 0;
}

// Code has run in a step of the block: may the run go on here all the same? (Native code has forgotten what it knew of objects.)
bool settles(Running& running, size_t block) {
  Machine& m = *running.m;
  turn_to(running, block);
  if (*m.breaker == 0 && undisturbed(m)) return true;
  m.unsettled = true;  // the machine will look, too
  return false;
}

int32_t holds(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const auto block = static_cast<size_t>(number);
  if (running.m->unsettled && !settles(running, block)) return 0;
  return running.native->programs[block]->world_holds();
}

int32_t enters(native::Frame* frame, int32_t number) {
  Running& running = running_of(frame);
  const auto block = static_cast<size_t>(number);
  ProgramImpl* p = running.native->programs[block];
  if (running.m->unsettled || !worlds_hold(*running.native)) return 0;
  if (!p->parent) return 1;
  turn_to(running, block);
  load(*frame, running, p, depth_of(p));
  const ExitPlan& plan = *running.native->plans[block];
  const Py_ssize_t before = hook::collections(running.m->collections);
  try {
    build_all(plan, running.m->r);
  } catch (const std::bad_alloc&) {
    return PyErr_Clear(), 0;
  }
  for (const Loc& loc : plan.box) {
    PyObject*& object = running.m->r[loc.obj].o;
    if (!object && !(object = box(loc.rep, running.m->r[loc.raw]))) return PyErr_Clear(), 0;
  }
  if (hook::collections(running.m->collections) == before) return 1;
  running.m->unsettled = true;  // finalisers may have run: the machine goes on
  return 0;
}

}  // namespace

void drop_spares(native::Frame* frame) {
  for (void* left : frame->spare) {
    auto* o = static_cast<PyObject*>(left);
    if (o && is_over_items(o)) show(o);
    Py_XDECREF(o);
  }
}

void fill(native::Frame* frame, Running* running) {
  frame->breaker = running->m->breaker;
  frame->unsettled = &running->m->unsettled;
  frame->step = do_step;
  frame->compute = compute;
  frame->advance = advance;
  frame->iterate = iterate;
  frame->drop = drop_one;
  frame->quiet = drop_quietly;
  frame->scalar = do_scalar;
  frame->holds = holds;
  frame->ends = ends;
  frame->draw = draw_in;
  frame->draw_bits = draw_bits;
  frame->is_quiet = is_quiet;
  frame->put = put;
  frame->quick = do_quickly;
  frame->leaves = leaves;
  frame->box = make_box;
  frame->unbox = take_number;
  frame->same = same;
  frame->letter = letter;
  frame->make = make_in_register;
  frame->next = next_of_range;
  frame->range = make_range;
  frame->discard = discard;
  frame->append = append;
  frame->enters = enters;
  frame->extra = running;
}

}  // namespace dalsegno::replay
