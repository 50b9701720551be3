#include "replay/machine/fold_objects.h"

#include <algorithm>

namespace dalsegno::replay::folds {
namespace {

// A number of the language's own, or a text.
bool is_leaf(const Slot& s) { return (is_made(s) && !is_numpy(s) && s.tag != Slot::kObject) || is_text(s); }

bool is_leaf(PyObject* o) {
  return PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || o == Py_None;
}

bool are_leaves(PyObject* tuple) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k)
    if (!is_leaf(PyTuple_GET_ITEM(tuple, k))) return false;
  return true;
}

}  // namespace

bool is_plain(PyObject* o) {
  constexpr Py_ssize_t kMost = 64;
  if (!PyTuple_CheckExact(o)) return is_leaf(o);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); ++k) {
    PyObject* item = PyTuple_GET_ITEM(o, k);
    if (!is_leaf(item) && !(PyTuple_CheckExact(item) && are_leaves(item))) return false;
  }
  return PyTuple_GET_SIZE(o) <= kMost;
}

bool is_plain(const Slot& s) { return is_made(s) && !is_numpy(s) && (s.tag != Slot::kObject || is_plain(s.object)); }

bool Made::keep(PyObject* made, Slot* to) {
  if (!made) return PyErr_Clear(), false;
  if (objects_.size() == kMost) return Py_DECREF(made), false;
  objects_.push_back(made);
  return set(to, made), true;
}

bool Made::box(Slot* s) {
  if (s->object || !is_made(*s)) return is_made(*s);
  Slot boxed{};
  if (!keep(object_of(*s), &boxed)) return false;
  return s->object = boxed.object, true;
}

void Made::clear() {
  for (PyObject* o : objects_) Py_DECREF(o);
  objects_.clear();
}

bool Made::tuple(Slot* slots, const int16_t* items, int n, Slot* out) {
  PyObject* made = PyTuple_New(n);
  for (int k = 0; made && k < n; ++k) {
    Slot& s = slots[items[k]];
    if (!box(&s))
      Py_CLEAR(made);
    else
      PyTuple_SET_ITEM(made, k, Py_NewRef(s.object));
  }
  return keep(made, out);
}

bool Made::texts(const Slot* slots, const int16_t* parts, int n, Slot* out) {
  static PyObject* const kEmpty = PyUnicode_New(0, 0);
  PyObject* all = PyTuple_New(n);
  bool known = all && kEmpty;
  for (int k = 0; known && k < n; ++k) {
    const Slot& s = slots[parts[k]];
    known = is_text(s);
    if (known) PyTuple_SET_ITEM(all, k, Py_NewRef(s.object));
  }
  PyObject* made = known ? PyUnicode_Join(kEmpty, all) : nullptr;
  Py_XDECREF(all);
  return keep(made, out);
}

bool Made::format(const Slot& value, const Slot* spec, Slot* out) {
  if (!is_leaf(value) || (spec && !is_text(*spec))) return false;
  if (is_text(value) && !spec) return *out = value, true;
  PyObject* o = object_of(value);
  PyObject* made = o ? PyObject_Format(o, spec ? spec->object : nullptr) : nullptr;
  Py_XDECREF(o);
  return keep(made, out);
}

bool Made::convert(int how, const Slot& value, Slot* out) {
  if (!is_leaf(value)) return false;
  if (is_text(value) && how == 1) return *out = value, true;
  PyObject* o = object_of(value);
  PyObject* made = !o ? nullptr : how == 1 ? PyObject_Str(o) : how == 2 ? PyObject_Repr(o) : PyObject_ASCII(o);
  Py_XDECREF(o);
  return keep(made, out);
}

bool Made::binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out) {
  constexpr int64_t kMostTimes = 4096;
  if (!is_text(a)) return false;
  if (op == BinaryOp::add) return is_text(b) && keep(PyUnicode_Concat(a.object, b.object), out);
  if (op == BinaryOp::multiply)
    return b.tag == Slot::kInt && b.i <= kMostTimes && keep(PySequence_Repeat(a.object, static_cast<Py_ssize_t>(b.i)), out);
  const bool several = b.tag == Slot::kObject && PyTuple_CheckExact(b.object) && are_leaves(b.object);
  if (op != BinaryOp::remainder || !(several || is_leaf(b))) return false;
  PyObject* values = object_of(b);
  PyObject* made = values ? PyUnicode_Format(a.object, values) : nullptr;
  Py_XDECREF(values);
  return keep(made, out);
}

bool Made::slice(const Slot& a, const Slot* const* bounds, Slot* out) {
  PyObject *parts[] = {nullptr, nullptr, nullptr}, *o = a.object;
  if (a.tag != Slot::kObject || !(PyUnicode_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o))) return false;
  bool known = true;
  for (int k = 0; k < 3 && known; ++k) {
    if (!bounds[k] || (bounds[k]->tag == Slot::kObject && bounds[k]->object == Py_None)) continue;
    known = bounds[k]->tag == Slot::kInt && (parts[k] = object_of(*bounds[k])) != nullptr;
  }
  PyObject* index = known ? PySlice_New(parts[0], parts[1], parts[2]) : nullptr;
  PyObject* made = index ? PyObject_GetItem(o, index) : nullptr;
  for (PyObject* part : parts) Py_XDECREF(part);
  Py_XDECREF(index);
  return keep(made, out);
}

bool Made::letter(const Slot& a, const Slot& at, Slot* out) {
  if (!is_text(a) || at.tag != Slot::kInt) return false;
  const Py_ssize_t n = PyUnicode_GET_LENGTH(a.object);
  const int64_t k = at.i < 0 ? at.i + n : at.i;
  return k >= 0 && k < n && keep(PyUnicode_FromOrdinal(static_cast<int>(PyUnicode_READ_CHAR(a.object, k))), out);
}

namespace {

// What the class has under the name takes the object when it is asked for, or called.
Attribute by_class(PyTypeObject* type, PyObject* found, PyObject** value) {
  *value = found;
  if (PyFunction_Check(found) || Py_IS_TYPE(found, &PyMethodDescr_Type)) return Attribute::kMethod;
  if (Py_TYPE(found)->tp_descr_get || type->tp_getattro != PyObject_GenericGetAttr) return Attribute::kUnknown;
  return Attribute::kOfClass;
}

Attribute by_property(PyTypeObject* type, PyObject* property, PyObject** value) {
  static PyObject* const kName = PyUnicode_InternFromString("fget");
  PyObject* getter = type->tp_getattro == PyObject_GenericGetAttr && kName ? PyObject_GetAttr(property, kName) : nullptr;
  if (!getter) return PyErr_Clear(), Attribute::kUnknown;
  Py_DECREF(getter);  // (the property holds it)
  return *value = getter, Attribute::kProperty;
}

}  // namespace

PyObject* own_attribute(PyObject* o, FoldAttribute* place) {
  PyObject* dict = nullptr;
  PyObject** at = dalsegno_attribute_place(o, &place->attribute, 0, &place->cache, &dict);
  return at ? *at : nullptr;
}

Attribute attribute_of(PyObject* o, PyObject* name, FoldAttribute* place, PyObject** value) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == place->in_c.type) return *value = place->in_c.method, Attribute::kMethod;
  PyObject* found = _PyType_Lookup(type, name);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {  // (text, list, dict ...)
    const bool method = found && Py_IS_TYPE(found, &PyMethodDescr_Type) && type->tp_getattro == PyObject_GenericGetAttr;
    if (!method || type->tp_dictoffset != 0) return Attribute::kUnknown;
    if (PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE)) place->in_c = {type, found};
    return *value = found, Attribute::kMethod;
  }
  if (found && Py_IS_TYPE(found, &PyProperty_Type)) return by_property(type, found, value);
  if (found && Py_TYPE(found)->tp_descr_set && !dalsegno_slot_offset(type, found) && !dalsegno_named_item(type, found))
    return Attribute::kUnknown;
  place->attribute = {type, name, found};
  if ((*value = own_attribute(o, place)) != nullptr) return Attribute::kOwn;
  if (found && dalsegno_has_class_attribute(o, &place->attribute, &place->cache)) return by_class(type, found, value);
  PyObject* kept = dalsegno_own_attribute(o, &place->attribute, &place->cache);  // (in a large dict)
  Py_XDECREF(kept);
  return *value = kept, kept ? Attribute::kOwn : Attribute::kUnknown;
}

}  // namespace dalsegno::replay::folds
