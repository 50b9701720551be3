#include "replay/tree.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "hook/error_aside.h"
#include "hook/unobserved.h"
#include "replay/accounting.h"
#include "replay/clock.h"
#include "replay/door.h"
#include "replay/kernels/config.h"
#include "replay/kernels/table.h"
#include "replay/on_stack.h"
#include "replay/settings.h"
#include "trace/fault.h"
#include "trace/recorder/text.h"

namespace dalsegno::replay {
namespace {

std::vector<Tree*> g_trees;
Counters g_retired;

// Points (policy.h).
constexpr int kFruitless = 34;  // a recording without a useful op
constexpr int kRetired = 13;    // the tree was dropped because a folded global changed

constexpr uint32_t kMostInVain = 4;  // times that it is waited for loops behind an exit

constexpr int kGenerator = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

// Ops that do something a person would call work.
bool useful(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    switch (op.kind) {
      case OpKind::param:
      case OpKind::constant:
      case OpKind::release:
      case OpKind::leave:
      case OpKind::enter:
      case OpKind::leave_frame:
      case OpKind::guard_function:
      case OpKind::guard_type:
      case OpKind::guard_world:
      case OpKind::func_closure:
      case OpKind::func_default:
      case OpKind::cell_new:
      case OpKind::cell_get:
      case OpKind::load_global:
      case OpKind::guard_array:
        return false;
      default:
        return true;
    }
  });
}

}  // namespace

Settings& settings() {
  static Settings s;
  return s;
}

const std::vector<Tree*>& trees() { return g_trees; }
const Counters& retired_counters() { return g_retired; }

Tree::Tree(PyObject* callable, PyFunctionObject* function, TreeOptions options)
    : callable_(callable), function_(function), options_(options) {
  g_trees.push_back(this);
  give_up_generators();
}

Tree::~Tree() {
  Py_XDECREF(code_);
  g_trees.erase(std::find(g_trees.begin(), g_trees.end(), this));
  add_counters(&g_retired, counters_);
}

void Tree::clear() {
  const GilShared<Programs> gone = std::exchange(programs_, GilShared<Programs>::make());  // finalisers run last, and may do anything
  const Companions companions = std::exchange(companions_, {});
  stored_ = Stored::kUnknown;  // the store keeps its own
  saved_ = 0;
  abandoned_ = pass_over_ = 0;
  policy_.forget();
  fruitless_loops_.clear();
  give_up_generators();
}

void Tree::give_up_generators() {
  if (reinterpret_cast<PyCodeObject*>(function_->func_code)->co_flags & kGenerator) punish_entry(kGivenUp, Reason::generator);
}

// Somebody has assigned to __code__, of the jitted function or of the plain one: what is known is about the former code.
void Tree::take_code() {
  const bool first = code_ == nullptr;
  Py_XSETREF(code_, Py_NewRef(function_->func_code));
  if (first) return;
  ++codes_;
  key_.clear();
  clear();
}

void Tree::add_note(const recorder::Note& note) {
  std::string key = std::string(reason_name(note.reason)) + "|" + note.what + "|" + note.where;
  notes_.try_emplace(key, note);
}

// ---- calls -----------------------------------------------------------------------------------------------------------------

PyObject* Tree::eager(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ++counters_.eager_calls;
  return interpret(args, nargsf, kwnames);
}

PyObject* Tree::eager_because(Reason reason, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const uint32_t bit = uint32_t{1} << static_cast<int>(reason);
  if (!(noted_ & bit)) add_note({reason, "", recorder::text_of(function_->func_qualname)});
  noted_ |= bit;
  return eager(args, nargsf, kwnames);
}

PyObject* Tree::choose(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (!hook::stack_left()) [[unlikely]]
    return call_on_new_stack(args, nargsf, kwnames);
  ++counters_.calls;
  if (function_->func_code != code_) [[unlikely]]
    take_code();
  if (!settings().enabled) return eager_because(Reason::disabled, args, nargsf, kwnames);
  nested_ += recording_;
  std::optional<hook::Unobserved> rest;  // while this or another function is recorded
  if (recording_ ? by_plain_name_ : hook::kWatchesThreads && hook::watching()) rest.emplace();
  if (policy_.entry_given_up() || recording_) return eager(args, nargsf, kwnames);
  if (hook::thread_observed() || hook::code_observed(reinterpret_cast<PyCodeObject*>(function_->func_code)))
    return eager_because(Reason::traced_thread, args, nargsf, kwnames);
  if (stored_ < Stored::kLookedUp) [[unlikely]] {
    if (puts_off(args, PyVectorcall_NARGS(nargsf))) {
      const Policy::Under under(policy_, Way::kEager);
      return eager_because(Reason::put_off, args, nargsf, kwnames);
    }
    look_up();
    if (policy_.entry_given_up()) return eager(args, nargsf, kwnames);
  }
  if (stored_ == Stored::kLoaded && !has_entry()) return record_entry(args, nargsf, kwnames);
  const Way way = settings().step_aside ? policy_.next(args, PyVectorcall_NARGS(nargsf)) : Way::kReplay;
  if (way == Way::kEager) {
    const Policy::Under under(policy_, way);
    if (stored_ == Stored::kLoaded) return eager(args, nargsf, kwnames);
    return eager_because(Reason::step_aside, args, nargsf, kwnames);  // earlier processes know: no trace is needed
  }
  if (stored_ != Stored::kLoaded) [[unlikely]]
    load();
  if (!has_entry()) return record_entry(args, nargsf, kwnames);
  if (way == Way::kTimeReplay || way == Way::kTimeEager) return timed_call(way, args, nargsf, kwnames);
  std::optional<Policy::Under> under;
  if (settings().step_aside) under.emplace(policy_, way);
  return try_replay(args, nargsf, kwnames);
}

// In eager a Python function that calls another one takes no C stack, here it does.
PyObject* Tree::call_on_new_stack(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  struct Call {
    Tree* tree;
    PyObject* const* args;
    size_t nargsf;
    PyObject* kwnames;
    PyObject* result;
  } call{this, args, nargsf, kwnames, nullptr};
  auto run = [](void* context) {
    auto& c = *static_cast<Call*>(context);
    c.result = door([&] { return c.tree->call(c.args, c.nargsf, c.kwnames); });
  };
  if (!hook::on_new_stack(run, &call)) PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
  return call.result;
}

// The regions that were left may be companions'.
void Tree::grow_all() {
  std::vector<GilShared<Programs>> all;  // compiling may leave the GIL to other threads
  for (const Tree* tree : g_trees) all.push_back(tree->programs_);
  for (const auto& programs : all) grow_regions(*programs);
}

PyObject* Tree::timed_call(Way way, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Policy::Timing timing(policy_, way);
  const uint64_t will_grow = all_will_grow_;
  const uint64_t recordings = all_recordings_, measures = g_machine_counters.measures, growing = g_machine_counters.growing;
  PyObject* result = way == Way::kTimeReplay ? try_replay(args, nargsf, kwnames) : eager(args, nargsf, kwnames);
  const bool grows = g_machine_counters.growing != growing && !kernels_under_way();  // (while they are, no verdict lasts)
  if (grows) or_lose([] { grow_all(); });
  const bool settled = all_will_grow_ == will_grow && !grows && all_recordings_ == recordings && g_machine_counters.measures == measures;
  if (timing.ended(settled)) {
    const hook::ErrorAside keep;
    or_lose([this] {
      if (policy_.eager_wins()) add_note({Reason::step_aside, "", recorder::text_of(function_->func_qualname)});
      keep_experience();
    });
  }
  return result;
}

// What choose() asks, where the answer is to replay without anything else to be done. What a replayed function calls of itself is replayed.
const GilShared<Tree::Programs>* Tree::ready(PyThreadState* thread, Py_ssize_t count, const Programs* running) {
  const auto* code = reinterpret_cast<PyCodeObject*>(function_->func_code);
  if (function_->func_code != code_ || recording_ || stored_ != Stored::kLoaded || !settings().enabled) return nullptr;
  const PyObject* defaults = options_.any ? nullptr : function_->func_defaults;  // (of any function: that one has its own)
  const Py_ssize_t missing = code->co_argcount + options_.any - count;
  if (missing < 0 || missing > (defaults ? PyTuple_GET_SIZE(defaults) : 0)) return nullptr;
  if (code->co_kwonlyargcount || (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS))) return nullptr;
  if (policy_.entry_given_up() || programs_->empty() || !programs_->front()) return nullptr;
  if (hook::thread_observed(thread) || hook::code_observed(reinterpret_cast<PyCodeObject*>(function_->func_code))) return nullptr;
  if (programs_.get() != running && settings().step_aside && !policy_.goes_on()) return nullptr;
  return &programs_;
}

PyObject* Tree::try_replay(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* code = reinterpret_cast<PyCodeObject*>(function_->func_code);
  PyObject* result;
  Outcome outcome = Outcome::kReturned;
  const Arguments given{callable_, args, hook::count_of(nargsf, kwnames)};
  const auto given_up = hook::caller_gives_up(callable_, args, given.count) ? std::span(&given, 1) : std::span<const Arguments>();
  const Py_ssize_t first = options_.any ? 1 : 0;
  bool direct = !kwnames && PyVectorcall_NARGS(nargsf) == code->co_argcount + first && !code->co_kwonlyargcount &&
                !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS));
  if (direct) {
    result = replay(args, given_up, &outcome);
  } else {
    std::vector<PyObject*> params;
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf) - first);
    if (!bind_parameters(function_of(args), args + first, count, kwnames, &params)) return eager(args, nargsf, kwnames);
    if (options_.any) params.insert(params.begin(), Py_NewRef(args[0]));
    const Arguments both[] = {given, {nullptr, params.data(), static_cast<Py_ssize_t>(params.size())}};
    result = replay(params.data(), given_up.empty() ? given_up : both, &outcome);
    for (PyObject* p : params) Py_DECREF(p);
  }
  if (outcome == Outcome::kTooDeep) return eager(args, nargsf, kwnames);
  if (outcome != Outcome::kRefused) return result;
  retire();  // a folded global changed: what was recorded is about another program
  return policy_.entry_given_up() ? eager(args, nargsf, kwnames) : record_entry(args, nargsf, kwnames);
}

void Tree::retire() {
  const GilShared<Programs> gone = std::exchange(programs_, GilShared<Programs>::make());
  forget_stored();
  abandoned_ = pass_over_ = 0;
  punish_entry(kRetired, Reason::too_many_traces);
}

void Tree::punish_entry(int points, Reason reason) {
  if (policy_.entry_given_up()) return;
  policy_.punish({}, points, reason);
  if (policy_.entry_given_up()) add_note({reason, "", recorder::text_of(function_->func_qualname)});
}

void Tree::punish_exit(Exit* exit, int points, Reason reason) {
  const Place place{exit->owner->trace().data.number, exit->op, exit->which};
  policy_.punish(place, points, reason);
  exit->patience = policy_.patience(place);
  exit->count = 0;
}

Accounting::Work Accounting::g_counted{};

// Outcome kRefused or kTooDeep: nothing has run, and no exception is set.
PyObject* Tree::replay(PyObject* const* params, std::span<const Arguments> take, Outcome* outcome) {
  GilShared<Programs> keep = programs_;  // a step may clear the tree
  Accounting accounting(counters_);
  PyObject* result = nullptr;
  Exit* exit = nullptr;
  FrameState state;
  *outcome = run(*keep->front(), params, &result, &exit, &state, take);
  if (*outcome == Outcome::kRefused || *outcome == Outcome::kTooDeep) return nullptr;
  ++counters_.replays;
  accounting.count();
  return *outcome == Outcome::kReturned ? result : leave(exit, &state, keep);
}

// How often an exit is taken before a side trace is recorded there. A loop's end comes once to every loop.
static uint64_t times_to_be_hot(const Exit& exit) {
  const auto often = static_cast<uint64_t>(settings().hot_exit);
  return (exit.which == 1 ? (often + 1) / 2 : often) * exit.patience;
}

// Is what follows this exit to be recorded? `ran`: the programs it belongs to. The tree may have been cleared since: then nothing is to
// grow there any more.
bool Tree::grows_at(Exit* exit, const FrameState& state, const GilShared<Programs>& ran) {
  ++counters_.exits;
  const bool grow = ran == programs_ && !state.raised && exit->patience != 0 && !exit->side && settings().record && !recording_ &&
                    exit->owner && exit->count >= times_to_be_hot(*exit);
  if (grow && static_cast<int>(programs_->size()) >= settings().max_traces) {
    punish_exit(exit, kGivenUp, Reason::too_many_traces);
    add_note({Reason::too_many_traces, "", recorder::text_of(function_->func_qualname)});
    return false;
  }
  all_will_grow_ += ran == programs_ && !state.raised && exit->patience == 1 && settings().record;
  return grow;
}

// Where the function's own frame goes on as this says, is there a loop that it may come back to?
bool Tree::loop_ahead(const hook::FrameImage& own, bool calls) const {
  if (own.code != reinterpret_cast<PyCodeObject*>(code_)) return false;
  return recorder::CodeInfo::of(own.code)->loops_from(calls ? own.after : own.offset);
}

PyObject* Tree::leave(Exit* exit, FrameState* state, const GilShared<Programs>& ran) {
  const bool grow = grows_at(exit, *state, ran);
  const bool loop = ran == programs_ && exit->in_vain < kMostInVain && loop_ahead(state->images.front(), state->images.size() > 1);
  if (!grow && !loop) return state->resume();
  InFrame call(*this);
  const bool recording = grow && call.record_exit(exit, state, ran);
  if (loop) call.wait();
  PyObject* result = state->resume(InFrame::entered, &call);
  call.take_over();
  if (loop && ran == programs_) exit->in_vain = call.looped() || recording ? 0 : exit->in_vain + 1;
  return recording && !call.abandoned() ? check_full_graph(result) : result;
}

// ---- recording -------------------------------------------------------------------------------------------------------------

PyObject* Tree::record_entry(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (!settings().record || !policy_.entry_due()) return eager(args, nargsf, kwnames);
  if (pass_over_ > 0) return --pass_over_, eager(args, nargsf, kwnames);
  InFrame call(*this);
  const hook::WatchStatus status = call.record_entry(function_of(args));
  if (status == hook::WatchStatus::kBusy) return eager(args, nargsf, kwnames);
  if (status != hook::WatchStatus::kOk) return eager_because(Reason::lost, args, nargsf, kwnames);
  if (recorder::CodeInfo::of(call.code())->loops()) call.wait();
  const double start = thread_time();
  MemoryMeasured memory;
  PyObject* result = nullptr;
  {
    const Policy::Within within(policy_);
    result = interpret(args, nargsf, kwnames);
  }
  const Took took{thread_time() - start, false, 0, memory.end()};
  call.take_over();
  or_lose([&] {
    if (!call.looped()) policy_.recorded(args, PyVectorcall_NARGS(nargsf), took);
    if (!call.abandoned()) keep_experience();
  });
  if (call.abandoned()) return result;
  return check_full_graph(result);
}

// Where a trace ends after nothing useful, no side trace will be recorded either; unless an exception ended it, or the next one will know
// a callee's traces.
std::unique_ptr<Program> Tree::lower(std::unique_ptr<LiveTrace> trace, Exit* exit) {
  use_kernel_cache = options_.store;
  const double start = thread_time();
  auto program = Program::lower(std::move(trace), exit, programs_.get());
  lowering_ += thread_time() - start;
  use_kernel_cache = true;
  const Trace* t = program ? &program->trace().data : nullptr;
  if (t && !policy_.penalties().empty())
    for (Exit& e : program->exits()) e.patience = policy_.patience({t->number, e.op, e.which});
  const bool recurses = t && t->reason == Reason::too_deep;  // nor where it ends before a recursion
  const bool goes_on = t && (t->reason == Reason::exception || t->reason == Reason::calls_itself);
  if (!t || goes_on || (useful(*t) && !recurses)) return program;
  for (Exit& e : program->exits())
    if (t->ops[e.op].kind == OpKind::leave) punish_exit(&e, kGivenUp, t->reason);
  return program;
}

// A planted fault: to an exit of the same program with the same values, somewhere else in the code.
static void attach_elsewhere(const Exit& exit, Program* side) {
  const Trace& t = exit.owner->trace().data;
  const auto state_at = [&t](const Exit& e) { return t.snapshot(e.which == 0 ? t.ops[e.op].snapshot : t.ops[e.op].exit_snapshot); };
  const Snapshot here = state_at(exit);
  for (Exit& other : exit.owner->exits()) {
    Snapshot there = state_at(other);
    const int32_t offset = std::exchange(there.frames.back().offset, here.frames.back().offset);
    if (other.side || offset == here.frames.back().offset || there != here) continue;
    other.side = side;
    return;
  }
}

bool Tree::install(recorder::Recorder& recorder, Exit* exit, bool entry, int codes) {
  const hook::ErrorAside keep;
  const Uncounted clock;  // it is done once, whoever's call it is
  policy_.grown();
  useless_loops_.clear();
  recorder.finish();
  break_ = Reason::none;
  if (codes_ != codes) return false;  // what was recorded is about the former code
  for (const recorder::Note& note : recorder.notes()) add_note(note);
  auto traces = recorder.take();
  if (!traces.empty() && traces.back()->data.reason != Reason::none) {
    break_ = traces.back()->data.reason;
    break_where_ = traces.back()->data.where;
  }
  bool work = std::any_of(traces.begin(), traces.end(), [](const auto& t) {
    return useful(t->data) || t->data.reason == Reason::none || t->data.reason == Reason::calls_itself;
  });
  if (!work) {
    if (!traces.empty()) add_note({traces.back()->data.reason, "", traces.back()->data.where});
    const bool raised = break_ == Reason::exception;
    if (exit)
      punish_exit(exit, raised ? kRaised : kGivenUp, break_);
    else if (entry)
      punish_entry(raised ? kRaised : kFruitless, break_);
    // A side trace that only leaves is kept: it tells other processes not to try again.
    if (!exit || raised || traces.empty()) return keep_experience(), false;
  } else if (exit || entry) {
    policy_.pardon(exit ? Place{exit->owner->trace().data.number, exit->op, exit->which} : Place{});
  }
  programs_->reserve(programs_->size() + traces.size());  // an exit must not point to a program that then finds no room
  for (auto& trace : traces) {
    if (static_cast<int>(programs_->size()) != trace->data.number) break;
    std::string bad = verify(trace->data);
    if (!bad.empty()) {
      add_note({Reason::lost, bad, trace->data.where});
      programs_->push_back(nullptr);
      if (exit) punish_exit(exit, kGivenUp, Reason::lost);
      exit = nullptr;
      continue;
    }
    bool side = exit != nullptr;
    auto program = lower(std::move(trace), exit);
    if (side && program && work) ++counters_.side_traces;
    if (program)  // so that the next process finds its kernels even if this one makes no second call
      for (const auto& runner : program->segments()) runner->prepare();
    if (side && program && planted(Fault::wrong_exit)) attach_elsewhere(*exit, program.get());
    if (side) program ? void(exit->side = program.get()) : punish_exit(exit, kGivenUp, Reason::lost);
    exit = nullptr;
    programs_->push_back(std::move(program));
  }
  save();
  keep_experience();
  return work;
}

// There was no memory to take over all of a recording: traces that jump to missing ones would leave on every turn.
void Tree::drop_halves() {
  const hook::ErrorAside keep;
  or_lose([this] { clear(); });
}

PyObject* Tree::check_full_graph(PyObject* result) {
  if (!options_.full_graph || !result || break_ == Reason::none || break_ == Reason::exception || break_ == Reason::handler) return result;
  Py_DECREF(result);
  PyObject* errors = PyImport_ImportModule("dalsegno.errors");
  PyObject* type = errors ? PyObject_GetAttrString(errors, "GraphBreak") : nullptr;
  if (type) PyErr_Format(type, "%s: %s. %s", break_where_.c_str(), reason_text(break_), reason_remedy(break_));
  Py_XDECREF(type);
  Py_XDECREF(errors);
  return nullptr;
}

}  // namespace dalsegno::replay
