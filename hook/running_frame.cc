// A frame that the interpreter is running, taken over at the head of a loop and given back somewhere else (rule 18).
#include <opcode.h>

#include <utility>

#include "hook/watch_state.h"

namespace dalsegno::hook {
namespace {

Frame* frame_of(const FrameView& view) { return static_cast<Frame*>(view.id); }

// The instruction that is executed next as the evaluator comes back from its event.
void move_to(Frame* frame, int offset) { set_executing_at(frame, offset); }

// Has somebody left something in the frame object that eager would still find there?
bool has_settings(const PyFrameObject* object) {
  if (object->f_trace != nullptr || !object->f_trace_lines || (object->f_trace_opcodes & 1) != 0) return true;
#if DALSEGNO_PY313
  if (object->f_extra_locals != nullptr || object->f_locals_cache != nullptr) return true;
#endif
  return false;
}

// Opcodes as the compiler wrote them.
class Units {
 public:
  explicit Units(PyCodeObject* code) : bytes_(PyCode_GetCode(code)) {}
  ~Units() { Py_XDECREF(bytes_); }
  Units(const Units&) = delete;
  int count() const { return bytes_ != nullptr ? static_cast<int>(PyBytes_GET_SIZE(bytes_) / 2) : 0; }
  int opcode(int i) const { return unit(2 * i); }
  int argument(int i) const {
    int value = unit(2 * i + 1);
    for (int k = i, shift = 8; k > 0 && opcode(k - 1) == EXTENDED_ARG; --k, shift += 8) value |= unit(2 * k - 1) << shift;
    return value;
  }

 private:
  uint8_t unit(int i) const { return static_cast<uint8_t>(PyBytes_AS_STRING(bytes_)[i]); }
  PyObject* bytes_;
};

// The first unit from `from` on that `wanted` takes; inline caches are no opcodes, but zero.
template <typename Wanted>
int find_unit(const Units& units, Wanted&& wanted) {
  for (int i = 0; i < units.count(); ++i)
    if (wanted(i)) return i;
  return -1;
}

// An instruction that returns the value: any RETURN_VALUE, or the RETURN_CONST that has it.
bool stand_at_return(Frame* frame, PyObject* value) {
  const Units units(code_of(frame));
  int at = find_unit(units, [&](int i) { return units.opcode(i) == RETURN_VALUE; });
  if (at >= 0) {
    push(frame, Py_NewRef(value));
    move_to(frame, at);
    return true;
  }
#ifdef RETURN_CONST
  PyObject* constants = code_of(frame)->co_consts;
  at = find_unit(units, [&](int i) {
    return units.opcode(i) == RETURN_CONST && units.argument(i) < PyTuple_GET_SIZE(constants) &&
           PyTuple_GET_ITEM(constants, units.argument(i)) == value;
  });
  while (at > 0 && units.opcode(at - 1) == EXTENDED_ARG) --at;
  if (at >= 0) move_to(frame, at);
#endif
  return at >= 0;
}

void cut_stack(Frame* frame) { cut_slots(frame, code_of(frame)->co_nlocalsplus); }

// A RERAISE that no handler covers: it ends the frame with the exception on the stack, and adds no entry to its traceback. It is told where
// the frame has come to, which whoever holds the frame sees ever after; one that is not told would be there itself. -1: there is none.
int find_reraise(PyCodeObject* code) {
  const Units units(code);
  return find_unit(units, [&](int i) { return units.opcode(i) == RERAISE && units.argument(i) == 1 && find_handler(code, i).target < 0; });
}

bool stand_at_reraise(Frame* frame, int raised_at) {
  const int at = find_reraise(code_of(frame));
  if (at < 0) return false;
  const Reference place = place_reference(raised_at);
  if (is_null(place)) return false;
  cut_stack(frame);
  push_reference(frame, place);
  push(frame, take_raised());
  move_to(frame, at);
  return true;
}

PyFrameObject* g_late = nullptr;  // 3.11: one that the interpreter was still to touch

}  // namespace

bool RunningFrame::can_leave() const {
  const Frame* frame = frame_of(view_);
  if (frame->owner != FRAME_OWNED_BY_THREAD || is_generator_like(view_.code)) return false;
  if (find_handler(view_.code, view_.offset).target >= 0 && find_reraise(view_.code) < 0) return false;
  const PyFrameObject* object = frame->frame_obj;
  return object == nullptr || (Py_REFCNT(object) == 1 && !has_settings(object));
}

PyObject* RunningFrame::leave_chain() {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = frame_of(view_);
#if DALSEGNO_PY311
  if (frame->frame_obj != nullptr) {
    held_ = Py_NewRef(reinterpret_cast<PyObject*>(frame->frame_obj));
    frame->frame_obj->f_lineno = 0;
  }
#endif
  drop_frame_object(frame);
  current_frame(thread) = frame->previous;
  ++recursion_remaining(thread);  // what stands in for it is counted
  return std::exchange(frame->f_locals, nullptr);
}

// `kept`: the frame object that somebody holds by now, or null.
void RunningFrame::come_back(PyObject* kept) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = frame_of(view_);
  --recursion_remaining(thread);
  current_frame(thread) = frame;
  PyObject* held = std::exchange(held_, nullptr);
  if (held == nullptr) return;
  if (kept != nullptr) {
    Py_XSETREF(g_late, reinterpret_cast<PyFrameObject*>(held));
  } else {
    attach_frame_object(reinterpret_cast<PyFrameObject*>(held), frame, nullptr);
  }
}

bool RunningFrame::go_on(FrameImage* frames, int n, PyObject* raised, OnEntered on_entered, void* context) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = frame_of(view_);
  come_back(reinterpret_cast<PyObject*>(frames[0].frame_object));
  const FrameImage own = frames[0];
  fill_frame(frame, &frames[0], n > 1);
  move_to(frame, own.offset);
  announce_entered(thread, frame);
  if (on_entered != nullptr) on_entered(context, 0, frame);
  if (n == 1) {
    if (raised == nullptr) return true;
    set_raised(raised);
    return raise_at(own.offset);
  }
  set_executing(frame, own.offset);
  struct Inner {
    OnEntered on_entered;
    void* context;
  } inner{on_entered, context};
  auto entered = [](void* c, int index, void* id) {
    const auto* to = static_cast<Inner*>(c);
    if (to->on_entered != nullptr) to->on_entered(to->context, index + 1, id);
  };
  PyObject* result = resume(frames + 1, n - 1, raised, entered, &inner);
  const int next = take_result(thread, frame, own, result);
  if (next < 0) return raise_at(own.offset);
  move_to(frame, next);
  return true;
}

bool RunningFrame::go_on_returning(PyObject* value) {
  Frame* frame = frame_of(view_);
  come_back(nullptr);
  cut_stack(frame);
  const bool stands = stand_at_return(frame, value);
  Py_DECREF(value);
  if (!stands) PyErr_SetString(PyExc_SystemError, "dalsegno: a trace returned what its function does not");
  return stands;
}

// The evaluator handles what at_loop() raises as if the instruction at the head had raised it, but for the place that tracebacks show.
bool RunningFrame::go_on_raising() {
  Frame* frame = frame_of(view_);
  come_back(nullptr);
  if (find_handler(view_.code, view_.offset).target < 0) return false;
  add_traceback_entry(PyThreadState_Get(), frame);
  return stand_at_reraise(frame, view_.offset);
}

bool RunningFrame::raise_at(int offset) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = frame_of(view_);
  offset = executing_offset(view_.code, offset);
  set_executing_at(frame, offset);
  const Handler handler = find_handler(view_.code, offset);
  if (handler.target < 0 && find_handler(view_.code, view_.offset).target < 0) return false;
  add_traceback_entry(thread, frame);
  if (handler.target < 0) return stand_at_reraise(frame, offset);
  cut_to_handler(frame, handler, offset);
  move_to(frame, handler.target);
  return true;
}

}  // namespace dalsegno::hook
