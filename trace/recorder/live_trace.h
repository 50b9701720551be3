// A trace with the interpreter's objects it refers to.
#pragma once
#include <Python.h>

#include <memory>
#include <vector>

#include "trace/trace.h"

namespace dalsegno {

// Owns one reference to each of data.objects (never null) and to the interned str of each of data.names. Needs the GIL to be destroyed.
struct LiveTrace {
  Trace data;
  std::vector<PyObject*> objects;
  std::vector<PyObject*> names;
  LiveTrace() = default;
  LiveTrace(const LiveTrace&) = delete;
  LiveTrace(LiveTrace&&) = default;
  ~LiveTrace() {
    for (PyObject* o : objects) Py_XDECREF(o);
    for (PyObject* o : names) Py_XDECREF(o);
  }
};

}  // namespace dalsegno
