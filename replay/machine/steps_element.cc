// Elements of arrays, NumPy's and the standard library's, unboxed. Each step looks at the array anew: its type, dtype, rank and memory may
// have changed since the last time (a.shape = .., a.resize(..)). What is not as recorded, out of bounds, or read-only leaves before the
// instruction.
#include <cstring>

#include "hook/numeric_arrays.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

using numpy::by_dtype;
using numpy::Element;

template <DType dtype>
inline void read(const char* p, Reg* r) {
  using T = typename Element<dtype>::Type;
  if constexpr (dtype == DType::kBool)
    r->i = *reinterpret_cast<const uint8_t*>(p) != 0;  // any byte (a.view(bool))
  else if constexpr (dtype == DType::kComplex128)
    std::memcpy(&r->c, p, sizeof r->c);
  else
    part_of<T>(*r) = *reinterpret_cast<const T*>(p);
}

template <DType dtype>
inline void write(char* p, Reg r) {
  using T = typename Element<dtype>::Type;
  if constexpr (dtype == DType::kComplex128)
    std::memcpy(p, &r.c, sizeof r.c);
  else
    *reinterpret_cast<T*>(p) = static_cast<T>(part_of<T>(r));
}

// by_dtype(), and a row for complex128.
template <class Make>
constexpr auto by_element(Make make) {
  auto rows = by_dtype(make);
  rows[static_cast<size_t>(DType::kComplex128)] = make.template operator()<DType::kComplex128>();
  return rows;
}

// The array, if it is an exact, aligned, native one of this dtype and rank.
template <DType dtype>
inline PyArrayObject* array_of(PyObject* o, int rank) {
  if (!PyArray_CheckExact(o)) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  const bool fits = PyArray_NDIM(a) == rank && PyArray_TYPE(a) == Element<dtype>::kNumber && (PyArray_FLAGS(a) & NPY_ARRAY_ALIGNED) &&
                    PyArray_ISNBO(PyArray_DESCR(a)->byteorder);
  return fits ? a : nullptr;
}

// The address of an element along one axis, negative positions from the end; null: out of bounds.
inline char* along(PyArrayObject* a, int axis, int64_t i, char* from) {
  const npy_intp n = PyArray_DIM(a, axis);
  if (i < 0) i = planted(Fault::unwrapped_index) ? ~i : i + n;
  if (i >= 0 && i < n) return from + i * PyArray_STRIDE(a, axis);
  return planted(Fault::dropped_bounds) && n > 0 ? from : nullptr;
}

// list: registers of the indices; n: how many.
inline char* element_at(PyArrayObject* a, const Step* s, const Reg* r) {
  char* p = along(a, 0, r[s->list[0]].i, PyArray_BYTES(a));
  for (int32_t k = 1; p != nullptr && k < s->n; ++k) p = along(a, k, r[s->list[k]].i, p);
  return p;
}

template <DType dtype>
const Step* load(const Step* s, Reg* r, Machine& m) {
  PyArrayObject* a = array_of<dtype>(r[s->a].o, s->n);
  const char* p = a ? element_at(a, s, r) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  read<dtype>(p, &r[s->dst]);
  return go_on(s + 1, r, m);
}

// The same for one index, in b.
template <DType dtype>
const Step* load_one(const Step* s, Reg* r, Machine& m) {
  PyArrayObject* a = array_of<dtype>(r[s->a].o, 1);
  const char* p = a ? along(a, 0, r[s->b].i, PyArray_BYTES(a)) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  read<dtype>(p, &r[s->dst]);
  return go_on(s + 1, r, m);
}

// c: the register of what is stored, converted already.
template <DType dtype>
const Step* store(const Step* s, Reg* r, Machine& m) {
  PyArrayObject* a = array_of<dtype>(r[s->a].o, s->n);
  char* p = a && is_writeable(a) ? element_at(a, s, r) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  write<dtype>(p, r[s->c]);
  return go_on(s + 1, r, m);
}

// The iterator itself has to find out that it is exhausted.
const Step* at_end(const Step* s, Reg* r, Machine& m) {
  PyObject* it = r[s->a].o;
  PyObject* item;
  if (end_shown(*s, m, it, &item)) return leave_ended(*s, r, m);
  if (!item) return fail(m, s->exit, false);
  Py_DECREF(item);
  Py_ssize_t* position;
  hook::sequence_of(it, &position);
  --*position;
  return refuse(m, s->exit);
}

// The next element of an array that is iterated over, into dst.
template <DType dtype>
const Step* next(const Step* s, Reg* r, Machine& m) {
  Py_ssize_t* position;
  PyObject* sequence = hook::sequence_of(r[s->a].o, &position);
  PyArrayObject* a = sequence ? array_of<dtype>(sequence, 1) : nullptr;
  if (!a || *position < 0) [[unlikely]]
    return refuse(m, s->exit);
  if (*position >= PyArray_DIM(a, 0)) return at_end(s, r, m);
  read<dtype>(PyArray_BYTES(a) + *position * PyArray_STRIDE(a, 0), &r[s->dst]);
  ++*position;
  return go_on(s + 1, r, m);
}

// ---- array.array: as elements, but Python's numbers

// Null: out of bounds, or of another typecode.
inline char* number_at(const Step* s, const Reg* r) {
  auto* array = reinterpret_cast<hook::NumericArray*>(r[s->a].o);
  int64_t i = r[s->b].i;
  if (array->kind->typecode != s->imm || !within(Py_SIZE(array), &i)) return nullptr;
  return array->items + i * array->kind->itemsize;
}

template <DType dtype>
const Step* load_number(const Step* s, Reg* r, Machine& m) {
  const char* p = number_at(s, r);
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  read<dtype>(p, &r[s->dst]);
  if constexpr (dtype == DType::kFloat32) r[s->dst].f = part_of<float>(r[s->dst]);
  return go_on(s + 1, r, m);
}

template <DType dtype>
const Step* store_number(const Step* s, Reg* r, Machine& m) {
  char* p = number_at(s, r);
  Reg value = r[s->c];
  if constexpr (dtype == DType::kFloat32) part_of<float>(value) = static_cast<float>(value.f);
  if (!p || (!is_float(dtype) && !typed::holds(typed::rep_of_dtype(dtype), value.i))) [[unlikely]]
    return refuse(m, s->exit);
  write<dtype>(p, value);
  return go_on(s + 1, r, m);
}

constexpr auto kLoadNumber = by_dtype([]<DType dtype>() -> StepFn { return load_number<dtype>; });
constexpr auto kStoreNumber = by_dtype([]<DType dtype>() -> StepFn { return store_number<dtype>; });
constexpr auto kLoad = by_element([]<DType dtype>() -> StepFn { return load<dtype>; });
constexpr auto kLoadOne = by_element([]<DType dtype>() -> StepFn { return load_one<dtype>; });
constexpr auto kStore = by_element([]<DType dtype>() -> StepFn { return store<dtype>; });
constexpr auto kNext = by_element([]<DType dtype>() -> StepFn { return next<dtype>; });

}  // namespace

const Step* step_scalar_object(const Step* s, Reg* r, Machine& m) {
  ArrayFacts facts;
  PyObject* o = r[s->a].o;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  const bool known = numpy::facts_of(o, &facts) && facts.rank == s->n && is_complex(facts.dtype);
  char* p = known ? element_at(a, s, r) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].o = PyArray_Scalar(p, PyArray_DESCR(a), o);
  return r[s->dst].o ? go_on(s + 1, r, m) : fail(m, s->exit, s->pure);
}

const Step* step_row(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  if (!PyArray_CheckExact(o) || PyArray_NDIM(a) != s->imm || !element_at(a, s, r)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

void read_element(DType dtype, const char* from, Reg* to) {
  static constexpr auto kRead = by_element([]<DType dtype>() { return read<dtype>; });
  kRead[static_cast<size_t>(dtype)](from, to);
}
StepFn load_step(DType dtype, int rank) { return (rank == 1 ? kLoadOne : kLoad)[static_cast<size_t>(dtype)]; }
StepFn store_step(DType dtype) { return kStore[static_cast<size_t>(dtype)]; }
StepFn load_number_step(DType dtype) { return kLoadNumber[static_cast<size_t>(dtype)]; }
StepFn store_number_step(DType dtype) { return kStoreNumber[static_cast<size_t>(dtype)]; }
StepFn next_element_step(DType dtype) { return kNext[static_cast<size_t>(dtype)]; }

}  // namespace dalsegno::replay
