// Typed steps on NumPy's scalars and on elements of arrays: what the lowering and the other steps ask for. Internal to the machine.
#pragma once
#include <array>
#include <type_traits>
#include <utility>

#include "numpy/dtypes.h"
#include "replay/machine/program.h"

namespace dalsegno::replay {

// An exact int of one digit, without a call.
inline bool small_int(PyObject* o, int64_t* out) {
  auto* n = reinterpret_cast<PyLongObject*>(o);
#if PY_VERSION_HEX >= 0x030c0000
  if (!PyUnstable_Long_IsCompact(n)) return false;
  *out = PyUnstable_Long_CompactValue(n);
#else
  const Py_ssize_t size = Py_SIZE(n);
  if (size < -1 || size > 1) return false;
  *out = size * static_cast<int64_t>(n->ob_digit[0]);
#endif
  return true;
}

// unbox() of a known representation, the usual cases without a call.
template <Rep rep>
inline bool unbox_as(PyObject* o, Reg* out) {
  if constexpr (rep == Rep::kInt) {
    if (PyLong_CheckExact(o) && small_int(o, &out->i)) [[likely]]
      return true;
  } else if constexpr (rep == Rep::kFloat) {
    if (!PyFloat_CheckExact(o)) return false;
    out->f = PyFloat_AS_DOUBLE(o);
    return true;
  }
  return unbox(rep, o, out);
}

// A step for each representation, by its number: what `make` gives for it; null for kNone.
template <class Make>
constexpr auto by_rep(Make make) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<StepFn, sizeof...(I) + 1>{nullptr, make.template operator()<static_cast<Rep>(I + 1)>()...};
  }
  (std::make_index_sequence<static_cast<size_t>(Rep::kCount) - 1>());
}

// What of a register holds a T: a double, a float, or an integer widened to 64 bits.
template <class T>
inline auto& part_of(Reg& r) {
  if constexpr (std::is_same_v<T, double>) {
    return r.f;
  } else if constexpr (std::is_same_v<T, float>) {
    return r.s;
  } else {
    return r.i;
  }
}

// -- steps_numpy.cc
PyObject* box_numpy(Rep rep, Reg value);
bool unbox_numpy(Rep rep, PyObject* object, Reg* out);
StepFn numpy_binary_step(BinaryOp op, Rep dtype);
// + - * / on floats of Python's (no division by 0) or NumPy's, as the steps compute it. False: NumPy has something to say about it.
bool scalar_result(BinaryOp op, Rep rep, Reg a, Reg b, Reg* out);
StepFn numpy_unary_step(UnaryOp op, Rep dtype);

// -- steps_call.cc. list: the operands' registers, and where `shares` as many of their objects; n: how many; a, b: the first two; imm: the
// operands' representation; c: the register of the result's object, which is the chosen operand's
StepFn call_step(typed::Callee callee, const typed::Operator& how, bool shares, int32_t n);
const Step* step_length(const Step* s, Reg* r, Machine& m);

// -- steps_item.cc. a: the list, tuple or iterator; b: the index; c: the register of the unboxed part, or of what is stored
struct ItemSteps {
  StepFn list, tuple;
};
ItemSteps load_item_steps(Rep rep, bool owned);
ItemSteps next_item_steps(Rep rep);  // other: plan of its exit_snapshot
StepFn store_item_step(Rep rep);     // rep: of what is stored unboxed, kNone: an object. n: steps to pass over if no code has run
StepFn append_item_step(Rep rep);
StepFn pop_item_step(Rep rep);
// Without a call: a: a tuple; imm: how many items, or which.
const Step* step_unpack(const Step* s, Reg* r, Machine& m);
const Step* step_tuple_item(const Step* s, Reg* r, Machine& m);

// -- steps_element.cc. a: the array; n: its rank; b: the index of an element in one dimension, otherwise list: all indices
StepFn load_step(DType dtype, int rank);
StepFn store_step(DType dtype);         // list: always; c: the value, as the dtype
StepFn next_element_step(DType dtype);  // a: an iterator over an array; other: plan of its exit_snapshot

}  // namespace dalsegno::replay
