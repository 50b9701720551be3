// The recorder: watches a call instruction by instruction and writes down a trace (rules: docs/hook.md). It never changes
// what the program does; whatever it does not understand ends the recording at that instruction, with a reason.
// One Recorder serves one watched call; it may yield several traces (a root that runs into a loop, the loop itself). Needs the GIL.
#pragma once
#include <Python.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hook/attributes.h"
#include "hook/hook.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/instructions.h"
#include "trace/recorder/live_trace.h"
#include "trace/trace.h"

namespace dalsegno::recorder {

// A place in the program: code object and instruction of every frame, outermost first. Borrowed pointers.
using AnchorKey = std::vector<std::pair<PyCodeObject*, int>>;

// Exact types of the slots of all frames in order (function, locals, stack); null: not known, or nothing there. Borrowed.
using SlotTypes = std::vector<PyTypeObject*>;

// Something worth telling about a recording that did not end it.
struct Note {
  Reason reason = Reason::none;
  std::string what;   // callee
  std::string where;  // function:line
};

struct Options {
  int max_ops = 20000;
  int max_depth = 20;
  int first_number = 0;          // number of the first trace recorded; following ones count on
  PyObject* callable = nullptr;  // the jitted function that is being recorded, if calls of jitted functions are recorded as such
  // Asked when a call that is not recorded through runs a function that is being recorded again and again: recursion, of which every
  // instruction is announced here. True: the recording is abandoned; else it ends before the call.
  std::function<bool()> recursion = [] { return false; };
  // Number of a loop trace already anchored at a place that takes slots of these types, or -1: there is none, and may be one more.
  std::function<int(const AnchorKey&, const SlotTypes&)> find_loop = [](const AnchorKey&, const SlotTypes&) { return -1; };
};

// Loop traces for different types of the variables at one place, at most. The next one goes to the first, whatever its types.
inline constexpr int kMaxLoopsAtAPlace = 4;

// What is known of a value while recording.
struct ValueInfo {
  PyTypeObject* type = nullptr;  // exact type, guarded or certain; borrowed
  PyObject* object = nullptr;    // a constant's object; borrowed from LiveTrace::objects
  std::string path;              // a constant's source
  int epoch = -1;                // `facts`, or a module's type, hold while this is the recorder's epoch
  ArrayFacts facts;
  int slots = 0;               // locals and stack slots that hold it
  std::vector<ValueId> items;  // of a tuple or slice built in this trace
  // A tuple, list or dict built in this trace: `items`, and of a dict `keys`, are all that it holds. They stay held as long as it is.
  bool made = false;
  std::vector<PyObject*> keys;  // exact strings; borrowed from LiveTrace::objects
};

// A frame recorded through.
struct Frame {
  void* id = nullptr;
  std::shared_ptr<const CodeInfo> code;
  PyFunctionObject* live = nullptr;  // borrowed; valid while the frame runs
  ValueId function = kNull;
  std::string code_path, globals_path, builtins_path;  // sources, "" where there is none
  std::vector<ValueId> locals, stack;
  const Instr* call = nullptr;   // the call that the frame inside this one serves
  mutable int code_object = -1;  // its code among the trace's objects, or -1: not asked for yet

  // how it was last written into a snapshot, and what differs since
  int written = -1;          // index into Snapshots::frames, or -1
  int64_t weight = 0;        // of the deltas under `written`
  std::vector<int> changed;  // locals, with repetitions
  size_t kept = 0;           // stack slots that are the same
  int at_call = -1;          // as the frame around the one called: index into Snapshots::frames, or -1
};

class Recorder final : public hook::Watcher {
 public:
  Recorder(PyFunctionObject* function, Options options);
  ~Recorder() override;

  void begin_entry();
  // Records a side trace from an exit of `parent`; frames as the exit's snapshot has them. Call entered() for each rebuilt frame.
  void begin_exit(const LiveTrace& parent, int op, int which, PyFunctionObject* const* functions);
  void entered(int index, void* frame_id);
  // Adds the code objects of all frames to the watch. False if one cannot be watched.
  bool watch();

  void before(const hook::FrameView& view) noexcept override;
  // The call is over (returned or raised): closes a trace still open.
  void finish();

  std::vector<std::unique_ptr<LiveTrace>> take() { return std::move(done_); }
  const std::vector<Note>& notes() const { return notes_; }
  bool abandoned() const { return abandoned_; }
  // The place a snapshot of a trace stands at.
  static AnchorKey anchor_of(const LiveTrace& trace, const Snapshot& at);
  // Does a loop trace take slots of these types? Its guards on the types of its parameters say so.
  static bool takes(const LiveTrace& loop, const SlotTypes& types);

 private:
  using Handler = void (Recorder::*)(const Instr&);
  using Finisher = void (Recorder::*)(const Instr&);
  struct EmitArgs {
    int imm = 0;
    int object = -1;
    int object2 = -1;
    int name = -1;
    uint32_t effects = kAnyEffect;  // what the op may do, as far as its kind does
    bool snapshot = true;
  };

  // -- life of a trace (recorder.cc)
  void start_trace(AnchorKind anchor);
  void step(const hook::FrameView& view);
  void begin(const Instr& instr);
  void commit();
  uint32_t effects_since_begin() const;
  int next_start() const;
  void settle(int next);
  void checkpoint();
  void rollback();
  void end_with_leave(Reason reason);
  void close(Reason reason);
  void stop();
  void close_loop(const Instr& instr, int header);
  SlotTypes slot_types() const;
  int find_loop(const AnchorKey& key) const;
  void start_loop(int header);
  bool is_outer(void* id) const;
  void count_recursion(const hook::FrameView& view);
  void enter_frame(const hook::FrameView& view);
  void leave_frame();
  void run_prefix();

  // -- values, ops, snapshots (builder.cc)
  ValueId emit(OpKind kind, std::initializer_list<ValueId> inputs, EmitArgs args);
  ValueId emit(OpKind kind, std::span<const ValueId> inputs, EmitArgs args);
  ValueId emit(OpKind kind, std::initializer_list<ValueId> inputs) { return emit(kind, inputs, EmitArgs{}); }
  int snapshot();                // state before the current instruction
  int snapshot_now(int offset);  // state as the handler has made it, going on at `offset`
  Snapshot shape_now(int offset);
  // The state as it is now and going on at `offset`, but one that no other snapshot builds on: it names a value that only an exit has.
  int snapshot_aside(int offset);
  SnapshotFrame frame_image(const Frame& frame, int offset, int after);
  int add_frame(const Frame& frame, int outer, int offset, int after, int64_t* weight);
  int write_frame(Frame& frame, int outer, int offset, int after);
  int write_outer();  // all frames but the innermost; its index, or -1
  int code_object(const Frame& frame);
  int add_snapshot(int innermost);
  void swap_state();  // exchanges the innermost frame as it is with what it was when the instruction began
  int name_index(PyObject* name);
  int object_index(PyObject* object, const std::string& path);
  ValueId constant(PyObject* object, const std::string& path);
  void push(ValueId v);
  ValueId pop();
  ValueId top(int below = 0) const { return frame().stack[frame().stack.size() - 1 - below]; }
  void set_local(int index, ValueId v);
  void hold(ValueId v, int change);
  void release_dead(int at = -1, int next = -1);
  void stand_behind(int at, int next);
  // -- containers whose contents are known (made.cc)
  void made_of(ValueId container, std::vector<ValueId> items, std::vector<PyObject*> keys = {});
  void made_of_pairs(ValueId dict);
  void no_longer_made(ValueId container);
  void may_change(const Op& op);  // the op may store into its inputs, or keep them
  bool made(ValueId v, PyTypeObject* type) const { return is(v, type) && info_[v].made; }
  // What an exact tuple or list holds, as `live` does now: known, or guarded. False: its items are not to be had without the user's code.
  bool parts(ValueId v, PyObject* live, std::vector<ValueId>* values);
  // Likewise of an exact dict whose keys are exact strings.
  bool named_parts(ValueId dict, PyObject* live, std::vector<PyObject*>* keys, std::vector<ValueId>* values);
  int names_index(PyObject* names);  // of a tuple of strings

  Frame& frame() { return frames_.back(); }
  const Frame& frame() const { return frames_.back(); }
  PyObject* live_top(int below = 0) const;  // live value, `below` places under the top as it was before the instruction
  PyObject* live_local(int index) const { return view_->localsplus[index]; }
  PyObject* result() const;  // live top of the stack after the instruction

  // -- what is known of values (knowledge.cc)
  bool know(ValueId v, PyObject* live);           // exact type of a builtin value: guards it; false: type not one of those
  bool know_iterator(ValueId v, PyObject* live);  // its next runs no code of the user's: guards that
  // Looking up a simple key in an exact dict or set runs no code of the user's: guards that.
  bool know_lookup(ValueId container, PyObject* live, ValueId key, PyObject* live_key);
  bool know_array(ValueId v, PyObject* live);  // array facts: guards them
  void know_module(ValueId v);                 // that it is an ordinary one: guards that
  int facts_index(const ArrayFacts& facts);
  // The facts of the array whose element is read or written, for an exact index of ints; -1: it is something else.
  int element_facts(ValueId container, ValueId index, PyObject* live_index);
  bool is(ValueId v, PyTypeObject* type) const { return v >= 0 && info_[v].type == type; }
  void set_type(ValueId v, PyTypeObject* type) { info_[v].type = type; }
  bool is_constant_dtype(ValueId v, PyObject* live) const;
  bool simple(ValueId v) const;                // int, float, bool, complex, str, bytes, None: no user's code in operators on it
  bool safe_index(ValueId v, PyObject* live);  // int, slice, None, Ellipsis, array, tuple of those
  void note_locals(std::vector<PyObject*>* out) const;
  bool frame_is_kept();  // somebody holds a frame object of ours, and what it shows is about to change
  void unknown_code();   // an op just ran code nothing is known of
  void truth_of(ValueId v, PyObject* live, ValueId* truth);
  int fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path);

  // -- array ops (record_operators.cc)
  bool array_operands(const std::vector<ValueId>& values, const std::vector<PyObject*>& live);
  ArrayFn binary_fn(BinaryOp op, ValueId right, PyObject* live_left, PyObject* live_right) const;
  void mark_array_op(ValueId v, ArrayFn fn);  // finisher's part: the result turned out to be an array kernels know
  ArrayFn pending_fn_ = ArrayFn::none;

  // -- handlers, a group a file
#define X(name) void on_##name(const Instr& instr);
  DALSEGNO_INSTRUCTIONS(X)
#undef X
  void give_up(Reason reason);  // the recording ends before this instruction
  void not_recorded(const Instr& instr);
  void pop_jump(const Instr& instr, bool when, bool is_none, bool keep);
  void binary(const Instr& instr, int nb);
  void unary(const Instr& instr, UnaryOp op);
  void build(const Instr& instr, OpKind kind, int count, PyTypeObject* type, uint32_t effects);
  void get_item(const Instr& instr);
  void call(const Instr& instr, int nargs, PyObject* kwnames);
  // What a call hands over: positional arguments, then those by keyword.
  struct Arguments {
    std::vector<ValueId> values;
    std::vector<PyObject*> live;  // null where it is not known
    PyObject* names = nullptr;    // tuple of the keywords, or null; borrowed
    int names_object = -1;        // its index
    size_t positional() const { return values.size() - (names ? PyTuple_GET_SIZE(names) : 0); }
  };
  bool call_through(ValueId callee, PyObject* live, Arguments arguments);
  bool call_itself(ValueId callee, const Arguments& arguments);
  bool call_method(ValueId callee, PyObject* live, Arguments arguments);
  bool call_instance(ValueId callee, PyObject* live, Arguments arguments);
  bool call_partial(ValueId callee, PyObject* live, Arguments arguments);
  bool call_python(ValueId func, PyFunctionObject* live, const Arguments& arguments);
  bool goes_through(PyObject* live) const;
  bool wants_parts(ValueId callee, PyObject* live) const;  // of the arguments of a star call
  bool spread(ValueId positional, PyObject* live, ValueId named, PyObject* live_named, Arguments* out);
  bool recurses(PyObject* code) const;
  void call_opaque(ValueId callee, PyObject* live, Arguments arguments);
  // A callee that is called again at replay, and what is known of its arguments.
  struct OpaqueCall {
    PyObject* live;  // the callee, or null
    CalleeFacts facts;
    std::vector<ValueId> args;
    std::vector<PyObject*> live_args;
    PyObject* kwnames;
    bool plain = true;         // all are of exact builtin types, or constant dtypes
    bool arrays_known = true;  // the facts of all arrays among them are guarded
  };
  bool call_is_known(const OpaqueCall& call, uint32_t* effects);
  bool call_is_quiet(const OpaqueCall& call);
  bool numpy_knows(const OpaqueCall& call);
  bool is_constant_astype(const OpaqueCall& call) const;
  bool numpy_data(ValueId v, PyObject* live);
  bool is_int(ValueId v) const { return is(v, &PyLong_Type) || is(v, &PyBool_Type); }
  void known_result(const OpaqueCall& call, ValueId v);
  int keywords_index(PyObject* kwnames);
  bool bind_arguments(ValueId func, PyFunctionObject* live, const Arguments& arguments, std::vector<ValueId>* locals);
  void load_global(const Instr& instr, bool push_null);
  void get_attr(PyObject* name, bool method);
  bool module_attr(PyObject* name, bool method);
  bool plain_attr(PyObject* name, bool method);
  bool instance_attr(PyObject* name, bool method);
  bool set_instance_attr(PyObject* name);
  bool ordinary_attr(PyObject* live, PyObject* name, dalsegno_attribute* attribute, std::string* path);
  ValueId emit_attr(OpKind kind, std::initializer_list<ValueId> inputs, const dalsegno_attribute& attribute, const std::string& path,
                    uint32_t effects = kAnyEffect);
  void push_loaded(ValueId callable, ValueId self, bool method);
  void finish_array(const Instr& instr);
  void finish_branch(const Instr& instr);
  void finish_for_iter(const Instr& instr);
  void finish_method(const Instr& instr);
  void note(Reason reason, PyObject* callee);
  PyObject* const_at(int index) const { return PyTuple_GET_ITEM(frame().code->code->co_consts, index); }
  PyObject* name_at(int index) const { return PyTuple_GET_ITEM(frame().code->code->co_names, index); }
  ValueId code_const(int index);
  void set_paths(Frame& frame, PyFunctionObject* live, const std::string& code_path);
  std::string globals_path(PyObject* globals) const;
  std::string path_by_name(PyObject* object) const;
  std::string path_within(PyObject* globals, const std::string& qualified_name, PyObject* object) const;
  static const Handler* handlers();

  Options options_;
  PyFunctionObject* function_;
  int next_number_;
  std::vector<Frame> frames_;
  std::unique_ptr<LiveTrace> trace_;
  std::vector<std::unique_ptr<LiveTrace>> done_;
  std::vector<Note> notes_;
  std::vector<ValueInfo> info_;
  std::vector<ValueId> touched_;  // values whose slot count changed in this instruction
  std::vector<ValueId> made_;     // lists and dicts whose contents are known
  std::unordered_map<PyObject*, ValueId> constants_;
  std::unordered_map<PyObject*, int> object_index_;
  std::unordered_map<PyObject*, int> name_index_;  // by interned string
  std::unordered_map<PyCodeObject*, std::shared_ptr<const CodeInfo>> codes_;
  int epoch_ = 0;                       // of what unknown code may change about values
  bool maybe_kept_ = false;             // code that ran may have kept a frame object of ours
  bool written_ = false;                // code that ran has assigned to a variable of a frame of ours
  std::vector<PyObject*> live_locals_;  // of all frames, as the instruction began; only if kLocalsWriteThrough
  bool recording_ = false;
  int recursion_ = 0;  // instructions announced of frames that are not recorded, of code that is
  bool abandoned_ = false;
  bool lost_ = false;   // events may have been missed: nothing is kept
  bool abort_ = false;  // a handler met something it cannot record
  Reason abort_reason_ = Reason::none;

  // the instruction being recorded
  const hook::FrameView* view_ = nullptr;
  const Instr* pending_ = nullptr;
  int last_offset_ = -1;
  Finisher finisher_ = nullptr;
  int successors_[2] = {-1, -1};
  bool returning_ = false;
  struct PendingCall {
    PyCodeObject* code = nullptr;
    ValueId function = kNull;
    std::vector<ValueId> locals;
    int pops = 0;
  } call_;
  ValueId branch_ = kNull;
  bool branch_when_ = false, branch_keep_ = false, branch_none_ = false;
  ValueId call_result_ = kNull;
  int behind_ = -1, behind_offset_ = -1;  // snapshot of the state behind the instruction just done, and where that stands

  // state at the start of the current instruction
  struct Checkpoint {
    size_t ops = 0, inputs = 0, frames = 0, depth = 0;  // depth: of the innermost frame's stack
    Snapshots::Mark snapshots;
    ValueId top = kNull;  // of its stack
    int snapshot = -1;
  } check_;
  // What the instruction has done to the innermost frame since, in order: undone backwards.
  struct Change {
    enum class What : uint8_t { local, push, pop } what;
    int local;
    ValueId v;  // local: the value before; pop: the value popped
  };
  std::vector<Change> changes_;
  std::vector<int> changed_;  // room for add_frame()
};

// True for objects that a global or a module's attribute is folded to: functions, classes, modules, ufuncs and the like.
bool foldable(PyObject* object);
bool init();  // NumPy's API, opcode tables; false with an exception set

}  // namespace dalsegno::recorder
