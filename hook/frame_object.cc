// Frame objects (what sys._getframe() gives) of frames that come and go: handed from a linked frame to whoever holds them, and
// from there to the frame of the resumed activation. The bookkeeping is CPython's own of Python/frame.c (take_ownership).
#include <cstring>
#include <utility>

#include "hook/frame_access.h"

namespace dalsegno::hook {
namespace {

Frame* own_data(PyFrameObject* object) { return reinterpret_cast<Frame*>(object->_f_frame_data); }

// An empty frame inside the object, for the time in which it has no other: owner FRAME_CLEARED makes all accessors leave it alone.
void point_to_nothing(PyFrameObject* object) {
  Frame* own = own_data(object);
  own->owner = static_cast<char>(FRAME_CLEARED);
  own->frame_obj = object;
  own->previous = nullptr;
  set_used_slots(own, 0);
  object->f_frame = own;
}

}  // namespace

PyFrameObject* frame_object_of(PyThreadState* thread, Frame* frame) {
  if (frame->frame_obj != nullptr) return frame->frame_obj;
  // _PyFrame_GetFrameObject is not exported; PyThreadState_GetFrame does the same for the current frame.
  Frame* current = current_frame(thread);
  current_frame(thread) = frame;
  PyFrameObject* object = PyThreadState_GetFrame(thread);
  current_frame(thread) = current;
  Py_XDECREF(object);  // the frame holds it
  return object;
}

bool frame_kept(void* frame_id) {
  const PyFrameObject* object = static_cast<const Frame*>(frame_id)->frame_obj;
  return object != nullptr && Py_REFCNT(object) > 1;
}

const Slot* frame_locals(void* frame_id) { return slots_of(static_cast<const Frame*>(frame_id)); }

void drop_frame_object(Frame* frame) {
  PyFrameObject* object = frame->frame_obj;
  if (object == nullptr) return;
  frame->frame_obj = nullptr;
  point_to_nothing(object);  // its deallocation may be delayed (trashcan) past the frame's end
  Py_DECREF(object);
}

PyFrameObject* give_frame_object(PyThreadState* thread, Frame* frame) {
  PyFrameObject* object = frame->frame_obj;
  // f_back is read through `previous`, until the object owns its data.
  Frame* previous = visible_frame(frame->previous);
  PyFrameObject* back = previous != nullptr ? frame_object_of(thread, previous) : nullptr;
  Py_XINCREF(back);
  frame->frame_obj = nullptr;
  Frame* own = own_data(object);
  const PyCodeObject* code = code_of(frame);
  std::memcpy(static_cast<void*>(own), frame, offsetof(Frame, localsplus));
  for (int i = 0; i < code->co_nlocalsplus; ++i) own->localsplus[i] = owning(slots_of(frame)[i].take());
  own_function(own);
  set_used_slots(own, code->co_nlocalsplus);
  own->owner = FRAME_OWNED_BY_FRAME_OBJECT;
  own->previous = nullptr;
  object->f_frame = own;
  Py_XSETREF(object->f_back, back);
  if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(object))) PyObject_GC_Track(object);
  return object;
}

void attach_frame_object(PyFrameObject* object, Frame* frame, const bool* from_object) {
  if (PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(object))) PyObject_GC_UnTrack(object);
  Frame* own = own_data(object);
  const bool owns = object->f_frame == own && own->owner == FRAME_OWNED_BY_FRAME_OBJECT;
  PyObject* dead_function = nullptr;
  PyObject* dead_code = nullptr;
  if (owns) {
    // Swap, so that what is dropped below is dropped when everything is consistent again.
    for (int i = 0; i < used_slots(own); ++i) {
      if (from_object == nullptr || from_object[i]) std::swap(own->localsplus[i], frame->localsplus[i]);
    }
    if (own->f_locals != nullptr) {
      PyObject* f_locals = own->f_locals;
      own->f_locals = frame->f_locals;
      frame->f_locals = f_locals;
    }
    dead_function = reinterpret_cast<PyObject*>(function_of(own));
    dead_code = reinterpret_cast<PyObject*>(code_of(own));
  }
  const int count = owns ? used_slots(own) : 0;
  PyObject* f_locals = owns ? own->f_locals : nullptr;
  PyObject* back = reinterpret_cast<PyObject*>(object->f_back);
  object->f_back = nullptr;
  point_to_nothing(object);
  object->f_frame = frame;
  frame->frame_obj = object;
  for (int i = 0; i < count; ++i) {
    set_slot(own, i, nullptr);
  }
  Py_XDECREF(f_locals);
  Py_XDECREF(back);
  Py_XDECREF(dead_function);
  Py_XDECREF(dead_code);
}

}  // namespace dalsegno::hook
