// FoldCode over slots that hold unboxed numbers. Nothing here changes anything anybody could see: what is not known is refused.
#include <Python.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "hook/hook.h"
#include "hook/lookups.h"
#include "hook/unborn_generator.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_value.h"

namespace dalsegno::replay {

using namespace folds;

namespace {

// ---- containers ------------------------------------------------------------------------------------------------------------------------

int find(PyObject* dict, PyObject* key, PyObject** value) {
  dalsegno_found none{};
  return dalsegno_find(dict, key, value, &none);
}

bool look_up(PyObject* dict, PyObject* key, Slot* out) {  // steals the key
  PyObject* value = nullptr;
  const bool found = key && find(dict, key, &value) == 1;
  Py_XDECREF(key);
  if (!key) PyErr_Clear();
  return found && (set(out, value), true);
}

bool is_key(const Slot& s) {
  return s.tag == Slot::kInt || s.tag == Slot::kFloat || (s.tag == Slot::kObject && PyUnicode_CheckExact(s.object));
}

bool item(const Slot& a, const Slot& b, Slot* out) {
  if (a.tag != Slot::kObject) return false;
  PyObject* o = a.object;
  const bool list = PyList_CheckExact(o);
  if (list || PyTuple_CheckExact(o)) {
    const int64_t at = b.i < 0 ? b.i + Py_SIZE(o) : b.i;
    if (b.tag != Slot::kInt || at < 0 || at >= Py_SIZE(o)) return false;
    return set(out, list ? PyList_GET_ITEM(o, at) : PyTuple_GET_ITEM(o, at)), true;
  }
  return PyDict_CheckExact(o) && is_key(b) && look_up(o, object_of(b), out);
}

bool pair_item(const Slot& a, const Slot& b, const Slot& c, Slot* out) {
  if (a.tag != Slot::kObject || !PyDict_CheckExact(a.object) || !is_key(b) || !is_key(c)) return false;
  PyObject* pair = PyTuple_New(2);
  if (!pair) return look_up(a.object, nullptr, out);
  PyTuple_SET_ITEM(pair, 0, object_of(b));
  PyTuple_SET_ITEM(pair, 1, object_of(c));
  if (PyTuple_GET_ITEM(pair, 0) && PyTuple_GET_ITEM(pair, 1)) return look_up(a.object, pair, out);
  Py_DECREF(pair);
  return look_up(a.object, nullptr, out);
}

// What an iterator would give, which itself is not touched.
struct Items {
  PyObject* sequence = nullptr;  // null: a range
  bool list = false, alone = false;
  int64_t at = 0, step = 0, left = 0;  // of a range

  bool over_sequence(PyObject* o, int64_t from, bool dies) {
    list = PyList_CheckExact(o);
    sequence = o, at = from, alone = dies && Py_REFCNT(o) == 1;
    return (list || PyTuple_CheckExact(o)) && !(alone && from > 0);
  }

  bool over_iterator(PyObject* it) {
    if (Py_REFCNT(it) > 1) return false;  // who else holds it would see how far it has come
    if (Py_IS_TYPE(it, &PyRangeIter_Type) && hook::g_range_known) {
      auto* range = reinterpret_cast<hook::RangeIterator*>(it);
      sequence = nullptr, step = range->step;
#if PY_VERSION_HEX < 0x030c0000
      at = static_cast<int64_t>(static_cast<uint64_t>(range->start) + static_cast<uint64_t>(range->index) * range->step);
      left = range->length - range->index;
#else
      at = range->start, left = range->length;
#endif
      return true;
    }
    if (!hook::g_sequence_iterators || (!Py_IS_TYPE(it, &PyListIter_Type) && !Py_IS_TYPE(it, &PyTupleIter_Type))) return false;
    auto* over = reinterpret_cast<hook::SequenceIterator*>(it);
    return over->sequence && over_sequence(over->sequence, over->position, true);
  }

  // Does what is left die with it, unseen?
  bool leaves_any() const { return sequence && alone && at < Py_SIZE(sequence); }

  // 1: *to is the next one; 0: there is none; -1: refused: what dies with the sequence could tell when.
  int next(Slot* to) {
    if (!sequence) {
      if (left <= 0) return 0;
      give(to, at);
      at = static_cast<int64_t>(static_cast<uint64_t>(at) + static_cast<uint64_t>(step)), --left;
      return 1;
    }
    if (at >= Py_SIZE(sequence)) return 0;
    set(to, list ? PyList_GET_ITEM(sequence, at) : PyTuple_GET_ITEM(sequence, at));
    ++at;
    return alone && to->tag == Slot::kObject ? -1 : 1;
  }
};

// ---- what becomes of the items
// -----------------------------------------------------------------------------------------------------------

class Result {
 public:
  explicit Result(FoldInto into) : into_(into) {}
  ~Result() { Py_XDECREF(list_); }
  Result(const Result&) = delete;

  enum Verdict { kGoOn, kEnough, kRefused };

  bool begin() {
    if (into_ != FoldInto::kList && into_ != FoldInto::kTuple) return true;
    list_ = PyList_New(kRoom);  // as list_extend() of Objects/listobject.c guesses
    if (!list_) return PyErr_Clear(), false;
    Py_SET_SIZE(list_, 0);
    return true;
  }

  Verdict add(const Slot& item) {
    switch (into_) {
      case FoldInto::kSum:
        return sum(item);
      case FoldInto::kMin:
      case FoldInto::kMax:
        return extreme(item);
      case FoldInto::kAny:
      case FoldInto::kAll: {
        bool is = false;
        if (!truth(item, &is)) return kRefused;
        stopped_ = is == (into_ == FoldInto::kAny);
        return stopped_ ? kEnough : kGoOn;
      }
      default:
        return append(item);
    }
  }

  // New reference; null, without an exception: refused.
  PyObject* take() {
    PyObject* made = nullptr;
    switch (into_) {
      case FoldInto::kSum:
        made = counts_ ? PyLong_FromLongLong(whole_) : PyFloat_FromDouble(compensated());
        break;
      case FoldInto::kMin:
      case FoldInto::kMax:
        if (best_.tag == Slot::kEmpty) return nullptr;
        made = object_of(best_);
        break;
      case FoldInto::kAny:
      case FoldInto::kAll:
        return PyBool_FromLong(stopped_ == (into_ == FoldInto::kAny));
      case FoldInto::kTuple:
        made = PyList_AsTuple(list_);
        break;
      default:
        made = shrink() ? std::exchange(list_, nullptr) : nullptr;
    }
    if (!made) PyErr_Clear();
    return made;
  }

 private:
  // As list_extend() does at the end: gives back room that is not needed, in the one way that is open to us, by deleting an item.
  bool shrink() {
    const Py_ssize_t size = Py_SIZE(list_);
    if (size == reinterpret_cast<PyListObject*>(list_)->allocated) return true;
    Py_SET_SIZE(list_, size + 1);
    PyList_SET_ITEM(list_, size, Py_NewRef(Py_None));
    return PyList_SetSlice(list_, size, size + 1, nullptr) == 0;
  }

  // As builtin_sum() of Python/bltinmodule.c: ints first; from the first float on floats, ints among them converted; since 3.12 with a
  // compensation.
  Verdict sum(const Slot& item) {
    if (counts_) {
      if (item.tag == Slot::kInt || item.tag == Slot::kBool) return __builtin_add_overflow(whole_, item.i, &whole_) ? kRefused : kGoOn;
      if (item.tag != Slot::kFloat) return kRefused;
      counts_ = false;
      total_ = static_cast<double>(whole_) + item.f;
      return kGoOn;
    }
    if (item.tag == Slot::kInt) return total_ += static_cast<double>(item.i), kGoOn;
    if (item.tag != Slot::kFloat) return kRefused;
#if PY_VERSION_HEX >= 0x030c0000
    const double x = item.f, t = total_ + x;
    correction_ += std::fabs(total_) >= std::fabs(x) ? (total_ - t) + x : (x - t) + total_;
    total_ = t;
#else
    total_ += item.f;
#endif
    return kGoOn;
  }
  double compensated() const { return correction_ != 0.0 && std::isfinite(correction_) ? total_ + correction_ : total_; }

  Verdict extreme(const Slot& item) {
    if (item.tag != Slot::kInt && item.tag != Slot::kFloat) return kRefused;
    bool better = best_.tag == Slot::kEmpty;
    if (!better && !compare(into_ == FoldInto::kMin ? Py_LT : Py_GT, item, best_, &better)) return kRefused;
    if (better) best_ = item;
    return kGoOn;
  }

  Verdict append(const Slot& item) {
    PyObject* o = item.tag == Slot::kEmpty ? nullptr : object_of(item);
    const bool done = o && PyList_Append(list_, o) == 0;
    Py_XDECREF(o);
    if (!done) PyErr_Clear();
    return done ? kGoOn : kRefused;
  }

  static constexpr Py_ssize_t kRoom = 8;
  FoldInto into_;
  bool counts_ = true, stopped_ = false;
  int64_t whole_ = 0;
  double total_ = 0.0, correction_ = 0.0;
  Slot best_{};
  PyObject* list_ = nullptr;
};

// ---- frames ----------------------------------------------------------------------------------------------------------------------------

class Run {
 public:
  explicit Run(Result* result) : result_(result), breaker_(hook::eval_breaker()) {}

  // An iteration that ends, or has enough.
  bool generator(const FoldCode& code, const PyFunctionObject* f, PyObject** variables) {
    Slot slots[FoldCode::kMostSlots];
    Items items[FoldCode::kMostIterators];
    clear(code, slots);
    // (A number of a range that is given more than once would be one object.)
    plain_ = f->vectorcall;
    if (!variables[0] || !items[0].over_iterator(variables[0]) || (code.iterators > 1 && !items[0].sequence)) return false;
    for (int k = code.first_cell; k < code.variables; ++k)
      if (!content(variables[k], &slots[k])) return false;
    return inputs(code, f->func_globals, f->func_builtins, slots) && run(code, slots, items, nullptr) && !items[0].leaves_any();
  }

 private:
  static void clear(const FoldCode& code, Slot* slots) {
    for (int k = 0; k < code.slots; ++k) slots[k].tag = Slot::kEmpty, slots[k].object = nullptr;
  }

  static bool content(PyObject* cell, Slot* to) {
    PyObject* held = cell && PyCell_Check(cell) ? PyCell_GET(cell) : nullptr;
    return held && (set(to, held), true);
  }

  static bool inputs(const FoldCode& code, PyObject* globals, PyObject* builtins, Slot* slots) {
    for (const FoldInput& input : code.inputs) {
      PyObject* value = input.object;
      if (input.global) {
        int found = PyDict_CheckExact(globals) ? find(globals, input.object, &value) : -1;
        if (found == 0) found = PyDict_CheckExact(builtins) ? find(builtins, input.object, &value) : -1;
        if (found != 1) return false;
      }
      set(&slots[input.slot], value);
    }
    return true;
  }

  bool function(PyObject* callee, const FoldCode& caller, const FoldInstr& at, const Slot* from, Slot* out) {
    auto* f = reinterpret_cast<PyFunctionObject*>(callee);
    auto* python = reinterpret_cast<PyCodeObject*>(f->func_code);
    if (level_ == kMostFoldLevels || f->vectorcall != plain_ || python->co_argcount != at.c) return false;
    const FoldCode* code = fold_code(python, false);
    if (!code) return false;
    Slot slots[FoldCode::kMostSlots];
    clear(*code, slots);
    for (int k = 0; k < at.c; ++k) slots[k] = from[caller.list[at.b + k]];
    for (int k = code->first_cell; k < code->variables; ++k)
      if (!f->func_closure || !content(PyTuple_GET_ITEM(f->func_closure, k - code->first_cell), &slots[k])) return false;
    ++level_;
    const bool done = inputs(*code, f->func_globals, f->func_builtins, slots) && run(*code, slots, nullptr, out);
    --level_;
    return done;
  }

  bool builtin(PyObject* callee, const FoldCode& code, const FoldInstr& at, const Slot* s, Slot* out) {
    static PyObject* const kAbs = own_builtin("abs");
    static PyObject* const kLen = own_builtin("len");
    static PyObject* const kMin = own_builtin("min");
    static PyObject* const kMax = own_builtin("max");
    const Slot* args[3];
    for (int k = 0; k < at.c; ++k) args[k] = &s[code.list[at.b + k]];
    if (callee == kAbs && at.c == 1) {
      const Slot& a = *args[0];
      if (a.tag == Slot::kFloat) return give(out, std::fabs(a.f));
      if (a.tag == Slot::kInt && a.i < 0) return negate(a, out);
      return *out = a, a.tag == Slot::kInt;
    }
    if (callee == kLen && at.c == 1) {
      PyObject* o = args[0]->object;
      const bool sized = args[0]->tag == Slot::kObject && (PyList_CheckExact(o) || PyTuple_CheckExact(o));
      return sized && give(out, static_cast<int64_t>(Py_SIZE(o)));
    }
    if ((callee != kMin && callee != kMax) || at.c != 2) return false;
    bool better = false;
    if (!compare(callee == kMin ? Py_LT : Py_GT, *args[1], *args[0], &better)) return false;
    return *out = *args[better ? 1 : 0], true;
  }

  bool call(const FoldCode& code, const FoldInstr& at, const Slot* s, Slot* out) {
    PyObject* callee = s[at.a].object;
    if (s[at.a].tag != Slot::kObject) return false;
    return PyFunction_Check(callee) ? function(callee, code, at, s, out) : builtin(callee, code, at, s, out);
  }

  // out: what a function returns.
  bool run(const FoldCode& code, Slot* s, Items* items, Slot* out) {
    bool is = false;
    for (const FoldInstr* i = code.instrs.data();; ++i) {
      bool done = true;
      switch (i->op) {
        case FoldOp::kMove:
          s[i->dst] = s[i->a];
          done = s[i->a].tag != Slot::kEmpty;
          break;
        case FoldOp::kBinary:
          done = binary(static_cast<BinaryOp>(i->sub), s[i->a], s[i->b], &s[i->dst]);
          break;
        case FoldOp::kCompare:
          done = compare(i->sub, s[i->a], s[i->b], &is) && give_truth(&s[i->dst], is);
          break;
        case FoldOp::kNegate:
          done = negate(s[i->a], &s[i->dst]);
          break;
        case FoldOp::kNot:
          done = truth(s[i->a], &is) && give_truth(&s[i->dst], !is);
          break;
        case FoldOp::kItem:
          done = item(s[i->a], s[i->b], &s[i->dst]);
          break;
        case FoldOp::kPairItem:
          done = pair_item(s[i->a], s[i->b], s[i->c], &s[i->dst]);
          break;
        case FoldOp::kCall:
          done = call(code, *i, s, &s[i->dst]);
          break;
        case FoldOp::kIterate:
          items[i->sub] = Items();
          done = s[i->a].tag == Slot::kObject && items[i->sub].over_sequence(s[i->a].object, 0, false);
          break;
        case FoldOp::kNext: {
          if (*breaker_) return false;
          const int next = items[i->sub].next(&s[i->dst]);
          done = next >= 0;
          if (next == 0) i = &code.instrs[i->target] - 1;
          break;
        }
        case FoldOp::kJump:
          i = &code.instrs[i->target] - 1;
          break;
        case FoldOp::kJumpTrue:
        case FoldOp::kJumpFalse:
          done = truth(s[i->a], &is);
          if (is == (i->op == FoldOp::kJumpTrue)) i = &code.instrs[i->target] - 1;
          break;
        case FoldOp::kYield: {
          const Result::Verdict verdict = result_->add(s[i->a]);
          if (verdict == Result::kEnough) return true;
          done = verdict == Result::kGoOn;
          break;
        }
        case FoldOp::kReturn:
          *out = s[i->a];
          return out->tag != Slot::kEmpty;
        case FoldOp::kEnd:
          return true;
      }
      if (!done) return false;
    }
  }

  Result* result_;
  const volatile unsigned char* breaker_;
  int level_ = 0;
  vectorcallfunc plain_ = nullptr;  // of functions that the interpreter calls itself: the expression's own is none of anybody else
};

}  // namespace

PyObject* own_builtin(const char* name) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), name);
  if (!found || !PyCFunction_CheckExact(found)) return nullptr;
  PyObject* of = PyCFunction_GET_SELF(found);
  const bool own = of && PyModule_CheckExact(of) && std::strcmp(PyModule_GetName(of), "builtins") == 0;
  return own && std::strcmp(reinterpret_cast<PyCFunctionObject*>(found)->m_ml->ml_name, name) == 0 ? found : nullptr;
}

PyObject* fold(FoldInto into, PyObject* generator) {
  constexpr int kMostFruitless = 4;
  if (!PyGen_CheckExact(generator) || Py_REFCNT(generator) > 1) return nullptr;
  PyFunctionObject* function = nullptr;
  PyObject** variables = hook::variables_of_unborn(generator, &function);
  FoldCode* code = variables ? fold_code(reinterpret_cast<PyCodeObject*>(function->func_code), true) : nullptr;
  if (!code || code->fruitless > kMostFruitless) return nullptr;
  Result result(into);
  PyObject* made = result.begin() && Run(&result).generator(*code, function, variables) ? result.take() : nullptr;
  code->fruitless = made || *hook::eval_breaker() ? 0 : code->fruitless + 1;
  if (made) hook::never_begins(generator);
  return made;
}

}  // namespace dalsegno::replay
