// A tree's way into the store and back. Traces are written by a thread of our own, in the order they were recorded; what they refer to
// is fingerprinted on the caller's thread first, so that the thread needs no Python.
#include <string_view>

#include "replay/door.h"
#include "replay/kernels/compile.h"
#include "replay/persist/errors.h"
#include "replay/persist/kept_as.h"
#include "replay/persist/persist.h"
#include "replay/persist/store.h"
#include "replay/persist/writer.h"
#include "replay/py_ref.h"
#include "replay/settings.h"
#include "replay/tree.h"
#include "trace/fault.h"
#include "trace/recorder/steady.h"
#include "trace/recorder/text.h"

namespace dalsegno::replay {
namespace {

// The source of an object that nothing leads to, but that can be written out. (A name with a lone surrogate has none for good: traces name
// names by what can be encoded of them.)
bool write_out(PyObject* object, std::string* source) {
  constexpr size_t kMost = 1024;
  std::string literal;
  if (!encode_literal(object, &literal) || literal.size() > kMost) return false;
  const PyRef text(PyUnicode_DecodeUTF8(literal.data(), static_cast<Py_ssize_t>(literal.size()), "strict"));
  if (!text) return drop_error(), false;
  return *source = "const:" + literal, true;
}

// What must be the same about the trace's objects in another process. False: one cannot be found again, so the trace is not kept.
bool fingerprint_objects(LiveTrace& live) {
  for (size_t i = 0; i < live.objects.size(); ++i) {
    ObjectRef& ref = live.data.objects[i];
    if (ref.source.empty() && !write_out(live.objects[i], &ref.source)) return false;
    if (ref.fingerprint.empty()) ref.fingerprint = fingerprint(live.objects[i]);
    if (ref.fingerprint.empty()) return false;
  }
  return true;
}

// A name that stands for another plain value in each process is not to be folded anew in each of them.
void note_changed(const Trace& trace, const ObjectRef& gone, PyFunctionObject* function) {
  for (const Folded& folded : trace.folded) {
    if (folded.value < 0 || &trace.objects[static_cast<size_t>(folded.value)] != &gone) continue;
    const PyRef dict(fetch(trace.objects[static_cast<size_t>(folded.dict)], reinterpret_cast<PyObject*>(function)));
    const PyRef name(PyUnicode_FromString(trace.names[static_cast<size_t>(folded.name)].c_str()));
    if (dict && name) recorder::note_unsteady(dict.get(), name.get());
    drop_error();
  }
}

std::unique_ptr<LiveTrace> revive(Trace trace, PyFunctionObject* function, PyObject* callable) {
  auto live = std::make_unique<LiveTrace>();
  for (const ObjectRef& ref : trace.objects) {
    PyObject* object = fetch(ref, reinterpret_cast<PyObject*>(function), callable);
    if (!object) return note_changed(trace, ref, function), nullptr;
    live->objects.push_back(object);
  }
  for (const std::string& name : trace.names) {
    PyObject* text = PyUnicode_InternFromString(name.c_str());
    if (!text) return drop_error(), nullptr;
    live->names.push_back(text);
  }
  live->data = std::move(trace);
  return live;
}

// A planted fault.
void add_instead_of_subtracting(Trace& trace) {
  for (Op& op : trace.ops)
    if (op.kind == OpKind::binary && op.imm == static_cast<int32_t>(BinaryOp::subtract)) op.imm = static_cast<int32_t>(BinaryOp::add);
}

std::string title(PyFunctionObject* f) {
  const std::string module = recorder::text_of(f->func_module);
  return (module.empty() ? "?" : module) + "." + recorder::text_of(f->func_qualname);
}

// A number that tells functions apart, mostly, and is found without a look at their code (store::Pace). FNV-1a.
uint64_t pace_number(PyFunctionObject* f) {
  uint64_t number = 0xcbf29ce484222325;
  const auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  const auto add = [&number](std::string_view bytes) {
    for (const char byte : bytes) number = (number ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  add(title(f));
  for (const auto n : {static_cast<int64_t>(Py_SIZE(code)), int64_t{code->co_nlocalsplus}, int64_t{PY_VERSION_HEX >> 16}})
    add(std::to_string(n) + ",");
  return number;
}

// Nanoseconds it takes to open the store, to look a function up, and to find the objects of its traces. Making programs of them takes
// longer than it did where they were recorded: everything is done for the first time.
constexpr double kOpen = 550e3, kLookUp = 200e3, kFetch = 100e3, kAnew = 1.5;

double cost_of(const store::Pace& pace) {
  const double load = pace.replay_ns < pace.eager_ns ? kFetch + kAnew * pace.load_ns : 0;
  return (store_opened() ? 0 : kOpen) + kLookUp + load;
}

// Says that the store holds something of the function, though nobody may have taken the time of its calls. It has a size that no call has,
// so that it stands in no other record's way.
void note_kept(PyFunctionObject* f) {
  write_later([number = pace_number(f)] { process_store().note_paces({{number, UINT32_MAX, 0, 0, 0}}); });
}

// Whether the store is not to be asked now: to open it, or to wait for who writes to it, and find nothing takes as long as many a first
// call. Where the notes are wrong the function is recorded once more, and they are right again.
bool new_to_store(PyFunctionObject* f) {
  return settings().step_aside && settings().record && (!store_opened() || writing()) && never_noted(pace_number(f));
}

// What a look-up has left to be done.
void tidy_later() {
  if (process_store().untidy()) write_later([] { process_store().tidy(); });
}

}  // namespace

bool Tree::puts_off(PyObject* const* args, Py_ssize_t count) {
  if (!options_.store || options_.full_graph || !settings().step_aside) return false;
  if (stored_ == Stored::kUnknown) {
    stored_ = Stored::kPutOff;
    or_lose([this] {
      for (const store::Pace& pace : noted_paces(pace_number(function_)))
        policy_.put_off(pace.sizes, Policy::calls_to_put_off(cost_of(pace), pace.replay_ns, pace.eager_ns));
    });
  }
  return policy_.is_put_off(args, count);
}

void Tree::look_up() {
  stored_ = Stored::kLookedUp;
  if (!options_.store) return;
  or_lose([this] {
    key_ = function_key(reinterpret_cast<PyObject*>(function_), options_.any);
    if (key_.empty()) return;
    has_traces_ = !new_to_store(function_);
    if (!has_traces_) return;
    policy_.remember(process_store().load_experience(key_, &has_traces_));
    tidy_later();
  });
}

void Tree::load() {
  stored_ = Stored::kLoaded;
  if (!key_.empty() && has_traces_ && !or_lose([this] { attach_stored(); })) programs_ = GilShared<Programs>::make();
}

void Tree::attach_stored() {
  std::vector<std::string> identities;
  std::vector<store::KeptRegion> regions;
  std::vector<Trace> traces = process_store().load_traces(key_, &identities, &regions);
  tidy_later();
  for (size_t i = 0; i < traces.size(); ++i) {
    Trace& trace = traces[i];
    if (planted(Fault::wrong_stored_op)) add_instead_of_subtracting(trace);
    bool root = trace.number == 0;
    bool ok = attach(revive(std::move(trace), function_, callable_), std::move(identities[i]));
    if (root && !ok) {  // recorded about another program
      programs_->clear();
      forget_stored();
      return;
    }
  }
  saved_ = programs_->size();
  for (const store::KeptRegion& region : regions)
    if (Program* program = region.trace >= 0 && static_cast<size_t>(region.trace) < saved_ ? (*programs_)[region.trace].get() : nullptr)
      program->kept_as->region = region;
}

bool Tree::attach(std::unique_ptr<LiveTrace> live, std::string kept_as) {
  if (!live) return false;
  const Trace& t = live->data;
  size_t number = static_cast<size_t>(t.number);
  if (number < programs_->size()) return false;
  Exit* exit = nullptr;
  if (t.anchor == AnchorKind::exit) {
    if (t.parent < 0 || static_cast<size_t>(t.parent) >= programs_->size() || !(*programs_)[t.parent]) return false;
    for (Exit& e : (*programs_)[t.parent]->exits())
      if (e.op == t.parent_op && e.which == t.parent_exit) exit = &e;
    if (!exit) return false;
  }
  programs_->reserve(number + 1);  // an exit must not point to a program that then finds no room
  auto program = lower(std::move(live), exit);
  if (!program) return false;
  program->kept_as = std::make_shared<KeptAs>(key_, t.number);
  program->kept_as->set(std::move(kept_as));
  program->from_store = true;
  if (exit) exit->side = program.get();
  programs_->resize(number);  // numbers that are missing stay empty
  programs_->push_back(std::move(program));
  ++counters_.traces_loaded;
  return true;
}

void Tree::save() {
  if (!options_.store || key_.empty() || store_in_use("off")) return;
  bool kept = false;
  for (; saved_ < programs_->size(); ++saved_) {
    Program* program = (*programs_)[saved_].get();
    if (!program || !fingerprint_objects(const_cast<LiveTrace&>(program->trace()))) continue;
    const Trace& trace = program->trace().data;
    if (!program->kept_as) program->kept_as = std::make_shared<KeptAs>(key_, trace.number);
    std::shared_ptr<const KeptAs> parent;  // a side trace is tied to the very trace it leaves
    if (trace.parent >= 0) parent = (*programs_)[trace.parent]->kept_as;
    write_later([key = key_, trace, parent, kept_as = program->kept_as, name = title(function_)] {
      std::string identity;
      process_store().save_trace(key, trace, name, parent ? parent->get() : "", &identity);
      if (!identity.empty()) kept_as->set(std::move(identity));
    });
    kept = true;
  }
  if (kept) note_kept(function_);
}

void Tree::keep_experience() {
  const bool news = policy_.take_news(), pace_news = policy_.take_pace_news();
  if (!options_.store || key_.empty() || store_in_use("off")) return;
  if (news) {
    write_later(
        [key = key_, learned = policy_.experience(), name = title(function_)] { process_store().save_experience(key, learned, name); });
    note_kept(function_);
  }
  std::vector<store::Pace> paces;
  if (pace_news) paces = policy_.paces(counters_.recordings != 0);
  if (paces.empty()) return;
  for (store::Pace& pace : paces) pace.function = pace_number(function_), pace.load_ns += static_cast<float>(lowering_);
  write_later([paces = std::move(paces)] { process_store().note_paces(paces); });
}

void Tree::forget_stored() {
  saved_ = 0;
  if (!key_.empty() && !store_in_use("off")) write_later([key = key_] { process_store().drop_function(key); });
}

void read_paces() { noted_paces(0); }

uint64_t process_store_errors() { return connected_store().errors(); }

void wait_for_store() {
  prepare_writer();
  without_gil([] { wait_for_writer(); });
}

}  // namespace dalsegno::replay
