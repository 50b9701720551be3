// What is known of values while recording: guards that establish it, and what makes it stale.
#include <algorithm>
#include <utility>

#include "hook/lookups.h"
#include "numpy/dtypes.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

// Where a plain type is found again in another process. Types without a name of their own are attributes of the extension module.
std::string type_path(PyTypeObject* type) {
  static const std::unordered_map<std::string, std::string> unnamed = {
      {"NoneType", "type:types.NoneType"},
      {"ellipsis", "type:types.EllipsisType"},
      {"method", "type:types.MethodType"},
      {"cell", "type:types.CellType"},
      {"module", "type:types.ModuleType"},
      {"range_iterator", "module:dalsegno._core.attr(range_iterator)"},
      {"list_iterator", "module:dalsegno._core.attr(list_iterator)"},
      {"tuple_iterator", "module:dalsegno._core.attr(tuple_iterator)"},
  };
  std::string name = type->tp_name;
  if (auto found = unnamed.find(name); found != unnamed.end()) return found->second;
  return "type:" + (name.find('.') == std::string::npos ? "builtins." + name : name);
}

bool Recorder::know(ValueId v, PyObject* live) {
  if (v == kNull || !live) return false;
  if (info_[v].type) return is_plain_type(info_[v].type);
  PyTypeObject* type = Py_TYPE(live);
  if (!is_plain_type(type) || info_[v].slots < 0) return false;  // released: no guard can look at it any more
  int object = object_index(reinterpret_cast<PyObject*>(type), type_path(type));
  emit(OpKind::guard_type, {v}, {.object = object});
  info_[v].type = type;
  return true;
}

bool Recorder::know_iterator(ValueId v, PyObject* live) {
  if (know(v, live)) return !PyCell_Check(live);
  if (!live || info_[v].slots < 0 || !hook::quiet_iterator(live)) return false;
  emit(OpKind::guard_quiet_iterator, {v}, {});
  return true;
}

bool Recorder::know_lookup(ValueId container, PyObject* live, ValueId key, PyObject* live_key) {
  if (!live || !live_key || !know(key, live_key) || !simple(key)) return false;
  if (info_[container].object) return true;  // a constant of the code: a set of literals
  if (!dalsegno_quiet_lookup(live, live_key)) return false;
  emit(OpKind::guard_quiet_lookup, {container, key}, {});
  return true;
}

bool Recorder::know_array(ValueId v, PyObject* live) {
  ArrayFacts facts;
  if (v == kNull || !numpy::facts_of(live, &facts)) return false;
  if (info_[v].epoch == epoch_ && info_[v].type == &PyArray_Type) return true;
  if (info_[v].slots < 0) return false;
  ValueId guard = emit(OpKind::guard_array, {v}, {});
  trace_->data.ops[guard].facts = static_cast<int>(trace_->data.facts.size());
  trace_->data.facts.push_back(facts);
  info_[v].type = &PyArray_Type;
  info_[v].facts = facts;
  info_[v].epoch = epoch_;
  return true;
}

// A folded module is still of the class that leaves its attributes to its dict.
void Recorder::know_module(ValueId v) {
  if (info_[v].epoch == epoch_) return;
  emit(OpKind::guard_type, {v}, {.object = object_index(reinterpret_cast<PyObject*>(&PyModule_Type), type_path(&PyModule_Type))});
  info_[v].epoch = epoch_;
}

int Recorder::facts_index(const ArrayFacts& facts) {
  std::vector<ArrayFacts>& all = trace_->data.facts;
  auto found = std::find(all.begin(), all.end(), facts);
  if (found == all.end()) found = all.insert(found, facts);
  return static_cast<int>(found - all.begin());
}

namespace {
bool is_position(PyObject* o) {
  DType dtype;
  if (PyLong_CheckExact(o)) return true;
  if (!numpy::scalar_dtype(Py_TYPE(o), &dtype)) return false;
  return dtype != DType::kBool && dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kUint64;
}
}  // namespace

int Recorder::element_facts(ValueId container, ValueId index, PyObject* live_index) {
  const ArrayFacts facts = info_[container].facts;
  if (facts.rank == 1) return is_position(live_index) ? facts_index(facts) : -1;
  const std::vector<ValueId>& items = info_[index].items;
  const bool constant = info_[index].object != nullptr;
  if (facts.rank < 1 || !PyTuple_CheckExact(live_index) || (!constant && static_cast<int>(items.size()) != facts.rank)) return -1;
  for (Py_ssize_t i = 0; i < facts.rank; ++i)
    if (PyTuple_GET_SIZE(live_index) != facts.rank || !is_position(PyTuple_GET_ITEM(live_index, i))) return -1;
  return facts_index(facts);
}

bool Recorder::simple(ValueId v) const { return v >= 0 && info_[v].type && is_simple_type(info_[v].type); }

bool Recorder::safe_index(ValueId v, PyObject* live) {
  if (!know(v, live)) return false;
  if (live == Py_None || live == Py_Ellipsis || PyLong_Check(live)) return true;
  if (numpy::is_exact_array(live)) return know_array(v, live);
  if (numpy::is_scalar_type(Py_TYPE(live))) return true;
  const std::vector<ValueId> items = info_[v].items;
  if (PySlice_Check(live)) {
    auto* slice = reinterpret_cast<PySliceObject*>(live);
    PyObject* parts[] = {slice->start, slice->stop, slice->step};
    if (info_[v].object) return true;  // a constant
    for (size_t i = 0; i < items.size(); ++i)
      if (!safe_index(items[i], parts[i])) return false;
    return !items.empty();
  }
  if (PyTuple_Check(live)) {
    if (info_[v].object) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(live); ++i)
        if (!is_simple_type(Py_TYPE(PyTuple_GET_ITEM(live, i))) && !PySlice_Check(PyTuple_GET_ITEM(live, i))) return false;
      return true;
    }
    if (static_cast<Py_ssize_t>(items.size()) != PyTuple_GET_SIZE(live)) return false;
    for (size_t i = 0; i < items.size(); ++i)
      if (!safe_index(items[i], PyTuple_GET_ITEM(live, i))) return false;
    return true;
  }
  return false;
}

void Recorder::note_locals(std::vector<PyObject*>* out) const {
  out->clear();
  for (const Frame& f : frames_) {
    if (!f.id) continue;
    PyObject* const* locals = hook::frame_locals(f.id);
    out->insert(out->end(), locals, locals + f.code->nlocalsplus());
  }
}

bool Recorder::frame_is_kept() {
  if (!maybe_kept_) return false;
  maybe_kept_ = std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) { return f.id && hook::frame_kept(f.id); });
  return maybe_kept_;
}

void Recorder::unknown_code() {
  maybe_kept_ = true;
  ++epoch_;
  for (ValueId v : std::exchange(made_, {})) no_longer_made(v);
}

int Recorder::fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path) {
  Folded folded;
  folded.dict = object_index(dict, dict_path);
  folded.name = name_index(name);
  folded.value = value ? object_index(value, value_path) : -1;
  for (const Folded& f : trace_->data.folded) {
    if (f == folded) return folded.value;
    if (f.dict == folded.dict && f.name == folded.name) give_up(Reason::name_changed);
  }
  trace_->data.folded.push_back(folded);
  return folded.value;
}

namespace {

// Types whose instances tell their qualified name without running code of the user's.
bool tells_its_name(PyObject* callee) {
  PyTypeObject* type = Py_TYPE(callee);
  const std::string_view name = type->tp_name;
  return type == &PyFunction_Type || type == &PyCFunction_Type || type == &PyCMethod_Type || type == &PyMethodDescr_Type ||
         type == &PyClassMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyType_Type || type == &PyUFunc_Type ||
         name == "numpy._ArrayFunctionDispatcher" || name == "dalsegno._core.JitFunction";
}

// For people; the type's name where asking might run code of the user's (__getattr__, metaclasses).
std::string name_of(PyObject* callee) {
  if (!callee) return "";
  if (PyMethod_Check(callee)) return name_of(PyMethod_GET_FUNCTION(callee));
  if (PyType_Check(callee) && !Py_IS_TYPE(callee, &PyType_Type) &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(callee), Py_TPFLAGS_HEAPTYPE))
    return text_of(reinterpret_cast<PyHeapTypeObject*>(callee)->ht_qualname);
  PyObject* name = tells_its_name(callee) ? PyObject_GetAttrString(callee, "__qualname__") : nullptr;
  if (!name) PyErr_Clear();
  std::string text = name && PyUnicode_Check(name) ? text_of(name) : Py_TYPE(callee)->tp_name;
  Py_XDECREF(name);
  return text;
}

}  // namespace

void Recorder::note(Reason reason, PyObject* callee) {
  Note n;
  n.reason = reason;
  n.what = name_of(callee);
  n.where = text_of(frame().code->code->co_qualname) + ":" + std::to_string(pending_ ? pending_->line : 0);
  for (const Note& old : notes_)
    if (old.reason == n.reason && old.what == n.what && old.where == n.where) return;
  notes_.push_back(std::move(n));
}

// ---- sources ---------------------------------------------------------------------------------------------------------------

bool foldable(PyObject* o) {
  if (PyFunction_Check(o) || PyCFunction_Check(o) || PyModule_Check(o) || PyType_Check(o)) return true;
  if (PyObject_TypeCheck(o, &PyUFunc_Type) || Py_IS_TYPE(o, &PyMethodDescr_Type)) return true;
  if (std::string_view(Py_TYPE(o)->tp_name) == "dalsegno._core.JitFunction") return true;
  return callee_facts(o).kind != CalleeKind::unknown || std::string(Py_TYPE(o)->tp_name) == "numpy._ArrayFunctionDispatcher";
}

void Recorder::set_paths(Frame& frame, PyFunctionObject* live, const std::string& code_path) {
  frame.code_path = code_path;
  frame.globals_path = globals_path(live->func_globals);
  frame.builtins_path = live->func_builtins == function_->func_builtins ? "self.builtins" : "";
}

std::string Recorder::globals_path(PyObject* globals) const {
  if (globals == function_->func_globals) return "self.globals";
  PyObject* name = PyDict_GetItemString(globals, "__name__");
  const char* text = utf8_of(name);
  PyObject* module = text && PyUnicode_CheckExact(name) ? PyImport_GetModule(name) : nullptr;
  std::string path;
  if (module && PyModule_Check(module) && PyModule_GetDict(module) == globals) path = std::string("module:") + text + ".attr(__dict__)";
  Py_XDECREF(module);
  PyErr_Clear();
  return path;
}

// A function or class found by its module and qualified name; "" if that does not lead back to it. Plain look-ups only.
std::string Recorder::path_by_name(PyObject* object) const {
  if (PyFunction_Check(object)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    const char* name = utf8_of(function->func_qualname);
    return name ? path_within(function->func_globals, name, object) : "";
  }
  if (!PyType_Check(object) || !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE)) return "";
  auto* type = reinterpret_cast<PyHeapTypeObject*>(object);
  PyObject* module_name = PyDict_GetItemString(type->ht_type.tp_dict, "__module__");
  const char* name = utf8_of(type->ht_qualname);
  if (!name) return "";
  PyObject* module = module_name && PyUnicode_CheckExact(module_name) ? PyImport_GetModule(module_name) : nullptr;
  // A script or a cell that was run by exec has globals that are no module's.
  std::string path = path_within(function_->func_globals, name, object);
  if (path.empty() && module && PyModule_Check(module)) path = path_within(PyModule_GetDict(module), name, object);
  Py_XDECREF(module);
  PyErr_Clear();
  return path;
}

std::string Recorder::path_within(PyObject* globals, const std::string& qualified_name, PyObject* object) const {
  std::string path = globals_path(globals), rest = qualified_name;
  if (path.empty()) return "";
  PyObject* found = nullptr;
  while (!rest.empty()) {
    size_t dot = rest.find('.');
    std::string part = rest.substr(0, dot);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    PyObject* dict = !found ? globals : PyType_Check(found) ? reinterpret_cast<PyTypeObject*>(found)->tp_dict : nullptr;
    path += found ? ".attr(" + part + ")" : "[" + part + "]";
    found = dict ? PyDict_GetItemString(dict, part.c_str()) : nullptr;
    if (!found) return "";
  }
  return found == object ? path : "";
}

}  // namespace dalsegno::recorder
