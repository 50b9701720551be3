// Traces and kernels, in and out.
#include <algorithm>

#include "store/codec.h"
#include "store/store_impl.h"
#include "trace/fault.h"

namespace dalsegno::store {
namespace {

constexpr int kMaxExperience = 4096;  // rows of a function
constexpr size_t kMaxSum = 64;        // bytes of a sum or a link: 32, if it is sound

struct TraceRow {
  Value stored_number;  // as it stands there, to delete the row by
  int64_t number = 0;
  std::string link, data;
  Digest sum = {};
  bool sound = false;  // the sum is right
};

Digest trace_sum(const std::string& key, int64_t number, const std::string& link, const std::string& data) {
  return row_sum(tables::trace_data, {key, number, Blob{link}, Blob{data}});
}

// From a statement giving number, link, data, sum.
TraceRow read_trace_row(Statement& statement, const std::string& key) {
  TraceRow row;
  row.stored_number = statement.column(0);
  const auto* number = std::get_if<int64_t>(&row.stored_number);
  const Value link = statement.column(1), data = statement.column(2), sum = statement.column(3);
  const Blob *link_blob = std::get_if<Blob>(&link), *data_blob = std::get_if<Blob>(&data), *sum_blob = std::get_if<Blob>(&sum);
  if (number == nullptr || link_blob == nullptr || data_blob == nullptr || sum_blob == nullptr) return row;
  row.number = *number;
  row.link = link_blob->bytes;
  row.data = data_blob->bytes;
  row.sum = trace_sum(key, row.number, row.link, row.data);
  row.sound = sum_blob->bytes == bytes(row.sum);
  return row;
}

// A blob no larger than that, else NULL: SQLite knows a blob's type and length without reading it.
std::string bounded(const std::string& column, size_t limit) {
  return "CASE WHEN typeof(" + column + ") = 'blob' AND length(" + column + ") <= " + std::to_string(limit) + " THEN " + column + " END";
}

// number, link, data, sum of a function's traces. What is larger than anything we write is not read.
const std::string& select_traces() {
  static const std::string sql = "SELECT number, " + bounded("link", kMaxSum) + ", " + bounded("data", kMaxTrace) + ", " +
                                 bounded("sum", kMaxSum) + " FROM trace_data WHERE function = ?";
  return sql;
}

std::vector<TraceRow> read_trace_rows(Database& database, const std::string& key) {
  Statement statement(database, select_traces() + " ORDER BY number LIMIT ?", Statement::kOften);
  statement.with(key, int64_t{kMaxTraces});
  std::vector<TraceRow> rows;
  size_t total = 0;
  while (statement.step()) {
    rows.push_back(read_trace_row(statement, key));
    total += rows.back().data.size();
    if (total > kMaxTreeBytes) throw Fault(SQLITE_TOOBIG, "the traces of one function are too large");
  }
  return rows;
}

bool are_traces(Database& database, const std::string& key) {
  Statement statement(database, "SELECT 1 FROM trace_data WHERE function = ? LIMIT 1", Statement::kOften);
  return statement.with(key).step();
}

std::optional<TraceRow> read_trace_row(Database& database, const std::string& key, int64_t number) {
  Statement statement(database, select_traces() + " AND number = ?");
  statement.with(key, number);
  if (!statement.step()) return std::nullopt;
  return read_trace_row(statement, key);
}

// What a side trace hangs on: its parent's bytes. With the parent's own link, the whole way up to the root. (identity_of())
std::string link_to(const std::string& data) { return std::string(bytes(sha256(data))); }

struct Loaded {
  std::vector<Trace> traces;
  std::vector<std::string> own;    // link_to() it
  std::vector<std::string> links;  // to its parent; "" for others

  void remove(size_t i) {
    const auto at = static_cast<ptrdiff_t>(i);
    traces.erase(traces.begin() + at), own.erase(own.begin() + at), links.erase(links.begin() + at);
  }
  // The very parent it was recorded from is here.
  bool linked(size_t i) const {
    if (traces[i].anchor != AnchorKind::exit) return links[i].empty();
    for (size_t k = 0; k < traces.size(); k++) {
      if (traces[k].number == traces[i].parent) return links[i] == own[k] || planted(dalsegno::Fault::foreign_parent);
    }
    return false;
  }
};

// Takes out what hangs on something missing, until nothing does. Numbers of the traces whose parent is gone for ever go to `orphans`.
void prune(Loaded* loaded, std::vector<Value>* orphans) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = loaded->traces.size(); i-- > 0;) {
      const bool linked = loaded->linked(i);
      if (linked && verify_links(loaded->traces[i], loaded->traces).empty()) continue;
      if (!linked) orphans->push_back(int64_t{loaded->traces[i].number});
      loaded->remove(i);
      changed = true;
    }
  }
}

// Keeps rows that decode to verified traces. Numbers of those that never will go to `bad`; another build's rows are left alone.
Loaded decode_rows(const std::vector<TraceRow>& rows, std::vector<Value>* bad) {
  Loaded loaded;
  for (const TraceRow& row : rows) {
    if (!row.sound) {
      bad->push_back(row.stored_number);
      continue;
    }
    std::optional<Trace> trace = decode_trace(row.data);
    if (!trace || trace->number != row.number || !verify(*trace).empty()) continue;
    // A damaged index may show a row twice.
    if (!loaded.traces.empty() && loaded.traces.back().number >= trace->number) continue;
    loaded.traces.push_back(std::move(*trace));
    loaded.own.push_back(link_to(row.data));
    loaded.links.push_back(row.link);
  }
  return loaded;
}

void upsert_function(Database& database, const std::string& key, const std::string& name) {
  Statement there(database, "UPDATE functions SET last_used = ?2 WHERE key = ?1");
  there.with(key, now()).run();
  if (database.changes() == 0) Inserter(database, tables::functions).add({key, name, now()}, now());
}

// The rows of a function whose sum is right; `damaged` if there are others, or `take` finds values of other types (std::get).
template <class Take>
void each_sound_row(Database& database, const Table& table, const std::string& columns, const std::string& key, bool* damaged, Take take) {
  Statement statement(database,
                      "SELECT " + columns + ", " + bounded("sum", kMaxSum) + " FROM " + table.name + " WHERE function = ? LIMIT ?",
                      Statement::kOften);
  statement.with(key, int64_t{kMaxExperience});
  while (statement.step()) {
    std::vector<Value> row = {key};
    for (int i = 1; i < table.covered; i++) row.push_back(statement.column(i - 1));
    const std::string* sum = statement.blob(table.covered - 1);
    try {
      if (sum == nullptr || *sum != bytes(row_sum(table, row)))
        *damaged = true;
      else
        take(row);
    } catch (const std::bad_variant_access&) {
      *damaged = true;
    }
  }
}

}  // namespace

std::string identity_of(const Trace& trace) { return link_to(encode_trace(trace)); }

bool Store::save_trace(const std::string& key, const Trace& trace, const std::string& name, const std::string& parent,
                       std::string* identity) {
  Impl& s = *impl_;
  return s.patiently(false, [&] {
    if (key.size() > kMaxKey || trace.number >= kMaxTraces || !dalsegno::verify(trace).empty())
      throw Fault(SQLITE_MISUSE, "not a trace to be kept");
    const std::string data = encode_trace(trace);
    if (identity != nullptr) *identity = link_to(data);
    if (data.size() > kMaxTrace) throw Fault(SQLITE_TOOBIG, "the trace is too large");
    Transaction transaction(s.database);
    std::string link;
    if (trace.anchor == AnchorKind::exit) {
      const auto row = read_trace_row(s.database, key, trace.parent);
      if (!row || !row->sound || parent.empty() || link_to(row->data) != parent) return false;
      link = parent;
    }
    const Digest sum = trace_sum(key, trace.number, link, data);
    const auto there = read_trace_row(s.database, key, trace.number);
    if (there && there->sound) return there->sum == sum;
    s.make_room(data.size() + 50 * trace.ops.size());
    s.drop_trace(key, int64_t{trace.number});
    Inserter(s.database, tables::trace_data).add({key, int64_t{trace.number}, Blob{link}, Blob{data}});
    upsert_function(s.database, key, name);
    describe_trace(s.database, key, trace, static_cast<int64_t>(data.size()));
    transaction.commit();
    s.counters.saves++;
    return true;
  });
}

bool Store::save_region(const std::string& key, const KeptRegion& region) {
  Impl& s = *impl_;
  return s.patiently(false, [&] {
    if (!are_traces(s.database, key)) return false;
    Transaction transaction(s.database);
    s.make_room(100);
    Inserter(s.database, tables::regions).add({key, int64_t{region.trace}, int64_t{region.below}, int64_t{region.most}});
    transaction.commit();
    return true;
  });
}

std::vector<Trace> Store::load_traces(const std::string& key, std::vector<std::string>* identities, std::vector<KeptRegion>* regions) {
  struct Found {
    std::vector<Trace> traces;
    std::vector<std::string> identities;
    std::vector<Value> bad;  // numbers
    std::vector<KeptRegion> regions;
    bool damaged = false;  // one of them
    bool stale = false;    // its last use was noted some time ago
  };
  Impl& s = *impl_;
  Found found = s.guarded(Found(), [&] {
    Found found;
    std::vector<Value> orphans;
    Loaded loaded = decode_rows(read_trace_rows(s.reader, key), &found.bad);
    prune(&loaded, &orphans);
    s.counters.damaged += found.bad.size();
    found.bad.insert(found.bad.end(), orphans.begin(), orphans.end());
    found.traces = std::move(loaded.traces);
    found.identities = std::move(loaded.own);
    found.stale = !found.traces.empty() && s.is_stale(s.reader, "functions", key);
    if (regions == nullptr || found.traces.empty()) return found;
    each_sound_row(s.reader, tables::regions, "trace, below, most", key, &found.damaged, [&](const std::vector<Value>& row) {
      const auto number = [&](size_t column) { return static_cast<int32_t>(std::get<int64_t>(row[column])); };
      found.regions.push_back({number(1), number(2), number(3)});
    });
    s.counters.damaged += found.damaged;
    return found;
  });
  (found.traces.empty() ? s.counters.misses : s.counters.hits)++;
  if (found.stale || found.damaged || !found.bad.empty()) {
    s.leave_undone([key, bad = std::move(found.bad), stale = found.stale, damaged = found.damaged](Impl& s) {
      if (damaged) Statement(s.database, "DELETE FROM regions WHERE function = ?").with(key).run();
      for (const Value& number : bad) s.drop_trace(key, number);
      if (stale) s.touch("functions", key);
    });
  }
  if (identities != nullptr) *identities = std::move(found.identities);
  if (regions != nullptr) *regions = std::move(found.regions);
  return std::move(found.traces);
}

bool Store::save_experience(const std::string& key, const Experience& experience, const std::string& name) {
  Impl& s = *impl_;
  return s.patiently(false, [&] {
    if (key.size() > kMaxKey || experience.penalties.size() + experience.verdicts.size() > kMaxExperience)
      throw Fault(SQLITE_TOOBIG, "what is known about the function is too much");
    Transaction transaction(s.database);
    s.make_room(100 * (experience.penalties.size() + experience.verdicts.size()));
    s.forget_experience(key);
    Inserter penalties(s.database, tables::penalties), verdicts(s.database, tables::verdicts);
    for (const KeptPenalty& p : experience.penalties)
      penalties.add({key, int64_t{p.trace}, int64_t{p.op}, int64_t{p.which}, int64_t{p.points}, p.reason});
    for (const KeptVerdict& v : experience.verdicts) verdicts.add({key, v.sizes, int64_t{v.eager_wins}, v.replay_ns, v.eager_ns});
    upsert_function(s.database, key, name);
    transaction.commit();
    return true;
  });
}

Experience Store::load_experience(const std::string& key, bool* has_traces) {
  Impl& s = *impl_;
  bool damaged = false, traces = true;
  if (s.is_to_be_made()) {
    s.counters.misses++;
    if (has_traces != nullptr) *has_traces = false;
    return {};
  }
  Experience found = s.guarded(Experience(), [&] {
    Experience experience;
    Transaction transaction(s.reader, Transaction::kReads);
    each_sound_row(s.reader, tables::penalties, "trace, op, which, points, substr(reason, 1, 64)", key, &damaged,
                   [&](const std::vector<Value>& row) {
                     const auto number = [&](size_t column) { return static_cast<int32_t>(std::get<int64_t>(row[column])); };
                     experience.penalties.push_back({number(1), number(2), number(3), number(4), std::get<std::string>(row[5])});
                   });
    each_sound_row(s.reader, tables::verdicts, "sizes, eager_wins, replay_ns, eager_ns", key, &damaged, [&](const std::vector<Value>& row) {
      experience.verdicts.push_back(
          {std::get<int64_t>(row[1]), std::get<int64_t>(row[2]) != 0, std::get<double>(row[3]), std::get<double>(row[4])});
    });
    if (has_traces != nullptr) traces = are_traces(s.reader, key);
    transaction.commit();
    return experience;
  });
  if (!traces) s.counters.misses++;
  if (has_traces != nullptr) *has_traces = traces;
  if (damaged) {
    s.counters.damaged++;
    s.leave_undone([key](Impl& s) { s.forget_experience(key); });
  }
  return found;
}

bool Store::note_paces(const std::vector<Pace>& paces) {
  return impl_->patiently(false, [&] { return add_paces(impl_->place.path, paces), true; });
}

bool Store::put_kernel(const std::string& key, const std::string& object, const std::string& description) {
  Impl& s = *impl_;
  return s.patiently(false, [&] {
    if (key.size() > kMaxKey || object.size() > kMaxBlob || description.size() > kMaxBlob)
      throw Fault(SQLITE_TOOBIG, "the kernel is too large");
    Transaction transaction(s.database);
    s.make_room(object.size() + description.size() + 300);
    Inserter(s.database, tables::kernels).add({key, description, Blob{object}, now()}, now());
    transaction.commit();
    s.counters.saves++;
    return true;
  });
}

std::optional<std::string> Store::get_kernel(const std::string& key) {
  struct Found {
    std::optional<std::string> object;
    bool bad = false, stale = false;
  };
  Impl& s = *impl_;
  if (s.is_to_be_made()) return s.counters.misses++, std::nullopt;
  Found found = s.patiently(Found(), [&] {
    Found found;
    Statement statement(s.database, "SELECT description, " + bounded("object", kMaxBlob) + ", created, " + bounded("sum", kMaxSum) +
                                        " FROM kernels WHERE key = ?");
    statement.with(key);
    if (!statement.step()) return found;
    std::vector<Value> values = {key, statement.column(0), statement.column(1), statement.column(2)};
    const std::string* sum = statement.blob(3);
    Blob* object = std::get_if<Blob>(&values[2]);
    found.bad = object == nullptr || sum == nullptr || *sum != bytes(row_sum(tables::kernels, values));
    s.counters.damaged += found.bad;
    found.stale = !found.bad && s.is_stale(s.database, "kernels", key);
    if (!found.bad) found.object = std::move(object->bytes);
    return found;
  });
  (found.object ? s.counters.hits : s.counters.misses)++;
  if (found.stale) s.sometime([&] { s.touch("kernels", key); });
  if (found.bad) s.sometime([&] { Statement(s.database, "DELETE FROM kernels WHERE key = ?").with(key).run(); });
  return std::move(found.object);
}

}  // namespace dalsegno::store
