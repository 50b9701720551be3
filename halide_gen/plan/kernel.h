// A kernel as plain data: the segment's ops with every cast written out, and the layout variant it is specialised for.
// The canonical text of a spec is at once its key, what the compiler reads, and what a person sees in the store.
// No Python.h and no Halide here: the runner, the compiler and the tests share it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trace/array_fn.h"

namespace dalsegno::halide_gen {

// How an operand moves along the innermost axis of the iteration. Outer axes have run-time strides (0 = broadcast).
enum class Inner : uint8_t {
  kDense,      // consecutive elements
  kBroadcast,  // one element for the whole row
  kStrided,    // any other stride
};

struct KernelInput {
  bool scalar = false;  // passed by value; else an array
  DType dtype = DType::kFloat64;
  Inner inner = Inner::kDense;  // arrays
  bool operator==(const KernelInput&) const = default;
};

struct KernelOp {
  ArrayFn fn = ArrayFn::none;
  DType loop = DType::kFloat64;  // dtype of every operand (where: of the last two; its first is bool)
  DType result = DType::kFloat64;
  std::vector<int> operands;  // i >= 0: result of ops[i]; i < 0: inputs[~i]
  bool output = false;        // leaves the kernel, as a dense array of the iteration's shape
  bool operator==(const KernelOp&) const = default;
};

// All ops have the shape of the iteration; inputs are broadcast to it.
struct KernelSpec {
  int rank = 1;  // axes of the iteration, after coalescing
  std::vector<KernelInput> inputs;
  std::vector<KernelOp> ops;
  bool operator==(const KernelSpec&) const = default;
};

// One line per input and op; equal specs have equal texts.
std::string to_text(const KernelSpec& spec);
// False, with `error`, if the text is not that of a well-formed spec.
bool from_text(const std::string& text, KernelSpec* spec, std::string* error);
// "" or what is wrong: operands defined before use, dtypes agreeing, at least one output, a rule for every op.
std::string check(const KernelSpec& spec);

// Prefix of the names of the kernel's functions: stage i is <symbol>_<i>_argv(void** arguments).
std::string kernel_symbol(const std::string& text);

// The dtype operand `k` of an op must have.
DType operand_dtype(const KernelOp& op, int k);

}  // namespace dalsegno::halide_gen
