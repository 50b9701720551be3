#include "store/schema.h"

#include <bit>
#include <map>

namespace dalsegno::store {

// clang-format off
namespace tables {

// ---- what is replayed: read only after the sum over the key asked for and the value was checked. Large values, so no WITHOUT ROWID: looking
// a key up would read the neighbours' values whole.
const Table trace_data{"trace_data", "CREATE TABLE trace_data(function TEXT NOT NULL, number INTEGER NOT NULL, link BLOB NOT NULL, "
    "data BLOB NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, number))", 2, 4, false};
const Table kernels{"kernels", "CREATE TABLE kernels(key TEXT PRIMARY KEY NOT NULL, description TEXT NOT NULL, object BLOB NOT NULL, "
    "created INTEGER NOT NULL, sum BLOB NOT NULL, last_used INTEGER NOT NULL)", 1, 4, true};

// ---- what paid and what did not: read only if the sum is right, and no result depends on it
const Table penalties{"penalties", "CREATE TABLE penalties(function TEXT NOT NULL, trace INTEGER NOT NULL, op INTEGER NOT NULL, "
    "which INTEGER NOT NULL, points INTEGER NOT NULL, reason TEXT NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, trace, op, which)) "
    "WITHOUT ROWID", 4, 6, false};
const Table regions{"regions", "CREATE TABLE regions(function TEXT NOT NULL, trace INTEGER NOT NULL, below INTEGER NOT NULL, "
    "most INTEGER NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, trace)) WITHOUT ROWID", 2, 4, false};
const Table verdicts{"verdicts", "CREATE TABLE verdicts(function TEXT NOT NULL, sizes INTEGER NOT NULL, eager_wins INTEGER NOT NULL, "
    "replay_ns REAL NOT NULL, eager_ns REAL NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, sizes)) WITHOUT ROWID", 2, 5, false};

// ---- for people: never read back, except by verify()
const Table functions{"functions", "CREATE TABLE functions(key TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, created INTEGER NOT NULL, "
    "sum BLOB NOT NULL, last_used INTEGER NOT NULL) WITHOUT ROWID", 1, 3, true};
const Table traces{"traces", "CREATE TABLE traces(function TEXT NOT NULL, number INTEGER NOT NULL, anchor TEXT NOT NULL, parent INTEGER, "
    "parent_op INTEGER, parent_exit INTEGER, params INTEGER NOT NULL, ops INTEGER NOT NULL, guards INTEGER NOT NULL, reason TEXT NOT NULL, "
    "ended_at TEXT NOT NULL, bytes INTEGER NOT NULL, created INTEGER NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, number)) "
    "WITHOUT ROWID", 2, 13, false};
const Table listings{"listings", "CREATE TABLE listings(function TEXT NOT NULL, number INTEGER NOT NULL, kinds TEXT NOT NULL, "
    "ops TEXT NOT NULL, objects TEXT NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(function, number)) WITHOUT ROWID", 2, 5, false};

}  // namespace tables

namespace {

// What people read of a trace is one row of JSON (people.cc): a row an op would be ten times the trace itself.
struct View {
  const char* name;
  const char* create;
};
constexpr View kViews[] = {
    {"ops",
    "CREATE VIEW ops AS SELECT function, trace, op, rtrim(name, '=') AS kind, array_fn, facts, snapshot, exit_snapshot, line, depth, "
    "iif(name LIKE '%=', 'v' || op || ' = ', '') || rtrim(name, '=') || rest AS text FROM (SELECT l.function AS function, "
    "l.number AS trace, o.key AS op, json_extract(l.kinds, '$[' || json_extract(o.value, '$[0]') || ']') AS name, "
    "json_extract(o.value, '$[1]') AS line, json_extract(o.value, '$[2]') AS rest, json_extract(o.value, '$[3]') AS snapshot, "
    "ifnull(json_extract(o.value, '$[4]'), 0) AS depth, json_extract(o.value, '$[5]') AS exit_snapshot, "
    "json_extract(o.value, '$[6]') AS array_fn, json_extract(o.value, '$[7]') AS facts FROM listings l, json_each(l.ops) o)"},
    {"objects",
    "CREATE VIEW objects AS SELECT l.function AS function, l.number AS trace, o.key AS object, o.value AS source "
    "FROM listings l, json_each(l.objects) o"},
    {"guards",
    "CREATE VIEW guards AS SELECT function, trace, op, kind, text, line, snapshot FROM ops WHERE kind LIKE 'guard\\_%' ESCAPE '\\'"},
    {"exits",
    "CREATE VIEW exits AS SELECT o.function, o.trace, o.op, 0 AS which, o.snapshot, t.number AS side_trace, o.line, o.text FROM ops o "
    "LEFT JOIN traces t ON t.function = o.function AND t.parent = o.trace AND t.parent_op = o.op AND t.parent_exit = 0 "
    "WHERE o.snapshot IS NOT NULL UNION ALL "
    "SELECT o.function, o.trace, o.op, 1 AS which, o.exit_snapshot, t.number AS side_trace, o.line, o.text FROM ops o "
    "LEFT JOIN traces t ON t.function = o.function AND t.parent = o.trace AND t.parent_op = o.op AND t.parent_exit = 1 "
    "WHERE o.exit_snapshot IS NOT NULL"},
};
// clang-format on

std::string insert_sql(const Table& table) {
  std::string sql = std::string("INSERT OR REPLACE INTO ") + table.name + " VALUES(?";
  for (int i = 1; i < table.covered + 1 + (table.last_used ? 1 : 0); i++) sql += ",?";
  return sql + ")";
}

// name in sqlite_schema -> its SQL, as SQLite keeps it: the text of the statement.
std::map<std::string, std::string> expected_schema() {
  std::map<std::string, std::string> schema;
  for (const Table* table : all_tables()) schema[table->name] = table->create;
  for (const View& view : kViews) schema[view.name] = view.create;
  return schema;
}

bool schema_is_ours(Database& database) {
  std::map<std::string, std::string> found;
  Statement statement(database, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL");
  while (statement.step()) {
    const Value name = statement.column(0), sql = statement.column(1);
    const auto* name_text = std::get_if<std::string>(&name);
    const auto* sql_text = std::get_if<std::string>(&sql);
    if (name_text == nullptr || sql_text == nullptr) return false;
    found[*name_text] = *sql_text;
  }
  return found == expected_schema();
}

void hash_number(Sha256& hash, char type, uint64_t number) {
  char text[9] = {type};
  for (int i = 0; i < 8; i++) text[1 + i] = static_cast<char>(number >> (8 * i));
  hash.update(text, sizeof text);
}

}  // namespace

const std::vector<const Table*>& all_tables() {
  using namespace tables;
  static const std::vector<const Table*> all = {&trace_data, &kernels, &functions, &traces, &penalties, &verdicts, &regions, &listings};
  return all;
}

Digest row_sum(const Table& table, const std::vector<Value>& values) {
  struct Hash {
    Sha256& hash;
    void operator()(std::monostate) const { hash_number(hash, 'n', 0); }
    void operator()(int64_t n) const { hash_number(hash, 'i', static_cast<uint64_t>(n)); }
    void operator()(double x) const { hash_number(hash, 'f', std::bit_cast<uint64_t>(x)); }
    void operator()(const std::string& t) const { hash_number(hash, 't', t.size()), hash.update(t); }
    void operator()(const Blob& b) const { hash_number(hash, 'b', b.bytes.size()), hash.update(b.bytes); }
  };
  Sha256 hash;
  Hash{hash}(std::string(table.name));
  for (const Value& value : values) std::visit(Hash{hash}, value);
  return hash.finish();
}

Inserter::Inserter(Database& database, const Table& table) : table_(table), statement_(database, insert_sql(table)) {}

Digest Inserter::add(const std::vector<Value>& values, int64_t last_used) {
  if (values.size() != static_cast<size_t>(table_.covered)) throw Fault(SQLITE_MISUSE, std::string("columns of ") + table_.name);
  statement_.reset();
  int i = 0;
  for (const Value& value : values) statement_.bind(++i, value);
  const Digest sum = row_sum(table_, values);
  statement_.bind(++i, Blob{std::string(bytes(sum))});
  if (table_.last_used) statement_.bind(++i, last_used);
  statement_.run();
  return sum;
}

namespace {

SchemaState state_within(Database& database) {
  const int64_t application = database.number("PRAGMA application_id");
  const int64_t version = database.number("PRAGMA user_version");
  if (application == 0 && version == 0 && database.number("SELECT COUNT(*) FROM sqlite_schema") == 0) return SchemaState::kEmpty;
  if (application != kApplicationId) return SchemaState::kForeign;
  if (version > kSchemaVersion) return SchemaState::kNewer;
  if (version < kSchemaVersion) return SchemaState::kOlder;
  return schema_is_ours(database) ? SchemaState::kOurs : SchemaState::kDamaged;
}

}  // namespace

SchemaState schema_state(Database& database) {
  const Transaction together(database, Transaction::kReads);  // what is read belongs to one state of the file
  return state_within(database);
}

// One transaction: whoever looks at the file, and whatever ends this process, finds an empty file or a whole store. auto_vacuum must be
// asked for before the transaction makes the first page, and once more inside to be written there; SQLite does the first while it compiles
// the statement, and the second, which alone would be a transaction of its own, when the statement runs.
void create_schema(Database& database) {
  const char* const auto_vacuum = "PRAGMA auto_vacuum=INCREMENTAL";
  { const Statement before_the_first_page(database, auto_vacuum); }
  Transaction transaction(database);
  if (state_within(database) != SchemaState::kEmpty) return;  // another process was faster
  database.run(auto_vacuum);
  for (const auto& [name, sql] : expected_schema()) {
    if (sql.starts_with("CREATE TABLE")) database.run(sql);
  }
  for (const View& view : kViews) database.run(view.create);
  database.run("PRAGMA application_id=" + std::to_string(kApplicationId));
  database.run("PRAGMA user_version=" + std::to_string(kSchemaVersion));
  transaction.commit();
}

}  // namespace dalsegno::store
