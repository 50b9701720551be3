#include "replay/machine/silent_tables.h"

#include <algorithm>
#include <iterator>

#include "hook/lookups.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {

bool does_as_dicts(PyObject* o, Does what) {
  static PyObject* const kNames[] = {PyUnicode_InternFromString("__getitem__"), PyUnicode_InternFromString("__setitem__"),
                                     PyUnicode_InternFromString("__delitem__"), PyUnicode_InternFromString("__contains__"),
                                     PyUnicode_InternFromString("__len__")};
  if (PyDict_CheckExact(o)) return true;
  PyObject* name = kNames[static_cast<size_t>(what)];
  PyObject* found = _PyType_Lookup(Py_TYPE(o), name);
  return found && (found == _PyType_Lookup(&PyDict_Type, name) || found == _PyType_Lookup(&PyODict_Type, name));
}

bool gets_from_dict(PyObject* dict, PyObject* key) {
  PyObject* held;
  if (!does_as_dicts(dict, Does::kGet)) return false;
  const int found = dalsegno_find_in(dict, key, &held);
  return found == 1 || (found == 0 && dalsegno_is_table(dict) && (PyDict_CheckExact(dict) || dalsegno_missing_is_quiet(dict)));
}

bool replaces_quietly(PyObject* dict, PyObject* key) {
  PyObject* held;
  const int found = dalsegno_find_in(dict, key, &held);
  return found == 0 || (found == 1 && drops_quietly(held));
}

bool are_sets(PyObject* a, PyObject* b) {
  if (!PyAnySet_CheckExact(a) || !PyAnySet_CheckExact(b)) return false;
  return PySet_GET_SIZE(a) <= PySet_GET_SIZE(b) ? dalsegno_join_quietly(a, b, kMostKeys) : dalsegno_join_quietly(b, a, kMostKeys);
}

bool joins_sets(BinaryOp op) {
  constexpr BinaryOp kOfSets[] = {BinaryOp::and_, BinaryOp::or_, BinaryOp::xor_, BinaryOp::subtract};
  return std::find(std::begin(kOfSets), std::end(kOfSets), op) != std::end(kOfSets);
}

}  // namespace dalsegno::replay
