// The builder: writes a trace. It has the ops, the guards, the snapshots and the objects they refer to; the frames recorded through as
// values (Shadow); and what is known of each value, with the guards that establish it. It looks at objects, but knows neither the
// interpreter's frames nor instructions nor events: who follows those (recorder.h) says what they came to. One trace at a time; needs the
// GIL.
#pragma once
#include <Python.h>

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/recorder/live_trace.h"
#include "trace/trace.h"

namespace dalsegno::recorder {

// What is known of a value while recording.
struct ValueInfo {
  PyTypeObject* type = nullptr;  // exact type, guarded or certain; borrowed
  PyObject* object = nullptr;    // a constant's object; borrowed from LiveTrace::objects
  std::string path;              // a constant's source
  int epoch = -1;                // `facts`, or a module's type, hold while this is the builder's epoch
  int own_dtype_epoch = -1;      // an array's dtype is NumPy's own object while this is the builder's epoch
  ArrayFacts facts;
  int slots = 0;               // locals and stack slots that hold it; -1: it is dead
  std::vector<ValueId> items;  // of a tuple or slice built in this trace
  // A tuple, list or dict built in this trace: `items`, and of a dict `keys`, are all that it holds. They stay held as long as it is.
  bool made = false;
  std::vector<PyObject*> keys;  // exact strings; borrowed from LiveTrace::objects
  ValueId method = kNull;       // it is this method descriptor, a constant, bound to `items[0]`, as long as it is `made`
};

// A frame recorded through, as values.
struct Shadow {
  PyCodeObject* code = nullptr;                        // borrowed; lives as long as the frame is recorded
  std::string code_path, globals_path, builtins_path;  // sources, "" where there is none
  ValueId function = kNull;
  std::vector<ValueId> locals, stack;
  int call_at = -1, call_next = -1;  // the call that the frame inside this one serves, and where this one then goes on
  int action = 0;                    // and what becomes of its result: is_return_action()

  int turns = 0;         // of its loops that have been written out
  bool goes_on = false;  // a generator's, that has gone on in this trace

  // how it was last written into a snapshot, and what differs since
  int code_object = -1;      // its code among the trace's objects, or -1: not asked for yet
  int written = -1;          // index into Snapshots::frames, or -1
  int64_t weight = 0;        // of the deltas under `written`
  std::vector<int> changed;  // locals, with repetitions
  size_t kept = 0;           // stack slots that are the same
  int at_call = -1;          // as the frame around the one called: index into Snapshots::frames, or -1
};

class Builder {
 public:
  // ---- a trace, from its beginning to its end (builder.cc)
  void open(AnchorKind anchor, int number, PyFunctionObject* root);
  // Makes it a trace from a function's entry: the parameters are its first locals.
  void open_entry(Shadow outermost, int params, PyFunctionObject* function);  // null: which one is the first parameter
  // Makes it a side trace from an exit, which leaves with this snapshot: the parameters are the values its frames hold. The shadows come
  // with code, sources and calls alone.
  void open_exit(const LiveTrace& parent, int op, int which, const Snapshot& at, std::vector<Shadow> shadows);
  // A loop trace at the place the shadows stand at: every bound slot becomes a parameter of its own.
  void open_loop(int number, PyFunctionObject* root, int header);
  // The same of a frame that runs, with nothing recorded before.
  void open_running(Shadow frame, int number, PyFunctionObject* root, int header) {
    shadows_.push_back(std::move(frame));
    open_loop(number, root, header);
  }
  const LiveTrace& trace() const { return *trace_; }
  void discard() { trace_.reset(); }
  std::unique_ptr<LiveTrace> close(Reason reason, std::string where);

  // An instruction begins: what is written from here on can be taken back, until the next one begins.
  void begin_instruction(int start, int line);
  bool has_begun() const { return check_.begun; }  // the first instruction
  void roll_back();
  uint32_t effects_of_instruction() const;  // of what has been written since it began
  size_t depth_before() const { return check_.depth; }
  ValueId top_before() const { return check_.top; }
  // Behind an instruction: did it change what the trace relies on? And what it leaves without a slot dies.
  void settle(int at, int next);

  // ---- ops
  struct EmitArgs {
    int imm = 0;
    int object = -1;
    int object2 = -1;
    int name = -1;
    uint32_t effects = kAnyEffect;  // what the op may do, as far as its kind does
    bool snapshot = true;           // it may leave before its instruction
    int leaves_by = -1;             // by this snapshot instead
  };
  ValueId emit(OpKind kind, std::initializer_list<ValueId> inputs, EmitArgs args);
  ValueId emit(OpKind kind, std::span<const ValueId> inputs, EmitArgs args);
  ValueId emit(OpKind kind, std::initializer_list<ValueId> inputs) { return emit(kind, inputs, EmitArgs{}); }
  Op& op(ValueId v) { return trace_->data.ops[v]; }
  int name_index(PyObject* name);
  int object_index(PyObject* object, const std::string& path);
  const std::string& source(int object) const { return trace_->data.objects[object].source; }
  int names_index(PyObject* names);  // of a tuple of strings
  int facts_index(const ArrayFacts& facts);
  ValueId constant(PyObject* object, const std::string& path);
  ValueId known_constant(PyObject* object) const;  // or kNull
  // The trace relies on what the dict has under the name (null: nothing). False: it relies on something else already.
  bool fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path);

  // ---- frames as values (shadows.cc)
  const Shadow& shadow() const { return shadows_.back(); }
  int count_turn() { return ++shadows_.back().turns; }
  const std::vector<Shadow>& shadows() const { return shadows_; }
  // The innermost frame's call, at `at`, has entered a frame, whose locals are bound; and: has left it, `value` on top of the stack.
  void enter(Shadow inner, int at, int next, int action);
  void leave();
  int leave_ended();  // the frame of a generator that has come to its end: nothing is handed on. What was to become of its result
  // The generator whose frame is the innermost one, or kNull.
  ValueId running_generator() const;
  void put_below(ValueId v, int count);         // into the slot under the uppermost ones
  void take_result(ValueId value, int action);  // what the instruction that has called does with what the frame has returned
  ValueId top(int below = 0) const { return shadow().stack[shadow().stack.size() - 1 - below]; }
  void push(ValueId v);
  ValueId pop();
  void pop(int count);
  void replace_top(int count, ValueId v);  // `count` values by one, which may be among them
  void set_local(int index, ValueId v);
  // Something else than a slot holds a value for a while (+1), or no longer does (-1).
  void hold(ValueId v, int change);
  void release_dead(int at = -1, int next = -1);
  int snapshot();                // state before the current instruction
  int snapshot_now(int offset);  // state as it is, going on at `offset`
  // As snapshot_now(), but one that no other snapshot builds on: it names a value that only an exit has.
  void know_constants(const LiveTrace& parent, const std::vector<ValueId>& there, std::vector<ValueId>* here);
  int snapshot_aside(int offset);
  Snapshot shape_now(int offset);

  // ---- what is known of values (knowledge.cc)
  const ValueInfo& info(ValueId v) const { return info_[v]; }
  bool is(ValueId v, PyTypeObject* type) const { return v >= 0 && info_[v].type == type; }
  bool is_constant(ValueId v) const { return info_[v].object != nullptr; }
  bool is_dead(ValueId v) const { return info_[v].slots < 0; }
  bool simple(ValueId v) const;           // int, float, bool, complex, str, bytes, None: no user's code in operators on it
  bool is_numpy_scalar(ValueId v) const;  // a number
  void set_type(ValueId v, PyTypeObject* type) { info_[v].type = type; }
  void set_items(ValueId v, std::vector<ValueId> items) { info_[v].items = std::move(items); }
  void set_same_array(ValueId v, ValueId as);                  // it is the array `as`
  void set_array_op(ValueId v, ArrayFn fn, PyObject* result);  // the result turned out to be an array kernels know
  void set_unborn(ValueId v) { info_[v].slots = -1; }          // on this way there is no such value
  bool know(ValueId v, PyObject* live);                        // exact type of a builtin value: guards it; false: type not one of those
  bool know_iterator(ValueId v, PyObject* live);               // its next runs no code of the user's: guards that
  // Looking up a simple key in an exact dict or set runs no code of the user's: guards that.
  bool know_lookup(ValueId container, PyObject* live, ValueId key, PyObject* live_key);
  bool know_array(ValueId v, PyObject* live);  // array facts: guards them
  // An array's dtype is NumPy's own object, which is more than its facts say: guards that.
  bool know_own_dtype(ValueId v, PyObject* live);
  bool guard_own_dtype(ValueId v);
  bool guard_contiguous(ValueId v, PyObject* live);
  bool know_which_module(ValueId v, PyObject* live);
  bool know_which(ValueId v, PyObject* live, const std::string& path);
  bool know_callee(ValueId v, PyObject* live);
  void know_module(ValueId v);  // that it is an ordinary one: guards that
  // The facts of the array whose element is read or written, for an exact index of ints; -1: it is something else.
  int element_facts(ValueId container, ValueId index, PyObject* live_index, bool object_will_do = false);
  bool safe_index(ValueId v, PyObject* live);  // int, slice, None, Ellipsis, array, tuple of those
  void forget();                               // an op just ran code nothing is known of

  // ---- containers whose contents are known (made.cc)
  void made_of(ValueId container, std::vector<ValueId> items, std::vector<PyObject*> keys = {});
  void made_of_pairs(ValueId dict, const std::vector<ValueId>& pairs);  // if all keys are constant names
  bool made(ValueId v, PyTypeObject* type) const { return is(v, type) && info_[v].made; }
  // A method written in C, bound to an object.
  void made_of_method(ValueId bound, ValueId method, ValueId self) {
    made_of(bound, {self});
    info_[bound].method = method;
  }
  // What an exact tuple or list holds, as `live` does now: known, or guarded. False: its items are not to be had without the user's code.
  bool parts(ValueId v, PyObject* live, std::vector<ValueId>* values);
  // Likewise of an exact dict whose keys are exact strings.
  bool named_parts(ValueId dict, PyObject* live, std::vector<PyObject*>* keys, std::vector<ValueId>* values);

 private:
  void mark();
  SnapshotFrame frame_image(Shadow& frame, int offset, int after);
  int add_frame(Shadow& frame, int outer, int offset, int after, int64_t* weight);
  int write_frame(Shadow& frame, int outer, int offset, int after);
  int write_outer();  // all frames but the innermost; its index, or -1
  int code_object(Shadow& frame);
  int add_snapshot(int innermost);
  ValueId end_frame();  // the innermost one, that returns what is on top of its stack, which is to be let go of
  void swap_state();    // exchanges the innermost frame as it is with what it was when the instruction began
  void stand_behind(int at, int next);
  void no_longer_made(ValueId container);
  void may_change(const Op& op);  // the op may store into its inputs, or keep them
  Shadow& innermost() { return shadows_.back(); }

  std::unique_ptr<LiveTrace> trace_;
  std::vector<Shadow> shadows_;
  std::vector<ValueInfo> info_;
  std::vector<ValueId> touched_;  // values whose slot count changed in this instruction
  std::vector<ValueId> made_;     // lists and dicts whose contents are known
  std::unordered_map<PyObject*, ValueId> constants_;
  std::unordered_map<PyObject*, int> object_index_;
  std::unordered_map<PyObject*, int> name_index_;  // by interned string
  int epoch_ = 0;                                  // of what unknown code may change about values
  int line_ = 0, start_ = 0;                       // of the instruction that is written
  int behind_ = -1, behind_offset_ = -1;           // snapshot of the state behind the instruction just done, and where that stands

  // state at the start of the current instruction
  struct Checkpoint {
    bool begun = false;
    size_t ops = 0, inputs = 0, depth = 0;  // depth: of the innermost frame's stack
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

}  // namespace dalsegno::recorder
