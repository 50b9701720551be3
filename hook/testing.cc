// dalsegno._testing.hook. Frames come in as tuples
// (function, offset, after, locals, stack, action, f_locals, frame_object[, code]), outermost first, with the object NULL for a null
// pointer.
#include "hook/testing.h"

#include <opcode.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hook/frame_access.h"
#include "hook/interrupts.h"

namespace {

// The exception this thread is handling, as sys.exception() (borrowed or null).
PyObject* handled_exception() {
  const _PyErr_StackItem* item = PyThreadState_Get()->exc_info;
  while ((item->exc_value == nullptr || item->exc_value == Py_None) && item->previous_item != nullptr) item = item->previous_item;
  return item->exc_value == Py_None ? nullptr : item->exc_value;
}

using namespace dalsegno::hook;

PyObject* g_null = nullptr;  // stands for a null pointer in lists of values

// Owns a reference.
class Ref {
 public:
  explicit Ref(PyObject* object = nullptr) : object_(object) {}
  ~Ref() { Py_XDECREF(object_); }
  Ref(const Ref&) = delete;
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

PyObject* or_null(PyObject* value) { return value != nullptr ? value : g_null; }
PyObject* or_none(PyObject* value) { return value != nullptr ? value : Py_None; }
PyObject* from_test(PyObject* value) { return value == g_null ? nullptr : Py_NewRef(value); }

// (True, result) or (False, exception), stealing the result.
PyObject* outcome_of(PyObject* result) {
  if (result != nullptr) return Py_BuildValue("(ON)", Py_True, result);
  return Py_BuildValue("(ON)", Py_False, take_raised());
}

// Images with storage for their values (owned until resume has stolen them).
class Images {
 public:
  ~Images() {
    for (size_t i = 0; i < frames.size(); ++i) {
      for (PyObject*& value : values_[i]) drop_reference(owning(std::exchange(value, nullptr)));
      Py_CLEAR(frames[i].f_locals);
      Py_CLEAR(frames[i].frame_object);
    }
  }
  FrameImage& add(PyFunctionObject* function, std::vector<PyObject*> values, PyCodeObject* code = nullptr) {
    values_.push_back(std::move(values));
    FrameImage image;
    image.function = function;
    image.code = code;
    image.locals = values_.back().data();
    const int count = code_of(image)->co_nlocalsplus;
    image.stack = image.locals + count;
    image.depth = static_cast<int>(values_.back().size()) - count;
    frames.push_back(image);
    return frames.back();
  }
  bool parse(PyObject* list);
  int count() const { return static_cast<int>(frames.size()); }
  std::vector<FrameImage> frames;

 private:
  std::vector<std::vector<PyObject*>> values_;
};

bool Images::parse(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *function, *locals, *stack, *f_locals, *frame_object, *code = nullptr;
    int offset, after, action;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "O!iiO!O!iOO|O!", &PyFunction_Type, &function, &offset, &after, &PyList_Type, &locals,
                          &PyList_Type, &stack, &action, &f_locals, &frame_object, &PyCode_Type, &code)) {
      return false;
    }
    std::vector<PyObject*> values;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(locals); ++k) values.push_back(from_test(PyList_GET_ITEM(locals, k)));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(stack); ++k) values.push_back(from_test(PyList_GET_ITEM(stack, k)));
    FrameImage& image = add(reinterpret_cast<PyFunctionObject*>(function), std::move(values), reinterpret_cast<PyCodeObject*>(code));
    image.offset = offset;
    image.after = after;
    image.action = action == 0 ? ReturnAction::kPush : ReturnAction::kDiscard;
    image.f_locals = from_test(f_locals);
    image.frame_object = reinterpret_cast<PyFrameObject*>(from_test(frame_object));
  }
  return true;
}

// ---- observing -------------------------------------------------------------------------------------------------------------

// Lists (code name, offset, depth, frame, caller's frame); can add a code object, or stop, at a given event.
class Lister : public Watcher {
 public:
  void before(const FrameView& view) noexcept override {
    Ref event(Py_BuildValue("(OiiKK)", view.code->co_name, view.offset, view.stack_depth, reinterpret_cast<unsigned long long>(view.id),
                            reinterpret_cast<unsigned long long>(view.previous)));
    if (event) PyList_Append(events.get(), event.get());
    const Py_ssize_t seen = PyList_GET_SIZE(events.get());
    if (seen == add_at && add != nullptr) added = watch_code(add);
    if (seen == stop_at) status = watch_stop();
  }
  Ref events{PyList_New(0)};
  PyCodeObject* add = nullptr;
  Py_ssize_t add_at = -1;
  Py_ssize_t stop_at = -1;
  bool added = false;
  WatchStatus status = WatchStatus::kOk;
};

std::vector<std::unique_ptr<Lister>> g_listers;  // innermost last

// watch_start(code...) -> status
PyObject* py_watch_start(PyObject*, PyObject* args) {
  auto lister = std::make_unique<Lister>();
  const WatchStatus status = watch_start(lister.get());
  if (status == WatchStatus::kOk) {
    g_listers.push_back(std::move(lister));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      if (!watch_code(reinterpret_cast<PyCodeObject*>(PyTuple_GET_ITEM(args, i)))) {
        watch_stop();
        g_listers.pop_back();
        return PyLong_FromLong(static_cast<long>(WatchStatus::kOtherTool));
      }
    }
  }
  return PyLong_FromLong(static_cast<long>(status));
}

// watch_stop() -> (status, events)
PyObject* py_watch_stop(PyObject*, PyObject*) {
  if (g_listers.empty()) return Py_BuildValue("(i[])", static_cast<int>(watch_stop()));
  const std::unique_ptr<Lister> lister = std::move(g_listers.back());
  g_listers.pop_back();
  const WatchStatus status = watching(lister.get()) ? watch_stop() : lister->status;  // it may have stopped inside
  return Py_BuildValue("(iO)", static_cast<int>(status), lister->events.get());
}

// watch_plan(stop_at, add_at, code): what to do inside `before`
PyObject* py_watch_plan(PyObject*, PyObject* args) {
  PyObject* code;
  if (!PyArg_ParseTuple(args, "nnO", &g_listers.back()->stop_at, &g_listers.back()->add_at, &code)) return nullptr;
  g_listers.back()->add = PyCode_Check(code) ? reinterpret_cast<PyCodeObject*>(code) : nullptr;
  Py_RETURN_NONE;
}

PyObject* py_watch_code(PyObject*, PyObject* code) { return PyBool_FromLong(watch_code(reinterpret_cast<PyCodeObject*>(code))); }

PyObject* py_watching(PyObject*, PyObject*) { return PyBool_FromLong(watching()); }
PyObject* py_thread_observed(PyObject*, PyObject*) { return PyBool_FromLong(thread_observed()); }

PyObject* py_code_observed(PyObject*, PyObject* code) { return PyBool_FromLong(code_observed(reinterpret_cast<PyCodeObject*>(code))); }
// default_evaluator() -> bool: no evaluator is left behind
PyObject* py_default_evaluator(PyObject*, PyObject*) {
  return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == _PyEval_EvalFrameDefault);
}

// ---- resuming --------------------------------------------------------------------------------------------------------------

void note_entered(void* context, int index, void* frame_id) {
  Ref note(Py_BuildValue("(iK)", index, reinterpret_cast<unsigned long long>(frame_id)));
  if (note && context != nullptr) PyList_Append(static_cast<PyObject*>(context), note.get());
}

// resume(frames, raised or None, entered: list or None) -> result
PyObject* py_resume(PyObject*, PyObject* args) {
  PyObject *list, *raised, *entered = Py_None;
  if (!PyArg_ParseTuple(args, "O!O|O", &PyList_Type, &list, &raised, &entered)) return nullptr;
  Images images;
  if (!images.parse(list)) return nullptr;
  return resume(images.frames.data(), images.count(), raised == Py_None ? nullptr : Py_NewRef(raised),
                entered == Py_None ? nullptr : note_entered, entered == Py_None ? nullptr : entered);
}

// resume_and_clear(frames, list): as resume, but empties the lists first, so that the images hold the only references
PyObject* py_resume_and_clear(PyObject*, PyObject* args) {
  PyObject *list, *locals;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &list, &PyList_Type, &locals)) return nullptr;
  Images images;
  if (!images.parse(list)) return nullptr;
  PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr);
  PyList_SetSlice(locals, 0, PyList_GET_SIZE(locals), nullptr);
  return resume(images.frames.data(), images.count(), nullptr);
}

// Leaves a running chain of frames: at the k-th event, rebuilds all frames of the given code objects and resumes them, nested in the
// original, which goes on afterwards. `places` maps each code object to {code unit: (depth, legal offset, first unit, next instruction)}.
class Cutter : public Watcher {
 public:
  Cutter(PyObject* places, long k, PyObject* raised, PyObject* show) : places_(places), k_(k), raised_(raised), show_(show) {}
  void before(const FrameView& view) noexcept override {
    if (seen_++ != k_) return;
    watch_stop();
    std::vector<Frame*> chain = chain_from(static_cast<Frame*>(view.id));
    event = Py_BuildValue("(OiOi)", view.code, view.offset, code_of(chain.back()), view.stack_depth);
    if (finishes_function(view)) {
      shown = Py_NewRef(Py_None);
      return;
    }
    Images images;
    for (size_t i = chain.size(); i-- > 0;) add_image(&images, chain[i], i == 0 ? view.offset : -1);
    PyObject* handled = Py_XNewRef(handled_exception());
    shown = show(resume(images.frames.data(), images.count(), raised_here()));
    PyErr_SetHandledException(or_none(handled));  // the original goes on
    Py_XDECREF(handled);
  }
  PyObject* event = nullptr;  // (code, offset, outermost code, live stack depth)
  PyObject* shown = nullptr;  // None: not left there

 private:
  // Raised as an instruction raises: with the exception being handled as context.
  PyObject* raised_here() const {
    if (raised_ == nullptr) return nullptr;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised_)), raised_);
    return take_raised();
  }
  // A function on the stack gets its attributes one by one, and debug builds assert that none is set twice, as two runs would.
  static bool finishes_function([[maybe_unused]] const FrameView& view) {
#if defined(Py_DEBUG) && defined(SET_FUNCTION_ATTRIBUTE)
    const Ref bytes(PyCode_GetCode(view.code));
    return static_cast<uint8_t>(PyBytes_AS_STRING(bytes.get())[2 * view.offset]) == SET_FUNCTION_ATTRIBUTE;
#else
    return false;
#endif
  }
  // At once: the original goes on with the same objects.
  PyObject* show(PyObject* result) const {
    Ref pair(outcome_of(result));
    PyObject* text = PyObject_CallObject(show_, pair.get());
    return text != nullptr ? text : take_raised();
  }
  static bool called_from_c(const Frame* frame) {
#if DALSEGNO_PY311
    return frame->is_entry;
#elif DALSEGNO_PY314
    return frame->previous == nullptr || frame->previous->owner >= FRAME_OWNED_BY_INTERPRETER;
#else
    return frame->previous == nullptr || frame->previous->owner == FRAME_OWNED_BY_CSTACK;
#endif
  }
  std::vector<Frame*> chain_from(Frame* frame) const {  // innermost first
    std::vector<Frame*> chain;
    for (;; frame = frame->previous) {
      if (frame->owner != FRAME_OWNED_BY_THREAD || !PyDict_Contains(places_, reinterpret_cast<PyObject*>(code_of(frame)))) break;
      chain.push_back(frame);
      if (called_from_c(frame)) break;
    }
    return chain;
  }
  int place(Frame* frame, int unit, int column) const {
    PyObject* table = PyDict_GetItem(places_, reinterpret_cast<PyObject*>(code_of(frame)));
    Ref key(PyLong_FromLong(unit));
    PyObject* row = table != nullptr ? PyDict_GetItem(table, key.get()) : nullptr;
    if (row == nullptr) Py_FatalError("_testing.hook: no such place");
    return static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(row, column)));
  }
  void add_image(Images* images, Frame* frame, int offset) const {  // offset < 0: an outer frame, at its call
    const bool inner = offset >= 0;
    const int unit = inner ? offset : _PyInterpreterFrame_LASTI(frame);
    const int count = code_of(frame)->co_nlocalsplus;
    const int size = inner ? count + place(frame, unit, 0) : used_slots(frame);
    std::vector<PyObject*> values;
    for (int i = 0; i < size; ++i) values.push_back(new_reference(frame->localsplus[i]));
    FrameImage& image = images->add(function_of(frame), std::move(values));
    image.offset = place(frame, unit, inner ? 1 : 2);
    image.after = place(frame, unit, 3);
    if (!(code_of(frame)->co_flags & CO_OPTIMIZED)) image.f_locals = Py_XNewRef(frame->f_locals);
  }
  PyObject* places_;
  long k_;
  PyObject* raised_;
  PyObject* show_;
  long seen_ = 0;
};

// cut(places, k, raised, show, callable, args) -> None (no such event) or (event, show(succeeded, result or exception), or None where
// it cannot be left twice)
PyObject* py_cut(PyObject*, PyObject* args) {
  PyObject *places, *raised, *show, *callable, *arguments;
  long k;
  if (!PyArg_ParseTuple(args, "O!lOOOO!", &PyDict_Type, &places, &k, &raised, &show, &callable, &PyTuple_Type, &arguments)) {
    return nullptr;
  }
  Cutter cutter(places, k, raised == Py_None ? nullptr : raised, show);
  const WatchStatus status = watch_start(&cutter);
  if (status != WatchStatus::kOk) return PyErr_Format(PyExc_RuntimeError, "watch_start: %d", static_cast<int>(status));
  PyObject* code;
  for (Py_ssize_t at = 0; PyDict_Next(places, &at, &code, nullptr);) watch_code(reinterpret_cast<PyCodeObject*>(code));
  Ref result(PyObject_CallObject(callable, arguments));
  if (!result) PyErr_Clear();
  watch_stop();
  if (cutter.event == nullptr) Py_RETURN_NONE;
  return Py_BuildValue("(NN)", cutter.event, cutter.shown);
}

// ---- linked frames ---------------------------------------------------------------------------------------------------------

// link(frames, callable, *args) -> (outcome, kept, [f_locals or NULL], [frame object or NULL])
PyObject* py_link(PyObject*, PyObject* args) {
  Images images;
  if (!images.parse(PyTuple_GET_ITEM(args, 0))) return nullptr;
  Ref rest(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
  PyObject* outcome;
  bool kept;
  {
    LinkedFrames linked(images.frames.data(), images.count());
    outcome = outcome_of(PyObject_CallObject(PyTuple_GET_ITEM(args, 1), rest.get()));
    kept = linked.unlink();
  }
  PyObject* dicts = PyList_New(0);
  PyObject* objects = PyList_New(0);
  for (const FrameImage& image : images.frames) {
    PyList_Append(dicts, or_null(image.f_locals));
    PyList_Append(objects, or_null(reinterpret_cast<PyObject*>(image.frame_object)));
  }
  return Py_BuildValue("(NONN)", outcome, kept ? Py_True : Py_False, dicts, objects);
}

// link_cost(frames, rounds) -> ns a frame
PyObject* py_link_cost(PyObject*, PyObject* args) {
  PyObject* list;
  int rounds;
  if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &list, &rounds)) return nullptr;
  Images images;
  if (!images.parse(list)) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) LinkedFrames linked(images.frames.data(), images.count());
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return PyFloat_FromDouble(spent.count() / rounds / images.count());
}

// ---- the rest --------------------------------------------------------------------------------------------------------------

DictVersion* version_in(PyObject* capsule) { return static_cast<DictVersion*>(PyCapsule_GetPointer(capsule, nullptr)); }

PyObject* py_dict_version(PyObject*, PyObject* dict) {
  return PyCapsule_New(new DictVersion(dict), nullptr, [](PyObject* capsule) { delete version_in(capsule); });
}
PyObject* py_dict_unchanged(PyObject*, PyObject* capsule) { return PyBool_FromLong(version_in(capsule)->unchanged()); }
PyObject* py_dict_refresh(PyObject*, PyObject* capsule) {
  version_in(capsule)->refresh();
  Py_RETURN_NONE;
}
// dict_move(from, to): the move assignment
PyObject* py_dict_move(PyObject*, PyObject* args) {
  PyObject *from, *to;
  if (!PyArg_ParseTuple(args, "OO", &from, &to)) return nullptr;
  *version_in(to) = std::move(*version_in(from));
  Py_RETURN_NONE;
}

// range_next(iterator) -> (status, value)
PyObject* py_range_next(PyObject*, PyObject* iterator) {
  int64_t value = 0;
  const int status = range_next(iterator, &value);
  return Py_BuildValue("(iL)", status, static_cast<long long>(value));
}

PyObject* py_handled_exception(PyObject*, PyObject*) { return Py_NewRef(or_none(handled_exception())); }

PyObject* py_set_handled_exception(PyObject*, PyObject* exception) {
  PyErr_SetHandledException(exception);
  Py_RETURN_NONE;
}

// pending_call(done): another thread, without the GIL, has the main thread append None to the list.
PyObject* py_pending_call(PyObject*, PyObject* done) {
  const auto appends = [](void* list) { return PyList_Append(static_cast<PyObject*>(list), Py_None); };
  std::thread([&] { add_pending_call(appends, done); }).join();
  Py_RETURN_NONE;
}

PyMethodDef g_methods[] = {
    {"watch_start", py_watch_start, METH_VARARGS, nullptr},
    {"watch_stop", py_watch_stop, METH_NOARGS, nullptr},
    {"watch_plan", py_watch_plan, METH_VARARGS, nullptr},
    {"watch_code", py_watch_code, METH_O, nullptr},
    {"watching", py_watching, METH_NOARGS, nullptr},
    {"thread_observed", py_thread_observed, METH_NOARGS, nullptr},
    {"code_observed", py_code_observed, METH_O, nullptr},
    {"default_evaluator", py_default_evaluator, METH_NOARGS, nullptr},
    {"resume", py_resume, METH_VARARGS, nullptr},
    {"resume_and_clear", py_resume_and_clear, METH_VARARGS, nullptr},
    {"cut", py_cut, METH_VARARGS, nullptr},
    {"link", py_link, METH_VARARGS, nullptr},
    {"link_cost", py_link_cost, METH_VARARGS, nullptr},
    {"dict_version", py_dict_version, METH_O, nullptr},
    {"dict_unchanged", py_dict_unchanged, METH_O, nullptr},
    {"dict_refresh", py_dict_refresh, METH_O, nullptr},
    {"dict_move", py_dict_move, METH_VARARGS, nullptr},
    {"range_next", py_range_next, METH_O, nullptr},
    {"pending_call", py_pending_call, METH_O, nullptr},
    {"handled_exception", py_handled_exception, METH_NOARGS, nullptr},
    {"set_handled_exception", py_set_handled_exception, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool dalsegno::hook::bind_testing(PyObject* module) {
  g_null = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return g_null != nullptr && PyModule_AddFunctions(module, g_methods) == 0 && PyModule_AddObjectRef(module, "NULL", g_null) == 0;
}
