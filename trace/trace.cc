// Look-ups in the table of op kinds. Any thread; the strings are static.
#include "trace/trace.h"

#include <array>

namespace dalsegno {
namespace {

struct Row {
  const char* name;
  int8_t inputs;
  bool result;
  uint32_t effects;
};

constexpr std::array kRows = {
#define X(name, inputs, result, effects, note) Row{#name, inputs, result != 0, effects},
    DALSEGNO_OPS(X)
#undef X
};
static_assert(kRows.size() == static_cast<size_t>(OpKind::kCount));

const Row& row(OpKind kind) {
  static constexpr Row kUnknown{"unknown", 0, false, kNoEffect};
  const auto i = static_cast<size_t>(kind);
  return i < kRows.size() ? kRows[i] : kUnknown;
}

}  // namespace

// not_, is_ and return_ carry an underscore only because C++ has those words.
const char* op_name(OpKind kind) { return row(kind).name; }
int op_inputs(OpKind kind) { return row(kind).inputs; }
bool op_has_result(OpKind kind) { return row(kind).result; }
uint32_t op_effects(OpKind kind) { return row(kind).effects; }

ArrayFn array_fn_of(BinaryOp op) {
  static constexpr ArrayFn fns[] = {ArrayFn::add,        ArrayFn::bitwise_and, ArrayFn::floor_divide, ArrayFn::left_shift,
                                    ArrayFn::none,       ArrayFn::multiply,    ArrayFn::remainder,    ArrayFn::bitwise_or,
                                    ArrayFn::none,       ArrayFn::right_shift, ArrayFn::subtract,     ArrayFn::divide,
                                    ArrayFn::bitwise_xor};
  return fns[static_cast<int>(op)];
}

}  // namespace dalsegno
