// FoldCode over slots that hold unboxed numbers and objects. Nothing here changes anything anybody could see: what is not known is refused.
// Part of fold.cc.
#pragma once
#include <Python.h>

#include <algorithm>
#include <vector>

#include "hook/interrupts.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_items.h"
#include "replay/machine/fold_objects.h"
#include "replay/machine/fold_result.h"

namespace dalsegno::replay::folds {

class Run;

// While what is gone through is borrowed, nothing may change it: up to 3.11 the collector, and finalisers with it, run wherever something
// is allocated. (From 3.12 on they wait for the interpreter.)
class NoCollection {
 public:
  NoCollection() : collects_(kRunsAnywhere ? PyGC_Disable() : 0) {}
  ~NoCollection() {
    if (collects_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;

 private:
  static constexpr bool kRunsAnywhere = PY_VERSION_HEX < 0x030c0000;
  int collects_;
};

// A code that is run.
struct Frame {
  Run* run;
  const FoldCode* code;
  Rows* items;
  Slot* out;
};

class Run {
 public:
  Run(Result* result, ArrayViews* views) : result_(result), views_(views), breaker_(hook::eval_breaker()) {}

  // What map() would give.
  bool map(PyObject* callee, PyObject* iterator);
  // The item whose key is the least or the greatest one, the first of them.
  bool by_key(int better, Items* items, PyObject* callee, Slot* best);
  // The keys of all of them, which last as long as the run.
  bool keys(Items* items, PyObject* callee, std::vector<Slot>* keys);

  // An iteration that ends, or has enough. cell: the k-th one. builtins: null: what the globals say.
  template <class Cell>
  bool generator(const FoldCode& code, PyObject* iterator, Cell cell, PyObject* globals, PyObject* builtins) {
    Slot slots[FoldCode::kMostSlots];
    Rows items[FoldCode::kMostIterators];
    for (Rows& rows : items) rows.views = views_;
    clear(code, slots);
    if (!iterator || !items[0].over_iterator(iterator)) return false;
    boxes_ = result_->gives_items() && (code.iterators > 1 || code.makes_tuples);
    for (int k = code.first_cell; k < code.variables; ++k)
      if (!content(cell(k - code.first_cell), &slots[k])) return false;
    return inputs(code, globals, builtins, slots) && run(code, slots, items, nullptr) && !items[0].leaves_any();
  }

 private:
  friend struct Operations;
  // A function that is called, at a level, with what it finds itself: nothing of that changes during a fold.
  struct Prepared {
    PyObject* callee = nullptr;
    int arguments;
    const FoldCode* code;
    Slot slots[FoldCode::kMostSlots];
  };
  // What may be compared with others of its kind.
  static bool is_plain_key(const Slot& key) { return is_ordered(key) || is_plain(key); }
  static void clear(const FoldCode& code, Slot* slots) {
    for (int k = 0; k < code.slots; ++k) slots[k].tag = Slot::kEmpty, slots[k].object = nullptr;
  }
  static bool content(PyObject* cell, Slot* to);
  static bool inputs(const FoldCode& code, PyObject* globals, PyObject* builtins, Slot* slots);
  bool prepare(PyObject* callee, Prepared* of);
  bool function(PyObject* callee, const Slot* const* args, int n, Slot* out);
  bool attribute(const Slot& of, PyObject* name, FoldAttribute* place, Slot* out);
  // self: what it is called with first.
  bool method_of(const Slot& of, PyObject* name, FoldAttribute* place, Slot* out, Slot* self);
  bool slice(const FoldCode& code, const FoldInstr& at, const Slot* s, Slot* out);
  // A range is gone through at once, before another is made in its place.
  bool iterate(const Slot& of, Rows* items) const;
  // out: what a function returns.
  bool run(const FoldCode& code, Slot* s, Rows* items, Slot* out);

  // ---- calls (fold_calls.cc)
  // Of one number.
  static bool convert(PyObject* to, const Slot& a, Slot* out);
  // What is gone through and not seen.
  bool range(const Slot* const* args, int n, Slot* out);
  bool is_quiet(PyObject* callee);
  bool builtin(PyObject* callee, const Slot* const* args, int n, Slot* out);
  // One in C, called with its object first.
  bool method(PyObject* callee, const Slot* const* args, int n, Slot* out);
  // dict.get()
  static bool get(const Slot* of, const Slot* const* args, int n, Slot* out);
  // One in C that is bound to its object.
  static bool bound(PyObject* callee, const Slot* const* args, int n, Slot* out);
  static bool length_of_array(PyObject* o, Slot* out);
  // np.float64 is a float to math's functions; others may ask it for methods of its own.
  static bool is_of_math(PyObject* callee);
  // What runs no code on numbers and texts, and gives such, or some of them.
  bool by_interpreter(PyObject* callee, const Slot* const* args, int n, Slot* out);
  bool give_made(PyObject* given, Slot* out);  // takes the reference
  bool call(PyObject* callee, const Slot* const* args, int n, Slot* out);
  bool call(const FoldCode& code, const FoldInstr& at, Slot* s, Slot* out);

  static constexpr int64_t kMostRanges = 4;
  Items ranges_[kMostRanges];
  int64_t next_range_ = 0;
  const NoCollection no_collection_;
  Result* result_;
  ArrayViews* views_;
  const volatile unsigned char* breaker_;
  Made made_;
  Prepared prepared_[kMostFoldLevels];  // the last one of each
  PyObject* quiet_ = nullptr;           // the last C function that has been found to be so (recorder::CalleeKind)
  bool boxes_ = false;                  // numbers become objects where they go, as the same one may be seen twice
  int level_ = 0;
};

}  // namespace dalsegno::replay::folds
