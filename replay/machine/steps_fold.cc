// Steps for builtins that use up a generator.
#include <algorithm>
#include <vector>

#include "numpy/dtypes.h"
#include "replay/machine/exec.h"
#include "replay/machine/fold.h"

namespace dalsegno::replay {
namespace {

// They have been held for the generator.
void drop_operands(const UsedUp& of, Reg* r) {
  Py_CLEAR(r[of.iterator].o);
  if (of.closure >= 0) Py_CLEAR(r[of.closure].o);
}

// (Near the recursion limit the expression's frame, or its functions', may have no room.)
bool has_room(PyThreadState* thread) { return hook::recursion_remaining(thread) > ProgramImpl::deepest + kMostFoldLevels + 1; }

// Where the generator is among a call's operands: behind the callee, or behind what the callee joins with.
template <FoldInto into>
constexpr int kOperand = into == FoldInto::kJoin ? 2 : 1;

// False: it is not known how it is done with that.
template <FoldInto into>
bool takes(const Step& s, const Reg* r, PyObject** with) {
  *with = into == FoldInto::kJoin ? r[s.list[1]].o : nullptr;
  return !*with || PyUnicode_CheckExact(*with);
}

template <FoldInto into>
const Step* fold_here(const Step* s, Reg* r, Machine& m) {
  PyObject *&generator = r[s->list[kOperand<into>]].o, *with;
  PyObject* made = has_room(m.thread) && takes<into>(*s, r, &with) ? fold(into, generator, with) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  Py_SETREF(generator, Py_NewRef(Py_None));  // it dies with the call
  return s + 1;
}

// list[2]: what the sum begins with.
const Step* fold_onto_here(const Step* s, Reg* r, Machine& m) {
  PyObject*& generator = r[s->list[1]].o;
  PyObject* made =
      has_room(m.thread) && numpy::is_exact_array(r[s->list[2]].o) ? fold(FoldInto::kSum, generator, r[s->list[2]].o) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  Py_SETREF(generator, Py_NewRef(Py_None));  // it dies with the call
  return s + 1;
}

PyObject* reverse_of(const Step& s, const Reg* r) { return s.n > 3 ? r[s.list[3]].o : nullptr; }

// The builtin is called; sum() computes into dying temporaries where eager NumPy does.
template <FoldInto into>
bool call_builtin(const Step& s, Reg* r) {
  return into == FoldInto::kSum ? exec_sum(s, r) : exec_call(s, r);
}

// Of a generator that is not made; else, once it is, the call.
template <FoldInto into>
bool fold_unmade(const Step& s, Reg* r) {
  const UsedUp& of = *s.used_up;
  if (r[of.generator->reg].o) return call_builtin<into>(s, r);
  PyObject *closure = of.closure < 0 ? nullptr : r[of.closure].o, *with;
  if (!has_room(PyThreadState_Get()) || !takes<into>(s, r, &with)) return false;
  PyObject* made = fold(into, {reinterpret_cast<PyCodeObject*>(r[of.code].o), of.globals, closure, r[of.iterator].o}, with);
  if (!made) return false;
  r[s.dst].o = made;
  drop_operands(of, r);
  return true;
}

template <FoldInto into>
const Step* fold_unmade_here(const Step* s, Reg* r, Machine& m) {
  const UsedUp& of = *s->used_up;
  if (!r[of.generator->reg].o) {
    if (fold_unmade<into>(*s, r)) return s + 1;
    if (!build(*of.generator, r)) throw std::bad_alloc();
  }
  drop_operands(of, r);  // (a release before may have made it)
  return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
}

// list[1]: what is gone through; list[2]: the function; list[3]: reverse, of kSorted, where s->n > 3.
template <FoldInto into>
const Step* fold_by_key_here(const Step* s, Reg* r, Machine& m) {
  PyObject *of = r[s->list[1]].o, *key = r[s->list[2]].o, *made = nullptr;
  if (has_room(m.thread)) made = into == FoldInto::kSorted ? fold_sorted(of, key, reverse_of(*s, r)) : fold_by_key(into, of, key);
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  return s + 1;
}

const Step* fold_sort_here(const Step* s, Reg* r, Machine& m) {
  const bool done = has_room(m.thread) && fold_sort(r[s->list[1]].o, r[s->list[2]].o, reverse_of(*s, r));
  if (!done) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = Py_NewRef(Py_None);
  return s + 1;
}

// Of a list or tuple of numbers.
template <FoldInto into>
bool fold_of_items(const Step& s, Reg* r) {
  PyObject* made = fold_items(into, r[s.list[1]].o);
  if (made) return give(s, r, made);
  return call_builtin<into>(s, r);
}

struct Row {
  PyObject* (*callee)();  // borrowed; null where this interpreter has another
  int operand;
  StepFn step;
  Quick unmade;
  Exec of_items = nullptr;
};

template <PyTypeObject* of>
PyObject* type() {
  return reinterpret_cast<PyObject*>(of);
}

template <FoldInto into>
constexpr Row row(PyObject* (*callee)(), Exec of_items = nullptr) {
  return {callee, kOperand<into>, fold_here<into>, {fold_unmade_here<into>, fold_unmade<into>}, of_items};
}
constexpr Row kRows[] = {
    row<FoldInto::kSum>([] { return own_builtin("sum"); }, fold_of_items<FoldInto::kSum>),
    row<FoldInto::kMin>([] { return own_builtin("min"); }, fold_of_items<FoldInto::kMin>),
    row<FoldInto::kMax>([] { return own_builtin("max"); }, fold_of_items<FoldInto::kMax>),
    row<FoldInto::kAny>([] { return own_builtin("any"); }, fold_of_items<FoldInto::kAny>),
    row<FoldInto::kAll>([] { return own_builtin("all"); }, fold_of_items<FoldInto::kAll>),
    row<FoldInto::kList>(type<&PyList_Type>),
    row<FoldInto::kTuple>(type<&PyTuple_Type>),
    row<FoldInto::kSet>(type<&PySet_Type>),
    row<FoldInto::kFrozenSet>(type<&PyFrozenSet_Type>),
    row<FoldInto::kDict>(type<&PyDict_Type>),
    row<FoldInto::kSorted>([] { return own_builtin("sorted"); }),
    row<FoldInto::kJoin>([] { return own_method(&PyUnicode_Type, "join"); }),
};

const Row* row_of(PyObject* callee) {
  if (!PyCFunction_CheckExact(callee) && !PyType_Check(callee) && !Py_IS_TYPE(callee, &PyMethodDescr_Type)) return nullptr;
  static const std::vector<PyObject*> kCallees = [] {
    std::vector<PyObject*> all;
    for (const Row& row : kRows) all.push_back(row.callee());
    return all;
  }();
  const auto found = std::find(kCallees.begin(), kCallees.end(), callee);
  return found == kCallees.end() ? nullptr : &kRows[found - kCallees.begin()];
}

bool hold(const Step& s, Reg* r) { return give(s, r, Py_NewRef(r[s.a].o)); }
const Step* step_hold(const Step* s, Reg* r, Machine&) { return hold(*s, r), s + 1; }

}  // namespace

Quick hold_step() { return {step_hold, hold}; }

int operand_used_up(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->operand : 0;
}

Quick fold_unmade_step(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->unmade : Quick{};
}

Exec fold_of_items(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->of_items : nullptr;
}

StepFn fold_step(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->step : nullptr;
}

StepFn fold_onto_step(PyObject* callee) { return callee == own_builtin("sum") ? fold_onto_here : nullptr; }

StepFn fold_by_key_step(PyObject* callee, bool reverses) {
  static PyObject* const kSort = own_method(&PyList_Type, "sort");
  if (callee == own_builtin("sorted")) return fold_by_key_here<FoldInto::kSorted>;
  if (callee == kSort) return fold_sort_here;
  if (reverses) return nullptr;
  if (callee == own_builtin("min")) return fold_by_key_here<FoldInto::kMin>;
  return callee == own_builtin("max") ? fold_by_key_here<FoldInto::kMax> : nullptr;
}

}  // namespace dalsegno::replay
