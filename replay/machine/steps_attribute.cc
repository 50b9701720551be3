// Attributes that instances keep themselves, found by what their class was like before (hook/attributes.h). What is not as recorded leaves
// before the instruction.
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

enum Use : int { kGet, kSet };

PyObject** place_of(const Step& s, const Reg* r, Use use, PyObject** dict) {
  return dalsegno_attribute_place(r[s.a].o, &s.attribute->attribute, use, &s.attribute->cache, dict);
}

const Step* not_as_recorded(const Step* s, Machine& m) {
  count_guard_failure();
  return leave(m, s->exit);
}

template <bool owned>
bool own(const Step& s, Reg* r) {
  PyObject* dict;
  PyObject** place = place_of(s, r, kGet, &dict);
  PyObject* value = place ? *place : nullptr;
  if (!value || !unbox_part(s, r, value)) [[unlikely]]
    return false;
  r[s.dst].o = owned ? Py_NewRef(value) : value;
  return true;
}

// In a large dict, or of another type.
template <bool owned>
[[gnu::noinline]] const Step* slow_own(const Step* s, Reg* r, Machine& m) {
  PyObject* found = dalsegno_own_attribute(r[s->a].o, &s->attribute->attribute, &s->attribute->cache);
  if (!found) return not_as_recorded(s, m);
  const bool fits = unbox_part(*s, r, found);
  const bool overflows = s->rep == Rep::kInt && PyLong_CheckExact(found);
  if (!fits || !owned) Py_DECREF(found);  // (borrowed: who keeps it has a reference)
  if (!fits) return overflows ? overflow(m, s->exit) : not_as_recorded(s, m);
  r[s->dst].o = found;
  return s + 1;
}

template <bool owned>
const Step* step_own(const Step* s, Reg* r, Machine& m) {
  if (own<owned>(*s, r)) [[likely]]
    return go_on(s + 1, r, m);
  return slow_own<owned>(s, r, m);
}

// What is stored: a new reference, or null with MemoryError.
PyObject* stored(const Step& s, const Reg* r) { return s.rep == Rep::kNone ? Py_NewRef(r[s.c].o) : box(s.rep, r[s.c]); }

// (What is added to an array of values comes in an order.)
bool add(const Step& s, Reg* r) {
  PyObject* value = stored(s, r);
  const bool added = value && dalsegno_add_own_attribute(r[s.a].o, &s.attribute->attribute, value, &s.attribute->cache);
  if (!value) PyErr_Clear();
  Py_XDECREF(value);
  return added;
}

bool set(const Step& s, Reg* r) {
  PyObject* dict;
  PyObject** place = place_of(s, r, kSet, &dict);
  PyObject* old = place ? *place : nullptr;
  if (old ? !drops_quietly(old) : !place || s.attribute->cache.slot == 0) return !old && add(s, r);
  if (s.rep == Rep::kFloat && old && !dict && PyFloat_CheckExact(old) && Py_REFCNT(old) == 1) {
    reinterpret_cast<PyFloatObject*>(old)->ob_fval = r[s.c].f;  // as the same memory would
    return true;
  }
  PyObject* value = stored(s, r);
  bool done = value != nullptr;
  if (done && !dict) {
    *place = value;
    Py_XDECREF(old);
  } else if (done) {
    done = PyDict_SetItem(dict, s.attribute->attribute.name, value) == 0;
    Py_DECREF(value);
  }
  if (!done) PyErr_Clear();
  return done;
}

[[gnu::noinline]] const Step* slow_set(const Step* s, Reg* r, Machine& m) {
  PyObject* value = stored(*s, r);
  if (!value) return fail(m, s->exit, false);
  PyObject *old = nullptr, *dict;
  if (PyObject** place = place_of(*s, r, kSet, &dict); place && !dict) {
    old = *place;
    if (old) *place = Py_NewRef(value);
  } else {
    old = dalsegno_replace_own_attribute(r[s->a].o, &s->attribute->attribute, value, &s->attribute->cache);
  }
  const bool added = !old && dalsegno_add_own_attribute(r[s->a].o, &s->attribute->attribute, value, &s->attribute->cache);
  Py_DECREF(value);
  if (added) return s + 1;
  if (!old) return not_as_recorded(s, m);
  if (drops_quietly(old))
    Py_DECREF(old);
  else
    drop_shown(m, old, s->link);
  return s + 1;
}

bool made(const Step& s, Reg* r) {
  r[s.dst].o = dalsegno_make_instance(&s.attribute->attribute, &s.attribute->cache);
  return r[s.dst].o != nullptr;
}

const Step* step_make_instance(const Step* s, Reg* r, Machine& m) {
  if (made(*s, r)) [[likely]]
    return go_on(s + 1, r, m);
  return not_as_recorded(s, m);
}

bool of_class(const Step& s, Reg* r) { return dalsegno_has_class_attribute(r[s.a].o, &s.attribute->attribute, &s.attribute->cache) != 0; }

}  // namespace

Quick own_attribute_step(bool owned) { return owned ? Quick{step_own<true>, own<true>} : Quick{step_own<false>, own<false>}; }

const Step* step_set_own_attr(const Step* s, Reg* r, Machine& m) {
  if (set(*s, r)) [[likely]]
    return go_on(s + 1 + s->n, r, m);
  return slow_set(s, r, m);
}

const Step* step_class_attr(const Step* s, Reg* r, Machine& m) { return of_class(*s, r) ? go_on(s + 1, r, m) : not_as_recorded(s, m); }

Quick set_attribute_step() { return {step_set_own_attr, set}; }
Quick make_instance_step() { return {step_make_instance, made}; }
Quick class_attribute_step() { return {step_class_attr, of_class}; }

}  // namespace dalsegno::replay
