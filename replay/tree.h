// A jitted function's tree of traces: records, replays, leaves, grows side traces, keeps them in the store.
// One per JitFunction; needs the GIL.
#pragma once
#include <Python.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hook/arguments.h"
#include "replay/arrays.h"
#include "replay/machine/machine.h"
#include "replay/policy.h"
#include "replay/py_ref.h"
#include "replay/settings.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::replay {

struct TreeOptions {
  bool full_graph = false;
  bool store = true;
  // The tree is of all functions with the code and globals of its own, which is their shape and never called: a call's first argument is
  // the function to be called.
  bool any = false;
};

// Counters, of one function or of the process.
struct Counters {
  uint64_t calls = 0, recordings = 0, replays = 0, eager_calls = 0, exits = 0, side_traces = 0, guard_failures = 0, steps = 0,
           kernel_launches = 0, kernels_assembled = 0, kernels_compiled = 0, kernels_loaded = 0, traces_loaded = 0, store_errors = 0,
           loops_entered = 0;
};

// Whether one of these is held by nobody but the caller, and somebody might see when it dies.
inline bool may_die(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (Py_REFCNT(args[i]) == 1 && !PyFloat_CheckExact(args[i]) && !PyLong_CheckExact(args[i]) && !PyUnicode_CheckExact(args[i]))
      return true;
  return false;
}

class Tree final : public Jitted {
 public:
  // Both are borrowed: `callable`, the JitFunction, owns the function and the tree.
  Tree(PyObject* callable, PyFunctionObject* function, TreeOptions options);
  ~Tree();
  Tree(const Tree&) = delete;

  // Calls the function: replays where it can, else records or runs it eagerly. Arguments as in vectorcall.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    const MemoryReused memory(settings().enabled);  // however it runs
    const bool aside = policy_.under_eager() || policy_.aside(args, PyVectorcall_NARGS(nargsf));
    if (aside && settings().step_aside && hook::stack_left()) {
      ++counters_.calls, ++counters_.eager_calls;
      const Policy::Under under(policy_, Way::kEager);
      return interpret(args, nargsf, kwnames);
    }
    return choose(args, nargsf, kwnames);
  }
  // Forgets all traces. What runs at the moment is kept until it has ended.
  void clear();
  // Somebody wants to see its traces: what was put off is done now.
  void show() {
    if (stored_ == Stored::kPutOff) look_up(), load();
  }
  // In a child process whose parent was recording in a thread that is gone.
  void forget_recording() { recording_ = false; }

  const Counters& counters() const { return counters_; }
  // Its traces as they are; kept for as long as somebody looks at them, though new ones may be added meanwhile.
  GilShared<Programs> programs() const { return programs_; }
  // Jitted functions that its traces call in the place of plain ones (jit.h), or will.
  using Companions = std::map<PyObject*, PyRef>;  // by function, or code
  const Companions& companions() const { return companions_; }
  const std::map<std::string, recorder::Note>& notes() const { return notes_; }
  const Policy& policy() const { return policy_; }
  PyFunctionObject* function() const { return function_; }
  bool takes(const PyFunctionObject* function) const override {  // as the first argument, if it is of any function
    return function->func_code == function_->func_code && function->func_globals == function_->func_globals &&
           function->vectorcall == function_->vectorcall;
  }

 private:
  class InFrame;  // on_stack.h
  bool has_entry() const override { return !programs_->empty() && programs_->front(); }
  const GilShared<Programs>* ready(PyThreadState* thread, Py_ssize_t count, const Programs* running) override;
  bool recurses() const override;
  bool loops_shortly() override;
  PyObject* plain() const override { return reinterpret_cast<PyObject*>(function_); }
  void count_replays(uint64_t calls) override { counters_.calls += calls, counters_.replays += calls; }
  PyObject* leave(Exit* exit, FrameState* state, const GilShared<Programs>& ran) override;
  PyObject* choose(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* interpret(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    const hook::UncountedEvaluator uncounted;
    const Py_ssize_t count = hook::count_of(nargsf, kwnames);
    PyFunctionObject* const function = function_of(args);
    if (may_die(args, count) && hook::caller_gives_up(callable_, args, count))
      return hook::call_taking(callable_, function, args, nargsf, kwnames, options_.any);
    return hook::call_plainly(function, args, options_.any, nargsf, kwnames);
  }
  PyFunctionObject* function_of(PyObject* const* args) const {
    return options_.any ? reinterpret_cast<PyFunctionObject*>(args[0]) : function_;
  }
  PyObject* eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);  // the same, counted
  PyObject* eager_because(Reason reason, PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* try_replay(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  static void grow_all();
  PyObject* timed_call(Way way, PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* record_entry(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* replay(PyObject* const* params, std::span<const Arguments> take, Outcome* outcome);
  bool grows_at(Exit* exit, const FrameState& state, const GilShared<Programs>& ran);
  bool loop_ahead(const hook::FrameImage& own, bool calls) const;
  recorder::Options recorder_options();
  int find_loop(const recorder::AnchorKey& key, const recorder::SlotTypes& types) const;
  // Takes over what was recorded; the first trace hangs on `exit`. `codes`: codes_ as the recording began.
  // `entry`: it began at the function's entry. False: nothing useful was recorded.
  bool install(recorder::Recorder& recorder, Exit* exit, bool entry, int codes);
  void drop_halves();
  PyObject* check_full_graph(PyObject* result);
  bool abandon_recursion();
  PyObject* call_on_new_stack(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  // Whether the call is too short for the store to be opened and read now: it is run eagerly.
  bool puts_off(PyObject* const* args, Py_ssize_t count);
  void look_up();  // in the store: what paid
  void load();     // and its traces
  std::unique_ptr<Program> lower(std::unique_ptr<LiveTrace> trace, Exit* exit);
  void attach_stored();
  bool attach(std::unique_ptr<LiveTrace> trace, std::string kept_as);
  void save();           // what is new
  void forget_stored();  // drops the tree in the store
  void add_note(const recorder::Note& note);
  void retire();
  void keep_experience();  // in the store, if there is news
  // Gives points to a place (policy.h).
  void punish_entry(int points, Reason reason);
  void punish_exit(Exit* exit, int points, Reason reason);
  void take_code();
  void give_up_generators();

  PyObject* callable_;
  PyFunctionObject* function_;
  PyObject* code_ = nullptr;  // the code that everything below is about; null before the first call
  int codes_ = 0;             // times it has changed
  TreeOptions options_;
  GilShared<Programs> programs_ = GilShared<Programs>::make();  // shared with replays under way
  Counters counters_;
  std::map<std::string, recorder::Note> notes_;
  uint32_t noted_ = 0;      // reasons of eager calls that are in notes_ already, a bit each
  std::string key_;         // in the store; "" = not computed or not kept
  bool has_traces_ = true;  // the store may have traces of it
  double lowering_ = 0;     // nanoseconds that making programs of its traces took
  size_t saved_ = 0;        // programs before this one are in the store, or cannot be
  Policy policy_;
  enum class Stored : uint8_t { kUnknown, kPutOff, kLookedUp, kLoaded } stored_ = Stored::kUnknown;  // what has been taken from the store
  bool recording_ = false;
  std::unordered_map<int, int> useless_loops_;    // by trace number: times in a row that entering it was not worth it
  std::unordered_map<int, int> fruitless_loops_;  // by offset of the head: recordings there that yielded nothing
  // Of the process, as trees call each other: recordings, and exits taken that may yet get a side trace.
  static inline uint64_t all_recordings_ = 0, all_will_grow_ = 0;
  Companions companions_;
  std::optional<bool> loops_shortly_;
  bool by_plain_name_ = false;   // it calls itself as a plain function: its traces call it as a jitted one
  int nested_ = 0;               // calls of the function itself while it was being recorded
  int abandoned_ = 0;            // recordings
  int pass_over_ = 0;            // calls: the one behind an abandoned recording is likely to do as much
  Reason break_ = Reason::none;  // full_graph: why and where the last recording ended
  std::string break_where_;
};

// The function's arguments as its parameter slots (vectorcall's arguments, defaults, *args, **kwargs), or false if they do not
// bind (the plain call raises the right error). New references.
bool bind_parameters(PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames, std::vector<PyObject*>* params);

// All trees of the process, and the counters of those that are gone.
const std::vector<Tree*>& trees();
const Counters& retired_counters();
void add_counters(Counters* sum, const Counters& more);

// The trees' way into the store (tree_store.cc).
void read_paces();  // ahead of the first calls
uint64_t process_store_errors();
void wait_for_store();  // until everything recorded has been written

}  // namespace dalsegno::replay
