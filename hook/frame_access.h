// Private to hook/. Every field of CPython's frame structures that differs between 3.11 and 3.14 is named here and nowhere else.
// Must be included before anything that includes Python.h. All functions need the GIL.
#pragma once
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
#include <frameobject.h>
#undef _PyGC_FINALIZED  // 3.11 defines it twice, differently
#include "hook/error_aside.h"
#include "hook/hook.h"
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#endif

#define DALSEGNO_PY311 (PY_VERSION_HEX < 0x030c0000)
#define DALSEGNO_PY313 (PY_VERSION_HEX >= 0x030d0000)
#define DALSEGNO_PY314 (PY_VERSION_HEX >= 0x030e0000)

namespace dalsegno::hook {

using Frame = _PyInterpreterFrame;

#if DALSEGNO_PY314
inline Frame*& current_frame(PyThreadState* thread) { return thread->current_frame; }
inline PyCodeObject* code_of(const Frame* frame) {
  return reinterpret_cast<PyCodeObject*>(PyStackRef_AsPyObjectBorrow(frame->f_executable));
}
// The reference is the frame's from now on; what it had before is the caller's business.
inline void set_code(Frame* frame, PyCodeObject* code) {
  frame->f_executable = PyStackRef_FromPyObjectSteal(reinterpret_cast<PyObject*>(code));
}
#elif DALSEGNO_PY313
inline Frame*& current_frame(PyThreadState* thread) { return thread->current_frame; }
inline PyCodeObject* code_of(const Frame* frame) { return reinterpret_cast<PyCodeObject*>(frame->f_executable); }
inline void set_code(Frame* frame, PyCodeObject* code) { frame->f_executable = reinterpret_cast<PyObject*>(code); }
#else
inline Frame*& current_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
inline PyCodeObject* code_of(const Frame* frame) { return frame->f_code; }
inline void set_code(Frame* frame, PyCodeObject* code) { frame->f_code = code; }
#endif

#if DALSEGNO_PY311
inline PyFunctionObject* function_of(const Frame* frame) { return frame->f_func; }
inline void set_function(Frame* frame, PyFunctionObject* function) { frame->f_func = function; }
#elif DALSEGNO_PY314
inline PyFunctionObject* function_of(const Frame* frame) {
  return reinterpret_cast<PyFunctionObject*>(PyStackRef_AsPyObjectBorrow(frame->f_funcobj));
}
inline void set_function(Frame* frame, PyFunctionObject* function) {  // borrowed
  frame->f_funcobj = PyStackRef_FromPyObjectBorrow(reinterpret_cast<PyObject*>(function));
}
#else
inline PyFunctionObject* function_of(const Frame* frame) { return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj); }
inline void set_function(Frame* frame, PyFunctionObject* function) { frame->f_funcobj = reinterpret_cast<PyObject*>(function); }
#endif

// Its function was borrowed: from now on the reference is the frame's.
inline void own_function(Frame* frame) {
  PyFunctionObject* function = reinterpret_cast<PyFunctionObject*>(Py_NewRef(reinterpret_cast<PyObject*>(function_of(frame))));
#if DALSEGNO_PY314
  frame->f_funcobj = PyStackRef_FromPyObjectSteal(reinterpret_cast<PyObject*>(function));
#else
  set_function(frame, function);
#endif
}

// ---- slots: variables, then the stack ----------------------------------------------------------------------------------------

inline Slot* slots_of(Frame* frame) { return reinterpret_cast<Slot*>(frame->localsplus); }
inline const Slot* slots_of(const Frame* frame) { return reinterpret_cast<const Slot*>(frame->localsplus); }
static_assert(sizeof(Slot) == sizeof(Frame::localsplus[0]));

#if DALSEGNO_PY314
static_assert(Py_TAG_REFCNT == 1 && PyStackRef_NULL_BITS == 1, "as Slot has it");
using Reference = _PyStackRef;
inline constexpr uintptr_t kNumberTag = Py_INT_TAG;
// A number that stands in a slot goes through images of frames as it is: never to be counted.
inline bool is_number(const PyObject* image_value) { return (reinterpret_cast<uintptr_t>(image_value) & kNumberTag) == kNumberTag; }
// Steals; null is null.
inline Reference owning(PyObject* object) {
  if (object == nullptr) return PyStackRef_NULL;
  if (is_number(object)) return {.bits = reinterpret_cast<uintptr_t>(object)};
  return PyStackRef_FromPyObjectSteal(object);
}
inline bool is_null(Reference reference) { return PyStackRef_IsNull(reference); }
inline void drop_reference(Reference reference) { PyStackRef_XCLOSE(reference); }
// A new reference, or null.
inline PyObject* new_reference(Reference reference) {
  if (PyStackRef_IsTaggedInt(reference)) return reinterpret_cast<PyObject*>(reference.bits);
  return PyStackRef_IsNull(reference) ? nullptr : Py_NewRef(PyStackRef_AsPyObjectBorrow(reference));
}
// How many slots are in use: all variables and the values on the stack.
inline int used_slots(const Frame* frame) { return static_cast<int>(frame->stackpointer - frame->localsplus); }
inline void set_used_slots(Frame* frame, int count) { frame->stackpointer = frame->localsplus + count; }
// What handlers that ask for it find under the exception: where it was raised.
inline Reference place_reference(int offset) { return PyStackRef_TagInt(offset); }
#else
using Reference = PyObject*;
inline bool is_number(const PyObject*) { return false; }
inline Reference owning(PyObject* object) { return object; }
inline bool is_null(Reference reference) { return reference == nullptr; }
inline void drop_reference(Reference reference) { Py_XDECREF(reference); }
inline PyObject* new_reference(Reference reference) { return Py_XNewRef(reference); }
inline int used_slots(const Frame* frame) { return frame->stacktop; }
inline void set_used_slots(Frame* frame, int count) { frame->stacktop = count; }
inline Reference place_reference(int offset) { return PyLong_FromLong(offset); }  // null without memory
#endif

// Steals; what the slot held is dropped when it is consistent again.
inline void set_slot(Frame* frame, int i, PyObject* object) {
  const Reference before = frame->localsplus[i];
  frame->localsplus[i] = owning(object);
  drop_reference(before);
}
inline void push_reference(Frame* frame, Reference reference) {
  const int top = used_slots(frame);
  frame->localsplus[top] = reference;
  set_used_slots(frame, top + 1);
}
inline void push(Frame* frame, PyObject* object) { push_reference(frame, owning(object)); }  // steals
// Drops what lies on the stack above so many slots.
inline void cut_slots(Frame* frame, int count) {
  while (used_slots(frame) > count) {
    set_used_slots(frame, used_slots(frame) - 1);
    const Reference top = frame->localsplus[used_slots(frame)];
    frame->localsplus[used_slots(frame)] = owning(nullptr);
    drop_reference(top);
  }
}

// The frame is about to run the instruction at `offset`.
inline void set_next(Frame* frame, int offset) {
#if DALSEGNO_PY313
  frame->instr_ptr = _PyCode_CODE(code_of(frame)) + offset;
#else
  frame->prev_instr = _PyCode_CODE(code_of(frame)) + offset - 1;
#endif
}

// The frame is executing the instruction that stands at `offset` itself: what f_lasti, positions and tracebacks show.
inline void set_executing_at(Frame* frame, int offset) {
#if DALSEGNO_PY313
  frame->instr_ptr = _PyCode_CODE(code_of(frame)) + offset;
#else
  frame->prev_instr = _PyCode_CODE(code_of(frame)) + offset;
#endif
}
// The same for one that begins at `offset`.
inline void set_executing(Frame* frame, int offset) { set_executing_at(frame, executing_offset(code_of(frame), offset)); }

inline PyCodeObject* code_of(const PyFunctionObject* function) { return reinterpret_cast<PyCodeObject*>(function->func_code); }
inline bool is_generator_like(const PyCodeObject* code) {
  return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

// The first frame that Python code can see, from this one outward: not an evaluator's own, nor one that has not reached RESUME.
inline Frame* visible_frame(Frame* frame) {
  while (frame != nullptr && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
  return frame;
}

// The code an image's frame runs.
inline PyCodeObject* code_of(const FrameImage& image) { return image.code != nullptr ? image.code : code_of(image.function); }

// ---- frame_object.cc -------------------------------------------------------------------------------------------------------

// The frame object of a frame whose `previous` is set; borrowed, made if there is none yet. Null (no exception set) without memory.
PyFrameObject* frame_object_of(PyThreadState* thread, Frame* frame);

// Makes a frame object that owns its data (give_frame_object's result) the frame object of `frame`, whose localsplus is filled and
// owned. The object's variables win over the frame's where `from_object` says so (null: everywhere), as f_locals may have written to them.
// Steals `object`.
void attach_frame_object(PyFrameObject* object, Frame* frame, const bool* from_object);

// The reverse: detaches the frame object of `frame` and moves the frame's data into it, so that it may be touched at any time: a new
// reference to the function, the frame's own references for the rest. Returns it (owned).
PyFrameObject* give_frame_object(PyThreadState* thread, Frame* frame);

// Drops a frame object that nobody else needs, so that nothing of it points to `frame` any more.
void drop_frame_object(Frame* frame);

// ---- unwind.cc -------------------------------------------------------------------------------------------------------------

// Runs `frame` as if its instruction at `offset` had just raised the exception that is set. As _PyEval_EvalFrameDefault otherwise.
PyObject* throw_into(PyThreadState* thread, Frame* frame, int offset);

struct Handler {
  int target = -1;  // instruction, in code units; -1: none
  int level = -1;   // depth the stack is cut to
  bool lasti = false;
  bool operator==(const Handler&) const = default;
};
Handler find_handler(const PyCodeObject* code, int offset);
void add_traceback_entry(PyThreadState* thread, Frame* frame);
// The part of the evaluator's exception_unwind that prepares the handler's stack: the exception that is set goes there.
void cut_to_handler(Frame* frame, const Handler& handler, int offset);
PyObject* take_raised();            // the exception that is set, with its traceback; owned
void set_raised(PyObject* raised);  // steals; unlike PyErr_SetObject it leaves __context__ as it is

// ---- resume.cc ---------------------------------------------------------------------------------------------------------------

// Moves the image's values into the frame, which is to go on at its offset; what the frame held is dropped.
// waits: for the frame inside it.
void fill_frame(Frame* frame, FrameImage* image, bool waits);

// ---- borrowed.cc -------------------------------------------------------------------------------------------------------------

// A frame rebuilt to go on at `offset` (waits: to wait there for the frame that its call has entered, its operands gone) borrows what
// eager's has borrowed on its stack, and `frame` what it has borrowed from the caller's variables by its call at `offset`.
#if DALSEGNO_PY314
void borrow_on_stack(Frame* frame, int offset, bool waits);
void borrow_arguments(const Frame* caller, int offset, Frame* frame);
#else
inline void borrow_on_stack(Frame*, int, bool) {}
inline void borrow_arguments(const Frame*, int, Frame*) {}
#endif

// ---- returned.cc -------------------------------------------------------------------------------------------------------------

// What the frame's instruction does with the result (stolen, or null) of the frame it has called, and where the frame goes on. -1: an
// exception is set, which the instruction raises.
int take_result(PyThreadState* thread, Frame* frame, const FrameImage& image, PyObject* result);

// ---- init of the parts: false with an exception set -------------------------------------------------------------------------

bool init_observe();
bool init_dict_version();
bool init_iterators();
bool init_range();

}  // namespace dalsegno::hook
