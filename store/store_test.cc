// What the store keeps and gives back: traces, trees, kernels, space, queries.
#include "store/store.h"

#include <thread>

#include "store/testing.h"
#include "trace/fault.h"

namespace dalsegno::store {
namespace {

using namespace testing;

struct StoreTest : ::testing::Test {
  TempDir directory;
  std::string file = directory.file();
  Store store;
  void SetUp() override { ASSERT_TRUE(store.open(file)) << store.why(); }
};

TEST_F(StoreTest, RandomTracesComeBack) {
  std::mt19937_64 random(7);
  std::vector<Trace> traces;
  for (int i = 0; i < 60; i++) {
    Trace t = dalsegno::testing::random_trace(random, i);
    t.anchor = AnchorKind::entry;  // what hangs on others is tested below
    t.parent = t.parent_op = -1, t.parent_exit = 0;
    if (t.ops.back().kind == OpKind::jump) t.ops.back().kind = OpKind::leave;
    ASSERT_TRUE(store.save_trace("key " + std::to_string(i), t, "module.name")) << store.why();
    traces.push_back(std::move(t));
  }
  Store other;
  ASSERT_TRUE(other.open(file));
  for (int i = 0; i < 60; i++) EXPECT_EQ(other.load_traces("key " + std::to_string(i)), std::vector<Trace>{traces[i]});
  EXPECT_TRUE(other.load_traces("key 60").empty());
  const Stats stats = other.stats();
  EXPECT_EQ(stats.traces, 60u);
  EXPECT_EQ(stats.functions, 60u);
  EXPECT_EQ(stats.hits, 60u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.errors, 0u);
  EXPECT_EQ(store.verify().damaged, 0u);
}

TEST_F(StoreTest, WholeTree) {
  const Trace root = root_trace(), one = side_trace(root, 1), two = side_trace(one, 5);
  EXPECT_TRUE(store.save_trace("f", root));
  EXPECT_TRUE(store.save_trace("f", one, "", identity_of(root)));
  EXPECT_TRUE(store.save_trace("f", two, "", identity_of(one)));
  EXPECT_TRUE(store.save_trace("f", two, "", identity_of(one)));  // the same again
  Store other;
  ASSERT_TRUE(other.open(file));
  EXPECT_EQ(other.load_traces("f"), (std::vector<Trace>{root, one, two}));
  EXPECT_TRUE(other.save_trace("f", side_trace(two, 6), "", identity_of(two)));  // what was loaded can be built on
}

// Two processes recorded the same function on different inputs: the first one's tree is kept, the other's side traces never get into it.
TEST_F(StoreTest, ASideTraceStaysWithItsOwnParent) {
  const Trace root = root_trace();
  Trace other_root = root;
  other_root.ops[4].imm = static_cast<int32_t>(BinaryOp::subtract);
  Store other;
  ASSERT_TRUE(other.open(file));
  EXPECT_TRUE(store.save_trace("f", root));
  EXPECT_FALSE(other.save_trace("f", other_root));
  EXPECT_FALSE(other.save_trace("f", side_trace(other_root, 1), "", identity_of(other_root)));
  EXPECT_FALSE(store.save_trace("f", side_trace(root, 1)));
  EXPECT_TRUE(store.save_trace("f", side_trace(root, 1), "", identity_of(root)));
  EXPECT_EQ(other.load_traces("f").size(), 2u);
  // The parent goes away and another comes in its place.
  raw_sql(file, "DELETE FROM trace_data WHERE number = 0");
  EXPECT_FALSE(store.save_trace("f", side_trace(root, 2), "", identity_of(root)));
  EXPECT_TRUE(other.save_trace("f", other_root));
  EXPECT_FALSE(store.save_trace("f", side_trace(root, 2), "", identity_of(root)));
  ASSERT_TRUE(plant("foreign_parent"));
  EXPECT_EQ(store.load_traces("f").size(), 2u);  // what is looked for below
  plant("");
  EXPECT_EQ(store.load_traces("f"), std::vector<Trace>{other_root});
  store.tidy();
  EXPECT_EQ(store.stats().traces, 1u);  // the orphan was deleted
}

TEST_F(StoreTest, AJumpWaitsForItsTarget) {
  Trace root = root_trace(), loop = root;
  loop.number = 1;
  loop.anchor = AnchorKind::loop;
  loop.entry = root.snapshot(0);
  root.ops.back().kind = OpKind::jump;
  root.ops.back().n_inputs = 0, root.ops.back().imm = 1, root.ops.back().snapshot = 0;
  EXPECT_TRUE(store.save_trace("f", root));
  EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_TRUE(store.save_trace("f", loop));
  EXPECT_EQ(store.load_traces("f"), (std::vector<Trace>{root, loop}));
}

TEST_F(StoreTest, RefusesWhatVerifyRefuses) {
  Trace bad = root_trace();
  bad.inputs[1] = 99;
  EXPECT_FALSE(store.save_trace("f", bad));
  EXPECT_FALSE(store.save_trace(std::string(5000, 'k'), root_trace()));
  EXPECT_EQ(store.stats().traces, 0u);
  EXPECT_EQ(store.errors(), 2u);
}

TEST_F(StoreTest, Kernels) {
  const std::string object(100000, '\xc3'), key("key\0with zero", 13);
  EXPECT_FALSE(store.get_kernel(key).has_value());
  EXPECT_TRUE(store.put_kernel(key, object, "v0 = add a b"));
  EXPECT_TRUE(store.put_kernel("empty", "", ""));
  Store other;
  ASSERT_TRUE(other.open(file));
  EXPECT_EQ(other.get_kernel(key), object);
  EXPECT_EQ(other.get_kernel("empty"), "");
  EXPECT_FALSE(other.get_kernel("key").has_value());
  EXPECT_TRUE(store.clear());
  EXPECT_FALSE(other.get_kernel(key).has_value());
  EXPECT_LT(store.stats().bytes, 100000u);
}

TEST_F(StoreTest, OldestGoesFirst) {
  Options options;
  options.max_bytes = 1 << 20;
  ASSERT_TRUE(store.open(file, options));
  const std::string object(100000, 'x');
  ASSERT_TRUE(store.save_trace("f", root_trace()));
  for (int i = 0; i < 8; i++) ASSERT_TRUE(store.put_kernel("k" + std::to_string(i), object, ""));
  for (int i = 0; i < 8; i++)
    raw_sql(file, "UPDATE kernels SET last_used = " + std::to_string(1000 - i) + " WHERE key = 'k" + std::to_string(i) + "'");
  raw_sql(file, "UPDATE functions SET last_used = 2000");
  EXPECT_TRUE(store.get_kernel("k7").has_value());  // the oldest, but used again now
  for (int i = 8; i < 12; i++) ASSERT_TRUE(store.put_kernel("k" + std::to_string(i), object, "")) << store.why();
  EXPECT_GT(store.stats().evictions, 0u);
  EXPECT_TRUE(store.get_kernel("k7").has_value());
  EXPECT_FALSE(store.get_kernel("k6").has_value());
  EXPECT_TRUE(store.get_kernel("k11").has_value());
  for (int i = 12; i < 80; i++) {
    ASSERT_TRUE(store.put_kernel("k" + std::to_string(i), object, "")) << store.why();
    ASSERT_LE(std::filesystem::file_size(file), options.max_bytes * 11 / 10);
  }
  EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_FALSE(store.put_kernel("large", std::string(600000, 'x'), ""));
  EXPECT_EQ(store.verify().damaged, 0u);
}

TEST_F(StoreTest, ReadsHardlyEverWrite) {
  ASSERT_TRUE(store.put_kernel("k", "object", ""));
  ASSERT_TRUE(store.save_trace("f", root_trace()));
  const std::string before = read_bytes(file);
  EXPECT_TRUE(store.get_kernel("k").has_value());
  EXPECT_EQ(store.load_traces("f").size(), 1u);
  EXPECT_EQ(read_bytes(file), before);
}

// A user's call waits for loading: what else is to be done is left to whoever has time.
TEST_F(StoreTest, LoadingLeavesItsChoresToTidy) {
  ASSERT_TRUE(store.save_trace("f", root_trace()));
  ASSERT_TRUE(store.save_trace("f", side_trace(root_trace(), 1), "", identity_of(root_trace())));
  raw_sql(file, "UPDATE functions SET last_used = 7; UPDATE trace_data SET data = x'00' WHERE number = 1");
  const std::string before = read_bytes(file);
  Store other;
  ASSERT_TRUE(other.open(file));
  EXPECT_FALSE(other.untidy());
  EXPECT_EQ(other.load_traces("f").size(), 1u);
  EXPECT_EQ(read_bytes(file), before);
  EXPECT_TRUE(other.untidy());
  other.tidy();
  EXPECT_FALSE(other.untidy());
  EXPECT_EQ(other.query("SELECT COUNT(*) FROM functions WHERE last_used = 7").rows.at(0).at(0), Value(int64_t{0}));
  EXPECT_EQ(other.query("SELECT number FROM trace_data").rows, (std::vector<std::vector<Value>>{{int64_t{0}}}));
  EXPECT_EQ(other.load_traces("f").size(), 1u);
  EXPECT_FALSE(other.untidy());
}

// A trace is known by the same name to who has recorded it and to who has loaded it.
TEST_F(StoreTest, IdentityIsWhatWasKept) {
  std::string saved;
  ASSERT_TRUE(store.save_trace("f", root_trace(), "", "", &saved));
  std::vector<std::string> loaded;
  ASSERT_EQ(store.load_traces("f", &loaded).size(), 1u);
  EXPECT_EQ(loaded, std::vector<std::string>{saved});
  EXPECT_EQ(identity_of(root_trace()), saved);
}

TEST_F(StoreTest, QueryOnlyReads) {
  ASSERT_TRUE(store.save_trace("f", root_trace(), "job"));
  const QueryResult ops = store.query("SELECT kind, line, NULL, 1.5, x'00ff' FROM ops WHERE op = 4");
  EXPECT_EQ(ops.error, "");
  EXPECT_EQ(ops.columns.size(), 5u);
  EXPECT_EQ(ops.rows,
            (std::vector<std::vector<Value>>{{std::string("binary"), int64_t{2}, std::monostate{}, 1.5, Blob{std::string("\0\xff", 2)}}}));
  for (const char* sql :
       {"DELETE FROM ops", "PRAGMA user_version=7", "ATTACH ':memory:' AS m", "SELECT 1; DELETE FROM ops", "", "-- nothing",
        "CREATE TABLE t(x)", "SELECT * FROM nowhere", "SELECT load_extension('x')", "VACUUM INTO '/tmp/dalsegno-no'"}) {
    EXPECT_NE(store.query(sql).error, "") << sql;
  }
  EXPECT_EQ(store.query("SELECT COUNT(*) FROM ops").rows[0][0], Value(int64_t{13}));
  EXPECT_EQ(store.query("SELECT 1; ").error, "");
  EXPECT_NE(store.query("SELECT * FROM nowhere").error.find("no such table: nowhere"), std::string::npos);
}

TEST_F(StoreTest, RowsForPeople) {
  const Trace root = root_trace();
  ASSERT_TRUE(store.save_trace("f", root, "module.job"));
  ASSERT_TRUE(store.save_trace("f", side_trace(root, 1), "module.job", identity_of(root)));
  auto one = [&](const char* sql) { return store.query(sql).rows.at(0).at(0); };
  EXPECT_EQ(one("SELECT name FROM functions"), Value(std::string("module.job")));
  EXPECT_EQ(one("SELECT text FROM ops WHERE trace = 0 AND op = 4"), Value(std::string("v4 = binary:multiply v0 v1 * float64[2]")));
  EXPECT_EQ(one("SELECT COUNT(*) FROM guards WHERE trace = 0"), Value(int64_t{2}));
  EXPECT_EQ(one("SELECT side_trace FROM exits WHERE trace = 0 AND op = 3"), Value(int64_t{1}));
  EXPECT_EQ(one("SELECT text FROM ops WHERE trace = 0 AND op = 10"), Value(std::string("guard_true v9")));
  EXPECT_EQ(one("SELECT array_fn || facts || line || depth || snapshot FROM ops WHERE trace = 0 AND op = 4"),
            Value(std::string("multiplyfloat64[2]200")));
  EXPECT_EQ(one("SELECT COUNT(*) FROM ops WHERE trace = 0 AND snapshot IS NULL"), Value(int64_t{6}));
  EXPECT_EQ(one("SELECT source FROM objects WHERE trace = 0 AND object = 2"), Value(std::string("module:numpy")));
}

TEST_F(StoreTest, ExperienceIsReplacedAndDroppedWithItsFunction) {
  const Experience first{{{-1, -1, 0, 15, "exception"}, {0, 7, 1, 100, "opcode"}}, {{42, true, 10.5, 3.25}, {0, false, 1, 2}}};
  Experience in_order = first;  // of the keys
  std::swap(in_order.verdicts[0], in_order.verdicts[1]);
  ASSERT_TRUE(store.save_experience("f", first, "module.job"));
  EXPECT_EQ(store.load_experience("f"), in_order);
  EXPECT_EQ(store.load_experience("g"), Experience());
  EXPECT_EQ(store.query("SELECT points FROM penalties WHERE reason = 'opcode'").rows.at(0).at(0), Value(int64_t{100}));
  ASSERT_TRUE(store.save_experience("f", {{{0, 7, 1, 30, "exception"}}, {}}));
  EXPECT_EQ(store.load_experience("f"), (Experience{{{0, 7, 1, 30, "exception"}}, {}}));
  ASSERT_TRUE(store.drop_function("f"));
  EXPECT_EQ(store.load_experience("f"), Experience());
}

TEST_F(StoreTest, RegionsComeWithTheTraces) {
  const KeptRegion loop{1, 4, 800}, larger{1, 6, 600}, other{3, 5, 800};
  EXPECT_FALSE(store.save_region("f", loop));  // of what is not there
  ASSERT_TRUE(store.save_trace("f", root_trace()));
  for (const KeptRegion& region : {loop, other, larger}) ASSERT_TRUE(store.save_region("f", region));
  std::vector<KeptRegion> found;
  EXPECT_EQ(store.load_traces("f", nullptr, &found).size(), 1u);
  EXPECT_EQ(found, (std::vector<KeptRegion>{larger, other}));
  ASSERT_TRUE(store.save_experience("f", {{}, {{42, true, 10.5, 3.25}}}));
  store.load_traces("f", nullptr, &found);
  EXPECT_EQ(found.size(), 2u);  // it is not part of what that replaces
  ASSERT_TRUE(store.drop_function("f"));
  EXPECT_EQ(store.query("SELECT COUNT(*) FROM regions").rows.at(0).at(0), Value(int64_t{0}));
}

TEST_F(StoreTest, DamagedRegionsAreForgotten) {
  ASSERT_TRUE(store.save_trace("f", root_trace()));
  ASSERT_TRUE(store.save_region("f", {1, 4, 800}));
  store.close();
  raw_sql(file, "UPDATE regions SET below = 5");
  ASSERT_TRUE(store.open(file));
  std::vector<KeptRegion> found;
  EXPECT_EQ(store.load_traces("f", nullptr, &found).size(), 1u);
  EXPECT_TRUE(found.empty());
  store.tidy();
  EXPECT_EQ(store.query("SELECT COUNT(*) FROM regions").rows.at(0).at(0), Value(int64_t{0}));
}

TEST_F(StoreTest, DamagedExperienceIsForgotten) {
  ASSERT_TRUE(store.save_experience("f", {{{0, 7, 1, 100, "opcode"}}, {{42, true, 10.5, 3.25}}}));
  store.close();
  raw_sql(file, "UPDATE penalties SET points = 0; UPDATE verdicts SET eager_ns = 'x'");
  ASSERT_TRUE(store.open(file));
  EXPECT_EQ(store.load_experience("f"), Experience());
  store.tidy();
  EXPECT_EQ(store.query("SELECT COUNT(*) FROM penalties").rows.at(0).at(0), Value(int64_t{0}));
}

TEST_F(StoreTest, Threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; i++) {
        const std::string key = std::to_string(i) + " " + std::to_string(t % 2);
        store.put_kernel(key, "object " + key, "");
        const auto object = store.get_kernel(key);
        EXPECT_TRUE(!object || *object == "object " + key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.verify().damaged, 0u);
}

TEST(Store, ClosedIsAMissNotAnError) {
  Store store;
  EXPECT_FALSE(store.open(""));
  EXPECT_FALSE(store.save_trace("f", root_trace()));
  EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_EQ(store.stats().errors, 0u);
  EXPECT_EQ(store.path(), "");
  EXPECT_EQ(store.query("SELECT 1").error, "no store: no store is configured");
}

}  // namespace
}  // namespace dalsegno::store
