// Typed steps on NumPy's scalars and on elements of arrays: what the lowering and the other steps ask for. Internal to the machine.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "numpy/dtypes.h"
#include "replay/machine/run.h"
#include "replay/segment/scalars.h"

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

// The unboxed part (rep) of what a step gives into register c, where one is asked for.
inline bool unbox_part(const Step& s, Reg* r, PyObject* item) {
  if (s.rep == Rep::kNone) return true;
  if (s.rep == Rep::kInt) return unbox_as<Rep::kInt>(item, &r[s.c]);
  if (s.rep == Rep::kFloat) return unbox_as<Rep::kFloat>(item, &r[s.c]);
  return unbox(s.rep, item, &r[s.c]);
}

// A step for each representation, by its number: what `make` gives for it; null for kNone.
template <class Make>
constexpr auto by_rep(Make make) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<StepFn, sizeof...(I) + 1>{nullptr, make.template operator()<static_cast<Rep>(I + 1)>()...};
  }
  (std::make_index_sequence<static_cast<size_t>(Rep::kCount) - 1>());
}

// Negative positions count from the end. False: out of bounds.
inline bool within(Py_ssize_t n, int64_t* i) {
  if (*i < 0) *i += n;
  return *i >= 0 && *i < n;
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

// -- steps_scalar.cc
// What native code calls for the operator on two doubles (two int64_t where rep is kInt), as its step does it: int32_t (*)(a, b, out); 0:
// the step is to be done. Null: native code has it itself, or the step does it.
const void* operator_function(BinaryOp op, Rep rep);  // not of complex numbers

// An operator on two complex numbers. False: it is left to the interpreter.
using ComplexFunction = bool (*)(Py_complex a, Py_complex b, Py_complex* out);
template <ComplexFunction function>
const Step* complex_binary(const Step* s, Reg* r, Machine& m) {
  Py_complex out;
  if (!function(r[s->a].c, r[s->b].c, &out)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].c = out;
  return go_on(s + 1, r, m);
}

// -- steps_complex.cc
StepFn complex_binary_step(BinaryOp op, typed::Real real);
StepFn complex_compare_step(int32_t op);  // Py_EQ or Py_NE
const Step* step_complex_negative(const Step* s, Reg* r, Machine& m);
const Step* step_complex_truth(const Step* s, Reg* r, Machine& m);
StepFn complex_call_step(typed::Callee callee);  // of one, or of kComplex
// What native code calls for an operator: int32_t (*)(real a, imaginary a, real b, imaginary b, out); 0: the step is to be done. Null:
// native code has it itself.
const void* complex_operator_function(BinaryOp op, typed::Real real);
// The C library's function of both parts of one, whose finite results of finite operands are the callee's. Null: there is none.
const void* complex_function(typed::Callee callee);

// -- steps_numpy_complex.cc: the same of np.complex128
StepFn numpy_complex_step(BinaryOp op, typed::Real real);
const Step* step_numpy_complex_abs(const Step* s, Reg* r, Machine& m);
// + - * / as the step computes it. False: NumPy has something to say about it.
bool numpy_complex_result(BinaryOp op, typed::Real real, Py_complex a, Py_complex b, Py_complex* out);
const void* numpy_complex_function(typed::Callee callee);

// Is a result finite, and no underflow for certain? (The least normal number may be what a smaller one was rounded to.)
template <class T>
inline bool is_above_underflow(T result) {
  return std::isfinite(result) && std::fabs(result) > std::numeric_limits<T>::min();
}

// -- steps_numpy.cc
const void* numpy_operator_function(BinaryOp op);  // of np.float64
PyObject* box_numpy(Rep rep, Reg value);
bool unbox_numpy(Rep rep, PyObject* object, Reg* out);
StepFn numpy_binary_step(BinaryOp op, Rep dtype);
// + - * / on floats of Python's (no division by 0) or NumPy's, as the steps compute it. False: NumPy has something to say about it.
bool scalar_result(BinaryOp op, Rep rep, Reg a, Reg b, Reg* out);
StepFn numpy_unary_step(UnaryOp op, Rep dtype);

// A number as an element of the dtype, as NumPy converts it. False: NumPy has something to say about it.
inline bool convert_unboxed(Rep rep, Reg value, DType dtype, ScalarValue* out) {
  const typed::Bits bits = typed::bits_of(rep);
  if (rep == Rep::kNpUint64) return convert_natural(static_cast<uint64_t>(value.i), dtype, out);
  if (typed::is_modular(rep)) return false;
  if (bits == typed::Bits::kComplex) return convert_complex(value.c.real, value.c.imag, dtype, out);
  if (bits == typed::Bits::kInt64) return convert_integer(value.i, dtype, out);
  if (bits == typed::Bits::kFloat && dtype == DType::kFloat32) return out->float32 = value.s, true;
  return convert_double(bits == typed::Bits::kDouble ? value.f : value.s, dtype, out);
}

// -- steps_call.cc. list: the operands' registers, and where `shares` as many of their objects; n: how many; a, b: the first two; imm: the
// operands' representation; c: the register of the result's object, which is the chosen operand's
// A call that reduces an array along an axis (steps_along_axis.cc); null: it is none.
StepFn along_axis_step(typed::Callee callee, int32_t at);  // where the array stands among the operands: 1, or 2
// A call with n operands, itself among them, that makes a small array (steps_made.cc); null: it is none.
StepFn making_step(typed::Callee callee, int32_t n, PyObject* names);  // of the arguments that are given by name; null: none
StepFn running_step(typed::Callee callee);                             // of an array, and an axis; null: it is something else
StepFn call_step(typed::Callee callee, const typed::Operator& how, bool shares, int32_t n);
// The C library's function behind a callee of one double or, as takes_two_doubles() says, two: its finite results of finite operands are
// the callee's, but for logarithms of what is not positive, and atan2 of 0. Null: there is none.
const void* c_function(typed::Callee callee);
const Step* step_extent(const Step* s, Reg* r, Machine& m);
const Step* step_length(const Step* s, Reg* r, Machine& m);
// What a generator of the standard library's or NumPy's gives, or (bound) one whose method the object is. False: there is none.
bool draw(PyObject* object, bool bound, double* out);
const Step* step_draw(const Step* s, Reg* r, Machine& m);
const Step* step_draw_whole(const Step* s, Reg* r, Machine& m);
const Step* step_draw_by(const Step* s, Reg* r, Machine& m);
const Step* step_draw_bits(const Step* s, Reg* r, Machine& m);

// -- steps_item.cc. a: the list, tuple or iterator; b: the index; c: the register of the unboxed part, or of what is stored
struct ItemSteps {
  StepFn list, tuple;
};
ItemSteps load_item_steps(Rep rep, bool owned);
ItemSteps next_item_steps(Rep rep);  // other: plan of its exit_snapshot
StepFn store_item_step(Rep rep);     // rep: of what is stored unboxed, kNone: an object. n: steps to pass over if no code has run
StepFn append_item_step(Rep rep);
StepFn pop_item_step(Rep rep);
constexpr Py_ssize_t kLeastKept = PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;  // of fewer items a list that is popped from keeps no memory
// Without a call: a: a tuple; imm: how many items, or which.
const Step* step_unpack(const Step* s, Reg* r, Machine& m);
const Step* step_tuple_item(const Step* s, Reg* r, Machine& m);

// -- steps_element.cc. a: the array; n: its rank; b: the index of an element in one dimension, otherwise list: all indices
StepFn load_step(DType dtype, int rank);
const Step* step_scalar_object(const Step* s, Reg* r, Machine& m);  // an element of a complex dtype, as NumPy's scalar
StepFn store_step(DType dtype);                                     // list: always; c: the value, as the dtype
// a: an array.array; b: an unboxed index; imm: the typecode; c: what is stored, as Python's number
StepFn load_number_step(DType dtype);
StepFn store_number_step(DType dtype);
void read_element(DType dtype, const char* from, Reg* to);
StepFn next_element_step(DType dtype);  // a: an iterator over an array; other: plan of its exit_snapshot

// -- steps_text.cc. a: a text, bytes or (imm) a bytearray
PyObject* letter_at(PyObject* text, Py_ssize_t at);  // new reference, or null with an exception
bool same_text(PyObject* a, PyObject* b);
const Step* step_same_text(const Step* s, Reg* r, Machine& m);  // b: a text; imm: Py_EQ or Py_NE
Quick text_order_step();                                        // b: a text; imm: Py_LT ... Py_GE; dst: unboxed
// Of a method of texts that says yes or no (typed::is_text_test); b: its constant; c: the text it is given, or -1; dst: unboxed.
Quick text_test_step();
const Step* step_letter(const Step* s, Reg* r, Machine& m);  // b: an unboxed index
const Step* step_ord(const Step* s, Reg* r, Machine& m);
const Step* step_byte(const Step* s, Reg* r, Machine& m);
const Step* step_put_byte(const Step* s, Reg* r, Machine& m);  // c: the unboxed item

// -- steps_piece.cc. a: a list, tuple, text or bytes; b, c: unboxed, from where and up to where (-1: the beginning, the end)
Quick piece_step(bool reversed);  // of a list or tuple
Quick put_piece_step();           // other: the list or tuple whose items are put into a list there

// -- steps_lookup.cc. a: the dict or set; b: the key; n: plan of the guard that the look-up is quiet; list: a register for
// where it was found, and 1 where another look-up of the same has come before; c: the register of the unboxed part
// (rep) of what is given; other: what is given otherwise (-1: None), or is put; imm of kContains: 1: is it missing?
enum class Lookup : uint8_t { kContains, kGet, kGetOr, kPut, kAdd };
Quick lookup_step(Lookup what);

// -- steps_heap.cc. a: the list; b: what is pushed; dst, c, rep: of what is popped, as of an item
Quick heap_step(typed::Callee callee);

// -- steps_attribute.cc. a: the instance; attribute: what is known of its class; dst, c, rep: of an attribute as of an item; of one that is
// set c: what is stored; n: as of an item that is stored
Quick own_attribute_step(bool owned);
Quick set_attribute_step();
Quick class_attribute_step();
Quick make_instance_step();

// -- steps_next.cc
// Can an iterator that has come to its end be told so without running code, and without an error?

}  // namespace dalsegno::replay
