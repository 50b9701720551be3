// Arguments that lie on the caller's stack: taking them over, as a frame made by the instruction itself does.
#include "hook/arguments.h"

#include <opcode.h>

#include <algorithm>
#include <utility>

#include "hook/next_frame.h"

namespace dalsegno::hook {
PyObject* call_plainly(PyFunctionObject* function, PyObject* const* args, bool first, size_t nargsf, PyObject* kwnames) {
  const size_t given = first ? static_cast<size_t>(PyVectorcall_NARGS(nargsf) - 1) : nargsf;
  return function->vectorcall(reinterpret_cast<PyObject*>(function), args + (first ? 1 : 0), given, kwnames);
}

namespace {

// A call under way whose frame is still to be made.
class Taking final : public NextFrame {
 public:
  Taking(PyObject* callable, PyFunctionObject* function, PyObject* const* args, Py_ssize_t count)
      : NextFrame(function), callable_(callable), args_(args), count_(count) {}
  PyObject* call(bool first, size_t nargsf, PyObject* kwnames) {
    open();
    PyObject* result = call_plainly(function(), args_, first, nargsf, kwnames);
    close();  // still open where there was no frame
    return result;
  }

 private:
  PyObject* run(PyThreadState*, Frame* frame) override {
    take_arguments(callable_, args_, count_);
    return evaluate_as_before(frame);
  }
  PyObject* callable_;
  PyObject* const* args_;
  Py_ssize_t count_;
};

// What is bound without making an object, so that nothing else can run before the frame does.
bool binds_plainly(const PyFunctionObject* function) { return !(code_of(function)->co_flags & (CO_VARARGS | CO_VARKEYWORDS)); }

}  // namespace

static thread_local GivenUp* t_given = nullptr;

GivenUp::GivenUp(PyObject* const* args, Py_ssize_t count) : args_(args), count_(count), outer_(std::exchange(t_given, this)) {}
GivenUp::~GivenUp() { t_given = outer_; }
bool GivenUp::has(PyObject* const* args, Py_ssize_t count) {
  const GivenUp* given = t_given;
  while (given != nullptr && given->args_ != args) given = given->outer_;
  return given != nullptr && given->count_ == count;
}

#if DALSEGNO_PY314

// 3.14 hands a C callable an array of its own; what the instruction drops stands on the stack behind that.
namespace {

// The instruction that the frame executes calls what lies under its operands. How many of them lie on the arguments; -1: it does not.
int operands_on_arguments(Frame* frame) {
  int opcode = frame->instr_ptr->op.code;
  if (opcode >= MIN_INSTRUMENTED_OPCODE) {  // it is watched: what the compiler wrote
    PyObject* bytes = PyCode_GetCode(code_of(frame));
    if (bytes == nullptr) return PyErr_Clear(), -1;
    opcode = static_cast<uint8_t>(PyBytes_AS_STRING(bytes)[2 * _PyInterpreterFrame_LASTI(frame)]);
    Py_DECREF(bytes);
  }
  if (opcode == CALL_KW || opcode == CALL_KW_BOUND_METHOD || opcode == CALL_KW_NON_PY || opcode == CALL_KW_PY) return 1;  // their names
  static_assert(CALL_TYPE_1 - CALL_ALLOC_AND_ENTER_INIT == 22, "all others are CALL's");
  return opcode == CALL || (opcode >= CALL_ALLOC_AND_ENTER_INIT && opcode <= CALL_TYPE_1) ? 0 : -1;
}

// Where the arguments stand; null: they are not this instruction's.
Slot* slots_of_arguments(Frame* frame, PyObject* callable, PyObject* const* args, Py_ssize_t count) {
  if (frame == nullptr || count == 0 || frame->owner >= FRAME_OWNED_BY_INTERPRETER || frame->stackpointer == nullptr) return nullptr;
  const int above = operands_on_arguments(frame);
  const int bottom = code_of(frame)->co_nlocalsplus;
  const Py_ssize_t first = used_slots(frame) - above - count;
  if (above < 0 || first - 1 < bottom) return nullptr;
  Slot* slots = slots_of(frame);
  const bool calls = slots[first - 1].get() == callable ||
                     (slots[first - 1].get() == nullptr && first - 2 >= bottom && slots[first - 2].get() == callable);
  if (!calls || !std::equal(args, args + count, slots + first, [](const PyObject* a, const Slot& s) { return a == s.get(); }))
    return nullptr;
  return slots + first;
}

}  // namespace

static bool lie_on_callers_stack(PyObject* callable, PyObject* const* args, Py_ssize_t count) {
  return slots_of_arguments(current_frame(PyThreadState_Get()), callable, args, count) != nullptr;
}

#else

static bool lie_on_callers_stack(PyObject* callable, PyObject* const* args, Py_ssize_t count) {
  const Frame* frame = current_frame(PyThreadState_Get());
  if (frame == nullptr || count == 0) return false;
  const auto* first = reinterpret_cast<PyObject* const*>(frame->localsplus);
  const PyCodeObject* code = code_of(frame);
  const auto* stack = first + code->co_nlocalsplus;
  if (args < stack + 1 || args + count > stack + code->co_stacksize) return false;
    // Below the arguments lies the callable; something in between may have put an argument of its own there.
#if DALSEGNO_PY313
  return args[-1] == callable || (args[-1] == nullptr && args >= stack + 2 && args[-2] == callable);
#else
  return args[-1] == callable;
#endif
}

#endif

bool caller_gives_up(PyObject* callable, PyObject* const* args, Py_ssize_t count) {
  return GivenUp::has(args, count) || lie_on_callers_stack(callable, args, count);
}

void take_arguments([[maybe_unused]] PyObject* callable, PyObject* const* args, Py_ssize_t count) {
#if DALSEGNO_PY314
  if (callable != nullptr && !GivenUp::has(args, count)) {
    Frame* frame = current_frame(PyThreadState_Get());
    const Slot* first = slots_of_arguments(frame, callable, args, count);
    const Py_ssize_t at = first != nullptr ? first - slots_of(frame) : 0;
    // What the instruction knows as `self` it has in a register, too, and drops itself.
    const Py_ssize_t begin = first != nullptr && first[-1].get() == callable ? 1 : 0;
    for (Py_ssize_t i = begin; first != nullptr && i < count; ++i) {
      const_cast<PyObject**>(args)[i] = Py_None;  // the callable's array has no references
      set_slot(frame, static_cast<int>(at + i), Py_NewRef(Py_None));
    }
    return;
  }
#endif
  for (Py_ssize_t i = 0; i < count; ++i) Py_SETREF(const_cast<PyObject**>(args)[i], Py_NewRef(Py_None));
}

PyObject* call_taking(PyObject* callable, PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames, bool first) {
  if (!binds_plainly(function)) return call_plainly(function, args, first, nargsf, kwnames);
  return Taking(callable, function, args, count_of(nargsf, kwnames)).call(first, nargsf, kwnames);
}

}  // namespace dalsegno::hook
