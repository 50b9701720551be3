// Slices of constants, and index tuples that hold some, which 3.14 keeps as constants: where what is subscripted keeps no index they are
// built from their parts, as the other versions' instructions do.
#include <algorithm>

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

// A constant, if it is an int or None; else built from its parts.
ValueId Recorder::parts_of_index(PyObject* o) {
  if (o == Py_None) return constant(o, "const:None");
  if (PyLong_Check(o)) return int_constant(o);
  std::vector<ValueId> parts;
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    parts = {parts_of_index(slice->start), parts_of_index(slice->stop)};
    if (slice->step != Py_None) parts.push_back(parts_of_index(slice->step));
    const ValueId v = emit(OpKind::build_slice, parts, {.effects = kNoEffect, .snapshot = false});
    set_type(v, &PySlice_Type);
    set_items(v, std::move(parts));
    return v;
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); ++k) parts.push_back(parts_of_index(PyTuple_GET_ITEM(o, k)));
  const ValueId tuple = emit(OpKind::build_tuple, parts, {.effects = kNoEffect, .snapshot = false});
  set_type(tuple, &PyTuple_Type);
  made_of(tuple, std::move(parts));
  return tuple;
}

// The index on top of the stack, of a subscript of `live`.
void Recorder::take_index_apart(PyObject* live) {
  PyObject* index = info(top()).object;
  if (!index || !keeps_no_index(live) || !(is_slice(index) || is_index_of_slices(index))) return;
  const ValueId built = parts_of_index(index);
  pop();
  push(built);
}

// The items of an index that is built right in front of its subscript: without constants that are slices.
void Recorder::take_items_apart(const Instr& build) {
  const Instr* next = frame().code->at(build.next);
  const bool subscript = next && (next->op == Opcode::BINARY_SUBSCR || next->op == Opcode::STORE_SUBSCR);
  if (!subscript || !keeps_no_index(live_top(build.arg))) return;
  const std::vector<ValueId>& stack = shadow().stack;
  std::vector<ValueId> items(stack.end() - build.arg, stack.end());
  const auto constant_slice = [this](ValueId v) { return v != kNull && info(v).object && is_slice(info(v).object); };
  if (std::none_of(items.begin(), items.end(), constant_slice)) return;
  for (ValueId& item : items)
    if (constant_slice(item)) item = parts_of_index(info(item).object);
  pop(build.arg);
  for (const ValueId item : items) push(item);
}

}  // namespace dalsegno::recorder
