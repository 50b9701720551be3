// Steps for builtins that use up a generator.
#include "replay/machine/fold.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {
namespace {

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

// list[1]: what is gone through; list[2]: the function.
template <FoldInto into>
const Step* fold_by_key_here(const Step* s, Reg* r, Machine& m) {
  const bool room = hook::recursion_remaining(m.thread) > ProgramImpl::deepest + kMostFoldLevels + 1;
  PyObject* made = room ? fold_by_key(into, r[s->list[1]].o, r[s->list[2]].o) : nullptr;
  if (!made) return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  return s + 1;
}

struct Row {
  const char* name;
  StepFn step;
};
constexpr Row kRows[] = {{"sum", fold_here<FoldInto::kSum>},
                         {"min", fold_here<FoldInto::kMin>},
                         {"max", fold_here<FoldInto::kMax>},
                         {"any", fold_here<FoldInto::kAny>},
                         {"all", fold_here<FoldInto::kAll>}};

}  // namespace

StepFn fold_step(PyObject* callee) {
  if (callee == reinterpret_cast<PyObject*>(&PyList_Type)) return fold_here<FoldInto::kList>;
  if (callee == reinterpret_cast<PyObject*>(&PyTuple_Type)) return fold_here<FoldInto::kTuple>;
  for (const Row& row : kRows)
    if (callee == own_builtin(row.name)) return row.step;
  return nullptr;
}

StepFn fold_by_key_step(PyObject* callee) {
  if (callee == own_builtin("min")) return fold_by_key_here<FoldInto::kMin>;
  return callee == own_builtin("max") ? fold_by_key_here<FoldInto::kMax> : nullptr;
}

}  // namespace dalsegno::replay
