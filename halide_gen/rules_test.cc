// NumPy's promotion (NEP 50), which functions have a rule, and which operations may lose their flags.
#include "halide_gen/plan/rules.h"

#include <gtest/gtest.h>

namespace dalsegno::halide_gen {
namespace {

using D = DType;
using F = ArrayFn;
constexpr OperandType kInt{D::kInt64, Weak::kInt}, kFloat{D::kFloat64, Weak::kFloat};
constexpr OperandType strong(D d) { return {d, Weak::kNo}; }

struct Promotion {
  OperandType a, b;
  D result;
};

TEST(Promotion, FollowsNep50) {
  // clang-format off
  const Promotion table[] = {
      {strong(D::kBool), strong(D::kInt32), D::kInt32},       {strong(D::kInt32), strong(D::kInt64), D::kInt64},
      {strong(D::kInt32), strong(D::kFloat32), D::kFloat64},  {strong(D::kBool), strong(D::kFloat32), D::kFloat32},
      {strong(D::kInt64), strong(D::kFloat64), D::kFloat64},  {strong(D::kFloat32), strong(D::kFloat64), D::kFloat64},
      {strong(D::kFloat32), kFloat, D::kFloat32},             {strong(D::kFloat32), kInt, D::kFloat32},
      {strong(D::kInt32), kInt, D::kInt32},                   {strong(D::kInt32), kFloat, D::kFloat64},
      {strong(D::kBool), kInt, D::kInt64},                    {strong(D::kBool), kFloat, D::kFloat64},
      {strong(D::kUint8), strong(D::kInt8), D::kInt16},       {strong(D::kUint16), strong(D::kInt8), D::kInt32},
      {strong(D::kUint32), strong(D::kInt16), D::kInt64},     {strong(D::kUint64), strong(D::kInt8), D::kFloat64},
      {strong(D::kUint8), kInt, D::kUint8},                   {strong(D::kUint16), strong(D::kFloat32), D::kFloat32},
  };
  // clang-format on
  for (const Promotion& p : table) {
    for (const auto& operands : {std::vector<OperandType>{p.a, p.b}, std::vector<OperandType>{p.b, p.a}}) {
      const LoopTypes t = resolve(F::multiply, operands);
      EXPECT_TRUE(t.known);
      EXPECT_EQ(t.loop, p.result);
      EXPECT_EQ(t.result, p.result);
    }
  }
}

TEST(Promotion, LoopsThatNumPyDoesNotHave) {
  EXPECT_FALSE(resolve(F::subtract, {strong(D::kBool), strong(D::kBool)}).known);  // raises
  EXPECT_FALSE(resolve(F::negative, {strong(D::kBool)}).known);                    // raises
  EXPECT_FALSE(resolve(F::sqrt, {strong(D::kBool)}).known);                        // float16
  EXPECT_FALSE(resolve(F::bitwise_and, {strong(D::kFloat64), strong(D::kInt64)}).known);
  EXPECT_FALSE(resolve(F::power, {strong(D::kInt64), kInt}).known);    // takes the GIL
  EXPECT_FALSE(resolve(F::power, {strong(D::kInt64), kFloat}).known);  // a cast base
  EXPECT_EQ(resolve(F::sqrt, {strong(D::kInt32)}).loop, D::kFloat64);
  EXPECT_FALSE(resolve(F::sqrt, {strong(D::kUint8)}).known);  // float16
  EXPECT_EQ(resolve(F::sqrt, {strong(D::kInt16)}).loop, D::kFloat32);
  EXPECT_FALSE(resolve(F::less, {strong(D::kUint64), strong(D::kInt64)}).known);  // has a loop of its own
  EXPECT_EQ(resolve(F::divide, {strong(D::kBool), strong(D::kBool)}).loop, D::kFloat64);
  EXPECT_EQ(resolve(F::less, {strong(D::kInt32), kFloat}).loop, D::kFloat64);
  EXPECT_EQ(resolve(F::less, {strong(D::kInt32), kFloat}).result, D::kBool);
  EXPECT_EQ(resolve(F::where, {strong(D::kFloat64), strong(D::kInt32), kInt}).loop, D::kInt32);
}

TEST(Treatment, Divisions) {
  EXPECT_EQ(treatment(F::floor_divide, D::kInt64, D::kInt64), Treatment::kLoop);
  EXPECT_EQ(treatment(F::remainder, D::kFloat64, D::kFloat64), Treatment::kLoop);
  EXPECT_EQ(treatment(F::divide, D::kFloat64, D::kFloat64), Treatment::kExpr);
  EXPECT_EQ(treatment(F::divide, D::kInt64, D::kInt64), Treatment::kNone);
  EXPECT_EQ(treatment(F::fmax, D::kFloat32, D::kFloat32), Treatment::kLoop);
  EXPECT_EQ(treatment(F::fmax, D::kInt32, D::kInt32), Treatment::kExpr);
  EXPECT_EQ(treatment(F::bitwise_count, D::kInt32, D::kInt32), Treatment::kNone);
  EXPECT_EQ(treatment(F::bitwise_count, D::kInt32, D::kUint8), Treatment::kLoop);
  EXPECT_EQ(treatment(F::astype, D::kFloat64, D::kUint64), Treatment::kNone);  // by other instructions on other processors
}

TEST(Flags, WhatAnchors) {
  EXPECT_TRUE(anchors(F::multiply, D::kFloat64, D::kFloat64, 0));
  EXPECT_TRUE(anchors(F::absolute, D::kFloat64, D::kFloat64, 0));
  EXPECT_FALSE(anchors(F::where, D::kFloat64, D::kFloat64, 1));
  EXPECT_FALSE(anchors(F::less, D::kFloat64, D::kBool, 0));
  EXPECT_FALSE(anchors(F::maximum, D::kFloat64, D::kFloat64, 0));
  EXPECT_FALSE(anchors(F::copysign, D::kFloat64, D::kFloat64, 1));
  EXPECT_FALSE(raises_flags(F::add, D::kInt64, D::kInt64));
  EXPECT_TRUE(raises_flags(F::astype, D::kFloat64, D::kFloat32));
  EXPECT_TRUE(raises_flags(F::astype, D::kFloat32, D::kInt32));
  EXPECT_FALSE(raises_flags(F::astype, D::kInt32, D::kFloat64));
}

}  // namespace
}  // namespace dalsegno::halide_gen
