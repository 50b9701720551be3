// heapq's heappush() and heappop() on lists of numbers, texts and tuples of such: what is compared runs no code, so all that can be seen is
// where the items stand in the end (Modules/_heapqmodule.c). Anything else is refused, with nothing done.
#include <algorithm>
#include <array>
#include <optional>

#include "replay/machine/exec.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

constexpr int kDeepestTuple = 4;
constexpr size_t kMostLevels = 64;

bool is_plain(PyObject* o, int depth = 0) {
  const PyTypeObject* type = Py_TYPE(o);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBool_Type) return true;
  if (type != &PyTuple_Type || depth == kDeepestTuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (!is_plain(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
  return true;
}

// Of two small ints, floats or texts.
enum class Order : uint8_t { kLess, kEqual, kNotLess, kUnknown };
template <class T>
Order order_of(T a, T b) {
  return a < b ? Order::kLess : a == b ? Order::kEqual : Order::kNotLess;
}
Order order_of_leaves(PyObject* a, PyObject* b) {
  const PyTypeObject* type = Py_TYPE(a);
  int64_t x, y;
  if (type != Py_TYPE(b)) return Order::kUnknown;
  if (type == &PyLong_Type) return small_int(a, &x) && small_int(b, &y) ? order_of(x, y) : Order::kUnknown;
  if (type == &PyFloat_Type) return order_of(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  return type == &PyUnicode_Type ? order_of(PyUnicode_Compare(a, b), 0) : Order::kUnknown;
}

// What decides between tuples is the first place where they differ (tuplerichcompare() of Objects/tupleobject.c): the very object is equal
// to itself, even NaN.
Order order_of_tuples(PyObject* a, PyObject* b) {
  const Py_ssize_t n = std::min(PyTuple_GET_SIZE(a), PyTuple_GET_SIZE(b));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
    if (x == y) continue;
    if (const Order order = order_of_leaves(x, y); order != Order::kEqual) return order;
  }
  return order_of(PyTuple_GET_SIZE(a), PyTuple_GET_SIZE(b));
}

std::optional<bool> is_less(PyObject* a, PyObject* b) {
  const bool tuples = PyTuple_CheckExact(a) && PyTuple_CheckExact(b);
  const Order order = tuples ? order_of_tuples(a, b) : order_of_leaves(a, b);
  if (order != Order::kUnknown) return order == Order::kLess;
  if (!is_plain(a) || !is_plain(b)) return {};
  const int less = PyObject_RichCompareBool(a, b, Py_LT);
  if (less < 0) return PyErr_Clear(), std::nullopt;  // they have no order
  return less != 0;
}

// The new item moves up from the end.
bool push(const Step& s, Reg* r) {
  auto* list = reinterpret_cast<PyListObject*>(r[s.a].o);
  PyObject* item = r[s.b].o;
  if (!PyList_CheckExact(list)) return false;
  const Py_ssize_t n = Py_SIZE(list);
  Py_ssize_t to = n;
  while (to > 0) {
    const std::optional<bool> less = is_less(item, list->ob_item[(to - 1) >> 1]);
    if (!less) return false;
    if (!*less) break;
    to = (to - 1) >> 1;
  }
  if (PyList_Append(r[s.a].o, item) != 0) return PyErr_Clear(), false;
  Py_ssize_t at = n;
  for (; at > to; at = (at - 1) >> 1) list->ob_item[at] = list->ob_item[(at - 1) >> 1];
  list->ob_item[to] = item;
  return true;
}

// The last item takes the first one's place, goes down by the lesser children to the end, and up again to where it belongs.
bool pop(const Step& s, Reg* r) {
  auto* list = reinterpret_cast<PyListObject*>(r[s.a].o);
  if (!PyList_CheckExact(list) || Py_SIZE(list) == 0) return false;
  const Py_ssize_t n = Py_SIZE(list) - 1;
  PyObject **items = list->ob_item, *given = items[0], *last = items[n];
  std::array<Py_ssize_t, kMostLevels> path;
  size_t depth = 0;
  path[0] = 0;
  for (Py_ssize_t at = 0; at < n >> 1; path[++depth] = at) {
    at = 2 * at + 1;
    if (at + 1 < n) {
      const std::optional<bool> less = is_less(items[at], items[at + 1]);
      if (!less) return false;
      if (!*less) ++at;
    }
  }
  while (depth > 0) {
    const std::optional<bool> less = is_less(last, items[path[depth]]);
    if (!less) return false;
    if (!*less) break;
    --depth;
  }
  if (!unbox_part(s, r, given)) return false;
  Py_INCREF(last);
  if (PyList_SetSlice(r[s.a].o, n, n + 1, nullptr) != 0) return Py_DECREF(last), PyErr_Clear(), false;
  r[s.dst].o = given;
  if (n == 0) return true;  // (it was the only one: its reference has come along)
  items = list->ob_item;
  for (size_t k = 0; k < depth; ++k) items[path[k]] = items[path[k + 1]];
  items[path[depth]] = last;
  return true;
}

}  // namespace

Quick heap_step(typed::Callee callee) {
  return callee == typed::Callee::kHeappush ? Quick{step_by_or_refuse<push>, push} : Quick{step_by_or_refuse<pop>, pop};
}

}  // namespace dalsegno::replay
