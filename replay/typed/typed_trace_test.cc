// infer(), verify() and print() on traces made by hand and at random.
#include "replay/typed/typed_trace.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>

#include "replay/typed/hand.h"
#include "trace/samples.h"

namespace dalsegno::typed {
namespace {

TEST(Operators, FollowTheLanguage) {
  using enum Rep;
  const struct {
    BinaryOp op;
    Rep a, b;
    Operator expected;
  } kRows[] = {
      {BinaryOp::add, kInt, kInt, {kInt, kInt}},
      {BinaryOp::add, kInt, kFloat, {kFloat, kFloat}},
      {BinaryOp::add, kBool, kBool, {kInt, kInt}},
      {BinaryOp::and_, kBool, kBool, {kInt, kBool}},
      {BinaryOp::and_, kBool, kInt, {kInt, kInt}},
      {BinaryOp::and_, kFloat, kInt, {}},
      {BinaryOp::true_divide, kInt, kInt, {kInt, kFloat}},
      {BinaryOp::power, kInt, kInt, {}},
      {BinaryOp::power, kFloat, kInt, {kFloat, kFloat}},
      {BinaryOp::matmul, kInt, kInt, {}},
      {BinaryOp::add, kNone, kInt, {}},
      {BinaryOp::add, kNpFloat64, kInt, {kNpFloat64, kNpFloat64}},
      {BinaryOp::add, kFloat, kNpFloat32, {kNpFloat32, kNpFloat32}},
      {BinaryOp::add, kNpInt32, kNpFloat32, {kNpFloat64, kNpFloat64}},
      {BinaryOp::add, kNpInt32, kNpInt64, {kNpInt64, kNpInt64}},
      {BinaryOp::add, kNpInt32, kFloat, {kNpFloat64, kNpFloat64}},
      {BinaryOp::true_divide, kNpInt32, kInt, {}},
      {BinaryOp::remainder, kNpFloat64, kInt, {kNpFloat64, kNpFloat64}},
      {BinaryOp::and_, kNpFloat64, kInt, {}},
      {BinaryOp::add, kNpUint8, kNpInt8, {kNpInt16, kNpInt16}},
      {BinaryOp::add, kNpUint8, kNpInt32, {kNpInt32, kNpInt32}},
      {BinaryOp::add, kNpUint64, kNpInt8, {kNpFloat64, kNpFloat64}},
      {BinaryOp::and_, kNpUint64, kNpInt8, {}},
      {BinaryOp::add, kNpUint16, kNpFloat32, {kNpFloat32, kNpFloat32}},
      {BinaryOp::add, kNpUint32, kNpFloat32, {kNpFloat64, kNpFloat64}},
      {BinaryOp::lshift, kInt, kNpUint16, {kNpUint16, kNpUint16}},
      {BinaryOp::add, kNpBool, kInt, {kNpInt64, kNpInt64}},
      {BinaryOp::add, kNpInt8, kBool, {kNpInt8, kNpInt8}},
      {BinaryOp::multiply, kNpBool, kNpFloat32, {kNpFloat32, kNpFloat32}},
      {BinaryOp::power, kNpFloat64, kNpBool, {}},
      {BinaryOp::add, kNpBool, kBool, {}},
      {BinaryOp::and_, kNpBool, kBool, {kNpBool, kNpBool}},
      {BinaryOp::xor_, kNpBool, kNpBool, {kNpBool, kNpBool}},
  };
  for (const auto& row : kRows) EXPECT_EQ(binary_operator(row.op, row.a, row.b), row.expected) << rep_name(row.a) << rep_name(row.b);
  EXPECT_EQ(binary_operator(BinaryOp::add, kComplex, kFloat), (Operator{kComplex, kComplex}));
  g_converts_to_complex = false;
  EXPECT_EQ(binary_operator(BinaryOp::add, kComplex, kFloat), (Operator{kComplex, kComplex, Real::kRight}));
  EXPECT_EQ(binary_operator(BinaryOp::true_divide, kInt, kComplex), (Operator{kComplex, kComplex, Real::kLeft}));
  EXPECT_EQ(binary_operator(BinaryOp::power, kComplex, kInt), (Operator{kComplex, kComplex}));
  EXPECT_EQ(binary_operator(BinaryOp::multiply, kComplex, kComplex), (Operator{kComplex, kComplex}));
  g_converts_to_complex = true;
  EXPECT_EQ(binary_operator(BinaryOp::multiply, kComplex, kNpFloat64), (Operator{kComplex, kComplex}));
  EXPECT_EQ(binary_operator(BinaryOp::multiply, kNpFloat64, kComplex), (Operator{kNpComplex128, kNpComplex128, Real::kLeft}));
  for (const Rep other : {kComplex, kFloat, kInt, kBool, kNpFloat64, kNpFloat32, kNpInt8, kNpUint64, kNpBool, kNpComplex128}) {
    EXPECT_EQ(binary_operator(BinaryOp::true_divide, kNpComplex128, other), (Operator{kNpComplex128, kNpComplex128}));
    EXPECT_EQ(binary_operator(BinaryOp::subtract, other, kNpComplex128), (Operator{kNpComplex128, kNpComplex128}));
    EXPECT_EQ(compare_operator(other, kNpComplex128, true), (Operator{kNpComplex128, kNpBool}));
  }
  EXPECT_FALSE(binary_operator(BinaryOp::add, kNpComplex128, kNatural));
  EXPECT_FALSE(binary_operator(BinaryOp::remainder, kNpComplex128, kInt));
  EXPECT_FALSE(binary_operator(BinaryOp::power, kNpComplex128, kInt));
  EXPECT_FALSE(compare_operator(kNpComplex128, kNpComplex128, false));
  EXPECT_EQ(unary_operator(UnaryOp::negative, kNpComplex128), (Operator{kNpComplex128, kNpComplex128}));
  EXPECT_TRUE(stores(DType::kComplex128, kNpComplex128));
  EXPECT_FALSE(stores(DType::kComplex64, kNpComplex128));
  EXPECT_FALSE(stores(DType::kFloat64, kNpComplex128));  // which warns
  EXPECT_FALSE(compare_operator(kInt, kFloat, true));
  EXPECT_FALSE(compare_operator(kNpInt64, kNpUint64, true));
  EXPECT_EQ(compare_operator(kBool, kInt, false), (Operator{kInt, kBool}));
  EXPECT_EQ(compare_operator(kInt, kNpFloat32, false), (Operator{kNpFloat32, kNpBool}));
  EXPECT_FALSE(unary_operator(UnaryOp::positive, kInt));
  EXPECT_FALSE(unary_operator(UnaryOp::invert, kBool));
}

TEST(Infer, GuardedOperandsAreUnboxedSinceTheirGuard) {
  Hand h;
  const ValueId a = h.param(), b = h.param();
  h.guard(a, Type::kInt);
  h.guard(b, Type::kFloat);
  const ValueId sum = h.binary(BinaryOp::add, a, b);
  h.add(OpKind::return_, {sum});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.values[a].rep, Rep::kInt);
  EXPECT_EQ(typed.values[a].since, 2);
  EXPECT_EQ(typed.ops[sum], (OpForm{Mode::kTyped, {Rep::kFloat, Rep::kFloat}}));
  EXPECT_TRUE(typed.values[sum].born_raw);
  EXPECT_FALSE(typed.values[sum].wants_obj);
}

TEST(Infer, IntsStayObjectsWhereOneWasTooLarge) {
  Hand h;
  const ValueId a = h.param();
  h.guard(a, Type::kInt);
  const ValueId sum = h.binary(BinaryOp::add, a, a);
  h.add(OpKind::return_, {sum});
  h.known.box_ints = true;
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[sum].mode, Mode::kPython);
  EXPECT_TRUE(typed.values[a].wants_obj);
}

TEST(Infer, ALoopsParameterIsUnboxedAtTheJump) {
  Hand h;
  h.trace.anchor = AnchorKind::loop;
  const ValueId function = h.param(), t = h.param();
  h.trace.entry = Hand::frames({t});
  h.guard(t, Type::kFloat);
  const ValueId sum = h.binary(BinaryOp::add, t, h.constant(Type::kInt, 1));
  h.trace.snapshots.add(Hand::frames({sum}));
  h.add(OpKind::jump, {}, h.trace.number);
  h.trace.ops.back().snapshot = 1;
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_TRUE(typed.values[t].hoisted);
  EXPECT_EQ(typed.values[t].since, -1);
  EXPECT_FALSE(typed.values[function].hoisted);
}

TEST(Infer, AnIntConstantBesideAFloatIsComparedAsADoubleWhereItIsExact) {
  for (const auto& [bits, typed_compare] : {std::pair{int64_t{3}, true}, std::pair{kExactInDouble + 1, false}}) {
    Hand h;
    const ValueId a = h.param();
    h.guard(a, Type::kFloat);
    const ValueId less = h.add(OpKind::compare, {a, h.constant(Type::kInt, bits)}, 0);
    h.add(OpKind::return_, {less});
    EXPECT_EQ(h.typed().ops[less].mode == Mode::kTyped, typed_compare) << bits;
  }
}

TEST(Infer, ElementsOfArraysAreReadAndWrittenUnboxed) {
  Hand h;
  const ValueId array = h.param(), i = h.param(), j = h.param();
  h.guard(i, Type::kInt);
  h.guard(j, Type::kNpInt64);
  h.trace.facts = {{DType::kFloat32, 2}};
  const ValueId tuple = h.add(OpKind::build_tuple, {i, j});
  const ValueId item = h.add(OpKind::get_item, {array, tuple});
  h.trace.ops.back().facts = 0;
  const ValueId set = h.add(OpKind::set_item, {array, tuple, item});
  h.trace.ops.back().facts = 0;
  h.add(OpKind::return_, {item});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[item].mode, Mode::kElement);
  EXPECT_EQ(typed.ops[set].mode, Mode::kElement);
  EXPECT_EQ(typed.values[item].rep, Rep::kNpFloat32);
  EXPECT_TRUE(typed.values[i].wants_raw);
  h.trace.facts[0].rank = 3;
  EXPECT_EQ(h.typed().ops[item].mode, Mode::kPython);
}

TEST(Infer, TheItemOfARangeIsAnInt) {
  Hand h;
  const ValueId range = h.param();
  h.guard(range, Type::kRangeIterator);
  const ValueId item = h.add(OpKind::iter_next, {range}, 1);
  h.trace.ops.back().exit_snapshot = 0;
  h.add(OpKind::leave, {});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[item].mode, Mode::kRange);
  EXPECT_FALSE(typed.values[item].wants_obj);
}

TEST(Infer, WhatRefusedIsDoneOnObjects) {
  Hand h;
  h.trace.anchor = AnchorKind::exit;
  const ValueId a = h.param();
  h.trace.entry = Hand::frames({a});
  Snapshot later = h.trace.entry;
  later.frames[0].offset = 2;
  h.trace.snapshots.add(later);
  const ValueId first = h.binary(BinaryOp::add, a, a);
  const ValueId second = h.binary(BinaryOp::add, a, a);
  h.trace.ops.back().snapshot = 1;
  h.add(OpKind::return_, {second});
  h.known.params = {Rep::kNpFloat64};
  h.known.python_first = true;
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[first].mode, Mode::kPython);
  EXPECT_EQ(typed.ops[second].mode, Mode::kTyped);
}

TEST(Verify, AcceptsWhatInferMakesOfRandomTraces) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; i++) {
    const Trace t = testing::random_trace(random, i % 60);
    Knowledge known;
    for (size_t k = 0; k < t.objects.size(); ++k) {
      const auto type = static_cast<Type>(random() % static_cast<size_t>(Type::kCount));
      known.objects.push_back({.names = type, .type = type, .number = random() % 2 == 0, .unboxes = type != Type::kOther, .bits = 1});
      known.objects.back().callee = static_cast<Callee>(random() % static_cast<size_t>(Callee::kCount));
    }
    known.box_ints = i % 5 == 0;
    const TypedTrace typed = infer(t, known);
    ASSERT_EQ(verify(typed), "") << print(typed);
    ASSERT_EQ(print(typed), print(infer(t, known)));
  }
}

TEST(Verify, FindsContradictions) {
  Hand h;
  const ValueId a = h.param();
  h.guard(a, Type::kFloat);
  const ValueId sum = h.binary(BinaryOp::add, a, a);
  const ValueId end = h.add(OpKind::return_, {sum});
  const struct {
    const char* what;
    std::function<void(TypedTrace&)> apply;
  } kDamages[] = {
      {"operand 0 is not unboxed", [&](TypedTrace& t) { t.values[a].since = sum; }},
      {"does not guard it", [&](TypedTrace& t) { t.values[a].since = sum; }},
      {"not unboxed", [&](TypedTrace& t) { t.values[sum] = {}; }},
      {"unboxed, but as nothing", [&](TypedTrace& t) { t.values[sum].rep = Rep::kNone; }},
      {"no parameter of a loop", [&](TypedTrace& t) { t.values[a].hoisted = true; }},
      {"a form without a value", [&](TypedTrace& t) { t.values[end].wants_obj = true; }},
      {"unknown representation", [&](TypedTrace& t) { t.values[a].rep = Rep::kCount; }},
      {"not one form an op", [&](TypedTrace& t) { t.ops.pop_back(); }},
      {"not one row of facts", [&](TypedTrace& t) { t.known.objects.pop_back(); }},
  };
  for (const auto& damage : kDamages) {
    TypedTrace typed = h.typed();
    damage.apply(typed);
    const std::string fault = verify(typed);
    EXPECT_NE(fault, "") << damage.what;
    if (std::string(damage.what) != kDamages[0].what) {
      EXPECT_NE(fault.find(damage.what), std::string::npos) << fault;
    }
  }
}

TEST(Print, SaysHowValuesAndOpsAreRepresented) {
  Hand h;
  const ValueId a = h.param();
  h.guard(a, Type::kInt);
  h.add(OpKind::return_, {h.binary(BinaryOp::true_divide, a, a)});
  EXPECT_EQ(print(h.typed()),
            "anchor\n"
            "v0 = param 0  : int since 1 raw\n"
            "guard_type v0 {object 1}\n"
            "v2 = binary v0 v0 /  : float born  [typed int -> float]\n"
            "return_ v2\n");
}

}  // namespace
}  // namespace dalsegno::typed
