// hook: the only layer that knows CPython's insides. Four mechanisms: observe the instructions of a running function, resume
// functions in the middle, take over a frame at the head of a loop, and show a step the frames it would see in eager (linked frames).
// Plus versions of dicts.
// Nothing outside this folder includes a pycore_ header. All functions need the GIL. Rules: docs/hook.md.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

namespace dalsegno::hook {

// ---- threads that end ------------------------------------------------------------------------------------------------------

// CPython ends a daemon thread that asks for the GIL while the process is finalised: it unwinds the thread's stack, without the GIL. Our
// destructors, which call Python, must not run then. A thread that is being unwound stops here until the process has ended (CPython 3.14
// does that to all such threads). Destructors that may be the innermost ones call it first.
void stop_ended_thread();
inline void stop_if_ended() {
#if PY_VERSION_HEX >= 0x030d0000
  const bool finalising = Py_IsFinalizing();
#else
  const bool finalising = _Py_IsFinalizing();
#endif
  if (finalising) [[unlikely]]
    stop_ended_thread();
}
// The same for what was made before it.
class ThreadGuard {
 public:
  ThreadGuard() = default;
  ~ThreadGuard() { stop_if_ended(); }
  ThreadGuard(const ThreadGuard&) = delete;
};

// ---- observe ---------------------------------------------------------------------------------------------------------------

// What an interpreter frame keeps of a variable or on its stack: a reference, its own, or null. On 3.14 tagged: the frame may have borrowed
// it from a variable, its own or its caller's, that lives longer; what handlers find on the stack may be a number.
class Slot {
 public:
#if PY_VERSION_HEX >= 0x030e0000
  PyObject* get() const { return reinterpret_cast<PyObject*>(bits_ & ~kBorrowed); }  // borrowed
  // Gives up its reference; owned by the caller, or null.
  PyObject* take() {
    PyObject* object = get();
    if (object != nullptr && (bits_ & kBorrowed) != 0) Py_INCREF(object);
    bits_ = kBorrowed;
    return object;
  }
  // Another object in the place of the one that is there; stolen.
  void put(PyObject* object) {
    PyObject* const old = take();
    bits_ = reinterpret_cast<uintptr_t>(object);
    Py_XDECREF(old);
  }

 private:
  static constexpr uintptr_t kBorrowed = 1;  // also that of immortal objects, and null (PyStackRef_NULL_BITS)
  uintptr_t bits_;
#else
  PyObject* get() const { return object_; }  // borrowed
  // Gives up its reference; owned by the caller, or null.
  PyObject* take() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  // Another object in the place of the one that is there; stolen.
  void put(PyObject* object) { Py_XSETREF(object_, object); }

 private:
  PyObject* object_;
#endif
};

// A live interpreter frame just before one of its instructions runs. Valid only during the callback. All pointers borrowed.
struct FrameView {
  void* id;                    // identity of the interpreter frame (its address)
  void* previous;              // identity of the caller's frame, or null
  PyFunctionObject* function;  // function being run
  PyCodeObject* code;
  Slot* localsplus;  // co_nlocalsplus slots (locals, cells, free variables), then the value stack
  int offset;        // instruction about to run, in code units (dis offset / 2)
  int stack_depth;   // values on the stack; -1 where the interpreter has not saved it (3.12+)
};

// Receives instructions. `before` must not raise, run Python code that is watched, or throw.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void before(const FrameView& frame) noexcept = 0;
};

// Why watching could not start, or ended early.
enum class WatchStatus : uint8_t {
  kOk,
  kBusy,       // another thread is being watched, or too many watchers rest
  kTraced,     // this thread is traced or profiled (sys.settrace, sys.setprofile)
  kOtherTool,  // another sys.monitoring tool has INSTRUCTION events, or no tool id is free
  kLost,       // sys.settrace was called inside, or another tool took our events
};

// Starts watching the calling thread; who watches it already rests until this one has stopped. Every instruction but RESUME and what stands
// before it, of frames whose code was passed to watch_code, in this thread only, is announced to `watcher` (EXTENDED_ARG and the
// instruction behind it each). Never raises.
WatchStatus watch_start(Watcher* watcher);
// Adds a code object. Frames of it that are *entered or already running* afterwards are announced from their next instruction on
// (3.11: not of one that runs already). False (no exception set) if it cannot be watched.
bool watch_code(PyCodeObject* code);
// Stops the innermost one; puts back everything as it was. kLost if events may have been missed. Safe to call from inside `before`.
WatchStatus watch_stop();
// Stops this one, if it has begun, even where others have since, whose thread has not come back (kLost).
WatchStatus watch_stop(const Watcher* watcher);
// True if somebody holds the frame object of a frame that runs (sys._getframe(), a traceback).
bool frame_kept(void* frame_id);
// Its local variables, cells and free variables; valid while it runs.
const Slot* frame_locals(void* frame_id);
// True if the calling thread is the one being watched (by this one).
bool watching();
bool watching(const Watcher* watcher);
// True if this thread is traced, profiled or monitored by others: replay steps aside then (rule 11). A few ns.
bool thread_observed();
bool thread_observed(PyThreadState* thread);  // the same of the calling thread, which the caller knows
// True if another tool has events on this code object alone, which thread_observed() does not see (3.12+).
bool code_observed(PyCodeObject* code);

// ---- resume ----------------------------------------------------------------------------------------------------------------

// What becomes of the result of the frame inside (rule 3).
enum class ReturnAction : uint8_t {
  kPush,      // push it: a call
  kDiscard,   // drop it: __setitem__, __setattr__ ...
  kInstance,  // __init__ of the instance that stands below the operands: None, or TypeError; the instance is what is left
  kOperator,  // push it: a binary operator's method; NotImplemented: the right operand is asked, if its type is no class
  kCompare,   // the same of a comparison; NotImplemented: the other operand is asked
  // The frame inside is a generator's (generator_below); without a result that has ended.
  kNextItem,  // push it: FOR_ITER's item
  kNextCall,  // push it: next(generator) or next(generator, default)
  kCalled,    // push it: a function in C that calls nothing else, and gives what comes of it
};
// Where the generator lies on the stack of the frame that goes on with it, under so many others; -1: the frame inside is no generator's.
inline int generator_below(ReturnAction action, int drops) {
  if (action == ReturnAction::kNextItem) return 0;
  return action == ReturnAction::kNextCall ? drops - 3 : -1;  // the callable and a NULL come first, the default last
}

// One frame to be rebuilt. Reference-counted pointers in `locals` and `stack` are *stolen* by resume (entries are set to null as
// they are moved) and *borrowed* by LinkedFrames.
struct FrameImage {
  PyFunctionObject* function = nullptr;  // borrowed
  int offset = 0;               // innermost: the next instruction. Outer frames: the call instruction being executed. In code units
  int after = 0;                // outer frames: the instruction to go on with once the inner frame has returned
  PyObject** locals = nullptr;  // co_nlocalsplus entries; null = unbound
  PyObject** stack = nullptr;   // `depth` entries, bottom first; null = a NULL on the stack
  int depth = 0;
  PyObject* f_locals = nullptr;  // the dict locals() has handed out for this frame (3.11, 3.12), or null. Stolen/updated
  // A frame object somebody kept of this activation, or null. Stolen/updated. Until it is resumed it owns its variables and may be
  // touched (or just released) at any time.
  PyFrameObject* frame_object = nullptr;
  // With frame_object: per local, whether the object's own value wins. Null: everywhere.
  const bool* from_object = nullptr;
  bool written = false;  // set by LinkedFrames::unlink: somebody assigned to a variable through the frame object
  ReturnAction action = ReturnAction::kPush;
  int drops = 0;                 // operands that the instruction takes off the stack once the inner frame has returned
  PyCodeObject* code = nullptr;  // borrowed; the code being run, or null: the function's present code
  int executing = -1;            // what executing_offset() says of `offset`, where the caller knows
  // The generator, which counts as running, whose own frame this is; borrowed. It lies on the stack of the frame around it.
  PyObject* generator = nullptr;
};
// Where the instruction itself stands that begins at `offset`, behind its EXTENDED_ARG, KW_NAMES and PRECALL.
int executing_offset(PyCodeObject* code, int offset);

// Rebuilds `frames` (outermost first, n >= 1) and lets CPython go on in the innermost at its offset; with `raised` (stolen, may be
// null; its __context__ is left as it is) as if that instruction had raised it. Returns the result of the outermost frame (new reference),
// or null with an exception set. Traceback entries come out as in eager. If the thread is being watched (watch_start), the rebuilt frames
// whose code is watched are announced from `offset` on. `on_entered`, if given, is called once per rebuilt frame, outermost
// first, with the frame's index and identity, before any instruction of it runs.
using OnEntered = void (*)(void* context, int index, void* frame_id);
PyObject* resume(FrameImage* frames, int n, PyObject* raised, OnEntered on_entered = nullptr, void* context = nullptr);

// ---- loops of running frames -------------------------------------------------------------------------------------------------

// A frame that the interpreter is running, at the head of a loop to which it has just jumped back. Its evaluator has saved the stack and
// takes what it finds here afterwards (rule 18), so the frame may go on anywhere. Valid during LoopWaiter::at_loop().
class RunningFrame {
 public:
  const FrameView& view() const { return view_; }
  // False where it cannot leave the chain: a generator's, or somebody holds its frame object.
  bool can_leave() const;
  // Takes it out of the thread's chain, as if it had not been entered. Its values are then the caller's: view().localsplus, references and
  // all, to be taken out (what is not is dropped as it comes back). Returns the dict locals() has handed out, or null; owned.
  PyObject* leave_chain();
  // It comes back and goes on as resume() would let it, frames[0] being its own. on_entered: of each frame, this one first.
  // False: an exception is set, which at_loop() is to raise.
  bool go_on(FrameImage* frames, int n, PyObject* raised, OnEntered on_entered, void* context);
  // It comes back and returns the value (stolen).
  bool go_on_returning(PyObject* value);
  // It comes back and ends with the exception that is set, whatever handlers it has.
  bool go_on_raising();

  // For hook/ alone.
  explicit RunningFrame(const FrameView& view) : view_(view) {}
  RunningFrame(const RunningFrame&) = delete;

 private:
  void come_back(PyObject* kept);
  bool raise_at(int offset);
  FrameView view_;
  PyObject* held_ = nullptr;  // 3.11: the frame object, which the interpreter needs after the event
};

// Somebody who waits for one frame of the calling thread to come to the head of a loop. They nest, innermost call last.
class LoopWaiter {
 public:
  LoopWaiter(const LoopWaiter&) = delete;
  // From now on. False if the events cannot be had (the thread or the code is observed by others).
  bool wait();
  void stop_waiting();
  void begun();  // the frame is known now
  bool waiting() const { return waiting_; }
  PyCodeObject* code() const { return code_; }
  PyThreadState* thread() const { return thread_; }
  // Which frame, or null: it has not begun yet.
  virtual void* frame() const = 0;
  // It is there. False: an exception is set.
  virtual bool at_loop(RunningFrame& frame) noexcept = 0;
  LoopWaiter* outer() const { return outer_; }
  friend void forget_waiters(const PyThreadState* thread);

  int last_offset = -1;  // for hook/ alone, 3.11: where the frame stood at the event before
  int patience = 0;      // and the events that may yet come without it

 protected:
  explicit LoopWaiter(PyCodeObject* code);
  ~LoopWaiter();  // heirs stop waiting in their own: it asks them for the frame

 private:
  PyCodeObject* code_;  // owned
  PyThreadState* thread_;
  LoopWaiter* outer_;
  bool waiting_ = false;
};

// ---- linked frames ---------------------------------------------------------------------------------------------------------

// A frame that stands in the thread's frame chain on top of the caller, so that code run by a step sees it (sys._getframe, super(),
// warnings' stacklevel, tracebacks' f_back, locals()). The function is borrowed from the image, values are referred to by the frame, too.
// Frames are unlinked in reverse order. It does not count against the recursion limit by itself: see take_recursion().
// std::bad_alloc, with nothing linked, where there is no memory.
void* link_frame(FrameImage* image);
// Takes it out and moves f_locals and a kept frame object into the image, whose values are as they were when it was linked. True if
// somebody still holds its frame object (as the traceback of an exception raised by a Python function does), has written to its
// variables, or set its trace function: the image then has frame_object set. It is to be passed on, to the next link_frame or to
// resume, so that it becomes the frame of the resumed activation; where `written` is set, the trace must be left.
bool unlink_frame(void* frame, FrameImage* image);
// Would unlink_frame() be true?
bool link_touched(void* frame, const FrameImage& image);
// The same frame without its variables, for code that tells by it where it was called, as warnings do: image->locals is not looked at. It
// is given its variables before anybody may look at them, or taken out without: false, and nothing done, where it has been looked at. Not
// of generators. What was taken out so is parked: without a reference to its code, and to be linked as it stands or freed.
void* link_bare_frame(FrameImage* image);
void fill_bare_frame(void* frame, const FrameImage& image);
bool park_bare_frame(PyThreadState* thread, void* frame);
void relink_bare_frame(PyThreadState* thread, void* parked);
void free_bare_frame(void* parked);
// While one lives, `show` is called once, before any Python code begins. It must not raise.
class BeforePython {
 public:
  using Show = void (*)(void* context);
  // Not where other threads could begin some, or somebody else has replaced the evaluator (PEP 523).
  static bool possible(PyThreadState* thread);
  BeforePython(PyThreadState* thread, Show show, void* context);
  ~BeforePython();
  BeforePython(const BeforePython&) = delete;
  bool came() const { return came_; }
  static void come();  // Python code begins: hook's own evaluator calls it

 private:
  PyThreadState* thread_;
  Show show_;
  void* context_;
  BeforePython* outer_;
  bool came_ = false;
};
// Counts so many frames, which have no evaluator of their own, against the thread's recursion limit, as eager would; fewer than 0: gives
// them back. Never takes the last of it, so that RecursionError comes at eager's depth or later. Returns what was taken.
inline int& recursion_remaining(PyThreadState* thread) {  // Python calls that this thread may still nest
#if PY_VERSION_HEX < 0x030c0000
  return thread->recursion_remaining;
#else
  return thread->py_recursion_remaining;
#endif
}
inline int take_recursion(PyThreadState* thread, int frames) {
  const int spare = recursion_remaining(thread) - 1;
  const int taken = frames <= spare ? frames : (spare > 0 ? spare : 0);
  recursion_remaining(thread) -= taken;
  return taken;
}

// What the C code between two frames counts, which does this with the result of the one inside.
inline int levels_in_c(ReturnAction action) {
  constexpr bool kCounts = PY_VERSION_HEX < 0x030c0000;  // where C code and Python have one limit
  const bool in_c = action == ReturnAction::kInstance || action == ReturnAction::kCompare || action == ReturnAction::kNextCall ||
                    action == ReturnAction::kCalled;
  return kCounts && in_c ? 1 : 0;
}

// While alive, `frames` (outermost first) are linked, and counted. unlink() (or the destructor) takes them out.
class LinkedFrames {
 public:
  LinkedFrames(FrameImage* frames, int n);
  ~LinkedFrames() {
    stop_if_ended();
    unlink();
  }
  LinkedFrames(const LinkedFrames&) = delete;
  bool unlink();  // as unlink_frame(): of any of them

 private:
  FrameImage* images_;
  std::vector<void*> linked_;
  int debt_ = 0;  // what was taken off the recursion limit
  bool kept_ = false;
};

// ---- versions of dicts -----------------------------------------------------------------------------------------------------

// Counts the changes of all names that were told to some DictVersion (3.12+). Stays 0 where nothing counts them (3.11).
extern uint64_t g_folded_changes;

// Tells cheaply whether a dict may have changed since the last refresh(): version tag (3.11) or dict watcher (3.12+). With names told to
// it, a watcher counts changes of those alone.
// (3.13: an instance's dict is given a table of its own first, as stores past it would not be seen. Contents and order stay.)
// Holds a reference to the dict. unchanged() is one load and one compare.
class DictVersion {
 public:
  explicit DictVersion(PyObject* dict);
  ~DictVersion();
  DictVersion(DictVersion&&) noexcept;
  DictVersion& operator=(DictVersion&&) noexcept;
  bool unchanged() const { return *current_ == seen_; }
  void refresh() { seen_ = *current_ + step_; }
  // What changes with the dict, or those names, while this object lives; null: nothing tells.
  const uint64_t* counter() const { return step_ == 0 ? current_ : nullptr; }
  // `name`, interned, is to be watched. Borrowed: it lives as long as this object.
  void watch(PyObject* name);
  PyObject* dict() const { return dict_; }

 private:
  PyObject* dict_;
  const uint64_t* current_;
  uint64_t seen_;
  uint64_t step_ = 0;  // 1: nothing tells (3.14, with all watchers taken)
  std::vector<PyObject*> names_;
};

// ---- the rest --------------------------------------------------------------------------------------------------------------

struct RangeIterator {
  PyObject ob_base;
#if PY_VERSION_HEX < 0x030c0000
  long index;
#endif
  long start, step, length;
};
extern bool g_range_known;  // it is laid out so
inline bool advance_range(PyObject* iterator, int64_t* out) {
  auto* range = reinterpret_cast<RangeIterator*>(iterator);
#if PY_VERSION_HEX < 0x030c0000
  if (range->index >= range->length) return false;
  *out = static_cast<long>(range->start + static_cast<unsigned long>(range->index++) * range->step);
#else
  if (range->length <= 0) return false;
  *out = range->start;
  range->start = static_cast<long>(static_cast<unsigned long>(range->start) + range->step);
  --range->length;
#endif
  return true;
}
inline bool range_has_ended(PyObject* iterator) {
  const auto* range = reinterpret_cast<const RangeIterator*>(iterator);
#if PY_VERSION_HEX < 0x030c0000
  return range->index >= range->length;
#else
  return range->length <= 0;
#endif
}
// iter(range(start, stop, step)) where all values fit; new reference, or null, with MemoryError or without an exception: ask range().
// Only where g_range_known says so. (fast_range_iter of Objects/rangeobject.c.)
PyObject* range_iterator(long start, long stop, long step, PyObject* spare = nullptr);
// Advances an exact range_iterator whose values fit int64. 1: *out is the next value; 0: exhausted; -1: not such an iterator.
inline int range_next(PyObject* iterator, int64_t* out) {
  return Py_IS_TYPE(iterator, &PyRangeIter_Type) && g_range_known ? advance_range(iterator, out) : -1;
}
// The layout of exact iterators over lists and tuples; sequence: null once exhausted. Only where g_sequence_iterators says so.
struct SequenceIterator {
  PyObject ob_base;
  Py_ssize_t position;
  PyObject* sequence;
};
extern bool g_sequence_iterators;
// The types of the iterators that are laid out so, by what they go through; null where this interpreter has it otherwise.
struct SequenceIteratorTypes {
  PyTypeObject *list, *tuple, *bytes, *bytearray, *ascii, *text;
};
extern SequenceIteratorTypes g_iterators_over;
// The beginnings of enumerate (number: of the next item) and zip (number: of its iterators, which the tuple `inner` holds). `result`: the
// tuple they give again and again, as long as nobody else has it. Only where g_holding_iterators says so.
struct HoldingIterator {
  PyObject ob_base;
  Py_ssize_t number;
  PyObject* inner;
  PyObject* result;
  int strict;  // zip's
};
extern bool g_holding_iterators;
// True if asking this iterator for its next item runs no code of the user's: iterators of the interpreter's own containers and ranges, and
// enumerate, zip, reversed and itertools over such. A few ns.
bool quiet_iterator(PyObject* iterator);
// The sequence that an iterator of the type `iterator` (the interpreter's own, over anything with __getitem__) goes through, borrowed, and
// where its position stands; null for others, and once it is exhausted.
PyObject* sequence_of(PyObject* iterator, Py_ssize_t** position);
// What an iterator of the interpreter's own over one container goes through, borrowed; null: it has ended, or is another.
PyObject* held_by(PyObject* iterator);
// The tuple that such an iterator, enumerate or zip gives again as long as nobody else has it; borrowed, or null.
PyObject* result_of(PyObject* iterator);
// The tuple of the tuples that an itertools.product which has not begun goes through, borrowed; null: it has, or it is something else.
PyObject* pools_of(PyObject* iterator);
// What the iterator gives next; new reference, or null: an exception is set, or there is nothing. One over a sequence of a type that
// add_quiet_sequence() was called for ends without the IndexError, and its text, that would be made only to be dropped.
PyObject* next_of(PyObject* iterator);
// Items of exact instances of this type are had without running code of the user's: iterators over them are quiet. Called once a type,
// when the extension module is loaded.
void add_quiet_sequence(PyTypeObject* type);
// False where half of the C stack is used up, or there is little of it at all: what is called now should run on another one. The other
// half is for what the function calls, which counts on a stack of the usual size.
// (What is asked of one thread again and again costs two loads: the answer is kept for the one that asked last. The GIL guards it.)
struct StackBound {
  const PyThreadState* state;
  uint64_t id;      // of the state: its memory may be another thread's by now
  const char* low;  // the first half ends here
};
extern StackBound g_stack_bound;
const char* stack_low();
inline bool stack_left() {
  const char here = 0;
  const PyThreadState* state = PyThreadState_Get();
  const bool known = g_stack_bound.state == state && g_stack_bound.id == state->id;
  return &here > (known ? g_stack_bound.low : stack_low());
}
// Runs it on a stack of its own, which it may use as it would a thread's. False if there is no memory for one; then it has not run.
bool on_new_stack(void (*run)(void*), void* context);
// While one lives that `applies`, the thread may start one more evaluator without its being counted as use of the C stack. For Python
// functions that are called by C here and by an instruction in eager: instructions start no evaluators. Nothing is given in the lower half
// of the stack, so that what is counted stays safe; nothing on 3.11, which counts frames only, and on 3.14, which looks how far the stack
// has been used up (set_stack_limits).
class UncountedEvaluator {
 public:
#if PY_VERSION_HEX < 0x030c0000 || PY_VERSION_HEX >= 0x030e0000
  explicit UncountedEvaluator(bool /*applies*/ = true) {}
  ~UncountedEvaluator() { stop_if_ended(); }
#else
  explicit UncountedEvaluator(bool applies = true) {
    if (!applies || !stack_left()) return;
    given_ = 2;  // _PyEval_EvalFrameDefault takes PY_EVAL_C_STACK_UNITS (Python/ceval.c)
    PyThreadState_Get()->c_recursion_remaining += given_;
  }
  ~UncountedEvaluator() {
    stop_if_ended();
    if (given_ > 0) PyThreadState_Get()->c_recursion_remaining -= given_;
  }
#endif
  UncountedEvaluator(const UncountedEvaluator&) = delete;

#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
 private:
  int given_ = 0;
#endif
};
// In a child process: forgets a recording that another thread of the parent was making. True if there was one.
bool forget_watch_after_fork();
// Called once when the extension module is loaded. False with an exception set if this interpreter is not supported.
bool init();

}  // namespace dalsegno::hook
