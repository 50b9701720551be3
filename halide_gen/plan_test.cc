// How kernels are cut into stages.
#include "halide_gen/plan/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

constexpr DType kF = DType::kFloat64;
using F = ArrayFn;

KernelSpec with_ops(std::vector<KernelOp> ops) {
  KernelSpec s;
  s.inputs = {{false, kF, Inner::kDense}, {false, kF, Inner::kDense}, {true, kF}};
  s.ops = std::move(ops);
  EXPECT_EQ(check(s), "");
  return s;
}

TEST(Plan, ArithmeticIsOneStageWithoutTiles) {
  const Plan p = make_plan(with_ops({{F::multiply, kF, kF, {~0, ~1}}, {F::add, kF, kF, {0, ~2}}, {F::sqrt, kF, kF, {1}, true}}));
  ASSERT_EQ(p.stages.size(), 1u);
  EXPECT_EQ(p.tile, 0);
  EXPECT_EQ(p.scratch_slots, 0);
  EXPECT_EQ(p.stages[0].results, std::vector<int>{2});
}

TEST(Plan, WhatIsOnlySelectedFromIsStored) {
  const DType b = DType::kBool;
  const Plan p =
      make_plan(with_ops({{F::divide, kF, kF, {~0, ~1}}, {F::not_equal, kF, b, {~1, ~2}}, {F::where, kF, kF, {1, 0, ~0}, true}}));
  EXPECT_EQ(p.stages[0].results, (std::vector<int>{0, 2}));
  EXPECT_EQ(p.scratch_slots, 1);
  EXPECT_GT(p.tile, 0);
}

TEST(Plan, DeadOperationsAreComputed) {
  const Plan p = make_plan(with_ops({{F::divide, kF, kF, {~0, ~1}}, {F::add, kF, kF, {~0, ~1}, true}}));
  EXPECT_EQ(p.stages[0].results, (std::vector<int>{0, 1}));
}

TEST(Plan, InnerLoopsStandBetweenExpressions) {
  const Plan p = make_plan(with_ops({{F::multiply, kF, kF, {~0, ~0}},
                                     {F::exp, kF, kF, {0}},
                                     {F::sin, kF, kF, {~1}},
                                     {F::multiply, kF, kF, {1, 2}, true},
                                     {F::log, kF, kF, {3}, true}}));
  ASSERT_EQ(p.stages.size(), 5u);
  EXPECT_TRUE(p.loops);
  EXPECT_EQ(p.stages[0].loop_op, 2);  // needs nothing
  EXPECT_EQ(p.stages[1].ops, std::vector<int>{0});
  EXPECT_EQ(p.stages[2].loop_op, 1);
  EXPECT_EQ(p.stages[3].ops, std::vector<int>{3});
  EXPECT_EQ(p.stages[4].loop_op, 4);
}

// Every value read has been written before, by an earlier stage, and its slot has not been written since.
void expect_sound(const Plan& p) {
  std::vector<int> holder(64, -1);
  for (const Stage& s : p.stages) {
    for (size_t i = 0; i < s.reads.size(); ++i) {
      if (s.reads[i].kind == Ref::kScratch) {
        EXPECT_EQ(holder[s.reads[i].index], s.sources[i]);
      }
    }
    std::set<int> written;
    for (size_t i = 0; i < s.writes.size(); ++i) {
      if (s.writes[i].kind != Ref::kScratch) continue;
      EXPECT_TRUE(written.insert(s.writes[i].index).second);
      for (const Ref& r : s.reads) EXPECT_FALSE(r.kind == Ref::kScratch && r.index == s.writes[i].index) << "in place";
      holder[s.writes[i].index] = s.results[i];
    }
  }
}

TEST(Plan, SlotsAreUsedAgainButNeverTooEarly) {
  std::vector<KernelOp> ops;
  ops.push_back({F::exp, kF, kF, {~0}});
  for (int i = 0; i < 20; ++i) {
    ops.push_back({F::multiply, kF, kF, {static_cast<int>(ops.size()) - 1, i % 3 == 0 ? 0 : ~1}});
    ops.push_back({F::sin, kF, kF, {static_cast<int>(ops.size()) - 1}});
  }
  ops.back().output = true;
  const Plan p = make_plan(with_ops(ops));
  expect_sound(p);
  EXPECT_LE(p.scratch_slots, 4);
  EXPECT_LE(p.scratch_slots * p.tile * 8, 24 * 1024);
}

TEST(Plan, CastsToIntegerGuardInvalid) {
  EXPECT_TRUE(make_plan(with_ops({{F::astype, kF, DType::kInt32, {~0}, true}})).guards_invalid);
  EXPECT_FALSE(make_plan(with_ops({{F::astype, kF, DType::kFloat32, {~0}, true}})).guards_invalid);
}

}  // namespace
}  // namespace dalsegno::halide_gen
