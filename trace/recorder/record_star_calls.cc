// f(*args, **kwargs), functools.partial, instances with __call__: arguments are bound from the parts they were made of in the trace, or
// from guards on lengths and names. What CPython words its own messages for ends the recording before the instruction.
#include <algorithm>
#include <utility>

#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {
namespace {

// Position of a name among others, or -1.
int find_name(const std::vector<PyObject*>& names, PyObject* name) {
  auto found = std::find_if(names.begin(), names.end(), [&](PyObject* one) { return PyUnicode_Compare(one, name) == 0; });
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// Of an exact tuple or list, as long as `parts` said yes.
void add_live(PyObject* sequence, std::vector<PyObject*>* live) {
  PyObject** items = PySequence_Fast_ITEMS(sequence);
  live->insert(live->end(), items, items + Py_SIZE(sequence));
}

// Items by keyword, in order; a later one takes the place of an earlier one of its name.
struct Named {
  std::vector<PyObject*> keys, live;
  std::vector<ValueId> values;

  void put(PyObject* key, ValueId value, PyObject* object) {
    const int at = find_name(keys, key);
    if (at >= 0) {
      values[at] = value;
      live[at] = object;
      return;
    }
    keys.push_back(key);
    values.push_back(value);
    live.push_back(object);
  }
};

}  // namespace

// Known callees get their arguments as an ordinary call: no C function that keeps its tuple or dict is among them.
bool Recorder::wants_parts(ValueId callee, PyObject* live) const {
  if (goes_through(live)) return true;
  const ValueId method = callee >= 0 && info(callee).made ? info(callee).method : kNull;
  if (method != kNull) return wants_parts(method, info(method).object);
  const CalleeKind kind = live && is_constant(callee) ? callee_facts(live).kind : CalleeKind::unknown;
  return kind == CalleeKind::quiet || kind == CalleeKind::quiet_write || kind == CalleeKind::numpy_quiet ||
         kind == CalleeKind::numpy_pure || kind == CalleeKind::numpy_write;
}

bool Recorder::spread(ValueId positional, PyObject* live, ValueId named, PyObject* live_named, Arguments* out) {
  if (!parts(positional, live, &out->values)) return false;
  add_live(live, &out->live);
  if (!live_named) return true;
  std::vector<PyObject*> keys;
  std::vector<ValueId> values;
  if (!named_parts(named, live_named, &keys, &values)) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    out->values.push_back(values[i]);
    out->live.push_back(PyDict_GetItemWithError(live_named, keys[i]));
  }
  return set_names(keys, out);
}

void Recorder::on_CALL_FUNCTION_EX(const Instr& i) {
  const bool has_slot = kSlotForNamed || (i.arg & 1), has_named = has_slot && top() != kNull;
  const int n = has_slot ? 2 : 1, at = kHas313Calls ? n + 1 : n;
  const ValueId callee = top(at), positional = top(n - 1), named = has_named ? top() : kNull;
  PyObject *live = live_top(at), *live_named = has_named ? live_top() : nullptr;
  call_.pops = n + 2;
  if (counts_references(live)) return give_up(Reason::refcount);
  if (wants_parts(callee, live)) {
    Arguments arguments;
    if (spread(positional, live_top(n - 1), named, live_named, &arguments)) {
      ValueId called = callee;
      unbind(&called, &live, &arguments);
      if (is_constant(called)) simplify(live, &arguments);
      const bool through = goes_through(live);
      if (through && call_through(called, live, arguments)) return;
      if (!through && !operates(called, live, arguments)) call_opaque(called, live, std::move(arguments));
      if (!through) return;
    }
  }
  note(Reason::opaque_call, live);
  ValueId v = has_named ? emit(OpKind::call_ex, {callee, positional, named}) : emit(OpKind::call_ex, {callee, positional});
  pop(n + 2);
  push(v);
}

// The callee stands below the arguments made so far.
void Recorder::on_DICT_MERGE(const Instr& i) {
  PyObject* live = live_top();
  if (!PyDict_CheckExact(live)) return not_recorded(i);  // other mappings: the interpreter's own messages
  const ValueId dict = top(i.arg), more = top();
  const int callee_at = i.arg + (kHas313Calls ? 3 : 2);
  std::vector<PyObject*> keys, keys_more;
  std::vector<ValueId> values, values_more;
  const bool known =
      wants_parts(top(callee_at), live_top(callee_at)) && made(dict, &PyDict_Type) && named_parts(more, live, &keys_more, &values_more);
  if (known) {
    keys = info(dict).keys;
    values = info(dict).items;
    for (PyObject* key : keys_more)
      if (find_name(keys, key) >= 0) return give_up(Reason::exception);
    keys.insert(keys.end(), keys_more.begin(), keys_more.end());
    values.insert(values.end(), values_more.begin(), values_more.end());
  } else {
    know(more, live);
  }
  emit(OpKind::dict_merge, {dict, more}, {.effects = known ? kWritesMemory : kAnyEffect});
  if (known) made_of(dict, std::move(values), std::move(keys));
  pop();
}

// ---- callables that call a Python function ---------------------------------------------------------------------------------

// The instance's class has a Python function as __call__, and nothing of the instance's own hides that.
bool Recorder::call_instance(ValueId callee, PyObject* live, Arguments arguments) {
  static PyObject* const kCall = PyUnicode_InternFromString("__call__");
  dalsegno_attribute a;
  dalsegno_attribute_cache cache{};
  std::string path;
  if (is_dead(callee) || !ordinary_attr(live, kCall, &a, &path) || !dalsegno_has_class_attribute(live, &a, &cache)) return false;
  emit_attr(OpKind::class_attr, {callee}, a, path);
  const ValueId found = constant(a.found, path + ".attr(__call__)");
  arguments.values.insert(arguments.values.begin(), callee);
  arguments.live.insert(arguments.live.begin(), live);
  return call_through(found, a.found, std::move(arguments));
}

// A partial's function and arguments never change by themselves, but __setstate__ changes them: they are read again each time.
bool Recorder::call_partial(ValueId callee, PyObject* live, Arguments arguments) {
  if (is_dead(callee)) return false;
  emit(OpKind::guard_type, {callee}, {.object = object_index(reinterpret_cast<PyObject*>(Py_TYPE(live)), "type:functools.partial")});
  struct Part {
    ValueId value;
    PyObject* live;  // kept by the partial
  };
  auto part = [&](const char* name) {
    PyObject* text = PyUnicode_InternFromString(name);
    Part p{emit(OpKind::get_attr, {callee}, {.name = name_index(text), .effects = kReadsMemory}), PyObject_GetAttr(live, text)};
    Py_DECREF(text);
    Py_XDECREF(p.live);
    return p;
  };
  const Part func = part("func"), first = part("args"), named = part("keywords");
  Arguments all;
  Named merged;
  std::vector<PyObject*> keys;
  std::vector<ValueId> values;
  if (!func.live || !parts(first.value, first.live, &all.values) || !named_parts(named.value, named.live, &keys, &values)) return false;
  add_live(first.live, &all.live);
  for (size_t k = 0; k < keys.size(); ++k) merged.put(keys[k], values[k], PyDict_GetItemWithError(named.live, keys[k]));
  const size_t n = arguments.positional();
  for (size_t k = n; k < arguments.values.size(); ++k)
    merged.put(PyTuple_GET_ITEM(arguments.names, static_cast<Py_ssize_t>(k - n)), arguments.values[k], arguments.live[k]);
  all.values.insert(all.values.end(), arguments.values.begin(), arguments.values.begin() + static_cast<int64_t>(n));
  all.live.insert(all.live.end(), arguments.live.begin(), arguments.live.begin() + static_cast<int64_t>(n));
  all.values.insert(all.values.end(), merged.values.begin(), merged.values.end());
  all.live.insert(all.live.end(), merged.live.begin(), merged.live.end());
  if (!set_names(merged.keys, &all)) return false;
  return call_through(func.value, func.live, std::move(all));
}

}  // namespace dalsegno::recorder
