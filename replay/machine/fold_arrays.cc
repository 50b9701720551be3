#include "replay/machine/fold_arrays.h"

#include <algorithm>
#include <cstring>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "replay/machine/fold.h"
#include "replay/machine/fold_numbers.h"
#include "replay/machine/vectors.h"
#include "replay/typed/rep.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay::folds {
namespace {

// None, or no slot: `otherwise`.
bool bound(const Slot* slots, int16_t slot, Py_ssize_t otherwise, Py_ssize_t* out) {
  if (slot < 0) return *out = otherwise, true;
  const Slot& s = slots[slot];
  if (s.tag == Slot::kInt) return *out = s.i, true;
  return *out = otherwise, s.tag == Slot::kObject && s.object == Py_None;
}

bool is_bound(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }

// A slice that is a constant.
bool unpack(PyObject* slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  if (!is_bound(s->start) || !is_bound(s->stop) || !is_bound(s->step)) return false;
  return PySlice_Unpack(slice, start, stop, step) == 0 || (PyErr_Clear(), false);
}

// One axis of an index. False: NumPy raises, or nothing is known.
bool cut(const int16_t* part, const Slot* slots, npy_intp extent, npy_intp stride, Span* to) {
  Py_ssize_t start, stop, step;
  if (part[1] == ArrayViews::kPosition) {
    const Slot& at = slots[part[0]];
    if (is_position(at)) {
      const int64_t i = at.i < 0 ? at.i + extent : at.i;
      if (i < 0 || i >= extent) return false;
      return to->data += i * stride, true;
    }
    if (at.tag != Slot::kObject || !PySlice_Check(at.object) || !unpack(at.object, &start, &stop, &step)) return false;
  } else {
    if (!bound(slots, part[2], 1, &step) || step == 0 || step == PY_SSIZE_T_MIN) return false;
    if (!bound(slots, part[0], step > 0 ? 0 : PY_SSIZE_T_MAX, &start)) return false;
    if (!bound(slots, part[1], step > 0 ? PY_SSIZE_T_MAX : PY_SSIZE_T_MIN, &stop)) return false;
  }
  const Py_ssize_t length = PySlice_AdjustIndices(extent, &start, &stop, step);
  to->data += start * stride;
  to->shape[to->rank] = length;
  to->strides[to->rank++] = step * stride;
  return true;
}

}  // namespace

const ArrayView* ArrayViews::of(const Slot& s) {
  if (s.tag == Slot::kView) return &views_[static_cast<size_t>(s.i)];
  ArrayFacts facts;
  if (s.tag != Slot::kObject || !numpy::facts_of(s.object, &facts) || facts.rank < 1 || facts.rank > Span::kMaxRank ||
      is_complex(facts.dtype))
    return nullptr;
  whole_.emplace();
  whole_->array = reinterpret_cast<PyArrayObject*>(s.object), whole_->dtype = facts.dtype;
  set_of_array(whole_->array, &whole_->span);
  return &*whole_;
}

bool ArrayViews::item(const Slot& a, const int16_t* index, int n, const Slot* slots, Slot* out) {
  const ArrayView* from = of(a);
  if (!from || from->op >= 0 || from->rolled || n > from->span.rank) return false;
  ArrayView view = *from;
  view.span.rank = 0;
  for (int d = 0; d < from->span.rank; ++d) {
    constexpr int16_t kAll[] = {-1, -1, -1};
    if (!cut(d < n ? index + 3 * d : kAll, slots, from->span.shape[d], from->span.strides[d], &view.span)) return false;
  }
  return view.span.rank > 0 ? give_view(view, out) : element(view.array, view.span.data, out);
}

bool ArrayViews::row(const Slot& a, const Slot& at, Slot* out) {
  constexpr int16_t kFirst[] = {0, kPosition, kPosition};
  return is_position(at) && item(a, kFirst, 1, &at, out);
}

// A number, as a double has it exactly.
static bool number_of(const Slot& s, double* out) {
  if (is_position(s) && !typed::exact_in_double(s.i)) return false;
  return as_double(s, out);
}

// shape: the operands' that came before; rank -1: there is none yet.
bool ArrayViews::operand(const Slot& s, ArrayOp::Operand* out, Span* shape) {
  if (number_of(s, &out->number)) return out->from = ArrayOp::Operand::kNumber, true;
  const ArrayView* view = of(s);
  if (!view || view->dtype != DType::kFloat64 || !is_c_like(view->span) || view->span.size() == 0) return false;
  if (shape->rank >= 0 && !same_shape(view->span, *shape)) return false;
  *shape = view->span;
  *out = {ArrayOp::Operand::kResult, view->op, 0.0};
  if (view->op >= 0) return true;
  *out = {ArrayOp::Operand::kView, static_cast<int32_t>(summands_.views.size()), 0.0};
  return summands_.views.push_back(*view), true;
}

// A ufunc of numbers alone, one of them a float, calls its loop for operands without an axis.
static bool call_of_numbers(ArrayFn fn, const Slot* const* args, int n, Slot* out) {
  if (fn == ArrayFn::none || array_fn_inputs(fn) != n || n > 2) return false;
  const numpy::InnerLoop& loop = numpy::kept_loop(fn, DType::kFloat64);
  double operands[2] = {}, made = 0;
  char* data[3] = {};
  npy_intp strides[3] = {};
  const npy_intp one = 1;
  for (int k = 0; k < n; ++k) {
    if (!number_of(*args[k], &operands[k])) return false;
    data[k] = reinterpret_cast<char*>(&operands[k]);
  }
  if (!loop.function || std::none_of(args, args + n, [](const Slot* s) { return is_float(*s); })) return false;
  heed_flags();
  const int raised = rt::all_raised();  // some loops clear flags
  data[n] = reinterpret_cast<char*>(&made), strides[n] = sizeof(double);
  loop.function(data, &one, strides, loop.data);
  if (raised != 0) rt::add_raised(raised);
  return give_numpy(out, made);
}

bool ArrayViews::operate(ArrayFn fn, const Slot* const* args, int n, Slot* out) {
  if (fn == ArrayFn::none || array_fn_inputs(fn) != n || n > 2 || summands_.ops.size() == kMost) return false;
  ArrayOp op{numpy::kept_loop(fn, DType::kFloat64), n, {}, array_fn_is_expr(fn)};
  ArrayView made{};
  made.span.rank = -1;
  for (int k = 0; k < n; ++k)
    if (!operand(*args[k], &op.operands[k], &made.span)) return false;
  if (!op.loop.function) return false;
  if (made.span.rank < 0) return false;
  heed_flags();
  if (summands_.ops.empty()) views_.reserve(kUsual), summands_.views.reserve(kUsual), summands_.ops.reserve(kUsual);
  made.dtype = DType::kFloat64, made.op = static_cast<int32_t>(summands_.ops.size());
  made.span.data = nullptr;
  made.span.lay_out(sizeof(double));
  summands_.ops.push_back(op);
  return give_view(made, out);
}

// (Python's numbers alone choose another function than power: fast_scalar_power() in NumPy's number.c.)
static ArrayFn power_of(const Slot& by) {
  double number = 0;
  if ((by.tag != Slot::kInt && by.tag != Slot::kFloat) || !number_of(by, &number)) return ArrayFn::none;
  return number == 2 ? ArrayFn::square : number == -1 ? ArrayFn::reciprocal : number == 0.5 ? ArrayFn::sqrt : ArrayFn::power;
}

bool ArrayViews::binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out) {
  const Slot* const args[] = {&a, &b};
  if (op == BinaryOp::matmul) return false;
  if (op != BinaryOp::power) return operate(array_fn_of(op), args, 2, out);
  const ArrayFn fn = of(a) ? power_of(b) : ArrayFn::power;
  return fn != ArrayFn::none && operate(fn, args, array_fn_inputs(fn), out);
}

bool ArrayViews::negate(const Slot& a, Slot* out) {
  const Slot* const args[] = {&a};
  return operate(ArrayFn::negative, args, 1, out);
}

// Of vectors in memory: a number.
bool ArrayViews::dot(const Slot& a, const Slot& b, Slot* out) {
  Vector vectors[2];
  const Slot* const args[] = {&a, &b};
  for (int k = 0; k < 2; ++k) {
    const ArrayView* view = of(*args[k]);
    if (!view || view->dtype != DType::kFloat64 || view->op >= 0 || view->rolled || view->span.rank != 1) return false;
    vectors[k] = {view->span.data, view->span.shape[0], view->span.strides[0]};
  }
  double made = 0;
  heed_flags();
  return vectors[0].size == vectors[1].size && by_dot(DType::kFloat64, vectors[0], vectors[1], &made) && give_numpy(out, made);
}

// NumPy's own, whatever np.dot is now.
static bool is_dot(PyObject* callee) {
  static PyObject* known = nullptr;  // kept
  if (callee == known) return true;
  if (known || std::strcmp(Py_TYPE(callee)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return false;
  PyObject* does = PyObject_GetAttrString(callee, "_implementation");
  const bool is =
      does && PyCFunction_CheckExact(does) && std::strcmp(reinterpret_cast<PyCFunctionObject*>(does)->m_ml->ml_name, "dot") == 0;
  if (is) known = Py_NewRef(callee);
  Py_XDECREF(does);
  PyErr_Clear();
  return is;
}

bool ArrayViews::call(PyObject* callee, const Slot* const* args, int n, Slot* out) {
  static PyObject* const kAbs = own_builtin("abs");
  if (n == 2 && is_dot(callee)) return dot(*args[0], *args[1], out);
  if (callee == kAbs) return n == 1 && operate(ArrayFn::absolute, args, n, out);
  if (!PyObject_TypeCheck(callee, &PyUFunc_Type)) return false;
  const ArrayFn fn = recorder::callee_facts(callee).fn;
  return call_of_numbers(fn, args, n, out) || operate(fn, args, n, out);
}

bool ArrayViews::roll(const Slot& a, const Slot& shift, const Slot* axis, Slot* out) {
  const ArrayView* from = of(a);
  if (!from || from->op >= 0 || shift.tag != Slot::kInt || (axis ? axis->tag != Slot::kInt : from->span.rank != 1)) return false;
  const int64_t rank = from->span.rank, given = axis ? axis->i : 0, d = given < 0 ? given + rank : given;
  if (d < 0 || d >= rank || from->span.shape[d] == 0) return false;
  ArrayView view = *from;
  const npy_intp n = view.span.shape[d];
  view.rolled = true;
  view.shifts[d] = ((view.shifts[d] + shift.i % n) % n + n) % n;
  return give_view(view, out);
}

bool ArrayViews::give_view(const ArrayView& view, Slot* out) {
  if (views_.size() == kMost) return false;
  views_.push_back(view);
  out->tag = Slot::kView, out->i = static_cast<int64_t>(views_.size() - 1), out->object = nullptr;
  return true;
}

bool ArrayViews::add(const Slot& item) {
  const ArrayView* view = of(item);
  if (!view || summands_.all.size() == kMost) return false;
  ArrayOp::Operand what{ArrayOp::Operand::kResult, view->op, 0.0};
  if (view->op < 0) {
    what = {ArrayOp::Operand::kView, static_cast<int32_t>(summands_.views.size()), 0.0};
    summands_.views.push_back(*view);
  }
  summands_.all.push_back({what, summands_.ops.size()});
  return true;
}

bool ArrayViews::added_to(PyObject* start) {
  Slot slot{};
  slot.tag = Slot::kObject, slot.object = start;
  const ArrayView* view = of(slot);
  if (!view || view->dtype == DType::kBool) return false;
  summands_.views.push_back(*view);
  return summands_.start = true;
}

}  // namespace dalsegno::replay::folds
