// Versions of dicts. 3.11 keeps a version tag in each dict. Later it is deprecated, and a dict watcher counts changes instead.
#include <unordered_map>
#include <utility>

#include "hook/frame_access.h"

namespace dalsegno::hook {

uint64_t g_folded_changes = 0;

#if DALSEGNO_PY311

bool init_dict_version() { return true; }

void DictVersion::watch(PyObject*) {}

DictVersion::DictVersion(PyObject* dict) : dict_(Py_NewRef(dict)) {
  current_ = &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
  seen_ = *current_;
}

DictVersion::~DictVersion() { Py_XDECREF(dict_); }

#else

namespace {

struct Counter {
  uint64_t changes = 0;
  int users = 0;
  std::unordered_map<PyObject*, int> names;  // and how often each was told; empty: all names count
};

// Node-based: the address of a Counter stays. Never destroyed, as dicts may still change while the process ends.
using Counters = std::unordered_map<PyObject*, Counter>;
Counters& counters() {
  static auto* all = new Counters;
  return *all;
}
int g_watcher = -1;  // -1: all eight watchers of the interpreter are taken; the version tag serves instead, or, on 3.14, nothing does

// Names are interned, so that one that is not may equal any of them.
bool counts(const Counter& counter, PyObject* key) {
  if (counter.names.empty() || key == nullptr || !PyUnicode_CheckExact(key) || !PyUnicode_CHECK_INTERNED(key)) return true;
  return counter.names.contains(key);
}

int on_change(PyDict_WatchEvent, PyObject* dict, PyObject* key, PyObject*) {
  const auto found = counters().find(dict);
  if (found == counters().end() || !counts(found->second, key)) return 0;
  ++found->second.changes;
  ++g_folded_changes;
  return 0;
}

#if DALSEGNO_PY313
// The dict of an instance may share its values with the object, and 3.13 then stores attributes past the dict, telling no watcher.
// popitem() is what gives such a dict a table of its own; putting the last item back leaves contents and order as they were.
void stop_sharing_values(PyObject* dict) {
  if (reinterpret_cast<PyDictObject*>(dict)->ma_values == nullptr) return;
  const bool empty = PyDict_GET_SIZE(dict) == 0;
  bool done = !empty || PyDict_SetItemString(dict, "__dict__", Py_None) == 0;
  auto* type = reinterpret_cast<PyObject*>(&PyDict_Type);  // not what a subclass makes of it
  PyObject* item = done ? PyObject_CallMethod(type, "popitem", "O", dict) : nullptr;
  done = item != nullptr && (empty || PyDict_SetItem(dict, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1)) == 0);
  Py_XDECREF(item);
  if (!done) PyErr_Clear();
}
#else
void stop_sharing_values(PyObject*) {}
#endif

}  // namespace

bool init_dict_version() {
  if (g_watcher >= 0) return true;
  g_watcher = PyDict_AddWatcher(on_change);
  if (g_watcher < 0) PyErr_Clear();
  if (g_watcher >= 0) g_folded_changes = 1;
  return true;
}

void DictVersion::watch(PyObject* name) {
  if (g_watcher < 0) return;
  ++counters()[dict_].names[name];
  names_.push_back(name);
}

DictVersion::DictVersion(PyObject* dict) : dict_(Py_NewRef(dict)) {
  stop_sharing_values(dict);
#if DALSEGNO_PY314
  static const uint64_t always_changed = 0;
  current_ = &always_changed;
  step_ = g_watcher < 0 ? 1 : 0;
#else
  current_ = &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#endif
  if (g_watcher >= 0) {
    Counter& counter = counters()[dict];
    if (counter.users++ == 0 && PyDict_Watch(g_watcher, dict) < 0) PyErr_Clear();
    current_ = &counter.changes;
  }
  refresh();
}

DictVersion::~DictVersion() {
  if (dict_ == nullptr) return;
  if (g_watcher >= 0) {
    const auto found = counters().find(dict_);
    if (found != counters().end()) {
      for (PyObject* name : names_)
        if (--found->second.names[name] == 0) found->second.names.erase(name);
    }
    if (found != counters().end() && --found->second.users == 0) {
      counters().erase(found);
      if (PyDict_Unwatch(g_watcher, dict_) < 0) PyErr_Clear();
    }
  }
  Py_DECREF(dict_);
}

#endif

DictVersion::DictVersion(DictVersion&& other) noexcept
    : dict_(std::exchange(other.dict_, nullptr)),
      current_(other.current_),
      seen_(other.seen_),
      step_(other.step_),
      names_(std::move(other.names_)) {}

DictVersion& DictVersion::operator=(DictVersion&& other) noexcept {
  std::swap(dict_, other.dict_);
  std::swap(current_, other.current_);
  std::swap(seen_, other.seen_);
  std::swap(step_, other.step_);
  std::swap(names_, other.names_);
  return *this;
}

}  // namespace dalsegno::hook
