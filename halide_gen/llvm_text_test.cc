// Every rule is written as LLVM IR, whatever it reads and however that lies in memory. (What it computes is compared with NumPy in
// tests/test_kernels_ops.py.)
#include "halide_gen/plan/llvm_text.h"

#include <gtest/gtest.h>

#include "halide_gen/testing.h"

namespace dalsegno::halide_gen {
namespace {

TEST(LlvmText, IsWrittenOfEveryRule) {
  const int count = each_expression([](ArrayFn fn, DType loop, DType result) {
    for (const Inner inner : {Inner::kDense, Inner::kBroadcast, Inner::kStrided}) {
      std::string ir, error;
      EXPECT_TRUE(to_llvm(to_text(one_op(fn, loop, result, {false, loop, inner}, 2)), &ir, &error)) << array_fn_name(fn) << error;
    }
  });
  EXPECT_GT(count, 120);
}

TEST(LlvmText, HasTheEntriesThatTheRunnerLooksFor) {
  KernelSpec s = one_op(ArrayFn::add, DType::kFloat64, DType::kFloat64, {}, 3);
  s.inputs[1].scalar = true;
  std::string ir, error;
  ASSERT_TRUE(to_llvm(to_text(s), &ir, &error)) << error;
  EXPECT_NE(ir.find("define i32 @" + kernel_symbol(to_text(s)) + "_0_argv(ptr %arguments)"), std::string::npos);
  EXPECT_EQ(ir.find("_1_argv"), std::string::npos);
  EXPECT_NE(ir.find("load <8 x double>"), std::string::npos);
}

TEST(LlvmText, SharedSubexpressionsDoNotGrow) {
  KernelSpec s = one_op(ArrayFn::add, DType::kFloat64, DType::kFloat64, {}, 1);
  for (int i = 0; i < 100; ++i)
    s.ops.push_back({i % 2 ? ArrayFn::maximum : ArrayFn::less, DType::kFloat64, i % 2 ? DType::kFloat64 : DType::kBool, {0, 0}});
  for (size_t i = 1; i < s.ops.size(); ++i)
    if (s.ops[i].result == DType::kFloat64) s.ops[i].operands = {static_cast<int>(i > 2 ? i - 2 : 0), 0};
  s.ops.back().output = true;
  std::string ir, error;
  ASSERT_TRUE(to_llvm(to_text(s), &ir, &error)) << error;
  EXPECT_LT(ir.size(), 200'000u);
}

TEST(LlvmText, BadTextsAreRefused) {
  std::string ir, error;
  for (const char* bad : {"", "nonsense", "dalsegno kernel 1\nrank 1\n"}) {
    EXPECT_FALSE(to_llvm(bad, &ir, &error));
    EXPECT_FALSE(error.empty());
  }
}

}  // namespace
}  // namespace dalsegno::halide_gen
