#include "replay/machine/fold_containers.h"

#include "hook/lookups.h"
#include "numpy/dtypes.h"
#include "replay/machine/fold_numbers.h"

namespace dalsegno::replay::folds {

int find(PyObject* dict, PyObject* key, PyObject** value) {
  dalsegno_found none{};
  return dalsegno_find(dict, key, value, &none);
}

namespace {

bool look_up(PyObject* dict, PyObject* key, Slot* out) {  // steals the key
  PyObject* value = nullptr;
  const bool found = key && find(dict, key, &value) == 1;
  Py_XDECREF(key);
  if (!key) PyErr_Clear();
  return found && (set(out, value), true);
}

// (Of tuples the look-up finds out itself.)
bool is_key(const Slot& s) {
  const bool object = s.tag == Slot::kObject && (PyUnicode_CheckExact(s.object) || PyTuple_CheckExact(s.object) || s.object == Py_None);
  return s.tag == Slot::kInt || s.tag == Slot::kFloat || s.tag == Slot::kBool || object;
}

// Of numbers and texts: found by identity, and then by ==, as PySequence_Contains() does.
bool contains_item(const Slot& x, PyObject* sequence, bool* out) {
  const bool list = PyList_CheckExact(sequence);
  *out = false;
  for (Py_ssize_t k = 0; k < Py_SIZE(sequence) && !*out; ++k) {
    PyObject* held = list ? PyList_GET_ITEM(sequence, k) : PyTuple_GET_ITEM(sequence, k);
    Slot one{};
    set(&one, held);
    if (held != x.object && !compare(Py_EQ, x, one, out)) return false;
    *out |= held == x.object;
  }
  return true;
}

}  // namespace

bool attribute(const Slot& of, PyObject* name, Slot* out) {
  if (of.tag != Slot::kObject || !PyModule_CheckExact(of.object)) return false;
  return look_up(PyModule_GetDict(of.object), Py_NewRef(name), out);
}

int value_at(PyObject* dict, const Slot& key, Slot* out) {
  PyObject *value = nullptr, *of = is_key(key) ? object_of(key) : nullptr;
  if (!of) return PyErr_Clear(), -1;
  const int found = find(dict, of, &value);
  Py_DECREF(of);
  if (found == 1) set(out, value);
  return found;
}

bool item(const Slot& a, const Slot& b, Slot* out) {
  if (a.tag != Slot::kObject) return false;
  PyObject* o = a.object;
  const bool list = PyList_CheckExact(o);
  if (list || PyTuple_CheckExact(o)) {
    const int64_t at = b.i < 0 ? b.i + Py_SIZE(o) : b.i;
    if (!is_position(b) || at < 0 || at >= Py_SIZE(o)) return false;
    return set(out, list ? PyList_GET_ITEM(o, at) : PyTuple_GET_ITEM(o, at)), true;
  }
  const Slot* index[] = {&b};
  if (numpy::is_exact_array(o)) return array_item(o, index, 1, out);
  return PyDict_CheckExact(o) && value_at(o, b, out) == 1;
}

bool pair_item(const Slot& a, const Slot& b, const Slot& c, Slot* out) {
  if (a.tag != Slot::kObject) return false;
  const Slot* index[] = {&b, &c};
  if (numpy::is_exact_array(a.object)) return array_item(a.object, index, 2, out);
  if (!PyDict_CheckExact(a.object) || !is_key(b) || !is_key(c)) return false;
  PyObject* pair = PyTuple_New(2);
  if (!pair) return look_up(a.object, nullptr, out);
  PyTuple_SET_ITEM(pair, 0, object_of(b));
  PyTuple_SET_ITEM(pair, 1, object_of(c));
  if (PyTuple_GET_ITEM(pair, 0) && PyTuple_GET_ITEM(pair, 1)) return look_up(a.object, pair, out);
  Py_DECREF(pair);
  return look_up(a.object, nullptr, out);
}

bool contains(const Slot& x, const Slot& in, bool* out) {
  if (in.tag != Slot::kObject || !is_made(x)) return false;
  PyObject* o = in.object;
  if (PyUnicode_CheckExact(o)) {
    if (x.tag != Slot::kObject || !PyUnicode_CheckExact(x.object)) return false;
    return *out = PyUnicode_Contains(o, x.object) == 1, true;
  }
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return contains_item(x, o, out);
  if (!(PyDict_CheckExact(o) || PyAnySet_CheckExact(o)) || !is_key(x)) return false;
  PyObject *key = object_of(x), *value;
  const int found = key ? find(o, key, &value) : -1;
  Py_XDECREF(key);
  if (!key) PyErr_Clear();
  return *out = found == 1, found >= 0;
}

// (A number that has been computed is no object yet: all that is certain is that it is none of those that are no numbers.)
bool same(const Slot& a, const Slot& b, bool* out) {
  if (!is_made(a) || !is_made(b)) return false;
  if (a.object && b.object) return *out = a.object == b.object, true;
  return *out = false, (!a.object && b.tag == Slot::kObject) || (!b.object && a.tag == Slot::kObject);
}

}  // namespace dalsegno::replay::folds
