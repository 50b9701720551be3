// Python and NumPy scalars as operands of a kernel.
#pragma once
#include <Python.h>

#include "replay/segment/spec.h"

namespace dalsegno::replay {

union ScalarValue {
  uint8_t boolean;
  int64_t int64;
  uint64_t uint64;
  float float32;
  double float64;
  float complex64[2];  // the real part first
  double complex128[2];
  char bytes[16];
};

// Converts as NumPy would for a loop of `dtype`. False (no exception set) where NumPy would raise or warn, or the object is not what
// the input promises. Needs the GIL.
bool convert_scalar(const SegmentInput& input, PyObject* object, DType dtype, ScalarValue* out);
// The same for numbers that have no object.
bool convert_complex(double real, double imaginary, DType dtype, ScalarValue* out);
bool convert_double(double value, DType dtype, ScalarValue* out);
bool convert_natural(uint64_t value, DType dtype, ScalarValue* out);
bool convert_integer(int64_t value, DType dtype, ScalarValue* out);

}  // namespace dalsegno::replay
