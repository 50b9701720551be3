// Every rule that says "Halide expression" has one, and compiles; bad texts are refused, not fatal.
#include "halide_gen/codegen.h"

#include <gtest/gtest.h>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/kernel.h"
#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

template <typename Visit>
void for_every_rule(Visit visit) {
  for (int f = 1; f < static_cast<int>(ArrayFn::kCount); ++f) {
    for (int a = 0; a < static_cast<int>(DType::kCount); ++a) {
      for (int b = 0; b < static_cast<int>(DType::kCount); ++b) {
        const auto fn = static_cast<ArrayFn>(f);
        const auto loop = static_cast<DType>(a), result = static_cast<DType>(b);
        if (treatment(fn, loop, result) == Treatment::kExpr) visit(fn, loop, result);
      }
    }
  }
}

TEST(Codegen, EveryExpressionRuleHasAnExpressionOfItsType) {
  int count = 0;
  for_every_rule([&](ArrayFn fn, DType loop, DType result) {
    std::vector<Expr> operands;
    for (int k = 0; k < array_fn_inputs(fn); ++k) {
      const DType type = fn == ArrayFn::where && k == 0 ? DType::kBool : loop;
      operands.push_back(variable(value_type(type), "v" + std::to_string(k)));
    }
    const Expr e = build(fn, loop, result, operands);
    ASSERT_TRUE(e.defined()) << array_fn_name(fn) << " " << dtype_name(loop);
    EXPECT_EQ(e.type(), value_type(result)) << array_fn_name(fn) << " " << dtype_name(loop);
    ++count;
  });
  EXPECT_GT(count, 120);
}

std::string chain(int length, int rank) {
  KernelSpec s;
  s.rank = rank;
  s.inputs = {{false, DType::kFloat64, Inner::kDense}, {true, DType::kFloat64}};
  for (int i = 0; i < length; ++i)
    s.ops.push_back({i % 2 ? ArrayFn::add : ArrayFn::multiply, DType::kFloat64, DType::kFloat64, {i ? i - 1 : ~0, i ? i - 1 : ~1}});
  s.ops.back().output = true;
  return to_text(s);
}

TEST(Codegen, EmitsTheEntriesThatTheRunnerLooksFor) {
  std::string object, error;
  const std::string text = chain(3, 2);
  ASSERT_TRUE(compile(text, &object, &error)) << error;
  EXPECT_EQ(object.substr(1, 3), "ELF");
  EXPECT_NE(object.find(kernel_symbol(text) + "_0_argv"), std::string::npos);
}

TEST(Codegen, SharedSubexpressionsDoNotGrow) {
  std::string object, error;
  ASSERT_TRUE(compile(chain(100, 1), &object, &error)) << error;
  EXPECT_LT(object.size(), 50'000u);
}

TEST(Codegen, BadTextsAreRefused) {
  std::string object, error;
  for (const char* bad : {"", "nonsense", "dalsegno kernel 1\nrank 1\n"}) {
    EXPECT_FALSE(compile(bad, &object, &error));
    EXPECT_FALSE(error.empty());
  }
}

TEST(Codegen, TheTargetIsStrict) {
  EXPECT_NE(target_text().find("strict_float"), std::string::npos);
  EXPECT_NE(target_text().find("no_runtime"), std::string::npos);
}

}  // namespace
}  // namespace dalsegno::halide_gen
