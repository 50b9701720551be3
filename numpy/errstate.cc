#include "numpy/errstate.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "halide_gen/runtime/flags.h"

namespace dalsegno::numpy {
namespace {

PyObject* g_get_extobj = nullptr;  // numpy._core.umath._get_extobj_dict
PyObject* g_extobj = nullptr;      // the context variable behind it, or null

struct Handled {
  int flag;
  const char* name;
  int reported;  // as NumPy numbers it
};
constexpr Handled kHandled[] = {{rt::kInvalid, "invalid", NPY_FPE_INVALID},
                                {rt::kDivide, "divide", NPY_FPE_DIVIDEBYZERO},
                                {rt::kOverflow, "over", NPY_FPE_OVERFLOW},
                                {rt::kUnderflow, "under", NPY_FPE_UNDERFLOW}};

bool is_text(PyObject* o, const char* text) { return o && PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, text) == 0; }

struct Errstate {
  int ignored = 0, warned = 0;  // flags
};

Errstate read_errstate() {
  Errstate found;
  PyObject* settings = PyObject_CallNoArgs(g_get_extobj);
  if (settings && PyDict_Check(settings)) {
    for (const Handled& h : kHandled) {
      PyObject* mode = PyDict_GetItemString(settings, h.name);
      if (is_text(mode, "ignore")) found.ignored |= h.flag;
      if (is_text(mode, "warn")) found.warned |= h.flag;
    }
  }
  Py_XDECREF(settings);
  return found;
}

// What the context variable holds is made anew whenever a setting changes.
Errstate errstate() {
  static PyObject* seen = nullptr;  // of which `known` is true
  static Errstate known;
  PyObject *type, *value, *traceback, *now = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (g_extobj && PyContextVar_Get(g_extobj, nullptr, &now) < 0) now = nullptr;
  Errstate found;
  if (now && now == seen) {
    found = known;
    Py_DECREF(now);
  } else {
    found = read_errstate();
    if (now) {
      known = found;
      Py_XSETREF(seen, now);
    }
  }
  PyErr_Restore(type, value, traceback);
  return found;
}

// ---- the module warnings

PyObject *g_warnings = nullptr, *g_stderr = nullptr, *g_closed = nullptr, *g_errors = nullptr;  // names
PyObject* g_sys = nullptr;                                                                      // the dictionary of the module sys
PyObject *g_pattern = nullptr, *g_text_file = nullptr, *g_buffer = nullptr, *g_raw = nullptr;   // types: re.Pattern and io's

// Names in the module's dictionary.
enum Name {
  kFilters,
  kDefaultAction,
  kShowMessage,
  kShowMessageImpl,
  kFormatMessage,
  kFormatMessageImpl,
  kShowWarning,
  kShowWarningOriginal,
  kFormatWarning,
  kFormatWarningOriginal,
  kNames
};
constexpr const char* kTexts[] = {"filters",        "defaultaction",       "_showwarnmsg", "_showwarnmsg_impl",
                                  "_formatwarnmsg", "_formatwarnmsg_impl", "showwarning",  "_showwarning_orig",
                                  "formatwarning",  "_formatwarning_orig"};
static_assert(std::size(kTexts) == kNames);
PyObject* g_names[kNames];

PyObject* item(PyObject* module, Name name) { return PyDict_GetItemWithError(module, g_names[name]); }

PyObject* type_of(const char* module, const char* name) {
  PyObject* m = PyImport_ImportModule(module);
  PyObject* type = m ? PyObject_GetAttrString(m, name) : nullptr;
  Py_XDECREF(m);
  return type;
}

bool is_exactly(PyObject* o, PyObject* type) { return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type; }

// No exception is made by it; what is unknown is one.
bool is_plain_action(PyObject* action) {
  constexpr const char* kActions[] = {"default", "always", "ignore", "module", "once"};
  return std::any_of(std::begin(kActions), std::end(kActions), [&](const char* known) { return is_text(action, known); });
}

bool is_text_pattern(PyObject* o) {
  if (!is_exactly(o, g_pattern)) return false;
  PyObject* text = PyObject_GetAttrString(o, "pattern");
  const bool is_one = text && PyUnicode_CheckExact(text);  // (others, of bytes, raise where they are used)
  Py_XDECREF(text);
  PyErr_Clear();
  return is_one;
}

bool is_line(PyObject* o) {
  int overflow = 1;
  if (PyLong_CheckExact(o)) PyLong_AsLongAndOverflow(o, &overflow);
  return overflow == 0;
}

// A filter that looks for texts, and makes no exception of what it finds.
bool is_plain_filter(PyObject* filter) {
  if (!PyTuple_CheckExact(filter) || PyTuple_GET_SIZE(filter) != 5) return false;
  PyObject *action = PyTuple_GET_ITEM(filter, 0), *category = PyTuple_GET_ITEM(filter, 2);
  for (const Py_ssize_t k : {1, 3}) {
    PyObject* looked_for = PyTuple_GET_ITEM(filter, k);
    if (looked_for != Py_None && !PyUnicode_CheckExact(looked_for) && !is_text_pattern(looked_for)) return false;
  }
  return is_plain_action(action) && Py_TYPE(category) == &PyType_Type && is_line(PyTuple_GET_ITEM(filter, 4));
}

// The module's own function.
bool is_own(PyObject* module, Name name) {
  PyObject* found = item(module, name);
  return found && PyFunction_Check(found) && PyFunction_GET_GLOBALS(found) == module;
}

// Is it open, and does it write any text?
bool takes_any_text(PyObject* file) {
  PyObject *closed = PyObject_GetAttr(file, g_closed), *errors = PyObject_GetAttr(file, g_errors);
  const bool takes = closed == Py_False && is_text(errors, "backslashreplace");
  Py_XDECREF(closed), Py_XDECREF(errors);
  PyErr_Clear();
  return takes;
}

// Of the interpreter's kind (without a buffer by -u); ipykernel's hands on what is written.
bool is_of_known_kind(PyObject* file) {
  if (!is_exactly(file, g_text_file))
    return std::strcmp(Py_TYPE(file)->tp_name, "OutStream") == 0 &&
           is_text(PyDict_GetItemString(Py_TYPE(file)->tp_dict, "__module__"), "ipykernel.iostream");
  PyObject* buffer = PyObject_GetAttrString(file, "buffer");
  PyObject* raw = buffer && is_exactly(buffer, g_buffer) ? PyObject_GetAttrString(buffer, "raw") : Py_XNewRef(buffer);
  const bool known = raw && is_exactly(raw, g_raw);
  Py_XDECREF(raw), Py_XDECREF(buffer);
  PyErr_Clear();
  return known;
}

bool is_plain_file(PyObject* file) {
  static PyObject* known = nullptr;
  if (!file || file == Py_None) return true;
  if (file != known) {
    if (!is_of_known_kind(file)) return false;
    Py_XSETREF(known, Py_NewRef(file));
  }
  return !is_exactly(file, g_text_file) || takes_any_text(file);
}

// catch_warnings(record=True) has them appended to a list.
bool is_recorded(PyObject* shows) {
  return PyCFunction_Check(shows) && PyCFunction_GET_SELF(shows) && PyList_CheckExact(PyCFunction_GET_SELF(shows)) &&
         std::strcmp(reinterpret_cast<PyCFunctionObject*>(shows)->m_ml->ml_name, "append") == 0;
}

enum class Shown : uint8_t {
  kByOthers,
  kInFile,  // sys.stderr
  kInList
};

// (warnings.py and _warnings.c)
Shown shown_by(PyObject* module) {
  PyObject* shows = item(module, kShowMessageImpl);
  if (!shows || !is_own(module, kShowMessage) || item(module, kShowWarning) != item(module, kShowWarningOriginal)) return Shown::kByOthers;
  if (is_recorded(shows)) return Shown::kInList;
  const bool own = is_own(module, kShowMessageImpl) && is_own(module, kFormatMessage) && is_own(module, kFormatMessageImpl) &&
                   item(module, kFormatWarning) == item(module, kFormatWarningOriginal);
  return own ? Shown::kInFile : Shown::kByOthers;
}

#if PY_VERSION_HEX < 0x030E0000
constexpr bool kHasVersions = true;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // (from 3.12 on; it is kept all the same)
uint64_t version_of(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }
#pragma GCC diagnostic pop
#else
constexpr bool kHasVersions = false;
uint64_t version_of(PyObject*) { return 0; }
#endif

// What was found in the module, as long as nothing in its dictionary and among its filters is another object.
class WarningsModule {
 public:
  Shown shown(PyObject* module) {
    if (!is_same(module)) look(module);
    return shown_;
  }

 private:
  bool is_same(PyObject* module) const {
    if (!kHasVersions || module != module_ || version_of(module) != version_) return false;
    PyObject** items = reinterpret_cast<PyListObject*>(list_)->ob_item;
    return std::equal(filters_.begin(), filters_.end(), items, items + PyList_GET_SIZE(list_));
  }

  void look(PyObject* module) {
    PyObject* filters = item(module, kFilters);
    const std::vector<PyObject*> held = std::exchange(filters_, {});
    Py_XSETREF(module_, nullptr);
    shown_ = Shown::kByOthers;
    if (filters && PyList_CheckExact(filters) && is_plain_action(item(module, kDefaultAction))) {
      PyObject** items = reinterpret_cast<PyListObject*>(filters)->ob_item;
      filters_.assign(items, items + PyList_GET_SIZE(filters));
      std::for_each(filters_.begin(), filters_.end(), Py_IncRef);
      if (std::all_of(filters_.begin(), filters_.end(), is_plain_filter)) shown_ = shown_by(module);
      module_ = Py_NewRef(module), list_ = filters, version_ = version_of(module);  // (the module has the list)
    }
    std::for_each(held.begin(), held.end(), Py_DecRef);
  }

  PyObject *module_ = nullptr, *list_ = nullptr;
  uint64_t version_ = 0;
  std::vector<PyObject*> filters_;  // references
  Shown shown_ = Shown::kByOthers;
};

bool warns_plainly() {
  static auto* known = new WarningsModule;  // (kept: references of its outlive the interpreter else)
  PyObject* found = PyDict_GetItemWithError(PyImport_GetModuleDict(), g_warnings);
  if (!found || !PyModule_Check(found)) return false;
  const Shown shown = known->shown(PyModule_GetDict(found));
  return shown == Shown::kInList || (shown == Shown::kInFile && is_plain_file(PyDict_GetItemWithError(g_sys, g_stderr)));
}

}  // namespace

bool init_errstate() {
  if (g_get_extobj) return true;
  PyObject* umath = PyImport_ImportModule("numpy._core.umath");
  if (umath) g_get_extobj = PyObject_GetAttrString(umath, "_get_extobj_dict");
  if (g_get_extobj) {
    g_extobj = PyObject_GetAttrString(umath, "_extobj_contextvar");
    if (!g_extobj || !PyContextVar_CheckExact(g_extobj)) {
      PyErr_Clear();
      Py_CLEAR(g_extobj);
    }
  }
  Py_XDECREF(umath);
  g_pattern = type_of("re", "Pattern"), g_text_file = type_of("io", "TextIOWrapper");
  g_buffer = type_of("io", "BufferedWriter"), g_raw = type_of("io", "FileIO");
  g_warnings = PyUnicode_InternFromString("warnings"), g_stderr = PyUnicode_InternFromString("stderr");
  g_closed = PyUnicode_InternFromString("closed"), g_errors = PyUnicode_InternFromString("errors");
  if (PyObject* sys = PyImport_ImportModule("sys")) g_sys = PyModule_GetDict(sys), Py_DECREF(sys);
  for (int k = 0; k < kNames; ++k) g_names[k] = PyUnicode_InternFromString(kTexts[k]);
  return g_get_extobj && g_pattern && g_text_file && g_buffer && g_raw && g_sys;
}

bool errstate_ignores(int flags) { return (flags & ~errstate().ignored) == 0; }

int watched_flags() { return rt::kFlagBits & ~errstate().ignored; }

bool warns_unseen() {
  const Errstate now = errstate();
  if (now.ignored == rt::kFlagBits) return true;
  if ((now.ignored | now.warned) != rt::kFlagBits) return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool unseen = warns_plainly();
  PyErr_Restore(type, value, traceback);
  return unseen;
}

bool warn_of(const char* ufunc, int flags) {
  int reported = 0;
  for (const Handled& h : kHandled)
    if (flags & h.flag) reported |= h.reported;
  return PyUFunc_GiveFloatingpointErrors(ufunc, reported) == 0;
}

}  // namespace dalsegno::numpy
