// Size, age and cleaning; counts and queries.
#include <unistd.h>

#include <string_view>

#include "store/store_impl.h"

namespace dalsegno::store {
namespace {

constexpr int64_t kTouchSeconds = 3600;  // how exact last_used is: a read should hardly ever write

// Tables with rows of a function.
struct PerFunction {
  const char* table;
  const char* number;  // its column with a trace's number, if it has one
  bool experience;
};
constexpr PerFunction kPerFunction[] = {{"trace_data", "number", false}, {"traces", "number", false},  {"listings", "number", false},
                                        {"regions", "trace", false},     {"penalties", "trace", true}, {"verdicts", nullptr, true}};

std::string delete_from(const char* table) { return std::string("DELETE FROM ") + table + " WHERE function = ?"; }

struct Item {
  bool kernel;
  std::string key;
};

// What can be dropped, longest unused first.
std::vector<Item> by_age(Database& database) {
  Statement statement(database,
                      "SELECT 0, d.function, MAX(COALESCE(f.last_used, 0)) AS used FROM (SELECT function FROM trace_data UNION SELECT key "
                      "FROM functions) d "
                      "LEFT JOIN functions f ON f.key = d.function GROUP BY d.function UNION ALL SELECT 1, key, last_used AS used FROM "
                      "kernels ORDER BY used");
  std::vector<Item> items;
  while (statement.step()) {
    const Value key = statement.column(1);
    const auto* text = std::get_if<std::string>(&key);
    const int64_t* kernel = statement.integer(0);
    if (text != nullptr && kernel != nullptr) items.push_back({*kernel != 0, *text});
  }
  return items;
}

struct BadRow {
  std::vector<std::string> columns;
  std::vector<Value> key;
};

// The rows of a table whose sum is wrong; counts all.
std::vector<BadRow> bad_rows(Database& database, const Table& table, uint64_t* rows) {
  std::vector<BadRow> bad;
  Statement statement(database, std::string("SELECT * FROM ") + table.name);
  while (statement.step()) {
    ++*rows;
    std::vector<Value> values;
    for (int i = 0; i < table.covered; i++) values.push_back(statement.column(i));
    const std::string* sum = statement.blob(table.covered);
    if (sum != nullptr && *sum == bytes(row_sum(table, values))) continue;
    BadRow row;
    for (int i = 0; i < table.key; i++) {
      row.columns.emplace_back(statement.column_name(i));
      row.key.push_back(values[static_cast<size_t>(i)]);
    }
    bad.push_back(std::move(row));
  }
  return bad;
}

void delete_row(Database& database, const Table& table, const BadRow& row) {
  std::string sql = std::string("DELETE FROM ") + table.name + " WHERE TRUE";
  for (const std::string& column : row.columns) sql += " AND " + column + " IS ?";
  Statement statement(database, sql);
  for (size_t i = 0; i < row.key.size(); i++) statement.bind(static_cast<int>(i) + 1, row.key[i]);
  statement.run();
}

}  // namespace

uint64_t Store::Impl::used_bytes() {
  const int64_t pages = database.number("PRAGMA page_count") - database.number("PRAGMA freelist_count");
  return static_cast<uint64_t>(pages * database.number("PRAGMA page_size"));
}

void Store::Impl::drop_trace(const std::string& key, const Value& number) {
  for (const PerFunction& t : kPerFunction) {
    if (t.number) Statement(database, delete_from(t.table) + " AND " + t.number + " IS ?").with(key, number).run();
  }
}

void Store::Impl::delete_rows(const std::string& key, bool experience_alone) {
  for (const PerFunction& t : kPerFunction) {
    if (t.experience || !experience_alone) Statement(database, delete_from(t.table)).with(key).run();
  }
}

void Store::Impl::forget_experience(const std::string& key) { delete_rows(key, true); }

void Store::Impl::drop_function(const std::string& key) {
  delete_rows(key, false);
  Statement(database, "DELETE FROM functions WHERE key = ?").with(key).run();
}

void Store::Impl::make_room(uint64_t incoming) {
  if (incoming > options.max_bytes / 2) throw Fault(SQLITE_TOOBIG, "larger than half of the store's cap");
  if (used_bytes() + incoming <= options.max_bytes) return;
  const uint64_t goal = options.max_bytes / 10 * 9;
  for (const Item& item : by_age(database)) {
    if (used_bytes() + incoming <= goal) return;
    if (item.kernel) {
      Statement(database, "DELETE FROM kernels WHERE key = ?").with(item.key).run();
    } else {
      drop_function(item.key);
    }
    counters.evictions++;
  }
}

bool Store::Impl::is_stale(Database& connection, const char* table, const std::string& key) {
  if (connection.read_only()) return false;
  Statement statement(connection, std::string("SELECT last_used FROM ") + table + " WHERE key = ?");
  statement.with(key);
  const int64_t* used = statement.step() ? statement.integer(0) : nullptr;
  return used != nullptr && (*used > now() || *used <= now() - kTouchSeconds);
}

void Store::Impl::touch(const char* table, const std::string& key) {
  Statement(database, std::string("UPDATE ") + table + " SET last_used = ?2 WHERE key = ?1").with(key, now()).run();
}

bool Store::drop_function(const std::string& function_key) {
  return impl_->patiently(false, [&] {
    Transaction transaction(impl_->database);
    impl_->drop_function(function_key);
    transaction.commit();
    return true;
  });
}

bool Store::untidy() const { return impl_->untidy; }

void Store::tidy() {
  std::vector<std::function<void(Impl&)>> chores;
  {
    std::lock_guard reading(impl_->read_mutex);
    chores.swap(impl_->chores);
    impl_->untidy = false;
  }
  for (const auto& chore : chores) {
    impl_->sometime([&] {
      Transaction transaction(impl_->database);
      chore(*impl_);
      transaction.commit();
    });
  }
}

bool Store::clear() {
  return impl_->patiently(false, [&] {
    Database& database = impl_->database;
    {
      Transaction transaction(database);
      for (const Table* table : all_tables()) database.run(std::string("DELETE FROM ") + table->name);
      transaction.commit();
    }
    database.run("PRAGMA incremental_vacuum");
    remove_paces(impl_->place.path);
    return true;
  });
}

bool Store::gc() {
  return impl_->patiently(false, [&] {
    {
      Transaction transaction(impl_->database);
      impl_->make_room(0);
      transaction.commit();
    }
    impl_->database.run("PRAGMA incremental_vacuum");
    return true;
  });
}

VerifyResult Store::verify() {
  return impl_->patiently(VerifyResult(), [&] {
    VerifyResult result;
    Transaction transaction(impl_->database);
    for (const Table* table : all_tables()) {
      const std::vector<BadRow> bad = bad_rows(impl_->database, *table, &result.rows);
      for (const BadRow& row : bad) delete_row(impl_->database, *table, row);
      result.damaged += bad.size();
    }
    transaction.commit();
    impl_->counters.damaged += result.damaged;
    result.complete = true;
    return result;
  });
}

Stats Store::stats() {
  Stats stats = impl_->patiently(Stats(), [&] {
    Database& database = impl_->database;
    Stats s;
    s.functions = static_cast<uint64_t>(database.number("SELECT COUNT(*) FROM functions"));
    s.traces = static_cast<uint64_t>(database.number("SELECT COUNT(*) FROM trace_data"));
    s.kernels = static_cast<uint64_t>(database.number("SELECT COUNT(*) FROM kernels"));
    s.bytes = static_cast<uint64_t>(database.number("PRAGMA page_count") * database.number("PRAGMA page_size"));
    return s;
  });
  const Impl::Counters& c = impl_->counters;
  stats.hits = c.hits, stats.misses = c.misses, stats.saves = c.saves, stats.evictions = c.evictions;
  stats.damaged = c.damaged, stats.errors = c.errors;
  return stats;
}

namespace {

constexpr int kInterruptions = 8;         // so often a query is begun anew; after that others wait for it
constexpr int kStepsBetweenLooks = 1000;  // of SQLite's machine: well under a millisecond

int someone_waits(void* gate) { return static_cast<Gate*>(gate)->waiting() > 0; }

QueryResult rows_of(Database& reader, const std::string& sql) {
  QueryResult result;
  Statement statement(reader, sql);
  if (statement.empty() || statement.has_tail()) throw Fault(SQLITE_MISUSE, "exactly one statement is expected");
  if (!statement.read_only()) throw Fault(SQLITE_READONLY, "only statements that read are allowed");
  for (int i = 0; i < statement.columns(); i++) result.columns.emplace_back(statement.column_name(i));
  while (statement.step()) {
    auto& row = result.rows.emplace_back();
    for (int i = 0; i < statement.columns(); i++) row.push_back(statement.column(i));
  }
  return result;
}

// On a connection of its own, which can roll back what a killed process has left, and whose statements cannot write. A fork must find no
// connection at work; it need not wait for the end of a query.
QueryResult query_once(const std::string& path, const std::string& sql, Gate* gate, bool may_be_interrupted, int* code) {
  const auto lock = gate->for_query();
  try {
    Database reader;
    reader.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
    reader.run("PRAGMA query_only=ON");
    // Views take JSON apart, and SQLite trusts its own functions for that only where it trusts the schema.
    if (schema_state(reader) == SchemaState::kOurs) reader.run("PRAGMA trusted_schema=ON");
    if (may_be_interrupted) sqlite3_progress_handler(reader.handle(), kStepsBetweenLooks, someone_waits, gate);
    return rows_of(reader, sql);
  } catch (const Fault& fault) {  // the asker's mistake, or the file's: said, not counted
    *code = fault.code;
    QueryResult failed;
    failed.error = fault.text;
    return failed;
  }
}

}  // namespace

QueryResult Store::query(const std::string& sql) {
  struct Target {
    std::string path;
    int patience_ms;
  };
  const auto target = impl_->patiently(Target{}, [&] { return Target{impl_->place.path, impl_->options.background_ms}; });
  QueryResult result;
  if (target.path.empty()) {
    result.error = "no store: " + why();
    return result;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(target.patience_ms);
  for (int interruptions = 0;;) {
    int code = SQLITE_OK;
    result = query_once(target.path, sql, &impl_->gate, interruptions < kInterruptions, &code);
    const bool interrupted = (code & 0xff) == SQLITE_INTERRUPT;
    interruptions += interrupted;
    if (!interrupted && (!is_busy(code) || std::chrono::steady_clock::now() >= deadline)) return result;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace dalsegno::store
