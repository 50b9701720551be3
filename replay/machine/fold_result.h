// What becomes of the items of a fold. Part of fold.cc.
#pragma once
#include <Python.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "replay/machine/fold.h"
#include "replay/machine/fold_arrays.h"
#include "replay/machine/fold_numbers.h"
#include "replay/machine/fold_objects.h"
#include "replay/machine/fold_sums.h"
#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

class Result {
 public:
  // views: null: arrays are none of the items. between: kJoin's text between the items, borrowed.
  Result(FoldInto into, ArrayViews* views, PyObject* between = nullptr) : into_(into), views_(views), between_(between) {}
  ~Result() {
    Py_XDECREF(list_);
    Py_XDECREF(held_);
  }
  Result(const Result&) = delete;

  enum Verdict { kGoOn, kEnough, kRefused };

  bool begin() {
    if (!collects()) return true;
    list_ = PyList_New(kRoom);  // as list_extend() of Objects/listobject.c guesses
    if (!list_) return PyErr_Clear(), false;
    Py_SET_SIZE(list_, 0);
    return true;
  }

  // Are items themselves seen in what comes of it?
  bool gives_items() const { return !(into_ == FoldInto::kSum || into_ == FoldInto::kAny || into_ == FoldInto::kAll || joins()); }

  // The usual sum.
  bool adds(const Slot& item) {
    if (into_ == FoldInto::kSum && item.tag == Slot::kInt && counts_ && !arrays_ && !is_numpy(scalar_)) {
      int64_t sum = 0;
      return some_ = true, !__builtin_add_overflow(whole_, item.i, &sum) && (whole_ = sum, true);
    }
#if PY_VERSION_HEX < 0x030c0000
    if (into_ != FoldInto::kSum || counts_ || item.tag != Slot::kFloat) return false;
    total_ += item.f;
    return true;
#else
    return (void)item, false;
#endif
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

  // A sum's, at the end: an array that it began with. False: it is none, or no array has been added to it.
  bool added_to(PyObject* start) { return arrays_ && views_->added_to(start); }

  // New reference; null, without an exception: refused.
  PyObject* take() {
    PyObject* made = nullptr;
    switch (into_) {
      case FoldInto::kSum:
        if (arrays_) return sum_of(views_->summands());
        if (is_numpy(scalar_)) {
          made = object_of(scalar_);
          break;
        }
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
      case FoldInto::kSet:
        made = PySet_New(list_);
        break;
      case FoldInto::kFrozenSet:
        made = PyFrozenSet_New(list_);
        break;
      case FoldInto::kJoin:
        made = PyUnicode_Join(between_, list_);
        break;
      case FoldInto::kDict:
        made = PyDict_New();
        if (made && PyDict_MergeFromSeq2(made, list_, 1) < 0) Py_CLEAR(made);
        break;
      case FoldInto::kSorted:
        made = shrink() && PyList_Sort(list_) == 0 ? std::exchange(list_, nullptr) : nullptr;
        break;
      default:
        made = shrink() ? std::exchange(list_, nullptr) : nullptr;
    }
    if (!made) PyErr_Clear();
    return made;
  }

 private:
  // As list_extend() does at the end, until 3.13: gives back room that is not needed, in the one way that is open to us, by deleting an
  // item.
  bool shrink() {
    if constexpr (PY_VERSION_HEX >= 0x030e0000) return true;
    const Py_ssize_t size = Py_SIZE(list_);
    if (size == reinterpret_cast<PyListObject*>(list_)->allocated) return true;
    Py_SET_SIZE(list_, size + 1);
    PyList_SET_ITEM(list_, size, Py_NewRef(Py_None));
    return PyList_SetSlice(list_, size, size + 1, nullptr) == 0;
  }

  // As builtin_sum() of Python/bltinmodule.c: ints first; from the first float on floats, ints among them converted; since 3.12 with a
  // compensation, since 3.14 of these ints, too.
  Verdict sum(const Slot& item) {
    if (item.tag == Slot::kView || item.tag == Slot::kObject) return sum_arrays(item);
    if (arrays_) return kRefused;
    if (is_numpy(item) || is_numpy(scalar_)) return sum_numpy(item);
    if (counts_) {
      some_ = true;
      if (item.tag == Slot::kInt || item.tag == Slot::kBool) return __builtin_add_overflow(whole_, item.i, &whole_) ? kRefused : kGoOn;
      if (item.tag != Slot::kFloat) return kRefused;
      counts_ = false;
      total_ = static_cast<double>(whole_) + item.f;
      return kGoOn;
    }
    if (PY_VERSION_HEX < 0x030e0000 && item.tag == Slot::kInt) return total_ += static_cast<double>(item.i), kGoOn;
    if (item.tag != Slot::kFloat && item.tag != Slot::kInt) return kRefused;
#if PY_VERSION_HEX >= 0x030c0000
    const double x = item.tag == Slot::kInt ? static_cast<double>(item.i) : item.f, t = total_ + x;
    correction_ += std::fabs(total_) >= std::fabs(x) ? (total_ - t) + x : (x - t) + total_;
    total_ = t;
#else
    total_ += item.f;
#endif
    return kGoOn;
  }
  // From the first of NumPy's numbers on the sum is one of them.
  Verdict sum_numpy(const Slot& item) {
    if (!is_numpy(scalar_) && !counts_) return kRefused;
    if (!is_numpy(scalar_)) give(&scalar_, whole_);
    return binary(BinaryOp::add, scalar_, item, &scalar_) ? kGoOn : kRefused;
  }
  // With a number among them, too, NumPy's own way.
  Verdict sum_arrays(const Slot& item) {
    if (some_ || !counts_ || !views_ || is_numpy(scalar_) || !views_->add(item)) return kRefused;
    return arrays_ = true, kGoOn;
  }
  double compensated() const { return correction_ != 0.0 && std::isfinite(correction_) ? total_ + correction_ : total_; }

  Verdict extreme(const Slot& item) {
    if (!is_ordered(item) && !(item.tag == Slot::kObject && is_plain(item.object))) return kRefused;
    bool better = best_.tag == Slot::kEmpty;
    if (!better && !compare(into_ == FoldInto::kMin ? Py_LT : Py_GT, item, best_, &better)) return kRefused;
    if (!better) return kGoOn;
    best_ = item;
    if (item.object) Py_XSETREF(held_, Py_NewRef(item.object));  // (what a turn makes dies with it)
    return kGoOn;
  }

  bool joins() const { return into_ == FoldInto::kJoin; }
  bool collects() const { return into_ >= FoldInto::kList; }

  // What becomes of it runs no code of the user's: hashing, comparing.
  bool suits(const Slot& item) const {
    switch (into_) {
      case FoldInto::kList:
      case FoldInto::kTuple:
        return is_made(item);
      case FoldInto::kJoin:
        return is_text(item);
      case FoldInto::kDict:
        return item.tag == Slot::kObject && PyTuple_CheckExact(item.object) && PyTuple_GET_SIZE(item.object) == 2 &&
               is_plain(PyTuple_GET_ITEM(item.object, 0));
      default:
        return is_plain(item);
    }
  }

  Verdict append(const Slot& item) {
    if (!suits(item)) return kRefused;
    PyObject* o = object_of(item);
    const bool done = o && PyList_Append(list_, o) == 0;
    Py_XDECREF(o);
    if (!done) PyErr_Clear();
    return done ? kGoOn : kRefused;
  }

  static constexpr Py_ssize_t kRoom = 8;
  FoldInto into_;
  ArrayViews* views_;
  bool counts_ = true, some_ = false, arrays_ = false, stopped_ = false;
  int64_t whole_ = 0;
  double total_ = 0.0, correction_ = 0.0;
  Slot best_{}, scalar_{};
  PyObject *list_ = nullptr, *held_ = nullptr;
  PyObject* between_;
};

}  // namespace dalsegno::replay::folds
