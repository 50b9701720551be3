// Items of exact lists and tuples. What is not as recorded (out of bounds, an item of another type) leaves before the instruction.
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

struct List {
  static PyObject* item(PyObject* o, Py_ssize_t i) { return PyList_GET_ITEM(o, i); }
};
struct Tuple {
  static PyObject* item(PyObject* o, Py_ssize_t i) { return PyTuple_GET_ITEM(o, i); }
};

// Negative positions count from the end. False: out of bounds.
inline bool within(PyObject* sequence, int64_t* i) {
  const Py_ssize_t n = Py_SIZE(sequence);
  if (*i < 0) *i = planted(Fault::unwrapped_index) ? ~*i : *i + n;
  if (*i >= 0 && *i < n) [[likely]]
    return true;
  *i = 0;
  return planted(Fault::dropped_bounds) && n > 0;
}

const Step* of_another_type(const Step* s, Machine& m, PyObject* item, Rep expected) {
  count_guard_failure();
  return expected == Rep::kInt && PyLong_CheckExact(item) ? overflow(m, s->exit) : leave(m, s->exit);
}

// The unboxed part into register c, if there is one, without a call; false: ask part().
template <Rep rep>
inline bool quick_part(PyObject* item, const Step* s, Reg* r) {
  if constexpr (rep == Rep::kNone) return true;
  if constexpr (rep == Rep::kInt) return PyLong_CheckExact(item) && small_int(item, &r[s->c].i);
  if constexpr (rep == Rep::kFloat) {
    if (!PyFloat_CheckExact(item)) return false;
    r[s->c].f = PyFloat_AS_DOUBLE(item);
    return true;
  }
  if constexpr (rep == Rep::kBool) {
    r[s->c].i = item == Py_True;
    return item == Py_True || item == Py_False;
  }
  return false;
}

// The rest of a step whose item is not as usual: it is done, or left.
template <Rep rep, bool owned>
[[gnu::noinline]] const Step* load_part(const Step* s, Reg* r, Machine& m, PyObject* item) {
  if (!unbox(rep, item, &r[s->c])) return of_another_type(s, m, item, rep);
  r[s->dst].o = owned ? Py_NewRef(item) : item;
  return s + 1;
}

template <Rep rep, class Sequence, bool owned>
const Step* load(const Step* s, Reg* r, Machine& m) {
  PyObject* sequence = r[s->a].o;
  int64_t i = r[s->b].i;
  if (!within(sequence, &i)) [[unlikely]]
    return refuse(m, s->exit);
  PyObject* item = Sequence::item(sequence, i);
  if (!quick_part<rep>(item, s, r)) [[unlikely]]
    return load_part<rep, owned>(s, r, m, item);
  r[s->dst].o = owned ? Py_NewRef(item) : item;
  return go_on(s + 1, r, m);
}

// The iterator itself has to find out that it is exhausted.
[[gnu::noinline]] const Step* at_end(const Step* s, Reg* r, Machine& m) {
  PyObject* item;
  end_shown(*s, m, r[s->a].o, &item);
  Py_XDECREF(item);  // (there is none)
  return leave_ended(*s, r, m);
}

template <Rep rep>
[[gnu::noinline]] const Step* next_part(const Step* s, Reg* r, Machine& m, PyObject* item) {
  if (!unbox(rep, item, &r[s->c])) return of_another_type(s, m, item, rep);
  ++reinterpret_cast<hook::SequenceIterator*>(r[s->a].o)->position;
  r[s->dst].o = Py_NewRef(item);
  return s + 1;
}

template <Rep rep, class Sequence>
const Step* next(const Step* s, Reg* r, Machine& m) {
  auto* it = reinterpret_cast<hook::SequenceIterator*>(r[s->a].o);
  PyObject* sequence = it->sequence;
  if (sequence == nullptr || it->position >= Py_SIZE(sequence)) [[unlikely]]
    return at_end(s, r, m);
  if (it->position < 0) [[unlikely]]
    return refuse(m, s->exit);
  PyObject* item = Sequence::item(sequence, it->position);
  if (!quick_part<rep>(item, s, r)) [[unlikely]]
    return next_part<rep>(s, r, m, item);
  ++it->position;
  r[s->dst].o = Py_NewRef(item);
  return go_on(s + 1, r, m);
}

// What is stored: a new reference, or null with MemoryError.
template <Rep rep>
inline PyObject* stored(const Step* s, const Reg* r) {
  if constexpr (rep == Rep::kNone) return Py_NewRef(r[s->c].o);
  return box(rep, r[s->c]);
}

const Step* drop_old(const Step* s, Reg* r, Machine& m, PyObject* old) {
  if (Py_REFCNT(old) > 1 || PyFloat_CheckExact(old) || PyLong_CheckExact(old) || dies_quietly(old)) [[likely]] {
    Py_DECREF(old);
    return go_on(s + 1 + s->n, r, m);
  }
  drop_shown(m, old, s->link);
  return s + 1;
}

template <Rep rep>
const Step* store(const Step* s, Reg* r, Machine& m) {
  PyObject* list = r[s->a].o;
  int64_t i = r[s->b].i;
  if (!within(list, &i)) [[unlikely]]
    return refuse(m, s->exit);
  PyObject* item = stored<rep>(s, r);
  if (!item) [[unlikely]]
    return fail(m, s->exit, false);
  PyObject* old = PyList_GET_ITEM(list, i);
  PyList_SET_ITEM(list, i, item);
  return drop_old(s, r, m, old);
}

template <Rep rep>
const Step* append(const Step* s, Reg* r, Machine& m) {
  auto* list = reinterpret_cast<PyListObject*>(r[s->a].o);
  PyObject* item = stored<rep>(s, r);
  if (!item) [[unlikely]]
    return fail(m, s->exit, false);
  const Py_ssize_t n = Py_SIZE(list);
  if (n < list->allocated) [[likely]] {
    list->ob_item[n] = item;
    Py_SET_SIZE(list, n + 1);
    return go_on(s + 1, r, m);
  }
  const int failed = PyList_Append(r[s->a].o, item);
  Py_DECREF(item);
  return failed ? fail(m, s->exit, false) : s + 1;
}

// Memory is given back when the interpreter would: list_pop_impl() and list_resize() of Objects/listobject.c.
template <Rep rep>
const Step* pop(const Step* s, Reg* r, Machine& m) {
  auto* list = reinterpret_cast<PyListObject*>(r[s->a].o);
  const Py_ssize_t left = Py_SIZE(list) - 1;
  if (left < 0) [[unlikely]]
    return refuse(m, s->exit);
  PyObject* item = list->ob_item[left];
  if (rep != Rep::kNone && !unbox_as<rep>(item, &r[s->c])) [[unlikely]]
    return of_another_type(s, m, item, rep);
  if (left >= (list->allocated >> 1) && left >= kLeastKept) [[likely]] {
    Py_SET_SIZE(list, left);
  } else {
    Py_INCREF(item);
    if (PyList_SetSlice(r[s->a].o, left, left + 1, nullptr) != 0) return Py_DECREF(item), fail(m, s->exit, false);
  }
  r[s->dst].o = item;
  return go_on(s + 1, r, m);
}

template <class Make>
StepFn step_for(Rep rep, StepFn of_objects, Make make) {
  return rep == Rep::kNone ? of_objects : by_rep(make)[static_cast<size_t>(rep)];
}

template <class Sequence, bool owned>
StepFn load_step_of(Rep rep) {
  return step_for(rep, load<Rep::kNone, Sequence, owned>, []<Rep rep>() -> StepFn { return load<rep, Sequence, owned>; });
}
template <class Sequence>
StepFn next_step_of(Rep rep) {
  return step_for(rep, next<Rep::kNone, Sequence>, []<Rep rep>() -> StepFn { return next<rep, Sequence>; });
}

}  // namespace

const Step* step_unpack(const Step* s, Reg* r, Machine& m) {
  PyObject* tuple = r[s->a].o;
  if (!PyTuple_CheckExact(tuple) || Py_SIZE(tuple) != s->imm) [[unlikely]]
    return step_exec(s, r, m);
  r[s->dst].o = Py_NewRef(tuple);
  return go_on(s + 1, r, m);
}

// (What is unpacked is a tuple of as many items.)
const Step* step_tuple_item(const Step* s, Reg* r, Machine& m) {
  r[s->dst].o = Py_NewRef(PyTuple_GET_ITEM(r[s->a].o, s->imm));
  return go_on(s + 1, r, m);
}

ItemSteps load_item_steps(Rep rep, bool owned) {
  if (owned) return {load_step_of<List, true>(rep), load_step_of<Tuple, true>(rep)};
  return {load_step_of<List, false>(rep), load_step_of<Tuple, false>(rep)};
}
ItemSteps next_item_steps(Rep rep) { return {next_step_of<List>(rep), next_step_of<Tuple>(rep)}; }
StepFn store_item_step(Rep rep) {
  return step_for(rep, store<Rep::kNone>, []<Rep rep>() -> StepFn { return store<rep>; });
}
StepFn append_item_step(Rep rep) {
  return step_for(rep, append<Rep::kNone>, []<Rep rep>() -> StepFn { return append<rep>; });
}
StepFn pop_item_step(Rep rep) {
  return step_for(rep, pop<Rep::kNone>, []<Rep rep>() -> StepFn { return pop<rep>; });
}

}  // namespace dalsegno::replay
