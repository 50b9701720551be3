// Calls on unboxed operands, and what need not exist as an object.
#include <gtest/gtest.h>

#include "replay/typed/hand.h"

namespace dalsegno::typed {
namespace {

Operator call_of(Callee callee, std::initializer_list<Rep> arguments) { return call_operator(callee, std::vector<Rep>(arguments)); }

TEST(Calls, FollowTheLanguage) {
  using enum Rep;
  EXPECT_EQ(call_of(Callee::kMin, {kInt, kInt, kInt}), (Operator{kInt, kInt}));
  EXPECT_FALSE(call_of(Callee::kMin, {kInt, kFloat}));  // the result's type depends on the values
  EXPECT_FALSE(call_of(Callee::kMin, {kInt}));
  EXPECT_FALSE(call_of(Callee::kMax, {kBool, kBool}));
  EXPECT_FALSE(call_of(Callee::kAbs, {kBool}));
  EXPECT_EQ(call_of(Callee::kAbs, {kNpFloat32}), (Operator{kNpFloat32, kNpFloat32}));
  EXPECT_EQ(call_of(Callee::kSqrt, {kInt}), (Operator{kFloat, kFloat}));
  EXPECT_FALSE(call_of(Callee::kSqrt, {kNone}));
  EXPECT_FALSE(call_of(Callee::kSqrt, {kFloat, kFloat}));
  EXPECT_EQ(call_of(Callee::kInt, {kNpFloat32}), (Operator{kFloat, kInt}));
  EXPECT_EQ(call_of(Callee::kInt, {kNpInt32}), (Operator{kNpInt32, kInt}));
  EXPECT_FALSE(call_of(Callee::kRound, {kInt}));
  EXPECT_EQ(call_of(Callee::kRound, {kNpFloat64}), (Operator{kFloat, kInt}));
  EXPECT_EQ(call_of(Callee::kRound, {kNpFloat32}), (Operator{kFloat, kInt}));
  EXPECT_EQ(scalar_operator(kNpInt16, kInt), (Operator{kNpInt16, kNpInt16}));
  EXPECT_EQ(scalar_operator(kNpFloat32, kFloat), (Operator{kNpFloat32, kNpFloat32}));
  EXPECT_EQ(scalar_operator(kNpFloat64, kNpUint64), (Operator{kNpFloat64, kNpFloat64}));
  EXPECT_EQ(scalar_operator(kNpFloat32, kNpFloat64), (Operator{kNpFloat32, kNpFloat32}));
  EXPECT_FALSE(scalar_operator(kNpFloat32, kNpInt64));
  EXPECT_FALSE(scalar_operator(kNpInt32, kFloat));
  EXPECT_FALSE(scalar_operator(kNpBool, kInt));
  EXPECT_EQ(scalar_operator(kNpComplex128, kFloat), (Operator{kNpComplex128, kNpComplex128}));
  EXPECT_FALSE(scalar_operator(kNpFloat64, kNpComplex128));
  EXPECT_EQ(call_of(Callee::kAbs, {kNpComplex128}), (Operator{kNpComplex128, kNpFloat64}));
  EXPECT_EQ(call_of(Callee::kComplex, {kNpComplex128}), (Operator{kNpComplex128, kComplex}));
  EXPECT_FALSE(call_of(Callee::kConjugate, {kNpComplex128}));  // complex.conjugate(z), Python's own
  EXPECT_EQ(call_of(Callee::kScalarConjugate, {kNpComplex128}), (Operator{kNpComplex128, kNpComplex128}));
  EXPECT_FALSE(call_of(Callee::kScalarConjugate, {kComplex}));
  EXPECT_FALSE(scalar_operator(kNone, kInt));
  EXPECT_EQ(call_of(Callee::kAtan2, {kInt, kNpFloat64}), (Operator{kFloat, kFloat}));
  EXPECT_TRUE(gives_argument(Callee::kAbs, kInt));
  EXPECT_FALSE(gives_argument(Callee::kAbs, kFloat));
  EXPECT_TRUE(gives_argument(Callee::kFloat, kFloat));
  EXPECT_FALSE(gives_argument(Callee::kFloat, kNpFloat64));
}

struct Grid : Hand {
  ValueId array, i, j;
  Grid() : array(param()), i(param()), j(param()) {
    guard(i, Type::kInt);
    guard(j, Type::kInt);
    trace.facts = {{DType::kFloat64, 2}};
  }
  ValueId read(ValueId index) {
    const ValueId v = add(OpKind::get_item, {array, index});
    trace.ops.back().facts = 0;
    return v;
  }
};

TEST(Virtual, ATupleThatOnlySubscriptsTakeIsNotBuilt) {
  Grid h;
  const ValueId before = h.binary(BinaryOp::subtract, h.i, h.constant(Type::kInt, 1));
  const ValueId tuple = h.add(OpKind::build_tuple, {before, h.j});
  h.add(OpKind::release, {before});
  const ValueId item = h.read(tuple);
  h.add(OpKind::release, {tuple});
  h.add(OpKind::return_, {item});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[tuple].mode, Mode::kVirtual);
  EXPECT_TRUE(typed.values[before].passing);
  EXPECT_FALSE(typed.values[before].wants_obj);
  EXPECT_TRUE(typed.values[h.j].wants_obj);  // others may hold the same object
  EXPECT_EQ(typed.ops[item].effects, kReadsMemory);
}

TEST(Virtual, ATupleThatSomethingElseTakesIsBuilt) {
  Grid h;
  const ValueId tuple = h.add(OpKind::build_tuple, {h.i, h.j});
  const ValueId item = h.read(tuple);
  h.add(OpKind::build_list, {tuple});
  h.add(OpKind::return_, {item});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[tuple].mode, Mode::kPython);
  EXPECT_EQ(typed.ops[item].mode, Mode::kElement);
}

struct Rows : Grid {
  ValueId row;
  Rows() {
    trace.facts.push_back({DType::kFloat64, 1});
    look_at(array, 0);
    row = add(OpKind::get_item, {array, i});
    look_at(row, 1);
  }
  void look_at(ValueId v, int32_t facts) {
    add(OpKind::guard_array, {v});
    trace.ops.back().facts = facts;
  }
  ValueId element() {
    const ValueId v = add(OpKind::get_item, {row, j});
    trace.ops.back().facts = 1;
    return v;
  }
  Mode mode_of_row() const {
    const TypedTrace typed = this->typed();
    EXPECT_EQ(verify(typed), "");
    return typed.ops[row].mode;
  }
};

TEST(Virtual, AnElementOfARowIsOneOfTheArray) {
  Rows h;
  const ValueId item = h.element();
  h.add(OpKind::release, {h.row});
  h.add(OpKind::return_, {item});
  EXPECT_EQ(h.mode_of_row(), Mode::kVirtual);
  const TypedTrace typed = h.typed();
  const std::optional<Element> e = element_of(typed, h.trace.ops[item]);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->array, h.array);
  EXPECT_EQ(e->rank, 2);
  EXPECT_EQ(e->at[0], h.i);
  EXPECT_EQ(e->at[1], h.j);
  EXPECT_EQ(e->facts, 0);
}

TEST(Virtual, ARowThatSomethingElseTakesIsBuilt) {
  Rows h;
  const ValueId item = h.element();
  h.add(OpKind::build_list, {h.row});
  h.add(OpKind::return_, {item});
  EXPECT_EQ(h.mode_of_row(), Mode::kView);
}

TEST(Virtual, ARowOutlivesItsArrayAsAnObject) {
  Rows h;
  h.add(OpKind::release, {h.array});
  h.trace.ops.back().effects = kDropsReferences;
  h.add(OpKind::return_, {h.element()});
  EXPECT_EQ(h.mode_of_row(), Mode::kView);
}

TEST(Virtual, CodeMayChangeARow) {
  Rows h;
  const ValueId other = h.add(OpKind::get_attr, {h.array});
  h.trace.ops[other].effects = kRunsCode;
  h.add(OpKind::return_, {h.element()});
  EXPECT_EQ(h.mode_of_row(), Mode::kView);
}

TEST(Virtual, PositionsOfAConstantTuple) {
  Grid h;
  const ValueId tuple = h.add(OpKind::constant, {}, 0, h.object({.positions = {0, -1}}));
  const ValueId item = h.read(tuple);
  h.add(OpKind::return_, {item});
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  const std::optional<Element> e = element_of(typed, h.trace.ops[item]);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->at[1], kNull);
  EXPECT_EQ(e->constant[1], -1);
  EXPECT_EQ(e->tuple, kNull);
}

struct Ranged : Hand {
  ValueId n, range, iterator;
  explicit Ranged(bool also_kept = false) : n(param()) {
    guard(n, Type::kInt);
    const ValueId type = add(OpKind::constant, {}, 0, object({.callee = Callee::kRange}));
    const ValueId last = binary(BinaryOp::add, n, n);
    range = add(OpKind::call, {type, n, last}, 2);
    add(OpKind::release, {last});
    iterator = add(OpKind::get_iter, {range});
    if (also_kept) add(OpKind::build_list, {range});
    add(OpKind::release, {range});
    add(OpKind::return_, {iterator});
  }
};

TEST(Virtual, ARangeThatIsOnlyIteratedOverIsNotBuilt) {
  const Ranged h;
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[h.range].mode, Mode::kVirtual);
  EXPECT_EQ(typed.ops[h.iterator].mode, Mode::kIterator);
  EXPECT_EQ(typed.ops[h.iterator].effects, kNoEffect);
}

TEST(Virtual, ARangeThatSomethingElseTakesIsBuilt) {
  const Ranged h(true);
  const TypedTrace typed = h.typed();
  EXPECT_EQ(verify(typed), "");
  EXPECT_EQ(typed.ops[h.range].mode, Mode::kPython);
  EXPECT_EQ(typed.ops[h.iterator].mode, Mode::kPython);
}

TEST(Virtual, WhereAnArgumentIsGivenBackItsObjectIsShared) {
  for (const bool gone : {true, false}) {
    Hand h;
    const ValueId a = h.param();
    h.guard(a, Type::kFloat);
    const ValueId min = h.add(OpKind::constant, {}, 0, h.object({.callee = Callee::kMin}));
    const ValueId x = h.binary(BinaryOp::add, a, a), y = h.binary(BinaryOp::multiply, a, a);
    const ValueId least = h.add(OpKind::call, {min, x, y}, 2);
    if (gone) h.add(OpKind::release, {x, y});
    h.add(OpKind::return_, {least});
    const TypedTrace typed = h.typed();
    EXPECT_EQ(verify(typed), "");
    EXPECT_EQ(typed.ops[least].callee, Callee::kMin);
    EXPECT_EQ(typed.values[x].passing, gone);
    EXPECT_EQ(typed.values[least].wants_obj, !gone);
  }
}

}  // namespace
}  // namespace dalsegno::typed
