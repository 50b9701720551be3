// Vectors in memory, and their product as dot() has it.
#pragma once
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "numpy/dtypes.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/step.h"

namespace dalsegno::replay {

struct Vector {
  char* data;
  npy_intp size, stride;
};

// Of a view whose registers begin at `block`, or (-1) of an array with that dtype and one axis. False: it is another one.
inline bool vector_of(PyObject* object, int32_t block, const Reg* r, DType dtype, Vector* out) {
  if (block >= 0) {
    *out = {reinterpret_cast<char*>(r[block].i), r[block + 1].i, r[block + 2].i};
    return true;
  }
  PyArrayObject* a = plain_array(object, {dtype, 1});
  if (!a) return false;
  *out = {PyArray_BYTES(a), PyArray_DIM(a, 0), PyArray_STRIDE(a, 0)};
  return true;
}

// A vector as BLAS takes it: where NumPy would copy it first (_bad_strides in numpy/_core/src/common/cblasfuncs.c), so does this.
template <class T>
class ForBlas {
 public:
  explicit ForBlas(const Vector& v) : vector_(v) {
    constexpr auto kSize = static_cast<npy_intp>(sizeof(T));
    if (v.stride >= 0 && v.stride % kSize == 0 && (v.stride != 0 || v.size < 2)) return;
    if (v.size > kRoom) more_.reset(new (std::nothrow) T[static_cast<size_t>(v.size)]);
    T* out = v.size > kRoom ? more_.get() : room_;
    vector_ = {reinterpret_cast<char*>(out), v.size, kSize};
    for (npy_intp k = 0; out && k < v.size; ++k) std::memcpy(out + k, v.data + k * v.stride, sizeof(T));
  }
  ForBlas(const ForBlas&) = delete;
  ForBlas& operator=(const ForBlas&) = delete;

  bool there() const { return vector_.data != nullptr; }
  const Vector& operator*() const { return vector_; }

 private:
  static constexpr npy_intp kRoom = 32;

  Vector vector_;
  T room_[kRoom];
  std::unique_ptr<T[]> more_;
};

// As dot does it (cblas_matrixproduct there, of floats): a vector of one element is a factor. False: no memory.
template <class T>
bool by_dot(DType dtype, const Vector& x, const Vector& y, T* out) {
  if (x.size == 0) return *out = 0, true;
  const auto dot = PyDataType_GetArrFuncs(numpy::descriptor(dtype))->dotfunc;
  if constexpr (std::is_floating_point_v<T>) {
    if (x.size == 1) return *out = *reinterpret_cast<const T*>(x.data) * *reinterpret_cast<const T*>(y.data), true;
    const ForBlas<T> a(x), b(y);
    if (!a.there() || !b.there()) return false;
    dot((*a).data, (*a).stride, (*b).data, (*b).stride, out, x.size, nullptr);
  } else {
    dot(x.data, x.stride, y.data, y.stride, out, x.size, nullptr);
  }
  return true;
}

}  // namespace dalsegno::replay
