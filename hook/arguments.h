// Arguments of a call that its callee takes over, so that they die as in a call of a Python function.
#pragma once
#include <Python.h>

namespace dalsegno::hook {

// Where an instruction calls a Python function, the arguments on the caller's stack become the variables of the new frame: what a variable
// held dies when it is bound anew. A C callable only borrows them, unless it takes them.
// Whether `args` are arguments of a call of `callable` by the current frame's instruction, which drops what it finds there afterwards.
bool caller_gives_up(PyObject* callable, PyObject* const* args, Py_ssize_t count);
// While one lives, so are the arguments in an array of our own, which has a reference to each. They nest.
class GivenUp {
 public:
  GivenUp(PyObject* const* args, Py_ssize_t count);
  ~GivenUp();
  GivenUp(const GivenUp&) = delete;
  static bool has(PyObject* const* args, Py_ssize_t count);

 private:
  PyObject* const* args_;
  Py_ssize_t count_;
  GivenUp* outer_;
};
// Takes them, where that holds and somebody else has references by now. callable: null: they are in an array of our own, which had one
// each.
void take_arguments(PyObject* callable, PyObject* const* args, Py_ssize_t count);
// Arguments of a vectorcall, those by keyword among them.
inline Py_ssize_t count_of(size_t nargsf, PyObject* kwnames) {
  return PyVectorcall_NARGS(nargsf) + (kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0);
}
// Calls the function. `first`: the first argument is not for it.
PyObject* call_plainly(PyFunctionObject* function, PyObject* const* args, bool first, size_t nargsf, PyObject* kwnames);
// Calls the function in place of `callable`, whose arguments it takes once it has a frame. One with *args or **kwargs borrows them.
// `first`: as above.
PyObject* call_taking(PyObject* callable, PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames, bool first);

}  // namespace dalsegno::hook
