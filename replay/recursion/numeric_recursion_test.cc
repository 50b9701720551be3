#include "replay/recursion/numeric_recursion.h"

#include <gtest/gtest.h>

#include "trace/samples.h"

namespace dalsegno::recursion {
namespace {

// Traces op by op; all exits have the parameters in their slots.
class Written {
 public:
  Written(AnchorKind anchor, int32_t n) {
    Trace& t = b_.trace;
    t.anchor = anchor;
    t.n_params = n;
    SnapshotFrame frame;
    for (int32_t k = 0; k < n; ++k) add(OpKind::param, {}, k), frame.locals.push_back(k);
    t.entry.frames = {frame};
    numeric_.trace = &t;
  }
  ValueId add(OpKind kind, const std::vector<ValueId>& inputs, int32_t imm = 0) { return b_.add(kind, inputs, imm); }
  ValueId constant(const Known& known) {
    const ValueId v = add(OpKind::constant, {});
    b_.last().object = static_cast<int32_t>(numeric_.objects.size());
    numeric_.objects.push_back(known);
    return v;
  }
  ValueId number(int64_t n) { return constant({.rep = Rep::kInt, .bits = n}); }
  // Where it fails, `side` goes on.
  void guard(OpKind kind, ValueId on, int32_t side) {
    const ValueId v = add(kind, {on});
    Snapshot here;
    here.frames = b_.trace.entry.frames;
    b_.last().snapshot = b_.snapshot(here);
    if (side >= 0) numeric_.sides[v] = side;
  }
  const NumericTrace& done() { return numeric_; }

 private:
  testing::TraceBuilder b_;
  NumericTrace numeric_;
};

// def f(n): return 0 if n == 0 else n + f(n - 1)
struct Total {
  Written entry{AnchorKind::entry, 1}, end{AnchorKind::exit, 1};
  explicit Total(bool ends = true) {
    const ValueId itself = entry.constant({.itself = true}), zero = entry.number(0), one = entry.number(1);
    entry.guard(OpKind::guard_false, entry.add(OpKind::compare, {0, zero}, 2), ends ? 1 : -1);
    const ValueId less = entry.add(OpKind::binary, {0, one}, static_cast<int32_t>(BinaryOp::subtract));
    const ValueId rest = entry.add(OpKind::call_tree, {itself, less}, 1);
    entry.add(OpKind::return_, {entry.add(OpKind::binary, {0, rest}, static_cast<int32_t>(BinaryOp::add))});
    end.add(OpKind::return_, {end.number(0)});
  }
  std::unique_ptr<const NumericRecursion> make() {
    return NumericRecursion::make({entry.done(), end.done()}, {{{Rep::kInt, nullptr}}, Rep::kInt});
  }
};

bool run(const NumericRecursion& code, int64_t n, int64_t frames, int64_t calls, int64_t* result) {
  return code.run(&n, frames, &calls, result);
}

TEST(NumericRecursion, CallsItself) {
  const auto code = Total().make();
  ASSERT_NE(code, nullptr);
  int64_t result = -1;
  EXPECT_TRUE(run(*code, 0, 10, 10, &result));
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(run(*code, 100, 1000, 1000, &result));
  EXPECT_EQ(result, 5050);
}

TEST(NumericRecursion, MakesNoMoreCallsAndFramesThanItMay) {
  const auto code = Total().make();
  int64_t result = -1;
  EXPECT_TRUE(run(*code, 9, 10, 10, &result));
  EXPECT_FALSE(run(*code, 10, 10, 100, &result));
  EXPECT_FALSE(run(*code, 10, 100, 10, &result));
  EXPECT_FALSE(run(*code, 0, 0, 10, &result));
  EXPECT_FALSE(run(*code, -1, 1000, 1000, &result));
  EXPECT_EQ(result, 45);
}

TEST(NumericRecursion, SaysHowManyCallsAreLeft) {
  const auto code = Total().make();
  int64_t n = 9, calls = 100, result = 0;
  EXPECT_TRUE(code->run(&n, 100, &calls, &result));
  EXPECT_EQ(calls, 90);
}

TEST(NumericRecursion, GivesUpWhereIntsDoNotFit) {
  const auto code = Total().make();
  int64_t result = -1;
  EXPECT_FALSE(run(*code, INT64_MIN, 1000, 1000, &result));
  EXPECT_EQ(result, -1);
}

TEST(NumericRecursion, GivesUpWhereNoTraceGoesOn) {
  const auto code = Total(false).make();
  ASSERT_NE(code, nullptr);
  int64_t result = -1;
  EXPECT_FALSE(run(*code, 3, 1000, 1000, &result));
}

TEST(NumericRecursion, NeedsACallOfItself) {
  Written f(AnchorKind::entry, 1);
  f.add(OpKind::return_, {0});
  EXPECT_EQ(NumericRecursion::make({f.done()}, {{{Rep::kInt, nullptr}}, Rep::kInt}), nullptr);
  EXPECT_EQ(NumericRecursion::make({}, {{}, Rep::kInt}), nullptr);
}

// def f(a, b): return f(b, a) if a < b else a // b (or another operator)
struct Operation {
  Written entry{AnchorKind::entry, 2}, end{AnchorKind::exit, 2};
  explicit Operation(BinaryOp op) {
    const ValueId itself = entry.constant({.itself = true});
    entry.guard(OpKind::guard_true, entry.add(OpKind::compare, {0, 1}, 0), 1);
    entry.add(OpKind::return_, {entry.add(OpKind::call_tree, {itself, 1, 0}, 2)});
    end.add(OpKind::return_, {end.add(OpKind::binary, {0, 1}, static_cast<int32_t>(op))});
  }
  bool run(int64_t a, int64_t b, int64_t* result) {
    const auto code = NumericRecursion::make({entry.done(), end.done()}, {{{Rep::kInt, nullptr}, {Rep::kInt, nullptr}}, Rep::kInt});
    const int64_t arguments[] = {a, b};
    int64_t calls = 100;
    return code && code->run(arguments, 100, &calls, result);
  }
};

TEST(NumericRecursion, DividesAsPythonDoes) {
  int64_t result = 0;
  for (int64_t a = -7; a <= 7; ++a) {
    for (int64_t b = a - 9; b <= a; ++b) {
      if (b == 0 || b == -1) continue;
      const int64_t quotient = a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
      ASSERT_TRUE(Operation(BinaryOp::floor_divide).run(a, b, &result)) << a << " " << b;
      EXPECT_EQ(result, quotient) << a << " // " << b;
      ASSERT_TRUE(Operation(BinaryOp::remainder).run(a, b, &result));
      EXPECT_EQ(result, a - quotient * b) << a << " % " << b;
    }
  }
  EXPECT_FALSE(Operation(BinaryOp::floor_divide).run(5, 0, &result));
  EXPECT_FALSE(Operation(BinaryOp::remainder).run(5, 0, &result));
  EXPECT_FALSE(Operation(BinaryOp::floor_divide).run(5, -1, &result));
}

TEST(NumericRecursion, ShiftsWhatFits) {
  int64_t result = 0;
  EXPECT_TRUE(Operation(BinaryOp::lshift).run(5, 3, &result));
  EXPECT_EQ(result, 40);
  EXPECT_FALSE(Operation(BinaryOp::lshift).run(INT64_MAX, 1, &result));
  EXPECT_FALSE(Operation(BinaryOp::lshift).run(1000, 63, &result));
  EXPECT_FALSE(Operation(BinaryOp::rshift).run(5, -1, &result));
  EXPECT_TRUE(Operation(BinaryOp::rshift).run(1000, 3, &result));
  EXPECT_EQ(result, 125);
}

}  // namespace
}  // namespace dalsegno::recursion
