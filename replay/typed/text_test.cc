// The canonical text: it is whole (reading it back gives the same forms and the same text), and damage is found.
#include "replay/typed/text.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "replay/typed/hand.h"
#include "trace/samples.h"

namespace dalsegno::typed {
namespace {

Knowledge random_knowledge(const Trace& t, std::mt19937_64& random) {
  Knowledge known;
  for (size_t k = 0; k < t.objects.size(); ++k) {
    const auto type = static_cast<Type>(random() % static_cast<size_t>(Type::kCount));
    known.objects.push_back({.names = type, .type = type, .number = random() % 2 == 0, .unboxes = type != Type::kOther});
    known.objects.back().bits = static_cast<int64_t>(random());
    known.objects.back().callee = static_cast<Callee>(random() % static_cast<size_t>(Callee::kCount));
    known.objects.back().positions.assign(random() % 3, -static_cast<int64_t>(k));
  }
  known.box_ints = random() % 2 == 0;
  return known;
}

TEST(Text, IsReadBack) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200; ++i) {
    const Trace t = testing::random_trace(random, i % 60);
    const TypedTrace typed = infer(t, random_knowledge(t, random));
    const std::string text = to_text(typed);
    const std::optional<OwnedTrace> back = from_text(text);
    ASSERT_TRUE(back);
    ASSERT_EQ(back->typed.values, typed.values);
    ASSERT_EQ(back->typed.ops, typed.ops);
    ASSERT_EQ(back->trace->snapshots, t.snapshots);
    ASSERT_EQ(back->trace->entry, t.entry);
    ASSERT_EQ(to_text(back->typed), text);
    ASSERT_EQ(verify(back->typed), "");
    // What is inferred once more is the same: the text holds what inference looks at.
    const TypedTrace again = infer(*back->trace, back->typed.known);
    ASSERT_EQ(again.values, typed.values);
    ASSERT_EQ(again.ops, typed.ops);
  }
}

TEST(Text, SaysWhateverAGeneratorCouldLookAt) {
  Hand h;
  const ValueId a = h.param();
  h.guard(a, Type::kInt);
  h.trace.facts = {{DType::kFloat64, 1}};
  const ValueId sum = h.binary(BinaryOp::add, a, h.constant(Type::kInt, 5));
  h.add(OpKind::return_, {sum});
  const TypedTrace typed = h.typed();
  const std::string text = to_text(typed);
  const std::function<void(Trace&, TypedTrace&)> kChanges[] = {
      [&](Trace& t, TypedTrace&) { t.ops[sum].imm++; },
      [&](Trace& t, TypedTrace&) { t.ops[sum].effects ^= kWarns; },
      [&](Trace& t, TypedTrace&) { t.ops[sum].snapshot = -1; },
      [&](Trace& t, TypedTrace&) { t.inputs[0]++; },
      [&](Trace& t, TypedTrace&) { t.facts[0].dtype = DType::kUint8; },
      [&](Trace& t, TypedTrace&) { t.anchor = AnchorKind::exit; },
      [&](Trace& t, TypedTrace&) { t.entry = Hand::frames({a}); },
      [&](Trace& t, TypedTrace&) { t.snapshots.add(Hand::frames({sum})); },
      [&](Trace&, TypedTrace& y) { y.known.objects.back().bits++; },
      [&](Trace&, TypedTrace& y) { y.known.box_ints = true; },
      [&](Trace&, TypedTrace& y) { y.values[sum].wants_obj ^= true; },
      [&](Trace&, TypedTrace& y) { y.values[a].since = -1; },
      [&](Trace&, TypedTrace& y) { y.ops[sum].typed.result = Rep::kFloat; },
      [&](Trace&, TypedTrace& y) { y.ops[sum].effects = kAnyEffect; },
      [&](Trace&, TypedTrace& y) { y.ops[sum].callee = Callee::kMin; },
  };
  for (const auto& change : kChanges) {
    Trace t = *typed.trace;
    TypedTrace other = typed;
    other.trace = &t;
    change(t, other);
    EXPECT_NE(to_text(other), text) << &change - kChanges;
  }
  Trace t = *typed.trace;  // what is for people makes no other code
  for (Op& op : t.ops) op.line = 99;
  t.where = "elsewhere";
  TypedTrace other = typed;
  other.trace = &t;
  EXPECT_EQ(to_text(other), text);
}

TEST(Text, DamageIsNoTrace) {
  std::mt19937_64 random(3);
  const Trace t = testing::random_trace(random, 25);
  const std::string text = to_text(infer(t, random_knowledge(t, random)));
  for (size_t n = 0; n < text.size(); n += 1 + n / 50) EXPECT_FALSE(from_text(text.substr(0, n))) << n;
  EXPECT_FALSE(from_text(text + " 1"));
  EXPECT_FALSE(from_text("typed 1"));
  for (int i = 0; i < 2000; ++i) {  // whatever it says then: nothing is read beyond its end
    std::string damaged = text;
    damaged[random() % damaged.size()] = "0123456789 -\nx"[random() % 14];
    (void)from_text(damaged);
  }
}

}  // namespace
}  // namespace dalsegno::typed
