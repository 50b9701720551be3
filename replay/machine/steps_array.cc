// Products of matrices so small that a call of NumPy costs more than what it does: NumPy's own inner loop, at once, into a new array. Where
// anything is not as expected, or a flag is up, the step is done as any other: nothing has happened yet.
#include <array>

#include "numpy/loops.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kMostProducts = 4096;  // multiplications

numpy::InnerLoop matmul_loop(DType dtype) {
  static const auto kLoops = [] {
    std::array<numpy::InnerLoop, static_cast<size_t>(DType::kCount)> loops{};
    for (size_t i = 0; i < loops.size(); ++i) loops[i] = numpy::matmul_loop(static_cast<DType>(i));
    return loops;
  }();
  return kLoops[static_cast<size_t>(dtype)];
}

PyArrayObject* factor(PyObject* o, DType* dtype) {
  return operand_among({DType::kFloat64, DType::kComplex128, DType::kInt64, DType::kFloat32, DType::kInt32, DType::kComplex64}, o, dtype);
}

PyObject* product(PyObject* left, PyObject* right) {
  DType dtype, other;
  PyArrayObject *a = factor(left, &dtype), *b = a ? factor(right, &other) : nullptr;
  if (!b || dtype != other) return nullptr;
  const int ra = PyArray_NDIM(a), rb = PyArray_NDIM(b);
  if (ra < 1 || rb < 1 || ra > 2 || rb > 2 || ra + rb < 3) return nullptr;
  const npy_intp m = ra == 2 ? PyArray_DIM(a, 0) : 1, n = PyArray_DIM(a, ra - 1), p = rb == 2 ? PyArray_DIM(b, 1) : 1;
  if (PyArray_DIM(b, 0) != n || m < 1 || n < 1 || p < 1 || m > kMostProducts || n > kMostProducts || p > kMostProducts) return nullptr;
  const numpy::InnerLoop loop = matmul_loop(dtype);
  if (m * n > kMostProducts || m * n * p > kMostProducts || !loop.function) return nullptr;
  npy_intp shape[2];
  int rank = 0;
  if (ra == 2) shape[rank++] = m;
  if (rb == 2) shape[rank++] = p;
  PyObject* made = new_array(PyArray_DESCR(a), rank, shape);
  if (!made) return nullptr;
  const npy_intp item = dtype_size(dtype);
  char* operands[] = {PyArray_BYTES(a), PyArray_BYTES(b), data_of(made)};
  const npy_intp extents[] = {1, m, n, p};
  const npy_intp strides[] = {0,
                              0,
                              0,
                              ra == 2 ? core_stride(m, PyArray_STRIDE(a, 0)) : 0,
                              core_stride(n, PyArray_STRIDE(a, ra - 1)),
                              core_stride(n, PyArray_STRIDE(b, 0)),
                              rb == 2 ? core_stride(p, PyArray_STRIDE(b, 1)) : 0,
                              ra == 2 ? core_stride(m, rb == 2 ? p * item : item) : 0,
                              rb == 2 ? core_stride(p, item) : 0};
  rt::clear_all_raised();
  loop.function(operands, extents, strides, loop.data);
  return unless_raised(made);
}

}  // namespace

const Step* step_matmul(const Step* s, Reg* r, Machine& m) { return made_or_called(product(r[s->a].o, r[s->b].o), s, r, m); }

const Step* step_matmul_call(const Step* s, Reg* r, Machine& m) {
  return made_or_called(product(r[s->list[1]].o, r[s->list[2]].o), s, r, m);
}

}  // namespace dalsegno::replay
