// FoldCode over slots that hold unboxed numbers. Nothing here changes anything anybody could see: what is not known is refused.
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "hook/generators.h"
#include "hook/hook.h"
#include "hook/interrupts.h"
#include "hook/lookups.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_containers.h"
#include "replay/machine/fold_items.h"
#include "replay/machine/fold_numbers.h"
#include "replay/machine/fold_result.h"
#include "replay/machine/run.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {

using namespace folds;

namespace {

// How functions are called that the interpreter calls itself (_PyFunction_Vectorcall, which CPython 3.13 keeps to itself).
vectorcallfunc plain_call() {
  static const vectorcallfunc kFound = [] {
    PyObject *space = PyDict_New(), *code = reinterpret_cast<PyObject*>(PyCode_NewEmpty("", "", 0));
    PyObject* function = space && code ? PyFunction_New(code, space) : nullptr;
    const vectorcallfunc found = function ? reinterpret_cast<PyFunctionObject*>(function)->vectorcall : nullptr;
    Py_XDECREF(function);
    Py_XDECREF(code);
    Py_XDECREF(space);
    PyErr_Clear();
    return found;
  }();
  return kFound;
}

// ---- frames ----------------------------------------------------------------------------------------------------------------------------

class Run {
 public:
  Run(Result* result, ArrayViews* views) : result_(result), views_(views), breaker_(hook::eval_breaker()) {}

  // What map() would give.
  bool map(PyObject* callee, PyObject* iterator) {
    Items items;
    if (!items.over_iterator(iterator)) return false;
    for (Slot item{}, given{};;) {
      if (*breaker_) return false;
      const int next = items.next(&item, views_);
      if (next <= 0) return next == 0;
      const Slot* const args[] = {&item};
      if (!call(callee, args, 1, &given)) return false;
      const Result::Verdict verdict = result_->add(given);
      if (verdict != Result::kGoOn) return verdict == Result::kEnough && !items.leaves_any();
    }
  }

  // The item whose key is the least or the greatest one, the first of them.
  bool by_key(int better, Items* items, PyObject* callee, Slot* best) {
    for (Slot item{}, key{}, best_key{};;) {
      if (*breaker_) return false;
      const int next = items->next(&item, nullptr);
      if (next <= 0) return next == 0 && best_key.tag != Slot::kEmpty;
      const Slot* const args[] = {&item};
      if (!call(callee, args, 1, &key) || !is_ordered(key)) return false;
      bool is = best_key.tag == Slot::kEmpty;
      if (!is && !compare(better, key, best_key, &is)) return false;
      if (is) *best = item, best_key = key;
    }
  }

  // An iteration that ends, or has enough. cell: the k-th one. builtins: null: what the globals say.
  template <class Cell>
  bool generator(const FoldCode& code, PyObject* iterator, Cell cell, PyObject* globals, PyObject* builtins) {
    Slot slots[FoldCode::kMostSlots];
    Rows items[FoldCode::kMostIterators];
    for (Rows& rows : items) rows.views = views_;
    clear(code, slots);
    // (A number of a range that is given more than once would be one object.)
    if (!iterator || !items[0].over_iterator(iterator)) return false;
    if (code.iterators > 1 && items[0].gives_numbers() && result_->gives_items()) return false;
    for (int k = code.first_cell; k < code.variables; ++k)
      if (!content(cell(k - code.first_cell), &slots[k])) return false;
    return inputs(code, globals, builtins, slots) && run(code, slots, items, nullptr) && !items[0].leaves_any();
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
        if (found == 0 && !builtins) builtins = builtins_of(globals);
        if (found == 0) found = PyDict_CheckExact(builtins) ? find(builtins, input.object, &value) : -1;
        if (found != 1) return false;
      }
      set(&slots[input.slot], value);
    }
    return true;
  }

  bool function(PyObject* callee, const Slot* const* args, int n, Slot* out) {
    auto* f = reinterpret_cast<PyFunctionObject*>(callee);
    auto* python = reinterpret_cast<PyCodeObject*>(f->func_code);
    if (level_ == kMostFoldLevels || f->vectorcall != plain_call() || python->co_argcount != n) return false;
    const FoldCode* code = fold_code(python, false);
    if (!code) return false;
    Slot slots[FoldCode::kMostSlots];
    clear(*code, slots);
    for (int k = 0; k < n; ++k) slots[k] = *args[k];
    for (int k = code->first_cell; k < code->variables; ++k)
      if (!f->func_closure || !content(PyTuple_GET_ITEM(f->func_closure, k - code->first_cell), &slots[k])) return false;
    ++level_;
    const bool done = inputs(*code, f->func_globals, f->func_builtins, slots) && run(*code, slots, nullptr, out);
    --level_;
    return done;
  }

  // Of one number.
  static bool convert(PyObject* to, const Slot& a, Slot* out) {
    constexpr double kLimit = 9.2e18;
    if (!is_ordered(a)) return false;
    if (to == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
      if (a.tag == Slot::kFloat) return *out = a, true;
      return give(out, a.tag == Slot::kNpFloat ? a.f : static_cast<double>(a.i));
    }
    if (to != reinterpret_cast<PyObject*>(&PyLong_Type)) return false;
    if (a.tag == Slot::kInt) return *out = a, true;
    if (a.tag == Slot::kNpInt) return give(out, a.i);
    return a.f > -kLimit && a.f < kLimit && give(out, static_cast<int64_t>(a.f));
  }

  // What is gone through and not seen.
  bool range(const Slot* const* args, int n, Slot* out) {
    constexpr int64_t kMost = int64_t{1} << 40;
    const auto suits = [](const Slot* s) { return s->tag == Slot::kInt && s->i > -kMost && s->i < kMost; };
    if (n < 1 || !std::all_of(args, args + n, suits) || (n == 3 && args[2]->i == 0)) return false;
    Items& made = ranges_[next_range_ % kMostRanges];
    made.over_range(n > 1 ? args[0]->i : 0, args[n > 1 ? 1 : 0]->i, n > 2 ? args[2]->i : 1);
    out->tag = Slot::kRange, out->i = next_range_++, out->object = nullptr;
    return true;
  }

  bool builtin(PyObject* callee, const Slot* const* args, int n, Slot* out) {
    static PyObject* const kAbs = own_builtin("abs");
    static PyObject* const kLen = own_builtin("len");
    static PyObject* const kMin = own_builtin("min");
    static PyObject* const kMax = own_builtin("max");
    if (callee == kAbs && n == 1) {
      const Slot& a = *args[0];
      if (a.tag == Slot::kFloat) return give(out, std::fabs(a.f));
      if (is_position(a) && a.i < 0) return negate(a, out);
      *out = a;
      if (is_numpy(a)) out->object = nullptr;  // always a new one
      if (a.tag == Slot::kNpFloat) out->f = std::fabs(a.f);
      return is_ordered(a);
    }
    if (callee == kLen && n == 1) {
      PyObject* o = args[0]->object;
      if (args[0]->tag != Slot::kObject) return false;
      if (numpy::is_exact_array(o)) return length_of_array(o, out);
      if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return give(out, static_cast<int64_t>(Py_SIZE(o)));
      return PyUnicode_CheckExact(o) && give(out, static_cast<int64_t>(PyUnicode_GET_LENGTH(o)));
    }
    if (callee == reinterpret_cast<PyObject*>(&PyRange_Type)) return range(args, n, out);
    if ((callee == kMin || callee == kMax) && n == 2) {
      bool better = false;
      if (!compare(callee == kMin ? Py_LT : Py_GT, *args[1], *args[0], &better)) return false;
      return *out = *args[better ? 1 : 0], true;
    }
    if (n == 1 && convert(callee, *args[0], out)) return true;
    return recorder::callee_facts(callee).kind == recorder::CalleeKind::quiet && PyCFunction_CheckExact(callee) &&
           by_interpreter(callee, args, n, out);
  }

  static bool length_of_array(PyObject* o, Slot* out) {
    auto* array = reinterpret_cast<PyArrayObject*>(o);
    return PyArray_NDIM(array) > 0 && give(out, static_cast<int64_t>(PyArray_DIM(array, 0)));
  }

  // np.float64 is a float to math's functions; others may ask it for methods of its own.
  static bool is_of_math(PyObject* callee) {
    PyObject* of = PyCFunction_GET_SELF(callee);
    return of && PyModule_CheckExact(of) && std::strcmp(PyModule_GetName(of), "math") == 0;
  }

  // What runs no code on numbers and texts, and gives a number.
  static bool by_interpreter(PyObject* callee, const Slot* const* args, int n, Slot* out) {
    PyObject* objects[3] = {};
    bool made = true;
    for (int k = 0; k < n && made; ++k) {
      bool leaf = is_made(*args[k]) && (args[k]->tag != Slot::kObject || PyUnicode_CheckExact(args[k]->object));
      leaf &= !is_numpy(*args[k]) || (args[k]->tag == Slot::kNpFloat && is_of_math(callee));
      made = leaf && (objects[k] = object_of(*args[k])) != nullptr;
    }
    PyObject* given = made ? PyObject_Vectorcall(callee, objects, static_cast<size_t>(n), nullptr) : nullptr;
    for (PyObject* o : objects) Py_XDECREF(o);
    if (!given) return PyErr_Clear(), false;
    set(out, given);
    out->object = nullptr;
    Py_DECREF(given);
    return out->tag != Slot::kObject;
  }

  bool call(PyObject* callee, const Slot* const* args, int n, Slot* out) {
    return PyFunction_Check(callee) ? function(callee, args, n, out) : builtin(callee, args, n, out);
  }

  bool call(const FoldCode& code, const FoldInstr& at, const Slot* s, Slot* out) {
    const Slot* args[3];
    for (int k = 0; k < (at.op == FoldOp::kCallPairs ? 1 : at.c); ++k) args[k] = &s[code.list[at.b + k]];
    if (s[at.a].tag != Slot::kObject) return false;
    PyObject* callee = s[at.a].object;
    const bool rolls = views_ && at.c > 1 && recorder::callee_facts(callee).fn == ArrayFn::roll;
    if (at.op == FoldOp::kCallPairs) {
      const int16_t* pairs = &code.list[at.b + 1];
      Slot once{};
      return rolls && views_->roll(*args[0], s[pairs[0]], &s[pairs[2]], &once) && views_->roll(once, s[pairs[1]], &s[pairs[3]], out);
    }
    if (rolls) return (at.c == 3 || !at.sub) && views_->roll(*args[0], *args[1], at.c == 3 ? args[2] : nullptr, out);
    return !at.sub && (call(callee, args, at.c, out) || (views_ && views_->call(callee, args, at.c, out)));
  }

  // A range is gone through at once, before another is made in its place.
  bool iterate(const Slot& of, Rows* items) const {
    if (of.tag == Slot::kObject) return items->over_sequence(of.object);
    if (of.tag != Slot::kRange || result_ == nullptr || result_->gives_items() || next_range_ - of.i > kMostRanges) return false;
    return items->n = 0, items->parts[0] = ranges_[of.i % kMostRanges], true;
  }

  // out: what a function returns.
  bool run(const FoldCode& code, Slot* s, Rows* items, Slot* out) {
    bool is = false;
    for (const FoldInstr* i = code.instrs.data();; ++i) {
      bool done = true;
      switch (i->op) {
        case FoldOp::kMove:
          s[i->dst] = s[i->a];
          done = s[i->a].tag != Slot::kEmpty;
          break;
        case FoldOp::kBinary:
          done = quick_binary(static_cast<BinaryOp>(i->sub), s[i->a], s[i->b], &s[i->dst]) ||
                 binary(static_cast<BinaryOp>(i->sub), s[i->a], s[i->b], &s[i->dst]) ||
                 (views_ && i->c == 0 && views_->binary(static_cast<BinaryOp>(i->sub), s[i->a], s[i->b], &s[i->dst]));
          break;
        case FoldOp::kCompare:
          done = compare(i->sub, s[i->a], s[i->b], &is) && give_comparison(&s[i->dst], is, s[i->a], s[i->b]);
          break;
        case FoldOp::kPairs:
          done = equal_pairs(s, &code.list[static_cast<size_t>(i->b)], &is) && give_truth(&s[i->dst], is == (i->sub == Py_EQ));
          break;
        case FoldOp::kContains:
          done = contains(s[i->a], s[i->b], &is) && give_truth(&s[i->dst], is != (i->sub != 0));
          break;
        case FoldOp::kIs:
          done = same(s[i->a], s[i->b], &is) && give_truth(&s[i->dst], is != (i->sub != 0));
          break;
        case FoldOp::kNegate:
          done = negate(s[i->a], &s[i->dst]) || (views_ && views_->negate(s[i->a], &s[i->dst]));
          break;
        case FoldOp::kNot:
          done = truth(s[i->a], &is) && give_truth(&s[i->dst], !is);
          break;
        case FoldOp::kItem:
          done = item(s[i->a], s[i->b], &s[i->dst]) || (views_ && views_->row(s[i->a], s[i->b], &s[i->dst]));
          break;
        case FoldOp::kPairItem:
          done = pair_item(s[i->a], s[i->b], s[i->c], &s[i->dst]);
          break;
        case FoldOp::kSlice:
          done = views_ && views_->item(s[i->a], &code.list[static_cast<size_t>(i->b)], i->c, s, &s[i->dst]);
          break;
        case FoldOp::kUnpack:
          done = unpack(Slot(s[i->a]), items, i->c, &code.list[static_cast<size_t>(i->b)], s);
          break;
        case FoldOp::kAttr:
          done = attribute(s[i->a], s[i->b].object, &s[i->dst]);
          break;
        case FoldOp::kCall:
        case FoldOp::kCallPairs:
          done = call(code, *i, s, &s[i->dst]);
          break;
        case FoldOp::kIterate:
          done = iterate(s[i->a], &items[i->sub]);
          break;
        case FoldOp::kNext: {
          if (*breaker_) return false;
          Rows& from = items[i->sub];
          const bool apart = i->c > 0 && from.n == i->c && !from.crossed;
          const int16_t* to = apart ? &code.list[static_cast<size_t>(i[1].b)] : nullptr;
          const int next = apart ? from.next_of_all([&](int k) { return &s[to[k]]; }) : from.next(&s[i->dst], i->sub);
          done = next >= 0;
          if (apart && next == 1) ++i;
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
          const Result::Verdict verdict = result_->adds(s[i->a]) ? Result::kGoOn : result_->add(s[i->a]);
          if (verdict == Result::kEnough) return true;
          done = verdict == Result::kGoOn;
          break;
        }
        case FoldOp::kReturn:
          *out = s[i->a];
          return is_made(*out) || out->tag == Slot::kView;
        case FoldOp::kEnd:
          return true;
      }
      if (!done) return false;
    }
  }

  static constexpr int64_t kMostRanges = 4;
  Items ranges_[kMostRanges];
  int64_t next_range_ = 0;
  Result* result_;
  ArrayViews* views_;
  const volatile unsigned char* breaker_;
  int level_ = 0;
};

}  // namespace

PyObject* own_builtin(const char* name) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), name);
  if (!found || !PyCFunction_CheckExact(found)) return nullptr;
  PyObject* of = PyCFunction_GET_SELF(found);
  const bool own = of && PyModule_CheckExact(of) && std::strcmp(PyModule_GetName(of), "builtins") == 0;
  return own && std::strcmp(reinterpret_cast<PyCFunctionObject*>(found)->m_ml->ml_name, name) == 0 ? found : nullptr;
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

PyObject* counted(PyObject* made, int* fruitless) {
  if (fruitless) *fruitless = made || *hook::eval_breaker() ? 0 : *fruitless + 1;
  return made;
}

// Of what is called with items; false: it is not to be tried.
bool may_apply(PyObject* callee, int** fruitless) {
  if (!PyFunction_Check(callee)) return true;
  *fruitless = chances_of(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callee)), false);
  return *fruitless != nullptr;
}

PyObject* fold_map(FoldInto into, PyObject* map) {
  Mapped of;
  int* fruitless = nullptr;
  forget_flags();
  PyMap_Type.tp_traverse(map, take_part, &of);
  if (!of.function || !PyTuple_CheckExact(of.iterators) || PyTuple_GET_SIZE(of.iterators) != 1 || Py_REFCNT(of.iterators) > 1)
    return nullptr;
  if (!may_apply(of.function, &fruitless)) return nullptr;
  ArrayViews views;
  Result result(into, &views);
  return counted(result.begin() && Run(&result, &views).map(of.function, PyTuple_GET_ITEM(of.iterators, 0)) && flags_are_quiet()
                     ? result.take()
                     : nullptr,
                 fruitless);
}

}  // namespace

PyObject* fold_by_key(FoldInto into, PyObject* iterable, PyObject* key) {
  int* fruitless = nullptr;
  if (!may_apply(key, &fruitless)) return nullptr;
  forget_flags();
  Items items;
  PyObject* numbers = PyRange_Check(iterable) ? PyObject_GetIter(iterable) : nullptr;
  Slot best{};
  const bool found = (numbers ? items.over_iterator(numbers) : items.over_sequence(iterable, 0, false)) &&
                     Run(nullptr, nullptr).by_key(into == FoldInto::kMin ? Py_LT : Py_GT, &items, key, &best) && flags_are_quiet();
  PyObject* made = found ? object_of(best) : nullptr;
  Py_XDECREF(numbers);
  PyErr_Clear();
  return counted(made, fruitless);
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
                       PyObject* start) {
  ArrayViews views;
  Result result(into, &views);
  forget_flags();
  const bool done = result.begin() && Run(&result, &views).generator(*code, iterator, cell, globals, builtins) &&
                    (!start || result.added_to(start)) && flags_are_quiet();
  return counted(done ? result.take() : nullptr, &code->fruitless);
}

}  // namespace

PyObject* fold(FoldInto into, const Unmade& of) {
  if (!chances_of(of.code, true)) return nullptr;
  FoldCode& code = *fold_code(of.code, true);
  if (code.first_cell < code.variables && (!of.closure || PyTuple_GET_SIZE(of.closure) != code.variables - code.first_cell)) return nullptr;
  const auto cell = [&](int k) { return PyTuple_GET_ITEM(of.closure, k); };
  return fold_code_of(into, &code, of.iterator, cell, of.globals, nullptr, nullptr);
}

PyObject* fold(FoldInto into, PyObject* generator, PyObject* start) {
  if (Py_REFCNT(generator) > 1) return nullptr;
  if (Py_IS_TYPE(generator, &PyMap_Type)) return start ? nullptr : fold_map(into, generator);
  PyFunctionObject* function = nullptr;
  hook::Slot* variables = PyGen_CheckExact(generator) ? hook::variables_of_unborn(generator, &function) : nullptr;
  auto* python = variables ? reinterpret_cast<PyCodeObject*>(function->func_code) : nullptr;
  if (!python || !chances_of(python, true)) return nullptr;
  FoldCode& code = *fold_code(python, true);
  const auto cell = [&](int k) { return variables[code.first_cell + k].get(); };
  PyObject* made = fold_code_of(into, &code, variables[0].get(), cell, function->func_globals, function->func_builtins, start);
  if (made) hook::never_begins(generator);
  return made;
}

}  // namespace dalsegno::replay
