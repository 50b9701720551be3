#include "replay/typed/text.h"

#include <charconv>
#include <type_traits>

namespace dalsegno::typed {
namespace {

constexpr int64_t kModes = static_cast<int64_t>(Mode::kAttribute) + 1;

// The tables that numbers in the text stand for: where one grows, texts of before are of another version.
constexpr int64_t kVersion[] = {5,
                                static_cast<int64_t>(OpKind::kCount),
                                static_cast<int64_t>(ArrayFn::kCount),
                                static_cast<int64_t>(Rep::kCount),
                                static_cast<int64_t>(Type::kCount),
                                static_cast<int64_t>(Callee::kCount),
                                kModes,
                                static_cast<int64_t>(DType::kCount)};

class Writer {
 public:
  std::string text = "typed";
  void line() { text += '\n'; }
  template <class T>
  void number(T& value, int64_t) {
    text += ' ';
    text += std::to_string(static_cast<int64_t>(value));
  }
  template <class T>
  void resize(std::vector<T>& list) {
    size_t n = list.size();
    number(n, 0);
  }
};

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) { word("typed"); }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && at_ == end_; }
  void line() { word("\n"); }
  // below: what the value has to be less than, or 0.
  template <class T>
  void number(T& value, int64_t below) {
    int64_t found = 0;
    if (!ok_ || at_ == end_ || *at_ != ' ') return fail();
    const auto [next, error] = std::from_chars(at_ + 1, end_, found);
    if (error != std::errc{} || (below > 0 && (found < 0 || found >= below))) return fail();
    at_ = next;
    if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
      value = static_cast<T>(found);
    } else {
      value = static_cast<T>(found);
      if (static_cast<int64_t>(value) != found) fail();
    }
  }
  template <class T>
  void resize(std::vector<T>& list) {
    size_t n = 0;
    number(n, 0);
    if (n > static_cast<size_t>(end_ - at_)) return fail();  // every item takes a character and more
    list.resize(ok_ ? n : 0);
  }

 private:
  void word(const std::string_view expected) {
    if (!ok_ || std::string_view(at_, end_).substr(0, expected.size()) != expected) return fail();
    at_ += expected.size();
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  const char *at_, *end_;
  bool ok_ = true;
};

// ---- what is written and read, in one order for both -------------------------------------------------------------------------------

template <class IO, class T>
void visit(IO& io, T& value) {
  static_assert(std::is_integral_v<T>);
  io.number(value, std::is_same_v<T, bool> ? 2 : 0);
}
template <class IO, class T>
void one_of(IO& io, T& value) {
  io.number(value, static_cast<int64_t>(T::kCount));
}
template <class IO, class... T>
void all(IO& io, T&... values) {
  (visit(io, values), ...);
}

template <class IO, class T>
void visit(IO& io, std::vector<T>& list);
template <class IO>
void visit(IO& io, std::vector<Rep>& list) {
  io.resize(list);
  for (Rep& rep : list) one_of(io, rep);
}
template <class IO>
void visit(IO& io, ArrayFacts& facts) {
  one_of(io, facts.dtype);
  visit(io, facts.rank);
}
template <class IO>
void visit(IO& io, SnapshotFrame& f) {
  all(io, f.function, f.code, f.offset, f.after, f.action, f.locals, f.stack);
}
template <class IO>
void visit(IO& io, FrameDelta& f) {
  all(io, f.outer, f.base, f.function, f.code, f.offset, f.after, f.action, f.n_locals, f.kept, f.first, f.changed, f.pushed);
}
template <class IO>
void visit(IO& io, Op& op) {
  one_of(io, op.kind);
  one_of(io, op.fn);
  all(io, op.effects, op.imm, op.object, op.object2, op.name, op.first_input, op.n_inputs, op.snapshot, op.exit_snapshot, op.facts, op.at);
}
template <class IO>
void visit(IO& io, ObjectFacts& facts) {
  one_of(io, facts.names);
  one_of(io, facts.type);
  one_of(io, facts.callee);
  one_of(io, facts.ufunc);
  all(io, facts.number, facts.unboxes, facts.bits, facts.wraps, facts.natural, facts.power_64, facts.positions, facts.none, facts.ellipsis,
      facts.uses_up, facts.names_out, facts.names_ddof);
}
template <class IO>
void visit(IO& io, ValueForm& form) {
  one_of(io, form.rep);
  all(io, form.since, form.born_raw, form.wants_raw, form.wants_obj, form.hoisted, form.borrowed, form.passing);
}
template <class IO>
void visit(IO& io, OpForm& form) {
  io.number(form.mode, kModes);
  one_of(io, form.typed.operand);
  one_of(io, form.typed.result);
  one_of(io, form.typed.real);
  one_of(io, form.callee);
  one_of(io, form.fn);
  all(io, form.effects, form.of_tuple, form.facts);
  visit(io, form.view);
}
template <class IO, class T>
void visit(IO& io, std::vector<T>& list) {
  io.resize(list);
  for (T& item : list) {
    if constexpr (!std::is_integral_v<T>) io.line();
    visit(io, item);
  }
}

template <class IO>
void whole(IO& io, Trace& t, TypedTrace& typed) {
  io.line();
  all(io, t.number);
  io.number(t.anchor, 3);
  all(io, t.parent, t.parent_op, t.parent_exit, t.n_params, t.entry.frames);
  io.line();
  all(io, t.ops, t.inputs, t.facts);
  io.line();
  all(io, t.snapshots.frames, t.snapshots.slots, t.snapshots.tops);
  io.line();
  all(io, typed.known.objects, typed.known.params, typed.known.box_ints, typed.known.python_first);
  io.line();
  all(io, typed.values, typed.ops);
}

}  // namespace

// (The writer changes nothing: the visitors are shared with the reader.)
std::string to_text(const TypedTrace& typed) {
  Writer out;
  for (int64_t part : kVersion) out.number(part, 0);
  whole(out, const_cast<Trace&>(*typed.trace), const_cast<TypedTrace&>(typed));
  return out.text;
}

std::optional<OwnedTrace> from_text(const std::string& text) {
  Reader in(text);
  for (int64_t part : kVersion) {
    int64_t found = -1;
    in.number(found, 0);
    if (found != part) return {};
  }
  OwnedTrace made{std::make_unique<Trace>(), {}};
  made.typed.trace = made.trace.get();
  whole(in, *made.trace, made.typed);
  if (!in.at_end()) return {};
  made.trace->objects.resize(made.typed.known.objects.size());
  return made;
}

}  // namespace dalsegno::typed
