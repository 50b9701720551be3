// Stack shuffling, locals, cells, globals, attributes.
#include "trace/recorder/facts.h"
#include "trace/recorder/numpy_api.h"
#include "trace/recorder/recorder.h"

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

void Recorder::give_up(Reason reason) {
  abort_ = true;
  abort_reason_ = reason;
}

void Recorder::not_recorded(const Instr&) { give_up(Reason::instruction); }

void Recorder::on_POP_TOP(const Instr&) { pop(); }
void Recorder::on_END_FOR(const Instr&) {
  pop();
  if (PY_VERSION_HEX < 0x030d0000) pop();
}
void Recorder::on_PUSH_NULL(const Instr&) { push(kNull); }
void Recorder::on_COPY(const Instr& i) { push(top(i.arg - 1)); }

void Recorder::on_SWAP(const Instr& i) {
  auto& stack = frame().stack;
  std::swap(stack[stack.size() - 1], stack[stack.size() - i.arg]);
}

void Recorder::on_LOAD_CONST(const Instr& i) { push(code_const(i.arg)); }

// ---- locals ----------------------------------------------------------------------------------------------------------------

void Recorder::on_LOAD_FAST(const Instr& i) {
  if (frame().locals[i.arg] == kNull) {  // unbound: the interpreter raises with its own message
    return give_up(Reason::exception);
  }
  push(frame().locals[i.arg]);
}
void Recorder::on_LOAD_FAST_CHECK(const Instr& i) { on_LOAD_FAST(i); }
void Recorder::on_LOAD_CLOSURE(const Instr& i) { on_LOAD_FAST(i); }

void Recorder::on_LOAD_FAST_AND_CLEAR(const Instr& i) {
  push(frame().locals[i.arg]);
  set_local(i.arg, kNull);
}

void Recorder::on_STORE_FAST(const Instr& i) {
  set_local(i.arg, top());
  pop();
}

void Recorder::on_DELETE_FAST(const Instr& i) {
  if (frame().locals[i.arg] == kNull) return not_recorded(i);
  set_local(i.arg, kNull);
}

void Recorder::on_LOAD_FAST_LOAD_FAST(const Instr& i) {
  if (frame().locals[i.arg >> 4] == kNull || frame().locals[i.arg & 15] == kNull) return not_recorded(i);
  push(frame().locals[i.arg >> 4]);
  push(frame().locals[i.arg & 15]);
}

void Recorder::on_STORE_FAST_LOAD_FAST(const Instr& i) {
  set_local(i.arg >> 4, top());
  pop();
  if (frame().locals[i.arg & 15] == kNull) return not_recorded(i);
  push(frame().locals[i.arg & 15]);
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
  push(emit(OpKind::cell_get, {frame().locals[i.arg]}, {.flags = kQuiet | kReads}));
}

void Recorder::on_STORE_DEREF(const Instr& i) {
  emit(OpKind::cell_set, {frame().locals[i.arg], top()}, {.flags = kQuiet});
  pop();
}

void Recorder::on_DELETE_DEREF(const Instr& i) {
  PyObject* cell = live_local(i.arg);
  if (!cell || !PyCell_GET(cell)) return not_recorded(i);
  emit(OpKind::cell_delete, {frame().locals[i.arg]}, {.flags = kQuiet});
}

// ---- globals ---------------------------------------------------------------------------------------------------------------

// Functions, modules and classes are folded and watched; anything else is looked up again on every replay.
void Recorder::load_global(const Instr& instr, bool push_null) {
  Frame& f = frame();
  PyObject* name = name_at(load_global_name(instr.arg));
  PyObject* globals = f.live->func_globals;
  PyObject* builtins = f.live->func_builtins;
  PyObject* value = PyDict_GetItemWithError(globals, name);
  bool from_globals = value != nullptr;
  if (!value && PyDict_CheckExact(builtins)) value = PyDict_GetItemWithError(builtins, name);
  if (!value) {
    PyErr_Clear();
    return not_recorded(instr);
  }
  const std::string globals_path = f.globals_path, builtins_path = f.builtins_path;
  std::string item = std::string("[") + PyUnicode_AsUTF8(name) + "]";
  ValueId v;
  if (foldable(value)) {
    rely_on_world();
    std::string base = from_globals ? globals_path : builtins_path;
    std::string path = base.empty() ? "" : base + item;
    fold(globals, globals_path, name, from_globals ? value : nullptr, path);
    if (!from_globals) fold(builtins, builtins_path, name, value, path);
    v = constant(value, path);
  } else {
    v = emit(OpKind::load_global, {},
             {.object = object_index(globals, globals_path),
              .object2 = object_index(builtins, builtins_path),
              .name = name_index(name),
              .flags = kQuiet | kReads});
  }
  if (push_null && !kHas313Calls) push(kNull);
  push(v);
  if (push_null && kHas313Calls) push(kNull);
}

void Recorder::on_LOAD_GLOBAL(const Instr& i) { load_global(i, load_global_pushes_null(i.arg)); }

void Recorder::on_STORE_GLOBAL(const Instr& i) {
  Frame& f = frame();
  emit(OpKind::store_global, {top()},
       {.object = object_index(f.live->func_globals, f.globals_path), .name = name_index(name_at(i.arg)), .flags = kQuiet});
  world_dirty_ = true;
  pop();
}

void Recorder::on_DELETE_GLOBAL(const Instr& i) {
  Frame& f = frame();
  if (!PyDict_GetItemWithError(f.live->func_globals, name_at(i.arg))) return not_recorded(i);
  emit(OpKind::delete_global, {},
       {.object = object_index(f.live->func_globals, f.globals_path), .name = name_index(name_at(i.arg)), .flags = kQuiet});
  world_dirty_ = true;
}

// ---- attributes ------------------------------------------------------------------------------------------------------------

void Recorder::get_attr(PyObject* name, bool method) {
  ValueId object = top();
  PyObject* live = live_top();
  auto push_pair = [&](ValueId callable, ValueId self) {  // as LOAD_METHOD leaves them
    if (self != kNull) {
      push(callable);
      push(self);
    } else {
      push(kHas313Calls ? callable : kNull);
      push(kHas313Calls ? kNull : callable);
    }
  };
  if (info_[object].object && PyModule_CheckExact(live)) {  // np.sqrt
    PyObject* dict = PyModule_GetDict(live);
    PyObject* value = PyDict_GetItemWithError(dict, name);
    if (value && foldable(value)) {
      rely_on_world();
      const std::string path = info_[object].path;
      std::string value_path = path.empty() ? "" : path + ".attr(" + PyUnicode_AsUTF8(name) + ")";
      fold(dict, path.empty() ? "" : path + ".attr(__dict__)", name, value, value_path);
      ValueId v = constant(value, value_path);
      pop();
      return method ? push_pair(v, kNull) : push(v);
    }
    PyErr_Clear();
  }
  if (know(object, live)) {
    PyTypeObject* type = Py_TYPE(live);
    if (method) {  // a plain type's method cannot change: no bound method is made
      PyObject* descriptor = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name);
      if (descriptor && Py_IS_TYPE(descriptor, &PyMethodDescr_Type)) {
        std::string path = type_path(type) + ".attr(" + PyUnicode_AsUTF8(name) + ")";
        ValueId v = constant(descriptor, path);
        Py_DECREF(descriptor);
        pop();
        return push_pair(v, object);
      }
      Py_XDECREF(descriptor);
      PyErr_Clear();
    } else if (is_exact_array(live) && is_pure_array_attribute(PyUnicode_AsUTF8(name))) {
      ValueId v = emit(OpKind::get_attr, {object}, {.name = name_index(name), .flags = kQuiet | kPure});
      pop();
      return push(v);
    }
  }
  ValueId v = emit(OpKind::get_attr, {object}, {.name = name_index(name)});
  pop();
  call_result_ = v;
  if (method) {
    push_pair(v, kNull);
    finisher_ = &Recorder::finish_method;
  } else {
    push(v);
    finisher_ = &Recorder::finish_unknown;
  }
}

// LOAD_METHOD may have left a function and self instead of a bound method. For a Python function the trace does the same.
void Recorder::finish_method(const Instr&) {
  unknown_code();
  ValueId m = call_result_;
  const Frame& f = frame();
  size_t n = f.stack.size();
  PyObject** slots = view_->localsplus + f.code->nlocalsplus();
  PyObject* first = slots[n - 2];
  PyObject* second = slots[n - 1];
  if (!first || !second || !PyFunction_Check(first)) return;
  // guard: a bound method, so that __func__ and __self__ exist. It leaves in the form [NULL, bound method], equally good to CALL.
  int after = snapshot_now(pending_->next);
  int object = object_index(reinterpret_cast<PyObject*>(&PyMethod_Type), "type:types.MethodType");
  ValueId guard = emit(OpKind::guard_type, {m}, {.object = object, .flags = kQuiet | kPure, .snapshot = false});
  trace_->data.ops[guard].snapshot = after;
  info_[m].type = &PyMethod_Type;
  ValueId func = emit(OpKind::method_func, {m}, {.flags = kQuiet | kPure, .snapshot = false});
  ValueId self = emit(OpKind::method_self, {m}, {.flags = kQuiet | kPure, .snapshot = false});
  pop();
  pop();
  push(func);
  push(self);
}

void Recorder::finish_unknown(const Instr&) { unknown_code(); }

void Recorder::on_LOAD_ATTR(const Instr& i) { get_attr(name_at(load_attr_name(i.op, i.arg)), load_attr_is_method(i.op, i.arg)); }
void Recorder::on_LOAD_METHOD(const Instr& i) { get_attr(name_at(load_attr_name(i.op, i.arg)), true); }

void Recorder::on_STORE_ATTR(const Instr& i) {
  emit(OpKind::set_attr, {top(), top(1)}, {.name = name_index(name_at(i.arg))});
  pop();
  pop();
  finisher_ = &Recorder::finish_unknown;
}

void Recorder::on_DELETE_ATTR(const Instr& i) {
  emit(OpKind::del_attr, {top()}, {.name = name_index(name_at(i.arg))});
  pop();
  finisher_ = &Recorder::finish_unknown;
}

// ---- imports ---------------------------------------------------------------------------------------------------------------

void Recorder::on_IMPORT_NAME(const Instr& i) {
  Frame& f = frame();
  ValueId v = emit(OpKind::import_name, {top(1), top()},
                   {.object = object_index(f.live->func_globals, f.globals_path), .name = name_index(name_at(i.arg))});
  pop();
  pop();
  push(v);
  finisher_ = &Recorder::finish_unknown;
}

void Recorder::on_IMPORT_FROM(const Instr& i) {
  ValueId v = emit(OpKind::import_from, {top()}, {.name = name_index(name_at(i.arg))});
  push(v);
  finisher_ = &Recorder::finish_unknown;
}

}  // namespace dalsegno::recorder
