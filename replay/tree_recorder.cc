// What a recorder asks of its tree: loops that there are, what is called in plain functions' places, what may be given up.
#include <algorithm>

#include "replay/jit.h"
#include "replay/settings.h"
#include "replay/tree.h"

namespace dalsegno::replay {

int Tree::find_loop(const recorder::AnchorKey& key, const recorder::SlotTypes& types) const {
  int first = -1, count = 0;
  for (const auto& p : *programs_) {
    if (!p || p->trace().data.anchor != AnchorKind::loop) continue;
    if (recorder::anchor_of(p->trace(), p->trace().data.entry) != key) continue;
    if (recorder::takes(p->trace(), types)) return p->trace().data.number;
    if (first < 0) first = p->trace().data.number;
    ++count;
  }
  return count < recorder::kMaxLoopsAtAPlace ? -1 : first;
}

recorder::Options Tree::recorder_options() {
  recorder::Options o;
  o.max_ops = settings().max_ops;
  o.max_depth = settings().max_depth;
  o.first_number = static_cast<int>(programs_->size());
  o.callable = callable_;
  o.shape = options_.any ? function_ : nullptr;
  o.companion = [this](PyFunctionObject* function, bool any) -> recorder::Companion {
    if (any == options_.any && (any ? takes(function) : function == function_)) {
      by_plain_name_ = true;
      return {Py_NewRef(callable_), true, true};
    }
    PyRef& companion = companions_[any ? function->func_code : reinterpret_cast<PyObject*>(function)];
    if (!companion)
      companion = PyRef(any ? companion_of(function->func_code, function->func_globals, options_.store)
                            : companion_of(reinterpret_cast<PyObject*>(function), nullptr, options_.store));
    PyErr_Clear();
    Jitted* const jitted = companion ? jitted_at(companion.get()) : nullptr;
    if (!jitted || (any && !jitted->takes(function))) return {};
    return {Py_NewRef(companion.get()), jitted->has_entry(), jitted->recurses()};
  };
  o.recursion = [this] { return abandon_recursion(); };
  o.loops_shortly = [](PyObject* companion) { return jitted_at(companion)->loops_shortly(); };
  o.gives_back = [this] { recording_ = false; };
  o.find_loop = [this](const recorder::AnchorKey& key, const recorder::SlotTypes& types) { return find_loop(key, types); };
  return o;
}

bool Tree::recurses() const {
  const auto calls_it = [this](const auto& program) {
    const std::vector<PyObject*>* objects = program ? &program->trace().objects : nullptr;
    return objects && std::find(objects->begin(), objects->end(), callable_) != objects->end();
  };
  return by_plain_name_ || std::any_of(programs_->begin(), programs_->end(), calls_it);
}

// Found out when it has been called, once.
bool Tree::loops_shortly() {
  if (!loops_shortly_ && counters_.calls > 0) {
    uint64_t turns = 0;
    for (const auto& program : *programs_)
      if (program) turns += turns_of(*program);
    loops_shortly_ = turns <= recorder::kFewTurns * counters_.calls;
  }
  return loops_shortly_.value_or(false);
}

// A recursive function's calls of itself come here, too: one that does less is recorded instead, with nothing of this recording kept.
bool Tree::abandon_recursion() {
  constexpr int kMost = 8;
  if (nested_ == 0 || ++abandoned_ > kMost) return false;
  pass_over_ = abandoned_;
  return true;
}

}  // namespace dalsegno::replay
