// What a fold goes through: lists, tuples, texts and ranges, alone or side by side, which are looked at and not changed. Part of
// fold.cc.
#pragma once
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hook/hook.h"
#include "numpy/dtypes.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_arrays.h"
#include "replay/machine/fold_numbers.h"
#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

// What an iterator over one thing would give, which itself is not touched. (Nothing is set before over_...(): there are many, and most
// folds are short.)
struct Items {
  PyObject* sequence;  // null: a range, or (step 1, without an end) what enumerate counts
  bool list, text, array, alone;
  enum Entries : uint8_t { kNone, kKeys, kValues, kPairs, kMembers } entries;  // of a dict, or the members of a set
  int64_t at, step, left;                                                      // of a range

  bool over_sequence(PyObject* o, int64_t from, bool dies) {
    if (numpy::is_exact_array(o)) return over_array(o, from, dies);
    list = PyList_CheckExact(o), text = PyUnicode_CheckExact(o), array = false, entries = kNone;
    sequence = o, at = from, alone = dies && !text && Py_REFCNT(o) == 1;
    return (list || text || PyTuple_CheckExact(o)) && !(alone && from > 0);
  }

  // One that dies with its memory alone is not missed.
  bool over_array(PyObject* o, int64_t from, bool dies) {
    auto* a = reinterpret_cast<PyArrayObject*>(o);
    list = text = alone = false, array = true, entries = kNone, sequence = o, at = from;
    return PyArray_NDIM(a) > 0 &&
           (!dies || Py_REFCNT(o) > 1 || (!PyArray_BASE(a) && !reinterpret_cast<PyArrayObject_fields*>(o)->weakreflist));
  }

  // What an iterator that has not begun says to the garbage collector first that it holds.
  bool over_entries(PyObject* it) {
    const auto take_first = [](PyObject* held, void* first) { return *static_cast<PyObject**>(first) = held, 1; };
    PyObject* of = nullptr;
    Py_TYPE(it)->tp_traverse(it, take_first, &of);
    const bool set = of && PyAnySet_CheckExact(of);
    if (!set && !(of && PyDict_Check(of))) return false;
    const Py_ssize_t n = set ? PySet_GET_SIZE(of) : PyDict_GET_SIZE(of);
    if (n == 0 || PyObject_LengthHint(it, -1) != n) return PyErr_Clear(), false;
    entries = set ? kMembers : Py_IS_TYPE(it, &PyDictIterKey_Type) ? kKeys : Py_IS_TYPE(it, &PyDictIterValue_Type) ? kValues : kPairs;
    list = text = array = false, sequence = of, at = 0, left = n, alone = Py_REFCNT(of) == 1;
    return true;
  }
  static bool goes_over_entries(PyObject* it) {
    return Py_IS_TYPE(it, &PyDictIterKey_Type) || Py_IS_TYPE(it, &PyDictIterValue_Type) || Py_IS_TYPE(it, &PyDictIterItem_Type) ||
           Py_IS_TYPE(it, &PySetIter_Type);
  }

  bool over_items(hook::SequenceIterator* it) { return it->sequence && over_sequence(it->sequence, it->position, true); }

  void over_range(int64_t from, int64_t stop, int64_t by) {
    sequence = nullptr, at = from, step = by;
    left = by > 0 ? std::max<int64_t>(0, (stop - from + by - 1) / by) : std::max<int64_t>(0, (from - stop - by - 1) / -by);
  }

  void over_numbers(int64_t from) { sequence = nullptr, at = from, step = 1, left = std::numeric_limits<int64_t>::max(); }

  bool over_iterator(PyObject* it) {
    if (Py_REFCNT(it) > 1) return false;  // who else holds it would see how far it has come
    if (goes_over_entries(it)) return over_entries(it);
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
    if (Py_IS_TYPE(it, &PySeqIter_Type)) {
      PyObject* held = hook::held_by(it);  // (null: its layout is not known, or it has ended)
      return held && numpy::is_exact_array(held) && over_array(held, reinterpret_cast<hook::SequenceIterator*>(it)->position, true);
    }
    const bool items = hook::g_sequence_iterators && (Py_IS_TYPE(it, &PyListIter_Type) || Py_IS_TYPE(it, &PyTupleIter_Type));
    const bool letters = Py_IS_TYPE(it, hook::g_iterators_over.ascii) || Py_IS_TYPE(it, hook::g_iterators_over.text);
    return (items || letters) && over_items(reinterpret_cast<hook::SequenceIterator*>(it));
  }

  Py_ssize_t size() const {
    if (array) return PyArray_DIM(reinterpret_cast<PyArrayObject*>(sequence), 0);
    return text ? PyUnicode_GET_LENGTH(sequence) : Py_SIZE(sequence);
  }
  bool has_ended() const { return sequence && entries == kNone ? at >= size() : left <= 0; }

  // Does what is left die with it, unseen?
  bool leaves_any() const { return sequence && alone && !has_ended(); }

  // The next entry of a dict or member of a set; value: null unless it is a dict's. False: there is none.
  bool next_entry(PyObject** key, PyObject** value) {
    if (left-- <= 0) return left = 0, false;
    *value = nullptr;
    if (entries != kMembers) {
      Py_ssize_t position = static_cast<Py_ssize_t>(at);
      const bool found = PyDict_Next(sequence, &position, key, value) != 0;
      return at = position, found;
    }
    const auto* set = reinterpret_cast<PySetObject*>(sequence);
    while (at <= set->mask && (!set->table[at].key || set->table[at].hash == -1)) ++at;  // (-1: one that is left of a member)
    return at <= set->mask && (*key = set->table[at++].key, true);
  }

  int next_of_entries(Slot* to) {
    PyObject *key = nullptr, *value = nullptr;
    if (entries == kPairs) return -1;  // (Rows gives them)
    if (!next_entry(&key, &value)) return 0;
    set(to, entries == kValues ? value : key);
    return dies_seen(*to) ? -1 : 1;
  }

  // Could somebody tell when this one dies, with what is gone through?
  bool dies_seen(const Slot& s) const { return alone && s.tag == Slot::kObject && !PyUnicode_CheckExact(s.object); }

  // The usual case of next(); false: it is another, or there is nothing left.
  bool next_of_list(Slot* to) {
    if (!sequence || !list || alone || at >= PyList_GET_SIZE(sequence)) return false;
    return set(to, PyList_GET_ITEM(sequence, at++)), true;
  }

  // 1: *to is the next one; 0: there is none; -1: refused: what dies with the sequence could tell when. views: null: rows of arrays are not
  // known.
  int next(Slot* to, ArrayViews* views) {
    if (!sequence) {
      if (left <= 0) return 0;
      give(to, at);
      at = static_cast<int64_t>(static_cast<uint64_t>(at) + static_cast<uint64_t>(step)), --left;
      return 1;
    }
    if (entries != kNone) return next_of_entries(to);
    if (at >= size()) return 0;
    if (text) return next_letter(to) ? 1 : -1;
    if (array) return next_element(to, views) ? 1 : -1;
    set(to, list ? PyList_GET_ITEM(sequence, at) : PyTuple_GET_ITEM(sequence, at));
    ++at;
    return dies_seen(*to) ? -1 : 1;
  }

  bool next_element(Slot* to, ArrayViews* views) {
    auto* a = reinterpret_cast<PyArrayObject*>(sequence);
    if (PyArray_NDIM(a) > 1) {
      Slot of{}, row{};
      of.tag = Slot::kObject, of.object = sequence;
      give(&row, at++);
      return views && views->row(of, row, to);
    }
    return element(a, PyArray_BYTES(a) + at++ * PyArray_STRIDE(a, 0), to);
  }

  // One of those that the interpreter keeps.
  bool next_letter(Slot* to) {
    const Py_UCS4 code = PyUnicode_READ_CHAR(sequence, at);
    PyObject* letter = code < kMostKept ? PyUnicode_FromOrdinal(static_cast<int>(code)) : nullptr;
    if (!letter) return PyErr_Clear(), false;
    Py_DECREF(letter);
    to->tag = Slot::kObject, to->object = letter;
    return ++at, true;
  }
  static constexpr Py_UCS4 kMostKept = 256;
};

// The same of one that goes through several at once (zip, enumerate), through all their combinations (itertools.product), or through one.
struct Rows {
  Items parts[kMostInRow];
  Slot row[kMostInRow];  // the last one
  int n;                 // 0: not several
  bool strict;
  bool crossed, begun;  // all combinations, the last one changing fastest; there was one
  bool pairs;           // key and value of the dict that parts[0] goes over
  ArrayViews* views = nullptr;

  bool over_sequence(PyObject* o) { return n = 0, pairs = false, parts[0].over_sequence(o, 0, false); }

  bool over_product(PyObject* it, PyObject* pools) {
    if (Py_REFCNT(it) > 1 || PyTuple_GET_SIZE(pools) < 2 || PyTuple_GET_SIZE(pools) > kMostInRow) return false;
    n = static_cast<int>(PyTuple_GET_SIZE(pools));
    strict = begun = pairs = false, crossed = true;
    for (int k = 0; k < n; ++k) {
      if (!parts[k].over_sequence(PyTuple_GET_ITEM(pools, k), 0, true)) return false;
      parts[k].alone = true;  // (a pool may be there more than once)
    }
    return true;
  }

  bool over_iterator(PyObject* it) {
    const bool counts = Py_IS_TYPE(it, &PyEnum_Type);
    n = 0, strict = crossed = pairs = false;
    if (Py_IS_TYPE(it, &PyDictIterItem_Type)) return n = 2, pairs = true, parts[0].over_iterator(it);
    if (PyObject* pools = hook::pools_of(it)) return over_product(it, pools);
    if (!counts && !Py_IS_TYPE(it, &PyZip_Type)) return parts[0].over_iterator(it);
    const auto* holding = reinterpret_cast<hook::HoldingIterator*>(it);
    if (!hook::g_holding_iterators || Py_REFCNT(it) > 1) return false;
    if (counts) {
      n = 2;
      parts[0].over_numbers(holding->number);
      return holding->number < PY_SSIZE_T_MAX / 2 && parts[1].over_iterator(holding->inner);
    }
    if (holding->number < 2 || holding->number > kMostInRow || Py_REFCNT(holding->inner) > 1) return false;
    n = static_cast<int>(holding->number), strict = holding->strict != 0;
    for (int k = 0; k < n; ++k)
      if (!parts[k].over_iterator(PyTuple_GET_ITEM(holding->inner, k))) return false;
    return true;
  }

  int count() const { return n && !pairs ? n : 1; }
  bool gives_numbers() const {
    return std::any_of(parts, parts + count(), [](const Items& one) { return !one.sequence; });
  }
  bool leaves_any() const {
    return std::any_of(parts, parts + count(), [](const Items& one) { return one.leaves_any(); });
  }

  // As Items::next; self: the number of this iterator.
  int next(Slot* to, int self) {
    if (n == 0) return parts[0].next(to, views);
    const auto place = [&](int k) { return &row[k]; };
    if (const int next = crossed ? next_combination() : next_of_all(place); next != 1) return next;
    to->tag = Slot::kRow, to->i = self, to->object = nullptr;
    return 1;
  }

  int next_combination() {
    int k = begun ? n - 1 : 0;
    for (; begun && k >= 0 && parts[k].has_ended(); --k) {
    }
    const bool empty = !begun && std::any_of(parts, parts + n, [](const Items& one) { return one.has_ended(); });
    if (k < 0 || empty) return end_all(), 0;
    for (int j = k; j < n; ++j) {
      if (j > k) parts[j].at = 0;
      if (parts[j].next(&row[j], views) != 1) return -1;
    }
    return begun = true, 1;
  }
  void end_all() {
    for (int k = 0; k < n; ++k) parts[k].at = parts[k].size();
  }

  // (A zip that is strict raises where one ends and another does not.)
  template <class Place>
  int next_of_all(Place place) {
    if (pairs) {
      PyObject *key = nullptr, *value = nullptr;
      if (!parts[0].next_entry(&key, &value)) return 0;
      set(place(0), key), set(place(1), value);
      return parts[0].dies_seen(*place(0)) || parts[0].dies_seen(*place(1)) ? -1 : 1;
    }
    for (int k = 0; k < n; ++k) {
      const int next = parts[k].next(place(k), views);
      if (next == 1) continue;
      const bool all = k == 0 && std::all_of(parts, parts + n, [](const Items& one) { return one.has_ended(); });
      return next == 0 && strict && !all ? -1 : next;
    }
    return 1;
  }
};

inline bool item_of_row(const Rows& rows, const Slot& at, Slot* out) {
  if (at.tag != Slot::kInt || at.i < -rows.n || at.i >= rows.n) return false;
  return *out = rows.row[at.i < 0 ? at.i + rows.n : at.i], true;
}

inline bool unpack(const Slot& from, const Rows* rows, int16_t n, const int16_t* to, Slot* s) {
  if (from.tag == Slot::kRow) {
    if (!rows || rows[from.i].n != n) return false;
    for (int k = 0; k < n; ++k) s[to[k]] = rows[from.i].row[k];
    return true;
  }
  const bool list = from.tag == Slot::kObject && PyList_CheckExact(from.object);
  if (!list && (from.tag != Slot::kObject || !PyTuple_CheckExact(from.object))) return false;
  PyObject* all = from.object;
  if (Py_SIZE(all) != n) return false;
  for (int k = 0; k < n; ++k) set(&s[to[k]], list ? PyList_GET_ITEM(all, k) : PyTuple_GET_ITEM(all, k));
  return true;
}

}  // namespace dalsegno::replay::folds
