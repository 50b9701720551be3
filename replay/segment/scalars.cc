#include "replay/segment/scalars.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "numpy/dtypes.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

// float32 from double, unless NumPy would report overflow or underflow.
bool narrow(double value, float* out) {
  *out = static_cast<float>(value);
  if (std::isfinite(value) && !std::isfinite(*out)) return false;
  return value == 0 || std::fabs(*out) >= std::numeric_limits<float>::min() || !std::isfinite(value);
}

}  // namespace

bool convert_double(double value, DType dtype, ScalarValue* out) {
  switch (dtype) {
    case DType::kBool:
      return out->boolean = value != 0, true;
    case DType::kFloat32:
      return narrow(value, &out->float32);
    case DType::kFloat64:
      return out->float64 = value, true;
    case DType::kComplex64:
    case DType::kComplex128:
      return convert_complex(value, 0, dtype, out);
    default:
      return false;
  }
}

bool convert_complex(double real, double imaginary, DType dtype, ScalarValue* out) {
  if (planted(Fault::lost_imaginary)) imaginary = 0;
  if (dtype == DType::kComplex64) return narrow(real, &out->complex64[0]) && narrow(imaginary, &out->complex64[1]);
  out->complex128[0] = real, out->complex128[1] = imaginary;
  return dtype == DType::kComplex128;
}

bool convert_natural(uint64_t value, DType dtype, ScalarValue* out) {
  if (value <= uint64_t{INT64_MAX}) return convert_integer(static_cast<int64_t>(value), dtype, out);
  if (dtype == DType::kUint64) return out->uint64 = value, true;
  return !is_int(dtype) && convert_double(static_cast<double>(value), dtype, out);
}

bool convert_integer(int64_t value, DType dtype, ScalarValue* out) {
  if (!is_int(dtype)) return convert_double(static_cast<double>(value), dtype, out);
  const int bits = 8 * dtype_size(dtype) - (is_unsigned(dtype) ? 0 : 1);
  const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  if (value > most || value < (is_unsigned(dtype) ? 0 : -most - 1)) return false;
  out->int64 = value;  // (the lowest bytes come first)
  return true;
}

namespace {

bool weak_int(PyObject* object, DType dtype, ScalarValue* out) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return convert_integer(value, dtype, out);
  if (overflow < 0 || dtype != DType::kUint64) return false;
  out->uint64 = PyLong_AsUnsignedLongLong(object);
  return !PyErr_Occurred() || (PyErr_Clear(), false);
}

template <DType have>
bool integer_scalar(const ScalarValue& value, DType dtype, ScalarValue* out) {
  typename numpy::Element<have>::Type element;
  std::memcpy(&element, value.bytes, sizeof element);
  if constexpr (is_unsigned(have)) return convert_natural(element, dtype, out);
  return convert_integer(static_cast<int64_t>(element), dtype, out);
}

bool numpy_scalar(DType have, PyObject* object, DType dtype, ScalarValue* out) {
  if (Py_TYPE(object) != numpy::scalar_type(have)) return false;
  ScalarValue value{};
  PyArray_ScalarAsCtype(object, value.bytes);
  switch (have) {
    case DType::kBool:
      return convert_integer(value.boolean != 0, dtype, out);
    case DType::kFloat32:
      return dtype == DType::kFloat32 ? (out->float32 = value.float32, true) : convert_double(value.float32, dtype, out);
    case DType::kFloat64:
      return convert_double(value.float64, dtype, out);
    case DType::kComplex64:
      return is_complex(dtype) && convert_complex(value.complex64[0], value.complex64[1], dtype, out);
    case DType::kComplex128:
      return dtype == have && convert_complex(value.complex128[0], value.complex128[1], dtype, out);
    default: {
      static constexpr auto kConvert = numpy::by_dtype([]<DType dtype_of>() { return integer_scalar<dtype_of>; });
      return kConvert[static_cast<size_t>(have)](value, dtype, out);
    }
  }
}

}  // namespace

bool convert_scalar(const SegmentInput& input, PyObject* object, DType dtype, ScalarValue* out) {
  switch (input.kind) {
    case InputKind::kWeakInt:
      return weak_int(object, dtype, out);
    case InputKind::kWeakFloat:
      return PyFloat_CheckExact(object) && convert_double(PyFloat_AS_DOUBLE(object), dtype, out);
    case InputKind::kWeakComplex:
      return PyComplex_CheckExact(object) && convert_complex(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object), dtype, out);
    case InputKind::kWeakBool:
      return PyBool_Check(object) && convert_integer(object == Py_True, dtype, out);
    case InputKind::kScalar:
      return numpy_scalar(input.dtype, object, dtype, out);
    default:
      return false;
  }
}

}  // namespace dalsegno::replay
