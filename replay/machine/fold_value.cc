#include "replay/machine/fold_value.h"

#include <limits>

#include "replay/machine/fold_numbers.h"

namespace dalsegno::replay::folds {
namespace {

constexpr int64_t kOneDigit = int64_t{1} << PyLong_SHIFT;

bool whole_result(BinaryOp op, int64_t a, int64_t b, Slot* out) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::true_divide:  // of what a double holds exactly
      if (b == 0 || !typed::exact_in_double(a) || !typed::exact_in_double(b)) return false;
      return give(out, static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::floor_divide:
    case BinaryOp::remainder: {
      // (With more digits than the dividend it gives that very object back.)
      if (b == 0 || b == -1 || b <= -kOneDigit || b >= kOneDigit) return false;
      const bool off = a % b != 0 && (a < 0) != (b < 0);
      return give(out, op == BinaryOp::remainder ? a % b + (off ? b : 0) : a / b - (off ? 1 : 0));
    }
    case BinaryOp::and_:
      return give(out, a & b);
    case BinaryOp::or_:
      return give(out, a | b);
    case BinaryOp::xor_:
      return give(out, a ^ b);
    case BinaryOp::rshift:
      return b >= 0 && give(out, a >> (b > 63 ? 63 : b));
    case BinaryOp::power: {
      using Function = int32_t (*)(int64_t, int64_t, int64_t*);
      const auto function = reinterpret_cast<Function>(const_cast<void*>(operator_function(op, Rep::kInt)));
      return function(a, b, &result) != 0 && give(out, result);
    }
    default:
      return false;
  }
}

template <class T>
bool holds(int op, T a, T b) {
  switch (op) {
    case Py_LT:
      return a < b;
    case Py_LE:
      return a <= b;
    case Py_EQ:
      return a == b;
    case Py_NE:
      return a != b;
    case Py_GT:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

bool of_doubles(BinaryOp op, Rep rep, double a, double b, Slot* out) {
  switch (op) {
    case BinaryOp::add:
      return give(out, a + b);
    case BinaryOp::subtract:
      return give(out, a - b);
    case BinaryOp::multiply:
      return give(out, a * b);
    case BinaryOp::true_divide:
      return b != 0.0 && give(out, a / b);
    case BinaryOp::floor_divide:
    case BinaryOp::remainder:
    case BinaryOp::power: {
      using Function = int32_t (*)(double, double, double*);
      const auto function = reinterpret_cast<Function>(const_cast<void*>(operator_function(op, rep)));
      double result = 0;
      return function(a, b, &result) != 0 && give(out, result);
    }
    default:
      return false;
  }
}

bool binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out) {
  if (quick_binary(op, a, b, out)) return true;
  if (a.tag == Slot::kInt && b.tag == Slot::kInt) return whole_result(op, a.i, b.i, out);
  if (is_numpy(a) || is_numpy(b)) return numpy_binary(op, a, b, out);
  double x, y;
  return as_double(a, &x) && as_double(b, &y) && of_doubles(op, Rep::kFloat, x, y, out);
}

namespace {

bool is_nan(const Slot& s) { return is_float(s) && s.f != s.f; }

bool is_tuple(const Slot& s) { return s.tag == Slot::kObject && PyTuple_CheckExact(s.object); }

// The first items that are neither the same object nor equal decide (tuplerichcompare() of Objects/tupleobject.c).
bool compare_tuples(int op, PyObject* a, PyObject* b, bool* out) {
  const Py_ssize_t n = PyTuple_GET_SIZE(a), m = PyTuple_GET_SIZE(b);
  for (Py_ssize_t k = 0; k < n && k < m; ++k) {
    Slot x{}, y{};
    bool equal = PyTuple_GET_ITEM(a, k) == PyTuple_GET_ITEM(b, k);
    if (equal) continue;
    set(&x, PyTuple_GET_ITEM(a, k)), set(&y, PyTuple_GET_ITEM(b, k));
    if (is_tuple(x) || is_tuple(y) || is_nan(x) || is_nan(y) || !compare(Py_EQ, x, y, &equal)) return false;
    if (equal) continue;
    if (op == Py_EQ || op == Py_NE) return *out = op == Py_NE, true;
    return compare(op, x, y, out);
  }
  return *out = holds(op, n, m), true;
}

// Objects of the kinds that are equal to none of another kind: numbers, texts, None.
bool differ_in_kind(const Slot& a, const Slot& b) {
  const auto kind = [](const Slot& s) {
    if (s.tag == Slot::kInt || s.tag == Slot::kFloat || s.tag == Slot::kBool) return 1;
    if (s.tag != Slot::kObject) return 0;
    return PyUnicode_CheckExact(s.object) ? 2 : s.object == Py_None ? 3 : 0;
  };
  return kind(a) && kind(b) && kind(a) != kind(b);
}

}  // namespace

// False: they are no numbers, or of two kinds and one is not exact in a double.
bool compare(int op, const Slot& a, const Slot& b, bool* out) {
  if (is_position(a) && is_position(b)) return *out = holds(op, a.i, b.i), true;
  if (a.tag == Slot::kObject && b.tag == Slot::kObject && PyUnicode_CheckExact(a.object) && PyUnicode_CheckExact(b.object))
    return *out = holds(op, PyUnicode_Compare(a.object, b.object), 0), true;
  if (is_tuple(a) && is_tuple(b)) return compare_tuples(op, a.object, b.object, out);
  if ((op == Py_EQ || op == Py_NE) && differ_in_kind(a, b)) return *out = op == Py_NE, true;
  const bool both = is_float(a) && is_float(b);
  double x, y;
  if (!as_double(a, &x) || !as_double(b, &y)) return false;
  if (!both && !typed::exact_in_double(is_float(a) ? b.i : a.i)) return false;
  return *out = holds(op, x, y), true;
}

// (Tuples ask first whether their items are the same object: NaN equals itself there.)
bool equal_pairs(const Slot* slots, const int16_t* four, bool* out) {
  for (int k = 0; k < 2; ++k) {
    const Slot &a = slots[four[k]], &b = slots[four[k + 2]];
    if (is_nan(a) || is_nan(b) || !compare(Py_EQ, a, b, out)) return false;
    if (!*out) break;
  }
  return true;
}

bool length(PyObject* o, int64_t* out) {
  if (PyUnicode_CheckExact(o)) return *out = PyUnicode_GET_LENGTH(o), true;
  if (PyDict_CheckExact(o)) return *out = PyDict_GET_SIZE(o), true;
  if (PyAnySet_CheckExact(o)) return *out = PySet_GET_SIZE(o), true;
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o) && !PyBytes_CheckExact(o)) return false;
  return *out = Py_SIZE(o), true;
}

bool truth(const Slot& s, bool* out) {
  if (is_float(s)) return *out = s.f != 0.0, true;
  if (s.tag == Slot::kObject && s.object != Py_None) {
    int64_t items = 0;
    return length(s.object, &items) && (*out = items > 0, true);
  }
  return *out = s.tag != Slot::kObject && s.i != 0, is_made(s);
}

bool negate(const Slot& a, Slot* out) {
  const Slot::Tag tag = a.tag;
  if (is_float(a)) return give(out, -a.f), out->tag = tag, true;
  return is_position(a) && a.i != std::numeric_limits<int64_t>::min() && (give(out, -a.i), out->tag = tag, true);
}

}  // namespace dalsegno::replay::folds
