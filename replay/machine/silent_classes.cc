#include "replay/machine/silent_classes.h"

#include <structmember.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "replay/machine/run.h"
#include "replay/machine/silent_numpy.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

// What attributes of an object with __getattr__ are asked by (slot_tp_getattr_hook()), as a class without any other shows.
getattrofunc asks_hook() {
  static const getattrofunc found = [] {
    PyObject* type = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){sOss}", "Hooked", "__getattr__", Py_None,
                                           "__module__", "dalsegno");
    if (!type) PyErr_Clear();
    return type ? reinterpret_cast<PyTypeObject*>(type)->tp_getattro : nullptr;  // (kept)
  }();
  return found;
}

// Do classes of this class look for attributes as type does? (__getattr__ is asked for what is not found.)
bool looks_up_as_type(PyTypeObject* meta) {
  static PyObject* const kName = PyUnicode_InternFromString("__getattribute__");
  if (meta->tp_getattro == PyType_Type.tp_getattro) return true;
  return meta->tp_getattro == asks_hook() && _PyType_Lookup(meta, kName) == _PyType_Lookup(&PyType_Type, kName);
}

// Where instances of a type in C keep a member; 0: they have none of that name.
Py_ssize_t place_of(const PyTypeObject& type, std::string_view name) {
  const PyMemberDef* member = type.tp_members;
  while (member && member->name && member->name != name) ++member;
  return member && member->name ? member->offset : 0;
}

PyObject* part_of(PyObject* o, Py_ssize_t place) { return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + place); }

// Does asking a class, or an instance, for it run no code of the user's?
bool is_bound_in_c(PyObject* found) {
  static const Py_ssize_t kFunction = place_of(PyClassMethod_Type, "__func__");
  if (recorder::is_given_in_c(found)) return true;
  if (!Py_IS_TYPE(found, &PyClassMethod_Type) || !kFunction) return false;
  PyObject* function = part_of(found, kFunction);
  return function && PyFunction_Check(function);
}

// What is inherited by the address of the function in C that does it.
template <typename Table, typename Slot>
bool inherits(Table* own, Table* theirs, Slot slot) {
  return own && theirs && own->*slot && own->*slot == theirs->*slot;
}

PyTypeObject* sequence_of(PyObject* o) { return PyList_Check(o) ? &PyList_Type : PyTuple_Check(o) ? &PyTuple_Type : nullptr; }

}  // namespace

namespace {

bool gives_class_attribute(PyObject* of, PyObject* name) {
  PyTypeObject* meta = Py_TYPE(of);
  if (!looks_up_as_type(meta)) return false;
  PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(of), name);
  if (!found || !is_bound_in_c(found)) return false;
  PyObject* of_meta = _PyType_Lookup(meta, name);
  return !of_meta || !Py_TYPE(of_meta)->tp_descr_set;
}

bool gives_super_attribute(PyObject* super, PyObject* name) {
  static const Py_ssize_t kOf = place_of(PySuper_Type, "__thisclass__"), kType = place_of(PySuper_Type, "__self_class__");
  static PyObject* const kClass = PyUnicode_InternFromString("__class__");
  if (!kOf || !kType || name == kClass) return false;
  PyObject* type = part_of(super, kType);
  PyObject* order = type ? reinterpret_cast<PyTypeObject*>(type)->tp_mro : nullptr;
  if (!order) return false;
  PyObject** const end = reinterpret_cast<PyTupleObject*>(order)->ob_item + PyTuple_GET_SIZE(order);
  PyObject** at = std::find(reinterpret_cast<PyTupleObject*>(order)->ob_item, end, part_of(super, kOf));
  if (at == end || ++at == end) return false;
  auto* next =
      reinterpret_cast<PyTypeObject*>(*at);  // which looks in the same classes in the same order, unless several are inherited from
  PyObject** const own = reinterpret_cast<PyTupleObject*>(next->tp_mro)->ob_item;
  if (PyTuple_GET_SIZE(next->tp_mro) != end - at || !std::equal(at, end, own)) return false;
  PyObject* found = _PyType_Lookup(next, name);
  return found && is_bound_in_c(found);
}

}  // namespace

bool gets_attribute(const Step& s, const Reg* r) {
  static PyTypeObject* item_getter = nullptr;
  PyObject* o = r[s.a].o;
  PyTypeObject* type = Py_TYPE(o);
  if (PyType_Check(o)) return gives_class_attribute(o, s.name);
  if (type == &PySuper_Type) return gives_super_attribute(o, s.name);
  if (type->tp_getattro != PyObject_GenericGetAttr) return false;
  PyObject* found = _PyType_Lookup(type, s.name);
  PyTypeObject* decides = found ? Py_TYPE(found) : nullptr;
  if (!decides) return false;
  if (decides == &PyMemberDescr_Type) return (reinterpret_cast<PyMemberDescrObject*>(found)->d_member->flags & PY_AUDIT_READ) == 0;
  if (decides == item_getter || decides == &PyStaticMethod_Type) return true;
  if (gives_attribute(o, s.name, found)) return true;
  const bool getter =
      std::string_view(decides->tp_name).ends_with("_tuplegetter") && recorder::is_found_as(decides, "_collections", "_tuplegetter");
  if (getter && !item_getter) item_getter = reinterpret_cast<PyTypeObject*>(Py_NewRef(decides));
  return getter;
}

bool makes_super(PyObject* of, PyObject* object) {
  if (!PyType_Check(of)) return false;
  auto* type = reinterpret_cast<PyTypeObject*>(of);
  return PyObject_TypeCheck(object, type) || (PyType_Check(object) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), type));
}

bool inherits_length(PyObject* o) {
  PyTypeObject* of = sequence_of(o);
  return of && inherits(Py_TYPE(o)->tp_as_sequence, of->tp_as_sequence, &PySequenceMethods::sq_length) &&
         inherits(Py_TYPE(o)->tp_as_mapping, of->tp_as_mapping, &PyMappingMethods::mp_length);
}

bool inherits_items(PyObject* o) {
  static PyObject* const kName = PyUnicode_InternFromString("__getitem__");  // (list's is a method: who inherits it has another slot)
  PyTypeObject* of = sequence_of(o);
  return of && _PyType_Lookup(Py_TYPE(o), kName) == _PyType_Lookup(of, kName);
}

bool inherits_iterator(PyObject* o) {
  static const getiterfunc kKnown[] = {PyList_Type.tp_iter,     PyTuple_Type.tp_iter,     PyDict_Type.tp_iter,       PySet_Type.tp_iter,
                                       PyDictKeys_Type.tp_iter, PyDictItems_Type.tp_iter, PyDictValues_Type.tp_iter, PyObject_SelfIter};
  return std::find(std::begin(kKnown), std::end(kKnown), Py_TYPE(o)->tp_iter) != std::end(kKnown);
}

bool is_always_true(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  return !(type->tp_as_number && type->tp_as_number->nb_bool) && !(type->tp_as_mapping && type->tp_as_mapping->mp_length) &&
         !(type->tp_as_sequence && type->tp_as_sequence->sq_length);
}

bool compares_by_identity(PyObject* o) { return Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare; }

bool is_value_in_c(PyObject* o) { return recorder::is_value_type_in_c(Py_TYPE(o)); }

bool makes_bare_instances(PyTypeObject* type) {
  if (!Py_IS_TYPE(type, &PyType_Type) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)
    return false;
  const PyTypeObject* const kBases[] = {&PyBaseObject_Type, &PyList_Type, &PyDict_Type};
  return std::any_of(std::begin(kBases), std::end(kBases),
                     [&](const PyTypeObject* base) { return type->tp_new == base->tp_new && type->tp_init == base->tp_init; });
}

bool is_bare_init(PyObject* callee) {
  struct MethodWrapper {  // wrapperobject of Objects/descrobject.c; the same in all versions
    PyObject head;
    PyWrapperDescrObject* of;
    PyObject* self;
  };
  static PyTypeObject* const kType = [] {
    PyObject* one = PyObject_GetAttrString(Py_None, "__init__");
    PyTypeObject* type = one ? Py_TYPE(one) : nullptr;  // (in C: it stays)
    if (!one) PyErr_Clear();
    Py_XDECREF(one);
    return type;
  }();
  if (Py_TYPE(callee) != kType) return false;
  const PyWrapperDescrObject* of = reinterpret_cast<MethodWrapper*>(callee)->of;
  return of->d_wrapped == reinterpret_cast<void*>(PyBaseObject_Type.tp_init) && std::string_view(of->d_base->name) == "__init__";
}

}  // namespace dalsegno::replay
