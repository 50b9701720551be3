#include "store/codec.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "store/sha256.h"

namespace dalsegno::store {
namespace {

constexpr std::string_view kMagic = "DSTR";

// ---- writing: LEB128, signed numbers zigzag -----------------------------------------------------------------------------------

class Writer {
 public:
  static constexpr bool kReading = false;
  std::string bytes;

  void number(uint64_t n) {
    while (n >= 0x80) {
      bytes.push_back(static_cast<char>(n | 0x80));
      n >>= 7;
    }
    bytes.push_back(static_cast<char>(n));
  }
  void item(const int32_t& n) { number((static_cast<uint32_t>(n) << 1) ^ static_cast<uint32_t>(n >> 31)); }
  void item(const uint32_t& n) { number(n); }
  template <class E>
  requires std::is_enum_v<E>
  void item(const E& e) { number(static_cast<uint64_t>(e)); }
  void item(const std::string& s) {
    number(s.size());
    bytes += s;
  }
  size_t count(size_t n, size_t) {
    number(n);
    return n;
  }
};

// ---- reading ------------------------------------------------------------------------------------------------------------------

// After a fault everything reads as zero, so that loops end; the fault is asked for once, at the end.
class Reader {
 public:
  static constexpr bool kReading = true;
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool fault() const { return fault_; }
  bool at_end() const { return rest_.empty(); }

  uint64_t number(uint64_t limit) {
    uint64_t n = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      n |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return n <= limit ? n : bad();
    }
    return bad();
  }
  void item(int32_t& n) {
    const auto z = static_cast<uint32_t>(number(UINT32_MAX));
    n = static_cast<int32_t>((z >> 1) ^ (~(z & 1) + 1));
  }
  void item(uint32_t& n) { n = static_cast<uint32_t>(number(UINT32_MAX)); }
  template <class E>
  requires std::is_enum_v<E>
  void item(E& e) { e = static_cast<E>(number(UINT8_MAX)); }
  void item(std::string& s) {
    const uint64_t n = number(UINT32_MAX);
    if (n > rest_.size()) {
      bad();
      return;
    }
    s.assign(rest_.substr(0, n));
    rest_.remove_prefix(n);
  }
  // A count of items of at least `smallest` bytes each: what is left must have room for them, so a hostile length allocates nothing.
  size_t count(size_t, size_t smallest) {
    const uint64_t n = number(UINT32_MAX);
    return n <= rest_.size() / smallest ? n : bad();
  }

 private:
  uint64_t bad() {
    fault_ = true;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool fault_ = false;
};

// ---- the layout, once for both directions -------------------------------------------------------------------------------------

template <class Io, class T>
void all(Io& io, T& items, size_t smallest) {
  const size_t n = io.count(items.size(), smallest);
  if constexpr (Io::kReading) items.resize(n);
  for (auto& item : items) fields(io, item);
}

template <class Io>
void fields(Io& io, const std::string& s) {
  io.item(s);
}
template <class Io>
void fields(Io& io, std::string& s) {
  io.item(s);
}
template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, int32_t>
void fields(Io& io, T& n) { io.item(n); }

// Numbers that are often what was to be expected: those that are not follow a mask. The expected ones are known to both sides.
template <class Io, class N>
class Fields {
 public:
  explicit Fields(Io& io) : io_(io) {}
  void add(N& n, int32_t expected) {
    numbers_[count_] = &n;
    expected_[count_++] = expected;
  }
  void done() {
    uint32_t mask = 0;
    if constexpr (!Io::kReading) {
      for (int i = 0; i < count_; i++) mask |= static_cast<uint32_t>(*numbers_[i] != expected_[i]) << i;
    }
    io_.item(mask);
    for (int i = 0; i < count_; i++) {
      if ((mask >> i) & 1) {
        near(io_, *numbers_[i], expected_[i]);
      } else if constexpr (Io::kReading) {
        *numbers_[i] = expected_[i];
      }
    }
  }

 private:
  static constexpr int kMost = 12;
  Io& io_;
  N* numbers_[kMost] = {};
  int32_t expected_[kMost] = {};
  int count_ = 0;
};

// A number as the difference to one that is probably close.
template <class Io, class N>
void near(Io& io, N& n, int32_t expected) {
  const auto from = static_cast<uint32_t>(expected);
  int32_t difference = 0;
  if constexpr (!Io::kReading) difference = static_cast<int32_t>(static_cast<uint32_t>(n) - from);
  io.item(difference);
  if constexpr (Io::kReading) n = static_cast<int32_t>(from + static_cast<uint32_t>(difference));
}

template <class Io, class T>
void differences(Io& io, T& numbers) {
  const size_t n = io.count(numbers.size(), 1);
  if constexpr (Io::kReading) numbers.resize(n);
  int32_t last = 0;
  for (auto& number : numbers) near(io, number, std::exchange(last, 0)), last = number;
}

// Structured bindings name every field: a struct that grows does not compile until its new field is written here (and
// kTraceVersion raised). An op is near the one before it.
template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, Op>
void fields(Io& io, T& op, const Op& before) {
  using Number = std::conditional_t<Io::kReading, int32_t, const int32_t>;
  auto& [kind, fn, effects, imm, object, object2, name, first_input, n_inputs, snapshot, exit_snapshot, facts, line, depth, at] = op;
  io.item(kind);
  Fields<Io, Number> rest(io);
  rest.add(n_inputs, 1), rest.add(snapshot, -1), rest.add(line, before.line), rest.add(imm, 0), rest.add(object, -1), rest.add(name, -1);
  rest.add(depth, before.depth), rest.add(facts, -1), rest.add(exit_snapshot, -1), rest.add(object2, -1);
  rest.add(first_input, static_cast<int32_t>(static_cast<uint32_t>(before.first_input) + static_cast<uint32_t>(before.n_inputs)));
  rest.add(at, -1);
  rest.done();
  io.item(fn), io.item(effects);
}

template <class Io, class T>
void all_ops(Io& io, T& ops) {
  const size_t n = io.count(ops.size(), 4);
  if constexpr (Io::kReading) ops.resize(n);
  Op before;
  for (auto& op : ops) fields(io, op, before), before = op;
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, SnapshotFrame>
void fields(Io& io, T& frame) {
  auto& [function, code, offset, after, locals, stack, action] = frame;
  io.item(function), io.item(code), io.item(offset), io.item(after);
  all(io, locals, 1);
  all(io, stack, 1);
  io.item(action);
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, Snapshot>
void fields(Io& io, T& snapshot) {
  auto& [frames] = snapshot;
  all(io, frames, 7);
}

// A frame is near its base, or else the frame before it.
template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, FrameDelta>
void fields(Io& io, T& frame, const std::vector<FrameDelta>& frames, int32_t i) {
  using Number = std::conditional_t<Io::kReading, int32_t, const int32_t>;
  auto& [outer, base, function, code, offset, after, action, n_locals, kept, first, changed, pushed] = frame;
  const FrameDelta start;
  const FrameDelta& last = i > 0 ? frames[i - 1] : start;
  near(io, base, i - 1);
  const FrameDelta& like = base >= 0 && base < i ? frames[base] : last;
  near(io, offset, like.offset);
  Fields<Io, Number> rest(io);
  rest.add(changed, 0), rest.add(pushed, 0), rest.add(kept, 0), rest.add(outer, like.outer), rest.add(after, 0), rest.add(action, 0);
  rest.add(function, like.function), rest.add(code, like.code), rest.add(n_locals, like.n_locals);
  rest.add(first, static_cast<int32_t>(static_cast<uint32_t>(last.first) + 2 * static_cast<uint32_t>(last.changed) +
                                       static_cast<uint32_t>(last.pushed)));
  rest.done();
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, Snapshots>
void fields(Io& io, T& snapshots) {
  auto& [frames, slots, tops] = snapshots;
  const size_t n = io.count(frames.size(), 3);
  if constexpr (Io::kReading) frames.resize(n);
  for (size_t i = 0; i < n; i++) fields(io, frames[i], frames, static_cast<int32_t>(i));
  all(io, slots, 1);
  differences(io, tops);
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, ObjectRef>
void fields(Io& io, T& ref) {
  auto& [source, fingerprint] = ref;
  io.item(source), io.item(fingerprint);
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, ArrayFacts>
void fields(Io& io, T& array) {
  auto& [dtype, rank] = array;
  io.item(dtype), io.item(rank);
}

template <class Io, class T>
requires std::is_same_v<std::remove_const_t<T>, Folded>
void fields(Io& io, T& folded) {
  auto& [dict, name, value] = folded;
  io.item(dict), io.item(name), io.item(value);
}

template <class Io, class T>
void layout(Io& io, T& trace) {
  auto& [number, anchor, parent, parent_op, parent_exit, entry, ops, n_params, inputs, snapshots, objects, names, facts, folded, reason,
         where] = trace;
  io.item(number), io.item(anchor), io.item(parent), io.item(parent_op), io.item(parent_exit);
  fields(io, entry);
  all_ops(io, ops);
  io.item(n_params);
  differences(io, inputs);
  fields(io, snapshots);
  all(io, objects, 2);
  all(io, names, 1);
  all(io, facts, 2);
  all(io, folded, 3);
  io.item(reason), io.item(where);
}

std::string make_format_id() {
  std::string tables = "trace " + std::to_string(kTraceVersion);
  for (int i = 0; i < static_cast<int>(OpKind::kCount); i++) {
    const auto kind = static_cast<OpKind>(i);
    tables += std::string("\n") + op_name(kind) + " " + std::to_string(op_inputs(kind)) + " " + std::to_string(op_has_result(kind)) + " " +
              std::to_string(op_effects(kind));
  }
  for (int i = 0; i < static_cast<int>(ArrayFn::kCount); i++) tables += std::string("\n") + array_fn_name(static_cast<ArrayFn>(i));
  for (int i = 0; i < static_cast<int>(DType::kCount); i++) tables += std::string("\n") + dtype_name(static_cast<DType>(i));
  for (int i = 0; i < static_cast<int>(Reason::kCount); i++) tables += std::string("\n") + reason_name(static_cast<Reason>(i));
  return std::to_string(kTraceVersion) + "-" + hex(sha256(tables)).substr(0, 16);
}

std::string header() { return std::string(kMagic) + format_id() + "\n"; }

}  // namespace

const std::string& format_id() {
  static const std::string id = make_format_id();
  return id;
}

std::string encode_trace(const Trace& trace) {
  Writer writer;
  writer.bytes = header();
  layout(writer, trace);
  return std::move(writer.bytes);
}

std::optional<Trace> decode_trace(std::string_view bytes) {
  const std::string expected = header();
  if (!bytes.starts_with(expected)) return std::nullopt;
  Reader reader(bytes.substr(expected.size()));
  Trace trace;
  layout(reader, trace);
  if (reader.fault() || !reader.at_end()) return std::nullopt;
  return trace;
}

}  // namespace dalsegno::store
