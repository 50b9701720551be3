// Lowering: Trace -> ProgramImpl. Internal to the replay machine.
//   1. infer (types.cc): the typed trace (replay/typed): which values are unboxed, which ops are typed, who needs the object
//   2. place (lower.cc): registers
//   3. emit (ops.cc), array ops that wait (groups.cc)
#pragma once
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "halide_gen/plan/rules.h"
#include "replay/machine/loop_plan.h"
#include "replay/machine/program.h"
#include "replay/typed/typed_trace.h"

namespace dalsegno::replay {

bool may_change_class(PyObject* type);  // types.cc
// Where containers of the type have how many items they have, which is what their truth is; 0: others, null among them. (python.cc)
int32_t offset_of_number(const PyTypeObject* type);

class Lowering {
 public:
  Lowering(std::unique_ptr<LiveTrace> trace, Exit* parent, const std::vector<std::unique_ptr<Program>>* tree);
  std::unique_ptr<ProgramImpl> lower();  // null: it cannot be lowered

 private:
  using Mode = typed::Mode;
  using RegOfRep = std::array<int32_t, static_cast<size_t>(Rep::kCount)>;
  static constexpr RegOfRep kNoRegs = [] {
    RegOfRep none{};
    none.fill(-1);
    return none;
  }();
  // What is known of a value: its form in the typed trace, and what has been found out while emitting.
  struct Value : typed::ValueForm {
    bool pending = false;          // an array op that waits
    ValueId released = kNull;      // the op that releases it while array ops wait
    ValueId view_by = kNull;       // views: the op that took it
    bool lent = false;             // virtual, but its object may have been built for NumPy
    PyObject* type = nullptr;      // exact type proven so far (while emitting)
    ArrayFacts facts = kNoFacts;   // proven so far (while emitting)
    RegOfRep converted = kNoRegs;  // registers of the value in other representations
    ValueId bound = kNull;         // side trace's parameter: the parent's value
  };

  // -- lower.cc
  bool bind_params();
  void prove_types();
  void place();
  void place_param(ValueId v);
  Rep carried_rep(ValueId v);
  Rep closing_rep(ValueId v);
  bool is_used(ValueId v);
  void place_constant(ValueId v);
  static bool gives_none(typed::Callee callee);  // of those with a form of their own
  PyObject* known_plain(ValueId v) const;
  void make_folded_guards();
  void finish();
  int32_t new_reg() { return p_->n_regs++; }
  const Op& op(ValueId i) const { return t().ops[i]; }
  const Trace& t() const { return p_->live->data; }
  const ValueId* in(const Op& op) const { return t().inputs_of(op); }
  PyObject* object(int32_t index) const { return index < 0 ? nullptr : p_->live->objects[index]; }
  Loc& loc(ValueId v) { return p_->locs[v]; }
  const Loc& loc(ValueId v) const { return p_->locs[v]; }
  bool is_constant(ValueId v) const { return op(v).kind == OpKind::constant; }

  // -- types.cc
  bool infer();
  const typed::OpForm& form(ValueId i) const { return typed_.ops[i]; }

  // -- ops.cc
  using Emit = void (Lowering::*)(const Op& op, ValueId i);
  static Emit emit_of(OpKind kind);
  void emit_all();
  void emit_nothing(const Op&, ValueId) {}
  void emit_python(const Op& op, ValueId i);
  void emit_operator(const Op& op, ValueId i);
  void emit_truth(const Op& op, ValueId i);
  void emit_is(const Op& op, ValueId i);
  void emit_looking(const Op& op, ValueId i) { form(i).mode == Mode::kLookup ? emit_lookup(op, i) : emit_python(op, i); }
  void emit_lookup(const Op& op, ValueId i);
  const std::vector<int32_t>& found_in(ValueId container, ValueId key, ValueId i);
  void emit_heap(const Op& op, ValueId i);
  void take_part(ValueId i, Step* s);
  void emit_get_item(const Op& op, ValueId i);
  void emit_set_item(const Op& op, ValueId i);
  bool may_be_masked(ValueId array, ValueId mask) const;
  bool gathers_many(ValueId array, ValueId positions) const;
  bool has_places(ValueId array, ValueId index) const;
  void emit_element(const Op& op, ValueId i);
  void emit_item(const Op& op, ValueId i);
  void emit_text(const Op& op, ValueId i);
  void emit_text_question(const Op& op, ValueId i, const Quick& step, ValueId text, ValueId other);
  void emit_piece(const Op& op, ValueId i);
  void emit_byte(const Op& op, ValueId i);
  void emit_index(const Op& op, ValueId i);
  void emit_range(const Op& op, ValueId i);
  void emit_get_iter(const Op& op, ValueId i);
  void emit_call(const Op& op, ValueId i);
  void emit_length(const Op& op, ValueId i);
  void emit_draw(const Op& o, ValueId i);
  void emit_number_of(const Op& o, ValueId i, StepFn fn, native::Do does);
  void emit_typed_call(const Op& op, ValueId i, int32_t first);
  void emit_get_attr(const Op& op, ValueId i);
  int32_t constant_reg(int64_t value);
  void emit_iter_next(const Op& op, ValueId i);
  void emit_next(const Op& op, ValueId i);
  void emit_guard(const Op& op, ValueId i);
  void emit_guard_type(const Op& op, ValueId i);
  void emit_guard_quiet(const Op& op, ValueId i);
  void emit_guard_array(const Op& op, ValueId i);
  void emit_guard_truth(const Op& op, ValueId i);
  void emit_guard_world(const Op& op, ValueId i);
  void emit_bind_method(const Op& op, ValueId i);
  void emit_jitted_func(const Op& op, ValueId i);
  void emit_call_tree(const Op& op, ValueId i);
  void emit_release(const Op& op, ValueId i);
  void emit_leave_frame(const Op& op, ValueId i);
  void emit_return(const Op& op, ValueId i);
  std::vector<int32_t> in_order_of_deaths(const Op& end, std::vector<int32_t> registers) const;
  void emit_jump(const Op& op, ValueId i);
  void emit_leave(const Op& op, ValueId i);
  Step python_step(const Op& op, ValueId i);
  struct Reduced {
    typed::Callee callee = typed::Callee::kNone;
    int32_t at = 1;
  };
  Reduced reduced_call(const Op& op) const;
  // Which of a call's inputs say along which axis, whether that stays, and by how much fewer is divided; -1: none does.
  struct AlongAxis {
    int32_t axis = -1, keep = -1, ddof = -1;
  };
  std::optional<AlongAxis> along_axis(const Op& op) const;
  bool is_quick(const Op& op, const Step& s) const;
  bool is_mostly_silent(const Op& op, const Step& s) const;
  PyTypeObject* known_type(ValueId v) const;
  StepFn array_step(const Op& op, ValueId i) const;
  Step& push(Step step);
  Step base(const Op& op, ValueId i);                        // with exit plan, link and immediates
  int32_t raw(ValueId v, Rep rep, const Op& op, ValueId i);  // raw register, converted if need be
  int32_t boxed(ValueId v, const Op& op, ValueId i);         // object register, with a box step before if need be
  void defined(ValueId v);
  void proven(ValueId v, PyObject* type, ValueId since);
  void forget_facts();
  void emit_attribute(const Op& op, ValueId i);
  void emit_make_instance(const Op& op, ValueId i);
  bool dies_at(ValueId v, ValueId i) const;
  bool calls_builtin(const Op& op, const char* name) const;
  int elidable(const Op& op, ValueId i) const;
  void elide(const Op& op, ValueId i, Step* step) const;
  bool appends_to_string(const Op& op, ValueId i) const;
  int32_t plan(ValueId i, int32_t which);
  int32_t exit_record(ValueId i, int32_t which);
  void release(const std::vector<ValueId>& values, ValueId as);
  // -- virtuals.cc
  void emit_row(const Op& op, ValueId i);
  void emit_view(const Op& op, ValueId i);
  void emit_product(const Op& op, ValueId i);
  void emit_gather(const Op& o, ValueId i);
  void emit_reduction(const Op& op, ValueId i);
  void set_index(const Op& op, ValueId i, Virtual* view);
  void set_block(Virtual* view);
  const Virtual* virtual_of(ValueId v) const;
  const Virtual* view_of(ValueId v) const;
  bool takes_views(const Op& op, ValueId i) const;
  void put_off(const Op& op, ValueId i, Virtual::Kind kind, int32_t first);
  void is_not_built(ValueId v, const Virtual* what);
  bool leaves_virtuals(const Op& op, ValueId i) const;
  bool is_part(ValueId v, const Op& release) const;
  bool is_held(ValueId v, const Op& release) const;
  void find_released(std::vector<ValueId>* values, const Op& release);
  bool is_virtual(ValueId v) const;
  bool dies_quietly(ValueId v) const;
  void build_virtuals(ValueId because);
  bool dies_unbuilt(ValueId v);
  void lend_virtuals();
  void forget_virtual(ValueId v);
  void delay(const Op& op, ValueId i);
  int32_t held_for_later(const Op& op, ValueId v);
  void emit_make_function(const Op& op, ValueId i);
  bool uses_up(const Op& op) const;
  void emit_use(const Op& op, ValueId i);

  const std::vector<int32_t>& list(std::vector<int32_t> regs);
  void done(const Op& op, uint32_t effects);  // what is known after it has been emitted

  // -- groups.cc
  bool may_wait(const Op& op, std::vector<ValueId>* operands) const;  // an array op that may be put with the others
  void wait(const Op& op, ValueId i, const std::vector<ValueId>& operands);
  void put_off_step(const Op& op, ValueId i);
  bool lacks_object(ValueId v) const { return loc(v).obj >= 0 && loc(v).may_lack_object() && !is_constant(v); }
  bool must_flush(const Op& op, ValueId i) const;
  void flush(ValueId because);
  bool array_operands(const Op& op, std::vector<ValueId>* operands) const;
  bool input_of(ValueId v, SegmentInput* input) const;
  std::vector<Shift> roll_of(const Op& op) const;
  bool astype_operand(const Op& op, std::vector<ValueId>* operands) const;
  bool fits(const std::vector<ValueId>& operands) const;
  bool supported(const Op& op, const std::vector<ValueId>& operands) const;
  std::vector<SegmentInput> inputs_of(std::span<const ValueId> operands) const;
  halide_gen::LoopTypes loop_of_complex(ArrayFn fn, std::span<const ValueId> operands, DType result) const;
  bool goes_with_waiting(const Op& op, const std::vector<ValueId>& operands, bool complex) const;
  void learn_array(const Op& op, ValueId i);
  SegmentSpec spec_of(const std::vector<ValueId>& ops, Group* group, std::vector<ValueId>* inputs = nullptr);
  void fuse_sink(Group* group, SegmentSpec spec, std::vector<ValueId> inputs, LoopPlan* plan);
  bool kernel_inputs(const std::vector<ValueId>& values, std::vector<LoopInput>* inputs) const;
  void find_dead(Group* group, const std::vector<ValueId>& released) const;
  void find_outputs(Group* group, SegmentSpec* spec, ValueId because);
  bool is_unread(ValueId v, ValueId because) const;
  // -- reduced.cc: reductions of what a group gives
  bool reduces_pending(const Op& op, ValueId i) const;
  std::shared_ptr<ReducedGroup> begin_reduced(ValueId because);
  void reduce_group(ReducedGroup* made, Group* group, SegmentSpec spec, const std::vector<ValueId>& inputs, ValueId because);
  // -- sinks.cc: writes into arrays that end a group
  bool may_sink(const Op& op, ValueId i) const;
  void sink(const Op& op, ValueId i);
  void end_sink();
  bool is_stored_in_place(const Op& op, ValueId i) const;
  template <class Operand>
  bool plan_sink(ValueId i, const Operand& operand, LoopPlan* plan);
  bool outlives_group(ValueId v) const { return sink_ != kNull && values_[v].released > sink_; }  // of those that die while it waits
  bool is_written(ValueId v) const;  // does the write that ends the group take it?
  template <class Operand>
  bool plan_loop(ValueId i, const Operand& operand, LoopOp* made, LoopPlan* plan);
  std::shared_ptr<LoopPlan> plan_loops(const Group& group, const SegmentSpec& spec, const std::vector<ValueId>& inputs);
  bool loop_input(ValueId v, DType dtype, LoopInput* input) const;
  LoopOp cast_for(ValueId v, DType dtype) const;
  // -- parts.cc
  void find_parts(Group* group, const SegmentSpec& spec, const std::vector<ValueId>& released, ValueId because);
  Group make_part(const Group& group, size_t first, size_t end, bool kernel, ValueId because);
  int64_t item_bytes(ValueId v, int rank) const;
  bool has_memory(ValueId v) const;
  // A branch's guard: its snapshot is the other way, not what stands before it.
  static bool leads_elsewhere(OpKind kind) {
    return kind == OpKind::guard_true || kind == OpKind::guard_false || kind == OpKind::guard_is || kind == OpKind::guard_is_not;
  }

  std::unique_ptr<ProgramImpl> p_;
  Exit* parent_;
  std::vector<Value> values_;
  typed::TypedTrace typed_;
  std::vector<ValueId> waiting_;                              // array ops that wait
  bool waiting_complex_ = false;                              // are they of complex numbers?
  int32_t reduced_ = -1;                                      // register: the reduction that comes next has been done with its group
  ValueId sink_ = kNull;                                      // the write that ends them, to be done before anything else
  std::unordered_set<ValueId> outside_;                       // what they use of others
  std::vector<ValueId> learned_;                              // values with facts that unknown code may change
  std::vector<ValueId> deferred_;                             // released while array ops wait
  size_t dead_waiting_ = 0;                                   // array ops that wait and are among them
  std::vector<std::pair<ValueId, const Virtual*>> virtuals_;  // what slots hold that is not built
  std::vector<ValueId> held_;                                 // by those alone
  std::unordered_map<int64_t, int32_t> constant_regs_;        // registers of ints that are no values of the trace
  std::unordered_map<int64_t, int32_t> exit_index_;
  uint64_t version_ = 0;  // counts changes of the live log and waiting_
  struct {
    ValueId op = -1;
    int32_t which = 0;
    uint64_t version = 0;
    int32_t plan = -1;
  } last_plan_;
  int32_t depth_ = 1;
  std::vector<bool> used_;  // by ops that look at the value
  bool world_proven_ = true;
  int32_t settles_ = -1;       // the step that may pass over a guard_world behind it: it knows whether code has run
  bool python_first_ = false;  // typed::Knowledge::python_first
};

}  // namespace dalsegno::replay
