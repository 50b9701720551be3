// From the live objects to the typed trace: what infer() has to know of them.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "numpy/api.h"
#include "replay/lower/lower.h"
#include "replay/machine/rep_types.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

// A type whose values are unboxed has the number of their representation.
typed::Type type_named(const PyObject* object) {
  const auto* type = reinterpret_cast<const PyTypeObject*>(object);
  const std::pair<const PyTypeObject*, typed::Type> kContainers[] = {{&PyRangeIter_Type, typed::Type::kRangeIterator},
                                                                     {&PyListIter_Type, typed::Type::kListIterator},
                                                                     {&PyTupleIter_Type, typed::Type::kTupleIterator},
                                                                     {&PyList_Type, typed::Type::kList},
                                                                     {&PyTuple_Type, typed::Type::kTuple},
                                                                     {&PyUnicode_Type, typed::Type::kText},
                                                                     {&PyBytes_Type, typed::Type::kBytes},
                                                                     {&PyByteArray_Type, typed::Type::kBytearray}};
  for (auto [known, name] : kContainers)
    if (const bool laid_out = hook::g_sequence_iterators || (known != &PyListIter_Type && known != &PyTupleIter_Type);
        laid_out && known == type)
      return name;
  return static_cast<typed::Type>(rep_of(type));
}

// Module and name of a function as its C code has them: nothing written in Python changes that.
bool is_function(PyObject* object, const char* module, const char* name) {
  if (!PyCFunction_CheckExact(object)) return false;
  const auto* function = reinterpret_cast<PyCFunctionObject*>(object);
  if (std::strcmp(function->m_ml->ml_name, name) != 0 || !function->m_self || !PyModule_Check(function->m_self)) return false;
  const PyModuleDef* def = PyModule_GetDef(function->m_self);
  return def && def->m_name && std::strcmp(def->m_name, module) == 0;
}

bool is_type(PyObject* object, const char* name) {
  for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyRange_Type})
    if (reinterpret_cast<PyObject*>(type) == object) return std::strcmp(type->tp_name, name) == 0;
  return false;
}

bool is_method(PyObject* object, const PyTypeObject* type, const char* name) {
  return Py_IS_TYPE(object, &PyMethodDescr_Type) && PyDescr_TYPE(object) == type &&
         PyUnicode_CompareWithASCIIString(PyDescr_NAME(object), name) == 0;
}

// A Python function of NumPy's own that hands its array on to one in C.
bool is_of_numpy(PyObject* function, const char* name) {
  constexpr const char* kModules[] = {"numpy._core.fromnumeric", "numpy._core.numeric", "numpy.lib._twodim_base_impl",
                                      "numpy.linalg._linalg"};
  if (!PyFunction_Check(function)) return false;
  PyObject* module = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return module && PyUnicode_Check(module) &&
         std::any_of(std::begin(kModules), std::end(kModules),
                     [&](const char* known) { return PyUnicode_CompareWithASCIIString(module, known) == 0; }) &&
         PyUnicode_CompareWithASCIIString(code->co_name, name) == 0;
}

// NumPy's function of this name as its C code has it, whatever the module's name is bound to now.
bool is_numpy_function(PyObject* object, const char* name) {
  if (PyObject_TypeCheck(object, &PyUFunc_Type)) {
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(object);
    return ufunc->ntypes > 0 && ufunc->name != nullptr && std::strcmp(ufunc->name, name) == 0;
  }
  if (is_function(object, "_multiarray_umath", name) || is_of_numpy(object, name)) return true;
  if (std::strcmp(Py_TYPE(object)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return false;
  PyObject* implementation = PyObject_GetAttrString(object, "_implementation");
  const bool same = implementation && (is_function(implementation, "_multiarray_umath", name) || is_of_numpy(implementation, name));
  Py_XDECREF(implementation);
  PyErr_Clear();
  return same;
}

typed::Callee callee_of(PyObject* object) {
  for (int i = 1; i < static_cast<int>(typed::Callee::kCount); ++i) {
    const auto callee = static_cast<typed::Callee>(i);
    if (callee == typed::Callee::kRange && !hook::g_range_known) continue;
    const char *module = typed::callee_module(callee), *name = typed::callee_name(callee);
    if (is_function(object, module, name)) return callee;
    if (std::strcmp(module, "type") == 0 && is_type(object, name)) return callee;
    if (std::strcmp(module, "ndarray") == 0 && is_method(object, &PyArray_Type, name)) return callee;
    if (std::strcmp(module, "numpy") == 0 && is_numpy_function(object, name)) return callee;
    for (const PyTypeObject* type : {&PyList_Type, &PyDict_Type, &PySet_Type})
      if (std::strcmp(module, type->tp_name) == 0 && is_method(object, type, name)) return callee;
  }
  return typed::Callee::kNone;
}

// The items of a tuple of ints.
std::vector<int64_t> positions_of(PyObject* object) {
  std::vector<int64_t> positions;
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > typed::kMaxElementRank) return positions;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    Reg position;
    if (!unbox(Rep::kInt, PyTuple_GET_ITEM(object, i), &position)) return {};
    positions.push_back(position.i);
  }
  return positions;
}

typed::ObjectFacts facts_of(PyObject* object) {
  typed::ObjectFacts facts;
  facts.callee = callee_of(object);
  facts.positions = positions_of(object);
  facts.none = object == Py_None;
  facts.ellipsis = object == Py_Ellipsis;
  if (PyObject_TypeCheck(object, &PyUFunc_Type)) facts.ufunc = recorder::callee_facts(object).fn;
  if (facts.ufunc != ArrayFn::none && facts.callee == typed::Callee::kNone) facts.callee = typed::Callee::kUfunc;
  facts.names_out = PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 1 && PyUnicode_Check(PyTuple_GET_ITEM(object, 0)) &&
                    PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(object, 0), "out") == 0;
  facts.names = type_named(object);
  facts.type = type_named(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  facts.number = PyLong_Check(object) || PyFloat_Check(object) || facts.type != typed::Type::kOther;
  const Rep rep = typed::rep_of_type(facts.type);
  Reg value{};
  facts.unboxes = rep != Rep::kNone && unbox(rep, object, &value);
  if (facts.unboxes) std::memcpy(&facts.bits, &value, sizeof facts.bits);
  return facts;
}

}  // namespace

// Objects of the user's classes may be given another class, and so may modules.
bool may_change_class(PyObject* type) {
  return type == reinterpret_cast<PyObject*>(&PyModule_Type) ||
         (type && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE));
}

// Side traces: bind_params() has said how the parent holds the parameters. False: the trace cannot be lowered.
bool Lowering::infer() {
  typed::Knowledge known;
  known.box_ints = p_->box_ints;
  known.python_first = python_first_;
  for (PyObject* o : p_->live->objects) known.objects.push_back(facts_of(o));
  for (ValueId v = 0; v < t().n_params; ++v) known.params.push_back(values_[v].rep);
  typed_ = typed::infer(t(), std::move(known));
  if (!typed::verify(typed_).empty()) return false;
  for (size_t v = 0; v < values_.size(); ++v) static_cast<typed::ValueForm&>(values_[v]) = typed_.values[v];
  return true;
}

}  // namespace dalsegno::replay
