// The replay machine: a trace lowered to a flat array of typed steps over a register file, run in a tight loop.
// `Program` = lowered trace. Programs of one function's tree link to each other through exits (side traces) and jumps (loops).
#pragma once
#include <Python.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hook/hook.h"
#include "replay/gil_shared.h"
#include "replay/segment/runner.h"
#include "trace/recorder/live_trace.h"

namespace dalsegno::replay {

class KeptAs;
class Program;

// One place where a program can be left.
struct Exit {
  Program* owner = nullptr;
  int32_t op = -1;          // op of owner's trace
  int32_t which = 0;        // 0: op.snapshot, 1: op.exit_snapshot
  uint64_t count = 0;       // times taken without a side trace
  Program* side = nullptr;  // side trace attached, or null
  uint32_t in_vain = 0;     // times the interpreter went on here and came to no loop with a trace
  uint32_t patience = 1;    // so many times hot_exit passes before a side trace is recorded; 0: none will be (policy.h)
};

// Per frame that is kept: which variables its frame object knows better; what images' from_object point to.
using FromObjects = std::vector<std::unique_ptr<bool[]>>;

// The frames rebuilt from a snapshot, values owned; what hook::resume needs.
struct FrameState {
  std::vector<hook::FrameImage> images;       // outermost first; point into `slots`
  std::vector<std::vector<PyObject*>> slots;  // per frame: locals then stack; owned references
  std::vector<PyObject*> functions;           // owned references
  FromObjects from_object;
  PyObject* raised = nullptr;  // owned: the exception to be thrown in, or null
  FrameState() = default;
  FrameState(const FrameState&) = delete;
  ~FrameState();
  PyObject* resume(hook::OnEntered on_entered = nullptr, void* context = nullptr);  // consumes the state
};

enum class Outcome : uint8_t {
  kReturned,  // *result is the value, or null with an exception set: a signal's handler raised before anything had run
  kLeft,      // *exit is the place, *state the frames (state.raised set: an exception is to be thrown in at that place)
  kTooDeep,   // the recursion limit is reached, nothing has run: call the plain function, which raises
  kRefused,   // the entry's guards on folded globals did not hold and nothing has run yet: call the plain function
};

// A jitted function as the machine sees it. Where a step calls one, the machine runs its tree itself: without an evaluator, on registers.
class Jitted {
 public:
  using Programs = std::vector<std::unique_ptr<Program>>;
  // The programs whose first one is to be run for a call with so many positional arguments (those that are missing are the plain
  // function's defaults), or null: the function is to be called as any callable is. `running`: those of the caller. Needs the GIL; asks no
  // code of the user's.
  virtual const GilShared<Programs>* ready(PyThreadState* thread, Py_ssize_t count, const Programs* running) = 0;
  virtual bool has_entry() const = 0;  // are there traces of it?
  virtual bool recurses() const = 0;   // do they call it?
  virtual bool loops_shortly() = 0;    // do they go round but a few times a call?
  virtual void count_replays(uint64_t calls) = 0;
  virtual PyObject* plain() const = 0;                             // the plain function; borrowed
  virtual bool takes(const PyFunctionObject* function) const = 0;  // as the first argument, where it is of any function with a code
  // What has run leaves: the interpreter goes on, perhaps recording. The call's result, or null with an exception set.
  virtual PyObject* leave(Exit* exit, FrameState* state, const GilShared<Programs>& ran) = 0;

 protected:
  ~Jitted() = default;
};
// Null for other objects.
extern Jitted* (*jitted_at)(PyObject* callable);

struct MachineCounters {
  uint64_t steps, exits, guard_failures;
  uint64_t measures;  // groups that were done as eager does them, to see what memory that takes
  uint64_t growing;   // times native code was left for a trace that it will have as a part
  uint64_t in_place;  // writes into arrays that a kernel has done as it made what is written
};

// Array ops of a trace that are done together, and what does them (null: always one by one).
struct SegmentInfo {
  std::vector<int32_t> ops;
  int32_t writes = -1;  // the op that ends them by writing into an array
  bool loops = false;   // NumPy's inner loops do it all where it is small
  const SegmentRunner* runner = nullptr;
};

// What became of a loop as native code.
struct NativeInfo {
  enum class How : uint8_t { kLeaves, kRunsCode, kStep };  // costliest first
  struct Called {
    How how;
    int32_t trace, op;
    auto operator<=>(const Called&) const = default;
  };
  std::string state, text;      // text: LLVM IR
  std::vector<int32_t> traces;  // that are part of it
  std::vector<Called> called;   // what it does by its own steps
};

class Program {
 public:
  // Lowers a trace. `parent` (side traces: the exit's owner; may be null) tells how the exit's values are represented
  // (unboxed or objects). `tree` finds programs by trace number, for jumps; it outlives the program.
  // Null if the trace cannot be lowered (then it is dropped).
  static std::unique_ptr<Program> lower(std::unique_ptr<LiveTrace> trace, Exit* parent, const std::vector<std::unique_ptr<Program>>* tree);
  virtual ~Program() = default;
  virtual const LiveTrace& trace() const = 0;
  virtual std::vector<Exit>& exits() = 0;
  virtual const std::vector<std::unique_ptr<SegmentRunner>>& segments() const = 0;
  virtual std::vector<SegmentInfo> segment_ops() const = 0;
  virtual std::optional<NativeInfo> native_info() const = 0;
  virtual bool recurses() const = 0;  // are calls of itself machine code?
  // For the garbage collector: every reference to an object that the program owns.
  virtual int traverse(visitproc visit, void* arg) const = 0;

  std::shared_ptr<KeptAs> kept_as;  // replay/persist/kept_as.h; null: it is not in the store
  bool from_store = false;          // an earlier process has recorded it, and may have compiled it
};

struct Arguments {
  PyObject* callable;  // as hook::take_arguments() has it
  PyObject* const* first;
  Py_ssize_t count;
};

// Runs `root` (an entry trace) on `params` (borrowed; one object per parameter slot of the function, after argument binding).
// `take`: arrays whose references are given up (hook::take_arguments), unless nothing runs.
// Follows jumps and side traces. Re-entrant: a step may call into other programs or this one.
Outcome run(Program& root, PyObject* const* params, PyObject** result, Exit** exit, FrameState* state,
            std::span<const Arguments> take = {});

// The loop that a program of one frame is of, if it is; else null.
const Snapshot* loop_of_one_frame(const Program& program);
// Runs a loop trace in a frame that the interpreter is running, whose values it takes over. kRefused, kTooDeep: the trace is not of such
// values, and nothing has happened. kLeft: state->images[0] is the frame's own. Otherwise as run().
Outcome enter_loop(Program& loop, hook::RunningFrame& frame, PyObject** result, Exit** exit, FrameState* state);
// Regions that were left at what they could have are compiled once more, however seldom that was: for who is about to decide by what they
// take now. Needs the GIL.
void grow_regions(const Jitted::Programs& tree);
// Turns of a loop that have been run, up to those that made it hot.
uint64_t turns_of(const Program& loop);
bool has_native_code(const Program& loop);  // which runs it, or the loop that it jumps to, where that is entered next

extern MachineCounters g_machine_counters;  // of this process

// For tests: regions compiled from now on leave before the instruction with this number, at this turn of each run (-1: none does).
void force_native_exit(int32_t number, int64_t turn);
struct NativeCounters {
  int32_t regions = 0, instructions = 0;  // asked for since; of the largest one
  int32_t forced = 0;                     // times that native code was left where it was forced to
};
NativeCounters native_counters();

}  // namespace dalsegno::replay
