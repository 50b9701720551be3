// From the live objects to the typed trace: what infer() has to know of them.
#include <cstring>

#include "numpy/dtypes.h"
#include "replay/lower/lower.h"

namespace dalsegno::replay {
namespace {

typed::Type type_named(const PyObject* type) {
  const std::pair<const PyTypeObject*, typed::Type> kTypes[] = {{&PyLong_Type, typed::Type::kInt},
                                                                {&PyFloat_Type, typed::Type::kFloat},
                                                                {&PyBool_Type, typed::Type::kBool},
                                                                {&PyRangeIter_Type, typed::Type::kRangeIterator}};
  for (auto [known, name] : kTypes)
    if (reinterpret_cast<const PyObject*>(known) == type) return name;
  DType dtype;
  if (!numpy::scalar_dtype(reinterpret_cast<const PyTypeObject*>(type), &dtype)) return typed::Type::kOther;
  return static_cast<typed::Type>(typed::rep_of_dtype(dtype));
}

typed::ObjectFacts facts_of(PyObject* object) {
  typed::ObjectFacts facts;
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
