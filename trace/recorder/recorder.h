// The recorder: watches a call instruction by instruction and writes down a trace. It is the follower's heir, told what became of each
// instruction, and has a builder, which writes; what it adds is what each instruction means (rules: docs/hook.md). It never changes what
// the program does; whatever it does not understand ends the recording at that instruction, with a reason.
// One Recorder serves one watched call; it may yield several traces (a root that runs into a loop, the loop itself). Needs the GIL.
#pragma once
#include <Python.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hook/attributes.h"
#include "trace/recorder/anchors.h"
#include "trace/recorder/builder.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/follower.h"
#include "trace/recorder/sources.h"

namespace dalsegno::recorder {

// Something worth telling about a recording that did not end it.
struct Note {
  Reason reason = Reason::none;
  std::string what;   // callee
  std::string where;  // function:line
};

struct Companion {
  PyObject* callable = nullptr;  // a new reference, or null: there is none
  bool ready = false;            // it has traces,
  bool recurses = false;         // in which it calls itself
};

struct Options {
  int max_ops = 20000;
  int max_depth = 20;
  int first_number = 0;          // number of the first trace recorded; following ones count on
  PyObject* callable = nullptr;  // the jitted function that is being recorded, if calls of jitted functions are recorded as such
  // The traces are of all functions with this one's code and globals: which of them is called is their first parameter.
  PyFunctionObject* shape = nullptr;
  // Asked when a call that is not recorded through runs a function that is being recorded again and again: recursion, of which every
  // instruction is announced here. True: the recording is abandoned; else it ends before the call.
  std::function<bool()> recursion = [] { return false; };
  // The jitted function to be called in a plain one's place. `any`: that for all functions with this one's code, which takes the function
  // as its first argument.
  std::function<Companion(PyFunctionObject*, bool any)> companion = [](PyFunctionObject*, bool) { return Companion{}; };
  // Do a companion's loops go round but a few times a call? False, too, as long as it has not been called.
  std::function<bool(PyObject* companion)> loops_shortly = [](PyObject*) { return false; };
  std::function<void()> gives_back = [] {};  // the recording is abandoned: another one may begin
  // Number of a loop trace already anchored at a place that takes slots of these types, or -1: there is none, and may be one more.
  std::function<int(const AnchorKey&, const SlotTypes&)> find_loop = [](const AnchorKey&, const SlotTypes&) { return -1; };
};

class Recorder final : public Follower, private Builder {
 public:
  Recorder(PyFunctionObject* function, Options options);
  ~Recorder() override;

  void begin_entry();
  // Records a side trace from an exit of `parent`; frames as the exit's snapshot has them. Call entered() for each rebuilt frame.
  void begin_exit(const LiveTrace& parent, int op, int which, PyFunctionObject* const* functions);
  // Records a loop trace of the function's frame, which runs and has come to the loop's head.
  void begin_loop(const hook::FrameView& running);
  // The call is over (returned or raised): closes a trace still open.
  void finish();

  std::vector<std::unique_ptr<LiveTrace>> take() { return std::move(done_); }
  const std::vector<Note>& notes() const { return notes_; }
  bool abandoned() const { return abandoned_; }
  bool goes_through_now() const { return goes_through_now_; }  // it was abandoned as the next one will go through what it has called

 private:
  using Handler = void (Recorder::*)(const Instr&);
  using Finisher = void (Recorder::*)(const Instr&);

  // ---- what became of an instruction (recorder.cc)
  void begins(const Instr& instr) override;
  void is_done() override;
  void has_entered(const hook::FrameView& view) override;
  void has_left(const Instr& call) override;
  void has_ended(Reason reason) override;
  void runs_elsewhere(const hook::FrameView& view) override;

  // ---- life of a trace (recorder.cc)
  void start_trace(AnchorKind anchor);
  void begun();
  void run_prefix();
  void set_sources(Shadow* shadow, PyFunctionObject* live, const std::string& code_path) const;
  void close(Reason reason);
  void close_loop(const Instr& instr, int header);
  bool is_in_test(int offset);
  bool at_head(const Instr& instr);
  SlotTypes slot_types() const;
  int find_loop(const AnchorKey& key) const;
  void give_up(Reason reason);  // the recording ends before this instruction

  // ---- the live frames
  PyObject* live_top(int below = 0) const;  // live value, `below` places under the top as it was before the instruction
  PyObject* live_local(int index) const { return view()->localsplus[index].get(); }
  void note_numbers(const hook::FrameView& running);
  PyObject* result() const;  // live top of the stack after the instruction
  PyObject* const_at(int index) const { return PyTuple_GET_ITEM(frame().code->code->co_consts, index); }
  PyObject* name_at(int index) const { return PyTuple_GET_ITEM(frame().code->code->co_names, index); }
  void note_locals(std::vector<PyObject*>* out) const;
  bool frame_is_kept();  // somebody holds a frame object of ours, and what it shows is about to change

  // ---- what is written with a look at them
  void set_local(int index, ValueId v);
  ValueId code_const(int index);
  void fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path);
  bool is_constant_dtype(ValueId v, PyObject* live) const;
  void truth_of(ValueId v, PyObject* live, ValueId* truth);
  bool know_stored(ValueId v, PyObject* live);
  bool array_operands(const std::vector<ValueId>& values, const std::vector<PyObject*>& live);
  ArrayFn power_fn(ValueId right, PyObject* live_left, PyObject* live_right) const;
  ArrayFn binary_fn(BinaryOp op, ValueId right, PyObject* live_left, PyObject* live_right) const;

  // ---- handlers, a group a file
#define X(name) void on_##name(const Instr& instr);
  DALSEGNO_INSTRUCTIONS(X)
#undef X
  void not_recorded(const Instr& instr);
  void pop_jump(const Instr& instr, bool when, bool is_none, bool keep);
  void binary(const Instr& instr, int nb);
  void unary(const Instr& instr, UnaryOp op);
  void know_positions(int n);
  bool know_bounds(bool of_array);
  void build(const Instr& instr, OpKind kind, int count, PyTypeObject* type, uint32_t effects);
  void get_item(const Instr& instr);
  bool unpack_items(const Instr& instr);
  void take_index_apart(PyObject* live);
  ValueId parts_of_index(PyObject* o);
  void take_items_apart(const Instr& build);
  ValueId int_constant(PyObject* number);
  static PyObject* small_int(int n);
  void call(const Instr& instr, int nargs, PyObject* kwnames);
  // What a call hands over: positional arguments, then those by keyword.
  struct Arguments {
    std::vector<ValueId> values;
    std::vector<PyObject*> live;  // null where it is not known
    PyObject* names = nullptr;    // tuple of the keywords, or null; borrowed
    int names_object = -1;        // its index
    size_t positional() const { return values.size() - (names ? PyTuple_GET_SIZE(names) : 0); }
  };
  bool set_names(const std::vector<PyObject*>& names, Arguments* arguments);
  void take_as_ints(Arguments* arguments);
  bool same(ValueId callee, PyObject* live, const Arguments& arguments);
  bool divide(PyObject* live, const Arguments& arguments);
  bool slices(PyObject* live, const Arguments& arguments);
  bool is_plain_number(ValueId v) const;
  bool extreme(PyObject* live, const Arguments& arguments);
  bool of_display(ValueId callee, PyObject* live, const Arguments& arguments);
  bool add_up(const Arguments& items);
  bool reverse(PyObject* live, const Arguments& arguments);
  bool outer(PyObject* live, const Arguments& arguments);
  bool operates(ValueId callee, PyObject* live, const Arguments& arguments);
  bool unbind(ValueId* callee, PyObject** live, Arguments* arguments);
  bool bound_attr(PyObject* name, PyObject* found, const std::string& path);
  bool call_through(ValueId callee, PyObject* live, Arguments arguments);
  bool is_in_loop() const;
  void abandon();
  void finish_companion(const Instr& call);
  bool call_companion(ValueId callee, PyObject* live, size_t base, bool method, Arguments* arguments);
  bool is_root(PyFunctionObject* function) const;
  std::string guard_code(ValueId func, PyFunctionObject* live);
  bool call_itself(ValueId callee, const Arguments& arguments);
  bool call_method(ValueId callee, PyObject* live, Arguments arguments);
  bool call_dispatched(ValueId callee, PyFunctionObject* implementation, Arguments arguments);
  bool overrides_nothing(ValueId v, PyObject* live, int depth = 0);
  bool is_in_numpy() const;
  bool unrolls();
  PyObject* certain(ValueId v) const;
  bool push_certain(PyObject* made, int count);
  bool compare_certain(int operation);
  bool is_certain(bool negated);
  bool contains_certain(bool negated);
  bool binary_certain(BinaryOp op);
  bool unary_certain(UnaryOp op);
  bool truth_certain(ValueId v, ValueId* truth);
  bool truth_of_class(ValueId v, PyObject* live, ValueId* truth);
  bool item_certain();
  bool build_certain(PyTypeObject* type, int count);
  bool attr_certain(PyObject* name);
  PyObject* dtype_of_operand(ValueId v, PyObject* live);
  bool call_certain(PyObject* live, const Arguments& arguments);
  bool is_subdtype(PyObject* live, const Arguments& arguments);
  bool is_shape(ValueId v) const;
  void simplify(PyObject* live, Arguments* arguments);
  void place_bounds(Arguments* arguments) const;
  void place_axis(Arguments* arguments) const;
  void drop_needless(PyObject* live, Arguments* arguments);
  bool attr_of_array(PyObject* live, const Arguments& arguments);
  bool rounds(PyObject* live, const Arguments& arguments);
  void take_method(ValueId* callee, PyObject** live, const Arguments& arguments);
  bool gives_argument(PyObject* live, const Arguments& arguments);
  void repeat_made(ValueId list, ValueId repeated, PyObject* times);
  std::vector<ValueId> items_with(ValueId list, PyObject* index, ValueId stored) const;
  bool call_instance(ValueId callee, PyObject* live, Arguments arguments);
  bool call_partial(ValueId callee, PyObject* live, Arguments arguments);
  bool call_class(ValueId callee, PyObject* live, Arguments arguments);
  bool call_special(ValueId object, PyObject* live, PyObject* name, const Arguments& arguments, int action);
  bool property_attr(PyObject* name);
  bool make_instance(PyObject* live, const Arguments& arguments);
  bool unary_method(UnaryOp op);
  bool call_absolute(PyObject* live, const Arguments& arguments);
  bool set_item_method();
  bool operator_method(int nb);
  bool compare_method(int operation);
  bool item_of_made();
  bool item_method();
  bool returns_what_is_asked();
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
  bool makes_generator(ValueId callee, const OpaqueCall& call);
  bool resume_generator(ValueId generator, PyObject* live, int action);
  bool advance(PyObject* live, const Arguments& arguments);
  void take_end(int action);
  void has_left_ended(const Instr& call);
  std::string bound_slots() const;
  int digits_index(const std::string& digits);  // among the names
  bool end_generator(const Instr& instr);
  std::vector<ValueId> items_appended(const OpaqueCall& call) const;
  bool call_is_known(const OpaqueCall& call, uint32_t* effects);
  bool is_constant_class(ValueId v) const;
  bool test_class(PyObject* live, const Arguments& arguments);
  bool call_is_quiet(const OpaqueCall& call);
  static bool takes_nothing(const OpaqueCall& call);
  PyTypeObject* result_type(const OpaqueCall& call) const;
  bool numpy_knows(const OpaqueCall& call);
  bool numpy_is_quiet(const OpaqueCall& call) const;
  bool is_unbounded(ValueId deque, PyObject* live);
  bool is_constant_astype(const OpaqueCall& call) const;
  bool numpy_data(ValueId v, PyObject* live);
  bool is_int(ValueId v) const { return is(v, &PyLong_Type) || is(v, &PyBool_Type); }
  void known_result(const OpaqueCall& call, ValueId v);
  int keywords_index(PyObject* kwnames);
  ValueId default_of(PyFunctionObject* function, ValueId given, PyObject* live, const std::string& path);
  bool bind_arguments(ValueId func, PyFunctionObject* live, const Arguments& arguments, std::vector<ValueId>* locals);
  void load_global(const Instr& instr, bool push_null);
  void get_attr(PyObject* name, bool method);
  bool module_attr(PyObject* name, bool method);
  bool plain_attr(PyObject* name, bool method);
  bool array_extents(const std::string& name);
  bool instance_attr(PyObject* name, bool method);
  bool set_instance_attr(PyObject* name);
  bool ordinary_attr(PyObject* live, PyObject* name, dalsegno_attribute* attribute, std::string* path);
  ValueId emit_attr(OpKind kind, std::initializer_list<ValueId> inputs, const dalsegno_attribute& attribute, const std::string& path,
                    uint32_t effects = kAnyEffect);
  void push_loaded(ValueId callable, ValueId self, bool method);
  void finish_array(const Instr& instr);
  void finish_branch(const Instr& instr);
  void finish_common_constant(const Instr& instr);
  void finish_for_iter(const Instr& instr);
  void finish_method(const Instr& instr);
  void note(Reason reason, PyObject* callee);
  static const Handler* handlers();

  Options options_;
  PyFunctionObject* root() const { return options_.shape ? options_.shape : function_; }  // what paths call `self`

  PyFunctionObject* function_;
  Sources sources_;
  int next_number_;
  std::vector<std::unique_ptr<LiveTrace>> done_;
  std::vector<Note> notes_;
  bool maybe_kept_ = false;             // code that ran may have kept a frame object of ours
  bool written_ = false;                // code that ran has assigned to a variable of a frame of ours
  std::vector<PyObject*> live_locals_;  // of all frames, as the instruction began; only if kLocalsWriteThrough
  int recursion_ = 0;                   // instructions announced of frames that are not recorded, of code that is
  bool abandoned_ = false, goes_through_now_ = false;
  bool jumped_back_ = false;        // the exit being recorded is a branch to a loop's head (3.11 has those that jump backward)
  const LoopTest* test_ = nullptr;  // of a loop, in frame test_depth_, that has jumped back: its head is behind it
  size_t test_depth_ = 0;
  bool ended_ = false;  // the instruction ends a generator
  bool abort_ = false;  // a handler met something it cannot record
  Reason abort_reason_ = Reason::none;

  // the instruction being recorded
  Finisher finisher_ = nullptr;    // what is left of it when it is done
  PyObject* companion_ = nullptr;  // that it calls; borrowed
  struct PendingCall {
    ValueId function = kNull;
    std::vector<ValueId> locals;
    int pops = 0;                // operands that become the new frame's
    int action = 0;              // what becomes of its result: is_return_action()
    ValueId instance = kNull;    // whose __init__ is called
    std::vector<ValueId> stack;  // of a generator's frame, which goes on
    bool goes_on = false;
  } call_;
  ValueId branch_ = kNull;
  bool branch_when_ = false, branch_keep_ = false, branch_none_ = false;
  ValueId call_result_ = kNull;
  ArrayFn pending_fn_ = ArrayFn::none;
};

// Of a function that makes something else when it is called than its result.
inline constexpr int kNotSimple = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;

// Turns of a callee's loops that make them short: they become part of the caller's traces.
inline constexpr int kFewTurns = 32;

// What a trace may have as a constant: it never changes, and another process can make its like.
bool is_expressible(PyObject* o, int depth = 0);

bool init();  // NumPy's API, opcode tables; false with an exception set

}  // namespace dalsegno::recorder
