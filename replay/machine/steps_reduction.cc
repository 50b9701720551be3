// What one number is made of all elements of an array: sums, means, norms, extremes and their positions, unboxed. Nothing here runs code of
// the user's.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "halide_gen/runtime/flags.h"
#include "numpy/errstate.h"
#include "numpy/sums.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/reductions.h"
#include "replay/machine/scalars.h"
#include "replay/machine/vectors.h"
#include "replay/machine/whole_numbers.h"

namespace dalsegno::replay {
namespace {

using typed::Callee;

struct Extents {
  char* data;
  int rank;
  npy_intp shape[typed::kMaxViewRank], strides[typed::kMaxViewRank];
};

bool extents_of(const Step& s, const Reg* r, DType dtype, Extents* out) {
  out->rank = s.c;
  if (s.a < 0) {
    out->data = reinterpret_cast<char*>(r[s.b].i);
    for (int d = 0; d < out->rank; ++d) out->shape[d] = r[s.b + 1 + d].i, out->strides[d] = r[s.b + 1 + out->rank + d].i;
    return true;
  }
  PyArrayObject* a = plain_array(r[s.a].o, {dtype, static_cast<int8_t>(out->rank)});
  if (!a) return false;
  out->data = PyArray_BYTES(a);
  for (int d = 0; d < out->rank; ++d) out->shape[d] = PyArray_DIM(a, d), out->strides[d] = PyArray_STRIDE(a, d);
  return true;
}

constexpr npy_intp kMostCopied = 1024;  // elements; NumPy copies up to 8192 at once

template <class T>
T* copy_of(const char* from, const npy_intp* shape, const npy_intp* strides, int rank, T* to) {
  for (npy_intp k = 0; k < shape[0]; ++k, from += strides[0]) {
    if (rank > 1)
      to = copy_of(from, shape + 1, strides + 1, rank - 1, to);
    else
      *to++ = *reinterpret_cast<const T*>(from);
  }
  return to;
}

// All elements in the order in which a ufunc's reduce goes through them: that of memory. Axes that do not go on where the next one ends are
// copied (`room`). False: NumPy goes through them in another way.
template <class T>
bool as_vector(const Extents& a, T* room, Vector* out) {
  npy_intp shape[typed::kMaxViewRank], strides[typed::kMaxViewRank], total = 1;
  int rank = 0;
  for (int d = 0; d < a.rank; ++d) {
    const npy_intp extent = a.shape[d], stride = a.strides[d];
    if (extent == 0 || (extent > 1 && stride <= 0)) return false;
    total *= extent;
    if (extent == 1) continue;
    int at = rank++;
    for (; at > 0 && strides[at - 1] < stride; --at) shape[at] = shape[at - 1], strides[at] = strides[at - 1];
    shape[at] = extent, strides[at] = stride;
  }
  int left = 0;
  for (int d = 0; d < rank; ++d) {
    if (left > 0 && strides[left - 1] == shape[d] * strides[d])
      shape[left - 1] *= shape[d], strides[left - 1] = strides[d];
    else
      shape[left] = shape[d], strides[left++] = strides[d];
  }
  if (left <= 1) return *out = {a.data, total, left == 1 ? strides[0] : static_cast<npy_intp>(sizeof(T))}, true;
  if (total > kMostCopied) return false;
  copy_of(a.data, shape, strides, left, room);
  return *out = {reinterpret_cast<char*>(room), total, sizeof(T)}, true;
}

// A sum begins with its identity, what has none with the first element, and the inner loop goes through the rest, its result being its
// first operand (numpy/_core/src/umath/reduction.c).
template <DType dtype, class T>
bool fold(ArrayFn fn, const Vector& x, T* made) {
  const numpy::InnerLoop loop = numpy::reducing_loop(fn, dtype);
  if (!loop.function) return false;
  const npy_intp first = fn == ArrayFn::add ? 0 : 1;
  *made = first == 0 ? T{0} : *reinterpret_cast<const T*>(x.data);
  char* operands[] = {reinterpret_cast<char*>(made), x.data + first * x.stride, reinterpret_cast<char*>(made)};
  npy_intp left = x.size - first;
  const npy_intp strides[] = {0, x.stride, 0};
  if (left > 0) loop.function(operands, &left, strides, loop.data);
  return true;
}

// Of a C-ordered array without a gap: any other is copied first.
bool position(Callee callee, DType dtype, const Extents& a, npy_intp* made) {
  npy_intp dense = dtype_size(dtype), n = 1;
  for (int d = a.rank - 1; d >= 0; dense *= a.shape[d], n *= a.shape[d], --d)
    if (a.shape[d] == 0 || (a.shape[d] != 1 && a.strides[d] != dense)) return false;
  const PyArray_ArrFuncs* functions = PyDataType_GetArrFuncs(numpy::descriptor(dtype));
  return (finds_greatest(callee) ? functions->argmax : functions->argmin)(a.data, n, made, nullptr) >= 0;
}

// Of what is left of each element beside the mean, by way of memory.
template <DType dtype, class T>
bool sum_squares(const Vector& x, T mean, T* made) {
  T few[kMostCopied];
  const std::unique_ptr<T[]> many(x.size > kMostCopied ? new (std::nothrow) T[static_cast<size_t>(x.size)] : nullptr);
  T* squares = x.size > kMostCopied ? many.get() : few;
  if (!squares) return false;
  for (npy_intp i = 0; i < x.size; ++i) {
    const T rest = *reinterpret_cast<const T*>(x.data + i * x.stride) - mean;
    squares[i] = rest * rest;
  }
  return fold<dtype>(ArrayFn::add, {reinterpret_cast<char*>(squares), x.size, sizeof(T)}, made);
}

// As _var() and _std() of numpy/_core/_methods.py: what is left of each element beside the mean, squared, in the order of memory.
template <DType dtype, class T>
bool spread(bool root, const Vector& x, int64_t ddof, T* made) {
  if (ddof >= x.size) return false;
  if (!fold<dtype>(ArrayFn::add, x, made)) return false;
  const auto n = static_cast<double>(x.size);
  const T mean = static_cast<T>(static_cast<double>(*made) / n);
  if (!(x.stride == sizeof(T) && numpy::sum_of_squares(reinterpret_cast<const T*>(x.data), x.size, mean, made)) &&
      !sum_squares<dtype>(x, mean, made))
    return false;
  *made = static_cast<T>(static_cast<double>(*made) / static_cast<double>(x.size - ddof));
  if (root) *made = std::sqrt(*made);
  return true;
}

template <DType dtype, class T>
bool number(Callee callee, const Vector& x, bool copied, int64_t ddof, T* made) {
  switch (callee) {
    case Callee::kSum:
    case Callee::kSumMethod:
      return fold<dtype>(ArrayFn::add, x, made);
    case Callee::kMean:
    case Callee::kMeanMethod:  // (the quotient of a sum and NumPy's 64-bit integer is a double)
      if (!fold<dtype>(ArrayFn::add, x, made)) return false;
      *made = static_cast<T>(static_cast<double>(*made) / static_cast<double>(x.size));
      return true;
    case Callee::kNorm:
      if (copied || x.stride != sizeof(T) || !by_dot(dtype, x, x, made)) return false;
      *made = std::sqrt(*made);
      return true;
    case Callee::kStd:
    case Callee::kStdMethod:
    case Callee::kVar:
    case Callee::kVarMethod:
      return !copied && spread<dtype>(callee == Callee::kStd || callee == Callee::kStdMethod, x, ddof, made);
    case Callee::kLargest:
    case Callee::kLargestMethod:
      return fold<dtype>(ArrayFn::maximum, x, made);
    default:
      return fold<dtype>(ArrayFn::minimum, x, made);
  }
}

// Axis by axis, the longest steps first: of what a fold is of, whatever way it goes through.
int64_t fold_axes(DType dtype, Fold fold, const char* data, int rank, const npy_intp* shape, const npy_intp* strides) {
  if (rank == 1) return fold_whole(dtype, fold, data, shape[0], strides[0]);
  int64_t made = fold_axes(dtype, fold, data, rank - 1, shape + 1, strides + 1);
  for (npy_intp k = 1; k < shape[0]; ++k)
    made = fold_both(dtype, fold, made, fold_axes(dtype, fold, data + k * strides[0], rank - 1, shape + 1, strides + 1));
  return made;
}

// Of integers and truth values.
bool reduce_whole(Callee callee, DType dtype, const Extents& a, Reg* out) {
  npy_intp shape[typed::kMaxViewRank], strides[typed::kMaxViewRank], size = 1;
  int rank = 0;
  for (int d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 0) return false;
    size *= a.shape[d];
    if (rank > 0 && strides[rank - 1] == a.shape[d] * a.strides[d]) {
      shape[rank - 1] *= a.shape[d], strides[rank - 1] = a.strides[d];
      continue;
    }
    if (a.shape[d] == 1) continue;
    shape[rank] = a.shape[d], strides[rank++] = a.strides[d];
  }
  if (rank == 0) shape[0] = 1, strides[0] = 0, rank = 1;
  const auto nearest = std::min_element(strides, strides + rank, [](npy_intp x, npy_intp y) { return std::abs(x) < std::abs(y); });
  std::swap(shape[nearest - strides], shape[rank - 1]);
  std::swap(*nearest, strides[rank - 1]);
  return give_whole(callee, dtype, fold_axes(dtype, fold_of(callee), a.data, rank, shape, strides), size, out);
}

template <DType dtype>
bool reduce(Callee callee, const Extents& a, int64_t ddof, Reg* out) {
  using T = typename numpy::Element<dtype>::Type;
  if (typed::finds_position(callee)) {
    npy_intp at;
    return position(callee, dtype, a, &at) && (part_of<int64_t>(*out) = at, true);
  }
  if constexpr (is_float(dtype)) {
    T made{}, room[kMostCopied];
    Vector x;
    if (!as_vector(a, room, &x)) return false;
    rt::clear_all_raised();
    if (!number<dtype>(callee, x, x.data != a.data, ddof, &made)) return false;
    if (const int raised = rt::all_raised(); raised != 0 && !numpy::errstate_ignores(raised)) return false;
    part_of<T>(*out) = made;
    return true;
  } else {
    return reduce_whole(callee, dtype, a, out);
  }
}

}  // namespace

bool give_whole(typed::Callee callee, DType dtype, int64_t folded, int64_t n, Reg* out) {
  if (!is_mean(callee)) return part_of<int64_t>(*out) = folded, true;
  part_of<double>(*out) = static_cast<double>(folded) / static_cast<double>(n);
  return is_mean_exact(dtype, n);
}

const Step* step_reduction(const Step* s, Reg* r, Machine& m) {
  static constexpr auto kReductions = numpy::by_dtype([]<DType dtype>() { return reduce<dtype>; });
  if (s->other >= 0 && r[s->other].i != 0) return go_on(s + 1, r, m);  // it was done with what it is made of
  const auto dtype = static_cast<DType>(s->n);
  Extents array;
  Reg made{};
  const int64_t ddof = s->list ? s->list[0] : 0;
  if (!extents_of(*s, r, dtype, &array) || !kReductions[static_cast<size_t>(dtype)](static_cast<Callee>(s->imm), array, ddof, &made))
      [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst] = made;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
