// NumPy's functions of one or two doubles, or of a complex number, unboxed: its own inner loop over one element, as the ufunc calls it for
// arrays without an axis.
#include "halide_gen/runtime/flags.h"
#include "numpy/errstate.h"
#include "numpy/loops.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

// Computes one element. False: there is no such loop, or NumPy would say something.
bool computes(const numpy::InnerLoop& loop, char** data, const npy_intp* strides) {
  const npy_intp size = 1;
  if (!loop.function) [[unlikely]]
    return false;
  rt::clear_all_raised();
  loop.function(data, &size, strides, loop.data);
  const int raised = rt::all_raised();
  return raised == 0 || planted(Fault::ignored_scalar_flags) || numpy::errstate_ignores(raised);
}

}  // namespace

// Operands without an axis have no stride, the result has one (try_trivial_single_output_loop in numpy/_core/src/umath/ufunc_object.c).
const Step* step_ufunc(const Step* s, Reg* r, Machine& m) {
  double operands[] = {r[s->a].f, s->b < 0 ? 0.0 : r[s->b].f}, result = 0.0;
  char* one[] = {reinterpret_cast<char*>(&operands[0]), reinterpret_cast<char*>(&result), nullptr};
  char* two[] = {reinterpret_cast<char*>(&operands[0]), reinterpret_cast<char*>(&operands[1]), reinterpret_cast<char*>(&result)};
  const npy_intp strides_of_one[] = {0, sizeof(double)}, strides_of_two[] = {0, 0, sizeof(double)};
  if (!computes(numpy::kept_loop(static_cast<ArrayFn>(s->imm), DType::kFloat64), s->b < 0 ? one : two,
                s->b < 0 ? strides_of_one : strides_of_two)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = result;
  return go_on(s + 1, r, m);
}

const Step* step_ufunc_of_complex(const Step* s, Reg* r, Machine& m) {
  Reg operand{.c = r[s->a].c}, result{};
  char* data[] = {reinterpret_cast<char*>(&operand.c), reinterpret_cast<char*>(&result.c)};
  const npy_intp strides[] = {0, sizeof(Py_complex)};
  if (!computes(numpy::kept_loop(static_cast<ArrayFn>(s->imm), DType::kComplex128), data, strides)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].c = result.c;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
