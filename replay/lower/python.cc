// Ops that are done on objects, as the interpreter does them: which step of theirs, and how native code does that.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

// Kinds whose operands the Exec finds in a list, whatever their number.
static bool takes_list(OpKind kind) { return op_inputs(kind) < 0; }

static bool unpacks(OpKind kind) { return kind == OpKind::unpack || kind == OpKind::unpack_ex; }

// key=..., or key=..., reverse=...
static bool names_key(PyObject* names) {
  constexpr const char* kNames[] = {"key", "reverse"};
  const Py_ssize_t n = PyTuple_GET_SIZE(names);
  bool is = n == 1 || n == 2;
  for (Py_ssize_t k = 0; k < n && is; ++k) is = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), kNames[k]) == 0;
  return is;
}

// Which reduction it calls, and which of the inputs is reduced: of add.reduce(a) it stands behind the ufunc.
Lowering::Reduced Lowering::reduced_call(const Op& o) const {
  const auto& facts = [&](ValueId v) -> const typed::ObjectFacts& { return typed_.known.objects[op(v).object]; };
  const typed::ObjectFacts& called = facts(in(o)[0]);
  if (!called.reduces || o.n_inputs < 3 || !is_constant(in(o)[1])) return {called.callee, 1};
  switch (facts(in(o)[1]).ufunc) {
    case ArrayFn::add:
      return {typed::Callee::kSumMethod, 2};
    case ArrayFn::maximum:
      return {typed::Callee::kLargestMethod, 2};
    case ArrayFn::minimum:
      return {typed::Callee::kLeastMethod, 2};
    default:
      return {typed::Callee::kNone, 2};
  }
}

// Is it called f(a, axis), or f(a, axis=...), and with no others than keepdims=... and ddof=... besides?
std::optional<Lowering::AlongAxis> Lowering::along_axis(const Op& o) const {
  if (o.kind != OpKind::call || o.n_inputs < 3 || !is_constant(in(o)[0])) return {};
  PyObject* names = o.object >= 0 ? object(o.object) : nullptr;
  const int32_t at = reduced_call(o).at, named = names ? static_cast<int32_t>(PyTuple_GET_SIZE(names)) : 0, first = o.n_inputs - named;
  if (first != at + 1 && first != at + 2) return {};
  AlongAxis made;
  if (first == at + 2) made.axis = at + 1;
  const std::pair<const char*, int32_t*> known[] = {{"axis", &made.axis}, {"keepdims", &made.keep}, {"ddof", &made.ddof}};
  for (int32_t k = 0; k < named; ++k) {
    const auto is_name = [&](const auto& one) { return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), one.first) == 0; };
    const auto* one = std::find_if(std::begin(known), std::end(known), is_name);
    if (one == std::end(known) || *one->second >= 0) return {};
    *one->second = first + k;
  }
  return made.axis >= 0 ? std::optional(made) : std::nullopt;
}

// Of what small arrays are given to at once; null: of nothing such.
StepFn Lowering::array_step(const Op& o, ValueId i) const {
  const auto known = [&](ValueId v) { return values_[v].facts.rank > 0; };
  if (!op_has_result(o.kind) || values_[i].born_raw) return nullptr;
  if (o.kind == OpKind::binary)
    return static_cast<BinaryOp>(o.imm) == BinaryOp::matmul && known(in(o)[0]) && known(in(o)[1]) ? step_matmul : nullptr;
  if (o.kind != OpKind::call || o.n_inputs < 2) return nullptr;
  if (!is_constant(in(o)[0])) return nullptr;
  const auto [callee, at] = reduced_call(o);
  PyObject* names = o.object >= 0 ? object(o.object) : nullptr;
  const auto along = along_axis(o);
  if (along && along->ddof >= 0 && !typed::finds_spread(callee)) return nullptr;
  if (at > 1) return known(in(o)[at]) && along ? along_axis_step(callee, at) : nullptr;
  if (typed::makes_array(callee)) return making_step(callee, o.n_inputs, names);
  if (!known(in(o)[1])) return making_step(callee, o.n_inputs, names);  // (what may be a list)
  if (callee == typed::Callee::kMatmul) return o.object < 0 && o.n_inputs == 3 && known(in(o)[2]) ? step_matmul_call : nullptr;
  if (typed::runs_along(callee)) return o.n_inputs == 2 || (o.n_inputs == 3 && along) ? running_step(callee) : nullptr;
  return along ? along_axis_step(callee, at) : nullptr;
}

int32_t offset_of_number(const PyTypeObject* type) {
  if (type == &PyList_Type || type == &PyTuple_Type || type == &PyBytes_Type || type == &PyByteArray_Type)
    return offsetof(PyVarObject, ob_size);
  if (type == &PyUnicode_Type) return offsetof(PyASCIIObject, length);
  if (type == &PyDict_Type) return offsetof(PyDictObject, ma_used);
  return type == &PySet_Type || type == &PyFrozenSet_Type ? offsetof(PySetObject, used) : 0;
}

// A step that may run code, but with operands such as these runs none.
bool Lowering::is_mostly_silent(const Op& o, const Step& s) const {
  if (!s.silent || s.fn != step_exec_linked) return false;
  if (o.kind == OpKind::call) return true;
  const PyTypeObject* type = known_type(in(o)[o.kind == OpKind::contains ? 1 : 0]);
  return type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type || type == &PySet_Type;
}

Step Lowering::python_step(const Op& o, ValueId i) {
  std::vector<int32_t> regs;
  for (int32_t k = 0; k < o.n_inputs; ++k) regs.push_back(boxed(in(o)[k], o, i));
  Step s = base(o, i);
  s.exec = exec_of(o.kind);
  s.on_objects = true;
  s.fn = s.linked ? step_exec_linked : step_exec;
  if (StepFn replacing = step_exec_replacing(o.kind); replacing && !s.linked) s.fn = replacing;
  PyObject* const callee = o.kind == OpKind::call && is_constant(in(o)[0]) ? object(op(in(o)[0]).object) : nullptr;
  if (callee && !s.linked && o.object < 0)
    if (const Exec direct = direct_call(callee, o.n_inputs > 1 ? known_type(in(o)[1]) : nullptr, o.n_inputs - 1)) s.exec = direct;
  if (o.kind == OpKind::cell_set) {
    const Quick step = set_content_step();
    s.fn = step.fn, s.exec = step.quick;
    s.does = native::Do::kQuick;
  }
  if (o.kind == OpKind::unpack && !s.linked) {
    s.fn = step_unpack;
    if (values_[in(o)[0]].type == reinterpret_cast<PyObject*>(&PyTuple_Type)) s.does = native::Do::kUnpack;
  }
  if (o.kind == OpKind::tuple_item && unpacks(op(in(o)[0]).kind)) s.fn = step_tuple_item, s.does = native::Do::kTupleItem;
  if (s.linked && o.kind == OpKind::get_attr) s.fn = step_get_attr;
  if (s.linked && o.kind == OpKind::set_attr) s.fn = step_set_attr;
  if (o.kind == OpKind::cell_get) s.does = native::Do::kCell;
  if (o.kind == OpKind::waiting_slot) s.does = native::Do::kTakeSlot;
  if (o.kind == OpKind::begin_to_run) s.does = native::Do::kBeginToRun, s.n = o.imm;
  if (o.kind == OpKind::end_running) s.does = native::Do::kQuick;
  if (o.kind == OpKind::wait_at) s.does = native::Do::kWaitAt;
  if ((o.kind == OpKind::method_func || o.kind == OpKind::method_self) && known_type(in(o)[0]) == &PyMethod_Type) {
    s.does = native::Do::kField;
    s.imm = o.kind == OpKind::method_func ? offsetof(PyMethodObject, im_func) : offsetof(PyMethodObject, im_self);
  }
  if (o.kind == OpKind::func_closure || o.kind == OpKind::func_default) {
    s.does = native::Do::kFieldItem;
    s.n = o.kind == OpKind::func_closure ? offsetof(PyFunctionObject, func_closure) : offsetof(PyFunctionObject, func_defaults);
  }
  if (takes_list(o.kind)) {
    s.n = o.n_inputs;
    if (const auto along = along_axis(o))
      for (const int32_t k : {along->axis, along->keep, along->ddof}) regs.push_back(k >= 0 ? regs[static_cast<size_t>(k)] : -1);
    s.list = list(std::move(regs)).data();
  } else {
    s.a = regs.size() > 0 ? regs[0] : -1;
    s.b = regs.size() > 1 ? regs[1] : -1;
    s.c = regs.size() > 2 ? regs[2] : -1;
  }
  if (op_has_result(o.kind)) s.dst = values_[i].born_raw ? loc(i).raw : loc(i).obj;
  const bool truth = o.kind == OpKind::truth || o.kind == OpKind::not_ || o.kind == OpKind::is_;
  if (truth && !s.linked && values_[i].born_raw) s.does = native::Do::kQuick, s.truth = true;
  if (const int32_t items = o.kind == OpKind::truth && s.truth ? offset_of_number(known_type(in(o)[0])) : 0; items > 0)
    s.does = native::Do::kHasItems, s.imm = items;
  elide(o, i, &s);
  if (const StepFn direct = array_step(o, i)) s.fn = direct;
  const bool of_one = s.linked && callee && o.n_inputs == 2 && o.object < 0;
  if (of_one)
    if (const Exec items = fold_of_items(callee)) s.exec = items;
  const int used_up = s.linked && callee && o.object < 0 ? operand_used_up(callee) : 0;
  if (used_up > 0 && o.n_inputs == used_up + 1 && p_->locs[in(o)[used_up]].owned && dies_at(in(o)[used_up], i)) s.fn = fold_step(callee);
  if (s.linked && callee && o.n_inputs == 3 && o.object < 0 && p_->locs[in(o)[1]].owned && dies_at(in(o)[1], i))
    if (const StepFn direct = fold_onto_step(callee)) s.fn = direct;
  if (callee && o.object >= 0 && names_key(object(o.object)) && o.n_inputs == 2 + PyTuple_GET_SIZE(object(o.object)))
    if (const StepFn direct = fold_by_key_step(callee, o.n_inputs > 3)) s.fn = direct;
  s.only_called = is_mostly_silent(o, s);
  if (is_quick(o, s)) {
    s.does = native::Do::kQuick;
    s.truth = op_has_result(o.kind) && values_[i].born_raw;
    s.only_called = true;
    if (const PyTypeObject* over = o.kind == OpKind::get_iter ? known_type(in(o)[0]) : nullptr;
        over == &PyList_Type || over == &PyTuple_Type) {
      s.does = native::Do::kItemsIterator;
      s.imm = over == &PyTuple_Type;
    }
  }
  return s;
}

}  // namespace dalsegno::replay
