#include "replay/machine/recursion.h"

#include <algorithm>
#include <iterator>

#include "replay/machine/rep_types.h"
#include "replay/machine/run.h"
#include "replay/machine/scalars.h"
#include "replay/settings.h"

namespace dalsegno::replay {
namespace {

constexpr int kLess = 8;                   // code for calls is written sooner than for turns of loops: it takes microseconds
constexpr int32_t kMostTimes = 64;         // it is written anew where it has given up, and there are more traces now
constexpr int64_t kMostCalls = 1 << 17;    // at once: half a millisecond in which nobody looks for signals
constexpr int64_t kMostStack = 128 << 10;  // bytes, of a stack of which at least half is left
constexpr int64_t kMostSkips = 1 << 14;

// kNone: no number that the code knows of.
Rep number_of(const PyTypeObject* type) {
  const Rep rep = rep_of(type);
  return rep == Rep::kInt || rep == Rep::kFloat || rep == Rep::kBool ? rep : Rep::kNone;
}

recursion::Known known_of(PyObject* object, PyObject* itself) {
  recursion::Known known;
  known.itself = object == itself;
  known.code = object == reinterpret_cast<const PyFunctionObject*>(jitted_at(itself)->plain())->func_code;
  if (PyType_Check(object)) known.type = object, known.names = number_of(reinterpret_cast<PyTypeObject*>(object));
  Reg value{};
  const Rep rep = number_of(Py_TYPE(object));
  if (rep != Rep::kNone && unbox(rep, object, &value)) known.rep = rep, known.bits = value.i;
  return known;
}

// Where a branch goes the other way; null: nowhere, or it is no branch.
ProgramImpl* other_way(const ProgramImpl& p, const Exit& exit) {
  const OpKind kind = p.data().ops[exit.op].kind;
  const bool branch = exit.which == 0 && (kind == OpKind::guard_true || kind == OpKind::guard_false);
  return branch ? static_cast<ProgramImpl*>(exit.side) : nullptr;
}

// All programs that branches lead to, the entry first.
std::vector<ProgramImpl*> programs_from(ProgramImpl& entry) {
  std::vector<ProgramImpl*> all = {&entry};
  for (size_t k = 0; k < all.size(); ++k)
    for (const Exit& exit : all[k]->exit_records)
      if (ProgramImpl* side = other_way(*all[k], exit)) all.push_back(side);
  return all;
}

recursion::NumericTrace numeric_trace(const ProgramImpl& p, const std::vector<ProgramImpl*>& all, PyObject* itself) {
  recursion::NumericTrace made;
  made.trace = &p.data();
  for (PyObject* object : p.live->objects) made.objects.push_back(known_of(object, itself));
  for (const Exit& exit : p.exit_records) {
    const auto side = std::find(all.begin(), all.end(), other_way(p, exit));
    if (side != all.end()) made.sides[exit.op] = static_cast<int32_t>(side - all.begin());
  }
  return made;
}

// Which cells that a function closes over hold it? (So it does not die with an argument.)
bool holds_itself(PyObject* object, std::vector<int32_t>* cells) {
  PyObject* closure = PyFunction_Check(object) ? PyFunction_GET_CLOSURE(object) : nullptr;
  for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i)
    if (PyCell_GET(PyTuple_GET_ITEM(closure, i)) == object) cells->push_back(static_cast<int32_t>(i));
  return !cells->empty();
}

// The call's arguments, and what they are: numbers that have an object, too, are numbers.
bool take(const Machine& m, const CallSite& site, recursion::Signature* now, int64_t* arguments) {
  now->params.clear();
  now->own_cells.clear();
  now->result = site.result.rep;
  for (size_t k = 0; k < site.arguments.size(); ++k) {
    const Loc& from = site.arguments[k].from;
    PyObject* object = from.obj >= 0 ? m.r[from.obj].o : nullptr;
    Rep rep = from.raw >= 0 ? from.rep : Rep::kNone;
    Reg value{};
    if (rep != Rep::kNone) {
      value = m.r[from.raw];
    } else if (!object || !(is_leaf_object(object) || (k == 0 && holds_itself(object, &now->own_cells)))) {
      return false;
    } else if (rep = number_of(Py_TYPE(object)); rep == Rep::kNone) {
      value.o = object;
    } else if (!unbox(rep, object, &value)) {
      return false;
    }
    now->params.push_back({rep, rep == Rep::kNone ? Py_TYPE(object) : nullptr});
    arguments[k] = value.i;
  }
  return true;
}

}  // namespace

uint64_t calls_done(Machine& m, const CallSite& site, ProgramImpl& entry, int32_t frames) {
  if (!entry.recursion) entry.recursion = std::make_unique<Recursion>();
  return entry.recursion->run(m, site, entry, frames);
}

bool Recursion::is_due(const CallSite& site) {
  const bool hot = calls_ >= settings().hot_loop / kLess;
  calls_ += !hot;
  if (!settings().native || !hot || site.arguments.size() > recursion::NumericRecursion::kMostParams || site.result.raw < 0) return false;
  return skipped_ == 0 || (--skipped_, false);
}

// Is there code for such arguments?
bool Recursion::suits(ProgramImpl& entry, const recursion::Signature& now, PyObject* itself) {
  if ((programs_ != entry.tree->size() && (!code_ || given_up_)) || (!code_ && now != signature_)) {
    if (times_++ >= kMostTimes) return skipped_ = kMostSkips, false;
    signature_ = now;
    make(entry, itself);
  }
  return code_ && now == signature_;
}

void Recursion::make(ProgramImpl& entry, PyObject* itself) {
  const std::vector<ProgramImpl*> all = programs_from(entry);
  std::vector<recursion::NumericTrace> traces;
  for (const ProgramImpl* p : all) traces.push_back(numeric_trace(*p, all, itself));
  code_ = recursion::NumericRecursion::make(traces, signature_);
  worlds_.clear();
  std::copy_if(all.begin(), all.end(), std::back_inserter(worlds_), [](const ProgramImpl* p) { return !p->folded.empty(); });
  programs_ = entry.tree->size();
  too_long_.fill(0);
  skips_ = 0;
  given_up_ = false;
}

bool Recursion::worlds_hold() const {
  return std::all_of(worlds_.begin(), worlds_.end(), [](ProgramImpl* p) { return p->world_holds(); });
}

// What the function gives back may be the very object that it was given, or its code's. (Small ints and truth values are one object each.)
bool Recursion::may_be_given(const Machine& m, const CallSite& site, const int64_t* arguments, int64_t result) const {
  if (signature_.result == Rep::kBool || (signature_.result == Rep::kInt && result >= -5 && result <= 256)) return false;
  if (code_->may_be_constant(result)) return true;
  if (!code_->returns_arguments()) return false;
  for (size_t k = 0; k < site.arguments.size(); ++k) {
    const Loc& from = site.arguments[k].from;
    if (signature_.params[k].rep == signature_.result && arguments[k] == result && from.obj >= 0 && m.r[from.obj].o) return true;
  }
  return false;
}

// Those that take too long would do so again.
bool Recursion::done(bool finished, uint64_t key) {
  if (finished) return skips_ = 0, true;
  too_long_[key % too_long_.size()] = key;
  given_up_ = true;
  skips_ = std::clamp<int64_t>(2 * skips_, 1, kMostSkips);
  skipped_ = skips_;
  return false;
}

uint64_t Recursion::run(Machine& m, const CallSite& site, ProgramImpl& entry, int32_t frames) {
  if (!is_due(site)) return 0;
  int64_t arguments[recursion::NumericRecursion::kMostParams];
  if (!take(m, site, &now_, arguments) || !suits(entry, now_, m.r[site.callee].o) || !worlds_hold()) return 0;
  uint64_t key = 1;
  for (size_t k = 0; k < site.arguments.size(); ++k) key = (key + static_cast<uint64_t>(arguments[k])) * 0x9e3779b97f4a7c15;
  if (too_long_[key % too_long_.size()] == key) return 0;
  const int64_t left = hook::recursion_remaining(m.thread) - frames - 2 * ProgramImpl::deepest;
  int64_t calls = kMostCalls, result = 0;
  const bool finished = code_->run(arguments, std::min(left, kMostStack / code_->stack_bytes()), &calls, &result);
  if (!done(finished && !may_be_given(m, site, arguments, result), key)) return 0;
  for (const Handover& h : site.arguments)
    if (h.takes && h.from.obj >= 0) Py_CLEAR(m.r[h.from.obj].o);  // (of numbers and texts: no code runs)
  if (site.result.obj >= 0) m.r[site.result.obj].o = nullptr;
  m.r[site.result.raw].i = result;
  return static_cast<uint64_t>(kMostCalls - calls);
}

}  // namespace dalsegno::replay
