#include "replay/segment/complex_loops.h"

#include <algorithm>

namespace dalsegno::replay {
namespace {

using F = ArrayFn;

enum class Gives : uint8_t { kNone, kSame, kPart, kTruth };

// Tried on whole arrays and on pieces, at all alignments, with AVX-512, AVX2 and neither (tests/test_complex_loops.py).
// clang-format off
Gives gives(ArrayFn fn) {
  switch (fn) {
    case F::add: case F::subtract: case F::multiply: case F::divide: case F::negative: case F::positive: case F::square:
    case F::reciprocal: case F::sqrt: case F::exp: case F::log: case F::sin: case F::cos:
      return Gives::kSame;
    case F::absolute:
      return Gives::kPart;
    case F::equal: case F::not_equal: case F::less: case F::less_equal: case F::greater: case F::greater_equal:
    case F::logical_and: case F::logical_or: case F::logical_not: case F::isnan: case F::isinf: case F::isfinite:
      return Gives::kTruth;
    default:
      return Gives::kNone;
  }
}
// clang-format on

bool is_complex_number(const SegmentInput& x) {
  return x.kind == InputKind::kWeakComplex || ((x.kind == InputKind::kArray || x.kind == InputKind::kScalar) && is_complex(x.dtype));
}

// Python's numbers adapt to the others' dtype: a complex one makes it complex, of floats with parts of the same size.
DType common_dtype(const std::vector<SegmentInput>& operands) {
  DType common = DType::kBool;
  for (const SegmentInput& x : operands)
    if (x.kind == InputKind::kArray || x.kind == InputKind::kScalar) common = promoted(common, x.dtype);
  if (is_complex(common)) return common;
  return common == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
}

}  // namespace

halide_gen::LoopTypes complex_loop(ArrayFn fn, const std::vector<SegmentInput>& operands, DType result) {
  const bool array = std::any_of(operands.begin(), operands.end(), [](const SegmentInput& x) { return x.kind == InputKind::kArray; });
  if (!array || std::none_of(operands.begin(), operands.end(), is_complex_number)) return {};
  if (static_cast<int>(operands.size()) != array_fn_inputs(fn)) return {};
  const DType loop = common_dtype(operands);
  const Gives made = gives(fn);
  if (made == Gives::kNone) return {};
  const DType given = made == Gives::kSame ? loop : made == Gives::kPart ? part_of_complex(loop) : DType::kBool;
  return given == result ? halide_gen::LoopTypes{true, loop, result} : halide_gen::LoopTypes{};
}

bool looks_at_direction(ArrayFn fn) { return fn == F::multiply || fn == F::square || fn == F::absolute; }
bool looks_at_gaps(ArrayFn fn) { return fn == F::square; }

}  // namespace dalsegno::replay
