// Elements where a mask is true: `a[m]`, and `a[m] = v` of a number or of as many elements. NumPy looks for them one by one, which costs
// a branch mispredicted for each run of them; here 64 bytes of the mask are looked at together (replay/masks/stretches.h). The order is
// C's, as in array_boolean_subscript and array_assign_boolean_subscript (numpy/_core/src/multiarray/mapping.c). Anything that is not as
// expected is NumPy's.
#include <algorithm>
#include <cstring>

#include "hook/hook.h"
#include "numpy/dtypes.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/masks/stretches.h"
#include "replay/segment/scalars.h"

namespace dalsegno::replay {
namespace {

constexpr int kMostAxes = 8;
constexpr npy_intp kLong = 1 << 16;  // elements: from here on others may have the GIL

// Without the GIL, where that is worth it.
template <class Work>
void let_go_for(npy_intp size, const Work& work) {
  if (size < kLong) return work();
  PyThreadState* state = PyEval_SaveThread();
  work();
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
}

// An array and its mask, of one shape, or the mask that of its first axis: then what is taken are rows.
struct Masked {
  PyArrayObject *array = nullptr, *mask = nullptr;
  npy_intp item = 0;  // bytes of what is taken
  npy_intp size = 0, count = 0;
  bool rows = false;

  bool find(PyObject* a, PyObject* m) {
    if (!a || !m || !PyArray_CheckExact(a) || !PyArray_CheckExact(m)) return false;
    mask = plain_array(m, {DType::kBool, static_cast<int8_t>(PyArray_NDIM(reinterpret_cast<PyArrayObject*>(m)))});
    if (!mask) return false;
    array = reinterpret_cast<PyArrayObject*>(a);
    PyArray_Descr* descr = PyArray_DESCR(array);
    const int rank = PyArray_NDIM(array), of_mask = PyArray_NDIM(mask);
    if (!PyTypeNum_ISNUMBER(descr->type_num) && descr->type_num != NPY_BOOL) return false;
    if (PyDataType_METADATA(descr) || !PyArray_ISNBO(descr->byteorder) || !PyArray_ISALIGNED(array)) return false;
    item = PyArray_ITEMSIZE(array);
    if (!masks::is_known(item) || rank < 1 || rank > kMostAxes || of_mask < 1) return false;
    rows = of_mask == 1 && rank == 2;
    if (rows) {
      if (PyArray_DIM(array, 0) != PyArray_DIM(mask, 0) || !PyArray_IS_C_CONTIGUOUS(array) || PyArray_DIM(array, 1) == 0) return false;
      item *= PyArray_DIM(array, 1);
    } else if (of_mask != rank || !std::equal(PyArray_DIMS(array), PyArray_DIMS(array) + rank, PyArray_DIMS(mask))) {
      return false;
    }
    size = PyArray_SIZE(mask);
    return size > 0;
  }

  // False: of other bytes than 0 and 1 NumPy makes what it makes.
  bool find_count() {
    bool odd = false;
    let_go_for(size, [&] { each_row([&](masks::Items, const masks::Mask& of) { count += masks::count(of, &odd); }); });
    return !odd;
  }

  // In C order: a row of the array, and that of the mask.
  template <class Row>
  void each_row(const Row& row) const {
    const int rank = PyArray_NDIM(mask), last = rank - 1;
    char *a = PyArray_BYTES(array), *m = PyArray_BYTES(mask);
    if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_IS_C_CONTIGUOUS(mask)) return row({a, item}, {m, 1, size});
    const npy_intp n = PyArray_DIM(mask, last), step = PyArray_STRIDE(array, last), of_step = PyArray_STRIDE(mask, last);
    npy_intp at[kMostAxes] = {};
    for (npy_intp done = 0; done < size; done += n) {
      npy_intp of_array = 0, of_mask = 0;
      for (int d = 0; d < last; ++d) of_array += at[d] * PyArray_STRIDE(array, d), of_mask += at[d] * PyArray_STRIDE(mask, d);
      row({a + of_array, step}, {m + of_mask, of_step, n});
      for (int d = last - 1; d >= 0 && ++at[d] == PyArray_DIM(mask, d); --d) at[d] = 0;
    }
  }
};

void take(const Masked& x, char* to) {
  npy_intp room = x.count;  // (the mask may have been changed by another thread)
  x.each_row([&](masks::Items from, const masks::Mask& m) {
    const npy_intp n = masks::take(m, x.item, from, to, room);
    to += n * x.item, room -= n;
  });
}

void take_rows(const Masked& x, char* to) {
  char* const end = to + x.count * x.item;
  x.each_row([&](masks::Items from, const masks::Mask& m) {
    for (npy_intp i = 0; i < m.n && to < end; ++i)
      if (m.at[i * m.step] != 0) std::memcpy(to, from.at + i * x.item, static_cast<size_t>(x.item)), to += x.item;
  });
}

void put(const Masked& x, masks::Items from) {
  npy_intp left = x.count;
  x.each_row([&](masks::Items to, const masks::Mask& m) {
    const npy_intp n = masks::put(m, x.item, to, from, left);
    from.at += n * from.step, left -= n;
  });
}

// Null: NumPy has to do it.
PyObject* taken(PyObject* a, PyObject* m) {
  Masked x;
  if (!x.find(a, m) || !x.find_count()) return nullptr;
  PyArray_Descr* descr = PyArray_DESCR(x.array);
  npy_intp shape[] = {x.count, x.rows ? PyArray_DIM(x.array, 1) : 0};
  PyObject* made = new_array(descr, x.rows ? 2 : 1, shape);
  if (!made) return nullptr;
  let_go_for(x.size, [&] { (x.rows ? take_rows : take)(x, data_of(made)); });
  return made;
}

// False: nothing has been done.
bool stored(PyObject* a, PyObject* m, PyObject* v) {
  Masked x;
  if (!v || !x.find(a, m) || x.rows || !is_writeable(x.array) || overlap(x.array, x.mask)) return false;
  if (ScalarValue one{}; element_of(x.array, v, &one)) {
    let_go_for(x.size, [&] { x.each_row([&](masks::Items to, const masks::Mask& m) { masks::fill(m, x.item, to, one.bytes); }); });
    return true;
  }
  if (!PyArray_CheckExact(v)) return false;
  auto* values = reinterpret_cast<PyArrayObject*>(v);
  const bool alike = PyArray_DESCR(values) == PyArray_DESCR(x.array) && PyArray_ISALIGNED(values) && PyArray_NDIM(values) == 1;
  if (!alike || overlap(x.array, values) || !x.find_count() || PyArray_DIM(values, 0) != x.count) return false;
  if (x.count == 0) return true;
  let_go_for(x.size, [&] { put(x, {PyArray_BYTES(values), PyArray_STRIDE(values, 0)}); });
  return true;
}

}  // namespace

const Step* step_get_masked(const Step* s, Reg* r, Machine& m) { return made_or_got(taken(r[s->a].o, r[s->b].o), s, r, m); }

const Step* step_set_masked(const Step* s, Reg* r, Machine& m) { return stored_or_set(stored(r[s->a].o, r[s->b].o, r[s->c].o), s, r, m); }

}  // namespace dalsegno::replay
