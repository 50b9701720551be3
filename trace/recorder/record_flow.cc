// Branches, loops, returns, exceptions. A branch is recorded as it was taken, with a guard that leaves on the other way: its
// snapshot is the state after the branch on the way not taken, so that nothing is evaluated twice.
#include "hook/unobserved.h"
#include "numpy/dtypes.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/return_actions.h"
#include "trace/recorder/walks.h"

namespace dalsegno::recorder {

void Recorder::on_JUMP_FORWARD(const Instr& i) { may_go_to(i.target); }

void Recorder::on_JUMP_BACKWARD(const Instr& i) {
  may_go_to(i.target);
  if (!is_in_test(i.target)) close_loop(i, i.target);
}
void Recorder::on_JUMP_BACKWARD_NO_INTERRUPT(const Instr& i) { not_recorded(i); }

// ---- branches --------------------------------------------------------------------------------------------------------------

// when: the truth (or None-ness) that jumps. keep: JUMP_IF_x_OR_POP leaves the value on the stack when it jumps.
void Recorder::pop_jump(const Instr& i, bool when, bool is_none, bool keep) {
  may_branch_to(i.target);
  if (is_none) {
    branch_ = top();
  } else {
    truth_of(top(), live_top(), &branch_);
  }
  branch_when_ = when;
  branch_none_ = is_none;
  branch_keep_ = keep;
  hold(branch_, +1);
  finisher_ = &Recorder::finish_branch;
}

void Recorder::finish_branch(const Instr& i) {
  int now = next_start();
  bool jumped = now == i.target;
  bool backward = i.target < i.next;
  ValueId value = top();
  if (i.target != i.next) {
    // the other way, for the exit
    ValueId kept = value;
    bool keep_there = branch_keep_ && !jumped, keep_here = branch_keep_ && jumped;
    hold(kept, +1);
    pop();
    if (keep_there) push(kept);
    int other = snapshot_now(jumped ? i.next : i.target);
    if (keep_there) pop();
    OpKind kind;
    int object = -1;
    if (branch_none_) {
      kind = jumped == branch_when_ ? OpKind::guard_is : OpKind::guard_is_not;
      object = object_index(Py_None, "const:None");
    } else {
      kind = jumped == branch_when_ ? OpKind::guard_true : OpKind::guard_false;
    }
    const bool not_none = branch_none_ && (info(branch_).type || info(branch_).made);  // which is not None
    const bool certain = is_constant(branch_) || not_none;                             // a constant needs no guard
    if (!certain) emit(kind, {branch_}, {.object = object, .leaves_by = other});
    if (keep_here) push(kept);
    hold(kept, -1);
  } else {
    pop();
  }
  hold(branch_, -1);
  branch_ = kNull;
  if (jumped && backward) {
    release_dead(i.start, i.target);
    close_loop(i, i.target);
  }
}

void Recorder::on_POP_JUMP_IF_TRUE(const Instr& i) { pop_jump(i, true, false, false); }
void Recorder::on_POP_JUMP_IF_FALSE(const Instr& i) { pop_jump(i, false, false, false); }
void Recorder::on_POP_JUMP_IF_NONE(const Instr& i) { pop_jump(i, true, true, false); }
void Recorder::on_POP_JUMP_IF_NOT_NONE(const Instr& i) { pop_jump(i, false, true, false); }
void Recorder::on_JUMP_IF_TRUE_OR_POP(const Instr& i) { pop_jump(i, true, false, true); }
void Recorder::on_JUMP_IF_FALSE_OR_POP(const Instr& i) { pop_jump(i, false, false, true); }

// ---- iteration -------------------------------------------------------------------------------------------------------------

void Recorder::on_GET_ITER(const Instr&) {
  PyObject* live = live_top();
  if (PyGen_CheckExact(live)) {  // itself
    emit(OpKind::guard_type, {top()}, {.object = object_index(reinterpret_cast<PyObject*>(&PyGen_Type), type_path(&PyGen_Type))});
    return;
  }
  bool plain = know_iterator(top(), live);
  ValueId v = emit(OpKind::get_iter, {top()}, {.effects = plain ? kNoEffect : kAnyEffect});
  pop();
  push(v);
}

void Recorder::on_FOR_ITER(const Instr& i) {
  if (resume_generator(top(), live_top(), packed_action(hook::ReturnAction::kNextItem, 0))) return;
  may_branch_to(for_iter_ends(i));
  if (PyGen_CheckExact(live_top())) hook::let_frames_run(true);
  uint32_t effects = kAnyEffect;
  const bool plain = know_iterator(top(), live_top());
  if (plain) effects = info(top()).type ? kWritesMemory : kReplaces;  // zip() may use its tuple again
  const Walk walk = plain ? walk_of_live(live_top()) : Walk{};
  call_result_ = emit(OpKind::iter_next, {top()}, {.imm = with_walk(1, walk), .effects = effects});
  Py_ssize_t* position;
  ArrayFacts facts;
  PyObject* sequence = plain ? hook::sequence_of(live_top(), &position) : nullptr;
  if (sequence && numpy::facts_of(sequence, &facts) && facts.rank == 1 && facts.dtype != DType::kComplex64)
    op(call_result_).facts = facts_index(facts);
  finisher_ = &Recorder::finish_for_iter;
}

void Recorder::finish_for_iter(const Instr& i) {
  ValueId next = call_result_;
  ValueId iterator = top();
  bool exhausted = next_start() == for_iter_ends(i) && for_iter_ends(i) != i.next;
  hold(iterator, +1);
  if (exhausted) {
    push(next);
    int more = snapshot_aside(i.next);
    pop();
    if (!kPopsIterator) pop();
    op(next).imm &= ~1;
    op(next).exit_snapshot = more;
    set_unborn(next);  // on this way there is no item
  } else {
    pop();
    int end = snapshot_now(for_iter_exhausted(i));
    push(iterator);
    op(next).exit_snapshot = end;
    push(next);
  }
  hold(iterator, -1);
}

// ---- returns ---------------------------------------------------------------------------------------------------------------

void Recorder::on_RETURN_VALUE(const Instr& i) {
  if (frame_is_kept()) return give_up(Reason::frame_kept);
  if (end_generator(i)) return;
  if (!returns_what_is_asked()) return give_up(Reason::exception);
  will_return();
}

void Recorder::on_RETURN_CONST(const Instr& i) {
  if (frame_is_kept()) return give_up(Reason::frame_kept);
  push(code_const(i.arg));
  if (!end_generator(i)) will_return();
}

// ---- exceptions: the interpreter's business for now ------------------------------------------------------------------------

void Recorder::on_RAISE_VARARGS(const Instr&) { give_up(Reason::exception); }
void Recorder::on_RERAISE(const Instr& i) { on_PUSH_EXC_INFO(i); }
void Recorder::on_POP_EXCEPT(const Instr& i) { on_PUSH_EXC_INFO(i); }
void Recorder::on_CHECK_EXC_MATCH(const Instr& i) { on_PUSH_EXC_INFO(i); }
void Recorder::on_PUSH_EXC_INFO(const Instr&) { give_up(Reason::handler); }

void Recorder::on_LOAD_ASSERTION_ERROR(const Instr& i) { on_RAISE_VARARGS(i); }

}  // namespace dalsegno::recorder
