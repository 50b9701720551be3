// What stands in the slots of a FoldCode: numbers, unboxed, or objects. Operators on them give what the language's do, or nothing: false
// where it would raise, give another type, or where nothing is known.
#pragma once
#include <Python.h>

#include <cstdint>

#include "replay/machine/scalars.h"

namespace dalsegno::replay::folds {

// object: where it has one (borrowed: of a variable, a container or a constant), which is what it is if somebody asks.
struct Slot {
  // kNpInt, kNpFloat, kNpBool: np.int64, np.float64, np.bool (fold_numbers.h); kRow: what iterator `i` gives as a tuple, which is not made;
  // kView, kRange: number `i` of those of the run (fold_arrays.h, Ranges)
  enum Tag : uint8_t { kEmpty, kInt, kFloat, kBool, kObject, kNpInt, kNpFloat, kNpBool, kRow, kView, kRange } tag;
  union {
    int64_t i;
    double f;
  };
  PyObject* object;
};

void set_object(Slot* to, PyObject* o);  // which is none of Python's numbers
PyObject* numpy_object_of(const Slot& s);
inline bool is_numpy(const Slot& s) { return s.tag >= Slot::kNpInt && s.tag <= Slot::kNpBool; }

inline void set(Slot* to, PyObject* o) {
  to->object = o;
  if (PyFloat_CheckExact(o)) {
    to->tag = Slot::kFloat, to->f = PyFloat_AS_DOUBLE(o);
  } else if (Reg whole; PyLong_CheckExact(o) && unbox_as<Rep::kInt>(o, &whole)) {
    to->tag = Slot::kInt, to->i = whole.i;
  } else if (PyBool_Check(o)) {
    to->tag = Slot::kBool, to->i = o == Py_True;
  } else if (PyUnicode_CheckExact(o) || PyTuple_CheckExact(o)) {
    to->tag = Slot::kObject;
  } else {
    set_object(to, o);
  }
}
inline bool give(Slot* to, int64_t i) { return to->tag = Slot::kInt, to->i = i, to->object = nullptr, true; }
inline bool give(Slot* to, double f) { return to->tag = Slot::kFloat, to->f = f, to->object = nullptr, true; }
inline bool give_truth(Slot* to, bool b) { return to->tag = Slot::kBool, to->i = b, to->object = nullptr, true; }
// What a comparison of these gives.
inline bool give_comparison(Slot* to, bool b, const Slot& x, const Slot& y) {
  return to->tag = is_numpy(x) || is_numpy(y) ? Slot::kNpBool : Slot::kBool, to->i = b, to->object = nullptr, true;
}

inline bool is_position(const Slot& s) { return s.tag == Slot::kInt || s.tag == Slot::kNpInt; }
inline bool is_float(const Slot& s) { return s.tag == Slot::kFloat || s.tag == Slot::kNpFloat; }
// A number, but no truth value.
inline bool is_ordered(const Slot& s) { return is_position(s) || is_float(s); }
// Of such a one; false: it is none.
inline bool as_double(const Slot& s, double* out) {
  if (is_float(s)) return *out = s.f, true;
  return *out = static_cast<double>(s.i), is_position(s);
}

inline bool is_made(const Slot& s) { return s.tag != Slot::kEmpty && s.tag < Slot::kRow; }

// New reference, or null with MemoryError. Of what is made.
inline PyObject* object_of(const Slot& s) {
  if (s.object) return Py_NewRef(s.object);
  if (s.tag == Slot::kFloat) return PyFloat_FromDouble(s.f);
  if (is_numpy(s)) return numpy_object_of(s);
  return s.tag == Slot::kBool ? PyBool_FromLong(s.i != 0) : PyLong_FromLongLong(s.i);
}

// ---- operators (fold_value.cc) ---------------------------------------------------------------------------------------------------------

// The most frequent ones; false: ask binary().
inline bool quick_binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out) {
  if (a.tag == Slot::kInt && b.tag == Slot::kInt) {
    int64_t result = 0;
    switch (op) {
      case BinaryOp::add:
        return !__builtin_add_overflow(a.i, b.i, &result) && give(out, result);
      case BinaryOp::subtract:
        return !__builtin_sub_overflow(a.i, b.i, &result) && give(out, result);
      case BinaryOp::multiply:
        return !__builtin_mul_overflow(a.i, b.i, &result) && give(out, result);
      default:
        return false;
    }
  }
  if (a.tag != Slot::kFloat || b.tag != Slot::kFloat) return false;
  switch (op) {
    case BinaryOp::add:
      return give(out, a.f + b.f);
    case BinaryOp::subtract:
      return give(out, a.f - b.f);
    case BinaryOp::multiply:
      return give(out, a.f * b.f);
    default:
      return false;
  }
}

bool binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out);
bool of_doubles(BinaryOp op, Rep rep, double a, double b, Slot* out);  // by the rules of kFloat or kNpFloat64; gives a float
bool compare(int op, const Slot& a, const Slot& b, bool* out);         // op: Py_LT ...; of numbers, texts, or tuples of such
bool equal_pairs(const Slot* slots, const int16_t* four, bool* out);   // of those numbers, as tuples: (a, b) == (c, d)
bool length(PyObject* o, int64_t* out);                                // of a text, bytes, list, tuple, dict or set
bool truth(const Slot& s, bool* out);
bool negate(const Slot& a, Slot* out);

}  // namespace dalsegno::replay::folds
