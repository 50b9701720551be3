// What is known of values while recording: guards that establish it, and what makes it stale.
#include <algorithm>
#include <utility>

#include "hook/hook.h"
#include "hook/lookups.h"
#include "numpy/dtypes.h"
#include "trace/recorder/builder.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/sources.h"

namespace dalsegno::recorder {

bool Builder::know(ValueId v, PyObject* live) {
  if (v == kNull || !live) return false;
  if (info_[v].type) return is_plain_type(info_[v].type);
  PyTypeObject* type = Py_TYPE(live);
  if (!is_plain_type(type) || info_[v].slots < 0) return false;  // released: no guard can look at it any more
  int object = object_index(reinterpret_cast<PyObject*>(type), type_path(type));
  emit(OpKind::guard_type, {v}, {.object = object});
  info_[v].type = type;
  return true;
}

bool Builder::know_iterator(ValueId v, PyObject* live) {
  if (know(v, live)) return !PyCell_Check(live);
  if (!live || info_[v].slots < 0 || !hook::quiet_iterator(live)) return false;
  emit(OpKind::guard_quiet_iterator, {v}, {});
  return true;
}

bool Builder::know_lookup(ValueId container, PyObject* live, ValueId key, PyObject* live_key) {
  if (!live || !live_key || !know(key, live_key)) return false;
  const bool tuple = PyTuple_CheckExact(live_key);  // what it holds is looked at each time
  if (!tuple && !simple(key)) return false;
  if (!tuple && info_[container].object) return true;  // a constant of the code: a set of literals
  if (!dalsegno_quiet_lookup(live, live_key)) return false;
  emit(OpKind::guard_quiet_lookup, {container, key}, {});
  return true;
}

bool Builder::know_array(ValueId v, PyObject* live) {
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

bool Builder::know_own_dtype(ValueId v, PyObject* live) {
  if (!know_array(v, live)) return false;
  return PyArray_DESCR(reinterpret_cast<PyArrayObject*>(live)) == numpy::descriptor(info_[v].facts.dtype) && guard_own_dtype(v);
}

// Of the arrays that it may come from: results of array ops have an operand's (NumPy may compute into the second one), views their array's.
bool Builder::guard_own_dtype(ValueId v) {
  static PyObject* const kDtype = PyUnicode_InternFromString("dtype");
  const DType dtype = info_[v].facts.dtype;
  const auto is_source = [&](ValueId of) { return info_[of].type == &PyArray_Type && info_[of].facts.dtype == dtype; };
  const Op o = op(v);
  const auto input = [&](int k) { return trace_->data.inputs[static_cast<size_t>(o.first_input + k)]; };
  const bool computed = o.fn != ArrayFn::none;
  if (computed || (o.kind == OpKind::get_item && is_source(input(0)))) {
    for (int k = 0; k < (computed ? o.n_inputs : 1); ++k)
      if (is_source(input(k)) && !guard_own_dtype(input(k))) return false;
    return true;
  }
  if (info_[v].own_dtype_epoch == epoch_) return true;
  if (info_[v].slots < 0) return false;
  const ValueId found = emit(OpKind::get_attr, {v}, {.name = name_index(kDtype), .effects = kNoEffect});
  emit(OpKind::guard_is, {found}, {.object = object_index(reinterpret_cast<PyObject*>(numpy::descriptor(dtype)), "")});
  info_[v].own_dtype_epoch = epoch_;
  return true;
}

// C or F, as the array is that is there: new ones of two axes are. False: this one is not.
bool Builder::guard_contiguous(ValueId v, PyObject* live) {
  static PyObject *const kFlags = PyUnicode_InternFromString("flags"), *const kEither = PyUnicode_InternFromString("forc");
  const int flags = PyArray_FLAGS(reinterpret_cast<PyArrayObject*>(live));
  if ((flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) == 0 || info_[v].slots < 0) return false;
  const Op o = op(v);
  const bool is_new = o.fn != ArrayFn::none && (o.kind == OpKind::binary || o.kind == OpKind::unary);
  if (info_[v].facts.rank < 2 || (info_[v].facts.rank == 2 && is_new)) return true;
  const ValueId found = emit(OpKind::get_attr, {v}, {.name = name_index(kFlags), .effects = kNoEffect});
  const ValueId either = emit(OpKind::get_attr, {found}, {.name = name_index(kEither), .effects = kNoEffect});
  emit(OpKind::guard_is, {either}, {.object = object_index(Py_True, "const:True")});
  return true;
}

// What a function imports itself, or is given, is the module that it was: a constant from here on.
bool Builder::know_which_module(ValueId v, PyObject* live) {
  if (info_[v].object) return true;
  return know_which(v, live, Sources::of_module(live));
}

// A constant from here on: guards that.
bool Builder::know_which(ValueId v, PyObject* live, const std::string& path) {
  if (path.empty() || info_[v].slots < 0) return false;
  emit(OpKind::guard_is, {v}, {.object = object_index(live, path)});
  info_[v].object = live;
  info_[v].path = path;
  return true;
}

// A callee that a loop has come with on the stack, where a call inside the arguments of another one has the loop: no variable can change
// it.
bool Builder::know_callee(ValueId v, PyObject* live) {
  if (v < 0 || info_[v].object || op(v).kind != OpKind::param) return false;
  for (const Shadow& f : shadows_)
    if (std::find(f.locals.begin(), f.locals.end(), v) != f.locals.end()) return false;
  return know_which(v, live, Sources::of_builtin(live));
}

// A folded module is still of the class that leaves its attributes to its dict.
void Builder::know_module(ValueId v) {
  if (info_[v].epoch == epoch_) return;
  emit(OpKind::guard_type, {v}, {.object = object_index(reinterpret_cast<PyObject*>(&PyModule_Type), type_path(&PyModule_Type))});
  info_[v].epoch = epoch_;
}

namespace {
bool is_position(PyObject* o) {
  DType dtype;
  if (PyLong_CheckExact(o)) return true;
  if (!numpy::scalar_dtype(Py_TYPE(o), &dtype)) return false;
  return dtype != DType::kBool && dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kUint64;
}
}  // namespace

int Builder::element_facts(ValueId container, ValueId index, PyObject* live_index, bool object_will_do) {
  const ArrayFacts facts = info_[container].facts;
  if (facts.dtype == DType::kComplex64 && !object_will_do) return -1;
  if (facts.rank == 1) return is_position(live_index) ? facts_index(facts) : -1;
  const std::vector<ValueId>& items = info_[index].items;
  const bool constant = info_[index].object != nullptr;
  if (facts.rank < 1 || !PyTuple_CheckExact(live_index) || (!constant && static_cast<int>(items.size()) != facts.rank)) return -1;
  for (Py_ssize_t i = 0; i < facts.rank; ++i)
    if (PyTuple_GET_SIZE(live_index) != facts.rank || !is_position(PyTuple_GET_ITEM(live_index, i))) return -1;
  return facts_index(facts);
}

bool Builder::simple(ValueId v) const { return v >= 0 && info_[v].type && is_simple_type(info_[v].type); }

bool Builder::is_numpy_scalar(ValueId v) const { return info_[v].type && numpy::is_number_type(info_[v].type); }

void Builder::set_same_array(ValueId v, ValueId as) {
  info_[v].type = info_[as].type;
  info_[v].facts = info_[as].facts;
  info_[v].epoch = info_[as].epoch;
}

void Builder::set_array_op(ValueId v, ArrayFn fn, PyObject* result) {
  ArrayFacts facts;
  if (fn == ArrayFn::none || !numpy::facts_of(result, &facts) || facts.rank == 0) return;
  op(v).fn = fn;
  op(v).effects = kArrayEffects;
  op(v).facts = static_cast<int>(trace_->data.facts.size());
  trace_->data.facts.push_back(facts);
  info_[v].type = Py_TYPE(result);
  info_[v].facts = facts;
  info_[v].epoch = epoch_;
}

bool Builder::safe_index(ValueId v, PyObject* live) {
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

void Builder::forget() {
  ++epoch_;
  for (ValueId v : std::exchange(made_, {})) no_longer_made(v);
}

}  // namespace dalsegno::recorder
