// A small RAII layer over SQLite's C API. Inside store/ a failing call throws Fault; store.cc turns that into a miss.
// Objects are not shared between threads (store.cc holds a lock). A Statement must not outlive its Database.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace dalsegno::store {

struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};
// What a column holds: NULL, INTEGER, REAL, TEXT, BLOB.
using Value = std::variant<std::monostate, int64_t, double, std::string, Blob>;

// A call of SQLite's, or of ours around it, that did not go well.
struct Fault : std::exception {
  Fault(int code, std::string text) : code(code), text(std::move(text)) {}
  const char* what() const noexcept override { return text.c_str(); }
  int code;  // SQLite's extended result code
  std::string text;
};

// For tests: called before every call of SQLite's that can fail, with what is about to be done; a result other than SQLITE_OK is taken for
// that call's. Process-wide; set it while no store is in use. Null: none.
using FaultHook = int (*)(const char* operation);
void set_fault_hook(FaultHook hook);

class Database {
 public:
  Database() = default;
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // flags: SQLITE_OPEN_*. Hardens the connection: no trusted schema, no attaching, sizes limited, cells checked.
  // It does not wait for locks; see patience().
  void open(const std::string& path, int flags);
  void close();
  // Forgets the connection without touching it: in the child of a fork it is the parent's.
  void abandon() { handle_ = nullptr, kept_.clear(); }
  bool is_open() const { return handle_ != nullptr; }
  void patience(int ms) { sqlite3_busy_timeout(handle_, ms); }  // with other processes' locks, from now on
  int commit_ms = 0;                                            // the same of Transaction::commit(), with those who read
  void run(const std::string& sql);                             // statements without parameters and results
  void run_often(std::string_view sql);                         // the same, prepared once
  int64_t number(const std::string& sql);                       // the one integer a statement gives
  int changes() const { return sqlite3_changes(handle_); }
  bool read_only() const { return sqlite3_db_readonly(handle_, "main") == 1; }
  sqlite3* handle() const { return handle_; }

 private:
  friend class Statement;
  sqlite3* handle_ = nullptr;
  std::unordered_map<std::string, sqlite3_stmt*> kept_;  // prepared, not in use; null: one that is
};

class Statement {
 public:
  // kOften: it is prepared once a connection, which keeps it from one use to the next. For a few texts that never change.
  enum Use : bool { kOnce, kOften };
  Statement(Database& database, std::string_view sql, Use use = kOnce);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int parameter, const Value& value);  // from 1; the value is copied
  template <class... Values>
  Statement& with(const Values&... values) {
    int i = 0;
    (bind(++i, values), ...);
    return *this;
  }
  bool step();   // true: there is a row
  void reset();  // ready to be bound and stepped again
  void run() {
    while (step()) {
    }
  }
  int columns() const { return sqlite3_column_count(handle_); }
  const char* column_name(int column) const { return sqlite3_column_name(handle_, column); }
  Value column(int column) const;  // from 0
  // A column that must be of this type; another type (a damaged or hostile row) gives nothing.
  const int64_t* integer(int column);
  const std::string* blob(int column);
  bool read_only() const { return sqlite3_stmt_readonly(handle_) != 0; }
  bool empty() const { return handle_ == nullptr; }  // the SQL was only blanks or comments
  bool has_tail() const { return tail_; }            // something follows the first statement

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  sqlite3_stmt** place_ = nullptr;  // among the database's, where it goes back to
  bool tail_ = false;
  Value value_;
};

// BEGIN IMMEDIATE now (for reading: BEGIN), ROLLBACK at the end of the scope unless commit() was called.
class Transaction {
 public:
  enum Kind : bool { kWrites, kReads };
  explicit Transaction(Database& database, Kind kind = kWrites);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool done_ = false;
};

}  // namespace dalsegno::store
