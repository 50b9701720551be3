// From the live objects to the typed trace: what infer() has to know of them.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "hook/random_numbers.h"
#include "numpy/api.h"
#include "numpy/random.h"
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
  if (PyType_Check(object) && recorder::is_array_module_type(const_cast<PyTypeObject*>(type))) return typed::Type::kNumericArray;
  return typed::type_of_rep(rep_of(type));
}

// What an object is called in the table of callees.
struct Known {
  std::string_view module, name;
  bool operator<(const Known& other) const { return std::tie(module, name) < std::tie(other.module, other.name); }
};

std::string_view ascii(PyObject* text) {
  if (!text || !PyUnicode_Check(text) || !PyUnicode_IS_COMPACT_ASCII(text)) return {};
  return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
}

// Module and name of a function as its C code has them: nothing written in Python changes that.
Known function_in_c(PyObject* object) {
  const auto* function = reinterpret_cast<PyCFunctionObject*>(object);
  if (!function->m_self || !PyModule_Check(function->m_self)) return {};
  const PyModuleDef* def = PyModule_GetDef(function->m_self);
  if (!def || !def->m_name) return {};
  const std::string_view module = def->m_name;
  return {module == "_multiarray_umath" ? "numpy" : module, function->m_ml->ml_name};
}

// A Python function of NumPy's own that hands its array on to one in C.
Known function_of_numpy(PyObject* function) {
  constexpr std::string_view kModules[] = {"numpy._core.fromnumeric",    "numpy._core.numeric",          "numpy._core.shape_base",
                                           "numpy.lib._shape_base_impl", "numpy.lib._twodim_base_impl",  "numpy.linalg._linalg",
                                           "numpy.lib._histograms_impl", "numpy.lib._function_base_impl"};
  const std::string_view module = ascii(PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__"));
  if (std::find(std::begin(kModules), std::end(kModules), module) == std::end(kModules)) return {};
  return {"numpy", ascii(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_name)};
}

Known known_as(PyObject* object) {
  if (PyCFunction_CheckExact(object)) return function_in_c(object);
  return PyFunction_Check(object) ? function_of_numpy(object) : Known{};
}

typed::Callee callee_called(const Known& known) {
  static const auto* const callees = [] {
    auto* table = new std::map<Known, typed::Callee>;  // never destroyed
    for (int i = 1; i < static_cast<int>(typed::Callee::kCount); ++i) {
      const auto callee = static_cast<typed::Callee>(i);
      table->emplace(Known{typed::callee_module(callee), typed::callee_name(callee)}, callee);
    }
    // Older names, of functions of their own that do the same (numpy/_core/fromnumeric.py).
    table->emplace(Known{"numpy", "amax"}, typed::Callee::kLargest);
    table->emplace(Known{"numpy", "amin"}, typed::Callee::kLeast);
    table->emplace(Known{"numpy", "around"}, typed::Callee::kRoundTo);
    table->emplace(Known{"generic", "conj"}, typed::Callee::kScalarConjugate);
    table->emplace(Known{"numpy", "conjugate"}, typed::Callee::kScalarConjugate);  // the ufunc
    return table;
  }();
  const auto found = callees->find(known);
  if (found == callees->end() || (found->second == typed::Callee::kRange && !hook::g_range_known)) return typed::Callee::kNone;
  return found->second;
}

// np.count_nonzero gives an int before NumPy 2.4, and its own integer since.
bool counts_in_int64(PyObject* count_nonzero) {
  static const bool counts = [&] {
    PyObject* counted = PyObject_CallFunction(count_nonzero, "i", 1);
    const bool ours = counted && Py_IS_TYPE(counted, &PyInt64ArrType_Type);
    Py_XDECREF(counted);
    PyErr_Clear();
    return ours;
  }();
  return counts;
}

typed::Callee drawn_by_numpy(PyObject* callee) {
  using enum typed::Callee;
  const numpy::Draws draws = numpy::drawn_by(callee);
  if (draws == numpy::Draws::kNothing || draws == numpy::Draws::kOther) return kNone;
  struct Row {
    numpy::Draws draws;
    typed::Callee own, bound;
  };
  constexpr Row kRows[] = {{numpy::Draws::kNumber, kNumpyRandom, kBoundRandom},
                           {numpy::Draws::kBetween, kUniform, kBoundUniform},
                           {numpy::Draws::kNormal, kNormal, kBoundNormal},
                           {numpy::Draws::kExponential, kExponential, kBoundExponential},
                           {numpy::Draws::kStandardNormal, kStandardNormal, kBoundStandardNormal},
                           {numpy::Draws::kStandardExponential, kStandardExponential, kBoundStandardExponential},
                           {numpy::Draws::kInt, kRandint, kBoundRandint},
                           {numpy::Draws::kInt64, kIntegers, kNone}};
  const Row& row = *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return one.draws == draws; });
  return PyMethod_Check(callee) ? row.bound : row.own;
}

// NumPy's functions as its C code has them, whatever the module's names are bound to now.
typed::Callee callee_of(PyObject* object) {
  if (const hook::Drawn drawn = hook::drawn_by(object); drawn != hook::Drawn::kNothing)
    return drawn == hook::Drawn::kBits ? typed::Callee::kRandomBits : typed::Callee::kRandom;
  if (const typed::Callee drawn = drawn_by_numpy(object); drawn != typed::Callee::kNone) return drawn;
  for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyComplex_Type, &PyRange_Type})
    if (reinterpret_cast<PyObject*>(type) == object) return callee_called({"type", type->tp_name});
  if (Py_IS_TYPE(object, &PyMethodDescr_Type)) {
    if (PyDescr_TYPE(object) == &PyGenericArrType_Type) return callee_called({"generic", ascii(PyDescr_NAME(object))});
    if (PyDescr_TYPE(object) == &PyArray_Type) return callee_called({"ndarray", ascii(PyDescr_NAME(object))});
    for (const PyTypeObject* type : {&PyList_Type, &PyDict_Type, &PySet_Type, &PyComplex_Type, &PyLong_Type, &PyUnicode_Type})
      if (PyDescr_TYPE(object) == type) return callee_called({type->tp_name, ascii(PyDescr_NAME(object))});
    return typed::Callee::kNone;
  }
  if (PyObject_TypeCheck(object, &PyUFunc_Type)) {
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(object);
    return ufunc->ntypes > 0 && ufunc->name != nullptr ? callee_called({"numpy", ufunc->name}) : typed::Callee::kNone;
  }
  if (std::strcmp(Py_TYPE(object)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return callee_called(known_as(object));
  PyObject* implementation = PyObject_GetAttrString(object, "_implementation");
  const Known known = implementation ? known_as(implementation) : Known{};
  const typed::Callee callee = known.module == "numpy" ? callee_called(known) : typed::Callee::kNone;
  Py_XDECREF(implementation);
  PyErr_Clear();
  return callee == typed::Callee::kCountNonzero && !counts_in_int64(object) ? typed::Callee::kNone : callee;
}

bool names_only(PyObject* object, const char* name) {
  return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 1 && PyUnicode_Check(PyTuple_GET_ITEM(object, 0)) &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(object, 0), name) == 0;
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
  static PyObject* const kReduce = PyDict_GetItemString(PyUFunc_Type.tp_dict, "reduce");  // borrowed; the type keeps it
  facts.reduces = object == kReduce;
  if (facts.ufunc != ArrayFn::none && facts.callee == typed::Callee::kNone) facts.callee = typed::Callee::kUfunc;
  if (PyType_Check(object) && typed::is_numpy_scalar(rep_of(reinterpret_cast<PyTypeObject*>(object))))
    facts.callee = typed::Callee::kScalar;
  facts.names_out = names_only(object, "out");
  facts.names_ddof = names_only(object, "ddof");
  facts.uses_up = operand_used_up(object);
  facts.names = type_named(object);
  facts.type = type_named(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  facts.number = PyLong_Check(object) || PyFloat_Check(object) || facts.type != typed::Type::kOther;
  const Rep rep = typed::rep_of_type(facts.type);
  Reg value{};
  facts.unboxes = rep != Rep::kNone && unbox(rep, object, &value);
  if (facts.unboxes) std::memcpy(&facts.bits, &value, sizeof facts.bits);
  if (facts.type == typed::Type::kInt && !facts.unboxes) {
    facts.wraps = unbox(Rep::kWrapped, object, &value);
    facts.bits = value.i;
    facts.natural = unbox(Rep::kNatural, object, &value);
    facts.power_64 = facts.bits == 0 && _PyLong_Sign(object) > 0 && _PyLong_NumBits(object) == 65;
  }
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
