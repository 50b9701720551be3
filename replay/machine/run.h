// The state of a run, and what a run does besides its steps: ways out, frames that are shown, groups, jumps. Internal to the replay
// machine.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "hook/interrupts.h"
#include "replay/machine/program.h"
#include "trace/recorder/return_actions.h"

namespace dalsegno::replay {

// What frames a run has shown to others: dicts of locals() and frame objects somebody kept, per frame of the run.
struct KeptFrame {
  PyObject* f_locals = nullptr;
  PyFrameObject* frame = nullptr;
  const Trace* trace = nullptr;  // `frame` holds the variables as they were at this snapshot,
  int32_t snapshot = -1;
  bool written = false;  // or as somebody has assigned to them since
};

// The object made of a number in a register, for those who look at frames.
struct ShownBox {
  int32_t reg;  // of raw, in the register file
  int64_t bits;
  PyObject* object;  // owned
};

struct FreesFrame {
  void operator()(void* parked) const { hook::free_bare_frame(parked); }
};
// A frame of the run that stands in the thread's chain.
struct Link {
  ProgramImpl* program = nullptr;
  int32_t snapshot = -1;
  int32_t state = -1;  // index into the trace's Snapshots::frames: as long as that is the same, so are the variables
  int levels = 0;      // of C code between this frame and the run's first one that count as recursion
  void* frame = nullptr;
  hook::FrameImage image;
  std::vector<PyObject*> slots;
  std::vector<ShownBox> boxes;  // of values that are unboxed otherwise
  std::unique_ptr<bool[]> from_object;
  // The bare frame that was linked last, if nobody has looked at it, and of which program (ProgramImpl::id), with the other fields as they
  // are: the next op often stands at the same place.
  std::unique_ptr<void, FreesFrame> parked;
  uint64_t parked_of = 0;
  int32_t at = -1;  // the instruction it stands at, if that is not its snapshot's
};

using Programs = std::vector<std::unique_ptr<Program>>;

// A call of a tree that is under way in the same run: what its caller goes on with. (calls.cc)
struct PendingCall {
  ProgramImpl* program;
  const Step* step;
  int32_t base;    // of the caller's registers
  int32_t frames;  // of the caller
  Jitted* callee;
  uint64_t code_run;  // Machine's, as the call began
  bool dirty, unsettled;
};

// What a run needs memory for; kept for the next one.
struct Room {
  std::vector<Reg> registers = std::vector<Reg>(256);
  std::vector<PendingCall> calls;
  std::vector<Link> links;
  std::vector<GilShared<Programs>> kept;  // of calls under way
};

// The state of one run().
//
// Frames. A run is of one frame or more: those of the calls under way, outermost first, then those of the program that runs. Each has
// a number. Frames are linked into the thread's chain only when code that may look at them runs, and those around the innermost one, which
// do not change while that runs, stay linked until it has ended. What is linked are always the first `n_links` frames.
struct Machine {
  ProgramImpl* program = nullptr;
  Reg* r = nullptr;
  int32_t base = 0;  // of r, in the register file
  Room* room = nullptr;
  std::vector<KeptFrame> kept_frames;
  std::vector<ShownBox> kept_boxes;  // that somebody holds who looked: the run is left, with these
  size_t first_frame = 0;            // number of the outermost frame of the program that runs
  size_t n_links = 0;                // of room->links
  size_t linked_calls = 0;           // calls all of whose frames are linked
  int counted = 0;                   // frames counted against the recursion limit
  uint64_t code_run = 0;             // times that code nothing is known of has run
  bool written = false;              // somebody assigned to a variable of a frame shown
  bool dirty = false;                // unknown code has run: facts of arrays are to be looked at again
  bool unsettled = false;            // and nobody has looked since whether the run may go on
  PyThreadState* thread = nullptr;
  const Py_ssize_t* collections = nullptr;          // hook::collection_counts()
  const volatile unsigned char* breaker = nullptr;  // hook::eval_breaker()
  Outcome outcome = Outcome::kReturned;
  PyObject** result = nullptr;
  Exit** exit = nullptr;
  FrameState* state = nullptr;
  std::unique_ptr<FrameState> inner_state;  // of a call under way that has left

  Machine() = default;
  Machine(const Machine&) = delete;
  ~Machine() {
    for (const ShownBox& box : kept_boxes) Py_DECREF(box.object);
  }
  void reserve(int32_t n);  // registers from base on
  int32_t number_of(const Reg* registers, int32_t reg) const { return static_cast<int32_t>(registers - room->registers.data()) + reg; }
  bool calling() const { return !room->calls.empty(); }
};

// Frames of a snapshot standing in the thread's chain while unknown code runs. Values that are unboxed are boxed for the time. Snapshot -1:
// the function has no frame any more, those that called it have.
class LinkedScope {
 public:
  LinkedScope(Machine& m, int32_t snapshot, int32_t at = -1);  // at: the instruction the innermost frame stands at, if it is another
  ~LinkedScope();
  LinkedScope(const LinkedScope&) = delete;

 protected:
  enum class Looks { kAnywhere, kFromPython, kFromWarnings };
  LinkedScope(Machine& m, int32_t snapshot, int32_t at, Looks looks);

 private:
  static void fill(void* scope);
  bool unlink_unseen();

  void disturbed() const;

  Machine& m_;
  const bool linked_;
  const Looks looks_;
  std::optional<hook::BeforePython> unseen_;  // the innermost frame has no variables yet
};

// The same while an op runs that may at most warn. Warnings look where they come from, but at variables only where they are shown by Python
// code: until some begins the innermost frame goes without. If none does, nothing has run.
class WarningScope : public LinkedScope {
 public:
  WarningScope(Machine& m, int32_t snapshot) : LinkedScope(m, snapshot, -1, Looks::kFromWarnings) {}
};

// The same while C code runs that looks at no frames itself, but may run anything.
class PythonScope : public LinkedScope {
 public:
  PythonScope(Machine& m, int32_t snapshot, int32_t at = -1) : LinkedScope(m, snapshot, at, Looks::kFromPython) {}
};

// -- kept_frames.cc
// Links the frames of all calls under way.
void link_callers(Machine& m);
// Takes out of the chain what is linked from frame `from` on.
void unlink(Machine& m, size_t from);
// Has somebody kept a frame around the innermost one or one of its numbers, or assigned to its variables? Then it is taken out, to be
// looked at.
void unlink_touched(Machine& m);
// The object of an unboxed value: a new reference, to the one somebody has seen in a frame if there is such. Throws std::bad_alloc.
PyObject* box_seen(const Machine& m, const Reg* registers, const Loc& loc);
// Forgets what is kept of registers from r on.
void forget_kept_boxes(Machine& m);
// Counts what is pending or linked against the recursion limit.
// Frames that are recorded through are counted only while they are linked: near the limit the interpreter counts them.
inline bool recursion_left(PyThreadState* thread) { return hook::recursion_remaining(thread) > 2 * ProgramImpl::deepest; }
// The generator whose frame is frame i of a snapshot, or null.
inline const ValueId* generator_of(const Snapshot& snapshot, size_t i) {
  return i > 0 ? generator_inside(snapshot.frames[i - 1]) : nullptr;
}
inline void count_frames(Machine& m) {
  const bool shown = m.n_links > m.first_frame;
  const int now = shown ? static_cast<int>(m.n_links) + m.room->links[m.n_links - 1].levels : static_cast<int>(m.first_frame);
  if (now != m.counted) m.counted += hook::take_recursion(m.thread, now - m.counted);
}
void forget_kept_frames(Machine& m, size_t from);
// Hands what was shown of frame i of the program that runs to its image.
void attach_kept_frame(Machine& m, const ProgramImpl& p, size_t number, size_t i, int32_t snapshot, hook::FrameImage* image,
                       std::unique_ptr<bool[]>* from_object);

// -- calls.cc
// The program that runs returns to the step that called its tree.
const Step* return_to_caller(const Step* s, Reg* r, Machine& m);
// The program that runs has left: the interpreter ends its frames, and the step that called its tree goes on with the result.
const Step* end_left_call(Machine& m);
// Forgets the innermost call: its caller runs again.
void end_call(Machine& m);
// Does the call as machine code of its own, if it can: its result is there. How many calls that were; 0: it can not.
uint64_t calls_done(Machine& m, const CallSite& site, ProgramImpl& entry, int32_t frames);

// -- exits.cc
// Leaves by a plan: on to the side trace, if there is one, else the frames are built and null is returned.
const Step* leave(Machine& m, int32_t plan);
// Leaves because the op failed: with the exception that is set thrown in, or, where the op is pure, before its instruction.
const Step* fail(Machine& m, int32_t plan, bool pure);
// The same by a plan made on the spot.
const Step* fail_by(Machine& m, ExitPlan& plan, bool pure);
// Leaves to the interpreter, whatever trace is attached there: the run was disturbed.
const Step* leave_disturbed(Machine& m, int32_t plan);
// Leaves before a typed op that does not take these operands, and remembers it: a side trace does the instruction on objects.
const Step* refuse(Machine& m, int32_t plan);
// Leaves and remembers that an int did not fit in a register.
const Step* overflow(Machine& m, int32_t plan);
// The value as an object: a new reference, or null with MemoryError.
PyObject* object_of(const Loc& loc, const Reg* r);
void drop(const std::vector<int32_t>& regs, Reg* r);
void prepare_side(ProgramImpl& p, ExitPlan& plan, const Program* side);  // what the way to a side trace takes
// Builds the object unless it is there. False: MemoryError is set.
bool build(const Virtual& what, Reg* r);
void build_all(const ExitPlan& plan, Reg* r);  // of the plan's; throws std::bad_alloc
// -- steps_view.cc
// A view's elements, found by its index and put into its registers. False: NumPy has to say what is wrong, or the array is another one.
bool find_view(const Virtual& view, Reg* r);
PyObject* bound_method(PyObject* descriptor, PyObject* self);  // a new one
PyObject* new_view(const Virtual& view, const Reg* r);         // the object, or null with an exception set
inline void count_guard_failure() { ++g_machine_counters.guard_failures; }
inline void count_steps(uint64_t n) { g_machine_counters.steps += n; }

// -- settle.cc
// What is to be asked once code has run of which nothing is known. False: the thread or some code is traced, profiled or monitored now, or
// a variable of a frame was assigned to: the run ends at the next snapshot behind an instruction. Asks only if code has run since.
bool undisturbed(Machine& m);
// At a step with a plan behind its instruction: does what waits for the thread (signals, other threads), leaves if the run was disturbed or
// a folded name changed; null: goes on. *next is where to then.
bool settle(const Step* s, Machine& m, const Step** next);

// -- steps_build.cc
// The builtins of functions that are made with these globals (_PyEval_BuiltinsFromGlobals() of Python/ceval.c). Borrowed.
PyObject* builtins_of(PyObject* globals);

// -- drops.cc
bool dies_quietly(PyObject* o);
// A number, a text or None: it dies, is hashed, compared and asked for its truth without code of the user's. (Not bytes: -b warns of them.)
inline bool is_number_object(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type;
}
inline bool is_leaf_object(PyObject* o) { return is_number_object(o) || PyUnicode_CheckExact(o) || o == Py_None; }
// True if dropping a reference runs no code of the user's: finalisers, callbacks of weakrefs. May err to the other side.
inline bool drops_quietly(PyObject* o) { return Py_REFCNT(o) > 1 || dies_quietly(o); }
// The same of what an iterator of the interpreter's own has given, and holds until it gives the next one.
bool advances_quietly(PyObject* iterator);
// The same of what an iterator of the interpreter's own lets go of at its end.
bool ends_quietly(PyObject* iterator);
// Asks the iterator of an iter_next, which is at its end, to find that out, while frames are shown if what it lets go of wants them. False:
// it gives something all the same, or an error; true: it has ended.
bool end_shown(const Step& s, Machine& m, PyObject* iterator, PyObject** item);
// On from an iter_next whose iterator has ended, and may die with what it has given last.
const Step* leave_ended(const Step& s, Reg* r, Machine& m);
// Drops a reference while the frames of the snapshot are shown.
void drop_shown(Machine& m, PyObject* o, int32_t snapshot, int32_t at = -1);
// What a function lets go of as it returns, in its step's order: it has no frame any more, those that called it have.
void drop_at_return(const Step& s, Reg* r, Machine& m);

// -- groups.cc
// Does the ops of a group one by one. False: one raised and the run has left (or goes on at *next). `most`: becomes at least the bytes of
// arrays that there were at once.
bool run_one_by_one(Machine& m, const std::vector<int32_t>& ops, const std::vector<int32_t>& live, const Step** next,
                    const std::vector<std::vector<int32_t>>* dead_after, int64_t* most = nullptr);
bool run_kernel(SegmentRunner& runner, const Group& group, Reg* r);
// -- loops.cc
enum class Way : uint8_t { kAtOnce, kInParts, kMeasured };
// What has come of a group that was tried and is not done.
struct Attempt {
  std::optional<Way> way;   // if it has been asked for
  std::vector<int> raised;  // not empty: all of it has been done but for warnings, of these flags, by op of its LoopPlan
};
// All of a group, the write that ends it included, and none of the views that it reads are built: by NumPy's inner loops, if that is at
// most so many elements, else by the kernel if that does not take long. False: nothing has been done, but what `attempt` says.
bool run_without_objects(ProgramImpl& p, Group& group, Reg* r, int64_t most, Attempt* attempt);
// All of a group that ends in a write, by the kernel, however long it takes; the GIL is let go of. What other threads might look at is
// built. False: as above.
bool run_letting_go(ProgramImpl& p, Group& group, Reg* r, Attempt* attempt);
// step_segment's work where that runs no code, needs no objects and keeps the GIL, else nothing.
enum class Tried : uint8_t { kDone, kNeedsObjects, kNot };
Tried run_at_once(ProgramImpl& p, const Step& s, Reg* r, const Machine& m, Attempt* attempt);
// step_segment's work behind what run_without_objects() or run_at_once() did not do.
const Step* run_with_objects(const Step* s, Reg* r, Machine& m, Attempt& attempt);
// What dies in an order of its own only where nobody can tell.
void drop_quietly(const std::vector<int32_t>& regs, Reg* r);
// Do the facts of array inputs still hold?
// -- reduced.cc: has the group been done?
bool is_reduced(const struct ReducedGroup& group, const Reg* r);
bool facts_hold(const Group& group, const Reg* r);

// -- parts.cc
inline constexpr int64_t kMostStored = 2 << 20;   // bytes that a group keeps in the thread's memory until all is known to be well
inline constexpr int64_t kMinCounted = 16 << 10;  // bytes of an array; of smaller ones a few more do not matter
// How a group that has parts is to be done. `bare`: at once it makes no objects but those that are kept.
Way way_of(ProgramImpl& p, Group& group, const Reg* r, bool bare);
// Bytes of the arrays that nobody but the program holds.
int64_t array_bytes(const ProgramImpl& program, const Reg* r);
// Notes what the group took that has just been done one by one; `before`: array_bytes() then.
void note_measure(Group& group, const Reg* r, int64_t before);
// Does it in parts. False: as run_one_by_one(). *noticed: some op was done by NumPy, so code may have run.
bool run_in_parts(Machine& m, const Group& group, const std::vector<int32_t>& live, const Step** next, bool* noticed);

// -- jumps.cc
void prepare_jump(ProgramImpl& from, JumpPlan& plan);
// Has the object, or null, a type as ProgramImpl::types has them?
bool is_of_type(PyObject* o, PyObject* type);
bool has_type_unboxed(const Loc& loc, PyObject* type);    // where there is no object: is the unboxed part of this type?
bool keeps_promises(const JumpPlan& plan, const Reg* r);  // are the objects, and their types, what the target takes them for?
void load_constants(Machine& m, const ProgramImpl& program);
void start_program(Machine& m, ProgramImpl& program);  // clears its own registers and loads its constants

}  // namespace dalsegno::replay
