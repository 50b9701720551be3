#include "replay/machine/fold_order.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dalsegno::replay::folds {
namespace {

bool is_number(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o); }

bool is_nan(PyObject* o) { return PyFloat_CheckExact(o) && PyFloat_AS_DOUBLE(o) != PyFloat_AS_DOUBLE(o); }

// Are they of the kinds that are compared with one another, whatever they are?
bool of_one_kind(PyObject* a, PyObject* b) {
  if (is_number(a)) return is_number(b) && Py_TYPE(a) == Py_TYPE(b) && !is_nan(a) && !is_nan(b);
  if (PyUnicode_CheckExact(a)) return PyUnicode_CheckExact(b);
  if (!PyTuple_CheckExact(a) || !PyTuple_CheckExact(b) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(a); ++k)
    if (!of_one_kind(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k))) return false;
  return true;
}

int compare(PyObject* a, PyObject* b) {
  if (a == b) return 0;
  if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b);
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return (x > y) - (x < y);
  }
  if (!PyTuple_CheckExact(a)) {
    Slot x{}, y{};
    set(&x, a), set(&y, b);
    if (x.tag != Slot::kObject && y.tag != Slot::kObject) return (x.i > y.i) - (x.i < y.i);
    return PyObject_RichCompareBool(a, b, Py_LT) == 1 ? -1 : PyObject_RichCompareBool(a, b, Py_EQ) == 1 ? 0 : 1;
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(a); ++k)
    if (const int differs = compare(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k))) return differs;
  return 0;
}

// (Those that are equal stay in their order both ways.)
template <class T, class Key>
bool by(size_t n, bool reverse, Key key, std::vector<int32_t>* order) {
  const auto ahead = [&](const T& x, const T& y) { return reverse ? y.first < x.first : x.first < y.first; };
  std::vector<T> pairs(n);
  for (size_t k = 0; k < n; ++k) pairs[k] = {key(k), static_cast<int32_t>(k)};
  std::stable_sort(pairs.begin(), pairs.end(), ahead);
  order->resize(n);
  for (size_t k = 0; k < n; ++k) (*order)[k] = pairs[k].second;
  return true;
}

}  // namespace

namespace {

// Of a text whose letters are bytes.
struct Bytes {
  const Py_UCS1* letters;
  Py_ssize_t n;
  bool operator<(const Bytes& other) const {
    const int differ = std::memcmp(letters, other.letters, static_cast<size_t>(std::min(n, other.n)));
    return differ != 0 ? differ < 0 : n < other.n;
  }
};

bool is_of_bytes(const Slot& s) {
  return s.tag == Slot::kObject && PyUnicode_CheckExact(s.object) && PyUnicode_KIND(s.object) == PyUnicode_1BYTE_KIND;
}

}  // namespace

bool sort(const std::vector<Slot>& keys, bool reverse, std::vector<int32_t>* order) {
  const size_t n = keys.size();
  const auto all = [&](auto is) { return std::all_of(keys.begin(), keys.end(), is); };
  if (n > INT32_MAX) return false;
  if (all([](const Slot& s) { return is_position(s); }) || all([](const Slot& s) { return s.tag == Slot::kBool; }))
    return by<std::pair<int64_t, int32_t>>(
        n, reverse, [&](size_t k) { return keys[k].i; }, order);
  if (all([](const Slot& s) { return is_float(s) && s.f == s.f; }))
    return by<std::pair<double, int32_t>>(
        n, reverse, [&](size_t k) { return keys[k].f; }, order);
  if (all(is_of_bytes)) {
    const auto bytes = [&](size_t k) { return Bytes{PyUnicode_1BYTE_DATA(keys[k].object), PyUnicode_GET_LENGTH(keys[k].object)}; };
    return by<std::pair<Bytes, int32_t>>(n, reverse, bytes, order);
  }
  if (!all([&](const Slot& s) { return s.tag == Slot::kObject && of_one_kind(keys[0].object, s.object); })) return false;
  order->resize(n);
  std::iota(order->begin(), order->end(), 0);
  const auto ahead = [&](int32_t x, int32_t y) {
    const int differs = compare(keys[static_cast<size_t>(x)].object, keys[static_cast<size_t>(y)].object);
    return reverse ? differs > 0 : differs < 0;
  };
  std::stable_sort(order->begin(), order->end(), ahead);
  return true;
}

void put_in_order(PyObject* list, const std::vector<int32_t>& order) {
  PyObject** items = reinterpret_cast<PyListObject*>(list)->ob_item;
  const std::vector<PyObject*> before(items, items + order.size());
  for (size_t k = 0; k < order.size(); ++k) items[k] = before[static_cast<size_t>(order[k])];
}

}  // namespace dalsegno::replay::folds
