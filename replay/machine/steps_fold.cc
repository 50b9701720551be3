// Steps for builtins that use up a generator.
#include <algorithm>
#include <iterator>

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

template <FoldInto into>
const Step* fold_here(const Step* s, Reg* r, Machine& m) {
  PyObject*& generator = r[s->list[1]].o;
  // (Near the recursion limit the expression's frame, or its functions', may have no room.)
  const bool room = hook::recursion_remaining(m.thread) > ProgramImpl::deepest + kMostFoldLevels + 1;
  PyObject* made = room ? fold(into, generator) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  Py_SETREF(generator, Py_NewRef(Py_None));  // it dies with the call
  return s + 1;
}

// list[2]: what the sum begins with.
const Step* fold_onto_here(const Step* s, Reg* r, Machine& m) {
  PyObject*& generator = r[s->list[1]].o;
  const bool room = hook::recursion_remaining(m.thread) > ProgramImpl::deepest + kMostFoldLevels + 1;
  PyObject* made = room && numpy::is_exact_array(r[s->list[2]].o) ? fold(FoldInto::kSum, generator, r[s->list[2]].o) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  Py_SETREF(generator, Py_NewRef(Py_None));  // it dies with the call
  return s + 1;
}

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
  const bool room = hook::recursion_remaining(PyThreadState_Get()) > ProgramImpl::deepest + kMostFoldLevels + 1;
  PyObject* closure = of.closure < 0 ? nullptr : r[of.closure].o;
  PyObject* made = room ? fold(into, {reinterpret_cast<PyCodeObject*>(r[of.code].o), of.globals, closure, r[of.iterator].o}) : nullptr;
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

// list[1]: what is gone through; list[2]: the function.
template <FoldInto into>
const Step* fold_by_key_here(const Step* s, Reg* r, Machine& m) {
  const bool room = hook::recursion_remaining(m.thread) > ProgramImpl::deepest + kMostFoldLevels + 1;
  PyObject* made = room ? fold_by_key(into, r[s->list[1]].o, r[s->list[2]].o) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
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
  const char* name;
  StepFn step;
  Exec of_items;
  Quick unmade;
};
#define ROW(name, into)                                                                                                               \
  {                                                                                                                                   \
    name, fold_here<FoldInto::into>, fold_of_items<FoldInto::into>, { fold_unmade_here<FoldInto::into>, fold_unmade<FoldInto::into> } \
  }
constexpr Row kRows[] = {ROW("sum", kSum), ROW("min", kMin), ROW("max", kMax), ROW("any", kAny), ROW("all", kAll)};
#undef ROW

const Row* row_of(PyObject* callee) {
  if (!PyCFunction_CheckExact(callee)) return nullptr;
  const Row* found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return callee == own_builtin(row.name); });
  return found == std::end(kRows) ? nullptr : found;
}

bool hold(const Step& s, Reg* r) { return give(s, r, Py_NewRef(r[s.a].o)); }
const Step* step_hold(const Step* s, Reg* r, Machine&) { return hold(*s, r), s + 1; }

}  // namespace

Quick hold_step() { return {step_hold, hold}; }

Quick fold_unmade_step(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->unmade : Quick{};
}

Exec fold_of_items(PyObject* callee) {
  const Row* row = row_of(callee);
  return row ? row->of_items : nullptr;
}

StepFn fold_step(PyObject* callee) {
  if (callee == reinterpret_cast<PyObject*>(&PyList_Type)) return fold_here<FoldInto::kList>;
  if (callee == reinterpret_cast<PyObject*>(&PyTuple_Type)) return fold_here<FoldInto::kTuple>;
  const Row* row = row_of(callee);
  return row ? row->step : nullptr;
}

StepFn fold_onto_step(PyObject* callee) { return callee == own_builtin("sum") ? fold_onto_here : nullptr; }

StepFn fold_by_key_step(PyObject* callee) {
  if (callee == own_builtin("min")) return fold_by_key_here<FoldInto::kMin>;
  return callee == own_builtin("max") ? fold_by_key_here<FoldInto::kMax> : nullptr;
}

}  // namespace dalsegno::replay
