// Items of lists: which are unboxed as they are taken, which need no reference of their own, what is stored unboxed.
#include <gtest/gtest.h>

#include "replay/typed/hand.h"

namespace dalsegno::typed {
namespace {

// total = xs[i] + ys[i], with the operands released behind the sum; `between` stands before it.
struct Sum {
  Hand h;
  ValueId xs = h.param(), ys = h.param(), i = h.param(), a = kNull, b = kNull, sum = kNull;
  explicit Sum(void (*between)(Hand& h, ValueId xs, ValueId i) = nullptr) {
    h.guard(xs, Type::kList);
    h.guard(ys, Type::kTuple);
    h.guard(i, Type::kInt);
    a = h.add(OpKind::get_item, {xs, i});
    if (between) between(h, xs, i);
    b = h.add(OpKind::get_item, {ys, i});
    h.guard(a, Type::kFloat);
    h.guard(b, Type::kFloat);
    sum = h.binary(BinaryOp::add, a, b);
    h.add(OpKind::release, {a, b});
    h.add(OpKind::return_, {sum});
  }
};

TEST(Items, AreUnboxedAsTheyAreTaken) {
  const Sum s;
  const TypedTrace typed = s.h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[s.a].mode, Mode::kItem);
  EXPECT_FALSE(typed.ops[s.a].of_tuple);
  EXPECT_TRUE(typed.ops[s.b].of_tuple);
  EXPECT_EQ(typed.values[s.a].rep, Rep::kFloat);
  EXPECT_EQ(typed.values[s.a].since, -1);
  EXPECT_FALSE(typed.values[s.a].born_raw);
}

TEST(Items, AreBorrowedWhereNothingCanDropThem) {
  const Sum s;
  EXPECT_TRUE(s.h.typed().values[s.a].borrowed);
  EXPECT_TRUE(s.h.typed().values[s.b].borrowed);
}

TEST(Items, AreHeldWhereTheirListMayDropThem) {
  void (*const between[])(Hand&, ValueId, ValueId) = {
      [](Hand& h, ValueId xs, ValueId i) {
        h.add(OpKind::set_item, {xs, i, i});
      },
      [](Hand& h, ValueId xs, ValueId) { h.add(OpKind::release, {xs}); },
      [](Hand& h, ValueId xs, ValueId i) {
        h.add(OpKind::call, {xs, i});
      },
      [](Hand& h, ValueId, ValueId) { h.add(OpKind::guard_world, {}); },
      [](Hand& h, ValueId xs, ValueId) { h.add(OpKind::iter_next, {xs}, 1); },
  };
  for (auto* one : between) {
    const Sum s(one);
    const TypedTrace typed = s.h.typed();
    EXPECT_EQ(verify(typed), "");
    EXPECT_FALSE(typed.values[s.a].borrowed) << print(typed);
    EXPECT_TRUE(typed.values[s.b].borrowed);
  }
}

TEST(Items, ASumThatIsStoredAndGoneIsNoObjectBefore) {
  Hand h;
  const ValueId xs = h.param(), i = h.param();
  h.guard(xs, Type::kList);
  h.guard(i, Type::kInt);
  const ValueId item = h.add(OpKind::get_item, {xs, i});
  h.guard(item, Type::kInt);
  const ValueId sum = h.binary(BinaryOp::add, item, i);
  h.add(OpKind::release, {item});
  h.add(OpKind::set_item, {xs, i, sum});
  h.add(OpKind::guard_world, {});
  h.add(OpKind::release, {sum});
  h.add(OpKind::return_, {xs});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_TRUE(typed.values[sum].passing);
  EXPECT_FALSE(typed.values[sum].wants_obj);
  EXPECT_NE(print(typed).find("[item]"), std::string::npos) << print(typed);
}

TEST(Items, WhatIsOneOfItsOperandsStaysThatObject) {
  Hand h;
  const ValueId xs = h.param(), i = h.param(), j = h.param();
  h.guard(xs, Type::kList);
  h.guard(i, Type::kInt);
  h.guard(j, Type::kInt);
  const ValueId rest = h.binary(BinaryOp::remainder, i, j);
  h.add(OpKind::set_item, {xs, j, rest});
  h.add(OpKind::release, {rest});
  h.add(OpKind::return_, {xs});
  const TypedTrace typed = h.typed();
  EXPECT_FALSE(typed.values[rest].passing);
  EXPECT_TRUE(typed.values[rest].wants_obj);
  EXPECT_TRUE(typed.values[i].wants_obj);
}

}  // namespace
}  // namespace dalsegno::typed
