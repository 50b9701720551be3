#include "halide_gen/codegen.h"

#include <Halide.h>

#include <stdexcept>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/stage_values.h"

namespace dalsegno::halide_gen {
namespace {

using namespace Halide;
using PlainExpr = halide_gen::Expr;
using Halide::Expr;

Target kernel_target() {
  return get_host_target()
      .with_feature(Target::NoRuntime)
      .with_feature(Target::NoAsserts)
      .with_feature(Target::NoBoundsQuery)
      .with_feature(Target::StrictFloat);
}

Type halide_type(const ValueType& t) {
  return t.is_bool() ? Bool() : t.is_float() ? Float(t.bits) : t.is_int() ? Int(t.bits) : UInt(t.bits);
}

// What is compared in place of a NaN is none, and gives false: both become zero.
Expr less_of_numbers(Expr a, Expr b) {
  const Expr ordered = !is_nan(a) && !is_nan(b), zero = Internal::make_zero(a.type());
  return select(ordered, a, zero) < select(ordered, b, zero);
}

// What is called by its operands.
using Make1 = Expr (*)(Expr);
using Make2 = Expr (*)(Expr, Expr);
const std::map<Node, Make1> kOfOne = {
    {Node::kNot, [](Expr x) { return !std::move(x); }},          {Node::kBitNot, [](Expr x) { return ~std::move(x); }},
    {Node::kIsNan, [](Expr x) { return is_nan(std::move(x)); }}, {Node::kSqrt, [](Expr x) { return sqrt(std::move(x)); }},
    {Node::kFloor, [](Expr x) { return floor(std::move(x)); }},  {Node::kCeil, [](Expr x) { return ceil(std::move(x)); }},
    {Node::kTrunc, [](Expr x) { return trunc(std::move(x)); }},  {Node::kRound, [](Expr x) { return round(std::move(x)); }},
};
#define BINARY(op) [](Expr a, Expr b) -> Expr { return std::move(a) op std::move(b); }
const std::map<Node, Make2> kOfTwo = {
    {Node::kAdd, BINARY(+)},
    {Node::kSub, BINARY(-)},
    {Node::kMul, BINARY(*)},
    {Node::kEq, BINARY(==)},
    {Node::kNe, BINARY(!=)},
    {Node::kLt, BINARY(<)},
    {Node::kLe, BINARY(<=)},
    {Node::kGt, BINARY(>)},
    {Node::kGe, BINARY(>=)},
    {Node::kAnd, BINARY(&&)},
    {Node::kOr, BINARY(||)},
    {Node::kBitAnd, BINARY(&)},
    {Node::kBitOr, BINARY(|)},
    {Node::kBitXor, BINARY(^)},
    {Node::kShiftLeft, BINARY(<<)},
    {Node::kShiftRight, BINARY(>>)},
    // (a plain division by what turns out to be a constant zero is refused)
    {Node::kDiv, [](Expr a, Expr b) { return strict_float(std::move(a) / std::move(b)); }},
    {Node::kQuietLt, less_of_numbers},
    {Node::kQuietLe, [](Expr a, Expr b) { return less_of_numbers(a, b) || a == b; }},
};
#undef BINARY

// Compiles one expression stage of a plan: a Func of rank axes whose Tuple holds the values that are stored.
class StageBuilder : StageValues {
 public:
  StageBuilder(const KernelSpec& spec, const Stage& stage, int rank) : StageValues(spec, stage) {
    for (int d = 0; d < rank; ++d) vars_.emplace_back("axis_" + std::to_string(d));
  }

  // Names have an underscore before their number: those that Halide makes up have none, and must not meet ours.
  Module compile(const std::string& name, const Target& target) {
    find_values();
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
  PlainExpr source(size_t k) override {
    const ValueType type = memory_type(dtype(k));
    const std::string name = (is_scalar(k) ? "scalar_" : "operand_") + std::to_string(k);
    names_[name] = is_scalar(k) ? scalar(type, name) : element(k, type, name);
    return variable(type, name);
  }

  Expr scalar(const ValueType& type, const std::string& name) {
    const Parameter p(halide_type(type), false, 0, name);
    arguments_.emplace_back(p.name(), Argument::InputScalar, p.type(), 0, ArgumentEstimates{});
    return Internal::Variable::make(p.type(), p.name(), p);
  }

  Expr element(size_t k, const ValueType& type, const std::string& name) {
    ImageParam image(halide_type(type), static_cast<int>(vars_.size()), name);
    std::vector<Expr> at(vars_.begin(), vars_.end());
    for (size_t d = 0; d < vars_.size(); ++d) image.dim(static_cast<int>(d)).set_min(0);
    image.dim(0).set_stride(inner(k) == Inner::kDense ? Expr(1) : Expr());
    if (inner(k) == Inner::kBroadcast) at[0] = 0;
    arguments_.push_back(image);
    return image(at);
  }

  PlainExpr bind(int op, const std::string& name, const PlainExpr& value) override {
    lets_.push_back({op, name, halide(value)});
    names_[name] = Internal::Variable::make(lets_.back().value.type(), name);
    return variable(value.type(), name);
  }

  Expr halide(const PlainExpr& e) const {
    const Type type = halide_type(e.type());
    const auto& x = e->operands;
    if (e->node == Node::kVariable) return names_.at(e->name);
    if (e->node == Node::kNumber)
      return type.is_float()  ? Internal::make_const(type, e->real)
             : type.is_uint() ? Internal::make_const(type, static_cast<uint64_t>(e->whole) & (~uint64_t{0} >> (64 - type.bits())))
                              : Internal::make_const(type, e->whole);
    if (e->node == Node::kSelect) return Halide::select(halide(x[0]), halide(x[1]), halide(x[2]));
    if (e->node == Node::kConvert) return cast(type, halide(x[0]));
    if (e->node == Node::kReinterpret) return Halide::reinterpret(type, halide(x[0]));
    return x.size() == 1 ? kOfOne.at(e->node)(halide(x[0])) : kOfTwo.at(e->node)(halide(x[0]), halide(x[1]));
  }

  Expr with_lets(int result) const {
    std::vector<bool> needed(spec_.ops.size());
    needed[result] = true;
    Expr e = halide(stored(result));
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
    std::vector<OutputImageParam> outputs = f.output_buffers();
    for (size_t d = 0; d < vars_.size(); ++d) outputs[0].dim(static_cast<int>(d)).set_min(0);
    for (OutputImageParam& out : outputs) out.dim(0).set_stride(1);
    f.specialize(outputs[0].dim(0).extent() >= lanes()).vectorize(vars_[0], lanes(), TailStrategy::ShiftInwards);
  }

  struct LetBinding {
    int op;
    std::string name;
    Expr value;
  };

  std::vector<Var> vars_;
  std::vector<Argument> arguments_;
  std::map<std::string, Expr> names_;  // of variables
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
