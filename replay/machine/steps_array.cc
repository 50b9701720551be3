// Products of matrices so small that a call of NumPy costs more than what it does, and reductions along axes: NumPy's own inner loop, at
// once, into a new array; of large arrays, on several threads. Where anything is not as expected, or a flag is up, the step is done as any
// other: nothing has happened yet.
#include <algorithm>
#include <array>
#include <cstring>

#include "hook/hook.h"
#include "numpy/loops.h"
#include "replay/kernels/table.h"
#include "replay/machine/reductions.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kMostProducts = 4096;    // multiplications
constexpr npy_intp kMostReduced = 1 << 30;  // elements
constexpr npy_intp kShared = 1 << 16;       // elements: from here on several threads share them, without the GIL
constexpr int kMostAxes = 6;

// ---- products

numpy::InnerLoop matmul_loop(DType dtype) {
  static const auto kLoops = [] {
    std::array<numpy::InnerLoop, static_cast<size_t>(DType::kCount)> loops{};
    for (size_t i = 0; i < loops.size(); ++i) loops[i] = numpy::matmul_loop(static_cast<DType>(i));
    return loops;
  }();
  return kLoops[static_cast<size_t>(dtype)];
}

PyObject* product(PyObject* left, PyObject* right) {
  DType dtype, other;
  PyArrayObject *a = small_operand(left, &dtype), *b = a ? small_operand(right, &other) : nullptr;
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
  PyObject* made = new_array(dtype, rank, shape);
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

// ---- reductions

// Neighbouring axes that are reduced, the first and the last.
struct Span {
  int first = 0, last = 0;
  bool has(int axis) const { return axis >= first && axis <= last; }
  int count() const { return last - first + 1; }
};

// Axes that are walked through as one: how many elements, and how far apart in bytes.
struct Walk {
  npy_intp many = 1, step = 0;
  // One more axis around it, `stride` bytes apart. False: not evenly.
  bool widen(npy_intp extent, npy_intp stride) {
    if (many != 1 && stride != step * many) return false;
    if (many == 1) step = stride;
    many *= extent;
    return true;
  }
};

// An array as what lies before the axes that are reduced, along them, and behind them. What they do not walk through as one axis they
// do in rounds.
struct Cut {
  Walk before, rounds, along, behind;
  npy_intp reduced() const { return rounds.many * along.many; }
};

// Is every axis as far apart as the ones behind it are long, or farther, and does it go upwards? NumPy then goes through them in this
// order, and so lie the elements of the result. Axes before those that are reduced, and behind them, must be one each. (Where there is no
// gap, axes of one element may stand anywhere: they are as in any other array.)
bool cut_at(PyArrayObject* a, Span reduced, Cut* cut) {
  npy_intp least = PyArray_ITEMSIZE(a), dense = least, size = 1;
  bool gaps = false;
  for (int d = PyArray_NDIM(a) - 1; d >= 0; --d) {
    const npy_intp extent = PyArray_DIM(a, d), stride = PyArray_STRIDE(a, d);
    if (extent < 1 || extent > kMostReduced || stride < least) return false;
    if (d > reduced.last) {
      if (!cut->behind.widen(extent, stride)) return false;
    } else if (d < reduced.first) {
      if (!cut->before.widen(extent, stride)) return false;
    } else if (cut->rounds.many != 1 || !cut->along.widen(extent, stride)) {
      if (!cut->rounds.widen(extent, stride)) return false;
    }
    gaps |= stride != dense;
    if (gaps && extent == 1) return false;
    size *= extent, dense *= extent;
    if (size > kMostReduced) return false;
    least = stride * extent;
  }
  if (cut->behind.many == 1 && cut->rounds.many != 1) return false;  // NumPy copies it, and adds all of it as one
  return !gaps || cut->behind.many == 1 || cut->behind.step == PyArray_ITEMSIZE(a);
}

// Sums of few: an inner loop costs more to be called than what it adds. Below this, NumPy adds one after the other (pairwise_sum in
// numpy/_core/src/umath/loops_utils.h.src), and then what there was.
constexpr npy_intp kFew = 8;

template <class T>
bool sum_of_few(const Cut& cut, const char* from, char* to) {
  if (cut.rounds.many != 1) return false;
  const auto at = [](const char* p) { return *reinterpret_cast<const T*>(p); };
  T* sums = reinterpret_cast<T*>(to);
  if (cut.behind.many == 1 && cut.along.many < kFew) {
    for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step) {
      T sum = -T{0};
      for (npy_intp k = 0; k < cut.along.many; ++k) sum += at(from + k * cut.along.step);
      sums[i] = T{0} + sum;
    }
    return true;
  }
  if (cut.behind.many == 1 || cut.behind.many >= kFew) return false;
  for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step, sums += cut.behind.many) {
    T sum[kFew] = {};
    const char* row = from;
    for (npy_intp k = 0; k < cut.along.many; ++k, row += cut.along.step)
      for (npy_intp j = 0; j < cut.behind.many; ++j) sum[j] += at(row + j * cut.behind.step);
    std::copy_n(sum, cut.behind.many, sums);
  }
  return true;
}

bool sum_of_few(DType dtype, const Cut& cut, const char* from, char* to) {
  switch (dtype) {
    case DType::kFloat64:
      return sum_of_few<double>(cut, from, to);
    case DType::kFloat32:
      return sum_of_few<float>(cut, from, to);
    case DType::kInt64:
      return sum_of_few<uint64_t>(cut, from, to);
    default:
      return false;
  }
}

// As a ufunc's reduce does it (numpy/_core/src/umath/reduction.c): the axes in the order of memory; along the innermost, one loop whose
// result is its first operand; along another, one of whole rows after the other. A sum begins with its identity, what has none with the
// first elements.
void reduce(const numpy::InnerLoop& loop, const Cut& cut, bool sums, const char* from, char* to, npy_intp item) {
  const npy_intp row = cut.behind.many * item;
  const bool inner = cut.behind.many == 1;
  const npy_intp strides[] = {inner ? 0 : item, inner ? cut.along.step : item, inner ? 0 : item};
  for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step, to += row) {
    if (sums)
      std::memset(to, 0, static_cast<size_t>(row));
    else
      std::memcpy(to, from, static_cast<size_t>(row));
    for (npy_intp round = 0; round < cut.rounds.many; ++round) {
      const npy_intp first = sums || round > 0 ? 0 : 1;
      npy_intp size = inner ? cut.along.many - first : cut.behind.many;
      for (npy_intp k = first; k < (inner ? first + 1 : cut.along.many) && size > 0; ++k) {
        char* operands[] = {to, const_cast<char*>(from) + round * cut.rounds.step + k * cut.along.step, to};
        loop.function(operands, &size, strides, loop.data);
      }
    }
  }
}

numpy::InnerLoop reducing_loop(ArrayFn fn, DType dtype) {
  static const auto kLoops = [] {
    std::array<std::array<numpy::InnerLoop, static_cast<size_t>(DType::kCount)>, 3> loops{};
    const ArrayFn fns[] = {ArrayFn::add, ArrayFn::maximum, ArrayFn::minimum};
    for (size_t f = 0; f < loops.size(); ++f)
      for (size_t i = 0; i < loops[f].size(); ++i) loops[f][i] = numpy::inner_loop(fns[f], static_cast<DType>(i), static_cast<DType>(i));
    return loops;
  }();
  return kLoops[fn == ArrayFn::add ? 0 : fn == ArrayFn::maximum ? 1 : 2][static_cast<size_t>(dtype)];
}

// Sums as means: the quotient of one and NumPy's 64-bit integer is a double, whatever the dtype (numpy/_core/_methods.py).
template <class T>
void divide(char* sums, npy_intp n, npy_intp by) {
  T* at = reinterpret_cast<T*>(sums);
  for (npy_intp i = 0; i < n; ++i) at[i] = static_cast<T>(static_cast<double>(at[i]) / static_cast<double>(by));
}

// -1: it is none.
int axis_of(PyObject* object, int rank) {
  if (!PyLong_CheckExact(object)) return -1;
  int overflow = 0;
  const long axis = PyLong_AsLongAndOverflow(object, &overflow);
  if (overflow != 0 || axis < -rank || axis >= rank) return -1;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// An axis, or several that are neighbours, but not all of them: the result is an array.
bool axes_of(PyObject* which, int rank, Span* span) {
  if (!PyTuple_CheckExact(which)) {
    span->first = span->last = axis_of(which, rank);
    return span->first >= 0 && rank > 1;
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(which);
  unsigned axes = 0;
  span->first = rank, span->last = -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int axis = axis_of(PyTuple_GET_ITEM(which, i), rank);
    if (axis < 0 || axes >> axis & 1) return false;
    axes |= 1u << axis;
    span->first = std::min(span->first, axis), span->last = std::max(span->last, axis);
  }
  return count > 0 && span->count() == count && count < rank;
}

// What is reduced to what.
struct Reduction {
  ArrayFn fn;
  DType dtype;
  numpy::InnerLoop loop;
  Cut cut;
  const char* from;
  char* to;

  void run() const {
    if (fn != ArrayFn::add || !sum_of_few(dtype, cut, from, to)) reduce(loop, cut, fn == ArrayFn::add, from, to, dtype_size(dtype));
  }

  // Rows, or columns (whole lines of the cache), that are a part of all.
  Reduction part(npy_intp number, npy_intp parts) const {
    Reduction made = *this;
    const npy_intp item = dtype_size(dtype);
    if (cut.before.many >= parts) {
      const npy_intp first = cut.before.many * number / parts;
      made.cut.before.many = cut.before.many * (number + 1) / parts - first;
      made.from += first * cut.before.step, made.to += first * cut.behind.many * item;
    } else {
      const npy_intp line = 64 / item, lines = cut.behind.many / line, first = lines * number / parts * line;
      made.cut.behind.many = (number + 1 == parts ? cut.behind.many : lines * (number + 1) / parts * line) - first;
      made.from += first * cut.behind.step, made.to += first * item;
    }
    return made;
  }
  bool is_shared(npy_intp parts) const {
    const npy_intp size = cut.before.many * cut.behind.many * cut.reduced();
    return size >= kShared && (cut.before.many >= parts || (cut.before.many == 1 && cut.behind.many * dtype_size(dtype) >= 64 * parts));
  }
};

}  // namespace

void reduce_rows(ArrayFn fn, DType dtype, const char* from, int64_t rows, int64_t n, char* to) {
  Cut cut;
  const npy_intp item = dtype_size(dtype);
  cut.before = {rows, n * item}, cut.along = {n, item};
  Reduction{fn, dtype, reducing_loop(fn, dtype), cut, from, to}.run();
}

bool has_reducing_loop(ArrayFn fn, DType dtype) { return reducing_loop(fn, dtype).function != nullptr; }

void divide_sums(DType dtype, char* sums, int64_t n, int64_t by) {
  (dtype == DType::kFloat64 ? divide<double> : divide<float>)(sums, n, by);
}

bool reduced_axes(PyObject* which, int rank, int* first, int* last) {
  Span span;
  if (!axes_of(which, rank, &span)) return false;
  *first = span.first, *last = span.last;
  return true;
}

namespace {

struct Shared {
  const Reduction* whole;
  npy_intp parts;
  static void take(void* context, int32_t number, char* const*) {
    const auto& shared = *static_cast<const Shared*>(context);
    shared.whole->part(number, shared.parts).run();
  }
};

// The flags that came up.
int run_shared(const Reduction& all) {
  constexpr npy_intp kParts = 8;
  rt::clear_all_raised();
  if (!launcher() || !all.is_shared(kParts)) return all.run(), rt::all_raised();
  Shared shared{&all, kParts};
  const rt::Pieces pieces{kParts, 0, nullptr, 0, 0, Shared::take, &shared};
  rt::Launch launch{};
  launch.threads = launch_threads(), launch.pieces = &pieces;
  PyThreadState* state = PyEval_SaveThread();
  const int raised = launcher()(nullptr, &launch);
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
  return raised;
}

// `keep`: the axes stay, of one element. Null: anything but a bool.
PyObject* along_axes(ArrayFn fn, bool mean, PyObject* object, PyObject* which, PyObject* keep) {
  DType dtype;
  PyArrayObject* a = small_operand(object, &dtype);
  if (!a || !PyBool_Check(keep) || (fn == ArrayFn::add && dtype == DType::kInt32)) return nullptr;
  if (mean && dtype != DType::kFloat64 && dtype != DType::kFloat32) return nullptr;
  const int rank = PyArray_NDIM(a);
  Span reduced;
  if (rank > kMostAxes || !axes_of(which, rank, &reduced)) return nullptr;
  const numpy::InnerLoop loop = reducing_loop(fn, dtype);
  Cut cut;
  if (!loop.function || !cut_at(a, reduced, &cut)) return nullptr;
  npy_intp shape[kMostAxes];
  int left = 0;
  for (int d = 0; d < rank; ++d) {
    if (!reduced.has(d))
      shape[left++] = PyArray_DIM(a, d);
    else if (keep == Py_True)
      shape[left++] = 1;
  }
  PyObject* made = new_array(dtype, left, shape);
  if (!made) return nullptr;
  Reduction whole{fn, dtype, loop, cut, PyArray_BYTES(a), data_of(made)};
  int raised = run_shared(whole);
  rt::clear_all_raised();
  if (mean) (dtype == DType::kFloat64 ? divide<double> : divide<float>)(data_of(made), cut.before.many * cut.behind.many, cut.reduced());
  raised |= rt::all_raised();
  return unless_raised(made, raised);
}

}  // namespace

const Step* step_matmul(const Step* s, Reg* r, Machine& m) { return made_or_called(product(r[s->a].o, r[s->b].o), s, r, m); }

const Step* step_matmul_call(const Step* s, Reg* r, Machine& m) {
  return made_or_called(product(r[s->list[1]].o, r[s->list[2]].o), s, r, m);
}

template <ArrayFn fn, bool mean = false>
const Step* step_along_axis(const Step* s, Reg* r, Machine& m) {
  if (s->other >= 0 && r[s->other].i != 0) return go_on(s + 1, r, m);  // it was done with the group
  PyObject* keep = s->n > 3 ? r[s->list[3]].o : Py_False;
  return made_or_called(along_axes(fn, mean, r[s->list[1]].o, r[s->list[2]].o, keep), s, r, m);
}

StepFn along_axis_step(typed::Callee callee) {
  switch (callee) {
    case typed::Callee::kSum:
    case typed::Callee::kSumMethod:
      return step_along_axis<ArrayFn::add>;
    case typed::Callee::kMean:
    case typed::Callee::kMeanMethod:
      return step_along_axis<ArrayFn::add, true>;
    case typed::Callee::kLargest:
    case typed::Callee::kLargestMethod:
      return step_along_axis<ArrayFn::maximum>;
    case typed::Callee::kLeast:
    case typed::Callee::kLeastMethod:
      return step_along_axis<ArrayFn::minimum>;
    default:
      return nullptr;
  }
}

}  // namespace dalsegno::replay
