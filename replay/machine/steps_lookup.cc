// Look-ups in exact dicts and sets by plain keys (hook/lookups.h). What runs code of the user's is not done: a look-up that is not quiet
// leaves as the guard before it would, an item of another type than was recorded leaves before the instruction, and a value that does not
// die quietly is dropped while frames are shown.
#include "hook/lookups.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

enum Found : int { kNotQuiet = -1, kMissing, kThere };

// Behind a look-up of the same key in the same container.
dalsegno_found& before(const Step& s, Reg* r) {
  static_assert(sizeof(dalsegno_found) <= sizeof(Reg) && alignof(dalsegno_found) <= alignof(Reg));
  return *reinterpret_cast<dalsegno_found*>(&r[s.list[0]]);
}

Found find(const Step& s, Reg* r, PyObject** value) {
  if (s.list[1] == 0) before(s, r).version = 0;
  return static_cast<Found>(dalsegno_find(r[s.a].o, r[s.b].o, value, &before(s, r)));
}

bool gives(const Step& s, Reg* r, PyObject* item) {
  if (!item || !unbox_part(s, r, item)) return false;
  r[s.dst].o = Py_NewRef(item);
  return true;
}

bool contains(const Step& s, Reg* r) {
  PyObject* value;
  const Found found = find(s, r, &value);
  r[s.dst].i = (found == kThere) != (s.imm != 0);
  return found != kNotQuiet;
}

// A defaultdict may make what is missing.
bool get(const Step& s, Reg* r) {
  PyObject* value;
  const Found found = find(s, r, &value);
  if (found == kThere) return gives(s, r, value);
  if (found == kNotQuiet || !dalsegno_missing_is_quiet(r[s.a].o)) return false;
  PyObject* made = PyObject_GetItem(r[s.a].o, r[s.b].o);
  if (!made) return PyErr_Clear(), false;
  const bool given = gives(s, r, made);  // (else it stands there when the interpreter looks)
  Py_DECREF(made);
  return given;
}

bool get_or(const Step& s, Reg* r) {
  PyObject* value;
  const Found found = find(s, r, &value);
  if (found == kMissing) value = s.other >= 0 ? r[s.other].o : Py_None;
  return found != kNotQuiet && gives(s, r, value);
}

bool put(const Step& s, Reg* r) {
  PyObject* old;
  if (find(s, r, &old) == kNotQuiet || (old && !drops_quietly(old))) return false;
  if (dalsegno_put(r[s.a].o, r[s.b].o, r[s.other].o, &before(s, r)) == 0) return true;
  PyErr_Clear();  // no memory: the step sees once more
  return false;
}

bool add(const Step& s, Reg* r) {
  PyObject* none;
  const Found found = find(s, r, &none);
  if (found == kMissing && PySet_Add(r[s.a].o, r[s.b].o) != 0) return PyErr_Clear(), false;
  return found != kNotQuiet;
}

// ---- where that was not to be done at once -----------------------------------------------------------------------------------------

const Step* not_given(const Step* s, Machine& m, PyObject* item) {
  count_guard_failure();
  return s->rep == Rep::kInt && item && PyLong_CheckExact(item) ? overflow(m, s->exit) : leave(m, s->exit);
}

// Nothing under the key, or something of another type.
const Step* slow_get(const Step* s, Reg*, Machine& m, PyObject* value) { return not_given(s, m, value); }
const Step* slow_get_or(const Step* s, Reg* r, Machine& m, PyObject* value) {
  return not_given(s, m, value || s->other < 0 ? value : r[s->other].o);
}

const Step* slow_put(const Step* s, Reg* r, Machine& m, PyObject* old) {
  Py_XINCREF(old);
  const bool done = PyDict_SetItem(r[s->a].o, r[s->b].o, r[s->other].o) == 0;
  if (old) drop_shown(m, old, s->link);
  return done ? s + 1 : fail(m, s->exit, false);
}

const Step* slow_add(const Step* s, Reg* r, Machine& m, PyObject*) {
  return PySet_Add(r[s->a].o, r[s->b].o) == 0 ? s + 1 : fail(m, s->exit, false);
}

template <Exec quick, const Step* (*slow)(const Step*, Reg*, Machine&, PyObject*)>
const Step* look_up(const Step* s, Reg* r, Machine& m) {
  if (quick(*s, r)) [[likely]]
    return go_on(s + 1, r, m);
  PyObject* value;
  before(*s, r).version = 0;
  if (find(*s, r, &value) != kNotQuiet) return slow(s, r, m, value);
  count_guard_failure();
  return leave(m, s->n);
}

constexpr Quick kSteps[] = {{look_up<contains, slow_get>, contains},
                            {look_up<get, slow_get>, get},
                            {look_up<get_or, slow_get_or>, get_or},
                            {look_up<put, slow_put>, put},
                            {look_up<add, slow_add>, add}};

}  // namespace

Quick lookup_step(Lookup what) { return kSteps[static_cast<size_t>(what)]; }

}  // namespace dalsegno::replay
