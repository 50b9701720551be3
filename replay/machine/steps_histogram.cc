// np.histogram() of numbers into bins of one width: as NumPy computes it (numpy/lib/_histograms_impl.py, and linspace() of
// _core/function_base.py), each element once, instead of by a dozen arrays. Where anything is not as expected nothing has been done.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>

#include "halide_gen/runtime/flags.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/made.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr double kMostExact = 0x1p53;  // whole numbers below are doubles, and no other becomes one of those
constexpr npy_intp kMostBins = 1 << 20;
constexpr npy_intp kWeighed = 65536;  // elements whose weights NumPy adds up for themselves

// What was given; null: it was not.
struct Given {
  PyObject *bins = nullptr, *range = nullptr, *density = nullptr, *weights = nullptr;
  bool take(PyObject* names, PyObject* const* given, Py_ssize_t placed, Py_ssize_t named) {
    constexpr std::array<std::string_view, 4> kNames = {"bins", "range", "density", "weights"};
    PyObject** const all[] = {&bins, &range, &density, &weights};
    if (placed > static_cast<Py_ssize_t>(kNames.size())) return false;
    for (Py_ssize_t i = 0; i < placed; ++i) *all[i] = given[i];
    for (Py_ssize_t i = 0; i < named; ++i) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
      const auto at = name ? std::find(kNames.begin(), kNames.end(), name) : kNames.end();
      if (at == kNames.end() || *all[at - kNames.begin()]) return PyErr_Clear(), false;
      *all[at - kNames.begin()] = given[placed + i];
    }
    for (PyObject** one : {&range, &density, &weights})
      if (*one == Py_None) *one = nullptr;
    if (density == Py_False) density = nullptr;
    return bins && !density;
  }
};

// An int or a float of Python's that a double holds.
bool number(PyObject* o, double* out) {
  if (PyFloat_CheckExact(o)) return *out = PyFloat_AS_DOUBLE(o), std::isfinite(*out);
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
  *out = static_cast<double>(whole);
  return overflow == 0 && std::abs(*out) < kMostExact;
}

bool is_pair(PyObject* o) { return (PyTuple_CheckExact(o) || PyList_CheckExact(o)) && Py_SIZE(o) == 2; }

struct Bins {
  double first, last, width;  // width: of all of them
  npy_intp n;
  double* edges;  // n + 1
  // False: NumPy refuses them, or makes them in another way.
  bool set() const {
    const double step = (last - first) / static_cast<double>(n);
    if (step == 0 || !std::isfinite(step)) return false;
    for (npy_intp i = 0; i <= n; ++i) edges[i] = static_cast<double>(i) * step + first;
    edges[n] = last;
    for (npy_intp i = 0; i < n; ++i)
      if (edges[i] >= edges[i + 1]) return false;
    return true;
  }
  bool has(double x) const { return (x >= first) & (x <= last); }
  // Of what it has: the bin, or the next one, or the one before.
  int32_t near(double x) const { return static_cast<int32_t>((x - first) / width * static_cast<double>(n)); }
  npy_intp exactly(double x, npy_intp near) const {
    npy_intp at = near - (near == n);
    at -= x < edges[at];
    at += (x >= edges[at + 1]) & (at != n - 1);
    return at;
  }
  npy_intp operator()(double x) const { return exactly(x, near(x)); }
};

// ---- many at a time

constexpr npy_intp kLanes = 4, kPiece = 256;
using Lanes [[gnu::vector_size(32), gnu::aligned(alignof(double)), gnu::may_alias]] = double;
using Near [[gnu::vector_size(16), gnu::aligned(alignof(int32_t)), gnu::may_alias]] = int32_t;

// What has no bin becomes `first`. x: kPiece of them.
[[gnu::always_inline]] inline void place_lanes(const Bins& bins, double* x, int32_t* near, int32_t* has) {
  const Lanes first = bins.first - Lanes{}, last = bins.last - Lanes{}, width = bins.width - Lanes{};
  const Lanes n = static_cast<double>(bins.n) - Lanes{};
  for (npy_intp i = 0; i < kPiece; i += kLanes) {
    Lanes& value = *reinterpret_cast<Lanes*>(x + i);
    const auto inside = (value >= first) & (value <= last);
    value = inside ? value : first;
    *reinterpret_cast<Near*>(has + i) = -__builtin_convertvector(inside, Near);
    *reinterpret_cast<Near*>(near + i) = __builtin_convertvector((value - first) / width * n, Near);
  }
}

struct Extent {
  double least, most;
  bool nan;
};
[[gnu::always_inline]] inline Extent extent_of_lanes(const double* from, npy_intp n) {
  Lanes least = from[0] - Lanes{}, most = least;
  decltype(least != least) nan{};
  npy_intp i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes x = *reinterpret_cast<const Lanes*>(from + i);
    least = x < least ? x : least, most = x > most ? x : most, nan |= x != x;
  }
  Extent all{least[0], most[0], false};
  for (npy_intp k = 0; k < kLanes; ++k)
    all.least = std::min(all.least, least[k]), all.most = std::max(all.most, most[k]), all.nan |= nan[k] != 0;
  for (; i < n; ++i) all.least = std::min(all.least, from[i]), all.most = std::max(all.most, from[i]), all.nan |= from[i] != from[i];
  return all;
}

// The ways of a processor.
struct Ways {
  void (*place)(const Bins&, double*, int32_t*, int32_t*);
  Extent (*extent)(const double*, npy_intp);
};
#define DALSEGNO_WAYS(name, target)                                                                                       \
  target void place_##name(const Bins& bins, double* x, int32_t* near, int32_t* has) { place_lanes(bins, x, near, has); } \
  target Extent extent_##name(const double* from, npy_intp n) { return extent_of_lanes(from, n); }                        \
  constexpr Ways k##name = {place_##name, extent_##name};
DALSEGNO_WAYS(Plain, )
#if defined(__x86_64__) && !defined(__clang_analyzer__)
DALSEGNO_WAYS(Newer, [[gnu::target("avx2")]])
#else
DALSEGNO_WAYS(Newer, )
#endif

const Ways& ways() {
  static const Ways& kBest = __builtin_cpu_supports("avx2") ? kNewer : kPlain;
  return kBest;
}

// ---- elements

// False: there is a NaN, or what is too large for a double.
template <class T>
bool extent_of(const T* from, npy_intp n, double* first, double* last) {
  if constexpr (std::is_same_v<T, double>) {
    const Extent all = ways().extent(from, n);
    *first = all.least, *last = all.most;
    return !all.nan && std::isfinite(*first) && std::isfinite(*last) &&
           *last != 0;  // (which of several zeros is the last edge, NumPy knows)
  }
  const auto [least, most] = std::minmax_element(from, from + n);
  *first = static_cast<double>(*least), *last = static_cast<double>(*most);
  return std::max(std::abs(*first), std::abs(*last)) < kMostExact;
}

// Calls take(number of the element, its bin, whether it has one) for each of them, or for what they are given to.
template <class T, class Take>
void each_bin(const T* from, npy_intp n, const Bins& given, Take take) {
  const Bins bins = given;
  std::array<double, kPiece> x{};
  std::array<int32_t, kPiece> near, has;
  for (npy_intp at = 0; at < n; at += kPiece) {
    const npy_intp size = std::min(kPiece, n - at);
    for (npy_intp i = 0; i < size; ++i) x[static_cast<size_t>(i)] = static_cast<double>(from[at + i]);
    ways().place(bins, x.data(), near.data(), has.data());
    for (npy_intp i = 0; i < size; ++i) {
      const auto k = static_cast<size_t>(i);
      take(at + i, bins.exactly(x[k], near[k]), has[k]);
    }
  }
}

// Bytes: each value's bin is looked for once.
template <class T>
void count_bytes(const T* from, npy_intp n, const Bins& bins, int64_t* counts) {
  constexpr size_t kSides = 4, kValues = 256;  // (what has just been counted is not there to be read yet)
  std::array<std::array<int64_t, kValues>, kSides> seen{};
  npy_intp i = 0;
  for (; i + static_cast<npy_intp>(kSides) <= n; i += kSides)
    for (size_t side = 0; side < kSides; ++side) ++seen[side][static_cast<uint8_t>(from[i + static_cast<npy_intp>(side)])];
  for (; i < n; ++i) ++seen[0][static_cast<uint8_t>(from[i])];
  for (size_t value = 0; value < kValues; ++value) {
    int64_t all = 0;
    for (const auto& side : seen) all += side[value];
    const auto x = static_cast<double>(static_cast<T>(static_cast<uint8_t>(value)));
    if (all > 0 && bins.has(x)) counts[bins(x)] += all;
  }
}

template <class T>
void count(const T* from, npy_intp n, const Bins& bins, int64_t* counts) {
  if constexpr (sizeof(T) == 1) return count_bytes(from, n, bins, counts);
  each_bin(from, n, bins, [&](npy_intp, npy_intp at, int32_t has) { counts[at] += has; });
}

// False: there is a sum that is not finite.
template <class T>
bool weigh(const T* from, const double* weights, npy_intp n, const Bins& bins, double* sums) {
  const std::unique_ptr<double[]> some(new (std::nothrow) double[static_cast<size_t>(bins.n)]);
  if (!some) return false;
  bool finite = true;
  for (npy_intp at = 0; at < n; at += kWeighed) {
    std::fill_n(some.get(), bins.n, 0.0);
    each_bin(from + at, std::min(n - at, kWeighed), bins, [&](npy_intp i, npy_intp bin, int32_t has) {
      if (has) some[static_cast<size_t>(bin)] += weights[at + i];
    });
    for (npy_intp k = 0; k < bins.n; ++k) sums[k] += some[static_cast<size_t>(k)], finite &= std::isfinite(sums[k]);
  }
  return finite;
}

struct Work {
  PyArrayObject *numbers, *weights;  // weights: null, there are none
  PyObject* range;                   // null: from the least number to the largest
  Bins bins;
  PyObject* counts;

  template <DType dtype>
  bool run() {
    using T = typename numpy::Element<dtype>::Type;
    const auto* from = reinterpret_cast<const T*>(PyArray_BYTES(numbers));
    const npy_intp n = PyArray_SIZE(numbers);
    if (range ? !number(PySequence_Fast_GET_ITEM(range, 0), &bins.first) || !number(PySequence_Fast_GET_ITEM(range, 1), &bins.last)
              : !extent_of(from, n, &bins.first, &bins.last))
      return false;
    bins.width = bins.last - bins.first;
    if (!(bins.width > 0) || !std::isfinite(bins.width) || !bins.set()) return false;
    if (double least, most; range && std::is_same_v<T, int64_t> && !extent_of(from, n, &least, &most)) return false;
    if (weights)
      return weigh(from, reinterpret_cast<const double*>(PyArray_BYTES(weights)), n, bins, reinterpret_cast<double*>(data_of(counts)));
    count(from, n, bins, reinterpret_cast<int64_t*>(data_of(counts)));
    return true;
  }
};

// What there is a way for: doubles, and integers that doubles hold.
PyArrayObject* operand(PyObject* o, DType* dtype) {
  ArrayFacts facts;
  PyArrayObject* a = dense_array(o, &facts);
  if (!a || facts.rank < 1 || PyArray_SIZE(a) == 0) return nullptr;
  const bool known = facts.dtype == DType::kFloat64 || !(is_float(facts.dtype) || is_complex(facts.dtype));
  if (!known || facts.dtype == DType::kBool || facts.dtype == DType::kUint64) return nullptr;
  *dtype = facts.dtype;
  return a;
}

PyArrayObject* weights_of(PyObject* o, PyArrayObject* numbers) {
  ArrayFacts facts;
  PyArrayObject* a = dense_array(o, &facts);
  return a && facts.dtype == DType::kFloat64 && PyArray_SAMESHAPE(a, numbers) ? a : nullptr;
}

// What linspace() gives: it is asked.
enum class Edges : uint8_t { kUnknown, kOwn, kView } g_edges = Edges::kUnknown;
PyObject* g_linspace = nullptr;

}  // namespace

bool knows_histogram() {
  static const bool knows = [] {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy._core.function_base");
    g_linspace = module ? PyObject_GetAttrString(module, "linspace") : nullptr;
    PyObject* made = g_linspace ? PyObject_CallFunction(g_linspace, "ddi", 0.0, 1.0, 3) : nullptr;
    if (made && PyArray_CheckExact(made)) {
      PyObject* base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(made));
      const auto* whole = reinterpret_cast<PyArrayObject*>(base);
      if (!base)
        g_edges = Edges::kOwn;
      else if (PyArray_CheckExact(base) && PyArray_NDIM(whole) == 1 && PyArray_DIM(whole, 0) == 3 && !PyArray_BASE(whole))
        g_edges = Edges::kView;
    }
    Py_XDECREF(made);
    PyErr_Clear();
    return g_edges != Edges::kUnknown;
  }();
  return knows;
}

PyObject* histogram(const Step& s, const Reg* r) {
  constexpr int kMostGiven = 6;
  if (s.n > kMostGiven) return nullptr;
  std::array<PyObject*, kMostGiven> given{};
  for (int k = 0; k + 2 < s.n; ++k) given[static_cast<size_t>(k)] = r[s.list[k + 2]].o;
  const Py_ssize_t named = s.object ? PyTuple_GET_SIZE(s.object) : 0;
  Given arguments;
  DType dtype;
  int overflow = 0;
  if (s.n < 3 || named > s.n - 2 || !arguments.take(s.object, given.data(), s.n - 2 - named, named)) return nullptr;
  PyArrayObject* numbers = operand(r[s.list[1]].o, &dtype);
  if (!numbers || !PyLong_CheckExact(arguments.bins)) return nullptr;
  if (PyDict_GetItemString(PyModule_GetDict(numpy::module()), "linspace") != g_linspace) return nullptr;
  PyArrayObject* weights = arguments.weights ? weights_of(arguments.weights, numbers) : nullptr;
  if (arguments.weights && !weights) return nullptr;
  if (arguments.range && !is_pair(arguments.range)) return nullptr;
  const npy_intp n = PyLong_AsLongLongAndOverflow(arguments.bins, &overflow), edges = n + 1;
  if (overflow != 0 || n < 1 || n > kMostBins) return nullptr;
  PyObject* counts = weights ? new_array(PyArray_DESCR(weights), 1, &n) : new_array(DType::kInt64, 1, &n);
  PyObject* memory = new_array(DType::kFloat64, 1, &edges);
  PyObject* ends = memory && g_edges == Edges::kView ? new_view(memory, DType::kFloat64, edges, sizeof(double), 0) : Py_XNewRef(memory);
  PyObject* made = nullptr;
  if (counts && ends) {
    std::fill_n(data_of(counts), n * npy_intp{sizeof(int64_t)}, char{0});
    Work work{numbers, weights, arguments.range, {0, 0, 0, n, reinterpret_cast<double*>(data_of(ends))}, counts};
    using Run = bool (Work::*)();
    static constexpr auto kRuns = numpy::by_dtype([]<DType of>() -> Run { return &Work::run<of>; });
    rt::clear_all_raised();
    // (Nothing that is computed is invalid, but comparisons with NaN raise that flag, which NumPy's do not.)
    if ((work.*kRuns[static_cast<size_t>(dtype)])()) made = unless_raised(PyTuple_Pack(2, counts, ends), rt::all_raised() & ~rt::kInvalid);
  }
  Py_XDECREF(counts);
  Py_XDECREF(memory);
  Py_XDECREF(ends);
  PyErr_Clear();
  return made;
}

}  // namespace dalsegno::replay
