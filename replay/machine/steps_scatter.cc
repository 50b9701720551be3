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
constexpr npy_intp kPiece = 256;    // positions whose places are found at once
constexpr size_t kMostListed = 32;  // positions in a list

// Are all of them inside? (By signs of differences, as in steps_gather.cc.)
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
// to[k] grows by how far the k-th behind `first` lies from the axis's beginning.
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

// Positions: those in an array, or the ints in a short list. (A list of truth values is a mask.)
struct Positions {
  PyArrayObject* array = nullptr;  // null: a list's
  const char* at = nullptr;
  DType dtype = DType::kInt64;
  int rank = 1;
  npy_intp size = 0;
  const npy_intp* shape = &size;
  std::array<int64_t, kMostListed> room;

  bool find(PyObject* o) {
    if (PyList_CheckExact(o)) return find_listed(o);
    ArrayFacts facts;
    array = dense_array(o, &facts);
    if (!array || facts.rank < 1 || !holds_positions(facts.dtype)) return false;
    at = PyArray_BYTES(array), dtype = facts.dtype, rank = facts.rank;
    size = PyArray_SIZE(array), shape = PyArray_DIMS(array);
    return size > 0;
  }
  bool find_listed(PyObject* list) {
    size = PyList_GET_SIZE(list);
    if (size == 0 || size > static_cast<npy_intp>(room.size())) return false;
    for (npy_intp k = 0; k < size; ++k) {
      PyObject* item = PyList_GET_ITEM(list, k);
      int overflow = 0;
      if (!PyLong_CheckExact(item)) return false;
      room[static_cast<size_t>(k)] = PyLong_AsLongAndOverflow(item, &overflow);
      if (overflow != 0) return false;
    }
    at = reinterpret_cast<const char*>(room.data());
    return true;
  }
  bool is_like(const Positions& other) const { return rank == other.rank && std::equal(shape, shape + rank, other.shape); }
};

// One element each, along all axes of an array, or rows along the first: positions of one shape, and ints.
struct Places {
  struct Along {
    Positions positions;
    npy_intp extent, stride;
  };
  PyArrayObject* array = nullptr;
  ArrayFacts facts;
  std::array<Along, kMostAxes> along;
  int count = 0;
  npy_intp first = 0;  // of what ints say
  npy_intp size = 0;   // positions
  npy_intp item = 0;   // bytes at each of them

  bool find(PyObject* a, PyObject* key) {
    if (!a || !key || !numpy::facts_of(a, &facts)) return false;
    array = plain_array(a, facts);
    if (!array || facts.rank < 1 || facts.rank > kMostAxes || PyArray_SIZE(array) == 0) return false;
    item = PyArray_ITEMSIZE(array);
    if (!PyTuple_CheckExact(key)) return find_rows(key);
    if (PyTuple_GET_SIZE(key) != facts.rank) return false;
    for (int d = 0; d < facts.rank; ++d)
      if (!find_along(PyTuple_GET_ITEM(key, d), d)) return false;
    return count > 0;
  }
  const Positions& like() const { return along[0].positions; }  // has the places' shape

  bool is_shape_of(PyArrayObject* a) const {
    return PyArray_NDIM(a) == like().rank && std::equal(like().shape, like().shape + like().rank, PyArray_DIMS(a));
  }

  // Positions of rows, which have no gaps.
  bool find_rows(PyObject* key) {
    if (facts.rank > 1 && !PyArray_IS_C_CONTIGUOUS(array)) return false;
    for (int d = 1; d < facts.rank; ++d) item *= PyArray_DIM(array, d);
    return !PyLong_CheckExact(key) && find_along(key, 0);
  }

  bool find_along(PyObject* part, int d) {
    const npy_intp extent = PyArray_DIM(array, d), stride = PyArray_STRIDE(array, d);
    if (PyLong_CheckExact(part)) {
      int overflow = 0;
      const long p = PyLong_AsLongAndOverflow(part, &overflow);
      if (overflow != 0 || p < -extent || p >= extent) return false;
      return first += (p < 0 ? p + extent : p) * stride, true;
    }
    Along& one = along[static_cast<size_t>(count)];
    if (!one.positions.find(part) || (count > 0 && !one.positions.is_like(like()))) return false;
    one.extent = extent, one.stride = stride, size = one.positions.size, ++count;
    return kFindings[static_cast<size_t>(one.positions.dtype)].are_inside(one.positions.at, size, extent);
  }

  // Calls take(where it lies, its number) for each.
  template <class Take>
  void each(Take take) const {
    std::array<npy_intp, kPiece> places;
    char* const data = PyArray_BYTES(array) + first;
    if (std::all_of(along.begin(), along.begin() + count, [](const Along& one) { return one.positions.dtype == DType::kInt64; }) &&
        count <= 2)
      return count == 1 ? each_of<1>(data, take) : each_of<2>(data, take);
    for (npy_intp at = 0; at < size; at += kPiece) {
      const npy_intp n = std::min(kPiece, size - at);
      std::fill_n(places.data(), n, 0);
      for (int k = 0; k < count; ++k) {
        const Along& one = along[static_cast<size_t>(k)];
        kFindings[static_cast<size_t>(one.positions.dtype)].add_places(one.positions.at, at, n, one.extent, one.stride, places.data());
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
      return Axis{reinterpret_cast<const int64_t*>(one.positions.at), one.extent, one.stride};
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
  constexpr int kMostOfResult = 8;
  Places places;
  if (!places.find(a, key)) return nullptr;
  const Positions& like = places.like();
  const int rows = PyTuple_CheckExact(key) ? 0 : places.facts.rank - 1;
  if (like.rank + rows > kMostOfResult) return nullptr;
  npy_intp shape[kMostOfResult];
  std::copy_n(like.shape, like.rank, shape);
  std::copy_n(PyArray_DIMS(places.array) + 1, rows, shape + like.rank);
  PyObject* made = new_array(handed_on(PyArray_DESCR(places.array), places.facts.dtype), like.rank + rows, shape);
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
  ArrayFacts of;
  Positions columns;
  if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2 || !is_whole(PyTuple_GET_ITEM(key, 0))) return nullptr;
  if (!columns.find(PyTuple_GET_ITEM(key, 1)) || columns.rank != 1 || !numpy::facts_of(object, &of) || of.rank != 2) return nullptr;
  PyArrayObject* a = plain_array(object, of);
  if (!a) return nullptr;
  const npy_intp rows = PyArray_DIM(a, 0), extent = PyArray_DIM(a, 1), item = PyArray_ITEMSIZE(a);
  const Finding& finding = kFindings[static_cast<size_t>(columns.dtype)];
  if (rows == 0 || !finding.are_inside(columns.at, columns.size, extent)) return nullptr;
  const npy_intp shape[] = {columns.size, rows};
  PyObject* made = new_array(handed_on(PyArray_DESCR(a), of.dtype), 2, shape);
  if (!made) return nullptr;
  char* to = data_of(made);
  for (npy_intp k = 0; k < columns.size; ++k) {
    npy_intp place = 0;
    finding.add_places(columns.at, k, 1, extent, PyArray_STRIDE(a, 1), &place);
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
  for (int k = 0; k < places.count; ++k) {
    PyArrayObject* positions = places.along[static_cast<size_t>(k)].positions.array;
    if (positions && overlap(places.array, positions)) return false;
  }
  const npy_intp item = PyArray_ITEMSIZE(places.array);
  if (ScalarValue one{}; element_of(places.array, v, &one)) {
    if (places.item != item) return false;
    places.move([&](char* place, npy_intp, auto size) { std::memcpy(place, one.bytes, size); });
    return true;
  }
  ArrayFacts facts;
  PyArrayObject* values = dense_array(v, &facts);
  if (!values || facts.dtype != places.facts.dtype || places.item != item || !places.is_shape_of(values)) return false;
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
  return made_or_got(made ? made : taken_columns(a, key), s, r, m);
}

const Step* step_set_places(const Step* s, Reg* r, Machine& m) { return stored_or_set(stored(r[s->a].o, r[s->b].o, r[s->c].o), s, r, m); }

}  // namespace dalsegno::replay
