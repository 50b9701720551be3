// Resuming functions in the middle (PEP 523): the function is called with dummy arguments and an evaluator set for just that one
// entry, which overwrites the new frame with the image's values and lets CPython's own evaluator go on from there.
#include <iterator>
#include <utility>

#include "hook/frame_access.h"
#include "hook/generators.h"
#include "hook/next_frame.h"
#include "hook/watch_state.h"

namespace dalsegno::hook {

void fill_frame(Frame* frame, FrameImage* image, bool waits) {
  const int count = code_of(frame)->co_nlocalsplus;
  for (int i = 0; i < count; ++i) {
    set_slot(frame, i, std::exchange(image->locals[i], nullptr));  // was None, an empty tuple or dict: dropping it runs no code
  }
  for (int i = 0; i < image->depth; ++i) {
    frame->localsplus[count + i] = owning(std::exchange(image->stack[i], nullptr));
  }
  set_used_slots(frame, count + image->depth);
  if (image->f_locals != nullptr) {
    Py_XSETREF(frame->f_locals, image->f_locals);
    image->f_locals = nullptr;
  }
  set_next(frame, image->offset);
  if (image->frame_object != nullptr) {
    PyFrameObject* object = image->frame_object;
    image->frame_object = nullptr;
    attach_frame_object(object, frame, image->from_object);
  }
  borrow_on_stack(frame, image->offset, waits && image->drops == 0);
}

void set_raised(PyObject* raised) {
#if DALSEGNO_PY311
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(raised))), raised, PyException_GetTraceback(raised));
#else
  PyErr_SetRaisedException(raised);
#endif
}

namespace {

// One call of resume().
struct Activation {
  FrameImage* frames;
  int n;
  PyObject* raised;
  OnEntered on_entered;
  void* context;
  int entered = 0;  // frames that took their image's values
};

PyObject* enter(Activation* activation, int index);

// Values of a frame that could not be entered.
void drop_image(FrameImage* image) {
  const int count = code_of(*image)->co_nlocalsplus;
  for (int i = 0; i < count; ++i) Py_CLEAR(image->locals[i]);
  for (int i = 0; i < image->depth; ++i) drop_reference(owning(std::exchange(image->stack[i], nullptr)));
  Py_CLEAR(image->f_locals);
  Py_CLEAR(image->frame_object);
}

PyObject* run_innermost(PyThreadState* thread, Frame* frame, Activation* activation, int offset) {
  if (activation->raised == nullptr) return _PyEval_EvalFrameDefault(thread, frame, 0);
  PyObject* raised = activation->raised;
  activation->raised = nullptr;
  set_raised(raised);
  return throw_into(thread, frame, offset);
}

// Rule 2: while the frame inside runs, this one is linked as the current frame, at its call.
PyObject* run_inner(PyThreadState* thread, Frame* frame, Activation* activation, int index) {
  set_executing(frame, activation->frames[index].offset);
  frame->previous = current_frame(thread);
  current_frame(thread) = frame;
  const int debt = take_recursion(thread, 1 + levels_in_c(activation->frames[index].action));
  PyObject* result = enter(activation, index + 1);
  recursion_remaining(thread) += debt;
  current_frame(thread) = frame->previous;
  return result;
}

PyObject* run_outer(PyThreadState* thread, Frame* frame, Activation* activation, int index) {
  const FrameImage& image = activation->frames[index];
  PyObject* result = run_inner(thread, frame, activation, index);
  const int next = take_result(thread, frame, image, result);
  if (next < 0) return throw_into(thread, frame, image.offset);
  set_next(frame, next);
  return _PyEval_EvalFrameDefault(thread, frame, 0);
}

PyObject* run_entered(PyThreadState* thread, Frame* frame, Activation* activation, int index) {
  activation->entered = index + 1;
  fill_frame(frame, &activation->frames[index], index + 1 < activation->n);
  if (index > 0) borrow_arguments(current_frame(thread), activation->frames[index - 1].offset, frame);
  frame->previous = current_frame(thread);  // the evaluator does so, too, but who looks at the stack meanwhile (tracemalloc) follows it
  announce_entered(thread, frame);
  if (activation->on_entered != nullptr) activation->on_entered(activation->context, index, frame);
  if (index + 1 < activation->n) return run_outer(thread, frame, activation, index);
  return run_innermost(thread, frame, activation, activation->frames[index].offset);
}

// Names of the keyword-only parameters, as a call passes them.
PyObject* keyword_names(const PyCodeObject* code) {
  PyObject* names = PyTuple_New(code->co_kwonlyargcount);
  if (names == nullptr) return nullptr;
  for (int i = 0; i < code->co_kwonlyargcount; ++i) {
    PyTuple_SET_ITEM(names, i, Py_NewRef(PyTuple_GET_ITEM(code->co_localsplusnames, code->co_argcount + i)));
  }
  return names;
}

PyObject* call_with_dummies(PyFunctionObject* function) {
  const PyCodeObject* code = code_of(function);
  const size_t count = static_cast<size_t>(code->co_argcount) + code->co_kwonlyargcount;
  PyObject* few[16];
  PyObject** many = nullptr;  // no vector: an exception of ours would cross the evaluator
  if (count > std::size(few) && (many = PyMem_New(PyObject*, count)) == nullptr) return PyErr_NoMemory();
  PyObject** dummies = many != nullptr ? many : few;
  for (size_t i = 0; i < count; ++i) dummies[i] = Py_None;
  PyObject* names = nullptr;
  PyObject* result = nullptr;
  if (code->co_kwonlyargcount == 0 || (names = keyword_names(code)) != nullptr)
    result = PyObject_Vectorcall(reinterpret_cast<PyObject*>(function), dummies, code->co_argcount, names);
  Py_XDECREF(names);
  PyMem_Free(many);
  return result;
}

bool check_enterable(const FrameImage& image) {
  if (!is_generator_like(code_of(image))) return true;
  PyErr_Format(PyExc_SystemError, "dalsegno: the frame of generator %R cannot be resumed", image.function->func_qualname);
  return false;
}

// The entry of one image's frame.
class Entry final : public NextFrame {
 public:
  Entry(Activation* activation, int index)
      : NextFrame(activation->frames[index].function), activation_(activation), index_(index), code_(code_of(activation->frames[index])) {}
  PyObject* call() {
#if DALSEGNO_PY311
    collecting_ = PyGC_Disable();  // 3.11 collects while arguments are being bound
#endif
    swap_code();
    open();
    PyObject* result = call_with_dummies(function());
    close();  // still open where the frame could not even be made
    return result;
  }

 private:
  PyObject* run(PyThreadState* thread, Frame* frame) override { return run_entered(thread, frame, activation_, index_); }
  void closing() override {
    swap_code();
#if DALSEGNO_PY311
    if (collecting_) PyGC_Enable();
#endif
  }
  // While a function ran, somebody may have assigned to its __code__: it has the image's for the time.
  void swap_code() {
    PyObject* other = function()->func_code;
    function()->func_code = reinterpret_cast<PyObject*>(code_);
    code_ = reinterpret_cast<PyCodeObject*>(other);
  }

  Activation* activation_;
  int index_;
  PyCodeObject* code_;
#if DALSEGNO_PY311
  int collecting_ = 0;
#endif
};

// The entry of a generator's frame, which is its own: the generator is asked for its next item.
class GeneratorEntry final : public NextFrame {
 public:
  GeneratorEntry(Activation* activation, int index)
      : NextFrame(activation->frames[index].function), activation_(activation), index_(index) {}
  PyObject* call() {
    const FrameImage& image = activation_->frames[index_];
    PyObject* generator = image.generator;
    wait_at(generator, image.offset, code_of(image)->co_nlocalsplus);
    open();
    PyObject* result = Py_TYPE(generator)->tp_iternext(generator);
    close();
    return result;
  }

 private:
  PyObject* run(PyThreadState* thread, Frame* frame) override {
    FrameImage& image = activation_->frames[index_];
    cut_slots(frame, code_of(frame)->co_nlocalsplus);  // (what was sent)
    for (int i = 0; i < used_slots(frame); ++i)        // what somebody has assigned to while the frame was linked
      if (slots_of(frame)[i].get() != nullptr) Py_XSETREF(image.locals[i], slots_of(frame)[i].take());
    return run_entered(thread, frame, activation_, index_);
  }

  Activation* activation_;
  int index_;
};

// Enters frames[index] and those inside it. Its result, or null with an exception set; null without one: a generator has ended.
PyObject* enter(Activation* activation, int index) {
  const FrameImage& image = activation->frames[index];
  if (image.generator != nullptr) return GeneratorEntry(activation, index).call();
  return check_enterable(image) ? Entry(activation, index).call() : nullptr;
}

}  // namespace

PyObject* resume(FrameImage* frames, int n, PyObject* raised, OnEntered on_entered, void* context) {
  Activation activation{frames, n, raised, on_entered, context};
  const UncountedEvaluator uncounted;  // the frames' evaluators run one after the other
  PyObject* result = enter(&activation, 0);
  for (int i = activation.entered; i < n; ++i) drop_image(&frames[i]);
  Py_XDECREF(activation.raised);
  return result;
}

}  // namespace dalsegno::hook
