#include "replay/segment/scalars.h"

#include <cmath>
#include <limits>

#include "numpy/dtypes.h"

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
    default:
      return false;
  }
}

bool convert_integer(int64_t value, DType dtype, ScalarValue* out) {
  switch (dtype) {
    case DType::kBool:
      return out->boolean = value != 0, true;
    case DType::kInt32:
      return out->int32 = static_cast<int32_t>(value), value == out->int32;
    case DType::kInt64:
      return out->int64 = value, true;
    default:
      return convert_double(static_cast<double>(value), dtype, out);
  }
}

namespace {

bool weak_int(PyObject* object, DType dtype, ScalarValue* out) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 && convert_integer(value, dtype, out);
}

bool numpy_scalar(DType have, PyObject* object, DType dtype, ScalarValue* out) {
  if (Py_TYPE(object) != numpy::scalar_type(have)) return false;
  ScalarValue value{};
  PyArray_ScalarAsCtype(object, value.bytes);
  switch (have) {
    case DType::kBool:
      return convert_integer(value.boolean != 0, dtype, out);
    case DType::kInt32:
      return convert_integer(value.int32, dtype, out);
    case DType::kInt64:
      return convert_integer(value.int64, dtype, out);
    case DType::kFloat32:
      return dtype == DType::kFloat32 ? (out->float32 = value.float32, true) : convert_double(value.float32, dtype, out);
    case DType::kFloat64:
      return convert_double(value.float64, dtype, out);
    default:
      return false;
  }
}

}  // namespace

bool convert_scalar(const SegmentInput& input, PyObject* object, DType dtype, ScalarValue* out) {
  switch (input.kind) {
    case InputKind::kWeakInt:
      return weak_int(object, dtype, out);
    case InputKind::kWeakFloat:
      return PyFloat_CheckExact(object) && convert_double(PyFloat_AS_DOUBLE(object), dtype, out);
    case InputKind::kWeakBool:
      return PyBool_Check(object) && convert_integer(object == Py_True, dtype, out);
    case InputKind::kScalar:
      return numpy_scalar(input.dtype, object, dtype, out);
    default:
      return false;
  }
}

}  // namespace dalsegno::replay
