// What folds call: builtins, methods and functions, without running code of the user's other than what is translated.
#include <cmath>
#include <cstring>

#include "numpy/dtypes.h"
#include "replay/machine/fold_containers.h"
#include "replay/machine/fold_machine.h"
#include "replay/machine/fold_numbers.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay::folds {

// int(text), float(text)
static bool convert_text(PyObject* to, PyObject* text, Slot* out) {
  PyObject* made = nullptr;
  if (to == reinterpret_cast<PyObject*>(&PyLong_Type)) made = PyLong_FromUnicodeObject(text, 10);
  if (to == reinterpret_cast<PyObject*>(&PyFloat_Type)) made = PyFloat_FromString(text);
  if (!made) return PyErr_Clear(), false;
  set(out, made);
  out->object = nullptr;
  Py_DECREF(made);
  return out->tag != Slot::kObject;
}

bool Run::convert(PyObject* to, const Slot& a, Slot* out) {
  constexpr double kLimit = 9.2e18;
  if (is_text(a)) return convert_text(to, a.object, out);
  if (!is_ordered(a)) return false;
  if (to == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    if (a.tag == Slot::kFloat) return *out = a, true;
    return give(out, a.tag == Slot::kNpFloat ? a.f : static_cast<double>(a.i));
  }
  if (to != reinterpret_cast<PyObject*>(&PyLong_Type)) return false;
  if (a.tag == Slot::kInt) return *out = a, true;
  if (a.tag == Slot::kNpInt) return give(out, a.i);
  return a.f > -kLimit && a.f < kLimit && give(out, static_cast<int64_t>(a.f));
}

bool Run::range(const Slot* const* args, int n, Slot* out) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto suits = [](const Slot* s) { return s->tag == Slot::kInt && s->i > -kMost && s->i < kMost; };
  if (n < 1 || !std::all_of(args, args + n, suits) || (n == 3 && args[2]->i == 0)) return false;
  Items& made = ranges_[next_range_ % kMostRanges];
  made.over_range(n > 1 ? args[0]->i : 0, args[n > 1 ? 1 : 0]->i, n > 2 ? args[2]->i : 1);
  out->tag = Slot::kRange, out->i = next_range_++, out->object = nullptr;
  return true;
}

bool Run::is_quiet(PyObject* callee) {
  if (callee == quiet_) return true;
  if (recorder::callee_facts(callee).kind != recorder::CalleeKind::quiet) return false;
  return quiet_ = callee, true;
}

bool Run::builtin(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  static PyObject* const kAbs = own_builtin("abs");
  static PyObject* const kLen = own_builtin("len");
  static PyObject* const kMin = own_builtin("min");
  static PyObject* const kMax = own_builtin("max");
  if (Py_IS_TYPE(callee, &PyMethodDescr_Type)) return method(callee, args, n, out);
  if (callee == kAbs && n == 1) {
    const Slot& a = *args[0];
    if (a.tag == Slot::kFloat) return give(out, std::fabs(a.f));
    if (is_position(a) && a.i < 0) return negate(a, out);
    *out = a;
    if (is_numpy(a)) out->object = nullptr;  // always a new one
    if (a.tag == Slot::kNpFloat) out->f = std::fabs(a.f);
    return is_ordered(a);
  }
  if (callee == kLen && n == 1) {
    if (args[0]->tag != Slot::kObject) return false;
    if (numpy::is_exact_array(args[0]->object)) return length_of_array(args[0]->object, out);
    int64_t items = 0;
    return length(args[0]->object, &items) && give(out, items);
  }
  if (callee == reinterpret_cast<PyObject*>(&PyUnicode_Type)) return n == 1 && made_.convert(1, *args[0], out);
  if (callee == reinterpret_cast<PyObject*>(&PyRange_Type)) return range(args, n, out);
  if ((callee == kMin || callee == kMax) && n == 2) {
    bool better = false;
    if (!compare(callee == kMin ? Py_LT : Py_GT, *args[1], *args[0], &better)) return false;
    return *out = *args[better ? 1 : 0], true;
  }
  if (n == 1 && convert(callee, *args[0], out)) return true;
  if (PyCFunction_CheckExact(callee) && bound(callee, args, n, out)) return true;
  return PyCFunction_CheckExact(callee) && is_quiet(callee) && by_interpreter(callee, args, n, out);
}

static PyObject* dict_get() {
  static PyObject* const kGet = own_method(&PyDict_Type, "get");
  return kGet;
}

bool Run::method(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  if (callee == dict_get()) return n > 0 && get(args[0], args + 1, n - 1, out);
  const bool of_text = n > 0 && is_text(*args[0]) && PyDescr_TYPE(callee) == &PyUnicode_Type;
  if (!of_text || !is_quiet(callee)) return false;
  const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(callee)->d_method;
  if (n == 1 && method->ml_flags == METH_NOARGS) return give_made(method->ml_meth(args[0]->object, nullptr), out);
  return by_interpreter(callee, args, n, out);
}

bool Run::get(const Slot* of, const Slot* const* args, int n, Slot* out) {
  if (n < 1 || n > 2 || of->tag != Slot::kObject || !PyDict_CheckExact(of->object)) return false;
  const int found = value_at(of->object, *args[0], out);
  if (found == 0 && n == 2) *out = *args[1];
  if (found == 0 && n == 1) set_object(out, Py_None);
  return found >= 0;
}

bool Run::bound(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  PyObject* of = PyCFunction_GET_SELF(callee);
  if (!of || !PyDict_CheckExact(of) ||
      PyCFunction_GET_FUNCTION(callee) != reinterpret_cast<PyMethodDescrObject*>(dict_get())->d_method->ml_meth)
    return false;
  Slot self{};
  set_object(&self, of);
  return get(&self, args, n, out);
}

bool Run::length_of_array(PyObject* o, Slot* out) {
  auto* array = reinterpret_cast<PyArrayObject*>(o);
  return PyArray_NDIM(array) > 0 && give(out, static_cast<int64_t>(PyArray_DIM(array, 0)));
}

bool Run::is_of_math(PyObject* callee) {
  PyObject* of = PyCFunction_GET_SELF(callee);
  return of && PyModule_CheckExact(of) && std::strcmp(PyModule_GetName(of), "math") == 0;
}

bool Run::by_interpreter(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  PyObject* objects[FoldCode::kMostArguments + 1] = {};
  bool made = true;
  for (int k = 0; k < n && made; ++k) {
    const bool of_math = args[k]->tag == Slot::kNpFloat && PyCFunction_CheckExact(callee) && is_of_math(callee);
    made = (is_plain(*args[k]) || of_math) && (objects[k] = object_of(*args[k])) != nullptr;
  }
  PyObject* given = made ? PyObject_Vectorcall(callee, objects, static_cast<size_t>(n), nullptr) : nullptr;
  for (PyObject* o : objects) Py_XDECREF(o);
  return give_made(given, out);
}

bool Run::give_made(PyObject* given, Slot* out) {
  if (!given) return PyErr_Clear(), false;
  set(out, given);
  if (out->tag == Slot::kObject)
    return made_.keep(given, out) && (PyUnicode_CheckExact(given) || PyTuple_CheckExact(given) || PyList_CheckExact(given));
  out->object = nullptr;
  Py_DECREF(given);
  return true;
}

bool Run::call(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  return PyFunction_Check(callee) ? function(callee, args, n, out) : builtin(callee, args, n, out);
}

bool Run::call(const FoldCode& code, const FoldInstr& at, Slot* s, Slot* out) {
  const Slot* args[FoldCode::kMostArguments + 1];
  const int n = at.op == FoldOp::kCallPairs ? 1 : at.c;
  const bool bound = at.target >= 0 && s[at.target].tag != Slot::kEmpty;
  if (bound) args[0] = &s[at.target];
  for (int k = 0; k < n; ++k) {
    Slot& given = s[code.list[at.b + k]];
    if (boxes_ && is_made(given) && !made_.box(&given)) return false;
    args[k + bound] = &given;
  }
  if (bound) return s[at.a].tag == Slot::kObject && !at.sub && call(s[at.a].object, args, n + 1, out);
  if (s[at.a].tag != Slot::kObject) return false;
  PyObject* callee = s[at.a].object;
  const bool rolls = views_ && at.c > 1 && !PyCFunction_CheckExact(callee) && recorder::callee_facts(callee).fn == ArrayFn::roll;
  if (at.op == FoldOp::kCallPairs) {
    const int16_t* pairs = &code.list[at.b + 1];
    Slot once{};
    return rolls && views_->roll(*args[0], s[pairs[0]], &s[pairs[2]], &once) && views_->roll(once, s[pairs[1]], &s[pairs[3]], out);
  }
  if (rolls) return (at.c == 3 || !at.sub) && views_->roll(*args[0], *args[1], at.c == 3 ? args[2] : nullptr, out);
  return !at.sub && (call(callee, args, at.c, out) || (views_ && views_->call(callee, args, at.c, out)));
}

}  // namespace dalsegno::replay::folds
