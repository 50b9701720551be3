// Frames of a run in the thread's chain, while code runs that may look at them. Those around the innermost one stay there.
#include <algorithm>
#include <new>
#include <utility>

#include "numpy/api.h"
#include "replay/machine/run.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

Framing build(const ProgramImpl& p, int32_t snapshot) {
  Framing made;
  const Snapshots& all = p.data().snapshots;
  made.snapshot = all.at(snapshot);
  const size_t n = made.snapshot.frames.size();
  made.states.resize(n);
  made.executing.resize(n);
  int32_t state = all.tops[snapshot];
  for (size_t i = n; i-- > 0; state = all.frames[state].outer) {
    const SnapshotFrame& frame = made.snapshot.frames[i];
    made.states[i] = state;
    made.executing[i] = hook::executing_offset(reinterpret_cast<PyCodeObject*>(p.live->objects[frame.code]), frame.offset);
  }
  return made;
}

// How many references to a number are those of linked frames: of their variables, and of what shows them.
Py_ssize_t shown(const Machine& m, PyObject* o) {
  Py_ssize_t count = 0;
  for (size_t i = 0; i < m.n_links; ++i) {
    const Link& link = m.room->links[i];
    for (const ShownBox& box : link.boxes) count += box.object == o;
    count += std::count(link.slots.begin(), link.slots.begin() + link.image.code->co_nlocalsplus, o);
  }
  return count;
}

// Somebody holds a number that he saw in a frame, and may ask later whether it is the same one. `own`: references that the caller knows of.
bool held(const Machine& m, PyObject* o, Py_ssize_t own) {
  if (Py_REFCNT(o) <= own || PyBool_Check(o) || Py_TYPE(o) == &PyBoolArrType_Type) return false;
  int64_t value;
  if (PyLong_CheckExact(o) && small_int(o, &value) && value >= -5 && value <= 256) return false;
  return !m.kept_frames.empty() || Py_REFCNT(o) > own + shown(m, o);
}

bool any_held(const Machine& m, const Link& link) {  // which is linked
  return std::any_of(link.boxes.begin(), link.boxes.end(), [&](const ShownBox& box) { return held(m, box.object, 0); });
}

void drop_boxes(Machine& m, Link& link) {  // which is not
  for (const ShownBox& box : link.boxes)
    if (held(m, box.object, 1))
      m.kept_boxes.push_back(box);
    else
      Py_DECREF(box.object);  // (of numbers: no code runs)
  link.boxes.clear();
}

PyObject* find_box(const std::vector<ShownBox>& boxes, int32_t reg, int64_t bits) {
  for (const ShownBox& box : boxes)
    if (box.reg == reg && box.bits == bits) return box.object;
  return nullptr;
}

}  // namespace

PyObject* box_seen(const Machine& m, const Reg* registers, const Loc& loc) {
  const int32_t reg = m.number_of(registers, loc.raw);
  const int64_t bits = registers[loc.raw].i;
  PyObject* seen = m.kept_boxes.empty() ? nullptr : find_box(m.kept_boxes, reg, bits);
  for (size_t i = m.first_frame; !seen && i < m.n_links; ++i) seen = find_box(m.room->links[i].boxes, reg, bits);
  if (seen) return Py_NewRef(seen);
  PyObject* o = box(loc.rep, registers[loc.raw]);
  if (!o) throw std::bad_alloc();
  return o;
}

void forget_kept_boxes(Machine& m) {
  const int32_t from = m.number_of(m.r, 0);
  std::erase_if(m.kept_boxes, [&](const ShownBox& box) { return box.reg >= from && (Py_DECREF(box.object), true); });
}

const Framing& ProgramImpl::framing(int32_t i, Framing& room) {
  constexpr size_t kMostSlots = 1 << 18;
  if (built.empty()) built.resize(data().snapshots.size());
  if (built[i]) return *built[i];
  room = build(*this, i);
  size_t slots = 0;
  for (const SnapshotFrame& f : room.snapshot.frames) slots += f.locals.size() + f.stack.size();
  if (built_slots + slots > kMostSlots) return room;
  built_slots += slots;
  built[i] = std::make_unique<const Framing>(std::move(room));
  return *built[i];
}

void forget_kept_frames(Machine& m, size_t from) {
  while (m.kept_frames.size() > from) {
    KeptFrame gone = m.kept_frames.back();
    m.kept_frames.pop_back();
    Py_XDECREF(gone.f_locals);
    Py_XDECREF(reinterpret_cast<PyObject*>(gone.frame));
  }
}

// A frame object somebody kept gets the variables as they are at the snapshot; but one that was assigned to through the object, and not by
// the trace since, stays.
void attach_kept_frame(Machine& m, const ProgramImpl& p, size_t number, size_t i, int32_t snapshot, hook::FrameImage* image,
                       std::unique_ptr<bool[]>* from_object) {
  if (number >= m.kept_frames.size()) return;
  KeptFrame& kept = m.kept_frames[number];
  image->f_locals = std::exchange(kept.f_locals, nullptr);
  PyFrameObject* frame = std::exchange(kept.frame, nullptr);
  if (!frame) return;
  const Trace& t = p.data();
  const Snapshot here = t.snapshot(snapshot);
  const std::vector<ValueId>& now = here.frames[i].locals;
  *from_object = std::make_unique<bool[]>(now.size());
  if (kept.written && kept.trace == &t) {
    const Snapshot there = t.snapshot(kept.snapshot);
    const std::vector<ValueId>& then = there.frames[i].locals;
    for (size_t k = 0; k < now.size(); ++k) (*from_object)[k] = then[k] == now[k];
  }
  image->frame_object = frame;
  image->from_object = from_object->get();
}

// ---- one frame -----------------------------------------------------------------------------------------------------------------

namespace {

// What a value is, for as long as it is linked.
PyObject* object(const Machine& m, Link& to, const ProgramImpl& p, const Reg* r, ValueId v) {
  if (v == kNull) return nullptr;
  const Loc& loc = p.locs[v];
  if (loc.obj >= 0 && r[loc.obj].o) return r[loc.obj].o;
  const int32_t reg = m.number_of(r, loc.raw);
  if (PyObject* made = find_box(to.boxes, reg, r[loc.raw].i)) return made;
  PyObject* o = box_seen(m, r, loc);
  to.boxes.push_back({reg, r[loc.raw].i, o});
  return o;
}

void find_variables(const Machine& m, Link& to, const ProgramImpl& p, const Reg* r, const SnapshotFrame& frame) {
  for (size_t k = 0; k < frame.locals.size(); ++k) to.slots[k] = object(m, to, p, r, frame.locals[k]);
}

// Frame i of a snapshot is the innermost one in the chain now.
void linked(Machine& m, const Framing& framing, size_t number, size_t i) {
  std::vector<Link>& links = m.room->links;
  links[number].levels = number > 0 ? links[number - 1].levels : 0;
  if (i > 0) links[number].levels += hook::levels_in_c(what_of(framing.snapshot.frames[i - 1].action));
  m.n_links = number + 1;
}

// Fills and links frame i of a snapshot of `p`, whose registers are `r`; a bare one has no variables.
void link(Machine& m, ProgramImpl& p, const Reg* r, size_t first, const Framing& framing, int32_t snapshot, size_t i, int32_t at,
          bool bare = false) {
  const size_t number = first + i;
  std::vector<Link>& links = m.room->links;
  if (links.size() <= number) links.resize(number + 1);
  Link& to = links[number];
  const SnapshotFrame& frame = framing.snapshot.frames[i];
  to.parked.reset();
  to.image = {};
  try {
    if (to.slots.size() < frame.locals.size()) to.slots.resize(frame.locals.size());
    to.image.locals = to.slots.data();
    if (!bare) find_variables(m, to, p, r, frame);
    to.image.function = reinterpret_cast<PyFunctionObject*>(object(m, to, p, r, frame.function));
    to.image.offset = at >= 0 ? at : frame.offset;
    to.image.executing = at >= 0 ? -1 : framing.executing[i];
    if (i == 0 && planted(Fault::wrong_shown_line)) to.image.offset = p.data().snapshot(0).frames[0].offset, to.image.executing = -1;
    to.image.code = reinterpret_cast<PyCodeObject*>(p.live->objects[frame.code]);
    if (const ValueId* generator = generator_of(framing.snapshot, i)) to.image.generator = object(m, to, p, r, *generator);
    if (!m.kept_frames.empty() && !to.image.generator) attach_kept_frame(m, p, number, i, snapshot, &to.image, &to.from_object);
    to.frame = bare ? hook::link_bare_frame(&to.image) : hook::link_frame(&to.image);
  } catch (const std::bad_alloc&) {
    Py_CLEAR(to.image.f_locals);
    Py_CLEAR(to.image.frame_object);
    drop_boxes(m, to);
    throw;
  }
  to.program = &p;
  to.snapshot = snapshot;
  to.at = at;
  to.state = framing.states[i];
  linked(m, framing, number, i);
}

// The innermost frame, bare, as it was linked there last; false: it was another one.
bool relink(Machine& m, const ProgramImpl& p, const Framing& framing, int32_t snapshot, int32_t at) {
  const size_t i = framing.snapshot.frames.size() - 1, number = m.first_frame + i;
  if (number >= m.room->links.size()) return false;
  Link& to = m.room->links[number];
  if (!to.parked || to.parked_of != p.id || to.snapshot != snapshot || to.at != at) return false;
  const Loc& function = p.locs[framing.snapshot.frames[i].function];
  if (function.obj < 0 || m.r[function.obj].o != reinterpret_cast<PyObject*>(to.image.function)) return false;
  to.frame = to.parked.release();
  hook::relink_bare_frame(m.thread, to.frame);
  linked(m, framing, number, i);
  return true;
}

// Takes the innermost linked frame out.
void unlink_last(Machine& m) {
  const size_t number = --m.n_links;
  Link& last = m.room->links[number];
  hook::unlink_frame(last.frame, &last.image);
  if (last.image.generator) {
    m.written |= last.image.written;
  } else if (last.image.f_locals || last.image.frame_object || number < m.kept_frames.size()) [[unlikely]] {
    if (m.kept_frames.size() <= number) m.kept_frames.resize(number + 1);
    m.kept_frames[number] = {last.image.f_locals, last.image.frame_object, &last.program->data(), last.snapshot, last.image.written};
    m.written |= last.image.written;
    last.from_object.reset();
  }
  if (!last.boxes.empty()) drop_boxes(m, last);
}

// Frames of a snapshot that do not stand there yet, but for the innermost ones.
void link_outer(Machine& m, ProgramImpl& p, const Reg* r, size_t first, const Framing& framing, int32_t snapshot, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (first + i < m.n_links) {
      const Link& there = m.room->links[first + i];
      if (there.program == &p && there.state == framing.states[i]) [[likely]]
        continue;
      unlink(m, first + i);
    }
    link(m, p, r, first, framing, snapshot, i, -1);
  }
}

}  // namespace

void unlink_touched(Machine& m) {
  for (size_t i = m.first_frame; i < m.n_links; ++i)
    if (const Link& link = m.room->links[i]; hook::link_touched(link.frame, link.image) || any_held(m, link))
      return unlink(m, m.first_frame);
}

void unlink(Machine& m, size_t from) {
  if (m.n_links <= from) return;
  while (m.n_links > from) unlink_last(m);
  count_frames(m);
}

void link_callers(Machine& m) {
  const std::vector<PendingCall>& calls = m.room->calls;
  if (m.linked_calls == calls.size()) return;
  size_t first = 0;
  for (size_t k = 0; k < m.linked_calls; ++k) first += static_cast<size_t>(calls[k].frames);
  for (; m.linked_calls < calls.size(); ++m.linked_calls) {
    const PendingCall& call = calls[m.linked_calls];
    Framing room;
    const Framing& framing = call.program->framing(call.step->link, room);
    const auto n = static_cast<size_t>(call.frames);
    link_outer(m, *call.program, m.room->registers.data() + call.base, first, framing, call.step->link, n);
    first += n;
  }
}

// ---- all frames ----------------------------------------------------------------------------------------------------------------

LinkedScope::LinkedScope(Machine& m, int32_t snapshot, int32_t at) : LinkedScope(m, snapshot, at, Looks::kAnywhere) {}

LinkedScope::LinkedScope(Machine& m, int32_t snapshot, int32_t at, Looks looks)
    : m_(m), linked_(snapshot >= 0 && !planted(Fault::unlinked_frames)), looks_(looks) {
  if (!planted(Fault::unlinked_frames)) link_callers(m);
  if (!linked_) {
    count_frames(m);
    return;
  }
  ProgramImpl& p = *m.program;
  Framing room;
  const Framing& framing = p.framing(snapshot, room);
  const size_t innermost = framing.snapshot.frames.size() - 1;
  link_outer(m, p, m.r, m.first_frame, framing, snapshot, innermost);
  unlink(m, m.first_frame + innermost);
  const bool has_own = generator_of(framing.snapshot, innermost) != nullptr;
  const bool bare = looks != Looks::kAnywhere && !has_own && m.kept_frames.empty() && hook::BeforePython::possible(m.thread);
  if (!bare || !relink(m, p, framing, snapshot, at)) link(m, p, m.r, m.first_frame, framing, snapshot, innermost, at, bare);
  count_frames(m);
  if (bare) unseen_.emplace(m.thread, fill, this);
}

// Where there is no memory variables look unbound.
void LinkedScope::fill(void* scope) {
  Machine& m = static_cast<LinkedScope*>(scope)->m_;
  Link& link = m.room->links[m.n_links - 1];
  try {
    if (planted(Fault::empty_frames)) throw std::bad_alloc();
    Framing room;
    find_variables(m, link, *link.program, m.r, link.program->framing(link.snapshot, room).snapshot.frames.back());
    hook::fill_bare_frame(link.frame, link.image);
  } catch (const std::bad_alloc&) {
    std::fill(link.slots.begin(), link.slots.end(), nullptr);
  }
}

// Takes a frame out again that nobody has looked at. False: somebody has.
bool LinkedScope::unlink_unseen() {
  const bool came = unseen_->came();
  unseen_.reset();
  if (came) return false;
  Link& last = m_.room->links[m_.n_links - 1];
  if (!hook::park_bare_frame(m_.thread, last.frame)) return fill(this), false;
  last.parked.reset(last.frame);
  last.parked_of = last.program->id;
  --m_.n_links;
  if (!last.boxes.empty()) drop_boxes(m_, last);
  count_frames(m_);
  return true;
}

void LinkedScope::disturbed() const {
  m_.dirty = m_.unsettled = true;
  ++m_.code_run;
}

LinkedScope::~LinkedScope() {
  if (unseen_ && unlink_unseen()) [[likely]] {
    if (looks_ == Looks::kFromPython) disturbed();
    return;
  }
  hook::stop_if_ended();
  disturbed();
  if (!linked_) return;
  unlink_last(m_);
  unlink_touched(m_);
  count_frames(m_);
}

}  // namespace dalsegno::replay
