#include "replay/machine/fold_machine.h"

#include "replay/machine/fold_containers.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay::folds {
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

}  // namespace

bool Run::map(PyObject* callee, PyObject* iterator) {
  Items items;
  if (!items.over_iterator(iterator)) return false;
  boxes_ = result_->gives_items();
  for (Slot item{}, given{};;) {
    if (*breaker_) return false;
    const int next = items.next(&item, views_);
    if (next <= 0) return next == 0;
    const Slot* const args[] = {&item};
    made_.clear();
    if (!call(callee, args, 1, &given)) return false;
    const Result::Verdict verdict = result_->add(given);
    if (verdict != Result::kGoOn) return verdict == Result::kEnough && !items.leaves_any();
  }
}

bool Run::by_key(int better, Items* items, PyObject* callee, Slot* best) {
  for (Slot item{}, key{}, best_key{};;) {
    if (*breaker_) return false;
    const int next = items->next(&item, nullptr);
    if (next <= 0) return next == 0 && best_key.tag != Slot::kEmpty;
    const Slot* const args[] = {&item};
    if (!call(callee, args, 1, &key) || !is_plain_key(key)) return false;
    bool is = best_key.tag == Slot::kEmpty;
    if (!is && !compare(better, key, best_key, &is)) return false;
    if (is) *best = item, best_key = key;
  }
}

bool Run::keys(Items* items, PyObject* callee, std::vector<Slot>* keys) {
  for (Slot item{}, key{};;) {
    if (*breaker_) return false;
    const int next = items->next(&item, nullptr);
    if (next <= 0) return next == 0;
    const Slot* const args[] = {&item};
    if (!call(callee, args, 1, &key) || !is_plain_key(key)) return false;
    keys->push_back(key);
  }
}

bool Run::content(PyObject* cell, Slot* to) {
  PyObject* held = cell && PyCell_Check(cell) ? PyCell_GET(cell) : nullptr;
  return held && (set(to, held), true);
}

bool Run::inputs(const FoldCode& code, PyObject* globals, PyObject* builtins, Slot* slots) {
  for (const FoldInput& input : code.inputs) {
    PyObject* value = input.object;
    if (input.global) {
      int found = PyDict_CheckExact(globals) ? dalsegno_find(globals, input.object, &value, &input.in_globals) : -1;
      if (found == 0 && !builtins) builtins = builtins_of(globals);
      if (found == 0) found = PyDict_CheckExact(builtins) ? dalsegno_find(builtins, input.object, &value, &input.in_builtins) : -1;
      if (found != 1) return false;
    }
    set(&slots[input.slot], value);
  }
  return true;
}

bool Run::prepare(PyObject* callee, Prepared* of) {
  auto* f = reinterpret_cast<PyFunctionObject*>(callee);
  auto* python = reinterpret_cast<PyCodeObject*>(f->func_code);
  of->callee = nullptr, of->arguments = python->co_argcount;
  of->code = f->vectorcall == plain_call() ? fold_code(python, false) : nullptr;
  if (!of->code) return false;
  clear(*of->code, of->slots);
  for (int k = of->code->first_cell; k < of->code->variables; ++k)
    if (!f->func_closure || !content(PyTuple_GET_ITEM(f->func_closure, k - of->code->first_cell), &of->slots[k])) return false;
  if (!inputs(*of->code, f->func_globals, f->func_builtins, of->slots)) return false;
  return of->callee = callee, true;
}

bool Run::function(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  if (level_ == kMostFoldLevels) return false;
  Prepared& of = prepared_[level_];
  if (of.callee != callee && !prepare(callee, &of)) return false;
  if (of.arguments != n) return false;
  for (int k = 0; k < n; ++k) of.slots[k] = *args[k];
  for (int k = n; k < of.code->first_cell; ++k) of.slots[k].tag = Slot::kEmpty;
  ++level_;
  const bool done = run(*of.code, of.slots, nullptr, out);
  --level_;
  return done;
}

bool Run::attribute(const Slot& of, PyObject* name, FoldAttribute* place, Slot* out) {
  if (of.tag != Slot::kObject) return false;
  PyObject* value = is_as_before(Py_TYPE(of.object), *place) ? own_attribute(of.object, place) : nullptr;
  if (value) return set(out, value), true;
  if (PyModule_CheckExact(of.object)) return folds::attribute(of, name, out);
  switch (attribute_of(of.object, name, place, &value)) {
    case Attribute::kOwn:
    case Attribute::kOfClass:
      return set(out, value), true;
    case Attribute::kProperty: {
      const Slot self = of, *const args[] = {&self};
      return PyFunction_Check(value) && function(value, args, 1, out);
    }
    default:
      return false;
  }
}

bool Run::method_of(const Slot& of, PyObject* name, FoldAttribute* place, Slot* out, Slot* self) {
  PyObject* value = nullptr;
  self->tag = Slot::kEmpty;
  if (of.tag != Slot::kObject || PyModule_CheckExact(of.object)) return attribute(of, name, place, out);
  const Attribute what = attribute_of(of.object, name, place, &value);
  if (what == Attribute::kMethod) *self = of;
  return (what == Attribute::kMethod || what == Attribute::kOwn) && (set(out, value), true);
}

bool Run::slice(const FoldCode& code, const FoldInstr& at, const Slot* s, Slot* out) {
  const int16_t* index = &code.list[static_cast<size_t>(at.b)];
  if (views_ && views_->item(s[at.a], index, at.c, s, out)) return true;
  const Slot* bounds[3];
  for (int k = 0; k < 3; ++k) bounds[k] = index[k] < 0 ? nullptr : &s[index[k]];
  return at.c == 1 && index[1] != ArrayViews::kPosition && made_.slice(s[at.a], bounds, out);
}

bool Run::iterate(const Slot& of, Rows* items) const {
  if (of.tag == Slot::kObject) return items->over_sequence(of.object);
  if (of.tag != Slot::kRange || next_range_ - of.i > kMostRanges) return false;
  return items->n = 0, items->parts[0] = ranges_[of.i % kMostRanges], true;
}

// ---- operations ------------------------------------------------------------------------------------------------------------------------
// Each goes on with the next one as the last thing it does, which compilers make a jump of.

struct Operations {
  static bool go_on(const FoldInstr* i, Slot* s, Frame& f) { return i->fn(i, s, f); }
  static bool next(const FoldInstr* i, Slot* s, Frame& f) { return go_on(i + 1, s, f); }
  static bool jump(const FoldInstr* i, Slot* s, Frame& f) { return go_on(i + i->target, s, f); }
  // Where it is known what it gives, which `is` says.
  static bool truth_next(bool known, bool is, const FoldInstr* i, Slot* s, Frame& f) {
    return known && (give_truth(&s[i->dst], is), next(i, s, f));
  }
  static const int16_t* listed(const FoldInstr* i, const Frame& f) { return &f.code->list[static_cast<size_t>(i->b)]; }

  // Where the same number may be seen twice, it is an object from here on.
  static bool boxed(Run& run, Slot& s) { return !run.boxes_ || !is_made(s) || run.made_.box(&s); }

  static bool move(const FoldInstr* i, Slot* s, Frame& f) {
    if (!boxed(*f.run, s[i->a]) || s[i->a].tag == Slot::kEmpty) return false;
    s[i->dst] = s[i->a];
    return next(i, s, f);
  }

  static bool binary_of_any(const FoldInstr* i, Slot* s, Frame& f) {
    const auto op = static_cast<BinaryOp>(i->sub);
    const Slot &a = s[i->a], &b = s[i->b];
    Slot* to = &s[i->dst];
    Run& run = *f.run;
    return binary(op, a, b, to) || run.made_.binary(op, a, b, to) || (run.views_ && i->c == 0 && run.views_->binary(op, a, b, to));
  }
  template <BinaryOp op>
  static bool arithmetic(const FoldInstr* i, Slot* s, Frame& f) {
    if (!quick_binary(op, s[i->a], s[i->b], &s[i->dst]) && !binary_of_any(i, s, f)) return false;
    return next(i, s, f);
  }
  static bool binary_of(const FoldInstr* i, Slot* s, Frame& f) { return binary_of_any(i, s, f) && next(i, s, f); }

  template <int op>
  static bool compare_by(const FoldInstr* i, Slot* s, Frame& f) {
    const Slot &a = s[i->a], &b = s[i->b];
    if (a.tag == Slot::kInt && b.tag == Slot::kInt) return give_truth(&s[i->dst], holds<op>(a.i, b.i)), next(i, s, f);
    bool is = false;
    if (!compare(op, a, b, &is)) return false;
    give_comparison(&s[i->dst], is, a, b);
    return next(i, s, f);
  }
  template <int op>
  static bool holds(int64_t a, int64_t b) {
    return op == Py_LT ? a < b : op == Py_LE ? a <= b : op == Py_EQ ? a == b : op == Py_NE ? a != b : op == Py_GT ? a > b : a >= b;
  }

  static bool pairs(const FoldInstr* i, Slot* s, Frame& f) {
    bool is = false;
    const bool known = equal_pairs(s, listed(i, f), &is);
    return truth_next(known, is == (i->sub == Py_EQ), i, s, f);
  }
  static bool contains_in(const FoldInstr* i, Slot* s, Frame& f) {
    bool is = false;
    const bool known = contains(s[i->a], s[i->b], &is);
    return truth_next(known, is != (i->sub != 0), i, s, f);
  }
  static bool is_same(const FoldInstr* i, Slot* s, Frame& f) {
    bool is = false;
    const bool known = same(s[i->a], s[i->b], &is);
    return truth_next(known, is != (i->sub != 0), i, s, f);
  }
  static bool negated(const FoldInstr* i, Slot* s, Frame& f) {
    ArrayViews* views = f.run->views_;
    return (negate(s[i->a], &s[i->dst]) || (views && views->negate(s[i->a], &s[i->dst]))) && next(i, s, f);
  }
  static bool not_(const FoldInstr* i, Slot* s, Frame& f) {
    bool is = false;
    const bool known = truth(s[i->a], &is);
    return truth_next(known, !is, i, s, f);
  }

  static bool item_at(const FoldInstr* i, Slot* s, Frame& f) {
    const Slot &a = s[i->a], &at = s[i->b];
    Slot* to = &s[i->dst];
    Run& run = *f.run;
    if (a.tag == Slot::kRow) return f.items && item_of_row(f.items[a.i], at, to) && next(i, s, f);
    return (item(a, at, to) || run.made_.letter(a, at, to) || (run.views_ && run.views_->row(a, at, to))) && next(i, s, f);
  }
  static bool pair_item_at(const FoldInstr* i, Slot* s, Frame& f) {
    return pair_item(s[i->a], s[i->b], s[i->c], &s[i->dst]) && next(i, s, f);
  }
  static bool slice(const FoldInstr* i, Slot* s, Frame& f) { return f.run->slice(*f.code, *i, s, &s[i->dst]) && next(i, s, f); }
  static bool unpacked(const FoldInstr* i, Slot* s, Frame& f) {
    return unpack(Slot(s[i->a]), f.items, i->c, listed(i, f), s) && next(i, s, f);
  }

  static FoldAttribute* place(const FoldInstr* i, const Frame& f) { return &f.code->attributes[static_cast<size_t>(i->target)]; }
  static bool attribute(const FoldInstr* i, Slot* s, Frame& f) {
    return f.run->attribute(s[i->a], s[i->b].object, place(i, f), &s[i->dst]) && next(i, s, f);
  }
  static bool method(const FoldInstr* i, Slot* s, Frame& f) {
    return f.run->method_of(s[i->a], s[i->b].object, place(i, f), &s[i->dst], &s[i->c]) && next(i, s, f);
  }

  static bool tuple(const FoldInstr* i, Slot* s, Frame& f) {
    return f.run->made_.tuple(s, listed(i, f), i->c, &s[i->dst]) && next(i, s, f);
  }
  static bool texts(const FoldInstr* i, Slot* s, Frame& f) {
    return f.run->made_.texts(s, listed(i, f), i->c, &s[i->dst]) && next(i, s, f);
  }
  static bool format(const FoldInstr* i, Slot* s, Frame& f) {
    return f.run->made_.format(s[i->a], i->b < 0 ? nullptr : &s[i->b], &s[i->dst]) && next(i, s, f);
  }
  static bool convert(const FoldInstr* i, Slot* s, Frame& f) { return f.run->made_.convert(i->sub, s[i->a], &s[i->dst]) && next(i, s, f); }
  static bool call(const FoldInstr* i, Slot* s, Frame& f) { return f.run->call(*f.code, *i, s, &s[i->dst]) && next(i, s, f); }
  static bool iterate(const FoldInstr* i, Slot* s, Frame& f) { return f.run->iterate(s[i->a], &f.items[i->sub]) && next(i, s, f); }

  // Of an iteration; what the outermost one's last turn has made dies. False: something waits for the thread.
  static bool takes_turn(const FoldInstr* i, Run& run) {
    if (*run.breaker_) return false;
    if (i->sub == 0 && run.made_.any()) run.made_.clear();
    return true;
  }

  static bool next_item(const FoldInstr* i, Slot* s, Frame& f) {
    if (!takes_turn(i, *f.run)) return false;
    Rows& from = f.items[i->sub];
    if (from.n == 0 && from.parts[0].next_of_list(&s[i->dst])) return next(i, s, f);
    const int given = from.next(&s[i->dst], i->sub);
    if (given < 0) return false;
    return given == 0 ? jump(i, s, f) : next(i, s, f);
  }
  // A kUnpack follows.
  static bool next_row(const FoldInstr* i, Slot* s, Frame& f) {
    Rows& from = f.items[i->sub];
    if (from.n != i->c || from.crossed) return next_item(i, s, f);
    if (!takes_turn(i, *f.run)) return false;
    const int16_t* to = listed(i + 1, f);
    const int given = from.next_of_all([&](int k) { return &s[to[k]]; });
    if (given < 0) return false;
    return given == 0 ? jump(i, s, f) : go_on(i + 2, s, f);
  }

  template <bool when>
  static bool jump_if(const FoldInstr* i, Slot* s, Frame& f) {
    bool is = s[i->a].i != 0;
    if (s[i->a].tag != Slot::kBool && !truth(s[i->a], &is)) return false;
    return is == when ? jump(i, s, f) : next(i, s, f);
  }

  static bool yield(const FoldInstr* i, Slot* s, Frame& f) {
    Run& run = *f.run;
    if (!boxed(run, s[i->a])) return false;
    if (run.result_->adds(s[i->a])) return next(i, s, f);
    const Result::Verdict verdict = run.result_->add(s[i->a]);
    return verdict == Result::kGoOn ? next(i, s, f) : verdict == Result::kEnough;
  }
  static bool return_(const FoldInstr* i, Slot* s, Frame& f) {
    *f.out = s[i->a];
    return is_made(*f.out) || f.out->tag == Slot::kView;
  }
  static bool end(const FoldInstr*, Slot*, Frame&) { return true; }

  static FoldFn of(const FoldInstr& i) {
    constexpr FoldFn kCompare[] = {compare_by<Py_LT>, compare_by<Py_LE>, compare_by<Py_EQ>,
                                   compare_by<Py_NE>, compare_by<Py_GT>, compare_by<Py_GE>};
    switch (i.op) {
      case FoldOp::kMove:
        return move;
      case FoldOp::kBinary:
        switch (static_cast<BinaryOp>(i.sub)) {
          case BinaryOp::add:
            return arithmetic<BinaryOp::add>;
          case BinaryOp::subtract:
            return arithmetic<BinaryOp::subtract>;
          case BinaryOp::multiply:
            return arithmetic<BinaryOp::multiply>;
          default:
            return binary_of;
        }
      case FoldOp::kCompare:
        return kCompare[i.sub];
      case FoldOp::kPairs:
        return pairs;
      case FoldOp::kContains:
        return contains_in;
      case FoldOp::kIs:
        return is_same;
      case FoldOp::kNegate:
        return negated;
      case FoldOp::kNot:
        return not_;
      case FoldOp::kItem:
        return item_at;
      case FoldOp::kPairItem:
        return pair_item_at;
      case FoldOp::kSlice:
        return slice;
      case FoldOp::kUnpack:
        return unpacked;
      case FoldOp::kAttr:
        return attribute;
      case FoldOp::kMethod:
        return method;
      case FoldOp::kTuple:
        return tuple;
      case FoldOp::kTexts:
        return texts;
      case FoldOp::kFormat:
        return format;
      case FoldOp::kConvert:
        return convert;
      case FoldOp::kCall:
      case FoldOp::kCallPairs:
        return call;
      case FoldOp::kIterate:
        return iterate;
      case FoldOp::kNext:
        return i.c > 0 ? next_row : next_item;
      case FoldOp::kJump:
        return jump;
      case FoldOp::kJumpTrue:
        return jump_if<true>;
      case FoldOp::kJumpFalse:
        return jump_if<false>;
      case FoldOp::kYield:
        return yield;
      case FoldOp::kReturn:
        return return_;
      case FoldOp::kEnd:
        return end;
    }
    return nullptr;
  }
};

bool Run::run(const FoldCode& code, Slot* s, Rows* items, Slot* out) {
  Frame frame{this, &code, items, out};
  return Operations::go_on(code.instrs.data(), s, frame);
}

}  // namespace dalsegno::replay::folds

namespace dalsegno::replay {

FoldFn fold_function(const FoldInstr& instr) { return folds::Operations::of(instr); }

}  // namespace dalsegno::replay
