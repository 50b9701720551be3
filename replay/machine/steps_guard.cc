// Guards: a step goes on if the fact holds, else it leaves.
#include <array>

#include "hook/attributes.h"
#include "hook/generators.h"
#include "hook/lookups.h"
#include "numpy/dtypes.h"
#include "replay/machine/run.h"
#include "replay/machine/scalars.h"
#include "trace/kind_table.h"

namespace dalsegno::replay {
namespace {

const Step* verdict(bool ok, const Step* s, Reg* r, Machine& m) {
  if (ok) [[likely]]
    return go_on(s + 1, r, m);
  count_guard_failure();
  return leave(m, s->exit);
}

// What is guarded, without leaving.
bool type(const Step& s, Reg* r) { return reinterpret_cast<PyObject*>(Py_TYPE(r[s.a].o)) == s.object; }
bool is_true(const Step& s, Reg* r) { return r[s.a].o == Py_True; }
bool is_false(const Step& s, Reg* r) { return r[s.a].o == Py_False; }
bool is(const Step& s, Reg* r) { return r[s.a].o == s.object; }
bool is_not(const Step& s, Reg* r) { return r[s.a].o != s.object; }
bool truthy(const Step& s, Reg* r) { return type(s, r) && dalsegno_has_true_instances(Py_TYPE(r[s.a].o)) != 0; }
bool quiet_iterator(const Step& s, Reg* r) { return hook::quiet_iterator(r[s.a].o); }
bool quiet_lookup(const Step& s, Reg* r) { return dalsegno_quiet_lookup(r[s.a].o, r[s.b].o) != 0; }

// object: the code; object2: the globals; name: which slots are bound.
bool waiting(const Step& s, Reg* r) {
  const hook::WaitingGenerator at = hook::waiting_generator(r[s.a].o);
  if (!at.slots || reinterpret_cast<PyObject*>(at.code) != s.object || at.globals != s.object2 || at.next != s.imm ||
      at.count != PyUnicode_GET_LENGTH(s.name))
    return false;
  const Py_UCS1* bound = PyUnicode_1BYTE_DATA(s.name);
  for (int i = 0; i < at.count; ++i)
    if ((at.slots[i].get() != nullptr) != (bound[i] == '1')) return false;
  return true;
}

// object: code; name: the globals (an object here).
bool function(const Step& s, Reg* r) {
  PyObject* f = r[s.a].o;
  return PyFunction_Check(f) && PyFunction_GET_CODE(f) == s.object && PyFunction_GET_GLOBALS(f) == s.name;
}

bool defaults(const Step& s, Reg* r) {
  PyObject* found = PyFunction_Check(r[s.a].o) ? PyFunction_GET_DEFAULTS(r[s.a].o) : nullptr;
  return (found ? PyTuple_GET_SIZE(found) : 0) == s.imm;
}

// object: the descriptor, or the function of Cython's.
bool builtin(const Step& s, Reg* r) {
  if (!Py_IS_TYPE(s.object, &PyMethodDescr_Type)) return PyMethod_Check(r[s.a].o) && PyMethod_GET_FUNCTION(r[s.a].o) == s.object;
  PyObject* self = PyCFunction_CheckExact(r[s.a].o) ? PyCFunction_GET_SELF(r[s.a].o) : nullptr;
  const auto* made_of = reinterpret_cast<PyMethodDescrObject*>(s.object);
  return self && reinterpret_cast<PyCFunctionObject*>(r[s.a].o)->m_ml == made_of->d_method &&
         PyObject_TypeCheck(self, made_of->d_common.d_type);
}

template <Exec holds>
const Step* guard(const Step* s, Reg* r, Machine& m) {
  return verdict(holds(*s, r), s, r, m);
}

const Step* guard_array(const Step* s, Reg* r, Machine& m) {
  return verdict(numpy::has_facts(r[s->a].o, m.program->data().facts[s->imm]), s, r, m);
}

// The type is right and the value is needed unboxed: dst is the raw register.
template <Rep rep>
const Step* guard_unbox(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  if (!o) return go_on(s + 1, r, m);  // it came unboxed, as such a number
  if (unbox_as<rep>(o, &r[s->dst])) [[likely]]
    return go_on(s + 1, r, m);
  count_guard_failure();
  return rep == Rep::kInt && PyLong_CheckExact(o) ? overflow(m, s->exit) : leave(m, s->exit);
}

constexpr KindRow<Quick> kGuards[] = {
#define ROW(kind, holds)                  \
  {                                       \
    OpKind::kind, { guard<holds>, holds } \
  }
    ROW(guard_type, type),
    ROW(guard_true, is_true),
    ROW(guard_false, is_false),
    ROW(guard_is, is),
    ROW(guard_is_not, is_not),
    ROW(guard_truthy, truthy),
    ROW(guard_function, function),
    ROW(guard_defaults, defaults),
    ROW(guard_builtin, builtin),
    ROW(guard_quiet_iterator, quiet_iterator),
    ROW(guard_quiet_lookup, quiet_lookup),
    ROW(guard_waiting, waiting),
#undef ROW
    {OpKind::guard_array, {guard_array, nullptr}},
};

const Quick& guard_of(OpKind kind) {
  static constexpr auto kTable = by_kind(kGuards, Quick{});
  return kTable[static_cast<size_t>(kind)];
}

}  // namespace

StepFn guard_step(OpKind kind) { return guard_of(kind).fn; }
Exec guard_holds(OpKind kind) { return guard_of(kind).quick; }

const Step* step_guard_raw_true(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].i != 0, s, r, m); }
const Step* step_guard_raw_false(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].i == 0, s, r, m); }

StepFn guard_unbox_step(Rep rep) {
  static constexpr auto kSteps = by_rep([]<Rep rep>() -> StepFn { return guard_unbox<rep>; });
  return kSteps[static_cast<size_t>(rep)];
}

bool ProgramImpl::hangs_on(const ProgramImpl* other) const {
  for (const ProgramImpl* p = this; p; p = p->parent)
    if (p == other) return true;
  return false;
}

}  // namespace dalsegno::replay
