// What the instruction of a frame does with the result of the frame it has called (rule 3). Objects/typeobject.c and Objects/abstract.c say
// what is between the two where it is not a call.
#include <array>

#include "hook/frame_access.h"

namespace dalsegno::hook {
namespace {

int argument_of(const Frame* frame, int offset) {
  return _Py_OPARG(_PyCode_CODE(code_of(frame))[executing_offset(code_of(frame), offset)]);
}

void drop(Frame* frame, int count) { cut_slots(frame, used_slots(frame) - count); }

PyObject* operand(const Frame* frame, int below) { return slots_of(frame)[used_slots(frame) - 1 - below].get(); }

bool is_none(PyObject* result) {
  if (result == Py_None) return true;
  PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(result)->tp_name);
  return false;
}

// binary_op1() from where the left operand has given NotImplemented: the right one is asked where its type is C's own (an array's, say).
// Else either it has no other method than the left one's, or it was the one that was asked.
PyObject* ask_right_operator(PyObject* left, PyObject* right, int operation) {
  using Methods = PyNumberMethods;
  static constexpr std::array<binaryfunc Methods::*, 13> kSlots = {&Methods::nb_add,
                                                                   &Methods::nb_and,
                                                                   &Methods::nb_floor_divide,
                                                                   &Methods::nb_lshift,
                                                                   &Methods::nb_matrix_multiply,
                                                                   &Methods::nb_multiply,
                                                                   &Methods::nb_remainder,
                                                                   &Methods::nb_or,
                                                                   nullptr,
                                                                   &Methods::nb_rshift,
                                                                   &Methods::nb_subtract,
                                                                   &Methods::nb_true_divide,
                                                                   &Methods::nb_xor};
  const PyTypeObject* type = Py_TYPE(right);
  const auto slot = kSlots[static_cast<size_t>(operation) % kSlots.size()];
  if (PyType_HasFeature(Py_TYPE(right), Py_TPFLAGS_HEAPTYPE) || !type->tp_as_number || !slot || !(type->tp_as_number->*slot))
    return Py_NewRef(Py_NotImplemented);
  return (type->tp_as_number->*slot)(left, right);
}

// Where both operands have been asked: nothing else is done with operands that have methods (record_special.cc).
PyObject* nobody_does(PyObject* left, PyObject* right, int operation) {
  static constexpr std::array<const char*, 26> kSigns = {
      "+",  "&",  "//",  "<<",  "@",  "*",  "%",  "|",  "** or pow()", ">>",  "-",  "/",  "^",
      "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=",         ">>=", "-=", "/=", "^="};
  PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %.100s: '%.100s' and '%.100s'", kSigns[static_cast<size_t>(operation)],
               Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
  return nullptr;
}

// do_richcompare() from where the left operand has given NotImplemented.
PyObject* ask_right(PyObject* left, PyObject* right, int operation) {
  static constexpr std::array<int, 6> kSwapped = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  static constexpr std::array<const char*, 6> kSigns = {"<", "<=", "==", "!=", ">", ">="};
  const auto i = static_cast<size_t>(operation);
  if (const richcmpfunc compare = Py_TYPE(right)->tp_richcompare) {
    PyObject* result = compare(right, left, kSwapped[i]);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  if (operation == Py_EQ || operation == Py_NE) return PyBool_FromLong((left == right) == (operation == Py_EQ));
  PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kSigns[i], Py_TYPE(left)->tp_name,
               Py_TYPE(right)->tp_name);
  return nullptr;
}

// What comes of the operands where the method called has given NotImplemented. The frame is the current one meanwhile.
PyObject* go_on_with_operands(PyThreadState* thread, Frame* frame, const FrameImage& image) {
  PyObject *left = operand(frame, 1), *right = operand(frame, 0);
  const int operation = argument_of(frame, image.offset);
  const bool is_operator = image.action == ReturnAction::kOperator;
  set_executing(frame, image.offset);
  const bool is_current = current_frame(thread) == frame;  // one that the interpreter was running before
  if (!is_current) {
    frame->previous = current_frame(thread);
    current_frame(thread) = frame;
  }
  const int debt = take_recursion(thread, (is_current ? 0 : 1) + levels_in_c(image.action));
  PyObject* result = is_operator ? ask_right_operator(left, right, operation) : ask_right(left, right, operation);
  recursion_remaining(thread) += debt;
  if (!is_current) current_frame(thread) = frame->previous;
  if (!is_operator || result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return nobody_does(left, right, operation);
}

// Where a FOR_ITER goes on that has found its iterator exhausted.
int end_of_loop(const PyCodeObject* code, int offset) {
  constexpr int kCaches = PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;
  constexpr int kSkipped = PY_VERSION_HEX >= 0x030e0000 ? 1 : PY_VERSION_HEX >= 0x030d0000 ? 2 : kCaches;  // END_FOR; and POP_TOP
  const int at = executing_offset(const_cast<PyCodeObject*>(code), offset);
  int argument = 0;
  for (int i = offset; i <= at; ++i) argument = argument << 8 | _Py_OPARG(_PyCode_CODE(code)[i]);
  return at + 1 + kCaches + argument + kSkipped;
}

constexpr bool kDropsIterator = PY_VERSION_HEX < 0x030e0000;  // (else the next instruction does)

// A generator gave nothing: has it come to its end, and where does the frame go on then? -1: an exception is set.
int take_end(Frame* frame, const FrameImage& image) {
  const bool ended = PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_StopIteration) != 0;
  if (!ended || generator_below(image.action, image.drops) < 0) return -1;
  if (image.action == ReturnAction::kNextItem) {
    PyErr_Clear();
    if (kDropsIterator) drop(frame, 1);
    return end_of_loop(code_of(frame), image.offset);
  }
  if (generator_below(image.action, image.drops) == 0) {  // builtin_next() of Python/bltinmodule.c
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_StopIteration);
    return -1;
  }
  PyErr_Clear();
  PyObject* given = Py_NewRef(operand(frame, 0));
  drop(frame, image.drops);
  push(frame, given);
  return image.after;
}

}  // namespace

int take_result(PyThreadState* thread, Frame* frame, const FrameImage& image, PyObject* result) {
  if (result == nullptr) return take_end(frame, image);
  const bool operation = image.action == ReturnAction::kOperator || image.action == ReturnAction::kCompare;
  if (operation && result == Py_NotImplemented) {
    Py_DECREF(result);
    if ((result = go_on_with_operands(thread, frame, image)) == nullptr) return -1;
  }
  if (image.action == ReturnAction::kInstance) {
    const bool none = is_none(result);
    if (!none) {
      Py_DECREF(result);
      return -1;
    }
  }
  drop(frame, image.drops);
  if (image.action == ReturnAction::kDiscard || image.action == ReturnAction::kInstance) {
    Py_DECREF(result);
  } else {
    push(frame, result);
  }
  return image.after;
}

}  // namespace dalsegno::hook
