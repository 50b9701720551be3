// dalsegno._testing.numpy_functions: how each of NumPy's functions is done, from the tables (docs/numpy.md is made of it).
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "halide_gen/plan/rules.h"
#include "replay/segment/complex_loops.h"
#include "replay/typed/calls.h"
#include "trace/recorder/facts.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

using typed::Callee;

Callee callee_named(const char* module, const std::string& name) {
  for (int i = 1; i < static_cast<int>(Callee::kCount); ++i) {
    const auto callee = static_cast<Callee>(i);
    if (!std::strcmp(typed::callee_module(callee), module) && name == typed::callee_name(callee)) return callee;
  }
  return Callee::kNone;
}

bool reduces(Callee callee) { return callee >= Callee::kSum && callee <= Callee::kNorm; }

const char* way_of(const recorder::CalleeFacts& facts, Callee callee) {
  using enum recorder::CalleeKind;
  if (facts.fn == ArrayFn::roll || facts.reverses) return "view";
  if (facts.rounds) return "expression";
  if (facts.fn != ArrayFn::none) return array_fn_is_expr(facts.fn) ? "expression" : "loop";
  if (reduces(callee)) return "reduction";
  if (callee == Callee::kDot || callee == Callee::kDotMethod || callee == Callee::kMatmul) return "product";
  if (typed::runs_along(callee)) return "running";
  if (typed::makes_array(callee)) return "small";
  if (facts.through) return "through";
  if (facts.kind == numpy_quiet || facts.kind == numpy_pure || facts.kind == numpy_write) return "known";
  return "call";
}

// Those for which there is a rule where all operands are arrays of it; of complex ones NumPy's loops have it.
std::vector<std::string> dtypes_of(ArrayFn fn) {
  std::vector<std::string> found;
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) {
    const std::vector<SegmentInput> operands(static_cast<size_t>(array_fn_inputs(fn)), {InputKind::kArray, dtype, 1});
    const DType results[] = {dtype, part_of_complex(dtype), DType::kBool};
    if (std::any_of(std::begin(results), std::end(results), [&](DType made) { return complex_loop(fn, operands, made).known; }))
      found.push_back(dtype_name(dtype));
  }
  for (int i = 0; is_known(static_cast<DType>(i)); ++i) {
    const auto dtype = static_cast<DType>(i);
    std::vector<halide_gen::OperandType> operands(static_cast<size_t>(array_fn_inputs(fn)), {dtype, halide_gen::Weak::kNo});
    const halide_gen::LoopTypes t = halide_gen::resolve(fn, operands, dtype);
    if (t.known && halide_gen::treatment(fn, t.loop, t.result) != halide_gen::Treatment::kNone) found.push_back(dtype_name(dtype));
  }
  return found;
}

}  // namespace

void bind_numpy_functions(py::module_ m) {
  // `module`: "numpy", or "ndarray" of a method
  m.def("describe", [](const py::object& callee, const char* module, const std::string& name) {
    const recorder::CalleeFacts facts = recorder::callee_facts(callee.ptr());
    const ArrayFn fn = name == "astype" && !std::strcmp(module, "ndarray") ? ArrayFn::astype : facts.fn;
    const char* way = fn == ArrayFn::astype ? "expression" : way_of(facts, callee_named(module, name));
    return py::make_tuple(way, fn == ArrayFn::none || fn == ArrayFn::roll ? std::vector<std::string>() : dtypes_of(fn));
  });
}

}  // namespace dalsegno::replay
