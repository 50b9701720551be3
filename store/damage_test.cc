// Whatever happens to the file or to a call: the right value or a miss, never a crash, and the store works on afterwards.
// DALSEGNO_SOAK=1 tries all of what is sampled here.
#include <cstdlib>

#include "store/codec.h"
#include "store/testing.h"

namespace dalsegno::store {
namespace {

using namespace testing;

bool soak() { return std::getenv("DALSEGNO_SOAK") != nullptr; }

// A store with something of everything, in small pages.
struct Sample {
  TempDir directory;
  std::string file = directory.file();
  Options options;
  Trace root = root_trace();
  std::vector<Trace> all = {root, side_trace(root, 1), side_trace(root, 2)};  // by number
  std::vector<Trace> tree = {all[0], all[1]};                                 // what is saved at first
  const std::string kernel = std::string(3000, 'k');

  Sample() {
    options.page_size = 512;
    options.background_ms = 0;  // a fault is a fault the first time
    Store store;
    store.open(file, options);
    for (const Trace& trace : tree) EXPECT_TRUE(save(store, trace)) << store.why();
    EXPECT_TRUE(store.put_kernel("kernel", kernel, "text"));
    EXPECT_TRUE(store.put_kernel("other", "small", "text"));
  }

  bool save(Store& store, const Trace& trace) const {
    return store.save_trace("f", trace, "job", trace.number == 0 ? "" : identity_of(root));
  }

  // What comes back is right or not there.
  void expect_right_or_missing(Store& store) const {
    const std::vector<Trace> traces = store.load_traces("f");
    store.tidy();
    for (size_t i = 0; i < traces.size(); i++) {
      EXPECT_TRUE(traces[i] == all.at(static_cast<size_t>(traces[i].number)));
      EXPECT_TRUE(i == 0 || traces[i].number > traces[i - 1].number);
    }
    const auto object = store.get_kernel("kernel"), small = store.get_kernel("other");
    EXPECT_TRUE(!object || *object == kernel);
    EXPECT_TRUE(!small || *small == "small");
  }
  bool complete(Store& store) const {
    return store.load_traces("f") == tree && store.get_kernel("kernel") == kernel && store.get_kernel("other") == "small";
  }
  // What a process does that finds nothing: it makes it again.
  void make_again(Store& store) const {
    for (const Trace& trace : tree) save(store, trace);
    store.put_kernel("kernel", kernel, "text");
    store.put_kernel("other", "small", "text");
  }
};

struct Damage {
  const char* name;
  void (*apply)(std::string& bytes, size_t at, std::mt19937_64& random);
};
const Damage kDamages[] = {
    {"bit flip", [](std::string& b, size_t at, std::mt19937_64& r) { b[at] = static_cast<char>(b[at] ^ (1 << r() % 8)); }},
    {"zeroed page", [](std::string& b, size_t at, std::mt19937_64&) { b.replace(at / 512 * 512, 512, 512, '\0'); }},
    {"garbage page",
     [](std::string& b, size_t at, std::mt19937_64& r) {
       for (size_t i = at / 512 * 512, end = i + 512; i < end; i++) b[i] = static_cast<char>(r());
     }},
    {"truncated", [](std::string& b, size_t at, std::mt19937_64&) { b.resize(at); }},
    {"duplicated page",
     [](std::string& b, size_t at, std::mt19937_64& r) { b.replace(at / 512 * 512, 512, b.substr(r() % (b.size() / 512) * 512, 512)); }},
    {"torn page", [](std::string& b, size_t at, std::mt19937_64&) { b.replace(at / 512 * 512 + 256, 256, 256, '\0'); }},
    {"swapped pages",
     [](std::string& b, size_t at, std::mt19937_64& r) {
       const size_t i = at / 512 * 512, k = r() % (b.size() / 512) * 512;
       const std::string page = b.substr(i, 512);
       b.replace(i, 512, b.substr(k, 512));
       b.replace(k, 512, page);
     }},
};

// A damaged store is right or misses, and (unless its header no longer says that it is ours) is whole again once all was made again.
void survive(const Sample& sample, const std::string& bytes, const std::string& what) {
  SCOPED_TRACE(what);
  std::filesystem::remove(sample.file + ".damaged");
  write_bytes(sample.file, bytes);
  Store store;
  if (!store.open(sample.file, sample.options)) return;
  sample.expect_right_or_missing(store);
  for (int i = 0; i < 3 && !sample.complete(store); i++) sample.make_again(store);
  EXPECT_TRUE(sample.complete(store)) << store.why();
}

TEST(Damage, EveryByteOfASmallStore) {
  const Sample sample;
  const std::string good = read_bytes(sample.file);
  std::mt19937_64 random(11);
  size_t cases = 0;
  const size_t stride = soak() ? 1 : 13;
  for (size_t at = random() % stride; at < good.size(); at += stride) {
    for (int bit = 0; bit < 8; bit++) {
      if (!soak() && bit != static_cast<int>(random() % 8)) continue;
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      survive(sample, bytes, "bit " + std::to_string(bit) + " of byte " + std::to_string(at));
      cases++;
    }
    if (::testing::Test::HasFailure()) break;
  }
  std::printf("%zu bytes, %zu cases\n", good.size(), cases);
}

TEST(Damage, EveryPageInSevenWays) {
  const Sample sample;
  const std::string good = read_bytes(sample.file);
  std::mt19937_64 random(12);
  for (const Damage& damage : kDamages) {
    for (size_t page = 0; page < good.size(); page += 512) {
      std::string bytes = good;
      damage.apply(bytes, page + random() % 512, random);
      survive(sample, bytes, std::string(damage.name) + " at " + std::to_string(page));
    }
  }
}

TEST(Damage, BadRowsAreDeletedAndMadeAgain) {
  const Sample sample;
  Store store;
  ASSERT_TRUE(store.open(sample.file, sample.options));
  for (const char* sql : {
           "UPDATE trace_data SET data = CAST(substr(data, 1, 40) || x'55' || substr(data, 42) AS BLOB) WHERE number = 0",
           "UPDATE trace_data SET data = 7",
           "UPDATE trace_data SET sum = x'00'",
           "UPDATE trace_data SET link = x'00'",
           "UPDATE trace_data SET number = number + 1 WHERE number = 1",
           "UPDATE trace_data SET number = 'zero' WHERE number = 0",
           "UPDATE trace_data SET function = 'f' || char(0)",
           "UPDATE kernels SET object = 'text' WHERE key = 'kernel'",
           "UPDATE kernels SET object = x'cc' WHERE key = 'kernel'",
           "UPDATE kernels SET sum = NULL || 'x', description = 'other' WHERE key = 'kernel' AND 0",
           "UPDATE kernels SET description = 'other' WHERE key = 'kernel'",
           // one kernel's row, sum and all, under the key of another
           "UPDATE kernels SET key = CASE key WHEN 'kernel' THEN 'x' ELSE 'kernel' END; UPDATE kernels SET key = 'other' WHERE key = 'x'",
       }) {
    SCOPED_TRACE(sql);
    raw_sql(sample.file, sql);
    sample.expect_right_or_missing(store);
    for (int i = 0; i < 2; i++) sample.make_again(store);
    EXPECT_TRUE(sample.complete(store));
  }
  EXPECT_GT(store.stats().damaged, 8u);
}

TEST(Damage, VerifyFindsEveryTable) {
  const Sample sample;
  Store store;
  ASSERT_TRUE(store.open(sample.file, sample.options));
  ASSERT_TRUE(store.save_experience("f", {{{0, 7, 1, 100, "opcode"}}, {}}));
  const uint64_t rows = store.verify().rows;
  raw_sql(sample.file,
          "UPDATE functions SET name = 'x'; UPDATE traces SET ops = 0 WHERE number = 0; UPDATE listings SET ops = '[]' WHERE number = 1; "
          "UPDATE penalties SET reason = 'x'; UPDATE kernels SET created = 0 WHERE key = 'other'; UPDATE trace_data SET data = x'00' WHERE "
          "number "
          "= 1");
  const VerifyResult result = store.verify();
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.rows, rows);
  EXPECT_EQ(result.damaged, 6u);
  EXPECT_EQ(store.verify().rows, rows - 6);
  EXPECT_EQ(store.load_traces("f"), std::vector<Trace>{sample.root});
}

// Rows with right sums around bytes made to harm: what decodes is verified.
TEST(Damage, HostileRowsWithRightSums) {
  const Sample sample;
  Store store;
  ASSERT_TRUE(store.open(sample.file, sample.options));
  std::mt19937_64 random(13);
  const std::string good = encode_trace(sample.root);
  for (int i = 0; i < (soak() ? 100000 : 1500); i++) {
    std::string bad = good;
    for (int n = 1 + i % 4; n > 0; n--) bad[random() % bad.size()] = static_cast<char>(random());
    if (i % 10 == 0) bad.resize(random() % bad.size());
    {
      Database database;
      database.open(sample.file, SQLITE_OPEN_READWRITE);
      database.run("PRAGMA synchronous=OFF");
      Inserter(database, tables::trace_data).add({std::string("hostile"), int64_t{0}, Blob{}, Blob{bad}});
    }
    for (const Trace& trace : store.load_traces("hostile")) ASSERT_EQ(verify(trace), "");
  }
}

TEST(Damage, RowsOfOtherTypesWithRightSums) {
  const Sample sample;
  Store store;
  ASSERT_TRUE(store.open(sample.file, sample.options));
  ASSERT_TRUE(store.save_experience("f", {{}, {{42, true, 10.5, 3.25}}}));
  {
    Database database;
    database.open(sample.file, SQLITE_OPEN_READWRITE);
    const std::string text = "x";
    Inserter(database, tables::penalties).add({std::string("f"), int64_t{0}, int64_t{7}, int64_t{1}, text, text});
    Inserter(database, tables::verdicts).add({std::string("f"), text, int64_t{1}, 1.5, 2.5});
  }
  EXPECT_EQ(store.load_experience("f"), (Experience{{}, {{42, true, 10.5, 3.25}}}));
  store.tidy();
  EXPECT_EQ(store.query("SELECT COUNT(*) FROM penalties").rows.at(0).at(0), Value(int64_t{0}));
  EXPECT_EQ(store.errors(), 0u);
}

// ---- faults of the machine, injected -------------------------------------------------------------------------------------------

int countdown = -1, fault_code = SQLITE_OK, calls = 0;

int inject(const char*) {
  calls++;
  return countdown >= 0 && countdown-- == 0 ? fault_code : SQLITE_OK;
}

TEST(Damage, AFaultAtEveryCall) {
  for (int code : {SQLITE_IOERR, SQLITE_IOERR_FSYNC, SQLITE_NOMEM, SQLITE_BUSY, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_READONLY,
                   SQLITE_CORRUPT, SQLITE_PROTOCOL}) {
    for (int at = 0;; at++) {
      SCOPED_TRACE("code " + std::to_string(code) + " at call " + std::to_string(at));
      const Sample sample;
      Store store;
      fault_code = code, countdown = at, calls = 0;
      set_fault_hook(inject);
      store.open(sample.file, sample.options);
      sample.expect_right_or_missing(store);
      const bool saved = sample.save(store, sample.all[2]);
      const bool put = store.put_kernel("new", "new object", "");
      const bool fired = countdown < 0;
      set_fault_hook(nullptr);
      EXPECT_TRUE(!fired || store.stats().errors > 0);
      // What was acknowledged is there, unless all was set aside as corrupt later on.
      const bool aside = std::filesystem::exists(sample.file + ".damaged");
      Store after;
      ASSERT_TRUE(after.open(sample.file, sample.options)) << after.why();
      EXPECT_TRUE(!put || aside || after.get_kernel("new") == "new object");
      EXPECT_TRUE(!saved || aside || after.load_traces("f") == sample.all);
      sample.expect_right_or_missing(after);
      EXPECT_EQ(after.verify().damaged, 0u);
      if (!fired || ::testing::Test::HasFailure()) break;
      if (!soak()) at += at / 6;
    }
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(Damage, NoSpaceLeft) {
  TempDir directory;
  Options options;
  options.max_bytes = 400 << 10;
  Store store;
  ASSERT_TRUE(store.open(directory.file(), options));
  ASSERT_TRUE(store.put_kernel("k", std::string(100000, 'x'), ""));
  fault_code = SQLITE_FULL;
  set_fault_hook([](const char* operation) { return std::string_view(operation) == "step" && ++calls % 7 == 0 ? SQLITE_FULL : SQLITE_OK; });
  for (int i = 0; i < 20; i++) store.put_kernel("k" + std::to_string(i), std::string(50000, 'x'), "");
  set_fault_hook(nullptr);
  EXPECT_GT(store.stats().errors, 0u);
  EXPECT_TRUE(store.put_kernel("k", "object", ""));
  EXPECT_EQ(store.get_kernel("k"), "object");
  EXPECT_EQ(store.verify().damaged, 0u);
}

}  // namespace
}  // namespace dalsegno::store
