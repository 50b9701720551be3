// Steps that do python ops through their Exec, iterate, release, and end a trace.
#include "hook/lookups.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {

const Step* step_exec(const Step* s, Reg* r, Machine& m) {
  if (s->exec(*s, r)) [[likely]]
    return s + 1;
  return fail(m, s->exit, s->pure);
}

namespace {

bool shown(const Step& s, const Step& what, Reg* r, Machine& m) {
  if (s.silent && s.silent(what, r)) return exec_silent(what, r, m);
  if (s.warns || (s.plain && s.plain(what, r))) {
    WarningScope frames(m, s.link);
    return what.exec(what, r);
  }
  if (s.in_c && s.in_c(what, r)) {
    PythonScope frames(m, s.link);
    return what.exec(what, r);
  }
  LinkedScope frames(m, s.link);
  return what.exec(what, r);
}

// `what` is the step s, or a copy of it with other operands.
const Step* exec_linked(const Step* s, const Step& what, Reg* r, Machine& m) {
  return shown(*s, what, r, m) ? s + 1 : fail(m, s->exit, s->pure);
}

const Step* slow(const Step* s, const Step& what, Reg* r, Machine& m) {
  if (s->linked) return exec_linked(s, what, r, m);
  return what.exec(what, r) ? s + 1 : fail(m, s->exit, s->pure);
}

void drop_old(const Step* s, Machine& m, PyObject* old) {
  if (drops_quietly(old)) [[likely]]
    Py_DECREF(old);
  else
    drop_shown(m, old, s->link);
}

// Item `i` of an exact list or tuple, borrowed; null if it is neither, or out of range.
PyObject* item_at(PyObject* o, int64_t i) {
  bool list = PyList_CheckExact(o);
  if (!list && !PyTuple_CheckExact(o)) return nullptr;
  Py_ssize_t n = Py_SIZE(o);
  if (i < 0) i += n;
  if (i < 0 || i >= n) return nullptr;
  return list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
}

// What the operand of a step replaces; borrowed, or null.
using OldValue = PyObject* (*)(const Step&, Reg*);
PyObject* old_item(const Step& s, Reg* r) {
  PyObject *o = r[s.a].o, *key = r[s.b].o;
  if (PyDict_CheckExact(o)) return dalsegno_value_at(o, key);
  Reg index;
  return PyList_CheckExact(o) && (unbox(Rep::kInt, key, &index) || unbox(Rep::kBool, key, &index)) ? item_at(o, index.i) : nullptr;
}
PyObject* old_global(const Step& s, Reg*) { return dalsegno_value_at(s.object, s.name); }
PyObject* old_content(const Step& s, Reg* r) { return PyCell_Check(r[s.a].o) ? PyCell_GET(r[s.a].o) : nullptr; }

// `what` is the step s, or a copy of it with other operands.
const Step* exec_over(const Step* s, const Step& what, PyObject* old, Reg* r, Machine& m) {
  if (!old || drops_quietly(old)) [[likely]]
    return slow(s, what, r, m);
  Py_INCREF(old);
  const bool ok = what.exec(what, r);
  drop_shown(m, old, s->link);
  return ok ? s + 1 : fail(m, s->exit, s->pure);
}

template <OldValue old_value>
const Step* exec_replacing(const Step* s, Reg* r, Machine& m) {
  return exec_over(s, *s, old_value(*s, r), r, m);
}

// Where what is replaced dies quietly.
bool set_content(const Step& s, Reg* r) {
  PyObject* old = old_content(s, r);
  return (!old || drops_quietly(old)) && exec_of(OpKind::cell_set)(s, r);
}

const Step* step_set_content(const Step* s, Reg* r, Machine& m) {
  if (set_content(*s, r)) [[likely]]
    return s + 1;
  Step what = *s;
  what.exec = exec_of(OpKind::cell_set);
  return exec_over(s, what, old_content(*s, r), r, m);
}

}  // namespace

const Step* step_exec_linked(const Step* s, Reg* r, Machine& m) { return exec_linked(s, *s, r, m); }

Quick set_content_step() { return {step_set_content, set_content}; }

StepFn step_exec_replacing(OpKind kind) {
  switch (kind) {
    case OpKind::set_item:
    case OpKind::map_add:
      return exec_replacing<old_item>;
    case OpKind::store_global:
    case OpKind::delete_global:
      return exec_replacing<old_global>;
    case OpKind::cell_delete:
      return exec_replacing<old_content>;
    default:
      return nullptr;
  }
}

namespace {

// The boxed index, for the slow way (n: its representation; c: its object register, -1: there is none because the op cannot run unknown
// code).
bool box_index(const Step* s, Reg* r) {
  if (s->c < 0) return false;
  if (!r[s->c].o) r[s->c].o = box(static_cast<Rep>(s->n), r[s->b]);
  return r[s->c].o != nullptr;
}
}  // namespace

// Reading the attribute of an instance runs code of the user's only through a descriptor or __getattr__ (PyObject_GenericGetAttr).
const Step* step_get_attr(const Step* s, Reg* r, Machine& m) {
  PyTypeObject* type = Py_TYPE(r[s->a].o);
  if (type->tp_getattro != PyObject_GenericGetAttr) return step_exec_linked(s, r, m);
  PyObject* found = _PyType_Lookup(type, s->name);
  const bool binds = found && (PyFunction_Check(found) || Py_IS_TYPE(found, &PyMethodDescr_Type));
  if (found && !binds && Py_TYPE(found)->tp_descr_get) return step_exec_linked(s, r, m);
  return step_exec(s, r, m);
}

const Step* step_set_attr(const Step* s, Reg* r, Machine& m) {
  PyTypeObject* type = Py_TYPE(r[s->a].o);
  if (type->tp_setattro != PyObject_GenericSetAttr) return step_exec_linked(s, r, m);
  PyObject* found = _PyType_Lookup(type, s->name);
  if (found && Py_TYPE(found)->tp_descr_set) return step_exec_linked(s, r, m);
  return step_exec(s, r, m);
}

// A str looked up among str runs no code of the user's: no frames are needed.
const Step* step_get_item(const Step* s, Reg* r, Machine& m) {
  PyObject *o = r[s->a].o, *key = r[s->b].o;
  if (PyDict_CheckExact(o) && PyUnicode_CheckExact(key) && (!s->linked || dalsegno_quiet_lookup(o, key))) {
    if (PyObject* v = PyDict_GetItemWithError(o, key)) {
      r[s->dst].o = Py_NewRef(v);
      return s + 1;
    }
  }
  return slow(s, *s, r, m);
}

// a[b], b unboxed.
const Step* step_get_item_index(const Step* s, Reg* r, Machine& m) {
  if (PyObject* v = item_at(r[s->a].o, r[s->b].i)) [[likely]] {
    r[s->dst].o = Py_NewRef(v);
    return s + 1;
  }
  if (!box_index(s, r)) return fail(m, s->exit, s->pure);
  Step boxed = *s;
  boxed.b = s->c;
  return slow(s, boxed, r, m);
}

const Step* step_get_item_numpy_index(const Step* s, Reg* r, Machine& m) {
  if (PyObject* v = item_at(r[s->a].o, r[s->b].i)) [[likely]] {
    r[s->dst].o = Py_NewRef(v);
    return s + 1;
  }
  Step boxed = *s;
  boxed.b = s->c;
  r[s->c].o = PyLong_FromLongLong(r[s->b].i);
  const bool ok = r[s->c].o && s->exec(boxed, r);
  Py_CLEAR(r[s->c].o);
  return ok ? s + 1 : fail(m, s->exit, s->pure);
}

namespace {
// a[b] = other for an exact list; false: it is none, or the index is out of range.
bool set_list_item(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  int64_t i = r[s->b].i;
  if (!PyList_CheckExact(o)) return false;
  if (i < 0) i += Py_SIZE(o);
  if (i < 0 || i >= Py_SIZE(o)) return false;
  PyObject* old = PyList_GET_ITEM(o, i);
  PyList_SET_ITEM(o, i, Py_NewRef(r[s->other].o));
  drop_old(s, m, old);
  return true;
}
}  // namespace

const Step* step_set_item_numpy_index(const Step* s, Reg* r, Machine& m) { return set_list_item(s, r, m) ? s + 1 : refuse(m, s->exit); }

// a[b] = other, b unboxed.
const Step* step_set_item_index(const Step* s, Reg* r, Machine& m) {
  if (set_list_item(s, r, m)) [[likely]]
    return s + 1;
  if (!box_index(s, r)) return fail(m, s->exit, s->pure);
  Step boxed = *s;
  boxed.b = s->c;
  boxed.c = s->other;
  return s->linked ? exec_linked(s, boxed, r, m) : exec_over(s, boxed, old_item(boxed, r), r, m);
}

// ---- iteration ---------------------------------------------------------------------------------------------------------------

namespace {

enum class Next { kItem, kEnd, kRaised };

Next no_next() {
  if (!PyErr_Occurred()) return Next::kEnd;
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Next::kRaised;
  PyErr_Clear();
  return Next::kEnd;
}

Next next_item(PyObject* it, PyObject** item) {
  *item = hook::next_of(it);
  return *item ? Next::kItem : no_next();
}

// Of an iterator that runs no code; what it goes through may die with its end.
Next next_quiet(const Step* s, Machine& m, PyObject* it, PyObject** item) {
  if (s->dies >= 0 && !advances_quietly(it)) {
    LinkedScope frames(m, s->dies);
    return next_item(it, item);
  }
  PyObject* through = s->dies < 0 ? nullptr : hook::held_by(it);
  if (!through || Py_REFCNT(through) > 1) [[likely]]
    return next_item(it, item);
  Py_INCREF(through);
  const Next next = next_item(it, item);
  if (drops_quietly(through))
    Py_DECREF(through);
  else
    drop_shown(m, through, s->dies);
  return next;
}

Next next_shown(const Step* s, Reg* r, Machine& m, PyObject** item) {
  *item = nullptr;
  if (!s->linked) return next_quiet(s, m, r[s->a].o, item);
  if (s->in_c && s->in_c(*s, r)) {
    PythonScope frames(m, s->link);
    return next_item(r[s->a].o, item);
  }
  LinkedScope frames(m, s->link);
  return next_item(r[s->a].o, item);
}

const Step* no_item(const Step* s, Reg* r, Machine& m, Next next) {
  return next == Next::kEnd ? leave_ended(*s, r, m) : fail(m, s->exit, false);
}

}  // namespace

const Step* step_iter_next(const Step* s, Reg* r, Machine& m) {
  PyObject* item;
  const Next next = next_shown(s, r, m, &item);
  if (next != Next::kItem) return no_item(s, r, m, next);
  r[s->dst].o = item;
  return s->linked ? s + 1 : go_on(s + 1, r, m);
}

// The next item of a range: unboxed in c; its object register, dst, stays null until it is boxed.
const Step* step_range_next(const Step* s, Reg* r, Machine& m) {
  if (hook::g_range_known) [[likely]] {
    if (hook::advance_range(r[s->a].o, &r[s->c].i)) [[likely]]
      return go_on(s + 1, r, m);
    return leave(m, s->other);
  }
  PyObject* item;  // an interpreter whose ranges nothing is known of
  const Next next = next_item(r[s->a].o, &item);
  if (next != Next::kItem) return no_item(s, r, m, next);
  r[s->c].i = PyLong_AsLongLong(item);
  Py_DECREF(item);
  return s + 1;
}

// The same where there should be no item.
const Step* step_range_end(const Step* s, Reg* r, Machine& m) {
  if (hook::g_range_known) [[likely]]
    return hook::advance_range(r[s->a].o, &r[s->c].i) ? leave(m, s->other) : go_on(s + 1, r, m);
  PyObject* item;
  const Next next = next_item(r[s->a].o, &item);
  if (next == Next::kEnd) return s + 1;
  if (next == Next::kRaised) return fail(m, s->exit, false);
  r[s->c].i = PyLong_AsLongLong(item);
  Py_DECREF(item);
  return leave(m, s->other);
}

const Step* step_range_step(const Step* s, Reg* r, Machine& m) { return r[s->a].i != 0 ? go_on(s + 1, r, m) : refuse(m, s->exit); }

const Step* step_range_iterator(const Step* s, Reg* r, Machine& m) {
  const auto part = [&](int32_t k) { return static_cast<long>(r[s->list[k]].i); };
  PyObject* made = hook::range_iterator(s->n > 1 ? part(0) : 0, part(s->n > 1 ? 1 : 0), s->n > 2 ? part(2) : 1);
  if (!made) [[unlikely]]
    return PyErr_Occurred() ? fail(m, s->exit, false) : refuse(m, s->exit);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

const Step* step_iter_end(const Step* s, Reg* r, Machine& m) {
  PyObject* item;
  const uint64_t run = m.code_run;
  Next next = next_shown(s, r, m, &item);
  if (next == Next::kEnd) return s->linked || m.code_run == run ? s + 1 : refuse(m, s->exit);  // (it ends once more)
  if (next == Next::kRaised) return fail(m, s->exit, false);
  r[s->dst].o = item;
  return leave(m, s->other);
}

// ---- lifetimes and ends ------------------------------------------------------------------------------------------------------

const Step* step_build(const Step* s, Reg* r, Machine& m) { return build(*s->what, r) ? s + 1 : fail(m, s->exit, false); }

const Step* step_release(const Step* s, Reg* r, Machine& m) {
  for (int32_t i = 0; i < s->n; ++i) {
    PyObject* o = r[s->list[i]].o;
    r[s->list[i]].o = nullptr;
    Py_XDECREF(o);
  }
  return go_on(s + 1, r, m);
}

const Step* step_release_one(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  if (o) {
    r[s->a].o = nullptr;
    Py_DECREF(o);
  }
  return go_on(s + 1, r, m);
}

// What dies may run code: it sees the frames as they are behind the instruction, with all that slots hold, and the run is left there if it
// was disturbed.
const Step* step_release_shown(const Step* s, Reg* r, Machine& m) {
  bool shown = false;
  for (int32_t i = 0; i < s->n; ++i) {
    PyObject* o = r[s->list[i]].o;
    r[s->list[i]].o = nullptr;
    if (!o) continue;
    if (drops_quietly(o)) [[likely]] {
      Py_DECREF(o);
      continue;
    }
    if (s->exit >= 0) build_all(m.program->plans[s->exit], r);
    drop_shown(m, o, s->link, m.program->at_of(s->exit));
    shown = true;
  }
  if (!shown || s->exit < 0) [[likely]]
    return go_on(s + 1, r, m);
  const Step* next;
  return settle(s, m, &next) ? s + 1 : next;
}

// imm: number of frames left.
const Step* step_leave_frame(const Step* s, Reg*, Machine& m) {
  const size_t left = m.first_frame + static_cast<size_t>(s->imm);
  if (m.n_links >= left) unlink(m, left - 1);  // the innermost one goes on
  if (!m.kept_frames.empty()) forget_kept_frames(m, left);
  return s + 1;
}

const Step* step_return(const Step* s, Reg* r, Machine& m) {
  if (m.calling()) return return_to_caller(s, r, m);
  PyObject* v = object_of(m.program->locs[s->imm], r);
  if (!v) return fail(m, s->exit, false);
  unlink(m, 0);
  drop_at_return(*s, r, m);
  if (!m.kept_frames.empty()) forget_kept_frames(m, 0);
  count_steps(static_cast<uint64_t>(s - m.program->steps.data()) + 1);
  *m.result = v;
  m.outcome = Outcome::kReturned;
  return nullptr;
}

const Step* step_leave(const Step* s, Reg*, Machine& m) { return leave(m, s->exit); }

}  // namespace dalsegno::replay
