// NumPy's functions of one or two doubles, or of a complex number, unboxed: its own inner loop over one element, as the ufunc calls it for
// arrays without an axis.
#include <array>

#include "halide_gen/runtime/flags.h"
#include "numpy/errstate.h"
#include "numpy/loops.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

const numpy::InnerLoop& loop_of(ArrayFn fn) {
  static const auto kLoops = [] {
    std::array<numpy::InnerLoop, static_cast<size_t>(ArrayFn::kCount)> loops{};
    for (size_t i = 1; i < loops.size(); ++i) loops[i] = numpy::inner_loop(static_cast<ArrayFn>(i), DType::kFloat64, DType::kFloat64);
    return loops;
  }();
  return kLoops[static_cast<size_t>(fn)];
}

const numpy::InnerLoop& loop_of_complex(ArrayFn fn) {
  static const auto kLoops = [] {
    std::array<numpy::InnerLoop, static_cast<size_t>(ArrayFn::kCount)> loops{};
    for (size_t i = 1; i < loops.size(); ++i) loops[i] = numpy::inner_loop(static_cast<ArrayFn>(i), DType::kComplex128, DType::kComplex128);
    return loops;
  }();
  return kLoops[static_cast<size_t>(fn)];
}

}  // namespace

// Operands without an axis have no stride, the result has one (try_trivial_single_output_loop in numpy/_core/src/umath/ufunc_object.c).
const Step* step_ufunc(const Step* s, Reg* r, Machine& m) {
  const numpy::InnerLoop& loop = loop_of(static_cast<ArrayFn>(s->imm));
  double operands[] = {r[s->a].f, s->b < 0 ? 0.0 : r[s->b].f}, result = 0.0;
  char* one[] = {reinterpret_cast<char*>(&operands[0]), reinterpret_cast<char*>(&result), nullptr};
  char* two[] = {reinterpret_cast<char*>(&operands[0]), reinterpret_cast<char*>(&operands[1]), reinterpret_cast<char*>(&result)};
  const npy_intp size = 1, strides_of_one[] = {0, sizeof(double)}, strides_of_two[] = {0, 0, sizeof(double)};
  if (!loop.function) [[unlikely]]
    return refuse(m, s->exit);
  rt::clear_all_raised();
  loop.function(s->b < 0 ? one : two, &size, s->b < 0 ? strides_of_one : strides_of_two, loop.data);
  const int raised = rt::all_raised();
  if (raised != 0 && !planted(Fault::ignored_scalar_flags) && !numpy::errstate_ignores(raised)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = result;
  return go_on(s + 1, r, m);
}

const Step* step_ufunc_of_complex(const Step* s, Reg* r, Machine& m) {
  const numpy::InnerLoop& loop = loop_of_complex(static_cast<ArrayFn>(s->imm));
  Reg operand{.c = r[s->a].c}, result{};
  char* data[] = {reinterpret_cast<char*>(&operand.c), reinterpret_cast<char*>(&result.c)};
  const npy_intp size = 1, strides[] = {0, sizeof(Py_complex)};
  if (!loop.function) [[unlikely]]
    return refuse(m, s->exit);
  rt::clear_all_raised();
  loop.function(data, &size, strides, loop.data);
  const int raised = rt::all_raised();
  if (raised != 0 && !planted(Fault::ignored_scalar_flags) && !numpy::errstate_ignores(raised)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].c = result.c;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
