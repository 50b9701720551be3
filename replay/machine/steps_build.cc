// Python ops that make or fill containers, functions, modules: as the interpreter does them.
#include <utility>

#include "replay/machine/exec.h"
#include "trace/fault.h"
#include "trace/kind_table.h"

// Declared by 3.11's headers, and since 3.13 by the interpreter's own; null where it keeps it to itself.
extern "C" __attribute__((weak)) PyObject* _PyUnicode_JoinArray(PyObject* separator, PyObject* const* items, Py_ssize_t n);

namespace dalsegno::replay {
namespace {

#define A r[s.a].o
#define B r[s.b].o
#define C r[s.c].o

bool build_tuple(const Step& s, Reg* r) {
  PyObject* v = PyTuple_New(s.n);
  if (!v) return give(s, r, nullptr);
  for (int32_t i = 0; i < s.n; ++i) PyTuple_SET_ITEM(v, i, Py_NewRef(r[s.list[i]].o));
  return give(s, r, v);
}
bool build_list(const Step& s, Reg* r) {
  PyObject* v = PyList_New(s.n);
  if (!v) return give(s, r, nullptr);
  for (int32_t i = 0; i < s.n; ++i) PyList_SET_ITEM(v, i, Py_NewRef(r[s.list[i]].o));
  return give(s, r, v);
}
bool give_if(const Step& s, Reg* r, PyObject* v, bool ok) {
  if (!ok) Py_CLEAR(v);
  return give(s, r, v);
}
bool build_set(const Step& s, Reg* r) {
  PyObject* v = PySet_New(nullptr);
  bool ok = v != nullptr;
  for (int32_t i = 0; ok && i < s.n; ++i) ok = PySet_Add(v, r[s.list[i]].o) == 0;
  return give_if(s, r, v, ok);
}
bool build_map(const Step& s, Reg* r) {
  PyObject* v = PyDict_New();
  bool ok = v != nullptr;
  for (int32_t i = 0; ok && i < s.n; i += 2) ok = PyDict_SetItem(v, r[s.list[i]].o, r[s.list[i + 1]].o) == 0;
  return give_if(s, r, v, ok);
}
// As BUILD_STRING, by what that calls.
bool build_string(const Step& s, Reg* r) {
  if (_PyUnicode_JoinArray != nullptr) {
    const Args parts(s, r);
    PyObject* empty = PyUnicode_New(0, 0);
    PyObject* joined = empty ? _PyUnicode_JoinArray(empty, parts.data(), s.n) : nullptr;
    Py_XDECREF(empty);
    return give(s, r, joined);
  }
  Step parts = s;
  if (!build_tuple(parts, r)) return false;
  PyObject* tuple = r[s.dst].o;
  PyObject* empty = PyUnicode_New(0, 0);
  PyObject* v = empty ? PyUnicode_Join(empty, tuple) : nullptr;
  Py_XDECREF(empty);
  Py_DECREF(tuple);
  return give(s, r, v);
}
bool build_slice(const Step& s, Reg* r) {
  return give(s, r, PySlice_New(r[s.list[0]].o, r[s.list[1]].o, s.n > 2 ? r[s.list[2]].o : nullptr));
}

// A method of a builtin type, which nobody can replace: looked up once.
bool call_method(PyTypeObject* type, const char* name, PyObject** kept, PyObject* self, PyObject* argument) {
  if (!*kept) *kept = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name);
  PyObject* arguments[] = {self, argument};
  PyObject* none = *kept ? PyObject_Vectorcall(*kept, arguments, 2, nullptr) : nullptr;
  Py_XDECREF(none);
  return none != nullptr;
}

bool list_append(const Step& s, Reg* r) { return PyList_Append(A, B) == 0; }
// The interpreter words the message for what is not iterable.
bool list_extend(const Step& s, Reg* r) {
  if (!Py_TYPE(B)->tp_iter && !PySequence_Check(B)) return false;
  static PyObject* extend = nullptr;
  return call_method(&PyList_Type, "extend", &extend, A, B);
}
bool list_to_tuple(const Step& s, Reg* r) { return give(s, r, PyList_AsTuple(A)); }
bool set_add(const Step& s, Reg* r) { return PySet_Add(A, B) == 0; }
bool set_update(const Step& s, Reg* r) {
  static PyObject* update = nullptr;
  return call_method(&PySet_Type, "update", &update, A, B);
}
bool map_add(const Step& s, Reg* r) { return PyDict_SetItem(A, B, C) == 0; }
bool dict_update(const Step& s, Reg* r) {
  if (PyDict_Update(A, B) == 0) return true;
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(B)->tp_name);
  return false;
}
// Anything but a plain dict of new keys is left to the interpreter, which names the callee in its messages.
bool dict_merge(const Step& s, Reg* r) {
  if (!PyDict_CheckExact(B)) return false;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (PyDict_Next(B, &at, &key, &value)) {
    if (!PyUnicode_CheckExact(key)) return false;
    int has = PyDict_Contains(A, key);
    if (has != 0) return false;
  }
  return PyDict_Update(A, B) == 0;
}

bool same_name(PyObject* key, PyObject* name) {
  return key == name ||
         (PyUnicode_CheckExact(key) && PyUnicode_GET_LENGTH(key) == PyUnicode_GET_LENGTH(name) && PyUnicode_Compare(key, name) == 0);
}
bool dict_values(const Step& s, Reg* r) {
  PyObject* names = s.object;
  if (!PyDict_CheckExact(A) || PyDict_GET_SIZE(A) != PyTuple_GET_SIZE(names)) return false;
  PyObject* values = PyTuple_New(PyTuple_GET_SIZE(names));
  Py_ssize_t at = 0, n = 0;
  PyObject *key, *value;
  while (values && PyDict_Next(A, &at, &key, &value)) {
    if (!same_name(key, PyTuple_GET_ITEM(names, n)) && !planted(Fault::unnamed_values)) {
      Py_CLEAR(values);
    } else {
      PyTuple_SET_ITEM(values, n++, Py_NewRef(value));
    }
  }
  return give(s, r, values);
}

// UNPACK_SEQUENCE on something that is neither tuple nor list: its messages, too.
PyObject* unpack_iterable(PyObject* v, int32_t n) {
  PyObject* it = PyObject_GetIter(v);
  if (!it) return nullptr;
  PyObject* tuple = PyTuple_New(n);
  int32_t i = 0;
  bool ok = tuple != nullptr;
  for (; ok && i < n; ++i) {
    PyObject* item = PyIter_Next(it);
    if (item) {
      PyTuple_SET_ITEM(tuple, i, item);
      continue;
    }
    ok = false;
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", n, i);
  }
  if (ok) {
    PyObject* extra = PyIter_Next(it);
    if (extra) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", n);
    Py_XDECREF(extra);
    ok = !PyErr_Occurred();
  }
  Py_DECREF(it);
  if (!ok) Py_CLEAR(tuple);
  return tuple;
}
bool unpack_ex(const Step& s, Reg* r) {
  Py_ssize_t before = s.imm & 255, after = s.imm >> 8;
  bool sequence = PyTuple_CheckExact(A) || PyList_CheckExact(A);
  if (!sequence || Py_SIZE(A) < before + after) return false;  // the interpreter words the message
  PyObject* all = PySequence_List(A);
  PyObject* rest = all ? PyList_GetSlice(all, before, PyList_GET_SIZE(all) - after) : nullptr;
  PyObject* items = rest ? PyTuple_New(before + 1 + after) : nullptr;
  if (items) {
    Py_ssize_t tail = PyList_GET_SIZE(all) - after;
    for (Py_ssize_t i = 0; i < before; ++i) PyTuple_SET_ITEM(items, i, Py_NewRef(PyList_GET_ITEM(all, i)));
    PyTuple_SET_ITEM(items, before, Py_NewRef(rest));
    for (Py_ssize_t i = 0; i < after; ++i) PyTuple_SET_ITEM(items, before + 1 + i, Py_NewRef(PyList_GET_ITEM(all, tail + i)));
  }
  Py_XDECREF(rest);
  Py_XDECREF(all);
  return give(s, r, items);
}
bool unpack(const Step& s, Reg* r) {
  if (PyTuple_CheckExact(A)) return Py_SIZE(A) == s.imm && give(s, r, Py_NewRef(A));
  if (PyList_CheckExact(A)) return Py_SIZE(A) == s.imm && give(s, r, PyList_AsTuple(A));
  if (!Py_TYPE(A)->tp_iter && !PySequence_Check(A)) return false;
  return give(s, r, unpack_iterable(A, s.imm));
}

}  // namespace

PyObject* builtins_of(PyObject* globals) {
  static PyObject* const kName = PyUnicode_InternFromString("__builtins__");
  PyObject* builtins = PyDict_GetItem(globals, kName);
  if (builtins && PyModule_Check(builtins)) builtins = PyModule_GetDict(builtins);
  return builtins && PyDict_Check(builtins) ? builtins : PyEval_GetBuiltins();
}

namespace {

// As IMPORT_NAME: through builtins.__import__, with None for the locals of a function.
bool import_name(const Step& s, Reg* r) {
  PyObject* import = PyDict_GetItemString(builtins_of(s.object), "__import__");
  if (!import) return false;
  Py_INCREF(import);
  PyObject* args[] = {s.name, s.object, Py_None, B, A};
  PyObject* v = PyObject_Vectorcall(import, args, 5, nullptr);
  Py_DECREF(import);
  return give(s, r, v);
}
// As IMPORT_FROM; its ImportError is left to the interpreter.
bool import_from(const Step& s, Reg* r) {
  PyObject* v = PyObject_GetAttr(A, s.name);
  if (v || !PyErr_ExceptionMatches(PyExc_AttributeError)) return give(s, r, v);
  PyErr_Clear();
  PyObject* package = PyObject_GetAttrString(A, "__name__");
  PyObject* full = package && PyUnicode_Check(package) ? PyUnicode_FromFormat("%U.%U", package, s.name) : nullptr;
  v = full ? PyImport_GetModule(full) : nullptr;
  Py_XDECREF(package);
  Py_XDECREF(full);
  if (!v) PyErr_Clear();
  return give(s, r, v);
}

void set_part(PyObject* f, int flag, PyObject* v) {
  auto* func = reinterpret_cast<PyFunctionObject*>(f);
  PyObject** part = flag == 1   ? &func->func_defaults
                    : flag == 2 ? &func->func_kwdefaults
                    : flag == 4 ? &func->func_annotations
#if PY_VERSION_HEX >= 0x030e0000
                    : flag == 16 ? &func->func_annotate
#endif
                                 : &func->func_closure;
  Py_XSETREF(*part, Py_NewRef(v));
}
bool make_function(const Step& s, Reg* r) {
  PyObject* v = PyFunction_New(r[s.list[0]].o, s.object);
  if (!v) return give(s, r, nullptr);
  int32_t next = 1;
  for (int flag = 1; flag <= 8; flag *= 2)
    if (s.imm & flag) set_part(v, flag, r[s.list[next++]].o);
  return give(s, r, v);
}
bool set_function_attribute(const Step& s, Reg* r) {
  if (!PyFunction_Check(A)) return false;
  set_part(A, s.imm, B);
  return give(s, r, Py_NewRef(A));
}

constexpr KindRow<Exec> kRows[] = {
#define ROW(name) \
  { OpKind::name, name }
    ROW(build_tuple), ROW(build_list),    ROW(build_set),
    ROW(build_map),   ROW(build_string),  ROW(build_slice),
    ROW(list_append), ROW(list_extend),   ROW(list_to_tuple),
    ROW(set_add),     ROW(set_update),    ROW(map_add),
    ROW(dict_update), ROW(dict_merge),    ROW(dict_values),
    ROW(unpack),      ROW(unpack_ex),     ROW(import_name),
    ROW(import_from), ROW(make_function), ROW(set_function_attribute),
#undef ROW
};

}  // namespace

// As PyUnicode_Append, in place where it works in place; but where there is no memory the text is still there, for whoever handles that.
bool exec_append_string(const Step& s, Reg* r) {
  const Py_ssize_t length = PyUnicode_GET_LENGTH(A), more = PyUnicode_GET_LENGTH(B);
  const bool fits = PyUnicode_KIND(B) <= PyUnicode_KIND(A) && (PyUnicode_IS_ASCII(B) || !PyUnicode_IS_ASCII(A));
  if (length == 0 || more == 0) {
    PyUnicode_Append(&A, B);  // takes the other one
  } else if (fits && Py_REFCNT(A) == 1 && length <= PY_SSIZE_T_MAX - more) {
    if (PyUnicode_Resize(&A, length + more) < 0 || PyUnicode_CopyCharacters(A, length, B, 0, more) < 0) return false;
  } else {
    PyObject* sum = PyUnicode_Concat(A, B);
    if (!sum) return false;
    Py_SETREF(A, sum);
  }
  return give(s, r, std::exchange(A, nullptr));
}

Exec exec_of_building(OpKind kind) {
  static constexpr auto kTable = by_kind(kRows, Exec{nullptr});
  return kTable[static_cast<size_t>(kind)];
}

}  // namespace dalsegno::replay
