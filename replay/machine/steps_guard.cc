// Guards: a step goes on if the fact holds, else it leaves.
#include <array>

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

const Step* guard_type(const Step* s, Reg* r, Machine& m) {
  return verdict(reinterpret_cast<PyObject*>(Py_TYPE(r[s->a].o)) == s->object, s, r, m);
}
const Step* guard_true(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].o == Py_True, s, r, m); }
const Step* guard_false(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].o == Py_False, s, r, m); }
const Step* guard_is(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].o == s->object, s, r, m); }
const Step* guard_is_not(const Step* s, Reg* r, Machine& m) { return verdict(r[s->a].o != s->object, s, r, m); }
const Step* guard_quiet_iterator(const Step* s, Reg* r, Machine& m) { return verdict(hook::quiet_iterator(r[s->a].o), s, r, m); }
const Step* guard_quiet_lookup(const Step* s, Reg* r, Machine& m) { return verdict(dalsegno_quiet_lookup(r[s->a].o, r[s->b].o), s, r, m); }

const Step* guard_array(const Step* s, Reg* r, Machine& m) {
  return verdict(numpy::has_facts(r[s->a].o, m.program->data().facts[s->imm]), s, r, m);
}

// object: code; name: the globals (an object here).
const Step* guard_function(const Step* s, Reg* r, Machine& m) {
  PyObject* f = r[s->a].o;
  return verdict(PyFunction_Check(f) && PyFunction_GET_CODE(f) == s->object && PyFunction_GET_GLOBALS(f) == s->name, s, r, m);
}

const Step* guard_defaults(const Step* s, Reg* r, Machine& m) {
  PyObject* defaults = PyFunction_Check(r[s->a].o) ? PyFunction_GET_DEFAULTS(r[s->a].o) : nullptr;
  return verdict((defaults ? PyTuple_GET_SIZE(defaults) : 0) == s->imm, s, r, m);
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

constexpr KindRow<StepFn> kGuards[] = {
    {OpKind::guard_type, guard_type},
    {OpKind::guard_array, guard_array},
    {OpKind::guard_true, guard_true},
    {OpKind::guard_false, guard_false},
    {OpKind::guard_is, guard_is},
    {OpKind::guard_is_not, guard_is_not},
    {OpKind::guard_function, guard_function},
    {OpKind::guard_defaults, guard_defaults},
    {OpKind::guard_quiet_iterator, guard_quiet_iterator},
    {OpKind::guard_quiet_lookup, guard_quiet_lookup},
};

}  // namespace

StepFn guard_step(OpKind kind) {
  static constexpr auto kTable = by_kind(kGuards, StepFn{nullptr});
  return kTable[static_cast<size_t>(kind)];
}

const Step* step_own_attr(const Step* s, Reg* r, Machine& m) {
  r[s->dst].o = dalsegno_own_attribute(r[s->a].o, &s->attribute->attribute, &s->attribute->cache);
  return verdict(r[s->dst].o != nullptr, s, r, m);
}

const Step* step_class_attr(const Step* s, Reg* r, Machine& m) {
  return verdict(dalsegno_has_class_attribute(r[s->a].o, &s->attribute->attribute, &s->attribute->cache), s, r, m);
}

const Step* step_set_own_attr(const Step* s, Reg* r, Machine& m) {
  PyObject* old = dalsegno_replace_own_attribute(r[s->a].o, &s->attribute->attribute, r[s->b].o, &s->attribute->cache);
  if (!old) return verdict(false, s, r, m);
  if (drops_quietly(old)) [[likely]]
    Py_DECREF(old);
  else
    drop_shown(m, old, s->link);
  return go_on(s + 1, r, m);
}

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
