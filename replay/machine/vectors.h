// Vectors in memory, and their product as dot() has it.
#pragma once
#include <type_traits>

#include "numpy/dtypes.h"

namespace dalsegno::replay {

struct Vector {
  char* data;
  npy_intp size, stride;
};

// As dot does it (cblas_matrixproduct in numpy/_core/src/common/cblasfuncs.c): a vector of one element is a factor. False: NumPy would
// copy an operand first.
template <class T>
bool by_dot(DType dtype, const Vector& x, const Vector& y, T* out) {
  const auto bad = [](const Vector& v) { return v.stride < 0 || v.stride % static_cast<npy_intp>(sizeof(T)) != 0; };
  if (bad(x) || bad(y)) return false;
  if (std::is_floating_point_v<T> && x.size == 1) {
    *out = *reinterpret_cast<const T*>(x.data) * *reinterpret_cast<const T*>(y.data);
    return true;
  }
  if (x.size == 0) return *out = 0, true;
  PyDataType_GetArrFuncs(numpy::descriptor(dtype))->dotfunc(x.data, x.stride, y.data, y.stride, out, x.size, nullptr);
  return true;
}

}  // namespace dalsegno::replay
