#include "store/sqlite.h"

#include <atomic>
#include <utility>

namespace dalsegno::store {
namespace {

constexpr int kMaxValueBytes = 20 << 20;  // the largest row we write is smaller (store.h); a hostile one is refused by SQLite

std::atomic<FaultHook> fault_hook{nullptr};

int injected(const char* operation) {
  const FaultHook hook = fault_hook.load(std::memory_order_relaxed);
  return hook == nullptr ? SQLITE_OK : hook(operation);
}

// `result` as it is, or the fault a test wants instead of the call.
template <class Call>
int attempt(const char* operation, Call call) {
  const int wanted = injected(operation);
  return wanted == SQLITE_OK ? call() : wanted;
}

[[noreturn]] void fail(sqlite3* handle, int code, const char* operation) {
  std::string text = std::string(operation) + ": ";
  const bool own = handle != nullptr && (sqlite3_extended_errcode(handle) & 0xff) == (code & 0xff);
  text += own ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  throw Fault(code, text);
}

void check(sqlite3* handle, int code, const char* operation) {
  if (code != SQLITE_OK) fail(handle, code, operation);
}

}  // namespace

void set_fault_hook(FaultHook hook) { fault_hook = hook; }

void Database::open(const std::string& path, int flags) {
  close();
  const int code = attempt("open", [&] { return sqlite3_open_v2(path.c_str(), &handle_, flags | SQLITE_OPEN_FULLMUTEX, nullptr); });
  if (code != SQLITE_OK) {
    std::string text = std::string("open: ") + (handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code));
    close();
    throw Fault(code, text);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  run("PRAGMA cell_size_check=ON");
  run("PRAGMA mmap_size=0");  // a file that shrinks under a mapping is a SIGBUS
}

void Database::close() {
  for (auto& [sql, statement] : kept_) sqlite3_finalize(statement);
  kept_.clear();
  if (handle_ != nullptr) sqlite3_close_v2(handle_);
  handle_ = nullptr;
}

void Database::run(const std::string& sql) { Statement(*this, sql).run(); }
void Database::run_often(std::string_view sql) { Statement(*this, sql, Statement::kOften).run(); }

int64_t Database::number(const std::string& sql) {
  Statement statement(*this, sql);
  const int64_t* n = statement.step() ? statement.integer(0) : nullptr;
  if (n == nullptr) throw Fault(SQLITE_CORRUPT, sql + ": no number");
  return *n;
}

Statement::Statement(Database& database, std::string_view sql, Use use) : database_(database) {
  if (use == kOften) {
    const auto kept = database.kept_.try_emplace(std::string(sql), nullptr).first;
    place_ = &kept->second;
    handle_ = std::exchange(*place_, nullptr);
    if (handle_ != nullptr) return;
  }
  const char* tail = nullptr;
  const int code =
      attempt("prepare", [&] { return sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &handle_, &tail); });
  check(database.handle(), code, "prepare");
  const std::string_view rest = sql.substr(static_cast<size_t>(tail - sql.data()));
  tail_ = rest.find_first_not_of(" \t\r\n;") != std::string_view::npos;
}

Statement::~Statement() {
  if (place_ == nullptr || handle_ == nullptr || *place_ != nullptr) {
    sqlite3_finalize(handle_);
    return;
  }
  reset();
  *place_ = handle_;
}

Statement& Statement::bind(int parameter, const Value& value) {
  struct Bind {
    sqlite3_stmt* s;
    int i;
    int operator()(std::monostate) const { return sqlite3_bind_null(s, i); }
    int operator()(int64_t n) const { return sqlite3_bind_int64(s, i, n); }
    int operator()(double x) const { return sqlite3_bind_double(s, i, x); }
    int operator()(const std::string& t) const { return sqlite3_bind_text64(s, i, t.data(), t.size(), SQLITE_TRANSIENT, SQLITE_UTF8); }
    int operator()(const Blob& b) const { return sqlite3_bind_blob64(s, i, b.bytes.data(), b.bytes.size(), SQLITE_TRANSIENT); }
  };
  check(database_.handle(), attempt("bind", [&] { return std::visit(Bind{handle_, parameter}, value); }), "bind");
  return *this;
}

bool Statement::step() {
  const int code = attempt("step", [&] { return sqlite3_step(handle_); });
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  fail(database_.handle(), code, "step");
}

void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

Value Statement::column(int column) const {
  const auto size = [&] { return static_cast<size_t>(sqlite3_column_bytes(handle_, column)); };
  switch (sqlite3_column_type(handle_, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(handle_, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(handle_, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
      if (text == nullptr) throw Fault(SQLITE_NOMEM, "column: out of memory");
      return std::string(text, size());
    }
    case SQLITE_BLOB: {
      const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
      return data == nullptr ? Blob{} : Blob{std::string(data, size())};
    }
    default:
      return std::monostate{};
  }
}

const int64_t* Statement::integer(int column) {
  value_ = this->column(column);
  return std::get_if<int64_t>(&value_);
}

const std::string* Statement::blob(int column) {
  value_ = this->column(column);
  const Blob* blob = std::get_if<Blob>(&value_);
  return blob == nullptr ? nullptr : &blob->bytes;
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database_.run_often(kind == kReads ? "BEGIN" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (done_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const std::exception&) {  // SQLite rolled back by itself, or the journal is there for the next one who opens
  }
}

void Transaction::commit() {
  if (database_.commit_ms > 0) database_.patience(database_.commit_ms);
  database_.run_often("COMMIT");
  done_ = true;
}

}  // namespace dalsegno::store
