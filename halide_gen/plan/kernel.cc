#include "halide_gen/plan/kernel.h"

#include <cstdio>
#include <sstream>

#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

constexpr const char* kHeader = "dalsegno kernel 3";  // raise with every change of what generated code does
constexpr const char* kInnerNames[] = {"dense", "broadcast", "strided"};

bool dtype_by_name(const std::string& name, DType* out) {
  for (int i = 0; is_known(static_cast<DType>(i)); ++i) {
    if (name == dtype_name(static_cast<DType>(i))) return *out = static_cast<DType>(i), true;
  }
  return false;
}

bool inner_by_name(const std::string& name, Inner* out) {
  for (int i = 0; i < 3; ++i) {
    if (name == kInnerNames[i]) return *out = static_cast<Inner>(i), true;
  }
  return false;
}

// "v3" is the result of ops[3], "i0" is inputs[0].
bool parse_operand(const std::string& word, int* out) {
  if (word.size() < 2 || word.size() > 7 || (word[0] != 'v' && word[0] != 'i')) return false;
  int n = 0;
  for (size_t i = 1; i < word.size(); ++i) {
    if (word[i] < '0' || word[i] > '9') return false;
    n = n * 10 + (word[i] - '0');
  }
  *out = word[0] == 'v' ? n : ~n;
  return true;
}

bool parse_input(std::istringstream& words, KernelInput* input) {
  std::string dtype, how;
  if (!(words >> dtype >> how) || !dtype_by_name(dtype, &input->dtype)) return false;
  input->scalar = how == "scalar";
  return input->scalar || inner_by_name(how, &input->inner);
}

bool parse_op(std::istringstream& words, KernelOp* op) {
  std::string fn, loop, result, word;
  if (!(words >> fn >> loop >> result)) return false;
  op->fn = array_fn_by_name(fn.c_str());
  if (!dtype_by_name(loop, &op->loop) || !dtype_by_name(result, &op->result)) return false;
  while (words >> word) {
    if (word == "out") {
      op->output = true;
    } else {
      op->operands.push_back(0);
      if (!parse_operand(word, &op->operands.back())) return false;
    }
  }
  return true;
}

bool parse_line(const std::string& line, KernelSpec* spec) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  if (kind == "rank") return static_cast<bool>(words >> spec->rank);
  if (kind == "input") return parse_input(words, &spec->inputs.emplace_back());
  if (kind == "op") return parse_op(words, &spec->ops.emplace_back());
  return false;
}

uint64_t fnv1a(const std::string& text, uint64_t hash) {
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

std::string check_op(const KernelSpec& spec, size_t index) {
  const KernelOp& op = spec.ops[index];
  if (op.fn == ArrayFn::none || static_cast<int>(op.operands.size()) != array_fn_inputs(op.fn)) return "wrong number of operands";
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const int v = op.operands[k];
    if (v >= 0 ? v >= static_cast<int>(index) : ~v >= static_cast<int>(spec.inputs.size())) return "operand used before it is defined";
    const DType have = v >= 0 ? spec.ops[v].result : spec.inputs[~v].dtype;
    if (have != operand_dtype(op, static_cast<int>(k))) return "operand of the wrong dtype";
  }
  if (treatment(op.fn, op.loop, op.result) == Treatment::kNone) return "no exact rule";
  return "";
}

}  // namespace

DType operand_dtype(const KernelOp& op, int k) { return op.fn == ArrayFn::where && k == 0 ? DType::kBool : op.loop; }

std::string to_text(const KernelSpec& spec) {
  std::ostringstream out;
  out << kHeader << "\nrank " << spec.rank << "\n";
  for (const KernelInput& input : spec.inputs) {
    out << "input " << dtype_name(input.dtype) << " " << (input.scalar ? "scalar" : kInnerNames[static_cast<int>(input.inner)]) << "\n";
  }
  for (const KernelOp& op : spec.ops) {
    out << "op " << array_fn_name(op.fn) << " " << dtype_name(op.loop) << " " << dtype_name(op.result);
    for (int v : op.operands) out << (v >= 0 ? " v" : " i") << (v >= 0 ? v : ~v);
    out << (op.output ? " out\n" : "\n");
  }
  return out.str();
}

bool from_text(const std::string& text, KernelSpec* spec, std::string* error) {
  *spec = KernelSpec();
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kHeader) return *error = "not a kernel text of this version", false;
  while (std::getline(lines, line)) {
    if (!parse_line(line, spec)) return *error = "bad line: " + line, false;
  }
  *error = check(*spec);
  return error->empty();
}

std::string check(const KernelSpec& spec) {
  if (spec.rank < 1 || spec.rank > 8) return "rank out of range";
  bool output = false;
  for (size_t i = 0; i < spec.ops.size(); ++i) {
    const std::string wrong = check_op(spec, i);
    if (!wrong.empty()) return "op " + std::to_string(i) + ": " + wrong;
    output |= spec.ops[i].output;
  }
  return output ? "" : "no output";
}

std::string kernel_symbol(const std::string& text) {
  char out[48];
  const uint64_t a = fnv1a(text, 14695981039346656037ull), b = fnv1a(text, 0x9e3779b97f4a7c15ull);
  std::snprintf(out, sizeof out, "ds_%016llx%016llx", static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return out;
}

}  // namespace dalsegno::halide_gen
