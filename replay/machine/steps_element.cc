// Elements of arrays, unboxed. Each step looks at the array anew: its type, dtype, rank and memory may have changed since the last time
// (a.shape = .., a.resize(..)). What is not as recorded, out of bounds, or read-only leaves before the instruction.

#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

template <DType dtype>
struct Memory;
#define MEMORY(name, number, T, part)                                                        \
  template <>                                                                                \
  struct Memory<DType::name> {                                                               \
    static constexpr int kNumber = number;                                                   \
    static void load(const char* p, Reg* r) { r->part = *reinterpret_cast<const T*>(p); }    \
    static void store(char* p, Reg r) { *reinterpret_cast<T*>(p) = static_cast<T>(r.part); } \
  }
MEMORY(kBool, NPY_BOOL, npy_bool, i);
MEMORY(kInt32, NPY_INT32, npy_int32, i);
MEMORY(kInt64, NPY_INT64, npy_int64, i);
MEMORY(kFloat32, NPY_FLOAT32, npy_float32, s);
MEMORY(kFloat64, NPY_FLOAT64, npy_float64, f);
MEMORY(kInt8, NPY_INT8, npy_int8, i);
MEMORY(kUint8, NPY_UINT8, npy_uint8, i);
MEMORY(kInt16, NPY_INT16, npy_int16, i);
MEMORY(kUint16, NPY_UINT16, npy_uint16, i);
MEMORY(kUint32, NPY_UINT32, npy_uint32, i);
MEMORY(kUint64, NPY_UINT64, npy_uint64, i);
#undef MEMORY

// The array, if it is an exact, aligned, native one of this dtype and rank.
template <DType dtype>
inline PyArrayObject* array_of(PyObject* o, int rank) {
  if (!PyArray_CheckExact(o)) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  const bool fits = PyArray_NDIM(a) == rank && PyArray_TYPE(a) == Memory<dtype>::kNumber && (PyArray_FLAGS(a) & NPY_ARRAY_ALIGNED) &&
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
  Memory<dtype>::load(p, &r[s->dst]);
  return go_on(s + 1, r, m);
}

// The same for one index, in b.
template <DType dtype>
const Step* load_one(const Step* s, Reg* r, Machine& m) {
  PyArrayObject* a = array_of<dtype>(r[s->a].o, 1);
  const char* p = a ? along(a, 0, r[s->b].i, PyArray_BYTES(a)) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  Memory<dtype>::load(p, &r[s->dst]);
  return go_on(s + 1, r, m);
}

// c: the register of what is stored, converted already. A flag asks for a warning with the first write into some arrays.
template <DType dtype>
const Step* store(const Step* s, Reg* r, Machine& m) {
  PyArrayObject* a = array_of<dtype>(r[s->a].o, s->n);
  constexpr int kWarnOnWrite = static_cast<int>(uint32_t{1} << 31);  // NPY_ARRAY_WARN_ON_WRITE, which NumPy keeps to itself
  const bool writes = a && (PyArray_FLAGS(a) & (NPY_ARRAY_WRITEABLE | kWarnOnWrite)) == NPY_ARRAY_WRITEABLE;
  char* p = writes ? element_at(a, s, r) : nullptr;
  if (!p) [[unlikely]]
    return refuse(m, s->exit);
  Memory<dtype>::store(p, r[s->c]);
  return go_on(s + 1, r, m);
}

// The iterator itself has to find out that it is exhausted.
const Step* at_end(const Step* s, Reg* r, Machine& m) {
  PyObject* it = r[s->a].o;
  PyObject* item = Py_TYPE(it)->tp_iternext(it);
  if (!item) return PyErr_Occurred() ? fail(m, s->exit, false) : leave(m, s->other);
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
  Memory<dtype>::load(PyArray_BYTES(a) + *position * PyArray_STRIDE(a, 0), &r[s->dst]);
  ++*position;
  return go_on(s + 1, r, m);
}

// In the order of DType.
#define EACH(F)                                                                                                                     \
  {                                                                                                                                 \
    F<DType::kBool>, F<DType::kInt32>, F<DType::kInt64>, F<DType::kFloat32>, F<DType::kFloat64>, F<DType::kInt8>, F<DType::kUint8>, \
        F<DType::kInt16>, F<DType::kUint16>, F<DType::kUint32>, F<DType::kUint64>                                                   \
  }
constexpr StepFn kLoad[] = EACH(load), kLoadOne[] = EACH(load_one), kStore[] = EACH(store), kNext[] = EACH(next);
#undef EACH
static_assert(std::size(kLoad) == static_cast<size_t>(DType::kCount));

}  // namespace

StepFn load_step(DType dtype, int rank) { return (rank == 1 ? kLoadOne : kLoad)[static_cast<size_t>(dtype)]; }
StepFn store_step(DType dtype) { return kStore[static_cast<size_t>(dtype)]; }
StepFn next_element_step(DType dtype) { return kNext[static_cast<size_t>(dtype)]; }

}  // namespace dalsegno::replay
