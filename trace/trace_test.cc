// The tables, verify() and print().
#include "trace/trace.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "trace/samples.h"

namespace dalsegno {
namespace {

TEST(Tables, NamesAreThoseOfTheTable) {
  EXPECT_STREQ(op_name(OpKind::get_attr), "get_attr");
  EXPECT_STREQ(op_name(OpKind::leave), "leave");
  EXPECT_STREQ(op_name(static_cast<OpKind>(250)), "unknown");
  EXPECT_EQ(op_inputs(OpKind::set_item), 3);
  EXPECT_EQ(op_inputs(OpKind::call), -1);
  EXPECT_TRUE(op_has_result(OpKind::call));
  EXPECT_FALSE(op_has_result(OpKind::guard_true));
  EXPECT_STREQ(reason_name(Reason::too_deep), "too_deep");
  EXPECT_STREQ(reason_text(Reason::guard), "a guard failed");
  EXPECT_STREQ(reason_name(static_cast<Reason>(200)), "unknown");
}

TEST(Tables, ArrayFunctions) {
  for (int i = 1; i < static_cast<int>(ArrayFn::kCount); i++) {
    const auto fn = static_cast<ArrayFn>(i);
    EXPECT_EQ(array_fn_by_name(array_fn_name(fn)), fn);
    EXPECT_GE(array_fn_inputs(fn), 1);
    EXPECT_LE(array_fn_inputs(fn), 3);
  }
  EXPECT_EQ(array_fn_by_name(""), ArrayFn::none);
  EXPECT_EQ(array_fn_by_name("matmul"), ArrayFn::none);
  EXPECT_STREQ(array_fn_name(ArrayFn::none), "");
  EXPECT_TRUE(array_fn_is_expr(ArrayFn::where));
  EXPECT_FALSE(array_fn_is_expr(ArrayFn::hypot));
  EXPECT_EQ(array_fn_inputs(ArrayFn::where), 3);
  EXPECT_STREQ(dtype_name(DType::kFloat32), "float32");
  EXPECT_EQ(dtype_size(DType::kBool), 1);
  EXPECT_EQ(dtype_size(DType::kInt64), 8);
}

TEST(Verify, AcceptsTheSmallTrace) { EXPECT_EQ(verify(testing::small_trace()), ""); }

TEST(Verify, AcceptsRandomTraces) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; i++) {
    const Trace t = testing::random_trace(random, i % 60);
    ASSERT_EQ(verify(t), "") << print(t);
  }
}

struct Damage {
  const char* what;  // part of the expected message
  std::function<void(Trace&)> apply;
};

const Damage kDamages[] = {
    {"no ops", [](Trace& t) { t.ops.clear(), t.n_params = 0; }},
    {"objects[0]", [](Trace& t) { t.objects.clear(); }},
    {"n_params", [](Trace& t) { t.n_params = 1000; }},
    {"n_params", [](Trace& t) { t.n_params = -1; }},
    {"first n_params", [](Trace& t) { t.n_params = 1; }},
    {"first n_params", [](Trace& t) { t.n_params = 3; }},
    {"another number", [](Trace& t) { t.ops[1].imm = 0; }},
    {"unknown kind", [](Trace& t) { t.ops[5].kind = static_cast<OpKind>(200); }},
    {"unknown reason", [](Trace& t) { t.reason = static_cast<Reason>(200); }},
    {"unknown anchor", [](Trace& t) { t.anchor = static_cast<AnchorKind>(3); }},
    {"number", [](Trace& t) { t.number = -3; }},
    {"facts", [](Trace& t) { t.facts[0].rank = 65; }},
    {"facts", [](Trace& t) { t.facts[0].dtype = DType::kCount; }},
    {"folded",
     [](Trace& t) {
       t.folded.push_back({8, 0, -1});
     }},
    {"folded",
     [](Trace& t) {
       t.folded.push_back({0, 9, -1});
     }},
    {"folded",
     [](Trace& t) {
       t.folded.push_back({0, 0, -2});
     }},
    {"index out of range", [](Trace& t) { t.ops[2].object = 4; }},
    {"index out of range", [](Trace& t) { t.ops[2].object2 = -2; }},
    {"index out of range", [](Trace& t) { t.ops[7].name = 1; }},
    {"index out of range", [](Trace& t) { t.ops[7].snapshot = 2; }},
    {"index out of range", [](Trace& t) { t.ops[3].facts = INT32_MAX; }},
    {"effects", [](Trace& t) { t.ops[3].effects = kReadsMemory; }},
    {"place", [](Trace& t) { t.ops[3].at = -2; }},
    {"no object", [](Trace& t) { t.ops[2].object = -1; }},
    {"no name", [](Trace& t) { t.ops[7].name = -1; }},
    {"no facts", [](Trace& t) { t.ops[3].facts = -1; }},
    {"no snapshot", [](Trace& t) { t.ops[10].snapshot = -1; }},
    {"exit_snapshot", [](Trace& t) { t.ops[10].exit_snapshot = 0; }},
    {"exit_snapshot", [](Trace& t) { t.ops[9].kind = OpKind::iter_next; }},
    {"immediate", [](Trace& t) { t.ops[4].imm = 13; }},
    {"immediate", [](Trace& t) { t.ops[4].imm = -1; }},
    {"immediate", [](Trace& t) { t.ops.back().imm = -1; }},
    {"no such snapshot", [](Trace& t) { t.ops.back().imm = 3; }},
    {"inputs out of range", [](Trace& t) { t.ops[4].first_input = INT32_MAX; }},
    {"inputs out of range", [](Trace& t) { t.ops[4].first_input = -1; }},
    {"inputs out of range", [](Trace& t) { t.ops[8].n_inputs = 500; }},
    {"inputs out of range", [](Trace& t) { t.ops[8].n_inputs = -1; }},
    {"number of inputs", [](Trace& t) { t.ops[4].n_inputs = 1; }},
    {"not defined before", [](Trace& t) { t.inputs[1] = 4; }},
    {"not defined before", [](Trace& t) { t.inputs[1] = 12; }},
    {"not defined before", [](Trace& t) { t.inputs[1] = kNull; }},
    {"not defined before", [](Trace& t) { t.inputs.back() = 10; }},
    {"arguments", [](Trace& t) { t.ops[8].imm = 1; }},
    {"end", [](Trace& t) { t.ops.pop_back(); }},
    {"end", [](Trace& t) { t.ops.push_back(t.ops.back()); }},
    {"array function", [](Trace& t) { t.ops[4].fn = ArrayFn::kCount; }},
    {"without facts", [](Trace& t) { t.ops[4].facts = -1; }},
    {"too few inputs", [](Trace& t) { t.ops[4].fn = ArrayFn::where; }},
    {"its snapshot", [](Trace& t) { t.snapshots.slots[1] = 4; }},
    {"no such value", [](Trace& t) { t.snapshots.slots[1] = 10; }},
    {"no such value", [](Trace& t) { t.snapshots.slots.back() = 99; }},
    {"no such value", [](Trace& t) { t.snapshots.slots.back() = -2; }},
    {"no such local", [](Trace& t) { t.snapshots.slots[0] = 2; }},
    {"without function", [](Trace& t) { t.snapshots.frames[0].function = kNull; }},
    {"without code", [](Trace& t) { t.snapshots.frames[0].code = -1; }},
    {"without code", [](Trace& t) { t.snapshots.frames[0].code = 4; }},
    {"negative offset", [](Trace& t) { t.snapshots.frames[0].offset = -1; }},
    {"return action", [](Trace& t) { t.snapshots.frames[0].action = kReturnActions; }},
    {"without frames", [](Trace& t) { t.snapshots.tops[0] = 2; }},
    {"what it builds on", [](Trace& t) { t.snapshots.frames[0].base = 0; }},
    {"what it builds on", [](Trace& t) { t.snapshots.frames[1].outer = 1; }},
    {"builds on another", [](Trace& t) { t.snapshots.frames[1].base = 0, t.snapshots.frames[1].code = 2; }},
    {"of nowhere", [](Trace& t) { t.snapshots.frames[0].kept = 1; }},
    {"slots out of range", [](Trace& t) { t.snapshots.frames[1].pushed = 2; }},
    {"negative count", [](Trace& t) { t.snapshots.frames[1].changed = -1; }},
    {"too many slots", [](Trace& t) { t.snapshots.frames[0].n_locals = INT32_MAX; }},
    {"no entry", [](Trace& t) { t.anchor = AnchorKind::loop; }},
    {"without parent", [](Trace& t) { t.anchor = AnchorKind::exit; }},
    {"neither parameter", [](Trace& t) { t.anchor = AnchorKind::loop, t.entry = t.snapshot(1); }},
};

TEST(Verify, RefusesEachDamage) {
  for (const Damage& damage : kDamages) {
    Trace t = testing::small_trace();
    damage.apply(t);
    EXPECT_NE(verify(t).find(damage.what), std::string::npos) << damage.what << " expected, got: " << verify(t);
  }
}

// The item an exhausted iterator was not expected to give exists on that exit only.
TEST(Verify, UnexpectedItemOnlyOnItsExit) {
  Trace t = testing::small_trace();
  t.snapshots.add(Snapshot{{SnapshotFrame{2, 3, 9, 0, {0, 1}, {9}, 0}}});
  t.ops[9].kind = OpKind::iter_next;
  t.ops[9].exit_snapshot = 2;
  t.ops[10].kind = OpKind::release;  // instead of guard_true v9
  t.ops[10].n_inputs = 0;
  t.ops[11].n_inputs = 2;  // release v7 v8
  EXPECT_EQ(verify(t), "");
  Trace bad = t;
  bad.ops[9].imm = 1;
  EXPECT_NE(verify(bad), "");
  bad = t;
  bad.ops[9].snapshot = 2;
  EXPECT_NE(verify(bad), "");
  bad = t;
  bad.ops[11].n_inputs = 3;
  EXPECT_NE(verify(bad), "");
}

// small_trace() releases v7, v8 and v9 in op 11.
TEST(Verify, WhatWasReleasedIsGone) {
  const Trace whole = testing::small_trace();
  ASSERT_EQ(whole.ops[11].kind, OpKind::release);
  Trace t = whole;
  t.inputs[t.ops[11].first_input + 1] = t.inputs[t.ops[11].first_input];
  EXPECT_NE(verify(t).find("released twice"), std::string::npos) << verify(t);
  t = whole;
  t.inputs[t.ops[11].first_input] = t.inputs[t.ops[12].first_input];  // what is returned next
  EXPECT_NE(verify(t).find("used after its release"), std::string::npos) << verify(t);
  t = whole;
  t.inputs[t.ops[11].first_input] = 0;  // a local in every snapshot
  EXPECT_EQ(verify(t), "");
  std::swap(t.ops[10], t.ops[11]);  // guard_true after the release
  EXPECT_NE(verify(t).find("used after its release"), std::string::npos) << verify(t);
  t.inputs[t.ops[11].first_input] = 1;
  EXPECT_NE(verify(t).find("names a value that was released"), std::string::npos) << verify(t);
}

std::string links(const Trace& trace, const std::vector<Trace>& traces) {
  EXPECT_EQ(verify(trace), "");
  return verify_links(trace, traces);
}

TEST(Verify, SideTraceFitsItsExit) {
  const Trace root = testing::small_trace();
  Trace side = root;
  side.number = 1;
  side.anchor = AnchorKind::exit;
  side.parent = 0;
  side.parent_op = 3;
  side.entry = root.snapshot(0);
  EXPECT_EQ(links(root, {root, side}), "");
  EXPECT_EQ(links(side, {root, side}), "");
  EXPECT_EQ(links(side, {side}), "its parent is not there");
  Trace bad = side;
  bad.parent_op = 0;
  EXPECT_EQ(links(bad, {root, bad}), "its parent does not leave there");
  bad.parent_op = 3, bad.parent_exit = 1;
  EXPECT_EQ(links(bad, {root, bad}), "its parent does not leave there");
  const char* const kElsewhere = "its parent leaves at another place";
  bad = side, bad.entry.frames[0].stack.push_back(0);
  EXPECT_EQ(links(bad, {root, bad}), kElsewhere);
  bad = side, bad.entry.frames[0].locals[1] = kNull;
  EXPECT_EQ(links(bad, {root, bad}), kElsewhere);
  bad = side, bad.entry.frames[0].offset++;
  EXPECT_EQ(links(bad, {root, bad}), kElsewhere);
  bad = side, bad.objects[3].fingerprint = "code:01";
  EXPECT_EQ(links(bad, {root, bad}), kElsewhere);
  Trace a = side, b = side;
  a.parent = 2;
  b.number = 2, b.parent = 1;
  EXPECT_EQ(links(a, {root, a, b}), "its parents are a cycle");
}

TEST(Verify, JumpFitsItsAnchor) {
  Trace root = testing::small_trace();
  Trace loop = root;
  loop.number = 1;
  loop.anchor = AnchorKind::loop;
  loop.entry = root.snapshot(0);
  Op& end = root.ops.back();
  end.kind = OpKind::jump;
  end.n_inputs = 0, end.imm = 1, end.snapshot = 0;
  EXPECT_EQ(links(root, {root, loop}), "");
  EXPECT_EQ(links(root, {root}), "jumps to a trace that is not there");
  loop.entry.frames[0].offset = 5;
  EXPECT_EQ(links(root, {root, loop}), "jumps to a trace of another place");
}

TEST(Print, SmallTrace) {
  const std::string text = print(testing::small_trace());
  EXPECT_NE(text.find("trace 0 entry\n  v0 = param 0"), std::string::npos) << text;
  EXPECT_NE(text.find("v4 = binary:multiply v0 v1 * float64[2]"), std::string::npos) << text;
  EXPECT_NE(text.find("guard_true v9"), std::string::npos) << text;
  EXPECT_NE(text.find("s1: v2+9 [v0 v1 | v6]"), std::string::npos) << text;
}

// Whatever is in a trace, it can be printed and is either accepted or refused.
TEST(Print, SurvivesAnything) {
  std::mt19937_64 random(2);
  int refused = 0;
  for (int i = 0; i < 3000; i++) {
    Trace t = testing::random_trace(random, 10);
    for (int n = 0; n < 3; n++) {
      Op& op = t.ops[random() % t.ops.size()];
      int32_t* const fields[] = {&op.imm,      &op.object,   &op.object2,       &op.name,  &op.first_input,
                                 &op.n_inputs, &op.snapshot, &op.exit_snapshot, &op.facts, &op.depth};
      *fields[random() % std::size(fields)] = static_cast<int32_t>(random() % 64) - 8;
      if (random() % 4 == 0) op.kind = static_cast<OpKind>(random() % 256);
    }
    refused += !verify(t).empty();
    EXPECT_FALSE(print(t).empty());
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace dalsegno
