// Elements at positions along several axes, a[rows, columns], and along the last of two, a[:, columns]; and what is stored at positions:
// a[positions] = v, a[rows, columns] = v of a number or of as many elements, one after the other, as NumPy's mapiter_set does it
// (numpy/_core/src/multiarray/lowlevel_strided_loops.c.src). All bounds are looked at first. Anything that is not as expected is NumPy's.
#include <algorithm>
#include <array>
#include <cstring>

#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr int kMostAxes = 4;
constexpr npy_intp kPiece = 256;  // positions whose places are found at once

bool holds_positions(DType dtype) { return dtype != DType::kBool && !is_float(dtype) && !is_complex(dtype) && dtype != DType::kUint64; }

// Are all of them inside? Then to[k] grows by how far the k-th lies from the beginning.
template <DType dtype>
bool are_inside(const char* at, npy_intp n, npy_intp extent) {
  using T = typename numpy::Element<dtype>::Type;
  uint64_t outside = 0;
  for (npy_intp k = 0; k < n; ++k) {
    const auto p = static_cast<uint64_t>(static_cast<npy_intp>(numpy::element_at<T>(at + k * static_cast<npy_intp>(sizeof(T)))));
    outside |= (static_cast<uint64_t>(extent) - 1 - p) | (p + static_cast<uint64_t>(extent));
  }
  return static_cast<int64_t>(outside) >= 0;
}
template <DType dtype>
void add_places(const char* at, npy_intp first, npy_intp n, npy_intp extent, npy_intp stride, npy_intp* to) {
  using T = typename numpy::Element<dtype>::Type;
  at += first * static_cast<npy_intp>(sizeof(T));
  for (npy_intp k = 0; k < n; ++k) {
    const auto p = static_cast<npy_intp>(numpy::element_at<T>(at + k * static_cast<npy_intp>(sizeof(T))));
    to[k] += (p < 0 ? p + extent : p) * stride;
  }
}
struct Finding {
  bool (*are_inside)(const char*, npy_intp, npy_intp);
  void (*add_places)(const char*, npy_intp, npy_intp, npy_intp, npy_intp, npy_intp*);
};
constexpr auto kFindings = numpy::by_dtype([]<DType dtype>() {
  if constexpr (std::is_integral_v<typename numpy::Element<dtype>::Type>)
    return Finding{are_inside<dtype>, add_places<dtype>};
  else
    return Finding{};
});

// One element each, along all axes of an array, or rows along the first: arrays of positions of one shape, and ints.
struct Places {
  struct Along {
    PyArrayObject* positions;
    DType dtype;
    npy_intp extent, stride;
  };
  PyArrayObject* array = nullptr;
  ArrayFacts facts;
  std::array<Along, kMostAxes> along;
  int count = 0;
  npy_intp first = 0;             // of what ints say
  npy_intp size = 0;              // positions
  npy_intp item = 0;              // bytes at each of them
  PyArrayObject* like = nullptr;  // has the positions' shape

  bool find(PyObject* a, PyObject* key) {
    if (!a || !key || !numpy::facts_of(a, &facts)) return false;
    array = plain_array(a, facts);
    if (!array || facts.rank < 1 || facts.rank > kMostAxes || PyArray_SIZE(array) == 0) return false;
    item = PyArray_ITEMSIZE(array);
    if (!PyTuple_CheckExact(key)) return find_rows(key);
    if (PyTuple_GET_SIZE(key) != facts.rank) return false;
    for (int d = 0; d < facts.rank; ++d)
      if (!find_along(PyTuple_GET_ITEM(key, d), d)) return false;
    return like != nullptr;
  }

  // Positions of rows, which have no gaps.
  bool find_rows(PyObject* key) {
    if (facts.rank > 1 && !PyArray_IS_C_CONTIGUOUS(array)) return false;
    for (int d = 1; d < facts.rank; ++d) item *= PyArray_DIM(array, d);
    return find_along(key, 0) && like != nullptr;
  }

  bool find_along(PyObject* part, int d) {
    const npy_intp extent = PyArray_DIM(array, d), stride = PyArray_STRIDE(array, d);
    if (PyLong_CheckExact(part)) {
      int overflow = 0;
      const long p = PyLong_AsLongAndOverflow(part, &overflow);
      if (overflow != 0 || p < -extent || p >= extent) return false;
      return first += (p < 0 ? p + extent : p) * stride, true;
    }
    ArrayFacts at;
    PyArrayObject* positions = dense_array(part, &at);
    if (!positions || at.rank < 1 || !holds_positions(at.dtype) || PyArray_SIZE(positions) == 0) return false;
    if (like && !PyArray_SAMESHAPE(like, positions)) return false;
    like = positions, size = PyArray_SIZE(positions);
    along[static_cast<size_t>(count++)] = {positions, at.dtype, extent, stride};
    return kFindings[static_cast<size_t>(at.dtype)].are_inside(PyArray_BYTES(positions), size, extent);
  }

  // Calls take(where it lies, its number) for each.
  template <class Take>
  void each(Take take) const {
    std::array<npy_intp, kPiece> places;
    char* const data = PyArray_BYTES(array) + first;
    if (std::all_of(along.begin(), along.begin() + count, [](const Along& one) { return one.dtype == DType::kInt64; }) && count <= 2)
      return count == 1 ? each_of<1>(data, take) : each_of<2>(data, take);
    for (npy_intp at = 0; at < size; at += kPiece) {
      const npy_intp n = std::min(kPiece, size - at);
      std::fill_n(places.data(), n, 0);
      for (int k = 0; k < count; ++k) {
        const Along& one = along[static_cast<size_t>(k)];
        kFindings[static_cast<size_t>(one.dtype)].add_places(PyArray_BYTES(one.positions), at, n, one.extent, one.stride, places.data());
      }
      for (npy_intp k = 0; k < n; ++k) take(data + places[static_cast<size_t>(k)], at + k);
    }
  }

  // Of 64-bit positions.
  template <int n, class Take>
  void each_of(char* data, Take take) const {
    struct Axis {
      const int64_t* positions;
      npy_intp extent, stride;
      npy_intp operator()(npy_intp k) const {
        const auto p = static_cast<npy_intp>(positions[k]);
        return (p + (p < 0 ? extent : 0)) * stride;
      }
    };
    const auto axis = [&](int k) {
      const Along& one = along[static_cast<size_t>(k)];
      return Axis{reinterpret_cast<const int64_t*>(PyArray_BYTES(one.positions)), one.extent, one.stride};
    };
    const Axis x = axis(0), y = axis(n - 1);
    for (npy_intp k = 0, many = size; k < many; ++k) take(data + x(k) + (n > 1 ? y(k) : 0), k);
  }

  // The same, with a size that the compiler knows where that is one of a number's.
  template <class Move>
  void move(Move move) const {
    switch (item) {
      case 1:
        return each([&](char* place, npy_intp k) { move(place, k, std::integral_constant<size_t, 1>{}); });
      case 4:
        return each([&](char* place, npy_intp k) { move(place, k, std::integral_constant<size_t, 4>{}); });
      case 8:
        return each([&](char* place, npy_intp k) { move(place, k, std::integral_constant<size_t, 8>{}); });
      default:
        return each([&](char* place, npy_intp k) { move(place, k, static_cast<size_t>(item)); });
    }
  }
};

// Null: NumPy has to do it.
PyObject* taken(PyObject* a, PyObject* key) {
  Places places;
  if (!places.find(a, key)) return nullptr;
  PyObject* made =
      new_array(handed_on(PyArray_DESCR(places.array), places.facts.dtype), PyArray_NDIM(places.like), PyArray_DIMS(places.like));
  if (!made) return nullptr;
  char* to = data_of(made);
  places.move([&](const char* place, npy_intp k, auto size) { std::memcpy(to + k * static_cast<npy_intp>(size), place, size); });
  return made;
}

bool is_whole(PyObject* slice) {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  return PySlice_Check(slice) && s->start == Py_None && s->stop == Py_None && s->step == Py_None;
}

// a[:, columns]: NumPy makes the columns' axis the first one in memory.
PyObject* taken_columns(PyObject* object, PyObject* key) {
  ArrayFacts of, at;
  if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2 || !is_whole(PyTuple_GET_ITEM(key, 0))) return nullptr;
  PyArrayObject* columns = dense_array(PyTuple_GET_ITEM(key, 1), &at);
  if (!columns || at.rank != 1 || !holds_positions(at.dtype) || !numpy::facts_of(object, &of) || of.rank != 2) return nullptr;
  PyArrayObject* a = plain_array(object, of);
  if (!a) return nullptr;
  const npy_intp n = PyArray_DIM(columns, 0), rows = PyArray_DIM(a, 0), extent = PyArray_DIM(a, 1), item = PyArray_ITEMSIZE(a);
  const Finding& finding = kFindings[static_cast<size_t>(at.dtype)];
  if (n == 0 || rows == 0 || !finding.are_inside(PyArray_BYTES(columns), n, extent)) return nullptr;
  const npy_intp shape[] = {n, rows};
  PyObject* made = new_array(handed_on(PyArray_DESCR(a), of.dtype), 2, shape);
  if (!made) return nullptr;
  char* to = data_of(made);
  for (npy_intp k = 0; k < n; ++k) {
    npy_intp place = 0;
    finding.add_places(PyArray_BYTES(columns), k, 1, extent, PyArray_STRIDE(a, 1), &place);
    const char* from = PyArray_BYTES(a) + place;
    const npy_intp stride = PyArray_STRIDE(a, 0);
    const auto copy = [&](auto size) {
      for (npy_intp i = 0; i < rows; ++i, from += stride, to += size) std::memcpy(to, from, static_cast<size_t>(size));
    };
    item == 8 ? copy(std::integral_constant<npy_intp, 8>{}) : copy(item);
  }
  PyObject* view = PyArray_Transpose(reinterpret_cast<PyArrayObject*>(made), nullptr);
  Py_DECREF(made);
  if (!view) PyErr_Clear();
  return view;
}

// False: nothing has been done.
bool stored(PyObject* a, PyObject* key, PyObject* v) {
  Places places;
  if (!v || !places.find(a, key) || !is_writeable(places.array)) return false;
  for (int k = 0; k < places.count; ++k)
    if (overlap(places.array, places.along[static_cast<size_t>(k)].positions)) return false;
  const npy_intp item = PyArray_ITEMSIZE(places.array);
  if (ScalarValue one{}; element_of(places.array, v, &one)) {
    if (places.item != item) return false;
    places.move([&](char* place, npy_intp, auto size) { std::memcpy(place, one.bytes, size); });
    return true;
  }
  ArrayFacts facts;
  PyArrayObject* values = dense_array(v, &facts);
  if (!values || facts.dtype != places.facts.dtype || places.item != item || !PyArray_SAMESHAPE(values, places.like)) return false;
  if (overlap(places.array, values)) return false;
  const char* from = PyArray_BYTES(values);
  places.move([&](char* place, npy_intp k, auto size) { std::memcpy(place, from + k * static_cast<npy_intp>(size), size); });
  return true;
}

}  // namespace

bool element_of(PyArrayObject* array, PyObject* v, ScalarValue* out) {
  ArrayFacts facts;
  if (!numpy::facts_of(reinterpret_cast<PyObject*>(array), &facts)) return false;
  SegmentInput kind;
  kind.dtype = facts.dtype;
  const bool complex = is_complex(facts.dtype);
  if (PyBool_Check(v)) {
    kind.kind = InputKind::kWeakBool;
  } else if (PyLong_CheckExact(v)) {
    kind.kind = InputKind::kWeakInt;
  } else if (PyFloat_CheckExact(v)) {
    kind.kind = InputKind::kWeakFloat;
    if (!is_float(facts.dtype) && !complex) return false;
  } else if (PyComplex_CheckExact(v) && complex) {
    kind.kind = InputKind::kWeakComplex;
  } else if (Py_TYPE(v) == numpy::scalar_type(facts.dtype)) {
    kind.kind = InputKind::kScalar;
  } else {
    return false;
  }
  return convert_scalar(kind, v, facts.dtype, out);
}

const Step* step_get_places(const Step* s, Reg* r, Machine& m) {
  PyObject *a = r[s->a].o, *key = r[s->b].o, *made = taken(a, key);
  if (!made) made = taken_columns(a, key);
  if (!made) [[unlikely]]
    return step_get_item(s, r, m);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

const Step* step_set_places(const Step* s, Reg* r, Machine& m) {
  static const StepFn kReplacing = step_exec_replacing(OpKind::set_item);
  if (stored(r[s->a].o, r[s->b].o, r[s->c].o)) return go_on(s + 1, r, m);
  return s->linked ? step_exec_linked(s, r, m) : kReplacing(s, r, m);
}

}  // namespace dalsegno::replay
