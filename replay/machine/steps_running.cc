// Running sums and products (cumsum, cumprod; NumPy: PyUFunc_Accumulate in ufunc_object.c): each element is the one before it and what is
// added, so the order is fixed; NumPy's loop goes through memory from one to the next, this one through a register. Where anything is not
// as expected, or a flag is up, the step is done as any other: nothing has happened yet.
#include <algorithm>
#include <type_traits>

#include "hook/hook.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kShort = 1 << 16;  // elements: beyond, other threads have the GIL meanwhile

template <class T, bool product>
T with(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // wraps
    const auto x = static_cast<std::make_unsigned_t<T>>(a), y = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(product ? x * y : x + y);
  } else {
    return product ? a * b : a + b;
  }
}

// n elements, `stride` bytes apart, into neighbours.
template <class T, bool product>
[[gnu::noinline]] void run_along(const char* from, npy_intp stride, npy_intp n, T* to) {
  T made = *reinterpret_cast<const T*>(from);
  to[0] = made;
  for (npy_intp i = 1; i < n; ++i) {
    from += stride;
    made = with<T, product>(made, *reinterpret_cast<const T*>(from));
    to[i] = made;
  }
}

// `n` rows of `row` neighbours: each is the one before it and what is added.
template <class T, bool product>
[[gnu::noinline]] void run_across(const T* from, npy_intp n, npy_intp row, T* to) {
  std::copy_n(from, row, to);
  for (npy_intp k = row; k < n * row; ++k) to[k] = with<T, product>(to[k - row], from[k]);
}

template <class T, bool product>
void run(PyArrayObject* a, int axis, char* made) {
  auto* to = reinterpret_cast<T*>(made);
  if (PyArray_NDIM(a) == 1) return run_along<T, product>(PyArray_BYTES(a), PyArray_STRIDE(a, 0), PyArray_DIM(a, 0), to);
  npy_intp row = 1, size = PyArray_SIZE(a), n = PyArray_DIM(a, axis);
  for (int d = axis + 1; d < PyArray_NDIM(a); ++d) row *= PyArray_DIM(a, d);
  const auto* from = reinterpret_cast<const T*>(PyArray_BYTES(a));
  for (npy_intp k = 0; k < size; k += n * row) {
    if (row == 1)
      run_along<T, product>(reinterpret_cast<const char*>(from + k), sizeof(T), n, to + k);
    else
      run_across<T, product>(from + k, n, row, to + k);
  }
}

template <bool product>
bool run_any(DType dtype, PyArrayObject* a, int axis, char* made) {
  switch (dtype) {
    case DType::kFloat64:
      return run<double, product>(a, axis, made), true;
    case DType::kFloat32:
      return run<float, product>(a, axis, made), true;
    case DType::kInt64:
      return run<int64_t, product>(a, axis, made), true;
    default:
      return false;
  }
}

// -1: it is none, or all of several.
int axis_or_only(PyObject* which, int rank) {
  if (which == nullptr || which == Py_None) return rank == 1 ? 0 : -1;
  return axis_of(which, rank);
}

template <bool product>
PyObject* running(PyObject* object, PyObject* which) {
  DType dtype;
  PyArrayObject* a = operand_among({DType::kFloat64, DType::kInt64, DType::kFloat32}, object, &dtype);
  const int rank = a ? PyArray_NDIM(a) : 0, axis = rank > 0 ? axis_or_only(which, rank) : -1;
  const npy_intp size = axis >= 0 ? PyArray_SIZE(a) : 0;
  if (size == 0 || (rank == 1 ? PyArray_STRIDE(a, 0) <= 0 : !PyArray_IS_C_CONTIGUOUS(a))) return nullptr;
  PyObject* made = new_array(PyArray_DESCR(a), rank, PyArray_DIMS(a));
  if (!made) return nullptr;
  rt::clear_all_raised();
  if (size < kShort) return run_any<product>(dtype, a, axis, data_of(made)), unless_raised(made);
  PyThreadState* state = PyEval_SaveThread();
  run_any<product>(dtype, a, axis, data_of(made));
  const int raised = rt::all_raised();
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
  return unless_raised(made, raised);
}

template <bool product>
const Step* step_running(const Step* s, Reg* r, Machine& m) {
  return made_or_called(running<product>(r[s->list[1]].o, s->n > 2 ? r[s->list[2]].o : nullptr), s, r, m);
}

}  // namespace

StepFn running_step(typed::Callee callee) {
  using typed::Callee;
  if (!typed::runs_along(callee)) return nullptr;
  return callee == Callee::kCumsum || callee == Callee::kCumsumMethod ? step_running<false> : step_running<true>;
}

}  // namespace dalsegno::replay
