// The canonical text of kernels: it is their key, and what the compiler reads.
#include "halide_gen/plan/kernel.h"

#include <gtest/gtest.h>

namespace dalsegno::halide_gen {
namespace {

constexpr DType kF64 = DType::kFloat64;

KernelSpec sample() {
  KernelSpec s;
  s.rank = 2;
  s.inputs = {
      {false, kF64, Inner::kDense}, {false, DType::kInt32, Inner::kBroadcast}, {true, DType::kBool}, {false, kF64, Inner::kStrided}};
  s.ops = {{ArrayFn::astype, DType::kInt32, kF64, {~1}, false},
           {ArrayFn::multiply, kF64, kF64, {~0, 0}, true},
           {ArrayFn::where, kF64, kF64, {~2, 1, ~3}, true}};
  return s;
}

TEST(KernelText, SurvivesTheRoundTrip) {
  KernelSpec back;
  std::string error;
  ASSERT_TRUE(from_text(to_text(sample()), &back, &error)) << error;
  EXPECT_EQ(back, sample());
}

TEST(KernelText, TellsEveryDifferenceApart) {
  const std::string text = to_text(sample());
  std::vector<KernelSpec> others(8, sample());
  others[0].rank = 1;
  others[1].inputs[0].inner = Inner::kStrided;
  others[2].inputs[2].scalar = false;
  others[3].inputs[1].dtype = DType::kInt64;
  others[4].ops[1].fn = ArrayFn::add;
  others[5].ops[1].output = false;
  others[6].ops[1].operands = {0, ~0};
  others[7].ops[0].loop = DType::kInt64;
  for (const KernelSpec& other : others) {
    EXPECT_NE(to_text(other), text);
    EXPECT_NE(kernel_symbol(to_text(other)), kernel_symbol(text));
  }
}

TEST(KernelText, DamageIsNoticed) {
  const std::string text = to_text(sample());
  KernelSpec out;
  std::string error;
  for (const std::string& bad : {std::string(), std::string("x"), text + "op add", text + "op nosuch float64 float64 v0\n",
                                 text + "input float64\n", text + "op add float64 float64 v0 v9\n", text + "op add float64 float64 v0\n",
                                 text + "op add float64 float64 v0 q1\n", text + "rank 77\n"}) {
    EXPECT_FALSE(from_text(bad, &out, &error)) << bad;
    EXPECT_FALSE(error.empty());
  }
}

TEST(KernelCheck, RefusesWhatHasNoMeaning) {
  KernelSpec later = sample();
  later.ops[0].operands = {1};
  EXPECT_NE(check(later), "");
  KernelSpec mixed = sample();
  mixed.ops[1].operands = {~0, ~1};  // int32 into a float64 loop: casts are ops
  EXPECT_NE(check(mixed), "");
  KernelSpec silent = sample();
  for (KernelOp& op : silent.ops) op.output = false;
  EXPECT_NE(check(silent), "");
  KernelSpec no_rule = sample();
  no_rule.ops[1] = {ArrayFn::bitwise_and, kF64, kF64, {~0, 0}, true};
  EXPECT_NE(check(no_rule), "");
  EXPECT_EQ(check(sample()), "");
}

}  // namespace
}  // namespace dalsegno::halide_gen
