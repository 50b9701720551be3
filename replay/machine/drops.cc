// Dropping references. The last one may run code of the user's, __del__ or the callback of a weakref, which then sees the frames that eager
// would show: what is finalised in C looks at none. Frames are not linked for numbers, texts and arrays, nor for what holds nothing else.
#include <algorithm>
#include <array>
#include <utility>

#include "hook/generators.h"
#include "numpy/dtypes.h"
#include "replay/machine/run.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

constexpr int kMaxDepth = 3;
constexpr int kMaxVisits = 16;

// Types whose instances hold no references of which they could drop the last.
bool is_leaf(PyTypeObject* type) {
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyUnicode_Type) return true;
  if (PyType_IS_GC(type) || type == &PyArray_Type) return false;
  static std::array<PyTypeObject*, 64> found_before{};
  PyTypeObject*& slot = found_before[reinterpret_cast<uintptr_t>(type) / sizeof(PyTypeObject) % found_before.size()];
  if (slot == type) return true;
  const bool leaf = type == &PyBytes_Type || type == &PyComplex_Type || type == &PyRange_Type || type == &PyRangeIter_Type ||
                    type == &PyBool_Type || numpy::is_number_type(type) || recorder::is_value_type_in_c(type);
  if (leaf) slot = type;
  return leaf;
}

bool has_weakrefs(PyObject* o) {
  const Py_ssize_t offset = Py_TYPE(o)->tp_weaklistoffset;
  return offset != 0 && *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset) != nullptr;
}

struct Visits {
  int left = kMaxVisits;
  int depth = 0;
  size_t n_shared = 0;
  std::array<PyObject*, kMaxVisits> shared{};  // what others hold, too: each time it was come across
};

bool quiet(PyObject* o, Visits* visits);

// Stops (1) at the first thing that would die with it, and not quietly.
int visit(PyObject* held, void* arg) {
  auto* visits = static_cast<Visits*>(arg);
  if (is_leaf_object(held)) return 0;
  if (Py_REFCNT(held) > 1) {  // (all its references may be held by what dies)
    if (visits->n_shared == visits->shared.size()) return 1;
    PyObject** end = visits->shared.data() + visits->n_shared++;
    *end = held;
    if (std::count(visits->shared.data(), end + 1, held) < Py_REFCNT(held)) return 0;
  }
  return --visits->left < 0 || !quiet(held, visits);
}

constexpr Py_ssize_t kMostItems = 128;  // to look through more takes longer than to show frames while they die

bool holds_quietly(PyObject** items, Py_ssize_t n, Visits* visits) {
  if (n > kMostItems) return false;
  for (PyObject** item = items; item < items + n; ++item)
    if (*item && !is_leaf_object(*item) && visit(*item, visits) != 0) return false;  // (zip_longest() has taken out what has ended)
  return true;
}

// A list, a tuple or a slice of numbers and texts: most of what dies.
bool holds_leaves(PyObject* o) {
  const auto all = [](PyObject** items, Py_ssize_t n) {
    return n <= kMostItems && std::all_of(items, items + n, [](PyObject* item) { return item && is_leaf_object(item); });
  };
  if (PyList_CheckExact(o)) return all(reinterpret_cast<PyListObject*>(o)->ob_item, Py_SIZE(o));
  if (PyTuple_CheckExact(o)) return all(reinterpret_cast<PyTupleObject*>(o)->ob_item, Py_SIZE(o));
  return PySlice_Check(o) && all(&reinterpret_cast<PySliceObject*>(o)->start, 3);
}

bool quiet(PyObject* o, Visits* visits) {
  PyTypeObject* type = Py_TYPE(o);
  const bool array = numpy::is_exact_array(o);
  if (!array && is_leaf(type)) return true;
  if (has_weakrefs(o)) return false;
  if (array) {  // (however deep: zip() over rows has them there)
    PyObject* base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(o));
    return !PyDataType_REFCHK(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(o))) && (!base || visit(base, visits) == 0);
  }
  const bool generator = type == &PyGen_Type;
  if (generator && hook::has_ended(o)) return true;
  if (generator && !hook::closes_at_once(o)) return false;
  if (visits->depth == kMaxDepth || (type->tp_finalize != nullptr && !generator) || type->tp_del != nullptr ||
      type->tp_traverse == nullptr || !PyType_IS_GC(type))
    return false;
  ++visits->depth;
  const bool held_quietly = type == &PyList_Type    ? holds_quietly(reinterpret_cast<PyListObject*>(o)->ob_item, Py_SIZE(o), visits)
                            : type == &PyTuple_Type ? holds_quietly(reinterpret_cast<PyTupleObject*>(o)->ob_item, Py_SIZE(o), visits)
                            : type == &PySlice_Type ? holds_quietly(&reinterpret_cast<PySliceObject*>(o)->start, 3, visits)
                                                    : type->tp_traverse(o, visit, visits) == 0;
  --visits->depth;
  return held_quietly;
}

// An array of its own memory, or of what others hold, too.
bool holds_no_other(PyObject* o) {
  auto* array = reinterpret_cast<PyArrayObject*>(o);
  PyObject* base = PyArray_BASE(array);
  return (!base || Py_REFCNT(base) > 1) && !has_weakrefs(o) && !PyDataType_REFCHK(PyArray_DESCR(array));
}

}  // namespace

bool dies_quietly(PyObject* o) {
  if (numpy::is_exact_array(o) ? holds_no_other(o) : holds_leaves(o) || is_leaf(Py_TYPE(o))) return true;
  Visits visits;
  return quiet(o, &visits);
}

// ---- ends of iterators -----------------------------------------------------------------------------------------------------------------

namespace {

// All the items of a list or tuple have been looked at by now: once more costs little.
bool is_let_go_quietly(PyObject* o) {
  if (!o || Py_REFCNT(o) > 1) return true;
  const auto all = [](PyObject** items, Py_ssize_t n) { return std::all_of(items, items + n, is_leaf_object); };
  if (PyList_CheckExact(o) && all(reinterpret_cast<PyListObject*>(o)->ob_item, Py_SIZE(o))) return true;
  if (PyTuple_CheckExact(o) && all(reinterpret_cast<PyTupleObject*>(o)->ob_item, Py_SIZE(o))) return true;
  return dies_quietly(o);
}

bool has_ended(PyObject* it) {
  if (Py_IS_TYPE(it, &PyRangeIter_Type)) return hook::g_range_known && hook::range_has_ended(it);
  if (!Py_IS_TYPE(it, &PyListIter_Type) && !Py_IS_TYPE(it, &PyTupleIter_Type)) return false;
  const auto* at = reinterpret_cast<hook::SequenceIterator*>(it);
  return !at->sequence || at->position >= Py_SIZE(at->sequence);
}

}  // namespace

bool advances_quietly(PyObject* iterator) {
  PyObject* given = hook::result_of(iterator);
  if (!given || Py_REFCNT(given) > 1) return true;
  PyObject** items = reinterpret_cast<PyTupleObject*>(given)->ob_item;
  return std::all_of(items, items + PyTuple_GET_SIZE(given), drops_quietly);
}

bool ends_quietly(PyObject* iterator) {
  const auto* holding = reinterpret_cast<hook::HoldingIterator*>(iterator);
  if (Py_IS_TYPE(iterator, &PyEnum_Type)) return ends_quietly(holding->inner);
  if (!Py_IS_TYPE(iterator, &PyZip_Type)) return is_let_go_quietly(hook::held_by(iterator));
  for (Py_ssize_t k = 0; k < holding->number; ++k) {
    PyObject* inner = PyTuple_GET_ITEM(holding->inner, k);
    if (!ends_quietly(inner) || (holding->strict && !has_ended(inner))) return false;
  }
  return true;
}

bool end_shown(const Step& s, Machine& m, PyObject* iterator, PyObject** item) {
  if (s.dies < 0 || ends_quietly(iterator)) {
    *item = hook::next_of(iterator);
  } else {
    PythonScope frames(m, s.dies);
    *item = hook::next_of(iterator);
  }
  if (*item || !PyErr_Occurred()) return !*item;
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return false;
  PyErr_Clear();
  return true;
}

const Step* leave_ended(const Step& s, Reg* r, Machine& m) {
  PyObject*& it = r[s.a].o;
  if (s.lets_go && !drops_quietly(it)) drop_shown(m, std::exchange(it, nullptr), s.dies);
  return leave(m, s.other);
}

void drop_shown(Machine& m, PyObject* o, int32_t snapshot, int32_t at) {
  PythonScope frames(m, snapshot, at);
  Py_DECREF(o);
}

void drop_at_return(const Step& s, Reg* r, Machine& m) {
  for (int32_t i = 0; i < s.n; ++i) {
    PyObject* o = std::exchange(r[s.list[i]].o, nullptr);
    if (!o) continue;
    if (!m.calling() || drops_quietly(o)) {
      Py_DECREF(o);
    } else {
      drop_shown(m, o, -1);
    }
  }
}

void drop(const std::vector<int32_t>& regs, Reg* r) {
  for (int32_t reg : regs) {
    PyObject* o = r[reg].o;
    r[reg].o = nullptr;
    Py_XDECREF(o);
  }
}

}  // namespace dalsegno::replay
