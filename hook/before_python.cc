// What is to be done before Python code begins: the interpreter is given another evaluator meanwhile, which does it and gives the usual one
// back.
#include "hook/evaluator.h"
#include "hook/hook.h"

namespace dalsegno::hook {
namespace {

BeforePython* g_innermost = nullptr;  // guarded by the GIL; there is one thread

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* frame, int raised) {
  BeforePython::come();
  return dalsegno_evaluate_as_usual(thread, frame, raised);
}

}  // namespace

bool BeforePython::possible(PyThreadState* thread) {
  if (thread->prev != nullptr || thread->next != nullptr) return false;
  const dalsegno_evaluate now = *dalsegno_evaluator(thread);
  return now == nullptr || now == evaluate;
}

BeforePython::BeforePython(PyThreadState* thread, Show show, void* context)
    : thread_(thread), show_(show), context_(context), outer_(g_innermost) {
  g_innermost = this;
  *dalsegno_evaluator(thread) = evaluate;
}

BeforePython::~BeforePython() {
  g_innermost = outer_;
  dalsegno_evaluate& now = *dalsegno_evaluator(thread_);
  if (now == evaluate || now == nullptr) now = outer_ != nullptr && !outer_->came_ ? evaluate : nullptr;
}

void BeforePython::come() {
  if (g_innermost == nullptr) return;
  *dalsegno_evaluator(g_innermost->thread_) = nullptr;
  for (BeforePython* each = g_innermost; each != nullptr && !each->came_; each = each->outer_) {
    each->came_ = true;
    each->show_(each->context_);
  }
}

}  // namespace dalsegno::hook
