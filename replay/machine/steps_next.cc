// Next items of bytes and texts, and of several things at once (enumerate, zip), without the tuple they would come in (of any objects: with
// it). First all items
// are looked at, then all iterators are moved on: what is not as recorded leaves before the instruction, and at an end the iterator itself
// does what there is to be done.
#include "replay/machine/scalars.h"
#include "trace/recorder/walks.h"

namespace dalsegno::replay {
namespace {

enum class Found { kItem, kEnd, kOtherType, kUnknown };

struct Item {
  Reg raw{};
  PyObject* object = nullptr;  // new
};

// The position of an iterator over a sequence, and its length. Null: it has ended, or is none.
inline hook::SequenceIterator* sequence_iterator(PyObject* it) {
  auto* sequence = reinterpret_cast<hook::SequenceIterator*>(it);
  return sequence->sequence && sequence->position >= 0 ? sequence : nullptr;
}

Found number_in(const NextItem& what, PyObject* object, Item* item) {
  if (what.rep != Rep::kNone && !unbox(what.rep, object, &item->raw)) return Found::kOtherType;
  item->object = Py_NewRef(object);
  return Found::kItem;
}

Found next_of_array(const NextItem& what, hook::SequenceIterator* it, Item* item) {
  const DType dtype = typed::dtype_of_rep(what.rep);
  if (!PyArray_CheckExact(it->sequence)) return Found::kUnknown;
  auto* a = reinterpret_cast<PyArrayObject*>(it->sequence);
  const bool fits = PyArray_NDIM(a) == 1 && PyArray_TYPE(a) == numpy::type_number(dtype) && (PyArray_FLAGS(a) & NPY_ARRAY_ALIGNED) &&
                    PyArray_ISNBO(PyArray_DESCR(a)->byteorder);
  if (!fits) return Found::kUnknown;
  if (it->position >= PyArray_DIM(a, 0)) return Found::kEnd;
  read_element(dtype, PyArray_BYTES(a) + it->position * PyArray_STRIDE(a, 0), &item->raw);
  return Found::kItem;
}

Found next_of_range(PyObject* it, Item* item) {
  auto* range = reinterpret_cast<hook::RangeIterator*>(it);
#if PY_VERSION_HEX < 0x030c0000
  if (range->index >= range->length) return Found::kEnd;
  item->raw.i = static_cast<long>(range->start + static_cast<unsigned long>(range->index) * range->step);
#else
  if (range->length <= 0) return Found::kEnd;
  item->raw.i = range->start;
#endif
  return Found::kItem;
}

Found next_of_text(hook::SequenceIterator* it, Item* item) {
  if (it->position >= PyUnicode_GET_LENGTH(it->sequence)) return Found::kEnd;
  item->object = letter_at(it->sequence, it->position);
  return item->object ? Found::kItem : Found::kUnknown;
}

// The next item of one iterator, which stays where it is.
Found look(const NextItem& what, PyObject* it, Item* item) {
  if (!Py_IS_TYPE(it, recorder::type_of_walk(what.over))) return Found::kUnknown;
  if (what.over == Walked::kRange) return next_of_range(it, item);
  hook::SequenceIterator* at = sequence_iterator(it);
  if (!at) return reinterpret_cast<hook::SequenceIterator*>(it)->sequence ? Found::kUnknown : Found::kEnd;
  PyObject* o = at->sequence;
  switch (what.over) {
    case Walked::kArray:
      return next_of_array(what, at, item);
    case Walked::kAscii:
    case Walked::kText:
      return next_of_text(at, item);
    case Walked::kBytes:
    case Walked::kBytearray:
      if (at->position >= Py_SIZE(o)) return Found::kEnd;
      item->raw.i =
          static_cast<unsigned char>((what.over == Walked::kBytes ? PyBytes_AS_STRING(o) : PyByteArray_AS_STRING(o))[at->position]);
      return Found::kItem;
    default:
      if (at->position >= Py_SIZE(o)) return Found::kEnd;
      return number_in(what, what.over == Walked::kList ? PyList_GET_ITEM(o, at->position) : PyTuple_GET_ITEM(o, at->position), item);
  }
}

void advance(const NextItem& what, PyObject* it) {
  int64_t item;
  if (what.over == Walked::kRange)
    hook::advance_range(it, &item);
  else
    ++reinterpret_cast<hook::SequenceIterator*>(it)->position;
}

bool holds(const NextPlan& plan, PyObject* iterator) {
  if (plan.holder == Holder::kNone) return true;
  if (!Py_IS_TYPE(iterator, recorder::type_of_holder(plan.holder))) return false;
  const Py_ssize_t number = reinterpret_cast<hook::HoldingIterator*>(iterator)->number;
  return plan.holder == Holder::kZip ? number == plan.n && recorder::walked_apart(iterator, plan.holder, plan.n) : number < PY_SSIZE_T_MAX;
}

Found look(const NextPlan& plan, PyObject* iterator, Item* items) {
  if (!holds(plan, iterator)) return Found::kUnknown;
  for (int k = 0; k < plan.n; ++k) {
    if (plan.items[k].over == Walked::kCount) {
      items[k].raw.i = reinterpret_cast<hook::HoldingIterator*>(iterator)->number;
      continue;
    }
    const Found found = look(plan.items[k], recorder::walked(iterator, plan.holder, k), &items[k]);
    if (found != Found::kItem) return found;
  }
  return Found::kItem;
}

// An end may drop what was gone through, and zip() may raise.
const Step* at_end(const Step* s, Reg* r, Machine& m) {
  PyObject* item;
  if (end_shown(*s, m, r[s->a].o, &item)) return leave_ended(*s, r, m);
  Py_XDECREF(item);  // (there is none)
  return fail(m, s->exit, false);
}

const Step* no_item(const Step* s, Reg* r, Machine& m, Found found, Item* items) {
  for (int k = 0; k < s->next->n; ++k) Py_XDECREF(items[k].object);
  if (found == Found::kEnd) return at_end(s, r, m);
  if (found == Found::kUnknown) return refuse(m, s->exit);
  count_guard_failure();
  return leave(m, s->exit);
}

// By the holder itself: what its tuple holds lives until the next items come. False: no memory.
bool take_objects(const NextPlan& plan, PyObject* iterator, Item* items) {
  PyObject* tuple = hook::next_of(iterator);
  for (int k = 0; k < plan.n; ++k)
    if (items[k].object) Py_SETREF(items[k].object, tuple ? Py_NewRef(PyTuple_GET_ITEM(tuple, k)) : nullptr);
  Py_XDECREF(tuple);
  return tuple != nullptr;
}

}  // namespace

const Step* step_next(const Step* s, Reg* r, Machine& m) {
  const NextPlan& plan = *s->next;
  PyObject* iterator = r[s->a].o;
  Item items[kMostWalked];
  if (const Found found = look(plan, iterator, items); found != Found::kItem) [[unlikely]]
    return no_item(s, r, m, found, items);
  if (plan.objects && !take_objects(plan, iterator, items)) return fail(m, s->exit, false);
  for (int k = 0; k < plan.n; ++k) {
    const NextItem& what = plan.items[k];
    if (what.raw >= 0) r[what.raw] = items[k].raw;
    if (items[k].object) r[what.obj].o = items[k].object;
    if (plan.objects) continue;
    if (what.over == Walked::kCount)
      ++reinterpret_cast<hook::HoldingIterator*>(iterator)->number;
    else
      advance(what, recorder::walked(iterator, plan.holder, k));
  }
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
