// Tuples, lists and dicts whose contents are known: those built in the trace, for as long as nothing can have changed them, and
// those whose length or names a guard has looked at. Calls bind their arguments from them, so the containers themselves need not be asked.
#include <algorithm>
#include <utility>

#include "trace/recorder/builder.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

constexpr Py_ssize_t kMostParts = 64;  // more are not worth a guard each

// Ops that neither change a list or dict among their inputs nor let others get at it.
bool leaves_containers(OpKind kind, uint32_t effects) {
  switch (kind) {
    case OpKind::enter:
    case OpKind::leave_frame:
    case OpKind::release:
    case OpKind::guard_type:
    case OpKind::guard_is:
    case OpKind::guard_is_not:
    case OpKind::guard_truthy:
    case OpKind::is_:
    case OpKind::dict_values:
    case OpKind::list_to_tuple:
      return true;
    case OpKind::binary:
    case OpKind::get_item:
    case OpKind::contains:
    case OpKind::truth:
    case OpKind::unpack:
    case OpKind::guard_quiet_lookup:
      return !shows_frames(effects);
    default:
      return false;
  }
}

}  // namespace

void Builder::made_of(ValueId container, std::vector<ValueId> items, std::vector<PyObject*> keys) {
  for (ValueId v : items) hold(v, +1);
  no_longer_made(container);
  ValueInfo& info = info_[container];
  info.items = std::move(items);
  info.keys = std::move(keys);
  info.made = true;
  if (info.type != &PyTuple_Type) made_.push_back(container);
}

void Builder::made_of_pairs(ValueId dict, const std::vector<ValueId>& pairs) {
  std::vector<PyObject*> keys;
  std::vector<ValueId> values;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    PyObject* key = info_[pairs[i]].object;
    if (!key || !PyUnicode_CheckExact(key)) return;
    const bool twice = std::find_if(keys.begin(), keys.end(), [&](PyObject* k) { return PyUnicode_Compare(k, key) == 0; }) != keys.end();
    if (twice) return;
    keys.push_back(key);
    values.push_back(pairs[i + 1]);
  }
  made_of(dict, std::move(values), std::move(keys));
}

void Builder::no_longer_made(ValueId container) {
  if (!info_[container].made) return;
  info_[container].made = false;
  info_[container].keys.clear();
  for (ValueId v : std::exchange(info_[container].items, {})) hold(v, -1);
}

void Builder::may_change(const Op& op) {
  if (made_.empty() || leaves_containers(op.kind, op.effects)) return;
  for (int i = 0; i < op.n_inputs; ++i) {
    const ValueId v = trace_->data.inputs[op.first_input + i];
    const bool source = i > 0 && (op.kind == OpKind::dict_merge || op.kind == OpKind::list_extend);
    if (v >= 0 && !source && info_[v].type != &PyTuple_Type) no_longer_made(v);
  }
}

bool Builder::parts(ValueId v, PyObject* live, std::vector<ValueId>* values) {
  if (!live || !(PyTuple_CheckExact(live) || PyList_CheckExact(live)) || Py_SIZE(live) > kMostParts) return false;
  if (!know(v, live)) return false;
  if (info_[v].made) {
    *values = info_[v].items;
    return true;
  }
  ValueId tuple = v;
  const auto n = static_cast<int>(Py_SIZE(live));
  if (!info_[v].object) {
    tuple = emit(OpKind::unpack, {v}, {.imm = n, .effects = kReadsMemory});
    set_type(tuple, &PyTuple_Type);
  }
  for (int i = 0; i < n; ++i) {
    PyObject* item = info_[v].object ? PyTuple_GET_ITEM(live, i) : nullptr;
    const bool known = item && is_simple_type(Py_TYPE(item));
    const std::string path = known && !info_[v].path.empty() ? info_[v].path + "[" + std::to_string(i) + "]" : "";
    values->push_back(known ? constant(item, path) : emit(OpKind::tuple_item, {tuple}, {.imm = i, .snapshot = false}));
  }
  if (PyTuple_CheckExact(live) && !info_[v].object) made_of(v, *values);  // it stays as it is
  return true;
}

bool Builder::named_parts(ValueId dict, PyObject* live, std::vector<PyObject*>* keys, std::vector<ValueId>* values) {
  if (!live || !PyDict_CheckExact(live) || PyDict_GET_SIZE(live) > kMostParts || !know(dict, live)) return false;
  if (info_[dict].made) {
    *keys = info_[dict].keys;
    *values = info_[dict].items;
    return true;
  }
  PyObject* names = PyTuple_New(PyDict_GET_SIZE(live));
  Py_ssize_t at = 0, n = 0;
  PyObject *key, *value;
  bool plain = names != nullptr;
  while (plain && PyDict_Next(live, &at, &key, &value)) {
    plain = PyUnicode_CheckExact(key) && utf8_of(key);
    PyTuple_SET_ITEM(names, n++, Py_NewRef(key));
  }
  PyErr_Clear();
  if (plain) {
    ValueId tuple = emit(OpKind::dict_values, {dict}, {.object = names_index(names), .effects = kReadsMemory});
    set_type(tuple, &PyTuple_Type);
    for (int i = 0; i < n; ++i) {
      keys->push_back(PyTuple_GET_ITEM(names, i));
      values->push_back(emit(OpKind::tuple_item, {tuple}, {.imm = i, .snapshot = false}));
    }
  }
  Py_XDECREF(names);
  return plain;
}

}  // namespace dalsegno::recorder
