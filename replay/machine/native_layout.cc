// Where the interpreter and NumPy keep what native code looks at.
#include <cstddef>
#include <cstring>

#include "hook/free_floats.h"
#include "hook/generators.h"
#include "hook/numeric_arrays.h"
#include "numpy/dtypes.h"
#include "replay/machine/native.h"
#include "replay/machine/scalars.h"
// clang-format off
#include <numpy/arrayscalars.h>  // needs Python.h before it
// clang-format on

namespace dalsegno::replay {
namespace {

// Borrowed: the interpreter keeps the texts of one ASCII character for good.
PyObject* letter(int c) {
  PyObject* text = PyUnicode_FromOrdinal(c);
  Py_XDECREF(text);
  return text;
}

// How far they stand from each other; 0: not one after the other.
int32_t letter_size() {
  const auto at = [](int c) { return reinterpret_cast<intptr_t>(letter(c)); };
  const intptr_t size = at(1) - at(0);
  if (size < static_cast<intptr_t>(sizeof(PyASCIIObject)) || size > 256) return 0;
  for (int c = 0; c < 128; ++c)
    if (!letter(c) || at(c) != at(0) + c * size) return 0;
  return static_cast<int32_t>(size);
}

// Borrowed: the interpreter keeps ints from -5 to 256 for good.
PyObject* small_int(int value) {
  PyObject* o = PyLong_FromLong(value);
  Py_XDECREF(o);
  return o;
}

int32_t small_int_size() {
  const auto at = [](int value) { return reinterpret_cast<intptr_t>(small_int(value)); };
  const intptr_t size = at(1) - at(0);
  if (size < static_cast<intptr_t>(sizeof(PyVarObject)) || size > 256) return 0;
  for (int value = -5; value <= 256; ++value)
    if (!small_int(value) || at(value) != at(0) + value * size) return 0;
  return static_cast<int32_t>(size);
}

// Where the collector's list of what it knows goes on, before an object.
int32_t tracked_before() {
  constexpr int32_t kPlace = -2 * static_cast<int32_t>(sizeof(uintptr_t));
  PyObject* list = PyList_New(0);
  if (!list) return PyErr_Clear(), 0;
  const auto goes_on = [&] { return *reinterpret_cast<const uintptr_t*>(reinterpret_cast<const char*>(list) + kPlace) != 0; };
  const bool tracked = goes_on();
  PyObject_GC_UnTrack(list);
  const bool untracked = !goes_on();
  Py_DECREF(list);
  return tracked && untracked ? kPlace : 0;
}

// What the state of a text says that has nothing but ASCII behind its head.
void find_text_state(native::Layout* l) {
  PyASCIIObject mask, plain;
  std::memset(&mask, 0, sizeof mask);
  std::memset(&plain, 0, sizeof plain);
  mask.state.compact = 1, mask.state.ascii = 1;
  plain.state = mask.state;
  l->text_state = offsetof(PyASCIIObject, state);
  static_assert(sizeof mask.state >= sizeof l->text_mask);
  std::memcpy(&l->text_mask, &mask.state, sizeof l->text_mask);
  std::memcpy(&l->text_plain, &plain.state, sizeof l->text_plain);
}

// Py_INCREF() counts no reference of an object with so many of them; 0: it counts all.
#if PY_VERSION_HEX >= 0x030e0000
constexpr uint32_t kImmortalFrom = _Py_IMMORTAL_INITIAL_REFCNT;
#else
constexpr uint32_t kImmortalFrom = PY_VERSION_HEX >= 0x030c0000 ? UINT32_MAX : 0;
#endif

}  // namespace

const native::Layout& native_layout() {
  static const native::Layout known = [] {
    native::Layout l;
    l.type = offsetof(PyObject, ob_type);
    l.immortal = kImmortalFrom;
    if (hook::g_range_known) {
      l.range_start = offsetof(hook::RangeIterator, start), l.range_step = offsetof(hook::RangeIterator, step);
      l.range_length = offsetof(hook::RangeIterator, length);
#if PY_VERSION_HEX < 0x030c0000
      l.range_index = offsetof(hook::RangeIterator, index);
#endif
    }
    l.iterator_position = offsetof(hook::SequenceIterator, position), l.iterator_sequence = offsetof(hook::SequenceIterator, sequence);
    static_assert(DALSEGNO_KEEPS_ITEM == static_cast<int>(native::kAsItem) && DALSEGNO_KEEPS_IN_SLOT == static_cast<int>(native::kInSlot) &&
                  DALSEGNO_KEEPS_VALUES == static_cast<int>(native::kInValues));
    l.type_version = offsetof(PyTypeObject, tp_version_tag);
    l.place_type = offsetof(AttributePlace, attribute) + offsetof(dalsegno_attribute, type);
    const auto in_cache = [](size_t offset) { return static_cast<int32_t>(offsetof(AttributePlace, cache) + offset); };
    l.place_version = in_cache(offsetof(dalsegno_attribute_cache, version)),
    l.place_slot = in_cache(offsetof(dalsegno_attribute_cache, slot));
    l.place_index = in_cache(offsetof(dalsegno_attribute_cache, index));
    l.place_items = in_cache(offsetof(dalsegno_attribute_cache, items));
    dalsegno_values_layout(&l.values, &l.values_first, &l.values_tag);
    l.cell_content = offsetof(PyCellObject, ob_ref);
    l.function_code = offsetof(PyFunctionObject, func_code), l.function_globals = offsetof(PyFunctionObject, func_globals);
    l.function_defaults = offsetof(PyFunctionObject, func_defaults);
    l.holder_number = offsetof(hook::HoldingIterator, number), l.holder_inner = offsetof(hook::HoldingIterator, inner);
    l.holder_result = offsetof(hook::HoldingIterator, result), l.tracked = tracked_before();
    l.numeric_items = offsetof(hook::NumericArray, items), l.numeric_kind = offsetof(hook::NumericArray, kind);
    l.bytes_data = offsetof(PyBytesObject, ob_sval), l.bytearray_start = offsetof(PyByteArrayObject, ob_start);
    l.text_length = offsetof(PyASCIIObject, length), l.ascii_data = sizeof(PyASCIIObject);
    l.letter_size = letter_size();
    l.small_int_size = small_int_size();
    l.list_allocated = offsetof(PyListObject, allocated);
    l.list_least = kLeastKept;
    l.class_truth[0] = offsetof(PyHeapTypeObject, as_number.nb_bool), l.class_truth[1] = offsetof(PyHeapTypeObject, as_mapping.mp_length);
    l.class_truth[2] = offsetof(PyHeapTypeObject, as_sequence.sq_length);
    find_text_state(&l);
    l.size = offsetof(PyVarObject, ob_size);
    l.list_items = offsetof(PyListObject, ob_item), l.tuple_items = offsetof(PyTupleObject, ob_item);
    if (dalsegno_free_floats(PyThreadState_Get())) l.free_floats_count = DALSEGNO_FREE_FLOATS_COUNT;
    l.float_value = offsetof(PyFloatObject, ob_fval), l.complex_value = offsetof(PyComplexObject, cval);
    l.numpy_double_value = offsetof(PyDoubleScalarObject, obval);
    l.numpy_complex_value = offsetof(PyCDoubleScalarObject, obval);
#if PY_VERSION_HEX >= 0x030c0000
    l.int_size = offsetof(PyLongObject, long_value.lv_tag), l.int_digit = offsetof(PyLongObject, long_value.ob_digit);
    l.int_tagged = true;
#else
    l.int_size = offsetof(PyVarObject, ob_size), l.int_digit = offsetof(PyLongObject, ob_digit);
#endif
    l.data = offsetof(PyArrayObject_fields, data);
    l.rank = offsetof(PyArrayObject_fields, nd);
    l.dims = offsetof(PyArrayObject_fields, dimensions);
    l.strides = offsetof(PyArrayObject_fields, strides);
    l.descr = offsetof(PyArrayObject_fields, descr);
    l.flags = offsetof(PyArrayObject_fields, flags);
    l.dtype_number = offsetof(PyArray_Descr, type_num);
    l.byteorder = offsetof(PyArray_Descr, byteorder);
    l.aligned = NPY_ARRAY_ALIGNED, l.writeable = NPY_ARRAY_WRITEABLE;
    l.warns = static_cast<int32_t>(uint32_t{1} << 31);  // NPY_ARRAY_WARN_ON_WRITE, which NumPy keeps to itself
    for (int i = 0; is_known(static_cast<DType>(i)); ++i) {
      const auto dtype = static_cast<DType>(i);
      l.numbers[typed::rep_of_dtype(dtype)] = numpy::type_number(dtype);
    }
    l.numbers[Rep::kNpComplex128] = NPY_CDOUBLE;
    const hook::GeneratorLayout g = hook::generator_layout();
    l.generator.state = g.state, l.generator.created = g.created, l.generator.suspended = g.suspended, l.generator.executing = g.executing;
    l.generator.handled = g.handled, l.generator.code = g.code, l.generator.function = g.function, l.generator.globals = g.globals;
    l.generator.shown = g.shown, l.generator.next = g.next, l.generator.first = g.first;
    l.generator.count = g.count, l.generator.slots = g.slots;
    return l;
  }();
  return known;
}

// In the order of native::Address.
std::vector<const void*> native_addresses() {
  std::vector<const void*> known = {&PyArray_Type,
                                    &PyRangeIter_Type,
                                    &PySeqIter_Type,
                                    &PyList_Type,
                                    &PyTuple_Type,
                                    &PyLong_Type,
                                    &PyFloat_Type,
                                    &PyComplex_Type,
                                    &PyDoubleArrType_Type,
                                    &PyCDoubleArrType_Type,
                                    Py_True,
                                    Py_False,
                                    &PyEnum_Type,
                                    &PyZip_Type,
                                    &PyCell_Type,
                                    &PyListIter_Type,
                                    &PyTupleIter_Type,
                                    small_int(0),
                                    letter(0),
                                    dalsegno_free_floats(PyThreadState_Get())};
  return known;
}

}  // namespace dalsegno::replay
