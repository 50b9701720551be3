// The tables of the store, their check sums, and how a file is made or recognised as ours. For people: docs/store.md.
#pragma once
#include <string_view>
#include <vector>

#include "store/sha256.h"
#include "store/sqlite.h"

namespace dalsegno::store {

inline constexpr int kApplicationId = 0x44535447;  // "DSTG", in SQLite's header
inline constexpr int kSchemaVersion = 5;           // PRAGMA user_version

// A table: columns that the check sum covers, in order, the primary key first; then `sum`, then for some `last_used`.
struct Table {
  const char* name;
  const char* create;
  int key;      // columns of the primary key
  int covered;  // columns the sum covers
  bool last_used;
};
namespace tables {
extern const Table functions, trace_data, kernels, traces, listings, penalties, verdicts, regions;
}
const std::vector<const Table*>& all_tables();

// SHA-256 over the table's name and the values, each with its type and length.
Digest row_sum(const Table& table, const std::vector<Value>& values);

// Writes rows with their sums. INSERT OR REPLACE.
class Inserter {
 public:
  Inserter(Database& database, const Table& table);
  Digest add(const std::vector<Value>& values, int64_t last_used = 0);

 private:
  const Table& table_;
  Statement statement_;
};

enum class SchemaState : uint8_t {
  kOurs,     // exactly the tables of this version
  kEmpty,    // a new file
  kNewer,    // written by a later version: to be left alone
  kOlder,    // by an earlier one, and not migrated: to be set aside
  kDamaged,  // says it is ours, but the tables are not
  kForeign,  // somebody else's
};
SchemaState schema_state(Database& database);

// Makes the tables in an empty file; safe against others doing the same.
void create_schema(Database& database);

}  // namespace dalsegno::store
