// The exception that is set, kept out of the way while the C API is used. Needs the GIL.
#pragma once
#include <Python.h>

#include "hook/hook.h"

namespace dalsegno::hook {

// Puts it aside, if there is one, and puts it back at the end of the scope; what is raised meanwhile is dropped.
class ErrorAside {
 public:
  ErrorAside() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~ErrorAside() {
    stop_if_ended();
    PyErr_Restore(type_, value_, traceback_);
  }
  ErrorAside(const ErrorAside&) = delete;
  ErrorAside& operator=(const ErrorAside&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

}  // namespace dalsegno::hook
