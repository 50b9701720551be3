// Elements where a mask is true: `a[m]`, and `a[m] = v` of a number or of as many elements. NumPy looks for them one by one, which costs
// a branch mispredicted for each run of them; here every element is copied, and how far the result has come depends on the mask. The order
// is C's, as in array_boolean_subscript and array_assign_boolean_subscript (numpy/_core/src/multiarray/mapping.c). Anything that is not as
// expected is NumPy's.
#include <algorithm>
#include <bit>
#include <cstring>

#include "hook/hook.h"
#include "numpy/dtypes.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/segment/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr int kMostAxes = 8;
constexpr npy_intp kLong = 1 << 16;  // elements: from here on others may have the GIL

struct Sixteen {
  uint64_t a, b;
};

// `here` ? `value` : `old`, without a branch.
template <class T>
T chosen(bool here, T value, T old) {
  return static_cast<T>(old ^ ((old ^ value) & static_cast<T>(T{0} - static_cast<T>(here))));
}
Sixteen chosen(bool here, Sixteen value, Sixteen old) { return {chosen(here, value.a, old.a), chosen(here, value.b, old.b)}; }

// Eight bytes of a mask at once: most masks are true or false over long stretches.
constexpr npy_intp kEight = 8;
constexpr uint64_t kAllTrue = 0x0101010101010101;
uint64_t eight(const char* m) {
  uint64_t word;
  std::memcpy(&word, m, sizeof word);
  return word;
}

// A row of a mask in stretches: all(first, n), n a multiple of eight, where it is true; some(first, end) where it may be either. What is
// false is passed over.
template <class All, class Some>
void stretches(const char* m, npy_intp step, npy_intp n, const All& all, const Some& some) {
  npy_intp i = 0;
  while (step == 1 && i + kEight <= n) {
    const uint64_t word = eight(m + i);
    if (word == 0) {
      i += kEight;
      while (i + 4 * kEight <= n && (eight(m + i) | eight(m + i + 8) | eight(m + i + 16) | eight(m + i + 24)) == 0) i += 4 * kEight;
    } else if (word == kAllTrue) {
      const npy_intp first = i;
      while (i + kEight <= n && eight(m + i) == kAllTrue) i += kEight;
      all(first, i - first);
    } else if ((word & (word - 1)) == 0) {
      const npy_intp one = i + std::countr_zero(word) / kEight;
      some(one, one + 1);
      i += kEight;
    } else {
      some(i, i + kEight);
      i += kEight;
    }
  }
  if (i < n) some(i, n);
}

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
    mask = plain_array(m, {DType::kBool, static_cast<int8_t>(PyArray_Check(m) ? PyArray_NDIM(reinterpret_cast<PyArrayObject*>(m)) : 0)});
    if (!mask || !a || !PyArray_CheckExact(a)) return false;
    array = reinterpret_cast<PyArrayObject*>(a);
    PyArray_Descr* descr = PyArray_DESCR(array);
    const int rank = PyArray_NDIM(array), of_mask = PyArray_NDIM(mask);
    if (!PyTypeNum_ISNUMBER(descr->type_num) && descr->type_num != NPY_BOOL) return false;
    if (PyDataType_METADATA(descr) || !PyArray_ISNBO(descr->byteorder) || !PyArray_ISALIGNED(array)) return false;
    item = PyArray_ITEMSIZE(array);
    if (item > 16 || rank < 1 || rank > kMostAxes || of_mask < 1) return false;
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
    uint8_t any = 0;
    let_go_for(size, [&] { each_row([&](char*, npy_intp, const char* m, npy_intp step, npy_intp n) { count_row(m, step, n, &any); }); });
    return any == 0;
  }

  void count_row(const char* m, npy_intp step, npy_intp n, uint8_t* any) {
    npy_intp i = 0;
    uint64_t seen = *any;
    if (step == 1) {
      for (; i + kEight <= n; i += kEight) {
        const uint64_t word = eight(m + i);
        seen |= word & ~kAllTrue;
        count += static_cast<npy_intp>((word & kAllTrue) * kAllTrue >> 56);
      }
    }
    for (; i < n; ++i) count += m[i * step] & 1, seen |= static_cast<uint8_t>(m[i * step]) & 0xfe;
    *any = seen != 0;
  }

  // In C order: where the row of the array begins, its step, the same of the mask, and how many.
  template <class Row>
  void each_row(const Row& row) const {
    const int rank = PyArray_NDIM(mask), last = rank - 1;
    char *a = PyArray_BYTES(array), *m = PyArray_BYTES(mask);
    if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_IS_C_CONTIGUOUS(mask)) return row(a, item, m, 1, size);
    npy_intp at[kMostAxes] = {};
    for (npy_intp done = 0; done < size; done += PyArray_DIM(mask, last)) {
      npy_intp of_array = 0, of_mask = 0;
      for (int d = 0; d < last; ++d) of_array += at[d] * PyArray_STRIDE(array, d), of_mask += at[d] * PyArray_STRIDE(mask, d);
      row(a + of_array, PyArray_STRIDE(array, last), m + of_mask, PyArray_STRIDE(mask, last), PyArray_DIM(mask, last));
      for (int d = last - 1; d >= 0 && ++at[d] == PyArray_DIM(mask, d); --d) at[d] = 0;
    }
  }
};

template <class T>
void take(const Masked& x, char* to) {
  T* out = reinterpret_cast<T*>(to);
  T* const end = out + x.count;
  x.each_row([&](const char* a, npy_intp a_step, const char* m, npy_intp m_step, npy_intp n) {
    const auto item = [&](npy_intp i) { return *reinterpret_cast<const T*>(a + i * a_step); };
    stretches(
        m, m_step, n,
        [&](npy_intp first, npy_intp many) {
          many = std::min<npy_intp>(many, end - out);  // (the mask may have been changed by another thread)
          if (a_step == sizeof(T)) {
            std::memcpy(out, a + first * a_step, static_cast<size_t>(many) * sizeof(T));
          } else {
            for (npy_intp i = 0; i < many; ++i) out[i] = item(first + i);
          }
          out += many;
        },
        [&](npy_intp i, npy_intp stop) {
          for (; i < stop && out < end; ++i) *out = item(i), out += m[i * m_step] != 0;
        });
  });
}

void take_rows(const Masked& x, char* to) {
  char* const end = to + x.count * x.item;
  x.each_row([&](const char* a, npy_intp, const char* m, npy_intp m_step, npy_intp n) {
    for (npy_intp i = 0; i < n && to < end; ++i)
      if (m[i * m_step] != 0) std::memcpy(to, a + i * x.item, static_cast<size_t>(x.item)), to += x.item;
  });
}

template <class T>
void put(const Masked& x, const char* from, npy_intp step) {
  npy_intp k = 0;
  const auto value = [&] { return *reinterpret_cast<const T*>(from + k * step); };
  x.each_row([&](char* a, npy_intp a_step, const char* m, npy_intp m_step, npy_intp n) {
    const auto at = [&](npy_intp i) -> T& { return *reinterpret_cast<T*>(a + i * a_step); };
    stretches(
        m, m_step, n,
        [&](npy_intp first, npy_intp many) {
          many = std::min(many, x.count - k);
          if (a_step == sizeof(T) && step == sizeof(T)) {
            std::memcpy(a + first * a_step, from + k * step, static_cast<size_t>(many) * sizeof(T));
            k += many;
          } else {
            for (npy_intp i = first; i < first + many; ++i, ++k) at(i) = value();
          }
        },
        [&](npy_intp i, npy_intp stop) {
          for (; i < stop && k < x.count; ++i) {
            const bool here = m[i * m_step] != 0;
            at(i) = chosen(here, value(), at(i));
            k += here;
          }
        });
  });
}

template <class T>
void put_one(const Masked& x, const char* value_at) {
  T value;
  std::memcpy(&value, value_at, sizeof value);
  x.each_row([&](char* a, npy_intp a_step, const char* m, npy_intp m_step, npy_intp n) {
    const auto at = [&](npy_intp i) -> T& { return *reinterpret_cast<T*>(a + i * a_step); };
    stretches(
        m, m_step, n,
        [&](npy_intp first, npy_intp many) {
          if (a_step == sizeof(T)) return static_cast<void>(std::fill_n(&at(first), many, value));
          for (npy_intp i = first; i < first + many; ++i) at(i) = value;
        },
        [&](npy_intp i, npy_intp stop) {
          for (; i < stop; ++i) at(i) = chosen(m[i * m_step] != 0, value, at(i));
        });
  });
}

// By the size of an element. False: of no other.
template <class Work>
bool by_size(npy_intp item, const Work& work) {
  switch (item) {
    case 1:
      return work(uint8_t{}), true;
    case 2:
      return work(uint16_t{}), true;
    case 4:
      return work(uint32_t{}), true;
    case 8:
      return work(uint64_t{}), true;
    case 16:
      return work(Sixteen{}), true;
    default:
      return false;
  }
}

// Null: NumPy has to do it.
PyObject* taken(PyObject* a, PyObject* m) {
  Masked x;
  if (!x.find(a, m) || !x.find_count()) return nullptr;
  PyArray_Descr* descr = PyArray_DESCR(x.array);
  npy_intp shape[] = {x.count, x.rows ? PyArray_DIM(x.array, 1) : 0};
  Py_INCREF(descr);
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, x.rows ? 2 : 1, shape, nullptr, nullptr, 0, nullptr);
  if (!made) return PyErr_Clear(), nullptr;
  char* to = data_of(made);
  bool known = true;
  let_go_for(x.size, [&] {
    if (x.rows) return take_rows(x, to);
    known = by_size(x.item, [&](auto one) { take<decltype(one)>(x, to); });
  });
  if (!known) Py_CLEAR(made);
  return made;
}

std::pair<const char*, const char*> bounds(PyArrayObject* a) {
  const char *first = PyArray_BYTES(a), *last = first;
  for (int d = 0; d < PyArray_NDIM(a); ++d)
    if (PyArray_DIM(a, d) > 0) (PyArray_STRIDE(a, d) < 0 ? first : last) += (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
  return {first, last + PyArray_ITEMSIZE(a)};
}

bool overlap(PyArrayObject* a, PyArrayObject* b) {
  const auto [a0, a1] = bounds(a);
  const auto [b0, b1] = bounds(b);
  return a0 < b1 && b0 < a1;
}

// A number as an element of the array.
bool element_of(const Masked& x, PyObject* v, ScalarValue* out) {
  ArrayFacts facts;
  if (!numpy::facts_of(reinterpret_cast<PyObject*>(x.array), &facts)) return false;
  SegmentInput kind;
  kind.dtype = facts.dtype;
  if (PyBool_Check(v)) {
    kind.kind = InputKind::kWeakBool;
  } else if (PyLong_CheckExact(v)) {
    kind.kind = InputKind::kWeakInt;
  } else if (PyFloat_CheckExact(v)) {
    kind.kind = InputKind::kWeakFloat;
    if (!is_float(facts.dtype)) return false;
  } else if (Py_TYPE(v) == numpy::scalar_type(facts.dtype)) {
    kind.kind = InputKind::kScalar;
  } else {
    return false;
  }
  return convert_scalar(kind, v, facts.dtype, out);
}

// False: nothing has been done.
bool stored(PyObject* a, PyObject* m, PyObject* v) {
  Masked x;
  if (!v || !x.find(a, m) || x.rows || !is_writeable(x.array) || overlap(x.array, x.mask)) return false;
  ScalarValue one{};
  if (element_of(x, v, &one)) {
    bool known = false;
    let_go_for(x.size, [&] { known = by_size(x.item, [&](auto item) { put_one<decltype(item)>(x, one.bytes); }); });
    return known;
  }
  if (!PyArray_CheckExact(v)) return false;
  auto* values = reinterpret_cast<PyArrayObject*>(v);
  const bool alike = PyArray_DESCR(values) == PyArray_DESCR(x.array) && PyArray_ISALIGNED(values) && PyArray_NDIM(values) == 1;
  if (!alike || overlap(x.array, values) || !x.find_count() || PyArray_DIM(values, 0) != x.count) return false;
  const char* from = PyArray_BYTES(values);
  const npy_intp step = PyArray_STRIDE(values, 0);
  bool known = false;
  if (x.count == 0) return true;
  let_go_for(x.size, [&] { known = by_size(x.item, [&](auto item) { put<decltype(item)>(x, from, step); }); });
  return known;
}

}  // namespace

const Step* step_get_masked(const Step* s, Reg* r, Machine& m) {
  PyObject* made = taken(r[s->a].o, r[s->b].o);
  if (!made) [[unlikely]]
    return step_get_item(s, r, m);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

const Step* step_set_masked(const Step* s, Reg* r, Machine& m) {
  static const StepFn kReplacing = step_exec_replacing(OpKind::set_item);
  if (stored(r[s->a].o, r[s->b].o, r[s->c].o)) return go_on(s + 1, r, m);
  return s->linked ? step_exec_linked(s, r, m) : kReplacing(s, r, m);
}

}  // namespace dalsegno::replay
