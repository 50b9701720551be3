// Steps: what a lowered trace consists of. A step is a function pointer with its operands; the machine calls one after the other.
#pragma once
#include <Python.h>

#include <cstdint>

#include "hook/attributes.h"
#include "replay/native/region.h"
#include "replay/typed/operators.h"
#include "trace/trace.h"

namespace dalsegno::replay {

// A register. Values of known exact type int (that fit), float, bool, complex and NumPy's scalars also exist unboxed (replay/typed/rep.h).
union alignas(16) Reg {
  PyObject* o;
  int64_t i;
  double f;
  float s;
  Py_complex c;
};

using typed::Rep;  // how a value is unboxed, if at all

struct Machine;
struct Step;
// Executes a step and returns the next one; null ends the run (the machine's outcome is set).
using StepFn = const Step* (*)(const Step* s, Reg* r, Machine& m);
// Does one python op on boxed operands. False: it failed, with an exception set, or without one: leave before the instruction.
using Exec = bool (*)(const Step& s, Reg* r);

// Does one on these operands, which may run code, run none? It may warn.
using Plain = bool (*)(const Step& s, const Reg* r);

struct Step {
  StepFn fn = nullptr;
  Exec exec = nullptr;
  Plain plain = nullptr;   // null: it runs none, or may always
  Plain silent = nullptr;  // linked, but on these operands it runs no code and warns of nothing
  Plain in_c = nullptr;    // linked, but whoever looks at them begins as Python code
  int32_t dst = -1;        // register of the result
  int32_t a = -1;          // registers of the operands
  int32_t b = -1;
  int32_t c = -1;
  int32_t imm = 0;
  int32_t exit = -1;              // index into Program's exit plans
  int32_t other = -1;             // iter_next: plan of its exit_snapshot; other steps: see there
  int32_t link = -1;              // snapshot whose frames are shown while unknown code runs, or -1: it runs none
  int32_t dies = -1;              // iter_next: snapshot whose frames are shown while what it went through dies with its end
  const int32_t* list = nullptr;  // operand registers where their number varies
  int32_t n = 0;
  bool linked = false;                  // the frames stand in the chain all the time; else only while what it drops is finalised
  bool warns = false;                   // linked, but no more than a warning can look at them
  bool pure = false;                    // if it fails, leave before the instruction and let the interpreter raise
  bool truth = false;                   // kQuick: dst becomes a truth value, unboxed
  bool advances = false;                // iter_next of an iterator that runs no code of the user's, by the iterator itself
  bool lets_go = false;                 // iter_next: behind its end nothing of the trace holds the iterator
  bool only_called = false;             // neither faster nor slower in native code
  bool on_objects = false;              // its operands are where exec looks for them
  bool runs_none = false;               // done by exec, which runs no code of the user's
  bool by_type = false;                 // kQuick: what it does not do is left, as a rule, for it gives a number of another type
  native::Do does = native::Do::kStep;  // how native code does it; rep: its operands' representation (replay/native/region.h)
  Rep rep = Rep::kNone;
  PyObject* object = nullptr;  // borrowed from the trace
  PyObject* object2 = nullptr;
  PyObject* name = nullptr;
  union {
    struct AttributePlace* attribute = nullptr;  // the program's
    const struct Virtual* what;                  // the program's
    const struct JumpPlan* jump;                 // the program's
    const struct NextPlan* next;                 // the program's
    const struct UsedUp* used_up;                // the program's
    const Step* behind;                          // the step that stands there instead (native.cc)
  };
};

// A step that is done by its exec where that neither runs code of the user's nor leaves; else that has done nothing.
struct Quick {
  StepFn fn = nullptr;
  Exec quick = nullptr;
};

// The end of a step that goes on with `next`: a jump where the compiler makes one of it (s + 1 alone would do: the machine goes on there).
// The last step of a program, and whatever leaves, returns to the machine, so the stack never grows by more than a program's steps.
inline const Step* go_on(const Step* next, Reg* r, Machine& m) {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  return next->fn(next, r, m);
#else
  return next;
#endif
}

// -- how python ops are done (steps_python.cc, steps_build.cc, steps_import.cc)
Exec exec_of(OpKind kind);
// -- where eager NumPy may compute into a dying temporary (steps_elide.cc, numpy/elide.h)
bool exec_binary_eliding(const Step& s, Reg* r);  // n: mask of operands that die here
bool exec_unary_eliding(const Step& s, Reg* r);   // the operand dies here
bool exec_abs_eliding(const Step& s, Reg* r);     // abs(v), v dies here
bool exec_sum(const Step& s, Reg* r);             // sum(v)
bool exec_append_string(const Step& s, Reg* r);   // a + b, a dying: in place where nobody else holds it

// -- typed steps (steps_scalar.cc)
// For an operator the typed trace says exists. The operands are of the bits of how.operand.
StepFn operator_step(const Op& op, const typed::Operator& how);
StepFn masked_step();                                 // a & b, modulo 2**64
StepFn guarded_compare(StepFn compare, bool wanted);  // the same comparison and a guard on its result, in one step; or null
const Step* step_not(const Step* s, Reg* r, Machine& m);
StepFn truth_step(Rep rep);
StepFn box_step(Rep rep);
// A number of one representation as another, as the language or NumPy converts it; where it does not fit the step refuses.
StepFn convert_step(Rep from, Rep to);  // c: from; imm: to
bool convert(Rep from, Rep to, Reg value, Reg* out);
PyObject* box(Rep rep, Reg value);                // new reference, or null with MemoryError
bool unbox(Rep rep, PyObject* object, Reg* out);  // false: of another type, or an int that does not fit. No exception

// -- guards (steps_guard.cc)
StepFn guard_step(OpKind kind);
Exec guard_holds(OpKind kind);  // the same, without leaving; null: the step alone can tell
const Step* step_guard_world(const Step* s, Reg* r, Machine& m);
const Step* step_guard_raw_true(const Step* s, Reg* r, Machine& m);
const Step* step_guard_raw_false(const Step* s, Reg* r, Machine& m);
StepFn guard_unbox_step(Rep rep);

// -- plain_operands.cc: operators and subscripts on what the recorder knows too little of (complex numbers, float16, keys of any kind)
Plain plain_of(OpKind kind);  // null: of no other kind
Plain in_c_of(OpKind kind);   // is what it does C code that looks at no frames itself? null: that is not known

// -- silent.cc: lists, tuples and deques of what the recorder knows too little of; callee: what a call calls, if that is known
Plain silent_of(OpKind kind, PyObject* callee);
bool exec_silent(const Step& s, Reg* r, Machine& m);

// -- the rest (steps_flow.cc)
const Step* step_exec(const Step* s, Reg* r, Machine& m);         // exec, runs no code
StepFn step_exec_replacing(OpKind kind);                          // exec, drops what its operand replaces; null: another kind
Quick set_content_step();                                         // of a cell
const Step* step_exec_linked(const Step* s, Reg* r, Machine& m);  // exec with the snapshot's frames in the chain
// Of a callee in C that is given n arguments and no names, the first one being of that type (null: unknown); null: another one. For calls
// that run no code of the user's. (direct_calls.cc)
Exec direct_call(PyObject* callee, PyTypeObject* first, int32_t n);
// A call of a builtin that uses up the generator it is given, which dies with the call (fold.h); null: another callee.
StepFn fold_step(PyObject* callee);
int operand_used_up(PyObject* callee);    // where that is among its operands, the callee being the first; 0: another callee
StepFn fold_onto_step(PyObject* callee);  // of sum() that begins with an array
// The same of a generator that is not made (s.used_up), as fn and exec; and what holds an operand of it: dst: a.
Quick fold_unmade_step(PyObject* callee);
Quick hold_step();
Exec fold_of_items(PyObject* callee);  // the same builtins, of a list or tuple
// The same of min(..., key=...), max, sorted and list.sort; reverses: with reverse=... behind the key.
StepFn fold_by_key_step(PyObject* callee, bool reverses);
const Step* step_get_attr(const Step* s, Reg* r, Machine& m);  // linked only where a property or __getattr__ may run
const Step* step_class_attr(const Step* s, Reg* r, Machine& m);
const Step* step_set_own_attr(const Step* s, Reg* r, Machine& m);
const Step* step_set_attr(const Step* s, Reg* r, Machine& m);
const Step* step_get_item(const Step* s, Reg* r, Machine& m);
// By arrays of positions (steps_scatter.cc).
const Step* step_get_places(const Step* s, Reg* r, Machine& m);
const Step* step_set_places(const Step* s, Reg* r, Machine& m);
// By what is known to be a mask (steps_mask.cc).
const Step* step_get_masked(const Step* s, Reg* r, Machine& m);
const Step* step_set_masked(const Step* s, Reg* r, Machine& m);
const Step* step_get_item_index(const Step* s, Reg* r, Machine& m);
const Step* step_set_item_index(const Step* s, Reg* r, Machine& m);
// The same by an integer of NumPy's, where nothing runs code of the user's. c: a register for an int of the interpreter's.
const Step* step_get_item_numpy_index(const Step* s, Reg* r, Machine& m);
const Step* step_set_item_numpy_index(const Step* s, Reg* r, Machine& m);
const Step* step_iter_next(const Step* s, Reg* r, Machine& m);
const Step* step_next(const Step* s, Reg* r, Machine& m);  // steps_next.cc; next: what the iterator in a gives
const Step* step_range_next(const Step* s, Reg* r, Machine& m);
const Step* step_range_end(const Step* s, Reg* r, Machine& m);
const Step* step_range_step(const Step* s, Reg* r, Machine& m);      // a: not 0
const Step* step_range_iterator(const Step* s, Reg* r, Machine& m);  // of range(list ...), n: 1 to 3 unboxed ints
const Step* step_iter_end(const Step* s, Reg* r, Machine& m);
const Step* step_row(const Step* s, Reg* r, Machine& m);   // steps_element.cc; is there such a row? imm: the array's rank
const Step* step_view(const Step* s, Reg* r, Machine& m);  // what: of the array in a
// The product of two vectors: dst; a, b: objects, or (-1) views whose registers begin at list[0], list[1]; imm: Callee, kNone for @; n:
// DType
const Step* step_product(const Step* s, Reg* r, Machine& m);
// The elements of an array of one dimension, of the dtype n, at the positions in another one, of the dtype imm: dst; a, b, list as above;
// other: object register of the first one, or of what it is a view of
const Step* step_gather(const Step* s, Reg* r, Machine& m);
const Step* step_gather_many(const Step* s, Reg* r, Machine& m);  // positions of several axes, an object
// An array's sum, largest or least element, where that is, mean or norm: dst; a: object, or (-1) a view whose registers begin at b; c: its
// rank; imm: Callee; n: DType
const Step* step_reduction(const Step* s, Reg* r, Machine& m);
// Python ops that NumPy's inner loop does where arrays are small (steps_array.cc): the product a @ b, and of a call's two arguments
const Step* step_ufunc(const Step* s, Reg* r, Machine& m);             // (steps_ufunc.cc) imm: the function; a, b: doubles
const Step* step_ufunc_of_complex(const Step* s, Reg* r, Machine& m);  // a: a complex number
const Step* step_matmul(const Step* s, Reg* r, Machine& m);
const Step* step_matmul_call(const Step* s, Reg* r, Machine& m);
const Step* step_build(const Step* s, Reg* r, Machine& m);  // what: the object of a virtual one
const Step* step_release(const Step* s, Reg* r, Machine& m);
const Step* step_release_one(const Step* s, Reg* r, Machine& m);
const Step* step_release_shown(const Step* s, Reg* r, Machine& m);  // what dies may run code
const Step* step_leave_frame(const Step* s, Reg* r, Machine& m);
// Does the group that the next step would do, and its reduction, whose step is yet to come. imm: of the reduced groups; n: the group
const Step* step_reduced_group(const Step* s, Reg* r, Machine& m);  // reduced.cc
const Step* step_segment(const Step* s, Reg* r, Machine& m);
const Step* step_call_tree(const Step* s, Reg* r, Machine& m);  // calls.cc; imm: the call site; n: frames of the caller
const Step* step_return(const Step* s, Reg* r, Machine& m);
const Step* step_jump(const Step* s, Reg* r, Machine& m);
const Step* step_leave(const Step* s, Reg* r, Machine& m);
const Step* step_native(const Step* s, Reg* r, Machine& m);  // native.cc: the program's native code

}  // namespace dalsegno::replay
