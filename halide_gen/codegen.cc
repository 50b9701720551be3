#include "halide_gen/codegen.h"

#include <Halide.h>

#include <algorithm>
#include <map>

#include "halide_gen/expressions.h"
#include "halide_gen/plan/plan.h"
#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

using namespace Halide;

constexpr int kVectorBytes = 64;  // at least: several narrower registers hide latency where a vector is shorter

Target kernel_target() {
  return get_host_target()
      .with_feature(Target::NoRuntime)
      .with_feature(Target::NoAsserts)
      .with_feature(Target::NoBoundsQuery)
      .with_feature(Target::StrictFloat);
}

// Compiles one expression stage of a plan: a Func of rank axes whose Tuple holds the values that are stored.
class StageBuilder {
 public:
  StageBuilder(const KernelSpec& spec, const Stage& stage, int rank) : spec_(spec), stage_(stage) {
    for (int d = 0; d < rank; ++d) vars_.emplace_back("axis_" + std::to_string(d));
  }

  // Names have an underscore before their number: those that Halide makes up have none, and must not meet ours.
  Module compile(const std::string& name, const Target& target) {
    for (size_t i = 0; i < stage_.sources.size(); ++i) add_source(stage_.sources[i], stage_.reads[i]);
    for (int i : stage_.ops) add_op(i);
    Func f("stage");
    std::vector<Expr> values;
    for (int r : stage_.results) values.push_back(with_lets(r));
    if (values.size() == 1) {
      f(vars_) = values[0];
    } else {
      f(vars_) = Tuple(values);
    }
    schedule(f);
    return Pipeline(f).compile_to_module(arguments_, name, target, LinkageType::ExternalPlusArgv);
  }

 private:
  void add_source(int v, const Ref& ref) {
    const auto dtype = static_cast<DType>(ref.dtype);
    if (ref.scalar) {
      Parameter p(memory_type(dtype), false, 0, "scalar_" + std::to_string(arguments_.size()));
      arguments_.emplace_back(p.name(), Argument::InputScalar, p.type(), 0, ArgumentEstimates{});
      values_[v] = load(Internal::Variable::make(p.type(), p.name(), p), dtype);
      return;
    }
    const Inner inner = v < 0 ? spec_.inputs[~v].inner : Inner::kDense;
    ImageParam image(memory_type(dtype), static_cast<int>(vars_.size()), "operand_" + std::to_string(arguments_.size()));
    std::vector<Expr> at(vars_.begin(), vars_.end());
    for (size_t d = 0; d < vars_.size(); ++d) image.dim(static_cast<int>(d)).set_min(0);
    image.dim(0).set_stride(inner == Inner::kDense ? Expr(1) : Expr());
    if (inner == Inner::kBroadcast) at[0] = 0;
    arguments_.push_back(image);
    values_[v] = load(image(at), dtype);
    if (dtype == DType::kBool) bytes_[v] = image(at);
  }

  // A bool as it is stored. Bytes other than 0 and 1 count as true, and stay what they are where they are only copied.
  Expr byte(int v) const {
    const auto known = bytes_.find(v);
    return known != bytes_.end() ? known->second : store(values_.at(v), DType::kBool);
  }

  // The byte that the op copies, undefined if it copies none.
  Expr copied_byte(const KernelOp& op) const {
    if (!copies_bools(op.fn, op.loop, op.result)) return Expr();
    const std::vector<int>& v = op.operands;
    const bool plain = std::none_of(v.begin(), v.end(), [&](int k) { return bytes_.contains(k); });
    if (plain) return Expr();
    return op.fn == ArrayFn::where ? select(values_.at(v[0]), byte(v[1]), byte(v[2])) : byte(v[0]);
  }

  Expr bind(int op, const std::string& name, const Expr& value) {
    lets_.push_back({op, name, value});
    return Internal::Variable::make(value.type(), name);
  }

  // Every op is bound to a name: a shared subexpression written out at each use grows exponentially.
  void add_op(int i) {
    const KernelOp& op = spec_.ops[i];
    const std::string number = std::to_string(i);
    Expr value = copied_byte(op);
    if (value.defined()) {
      bytes_[i] = bind(i, "byte_" + number, value);
      value = load(bytes_[i], op.result);
    } else {
      std::vector<Expr> operands;
      for (int v : op.operands) operands.push_back(values_.at(v));
      value = build(op.fn, op.loop, op.result, operands);
    }
    if (!value.defined()) throw std::runtime_error(std::string("no expression for ") + array_fn_name(op.fn));
    values_[i] = bind(i, "value_" + number, value);
  }

  Expr with_lets(int result) const {
    std::vector<bool> needed(spec_.ops.size());
    needed[result] = true;
    Expr e = spec_.ops[result].result == DType::kBool ? byte(result) : values_.at(result);
    for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) {
      if (!needed[let->op]) continue;
      for (int v : spec_.ops[let->op].operands) {
        if (v >= 0) needed[v] = true;
      }
      e = Internal::Let::make(let->name, let->value, e);
    }
    return e;
  }

  // Masked tails would compute in padding, and raise flags there: whole vectors, the last one shifted inwards; below that, scalars.
  void schedule(Func& f) {
    int widest = 1;
    for (int i : stage_.ops) widest = std::max({widest, dtype_size(spec_.ops[i].loop), dtype_size(spec_.ops[i].result)});
    const int lanes = kVectorBytes / widest;
    std::vector<OutputImageParam> outputs = f.output_buffers();
    for (size_t d = 0; d < vars_.size(); ++d) outputs[0].dim(static_cast<int>(d)).set_min(0);
    for (OutputImageParam& out : outputs) out.dim(0).set_stride(1);
    f.specialize(outputs[0].dim(0).extent() >= lanes).vectorize(vars_[0], lanes, TailStrategy::ShiftInwards);
  }

  struct LetBinding {
    int op;
    std::string name;
    Expr value;
  };

  const KernelSpec& spec_;
  const Stage& stage_;
  std::vector<Var> vars_;
  std::vector<Argument> arguments_;
  std::map<int, Expr> values_;  // by op index, or ~input
  std::map<int, Expr> bytes_;   // the same, of bools that come from memory
  std::vector<LetBinding> lets_;
};

std::string emit(const KernelSpec& spec, const std::string& symbol) {
  const Target target = kernel_target();
  const Plan plan = make_plan(spec);
  Module all(symbol, target);
  all.set_any_strict_float(true);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].loop_op >= 0) continue;
    const int rank = plan.tile == 0 ? spec.rank : 1;
    const Module one = StageBuilder(spec, plan.stages[s], rank).compile(symbol + "_" + std::to_string(s), target);
    for (const Internal::LoweredFunc& f : one.functions()) all.append(f);
  }
  const Buffer<uint8_t> object = all.compile_to_buffer();
  return std::string(reinterpret_cast<const char*>(object.data()), object.size_in_bytes());
}

}  // namespace

bool compile(const std::string& text, std::string* object, std::string* error) {
  KernelSpec spec;
  if (!from_text(text, &spec, error)) return false;
  try {
    *object = emit(spec, kernel_symbol(text));
    return true;
  } catch (const Halide::Error& e) {  // not a std::exception
    *error = e.what();
    return false;
  } catch (const std::exception& e) {
    *error = e.what();
    return false;
  }
}

std::string target_text() {
  return kernel_target().to_string() + "-halide-" + std::to_string(HALIDE_VERSION_MAJOR) + "." + std::to_string(HALIDE_VERSION_MINOR) +
         "." + std::to_string(HALIDE_VERSION_PATCH);
}

}  // namespace dalsegno::halide_gen
