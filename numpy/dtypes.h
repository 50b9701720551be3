// The one table DType <-> NumPy: type numbers, descriptors, scalar types, and what an array of given facts is. Needs the GIL, sets no
// exceptions.
#pragma once
#include <array>
#include <cstring>
#include <utility>

#include "numpy/api.h"
#include "trace/trace.h"

// X(dtype, NumPy's number, C type of an element, name of its scalars in NumPy's C API), in the order of DType
#define DALSEGNO_REAL_DTYPES(X)                 \
  X(kBool, NPY_BOOL, npy_bool, Bool)            \
  X(kInt32, NPY_INT32, npy_int32, Int)          \
  X(kInt64, NPY_INT64, npy_int64, Long)         \
  X(kFloat32, NPY_FLOAT32, npy_float32, Float)  \
  X(kFloat64, NPY_FLOAT64, npy_float64, Double) \
  X(kInt8, NPY_INT8, npy_int8, Byte)            \
  X(kUint8, NPY_UINT8, npy_uint8, UByte)        \
  X(kInt16, NPY_INT16, npy_int16, Short)        \
  X(kUint16, NPY_UINT16, npy_uint16, UShort)    \
  X(kUint32, NPY_UINT32, npy_uint32, UInt)      \
  X(kUint64, NPY_UINT64, npy_uint64, ULong)
#define DALSEGNO_DTYPES(X)                      \
  DALSEGNO_REAL_DTYPES(X)                       \
  X(kComplex64, NPY_CFLOAT, npy_cfloat, CFloat) \
  X(kComplex128, NPY_CDOUBLE, npy_cdouble, CDouble)

namespace dalsegno::numpy {

// An element of an array.
template <DType dtype>
struct Element;
#define X(dtype, number, T, scalar)        \
  template <>                              \
  struct Element<DType::dtype> {           \
    using Type = T;                        \
    static constexpr int kNumber = number; \
  };
DALSEGNO_DTYPES(X)
#undef X

template <class T>
T element_at(const char* p) {
  T element;
  std::memcpy(&element, p, sizeof element);
  return element;
}

// A table by dtype: what `make`, a template of one, gives for each that is not complex. (Those have an empty row.)
template <class Make>
constexpr auto by_dtype(Make make) {
  using Row = decltype(make.template operator()<DType::kBool>());
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<Row, static_cast<size_t>(DType::kCount)>{make.template operator()<static_cast<DType>(I)>()...};
  }
  (std::make_index_sequence<static_cast<size_t>(DType::kComplex64)>());
}

int type_number(DType dtype);
// Is it the one object that NumPy has for a dtype of these, in this machine's byte order?
bool dtype_of_descr(PyObject* object, DType* dtype);
PyArray_Descr* descriptor(DType dtype);  // borrowed; immortal
// Is it the dtype and nothing more: in this machine's byte order, without metadata, which would be handed on to results? NumPy's own
// object, or another one: what was pickled has such.
bool is_another_plain(PyArray_Descr* descr, DType dtype);
inline bool is_plain(PyArray_Descr* descr, DType dtype) { return descr == descriptor(dtype) || is_another_plain(descr, dtype); }
PyTypeObject* scalar_type(DType dtype);  // type of NumPy's scalars of the dtype; borrowed
// The dtype whose scalars have this very type. False: none that kernels know.
bool scalar_dtype(const PyTypeObject* type, DType* dtype);
// The same of complex ones.
inline bool complex_dtype(const PyTypeObject* type, DType* dtype) {
  *dtype = type == &PyCFloatArrType_Type ? DType::kComplex64 : DType::kComplex128;
  return type == &PyCFloatArrType_Type || type == &PyCDoubleArrType_Type;
}
inline bool is_scalar_type(const PyTypeObject* type) {
  DType ignored;
  return scalar_dtype(type, &ignored);
}

// The same, and of the numbers that kernels do not know.
inline bool is_number_type(const PyTypeObject* type) {
  return is_scalar_type(type) || type == &PyCDoubleArrType_Type || type == &PyCFloatArrType_Type || type == &PyHalfArrType_Type ||
         type == &PyLongDoubleArrType_Type || type == &PyCLongDoubleArrType_Type;
}

inline bool is_exact_array(PyObject* object) { return object && PyArray_CheckExact(object); }
// An exact ndarray, aligned, in native byte order, of one of these dtypes: fills facts, else false.
bool facts_of(PyObject* object, ArrayFacts* facts);
// True if facts_of() would give these.
bool has_facts(PyObject* object, const ArrayFacts& facts);

}  // namespace dalsegno::numpy
