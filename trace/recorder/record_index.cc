// Slices of constants, and index tuples that hold some, which 3.14 keeps as constants: where what is subscripted keeps no index they are
// built from their parts, as the other versions' instructions do.
#include <algorithm>
#include <cstdio>

#include "numpy/dtypes.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {
namespace {

bool is_bound(PyObject* o) {
  int overflow = 0;
  if (PyLong_CheckExact(o)) PyLong_AsLongAndOverflow(o, &overflow);
  return o == Py_None || (PyLong_CheckExact(o) && overflow == 0);
}

bool is_slice(PyObject* o) {
  if (!PySlice_Check(o)) return false;
  auto* slice = reinterpret_cast<PySliceObject*>(o);
  return is_bound(slice->start) && is_bound(slice->stop) && is_bound(slice->step);
}

bool is_index_of_slices(PyObject* o) {
  if (!PyTuple_CheckExact(o)) return false;
  PyObject** items = reinterpret_cast<PyTupleObject*>(o)->ob_item;
  PyObject** end = items + PyTuple_GET_SIZE(o);
  return std::any_of(items, end, is_slice) && std::all_of(items, end, [](PyObject* item) { return is_bound(item) || is_slice(item); });
}

bool keeps_no_index(PyObject* o) {
  return o &&
         (numpy::is_exact_array(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o));
}

}  // namespace

ValueId Recorder::part_of_index(PyObject* o) {
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    std::vector<ValueId> parts{part_of_index(slice->start), part_of_index(slice->stop)};
    if (slice->step != Py_None) parts.push_back(part_of_index(slice->step));
    const ValueId v = emit(OpKind::build_slice, parts, {.effects = kNoEffect, .snapshot = false});
    set_type(v, &PySlice_Type);
    set_items(v, std::move(parts));
    return v;
  }
  if (o == Py_None) return constant(o, "const:None");
  const long number = PyLong_AsLong(o);
  char path[40];
  std::snprintf(path, sizeof path, "const:int:%s%#lx", number < 0 ? "-" : "",
                number < 0 ? 0UL - static_cast<unsigned long>(number) : number);
  return constant(o, number == 0 ? "const:int:0x0" : path);
}

// The index on top of the stack, of a subscript of `live`.
void Recorder::take_index_apart(PyObject* live) {
  PyObject* index = info(top()).object;
  if (!index || !keeps_no_index(live)) return;
  if (is_slice(index)) {
    const ValueId slice = part_of_index(index);
    pop();
    return push(slice);
  }
  if (!is_index_of_slices(index)) return;
  std::vector<ValueId> items;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(index); ++k) items.push_back(part_of_index(PyTuple_GET_ITEM(index, k)));
  const ValueId tuple = emit(OpKind::build_tuple, items, {.effects = kNoEffect, .snapshot = false});
  set_type(tuple, &PyTuple_Type);
  for (const ValueId v : items) hold(v, +1);
  pop();
  push(tuple);
  made_of(tuple, items);
  for (const ValueId v : items) hold(v, -1);
}

}  // namespace dalsegno::recorder
