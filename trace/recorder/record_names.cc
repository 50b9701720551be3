// Stack shuffling, locals, cells, globals, attributes.
#include <cstdio>
#include <string>
#include <unordered_map>

#include "numpy/dtypes.h"
#include "numpy/random.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/steady.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

void Recorder::on_NOP(const Instr&) {}
void Recorder::on_RESUME(const Instr&) {}
void Recorder::on_CACHE(const Instr&) {}
void Recorder::on_EXTENDED_ARG(const Instr& i) { not_recorded(i); }
void Recorder::on_KW_NAMES(const Instr& i) { not_recorded(i); }
void Recorder::on_PRECALL(const Instr& i) { not_recorded(i); }
void Recorder::on_MAKE_CELL(const Instr& i) { not_recorded(i); }
void Recorder::on_COPY_FREE_VARS(const Instr& i) { not_recorded(i); }
void Recorder::on_RETURN_GENERATOR(const Instr& i) { not_recorded(i); }
void Recorder::on_SEND(const Instr& i) { not_recorded(i); }

void Recorder::not_recorded(const Instr&) { give_up(Reason::instruction); }

void Recorder::on_POP_TOP(const Instr&) { pop(); }
void Recorder::on_END_FOR(const Instr&) {
  pop();
  if (PY_VERSION_HEX < 0x030d0000) pop();
}
void Recorder::on_POP_ITER(const Instr&) { pop(); }
void Recorder::on_PUSH_NULL(const Instr&) { push(kNull); }
void Recorder::on_COPY(const Instr& i) { push(top(i.arg - 1)); }

void Recorder::on_SWAP(const Instr& i) {
  std::vector<ValueId> above;  // from the top down
  for (int k = 0; k < i.arg; ++k) above.push_back(pop());
  std::swap(above.front(), above.back());
  for (auto v = above.rbegin(); v != above.rend(); ++v) push(*v);
}

void Recorder::on_LOAD_CONST(const Instr& i) { push(code_const(i.arg)); }

// Of 64 bits.
ValueId Recorder::int_constant(PyObject* number) {
  const long value = PyLong_AsLong(number);
  const unsigned long size = value < 0 ? 0UL - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
  char path[40];
  std::snprintf(path, sizeof path, "const:int:%s0x%lx", value < 0 ? "-" : "", size);
  return constant(number, path);
}

// One of those that the interpreter keeps; borrowed.
PyObject* Recorder::small_int(int n) {
  PyObject* number = PyLong_FromLong(n);
  Py_DECREF(number);
  return number;
}

void Recorder::on_LOAD_SMALL_INT(const Instr& i) { push(int_constant(small_int(i.arg))); }

// Exceptions that are about to be raised; and the builtins that the compiler has ways of its own for, if they are what a name stands for.
void Recorder::on_LOAD_COMMON_CONSTANT(const Instr& i) {
  constexpr int kFirstBuiltin = 2;  // pycore_opcode_utils.h: CONSTANT_BUILTIN_TUPLE
  if (i.arg < kFirstBuiltin) return give_up(Reason::exception);
  finisher_ = &Recorder::finish_common_constant;
}

void Recorder::finish_common_constant(const Instr& i) {
  static const std::unordered_map<int, std::string> kPaths = {
      {2, "type:builtins.tuple"}, {3, "module:builtins.attr(all)"}, {4, "module:builtins.attr(any)"}};
  PyObject* value = view()->localsplus[frame().code->nlocalsplus() + static_cast<int>(shadow().stack.size())].get();
  const auto path = kPaths.find(i.arg);
  push(constant(value, path == kPaths.end() ? "" : path->second));
}

// ---- locals ----------------------------------------------------------------------------------------------------------------

void Recorder::on_LOAD_FAST(const Instr& i) {
  if (shadow().locals[i.arg] == kNull) {  // unbound: the interpreter raises with its own message
    return give_up(Reason::exception);
  }
  push(shadow().locals[i.arg]);
}
void Recorder::on_LOAD_FAST_CHECK(const Instr& i) { on_LOAD_FAST(i); }
void Recorder::on_LOAD_CLOSURE(const Instr& i) { on_LOAD_FAST(i); }

void Recorder::on_LOAD_FAST_AND_CLEAR(const Instr& i) {
  push(shadow().locals[i.arg]);
  set_local(i.arg, kNull);
}

void Recorder::on_STORE_FAST(const Instr& i) {
  set_local(i.arg, top());
  pop();
}

void Recorder::on_DELETE_FAST(const Instr& i) {
  if (shadow().locals[i.arg] == kNull) return not_recorded(i);
  set_local(i.arg, kNull);
}

void Recorder::on_LOAD_FAST_LOAD_FAST(const Instr& i) {
  if (shadow().locals[i.arg >> 4] == kNull || shadow().locals[i.arg & 15] == kNull) return not_recorded(i);
  push(shadow().locals[i.arg >> 4]);
  push(shadow().locals[i.arg & 15]);
}

void Recorder::on_STORE_FAST_LOAD_FAST(const Instr& i) {
  set_local(i.arg >> 4, top());
  pop();
  if (shadow().locals[i.arg & 15] == kNull) return not_recorded(i);
  push(shadow().locals[i.arg & 15]);
}

void Recorder::on_STORE_FAST_STORE_FAST(const Instr& i) {
  set_local(i.arg >> 4, top());
  pop();
  set_local(i.arg & 15, top());
  pop();
}

// ---- cells -----------------------------------------------------------------------------------------------------------------

void Recorder::on_LOAD_DEREF(const Instr& i) {
  PyObject* cell = live_local(i.arg);
  if (!cell || !PyCell_Check(cell) || !PyCell_GET(cell)) return not_recorded(i);
  push(emit(OpKind::cell_get, {shadow().locals[i.arg]}, {}));
}

void Recorder::on_STORE_DEREF(const Instr& i) {
  emit(OpKind::cell_set, {shadow().locals[i.arg], top()}, {});
  pop();
}

void Recorder::on_DELETE_DEREF(const Instr& i) {
  PyObject* cell = live_local(i.arg);
  if (!cell || !PyCell_GET(cell)) return not_recorded(i);
  emit(OpKind::cell_delete, {shadow().locals[i.arg]}, {});
}

// ---- globals ---------------------------------------------------------------------------------------------------------------

// Functions, modules, classes and plain values that are steady are folded and watched; anything else is looked up again on every replay.
void Recorder::load_global(const Instr& instr, bool push_null) {
  PyObject* name = name_at(load_global_name(instr.arg));
  PyObject* globals = frame().live->func_globals;
  PyObject* builtins = frame().live->func_builtins;
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) return not_recorded(instr);  // they are asked by __getitem__
  PyObject* value = PyDict_GetItemWithError(globals, name);
  bool from_globals = value != nullptr;
  if (!value) value = PyDict_GetItemWithError(builtins, name);
  if (!value) {
    PyErr_Clear();
    return not_recorded(instr);
  }
  const std::string globals_path = shadow().globals_path, builtins_path = shadow().builtins_path;
  const char* text = utf8_of(name);
  ValueId v;
  const bool plain =
      from_globals && is_plain_value(value) && !frame().code->stores_global(load_global_name(instr.arg)) && is_steady(globals, name);
  if (plain || foldable(value)) {
    std::string base = from_globals ? globals_path : builtins_path;
    std::string path = base.empty() || !text ? "" : base + "[" + text + "]";
    fold(globals, globals_path, name, from_globals ? value : nullptr, path);
    if (!from_globals) fold(builtins, builtins_path, name, value, path);
    v = constant(value, path);
  } else {
    v = emit(OpKind::load_global, {},
             {.object = object_index(globals, globals_path), .object2 = object_index(builtins, builtins_path), .name = name_index(name)});
  }
  if (push_null && !kHas313Calls) push(kNull);
  push(v);
  if (push_null && kHas313Calls) push(kNull);
}

void Recorder::on_LOAD_GLOBAL(const Instr& i) { load_global(i, load_global_pushes_null(i.arg)); }

void Recorder::on_STORE_GLOBAL(const Instr& i) {
  note_unsteady(frame().live->func_globals, name_at(i.arg));
  emit(OpKind::store_global, {top()},
       {.object = object_index(frame().live->func_globals, shadow().globals_path), .name = name_index(name_at(i.arg))});
  pop();
}

void Recorder::on_DELETE_GLOBAL(const Instr& i) {
  note_unsteady(frame().live->func_globals, name_at(i.arg));
  if (!PyDict_GetItemWithError(frame().live->func_globals, name_at(i.arg))) return not_recorded(i);
  emit(OpKind::delete_global, {},
       {.object = object_index(frame().live->func_globals, shadow().globals_path), .name = name_index(name_at(i.arg))});
}

// ---- attributes ------------------------------------------------------------------------------------------------------------

// As LOAD_ATTR and LOAD_METHOD leave them. `self` is kNull where the callable is bound already, or is no method.
void Recorder::push_loaded(ValueId value, ValueId self, bool method) {
  pop();
  if (!method) {
    push(value);
  } else if (self != kNull) {
    push(value);
    push(self);
  } else {
    push(kHas313Calls ? value : kNull);
    push(kHas313Calls ? kNull : value);
  }
}

// np.sqrt
bool Recorder::module_attr(PyObject* name, bool method) {
  ValueId object = top();
  PyObject* live = live_top();
  if (!PyModule_CheckExact(live)) return false;
  PyObject* dict = PyModule_GetDict(live);
  PyObject* value = PyDict_GetItemWithError(dict, name);
  PyErr_Clear();
  const bool bound = value && PyMethod_Check(value) &&  // random.uniform, np.random.rand
                     (PyFunction_Check(PyMethod_GET_FUNCTION(value)) || numpy::is_random_method(value));
  const bool folds = value && (foldable(value) || bound || (is_plain_value(value) && is_steady(dict, name)));
  if (!folds || !know_which_module(object, live)) return false;
  know_module(object);
  const std::string path = info(object).path;
  const std::string value_path = attr_path(path, name);
  fold(dict, path.empty() ? "" : path + ".attr(__dict__)", name, value, value_path);
  push_loaded(constant(value, value_path), kNull, method);
  return true;
}

// Of a type that cannot change: a method, without making a bound one; what arrays say of themselves.
bool Recorder::plain_attr(PyObject* name, bool method) {
  ValueId object = top();
  PyObject* live = live_top();
  if (!know(object, live)) return false;
  PyTypeObject* type = Py_TYPE(live);
  if (method) {
    PyObject* descriptor = _PyType_Lookup(type, name);
    if (!descriptor || (!Py_IS_TYPE(descriptor, &PyMethodDescr_Type) && !numpy::is_random_method(descriptor))) return false;
    push_loaded(constant(descriptor, attr_path(type_path(type), name)), object, true);
    return true;
  }
  if (bound_attr(name, _PyType_Lookup(type, name), type_path(type))) return true;
  if (!numpy::is_exact_array(live) || !is_pure_array_attribute(text_of(name).c_str())) return false;
  if (array_extents(text_of(name))) return true;
  push_loaded(emit(OpKind::get_attr, {object}, {.name = name_index(name), .effects = kNoEffect}), kNull, false);
  return true;
}

// Rank, shape and size of an array: of numbers that a trace knows unboxed.
bool Recorder::array_extents(const std::string& name) {
  const ValueId array = top();
  if ((name != "shape" && name != "size" && name != "ndim") || !know_array(array, live_top())) return false;
  const int rank = info(array).facts.rank;
  if (name == "ndim") return replace_top(1, int_constant(small_int(rank))), true;
  if (rank == 0) return false;
  std::vector<ValueId> extents;
  for (int axis = 0; axis < rank; ++axis) {
    extents.push_back(emit(OpKind::get_len, {array}, {.imm = axis, .effects = kReadsMemory}));
    set_type(extents.back(), &PyLong_Type);
  }
  ValueId v = extents[0];
  if (name == "shape") {
    v = emit(OpKind::build_tuple, extents, {.effects = kNoEffect, .snapshot = false});
    set_type(v, &PyTuple_Type);
    made_of(v, extents);
  }
  for (int axis = 1; axis < rank && name == "size"; ++axis) {
    v = emit(OpKind::binary, {v, extents[static_cast<size_t>(axis)]}, {.imm = static_cast<int>(BinaryOp::multiply), .effects = kNoEffect});
    set_type(v, &PyLong_Type);
  }
  push_loaded(v, kNull, false);
  return true;
}

namespace {

// Nothing decides about the attribute but the instance and, where it keeps none, the class.
bool leaves_it_to_instances(PyObject* found) { return !found || !Py_TYPE(found)->tp_descr_set; }

bool keepable(PyObject* found) { return !found || foldable(found) || is_simple_type(Py_TYPE(found)); }

}  // namespace

// (A slot is a descriptor that decides, but says where its instances keep the value. So is the name of a named tuple's item.)
// What is to be guarded about an attribute of an instance; `found`: what its class has under the name. False: it is not an ordinary one.
bool Recorder::ordinary_attr(PyObject* live, PyObject* name, dalsegno_attribute* attribute, std::string* path) {
  PyTypeObject* type = Py_TYPE(live);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  *attribute = {type, name, _PyType_Lookup(type, name)};
  const bool slot = dalsegno_slot_offset(type, attribute->found) != 0 || dalsegno_named_item(type, attribute->found) != 0;
  if (!slot && (!leaves_it_to_instances(attribute->found) || !keepable(attribute->found))) return false;
  *path = sources_.by_name(reinterpret_cast<PyObject*>(type));
  return !path->empty();
}

ValueId Recorder::emit_attr(OpKind kind, std::initializer_list<ValueId> inputs, const dalsegno_attribute& a, const std::string& path,
                            uint32_t effects) {
  return emit(kind, inputs,
              {.object = object_index(reinterpret_cast<PyObject*>(a.type), path),
               .object2 = a.found ? object_index(a.found, attr_path(path, a.name)) : -1,
               .name = name_index(a.name),
               .effects = effects});
}

// self.x, self.method: read without running anything, as long as the class is as it was.
bool Recorder::instance_attr(PyObject* name, bool method) {
  ValueId object = top();
  PyObject* live = live_top();
  dalsegno_attribute a;
  dalsegno_attribute_cache cache{};
  std::string path;
  if (is_dead(object) || !ordinary_attr(live, name, &a, &path)) return false;
  if (PyObject* own = dalsegno_own_attribute(live, &a, &cache)) {
    Py_DECREF(own);
    push_loaded(emit_attr(OpKind::own_attr, {object}, a, path), kNull, method);
    return true;
  }
  if (!method && a.found && (PyFunction_Check(a.found) || (Py_IS_TYPE(a.found, &PyMethodDescr_Type) && is_known_method(a.found)))) {
    if (!dalsegno_has_class_attribute(live, &a, &cache)) return false;
    emit_attr(OpKind::class_attr, {object}, a, path);
    return bound_attr(name, a.found, path);
  }
  const bool is_method = method && a.found && (PyFunction_Check(a.found) || Py_IS_TYPE(a.found, &PyMethodDescr_Type));
  if (!is_method && (!a.found || Py_TYPE(a.found)->tp_descr_get)) return false;
  if (!dalsegno_has_class_attribute(live, &a, &cache)) return false;
  emit_attr(OpKind::class_attr, {object}, a, path);
  push_loaded(constant(a.found, attr_path(path, name)), is_method ? object : kNull, method);
  return true;
}

void Recorder::get_attr(PyObject* name, bool method) {
  if (!method && attr_certain(name)) return;
  if (module_attr(name, method) || plain_attr(name, method) || instance_attr(name, method)) return;
  if (!method && property_attr(name)) return;
  ValueId v = emit(OpKind::get_attr, {top()}, {.name = name_index(name)});
  push_loaded(v, kNull, method);
  call_result_ = v;
  if (method) finisher_ = &Recorder::finish_method;
}

// LOAD_METHOD and LOAD_SPECIAL may have left a function and self instead of a bound method. For a Python function the trace does the same.
void Recorder::finish_method(const Instr&) {
  ValueId m = call_result_;
  size_t n = shadow().stack.size();
  const hook::Slot* slots = view()->localsplus + frame().code->nlocalsplus();
  PyObject* first = slots[n - 2].get();
  PyObject* second = slots[n - 1].get();
  if (!first || !second || !PyFunction_Check(first)) return;
  // guard: a bound method, so that __func__ and __self__ exist. It leaves in the form [NULL, bound method], equally good to CALL.
  int after = snapshot_now(pending()->next);
  int object = object_index(reinterpret_cast<PyObject*>(&PyMethod_Type), "type:types.MethodType");
  emit(OpKind::guard_type, {m}, {.object = object, .leaves_by = after});
  set_type(m, &PyMethod_Type);
  ValueId func = emit(OpKind::method_func, {m}, {.snapshot = false});
  ValueId self = emit(OpKind::method_self, {m}, {.snapshot = false});
  pop();
  pop();
  push(func);
  push(self);
}

void Recorder::on_LOAD_ATTR(const Instr& i) { get_attr(name_at(load_attr_name(i.op, i.arg)), load_attr_is_method(i.op, i.arg)); }
void Recorder::on_LOAD_METHOD(const Instr& i) { get_attr(name_at(load_attr_name(i.op, i.arg)), true); }

// 3.12: super().name in one instruction, of [super, class, self].
void Recorder::on_LOAD_SUPER_ATTR(const Instr& i) {
  if (live_top(2) != reinterpret_cast<PyObject*>(&PySuper_Type) || !is_constant(top(2))) return not_recorded(i);
  const bool method = i.arg & 1;
  call_result_ = emit(OpKind::super_attr, {top(1), top()}, {.name = name_index(name_at(i.arg >> 2))});
  pop();
  pop();
  push_loaded(call_result_, kNull, method);
  if (method) finisher_ = &Recorder::finish_method;
}

// An attribute that the instance keeps itself.
bool Recorder::set_instance_attr(PyObject* name) {
  dalsegno_attribute a;
  dalsegno_attribute_cache cache{};
  std::string path;
  PyObject* live = live_top();
  if (Py_TYPE(live)->tp_setattro != PyObject_GenericSetAttr || !ordinary_attr(live, name, &a, &path)) return false;
  if (dalsegno_named_item(a.type, a.found) != 0) return false;
  PyObject* own = dalsegno_own_attribute(live, &a, &cache);
  const bool added = !own && (dalsegno_slot_offset(a.type, a.found) != 0 || dalsegno_has_class_attribute(live, &a, &cache));
  if (!own && !added) return false;
  Py_XDECREF(own);
  emit_attr(OpKind::set_own_attr, {top(), top(1)}, a, path);
  pop();
  pop();
  return true;
}

void Recorder::on_STORE_ATTR(const Instr& i) {
  if (set_instance_attr(name_at(i.arg))) return;
  emit(OpKind::set_attr, {top(), top(1)}, {.name = name_index(name_at(i.arg))});
  pop();
  pop();
}

void Recorder::on_DELETE_ATTR(const Instr& i) {
  emit(OpKind::del_attr, {top()}, {.name = name_index(name_at(i.arg))});
  pop();
}

// ---- imports ---------------------------------------------------------------------------------------------------------------

void Recorder::on_IMPORT_NAME(const Instr& i) {
  ValueId v = emit(OpKind::import_name, {top(1), top()},
                   {.object = object_index(frame().live->func_globals, shadow().globals_path), .name = name_index(name_at(i.arg))});
  pop();
  pop();
  push(v);
}

void Recorder::on_IMPORT_FROM(const Instr& i) {
  ValueId v = emit(OpKind::import_from, {top()}, {.name = name_index(name_at(i.arg))});
  push(v);
}

}  // namespace dalsegno::recorder
