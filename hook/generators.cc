#include "hook/frame_access.h"
// (which comes before anything that includes Python.h)
#if !DALSEGNO_PY311
#include <opcode.h>

#include "internal/pycore_intrinsics.h"
#endif
#include <cstddef>

#include "hook/generators.h"

namespace dalsegno::hook {
namespace {

PyGenObject* as_generator(PyObject* generator) { return reinterpret_cast<PyGenObject*>(generator); }

Frame* frame_of(PyObject* generator) {
#if DALSEGNO_PY314
  return &as_generator(generator)->gi_iframe;
#else
  return reinterpret_cast<Frame*>(as_generator(generator)->gi_iframe);
#endif
}

bool handles_exception(PyObject* generator) {
  const PyObject* handled = as_generator(generator)->gi_exc_state.exc_value;
  return handled != nullptr && handled != Py_None;
}

// The instruction that the frame goes on with.
int next_of(const Frame* frame) {
#if DALSEGNO_PY313
  return static_cast<int>(frame->instr_ptr - _PyCode_CODE(code_of(frame)));
#else
  return _PyInterpreterFrame_LASTI(frame) + 1;
#endif
}

}  // namespace

Slot* variables_of_unborn(PyObject* generator, PyFunctionObject** function) {
  const PyGenObject* gen = as_generator(generator);
  if (gen->gi_frame_state != FRAME_CREATED || gen->gi_weakreflist != nullptr) return nullptr;
  Frame* frame = frame_of(generator);
  *function = function_of(frame);
  return frame->frame_obj == nullptr ? slots_of(frame) : nullptr;
}

// As one that has come to its end: its finaliser has nothing to close, and its frame is cleared with it (gen_dealloc of
// Objects/genobject.c).
void never_begins(PyObject* generator) { as_generator(generator)->gi_frame_state = FRAME_COMPLETED; }

WaitingGenerator waiting_generator(PyObject* generator) {
  if (!PyGen_CheckExact(generator)) return {};
  const int state = as_generator(generator)->gi_frame_state;
  if ((state != FRAME_CREATED && state != FRAME_SUSPENDED) || handles_exception(generator)) return {};
  Frame* frame = frame_of(generator);
  if (frame->f_locals != nullptr) return {};  // (before 3.13: it dies behind the variables)
  return {function_of(frame), code_of(frame), next_of(frame), used_slots(frame), slots_of(frame), frame->f_globals};
}

PyObject* take_slot(PyObject* generator, int slot) { return slots_of(frame_of(generator))[slot].take(); }

void begin_to_run(PyObject* generator) {
  Frame* frame = frame_of(generator);
  as_generator(generator)->gi_frame_state = FRAME_EXECUTING;
  set_used_slots(frame, code_of(frame)->co_nlocalsplus);
}

void give_up(PyObject* object) {
  if (!PyGen_CheckExact(object) || as_generator(object)->gi_frame_state != FRAME_EXECUTING || frame_of(object)->previous != nullptr) return;
  as_generator(object)->gi_frame_state = FRAME_COMPLETED;
}

void fill_slot(PyObject* generator, int slot, PyObject* value) { frame_of(generator)->localsplus[slot] = owning(value); }

void wait_at(PyObject* generator, int next, int count) {
  Frame* frame = frame_of(generator);
  set_used_slots(frame, count);
  set_next(frame, next);
  as_generator(generator)->gi_frame_state = FRAME_SUSPENDED;
}

// The interpreter does that one instruction itself. What is sent is what is returned, so it is None.
void end_running(PyObject* generator, int at) {
  wait_at(generator, at, code_of(frame_of(generator))->co_nlocalsplus);
  const UncountedEvaluator uncounted;
  PyObject* given = Py_TYPE(generator)->tp_iternext(generator);
  Py_XDECREF(given);
  PyErr_Clear();  // a StopIteration with the value that it returns
}

bool has_ended(PyObject* generator) { return as_generator(generator)->gi_frame_state >= FRAME_COMPLETED; }

bool closes_at_once(PyObject* generator) {
  const WaitingGenerator at = waiting_generator(generator);
  if (at.slots == nullptr) return false;
  if (as_generator(generator)->gi_frame_state == FRAME_CREATED) return true;
  const Handler handler = find_handler(at.code, at.next - 1);  // of its yield
  if (handler.target < 0) return true;
#if DALSEGNO_PY311
  return false;
#else
  // Since 3.12 all of its code is covered by a handler that makes StopIteration another error.
  const _Py_CODEUNIT unit = _PyCode_CODE(at.code)[handler.target];
  return _Py_OPCODE(unit) == CALL_INTRINSIC_1 && _Py_OPARG(unit) == INTRINSIC_STOPITERATION_ERROR;
#endif
}

void* frame_of_running(PyObject* generator) { return frame_of(generator); }

GeneratorLayout generator_layout() {
  GeneratorLayout l;
#if !DALSEGNO_PY314
  constexpr int kFrame = offsetof(PyGenObject, gi_iframe);
  l.state = offsetof(PyGenObject, gi_frame_state);
  l.created = FRAME_CREATED, l.suspended = FRAME_SUSPENDED, l.executing = FRAME_EXECUTING;
  l.handled = offsetof(PyGenObject, gi_exc_state) + offsetof(_PyErr_StackItem, exc_value);
  l.first = offsetof(PyCodeObject, co_code_adaptive);
  l.count = kFrame + offsetof(Frame, stacktop);
  l.globals = kFrame + offsetof(Frame, f_globals);
  l.shown = kFrame + offsetof(Frame, f_locals);
  l.slots = kFrame + offsetof(Frame, localsplus);
#if DALSEGNO_PY313
  l.code = kFrame + offsetof(Frame, f_executable);
  l.next = kFrame + offsetof(Frame, instr_ptr);
#else
  l.code = kFrame + offsetof(Frame, f_code);
  l.next = kFrame + offsetof(Frame, prev_instr);
  l.first -= sizeof(_Py_CODEUNIT);
#endif
#if DALSEGNO_PY311
  l.function = kFrame + offsetof(Frame, f_func);
#else
  l.function = kFrame + offsetof(Frame, f_funcobj);
#endif
#endif
  return l;
}

}  // namespace dalsegno::hook
