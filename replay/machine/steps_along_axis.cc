// Reductions along axes: NumPy's own inner loop, at once, into a new array; of large arrays, on several threads. Where anything is not as
// expected, or a flag is up, the step is done as any other: nothing has happened yet.
#include <algorithm>
#include <array>
#include <atomic>

#include "hook/hook.h"
#include "numpy/loops.h"
#include "numpy/sums.h"
#include "replay/machine/apart.h"
#include "replay/machine/arg_extremes.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/cut.h"
#include "replay/machine/extremes.h"
#include "replay/machine/reductions.h"
#include "replay/machine/scalars.h"
#include "replay/machine/shared_work.h"
#include "replay/machine/small_arrays.h"
#include "replay/machine/whole_numbers.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kShared = 1 << 16;  // elements: from here on several threads share them, without the GIL
constexpr int kMostAxes = 6;

// An axis, or several, but not all of them: the result is an array. A bit each; 0: something else.
unsigned axes_of(PyObject* which, int rank) {
  if (!PyTuple_CheckExact(which)) {
    const int axis = axis_of(which, rank);
    return axis >= 0 && rank > 1 ? 1u << axis : 0;
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(which);
  unsigned axes = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int axis = axis_of(PyTuple_GET_ITEM(which, i), rank);
    if (axis < 0 || axes >> axis & 1) return 0;
    axes |= 1u << axis;
  }
  return count < rank ? axes : 0;
}

// False: they are not neighbours.
bool span_of(unsigned axes, Span* span) {
  span->first = __builtin_ctz(axes), span->last = 31 - __builtin_clz(axes);
  return span->count() == __builtin_popcount(axes);
}

enum class Made : uint8_t { kPlain, kMean, kVariance, kDeviation };

// Rows, or columns (whole lines of the cache), that are a part of all; where they begin: bytes of the array, elements of the result.
struct Share {
  Cut cut;
  npy_intp from = 0, to = 0;
};
Share share_of(const Cut& cut, npy_intp item, npy_intp number, npy_intp parts) {
  Share made{cut};
  if (cut.before.many >= parts) {
    const npy_intp first = cut.before.many * number / parts;
    made.cut.before.many = cut.before.many * (number + 1) / parts - first;
    made.from = first * cut.before.step, made.to = first * cut.behind.many;
  } else {
    const npy_intp line = 64 / item, lines = cut.behind.many / line, first = lines * number / parts * line;
    made.cut.behind.many = (number + 1 == parts ? cut.behind.many : lines * (number + 1) / parts * line) - first;
    made.from = first * cut.behind.step, made.to = first;
  }
  return made;
}
bool has_shares(const Cut& cut, npy_intp item, npy_intp parts) {
  // Of columns, a part has a stretch of each row: short ones lie on as many pages as there are rows, and are slower together than rows.
  constexpr npy_intp kLeastStretch = 1536;
  const npy_intp size = cut.before.many * cut.behind.many * cut.reduced(), row = cut.behind.many * item;
  return size >= kShared && (cut.before.many >= parts || (cut.before.many == 1 && row >= kLeastStretch * parts));
}

// What is reduced to what.
struct Reduction {
  ArrayFn fn;
  DType dtype;
  numpy::InnerLoop loop;
  Cut cut;
  const char* from;
  char* to;
  Made made = Made::kPlain;
  int64_t ddof = 0;

  // Less the quotient of a mean. False: there is no memory.
  bool run() const {
    if (made > Made::kMean) {
      const bool root = made == Made::kDeviation;
      if (dtype == DType::kFloat64) return Spread<double>(loop, cut, ddof, root).run(from, to);
      return Spread<float>(loop, cut, ddof, root).run(from, to);
    }
    const bool sums = fn == ArrayFn::add;
    const bool at_once = sums ? sum_at_once(dtype, cut, from, to) : extremes_of_few(fn, dtype, loop, cut, from, to);
    if (!at_once) reduce(loop, cut, sums, from, to, dtype_size(dtype));
    return true;
  }

  Reduction part(npy_intp number, npy_intp parts) const {
    const npy_intp item = dtype_size(dtype);
    const Share mine = share_of(cut, item, number, parts);
    Reduction made = *this;
    made.cut = mine.cut, made.from += mine.from, made.to += mine.to * item;
    return made;
  }
  bool is_shared(npy_intp parts) const { return has_shares(cut, dtype_size(dtype), parts); }
};

// Positions of extremes.
struct Search {
  DType dtype;
  bool largest;
  Cut cut;
  const char* from;
  int64_t* to;

  bool run() const { return find_positions(dtype, largest, cut, from, to); }
  Search part(npy_intp number, npy_intp parts) const {
    const Share mine = share_of(cut, dtype_size(dtype), number, parts);
    return {dtype, largest, mine.cut, from + mine.from, to + mine.to};
  }
  // (A row of truth values is left as soon as one is found.)
  bool is_shared(npy_intp parts) const {
    return has_shares(cut, dtype_size(dtype), parts) && !(dtype == DType::kBool && cut.behind.many == 1);
  }
};

// The same along axes that are not neighbours.
struct ReductionApart {
  ArrayFn fn;
  DType dtype;
  numpy::InnerLoop loop;
  Apart apart;
  const char* from;
  char* to;
  Made made = Made::kPlain;
  int64_t ddof = 0;

  bool run() const {
    if (made > Made::kMean) return spread_apart(dtype, made == Made::kDeviation, ddof, loop, apart, from, to);
    return reduce_apart(fn, dtype, loop, apart, from, to);
  }

  // Of the outermost axis.
  ReductionApart part(npy_intp number, npy_intp parts) const {
    ReductionApart made = *this;
    Apart::Axis& axis = made.apart.axes[0];
    const npy_intp item = dtype_size(dtype), whole = axis.extent, first = whole * number / parts;
    axis.extent = whole * (number + 1) / parts - first;
    made.apart.kept = apart.kept / whole * axis.extent;
    made.from += first * axis.from * item, made.to += first * axis.to * item;
    return made;
  }
  bool is_shared(npy_intp parts) const {
    return apart.kept * apart.reduced >= kShared && !apart.axes[0].reduced && apart.axes[0].extent >= parts;
  }
};

}  // namespace

void reduce_rows(ArrayFn fn, DType dtype, const char* from, int64_t rows, int64_t n, char* to) {
  Cut cut;
  const npy_intp item = dtype_size(dtype);
  cut.before = {rows, n * item}, cut.along = {n, item};
  Reduction{.fn = fn, .dtype = dtype, .loop = numpy::reducing_loop(fn, dtype), .cut = cut, .from = from, .to = to}.run();
}

ArrayFn reduction_of(typed::Callee callee) {
  switch (fold_of(callee)) {
    case Fold::kSum:
      return ArrayFn::add;
    case Fold::kLargest:
      return ArrayFn::maximum;
    case Fold::kLeast:
      return ArrayFn::minimum;
    default:
      return ArrayFn::none;
  }
}

bool is_mean(typed::Callee callee) { return callee == typed::Callee::kMean || callee == typed::Callee::kMeanMethod; }

bool has_reducing_loop(ArrayFn fn, DType dtype) { return numpy::reducing_loop(fn, dtype).function != nullptr; }

void divide_sums(DType dtype, char* sums, int64_t n, int64_t by) {
  (dtype == DType::kFloat64 ? divide<double> : divide<float>)(sums, n, by);
}

bool reduced_axes(PyObject* which, int rank, int* first, int* last) {
  const unsigned axes = axes_of(which, rank);
  Span span;
  if (axes == 0 || !span_of(axes, &span)) return false;
  *first = span.first, *last = span.last;
  return true;
}

namespace {

// The flags that came up; -1: it has not been done.
template <class Whole>
int run_shared(const Whole& all) {
  constexpr npy_intp kParts = 8;
  rt::clear_all_raised();
  if (!launcher() || !all.is_shared(kParts)) return all.run() ? rt::all_raised() : -1;
  std::atomic<bool> failed = false;
  const int raised = share(kParts, [&](int number) {
    if (!all.part(number, kParts).run()) failed = true;
  });
  return failed ? -1 : raised;
}

// Of the result: its rank.
int shape_left(PyArrayObject* a, unsigned reduced, PyObject* keep, npy_intp* shape) {
  int left = 0;
  for (int d = 0; d < PyArray_NDIM(a); ++d) {
    if (!(reduced >> d & 1))
      shape[left++] = PyArray_DIM(a, d);
    else if (keep == Py_True)
      shape[left++] = 1;
  }
  return left;
}

PyArrayObject* whole_operand(PyObject* o, DType* dtype) {
  ArrayFacts facts;
  if (!o || !numpy::facts_of(o, &facts) || is_float(facts.dtype) || is_complex(facts.dtype)) return nullptr;
  *dtype = facts.dtype;
  return plain_array(o, facts);
}

// What a call says besides the array: the axes; do they stay, of one element each; by how much fewer than there are is divided?
struct How {
  PyObject *axes, *keep, *ddof;

  // A step's list has the registers behind the operands'.
  How(const Step& s, const Reg* r) : axes(given(s, r, 0, nullptr)), keep(given(s, r, 1, Py_False)), ddof(given(s, r, 2, nullptr)) {}

 private:
  static PyObject* given(const Step& s, const Reg* r, int32_t k, PyObject* otherwise) {
    const int32_t reg = s.list[s.n + k];
    return reg >= 0 ? r[reg].o : otherwise;
  }
};

// False: it is none of Python's plain ints, negative, or leaves nothing to divide by, of which NumPy warns.
bool find_ddof(PyObject* number, int64_t many, int64_t* ddof) {
  if (!number) return *ddof = 0, true;
  Reg found;
  if (!PyLong_CheckExact(number) || !unbox(typed::Rep::kInt, number, &found)) return false;
  *ddof = found.i;
  return found.i >= 0 && found.i < many;
}

PyObject* along_axes(ArrayFn fn, Made kind, PyObject* object, const How& how) {
  DType dtype;
  PyArrayObject* a = small_operand(object, &dtype);
  if (!a && fn != ArrayFn::add) a = whole_operand(object, &dtype);
  if (!a || !PyBool_Check(how.keep) || (fn == ArrayFn::add && dtype == DType::kInt32)) return nullptr;
  if (kind != Made::kPlain && !is_float(dtype)) return nullptr;
  const int rank = PyArray_NDIM(a);
  const unsigned axes = rank <= kMostAxes ? axes_of(how.axes, rank) : 0;
  const numpy::InnerLoop loop = numpy::reducing_loop(fn, dtype);
  if (axes == 0 || !loop.function) return nullptr;
  Span reduced;
  Cut cut;
  Apart apart;
  const bool neighbours = span_of(axes, &reduced) && cut_at(a, reduced, &cut);
  if (!neighbours && !cut_apart(a, axes, &apart)) return nullptr;
  const npy_intp many = neighbours ? cut.reduced() : apart.reduced;
  int64_t ddof;
  if (!find_ddof(how.ddof, many, &ddof)) return nullptr;
  npy_intp shape[kMostAxes];
  PyObject* made = new_array(PyArray_DESCR(a), shape_left(a, axes, how.keep, shape), shape);
  if (!made) return nullptr;
  int raised = neighbours ? run_shared(Reduction{fn, dtype, loop, cut, PyArray_BYTES(a), data_of(made), kind, ddof})
                          : run_shared(ReductionApart{fn, dtype, loop, apart, PyArray_BYTES(a), data_of(made), kind, ddof});
  if (raised < 0) return Py_DECREF(made), nullptr;
  rt::clear_all_raised();
  const npy_intp kept = neighbours ? cut.before.many * cut.behind.many : apart.kept;
  if (kind == Made::kMean) divide_sums(dtype, data_of(made), kept, many);
  raised |= rt::all_raised();
  return unless_raised(made, raised);
}

// ---- integers and truth values: in 64 bits, in any order

// Calls take(row, number of its first element among those that stay) for each row of neighbours that stay.
template <class Take>
void each_row(const Cut& cut, const char* from, Take take) {
  for (npy_intp b = 0; b < cut.before.many; ++b)
    for (npy_intp k = 0; k < cut.rounds.many; ++k)
      for (npy_intp i = 0; i < cut.along.many; ++i)
        take(from + b * cut.before.step + k * cut.rounds.step + i * cut.along.step, b * cut.behind.many);
}

void sum_whole(DType dtype, const Cut& cut, const char* from, int64_t* sums) {
  constexpr npy_intp kFew = 16;
  const Walk &before = cut.before, &along = cut.along, &behind = cut.behind;
  if (behind.many == 1) return fold_rows(dtype, Fold::kSum, from, before.many, before.step, along.many, along.step, sums);
  if (behind.many <= kFew && cut.rounds.many == 1 && before.many == 1)  // columns
    return fold_rows(dtype, Fold::kSum, from, behind.many, behind.step, along.many, along.step, sums);
  std::fill_n(sums, before.many * behind.many, 0);
  each_row(cut, from, [&](const char* row, npy_intp first) { add_row(dtype, row, behind.many, behind.step, sums + first); });
}

void ask_whole(DType dtype, Fold fold, const Cut& cut, const char* from, char* made) {
  const Walk &before = cut.before, &along = cut.along;
  if (cut.behind.many == 1) return ask_rows(dtype, fold, from, before.many, before.step, along.many, along.step, made);
  std::fill_n(made, before.many * cut.behind.many, fold == Fold::kAll);
  each_row(cut, from, [&](const char* row, npy_intp first) { ask_row(dtype, fold, row, cut.behind.many, cut.behind.step, made + first); });
}

PyObject* whole_along_axes(Fold fold, bool mean, PyObject* object, const How& how) {
  DType dtype;
  PyArrayObject* a = whole_operand(object, &dtype);
  if (!a || !PyBool_Check(how.keep) || PyArray_NDIM(a) > kMostAxes) return nullptr;
  const unsigned axes = axes_of(how.axes, PyArray_NDIM(a));
  Span reduced;
  Cut cut;
  Apart apart;
  const bool neighbours = axes != 0 && span_of(axes, &reduced) && cut_at(a, reduced, &cut);
  if (!neighbours && (axes == 0 || fold != Fold::kSum || !cut_apart(a, axes, &apart))) return nullptr;
  const npy_intp many = neighbours ? cut.reduced() : apart.reduced;
  if (mean && !is_mean_exact(dtype, many)) return nullptr;
  npy_intp shape[kMostAxes];
  const DType sums = typed::is_unsigned(typed::rep_of_dtype(dtype)) ? DType::kUint64 : DType::kInt64;
  PyArray_Descr* descr = handed_on(PyArray_DESCR(a), fold != Fold::kSum ? DType::kBool : mean ? DType::kFloat64 : sums);
  PyObject* made = new_array(descr, shape_left(a, axes, how.keep, shape), shape);
  if (!made) return nullptr;
  if (fold != Fold::kSum) return ask_whole(dtype, fold, cut, PyArray_BYTES(a), data_of(made)), made;
  auto* numbers = reinterpret_cast<int64_t*>(data_of(made));
  neighbours ? sum_whole(dtype, cut, PyArray_BYTES(a), numbers) : sum_whole_apart(dtype, apart, PyArray_BYTES(a), numbers);
  if (mean) divide_whole(numbers, neighbours ? cut.before.many * cut.behind.many : apart.kept, many);
  return made;
}

// Along one axis.
PyObject* positions_along_axis(bool largest, PyObject* object, const How& how) {
  DType dtype;
  PyArrayObject* a = small_operand(object, &dtype);
  if (!a) a = whole_operand(object, &dtype);
  if (!a || is_complex(dtype) || !PyBool_Check(how.keep) || PyArray_NDIM(a) > kMostAxes) return nullptr;
  const int rank = PyArray_NDIM(a), axis = axis_of(how.axes, rank);
  Cut cut;
  if (axis < 0 || rank < 2 || !cut_at(a, Span{axis, axis}, &cut)) return nullptr;
  npy_intp shape[kMostAxes];
  PyObject* made = new_array(numpy::descriptor(DType::kInt64), shape_left(a, 1u << axis, how.keep, shape), shape);
  if (!made) return nullptr;
  const int raised = run_shared(Search{dtype, largest, cut, PyArray_BYTES(a), reinterpret_cast<int64_t*>(data_of(made))});
  rt::clear_all_raised();
  if (raised < 0) Py_CLEAR(made);
  return made;
}

}  // namespace

// `at`: where the array stands among the operands.
template <ArrayFn fn, Made made = Made::kPlain, int at = 1>
const Step* step_along_axis(const Step* s, Reg* r, Machine& m) {
  if (s->other >= 0 && r[s->other].i != 0) return go_on(s + 1, r, m);  // it was done with the group
  PyObject* array = r[s->list[at]].o;
  const How how(*s, r);
  PyObject* found = along_axes(fn, made, array, how);
  if (!found && fn == ArrayFn::add && made <= Made::kMean) found = whole_along_axes(Fold::kSum, made == Made::kMean, array, how);
  return made_or_called(found, s, r, m);
}

template <Fold fold>
const Step* step_whole_along_axis(const Step* s, Reg* r, Machine& m) {
  return made_or_called(whole_along_axes(fold, false, r[s->list[1]].o, How(*s, r)), s, r, m);
}

template <bool largest>
const Step* step_positions_along_axis(const Step* s, Reg* r, Machine& m) {
  return made_or_called(positions_along_axis(largest, r[s->list[1]].o, How(*s, r)), s, r, m);
}

StepFn along_axis_step(typed::Callee callee, int32_t at) {
  using typed::Callee;
  if (at > 1) {
    const Fold fold = fold_of(callee);
    if (fold == Fold::kSum) return step_along_axis<ArrayFn::add, Made::kPlain, 2>;
    if (fold == Fold::kLargest) return step_along_axis<ArrayFn::maximum, Made::kPlain, 2>;
    return fold == Fold::kLeast ? step_along_axis<ArrayFn::minimum, Made::kPlain, 2> : nullptr;
  }
  switch (fold_of(callee)) {
    case Fold::kSum:
      return is_mean(callee) ? step_along_axis<ArrayFn::add, Made::kMean> : step_along_axis<ArrayFn::add>;
    case Fold::kLargest:
      return step_along_axis<ArrayFn::maximum>;
    case Fold::kLeast:
      return step_along_axis<ArrayFn::minimum>;
    case Fold::kAny:
      return step_whole_along_axis<Fold::kAny>;
    case Fold::kAll:
      return step_whole_along_axis<Fold::kAll>;
    default:
      break;
  }
  if (typed::finds_position(callee)) return finds_greatest(callee) ? step_positions_along_axis<true> : step_positions_along_axis<false>;
  if (!typed::finds_spread(callee)) return nullptr;
  const bool root = callee == Callee::kStd || callee == Callee::kStdMethod;
  return root ? step_along_axis<ArrayFn::add, Made::kDeviation> : step_along_axis<ArrayFn::add, Made::kVariance>;
}

}  // namespace dalsegno::replay
