// Containers, strings, unpacking.
#include <algorithm>
#include <utility>

#include "numpy/dtypes.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {

// Pops `count` values into one new container.
void Recorder::build(const Instr&, OpKind kind, int count, PyTypeObject* type, uint32_t effects) {
  std::vector<ValueId> items(shadow().stack.end() - count, shadow().stack.end());
  bool hashes = kind == OpKind::build_set || kind == OpKind::build_map;  // may raise
  ValueId v = emit(kind, items, {.effects = effects, .snapshot = hashes});
  pop(count);
  push(v);
  set_type(v, type);
  if (kind == OpKind::build_tuple || kind == OpKind::build_list) {
    made_of(v, items);
  } else if (kind == OpKind::build_map) {
    made_of_pairs(v, items);
  } else if (kind == OpKind::build_slice) {
    set_items(v, std::move(items));
  }
}

// Numbers are guarded while slots hold them: the tuple may be an index.
// The parts of an index: behind it nothing may hold them that a guard could look at.
void Recorder::know_positions(int n) {
  for (int j = 0; j < n; ++j) {
    PyObject* live = live_top(j);
    if (live && (PyLong_CheckExact(live) || numpy::is_scalar_type(Py_TYPE(live)))) know(top(j), live);
  }
}

void Recorder::on_BUILD_TUPLE(const Instr& i) {
  if (build_certain(&PyTuple_Type, i.arg)) return;
  know_positions(i.arg);
  take_items_apart(i);
  build(i, OpKind::build_tuple, i.arg, &PyTuple_Type, kNoEffect);
}
void Recorder::on_BUILD_LIST(const Instr& i) { build(i, OpKind::build_list, i.arg, &PyList_Type, kNoEffect); }
void Recorder::on_BUILD_SLICE(const Instr& i) {
  if (build_certain(&PySlice_Type, i.arg)) return;
  know_positions(i.arg);
  build(i, OpKind::build_slice, i.arg, &PySlice_Type, kNoEffect);
}

void Recorder::on_BUILD_SET(const Instr& i) {
  bool simple_items = true;
  for (int j = 0; j < i.arg; ++j) simple_items &= know(top(j), live_top(j)) && simple(top(j));
  build(i, OpKind::build_set, i.arg, &PySet_Type, simple_items ? kNoEffect : kAnyEffect);
}

void Recorder::on_BUILD_MAP(const Instr& i) {
  bool simple_keys = true;
  for (int j = 0; j < i.arg; ++j) simple_keys &= know(top(2 * j + 1), live_top(2 * j + 1)) && simple(top(2 * j + 1));
  build(i, OpKind::build_map, 2 * i.arg, &PyDict_Type, simple_keys ? kNoEffect : kAnyEffect);
}

void Recorder::on_BUILD_CONST_KEY_MAP(const Instr& i) {
  PyObject* keys = live_top();
  std::string path = info(top()).path;
  pop();
  std::vector<ValueId> values(shadow().stack.end() - i.arg, shadow().stack.end()), items;
  for (int j = 0; j < i.arg; ++j) {
    items.push_back(constant(PyTuple_GET_ITEM(keys, j), path.empty() ? "" : path + "[" + std::to_string(j) + "]"));
    items.push_back(values[j]);
  }
  ValueId v = emit(OpKind::build_map, items, {.effects = kNoEffect});
  for (int j = 0; j < i.arg; ++j) pop();
  push(v);
  set_type(v, &PyDict_Type);
  made_of_pairs(v, items);
}

void Recorder::on_BUILD_STRING(const Instr& i) {
  for (int j = 0; j < i.arg; ++j) know(top(j), live_top(j));
  build(i, OpKind::build_string, i.arg, &PyUnicode_Type, kNoEffect);
}

// A display (i.arg 1) that may become the arguments of a call, or a comprehension's list.
void Recorder::on_LIST_APPEND(const Instr& i) {
  const ValueId list = top(i.arg);
  const bool display = (i.arg == 1 || is_in_numpy()) && made(list, &PyList_Type);
  std::vector<ValueId> items = info(list).items;
  items.push_back(top());
  emit(OpKind::list_append, {list, top()}, {});
  if (display) made_of(list, std::move(items));
  pop();
}

void Recorder::on_SET_ADD(const Instr& i) {
  bool quiet = know_lookup(top(i.arg), live_top(i.arg), top(), live_top());
  emit(OpKind::set_add, {top(i.arg), top()}, {.effects = quiet ? kWritesMemory : kAnyEffect});
  pop();
}

void Recorder::on_MAP_ADD(const Instr& i) {
  bool quiet = know_lookup(top(i.arg + 1), live_top(i.arg + 1), top(1), live_top(1));
  emit(OpKind::map_add, {top(i.arg + 1), top(1), top()}, {.effects = quiet ? kReplaces : kAnyEffect});
  pop();
  pop();
}

void Recorder::on_LIST_EXTEND(const Instr& i) {
  const ValueId list = top(i.arg), more = top();
  bool quiet = know(more, live_top()) && (PyTuple_CheckExact(live_top()) || PyList_CheckExact(live_top()));
  const bool known = made(list, &PyList_Type) && info(more).made;
  std::vector<ValueId> items = info(list).items;
  items.insert(items.end(), info(more).items.begin(), info(more).items.end());
  emit(OpKind::list_extend, {list, more}, {.effects = quiet ? kWritesMemory : kAnyEffect});
  if (quiet && known) made_of(list, std::move(items));
  pop();
}

void Recorder::on_LIST_TO_TUPLE(const Instr&) {
  const ValueId list = top();
  const bool known = made(list, &PyList_Type);
  ValueId v = emit(OpKind::list_to_tuple, {list}, {.snapshot = false});
  set_type(v, &PyTuple_Type);
  if (known) made_of(v, info(list).items);
  pop();
  push(v);
}

void Recorder::on_CALL_INTRINSIC_1(const Instr& i) {
  constexpr int kUnaryPositive = 5, kListToTuple = 6;
  if (i.arg == kUnaryPositive) return unary(i, UnaryOp::positive);
  if (i.arg == kListToTuple) return on_LIST_TO_TUPLE(i);
  not_recorded(i);
}

void Recorder::on_SET_UPDATE(const Instr& i) {
  emit(OpKind::set_update, {top(i.arg), top()}, {});
  pop();
}

void Recorder::on_DICT_UPDATE(const Instr& i) {
  emit(OpKind::dict_update, {top(i.arg), top()}, {});
  pop();
}

// ---- unpacking -------------------------------------------------------------------------------------------------------------

// Of an array or a list: its items, if there are as many.
bool Recorder::unpack_items(const Instr& i) {
  constexpr int kMostItems = 16;
  const ValueId container = top();
  PyObject* live = live_top();
  if (i.arg < 1 || i.arg > kMostItems) return false;
  const bool array = numpy::is_exact_array(live);
  if (array) {
    auto* a = reinterpret_cast<PyArrayObject*>(live);
    if (PyArray_NDIM(a) == 0 || PyArray_DIM(a, 0) != i.arg || !know_array(container, live)) return false;
  } else if (!PyList_CheckExact(live) || PyList_GET_SIZE(live) != i.arg || !know(container, live)) {
    return false;
  }
  const ValueId length = emit(OpKind::get_len, {container}, {.effects = kReadsMemory});
  set_type(length, &PyLong_Type);
  const ValueId fits = emit(OpKind::compare, {length, int_constant(small_int(i.arg))}, {.imm = Py_EQ, .effects = kNoEffect});
  set_type(fits, &PyBool_Type);
  emit(OpKind::guard_true, {fits}, {});
  std::vector<ValueId> items;
  for (int k = 0; k < i.arg; ++k) {
    PyObject* at = small_int(k);
    const ValueId index = int_constant(at);
    items.push_back(emit(OpKind::get_item, {container, index}, {.effects = kReadsMemory}));
    if (array) op(items.back()).facts = element_facts(container, index, at);
  }
  pop();
  for (int k = i.arg - 1; k >= 0; --k) push(items[static_cast<size_t>(k)]);
  return true;
}

void Recorder::on_UNPACK_SEQUENCE(const Instr& i) {
  ValueId sequence = top();
  PyObject* live = live_top();
  const std::vector<ValueId> items = info(sequence).items;
  if ((made(sequence, &PyTuple_Type) || made(sequence, &PyList_Type)) && static_cast<int>(items.size()) == i.arg) {
    for (ValueId item : items) hold(item, +1);
    pop();
    for (int j = i.arg - 1; j >= 0; --j) push(items[j]);
    for (ValueId item : items) hold(item, -1);
    return;
  }
  if (unpack_items(i)) return;
  bool plain = know(sequence, live) && (PyTuple_CheckExact(live) || PyList_CheckExact(live));
  ValueId tuple = emit(OpKind::unpack, {sequence}, {.imm = i.arg, .effects = plain ? kReadsMemory : kAnyEffect});
  set_type(tuple, &PyTuple_Type);
  pop();
  for (int j = i.arg - 1; j >= 0; --j) push(emit(OpKind::tuple_item, {tuple}, {.imm = j, .snapshot = false}));
}

void Recorder::on_UNPACK_EX(const Instr& i) {
  PyObject* live = live_top();
  if (!know(top(), live) || !(PyTuple_CheckExact(live) || PyList_CheckExact(live))) return not_recorded(i);
  ValueId tuple = emit(OpKind::unpack_ex, {top()}, {.imm = i.arg});
  set_type(tuple, &PyTuple_Type);
  pop();
  for (int j = (i.arg & 255) + (i.arg >> 8); j >= 0; --j) {
    push(emit(OpKind::tuple_item, {tuple}, {.imm = j, .snapshot = false}));
    if (j == (i.arg & 255)) set_type(top(), &PyList_Type);
  }
}

// ---- strings ---------------------------------------------------------------------------------------------------------------

void Recorder::on_FORMAT_VALUE(const Instr& i) {
  constexpr int kConversion = 3, kHasSpec = 4;
  ValueId spec = kNull;
  int below = 0;
  if (i.arg & kHasSpec) spec = top(), below = 1;
  ValueId value = top(below);
  bool quiet = know(value, live_top(below)) && simple(value);
  uint32_t effects = quiet ? kNoEffect : kAnyEffect;
  if (i.arg & kConversion) {
    value = emit(OpKind::convert, {value}, {.imm = i.arg & kConversion, .effects = effects});
    set_type(value, &PyUnicode_Type);
  }
  ValueId v =
      spec == kNull ? emit(OpKind::format, {value}, {.effects = effects}) : emit(OpKind::format, {value, spec}, {.effects = effects});
  set_type(v, &PyUnicode_Type);
  if (below) pop();
  pop();
  push(v);
}

void Recorder::on_CONVERT_VALUE(const Instr& i) {
  bool quiet = know(top(), live_top()) && simple(top());
  ValueId v = emit(OpKind::convert, {top()}, {.imm = i.arg, .effects = quiet ? kNoEffect : kAnyEffect});
  set_type(v, &PyUnicode_Type);
  pop();
  push(v);
}

void Recorder::on_FORMAT_SIMPLE(const Instr&) {
  bool quiet = know(top(), live_top()) && simple(top());
  ValueId v = emit(OpKind::format, {top()}, {.effects = quiet ? kNoEffect : kAnyEffect});
  set_type(v, &PyUnicode_Type);
  pop();
  push(v);
}

void Recorder::on_FORMAT_WITH_SPEC(const Instr&) {
  bool quiet = know(top(1), live_top(1)) && simple(top(1));
  ValueId v = emit(OpKind::format, {top(1), top()}, {.effects = quiet ? kNoEffect : kAnyEffect});
  set_type(v, &PyUnicode_Type);
  pop();
  pop();
  push(v);
}

}  // namespace dalsegno::recorder
