// What takes a fold: generators, maps, containers by a key.
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "hook/generators.h"
#include "hook/hook.h"
#include "hook/lookups.h"
#include "replay/machine/fold_machine.h"
#include "replay/machine/fold_numbers.h"
#include "replay/machine/fold_order.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {

using namespace folds;

PyObject* own_builtin(const char* name) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), name);
  if (!found || !PyCFunction_CheckExact(found)) return nullptr;
  PyObject* of = PyCFunction_GET_SELF(found);
  const bool own = of && PyModule_CheckExact(of) && std::strcmp(PyModule_GetName(of), "builtins") == 0;
  return own && std::strcmp(reinterpret_cast<PyCFunctionObject*>(found)->m_ml->ml_name, name) == 0 ? found : nullptr;
}

PyObject* own_method(PyTypeObject* type, const char* name) {
  PyObject* text = PyUnicode_InternFromString(name);
  PyObject* found = text ? _PyType_Lookup(type, text) : nullptr;
  Py_XDECREF(text);
  PyErr_Clear();
  return found;
}

namespace {

// Of a map() over one iterator: that, and the function; borrowed.
struct Mapped {
  PyObject *iterators = nullptr, *function = nullptr;
};
int take_part(PyObject* part, void* mapped) {
  auto* to = static_cast<Mapped*>(mapped);
  (to->iterators ? to->function : to->iterators) = part;
  return 0;
}

constexpr int kMostFruitless = 4;

// The times in a row that something was done in vain with a code; null: it is none that is done, or once more would be in vain, too.
int* chances_of(PyCodeObject* python, bool generator) {
  FoldCode* code = fold_code(python, generator);
  return code && code->fruitless <= kMostFruitless ? &code->fruitless : nullptr;
}

bool counted(bool done, int* fruitless) {
  if (fruitless) *fruitless = done || *hook::eval_breaker() ? 0 : *fruitless + 1;
  return done;
}
PyObject* counted(PyObject* made, int* fruitless) { return counted(made != nullptr, fruitless), made; }

// Of what is called with items; false: it is not to be tried.
bool may_apply(PyObject* callee, int** fruitless) {
  if (!PyFunction_Check(callee)) return PyCFunction_CheckExact(callee) || Py_IS_TYPE(callee, &PyMethodDescr_Type) || PyType_Check(callee);
  *fruitless = chances_of(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callee)), false);
  return *fruitless != nullptr;
}

PyObject* fold_map(FoldInto into, PyObject* map, PyObject* with) {
  Mapped of;
  int* fruitless = nullptr;
  forget_flags();
  PyMap_Type.tp_traverse(map, take_part, &of);
  if (!of.function || !PyTuple_CheckExact(of.iterators) || PyTuple_GET_SIZE(of.iterators) != 1 || Py_REFCNT(of.iterators) > 1)
    return nullptr;
  if (!may_apply(of.function, &fruitless)) return nullptr;
  ArrayViews views;
  Result result(into, &views, with);
  return counted(result.begin() && Run(&result, &views).map(of.function, PyTuple_GET_ITEM(of.iterators, 0)) && flags_are_quiet()
                     ? result.take()
                     : nullptr,
                 fruitless);
}

// What such a container's iterator gives, one after the other: a new list; null: it is of another kind.
PyObject* listed(PyObject* of) {
  PyTypeObject* const known[] = {&PyList_Type,    &PyTuple_Type, &PyDict_Type,      &PySet_Type,      &PyFrozenSet_Type,
                                 &PyUnicode_Type, &PyRange_Type, &PyDictItems_Type, &PyDictKeys_Type, &PyDictValues_Type};
  const bool is = std::find(std::begin(known), std::end(known), Py_TYPE(of)) != std::end(known);
  PyObject* list = is ? PySequence_List(of) : nullptr;
  if (!list) PyErr_Clear();
  return list;
}

// The order of what the list or tuple holds, by a key that may be tried; false: not known.
bool order_of(PyObject* sequence, PyObject* key, int* fruitless, bool reverse, std::vector<int32_t>* order) {
  forget_flags();
  Items items;
  std::vector<Slot> keys;
  keys.reserve(static_cast<size_t>(Py_SIZE(sequence)));
  Run run(nullptr, nullptr);
  const bool known =
      items.over_sequence(sequence, 0, false) && run.keys(&items, key, &keys) && flags_are_quiet() && sort(keys, reverse, order);
  PyErr_Clear();
  return counted(known, fruitless);
}

}  // namespace

PyObject* fold_by_key(FoldInto into, PyObject* iterable, PyObject* key) {
  int* fruitless = nullptr;
  if (!may_apply(key, &fruitless)) return nullptr;
  forget_flags();
  const bool sequence = PyList_CheckExact(iterable) || PyTuple_CheckExact(iterable), numbers = PyRange_Check(iterable);
  PyObject* of = sequence ? Py_NewRef(iterable) : numbers ? PyObject_GetIter(iterable) : listed(iterable);
  PyObject* made = nullptr;
  if (of) {
    Items items;
    Slot best{};
    Run run(nullptr, nullptr);
    const bool found = (numbers ? items.over_iterator(of) : items.over_sequence(of, 0, false)) &&
                       run.by_key(into == FoldInto::kMin ? Py_LT : Py_GT, &items, key, &best);
    made = found && flags_are_quiet() ? object_of(best) : nullptr;
  }
  Py_XDECREF(of);
  PyErr_Clear();
  return counted(made, fruitless);
}

PyObject* fold_sorted(PyObject* iterable, PyObject* key, PyObject* reverse) {
  int* fruitless = nullptr;
  PyObject* list = may_apply(key, &fruitless) && (!reverse || PyBool_Check(reverse)) ? listed(iterable) : nullptr;
  std::vector<int32_t> order;
  if (list && !order_of(list, key, fruitless, reverse == Py_True, &order)) Py_CLEAR(list);
  if (list) put_in_order(list, order);
  return list;
}

namespace {

// (Finalisers could find it, and fill it.)
struct Emptied {
  explicit Emptied(PyObject* of) : list(of), n(Py_SIZE(of)) { Py_SET_SIZE(list, 0); }
  ~Emptied() { Py_SET_SIZE(list, n); }
  Emptied(const Emptied&) = delete;
  const NoCollection no_collection;
  PyObject* list;
  Py_ssize_t n;
};

}  // namespace

// (While the keys are found the list is empty, as list_sort_impl() of Objects/listobject.c has it.)
bool fold_sort(PyObject* list, PyObject* key, PyObject* reverse) {
  int* fruitless = nullptr;
  if (!may_apply(key, &fruitless) || !PyList_CheckExact(list) || (reverse && !PyBool_Check(reverse))) return false;
  PyObject* items = PyList_AsTuple(list);
  if (!items) return PyErr_Clear(), false;
  std::vector<int32_t> order;
  bool known;
  {
    const Emptied emptied(list);
    known = order_of(items, key, fruitless, reverse == Py_True, &order);
  }
  Py_DECREF(items);
  if (known) put_in_order(list, order);
  return known;
}

PyObject* fold_items(FoldInto into, PyObject* sequence) {
  Items items;
  if (!items.over_sequence(sequence, 0, false)) return nullptr;
  Result result(into, nullptr);
  forget_flags();
  for (Slot item{};;) {
    const int next = items.next(&item, nullptr);
    if (next <= 0) return next == 0 && flags_are_quiet() ? result.take() : nullptr;
    if (result.adds(item)) continue;
    const Result::Verdict verdict = result.add(item);
    if (verdict != Result::kGoOn) return verdict == Result::kEnough && flags_are_quiet() ? result.take() : nullptr;
  }
}

namespace {

// Of a generator's code, which has chances yet. As Run::generator().
template <class Cell>
PyObject* fold_code_of(FoldInto into, FoldCode* code, PyObject* iterator, Cell cell, PyObject* globals, PyObject* builtins,
                       PyObject* with) {
  ArrayViews views;
  PyObject* start = into == FoldInto::kJoin ? nullptr : with;
  Result result(into, &views, with);
  forget_flags();
  const bool done = result.begin() && Run(&result, &views).generator(*code, iterator, cell, globals, builtins) &&
                    (!start || result.added_to(start)) && flags_are_quiet();
  return counted(done ? result.take() : nullptr, &code->fruitless);
}

}  // namespace

PyObject* fold(FoldInto into, const Unmade& of, PyObject* with) {
  if (!chances_of(of.code, true)) return nullptr;
  FoldCode& code = *fold_code(of.code, true);
  if (code.first_cell < code.variables && (!of.closure || PyTuple_GET_SIZE(of.closure) != code.variables - code.first_cell)) return nullptr;
  const auto cell = [&](int k) { return PyTuple_GET_ITEM(of.closure, k); };
  return fold_code_of(into, &code, of.iterator, cell, of.globals, nullptr, with);
}

PyObject* fold(FoldInto into, PyObject* generator, PyObject* with) {
  if (Py_REFCNT(generator) > 1) return nullptr;
  if (Py_IS_TYPE(generator, &PyMap_Type)) return with && into == FoldInto::kSum ? nullptr : fold_map(into, generator, with);
  PyFunctionObject* function = nullptr;
  hook::Slot* variables = PyGen_CheckExact(generator) ? hook::variables_of_unborn(generator, &function) : nullptr;
  auto* python = variables ? reinterpret_cast<PyCodeObject*>(function->func_code) : nullptr;
  if (!python || !chances_of(python, true)) return nullptr;
  FoldCode& code = *fold_code(python, true);
  const auto cell = [&](int k) { return variables[code.first_cell + k].get(); };
  PyObject* made = fold_code_of(into, &code, variables[0].get(), cell, function->func_globals, function->func_builtins, with);
  if (made) hook::never_begins(generator);
  return made;
}

}  // namespace dalsegno::replay
